"""What goes into `fit`: weights that sum to one, parts, padding, places."""

import numpy as np
import pytest

from bertbook.batches.batching import to_fit
from bertbook.batches.feeding import (
    Feed,
    feed_fit,
    pad_rows,
    to_steps,
    with_weights,
)
from bertbook.devices.sharing import Share
from bertbook.pretraining.stream import Position
from bertbook.runtime import keras, ops

B, S, M = 6, 7, 3


def draw_batch(seed=0, pairs=True):
    rng = np.random.default_rng(seed)
    batch = {
        "input_ids": rng.integers(5, 99, (B, S)).astype("int32"),
        "token_type_ids": np.zeros((B, S), "int32"),
        "attention_mask": np.ones((B, S), "int32"),
        "masked_lm_positions": rng.integers(0, S, (B, M)).astype("int32"),
        "masked_lm_ids": rng.integers(5, 99, (B, M)).astype("int32"),
        "masked_lm_weights": rng.integers(0, 2, (B, M)).astype("float32"),
    }
    if pairs:
        labels = rng.integers(0, 2, B).astype("int32")
        batch["next_sentence_labels"] = labels
    return batch


def test_to_fit_names_outputs_as_the_model_does():
    x, y, weights = to_fit(draw_batch())
    assert set(x) == {
        "input_ids",
        "token_type_ids",
        "attention_mask",
        "masked_lm_positions",
    }
    assert set(y) == set(weights) == {"mlm_logits", "nsp_logits"}
    assert weights["nsp_logits"].tolist() == [1.0] * B


def test_to_fit_gives_arrays_where_there_is_one_task():
    batch = draw_batch(pairs=False)
    _, y, weights = to_fit(batch)
    assert y is batch["masked_lm_ids"]
    assert weights is batch["masked_lm_weights"]


def test_to_fit_needs_labels():
    with pytest.raises(KeyError, match="labels"):
        to_fit({"input_ids": np.ones((2, 3), "int32")})


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_weights_sum_to_the_number_of_parts(parts):
    batch = with_weights(draw_batch())
    steps = list(to_steps(batch, parts))
    assert len(steps) == parts
    for name in ("mlm_logits", "nsp_logits"):
        total = sum(weights[name].sum() for _, _, weights in steps)
        assert total == pytest.approx(parts, rel=1e-6)
    rows = np.concatenate([x["input_ids"] for x, _, _ in steps])
    assert np.array_equal(rows, batch["input_ids"])


def test_single_texts_get_next_sentence_labels_of_weight_zero():
    batch = with_weights(draw_batch(pairs=False))
    ((_, y, weights),) = to_steps(batch)
    assert y["nsp_logits"].shape == (B,)
    assert weights["nsp_logits"].tolist() == [0.0] * B


def test_padding_rows_have_no_weight():
    batch = with_weights(draw_batch())
    padded = pad_rows(batch, 8)
    for name, array in padded.items():
        assert len(array) == 8
        assert array.dtype == batch[name].dtype
        assert np.array_equal(array[:B], batch[name])
    assert padded["masked_lm_weights"][B:].sum() == 0
    assert padded["next_sentence_weights"][B:].sum() == 0
    assert (padded["input_ids"][B:] == batch["input_ids"][0]).all()
    assert pad_rows(batch, B) is batch


@pytest.mark.parametrize("has_two", [False, True])
def test_batches_of_any_length_reach_fit_as_they_are(has_two):
    def batch_of(length):
        x = {"input_ids": np.full((2, length), length, "int32")}
        y = np.full(2, length, "int32")
        if has_two:
            return x, {"a": y, "b": y + 1}, {"a": y * 1.0, "b": y * 0.5}
        return x, y, y * 1.0

    lengths = [16, 24, 16, 512]
    batches = (batch_of(length) for length in lengths)
    data = feed_fit(batches)
    if keras.backend.backend() == "tensorflow":
        assert data.options().autotune.enabled is False
    received = list(data)
    assert len(received) == 4
    for batch, length in zip(received, lengths, strict=True):
        for array, other in zip(
            keras.tree.flatten(batch),
            keras.tree.flatten(batch_of(length)),
            strict=True,
        ):
            assert np.array_equal(ops.convert_to_numpy(array), other)


class Stream:
    """Numbers its batches, as a stream of examples does."""

    def batches(self, batch_size, start):
        for row in range(start.row, start.row + 50 * batch_size, batch_size):
            batch = draw_batch(row)
            cut = {name: array[:batch_size] for name, array in batch.items()}
            yield cut, Position(0, 0, row + batch_size)


def test_a_feed_knows_where_each_step_ended():
    feed = Feed(Stream(), batch_size=4, done=7, position=Position(0, 0, 28))
    batches = feed.batches()
    for step in (8, 9, 10):
        next(batches)
        assert feed.positions[step] == Position(0, 0, 4 * step)


def test_a_feed_goes_on_from_a_position():
    whole = Feed(Stream(), 4, 0, Position()).batches()
    expected = [next(whole) for _ in range(5)][3:]
    rest = Feed(Stream(), 4, 3, Position(0, 0, 12)).batches()
    for (x, _, _), (other, _, _) in zip(expected, rest, strict=False):
        assert np.array_equal(x["input_ids"], other["input_ids"])


def test_parts_split_evenly_over_devices():
    for parts, devices, rows in (
        (1, 1, 6),
        (2, 1, 3),
        (1, 4, 8),
        (3, 4, 4),
        (1, 2, 6),
    ):
        feed = Feed(Stream(), B, 0, Position(), parts, Share(devices))
        batches = feed.batches()
        steps = [next(batches) for _ in range(parts)]
        assert {len(x["input_ids"]) for x, _, _ in steps} == {rows}
        total = sum(weights["nsp_logits"].sum() for _, _, weights in steps)
        assert total == pytest.approx(parts)
