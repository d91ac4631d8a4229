"""Masks that look back only, and caches."""

import numpy as np

from bertbook.decoder.blocks import (
    causal_mask,
    decoder_mask,
    empty_cache,
    extend_cache,
)
from bertbook.model.attention import scaled_dot_product_attention
from bertbook.runtime import keras, ops
from tests.helpers.decoders import causal_config
from tests.helpers.models import to_numpy

B, N, T, S, H = 2, 3, 4, 6, 8
CONFIG = causal_config()


def mask_by_loops(queries, keys, first):
    """The definition: a query sees the keys up to its own place."""
    mask = np.zeros((queries, keys), bool)
    for query, key in np.ndindex(queries, keys):
        mask[query, key] = key <= first + query
    return mask


# Definition.


def test_a_query_sees_what_is_not_after_it():
    for queries, keys, first in ((6, None, 0), (4, 6, 0), (1, 6, 3), (2, 7, 5)):
        mask = to_numpy(causal_mask(queries, keys, first))
        assert mask.dtype == bool
        expected = mask_by_loops(queries, keys or queries, first)
        np.testing.assert_array_equal(mask, expected[None, None])


def test_fifteen_of_thirty_six_scores_are_hidden():
    hidden = ~to_numpy(causal_mask(6))[0, 0]
    np.testing.assert_array_equal(hidden, np.triu(np.ones((6, 6)), k=1) > 0)
    assert hidden.sum() == 15


def test_decoder_mask_hides_padding_and_the_future():
    attention_mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    ids = np.zeros((B, T), "int32")
    mask = to_numpy(decoder_mask(ids, attention_mask))
    for b, t, s in np.ndindex(B, T, T):
        assert mask[b, 0, t, s] == (s <= t and attention_mask[b, s] == 1)


def test_a_mask_for_every_pair_of_tokens_never_shows_the_future():
    whole = np.ones((B, T, T), "int32")
    whole[1, 3, 0] = 0
    mask = to_numpy(decoder_mask(np.zeros((B, T), "int32"), whole))
    expected = np.tri(T, dtype=bool)[None].repeat(B, axis=0)
    expected[1, 3, 0] = False
    np.testing.assert_array_equal(mask[:, 0], expected)


def test_a_cache_holds_what_was_put_into_it():
    rng = np.random.default_rng(0)
    cache = empty_cache(CONFIG, B, S, "float32")
    expected = np.zeros((2, B, N, S, H), "float32")
    for slot, length in ((0, 3), (3, 1), (4, 2)):
        new = rng.normal(size=(2, B, N, length, H)).astype("float32")
        cache = extend_cache(cache, new[0], new[1], slot)
        expected[:, :, :, slot : slot + length] = new
        np.testing.assert_array_equal(to_numpy(list(cache)), expected)


# Framework.


def test_masked_softmax_is_that_of_keras():
    rng = np.random.default_rng(0)
    query, key, value = rng.normal(size=(3, B, N, T, H)).astype("float32")
    swapped = [np.swapaxes(x, 1, 2) for x in (query, key, value)]
    expected = ops.dot_product_attention(*swapped, is_causal=True)
    received, _ = scaled_dot_product_attention(
        query, key, value, causal_mask(T)
    )
    np.testing.assert_allclose(
        to_numpy(received),
        np.swapaxes(to_numpy(expected), 1, 2),
        atol=1e-5,
    )


# Properties.


def test_hidden_weights_are_exactly_zero_and_rows_sum_to_one():
    rng = np.random.default_rng(0)
    query, key, value = rng.normal(size=(3, B, N, T, H)).astype("float32")
    _, weights = scaled_dot_product_attention(query, key, value, causal_mask(T))
    weights = to_numpy(weights)
    assert (weights[..., ~np.tri(T, dtype=bool)] == 0.0).all()
    alone = weights[:, :, 0, 0]  # the first sees itself alone
    np.testing.assert_allclose(alone, 1.0, atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)


def test_a_slot_may_be_an_integer_or_a_tensor():
    cache = empty_cache(CONFIG, B, S, "float32")
    new = np.ones((B, N, 1, H), "float32")
    known = extend_cache(cache, new, new, 2)
    computed = extend_cache(cache, new, new, ops.convert_to_tensor(2))
    np.testing.assert_array_equal(to_numpy(known[0]), to_numpy(computed[0]))
    mask = to_numpy(causal_mask(1, S, first=ops.convert_to_tensor(2)))
    np.testing.assert_array_equal(mask[0, 0, 0], np.arange(S) <= 2)
    assert keras.backend.standardize_dtype(cache[0].dtype) == "float32"
