"""Scores of answers against the official scripts, restated in other words."""

import math
import re
import string
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.tasks.metrics import (
    answer_f1,
    answerable,
    best_threshold,
    normalize_answer,
    score_questions,
    squad,
)

random_tests = settings(max_examples=100, deadline=None, derandomize=True)
WORDS = ["The", "a", "an", "then", "ferry", "U.S.", "$5", "it's", "—", "naïve"]
answers = st.lists(st.sampled_from([*WORDS, ",", "  ", "\xa0", "A."])).map(
    " ".join
) | st.text(st.sampled_from("aAtheEn. ,'—é\u0130"), max_size=9)


def question(number, *texts):
    found = [{"text": text, "answer_start": 0} for text in texts]
    return {"id": f"q{number}", "answers": found}


def questions_and_guesses(empty):
    """Rows of questions with answers, and a prediction for each."""
    row = st.tuples(st.lists(answers, min_size=not empty, max_size=3), answers)
    copied = st.tuples(row, st.booleans()).map(
        lambda both: (
            (both[0][0], both[0][0][0]) if both[1] and both[0][0] else both[0]
        )
    )
    return st.lists(copied, min_size=1, max_size=13).map(
        lambda rows: (
            [question(i, *texts) for i, (texts, _) in enumerate(rows)],
            {f"q{i}": guess for i, (_, guess) in enumerate(rows)},
        )
    )


# The official scripts, restated.


def normalized(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(?:an|a|the)\b", " ", text).split()


def words_in_common(guess, wanted):
    return sum(min(guess.count(word), wanted.count(word)) for word in {*guess})


def official_pair(guess, wanted, version):
    """Exact match and F1 of one pair of texts."""
    guess, wanted = normalized(guess), normalized(wanted)
    exact = float(guess == wanted)
    if version == 2 and not (guess and wanted):
        return exact, exact
    common = words_in_common(guess, wanted)
    if not common:
        return exact, 0.0
    precision, recall = common / len(guess), common / len(wanted)
    return exact, 2 * precision * recall / (precision + recall)


def official(questions, guesses, version):
    """Exact match and F1 of each question."""
    rows = []
    for row in questions:
        wanted = [answer["text"] for answer in row["answers"]]
        if version == 2:
            wanted = [text for text in wanted if normalized(text)] or [""]
        pairs = [
            official_pair(guesses[row["id"]], text, version) for text in wanted
        ]
        rows.append([max(column) for column in zip(*pairs, strict=True)])
    return np.array(rows)


def official_threshold(scores, probabilities, has_answer, guesses):
    """Walks from the surest answer on, and keeps the best place to stop."""
    score = best = sum(not x for x in has_answer)
    threshold = 0.0
    for i in sorted(range(len(scores)), key=lambda i: probabilities[i]):
        if has_answer[i]:
            score += scores[i]
        elif guesses[i]:
            score -= 1
        if score > best:
            best, threshold = score, probabilities[i]
    return threshold, best / len(scores)


# Definition.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Ferry", "ferry"),
        (" an  a the ", ""),
        ("then Athens", "then athens"),
        ("a.b-c", "abc"),
        ("the-cat", "thecat"),  # the mark goes first, then the article
        ("‘a’ — the", "‘ ’ —"),  # marks outside ASCII stay
        ("\tBAT\xa0man\n", "bat man"),
        ("", ""),
    ],
)
def test_normalization_by_hand(text, expected):
    assert normalize_answer(text) == expected


def test_f1_by_hand():
    assert answer_f1("red red barn", "the red red house") == pytest.approx(
        2 / 3
    )
    assert answer_f1("red", "red red") == pytest.approx(2 / 3)
    assert answer_f1("blue", "red") == 0.0
    assert answer_f1("the", "a") == 0.0
    assert answer_f1("the", "a", version=2) == 1.0
    assert answer_f1("", "red", version=2) == 0.0


def test_squad_by_hand():
    questions = [question(0, "the ferry", "old ferry"), question(1, "snow")]
    guesses = {"q0": "Ferry!", "q1": "the snow storm"}
    expected = {"exact_match": 0.5, "f1": (1 + 2 / 3) / 2}
    assert squad(questions, guesses) == pytest.approx(expected)
    questions += [question(2), question(3)]
    guesses |= {"q2": "", "q3": "snow"}
    assert squad(questions, guesses, version=2) == pytest.approx(
        {
            "exact_match": 2 / 4,
            "f1": (1 + 2 / 3 + 1) / 4,
            "answered_exact_match": 1 / 2,
            "answered_f1": (1 + 2 / 3) / 2,
            "unanswered_exact_match": 1 / 2,
            "unanswered_f1": 1 / 2,
        }
    )
    assert answerable(questions).tolist() == [True, True, False, False]
    only = squad(questions[2:], {"q2": "", "q3": ""}, version=2)
    assert set(only) == {
        f"{part}{name}"
        for part in ("", "unanswered_")
        for name in ("exact_match", "f1")
    }


def test_a_threshold_by_hand():
    scores = np.array([1.0, 0.5, 0.0, 0.0])
    no_answer = np.array([-3.0, 2.0, -1.0, 4.0])
    has_answer = np.array([True, True, False, False])
    # Answered below -3: 2; to -3: 3; to -1: 2; to 2: 2.5; to 4: 1.5.
    received = best_threshold(scores, no_answer, has_answer)
    assert received == (-3.0, 3 / 4)
    scores = np.array([0.4, 0.0])
    threshold, score = best_threshold(scores, [1.0, 1.0], [True, False])
    assert threshold < 1.0  # both are left unanswered
    assert score == 1 / 2
    # Scores of logits may be negative; still nothing is answered.
    threshold, score = best_threshold([0.0], [-2.0], [False])
    assert threshold < -2.0
    assert score == 1.0


# Peer.


@random_tests
@given(answers)
def test_normalization_as_the_script(text):
    assert normalize_answer(text).split() == normalized(text)
    assert normalize_answer(text) == " ".join(normalized(text))


@random_tests
@given(questions_and_guesses(empty=False))
def test_version_1_as_the_script(case):
    received = score_questions(*case)
    expected = official(*case, 1)
    np.testing.assert_array_equal(received["exact_match"], expected[:, 0])
    np.testing.assert_allclose(received["f1"], expected[:, 1], rtol=1e-12)
    means = {"exact_match": expected[:, 0].mean(), "f1": expected[:, 1].mean()}
    assert squad(*case) == pytest.approx(means)


@random_tests
@given(questions_and_guesses(empty=True))
def test_version_2_as_the_script(case):
    received = score_questions(*case, version=2)
    expected = official(*case, 2)
    np.testing.assert_array_equal(received["exact_match"], expected[:, 0])
    np.testing.assert_allclose(received["f1"], expected[:, 1], rtol=1e-12)
    whole = squad(*case, version=2)
    has_answer = np.array([bool(row["answers"]) for row in case[0]])
    for name, rows in (
        ("", np.ones(len(has_answer), bool)),
        ("answered_", has_answer),
        ("unanswered_", ~has_answer),
    ):
        if rows.any():
            means = expected[rows].mean(axis=0)
            assert whole[f"{name}exact_match"] == pytest.approx(means[0])
            assert whole[f"{name}f1"] == pytest.approx(means[1])


rows_of_threshold = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 9)
    ),
    min_size=1,
    max_size=17,
)


def threshold_case(rows):
    """Scores, of 1 for what is rightly left open, and the rest."""
    has_answer, scores, levels = (np.array(x) for x in zip(*rows, strict=True))
    guessed = has_answer | (scores < 1)
    scores = np.where(has_answer, scores, ~guessed)
    return scores, levels / 10, has_answer, guessed


@random_tests
@given(rows_of_threshold)
def test_thresholds_as_the_script_where_no_two_are_equal(rows):
    scores, levels, has_answer, guessed = threshold_case(rows)
    levels = levels + np.arange(len(levels)) / 1_000
    expected = official_threshold(scores, levels, has_answer, guessed)
    threshold, score = best_threshold(scores, levels, has_answer)
    assert score == pytest.approx(expected[1])
    if expected[0]:  # else the script answers what is surely answerable
        assert threshold == expected[0]
    else:
        assert threshold < levels.min()


@random_tests
@given(rows_of_threshold)
def test_a_threshold_gives_its_score_and_none_gives_more(rows):
    scores, levels, has_answer, guessed = threshold_case(rows)

    def mean_with(threshold):
        left_open = levels > threshold
        return np.where(left_open, ~has_answer, scores).mean()

    threshold, score = best_threshold(scores, levels, has_answer)
    assert mean_with(threshold) == pytest.approx(score)
    others = [mean_with(x) for x in [-math.inf, *levels]]
    assert score == pytest.approx(max(others))
    by_script = official_threshold(scores, levels, has_answer, guessed)
    assert score <= by_script[1] + 1e-9


# Property.


@random_tests
@given(answers, answers)
def test_f1_is_the_same_both_ways(one, other):
    for version in (1, 2):
        there = answer_f1(one, other, version)
        assert there == answer_f1(other, one, version)
        assert 0.0 <= there <= 1.0
        same = Counter(normalized(one)) == Counter(normalized(other))
        if normalized(one):
            assert (there == 1.0) == same


# Error.


@pytest.mark.parametrize(
    ("rows", "guesses", "message"),
    [
        ([], {}, "`questions` must hold at least one"),
        ([question(0, "x")], {}, "`questions` must all be predicted.* 'q0'"),
        ([question(0, "x")] * 2, {"q0": ""}, "must have different ids.* 'q0'"),
        (
            [question(0, "x")],
            {"q0": "", "q7": "", "q8": ""},
            "must hold what is predicted.* 'q7' and 1 more",
        ),
        ([question(0)], {"q0": ""}, "`version=1` needs .* 'q0'"),
    ],
)
def test_bad_predictions_are_refused(rows, guesses, message):
    with pytest.raises(ValueError, match=message):
        squad(rows, guesses)


def test_an_unknown_version_is_refused():
    with pytest.raises(ValueError, match="`version` must be 1 or 2. Rec"):
        squad([question(0, "x")], {"q0": "x"}, version="2")


def test_bad_columns_for_a_threshold_are_refused():
    for scores, levels, has_answer in (
        ([], [], []),
        ([1.0], [1.0, 2.0], [True]),
        ([[1.0]], [[1.0]], [[True]]),
    ):
        with pytest.raises(ValueError, match="must be vectors of one length"):
            best_threshold(scores, levels, has_answer)
    with pytest.raises(ValueError, match="`no_answer` must be finite"):
        best_threshold([1.0], [math.nan], [True])
    with pytest.raises(ValueError, match="`scores` must be finite"):
        best_threshold([math.nan], [1.0], [True])


@pytest.mark.parametrize("guess", [None, math.nan, 3, ["x"], b"x"])
def test_a_prediction_that_is_no_text_is_refused(guess):
    with pytest.raises(
        ValueError, match=r"`predictions\['q0'\]` must be a str"
    ):
        squad([question(0, "x")], {"q0": guess})
