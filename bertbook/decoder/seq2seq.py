"""An encoder-decoder: the Transformer of 2017, which translates.

Differences: the sinusoids alternate sine and cosine, as in the paper; the code
that came with it puts all sines first. Kernels start as BERT's do, tables with
a deviation of 1 / sqrt(D). Source and target share a table where they share a
vocabulary; the output matrix is the target's table in either case.
"""

from bertbook.batches import batching
from bertbook.config import check_kind
from bertbook.decoder import weights as decoder_files
from bertbook.decoder.blocks import DecoderBlock, decoder_mask, one_key_allowed
from bertbook.decoder.config import Seq2SeqConfig
from bertbook.decoder.incremental import Seq2SeqSteps, UncachedSeq2SeqSteps
from bertbook.decoder.prompts import (
    INPUTS,
    TARGET_INPUTS,
    check_positions,
    check_targets,
    check_tokenizer,
    make_sources,
)
from bertbook.model.attention import visible_keys
from bertbook.model.embeddings import ScaledEmbeddings
from bertbook.model.encoder import EncoderBlock
from bertbook.model.layers import gather_tokens
from bertbook.runtime import keras, ops
from bertbook.text.detokenize import spell
from bertbook.text.tokenizer import Tokenizer
from bertbook.weights.matrices import float_matrix
from bertbook.weights.pretrained import Pretrained
from bertbook.weights.vocabulary import (
    check_digest,
    check_vocabulary,
    digest_entry,
    find_tokenizer,
)

TARGET = "target"  # the folder of the target's own tokenizer


@keras.saving.register_keras_serializable("bertbook")
class Seq2SeqTransformer(Pretrained, keras.Model):
    """Scores what comes next in a target, given its source.

    Source: Vaswani et al. (2017), section 3.

    Args:
        config: A `Seq2SeqConfig`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    Raises:
        ValueError: `config` is something else.

    >>> import bertbook as bb
    >>> model = bb.Seq2SeqTransformer.from_pretrained("en-es")
    >>> model.config.num_hidden_layers, model.config.hidden_size
    (3, 256)
    """

    architecture = "Seq2SeqTransformer"
    config_class = Seq2SeqConfig
    input_names = (*INPUTS, TARGET_INPUTS[0])
    target_tokenizer = None
    tokenizer_names = ("tokenizer", "target_tokenizer")

    def __init__(self, config, **kwargs):
        check_kind(config, Seq2SeqConfig)
        super().__init__(**kwargs)
        self.config = config
        policy = self.dtype_policy
        self.source_embeddings = self.target_embeddings = ScaledEmbeddings(
            config, config.vocab_size, dtype=policy, name="embeddings"
        )
        if config.target_vocab_size is not None:
            self.target_embeddings = ScaledEmbeddings(
                config,
                config.target_vocab_size,
                dtype=policy,
                name="target_embeddings",
            )
        self.encoder_blocks = [
            EncoderBlock(config, dtype=policy, name=f"encoder_block_{i}")
            for i in range(config.num_hidden_layers)
        ]
        self.decoder_blocks = [
            DecoderBlock(
                config,
                cross_attention=True,
                norm_first=False,
                dtype=policy,
                name=f"decoder_block_{i}",
            )
            for i in range(config.decoder_layers)
        ]
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        hidden_shape = (None, None, self.config.hidden_size)
        self.source_embeddings.build((None, None))
        if self.config.target_vocab_size is not None:
            self.target_embeddings.build((None, None))
        for block in (*self.encoder_blocks, *self.decoder_blocks):
            block.build(hidden_shape)

    def call(
        self, batch, positions=None, output_attentions=False, training=None
    ):
        """Returns logits: `(B, T, V)`, at t for the target token at t + 1.

        Args:
            batch: A dict of `input_ids`, the sources, `(B, S)`, and
                `decoder_input_ids`, the targets from their start token on,
                `(B, T)`: integer tensors. Where they matter, `attention_mask`
                and `decoder_attention_mask` of the same shapes; padding after
                a target needs none.
            positions: Optional integer tensor of shape `(B, M)`: the only
                target tokens whose logits are wanted, `(B, M, V)`.
            output_attentions: Whether to return the attention weights.
            training: Whether to drop values.

        Returns:
            The logits; on demand a dict of `logits`, `encoder_attentions`,
            `(B, N, S, S)`, `attentions`, `(B, N, T, T)`, and
            `cross_attentions`, `(B, N, T, S)`, once a layer each.

        Raises:
            ValueError: The batch does not fit the config, as
                `batching.check_batch` says, or `positions` names a token that
                is not there.
        """
        check_positions(positions, batch["decoder_input_ids"])
        encoded, encoder_attentions = self.encode(batch, training)
        logits, attentions = self.decode(
            batch, encoded, positions, training=training
        )
        if not output_attentions:
            return logits
        self_weights, cross_weights = zip(*attentions, strict=True)
        return {
            "logits": logits,
            "encoder_attentions": encoder_attentions,
            "attentions": list(self_weights),
            "cross_attentions": list(cross_weights),
        }

    def encode(self, batch, training=None):
        """Reads sources.

        Args:
            batch: `input_ids` and perhaps `attention_mask`, `(B, S)`.
            training: Whether to drop values.

        Returns:
            Their vectors, `(B, S, D)`, and the attention weights, once a
            layer `(B, N, S, S)`.
        """
        mask = visible_keys(batch.get("attention_mask"))
        hidden = self.source_embeddings(batch["input_ids"], training=training)
        attentions = []
        for block in self.encoder_blocks:
            with one_key_allowed():
                hidden, weights = block(
                    hidden, mask, return_weights=True, training=training
                )
            attentions.append(weights)
        return hidden, attentions

    def decode(self, batch, encoded, positions=None, training=None):
        """Reads targets, all tokens at once, each seeing those before it.

        Args:
            batch: As in `call`.
            encoded: What `encode` made of the sources, `(B, S, D)`.
            positions: As in `call`.
            training: Whether to drop values.

        Returns:
            Logits, `(B, T, V)` or `(B, M, V)`, and the weights of self- and
            of cross-attention, once a layer.
        """
        ids = batch["decoder_input_ids"]
        mask = decoder_mask(ids, batch.get("decoder_attention_mask"))
        source_mask = visible_keys(batch.get("attention_mask"))
        hidden = self.target_embeddings(ids, training=training)
        attentions = []
        for block in self.decoder_blocks:
            source = block.cross_attention.read_source(encoded)
            hidden, weights, _ = block(
                hidden, mask, source, source_mask, training=training
            )
            attentions.append(weights)
        return self.score(hidden, positions), attentions

    def score(self, hidden, positions=None):
        """Returns logits, the product with the target's table.

        Args:
            hidden: Float tensor of shape `(B, T, D)`.
            positions: Optional integer tensor of shape `(B, M)`.

        Returns:
            Float tensor of shape `(B, T, V)` or `(B, M, V)`.

        Raises:
            ValueError: A table is quantized in a way that is not read.
        """
        if positions is not None:
            hidden = gather_tokens(hidden, positions)
        table = float_matrix(self.target_embeddings.token)  # (V, D)
        table = ops.cast(table, hidden.dtype)
        return ops.matmul(hidden, ops.transpose(table))

    def steps(self, use_cache=True):
        """Returns the steps that write targets, one token at a time.

        Args:
            use_cache: Whether to keep keys and values of former tokens.
        """
        return (Seq2SeqSteps if use_cache else UncachedSeq2SeqSteps)(self)

    def prompts(self, texts):
        """Returns texts as a batch; see `prompts.make_sources`.

        Args:
            texts: A list of B raw texts.

        Raises:
            ValueError: There is no tokenizer, or a text is without a piece.
        """
        config = self.config
        check_tokenizer(self.tokenizer, config, config.vocab_size)
        check_tokenizer(self.target_tokenizer, config, config.output_size)
        return make_sources(texts, self.tokenizer)

    def read(self, source, new):
        """Returns the text of a target, its ids `new`; `source` is not read.

        Raises:
            ValueError: An id is no integer, or outside the vocabulary.
        """
        return spell(new, self.target_tokenizer)

    def longest_input(self, max_length):
        """Returns the longest source; targets have positions of their own.

        Args:
            max_length: Most new tokens; it takes no room of the source.
        """
        return self.config.max_position_embeddings

    def _find_tokenizers(self, checkpoint):
        self.tokenizer = self.target_tokenizer = find_tokenizer(checkpoint)
        size = self.config.target_vocab_size
        if size is None:
            return
        self.target_tokenizer = None
        folder = checkpoint.folder / TARGET
        if folder.is_dir():
            self.target_tokenizer = Tokenizer.from_pretrained(folder)
            check_digest(self.target_tokenizer, folder, checkpoint, TARGET)
            name = "target_vocab_size"
            check_vocabulary(self.target_tokenizer, size, name)

    def _save_tokenizers(self, folder):
        super()._save_tokenizers(folder)
        tokenizer = self.target_tokenizer
        if tokenizer is not None and tokenizer is not self.tokenizer:
            tokenizer.write_files(
                folder / TARGET, self.config.max_position_embeddings
            )

    def _metadata(self):
        target = self.target_tokenizer
        if target is None or target is self.tokenizer:
            return super()._metadata()
        return super()._metadata() | digest_entry(target, TARGET)

    def _write(self, folder, config, arrays, *options):
        decoder_files.write_seq2seq(folder, config, arrays, *options)

    @classmethod
    def _read(cls, name_or_dir):
        return decoder_files.read_seq2seq(name_or_dir)

    def _check_values(self, arrays):
        source = {n: arrays[n] for n in INPUTS if n in arrays}
        batching.check_batch(source, self.config)
        check_targets(arrays, self.config)

    def _check_shapes(self, batch):
        for name in ("input_ids", "decoder_input_ids"):
            if name in batch:
                batching.check_shape(batch[name].shape, self.config)
