"""The encoder: blocks of attention and feed-forward, stacked L times.

Differences: none from Devlin et al. (2019). Normalization comes after each
residual sum (post-norm), as in the released code.
"""

import numpy as np

from bertbook.batches.progress import Progress
from bertbook.batches.ragged import batches_for, check_finite
from bertbook.checks import (
    check_column,
    check_count,
    check_max_length,
    check_switch,
)
from bertbook.config import POOLINGS, BertConfig, check_kind
from bertbook.datasets.columns import as_list
from bertbook.model.attention import (
    SelfAttention,
    choose_path,
    visible_keys,
)
from bertbook.model.embeddings import BertEmbeddings
from bertbook.model.layers import (
    Dense,
    Dropout,
    FeedForward,
    LayerNorm,
    gather_tokens,
)
from bertbook.runtime import keras, ops
from bertbook.tasks.base import Settings
from bertbook.tasks.text_tasks import tokenize_texts
from bertbook.weights.pretrained import Pretrained
from bertbook.weights.sentence_transformers import (
    TextVectors,
    stored_vectors,
    write_vectors,
)


class EncoderBlock(keras.layers.Layer):
    """One layer of BERT: attention and feed-forward, each added and normed.

    Source: Vaswani et al. (2017), section 3.1.

    Args:
        config: A `BertConfig`.
        attention_path: One of `attention.PATHS`; see `choose_path` there.
    """

    def __init__(self, config, attention_path="einsum", **kwargs):
        super().__init__(**kwargs)
        self.attention = SelfAttention(
            config.hidden_size,
            config.num_attention_heads,
            dropout=config.attention_probs_dropout_prob,
            initializer_range=config.initializer_range,
            implementation=attention_path,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.feed_forward = FeedForward(
            config, dtype=self.dtype_policy, name="feed_forward"
        )
        self.attention_norm, self.output_norm = (
            LayerNorm(
                epsilon=config.layer_norm_eps,
                dtype=self.dtype_policy,
                name=name,
            )
            for name in ("attention_norm", "output_norm")
        )
        self.dropout = Dropout(
            config.hidden_dropout_prob, dtype=self.dtype_policy
        )

    def build(self, hidden_shape):
        """Creates the weights for vectors of width D."""
        self.attention.build(hidden_shape)
        self.attention_norm.build(hidden_shape)
        self.feed_forward.build(hidden_shape)
        self.output_norm.build(hidden_shape)

    def call(
        self,
        hidden,
        attention_mask=None,
        return_weights=False,
        positions=None,
        training=None,
    ):
        """Returns new vectors.

        Args:
            hidden: Float tensor of shape `(B, S, D)`.
            attention_mask: Optional boolean tensor that broadcasts to
                `(B, N, S, S)`.
            return_weights: Whether to return the attention weights too.
            positions: Optional integer tensor of shape `(B, M)`: the tokens
                whose vectors are wanted; without it, all.
            training: Whether to drop values.

        Returns:
            The vectors, `(B, S, D)` or `(B, M, D)`; with `return_weights`
            also the weights, `(B, N, S, S)`.
        """
        gathered = self.attention(
            hidden,
            attention_mask=attention_mask,
            return_weights=return_weights,
            training=training,
        )
        if return_weights:
            gathered, weights = gathered
        if positions is not None:  # what follows treats each token by itself
            hidden = gather_tokens(hidden, positions)  # (B, M, D)
            gathered = gather_tokens(gathered, positions)
        gathered = self.dropout(gathered, training=training)
        hidden = self.attention_norm(hidden + gathered)  # (B, S, D)
        worked = self.feed_forward(hidden)
        worked = self.dropout(worked, training=training)
        hidden = self.output_norm(hidden + worked)  # (B, S, D)
        return (hidden, weights) if return_weights else hidden


@keras.saving.register_keras_serializable("bertbook")
class BertEncoder(Pretrained, keras.Model):
    """Turns ids into one vector a token that knows its context.

    Source: Devlin et al. (2019), section 3; the pooler is in its code.

    Args:
        config: A `BertConfig`.
        attention: "auto", "einsum", "fused" or "islands"; `attention_path`
            tells which one runs.
        pooler: Whether there is a pooler; models that predict tokens have none.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    Raises:
        ValueError: `config` is not a `BertConfig`, or `attention` cannot run
            here.

    >>> import bertbook as bb
    >>> encoder = bb.BertEncoder.from_pretrained("mini")
    >>> outputs = encoder(encoder.tokenizer(["The bank was shut."]))
    >>> tuple(outputs["sequence_output"].shape)
    (1, 7, 256)
    >>> encoder.embed_texts(["The bank was shut.", "Fire!"]).shape
    (2, 256)
    """

    architecture = "BertModel"
    _weight_prefix = ""

    def __init__(self, config, attention="auto", pooler=True, **kwargs):
        check_kind(config, BertConfig)
        super().__init__(**kwargs)
        self.config = config
        self.asked_attention = attention
        self.attention, self.attention_reason = choose_path(
            attention,
            config.attention_probs_dropout_prob,
            self.compute_dtype,
            config.hidden_size // config.num_attention_heads,
        )
        self.embeddings = BertEmbeddings(
            config, dtype=self.dtype_policy, name="embeddings"
        )
        self.blocks = [
            EncoderBlock(
                config,
                self.attention,
                dtype=self.dtype_policy,
                name=f"block_{i}",
            )
            for i in range(config.num_hidden_layers)
        ]
        self.pooler = (
            _make_pooler(config, self.dtype_policy) if pooler else None
        )
        self.build()

    def build(self, input_shape=None):
        """Creates every weight; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        hidden_shape = (None, None, self.config.hidden_size)
        self.embeddings.build((None, None), (None, None))
        for block in self.blocks:
            block.build(hidden_shape)
        if self.pooler is not None:
            self.pooler.build((None, self.config.hidden_size))

    def call(
        self,
        batch,
        output_hidden_states=False,
        output_attentions=False,
        positions=None,
        training=None,
    ):
        """Encodes a batch.

        Args:
            batch: A dict of `input_ids` and, where they matter,
                `token_type_ids` (else all 0) and `attention_mask` (else all
                1): integer tensors of shape `(B, S)`. A mask of shape
                `(B, S, S)` says for every token what it may look at. Rows
                that hold several examples come with `position_ids`, `(B, S)`,
                and `cls_positions`, `(B, E)`; E examples a row; see
                `packing.pack`.
            output_hidden_states: Whether to return what every layer gives.
            output_attentions: Whether to return the attention weights.
            positions: Optional integer tensor of shape `(B, M)`: the only
                tokens whose vectors are wanted. The last layer then leaves
                out the others, which saves time; nothing is pooled.
            training: Whether to drop values.

        Returns:
            A dict of `sequence_output`, `(B, S, D)` or `(B, M, D)`, and, with
            a pooler, `pooled_output`, `(B, D)`, or `(B, E, D)`; on demand
            `hidden_states`, L + 1 times `(B, S, D)` with the embeddings
            first, and `attentions`, L times `(B, N, S, S)`.

        Raises:
            ValueError: The batch does not fit the config, as
                `batching.check_batch` says.
        """
        input_ids = batch["input_ids"]
        segments = batch.get("token_type_ids", ops.zeros_like(input_ids))
        mask = visible_keys(batch.get("attention_mask"))
        hidden = self.embeddings(
            input_ids, segments, batch.get("position_ids"), training=training
        )
        hidden_states, attentions = [hidden], []
        for block in self.blocks:
            hidden = block(
                hidden,
                attention_mask=mask,
                return_weights=output_attentions,
                positions=positions if block is self.blocks[-1] else None,
                training=training,
            )
            if output_attentions:
                hidden, weights = hidden
                attentions.append(weights)
            hidden_states.append(hidden)
        outputs = {"sequence_output": hidden}
        if self.pooler is not None and positions is None:
            first = hidden[:, 0]  # the [CLS] token
            if "cls_positions" in batch:
                first = gather_tokens(hidden, batch["cls_positions"])
            outputs["pooled_output"] = self.pooler(first)
        if output_hidden_states:
            outputs["hidden_states"] = hidden_states
        if output_attentions:
            outputs["attentions"] = attentions
        return outputs

    def get_config(self):
        """Returns what Keras needs to build this encoder again."""
        return {
            **super().get_config(),
            "attention": self.asked_attention,
            "pooler": self.pooler is not None,
        }

    def embed_texts(
        self,
        texts,
        pooling=None,
        max_length=None,
        batch_size=32,
        *,
        verbose=False,
    ):
        """Returns one vector a text, `(B, D)` float32 NumPy.

        Texts of similar length are computed together, so that little is
        wasted on padding; the order of the result is that of `texts`.

        Without `pooling`, an encoder from a folder of sentence-transformers
        gives the vectors that this library gives, to 1e-5: pooled, cut and
        normalized as the files of the folder say, and after their prompt, if
        they name one. The config keeps that as `text_vectors`.

        Args:
            texts: A list of B raw texts, or a column of a table. An empty
                text has a vector, too, that of its special tokens.
            pooling: "mean" of all tokens, "cls" for the first, or "max",
                never normalized. None: what the model's folder says, else
                "mean".
            max_length: Length to cut to. None never cuts, but where the folder
                decides about `pooling`, it decides about this, too.
            batch_size: Most texts computed at a time.
            verbose: Whether to print how far it is.

        Raises:
            ValueError: The encoder has no tokenizer, `pooling` is unknown, or
                None where the folder asks for what is not computed here; a
                text is too long, or a vector is NaN or infinite.
        """
        check_count(batch_size, "batch_size")
        check_max_length(max_length, has_pair=False)
        check_switch(verbose, "verbose")
        texts = check_column(as_list(texts, "texts"), "texts")
        if self.tokenizer is None:
            raise ValueError(
                "`embed_texts` needs a tokenizer: no vocabulary was found "
                "beside the weights. Set `encoder.tokenizer`."
            )
        how = _vectors_by(pooling, self.config)
        texts = [how.prepare(text) for text in texts]
        vectors = np.empty((len(texts), self.config.hidden_size), "float32")
        if not texts:
            return vectors
        settings = Settings(max_length=max_length or how.max_length)
        ragged = tokenize_texts(self, texts, None, settings)
        progress = Progress(len(texts), "texts", verbose)
        for rows, part in batches_for(self, ragged, batch_size):
            outputs = self.compute_on_batch(part)["sequence_output"]
            check_finite(outputs, self, len(rows))
            outputs = outputs.astype("float32")  # 16 bits are too few to sum
            pooled = _pool(outputs, part["attention_mask"], how.pooling)
            vectors[rows] = pooled[: len(rows)]
            progress.add(len(rows))
        check_finite(vectors, self)
        return _to_length_one(vectors) if how.normalize else vectors

    def _write(self, folder, config, arrays, *options):
        super()._write(folder, config, arrays, *options)
        write_vectors(folder, config)


def _vectors_by(pooling, config):
    """Returns how vectors are made: as asked for, else as the config says."""
    if pooling is None:
        return stored_vectors(config)
    if not isinstance(pooling, str) or pooling not in POOLINGS:
        raise ValueError(
            f"`pooling` must be one of {', '.join(POOLINGS)}, or None. "
            f"Received: {pooling!r}."
        )
    return TextVectors(pooling=pooling)


def _make_pooler(config, dtype):
    return Dense(
        config.hidden_size,
        config.initializer_range,
        "tanh",
        dtype=dtype,
        name="pooler",
    )


def _pool(vectors, attention_mask, pooling):
    """Makes one vector of the vectors of the real tokens.

    Args:
        vectors: NumPy array of shape `(B, S, D)`.
        attention_mask: NumPy array of shape `(B, S)`.
        pooling: "mean", "cls" or "max".

    Returns:
        NumPy array of shape `(B, D)`.
    """
    if pooling == "cls":
        return vectors[:, 0]
    real = attention_mask[:, :, np.newaxis] != 0  # (B, S, 1)
    if pooling == "max":
        return np.where(real, vectors, -np.inf).max(axis=1)
    return (vectors * real).sum(axis=1) / real.sum(axis=1)


def _to_length_one(vectors):
    """Returns the directions of vectors; one of length 0 stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)  # as the library does
