"""Which tokens a vector depends on.

Differences: none; the papers draw arrows, here they are measured.
"""

from collections.abc import Callable, Sequence

import numpy as np


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
    ids = np.asarray(ids, "int32")
    if (ids == other_id).any():
        raise ValueError(
            "`ids` must not hold `other_id`, which takes their place. "
            f"Received: {ids.tolist()} and {other_id}."
        )
    before = np.asarray(read(ids[None]))[0]  # (S, D)
    matrix = np.empty((len(ids), len(ids)))
    for s in range(len(ids)):
        changed = ids.copy()
        changed[s] = other_id
        after = np.asarray(read(changed[None]))[0]
        matrix[:, s] = np.abs(after - before).max(axis=-1)
    return matrix
