"""Batches: `check_batch`, length buckets, and `to_fit`.

Differences: none; the paper pads every batch to one length.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bertbook.checks import RowErrors, check_count

BUCKETS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
MODEL_INPUTS = (
    "input_ids",
    "token_type_ids",
    "attention_mask",
    "position_ids",
    "cls_positions",
    "masked_lm_positions",
)


def check_batch(batch: Mapping, config) -> None:
    """Refuses a batch that the model cannot read.

    Args:
        batch: `input_ids`, and where present `token_type_ids` and
            `attention_mask`: NumPy arrays of shape `(B, S)`; and those that
            name tokens: `position_ids`, `(B, S)`, `cls_positions`, `(B, E)`,
            `masked_lm_positions`, `(B, M)`.
        config: The `BertConfig` of the model.

    Raises:
        ValueError: An array has another shape or no integers, the batch is
            empty or too long, an id or a segment is out of range, or the mask
            holds something other than 0 and 1.
        KeyError: `input_ids` is missing.
    """
    if "input_ids" not in batch:
        raise KeyError(
            f"A batch must hold `input_ids`. Received: {sorted(batch)}."
        )
    ids = np.asarray(batch["input_ids"])
    check_shape(ids.shape, config)
    _check_integers("input_ids", ids, config.vocab_size, "`vocab_size`")
    if "token_type_ids" in batch:
        segments = np.asarray(batch["token_type_ids"])
        _check_same_shape("token_type_ids", segments, ids)
        limit = config.type_vocab_size
        _check_integers("token_type_ids", segments, limit, "`type_vocab_size`")
    if "attention_mask" in batch:
        mask = np.asarray(batch["attention_mask"])
        _check_mask(mask, ids)
    if "position_ids" in batch:
        places = np.asarray(batch["position_ids"])
        _check_same_shape("position_ids", places, ids)
        limit = config.max_position_embeddings
        field = "`max_position_embeddings`"
        _check_integers("position_ids", places, limit, field)
    for name in ("cls_positions", "masked_lm_positions"):
        if name in batch:
            check_places(name, np.asarray(batch[name]), ids)


def to_fit(batch: Mapping) -> tuple[dict, Any, Any]:
    """Splits a batch into what `fit` takes: inputs, labels, weights.

    Args:
        batch: A batch with labels: `masked_lm_ids` and
            `next_sentence_labels`, or one of them.

    Returns:
        `(x, y, sample_weight)`. For a batch with both labels `y` and
        `sample_weight` are dicts with the output names of
        `BertForPreTraining`; with one they are arrays.

    Raises:
        KeyError: The batch holds no labels.
    """
    x = {name: batch[name] for name in MODEL_INPUTS if name in batch}
    y, weights = {}, {}
    if "masked_lm_ids" in batch:
        y["mlm_logits"] = batch["masked_lm_ids"]
        weights["mlm_logits"] = batch["masked_lm_weights"]
    if "next_sentence_labels" in batch:
        labels = batch["next_sentence_labels"]
        y["nsp_logits"] = labels
        weights["nsp_logits"] = batch.get(
            "next_sentence_weights", np.ones(labels.shape, "float32")
        )
    if not y:
        raise KeyError(
            f"A batch must hold labels to train on. Received: {sorted(batch)}."
        )
    if len(y) == 1:
        return x, *y.values(), *weights.values()
    return x, y, weights


def check_shape(shape: Sequence[int | None], config) -> None:
    """Refuses ids of a shape other than `(B, S)`, and rows that are too long.

    Raises:
        ValueError: The rank is not 2, a size is 0, or S is above
            `max_position_embeddings`.
    """
    if len(shape) != 2:
        raise ValueError(
            f"`input_ids` must have shape (B, S). Received: {tuple(shape)}."
        )
    if 0 in shape:
        raise ValueError(
            f"A batch must hold at least one token. Received: {tuple(shape)}."
        )
    length, limit = shape[1], config.max_position_embeddings
    if isinstance(length, int) and length > limit:
        raise ValueError(
            "A text must not be longer than `max_position_embeddings`, "
            f"{limit}. Received: {length} tokens."
        )


def bucket_length(length: int, limit: int) -> int:
    """Returns the smallest bucket that holds a length.

    Args:
        length: Number of tokens.
        limit: The longest that the model takes; also a bucket.

    Raises:
        ValueError: `length` is above `limit`.
    """
    if length > limit:
        raise ValueError(
            f"`length` must be at most `limit`, {limit}. Received: {length}."
        )
    fitting = [bucket for bucket in BUCKETS if length <= bucket <= limit]
    return fitting[0] if fitting else limit


def bucketed(
    lengths: Sequence[int], batch_size: int, limit: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Groups rows of similar length, so that little is padded.

    Rows are sorted by length and cut into batches; each batch is padded to
    the bucket of its longest row. A few lengths in all, so a compiled model is
    compiled a few times.

    Args:
        lengths: Number of tokens of each row.
        batch_size: Rows a batch; the last batch may hold fewer.
        limit: The longest length that the model takes.

    Yields:
        The numbers of the rows of one batch, and its length.

    Raises:
        ValueError: `batch_size` is no integer or below 1, or a length is
            above `limit`.
    """
    check_count(batch_size, "batch_size")
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        yield rows, bucket_length(int(lengths[rows[-1]]), limit)


def take_rows(
    batch: Mapping[str, np.ndarray],
    rows: np.ndarray,
    length: int,
    batch_size: int,
    pad_token_id: int = 0,
) -> dict[str, np.ndarray]:
    """Cuts one batch of a fixed shape out of a larger one.

    Args:
        batch: Arrays of shape `(B, S)`, padded on the right.
        rows: The numbers of the rows to take, at most `batch_size`.
        length: S of the result.
        batch_size: B of the result. Missing rows are copies of the first, to
            be thrown away, so that every batch has the same shape.
        pad_token_id: What `input_ids` are padded with.

    Raises:
        ValueError: There is no row or more than `batch_size`, or a row has
            more tokens than `length`.
    """
    if not 1 <= len(rows) <= batch_size:
        raise ValueError(
            f"`rows` must hold 1 to `batch_size`, {batch_size}, numbers. "
            f"Received: {len(rows)}."
        )
    if (
        "attention_mask" in batch
        and batch["attention_mask"][rows, length:].any()
    ):
        raise ValueError(
            f"`length` must hold every token of the rows. Received: {length}."
        )
    rows = np.concatenate([rows, np.repeat(rows[:1], batch_size - len(rows))])
    arrays = {}
    for name, array in batch.items():
        fill = pad_token_id if name == "input_ids" else 0
        missing = max(0, length - array.shape[1])
        cut = array[rows, :length]
        arrays[name] = np.pad(cut, ((0, 0), (0, missing)), constant_values=fill)
    return arrays


def _check_same_shape(name, array, ids) -> None:
    if array.shape != ids.shape:
        raise ValueError(
            f"`{name}` must have the shape of `input_ids`, {ids.shape}. "
            f"Received: {array.shape}."
        )


def check_places(name: str, array: np.ndarray, ids: np.ndarray) -> None:
    """Refuses columns of `input_ids` that do not exist.

    Raises:
        ValueError: `array` has another shape than `(B, M)`, or holds
            something other than integers in [0, S).
    """
    if array.ndim != 2 or len(array) != len(ids):
        raise ValueError(
            f"`{name}` must have shape ({len(ids)}, M), a row for each of "
            f"`input_ids`. Received: {array.shape}."
        )
    if array.size:
        _check_integers(name, array, ids.shape[1], "the length of the batch")


def _check_mask(mask, ids) -> None:
    """Refuses a mask of another shape, or one to be added to the scores."""
    if mask.ndim != 3:
        _check_same_shape("attention_mask", mask, ids)
    elif mask.shape != (*ids.shape, ids.shape[1]):  # hides whole examples
        raise ValueError(
            "`attention_mask` must have shape (B, S) or (B, S, S) for "
            f"`input_ids` of shape {ids.shape}. Received: {mask.shape}."
        )
    wrong = (mask != 0) & (mask != 1)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            "`attention_mask` must hold 1 for a visible token and 0 for a "
            f"hidden one. Received: {mask[place]} at {place}."
        )


def _check_integers(name, array, limit, field) -> None:
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`{name}` must hold integers. Received: {array.dtype}."
        )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= limit:
        wrong = low if low < 0 else high
        row, column = np.argwhere(array == wrong)[0]
        raise ValueError(
            f"`{name}` must be in [0, {limit}), below {field}. Received: "
            f"{wrong} in row {row}, column {column}."
        )


def check_lengths(lengths, limit):
    """Refuses texts that the model cannot hold, and names them.

    Raises:
        ValueError: A text is longer than `limit`.
    """
    faults = [
        (
            row,
            "A text must not be longer than `max_position_embeddings`, "
            f"{limit}. Received: {lengths[row]} tokens in row {row}",
        )
        for row in np.flatnonzero(lengths > limit).tolist()
    ]
    if faults:
        rule = "No text must be longer than the model can read"
        raise RowErrors(faults, len(lengths), rule, "`max_length` cuts")


def without_lists(batch):
    """Turns lists into arrays; Keras takes a list for a list of tensors.

    Raises:
        ValueError: The rows of a list differ in length.
    """
    arrays = {}
    for name, value in batch.items():
        try:
            is_list = isinstance(value, list | tuple)
            arrays[name] = np.asarray(value) if is_list else value
        except ValueError as error:
            raise ValueError(
                f"`{name}` must have rows of one length. Received: a list of "
                f"{len(value)} rows that differ."
            ) from error
    return arrays
