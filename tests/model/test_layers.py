"""Dropout: share, scale, numbers that are not shared. Dense: any axes."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from bertbook.model.layers import Dense, Dropout, activation


def drop(rate, shape, seed=0, dtype="float32"):
    """Returns what is left of ones."""
    keras.utils.set_random_seed(seed)
    layer = Dropout(rate, dtype=dtype)
    values = ops.cast(np.ones(shape), dtype)
    dropped = layer(values, training=True)
    assert keras.backend.standardize_dtype(dropped.dtype) == dtype
    return ops.convert_to_numpy(ops.cast(dropped, "float32"))


def test_the_rate_is_met_and_the_mean_stays():
    for rate in (0.1, 0.5, 0.9):
        left = drop(rate, (40, 50, 201))
        share = (left == 0).mean()
        spread = np.sqrt(rate * (1 - rate) / left.size)
        assert abs(share - rate) < 5 * spread
        kept = left[left != 0]
        np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=1e-4)


def test_neighbors_and_halves_are_independent():
    gone = drop(0.3, (500, 2_000)) == 0
    for first, second in (
        (gone[:, :-1], gone[:, 1:]),
        (gone[:, :1_000], gone[:, 1_000:]),  # the halves of one number
        (gone[:-1], gone[1:]),
    ):
        both = (first & second).mean()
        assert (
            abs(both - 0.09) < 0.0015
        )  # five times the spread of a million draws


def test_every_row_and_column_is_reached():
    gone = drop(0.5, (64, 33)) == 0
    assert gone.any(axis=0).all()
    assert gone.any(axis=1).all()
    assert not gone.all(axis=0).any()


def test_a_seed_gives_the_same_twice_and_calls_differ():
    first, second = (drop(0.2, (30, 31), seed=1) for _ in range(2))
    assert (first == second).all()
    keras.utils.set_random_seed(1)
    layer = Dropout(0.2)
    values = ops.ones((30, 31))
    one, other = (
        ops.convert_to_numpy(layer(values, training=True)) for _ in range(2)
    )
    assert (one != other).any()


def test_nothing_is_dropped_outside_of_training():
    for training in (None, False):
        values = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
        left = Dropout(0.5)(ops.convert_to_tensor(values), training=training)
        assert (ops.convert_to_numpy(left) == values).all()


def test_a_rate_of_0_needs_no_generator():
    layer = Dropout(0.0)
    assert not layer.variables
    left = layer(ops.ones((2, 3)), training=True)
    assert (ops.convert_to_numpy(left) == 1).all()


def test_dropout_keeps_16_bit_types():
    for dtype in ("bfloat16", "float16"):
        left = drop(0.1, (20, 30), dtype=dtype)
        assert 0 < (left == 0).mean() < 0.2


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("others", [(2,), (2, 3), (2, 0), (2, 3, 4)])
@pytest.mark.parametrize("use_bias", [True, False])
def test_a_dense_layer_works_on_the_last_axis(training, others, use_bias):
    layer = Dense(5, activation="relu", use_bias=use_bias)
    values = np.random.default_rng(0).normal(size=(*others, 7))
    outputs = layer(values.astype("float32"), training=training)
    matrix = ops.convert_to_numpy(layer.kernel)
    assert outputs.shape == (*others, 5)
    np.testing.assert_allclose(
        ops.convert_to_numpy(outputs), np.maximum(values @ matrix, 0), atol=1e-6
    )


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="needs TensorFlow"
)
@pytest.mark.parametrize("function", [None, "relu"])
def test_a_layer_is_one_product_of_matrices(function):
    """Which TensorFlow computes with the bias in one."""
    import tensorflow as tf

    layer = Dense(5, activation=function)
    layer.build((None, None, 7))
    spec = tf.TensorSpec((None, None, 7))
    graph = tf.function(layer).get_concrete_function(spec).graph
    operations = {op.type: op for op in graph.get_operations()}
    assert operations["BiasAdd"].inputs[0].op.type == "MatMul"


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="needs TensorFlow"
)
def test_a_gelu_in_a_graph_is_as_exact_as_alone():
    """The one that TensorFlow computes with the product is not."""
    import tensorflow as tf

    layer = Dense(4_096, activation=activation("gelu"))
    values = np.linspace(-4, 4, 4_096, dtype="float32")
    layer.build((None, None, 1))
    layer.kernel.assign(values[None])
    outputs = tf.function(layer, autograph=False)(tf.ones((1, 2, 1)))
    exact = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in values.tolist()]
    np.testing.assert_allclose(
        ops.convert_to_numpy(outputs)[0], [exact, exact], rtol=0, atol=4e-7
    )


def test_a_matrix_of_integers_is_followed_by_the_function_too():
    draw = np.random.default_rng(0).normal
    layer = Dense(64, activation=activation("gelu"))
    layer.build((None, 32))
    layer.kernel.assign(draw(size=(32, 64)))
    values = draw(size=(5, 32)).astype("float32")
    expected = ops.convert_to_numpy(layer(values))
    layer.quantize("int8")
    received = ops.convert_to_numpy(layer(values))
    np.testing.assert_allclose(received, expected, atol=0.4)
    assert expected.max() > 9
