"""Sizes and rates of a BERT encoder: `BertConfig` and its base `StoredConfig`.

Field names and meanings are the keys of the published `bert_config.json` and
`config.json` files.
"""

import dataclasses
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from bertbook.files import read_json

HIDDEN_ACTS = ("gelu", "gelu_tanh", "relu")

# Spellings of the tanh form of GELU in published configs.
GELU_TANH_NAMES = ("gelu_tanh", "gelu_new", "gelu_pytorch_tanh", "gelu_fast")

BLOCK_SIZES = (
    "num_hidden_layers",  # L
    "hidden_size",  # D
    "num_attention_heads",  # N
    "intermediate_size",  # F
)
COMMON_SIZES = ("vocab_size", *BLOCK_SIZES, "max_position_embeddings")


class StoredConfig:
    """Gives a config its file, its copies and its published sizes.

    Attributes:
        PUBLISHED: The numbers of `BLOCK_SIZES`, by name.
    """

    PUBLISHED: Mapping[str, tuple[int, int, int, int]]
    hidden_size: int
    num_attention_heads: int

    @property
    def head_size(self) -> int:
        """Width of one attention head, H = D / N."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def named(cls, name: str, **overrides: Any) -> Self:
        """Returns a published size, with other fields as keywords.

        Args:
            name: One of `PUBLISHED`.
            **overrides: Fields to set, for example `vocab_size=8192`.

        Raises:
            ValueError: `name` is not a published size.
        """
        if name not in cls.PUBLISHED:
            raise ValueError(
                f"`name` must be one of {', '.join(cls.PUBLISHED)}. "
                f"Received: {name!r}."
            )
        size = dict(zip(BLOCK_SIZES, cls.PUBLISHED[name], strict=True))
        return cls(**{**size, **overrides})

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Reads a `config.json`.

        Raises:
            FileNotFoundError: `path` is not a file.
            ValueError: The file is not JSON, or a key in it asks for the
                computation of another model.
        """
        return cls.from_dict(read_json(Path(path)), origin=str(path))

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], origin: str = "config"
    ) -> Self:
        """Builds a config from the keys of a file; each class has its own."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys and values of a file; each class has its own."""
        raise NotImplementedError

    def to_json(self, path: str | Path) -> None:
        """Writes a `config.json` that this package and others read."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def split_known(
    kind: type, values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits the keys of a file into fields of a config and all others."""
    names = {f.name for f in dataclasses.fields(kind)} - {"extra"}
    known = {k: v for k, v in values.items() if k in names}
    return known, {k: v for k, v in values.items() if k not in names}


def warn_of_unknown(
    extra: Mapping[str, Any], expected: Iterable[str], origin: str
) -> None:
    """Names the keys of a file that are kept without being understood."""
    unexpected = sorted(set(extra) - set(expected))
    if unexpected:
        warnings.warn(
            f"{origin}: keys without a meaning here are kept in "
            f"`config.extra`: {', '.join(unexpected)}.",
            stacklevel=4,
        )


def check_sizes(config: Any, more: Iterable[str] = ()) -> None:
    """Refuses a size that is no integer or below 1.

    Args:
        config: A config with the fields of `COMMON_SIZES`.
        more: Names of further sizes.
    """
    for name in (*COMMON_SIZES, *more):
        value = getattr(config, name)
        if not _is_integer(value) or value < 1:
            raise ValueError(
                f"`{name}` must be an integer >= 1. Received: {value!r}."
            )


def check_rates(config: Any) -> None:
    """Refuses rates of dropout outside [0, 1), and small numbers that are none.

    Args:
        config: A `BertConfig`, or a config with the same four fields.
    """
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        value = getattr(config, name)
        if not _is_number(value) or not 0.0 <= value < 1.0:
            raise ValueError(
                f"`{name}` must be in [0, 1). Received: {value!r}."
            )
    for name in ("initializer_range", "layer_norm_eps"):
        value = getattr(config, name)
        if not _is_number(value) or not 0.0 < value < 1.0:
            raise ValueError(
                f"`{name}` must be in (0, 1). Received: {value!r}."
            )


def check_blocks(config: Any) -> None:
    """Refuses an unknown activation, and heads that do not split the width."""
    if config.hidden_act not in HIDDEN_ACTS:
        raise ValueError(
            f"`hidden_act` must be one of {', '.join(HIDDEN_ACTS)}. "
            f"Received: {config.hidden_act!r}."
        )
    if config.hidden_size % config.num_attention_heads:
        raise ValueError(
            "`hidden_size` must be a multiple of `num_attention_heads`. "
            f"Received: {config.hidden_size} and {config.num_attention_heads}."
        )


def check_id(config: Any, name: str, vocab_size: int) -> None:
    """Refuses a token whose id is not in the vocabulary."""
    value = getattr(config, name)
    if not _is_integer(value) or not 0 <= value < vocab_size:
        raise ValueError(
            f"`{name}` must be an id of the vocabulary, in "
            f"[0, {vocab_size}). Received: {value!r}."
        )


def check_extra(config: Any) -> None:
    """Refuses further keys that are no dict."""
    if not isinstance(config.extra, Mapping):
        raise ValueError(f"`extra` must be a dict. Received: {config.extra!r}.")


def check_model_type(
    values: Mapping[str, Any], expected: str, origin: str
) -> None:
    """Refuses a file of another model; one that does not say is taken."""
    model_type = values.get("model_type", expected)
    if model_type != expected:
        raise ValueError(
            f"{origin}: `model_type` must be {expected!r}. "
            f"Received: {model_type!r}."
        )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# L, D, N, F of the published sizes (Devlin et al., 2019; Turc et al., 2019).
SIZES = {
    "tiny": (2, 128, 2, 512),
    "mini": (4, 256, 4, 1_024),
    "small": (4, 512, 8, 2_048),
    "medium": (8, 512, 8, 2_048),
    "base": (12, 768, 12, 3_072),
    "large": (24, 1_024, 16, 4_096),
}

# Keys of published configs that would change the computation, with the values
# under which the model is still the BERT that this package computes.
SAME_COMPUTATION = {
    "position_embedding_type": (None, "absolute"),
    "is_decoder": (None, False),
    "add_cross_attention": (None, False),
    "chunk_size_feed_forward": (None, 0),
    "pruned_heads": (None, {}),
}


@dataclass(frozen=True, kw_only=True)
class BertConfig(StoredConfig):
    """Everything needed to build one encoder; the defaults are BERT-Base.

    `extra` keeps keys of a config file that mean nothing to the computation,
    so that they are written back.

    Raises:
        ValueError: A size is not a positive integer, a rate is outside
            [0, 1), `hidden_act` is unknown, or `hidden_size` does not split
            evenly into heads.

    Source: Devlin et al. (2019), section 3.
    """

    PUBLISHED = SIZES

    vocab_size: int = 30_522  # V
    hidden_size: int = 768  # D
    num_hidden_layers: int = 12  # L
    num_attention_heads: int = 12  # N
    intermediate_size: int = 3_072  # F
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512  # largest S
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    id2label: Mapping[int, str] | None = field(default=None, hash=False)
    extra: Mapping[str, Any] = field(
        default_factory=dict, repr=False, hash=False
    )

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], origin: str = "config"
    ) -> "BertConfig":
        """Builds a config from the keys of a published file.

        Args:
            values: The parsed JSON object.
            origin: Name of its source, for messages.

        Raises:
            ValueError: A key asks for another computation than BERT's.
        """
        _refuse_other_models(values, origin)
        known, extra = split_known(cls, values)
        if known.get("hidden_act") in GELU_TANH_NAMES:
            known["hidden_act"] = "gelu_tanh"
        for key in ("id2label", "pad_token_id"):
            if known.get(key, 0) is None:
                del known[key]  # null means the default there
        if isinstance(known.get("id2label"), Mapping):
            known["id2label"] = {
                int(k) if str(k).isdecimal() else k: v
                for k, v in known["id2label"].items()
            }
        warn_of_unknown(extra, EXPECTED_EXTRA, origin)
        return cls(**known, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys and values of a `config.json`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        extra = values.pop("extra")
        if self.hidden_act == "gelu_tanh":
            values["hidden_act"] = "gelu_new"  # the name that others know
        if self.id2label is None:
            del values["id2label"]
        else:
            values["id2label"] = {str(k): v for k, v in self.id2label.items()}
            values["label2id"] = {v: k for k, v in self.id2label.items()}
        return {**extra, "model_type": "bert", **values}

    def __post_init__(self) -> None:
        check_sizes(self, ["type_vocab_size"])
        check_rates(self)
        check_blocks(self)
        check_id(self, "pad_token_id", self.vocab_size)
        check_extra(self)
        _check_labels(self)


# Keys that published configs carry and that say nothing about the computation.
EXPECTED_EXTRA = {
    "_name_or_path", "add_cross_attention", "architectures", "bos_token_id",
    "chunk_size_feed_forward", "classifier_dropout", "directionality", "dtype",
    "eos_token_id", "gradient_checkpointing", "is_decoder", "label2id",
    "model_type", "no_answer_threshold", "num_labels", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type", "position_embedding_type",
    "problem_type", "pruned_heads", "tag_strategy", "tie_word_embeddings",
    "torch_dtype", "transformers_version", "use_cache",
}  # fmt: skip


def _check_labels(config: BertConfig) -> None:
    labels = config.id2label
    if labels is not None and not (
        isinstance(labels, Mapping) and set(labels) == set(range(len(labels)))
    ):
        raise ValueError(
            "`id2label` must name the classes 0, 1, 2, ... without a gap. "
            f"Received: {labels!r}."
        )


def _refuse_other_models(values: Mapping[str, Any], origin: str) -> None:
    """Raises where a key asks for a computation that is not BERT's."""
    check_model_type(values, "bert", origin)
    for key, allowed in SAME_COMPUTATION.items():
        if values.get(key) not in allowed:
            raise ValueError(
                f"{origin}: `{key}` must be {allowed[1]!r} for this model. "
                f"Received: {values[key]!r}."
            )
    embedding_size = values.get("embedding_size")
    if embedding_size not in (None, values.get("hidden_size", 768)):
        raise ValueError(
            f"{origin}: `embedding_size` must equal `hidden_size`. "
            f"Received: {embedding_size} and {values.get('hidden_size')}."
        )
