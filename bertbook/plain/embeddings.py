"""Ids to vectors: token + segment + position, then normalization."""

import keras
import numpy as np
from keras import layers, ops


def nearest(vector, table, k=5):
    """Returns the numbers of the k rows with the largest cosine to a vector.

    Args: `vector`, `(D,)`; `table`, `(V, D)`. The best comes first.
    """
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(vector)
    return np.argsort(-(table @ vector) / lengths)[:k]


def normal():
    """Returns how BERT draws its matrices: truncated normal, deviation 0.02."""
    return keras.initializers.TruncatedNormal(stddev=0.02)


class Embeddings(layers.Layer):
    """Adds a token's vector, its segment's and its position's, and normalizes.

    V pieces, width D, P positions. Source: Devlin et al. (2019), figure 2.
    """

    def __init__(self, V, D, P=512, dropout=0.1):
        super().__init__()
        self.token = layers.Embedding(V, D, normal())
        self.segment = layers.Embedding(2, D, normal())
        self.position = layers.Embedding(P, D, normal())
        self.norm = layers.LayerNormalization(epsilon=1e-12)
        self.dropout = layers.Dropout(dropout)

    def call(self, ids, segments):
        """Returns vectors, `(B, S, D)`, for ids and segments, `(B, S)`."""
        positions = ops.arange(ops.shape(ids)[1])  # (S,)
        vectors = self.token(ids) + self.segment(segments)  # (B, S, D)
        vectors = vectors + self.position(positions)
        return self.dropout(self.norm(vectors))
