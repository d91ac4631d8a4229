"""What the configs of all models share: files, sizes by name, and rules.

Differences: none; this module has no counterpart in the papers.
"""

import dataclasses
import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

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


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object, with the line in the message where it is damaged."""
    if not path.is_file():
        raise FileNotFoundError(f"No config file at {path}.")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: "
            f"{type(values).__name__}."
        )
    return values


def split_known(
    kind: type, values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits the keys of a file into fields of a config and all others."""
    own = {f.name for f in dataclasses.fields(kind)} - {"extra"}
    known = {k: v for k, v in values.items() if k in own}
    return known, {k: v for k, v in values.items() if k not in own}


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
    values: Mapping[str, Any], wanted: str, origin: str
) -> None:
    """Refuses a file of another model; one that does not say is taken."""
    model_type = values.get("model_type", wanted)
    if model_type != wanted:
        raise ValueError(
            f"{origin}: `model_type` must be {wanted!r}. "
            f"Received: {model_type!r}."
        )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
