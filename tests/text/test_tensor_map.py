"""`as_map`: raw texts in a `tf.data` pipeline."""

import copy
import pickle

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from bertbook.text.tokenizer import ENGINES, Tokenizer
from tests.helpers.toys import PIECES, TOY, toy_config

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")

ROWS = ["a bc", "", "dé f", "the cat sat on the mat"]
PAIRS = ["x", "yz", "", "w"]
LABELS = np.array([0, 1, 1, 0])

engines = pytest.mark.parametrize("engine", ENGINES)


def slices(*parts):
    return tf.data.Dataset.from_tensor_slices(*parts)


def assert_equal(batch, expected):
    assert list(batch) == list(expected)
    for name in expected:
        np.testing.assert_array_equal(batch[name], expected[name])


@engines
def test_texts_come_out_as_the_call_gives_them(engine):
    tokenizer = Tokenizer(PIECES, engine=engine)
    encode = tokenizer.as_map(max_length=7)
    expected = tokenizer(ROWS, max_length=7, padding="max_length")
    for data in (
        slices(ROWS).map(encode).batch(4),
        slices(ROWS).batch(4).map(encode),
    ):
        for name, spec in data.element_spec.items():
            assert spec.shape.as_list() == [None, 7], name
            assert spec.dtype == tf.int32
        (batch,) = data
        assert_equal(batch, expected)


@pytest.mark.parametrize("before", [True, False])
def test_labels_and_weights_pass_through(before):
    encode = TOY.as_map(max_length=9)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    data = slices((ROWS, LABELS, weights))
    data = data.map(encode).batch(4) if before else data.batch(4).map(encode)
    ((batch, labels, given),) = data
    assert_equal(batch, TOY(ROWS, max_length=9, padding="max_length"))
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(given, weights)


PAIRED = {
    "a tuple": ((ROWS, PAIRS), LABELS),
    "columns": {"text": ROWS, "text_pair": PAIRS, "label": LABELS},
    "columns and a target": ({"text": ROWS, "text_pair": PAIRS}, LABELS),
    "columns that are not read": {"text": ROWS, "text_pair": PAIRS,
        "label": LABELS, "id": ["1", "2", "3", "4"]},
}  # fmt: skip


@pytest.mark.parametrize("form", PAIRED)
def test_pairs_are_a_tuple_or_columns(form):
    ((batch, labels),) = slices(PAIRED[form]).batch(4).map(TOY.as_map(11))
    assert_equal(batch, TOY(ROWS, PAIRS, max_length=11, padding="max_length"))
    np.testing.assert_array_equal(labels, LABELS)


def test_longest_pads_to_the_longest_row():
    encode = TOY.as_map(padding="longest")
    data = slices(ROWS).batch(3).map(encode)
    first, second = data
    assert_equal(first, TOY(ROWS[:3]))
    assert_equal(second, TOY(ROWS[3:]))
    assert data.element_spec["input_ids"].shape.as_list() == [None, None]


def test_an_empty_batch_stays_empty():
    encode = TOY.as_map(max_length=7)
    batch = encode(tf.constant([], tf.string))
    assert batch["input_ids"].shape == (0, 7)


def test_a_model_fits_what_the_map_gives():
    keras.utils.set_random_seed(0)
    model = bb.BertForSequenceClassification(toy_config(), num_labels=2)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, run_eagerly=True)
    data = slices((ROWS, LABELS)).batch(2).map(TOY.as_map(max_length=7))
    history = model.fit(data, epochs=2, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert model.predict(data, verbose=0).shape == (4, 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, "pickle"])
def test_a_map_can_be_copied(copied):
    encode = TOY.as_map(max_length=7)
    if copied == "pickle":
        encode = pickle.loads(pickle.dumps(encode))
    else:
        encode = copied(encode)
    expected = TOY(ROWS, max_length=7, padding="max_length")
    assert_equal(encode(tf.constant(ROWS)), expected)


BAD = {
    "numbers": (lambda: slices([1, 2]), "An element must be a string"),
    "two texts and no tuple": (lambda: slices((ROWS, PAIRS)),
        r"A second text must be in a tuple with the first"),
    "three texts": (lambda: slices(((ROWS, ROWS, ROWS),)), "An element must"),
    "no text": (lambda: slices({"label": LABELS}), "An element must be"),
    "a weight without a label": (lambda: slices({"text": ROWS,
        "weight": LABELS}), "An element must be"),
    "a table": (lambda: slices([[ROWS]]), "strings of rank 0 or 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_element_is_refused(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make().map(TOY.as_map(max_length=7))


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(Exception, match=r"A text must be UTF-8.*caf\\xe9"):
        TOY.as_map(max_length=7)(tf.constant([b"caf\xe9"]))


def test_bad_options_are_refused():
    for options, message in (
        ({}, '`padding="max_length"` needs `max_length`'),
        ({"max_length": 2}, "`max_length` must be an integer >= 3"),
        ({"max_length": 9, "padding": "left"}, "`padding` must be"),
        ({"max_length": 10**9}, "`max_length` must be at most 1,048,576"),
    ):
        with pytest.raises(ValueError, match=message):
            TOY.as_map(**options)
