"""Embeddings: sinusoids, learned positions and the sum of three tables."""

import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.decoder.config import Seq2SeqConfig
from bertbook.model.embeddings import (
    BertEmbeddings,
    LearnedPositions,
    ScaledEmbeddings,
    SinusoidalPositions,
    sinusoids,
)
from bertbook.runtime import keras, ops

B, S, D, V, P = 2, 5, 12, 31, 7
CONFIG = BertConfig(
    vocab_size=V, hidden_size=D, num_attention_heads=3, intermediate_size=20,
    num_hidden_layers=1, max_position_embeddings=P, type_vocab_size=3,
    initializer_range=0.5, layer_norm_eps=1e-5,
)  # fmt: skip


@pytest.fixture
def layer():
    layer = BertEmbeddings(CONFIG)
    layer.build((None, None), (None, None))
    rng = np.random.default_rng(0)
    layer.norm.gamma.assign(rng.normal(size=D))
    layer.norm.beta.assign(rng.normal(size=D))
    return layer


def draw_ids(length=S):
    rng = np.random.default_rng(1)
    ids = rng.integers(0, V, (B, length))
    return ids, rng.integers(0, 3, (B, length))


def test_sinusoids_match_the_formula():
    for width in (4, 8, 512, 768):
        table = sinusoids(9, width)
        for position, column in np.ndindex(9, width):
            even = column - column % 2
            angle = position / 10_000 ** (even / width)
            expected = np.cos(angle) if column % 2 else np.sin(angle)
            assert abs(table[position, column] - expected) < 1e-12


@pytest.mark.parametrize("width", [4, 8, 512, 768])
def test_counting_columns_or_pairs_gives_one_table(width):
    """The formula is written with cases for columns, or for pairs."""

    def by_column(p, j):
        wave = np.cos if j % 2 else np.sin
        return wave(p / 10_000 ** ((j - j % 2) / width))

    def by_pair(p, i):
        angle = p / 10_000 ** (2 * i / width)
        return np.sin(angle), np.cos(angle)

    columns = [[by_column(p, j) for j in range(width)] for p in range(9)]
    pairs = [[by_pair(p, i) for i in range(width // 2)] for p in range(9)]
    assert (np.reshape(pairs, (9, width)) == columns).all()
    np.testing.assert_allclose(sinusoids(9, width), columns, atol=1e-12)


@pytest.mark.parametrize(("width", "expected"), [(512, 0.712), (768, 0.483)])
def test_other_layouts_of_the_table(width, expected):
    """All sines first is another order; Tensor2Tensor's spacing is not."""
    table = sinusoids(512, width)
    halves = np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)
    columns = [*range(0, width, 2), *range(1, width, 2)]
    assert (halves[:, np.argsort(columns)] == table).all()
    pairs = np.arange(width // 2)
    angles = np.arange(512)[:, None] / 10_000 ** (pairs / (width / 2 - 1))
    other = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(512, -1)
    assert abs(np.abs(other - table).max() - expected) < 1e-3


def test_concatenating_is_adding_with_a_second_matrix():
    """A matrix of double width meets tokens and positions in its halves."""
    rng = np.random.default_rng(0)
    tokens, positions = rng.normal(size=(S, D)), sinusoids(S, D)
    upper, lower = rng.normal(size=(2, D, 4))
    beside = np.concatenate([tokens, positions], axis=1)
    tall = np.concatenate([upper, lower])
    assert tall.size == 2 * upper.size
    np.testing.assert_allclose(
        beside @ tall, tokens @ upper + positions @ lower
    )
    np.testing.assert_allclose(
        (tokens + positions) @ upper, beside @ np.concatenate([upper, upper])
    )


def test_sum_and_norm_match_the_definition(layer):
    ids, segments = draw_ids()
    token, segment, position, gamma, beta = (
        ops.convert_to_numpy(weight) for weight in layer.weights
    )
    total = token[ids] + segment[segments] + position[:S]
    mean = total.mean(axis=-1, keepdims=True)
    spread = np.sqrt(total.var(axis=-1, keepdims=True) + 1e-5)
    expected = (total - mean) / spread * gamma + beta
    received = ops.convert_to_numpy(layer(ids, segments))
    np.testing.assert_allclose(received, expected, atol=1e-5)


def test_sinusoids_match_keras_hub():
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    expected = hub.layers.SinePositionEncoding()(np.zeros((1, S, D), "float32"))
    np.testing.assert_allclose(sinusoids(S, D), expected[0], atol=1e-6)


def test_positions_are_added_row_by_row():
    vectors = np.zeros((B, S, D), "float32")
    fixed = ops.convert_to_numpy(SinusoidalPositions()(vectors))
    np.testing.assert_allclose(fixed[1], sinusoids(S, D), atol=1e-6)
    learned = LearnedPositions(P)
    received = ops.convert_to_numpy(learned(vectors))
    table = ops.convert_to_numpy(learned.table)
    np.testing.assert_array_equal(received[1], table[:S])


@pytest.mark.parametrize(
    "layer", [SinusoidalPositions(), LearnedPositions(600)]
)
def test_position_ids_choose_the_rows_of_the_table(layer):
    vectors = np.zeros((B, S, D), "float32")
    places = np.random.default_rng(0).integers(0, 600, (B, S))
    received = ops.convert_to_numpy(layer(vectors, places))
    table = getattr(layer, "table", sinusoids(600, D))
    expected = ops.convert_to_numpy(table)[places]
    np.testing.assert_allclose(received, expected, atol=1e-4)
    same = layer(vectors, np.arange(S)[None])
    np.testing.assert_array_equal(
        *map(ops.convert_to_numpy, (same, layer(vectors)))
    )


def test_scaled_embeddings_match_the_definition():
    config = Seq2SeqConfig(hidden_size=D, num_attention_heads=3)
    layer = ScaledEmbeddings(config, V)
    ids, _ = draw_ids()
    received = ops.convert_to_numpy(layer(ids))
    table = ops.convert_to_numpy(layer.token.embeddings)
    assert table.shape == (V, D)
    expected = table[ids] * np.sqrt(D) + sinusoids(S, D)
    np.testing.assert_allclose(received, expected, atol=1e-5)
    assert layer.dropout.rate == config.hidden_dropout_prob


def test_scaled_embeddings_drop_in_training_alone():
    config = Seq2SeqConfig(
        hidden_size=D, num_attention_heads=3, hidden_dropout_prob=0.5
    )
    layer = ScaledEmbeddings(config, V)
    ids = np.arange(20 * V).reshape(20, V) % V
    calm = ops.convert_to_numpy(layer(ids, training=False))
    np.testing.assert_array_equal(calm, ops.convert_to_numpy(layer(ids)))
    left = ops.convert_to_numpy(layer(ids, training=True))
    kept = left != 0
    np.testing.assert_allclose(left[kept], 2 * calm[kept], rtol=1e-6)
    assert abs(kept.mean() - 0.5) < 5 * 0.5 / np.sqrt(kept.size)


@pytest.mark.parametrize(
    "layer", [SinusoidalPositions(), LearnedPositions(600)]
)
def test_positions_take_any_length(layer):
    open_length = keras.Input((None, D))
    model = keras.Model(open_length, layer(open_length))
    for length in (3, 600):
        table = getattr(layer, "table", sinusoids(length, D))
        received = model(np.zeros((1, length, D), "float32"))
        np.testing.assert_allclose(
            ops.convert_to_numpy(received)[0],
            ops.convert_to_numpy(table)[:length],
            atol=1e-4,
        )


def test_same_id_at_another_position_is_another_vector(layer):
    ids = np.full((1, S), 3)
    vectors = ops.convert_to_numpy(layer(ids, np.zeros_like(ids)))[0]
    for first in range(S):
        for second in range(first):
            assert np.abs(vectors[first] - vectors[second]).max() > 1e-3


def test_the_position_table_is_trained():
    assert LearnedPositions(P).trainable
    layer = BertEmbeddings(CONFIG)
    layer.build((None, None), (None, None))
    shapes = [tuple(weight.shape) for weight in layer.trainable_weights]
    assert (P, D) in shapes


def test_a_text_longer_than_the_table_is_refused(layer):
    ids, segments = draw_ids(P + 1)
    with pytest.raises(ValueError, match=rf"{P}\. Received: {P + 1} tokens"):
        layer(ids, segments)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="`width` must be even. Received: 5"):
        sinusoids(3, 5)


def test_values_are_dropped_in_training_alone():
    layer = BertEmbeddings(CONFIG.replace(hidden_dropout_prob=0.5))
    layer.build((None, None), (None, None))
    layer.norm.gamma.assign(np.zeros(D))
    layer.norm.beta.assign(np.ones(D))  # whatever the ids are, all ones
    ids = np.zeros((99, S), "int32")
    assert (ops.convert_to_numpy(layer(ids, ids, training=False)) == 1).all()
    left = ops.convert_to_numpy(layer(ids, ids, training=True))
    assert set(left.flat) == {0.0, 2.0}
    assert abs((left == 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(left.size)


def test_dropout_rate_is_that_of_the_config(layer):
    assert layer.dropout.rate == CONFIG.hidden_dropout_prob
    assert keras.backend.backend() in ("tensorflow", "jax")
