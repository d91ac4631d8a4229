"""A causal language model: GPT, the decoder without a source.

Differences: from GPT-2 none, with the sizes of `CausalLMConfig.named`. From
the decoder of Vaswani et al. (2017): no cross-attention, learned positions,
and normalization before each part and once more at the end.
"""

import math

from bertbook.batches import batching
from bertbook.config import check_kind
from bertbook.decoder import weights as decoder_files
from bertbook.decoder.blocks import DecoderBlock, decoder_mask
from bertbook.decoder.config import CausalLMConfig
from bertbook.decoder.incremental import CausalSteps, UncachedCausalSteps
from bertbook.decoder.prompts import INPUTS, check_positions, make_prompts
from bertbook.locations import WEIGHT_FILES
from bertbook.model.embeddings import LearnedPositions
from bertbook.model.layers import Dropout, gather_tokens
from bertbook.runtime import keras, ops
from bertbook.weights.matrices import float_matrix
from bertbook.weights.pretrained import Pretrained


@keras.saving.register_keras_serializable("bertbook")
class CausalLM(Pretrained, keras.Model):
    """Scores what comes next, after every token of a text.

    Source: Radford et al. (2019), section 2.3.

    Args:
        config: A `CausalLMConfig`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    Raises:
        ValueError: `config` is something else.

    >>> import bertbook as bb
    >>> config = bb.CausalLMConfig(hidden_size=48, num_hidden_layers=2)
    >>> model = bb.CausalLM(config)
    >>> tuple(model({"input_ids": [[5, 6, 7]]}).shape)  # (B, S, V)
    (1, 3, 50257)
    """

    architecture = "GPT2LMHeadModel"
    config_class = CausalLMConfig
    input_names = INPUTS

    def __init__(self, config, **kwargs):
        check_kind(config, CausalLMConfig)
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.token = keras.layers.Embedding(
            config.vocab_size,
            config.hidden_size,
            embeddings_initializer=keras.initializers.TruncatedNormal(
                stddev=config.initializer_range
            ),
            dtype=policy,
            name="token",
        )
        self.position = LearnedPositions(
            config.max_position_embeddings,
            config.initializer_range,
            dtype=policy,
            name="position",
        )
        self.dropout = Dropout(config.hidden_dropout_prob, dtype=policy)
        self.blocks = [
            DecoderBlock(
                config,
                cross_attention=False,
                norm_first=True,
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(config.num_hidden_layers)
        ]
        self.final_norm = keras.layers.LayerNormalization(
            epsilon=config.layer_norm_eps, dtype=policy, name="final_norm"
        )
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; called once, by `__init__`.

        The matrices whose outputs are added up, 2 L of them, start smaller by
        the root of 2 L, as in GPT-2.

        Args:
            input_shape: Given by Keras, and not read.
        """
        hidden_shape = (None, None, self.config.hidden_size)
        self.token.build((None, None))
        for part in (self.position, *self.blocks, self.final_norm):
            part.build(hidden_shape)
        scale = 1 / math.sqrt(2 * len(self.blocks))
        for block in self.blocks:
            for added in (
                block.attention.output_projection,
                block.feed_forward.contract,
            ):
                added.kernel.assign(added.kernel * scale)

    def call(
        self,
        batch,
        positions=None,
        output_hidden_states=False,
        output_attentions=False,
        training=None,
    ):
        """Returns logits: `(B, S, V)`, at t for the token at t + 1.

        Args:
            batch: A dict of `input_ids` and, where they matter,
                `attention_mask` (else all 1) and `position_ids` (else from 0):
                integer tensors of shape `(B, S)`. A mask of shape `(B, S, S)`
                says for every token what it may look at, never what comes
                after it. Other keys, such as `token_type_ids`, are not read.
            positions: Optional integer tensor of shape `(B, M)`: the only
                tokens whose logits are wanted, `(B, M, V)`.
            output_hidden_states: Whether to return what every layer gives.
            output_attentions: Whether to return the attention weights.
            training: Whether to drop values.

        Returns:
            The logits; on demand a dict of `logits` and `hidden_states`,
            L + 1 times `(B, S, D)`, the embeddings first and the last one
            normalized, or `attentions`, L times `(B, N, S, S)`, or both.

        Raises:
            ValueError: The batch does not fit the config, as
                `batching.check_batch` says, or `positions` names a token that
                is not there.
        """
        ids = batch["input_ids"]
        check_positions(positions, ids)
        mask = decoder_mask(ids, batch.get("attention_mask"))
        hidden = self.embed(ids, batch.get("position_ids"), training)
        hidden_states, attentions = [hidden], []
        for block in self.blocks:
            hidden, (weights, _), _ = block(hidden, mask, training=training)
            hidden_states.append(hidden)
            attentions.append(weights)
        hidden_states[-1] = self.final_norm(hidden)
        logits = self.score(hidden_states[-1], positions)
        outputs = {"logits": logits}
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if output_attentions:
            outputs["attentions"] = attentions
        return outputs if len(outputs) > 1 else logits

    def embed(self, input_ids, position_ids=None, training=None):
        """Returns token plus position, `(B, S, D)`, for ids, `(B, S)`.

        Args:
            input_ids: Integer tensor of shape `(B, S)`.
            position_ids: Optional integer tensor of shape `(B, S)`; without it
                positions are counted from 0.
            training: Whether to drop values.
        """
        vectors = self.position(self.token(input_ids), position_ids)
        return self.dropout(vectors, training=training)

    def score(self, hidden, positions=None):
        """Returns logits, the product with the token table.

        Args:
            hidden: Float tensor of shape `(B, S, D)`, normalized.
            positions: Optional integer tensor of shape `(B, M)`.

        Returns:
            Float tensor of shape `(B, S, V)` or `(B, M, V)`.

        Raises:
            ValueError: A table is quantized in a way that is not read.
        """
        if positions is not None:
            hidden = gather_tokens(hidden, positions)
        table = ops.cast(float_matrix(self.token), hidden.dtype)  # (V, D)
        return ops.matmul(hidden, ops.transpose(table))

    def steps(self, use_cache=True):
        """Returns the steps that continue a prompt, one token at a time.

        Args:
            use_cache: Whether to keep keys and values of former tokens.
        """
        return (CausalSteps if use_cache else UncachedCausalSteps)(self)

    def prompts(self, texts):
        """Returns texts as a batch; see `prompts.make_prompts`.

        Args:
            texts: A list of B raw texts.

        Raises:
            ValueError: There is no tokenizer, or `texts` holds something else.
        """
        return make_prompts(texts, self.tokenizer, self.config)

    def read(self, prompt, new):
        """Returns the text of a prompt and what follows it, both ids.

        Args:
            prompt: The ids of the prompt.
            new: The ids that the model wrote.
        """
        return self.tokenizer.decode([*prompt, *new])

    def longest_input(self, max_length):
        """Returns the longest prompt that leaves room for some new tokens.

        Args:
            max_length: Most new tokens.
        """
        return self.config.max_position_embeddings - max_length

    def _find_tokenizers(self, checkpoint):
        if "tokenizer.json" not in checkpoint.skipped:  # it holds WordPieces
            super()._find_tokenizers(checkpoint)

    def _replaced(self, folder):
        if self.tokenizer is None:  # a BPE vocabulary there is not read here
            return WEIGHT_FILES
        return super()._replaced(folder)

    def _write(self, folder, config, arrays, *options):
        decoder_files.write_causal(folder, config, arrays, *options)

    @classmethod
    def _read(cls, name_or_dir):
        return decoder_files.read_causal(name_or_dir)

    def _check_values(self, arrays):
        known = {
            name: arrays[name]
            for name in (*INPUTS, "position_ids")
            if name in arrays
        }
        batching.check_batch(known, self.config)
