"""Spaces where people put them."""

import pytest

import bertbook as bb
from bertbook.text.detokenize import join_pieces, join_words, spell
from bertbook.text.tokenizer import Tokenizer

TEXTS = [
    "¿Cómo estás?",
    "¡Hola! ¿Qué tal, Tom?",
    "Vivo en el número 3, a las 2:30, por 1,5 € (o 1.500).",
    'Dijo: "Sí", y "no".',
    "Don't say Tom's ex-wife isn't here.",
    "Se fue… «Adiós», dijo.",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_comes_back_as_it_was(text):
    tokenizer = Tokenizer.train(TEXTS, 90, lowercase=False)
    ids = tokenizer([text, "to be padded, and padded"])["input_ids"][0]
    assert spell(ids, tokenizer) == text


def test_pieces_are_joined_to_words():
    assert join_pieces(["est", "##ás", "?", "##a"]) == ["estás", "?a"]
    assert join_pieces(["##a", "b"]) == ["##a", "b"]
    assert join_pieces([]) == []


def test_join_words_spaces_punctuation_as_printed():
    for words, text in (
        (["a", "-", "b"], "a-b"),
        (["-", "b"], "- b"),  # it begins a line of a dialog
        (["a", "'", "."], "a '."),
        (["1", ",", "b"], "1, b"),
        (["a", '"'], 'a "'),
        (['"', "a", '"', "b", '"', "c", '"'], '"a" b "c"'),
    ):
        assert join_words(words) == text


def test_most_sentences_of_the_sample_come_back():
    texts = bb.load_dataset("translation", "train")["target"]
    tokenizer = Tokenizer.train(texts, 600, lowercase=False)
    rows = zip(tokenizer.encode_pieces(texts), texts, strict=True)
    same = [spell(row, tokenizer) == text for row, text in rows]
    print(f"{sum(same)} of {len(same)}")
    assert sum(same) > 0.99 * len(same)
