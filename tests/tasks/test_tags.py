"""Tags: alignment by hand, windows of long sentences, and the way back."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.tasks.tags import (
    STRATEGIES,
    cut_words,
    decode_tags,
    fit_tags,
    label_words,
    name_tags,
    speaking_tokens,
    window_words,
    word_scores,
    words_to_pieces,
)
from bertbook.text.bio import find_entities, repair_bio
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

LETTERS = [chr(i) for i in range(ord("a"), ord("z") + 1)]
TOY = Tokenizer([*SPECIAL_TOKENS, *LETTERS, *(f"##{c}" for c in LETTERS)])
WORDS = ["ab", "c", "def", "\u200b", "g"]  # of 2, 1, 3, no and 1 pieces
TAGS = ["B-PER", "I-PER", "O", "B-LOC", "O"]
LABELS = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
IDS = {tag: number for number, tag in enumerate(LABELS)}

# The wide vocabulary has a piece for every character of every case.
pytestmark = pytest.mark.filterwarnings("ignore:No text reaches")
random_tests = settings(max_examples=60, deadline=None, derandomize=True)
by_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


@cache
def wide():
    return Tokenizer(texts.wide_vocabulary())


def tokens(window):
    return " ".join(TOY.vocabulary[i] for i in window.input_ids)


def oracle_logits(labels, weights, rng=None):
    """1 at the label of each token that counts; nonsense at the others."""
    rng = rng or np.random.default_rng(0)
    found = []
    for ids, used in zip(labels, weights, strict=True):
        logits = rng.normal(size=(len(ids) + 2, len(LABELS))) * 9
        logits[: len(ids)][used > 0] = np.eye(len(LABELS))[ids[used > 0]]
        found.append(logits)
    return found


# Definition.


def test_words_to_pieces_by_hand():
    pieces = words_to_pieces(TOY, WORDS)
    spelled = [[TOY.vocabulary[i] for i in ids] for ids in pieces]
    assert spelled == [
        ["a", "##b"], ["c"], ["d", "##e", "##f"], ["[UNK]"], ["g"]
    ]  # fmt: skip


def test_a_short_sentence_is_one_window():
    (window,) = window_words(TOY, WORDS)
    assert tokens(window) == "[CLS] a ##b c d ##e ##f [UNK] g [SEP]"
    assert window.token_type_ids == [0] * 10
    assert window.word_ids == [-1, 0, 0, 1, 2, 2, 2, 3, 4, -1]
    assert window.words == range(5)


def test_a_long_sentence_by_hand():
    windows = window_words(TOY, WORDS, max_length=7, stride=2)
    assert [tokens(window) for window in windows] == [
        "[CLS] a ##b c [SEP]",
        "[CLS] c d ##e ##f [UNK] [SEP]",
        "[CLS] d ##e ##f [UNK] g [SEP]",
    ]
    # Where two have as much context, the first; "def" stands inside in one.
    assert [list(window.words) for window in windows] == [[0, 1], [2], [3, 4]]
    assert windows[1].word_ids == [-1, 1, 2, 2, 2, 3, -1]


@pytest.mark.parametrize(
    ("strategy", "expected"),  # a dot where a token does not count
    [("first", ".P.iO..LO."), ("last", "..Pi..OLO."), ("all", ".PPiOOOLO.")],
)
def test_labels_by_hand(strategy, expected):
    windows = window_words(TOY, WORDS)
    (labels,), (weights,) = label_words(windows, TAGS, IDS, strategy)
    assert (labels.dtype, weights.dtype) == (np.int32, np.float32)
    letters = {"B-PER": "P", "I-PER": "i", "B-LOC": "L", "O": "O"}
    received = [
        letters[LABELS[label]] if weight else "."
        for label, weight in zip(labels, weights, strict=True)
    ]
    assert "".join(received) == expected
    assert set(weights.tolist()) == {0.0, 1.0}
    assert not labels[weights == 0].any()


def test_decoding_by_hand():
    (window,) = window_words(TOY, ["ab", "c"])
    logits = np.log([[9, 1], [6, 2], [1, 9], [1, 3], [9, 1]])  # [CLS] a ##b c
    for strategy, tags, probabilities in (
        ("first", ["O", "B-X"], [0.75, 0.75]),
        ("last", ["B-X", "B-X"], [0.9, 0.75]),
        ("all", ["B-X", "B-X"], [math.sqrt(0.25 * 0.9), 0.75]),
    ):
        received = decode_tags([window], [logits], ["O", "B-X"], strategy)
        assert received[0] == tags
        np.testing.assert_allclose(received[1], probabilities)


def cut_by_loops(sizes, room, stride):
    """The definition: the first start that the rules allow, word by word."""
    begins = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    bounds, first = [], 0
    while True:
        last = first
        while last < len(sizes) and begins[last + 1] - begins[first] <= room:
            last += 1
        bounds.append((first, last))
        if last == len(sizes):
            return bounds
        start = first + 1
        while begins[start + 1] - begins[first] <= stride:
            start += 1  # as far as the stride goes
        while begins[last + 1] - begins[start] > room:
            start += 1  # until a new word is in
        first = start


sizes_room_stride = st.integers(2, 23).flatmap(
    lambda room: st.tuples(
        st.lists(st.integers(1, room), min_size=1, max_size=41),
        st.just(room),
        st.integers(1, room - 1),
    )
)


@random_tests
@given(sizes_room_stride)
def test_cuts_by_loops(case):
    assert cut_words(*case) == cut_by_loops(*case)


def scores_by_loops(windows, logits, strategy):
    """Each word: the mean log-probability of the pieces that speak for it."""
    found = []
    for word in range(windows[-1].words.stop):
        (number,) = (i for i, w in enumerate(windows) if word in w.words)
        columns = [
            i for i, w in enumerate(windows[number].word_ids) if w == word
        ]
        kept = {"first": columns[:1], "last": columns[-1:], "all": columns}
        rows = [logits[number][i] for i in kept[strategy]]
        logs = [row - math.log(sum(map(math.exp, row))) for row in rows]
        found.append(sum(logs) / len(logs))
    return np.array(found)


@by_strategy
def test_scores_by_loops(strategy):
    rng = np.random.default_rng(0)
    words = ["a" * size for size in rng.integers(1, 5, 37)]
    windows = window_words(TOY, words, max_length=13, stride=5)
    logits = [rng.normal(size=(len(w.input_ids), 3)) for w in windows]
    received = word_scores(windows, logits, strategy)
    expected = scores_by_loops(windows, logits, strategy)
    np.testing.assert_allclose(received, expected)
    if strategy != "all":
        np.testing.assert_allclose(np.exp(received).sum(axis=1), 1.0)


# Peer: the tokenizer on the joined words, aligned by its offsets.


@random_tests
@given(st.lists(texts.texts(max_size=3), min_size=1, max_size=11))
def test_pieces_as_the_tokenizer_cuts_the_joined_words(parts):
    words = " ".join(parts).split() or ["x"]
    text = " ".join(words)
    ends = np.cumsum([len(word) + 1 for word in words])
    expected = [[] for _ in words]
    encoding = wide().encode(text)
    for i, (start, _) in list(
        zip(encoding.input_ids, encoding.offsets, strict=True)
    )[1:-1]:
        expected[int((ends <= start).sum())].append(i)
    received = words_to_pieces(wide(), words)
    unknown = [wide().unk_token_id]
    assert received == [ids or unknown for ids in expected]


# Property.


@random_tests
@given(sizes_room_stride)
def test_windows_cover_every_word_and_each_has_one_that_speaks(case):
    sizes, room, stride = case
    words = ["a" * size for size in sizes]
    windows = window_words(TOY, words, room + 2, stride)
    spoken = [word for window in windows for word in window.words]
    assert spoken == list(range(len(sizes)))
    spans = []
    for window in windows:
        inside = window.word_ids[1:-1]
        assert len(window.input_ids) == len(inside) + 2 <= room + 2
        assert inside == [w for w in sorted({*inside}) for _ in range(sizes[w])]
        assert {*window.words} <= {*inside}
        spans.append((inside[0], inside[-1]))
    for before, after in itertools.pairwise(spans):
        assert before[0] < after[0] <= before[1] + 1
        assert before[1] < after[1]


@by_strategy
@random_tests
@given(
    st.lists(
        st.tuples(texts.texts(max_size=3), st.sampled_from(LABELS)),
        min_size=1,
        max_size=41,
    ),
    st.integers(0, 99),
    st.integers(0, 10**6),
)
def test_tags_make_the_round_trip(strategy, rows, more, seed):
    words = [word or "x" for word, _ in rows]
    tags = [tag for _, tag in rows]
    longest = max(map(len, words_to_pieces(wide(), words)))
    rng = np.random.default_rng(seed)
    room = max(2, longest) + more
    stride = int(rng.integers(1, room))
    windows = window_words(wide(), words, room + 2, stride)
    labels, weights = label_words(windows, tags, IDS, strategy)
    logits = oracle_logits(labels, weights, rng)
    decoded, probabilities = decode_tags(windows, logits, LABELS, strategy)
    assert decoded == tags
    assert probabilities.shape == (len(tags),)
    counted = sum(float(row.sum()) for row in weights)
    assert counted >= len(tags)
    assert (counted == len(tags)) or strategy == "all"


@by_strategy
def test_logits_of_silent_tokens_change_no_score(strategy):
    windows = window_words(TOY, WORDS, max_length=7)
    labels, weights = label_words(windows, TAGS, IDS, strategy)
    first, *others = [
        word_scores(
            windows,
            oracle_logits(labels, weights, np.random.default_rng(seed)),
            strategy,
        )
        for seed in range(3)
    ]
    for scores in others:
        np.testing.assert_array_equal(scores, first)


# Error.


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {}, "`words` must be a list of at least one word"),
        ("ab c", {}, "`words` must be a list .* Received: 'ab c'"),
        (["ab", ""], {}, r"`words\[1\]` must not be empty"),
        (["ab", None], {}, r"`words\[1\]` must be a string"),
        (["ab", "\ud800"], {}, r"`words\[1\]` must not hold a lone surrogate"),
        (
            ["ab", "cdefg"],
            {"max_length": 6},
            "`max_length` must hold every word. Received: 6, .* word 1 of 5 p",
        ),
        (["ab"], {"max_length": 2}, "`max_length` must be an integer >= 3"),
        (["ab"], {"max_length": None}, "`max_length` must be an .* None"),
        (["ab"], {"max_length": 8, "stride": 6}, r"`stride` .* \[1, 6\).* 6"),
        (["ab"], {"stride": 0}, "`stride` must be an integer .* 0"),
    ],
)
def test_bad_words_are_refused(words, options, message):
    with pytest.raises(ValueError, match=message):
        window_words(TOY, words, **options)


def test_tags_that_do_not_fit_are_refused():
    windows = window_words(TOY, WORDS)
    for tags in (TAGS[:4], [*TAGS, "O"], "BIOBI"[:4]):
        with pytest.raises(ValueError, match="`tags` must hold .* each of 5"):
            label_words(windows, tags, IDS)
    with pytest.raises(ValueError, match=r"`tags\[4\]` must be one of .*'Q'"):
        label_words(windows, [*TAGS[:4], "Q"], IDS)
    for call in (speaking_tokens, lambda w, s: label_words([w], TAGS, IDS, s)):
        with pytest.raises(ValueError, match="`strategy` .* first, last, all"):
            call(windows[0], "middle")


def test_logits_that_do_not_fit_are_refused():
    windows = window_words(TOY, WORDS, max_length=7)
    good = [np.zeros((len(w.input_ids), 2)) for w in windows]
    with pytest.raises(ValueError, match="`logits` must hold an array for e"):
        word_scores(windows, good[1:])
    short = [array[:-1] for array in good]
    with pytest.raises(ValueError, match=r"must have shape \(5, K\).* \(4, 2"):
        word_scores(windows, short)
    good[0][1, 0] = math.nan
    with pytest.raises(ValueError, match="`logits` must be finite.* nan"):
        word_scores(windows, good)
    with pytest.raises(ValueError, match="`labels` must hold 2 tags.* 3"):
        decode_tags(windows, [np.zeros((7, 2))] * 3, ["O", "B-X", "I-X"])


# The scheme of a model.

BIO = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
sentences = st.lists(st.sampled_from(BIO), max_size=9)


@random_tests
@given(sentences)
def test_the_older_scheme_marks_the_same_entities(sentence):
    """B- stays where an entity touches another of its type, else I-."""
    older = fit_tags(sentence, known={"O", "I-PER", "I-LOC", "B-LOC"})
    assert find_entities(older) == find_entities(sentence)
    entities = find_entities(sentence)
    for place, tag in enumerate(older):
        touches = any(
            one.stop == place == other.start and one.type == other.type
            for one, other in itertools.pairwise(entities)
        )
        assert tag.startswith("B-") == touches
    assert fit_tags(older, known=BIO) == repair_bio(sentence)


@random_tests
@given(sentences)
def test_a_model_of_bio_gets_repaired_tags(sentence):
    assert fit_tags(sentence, known=BIO) == repair_bio(sentence)
    assert fit_tags(sentence, known=()) == repair_bio(sentence)


def test_integers_need_names():
    assert name_tags([[0, 1], ["O"], []], {0: "O", 1: "B-X"}) == [
        ["O", "B-X"], ["O"], []
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"`tags\[1\]` .* \[0, 0\).*: 7"):
        name_tags([["O"], [7]], {})
    for wrong in ("O", None, 3):
        with pytest.raises(ValueError, match=r"`tags\[0\]` must be a list of"):
            name_tags([wrong], {0: "O"})
