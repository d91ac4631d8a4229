"""Ids to vectors: token + position + segment, then normalization.

`SinusoidalPositions` is the 2017 Transformer's alternative
to BERT's learned table, and `ScaledEmbeddings` are its embeddings.
"""

import math

import numpy as np

from bertbook.model.layers import Dropout, LayerNorm
from bertbook.runtime import keras, ops


def sinusoids(length, width):
    """Returns the position table of the 2017 Transformer.

    Column 2i holds sin(p / 10000^(2i / D)), column 2i + 1 the cosine.

    Source: Vaswani et al. (2017), section 3.5.

    Args:
        length: S, the number of positions.
        width: D, even.

    Returns:
        NumPy array of shape `(S, D)`, float64, in [-1, 1].

    Raises:
        ValueError: `width` is odd.
    """
    if width % 2:
        raise ValueError(f"`width` must be even. Received: {width}.")
    positions = np.arange(length)[:, np.newaxis]  # (S, 1)
    divisors = 10_000.0 ** (np.arange(0, width, 2) / width)  # (D / 2,)
    table = np.empty((length, width))
    table[:, 0::2] = np.sin(positions / divisors)
    table[:, 1::2] = np.cos(positions / divisors)
    return table


class SinusoidalPositions(keras.layers.Layer):
    """Adds the sinusoid of its position to every vector; nothing is learned.

    It is `sinusoids`, computed for any length.
    """

    def call(self, vectors, position_ids=None):
        """Adds the first S rows of the table, or those that are named.

        Args:
            vectors: Float tensor of shape `(B, S, D)`.
            position_ids: Optional integer tensor of shape `(B, S)` or
                `(1, S)`.

        Returns:
            Float tensor of shape `(B, S, D)`.
        """
        width = vectors.shape[2]
        if position_ids is None:
            position_ids = ops.arange(ops.shape(vectors)[1])  # (S,)
        positions = ops.cast(position_ids, "float32")[..., None]
        divisors = 10_000.0 ** (np.arange(0, width, 2) / width)  # (D / 2,)
        angles = positions / divisors.astype("float32")  # (S, D / 2)
        table = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
        table = ops.reshape(table, (*ops.shape(angles)[:-1], width))  # (S, D)
        return vectors + ops.cast(table, vectors.dtype)


class ScaledEmbeddings(keras.layers.Layer):
    """Turns ids into vectors: sqrt(D) times a table row, plus a sinusoid.

    Source: Vaswani et al. (2017), sections 3.4, 3.5 and 5.4.

    Args:
        config: A `Seq2SeqConfig`.
        vocab_size: V.
    """

    def __init__(self, config, vocab_size, **kwargs):
        super().__init__(**kwargs)
        self.scale = math.sqrt(config.hidden_size)
        self.token = keras.layers.Embedding(
            vocab_size,
            config.hidden_size,
            embeddings_initializer=keras.initializers.RandomNormal(
                stddev=1 / self.scale
            ),
            dtype=self.dtype_policy,
            name="token",
        )
        self.position = SinusoidalPositions(dtype=self.dtype_policy)
        self.dropout = Dropout(
            config.hidden_dropout_prob, dtype=self.dtype_policy
        )

    def build(self, ids_shape):
        """Creates the table, `(V, D)`."""
        self.token.build(ids_shape)
        self.position.build((*ids_shape, self.token.output_dim))

    def call(self, ids, position_ids=None, training=None):
        """Returns one vector a token, `(B, S, D)`, for ids, `(B, S)`."""
        vectors = self.position(self.token(ids) * self.scale, position_ids)
        return self.dropout(vectors, training=training)


class LearnedPositions(keras.layers.Layer):
    """Adds the learned vector of its position to every vector.

    Source: Devlin et al. (2019), figure 2.

    Args:
        max_length: How many positions have a vector.
        initializer_range: Standard deviation of the initial table.
    """

    def __init__(self, max_length, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.max_length = max_length
        self.initializer_range = initializer_range

    def build(self, vectors_shape):
        """Creates the table, `(max_length, D)`."""
        self.table = self.add_weight(
            shape=(self.max_length, vectors_shape[-1]),
            initializer=keras.initializers.TruncatedNormal(
                stddev=self.initializer_range
            ),
            name="table",
        )

    def call(self, vectors, position_ids=None):
        """Adds the first S rows of the table, or those that are named.

        Args:
            vectors: Float tensor of shape `(B, S, D)`.
            position_ids: Optional integer tensor of shape `(B, S)`.

        Returns:
            Float tensor of shape `(B, S, D)`.

        Raises:
            ValueError: S is above `max_length`.
        """
        length = vectors.shape[1]
        if isinstance(length, int) and length > self.max_length:
            raise ValueError(
                "A text must not be longer than `max_position_embeddings`, "
                f"{self.max_length}. Received: {length} tokens."
            )
        if position_ids is None:
            position_ids = ops.arange(ops.shape(vectors)[1])  # (S,)
        rows = ops.take(self.table, position_ids, axis=0)  # (S, D) or (B, S, D)
        return vectors + ops.cast(rows, vectors.dtype)


class BertEmbeddings(keras.layers.Layer):
    """Turns ids into vectors: token + segment + position, then LayerNorm.

    Source: Devlin et al. (2019), figure 2; LayerNorm and dropout as in
    Google's BERT.

    Args:
        config: A `BertConfig`.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.token = self._table(config, config.vocab_size, "token")
        self.segment = self._table(config, config.type_vocab_size, "segment")
        self.position = LearnedPositions(
            config.max_position_embeddings,
            config.initializer_range,
            dtype=self.dtype_policy,
            name="position",
        )
        self.norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=self.dtype_policy, name="norm"
        )
        self.dropout = Dropout(
            config.hidden_dropout_prob, dtype=self.dtype_policy
        )

    def build(self, input_ids_shape, token_type_ids_shape):
        """Creates the three tables and the norm."""
        width = self.token.output_dim
        for part in (self.token, self.segment):
            part.build(input_ids_shape)
        for part in (self.position, self.norm):
            part.build((*input_ids_shape, width))

    def call(self, input_ids, token_type_ids, position_ids=None, training=None):
        """Returns one vector a token, `(B, S, D)`.

        Args:
            input_ids: Integer tensor of shape `(B, S)`.
            token_type_ids: Integer tensor of shape `(B, S)`: 0 in the first
                text, 1 in the second.
            position_ids: Optional integer tensor of shape `(B, S)`; without
                it every row counts from 0.
            training: Whether to drop values.
        """
        vectors = self.token(input_ids) + self.segment(token_type_ids)
        vectors = self.position(vectors, position_ids)  # (B, S, D)
        return self.dropout(self.norm(vectors), training=training)

    def _table(self, config, rows, name):
        return keras.layers.Embedding(
            rows,
            config.hidden_size,
            embeddings_initializer=keras.initializers.TruncatedNormal(
                stddev=config.initializer_range
            ),
            dtype=self.dtype_policy,
            name=name,
        )
