"""Tests of two models, on rows whose answer is known."""

import numpy as np
import pytest
from scipy.stats import binomtest

from bertbook.book.significance import mcnemar, paired_bootstrap
from bertbook.tasks import metrics


def columns(both, wins, losses, neither):
    """Whether two models are right, with so many rows of each kind."""
    kinds = (True, True), (True, False), (False, True), (False, False)
    counts = both, wins, losses, neither
    return np.repeat(np.array(kinds), counts, axis=0).T


@pytest.mark.parametrize(
    ("wins", "losses"), [(12, 4), (4, 12), (7, 1), (0, 3), (5, 5), (90, 61)]
)
def test_mcnemar_is_the_binomial_test_of_the_rows_that_differ(wins, losses):
    expected = binomtest(wins, wins + losses).pvalue
    for both, neither in ((0, 0), (100, 30)):
        found = mcnemar(*columns(both, wins, losses, neither))
        assert found[:2] == (wins, losses)
        assert found[2] == pytest.approx(expected, abs=1e-12)


def test_a_model_does_not_differ_from_itself():
    right = np.arange(10) % 3 == 0
    assert mcnemar(right, right) == (0, 0, 1.0)
    gaps = paired_bootstrap(metrics.accuracy, [1] * 10, right + 0, right + 0)
    assert (gaps == 0).all()


def test_the_bootstrap_spreads_like_the_standard_error():
    one, other = columns(500, 140, 60, 300) + 0
    gap = one - other
    gaps = paired_bootstrap(metrics.accuracy, np.ones(1_000, int), one, other)
    error = gap.std() / np.sqrt(1_000)
    assert gaps.shape == (2_000,)
    assert gaps.mean() == pytest.approx(gap.mean(), abs=0.1 * error)
    assert gaps.std() == pytest.approx(error, rel=0.06)


def test_rows_are_drawn_together():
    """Two models that differ by one row never differ by more than its share."""
    labels = np.tile([0, 1], 50)
    one = np.where(np.arange(100) < 60, labels, 1 - labels)
    other = one.copy()
    other[0] = 1 - other[0]
    gaps = paired_bootstrap(metrics.accuracy, labels, one, other, 200)
    assert gaps.min() == 0
    assert gaps.max() < 0.1


def test_any_metric_and_the_seed():
    labels, one = np.tile([0, 1, 1], 40), np.tile([0, 1, 0], 40)
    asked = metrics.f1, labels, one, np.ones(120, int), 50
    gaps = paired_bootstrap(*asked)
    np.testing.assert_array_equal(gaps, paired_bootstrap(*asked))
    assert (gaps != paired_bootstrap(*asked, seed=1)).any()
    expected = metrics.f1(labels, one) - metrics.f1(labels, np.ones(120, int))
    assert gaps.mean() == pytest.approx(expected, abs=0.03)
