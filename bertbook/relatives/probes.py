"""Probes: synthetic tasks for one ability each, and `dependency_matrix`."""

from collections.abc import Callable, Sequence

import numpy as np

HIDDEN, ASKED, FIRST_LETTER = 0, 1, 2  # ids


def draw_palindromes(
    rows: int, length: int, letters: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws words that read the same from both ends, one letter hidden.

    The hidden letter is in the first half, and stands a second time in the
    other half. What comes before it says nothing.

    Args:
        rows: B.
        length: S, even.
        letters: How many letters there are.
        rng: NumPy random generator.

    Returns:
        Ids with `HIDDEN` in one place, `(B, S)`; that place, `(B,)`; and the
        id that belongs there, `(B,)`.

    Raises:
        ValueError: A number is too small, or `length` is odd.
    """
    _check(rows, letters)
    if not length >= 2 or length % 2:
        raise ValueError(f"`length` must be even and >= 2. Received: {length}.")
    shape = rows, length // 2
    half = rng.integers(FIRST_LETTER, FIRST_LETTER + letters, shape, "int32")
    ids = np.hstack([half, half[:, ::-1]])
    places = rng.integers(0, length // 2, rows, "int32")
    answers = ids[np.arange(rows), places]
    ids[np.arange(rows), places] = HIDDEN
    return ids, places, answers


def draw_recall(
    rows: int, distance: int, letters: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws rows of letters that end in a question: which was the first?

    Args:
        rows: B.
        distance: From the first letter to the question; all between are other
            letters, drawn at random.
        letters: How many letters there are.
        rng: NumPy random generator.

    Returns:
        Ids that end in `ASKED`, `(B, distance + 1)`, and the first of each
        row, `(B,)`.

    Raises:
        ValueError: A number is too small.
    """
    _check(rows, letters)
    if not distance >= 1:
        raise ValueError(f"`distance` must be >= 1. Received: {distance}.")
    shape = rows, distance + 1
    ids = rng.integers(FIRST_LETTER, FIRST_LETTER + letters, shape, "int32")
    ids[:, -1] = ASKED
    return ids, ids[:, 0].copy()


def _check(rows: int, letters: int) -> None:
    if not rows >= 1 or not letters >= 2:
        raise ValueError(
            "`rows` must be >= 1 and `letters` >= 2. "
            f"Received: {rows} and {letters}."
        )


def dependency_matrix(
    read: Callable, ids: Sequence[int], other_id: int
) -> np.ndarray:
    """Measures which vectors change when one token is replaced.

    Args:
        read: A function of ids, `(1, S)`, that returns a vector for each
            token, `(1, S, D)`. The same ids must give the same bits.
        ids: S ids, none of them `other_id`.
        other_id: What takes the place of a token.

    Returns:
        `(S, S)`: in row t and column s by how much the vector of token t
        changes at most, when token s is replaced. Exactly 0 means that t does
        not depend on s.

    Raises:
        ValueError: A token is `other_id` already.
    """
    row = np.asarray(ids, "int32")
    if (row == other_id).any():
        raise ValueError(
            "`ids` must not hold `other_id`, which takes their place. "
            f"Received: {row.tolist()} and {other_id}."
        )
    before = np.asarray(read(row[None]))[0]  # (S, D)
    matrix = np.empty((len(row), len(row)))
    for s in range(len(row)):
        changed = row.copy()
        changed[s] = other_id
        after = np.asarray(read(changed[None]))[0]
        matrix[:, s] = np.abs(after - before).max(axis=-1)
    return matrix
