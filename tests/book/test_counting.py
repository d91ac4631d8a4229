"""The rivals of chapter 30 count, and guess no better than counts allow."""

import numpy as np
import pytest

from bertbook.book import counting

SPECIAL = [0, 1, 2]


def clock(count, seed):
    """Rows of six hours, 3 to 14, in steps of 1 to 5, between two specials."""
    rng = np.random.default_rng(seed)
    step = rng.integers(1, 6, (count, 1))
    hours = 3 + (rng.integers(12, size=(count, 1)) + step * np.arange(6)) % 12
    ends = np.ones((count, 1), int)
    return np.concatenate([ends, hours, 2 * ends], axis=1)


def test_two_neighbors_tell_an_hour_and_one_does_not():
    train, test = clock(2_000, 0), clock(200, 1)
    hidden = np.zeros(test.shape, bool)
    hidden[:, 3] = True
    nats = counting.guess_by_counts(train, test, hidden, SPECIAL)
    mean = {name: paid.mean() for name, paid in nats.items()}
    assert all(paid.shape == (200,) for paid in nats.values())
    assert mean["alone"] == pytest.approx(np.log(12), abs=0.02)
    assert mean["left"] == pytest.approx(np.log(5), abs=0.05)
    assert mean["right"] == pytest.approx(np.log(5), abs=0.05)
    assert mean["both"] < 0.1
    assert mean["four a side"] < 0.1


def test_every_guess_is_a_distribution():
    rows = np.random.default_rng(0).integers(3, 9, (40, 12))
    rows[:, [0, -1]] = 1, 2
    asked = ~np.isin(rows, SPECIAL)
    found, labels = counting._guesses(rows[:20], rows, asked, SPECIAL, 9, 0.5)
    assert len(labels) == asked.sum()
    for name, guess in found.items():
        np.testing.assert_allclose(guess.sum(axis=1), 1.0, err_msg=name)
        assert guess.min() >= 0
        assert guess[:, SPECIAL].max() == 0
    product = counting._product(found, (1.0, 0.8, -0.3))
    np.testing.assert_allclose(product.sum(axis=1), 1.0)


def test_what_was_never_seen_costs_what_the_shorter_look_says():
    train = np.array([[1, 3, 4, 2], [1, 4, 3, 2]] * 20)
    test = np.array([[1, 5, 4, 2]])  # 5 was never read
    hidden = np.array([[False, False, True, False]])
    nats = counting.guess_by_counts(train, test, hidden, SPECIAL)
    assert nats["left"] == pytest.approx(nats["alone"])
