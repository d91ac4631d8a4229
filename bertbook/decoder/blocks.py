"""The block of a decoder, its causal mask, and its cache of earlier tokens.

Differences: the paper sets hidden scores to minus infinity; here they are set
to `attention.MASKED_SCORE`, which gives the same weight, exactly 0. Post-norm
is the order of Vaswani et al. (2017), pre-norm that of Radford et al. (2019).
"""

import warnings
from contextlib import contextmanager

from bertbook.model.attention import (
    SelfAttention,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
    visible_keys,
)
from bertbook.model.layers import Dense, Dropout, FeedForward, make_norm
from bertbook.runtime import keras, ops


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
    """Returns the mask of a decoder: the causal one, without the padding.

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


class CrossAttention(keras.layers.Layer):
    """Lets every target token look at every visible source token.

    Queries come from the target, keys and values from the source.

    Source: Vaswani et al. (2017), section 3.2.3.

    Args:
        config: A `Seq2SeqConfig`.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = config.num_attention_heads
        self.query, self.key_value, self.output_projection = (
            Dense(
                width,
                config.initializer_range,
                dtype=self.dtype_policy,
                name=name,
            )
            for width, name in (
                (config.hidden_size, "query"),
                (2 * config.hidden_size, "key_value"),
                (config.hidden_size, "output"),
            )
        )
        self.dropout = Dropout(
            config.attention_probs_dropout_prob, dtype=self.dtype_policy
        )

    def build(self, hidden_shape):
        """Creates the three matrices for vectors of width D."""
        for part in (self.query, self.key_value, self.output_projection):
            part.build(hidden_shape)

    def read_source(self, encoded):
        """Returns the keys and the values of a source, made once a text.

        Args:
            encoded: Float tensor of shape `(B, S, D)`, from the encoder.

        Returns:
            Two float tensors of shape `(B, N, S, H)`.
        """
        return split_heads(self.key_value(encoded), self.num_heads, parts=2)

    def call(self, hidden, source, attention_mask=None, training=None):
        """Returns what every target token gathers.

        Args:
            hidden: Float tensor of shape `(B, T, D)`.
            source: What `read_source` gave.
            attention_mask: Optional boolean tensor that broadcasts to
                `(B, N, T, S)`.
            training: Whether to drop weights.

        Returns:
            The output, `(B, T, D)`, and the weights, `(B, N, T, S)`.
        """
        (query,) = split_heads(self.query(hidden), self.num_heads)
        return attend(self, query, *source, attention_mask, training)


def attend(attention, query, key, value, attention_mask=None, training=None):
    """Finishes what a layer of attention does once it has its three tensors.

    Args:
        attention: A `SelfAttention` or a `CrossAttention`.
        query: Float tensor of shape `(B, N, T, H)`.
        key: Float tensor of shape `(B, N, S, H)`.
        value: Float tensor of shape `(B, N, S, H)`.
        attention_mask: Optional boolean tensor that broadcasts to
            `(B, N, T, S)`.
        training: Whether to drop weights.

    Returns:
        The output, `(B, T, D)`, and the weights, `(B, N, T, S)`.
    """
    with one_key_allowed():
        context, weights = scaled_dot_product_attention(
            query,
            key,
            value,
            attention_mask,
            lambda weights: attention.dropout(weights, training=training),
        )
    return attention.output_projection(merge_heads(context)), weights


@contextmanager
def one_key_allowed():
    """Suppresses Keras's warning that one key alone gets weight 1.

    It is right: the first token of a text sees no other.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You are using a softmax over axis")
        yield


class DecoderBlock(keras.layers.Layer):
    """One layer of a decoder, of two parts or three, each added.

    Source: Vaswani et al. (2017), section 3.1.

    Args:
        config: A `CausalLMConfig` or a `Seq2SeqConfig`.
        cross_attention: Whether there is a source to look at.
        norm_first: Whether to normalize what goes into a part (pre-norm), or
            the sum of what goes in and what comes out (post-norm).
    """

    def __init__(self, config, cross_attention, norm_first, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.norm_first = norm_first
        self.attention = SelfAttention(
            config.hidden_size,
            config.num_attention_heads,
            dropout=config.attention_probs_dropout_prob,
            initializer_range=config.initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention_norm = make_norm(config, policy, "attention_norm")
        self.cross_attention = None
        if cross_attention:
            self.cross_attention = CrossAttention(
                config, dtype=policy, name="cross_attention"
            )
            self.cross_norm = make_norm(config, policy, "cross_norm")
        self.feed_forward = FeedForward(
            config, dtype=policy, name="feed_forward"
        )
        self.feed_forward_norm = make_norm(config, policy, "feed_forward_norm")
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=policy)

    def build(self, hidden_shape):
        """Creates the weights for vectors of width D."""
        parts = [self.attention, self.attention_norm]
        if self.cross_attention is not None:
            parts += [self.cross_attention, self.cross_norm]
        for part in (*parts, self.feed_forward, self.feed_forward_norm):
            part.build(hidden_shape)

    def call(
        self,
        hidden,
        attention_mask=None,
        source=None,
        cross_mask=None,
        cache=None,
        slot=0,
        training=None,
    ):
        """Returns new vectors.

        Args:
            hidden: Float tensor of shape `(B, T, D)`.
            attention_mask: Optional boolean tensor that broadcasts to
                `(B, N, T, S)`; S is T, or the length of the cache.
            source: Keys and values of the source, from
                `cross_attention.read_source`.
            cross_mask: Optional boolean tensor that broadcasts to
                `(B, N, T, S)`, S the length of the source. (Keras fills in
                what is called `source_mask`.)
            cache: Keys and values of earlier tokens, `(B, N, S, H)` each.
            slot: The place of the first token of `hidden` in the cache.
            training: Whether to drop values.

        Returns:
            The vectors, `(B, T, D)`; the weights of self- and of
            cross-attention, None where there is none; and the cache, longer
            by T tokens, None where there was none.
        """
        query, key, value = split_heads(
            self.attention.query_key_value(
                self._before(self.attention_norm, hidden)
            ),
            self.attention.num_heads,
            parts=3,
        )  # each (B, N, T, H)
        if cache is not None:
            key, value = cache = extend_cache(cache, key, value, slot)
        gathered, weights = attend(
            self.attention, query, key, value, attention_mask, training
        )
        hidden = self._add(self.attention_norm, hidden, gathered, training)
        cross_weights = None
        if self.cross_attention is not None:
            gathered, cross_weights = self.cross_attention(
                self._before(self.cross_norm, hidden),
                source,
                cross_mask,
                training=training,
            )
            hidden = self._add(self.cross_norm, hidden, gathered, training)
        worked = self.feed_forward(self._before(self.feed_forward_norm, hidden))
        hidden = self._add(self.feed_forward_norm, hidden, worked, training)
        return hidden, (weights, cross_weights), cache

    def _before(self, norm, hidden):
        """Returns what goes into a part."""
        return norm(hidden) if self.norm_first else hidden

    def _add(self, norm, hidden, gathered, training):
        """Returns what goes on to the next part."""
        hidden = hidden + self.dropout(gathered, training=training)
        return hidden if self.norm_first else norm(hidden)
