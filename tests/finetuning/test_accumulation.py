"""Updates that are computed in parts: those of the whole batch."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.batches.feeding import in_parts
from bertbook.batches.ragged import Rows
from bertbook.runtime import keras
from tests.helpers.runs import killed_at_save, same, weights
from tests.helpers.tasks import TASKS
from tests.helpers.toys import make

pytestmark = pytest.mark.usefixtures("quick_runs")


def run(parts, name="one label", out=None, callbacks=None, **options):
    """Two epochs of batches of ten rows, the last of four."""
    kind, how, data, _ = TASKS[name]
    options = {"verbose": False, "checkpoint_steps": 2} | options
    model = make(kind, dropout=options.pop("dropout", 0.0), **how)
    data = data()
    if name == "one label":
        data["weight"] = [1, 3] * 12
    history = bb.finetune(
        model,
        data,
        epochs=2,
        learning_rate=1e-3,
        batch_size=10,
        out=out,
        options=bb.FinetuningOptions(accumulation_steps=parts, **options),
        callbacks=callbacks,
    )
    return model, history


def check_same(name, parts, atol=1e-6, **options):
    """Asserts that parts give the weights and the loss of whole batches."""
    whole, expected = run(1, name, **options)
    model, history = run(parts, name, **options)
    for one, other in zip(whole.weights, model.weights, strict=True):
        if name == "a choice" and one.path.endswith("classifier/bias"):
            continue  # it shifts all choices alike: no loss depends on it
        one, other = one.numpy(), other.numpy()
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    assert history["step"] == expected["step"]
    # Keras weighs the batches by their rows, of which packing has others.
    rel = 1e-2 if options.get("packed") else 1e-4
    assert history["loss"] == pytest.approx(expected["loss"], rel=rel)


@pytest.mark.any_backend
def test_parts_give_the_weights_of_the_whole_batch():
    check_same("one label", 5, clip_norm=0.01)


@pytest.mark.any_backend
def test_parts_of_packed_rows_do_too():
    check_same("tags", 2, packed=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_parts_of_every_task_do_too(name):
    # Adam makes steps of gradients that are 0 but for rounding.
    check_same(name, 2, atol=1e-5)


def test_a_run_in_parts_resumes_exactly(tmp_path):
    whole = run(2, out=tmp_path / "whole", dropout=0.1)
    with killed_at_save(2):
        run(2, out=tmp_path / "killed", dropout=0.1)
    again = run(2, out=tmp_path / "killed", dropout=0.1)
    assert same(whole[0].get_weights(), again[0].get_weights())
    assert again[1]["loss"] == whole[1]["loss"]
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    with pytest.raises(ValueError, match="accumulation_steps` was 2, now 5"):
        run(5, out=tmp_path / "whole", dropout=0.1)


def test_callbacks_see_updates_and_may_stop_at_the_first():
    class Witness(keras.callbacks.Callback):
        calls = []

        def on_train_batch_begin(self, batch, logs=None):
            self.calls.append(("begin", batch))

        def on_train_batch_end(self, batch, logs=None):
            self.calls.append(("end", batch))
            self.model.stop_training = True

    _, history = run(5, callbacks=Witness())
    assert Witness.calls == [("begin", 0), ("end", 0)]
    assert history["step"] == [1]


def test_the_parts_of_a_batch_hold_its_rows_and_weights():
    ids = [np.array([i] * (i + 1)) for i in range(5)]
    rows = Rows(ids, ids, targets={"": np.arange(5)})
    batch = rows.step([0, 1, 2, 3, 4], 8, 6)  # one row fills up
    parts = list(in_parts([batch, batch], 3))
    assert len(parts) == 6
    assert [y.tolist() for _, y, _ in parts[:3]] == [[0, 1], [2, 3], [4, 0]]
    found = np.concatenate([w for _, _, w in parts[:3]])
    assert found.tolist() == pytest.approx([0.6] * 5 + [0])
    for name, array in batch[0].items():
        joined = np.concatenate([x[name] for x, _, _ in parts[3:]])
        np.testing.assert_array_equal(joined, array)


def test_rows_must_split_evenly():
    with pytest.raises(ValueError, match="multiple of `accumulation_steps`"):
        run(4)
