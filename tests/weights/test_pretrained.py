"""Habits of Keras that every model keeps: scopes, processes."""

import os

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from tests.helpers.every_model import CLASSES, draw_batch, make
from tests.helpers.toys import TOY


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
