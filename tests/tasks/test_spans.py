"""Spans: alignment by hand and on real answers, decoding by brute force."""

import json
import lzma
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.tasks.metrics import squad
from bertbook.tasks.spans import (
    Answer,
    AnswerPieces,
    align_answer,
    best_spans,
    choose_answer,
    label_answer,
    no_answer_score,
    rank_answers,
)
from bertbook.tasks.windows import window_context
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

LETTERS = [chr(i) for i in range(ord("a"), ord("z") + 1)]
TOY = Tokenizer([*SPECIAL_TOKENS, *LETTERS, *(f"##{c}" for c in LETTERS), "?"])
CONTEXT = "a b c d ef g h i j k"  # 11 pieces, two of them in one word

random_tests = settings(max_examples=100, deadline=None, derandomize=True)
logits = st.floats(-9, 9, width=32) | st.sampled_from([0.0, 1.0])


def windowed(max_length=10, stride=3):
    return window_context(TOY, "w?", CONTEXT, max_length, stride)


@cache
def mini():
    return Tokenizer.from_pretrained("mini")


def draw_logits(found, rng, padding=0):
    """Random logits for each column of each window, and some behind it."""
    return [
        [rng.normal(size=len(w.input_ids) + padding) * 5 for w in found.windows]
        for _ in ("start", "end")
    ]


# Definition.


def test_alignment_by_hand():
    found = windowed()
    assert align_answer(found, 4, "c d") == AnswerPieces(2, 3, True)
    assert align_answer(found, 0, CONTEXT) == AnswerPieces(0, 10, True)
    assert align_answer(found, 8, "ef") == AnswerPieces(4, 5, True)
    assert align_answer(found, 9, "f g") == AnswerPieces(5, 6, True)
    # A space at an end is in no piece.
    assert align_answer(found, 3, " c d") == AnswerPieces(2, 3, False)
    assert align_answer(found, 4, "c d ") == AnswerPieces(2, 3, False)
    whole = window_context(Tokenizer([*SPECIAL_TOKENS, "ab", "b"]), "b", "ab")
    assert align_answer(whole, 0, "ab") == AnswerPieces(0, 0, True)
    assert align_answer(whole, 0, "a") == AnswerPieces(0, 0, False)
    assert align_answer(whole, 1, "b") == AnswerPieces(0, 0, False)


def test_labels_by_hand():
    found = windowed()  # pieces 0-4, 3-7 and 6-10, from column 4 on
    answer = align_answer(found, 6, "d ef")  # pieces 3-5
    labels = label_answer(found, answer)
    assert labels.dtype == np.int32
    assert labels.tolist() == [[0, 0], [4, 6], [0, 0]]
    both = AnswerPieces(3, 4, True)
    assert label_answer(found, both).tolist() == [[7, 8], [4, 5], [0, 0]]
    long = AnswerPieces(0, 10, True)  # in no window whole
    assert not label_answer(found, long).any()
    assert not label_answer(found, None).any()
    first_and_last = [AnswerPieces(0, 0, True), AnswerPieces(10, 10, True)]
    assert label_answer(found, first_and_last[0])[0].tolist() == [4, 4]
    assert label_answer(found, first_and_last[1])[2].tolist() == [8, 8]


def spans_by_loops(start, end, n_best, longest, may_start):
    spans = [
        (start[i] + end[j], i, j)
        for i in range(len(start))
        for j in range(i, min(i + longest, len(end)))
        if may_start is None or may_start[i]
    ]
    return sorted(spans, key=lambda span: (-span[0], span[1], span[2]))[:n_best]


@random_tests
@given(
    st.lists(st.tuples(logits, logits, st.booleans()), min_size=1, max_size=23),
    st.integers(1, 31),
    st.integers(1, 29),
    st.booleans(),
)
def test_the_best_spans_by_loops(rows, n_best, longest, limited):
    start, end, may_start = (np.array(x) for x in zip(*rows, strict=True))
    may_start = may_start if limited else None
    received = best_spans(start, end, n_best, longest, may_start)
    expected = spans_by_loops(start, end, n_best, longest, may_start)
    assert received == [(float(s), i, j) for s, i, j in expected]


def test_separate_argmaxes_give_no_span_and_joint_decoding_does():
    start, end = np.array([0.0, 1.0, 5.0, 0.0]), np.array([0.0, 6.0, 2.0, 0.0])
    assert start.argmax() > end.argmax()
    assert best_spans(start, end, n_best=2) == [(7.0, 1, 1), (7.0, 2, 2)]


def test_answers_by_hand():
    found = windowed()
    starts, ends = np.zeros((2, 3, 12))
    starts[0, 7], ends[0, 8] = 3.0, 2.0  # pieces 3-4, in the first window
    starts[1, 4], ends[1, 5] = 4.0, 2.5  # the same in the second
    starts[2, 8], ends[2, 8] = 2.0, 4.0  # piece 10
    starts[:, :4] = ends[:, :4] = 99.0  # [CLS] and the question
    starts[:, 9:] = ends[:, 9:] = 99.0  # [SEP] and what pads
    answers = rank_answers(found, starts, ends, n_best=4)
    assert answers[0][:4] == ("d e", 6, 9, 6.5)
    assert answers[1][:4] == ("k", 19, 20, 6.0)
    assert [(a.start, a.end) for a in answers].count((6, 9)) == 1
    weights = np.exp([a.score for a in answers])
    probabilities = [a.probability for a in answers]
    np.testing.assert_allclose(probabilities, weights / weights.sum())
    # Piece 3 has the most context in the first window, piece 10 in the last.
    own = rank_answers(found, starts, ends, n_best=4, most_context_only=True)
    assert [a[:4] for a in own[:2]] == [("k", 19, 20, 6.0), ("d e", 6, 9, 5.0)]


def answers_by_loops(found, starts, ends, n_best, longest):
    """Every span of every window; of one that is in two, the better score."""
    scores = {}
    for window, start, end in zip(found.windows, starts, ends, strict=True):
        for i in range(window.size):
            for j in range(i, min(i + longest, window.size)):
                span = (
                    int(found.offsets[window.first + i, 0]),
                    int(found.offsets[window.first + j, 1]),
                )
                score = start[window.column + i] + end[window.column + j]
                scores[span] = max(score, scores.get(span, -math.inf))
    return sorted(scores.items(), key=lambda item: -item[1])[:n_best]


@random_tests
@given(st.integers(0, 10**6), st.integers(7, 17), st.integers(1, 9))
def test_answers_by_loops(seed, max_length, longest):
    rng = np.random.default_rng(seed)
    found = windowed(max_length, int(rng.integers(1, max_length - 5)))
    starts, ends = draw_logits(found, rng, padding=2)
    received = rank_answers(found, starts, ends, 7, longest)
    expected = answers_by_loops(found, starts, ends, 7, longest)
    assert [((a.start, a.end), a.score) for a in received] == expected


def test_no_answer_by_hand():
    starts, ends = [[3.0, 9.0], [1.0, 9.0]], [[1.0, 9.0], [2.0, 9.0]]
    assert no_answer_score(starts, ends) == 3.0
    answers = [Answer("x", 3, 4, 2.0), Answer("y", 5, 6, 1.0)]
    assert choose_answer(answers) == answers[0]
    assert choose_answer(answers, 3.0, threshold=1.5)[:4] == answers[0][:4]
    assert choose_answer(answers, 3.0, threshold=1.0)[:4] == answers[0][:4]
    empty = choose_answer(answers, 3.0)
    assert empty[:4] == ("", 0, 0, 3.0)
    whole = math.exp(3) + math.exp(2) + math.exp(1)
    assert empty.probability == pytest.approx(math.exp(3) / whole)
    kept = choose_answer(answers, 3.0, threshold=5)
    assert kept.probability == pytest.approx(math.exp(2) / whole)


# Peer: the loops of Google's code, in our words.


def answer_as_google(found, starts, ends, n_best, longest):
    """The best starts with the best ends, each where it has most context."""
    best = None
    for number, window in enumerate(found.windows):
        columns = range(len(window.input_ids))
        by_start = sorted(columns, key=lambda i: -starts[number][i])[:n_best]
        by_end = sorted(columns, key=lambda i: -ends[number][i])[:n_best]
        for i in by_start:
            for j in by_end:
                first, last = (x - window.column + window.first for x in (i, j))
                inside = range(window.first, window.first + window.size)
                if first not in inside or last not in inside:
                    continue
                if not i <= j < i + longest or found.owners[first] != number:
                    continue
                score = starts[number][i] + ends[number][j]
                if best is None or score > best[0]:
                    span = found.offsets[first][0], found.offsets[last][1]
                    best = score, *span
    return best


@random_tests
@given(st.integers(0, 10**6), st.integers(7, 17), st.integers(1, 9))
def test_the_best_answer_as_google_finds_it(seed, max_length, longest):
    rng = np.random.default_rng(seed)
    found = windowed(max_length, int(rng.integers(1, max_length - 5)))
    starts, ends = draw_logits(found, rng)
    expected = answer_as_google(found, starts, ends, 99, longest)
    received = rank_answers(found, starts, ends, 1, longest, True)[0]
    assert (received.score, received.start, received.end) == expected


# Property.


def check_answers(found, answers, n_best, longest):
    """Every answer is a span of whole pieces of the context, the best first."""
    assert 1 <= len(answers) <= n_best
    scores = [answer.score for answer in answers]
    assert scores == sorted(scores, reverse=True)
    spans = [(answer.start, answer.end) for answer in answers]
    assert len(set(spans)) == len(spans)
    starts, ends = found.offsets.T
    for answer in answers:
        assert 0 <= answer.start < answer.end <= len(found.context)
        assert answer.text == found.context[answer.start : answer.end] != ""
        firsts = np.flatnonzero(starts == answer.start)
        lasts = np.flatnonzero(ends == answer.end)
        assert lasts.max() >= firsts.min()
        assert lasts.min() - firsts.max() < longest
    assert sum(a.probability for a in answers) == pytest.approx(1.0)


@random_tests
@given(
    texts.texts(max_size=5),
    texts.texts(max_size=40),
    st.integers(2, 41),
    st.integers(1, 7),
    st.integers(1, 11),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_random_logits_never_give_an_invalid_answer(
    question, context, room, n_best, longest, most_context_only, seed
):
    question, context = f"x {question}", f"{context} x"
    max_length = len(mini().encode(question)) + 1 + room
    found = window_context(mini(), question, context, max_length)
    starts, ends = draw_logits(found, np.random.default_rng(seed), padding=3)
    answers = rank_answers(
        found, starts, ends, n_best, longest, most_context_only
    )
    check_answers(found, answers, n_best, longest)
    no_answer = no_answer_score(starts, ends)
    chosen = choose_answer(answers, no_answer)
    assert (chosen.text == "") == (no_answer > answers[0].score)


@random_tests
@given(texts.texts(max_size=40), st.integers(0, 99), st.integers(1, 30))
def test_an_answer_at_borders_is_found_again(context, start, size):
    found = window_context(mini(), "x", f"{context} x", max_length=13)
    first = start % len(found.offsets)
    last = min(first + size, len(found.offsets)) - 1
    begin, end = int(found.offsets[first, 0]), int(found.offsets[last, 1])
    if begin >= end:  # marks that NFD moves
        return
    answer = align_answer(found, begin, found.context[begin:end])
    if not answer.at_borders:
        return
    labels = label_answer(found, answer)
    whole = [
        w.first <= answer.first and answer.last < w.first + w.size
        for w in found.windows
    ]
    assert labels.any(axis=1).tolist() == whole
    # What two windows share is whole in one: room 9, stride 4.
    assert any(whole) or answer.last - answer.first + 1 > 5
    for window, row in zip(found.windows, labels, strict=True):
        if row.any():
            pieces = row - window.column + window.first
            assert pieces.tolist() == [answer.first, answer.last]
            assert found.offsets[pieces[0], 0] == begin
            assert found.offsets[pieces[1], 1] == end


# Error.


@pytest.mark.parametrize(
    ("start", "text", "message"),
    [
        (5, "c d", "`answer_start` must point at .* 5, where .* ' d '"),
        (-1, "k", "`answer_start` must point at the answer"),
        (99, "k", "`answer_start` .* 99, where the context holds ''"),
        (4.0, "c", "`answer_start` .* 4.0"),
        (None, "c", "`answer_start` .* None"),
        (3, " ", "`text` must hold at least one piece"),
        (3, "", "`text` must hold at least one piece"),
        (3, None, "`text` must be a string"),
    ],
)
def test_answers_that_are_not_in_the_context_are_refused(start, text, message):
    with pytest.raises(ValueError, match=message):
        align_answer(windowed(), start, text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_best": 0}, "`n_best` must be an integer >= 1. Received: 0"),
        ({"max_answer_length": 0}, "`max_answer_length` must be an integer"),
        ({"max_answer_length": 2.5}, "`max_answer_length` .* Received: 2.5"),
        ({"end_logits": np.zeros(4)}, r"of one length.* \(3,\) and \(4,\)"),
        ({"start_logits": np.zeros((3, 1))}, "must be vectors of one length"),
        (
            {"start_logits": [0, math.nan, 0]},
            "`start_logits` .* nan at piece 1",
        ),
        ({"end_logits": [0, 0, math.inf]}, "`end_logits` .* inf at piece 2"),
    ],
)
def test_logits_that_are_no_equal_finite_vectors_are_refused(options, message):
    given_logits = {"start_logits": np.zeros(3), "end_logits": np.zeros(3)}
    with pytest.raises(ValueError, match=message):
        best_spans(**given_logits | options)
    with pytest.raises(ValueError, match="must be vectors of one length"):
        best_spans([], [])


def test_logits_that_do_not_cover_the_windows_are_refused():
    found = windowed()
    message = r"`start_logits` must hold a row .* \[10, 10, 10\] .* \[10, 10\]"
    with pytest.raises(ValueError, match=message):
        rank_answers(found, np.zeros((2, 10)), np.zeros((3, 10)))
    with pytest.raises(ValueError, match="`end_logits` must hold a row"):
        rank_answers(found, np.zeros((3, 10)), np.zeros((3, 9)))


# The real questions.


def squad_questions(path):
    """Yields every question with its context."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for article in json.load(file)["data"]:
            for paragraph in article["paragraphs"]:
                for row in paragraph["qas"]:
                    yield {**row, "context": paragraph["context"]}


def oracle_logits(found, labels):
    """1 where the answer starts and ends, 0 elsewhere."""
    width = max(len(window.input_ids) for window in found.windows)
    starts, ends = np.zeros((2, len(labels), width))
    rows = np.flatnonzero(labels.any(axis=1))
    starts[rows, labels[rows, 0]] = 1.0
    ends[rows, labels[rows, 1]] = 1.0
    return starts, ends


@pytest.mark.slow
@pytest.mark.parametrize("max_length", [128, 384])
@pytest.mark.parametrize("vocabulary", ["published", "mini"])
def test_every_answer_at_borders_is_recovered(
    vocabulary, max_length, shared_data
):
    tokenizer = mini()
    if vocabulary == "published":
        tokenizer = Tokenizer(
            texts.published_vocabulary(shared_data, "uncased")
        )
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(
        ("questions", "windows", "answers", "at borders", "recovered"), 0
    )
    questions, first_answers, longest = [], {}, 0
    for row in squad_questions(shared_data / "squad" / "dev-v1.1.json.xz"):
        found = window_context(
            tokenizer, row["question"], row["context"], max_length
        )
        counts["questions"] += 1
        counts["windows"] += len(found.windows)
        pieces = np.concatenate(
            [np.arange(w.first, w.first + w.size) for w in found.windows]
        )
        assert set(pieces.tolist()) == set(range(len(found.offsets)))
        check_answers(
            found, rank_answers(found, *draw_logits(found, rng)), 20, 30
        )
        for answer in row["answers"]:
            aligned = align_answer(
                found, answer["answer_start"], answer["text"]
            )
            size = aligned.last - aligned.first + 1
            longest = max(longest, size)
            labels = label_answer(found, aligned)
            best = rank_answers(found, *oracle_logits(found, labels), 1, size)
            counts["answers"] += 1
            counts["at borders"] += aligned.at_borders
            found_again = best[0][:3] == (
                answer["text"],
                answer["answer_start"],
                answer["answer_start"] + len(answer["text"]),
            )
            counts["recovered"] += found_again
            assert found_again == aligned.at_borders, (row["id"], answer)
            first_answers.setdefault(row["id"], best[0].text)
        questions.append(row)
    scores = squad(questions, first_answers)
    print(f"{vocabulary}, {max_length}: {counts}, longest {longest}, {scores}")
    assert counts["questions"] == 8_413
    assert counts["recovered"] == counts["at borders"]
    assert counts["at borders"] > 0.98 * counts["answers"]
    assert scores["f1"] > 0.98


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 1])
def test_a_score_of_no_answer_that_is_no_number_is_refused(wrong, at):
    logits = np.zeros((2, 1, 3))
    logits[at, 0, 0] = wrong
    with pytest.raises(ValueError, match=r"must be finite at \[CLS\]"):
        no_answer_score(*logits)


@pytest.mark.parametrize("wrong", [np.nan, None, "0", True])
def test_a_threshold_that_is_no_number_is_refused(wrong):
    answers = [Answer("a", 0, 1, 2.0)]
    with pytest.raises(ValueError, match="`threshold` must be a number"):
        choose_answer(answers, 1.0, wrong)
    if wrong is not None:  # which says that each question has an answer
        with pytest.raises(ValueError, match="`no_answer` must be a number"):
            choose_answer(answers, wrong)
