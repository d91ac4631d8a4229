"""Training rows that hold several texts, each blind to the others.

Differences: the paper pads. Packing is from Krell et al. (2021); here an update
sees exactly as many texts as without it, so that the loss is the same. An
answer is looked for in its own text alone, where a padded row has its padding
too, as in Google's code.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bertbook.batches.batching import bucket_length
from bertbook.batches.packing import Place, block_mask, pack_rows
from bertbook.batches.ragged import Rows
from bertbook.devices.sharing import WHOLE, Share
from bertbook.runtime import keras

LEAST_LENGTH = 128  # tokens of a row
LEAST_PLACES = 8  # tokens that a text takes at least
ROUNDING = 16  # a batch of average length is rounded up by this part at most


def packed_steps(
    rows: Rows,
    batch_size: int,
    limit: int,
    seed: int,
    done: int = 0,
    share: Share = WHOLE,
) -> Iterator[tuple[dict, Any, Any]]:
    """Yields batches as `ragged.steps` does, with several texts in a row.

    Every row is as long as the longest text needs, and 128 tokens at least.
    Texts of any length share a batch: each epoch is shuffled and cut.

    Args:
        rows: The training data, one text each.
        batch_size: Texts a step.
        limit: The longest length that the model takes.
        seed: Seed of the order.
        done: Steps done before.
        share: How the rows of a batch are split over devices.
    """
    lengths = rows.lengths()
    length = packed_length(lengths, limit)
    mean = batch_size * lengths.mean() / length
    multiple = share.round_up(max(1, int(mean / ROUNDING)))
    epoch, skipped = divmod(done, -(-len(rows) // batch_size))
    while True:
        order = np.random.default_rng((seed, epoch)).permutation(len(rows))
        for start in range(skipped * batch_size, len(rows), batch_size):
            numbers = order[start : start + batch_size].tolist()
            yield share.own(packed_step(rows, numbers, length, multiple))
        epoch, skipped = epoch + 1, 0


def packed_length(lengths: np.ndarray, limit: int) -> int:
    """Returns T, the tokens of a packed row, for texts of some lengths."""
    longest = max(int(lengths.max()), LEAST_LENGTH)
    return bucket_length(min(longest, limit), limit)


def packed_step(
    rows: Rows, numbers: Sequence[int], length: int, multiple: int = 1
) -> tuple[dict, Any, Any]:
    """Packs a batch as `fit` takes it, `(x, y, sample_weight)`.

    Args:
        rows: The training data, one text each.
        numbers: The texts to take, B of them.
        length: T, at least the length of the longest of them.
        multiple: The rows, R, are a multiple of this; empty ones fill up.

    Returns:
        The inputs that `packing.pack` makes, with room for E examples a row;
        labels and weights of texts, `(R, E, ...)`, or of tokens, `(R, T)`.
    """
    longest = max(len(rows.input_ids[i]) for i in numbers)
    x, y, weights = rows.step(numbers, longest, len(numbers))
    lengths = x["attention_mask"].sum(axis=1)  # (B,)
    most = length // LEAST_PLACES
    packed, places = pack_rows(x, length, most)
    count = math.ceil(len(packed["input_ids"]) / multiple) * multiple
    inputs = {
        name: np.pad(array, ((0, count - len(array)), (0, 0)))
        for name, array in packed.items()
    }
    inputs["attention_mask"] = block_mask(inputs.pop("example_numbers"))
    if rows.are_positions:
        starts = np.array([place.start for place in places], "int32")
        y = keras.tree.map_structure(lambda array: array + starts, y)

    def move(array):
        if rows.weights is None:
            return _to_texts(array, places, (count, most))
        return _to_tokens(array, places, lengths, (count, length))

    moved = keras.tree.map_structure(move, (y, weights))
    return inputs, *moved


def _to_texts(
    array: np.ndarray, places: Sequence[Place], shape: tuple[int, int]
) -> np.ndarray:
    """Moves what belongs to texts, `(B, ...)`, to their rows, `(R, E, ...)`."""
    moved = np.zeros((*shape, *array.shape[1:]), array.dtype)
    moved[[p.row for p in places], [p.number for p in places]] = array
    return moved


def _to_tokens(
    array: np.ndarray,
    places: Sequence[Place],
    lengths: np.ndarray,
    shape: tuple[int, int],
) -> np.ndarray:
    """Moves what belongs to tokens, `(B, S)`, to their rows, `(R, T)`."""
    moved = np.zeros(shape, array.dtype)
    for values, place, length in zip(array, places, lengths, strict=True):
        here = place.row, slice(place.start, place.start + length)
        moved[here] = values[:length]
    return moved
