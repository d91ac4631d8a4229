"""Tests of two models on the same rows: McNemar's, the paired bootstrap."""

import math

import numpy as np


def mcnemar(one, other):
    """Tests whether two models are equally good, from the rows they differ on.

    Exact: if they are, each such row is a fair coin. The usual form of the
    test has a bell curve in place of the coins.

    Args:
        one: Whether the first model is right, `(n,)`.
        other: The same of the second, for the same rows.

    Returns:
        On how many rows the first alone is right, on how many the second
        alone, and the two-sided p-value.
    """
    one, other = np.asarray(one, bool), np.asarray(other, bool)
    wins, losses = int((one & ~other).sum()), int((other & ~one).sum())
    n, few = wins + losses, min(wins, losses)
    ways = sum(math.comb(n, k) for k in range(few + 1))
    return wins, losses, min(1.0, 2 * ways / 2**n)


def paired_bootstrap(metric, labels, one, other, draws=2_000, seed=0):
    """Compares two models on rows that are drawn again, many times.

    Source: Koehn (2004).

    Args:
        metric: A function of labels and answers, such as `metrics.f1`.
        labels: The right answer to each of n rows.
        one: What the first model answers, n.
        other: What the second answers to the same rows, n.
        draws: How often n rows are drawn, with replacement.
        seed: Of these draws.

    Returns:
        The metric of the first minus that of the second, `(draws,)`. The
        middle 95% of them are a confidence interval of the difference.
    """
    labels, one, other = map(np.asarray, (labels, one, other))
    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(draws):
        rows = rng.integers(len(labels), size=len(labels))
        gain = metric(labels[rows], one[rows])
        gaps.append(gain - metric(labels[rows], other[rows]))
    return np.array(gaps)
