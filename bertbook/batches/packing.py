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
    lengths = batch["attention_mask"].sum(axis=1).tolist()
    places = find_places(lengths, max_length)
    rows = 1 + max(place.row for place in places)
    most = 1 + max(place.number for place in places)
    packed = {
        name: np.zeros((rows, max_length), "int32")
        for name in ("input_ids", "token_type_ids", "position_ids")
    }
    owner = np.full((rows, max_length), -1)  # which example a token is of
    packed["cls_positions"] = np.zeros((rows, most), "int32")
    for number, (place, length) in enumerate(zip(places, lengths, strict=True)):
        here = place.row, slice(place.start, place.start + length)
        for name in ("input_ids", "token_type_ids"):
            packed[name][here] = batch[name][number, :length]
        packed["position_ids"][here] = np.arange(length)
        packed["cls_positions"][place.row, place.number] = place.start
        owner[here] = number
    same = owner[:, :, np.newaxis] == owner[:, np.newaxis, :]  # (R, T, T)
    packed["attention_mask"] = (same & (owner >= 0)[:, np.newaxis]).astype(
        "int32"
    )
    if SLOTS[0] in batch:
        packed |= _pack_slots(batch, places)
    if "next_sentence_labels" in batch:
        packed |= _pack_labels(batch["next_sentence_labels"], places)
    return packed, places


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


def _pack_slots(batch, places) -> dict[str, np.ndarray]:
    """Moves the used slots of every example into its new row."""
    rows: dict[int, list[tuple[int, int]]] = {}
    used = batch["masked_lm_weights"] > 0
    for number, place in enumerate(places):
        slots = np.flatnonzero(used[number]).tolist()
        rows.setdefault(place.row, []).extend((number, i) for i in slots)
    most = max(1, *map(len, rows.values()))
    packed = {
        name: np.zeros((len(rows), most), batch[name].dtype) for name in SLOTS
    }
    for row, origins in rows.items():
        for slot, (number, i) in enumerate(origins):
            for name in SLOTS:
                packed[name][row, slot] = batch[name][number, i]
            packed["masked_lm_positions"][row, slot] += places[number].start
    return packed


def _pack_labels(labels, places) -> dict[str, np.ndarray]:
    """Moves the label of every example into its new row."""
    shape = tuple(1 + max(p[i] for p in places) for i in (0, 2))
    packed = {
        "next_sentence_labels": np.zeros(shape, "int32"),
        "next_sentence_weights": np.zeros(shape, "float32"),
    }
    for place, label in zip(places, labels, strict=True):
        packed["next_sentence_labels"][place.row, place.number] = label
        packed["next_sentence_weights"][place.row, place.number] = 1.0
    return packed
