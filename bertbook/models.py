"""BERT with a head: one short class for each thing that it can do.

Differences: none; the names are those of Hugging Face.
"""

from bertbook.encoder import BertEncoder
from bertbook.heads import MaskedLMHead, next_sentence_head
from bertbook.pretrained import Pretrained
from bertbook.runtime import keras, ops


@keras.saving.register_keras_serializable("bertbook")
class BertForMaskedLM(Pretrained, keras.Model):
    """Guesses hidden tokens.

    Source: Devlin et al. (2019), section 3.1, task 1.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.
    """

    architecture = "BertForMaskedLM"
    weight_prefix = "bert."

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(**kwargs)
        self.encoder = BertEncoder(
            config,
            attention,
            pooler=False,
            dtype=self.dtype_policy,
            name="encoder",
        )
        self.config = config
        self.masked_lm = MaskedLMHead(
            config, dtype=self.dtype_policy, name="masked_lm"
        )
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the head; called once, by `__init__`."""
        self.masked_lm.build((None, None, self.config.hidden_size))

    def call(self, batch, training=None):
        """Returns logits: `(B, M, V)` for the tokens at `masked_lm_positions`.

        Args:
            batch: As in `BertEncoder.call`, and `masked_lm_positions`,
                `(B, M)`; without them every token gets logits, `(B, S, V)`.
            training: Whether to drop values.
        """
        outputs = self.encoder(
            batch,
            positions=batch.get("masked_lm_positions"),
            training=training,
        )
        table = self.encoder.embeddings.token.embeddings  # (V, D), shared
        return self.masked_lm(outputs["sequence_output"], table)

    def get_config(self):
        """Returns what Keras needs to build this model again."""
        return get_config(self, super().get_config())


@keras.saving.register_keras_serializable("bertbook")
class BertForPreTraining(Pretrained, keras.Model):
    """Guesses hidden tokens, and whether the second text goes on.

    Source: Devlin et al. (2019), section 3.1.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.
    """

    architecture = "BertForPreTraining"
    weight_prefix = "bert."

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(**kwargs)
        self.encoder = BertEncoder(
            config, attention, dtype=self.dtype_policy, name="encoder"
        )
        self.config = config
        self.masked_lm = MaskedLMHead(
            config, dtype=self.dtype_policy, name="masked_lm"
        )
        self.next_sentence = next_sentence_head(config, self.dtype_policy)
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the heads; called once, by `__init__`."""
        width = self.config.hidden_size
        self.masked_lm.build((None, None, width))
        self.next_sentence.build((None, width))

    def call(self, batch, training=None):
        """Returns a dict of both logits.

        Args:
            batch: As in `BertEncoder.call`, and `masked_lm_positions`,
                `(B, M)`; without them every token gets logits.
            training: Whether to drop values.

        Returns:
            `mlm_logits`, `(B, M, V)`, and `nsp_logits`, `(B, 2)`: first "goes
            on", then "does not"; `(B, E, 2)` for rows of E examples.
        """
        pooled, hidden = pooled_and_hidden(self.encoder, batch, training)
        table = self.encoder.embeddings.token.embeddings  # (V, D), shared
        return {
            "mlm_logits": self.masked_lm(hidden, table),
            "nsp_logits": self.next_sentence(pooled),
        }

    def get_config(self):
        """Returns what Keras needs to build this model again."""
        return get_config(self, super().get_config())


def pooled_and_hidden(encoder, batch, training=None):
    """Returns the vectors that both tasks need, and computes no others.

    At a length of 128, one token in six is hidden. The last feed-forward
    network works on those and on [CLS] alone.

    Args:
        encoder: A `BertEncoder` with a pooler.
        batch: The batch, with `masked_lm_positions` or without.
        training: Whether to drop values.

    Returns:
        The pooled vectors, `(B, D)`, or `(B, E, D)` for rows of E examples;
        and those of the hidden tokens, `(B, M, D)`, or of all, `(B, S, D)`.
    """
    if "masked_lm_positions" not in batch:
        outputs = encoder(batch, training=training)
        return outputs["pooled_output"], outputs["sequence_output"]
    masked = ops.cast(batch["masked_lm_positions"], "int32")
    first = batch.get("cls_positions", ops.zeros_like(masked[:, :1]))  # (B, E)
    positions = ops.concatenate([ops.cast(first, "int32"), masked], axis=1)
    outputs = encoder(batch, positions=positions, training=training)
    vectors = outputs["sequence_output"]  # (B, E + M, D)
    count = ops.shape(first)[1]
    pooled = encoder.pooler(vectors[:, :count])
    if "cls_positions" not in batch:
        pooled = pooled[:, 0]
    return pooled, vectors[:, count:]


def get_config(model, config):
    """Adds what the encoder was asked for to a model's config."""
    return {**config, "attention": model.encoder.asked_attention}
