"""Sizes and rates of models with a decoder: `CausalLMConfig`, `Seq2SeqConfig`.

Differences: fields are named as in `BertConfig`, so that the same blocks read
them; the config.json of a causal model has GPT-2's own keys, which are
translated. GPT-2 has no padding token; its end token serves as one. The paper
of the encoder-decoder, Vaswani et al. (2017), names no largest length; here
there is one, because a cache has a size. It does not say how weights start;
here kernels start as BERT's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from bertbook.checks import is_integer
from bertbook.config import (
    GELU_TANH_NAMES,
    StoredConfig,
    check_blocks,
    check_extra,
    check_id,
    check_model_type,
    check_rates,
    check_sizes,
    split_known,
    warn_of_unknown,
)

# L, D, N, F of the published sizes: L and D as in Radford et al. (2019), table
# 2, N and F as in the released models.
GPT2_SIZES = {
    "small": (12, 768, 12, 3_072),
    "medium": (24, 1_024, 16, 4_096),
    "large": (36, 1_280, 20, 5_120),
    "xl": (48, 1_600, 25, 6_400),
}
# What GPT-2 calls our fields; the others have the same name there.
GPT2_KEYS = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
    "hidden_act": "activation_function",
    "hidden_dropout_prob": "resid_pdrop",
    "attention_probs_dropout_prob": "attn_pdrop",
    "max_position_embeddings": "n_positions",
    "layer_norm_eps": "layer_norm_epsilon",
}
# Keys that would change the computation, with what they must be.
SAME_COMPUTATION = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
# Keys of published configs that say nothing about the computation.
EXPECTED_OF_GPT2 = {
    *SAME_COMPUTATION, "_name_or_path", "architectures", "dtype",
    "gradient_checkpointing", "id2label", "label2id", "model_type",
    "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "torch_dtype", "transformers_version", "use_cache",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CausalLMConfig(StoredConfig):
    """Everything needed to build a GPT; the defaults are GPT-2 small.

    With another `vocab_size` the three ids must be set too.

    Attributes:
        vocab_size: V pieces of the vocabulary.
        hidden_size: D, the width of a vector.
        num_hidden_layers: L layers.
        num_attention_heads: N heads of attention, each of width D / N.
        intermediate_size: F, the width inside a feed-forward network.
        hidden_act: "gelu", "gelu_tanh" or "relu".
        hidden_dropout_prob: Rate of dropout of vectors.
        attention_probs_dropout_prob: Rate of dropout of attention weights.
        max_position_embeddings: Largest S.
        initializer_range: Standard deviation of weights that are drawn.
        layer_norm_eps: What a norm adds to the variance.
        pad_token_id: Id of the token that fills rows up.
        bos_token_id: Id of the token that a text begins with.
        eos_token_id: Id of the token that a text ends with.
        extra: Other keys of a config file, which are written back.

    Raises:
        ValueError: A size is not a positive integer, a rate is outside
            [0, 1), `hidden_act` is unknown, `hidden_size` does not split
            evenly into heads, or an id is not in the vocabulary.

    Source: Radford et al. (2019), section 2.3 and table 2.

    >>> import bertbook as bb
    >>> config = bb.CausalLMConfig.named("medium")
    >>> config.num_hidden_layers, config.hidden_size, config.head_size
    (24, 1024, 64)
    """

    PUBLISHED = GPT2_SIZES

    vocab_size: int = 50_257  # V
    hidden_size: int = 768  # D
    num_hidden_layers: int = 12  # L
    num_attention_heads: int = 12  # N
    intermediate_size: int = 3_072  # F
    hidden_act: str = "gelu_tanh"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 1_024  # largest S
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-5
    pad_token_id: int = 50_256
    bos_token_id: int = 50_256  # what a text begins with
    eos_token_id: int = 50_256  # what it ends with
    extra: Mapping[str, Any] = field(
        default_factory=dict, repr=False, hash=False
    )

    @property
    def output_size(self) -> int:
        """V, as in `Seq2SeqConfig`."""
        return self.vocab_size

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], origin: str = "config"
    ) -> Self:
        """Builds a config from the keys of a GPT-2 file.

        Args:
            values: The parsed JSON object.
            origin: Name of its source, for messages.

        Returns:
            A `CausalLMConfig`; other keys are in its `extra`.

        Raises:
            ValueError: A key asks for another computation than GPT-2's.
        """
        _refuse_other_models(values, origin)
        names = [f.name for f in fields(cls) if f.name != "extra"]
        published_names = {name: GPT2_KEYS.get(name, name) for name in names}
        known = {
            name: values[key]
            for name, key in published_names.items()
            if values.get(key) is not None  # null means the default
        }
        width = known.get("hidden_size", 768)
        if is_integer(width):
            known.setdefault("intermediate_size", 4 * width)
        known.setdefault("pad_token_id", known.get("eos_token_id", 50_256))
        if known.get("hidden_act") in GELU_TANH_NAMES:
            known["hidden_act"] = "gelu_tanh"
        left_out = {*published_names.values(), "embd_pdrop", "n_ctx"}
        extra = {k: v for k, v in values.items() if k not in left_out}
        warn_of_unknown(extra, EXPECTED_OF_GPT2, origin)
        return cls(**known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys and values of a `config.json`, GPT-2's own."""
        values = {
            GPT2_KEYS.get(f.name, f.name): getattr(self, f.name)
            for f in fields(self)
        }
        extra = values.pop("extra")
        if self.hidden_act == "gelu_tanh":
            values["activation_function"] = "gelu_new"
        values["embd_pdrop"] = self.hidden_dropout_prob
        return {**extra, "model_type": "gpt2", **values}

    def __post_init__(self) -> None:
        check_sizes(self)
        check_rates(self)
        check_blocks(self)
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            check_id(self, name, self.vocab_size)
        check_extra(self)


def _refuse_other_models(values: Mapping[str, Any], origin: str) -> None:
    """Raises where a key asks for a computation that is not GPT-2's."""
    check_model_type(values, "gpt2", origin)
    for key, expected in SAME_COMPUTATION.items():
        if values.get(key, expected) != expected:
            raise ValueError(
                f"{origin}: `{key}` must be {expected} for this model. "
                f"Received: {values[key]!r}."
            )
    rates = values.get("resid_pdrop", 0.1), values.get("embd_pdrop", 0.1)
    if rates[0] != rates[1]:
        raise ValueError(
            f"{origin}: `resid_pdrop` and `embd_pdrop` must be equal. "
            f"Received: {rates[0]} and {rates[1]}."
        )


# L, D, N, F of the published sizes (Vaswani et al., 2017, table 3).
TRANSFORMER_SIZES = {"base": (6, 512, 8, 2_048), "big": (6, 1_024, 16, 4_096)}
MODEL_TYPE = "seq2seq_transformer"
EXPECTED_OF_SEQ2SEQ = ("model_type", "architectures", "dtype")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(StoredConfig):
    """Everything needed to build a translator; the defaults are the base size.

    The three ids are those of [PAD], [CLS] and [SEP] in every vocabulary that
    `Tokenizer.train` makes: a target begins with the second and ends with the
    third.

    Attributes:
        vocab_size: V pieces of the vocabulary of the source.
        target_vocab_size: V of the target; None where both share one
            vocabulary.
        hidden_size: D, the width of a vector.
        num_hidden_layers: L layers of the encoder.
        num_decoder_layers: L of the decoder; None for as many.
        num_attention_heads: N heads of attention, each of width D / N.
        intermediate_size: F, the width inside a feed-forward network.
        hidden_act: "gelu", "gelu_tanh" or "relu".
        hidden_dropout_prob: Rate of dropout of vectors.
        attention_probs_dropout_prob: Rate of dropout of attention weights.
        max_position_embeddings: Largest S, of the source and of the target.
        initializer_range: Standard deviation of weights that are drawn.
        layer_norm_eps: What a norm adds to the variance.
        pad_token_id: Id of [PAD].
        bos_token_id: Id of the token that a target begins with.
        eos_token_id: Id of the token that it ends with.
        extra: Other keys of a config file, which are written back.

    Raises:
        ValueError: A size is not a positive integer, a rate is outside
            [0, 1), `hidden_act` is unknown, `hidden_size` is odd or does not
            split evenly into heads, or an id is not in the vocabulary.

    Source: Vaswani et al. (2017), table 3; the vocabulary: section 5.1.

    >>> import bertbook as bb
    >>> config = bb.Seq2SeqConfig.named("base", target_vocab_size=8192)
    >>> config.decoder_layers, config.output_size
    (6, 8192)
    """

    PUBLISHED = TRANSFORMER_SIZES

    vocab_size: int = 37_000  # V of the source
    target_vocab_size: int | None = None  # None: source and target share one
    hidden_size: int = 512  # D
    num_hidden_layers: int = 6  # L of the encoder
    num_decoder_layers: int | None = None  # None: as many
    num_attention_heads: int = 8  # N
    intermediate_size: int = 2_048  # F
    hidden_act: str = "relu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 512  # largest S, of source and target
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-6
    pad_token_id: int = 0
    bos_token_id: int = 2
    eos_token_id: int = 3
    extra: Mapping[str, Any] = field(
        default_factory=dict, repr=False, hash=False
    )

    @property
    def output_size(self) -> int:
        """V of the target."""
        return self.target_vocab_size or self.vocab_size

    @property
    def decoder_layers(self) -> int:
        """L of the decoder."""
        return self.num_decoder_layers or self.num_hidden_layers

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], origin: str = "config"
    ) -> Self:
        """Builds a config from the keys that `to_dict` gives.

        Args:
            values: The parsed JSON object.
            origin: Name of its source, for messages.

        Returns:
            A `Seq2SeqConfig`; other keys are in its `extra`.

        Raises:
            ValueError: They describe another model.
        """
        check_model_type(values, MODEL_TYPE, origin)
        known, extra = split_known(cls, values)
        warn_of_unknown(extra, EXPECTED_OF_SEQ2SEQ, origin)
        return cls(**known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys and values of a `config.json`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        extra = values.pop("extra")
        return {**extra, "model_type": MODEL_TYPE, **values}

    def __post_init__(self) -> None:
        optional = ("target_vocab_size", "num_decoder_layers")
        optional_sizes = [
            name for name in optional if getattr(self, name) is not None
        ]
        check_sizes(self, optional_sizes)
        check_rates(self)
        check_blocks(self)
        if self.hidden_size % 2:
            raise ValueError(
                "`hidden_size` must be even: sines and cosines come in pairs. "
                f"Received: {self.hidden_size}."
            )
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            check_id(self, name, self.output_size)
        check_id(self, "pad_token_id", self.vocab_size)
        check_extra(self)
