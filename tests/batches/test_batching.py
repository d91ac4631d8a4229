"""Batches: what one may hold, and groups of rows of similar length."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.batches.batching import (
    BUCKETS,
    bucket_length,
    bucketed,
    check_batch,
    check_shape,
    take_rows,
)
from bertbook.config import BertConfig

B, S = 3, 7
CONFIG = BertConfig(
    vocab_size=101,
    hidden_size=10,
    num_attention_heads=2,
    max_position_embeddings=11,
    type_vocab_size=5,
)

random_tests = settings(max_examples=200, deadline=None, derandomize=True)


def draw_batch(lengths=(7, 2, 5), width=S):
    """Random rows, padded at the right with id 9."""
    rng = np.random.default_rng(0)
    real = np.arange(width) < np.array(lengths)[:, None]
    shape = real.shape
    ids = rng.integers(10, 101, shape)
    return {
        "input_ids": np.where(real, ids, 9).astype("int32"),
        "token_type_ids": (real * rng.integers(0, 5, shape)).astype("int32"),
        "attention_mask": real.astype("int32"),
    }


# Definition.


@random_tests
@given(st.integers(1, 512), st.integers(1, 600))
def test_bucket_length_by_loops(length, limit):
    if length > limit:
        with pytest.raises(ValueError, match="`length` must be at most"):
            bucket_length(length, limit)
        return
    expected = length
    while expected not in BUCKETS and expected < limit:
        expected += 1
    assert bucket_length(length, limit) == expected


def test_take_rows_by_loops():
    batch = draw_batch()
    taken = take_rows(batch, np.array([2, 1]), 6, 5, pad_token_id=9)
    for name, array in taken.items():
        assert array.shape == (5, 6)
        assert array.dtype == np.int32
        for row, number in enumerate([2, 1, 2, 2, 2]):
            for column in range(6):
                assert array[row, column] == batch[name][number, column]


def test_take_rows_pads():
    batch = draw_batch()
    taken = take_rows(batch, np.array([0]), 11, 2, pad_token_id=13)
    assert taken["input_ids"].shape == (2, 11)
    assert (taken["input_ids"][:, 7:] == 13).all()
    assert not taken["token_type_ids"][:, 7:].any()
    assert not taken["attention_mask"][:, 7:].any()


def test_a_good_batch_passes():
    batch = draw_batch()
    check_batch(batch, CONFIG)
    check_batch({"input_ids": batch["input_ids"]}, CONFIG)
    check_batch({**batch, "input_ids": batch["input_ids"].tolist()}, CONFIG)
    for dtype in ("bool", "float32", "uint8", "int64"):
        mask = batch["attention_mask"].astype(dtype)
        check_batch({**batch, "attention_mask": mask}, CONFIG)
    blocks = np.tril(np.ones((B, S, S), "int32"))
    check_batch({**batch, "attention_mask": blocks}, CONFIG)
    check_batch(draw_batch((11, 3), 11), CONFIG)  # as long as may be
    largest = np.full((2, 3), 100)
    check_batch({"input_ids": largest, "token_type_ids": largest % 5}, CONFIG)


def test_unknown_sizes_pass():
    check_shape((None, None), CONFIG)
    check_shape((None, 11), CONFIG)


# Property.


@random_tests
@given(st.lists(st.integers(1, 512), max_size=41), st.integers(1, 9))
def test_every_row_comes_once_and_fits(lengths, batch_size):
    seen, widths = [], []
    batches = list(bucketed(lengths, batch_size, 512))
    for rows, width in batches:
        longest = max(lengths[row] for row in rows)
        assert longest <= width == bucket_length(longest, 512)
        assert 1 <= len(rows) <= batch_size
        seen += rows.tolist()
        widths.append(width)
    assert sorted(seen) == list(range(len(lengths)))
    assert widths == sorted(widths)
    assert len(batches) == -(-len(lengths) // batch_size)
    assert [lengths[row] for row in seen] == sorted(lengths)


@random_tests
@given(st.lists(st.integers(1, 23), min_size=1, max_size=17), st.integers(1, 5))
def test_grouping_loses_no_token(lengths, batch_size):
    batch = draw_batch(lengths, max(lengths))
    for rows, width in bucketed(lengths, batch_size, 23):
        part = take_rows(batch, rows, width, batch_size, pad_token_id=9)
        for row, number in enumerate(rows):
            for name in batch:
                assert part[name].shape == (batch_size, width)
                real = slice(None, lengths[number])
                np.testing.assert_array_equal(
                    part[name][row, real], batch[name][number, real]
                )
            assert part["attention_mask"][row].sum() == lengths[number]


# Error.


def wrong(name, place, value):
    array = draw_batch()[name]
    array[place] = value
    return array


FLOATS = np.ones((B, S), "float32")
ADDITIVE = np.where(draw_batch()["attention_mask"], 0.0, -10_000.0)
BAD_BATCHES = {
    "rank 1": ({"input_ids": np.ones(S, int)}, "shape (B, S). Received: (7,)"),
    "rank 3": ({"input_ids": np.ones((2, 3, 5), int)},
        "shape (B, S). Received: (2, 3, 5)"),
    "no rows": ({"input_ids": np.ones((0, S), int)},
        "at least one token. Received: (0, 7)"),
    "no columns": ({"input_ids": np.ones((B, 0), int)},
        "at least one token. Received: (3, 0)"),
    "too long": ({"input_ids": np.ones((B, 12), int)},
        "`max_position_embeddings`, 11. Received: 12 tokens"),
    "floats": ({"input_ids": FLOATS}, "`input_ids` must hold integers. Receiv"),
    "booleans": ({"input_ids": FLOATS > 0},
        "`input_ids` must hold integers. Received: bool"),
    "strings": ({"input_ids": np.array([["a", "b"]])},
        "`input_ids` must hold integers. Received: <U1"),
    "an id above": ({"input_ids": wrong("input_ids", (2, 5), 101)},
        "`input_ids` must be in [0, 101), below `vocab_size`. Received: 101 "
        "in row 2, column 5"),
    "an id below": ({"input_ids": wrong("input_ids", (1, 4), -1)},
        "Received: -1 in row 1, column 4"),
    "segments of another shape": ({"token_type_ids": np.zeros((B, S + 1), int)},
        "`token_type_ids` must have the shape of `input_ids`, (3, 7). "
        "Received: (3, 8)"),
    "a segment above": ({"token_type_ids": wrong("token_type_ids", (0, 6), 5)},
        "`token_type_ids` must be in [0, 5), below `type_vocab_size`. "
        "Received: 5 in row 0, column 6"),
    "segments of floats": ({"token_type_ids": FLOATS},
        "`token_type_ids` must hold integers. Received: float32"),
    "a mask of another shape": ({"attention_mask": np.ones((S, B), int)},
        "`attention_mask` must have the shape of `input_ids`, (3, 7). "
        "Received: (7, 3)"),
    "a mask of another square": ({"attention_mask": np.ones((B, S, S + 1),
        int)}, "`attention_mask` must have shape (B, S) or (B, S, S) for "
        "`input_ids` of shape (3, 7). Received: (3, 7, 8)"),
    "a mask to be added": ({"attention_mask": ADDITIVE},
        "1 for a visible token and 0 for a hidden one. Received: -10000.0 at "
        "(1, 2)"),
    "a mask of lengths": ({"attention_mask": wrong("attention_mask", (2, 0),
        5)}, "Received: 5 at (2, 0)"),
    "a mask with a hole": ({"attention_mask": np.where(FLOATS, np.nan, 1)},
        "Received: nan at (0, 0)"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_a_bad_batch_is_refused(case):
    changes, message = BAD_BATCHES[case]
    batch = {**changes} if "input_ids" in changes else draw_batch() | changes
    with pytest.raises(ValueError, match="Received") as caught:
        check_batch(batch, CONFIG)
    assert message in str(caught.value)


def test_a_batch_without_ids_is_refused():
    batch = draw_batch()
    del batch["input_ids"]
    with pytest.raises(KeyError, match="must hold `input_ids`") as caught:
        check_batch(batch, CONFIG)
    assert "['attention_mask', 'token_type_ids']" in str(caught.value)


@pytest.mark.parametrize("batch_size", [0, -2, 1.5, None, "2"])
def test_a_batch_size_below_one_is_refused(batch_size):
    with pytest.raises(ValueError, match="`batch_size` must be an integer >="):
        list(bucketed([3, 5], batch_size, 11))


def test_a_row_above_the_limit_is_refused():
    with pytest.raises(ValueError, match="`limit`, 11. Received: 13"):
        list(bucketed([3, 13, 5], 2, 11))


def test_nothing_is_cut_off_in_silence():
    with pytest.raises(ValueError, match="`length` must hold every token"):
        take_rows(draw_batch(), np.array([1, 2]), 4, 3)
    taken = take_rows(draw_batch(), np.array([1]), 2, 3)  # its two tokens
    assert taken["attention_mask"].all()


@pytest.mark.parametrize("rows", [[], [0, 1, 2]])
def test_more_rows_than_the_batch_holds_are_refused(rows):
    with pytest.raises(ValueError, match="`rows` must hold 1 to `batch_size`"):
        take_rows(draw_batch(), np.array(rows, int), S, 2)
