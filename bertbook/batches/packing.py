"""Packing: several short examples in one row, each blind to the others.

Differences: the paper pads. Packing is from Krell et al. (2021); the rows are
found by first-fit, longest first.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

SLOTS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


class Place(NamedTuple):
    """Where an example went: row, first column, and its number in the row."""

    row: int
    start: int
    number: int


def pack(
    batch: Mapping[str, np.ndarray], max_length: int
) -> tuple[dict[str, np.ndarray], list[Place]]:
    """Puts the examples of a batch into as few rows as it finds.

    Every example counts its positions from 0 and sees itself alone, so a model
    gives its tokens the same vectors as before.

    Args:
        batch: What a tokenizer or a stream of examples gives, `(B, S)`.
        max_length: Length of the rows to fill, T.

    Returns:
        A batch of R rows: `input_ids`, `token_type_ids`, `position_ids`, each
        `(R, T)`; `attention_mask`, `(R, T, T)`; `cls_positions`, `(R, E)`,
        for up to E examples a row; where they were given, the slots of masked
        tokens, and labels and weights of the next sentence, `(R, E)`. And the
        place of each example, in the order of `batch`.

    Raises:
        ValueError: An example is longer than `max_length`.
    """
    packed, places = pack_rows(batch, max_length)
    mask = block_mask(packed.pop("example_numbers"))
    packed["attention_mask"] = mask.astype("int32")
    return packed, places


def pack_rows(
    batch: Mapping[str, np.ndarray],
    max_length: int,
    most: int | None = None,
    slots: int | None = None,
) -> tuple[dict[str, np.ndarray], list[Place]]:
    """Packs as `pack` does, and leaves the mask to be made by `block_mask`.

    Args:
        batch: As in `pack`.
        max_length: T.
        most: E, so that every batch has one shape; a short example then takes
            T / E columns. None takes what is needed.
        slots: Masked tokens of a row; None takes what is needed.

    Returns:
        As `pack`; in place of the mask `example_numbers`, `(R, T)`: which
        example of its row a token is of, from 1 on, 0 for padding.
    """
    lengths = batch["attention_mask"].sum(axis=1).tolist()
    least = 1 if most is None else -(-max_length // most)
    places = find_places([max(n, least) for n in lengths], max_length)
    rows = 1 + max(place.row for place in places)
    most = most or 1 + max(place.number for place in places)
    packed = {
        name: np.zeros((rows, max_length), "int32")
        for name in (
            "input_ids",
            "token_type_ids",
            "position_ids",
            "example_numbers",
        )
    }
    packed["cls_positions"] = np.zeros((rows, most), "int32")
    for number, (place, length) in enumerate(zip(places, lengths, strict=True)):
        here = place.row, slice(place.start, place.start + length)
        for name in ("input_ids", "token_type_ids"):
            packed[name][here] = batch[name][number, :length]
        packed["position_ids"][here] = np.arange(length)
        packed["cls_positions"][place.row, place.number] = place.start
        packed["example_numbers"][here] = place.number + 1
    if SLOTS[0] in batch:
        packed |= _pack_slots(batch, places, slots)
    if "next_sentence_labels" in batch:
        packed |= _pack_labels(batch["next_sentence_labels"], places, most)
    return packed, places


def block_mask(example_numbers: np.ndarray) -> np.ndarray:
    """Returns a mask with which each example of a row sees itself alone.

    Args:
        example_numbers: `(R, T)`, as `pack_rows` returns it.

    Returns:
        `(R, T, T)`, int8, 1 where a token is visible.
    """
    asking = example_numbers[:, :, np.newaxis]  # (R, T, 1)
    asked = example_numbers[:, np.newaxis, :]  # (R, 1, T)
    return ((asking == asked) & (asked > 0)).astype("int8")


def find_places(lengths: Sequence[int], max_length: int) -> list[Place]:
    """Finds a row for each example: the first with room, longest first.

    Raises:
        ValueError: There is no example, or one is longer than `max_length`.

    >>> [place.row for place in find_places([3, 7, 2, 5], 10)]
    [0, 0, 1, 1]
    """
    if not lengths:
        raise ValueError("A batch must hold at least one example.")
    used: list[int] = []
    counts: list[int] = []
    places: dict[int, Place] = {}
    for example in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        length = lengths[example]
        if length > max_length:
            raise ValueError(
                f"`max_length` must hold every example. Received: {max_length} "
                f"for one of {length} tokens in row {example}."
            )
        fitting = (i for i, n in enumerate(used) if n + length <= max_length)
        row = next(fitting, len(used))
        if row == len(used):
            used.append(0)
            counts.append(0)
        places[example] = Place(row, used[row], counts[row])
        used[row] += length
        counts[row] += 1
    return [places[i] for i in range(len(lengths))]


def unpack(
    packed: np.ndarray, places: Sequence[Place], lengths: Sequence[int]
) -> list[np.ndarray]:
    """Takes what a model gave for the tokens of each example.

    Args:
        packed: A vector, or any array, for each token: `(R, T, ...)`.
        places: What `pack` returned.
        lengths: Tokens of each example.
    """
    return [
        packed[place.row, place.start : place.start + length]
        for place, length in zip(places, lengths, strict=True)
    ]


def _pack_slots(batch, places, most=None) -> dict[str, np.ndarray]:
    """Moves the used slots of every example into its new row."""
    rows: dict[int, list[tuple[int, int]]] = {}
    used = batch["masked_lm_weights"] > 0
    for number, place in enumerate(places):
        slots = np.flatnonzero(used[number]).tolist()
        rows.setdefault(place.row, []).extend((number, i) for i in slots)
    most = most or max(1, *map(len, rows.values()))
    packed = {
        name: np.zeros((len(rows), most), batch[name].dtype) for name in SLOTS
    }
    for row, origins in rows.items():
        for slot, (number, i) in enumerate(origins):
            for name in SLOTS:
                packed[name][row, slot] = batch[name][number, i]
            packed["masked_lm_positions"][row, slot] += places[number].start
    return packed


def _pack_labels(labels, places, most) -> dict[str, np.ndarray]:
    """Moves the label of every example into its new row."""
    shape = 1 + max(place.row for place in places), most
    packed = {
        "next_sentence_labels": np.zeros(shape, "int32"),
        "next_sentence_weights": np.zeros(shape, "float32"),
    }
    for place, label in zip(places, labels, strict=True):
        packed["next_sentence_labels"][place.row, place.number] = label
        packed["next_sentence_weights"][place.row, place.number] = 1.0
    return packed
