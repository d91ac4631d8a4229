"""One classifier for every reader: some layers, one vector a text, one matrix.

Differences: the papers' heads differ; BERT has a dense layer before its
matrix, ULMFiT one with batch normalization. Here the matrix is all, so that
the readers are what is compared.
"""

from bertbook.dropout import Dropout
from bertbook.lineage import hidden_states
from bertbook.lstm import LayerMix
from bertbook.runtime import keras, ops

POOLINGS = ("first", "last", "mean", "concat", "mix")


class TextClassifier(keras.Model):
    """Gives a text one logit for each label.

    Args:
        reader: An LSTM language model, a `CausalLM` or a `BertEncoder`.
        pooling: "first", the vector of the first token (BERT); "last", that of
            the last real one (GPT); "mean" of the real ones; "concat", last,
            maximum and mean side by side (ULMFiT); "mix", the mean of a
            weighted sum of all layers (ELMo).
        num_labels: K.
        dropout: Rate before the matrix.

    Raises:
        ValueError: `pooling` is unknown, or `num_labels` is below 2.
    """

    def __init__(self, reader, pooling, num_labels=2, dropout=0.1, **kwargs):
        if pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {', '.join(POOLINGS)}. "
                f"Received: {pooling!r}."
            )
        if num_labels < 2:
            raise ValueError(
                f"`num_labels` must be >= 2. Received: {num_labels}."
            )
        super().__init__(**kwargs)
        self.reader = reader
        self.pooling = pooling
        self.dropout = Dropout(dropout)
        self.mix = None
        if pooling == "mix":
            self.mix = LayerMix(len(reader.config.widths) + 1, name="mix")
        self.head = keras.layers.Dense(num_labels, name="head")

    def call(self, batch, training=None):
        """Returns logits, `(B, K)`.

        Args:
            batch: A dict of `input_ids` and `attention_mask`, `(B, S)`.
            training: Whether to drop values.
        """
        layers = hidden_states(self.reader, batch, training)
        last = layers[-1] if self.mix is None else self.mix(layers)
        pooling = "mean" if self.pooling == "mix" else self.pooling
        vector = pool(last, batch["attention_mask"], pooling)
        return self.head(self.dropout(vector, training=training))


def pool(vectors, attention_mask, pooling):
    """Makes one vector a text of one vector a token.

    Source: "concat" is Howard and Ruder (2018), section 3.3.

    Args:
        vectors: Float tensor of shape `(B, S, D)`.
        attention_mask: Integer tensor of shape `(B, S)`, 1 for real tokens,
            padding at the right.
        pooling: "first", "last", "mean" or "concat".

    Returns:
        `(B, D)`, or `(B, 3 D)` for "concat".
    """
    if pooling == "first":
        return vectors[:, 0]
    real = ops.cast(attention_mask, vectors.dtype)[:, :, None]  # (B, S, 1)
    counts = ops.sum(real, axis=1)  # (B, 1)
    mean = ops.sum(vectors * real, axis=1) / counts
    if pooling == "mean":
        return mean
    places = ops.cast(counts, "int32")[:, :, None] - 1  # (B, 1, 1)
    last = ops.take_along_axis(vectors, places, axis=1)[:, 0]
    if pooling == "last":
        return last
    highest = ops.max(ops.where(real > 0, vectors, -1e9), axis=1)
    return ops.concatenate([last, highest, mean], axis=-1)
