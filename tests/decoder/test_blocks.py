"""The block of a decoder, and cross-attention: by loops, against Keras."""

import numpy as np
import pytest

from bertbook.book.forward_pass import layer_norm
from bertbook.decoder.blocks import (
    CrossAttention,
    DecoderBlock,
    attend,
    causal_mask,
)
from bertbook.model.encoder import EncoderBlock
from bertbook.runtime import keras, ops
from tests.helpers.decoders import draw_weights, seq2seq_config
from tests.helpers.models import to_numpy

CONFIG = seq2seq_config()
B, T, S = 2, 4, 5
D, N = CONFIG.hidden_size, CONFIG.num_attention_heads
H = CONFIG.head_size


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def make_block(cross_attention=True, norm_first=False):
    block = DecoderBlock(CONFIG, cross_attention, norm_first)
    block.build((None, None, D))
    return draw_weights(block)


@pytest.fixture
def cross():
    layer = CrossAttention(CONFIG)
    layer.build((None, None, D))
    return draw_weights(layer, scale=0.3)


def dense(layer, vector):
    return vector @ to_numpy(layer.kernel) + to_numpy(layer.bias)


def norm(layer, hidden):
    normed = layer_norm(hidden, CONFIG.layer_norm_eps)
    return normed * to_numpy(layer.gamma) + to_numpy(layer.beta)


def attention_by_loops(queries, keys, values, visible):
    """The definition: each query, each head, the visible keys."""
    gathered = np.zeros_like(queries)
    for t in range(len(queries)):
        seen = [s for s in range(len(keys)) if visible[t, s]]
        for n in range(N):
            part = slice(n * H, (n + 1) * H)
            scores = [queries[t, part] @ keys[s, part] for s in seen]
            weights = np.exp(np.array(scores) / np.sqrt(H))
            weights /= weights.sum()
            gathered[t, part] = weights @ values[seen, part]
    return gathered


def block_by_loops(block, hidden, encoded, norm_first):
    """The definition of a block, one row: (T, D) and (S, D)."""

    def look_back(x):
        q, k, v = np.split(dense(block.attention.query_key_value, x), 3, axis=1)
        gathered = attention_by_loops(q, k, v, np.tri(len(x)))
        return dense(block.attention.output_projection, gathered)

    def look_at_source(x):
        layer = block.cross_attention
        k, v = np.split(dense(layer.key_value, encoded), 2, axis=1)
        everything = np.ones((len(x), len(encoded)))
        gathered = attention_by_loops(dense(layer.query, x), k, v, everything)
        return dense(layer.output_projection, gathered)

    def work(x):
        widened = np.maximum(dense(block.feed_forward.expand, x), 0)
        return dense(block.feed_forward.contract, widened)

    parts = [(look_back, block.attention_norm), (work, block.feed_forward_norm)]
    if block.cross_attention is not None:
        parts.insert(1, (look_at_source, block.cross_norm))
    for part, normalize in parts:
        if norm_first:
            hidden = hidden + part(norm(normalize, hidden))
        else:
            hidden = norm(normalize, hidden + part(hidden))
    return hidden


# Definition.


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("cross_attention", [False, True])
def test_a_block_computes_its_definition(cross_attention, norm_first):
    block = make_block(cross_attention, norm_first)
    hidden, encoded = draw(B, T, D), draw(B, S, D, seed=1)
    source = None
    if cross_attention:
        source = block.cross_attention.read_source(encoded)
    received, _, cache = block(hidden, causal_mask(T), source)
    assert cache is None
    for row in range(B):
        expected = block_by_loops(block, hidden[row], encoded[row], norm_first)
        np.testing.assert_allclose(to_numpy(received)[row], expected, atol=1e-4)


def test_a_row_of_weights_mixes_the_values():
    """Weights 0.9, 0, 0.1, 0, 0, 0 give 0.9 of one value, 0.1 of another."""
    shares = np.array([0.9, 0.0, 0.1, 0.0, 0.0, 0.0])
    scores = np.log(np.where(shares > 0, shares, 1.0)) * np.sqrt(H)
    key = np.zeros((1, 1, 6, H), "float32")
    key[..., 0] = scores
    query = np.zeros((1, 1, 1, H), "float32")
    query[..., 0] = 1.0
    value = draw(1, 1, 6, H)
    layer = CrossAttention(CONFIG.replace(hidden_size=H, num_attention_heads=1))
    layer.build((None, None, H))
    layer.output_projection.kernel.assign(np.eye(H))
    output, weights = attend(layer, query, key, value, shares > 0)
    np.testing.assert_allclose(to_numpy(weights)[0, 0, 0], shares, atol=1e-7)
    expected = 0.9 * value[0, 0, 0] + 0.1 * value[0, 0, 2]
    np.testing.assert_allclose(to_numpy(output)[0, 0], expected, atol=1e-6)


# Framework.


def test_cross_attention_is_that_of_keras(cross):
    peer = keras.layers.MultiHeadAttention(N, H)
    peer.build((None, None, D), (None, None, D))
    pairs = to_numpy([cross.key_value.kernel, cross.key_value.bias])
    key, value = zip(*(np.split(x, 2, axis=-1) for x in pairs), strict=True)
    query = to_numpy([cross.query.kernel, cross.query.bias])
    out = to_numpy(
        [cross.output_projection.kernel, cross.output_projection.bias]
    )
    in_order = {
        "query": [query[0].reshape(D, N, H), query[1].reshape(N, H)],
        "key": [key[0].reshape(D, N, H), key[1].reshape(N, H)],
        "value": [value[0].reshape(D, N, H), value[1].reshape(N, H)],
        "attention_output": [out[0].reshape(N, H, D), out[1]],
    }
    for weight in peer.weights:
        part, kind = weight.path.split("/")[-2:]
        weight.assign(in_order[part][kind == "bias"])
    hidden, encoded = draw(B, T, D), draw(B, S, D, seed=1)
    mask = np.arange(S) < np.array([[3], [S]])
    expected, expected_weights = peer(
        hidden,
        encoded,
        attention_mask=mask[:, None, :],
        return_attention_scores=True,
    )
    received, weights = cross(
        hidden, cross.read_source(encoded), mask[:, None, None, :]
    )
    np.testing.assert_allclose(*to_numpy([received, expected]), atol=1e-5)
    np.testing.assert_allclose(
        *to_numpy([weights, expected_weights]), atol=1e-5
    )


def test_without_a_source_and_a_mask_it_is_the_block_of_berts_encoder():
    block = make_block(cross_attention=False)
    peer = EncoderBlock(CONFIG)
    peer.build((None, None, D))
    for to, weight in zip(
        (peer.attention, peer.attention_norm, peer.feed_forward),
        (block.attention, block.attention_norm, block.feed_forward),
        strict=True,
    ):
        to.set_weights(weight.get_weights())
    peer.output_norm.set_weights(block.feed_forward_norm.get_weights())
    hidden = draw(B, T, D)
    received, (weights, cross_weights), _ = block(hidden)
    expected, expected_weights = peer(hidden, return_weights=True)
    assert cross_weights is None
    np.testing.assert_array_equal(*to_numpy([received, expected]))
    np.testing.assert_array_equal(*to_numpy([weights, expected_weights]))


# Properties.


def test_three_parts_and_three_norms():
    shapes = {
        w.path.partition("/")[2]: tuple(w.shape) for w in make_block().weights
    }
    norms = [name for name in shapes if name.endswith("gamma")]
    assert norms == [
        "attention_norm/gamma",
        "cross_norm/gamma",
        "feed_forward_norm/gamma",
    ]
    assert shapes["cross_attention/query/kernel"] == (D, D)
    assert shapes["cross_attention/key_value/kernel"] == (D, 2 * D)
    assert shapes["cross_attention/output/kernel"] == (N * H, D)
    alone = make_block(cross_attention=False).weights
    assert not any("cross" in weight.path for weight in alone)


def test_weights_have_a_row_for_each_target_and_a_column_for_each_source():
    block = make_block()
    source = block.cross_attention.read_source(draw(B, S, D, seed=1))
    _, (weights, cross_weights), _ = block(
        draw(B, T, D), causal_mask(T), source
    )
    assert tuple(weights.shape) == (B, N, T, T)
    assert tuple(cross_weights.shape) == (B, N, T, S)


def changed_rows(block, hidden, encoded, of, number):
    """Returns which rows move when one token of either side does."""
    outputs = []
    for step in (0.0, 1.0):
        moved = {"hidden": hidden.copy(), "encoded": encoded.copy()}
        moved[of][:, number] += step
        source = block.cross_attention.read_source(moved["encoded"])
        outputs.append(
            to_numpy(block(moved["hidden"], causal_mask(T), source)[0])
        )
    return np.abs(outputs[1] - outputs[0]).max(axis=(0, 2)) > 0


def test_every_target_row_depends_on_every_source_token():
    block, hidden, encoded = make_block(), draw(B, T, D), draw(B, S, D, seed=1)
    for s in range(S):
        assert changed_rows(block, hidden, encoded, "encoded", s).all()
    for t in range(T):
        moved = changed_rows(block, hidden, encoded, "hidden", t)
        np.testing.assert_array_equal(moved, np.arange(T) >= t)


def test_cross_attention_alone_mixes_no_target_rows(cross):
    source = cross.read_source(draw(B, S, D, seed=1))
    hidden = draw(B, T, D)
    before = to_numpy(cross(hidden, source)[0])
    hidden[:, 2] += 1.0
    moved = np.abs(to_numpy(cross(hidden, source)[0]) - before).max(axis=(0, 2))
    np.testing.assert_array_equal(moved > 0, np.arange(T) == 2)


def test_a_cache_gives_what_all_tokens_at_once_give():
    block = make_block()
    hidden = draw(B, T, D)
    source = block.cross_attention.read_source(draw(B, S, D, seed=1))
    expected = to_numpy(block(hidden, causal_mask(T), source)[0])
    cache = tuple(ops.zeros((2, B, N, T, H)))
    for t in range(T):
        received, _, cache = block(
            hidden[:, t : t + 1],
            causal_mask(1, T, first=t),
            source,
            cache=cache,
            slot=t,
        )
        np.testing.assert_allclose(
            to_numpy(received)[:, 0], expected[:, t], atol=1e-5
        )


def test_a_row_that_sees_nothing_is_finite():
    block = make_block()
    source = block.cross_attention.read_source(draw(B, S, D, seed=1))
    nothing = np.zeros((B, 1, 1, S), bool)
    received, _, _ = block(draw(B, T, D), nothing[..., :T], source, nothing)
    assert np.isfinite(to_numpy(received)).all()


@pytest.mark.parametrize(
    "part", ["attention", "cross_attention", "feed_forward"]
)
def test_outputs_of_sublayers_are_dropped_in_training_alone(part):
    """One part gives ones, all else zeros; the norm leaves what was kept."""
    config = CONFIG.replace(
        hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.0
    )
    block = DecoderBlock(config, cross_attention=True, norm_first=False)
    block.build((None, None, D))
    last = {
        "attention": block.attention.output_projection,
        "cross_attention": block.cross_attention.output_projection,
        "feed_forward": block.feed_forward.contract,
    }
    for layer in last.values():
        layer.kernel.assign(np.zeros(layer.kernel.shape))
    last[part].bias.assign(np.ones(last[part].bias.shape))
    hidden = np.zeros((9, 40, D), "float32")
    source = block.cross_attention.read_source(draw(9, S, D))
    calm, dropped = (
        to_numpy(block(hidden, None, source, training=training)[0])
        for training in (False, True)
    )
    assert (calm == 0).all()
    kept = dropped > 0
    assert abs(kept.mean() - 0.5) < 5 * 0.5 / np.sqrt(kept.size)


def test_dropout_drops_in_training_only():
    block = DecoderBlock(
        CONFIG.replace(attention_probs_dropout_prob=0.5), True, False
    )
    block.build((None, None, D))
    hidden = draw(B, T, D)
    source = block.cross_attention.read_source(draw(B, S, D, seed=1))
    calm = [to_numpy(block(hidden, None, source)[0]) for _ in range(2)]
    np.testing.assert_array_equal(*calm)
    _, weights, _ = block(hidden, None, source, training=True)
    for part in to_numpy(list(weights)):
        assert 0.2 < (part == 0).mean() < 0.8
