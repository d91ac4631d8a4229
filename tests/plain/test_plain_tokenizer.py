"""Its ids and places are those of the fast tokenizer."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.locations import data_folder
from bertbook.plain.tokenizer import Tokenizer, clean, match_longest, tokenize
from bertbook.plain.vocabulary import count_words, train_vocabulary
from bertbook.text import merges, wordpiece

TEXTS = [
    "The bank was shut.",
    "He didn't say: “wait” – or did he?",
    "Unaffable, flightless, antidisestablishmentarianism",
    "The café naïve déjà vu, Ångström, São Paulo, İstanbul, straße, Łódź",
    "Cafe\u0301 with a mark of its own",
    "ひらがな カタカナ 한국어 русский Й ελληνικά العربية עברית हिन्दी ไทย",
    "3.14159 x 10^-3 = 0.00314, 1,000,000 and 50% of £3.95",
    "tabs\tand\nlines\r\nand\u00a0spaces\u2003of every kind\u2028here",
    "con\u200btrol\u00ad and \u0000 null \ufffd",
    "the [MASK] left at [MASK]. [SEP] and [mask] and [unused1]",
    "[MASK][MASK]x[CLS]",
    "a" * 100 + " " + "a" * 101,
    "",
    " \n",
]


@pytest.fixture(scope="module")
def fast():
    return bb.Tokenizer.from_pretrained("mini")


@pytest.fixture(scope="module")
def plain(fast):
    return Tokenizer(fast.vocabulary)


def test_pieces_places_and_words_are_those_of_the_fast_one(plain, fast):
    for text in TEXTS:
        encoding = fast.encode(text)
        inner = slice(1, -1)  # without [CLS] and [SEP]
        words = encoding.word_ids[inner]
        places = encoding.offsets[inner]
        expected = [
            (piece, *place, word)
            for piece, place, word in zip(
                encoding.tokens[inner], places, words, strict=True
            )
        ]
        assert tokenize(text, plain.ids) == expected, text


def test_ids_are_those_of_the_fast_one_on_the_shelf(plain, fast):
    paths = sorted((data_folder() / "samples" / "shelf").glob("*.txt"))
    lines = [line for p in paths for line in p.read_text("utf-8").split("\n")]
    assert len(lines) > 700
    for line in lines:
        ids = fast.encode(line).input_ids[1:-1]
        assert plain.encode(line) == ids, line


def test_it_cleans_every_character_as_the_package_does():
    for code in range(0x3000):
        text = f"a{chr(code)}b"
        if not wordpiece.is_cjk(chr(code)):
            ours = [pair for pair in clean(text) if not pair[0].isspace()]
            theirs = wordpiece.clean(text)
            theirs = [pair for pair in theirs if not pair[0].isspace()]
            assert ours == theirs, hex(code)


@pytest.mark.parametrize("max_length", [None, 12, 5])
def test_a_batch_is_that_of_the_package(plain, fast, max_length):
    texts = ["The bank was shut.", "So she sat on the bank of the river."]
    pairs = ["It was a Sunday, and it rained all day.", "Why?"]
    for second in (None, pairs):
        batch = plain(texts, second, max_length)
        expected = (
            fast(texts, second, max_length, padding="max_length")
            if (max_length)
            else fast(texts, second)
        )
        assert list(batch) == list(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(batch[name], array)


def test_a_word_is_spelled_whole_or_not_at_all():
    pieces = {"play", "##ing", "##in", "##g", "pl", "##ay", "a"}
    words = "playing", "play", "axe", "ping"
    assert [match_longest(word, pieces) for word in words] == [
        ["play", "##ing"], ["play"], ["[UNK]"], ["[UNK]"],
    ]  # fmt: skip


def test_a_vocabulary_is_that_of_the_readable_trainer():
    lines = ["low low lower lowest", "new newer newest", "wide wider widest"]
    counts = count_words(lines)
    assert counts == wordpiece.count_words(lines)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    theirs = merges.train_vocabulary(counts, 30, "bpe", special)
    assert train_vocabulary(counts, 30) == theirs
    everything = train_vocabulary(counts, 1_000)
    assert len(everything) < 1_000
    assert "##est" in everything
    assert "widest" in everything
