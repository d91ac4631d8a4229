"""Texts in capitals: what a translator reads in their place."""

import pytest

import bertbook as bb
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from bertbook.translation import translate as translation
from bertbook.translation.capitals import lower_capitals
from tests.helpers import decoders

LETTERS = "abcdefghijklmnopqrstuvwxyzñABCDEFGHIJKLMNOPQRSTUVWXYZ"
WORDS = ["she", "has", "a", "house", "never", "may", "us", "go"]
WORDS += ["Boston", "TV", "May", "Tom", "tom"]
PIECES = [*SPECIAL_TOKENS, *WORDS, *LETTERS, *(f"##{c}" for c in LETTERS)]
CASED = Tokenizer(list(dict.fromkeys(PIECES)), lowercase=False)


def spelled(text, tokenizer=CASED):
    (new,), (in_capitals,) = lower_capitals([text], tokenizer)
    return new, in_capitals


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("SHE HAS A HOUSE.", "She has a house."),
        ("SHE IS IN BOSTON", "She is in Boston"),  # known as a name alone
        ("HOUSE! HAS SHE? (NEVER…) NO.", "House! Has she? (Never…) No."),
        ("I AM, I'M, SHE DON'T.", "I am, I'm, she don't."),
        ("TV, SHE HAS TV", "TV, she has TV"),
        ("AT 4.5 KM, SHE", "At 4.5 km, she"),  # no sentence ends there
        ("NO", "No"),
        ("XYZ XYZ", "Xyz xyz"),
        ("LA NIÑA", "La niña"),
        ("GO TO TOM", "Go to tom"),  # "Tom" comes before "tom", not by far
        ("SHE MAY GO 😀", "She may go 😀"),
    ],
)
def test_a_text_in_capitals_is_spelled_as_in_normal_text(text, new):
    assert spelled(text) == (new, True)


@pytest.mark.parametrize(
    "text",
    [
        "She has a house.",
        "she",
        "I",
        "I.",
        "A B C",
        "T.V.",
        "TV",
        "123",
        "?",
        "",
        "😀",
        "学校",
        "ПРИВЕТ МИР",  # no piece has these letters, small or not
        "I saw a UFO.",
        "Give us US ID.",
        "iPHONE and McDONALD",
        "She is in LONDON",  # unknown in any form
    ],
)
def test_what_is_normal_or_unknown_stays(text):
    assert spelled(text) == (text, False)


def test_a_word_in_capitals_in_a_normal_text_takes_the_known_form():
    assert spelled("She NEVER saw a UFO in BOSTON. HOUSE?") == (
        "She never saw a UFO in Boston. House?",
        False,
    )


def test_a_form_is_taken_by_its_place_in_the_vocabulary():
    near = [*SPECIAL_TOKENS, *LETTERS, "Tom", "tom"]
    far = [*SPECIAL_TOKENS, "Tom", *LETTERS, "tom"]
    assert spelled("A TOM", Tokenizer(near, lowercase=False))[0] == "A tom"
    assert spelled("A TOM", Tokenizer(far, lowercase=False))[0] == "A Tom"


def test_a_tokenizer_without_capitals_needs_nothing():
    assert spelled("SHE HAS", decoders.TOKENIZER) == ("SHE HAS", False)


def test_a_vocabulary_of_capitals_alone_keeps_them():
    pieces = [*SPECIAL_TOKENS, *"ABC", "##A", "##B"]
    capitals = Tokenizer(pieces, lowercase=False)
    assert spelled("ABA CAB. BA", capitals) == ("ABA CAB. BA", False)


def test_translations_of_capitals_are_in_capitals(monkeypatch):
    model = decoders.seq2seq()
    asked = []

    def generate(model, texts, *rest):
        asked.extend(texts)
        return [f"¿{text}, señor?" for text in texts]

    monkeypatch.setattr(translation, "generate", generate)
    monkeypatch.setattr(model, "tokenizer", CASED)
    texts = ["SHE HAS", "She has", "NEVER!"]
    expected = ["¿SHE HAS, SEÑOR?", "¿She has, señor?", "¿NEVER!, SEÑOR?"]
    assert bb.translate(model, texts) == expected
    assert asked == ["She has", "She has", "Never!"]


def test_the_translator_that_ships_reads_capitals():
    texts = ["SHE HAS A HOUSE.", "She has a house.", "I saw a UFO in PARIS."]
    texts += ["I AM TOM.", "Where are you?", "WHERE ARE YOU?"]
    found = bb.translate("en-es", texts, 12, search="greedy")
    assert found[0] == found[1].upper() == "ELLA TIENE UNA CASA."
    assert found[2].endswith("en París.")
    assert found[3] == "SOY TOM."
    assert found[5] == found[4].upper()
