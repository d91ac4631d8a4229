"""BERT with a head: one short class for each thing that it can do.

Differences: none; the names are those of Hugging Face.
"""

from bertbook.encoder import BertEncoder, gather_tokens
from bertbook.heads import MaskedLMHead, next_sentence_head
from bertbook.pretrained import Pretrained
from bertbook.runtime import keras


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
        hidden = self.encoder(batch, training=training)["sequence_output"]
        return masked_lm_logits(self, hidden, batch)

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
        outputs = self.encoder(batch, training=training)
        hidden = outputs["sequence_output"]
        return {
            "mlm_logits": masked_lm_logits(self, hidden, batch),
            "nsp_logits": self.next_sentence(outputs["pooled_output"]),
        }

    def get_config(self):
        """Returns what Keras needs to build this model again."""
        return get_config(self, super().get_config())


def masked_lm_logits(model, hidden, batch):
    """Returns the logits of the hidden tokens, or of all.

    Only the vectors of hidden tokens go through the head: at a length of 128
    that is one in six, and the product with the token table is the largest of
    a small model.

    Args:
        model: A model with `masked_lm` and `encoder`.
        hidden: Float tensor of shape `(B, S, D)`.
        batch: The batch, with `masked_lm_positions` or without.

    Returns:
        `(B, M, V)`, or `(B, S, V)`.
    """
    if "masked_lm_positions" in batch:
        positions = batch["masked_lm_positions"]
        hidden = gather_tokens(hidden, positions)  # (B, M, D)
    table = model.encoder.embeddings.token.embeddings  # (V, D), shared
    return model.masked_lm(hidden, table)


def get_config(model, config):
    """Adds what the encoder was asked for to a model's config."""
    return {**config, "attention": model.encoder.asked_attention}
