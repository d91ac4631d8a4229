"""Rows: batches by loops, every row once an epoch, weights that sum to 1."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.batches.ragged import Rows, compute, draw_batches, steps
from bertbook.runtime import compiles_shapes, keras

LIMIT = 37
random_tests = settings(max_examples=60, deadline=None, derandomize=True)
sizes = st.tuples(
    st.lists(st.integers(1, LIMIT), min_size=1, max_size=211),
    st.integers(1, 17),
    st.integers(0, 99),
)


def make_rows(lengths, choices=None, **options):
    """Rows whose ids tell which text they stand in."""
    return Rows(
        [np.full(n, 10 + i, "int32") for i, n in enumerate(lengths)],
        [np.arange(n) % 2 for n in lengths],
        choices,
        pad_token_id=3,
        **options,
    )


def tagged_rows():
    """Four rows of tokens, of which some count; in the third none."""
    labels = [[0, 5, 6, 0], [0, 7, 0], [0, 0], [0, 8, 9, 8, 0]]
    weights = [[0, 1, 1, 0], [0, 1, 0], [0, 0], [0, 1, 1, 1, 0]]
    arrays = [[np.array(row) for row in column] for column in (labels, weights)]
    return make_rows([4, 3, 2, 5], targets={"": arrays[0]}, weights=arrays[1])


class Adder:
    """Stands for a model: the sum of the ids and, for each token, its id."""

    config = SimpleNamespace(max_position_embeddings=LIMIT)
    compute_dtype = "float32"

    def __init__(self, jit_compile=True):
        self.shapes = []
        self.jit_compile = jit_compile

    def compute_on_batch(self, batch):
        ids = batch["input_ids"] * batch["attention_mask"]
        self.shapes.append(ids.shape)
        return {"sum": ids.sum(axis=-1), "ids": ids}


# Definition.


def test_a_batch_by_loops():
    rows = make_rows([2, 5, 3])
    batch = rows.inputs([2, 0], length=6, batch_size=3)
    for row, number in enumerate((2, 0, 2)):  # a copy of the first fills up
        for column in range(6):
            is_real = column < len(rows.input_ids[number])
            assert batch["attention_mask"][row, column] == is_real
            expected = (10 + number, column % 2) if is_real else (3, 0)
            assert batch["input_ids"][row, column] == expected[0]
            assert batch["token_type_ids"][row, column] == expected[1]
    assert {array.dtype for array in batch.values()} == {np.dtype("int32")}


def test_choices_of_a_row_stay_together():
    rows = make_rows([2, 5, 3, 4, 1, 1], choices=2)
    assert len(rows) == 3
    assert rows.lengths().tolist() == [5, 4, 1]
    batch = rows.inputs([2, 0], length=7, batch_size=3)
    assert batch["input_ids"].shape == (3, 2, 7)
    assert batch["input_ids"][..., 0].tolist() == [[14, 15], [10, 11], [14, 15]]
    lengths = batch["attention_mask"].sum(axis=-1)
    assert lengths.tolist() == [[1, 1], [2, 5], [1, 1]]


def test_a_step_by_hand():
    rows = make_rows([2, 5, 3], targets={"": [7, 8, 9]})
    x, y, weights = rows.step([2, 1], length=5, batch_size=4)
    assert x["input_ids"].shape == (4, 5)
    assert y.tolist() == [9, 8, 9, 9]
    assert weights.tolist() == [0.5, 0.5, 0, 0]
    assert weights.dtype == np.float32


def test_a_step_of_tokens_by_hand():
    _, y, weights = tagged_rows().step([0, 3], length=6, batch_size=3)
    assert y.tolist() == [
        [0, 5, 6, 0, 0, 0], [0, 8, 9, 8, 0, 0], [0, 5, 6, 0, 0, 0]
    ]  # fmt: skip
    np.testing.assert_allclose(
        weights * 5,
        [[0, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0] * 6],
        rtol=1e-6,
    )


def test_a_step_with_two_outputs():
    rows = make_rows([2, 5], targets={"start": [1, 2], "end": [3, 4]})
    _, y, weights = rows.step([0, 1], length=5, batch_size=2)
    assert {name: array.tolist() for name, array in y.items()} == {
        "start": [1, 2], "end": [3, 4]
    }  # fmt: skip
    for name in ("start", "end"):
        assert weights[name].tolist() == [0.25, 0.25]


def test_compute_gives_each_row_its_own():
    lengths = [3, 17, 1, 25, 17, 2, 8]
    model = Adder()
    found = compute(model, make_rows(lengths), batch_size=3)
    for number, length in enumerate(lengths):
        assert found[number]["sum"] == (10 + number) * length
        assert found[number]["sum"].dtype == np.float32
        assert found[number]["ids"][0] == 10 + number
    assert model.shapes == [(3, 16), (3, 24), (3, 32)]  # padded to buckets


def test_nothing_is_padded_that_need_not_be_where_shapes_are_free():
    lengths = [3, 17, 1, 25, 17, 2, 8]
    if keras.backend.backend() == "jax":  # compiles for every shape
        assert compiles_shapes(Adder(jit_compile=False))
        return
    model = Adder(jit_compile=False)
    assert not compiles_shapes(model)
    found = compute(model, make_rows(lengths), batch_size=3)
    for number, length in enumerate(lengths):
        assert found[number]["sum"] == (10 + number) * length
    assert model.shapes == [(3, 3), (3, 17), (1, 25)]


def test_compute_with_choices():
    rows = make_rows([3, 1, 2, 5, 4, 4], choices=2)
    found = compute(Adder(), rows)
    assert [f["sum"].tolist() for f in found] == [[30, 11], [24, 65], [56, 60]]


# Property.


@random_tests
@given(sizes)
def test_an_epoch_holds_every_row_once(case):
    lengths, batch_size, seed = np.array(case[0]), case[1], case[2]
    batches = draw_batches(lengths, batch_size, LIMIT, (seed, 0))
    seen = np.concatenate([numbers for numbers, _ in batches])
    assert sorted(seen.tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert sum(len(numbers) < batch_size for numbers, _ in batches) <= 1
    for numbers, length in batches:
        assert lengths[numbers].max() <= length <= LIMIT


@random_tests
@given(sizes)
def test_the_same_seed_gives_the_same_batches(case):
    lengths, batch_size, seed = np.array(case[0]), case[1], case[2]
    first, second = (
        draw_batches(lengths, batch_size, LIMIT, (seed, 2)) for _ in range(2)
    )
    for (a, size), (b, other) in zip(first, second, strict=True):
        assert a.tolist() == b.tolist()
        assert size == other


def test_seeds_and_epochs_have_orders_of_their_own():
    lengths = np.full(97, 5)
    orders = {
        tuple(np.concatenate([n for n, _ in batches]).tolist())
        for batches in (
            draw_batches(lengths, 8, LIMIT, pair)
            for pair in ((0, 0), (0, 1), (1, 0))
        )
    }
    assert len(orders) == 3


def test_steps_have_every_row_once_an_epoch_in_another_order():
    rows = make_rows([5] * 97, targets={"": list(range(97))})
    endless = steps(rows, 8, LIMIT, seed=0)
    orders = []
    for _ in range(3):
        epoch = itertools.islice(endless, 13)
        labels = np.concatenate([y[weights > 0] for _, y, weights in epoch])
        assert sorted(labels.tolist()) == list(range(97))
        orders.append(tuple(labels))
    assert len(set(orders)) == 3


def test_rows_of_similar_length_share_a_batch_but_not_all_are_sorted():
    lengths = np.random.default_rng(0).integers(1, LIMIT, 1_000)
    batches = draw_batches(lengths, 10, LIMIT, (0, 0))
    padded = sum(length * len(numbers) for numbers, length in batches)
    assert padded < 0.8 * 1_000 * LIMIT
    spreads = [np.ptp(lengths[numbers]) for numbers, _ in batches]
    assert 0 < np.median(spreads) < LIMIT / 4
    shortest = [int(lengths[numbers].min()) for numbers, length in batches]
    assert shortest != sorted(shortest)


@random_tests
@given(sizes, st.integers(0, 40))
def test_steps_go_on_where_they_stopped(case, done):
    lengths, batch_size, seed = case
    rows = make_rows(lengths, targets={"": list(range(len(lengths)))})
    whole = steps(rows, batch_size, LIMIT, seed)
    expected = itertools.islice(whole, done, done + 3)
    received = steps(rows, batch_size, LIMIT, seed, done)
    for (x, y, w), (other, labels, weights) in zip(
        expected, received, strict=False
    ):
        assert np.array_equal(x["input_ids"], other["input_ids"])
        assert np.array_equal(y, labels)
        assert np.array_equal(w, weights)


@random_tests
@given(sizes)
def test_weights_sum_to_1_and_their_sum_is_the_mean(case):
    lengths, batch_size, seed = case
    values = np.arange(len(lengths)) ** 2
    rows = make_rows(lengths, targets={"": values})
    count = -(-len(lengths) // batch_size)
    for x, y, weights in itertools.islice(
        steps(rows, batch_size, LIMIT, seed), count
    ):
        assert len(x["input_ids"]) == len(weights) == batch_size
        real = weights > 0
        assert weights.sum() == pytest.approx(1.0, abs=1e-6)
        assert (weights * y).sum() == pytest.approx(y[real].mean(), rel=1e-5)


def test_a_batch_of_which_no_token_counts_has_weight_0():
    _, _, weights = tagged_rows().step([2], length=2, batch_size=3)
    assert weights.sum() == 0
    _, _, weights = tagged_rows().step([2, 1], length=3, batch_size=2)
    assert weights.sum() == 1


def test_the_order_of_the_rows_and_the_batch_size_change_nothing():
    lengths = np.random.default_rng(0).integers(1, LIMIT, 41)
    expected = [f["sum"] for f in compute(Adder(), make_rows(lengths))]
    for batch_size in (1, 7, 41, 64):
        found = compute(Adder(), make_rows(lengths), batch_size)
        assert [f["sum"] for f in found] == expected
    order = np.random.default_rng(1).permutation(41)
    rows = make_rows(lengths)
    moved = Rows(
        [rows.input_ids[i] for i in order],
        [rows.token_type_ids[i] for i in order],
    )
    found = compute(Adder(), moved)
    assert [f["sum"] for f in found] == [expected[i] for i in order]


# Error.


@pytest.mark.parametrize("batch_size", [0, -1, 2.5])
def test_a_bad_batch_size_is_refused(batch_size):
    with pytest.raises(ValueError, match="`batch_size` must be an integer >="):
        compute(Adder(), make_rows([3, 2]), batch_size)


def test_a_row_longer_than_the_model_is_refused():
    with pytest.raises(ValueError, match=f"`limit`, {LIMIT}. Received: 38"):
        compute(Adder(), make_rows([3, 38]))
