"""Made-up tasks: what is asked, and that the other side says nothing."""

import numpy as np
import pytest

from bertbook.relatives.probes import (
    ASKED,
    FIRST_LETTER,
    HIDDEN,
    draw_palindromes,
    draw_recall,
)

ROWS, LETTERS = 4_000, 5


def test_the_hidden_letter_stands_on_the_other_side():
    rng = np.random.default_rng(0)
    ids, places, answers = draw_palindromes(ROWS, 8, LETTERS, rng)
    every = np.arange(ROWS)
    assert ids.shape == (ROWS, 8)
    assert (places < 4).all()
    assert ((ids == HIDDEN).sum(axis=1) == 1).all()
    assert (ids[every, places] == HIDDEN).all()
    assert (ids[every, 7 - places] == answers).all()
    whole = ids.copy()
    whole[every, places] = answers
    np.testing.assert_array_equal(whole, whole[:, ::-1])


def test_letters_before_a_gap_do_not_give_the_answer_away():
    rng = np.random.default_rng(0)
    ids, places, answers = draw_palindromes(ROWS, 8, LETTERS, rng)
    before = ids[places == 3][:, 2], answers[places == 3]
    same = (before[0] == before[1]).mean()
    assert abs(same - 1 / LETTERS) < 0.04


def test_recall_asks_for_the_first():
    ids, answers = draw_recall(ROWS, 6, LETTERS, np.random.default_rng(0))
    assert ids.shape == (ROWS, 7)
    assert (ids[:, -1] == ASKED).all()
    np.testing.assert_array_equal(ids[:, 0], answers)
    assert set(answers) == set(range(FIRST_LETTER, FIRST_LETTER + LETTERS))
    for column in range(1, 6):
        same = (ids[:, column] == answers).mean()
        assert abs(same - 1 / LETTERS) < 0.04


def test_bad_numbers_are_refused():
    for call, message in (
        (lambda rng: draw_palindromes(0, 8, 5, rng), "`rows` must be >= 1"),
        (lambda rng: draw_palindromes(2, 7, 5, rng), "`length` must be even"),
        (lambda rng: draw_palindromes(2, 8, 1, rng), "`letters` >= 2"),
        (lambda rng: draw_recall(2, 0, 5, rng), "`distance` must be >= 1"),
    ):
        with pytest.raises(ValueError, match=message):
            call(np.random.default_rng(0))
