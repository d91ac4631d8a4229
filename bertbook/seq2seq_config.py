"""Sizes and rates of an encoder-decoder, the Transformer of 2017.

Differences: the paper names no largest length; here there is one, because a
cache has a size. It does not say how weights start; here kernels start as
BERT's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from bertbook.stored_config import (
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

# L, D, N, F of the published sizes (Vaswani et al., 2017, table 3).
TRANSFORMER_SIZES = {"base": (6, 512, 8, 2_048), "big": (6, 1_024, 16, 4_096)}
MODEL_TYPE = "seq2seq_transformer"
EXPECTED_EXTRA = ("model_type", "architectures", "dtype")


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig(StoredConfig):
    """Everything needed to build a translator; the defaults are the base size.

    The three ids are those of [PAD], [CLS] and [SEP] in every vocabulary that
    `Tokenizer.train` makes: a target begins with the second and ends with the
    third.

    Raises:
        ValueError: A size is not a positive integer, a rate is outside
            [0, 1), `hidden_act` is unknown, `hidden_size` is odd or does not
            split evenly into heads, or an id is not in the vocabulary.

    Source: Vaswani et al. (2017), table 3; the vocabulary: section 5.1.
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

        Raises:
            ValueError: They describe another model.
        """
        check_model_type(values, MODEL_TYPE, origin)
        known, extra = split_known(cls, values)
        warn_of_unknown(extra, EXPECTED_EXTRA, origin)
        return cls(**known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys and values of a `config.json`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        extra = values.pop("extra")
        return {**extra, "model_type": MODEL_TYPE, **values}

    def __post_init__(self) -> None:
        optional = ("target_vocab_size", "num_decoder_layers")
        given = [name for name in optional if getattr(self, name) is not None]
        check_sizes(self, given)
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
