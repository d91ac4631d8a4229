"""BIO against an independent reading by the rules of conlleval."""

import itertools
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.text.bio import (
    Entity,
    find_entities,
    find_words,
    place_entities,
    repair_bio,
    split_tag,
)
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-a-b", "I-a-b")

# The wide vocabulary has a piece for every character of every case.
pytestmark = pytest.mark.filterwarnings("ignore:No text reaches")
random_tests = settings(max_examples=100, deadline=None, derandomize=True)
sentences = st.lists(st.sampled_from(TAGS), min_size=1, max_size=23)


@cache
def wide():
    return Tokenizer(texts.wide_vocabulary())


def chunks_of_conlleval(tags):
    """The rules of the script: each place ends a chunk, starts one, or not."""
    chunks, start = [], None
    for i, (before, tag) in enumerate(itertools.pairwise(["O", *tags, "O"])):
        old, old_type = before[0], before[2:]
        new, new_type = tag[0], tag[2:]
        changed = old_type != new_type or new == "B"
        if old != "O" and (new == "O" or changed):
            chunks.append((old_type, start, i))
        if new != "O" and (old == "O" or changed):
            start = i
    return chunks


# Definition.


def test_entities_by_hand():
    tags = ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-LOC", "I-PER", "O"]
    assert find_entities(tags) == [
        Entity("PER", 0, 2),
        Entity("LOC", 3, 4),
        Entity("LOC", 4, 6),
        Entity("PER", 6, 7),
    ]
    assert find_entities(tags, strict=True) == find_entities(tags)[:3]
    # A stray I- stays outside together with what follows it.
    assert find_entities(["I-PER", "I-PER", "B-PER"], strict=True) == [
        Entity("PER", 2, 3)
    ]
    assert find_entities([]) == []


def test_repair_by_hand():
    tags = ["I-PER", "I-PER", "O", "I-LOC", "B-PER", "I-LOC", "I-LOC"]
    expected = ["B-PER", "I-PER", "O", "B-LOC", "B-PER", "B-LOC", "I-LOC"]
    assert repair_bio(tags) == expected
    assert repair_bio(()) == []


def test_entities_by_hand_in_a_text():
    text = "Ann Lee saw  New York."
    offsets = [(0, 3), (4, 7), (8, 11), (13, 16), (17, 21), (21, 22)]
    entities = [Entity("PER", 0, 2), Entity("LOC", 3, 5)]
    assert place_entities(text, offsets, entities) == [
        {"text": "Ann Lee", "type": "PER", "start": 0, "end": 7},
        {"text": "New York", "type": "LOC", "start": 13, "end": 21},
    ]
    scores = [0.5, 1.0, 0.1, 0.25, 0.75, 0.1]
    found = place_entities(text, offsets, entities, scores)
    assert [entity["score"] for entity in found] == [0.75, 0.5]


# Words end at a space and at "|", which is not in the text.
WORDS = [
    "Peter|'s boat|, the boy|’s and the Smiths|'",
    "O'Hara saw well-known A/B tests|.",
    "The U.S. team|, e.g. AT&T|, won 1,000.50 at 10:30|.",
    "(|see p|. 4|) end|.|.|.",
    "déjà vu|!|! x|,|y|:|z Paris|,|1",
    "the '|best|' -|- a|- 5|% x|-|-|y",
    "東|京|Tower",
]


@pytest.mark.parametrize("marked", WORDS)
def test_words_by_hand(marked):
    text = marked.replace("|", "")
    found = [text[start:end] for start, end in find_words(wide(), text)]
    assert found == re.split(r"[| ]", marked)


def test_find_words_joins_no_more_pieces_than_its_limit():
    text = "x " + "/".join(["aba"] * 9)
    tokenizer = wide()
    assert len(find_words(tokenizer, text)) == 2
    for most in (3, 7, 30):
        spans = find_words(tokenizer, text, most)
        sizes = [len(tokenizer.encode(text[a:b]).tokens) - 2 for a, b in spans]
        assert max(sizes) <= most
        assert sum(sizes) == len(tokenizer.encode(text).tokens) - 2


# Peer.


@random_tests
@given(sentences)
def test_entities_as_conlleval_reads_them(tags):
    assert [tuple(e) for e in find_entities(tags)] == chunks_of_conlleval(tags)


# Property.


@random_tests
@given(sentences)
def test_repaired_tags_obey_the_rules_and_mean_the_same(tags):
    repaired = repair_bio(tags)
    for before, tag in itertools.pairwise(["O", *repaired]):
        assert tag[0] != "I" or before in (f"B{tag[1:]}", tag)
    assert repair_bio(repaired) == repaired
    assert find_entities(repaired) == find_entities(tags)
    assert find_entities(repaired, strict=True) == find_entities(tags)
    assert [tag[1:] for tag in repaired] == [tag[1:] for tag in tags]


@random_tests
@given(sentences)
def test_the_strict_reading_leaves_out_what_has_no_beginning(tags):
    strict = find_entities(tags, strict=True)
    expected = [e for e in find_entities(tags) if tags[e.start][0] == "B"]
    assert strict == expected


@random_tests
@given(texts.texts())
def test_words_stand_in_order_and_hold_every_piece(text):
    words = find_words(wide(), text)
    places = [i for span in words for i in span]
    for start, end in words:
        assert text[start:end].strip() != ""
    if places == sorted(places):  # marks that NFD moves may cross a border
        pieces = wide().encode(text).offsets[1:-1]
        for start, end in pieces:
            assert any(s <= start and end <= e for s, e in words)


# Error.


def test_a_tag_that_is_not_bio_is_refused():
    for tag in ("X-PER", "B", "B-", "I", "PER", "", "o", None):
        message = r"`tags\[2\]` must be O, B-TYPE or I-TYPE. Received: "
        for read in (find_entities, repair_bio):
            with pytest.raises(ValueError, match=message):
                read(["O", "B-PER", tag])
        with pytest.raises(ValueError, match=r"`tags\[0\]` must be O"):
            split_tag(tag)


def test_an_entity_behind_the_last_word_is_refused():
    with pytest.raises(ValueError, match="`entities` must lie within .* 1. "):
        place_entities("Ann", [(0, 3)], [Entity("PER", 0, 2)])


def test_a_word_without_end_is_found_in_time():
    """A copy of the word for every mark in it would take minutes."""
    text = "ab-" * 100_000 + "c"
    tokenizer = Tokenizer([*SPECIAL_TOKENS, "ab", "-", "c"])
    assert find_words(tokenizer, text) == [(0, len(text))]


def test_a_word_of_more_pieces_than_a_window_is_cut():
    tokenizer = Tokenizer([*SPECIAL_TOKENS, "a", "##b", "c"])
    text = "c " + "a" + "b" * 40
    spans = find_words(tokenizer, text, 14)
    assert spans[0] == (0, 1)
    assert [b - a for a, b in spans[1:]] == [4] * 10 + [1]
