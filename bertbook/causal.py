"""Looking back only: the causal mask, and what is kept of earlier tokens.

Differences: the paper sets hidden scores to minus infinity; here they are set
to `attention.MASKED_SCORE`, which gives the same weight, exactly 0.
"""

from bertbook.encoder import visible_keys
from bertbook.runtime import ops


def causal_mask(num_queries, num_keys=None, first=0):
    """Returns which keys a query may look at: itself and those before it.

    Source: Vaswani et al. (2017), section 3.2.3.

    Args:
        num_queries: T.
        num_keys: S; without it, T.
        first: The place of the first query among the keys.

    Returns:
        Boolean tensor of shape `(1, 1, T, S)`, True where a key is visible.
    """
    queries = first + ops.arange(num_queries)  # (T,)
    keys = ops.arange(num_queries if num_keys is None else num_keys)  # (S,)
    return (keys[None, :] <= queries[:, None])[None, None]


def decoder_mask(input_ids, attention_mask=None):
    """Returns the mask of a decoder: the causal one, less the padding.

    Args:
        input_ids: Integer tensor of shape `(B, T)`.
        attention_mask: Optional integer tensor of shape `(B, T)` or
            `(B, T, T)`, 0 where a key is hidden. Padding after a text needs
            none: no token of the text looks there.

    Returns:
        Boolean tensor of shape `(1, 1, T, T)` or `(B, 1, T, T)`.
    """
    mask = causal_mask(ops.shape(input_ids)[1])
    if attention_mask is None:
        return mask
    return ops.logical_and(mask, visible_keys(attention_mask))


def empty_cache(config, rows, length, dtype):
    """Returns room for the keys and the values of one layer.

    Args:
        config: A `CausalLMConfig` or a `Seq2SeqConfig`.
        rows: B.
        length: S, how many tokens have room.
        dtype: That of keys and values.

    Returns:
        Two float tensors of zeros, `(B, N, S, H)`.
    """
    shape = (rows, config.num_attention_heads, length, config.head_size)
    return ops.zeros(shape, dtype), ops.zeros(shape, dtype)


def extend_cache(cache, key, value, slot):
    """Puts the keys and values of new tokens beside those of earlier ones.

    Args:
        cache: Two float tensors of shape `(B, N, S, H)`.
        key: Float tensor of shape `(B, N, T, H)`.
        value: Float tensor of shape `(B, N, T, H)`.
        slot: The place of the first new token, at most S - T.

    Returns:
        Two float tensors of shape `(B, N, S, H)`.
    """
    start = (0, 0, slot, 0)
    return (
        ops.slice_update(cache[0], start, key),
        ops.slice_update(cache[1], start, value),
    )
