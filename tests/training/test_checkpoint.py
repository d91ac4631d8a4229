"""Checkpoints and logs: whole and exact, or refused."""

import contextlib
import math
import shutil

import numpy as np
import pytest
import safetensors.numpy

from bertbook.files import read_json
from bertbook.runtime import keras, ops
from bertbook.training import checkpoint
from bertbook.training import monitor as training_monitor
from tests.helpers.kills import Killed, stop_after
from tests.helpers.runs import same


@pytest.fixture
def model():
    return make_model()


def make_model(width=3):
    """A model with dropout, so with a random state, compiled and trained."""
    model = keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(width),
            keras.layers.Dropout(0.5, seed=1),
            keras.layers.Dense(1),
        ]
    )
    model.compile(
        keras.optimizers.AdamW(0.1), "mse", metrics=["mae"], run_eagerly=True
    )
    model.optimizer.build(model.trainable_variables)
    return model


def train(model, steps):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 5)), rng.normal(size=(4, 1))
    for _ in range(steps):
        model.train_on_batch(x, y)


def values(model):
    return [
        ops.convert_to_numpy(v)
        for v in (*model.variables, *model.optimizer.variables)
        if not any(v is m for m in model.metrics_variables)
    ]


def test_a_model_goes_on_as_if_it_had_never_stopped(model, tmp_path):
    train(model, 2)
    checkpoint.save_checkpoint(tmp_path, 2, model, [0, 1, 2])
    train(model, 3)
    other = make_model()
    assert checkpoint.load_checkpoint(tmp_path, other) == (2, [0, 1, 2])
    train(other, 3)
    assert same(values(model), values(other))


def test_a_checkpoint_holds_seed_states_and_no_metrics(model, tmp_path):
    train(model, 2)
    checkpoint.save_checkpoint(tmp_path, 2, model, None)
    (path,) = tmp_path.glob("*.safetensors")
    names = safetensors.numpy.load_file(path)
    assert any("seed" in name for name in names)
    assert not any("mae" in name for name in names)  # metrics start anew


def test_the_last_two_are_kept(model, tmp_path):
    for step in (1, 5, 30):
        checkpoint.save_checkpoint(tmp_path, step, model, None)
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == [
        "checkpoint-00000005.safetensors",
        "checkpoint-00000030.safetensors",
    ]


def test_loading_from_a_missing_folder_gives_none(model, tmp_path):
    assert checkpoint.load_checkpoint(tmp_path / "none", model) is None


def test_checkpoints_that_are_all_damaged_are_an_error(model, tmp_path):
    checkpoint.save_checkpoint(tmp_path, 1, model, None)
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(ValueError, match="Every checkpoint in"),
    ):
        checkpoint.load_checkpoint(tmp_path, model)


def test_a_checkpoint_of_another_model_is_refused(model, tmp_path):
    checkpoint.save_checkpoint(tmp_path, 1, model, None)
    with pytest.raises(ValueError, match="another model or optimizer"):
        checkpoint.load_checkpoint(tmp_path, make_model(width=4))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_leaves_the_older_checkpoints(model, tmp_path, monkeypatch):
    checkpoint.save_checkpoint(tmp_path, 1, model, "first")

    def fail(tensors, path, metadata):
        path.write_bytes(b"some")
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="No space left on device"):
        checkpoint.save_checkpoint(tmp_path, 2, model, "second")
    assert [p.name for p in tmp_path.iterdir()] == [
        "checkpoint-00000001.safetensors"
    ]
    assert checkpoint.load_checkpoint(tmp_path, model) == (1, "first")


def rewrite(path, metadata=None, **changed):
    """Writes a checkpoint anew, as another tool or another run would."""
    arrays = safetensors.numpy.load_file(path)
    for name in arrays:
        if name.partition("/")[0] in changed:
            arrays[name] = changed[name.partition("/")[0]](arrays[name])
    safetensors.numpy.save_file(arrays, path, metadata=metadata)


def broken(array):
    """Returns an array with one number that is none, where it has floats."""
    array = np.array(array)
    if array.dtype.kind == "f":
        array.flat[-1] = np.nan
    return array


def larger(array):
    """Returns an array with one number that is another."""
    array = np.array(array)
    array.flat[0] += 1
    return array


WHOLE = {"metadata": {"step": "2", "state": "[]"}}


def test_a_damaged_checkpoint_is_named_and_the_one_before_taken(
    model, tmp_path
):
    checkpoint.save_checkpoint(tmp_path, 1, model, ["first"])
    expected = values(model)
    train(model, 1)
    checkpoint.save_checkpoint(tmp_path, 2, model, ["second"])
    path = tmp_path / "checkpoint-00000002.safetensors"
    whole = path.read_bytes()
    with safetensors.safe_open(path, "numpy") as file:
        saved = file.metadata()["sha256"]

    def check(message):
        other = make_model()
        told = f"00000002.*is damaged.*{message}"
        with pytest.warns(UserWarning, match=told):
            done = checkpoint.load_checkpoint(
                tmp_path, other, lambda state: isinstance(state, list)
            )
        assert done == (1, ["first"])
        assert same(expected, values(other))

    for size in (0, 7, len(whole) // 2, int(0.999 * len(whole))):
        path.write_bytes(whole[:size])
        check("")
    for change, message in (
        ({}, "does not tell its step"),
        ({"metadata": {"step": "2"}}, "does not tell its step and its state"),
        ({"metadata": {"state": "[]"}}, "does not tell its step and its state"),
        ({"metadata": {"step": "two", "state": "[]"}}, "of step 'two'"),
        ({"metadata": {"step": "-2", "state": "[]"}}, "of step '-2'"),
        ({"metadata": {"step": "7", "state": "[]"}}, "of step '7'"),
        ({"metadata": {"step": "2", "state": "{"}}, "Expecting property"),
        ({"metadata": {"step": "2", "state": "["}}, "Expecting value"),
        ({"metadata": {"step": "2", "state": "[" * 10**5}}, "too deep"),
        ({"metadata": {"step": "2", "state": "4"}}, "of another kind: 4"),
        (WHOLE | {"model": broken}, "is not finite"),
        (WHOLE | {"optimizer": broken}, "is not finite"),
        (
            {
                "metadata": WHOLE["metadata"] | {"sha256": saved},
                "model": larger,
            },
            "not those that were saved",
        ),
    ):
        path.write_bytes(whole)
        rewrite(path, **change)
        check(message)


def test_numbers_that_are_not_finite_are_not_kept(model):
    checkpoint.check_finite(model, 3)
    for owner in (model, model.optimizer):
        variable = [v for v in owner.variables if "float" in v.dtype][-1]
        for number in (np.nan, np.inf, -np.inf):
            variable.assign(np.full(variable.shape, number, "float32"))
            with pytest.raises(
                ValueError, match="weights are not finite after step 3"
            ):
                checkpoint.check_finite(model, 3)
        variable.assign(np.zeros(variable.shape, "float32"))


def test_weights_too_large_for_an_answer_are_not_kept(model):
    model.set_weights([1e30 * np.ones(w.shape) for w in model.get_weights()])
    x = np.full((1, 5), 1e9, "float32")
    checkpoint.check_finite(model, 3)  # each of them is a number
    with pytest.raises(ValueError, match="outputs are not finite after step 3"):
        checkpoint.check_finite(model, 3, lambda: model(x, training=False))


OF_A_USER = (
    "checkpoint-00000000.backup.safetensors",
    "checkpoint-best.safetensors",
    "checkpoint-0.safetensors",
    "checkpoint-00000009.part",
    "weights-mine.safetensors",
    "weights-00000000.safetensors.old",
    "weights-00000009-best.safetensors",
)


def test_files_of_a_user_are_neither_taken_nor_removed(model, tmp_path):
    for name in OF_A_USER:
        (tmp_path / name).write_bytes(b"mine")
    for step in (1, 10**8 - 1, 10**8):
        checkpoint.save_checkpoint(tmp_path, step, model, f"{step}")
        checkpoint.keep_weights(tmp_path, step, model, 2)
    assert checkpoint.load_checkpoint(tmp_path, model) == (10**8, f"{10**8}")
    checkpoint.restore_kept(tmp_path, 10**8 - 1, [10**8 - 1])
    checkpoint.average_weights(tmp_path, model)
    assert {path.name for path in tmp_path.iterdir()} == {
        *OF_A_USER,
        f"checkpoint-{10**8 - 1}.safetensors",
        f"checkpoint-{10**8}.safetensors",
        f"weights-{10**8 - 1}.safetensors",
        "hashes.json",
    }


# Weights alone.


def test_weights_alone_make_the_round_trip(model, tmp_path):
    path = tmp_path / "best.safetensors"
    train(model, 2)
    expected = [np.array(w) for w in model.get_weights()]
    checkpoint.save_weights(path, model)
    train(model, 1)
    checkpoint.save_weights(tmp_path / "other.safetensors", model)
    checkpoint.load_weights(path, model)
    assert same(expected, model.get_weights())
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["best.safetensors", "other.safetensors"]


def test_weights_of_another_model_are_refused(model, tmp_path):
    path = tmp_path / "best.safetensors"
    checkpoint.save_weights(path, make_model(width=4))
    with pytest.raises(ValueError, match="best.*the weights of another model"):
        checkpoint.load_weights(path, model)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="best.safetensors is damaged"):
        checkpoint.check_weights(path, model)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="best.safetensors.* missing"):
        checkpoint.check_weights(path, model)


def test_weights_are_known_by_their_hash_wherever_a_process_ends(
    model, tmp_path, monkeypatch
):
    path, hashes = tmp_path / "best.safetensors", tmp_path / "x" / "h.json"
    for count in range(100):
        with monkeypatch.context() as patch:
            left = stop_after(patch, count % 9)  # the same step is done again
            with contextlib.suppress(Killed):
                checkpoint.save_weights(path, model, hashes)
        if path.is_file():
            checkpoint.check_weights(path, model, hashes)
        if left[0] > 0:
            train(model, 1)
            seen = path.read_bytes()
            if count > 50:
                break
    assert len(read_json(hashes)["best.safetensors"]) <= 3
    checkpoint.save_weights(tmp_path / "other", model)
    assert (tmp_path / "other").read_bytes() != seen
    shutil.copy(tmp_path / "other", path)
    with pytest.raises(ValueError, match="must hold the weights that the run"):
        checkpoint.check_weights(path, model, hashes)
    hashes.write_text('{"best.safetensors": 3}', "utf-8")
    with pytest.raises(ValueError, match="lists of hashes.*Remove the file"):
        checkpoint.check_weights(path, model, hashes)
    hashes.unlink()
    checkpoint.check_weights(path, model, hashes)


def test_weights_to_average_that_have_changed_are_refused(model, tmp_path):
    for step in (1, 2):
        checkpoint.keep_weights(tmp_path, step, model, 2)
        train(model, 1)
    checkpoint.restore_kept(tmp_path, 2, [1, 2])
    checkpoint.save_weights(tmp_path / "weights-00000001.safetensors", model)
    with pytest.raises(ValueError, match="00001.safetensors must hold the"):
        checkpoint.restore_kept(tmp_path, 2, [1, 2])


def test_more_than_ten_weights_keep_their_order(tmp_path):
    layers = [keras.layers.Dense(3, name=f"dense_{i}") for i in range(7)]
    model = keras.Sequential([keras.Input((3,)), *layers])
    expected = [np.array(w) for w in model.get_weights()]
    checkpoint.save_weights(tmp_path / "w.safetensors", model)
    model.set_weights([w + 1 for w in expected])
    checkpoint.load_weights(tmp_path / "w.safetensors", model)
    assert same(expected, model.get_weights())


def test_a_full_disk_leaves_the_older_weights(model, tmp_path, monkeypatch):
    path = tmp_path / "best.safetensors"
    checkpoint.save_weights(path, model)
    before = path.read_bytes()

    def fail(tensors, path):
        path.write_bytes(b"some")
        raise safetensors.SafetensorError("No space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="could not be written: No space left"):
        checkpoint.save_weights(path, model)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# Logs.


def test_a_log_forgets_what_will_be_done_again(tmp_path):
    path = tmp_path / "log.csv"
    log = training_monitor.Log(path)
    for step in (10, 20, 30):
        log.add({"step": step, "loss": 1.0 / step})
    log = training_monitor.Log(path, done=20)
    log.add({"step": 30, "loss": 0.5, "held_out": 0.25})
    lines = path.read_text().splitlines()
    assert lines == [
        "step,loss,held_out",
        "10,0.1,",
        "20,0.05,",
        "30,0.5,0.25",
    ]


def test_a_log_that_a_spreadsheet_saved_is_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("\ufeffstep,loss\n10,0.5\n", encoding="utf-8")
    assert training_monitor.Log(path, 10).rows == [
        {"step": "10", "loss": "0.5"}
    ]


def test_an_empty_log_has_no_rows(tmp_path):
    for content in (b"", b"\r\n"):
        (tmp_path / "log.csv").write_bytes(content)
        assert training_monitor.Log(tmp_path / "log.csv", 3).rows == []


def test_a_damaged_log_is_named_and_left(tmp_path):
    path = tmp_path / "log.csv"
    for content, message in (
        (b"step,loss\n1,\xff\n", "must be a CSV file in UTF-8"),
        ("step,loss\n1,0.5\n".encode("utf-16"), "must be a CSV file in UTF-8"),
        (b'step,loss\n1,"0.5\n', "must be a CSV file"),
        (b"loss,epoch\n1,0.5\n", "a column `step`"),
        (b"step,loss,loss\n1,0.5,1\n", "each name once"),
        (b"step,loss\none,0.5\n", "in line 2"),
        (b"step,loss\n1,0.5\n-2,0.5\n", "in line 3"),
        (b"step,loss\n1.5,0.5\n", "in line 2"),
        (b"step,loss\n1\n", "in line 2"),
        (b"step,loss\n1,0.5,7\n", "in line 2"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"log.csv .*{message}"):
            training_monitor.Log(path, 9)
        assert path.read_bytes() == content


def monitor_of(tasks, total=6, accumulation=1):
    monitor = training_monitor.Monitor(
        total, 0, 1, {"loss": "loss"}, tasks, accumulation, verbose=False
    )
    monitor.set_model(make_model())
    monitor.on_train_begin()
    return monitor


@pytest.mark.parametrize("accumulation", [1, 3])
def test_tasks_are_called_when_they_are_due(accumulation):
    called = []
    tasks = [
        (2, lambda row: called.append(("two", row["step"]))),
        (None, lambda row: called.append(("every", row["step"]))),
        (5, lambda row: called.append(("five", row["step"]))),
    ]
    monitor = monitor_of(tasks, accumulation=accumulation)
    for batch in range(6 * accumulation):
        monitor.on_train_batch_end(batch, {"loss": 0.5})
    assert called == [
        ("two", 2), ("every", 2), ("two", 4), ("every", 4), ("every", 5),
        ("five", 5), ("two", 6), ("every", 6), ("five", 6),
    ]  # fmt: skip


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run(loss):
    monitor = monitor_of([(1, lambda row: None)])
    with pytest.raises(ValueError, match="The loss is .* at step 1"):
        monitor.on_train_batch_end(0, {"loss": loss})


def test_a_row_is_printed_with_the_time_that_is_left(capsys):
    monitor = monitor_of([(3, lambda row: None)])
    monitor.verbose = True
    for batch in range(3):
        monitor.on_train_batch_end(batch, {"loss": 0.5})
    printed = capsys.readouterr().out
    assert "3/6" in printed
    assert "loss 0.500" in printed
    assert "tokens/s" in printed
    assert "left" in printed


def test_the_speed_is_of_what_is_counted():
    rows = []
    monitor = training_monitor.Monitor(
        3, 0, 8, {"loss": "loss"}, [(3, rows.append)], verbose=False,
        unit="rows",
    )  # fmt: skip
    monitor.set_model(make_model())
    monitor.on_train_begin()
    for batch in range(3):
        monitor.on_train_batch_end(batch, {"loss": 0.5})
    assert set(rows[0]) == {"step", "loss", "rows_per_second"}


def test_a_run_ends_when_its_time_is_over(monkeypatch):
    now, called = [100.0], []
    monkeypatch.setattr(training_monitor.time, "perf_counter", lambda: now[0])
    monitor = training_monitor.Monitor(
        9, 0, 1, {"loss": "loss"}, [(4, called.append)], verbose=False,
        seconds=50.0, spent=20.0,
    )  # fmt: skip
    monitor.set_model(make_model())
    monitor.model.stop_training = False
    monitor.on_train_begin()
    for batch, seconds in enumerate((10.0, 30.0, 30.5)):
        now[0] = 100.0 + seconds
        monitor.on_train_batch_end(batch, {"loss": 0.5})
        assert monitor.seconds_spent() == 20.0 + seconds
        late = seconds > 30
        assert monitor.is_last == late
        assert monitor.model.stop_training == late
    assert [row["step"] for row in called] == [3]  # though not due
