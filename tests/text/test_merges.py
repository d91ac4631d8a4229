"""The readable trainer: against counting by hand, and the Rust library."""

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.locations import shelf
from bertbook.text import vocabulary, wordpiece
from bertbook.text.merges import (
    learn_merges,
    merge_pair,
    spell,
    train_vocabulary,
)

SCORES = ("wordpiece", "bpe")
# A textbook example that is told in many places: u is in every word.
HUGS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}

random_tests = settings(max_examples=100, deadline=None, derandomize=True)
word_counts = st.dictionaries(
    st.text("abcé", min_size=1, max_size=7), st.integers(1, 9), max_size=6
)


# Definition.


def test_spell_gives_a_first_letter_and_continuing_ones():
    assert spell("cat") == ("c", "##a", "##t")
    assert spell("a") == ("a",)
    assert spell("中é") == ("中", "##é")


def test_merge_pair_joins_from_the_left():
    pair = ("##a", "##a")
    assert merge_pair(("##a",) * 5, pair) == ("##aa", "##aa", "##a")
    assert merge_pair(("a", "##a", "##b"), pair) == ("a", "##a", "##b")
    assert merge_pair(("c", "##a", "##t"), ("c", "##a")) == ("ca", "##t")


def test_the_first_merges_by_hand():
    # hug 10, hugs 5 and pug 5 hold "##u ##g" 20 times, more than any other.
    assert next(learn_merges(HUGS, "bpe")) == ("##u", "##g")
    # s is seen 5 times, always after g (20): 5 / (5 * 20). The pair that is
    # seen most often has 20 / (20 * 36), because u is everywhere.
    assert next(learn_merges(HUGS, "wordpiece")) == ("##g", "##s")


def best_by_loops(spellings, counts, score):
    """The definition: every neighboring pair, counted and compared."""
    points = {}
    flat = [(spelling, counts[word]) for word, spelling in spellings.items()]
    for spelling, _ in flat:
        for pair in zip(spelling, spelling[1:], strict=False):
            seen = sum(
                n
                for other, n in flat
                for k in range(len(other) - 1)
                if other[k : k + 2] == pair
            )
            if score == "wordpiece":
                left, right = (
                    sum(n * other.count(part) for other, n in flat)
                    for part in pair
                )
                seen /= left * right
            points[pair] = seen
    highest = max(points.values())
    return min(pair for pair in points if points[pair] == highest)


@pytest.mark.parametrize("score", SCORES)
@random_tests
@given(counts=word_counts)
def test_every_merge_matches_the_definition(score, counts):
    spellings = {word: spell(word) for word in counts}
    for pair in learn_merges(counts, score):
        assert pair == best_by_loops(spellings, counts, score)
        spellings = {w: merge_pair(s, pair) for w, s in spellings.items()}
    assert all(len(spelling) == 1 for spelling in spellings.values())


def test_train_vocabulary_by_hand():
    received = train_vocabulary(HUGS, 12, "bpe", special_tokens=["[UNK]"])
    assert received == [
        "[UNK]", "##g", "##n", "##s", "##u", "b", "h", "p",
        "##ug", "##un", "hug", "pun",
    ]  # fmt: skip


# Peer: the trainer of the Rust library, by way of `vocabulary`.


def count_pairs(spellings, counts):
    pairs = Counter()
    for word, spelling in spellings.items():
        for pair in zip(spelling, spelling[1:], strict=False):
            pairs[pair] += counts[word]
    return pairs


def joined(pair):
    return pair[0] + pair[1].removeprefix("##")


def test_bpe_gives_the_merges_of_the_library():
    counts = {"hug": 11, "pug": 5, "pun": 13, "bun": 3, "hugs": 7}
    alphabet = 5 + len("bghnpsu") + len("gnsu")  # with the special tokens
    theirs = vocabulary.train_pieces(counts, alphabet + 5)[alphabet:]
    ours = [joined(pair) for pair in islice(learn_merges(counts, "bpe"), 5)]
    assert ours == theirs


def test_the_library_takes_a_most_frequent_pair_each_time():
    text = "".join(path.read_text("utf-8") for path in shelf()[:7])
    counts = wordpiece.count_words([text])
    pieces = vocabulary.train_pieces(counts, 300)
    merges = [p for p in pieces[5:] if len(p.removeprefix("##")) > 1]
    assert len(merges) > 200
    spellings = {word: spell(word) for word in counts}
    for piece in merges:
        pairs = count_pairs(spellings, counts)
        most = max(pairs.values())
        # Of equally frequent pairs it may take another one than we do.
        best = [pair for pair in pairs if pairs[pair] == most]
        chosen = [pair for pair in best if joined(pair) == piece]
        assert len(chosen) == 1, (piece, best)
        spellings = {w: merge_pair(s, chosen[0]) for w, s in spellings.items()}


# Property.


@pytest.mark.parametrize("score", SCORES)
@random_tests
@given(counts=word_counts)
def test_a_merge_loses_no_letter_and_saves_a_piece(score, counts):
    spellings = {word: spell(word) for word in counts}
    for pair in learn_merges(counts, score):
        merged = {w: merge_pair(s, pair) for w, s in spellings.items()}
        for word, spelling in merged.items():
            assert "".join(p.removeprefix("##") for p in spelling) == word
            assert all(piece.startswith("##") for piece in spelling[1:])
        assert sum(map(len, merged.values())) < sum(
            map(len, spellings.values())
        )
        spellings = merged


@pytest.mark.parametrize("score", SCORES)
@random_tests
@given(counts=word_counts)
def test_the_order_of_the_words_changes_nothing(score, counts):
    turned = dict(reversed(counts.items()))
    assert list(learn_merges(turned, score)) == list(
        learn_merges(counts, score)
    )


@random_tests
@given(counts=word_counts.filter(bool))
def test_training_words_are_never_unknown(counts):
    alphabet = {piece for word in counts for piece in spell(word)}
    pieces = train_vocabulary(counts, len(alphabet))
    for word in counts:
        assert wordpiece.match_longest(word, pieces) is not None


@pytest.mark.parametrize("score", SCORES)
def test_train_vocabulary_gives_its_size_and_special_tokens_first(score):
    special = ["[PAD]", "[UNK]"]
    pieces = train_vocabulary(HUGS, 13, score, special)
    assert len(pieces) == len(set(pieces)) == 13
    assert pieces[:2] == special
    assert pieces[2:9] == sorted(pieces[2:9])
    assert pieces[:11] == train_vocabulary(HUGS, 11, score, special)


def test_counts_may_be_a_counter():
    assert list(learn_merges(Counter(HUGS))) == list(learn_merges(HUGS))


# Error.


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match=r"`score` must be .* 'likelihood'"):
        next(learn_merges(HUGS, "likelihood"))
    with pytest.raises(ValueError, match="`score` must be"):
        train_vocabulary(HUGS, 11, "BPE")


def test_a_size_below_the_alphabet_is_refused():
    with pytest.raises(ValueError, match=r"at least 7\. Received: 6\."):
        train_vocabulary(HUGS, 6)
    with pytest.raises(ValueError, match=r"at least 8\. Received: 7\."):
        train_vocabulary(HUGS, 7, special_tokens=["[UNK]"])


def test_a_size_above_what_the_words_give_is_refused():
    most = len(set(spell("ab"))) + 1
    assert train_vocabulary({"ab": 5}, most)[-1] == "ab"
    with pytest.raises(ValueError, match=r"at most 3, .* Received: 4\."):
        train_vocabulary({"ab": 5}, 4)


def test_without_words_nothing_is_merged():
    assert list(learn_merges({})) == []
    with pytest.raises(ValueError, match=r"at most 0"):
        train_vocabulary({}, 5)
