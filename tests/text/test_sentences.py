"""Sentences: the rule by loops, cases by hand, lines of a million marks."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.locations import shelf
from bertbook.text.sentences import LISTED, split_sentences
from tests.helpers import texts

random_tests = settings(max_examples=500, deadline=None, derandomize=True)

PARTS = [
    *".!?…\"'”)]([“—。！？」aAIiJx1 ",
    "  ",
    ". ",
    "! ",
    "Mr",
    "U.S",
    "etc",
]
PARTS += [".\u00a0", "...", "No. ", "\t", "e.g", ".”", "Madagascar", "é", "ß"]


# Definition.

CASES = {
    "two": ("It rains. We stay.", ["It rains.", "We stay."]),
    "no end": ("It rains", ["It rains"]),
    "no text": ("", []),
    "spaces": (" \t\xa0 ", []),
    "spaces around": ("  It rains.  We stay. ", ["It rains.", "We stay."]),
    "marks in a row": ("Really?! Yes.", ["Really?!", "Yes."]),
    "lower case goes on": ("Well... maybe. Go.", ["Well... maybe.", "Go."]),
    "dots end": ("Well... Maybe.", ["Well...", "Maybe."]),
    "closing quote": ("“Go!” She left.", ["“Go!”", "She left."]),
    "quote and verb": ("“Go!” she said.", ["“Go!” she said."]),
    "opening quote": ("He ran. “Go!”", ["He ran.", "“Go!”"]),
    "lower case in quotes": ("He ran! “and so”", ["He ran! “and so”"]),
    "three openings": ("He ran! “‘(so)’”", ["He ran! “‘(so)’”"]),
    "bracket": ("(It rains.) We stay.", ["(It rains.)", "We stay."]),
    "dash": ("It ended. — Then not.", ["It ended.", "— Then not."]),
    "number": ("It is 4.5 or 6. It is.", ["It is 4.5 or 6.", "It is."]),
    "one letter": ("It is 4.5 m. It is.", ["It is 4.5 m. It is."]),
    "title": ("Mr. Reed saw Dr. Poe. Go.", ["Mr. Reed saw Dr. Poe.", "Go."]),
    "title in brackets": ("I (Mr. Reed) go.", ["I (Mr. Reed) go."]),
    "initials": ("J. R. Reed came.", ["J. R. Reed came."]),
    "I is a word": ("So did I. We left.", ["So did I.", "We left."]),
    "A is a word": ("Vitamin A. We left.", ["Vitamin A.", "We left."]),
    "dots inside": ("In the U.S. Congress met.", ["In the U.S. Congress met."]),
    "an hour": ("At 5 p.m. We left.", ["At 5 p.m.", "We left."]),
    "marks after a title": ("Mr.! Reed", ["Mr.!", "Reed"]),
    "an abbreviation in quotes": ("“etc.” Then", ["“etc.”", "Then"]),
    "full width": (
        "他来了。她走了！真的？好",
        ["他来了。", "她走了！", "真的？", "好"],
    ),
    "full width quote": ("「来。」他说。", ["「来。」", "他说。"]),
    "full width, Latin": ("好。then", ["好。then"]),
    "digits follow": ("He left. 12 stayed.", ["He left.", "12 stayed."]),
}


@pytest.mark.parametrize("case", CASES)
def test_cases_by_hand(case):
    paragraph, sentences = CASES[case]
    assert split_sentences(paragraph) == sentences


KNOWN = "Mr Mrs Dr Prof St Jr vs etc No Vol Fig p e.g i.e U.S al Jan Dec"


def test_the_usual_abbreviations_are_listed():
    assert set(KNOWN.lower().split()) <= set(LISTED.split())


def test_a_period_after_an_abbreviation_ends_nothing():
    for word in LISTED.split():
        for form in (word, word.capitalize(), word.upper()):
            assert len(split_sentences(f"We saw {form}. Reed again.")) == 1
            assert len(split_sentences(f"We saw {form}x. Reed again.")) == 2
            assert len(split_sentences(f"We saw {form}! Reed again.")) == 2


def split_by_loops(text):
    """The rule, one character at a time."""
    sentences, start, i = [], 0, 0
    while i < len(text):
        if text[i] in ".!?…":
            mark, after = skip(text, i, ".!?…"), "\"'”’»)]"
        elif text[i] in "。！？":
            mark, after = skip(text, i, "。！？"), "”’」』）"
        else:
            i += 1
            continue
        closed = skip(text, mark, after)
        stop = closed
        while stop < len(text) and text[stop].isspace():
            stop += 1
        if text[i] in ".!?…" and stop == closed:  # no space, no end
            i = mark
            continue
        if ends_by_loops(text, start, i, closed, stop):
            sentences.append(text[start:stop].strip())
            start = stop
        i = stop
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def skip(text, i, characters):
    while i < len(text) and text[i] in characters:
        i += 1
    return i


def ends_by_loops(text, start, mark, closed, stop):
    following = skip(text[: stop + 4], stop, "\"'“‘«([—–-")
    if text[following : stop + 4][:1].islower():
        return False
    if text[mark:closed] != ".":
        return True
    first = mark
    while first > max(start, mark - 20) and not (
        text[first - 1].isspace() or text[first - 1] in "([\"'“‘"
    ):
        first -= 1
    word = text[first:mark]
    if len(word) == 1 and word.isalpha():
        return word in ("I", "i", "A", "a")
    return word.lower() not in LISTED.split()


@random_tests
@given(st.lists(st.sampled_from(PARTS), max_size=41).map("".join))
def test_the_rule_by_loops(paragraph):
    assert split_sentences(paragraph) == split_by_loops(paragraph)


# Peer: the files that ship, written by hand.


def test_the_shelf_is_cut_at_punctuation():
    lines = [
        line.strip()
        for path in shelf()
        for line in path.read_text("utf-8").split("\n")
    ]
    count = 0
    for line in filter(None, lines):
        sentences = split_sentences(line)
        assert sentences == split_by_loops(line)
        for sentence in sentences[:-1]:
            assert sentence.rstrip("\"'”’»)]")[-1] in ".!?…"
        for sentence in sentences[1:]:
            assert not sentence.lstrip("\"'“‘«([—–-")[:1].islower()
        count += len(sentences)
    words = sum(len(line.split()) for line in lines)
    print(f"{count} sentences of {words / count:.1f} words")
    assert 8 < words / count < 30


# Property.


@random_tests
@given(
    st.one_of(
        texts.texts(),
        st.lists(st.sampled_from(PARTS), max_size=41).map("".join),
    )
)
def test_nothing_but_spaces_is_lost(paragraph):
    sentences = split_sentences(paragraph)
    assert "".join("".join(sentences).split()) == "".join(paragraph.split())
    for sentence in sentences:
        assert sentence == sentence.strip() != ""
        assert split_sentences(sentence) == [sentence]


LINES = {
    "marks": "!",
    "marks of two kinds": "。!",
    "quotes": '"',
    "marks and quotes": '."',
    "spaces": " ",
    "brackets": "(",
    "letters": "a",
    "short sentences": "A5. ",
    "refused ends": "a. b! ",
}


@pytest.mark.parametrize("case", LINES)
def test_a_long_line_takes_no_hours(case):
    part = LINES[case]
    for size in (40_000, 1_000_000):  # a slow rule fails on the first
        line = f"A5. {part * (size // len(part))}b"
        start = time.perf_counter()
        sentences = split_sentences(line)
        assert time.perf_counter() - start < size / 30_000  # 1/30 of it, alone
        assert "".join(sentences).replace(" ", "") == line.replace(" ", "")


# No errors: every string is a paragraph.
