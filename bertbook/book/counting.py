"""Guesses of hidden tokens by counting: what a model of chapter 30 must beat.

Each guess counts, over the training rows, which token stands between which
neighbors. All share a rule for what was seen too seldom: a part of each count
goes to the guess that looks at one neighbor less (absolute discounting). The
discount and the shares of a mixture are chosen on a tenth of the training rows.
"""

from itertools import product

import numpy as np

REACH = 4  # neighbors on a side that the strongest guess looks at
MOST = 1_500  # tokens of the training rows on which numbers are chosen
DISCOUNTS = 0.5, 0.75, 0.9


def guess_by_counts(
    train: np.ndarray, test: np.ndarray, hidden: np.ndarray, special: list[int]
) -> dict[str, np.ndarray]:
    """Returns what each guess costs at the hidden places, in nats.

    The guesses are shown the true neighbors, also where those are hidden.

    Args:
        train: Ids of the training rows, `(B, S)`.
        test: Ids of the test rows, `(B, S)`.
        hidden: Where they are asked, `(B, S)`, booleans.
        special: Ids that nobody is asked about.

    Returns:
        Name to nats, `(n,)`: `alone` counts tokens, `left` and `right` see one
        neighbor, `mixed` adds these three, `both` also counts what stands
        between two neighbors, `four a side` multiplies what four tokens on
        the left say with what four on the right say.
    """
    V = 1 + max(train.max(), test.max())
    cut = len(train) * 9 // 10
    fit, tune = train[:cut], train[cut:]
    asked = ~np.isin(tune, special)
    rng = np.random.default_rng(0)
    asked &= rng.random(tune.shape) < MOST / asked.sum()
    tried = []
    for discount in DISCOUNTS:
        found, labels = _guesses(fit, tune, asked, special, V, discount)
        paid = {name: _nats(p, labels) for name, p in found.items()}
        tried.append((paid["between"].mean(), discount, found, paid))
    _, discount, found, paid = min(tried, key=lambda one: one[0])
    few = ["alone", "left", "right"]
    shares = {
        "mixed": _shares([paid[name] for name in few]),
        "both": _shares([paid[name] for name in [*few, "between"]]),
    }
    powers = min(
        product((1.0, 0.8, 0.6), (1.0, 0.8, 0.6), (0.0, -0.3, -0.6, -0.8)),
        key=lambda one: _nats(_product(found, one), labels).mean(),
    )
    found, labels = _guesses(train, test, hidden, special, V, discount)
    nats = {name: _nats(found[name], labels) for name in few}
    for name, share in shares.items():
        parts = [found[one] for one in [*few, "between"][: len(share)]]
        mixed = sum(s * p for s, p in zip(share, parts, strict=True))
        nats[name] = _nats(mixed, labels)
    nats["four a side"] = _nats(_product(found, powers), labels)
    return nats


def _guesses(train, test, asked, special, V, discount):
    """Returns name -> probabilities `(n, V)`, and the right tokens, `(n,)`."""
    counted = ~np.isin(train, special)
    words, labels = train[counted], test[asked]
    alone = np.bincount(words, minlength=V) + 0.1
    alone[special] = 0
    start = np.tile(alone / alone.sum(), (len(labels), 1))
    sides = {
        sign: [
            (_beside(train, sign * k)[counted], _beside(test, sign * k)[asked])
            for k in range(1, REACH + 1)
        ]
        for sign in (-1, 1)
    }
    left, right = sides[-1], sides[1]

    def count(neighbors):
        guess = start
        for reach in range(1, len(neighbors) + 1):
            keys = [
                _keys([pair[i] for pair in neighbors[:reach]], V)
                for i in (0, 1)
            ]
            guess = _sharpened(*keys, words, guess, discount)
        return guess

    return {
        "alone": start,
        "left": count(left[:1]),
        "right": count(right[:1]),
        "between": count([left[0], right[0]]),
        "far left": count(left),
        "far right": count(right),
    }, labels


def _beside(rows, offset):
    """Returns the token that stands some places away, 0 outside of a row."""
    moved = np.zeros_like(rows)
    if offset < 0:
        moved[:, -offset:] = rows[:, :offset]
    else:
        moved[:, :-offset] = rows[:, offset:]
    return moved


def _keys(neighbors, V):
    """Returns one whole number for each combination of neighbors."""
    return sum(n.astype("int64") * V**i for i, n in enumerate(neighbors))


def _sharpened(seen, asked, words, guess, discount):
    """Returns `guess` with the counts of what was seen in the same place."""
    places, row = np.unique(asked, return_inverse=True)
    at = np.minimum(np.searchsorted(places, seen), len(places) - 1)
    known = places[at] == seen
    counts = np.zeros((len(places), guess.shape[1]))
    np.add.at(counts, (at[known], words[known]), 1)
    total = counts.sum(axis=1, keepdims=True)
    freed = discount * (counts > 0).sum(axis=1, keepdims=True)
    kept, total, freed = (
        np.maximum(counts - discount, 0),
        total[row],
        freed[row],
    )
    sharper = (kept[row] + freed * guess) / np.maximum(total, 1)
    return np.where(total > 0, sharper, guess)


def _nats(guess, labels):
    return -np.log(guess[np.arange(len(labels)), labels] + 1e-12)


def _shares(paid):
    """Returns the shares of a mixture that cost least, by 100 rounds of EM."""
    found = np.exp(-np.array(paid))  # (guesses, n)
    shares = np.full(len(found), 1 / len(found))
    for _ in range(100):
        part = shares[:, None] * found
        shares = (part / part.sum(axis=0)).mean(axis=1)
    return shares


def _product(found, powers):
    """Returns the guess in proportion to powers of three others."""
    names = "far left", "far right", "alone"
    scores = sum(
        power * np.log(found[name] + 1e-12)
        for power, name in zip(powers, names, strict=True)
    )
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)
