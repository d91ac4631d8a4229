"""Habits of Keras that every model keeps: scopes, processes."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from bertbook.weights.pretrained import assign_arrays, named_tensors
from tests.helpers.every_model import CLASSES, draw_batch, make, outputs_of
from tests.helpers.toys import TOY

KIND = "BertForSequenceClassification"
LABELS = np.array([0, 1, 1, 0])
# Trains a model on two processors that are one, and prints what it computes.
REPLICAS = """
import sys
import numpy as np
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
import bertbook as bb
from bertbook.runtime import keras
from bertbook.weights.pretrained import assign_arrays, named_tensors
from tests.helpers.every_model import draw, draw_batch
from tests.helpers.toys import toy_config
count = int(sys.argv[1])
strategy = tf.distribute.MirroredStrategy(
    [f"CPU:{number}" for number in range(count)]
)
assert strategy.num_replicas_in_sync == count
with strategy.scope():
    config = toy_config(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    model = draw(bb.BertForSequenceClassification(config))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss=loss, jit_compile=False)
before = model(draw_batch(model, rows=4))
batch, labels = draw_batch(model, rows=4), np.array([0, 1, 1, 0])
data = tf.data.Dataset.from_tensor_slices((batch, labels)).batch(4)
model.fit(data, epochs=2, verbose=0)
after = model.predict(data, verbose=0)
assert np.abs(after - before).max() > 0.01
np.save(sys.argv[2], after)
"""


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="`tf.distribute` alone"
)
def test_fit_works_outside_of_the_scope_that_a_model_was_made_in():
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = make("BertForSequenceClassification")
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss=loss, jit_compile=False)
    history = model.fit(draw_batch(model), np.array([0, 1]), verbose=0)
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system never forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of JAX
@pytest.mark.parametrize("what", ["call", "compute", "make"])
def test_a_forked_process_is_refused_and_does_not_wait(what):
    model = make("BertForMultipleChoice")
    batch = draw_batch(model)
    functions = {
        "call": lambda: model(batch),
        "compute": lambda: model.compute_on_batch(batch),
        "make": lambda: type(model)(model.config),
    }
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            functions[what]()
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert "forked after the backend was loaded" in said


NO_CONFIGS = [None, 5, True, 1.5, "mini", b"x", [], [1], {}, {"a": 1}, object()]


@pytest.mark.parametrize("name", CLASSES)
def test_a_model_of_no_config_is_refused_in_every_way_to_make_one(name):
    kind = getattr(bb, name)
    for value in NO_CONFIGS:
        with pytest.raises(ValueError, match="`config` must be a `"):
            kind(value)
        with pytest.raises(ValueError, match="`config` must be the dict"):
            kind.from_config(value)
    for value in (*NO_CONFIGS, "", "a\0b", "o\udcff"):
        if value != "mini":
            with pytest.raises(FileNotFoundError, match="`name_or_dir` must"):
                kind.from_pretrained(value)


ARRAY = np.zeros(3)  # not true, not false, and equal to nothing


@pytest.mark.parametrize("value", [5, None, [], ["x"], {}, b"x", "x", ARRAY])
def test_an_option_of_another_type_is_named(value, tmp_path):
    model = make("BertForSequenceClassification")
    calls = {
        "dtype": lambda: model.save_pretrained(tmp_path, dtype=value),
        "format": lambda: model.export(tmp_path / "x", format=value),
        "engine": lambda: bb.Tokenizer(TOY.vocabulary, engine=value),
        "padding": lambda: TOY(["a"], padding=value),
        "attention": lambda: bb.BertEncoder(model.config, attention=value),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"^`{name}` must be"):
            call()


@pytest.mark.parametrize("value", [5, None, True, [], "x", b"x", [ARRAY]])
def test_what_is_no_batch_is_refused_by_every_method_of_keras(value):
    model = make("BertEncoder")
    model.compile("sgd", loss="mse")
    for call in (model, model.predict, model.evaluate, model.fit):
        with pytest.raises(ValueError, match="`batch` must be a dict"):
            call(value)


def compiled():
    """Returns a model that `fit` trains, and arguments of `fit` for it."""
    model = make(KIND)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss=loss, run_eagerly=True)
    batch = draw_batch(model, rows=4)
    given = {"x": batch, "y": LABELS, "validation_data": (batch, LABELS)}
    return model, given | {"epochs": 9, "verbose": 0, "shuffle": False}


def test_the_callbacks_of_keras_work_with_fit(tmp_path):
    def power_cut(epoch, logs):
        if epoch == 2:
            raise KeyboardInterrupt

    def callbacks():
        return [
            keras.callbacks.EarlyStopping(
                "loss", patience=0, min_delta=9, start_from_epoch=2
            ),
            keras.callbacks.ModelCheckpoint(
                tmp_path / "best.keras", "val_loss", save_best_only=True
            ),
            keras.callbacks.CSVLogger(tmp_path / "log.csv", append=True),
            keras.callbacks.BackupAndRestore(tmp_path / "backup"),
        ]

    model, given = compiled()
    first = callbacks()
    cut = keras.callbacks.LambdaCallback(on_epoch_begin=power_cut)
    with pytest.raises(KeyboardInterrupt):
        model.fit(**given, callbacks=[*first, cut])
    first[2].on_train_end()  # closes its file
    half = outputs_of(model, given["x"])["logits"]
    model, given = compiled()
    started = []
    look = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: started.append(
            (epoch, outputs_of(model, given["x"])["logits"])
        )
    )
    model.fit(**given, callbacks=[*callbacks(), look])
    assert started[0][0] == 2  # where the first run was cut
    np.testing.assert_array_equal(started[0][1], half)
    with (tmp_path / "log.csv").open(encoding="utf-8") as file:
        losses = [float(row["val_loss"]) for row in csv.DictReader(file)]
    assert len(losses) == len(set(losses)) == 4
    best = keras.saving.load_model(tmp_path / "best.keras")
    assert best.tokenizer.vocabulary == model.tokenizer.vocabulary
    batch = given["x"]
    logits = outputs_of(best, batch)["logits"]
    chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    loss = -np.log(chances[np.arange(4), LABELS]).mean()
    np.testing.assert_allclose(loss, min(losses), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="`tf.distribute` alone"
)
def test_two_replicas_learn_what_one_learns(tmp_path):
    outputs = []
    for count in (1, 2):
        path = tmp_path / f"{count}.npy"
        subprocess.run(
            [sys.executable, "-c", REPLICAS, str(count), str(path)], check=True
        )
        outputs.append(np.load(path))
    np.testing.assert_allclose(*outputs, atol=1e-4)


def test_assigned_arrays_join_query_key_and_value_and_leave_the_rest():
    model = make("BertEncoder")
    before = {n: np.array(t) for n, t in named_tensors(model).items()}
    changed = {
        name: array + 1 + number
        for number, (name, array) in enumerate(before.items())
        if name.startswith("block_0/attention/")
    }
    assign_arrays(model, changed)
    after = {n: np.array(t) for n, t in named_tensors(model).items()}
    assert "block_0/attention/value/bias" in changed
    for name, array in after.items():
        np.testing.assert_array_equal(array, changed.get(name, before[name]))


def test_assigned_arrays_must_have_the_shape_of_the_weight():
    with pytest.raises(ValueError, match="shape"):
        assign_arrays(make("BertEncoder"), {"pooler/bias": np.zeros(3)})


def test_a_loss_of_probabilities_is_said():
    sizes = {"vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 1, "intermediate_size": 4}
    model = bb.BertForSequenceClassification(bb.BertConfig(**sizes))
    batch, labels = {"input_ids": np.ones((2, 3), "int32")}, np.array([0, 1])
    for loss in (
        "sparse_categorical_crossentropy",
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.sparse_categorical_crossentropy,
    ):
        model.compile("sgd", loss)
        with pytest.warns(UserWarning, match="returns logits: pass `keras.lo"):
            model.evaluate(batch, labels, verbose=0)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
    model.evaluate(batch, labels, verbose=0)


def test_an_unknown_keyword_is_an_error_of_ours():
    with pytest.raises(ValueError, match="`BertEncoder` must be given keyw"):
        bb.BertEncoder(bb.BertConfig.named("tiny"), max_position_embeddings=9)


@pytest.mark.any_backend
@pytest.mark.parametrize("kind", CLASSES)
def test_completion_lists_what_a_user_calls(kind):
    model = make(kind)
    ours = {name for name in dir(model) if name not in dir(keras.Model)}
    serving = {"compute_on_batch", "compile_once", "checked", "input_rank"}
    assert not ours & (serving | {"weight_prefix"})
    assert ours >= {"from_pretrained", "save_pretrained", "config", "tokenizer"}
    assert callable(model.compute_on_batch)  # as before
