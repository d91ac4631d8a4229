"""Callbacks of Keras in a run: what they see, and what they may do."""

import csv
import math

import pytest

import bertbook as bb
from bertbook.finetuning.callbacks import check_callbacks, check_monitored
from bertbook.runtime import keras
from tests.helpers.runs import killed_at_save, same
from tests.helpers.toys import make

pytestmark = pytest.mark.usefixtures("quick_runs")
QUIET = bb.FinetuningOptions(verbose=False)
DATA = {
    "text": [f"{'abcd'[i % 4]} {'yn'[i % 2]}" for i in range(16)],
    "label": [0, 1] * 8,
}


class Witness(keras.callbacks.Callback):
    """Writes every call down, and stops where it is told to."""

    def __init__(self, stop=None):
        super().__init__()
        self.calls = []
        self.stop = stop

    def note(self, *call):
        self.calls.append(call)
        if call[:2] == self.stop:
            self.model.stop_training = True

    def on_train_begin(self, logs=None):
        self.note("begin", self.params["epochs"], self.params["steps"])

    def on_epoch_begin(self, epoch, logs=None):
        self.note("epoch", epoch)

    def on_train_batch_end(self, batch, logs=None):
        assert math.isfinite(logs["loss"])
        logs.clear()  # the others have logs of their own
        self.note("step", batch)

    def on_epoch_end(self, epoch, logs=None):
        self.note("end of epoch", epoch, sorted(logs))

    def on_train_end(self, logs=None):
        self.note("end")


def run(callbacks=None, dev=DATA, out=None, model=None, epochs=2, **options):
    """Epochs of three steps, two of them."""
    model = model or make("BertForSequenceClassification", dropout=0.1)
    options = {"verbose": False, "checkpoint_steps": 2} | options
    history = bb.finetune(
        model,
        DATA,
        dev,
        epochs=epochs,
        learning_rate=1e-2,
        batch_size=6,
        out=out,
        options=bb.FinetuningOptions(**options),
        callbacks=callbacks,
    )
    return model, history


@pytest.fixture(scope="module")
def plain(quick_runs):
    return run()


def test_callbacks_see_epochs_and_steps_and_change_nothing(plain, tmp_path):
    """Those of Keras do their work beside them."""
    witness, seen = Witness(), []
    model = make("BertForSequenceClassification", dropout=0.1)
    callbacks = [
        witness,
        Witness(),
        keras.callbacks.EarlyStopping("val_accuracy", baseline=2.0, patience=9),
        keras.callbacks.EarlyStopping("val_loss", patience=9),
        keras.callbacks.ModelCheckpoint(
            str(tmp_path / "{epoch}.weights.h5"), save_weights_only=True
        ),
        keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append(epoch)
        ),
    ]
    _, history = run(callbacks, model=model)
    names = ["accuracy", "f1", "loss", "matthews"]
    aliases = [f"val_{name}" for name in names]
    logs = [*(f"dev_{name}" for name in names), "loss", *aliases]
    epochs = [
        [("epoch", epoch)]
        + [("step", step) for step in range(3)]
        + [("end of epoch", epoch, logs)]
        for epoch in range(2)
    ]
    assert witness.calls == [
        ("begin", 2, 3),
        *epochs[0],
        *epochs[1],
        ("end",),
    ]
    assert witness.model is model
    assert history["loss"] == plain[1]["loss"]
    assert same(model.get_weights(), plain[0].get_weights())
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["1.weights.h5", "2.weights.h5", "log.csv"]
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["epoch", "0", "1"]
    with open(tmp_path / "log.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["epoch", *logs]  # and nothing beside
    for name in names:
        found = [float(row[f"val_{name}"]) for row in table]
        assert found == history[f"dev_{name}"]
    assert callbacks[2].best == max(history["dev_accuracy"])
    assert callbacks[3].best == min(history["dev_loss"])
    assert seen == [0, 1]


def test_a_callback_stops_a_run_which_ends_whole(tmp_path):
    model, history = run(Witness(stop=("step", 1)), out=tmp_path)
    assert history["step"] == [2]
    assert math.isfinite(history["dev_accuracy"][0])
    loaded = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    assert same(model.get_weights(), loaded.get_weights())
    witness = Witness()
    assert run(witness, out=tmp_path)[1] == history  # it is finished
    assert not witness.calls
    names, row = (tmp_path / "log.csv").read_text().splitlines()
    assert (
        dict(zip(names.split(","), row.split(","), strict=True))["step"] == "2"
    )


@pytest.mark.any_backend
def test_a_stop_is_remembered_where_the_run_resumes(tmp_path, monkeypatch):
    from bertbook.finetuning import run as task_runs

    with monkeypatch.context() as patch:
        patch.setattr(task_runs.Run, "_keep_best", lambda run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(Witness(stop=("step", 0)), out=tmp_path)
    witness = Witness()
    assert run(witness, out=tmp_path)[1]["step"] == [1]
    assert not witness.calls


@pytest.mark.any_backend
def test_epochs_are_counted_on_where_a_run_resumes(tmp_path):
    class Breakdown(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Breakdown(), out=tmp_path)
    witness = Witness()
    run(witness, out=tmp_path)
    first = [call[:2] for call in witness.calls[:4]]
    assert first == [
        ("begin", 2),
        ("epoch", 0),
        ("step", 2),
        ("end of epoch", 0),
    ]


@pytest.mark.any_backend
def test_a_run_that_stops_for_nan_is_no_finished_run(tmp_path):
    model = make("BertForSequenceClassification")
    before = model.get_weights()
    with pytest.raises(ValueError, match="The loss is nan at step"):
        bb.finetune(
            model,
            DATA,
            epochs=1,
            learning_rate=1e30,
            batch_size=4,
            out=tmp_path,
            options=QUIET,
            callbacks=keras.callbacks.TerminateOnNaN(),
        )
    assert same(model.get_weights(), before)
    assert not (tmp_path / "model.safetensors").exists()


# Error.


@pytest.mark.parametrize(
    ("make_callbacks", "message"),
    [
        (lambda: "csv", "`callbacks` must be a list .*: 'csv'"),
        (lambda: {}, "`callbacks` must be a list"),
        (lambda: [print], r"`callbacks\[0\]` must be a callback of Keras"),
        (
            lambda: [Witness(), keras.callbacks.CSVLogger],
            r"`callbacks\[1\]` must be a callback of Keras",
        ),
        (
            lambda: [keras.callbacks.LearningRateScheduler(lambda epoch: 1.0)],
            r"`callbacks\[0\]` must not be a LearningRateScheduler: the rate",
        ),
        (
            lambda: [keras.callbacks.BackupAndRestore("x")],
            "must not be a BackupAndRestore: with `out` the same call resumes",
        ),
    ],
)
def test_bad_callbacks_are_refused(make_callbacks, message):
    with pytest.raises(ValueError, match=message):
        check_callbacks(make_callbacks())


class Rates(keras.callbacks.Callback):
    """Notes the rate after each step."""

    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_end(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


def plateau():
    """Lowers the rate after the second epoch: no loss gets lower by 9."""
    return keras.callbacks.ReduceLROnPlateau(
        "val_loss", factor=0.25, patience=1, min_delta=9
    )


@pytest.mark.any_backend
def test_a_plateau_lowers_what_is_left_of_the_schedule():
    plain, lowered = Rates(), Rates()
    before = run(plain, epochs=3)[1]["dev_loss"]
    after = run([plateau(), lowered], epochs=3)[1]["dev_loss"]
    expected = plain.rates[:6] + [rate / 4 for rate in plain.rates[6:]]
    assert lowered.rates == pytest.approx(expected)
    assert before[:2] == after[:2]
    assert before[2] != after[2]


@pytest.mark.any_backend
def test_a_lowered_rate_is_kept_where_a_run_resumes(tmp_path):
    whole, resumed = Rates(), Rates()
    model = run([plateau(), whole], epochs=3)[0]
    with killed_at_save(4):  # after the eighth step
        run([plateau()], epochs=3, out=tmp_path)
    again = run([plateau(), resumed], epochs=3, out=tmp_path)[0]
    assert resumed.rates == pytest.approx(whole.rates[8:])
    assert same(model.get_weights(), again.get_weights())


def test_a_missing_tensorboard_is_said_before_the_run(monkeypatch, tmp_path):
    board = keras.callbacks.TensorBoard(str(tmp_path / "logs"))
    for spec in (None, object()):
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name, spec=spec: spec
        )
        if spec is not None:
            assert check_callbacks(board) == [board]
            continue
        with pytest.raises(
            ImportError, match=r"`callbacks\[0\]` .*`pip install tensorboard`"
        ):
            run(board)


def test_a_callback_that_would_wait_for_nothing_is_refused():
    names = {"loss": "min", "dev_accuracy": "max", "dev_mine": None}
    for name in ("EarlyStopping", "ModelCheckpoint"):
        kind = getattr(keras.callbacks, name)
        more = {} if name == "EarlyStopping" else {"save_best_only": True}
        first = () if name == "EarlyStopping" else ("x.weights.h5",)
        more |= {} if name == "EarlyStopping" else {"save_weights_only": True}
        callback = kind(*first, **more)  # it looks at val_loss
        with pytest.raises(
            ValueError, match="one of loss, dev_acc.*'val_loss'"
        ):
            check_monitored([callback], names)
        callback = kind(*first, monitor="dev_mine", **more)
        with pytest.raises(ValueError, match="must say `mode='max'`"):
            check_monitored([callback], names)
        callback = kind(*first, monitor="dev_accuracy", **more)
        check_monitored([callback], names)
        assert callback.mode == "max"
        callback = kind(*first, monitor="dev_mine", mode="min", **more)
        check_monitored([callback, kind(*first, monitor="loss", **more)], names)
    every = keras.callbacks.ModelCheckpoint("x.keras")  # looks at nothing
    check_monitored([every], names)
