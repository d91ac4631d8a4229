"""Attention: by loops, against Keras, and what must not change it."""

import numpy as np
import pytest

from bertbook.model.attention import (
    SelfAttention,
    choose_path,
    fused_attention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from bertbook.runtime import keras, ops

B, N, T, S, H = 2, 3, 4, 5, 7  # all different: a swapped axis cannot hide
D = N * H
ON_JAX = keras.backend.backend() == "jax"


def to_numpy(tensors):
    return [ops.convert_to_numpy(tensor) for tensor in tensors]


@pytest.fixture
def qkv():
    rng = np.random.default_rng(0)
    shapes = (B, N, T, H), (B, N, S, H), (B, N, S, H)
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


@pytest.fixture
def layer():
    layer = SelfAttention(D, N, initializer_range=0.5)
    layer.build((None, None, D))
    layer.query_key_value.bias.assign(
        np.random.default_rng(1).normal(size=3 * D)
    )
    return layer


def hidden_states(length=S, seed=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, length, D)).astype("float32")


def attention_by_loops(query, key, value, visible):
    """The definition, one query at a time: slow, obvious, NumPy only."""
    context = np.zeros((B, N, T, H))
    for b, n, t in np.ndindex(B, N, T):
        seen = np.flatnonzero(visible[b])
        scores = [query[b, n, t] @ key[b, n, s] / np.sqrt(H) for s in seen]
        weights = np.exp(scores) / np.exp(scores).sum()
        context[b, n, t] = weights @ value[b, n, seen]
    return context


def test_matches_the_definition(qkv):
    visible = np.ones((B, S), bool)
    context, _ = to_numpy(scaled_dot_product_attention(*qkv))
    expected = attention_by_loops(*qkv, visible)
    np.testing.assert_allclose(context, expected, atol=1e-5)


def test_matches_the_definition_with_hidden_keys(qkv):
    visible = np.arange(S) < np.array([[3], [S]])  # (B, S)
    mask = visible[:, None, None, :]
    context, _ = to_numpy(scaled_dot_product_attention(*qkv, mask))
    expected = attention_by_loops(*qkv, visible)
    np.testing.assert_allclose(context, expected, atol=1e-5)


def test_matches_the_operation_of_keras(qkv):
    query, key, value = (np.swapaxes(x, 1, 2) for x in qkv)  # (B, T, N, H)
    expected = to_numpy([ops.dot_product_attention(query, key, value)])[0]
    context, _ = to_numpy(scaled_dot_product_attention(*qkv))
    np.testing.assert_allclose(context, np.swapaxes(expected, 1, 2), atol=1e-5)


def test_matches_the_layer_of_keras(layer):
    peer = keras.layers.MultiHeadAttention(N, H)
    peer.build((None, None, D), (None, None, D))
    kernel, bias, out, out_bias = to_numpy(layer.weights)
    thirds = zip(
        np.split(kernel, 3, axis=1), np.split(bias, 3, axis=0), strict=True
    )
    values = []
    for third, third_bias in thirds:
        values += [third.reshape(D, N, H), third_bias.reshape(N, H)]
    query, key, value = values[0:2], values[2:4], values[4:6]
    in_order = {"query": query, "key": key, "value": value}
    in_order["attention_output"] = [out.reshape(N, H, D), out_bias]
    for weight in peer.weights:
        part, kind = weight.path.split("/")[-2:]
        weight.assign(in_order[part][kind == "bias"])
    hidden = hidden_states()
    mask = np.arange(S) < np.array([[3], [S]])
    expected = peer(hidden, hidden, attention_mask=mask[:, None, :])
    received = layer(hidden, attention_mask=mask[:, None, None, :])
    np.testing.assert_allclose(*to_numpy([received, expected]), atol=1e-5)


def test_split_heads_keeps_every_token_together():
    vectors = np.arange(B * S * 2 * D, dtype="float32").reshape(B, S, 2 * D)
    first, second = to_numpy(split_heads(vectors, N, parts=2))
    for n in range(N):
        columns = slice(n * H, (n + 1) * H)
        np.testing.assert_array_equal(
            first[:, n], vectors[..., :D][..., columns]
        )
        np.testing.assert_array_equal(
            second[:, n], vectors[..., D:][..., columns]
        )


def test_merge_heads_undoes_split_heads():
    vectors = hidden_states()
    (split,) = split_heads(vectors, N)
    assert tuple(split.shape) == (B, N, S, H)
    np.testing.assert_array_equal(to_numpy([merge_heads(split)])[0], vectors)


def test_hidden_keys_get_weight_zero_and_rows_sum_to_one(qkv):
    visible = np.arange(S) < 3
    _, weights = to_numpy(scaled_dot_product_attention(*qkv, visible))
    assert (weights[..., ~visible] == 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)


def test_keys_of_zeros_take_a_share_until_they_are_hidden(qkv):
    """A score of 0 is not a weight of 0: padding needs the mask."""
    query, key, value = qkv
    key[:, :, 2:] = 0.0
    _, weights = to_numpy(scaled_dot_product_attention(query, key, value))
    exponents = np.exp(query @ np.swapaxes(key, 2, 3) / np.sqrt(H))
    shares = exponents / exponents.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights, shares, atol=1e-6)
    assert (weights[..., 2:] > 0.001).all()
    visible = np.arange(S) < 2
    _, hidden = to_numpy(
        scaled_dot_product_attention(query, key, value, visible)
    )
    assert (hidden[..., 2:] == 0.0).all()


def test_a_row_that_sees_nothing_is_finite(qkv):
    context, _ = to_numpy(
        scaled_dot_product_attention(*qkv, np.zeros((1, 1, 1, S), bool))
    )
    assert np.isfinite(context).all()


def test_permuted_tokens_give_permuted_outputs(layer):
    hidden, order = hidden_states(), np.array([3, 0, 4, 1, 2])
    straight, permuted = to_numpy([layer(hidden), layer(hidden[:, order])])
    np.testing.assert_allclose(straight[:, order], permuted, atol=1e-5)


def test_returned_weights_are_those_used(layer):
    hidden = hidden_states()
    output, weights = layer(hidden, return_weights=True)
    _, _, value = split_heads(layer.query_key_value(hidden), N, parts=3)
    context = merge_heads(ops.einsum("bnts,bnsh->bnth", weights, value))
    again = layer.output_projection(context)
    np.testing.assert_allclose(*to_numpy([output, again]), atol=1e-6)
    np.testing.assert_allclose(*to_numpy([output, layer(hidden)]), atol=1e-6)


def test_dropout_drops_only_in_training():
    layer = SelfAttention(D, N, dropout=0.5, initializer_range=0.5)
    hidden = hidden_states()
    calm, again = to_numpy([layer(hidden), layer(hidden)])
    np.testing.assert_array_equal(calm, again)
    _, weights = layer(hidden, return_weights=True, training=True)
    share = (to_numpy([weights])[0] == 0).mean()
    assert 0.3 < share < 0.7


def test_half_precision_stays_close(layer):
    half = SelfAttention(D, N, dtype="mixed_bfloat16")
    half.build((None, None, D))
    for to, weight in zip(half.weights, layer.weights, strict=True):
        to.assign(weight)
    hidden = hidden_states()
    full, rounded = to_numpy([layer(hidden), ops.cast(half(hidden), "float32")])
    np.testing.assert_allclose(full, rounded, atol=0.05 * np.abs(full).max())


@pytest.mark.skipif(not ON_JAX, reason="the fused path exists on JAX alone")
@pytest.mark.parametrize("masked", [False, True])
def test_the_fused_path_gives_the_same(qkv, masked):
    visible = np.arange(S) < np.array([[3], [S]])
    mask = visible[:, None, None, :] if masked else None
    expected, _ = scaled_dot_product_attention(*qkv, mask)
    received = fused_attention(*qkv, ops.array(mask) if masked else None)
    np.testing.assert_allclose(*to_numpy([received, expected]), atol=1e-5)


def test_a_path_that_cannot_run_is_refused():
    for asked, rate, message in (
        ("flash", 0.0, r"`attention` must be .* Received: 'flash'"),
        ("fused", 0.1, "cannot drop weights|needs the JAX backend"),
    ):
        with pytest.raises(ValueError, match=message):
            choose_path(asked, rate)
