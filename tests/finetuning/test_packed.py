"""Packed fine-tuning: the same texts, fewer rows, the same update."""

import itertools

import numpy as np
import pytest

from bertbook.batches.packed_rows import (
    LEAST_PLACES,
    packed_length,
    packed_step,
    packed_steps,
)
from bertbook.batches.ragged import Rows
from bertbook.devices.sharing import Share
from bertbook.finetuning.finetune import (
    FinetuningOptions,
    finetune,
    take_labels,
    task_of,
)
from bertbook.runtime import keras
from bertbook.tasks.base import Settings
from tests.helpers.tasks import TASKS, learn
from tests.helpers.toys import make

pytestmark = pytest.mark.usefixtures("quick_runs")
PACKED = {name: case for name, case in TASKS.items() if name != "a choice"}
LIMIT = 24  # of the small models
# Rows of one label, but for their segments.
LIKE_OTHERS = {"pairs": pytest.mark.slow}


def learner(name):
    """A model whose attention is far from even, and its task."""
    kind, options, data, _ = PACKED[name]
    model = make(kind, layers=2, **options)
    for weight in model.trainable_variables:
        if len(weight.shape) == 2:
            weight.assign(3 * weight)
    task = task_of(model)(model, data(), Settings())
    take_labels(model, task.data)
    task.learn()
    return model, task


def batch_of(name, rows):
    """Numbers of rows, and the length that they are padded to.

    A padded row of a question shares its probability with the padding, which a
    packed one has not. So those rows are all of the shortest length.
    """
    if name != "answers":
        return list(range(3, 14)), LIMIT
    lengths = rows.lengths()
    shortest = lengths.min()
    assert 2 * shortest <= LIMIT  # two share a row
    return np.flatnonzero(lengths == shortest).tolist(), int(shortest)


@pytest.mark.parametrize(
    ("name", "weighted"),
    [
        *(
            pytest.param(name, False, marks=LIKE_OTHERS.get(name, ()))
            for name in PACKED
        ),
        ("one label", True),
        ("tags", True),
    ],
)
def test_a_packed_batch_gives_the_same_loss_and_update(name, weighted):
    model, task = learner(name)
    numbers, length = batch_of(name, task.rows)
    if weighted:
        task.rows.row_weights = np.linspace(0.5, 1.5, len(task.rows))
    model.compile(keras.optimizers.SGD(0.1), task.loss(), run_eagerly=True)
    before, found = model.get_weights(), []
    for batch in (
        task.rows.step(numbers, length, len(numbers)),
        packed_step(task.rows, numbers, LIMIT, 4),
    ):
        model.set_weights(before)
        loss = float(np.ravel(model.train_on_batch(*batch))[0])
        found.append((loss, model.get_weights()))
    (loss, weights), (packed, others) = found
    assert packed == pytest.approx(loss, abs=1e-5)
    pairs = zip(before, weights, strict=True)
    moved = max(np.abs(a - b).max() for a, b in pairs)
    assert moved > 1e-3
    for first, second in zip(weights, others, strict=True):
        np.testing.assert_allclose(first, second, atol=2e-6)


def test_rows_are_fewer_and_empty_ones_fill_up():
    _, task = learner("one label")
    x, y, weights = packed_step(task.rows, range(24), LIMIT, 5)
    assert len(x["input_ids"]) % 5 == 0
    assert len(x["input_ids"]) < 24
    most = LIMIT // LEAST_PLACES
    assert y.shape == weights.shape == (len(x["input_ids"]), most)
    assert (weights > 0).sum() == 24
    assert weights.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("done", [0, 1, 4, 7])
def test_every_text_comes_once_an_epoch_and_steps_go_on(done):
    lengths = np.random.default_rng(0).integers(3, 40, 53)
    ids = [[i] * n for i, n in enumerate(lengths)]
    rows = Rows(ids, ids, targets={"": np.arange(53)})
    whole = list(itertools.islice(packed_steps(rows, 10, 512, 3), 12))
    for start in (0, 6):
        labels = [y[w > 0] for _, y, w in whole[start : start + 6]]
        assert sorted(np.concatenate(labels)) == list(range(53))
    first, second = whole[0][0]["input_ids"], whole[6][0]["input_ids"]
    assert not np.array_equal(first, second)
    rest = itertools.islice(packed_steps(rows, 10, 512, 3, done), 12 - done)
    for expected, received in zip(whole[done:], rest, strict=True):
        first, second = map(keras.tree.flatten, (expected, received))
        assert all(map(np.array_equal, first, second))


@pytest.mark.parametrize("groups", [1, 4])
def test_an_epoch_has_few_shapes(groups):
    random = np.random.default_rng(0)
    lengths = np.minimum(random.geometric(1 / 60, 4_000) + 3, 384)
    ids = [[0] * n for n in lengths]
    rows = Rows(ids, ids, targets={"": np.zeros(4_000, "int32")})
    endless = packed_steps(rows, 32, 512, 0, share=Share(groups))
    steps = list(itertools.islice(endless, 4_000 // 32))
    shapes = {tuple(array.shape for array in x.values()) for x, _, _ in steps}
    assert len(shapes) <= 11
    counts = [len(x["input_ids"]) for x, _, _ in steps]
    assert not any(count % groups for count in counts)
    places = sum(x["input_ids"].size for x, _, _ in steps)
    assert lengths.sum() / places > (0.75 if groups == 1 else 0.6)


@pytest.mark.parametrize(
    ("longest", "limit", "length"),
    [(10, 512, 128), (128, 512, 128), (129, 512, 192), (10, 64, 64),
     (384, 512, 384), (600, 1_024, 1_024)],
)  # fmt: skip
def test_a_row_is_as_long_as_the_longest_text_needs(longest, limit, length):
    assert packed_length(np.array([5, longest]), limit) == length


@pytest.mark.parametrize(
    "name",
    [
        "one label",
        pytest.param("answers", marks=pytest.mark.slow),
        pytest.param("tags", marks=pytest.mark.slow),
    ],
)
def test_a_task_is_learned_in_packed_rows(name):
    assert learn(name, packed=True)[1] > 0.99


def test_a_model_that_chooses_refuses_packed_rows():
    kind, options, data, _ = TASKS["a choice"]
    model = make(kind, **options)
    packed = FinetuningOptions(packed=True, verbose=False)
    with pytest.raises(ValueError, match="`packed` must be False"):
        finetune(model, data(), options=packed)
