"""Attention: score, weigh, mix; then several heads side by side."""

import math

from keras import layers, ops

from .embeddings import normal


def attention(query, key, value, mask=None, drop=None):
    """Mixes `value` vectors by how well each `query` matches each `key`.

    Args: `query`, `(..., T, H)`; `key`, `value`, `(..., S, H)`; `mask`, which
    broadcasts to `(..., T, S)`, 1 where a query may look at a key; `drop`, a
    function that drops some of the weights.

    Returns the mixed vectors, `(..., T, H)`, and the weights, `(..., T, S)`.
    Source: Vaswani et al. (2017), equation 1.
    """
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))  # (..., T, S)
    scores = scores / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = ops.where(ops.cast(mask, "bool"), scores, -10_000.0)
    weights = ops.softmax(scores)  # each row sums to 1
    if drop is not None:
        weights = drop(weights)
    return ops.matmul(weights, value), weights


class SelfAttention(layers.Layer):
    """Lets every token look at every real token, N times side by side.

    Width D, N heads of width H = D / N. Source: Vaswani et al. (2017),
    section 3.2.2.
    """

    def __init__(self, D, N, dropout=0.1):
        super().__init__()
        self.N = N
        self.query = layers.Dense(D, kernel_initializer=normal())
        self.key = layers.Dense(D, kernel_initializer=normal())
        self.value = layers.Dense(D, kernel_initializer=normal())
        self.output_projection = layers.Dense(D, kernel_initializer=normal())
        self.dropout = layers.Dropout(dropout)

    def heads(self, x):
        """Cuts vectors, `(B, S, D)`, into heads, `(B, N, S, H)`."""
        B, S, D = ops.shape(x)
        return ops.swapaxes(ops.reshape(x, (B, S, self.N, D // self.N)), 1, 2)

    def call(self, x, mask):
        """Returns what each token gathers, `(B, S, D)`, for `x`, `(B, S, D)`.

        `mask`, `(B, S)`, is 1 for a real token and 0 for padding.
        """
        parts = self.query(x), self.key(x), self.value(x)  # each (B, S, D)
        query, key, value = (self.heads(part) for part in parts)
        visible = mask[:, None, None, :]  # (B, 1, 1, S): hides keys
        mixed, _ = attention(query, key, value, visible, self.dropout)
        mixed = ops.reshape(ops.swapaxes(mixed, 1, 2), ops.shape(x))
        return self.output_projection(mixed)
