"""What stands on top of the encoder.

Differences: none. The masked-word head shares the token table, and is
computed for the hidden tokens alone, as in Google's code.
"""

from bertbook.encoder import activation
from bertbook.layers import Dense, LayerNorm
from bertbook.runtime import keras, ops


class MaskedLMHead(keras.layers.Layer):
    """Scores every piece of the vocabulary for a hidden token.

    A dense layer, activation and norm, then the product with the token table
    and a bias of its own for every piece.

    Source: Devlin et al. (2019), section 3.1, and `get_masked_lm_output` of
    Google's code.

    Args:
        config: A `BertConfig`.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size
        self.dense = Dense(
            config.hidden_size,
            config.initializer_range,
            activation(config.hidden_act),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=self.dtype_policy, name="norm"
        )

    def build(self, hidden_shape):
        """Creates the dense layer, the norm and the bias, `(V,)`."""
        self.dense.build(hidden_shape)
        self.norm.build(hidden_shape)
        self.bias = self.add_weight(
            shape=(self.vocab_size,), initializer="zeros", name="bias"
        )

    def call(self, hidden, token_table):
        """Returns logits, `(B, M, V)`.

        Args:
            hidden: Float tensor of shape `(B, M, D)`.
            token_table: The table of the token embeddings, `(V, D)`.
        """
        hidden = self.norm(self.dense(hidden))  # (B, M, D)
        table = ops.cast(token_table, hidden.dtype)
        logits = ops.matmul(hidden, ops.transpose(table))  # (B, M, V)
        return logits + self.bias


def next_sentence_head(config, dtype):
    """Returns the layer that scores "goes on" and "does not", `(B, 2)`.

    Source: Devlin et al. (2019), section 3.1.

    Args:
        config: A `BertConfig`.
        dtype: The dtype policy of the model.
    """
    return Dense(2, config.initializer_range, dtype=dtype, name="next_sentence")


def task_head(units, config, dtype, name):
    """Returns the one layer that a task adds on top of the encoder.

    Source: Devlin et al. (2019), section 4.

    Args:
        units: Number of outputs, for example K classes.
        config: A `BertConfig`.
        dtype: The dtype policy of the model.
        name: The layer's name, "classifier" or "span".
    """
    return Dense(units, config.initializer_range, dtype=dtype, name=name)
