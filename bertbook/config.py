"""Sizes and rates of a BERT encoder: `BertConfig` and its base `StoredConfig`.

Field names and meanings are the keys of the published `bert_config.json` and
`config.json` files.
"""

import dataclasses
import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from bertbook.checks import as_number, check_text
from bertbook.files import read_json, write_text

HIDDEN_ACTS = ("gelu", "gelu_tanh", "relu")

# Spellings of the tanh form of GELU in published configs, and of GELU itself.
GELU_TANH_NAMES = (
    "gelu_tanh", "gelu_new", "gelu_pytorch_tanh", "gelu_fast",
    "gelu_accurate", "gelu_python_tanh",
)  # fmt: skip
GELU_NAMES = ("gelu", "gelu_python")

BLOCK_SIZES = (
    "num_hidden_layers",  # L
    "hidden_size",  # D
    "num_attention_heads",  # N
    "intermediate_size",  # F
)
LARGEST_SIZE = 2**31 - 1  # ids and positions are int32
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
        if not isinstance(name, str) or name not in cls.PUBLISHED:
            raise ValueError(
                f"`name` must be one of {', '.join(cls.PUBLISHED)}. "
                f"Received: {name!r}."
            )
        size = dict(zip(BLOCK_SIZES, cls.PUBLISHED[name], strict=True))
        return cls(**{**size, **overrides})

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Reads a `config.json`.

        Args:
            path: The file.

        Returns:
            A config of this class.

        Raises:
            FileNotFoundError: `path` is not a file.
            ValueError: The file is not JSON, or a key in it asks for the
                computation of another model.
        """
        if not isinstance(path, str | Path):
            raise ValueError(f"`path` must be a path. Received: {path!r}.")
        values = read_json(Path(path))
        try:
            return cls.from_dict(values, origin=str(path))
        except ValueError as error:
            if str(path) in str(error):
                raise
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], origin: str = "config"
    ) -> Self:
        """Builds a config from the keys of a file; each class has its own.

        Raises:
            NotImplementedError: The class has none.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys and values of a file; each class has its own.

        Raises:
            NotImplementedError: The class has none.
        """
        raise NotImplementedError

    def to_json(self, path: str | Path) -> None:
        """Writes a `config.json` that this package and others read.

        Args:
            path: The file; one that is there is replaced.
        """
        text = json.dumps(_sorted(self.to_dict()), indent=2)
        write_text(Path(path), text + "\n")

    def replace(self, **changes: Any) -> Self:
        """Returns a copy with some fields changed.

        Args:
            **changes: The fields to change, with their new values.

        Raises:
            ValueError: The new values do not fit, as in the class.
        """
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def _sorted(value: Any) -> Any:
    """Returns objects with their keys sorted, those that are numbers as such.

    So 10 comes after 9 where the keys are the numbers of labels.
    """
    if not isinstance(value, Mapping):
        return value
    numbers = all(map(_is_label_number, value))
    order = sorted(value, key=int if numbers else str)
    return {key: _sorted(value[key]) for key in order}


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


def check_kind(config: Any, kind: type) -> None:
    """Refuses what is no config of a kind, as the name of a model.

    Raises:
        ValueError: It is of another kind.
    """
    if not isinstance(config, kind):
        raise ValueError(
            f"`config` must be a `{kind.__name__}`; `from_pretrained` takes a "
            f"name. Received: {config!r}."
        )


def check_sizes(config: Any, more: Iterable[str] = ()) -> None:
    """Refuses a size that is no integer, below 1, or beyond int32.

    Args:
        config: A config with the fields of `COMMON_SIZES`.
        more: Names of further sizes.

    Raises:
        ValueError: A size is one of these; it is named.
    """
    for name in (*COMMON_SIZES, *more):
        value = getattr(config, name)
        if not _is_integer(value) or value < 1:
            raise ValueError(
                f"`{name}` must be an integer >= 1. Received: {value!r}."
            )
        if value > LARGEST_SIZE:
            raise ValueError(
                f"`{name}` must be an integer in [1, {LARGEST_SIZE}]. "
                f"Received: {value!r}."
            )


def check_rates(config: Any) -> None:
    """Refuses rates of dropout outside [0, 1), and small numbers that are none.

    Args:
        config: A `BertConfig`, or a config with the same four fields.

    Raises:
        ValueError: A number is one of these; it is named.
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
    """Refuses an unknown activation, and heads that do not split the width.

    Raises:
        ValueError: The config has one of these.
    """
    act = config.hidden_act
    if not isinstance(act, str) or act not in HIDDEN_ACTS:
        raise ValueError(
            f"`hidden_act` must be one of {', '.join(HIDDEN_ACTS)}. "
            f"Received: {act!r}."
        )
    if config.hidden_size % config.num_attention_heads:
        raise ValueError(
            "`hidden_size` must be a multiple of `num_attention_heads`. "
            f"Received: {config.hidden_size} and {config.num_attention_heads}."
        )


def check_id(config: Any, name: str, vocab_size: int) -> None:
    """Refuses a token whose id is not in the vocabulary.

    Raises:
        ValueError: It is no integer in `[0, vocab_size)`.
    """
    value = getattr(config, name)
    if not _is_integer(value) or not 0 <= value < vocab_size:
        raise ValueError(
            f"`{name}` must be an id of the vocabulary, in "
            f"[0, {vocab_size}). Received: {value!r}."
        )


MOST_LABELS = 1_000_000  # a larger number is a slip that takes all memory
# What the keys that tell of a task may hold, beside null.
PROBLEM_TYPES = (
    "regression",
    "single_label_classification",
    "multi_label_classification",
)
TAG_STRATEGIES = ("first", "last", "all")
POOLINGS = ("mean", "cls", "max")


def check_extra(config: Any) -> None:
    """Refuses further keys that are no dict, and values of a wrong kind.

    Args:
        config: A config with `extra`. Keys that nothing reads are not checked.

    Raises:
        ValueError: A key or a value is one of these; it is named.
    """
    extra = config.extra
    if not isinstance(extra, Mapping):
        raise ValueError(f"`extra` must be a dict. Received: {extra!r}.")
    for key, (is_right, rule) in EXTRA_RULES.items():
        value = extra.get(key)
        if value is not None and not is_right(value):
            raise ValueError(f"`{key}` must be {rule}. Received: {value!r}.")
    for key in OBJECT_RULES:
        if extra.get(key) is not None:
            _check_object(key, extra[key])


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(name, str) for name in value
    )


def _is_rate(value: Any) -> bool:
    return _is_number(value) and 0.0 <= value < 1.0


def _is_numbered(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _is_label_number(number) for number in value.values()
    )


def _is_label_number(value: Any) -> bool:
    """Returns whether a value is a label's number, or its digits."""
    if isinstance(value, str):
        return value.isdecimal() and len(value) < 10
    return _is_integer(value) and value >= 0


def _is_finite(value: Any) -> bool:
    return _is_number(value) and abs(as_number(value)) < float("inf")


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _is_strings(value: Any) -> bool:
    """Returns whether a value is an object of strings."""
    return isinstance(value, Mapping) and all(
        map(_is_string, [*value, *value.values()])
    )


def _is_held_out(value: Any) -> bool:
    """Returns whether a value says how rows for dev were drawn of a file."""
    rules: dict[str, Callable[[Any], bool]] = {
        "file": _is_string,
        "dev": lambda part: _is_number(part) and 0 < as_number(part) < 1,
        "seed": _is_integer,
        "mended": _is_boolean,
        "bad_rows": lambda part: part in ("error", "skip"),
    }
    is_object = isinstance(value, Mapping) and value.keys() == rules.keys()
    return is_object and all(rules[key](part) for key, part in value.items())


Rule = tuple[Callable[[Any], bool], str]
# What the keys of an object may hold; each may be missing.
OBJECT_RULES: dict[str, dict[str, Rule]] = {
    "bertbook_finetuning": {
        "task": (_is_string, "a string"),
        "max_length": (_is_size, "an integer >= 1"),
        "stride": (_is_size, "an integer >= 1"),
        "columns": (_is_strings, "an object of names of columns"),
        "held_out": (
            _is_held_out,
            "an object of file, dev, seed, mended and bad_rows",
        ),
    },
    "text_vectors": {
        "pooling": (
            lambda value: value in POOLINGS,
            f"one of {', '.join(POOLINGS)}",
        ),
        "normalize": (_is_boolean, "true or false"),
        "max_length": (_is_size, "an integer >= 1"),
        "lowercase": (_is_boolean, "true or false"),
        "prompt": (_is_string, "a string"),
        "other": (_is_string, "a string"),
    },
}


def _check_object(name: str, value: Any) -> None:
    """Refuses an object with a key or a value that is wrong, and names it."""
    rules = OBJECT_RULES[name]
    is_object = isinstance(value, Mapping)
    unknown = [key for key in value if key not in rules] if is_object else []
    if not is_object or unknown:
        received = f"the key {unknown[0]!r}" if unknown else repr(value)
        raise ValueError(
            f"`{name}` must be an object with any of {', '.join(rules)}. "
            f"Received: {received}."
        )
    for key, part in value.items():
        is_right, rule = rules[key]
        if not is_right(part):
            raise ValueError(
                f"`{name}.{key}` must be {rule}. Received: {part!r}."
            )


EXTRA_RULES: dict[str, Rule] = {
    "architectures": (_is_list_of_names, "a list of names of models"),
    "classifier_dropout": (_is_rate, "in [0, 1), or null"),
    "label2id": (_is_numbered, "an object of names and numbers of labels"),
    "num_labels": (
        lambda value: _is_integer(value) and 1 <= value <= MOST_LABELS,
        f"an integer in [1, {MOST_LABELS}]",
    ),
    "problem_type": (
        lambda value: value in PROBLEM_TYPES,
        f"one of {', '.join(PROBLEM_TYPES)}, or null",
    ),
    "label_thresholds": (
        lambda value: isinstance(value, list) and all(map(_is_finite, value)),
        "a list of finite numbers, one for each label, or null",
    ),
    "no_answer_threshold": (_is_finite, "a finite number, or null"),
    "tag_strategy": (
        lambda value: value in TAG_STRATEGIES,
        f"one of {', '.join(TAG_STRATEGIES)}",
    ),
}


def check_model_type(
    values: Mapping[str, Any], expected: str, origin: str
) -> None:
    """Refuses a file of another model; one that does not say is taken.

    Raises:
        ValueError: The file names another model, or is no object.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"`values` must be a dict. Received: {values!r}.")
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
        type_vocab_size: Number of segments.
        initializer_range: Standard deviation of weights that are drawn.
        layer_norm_eps: What a norm adds to the variance.
        pad_token_id: Id of [PAD].
        id2label: Names of the labels of a head by their numbers; None has none.
        extra: Keys of a config file that mean nothing to the computation, so
            that they are written back.

    Raises:
        ValueError: A size is not a positive integer, a rate is outside
            [0, 1), `hidden_act` is unknown, or `hidden_size` does not split
            evenly into heads.

    Source: Devlin et al. (2019), section 3.

    >>> import bertbook as bb
    >>> config = bb.BertConfig.named("tiny", vocab_size=8192)
    >>> config.num_hidden_layers, config.hidden_size, config.head_size
    (2, 128, 64)
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

        Returns:
            A `BertConfig`; keys that are no fields are in its `extra`.

        Raises:
            ValueError: A key asks for another computation than BERT's.
        """
        _refuse_other_models(values, origin)
        known, extra = split_known(cls, values)
        if known.get("hidden_act") in GELU_TANH_NAMES:
            known["hidden_act"] = "gelu_tanh"
        if known.get("hidden_act") in GELU_NAMES:
            known["hidden_act"] = "gelu"
        for key in ("id2label", "pad_token_id"):
            if known.get(key, 0) is None:
                del known[key]  # null means the default there
        for key in ("num_labels", "tag_strategy", "architectures", "label2id"):
            if extra.get(key, 0) is None:
                del extra[key]
        if known.get("id2label") == {}:
            del known["id2label"]  # names of no label
        if isinstance(known.get("id2label"), Mapping):
            known["id2label"] = _numbered(known["id2label"])
        numbers = extra.get("label2id")
        if "id2label" not in known and numbers and _is_numbered(numbers):
            names = {int(number): name for name, number in numbers.items()}
            generic = all(n == f"LABEL_{i}" for i, n in names.items())
            if not generic and sorted(names) == list(range(len(numbers))):
                known["id2label"] = names  # written the other way round alone
        warn_of_unknown(extra, EXPECTED_EXTRA, origin)
        config = cls(**known, extra=extra)
        _check_opposite(config.id2label or {}, extra.get("label2id") or {})
        return config

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
        if self.id2label is not None:
            ordered = dict(sorted(self.id2label.items()))
            object.__setattr__(self, "id2label", ordered)


# Keys that published configs carry and that say nothing about the computation.
EXPECTED_EXTRA = {
    "_name_or_path", "_num_labels", "add_cross_attention", "architectures",
    "bertbook_finetuning", "bos_token_id",
    "chunk_size_feed_forward", "classifier_dropout", "directionality", "dtype",
    "eos_token_id", "finetuning_task", "gradient_checkpointing", "is_decoder",
    "label2id", "label_thresholds", "model_type", "no_answer_threshold",
    "num_labels", "output_past", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type", "position_embedding_type",
    "problem_type", "pruned_heads", "tag_strategy", "text_vectors",
    "tie_word_embeddings", "torch_dtype", "transformers_version", "use_cache",
}  # fmt: skip


def _numbered(labels: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns names of labels by numbers, which a file holds as strings.

    A name that is a number, as other libraries write it, becomes its digits.
    """
    return {
        int(k) if _is_label_number(k) else k: str(v) if _is_integer(v) else v
        for k, v in labels.items()
    }


def _check_opposite(
    id2label: Mapping[int, str], label2id: Mapping[str, Any]
) -> None:
    """Refuses names and numbers of labels that contradict each other.

    LABEL_0, LABEL_1 ... are what other libraries write where nobody gave
    names; they contradict nothing.
    """
    if all(name == f"LABEL_{number}" for name, number in label2id.items()):
        return
    for name, number in label2id.items():
        if id2label.get(int(number), name) != name:
            raise ValueError(
                "`label2id` must be the opposite of `id2label`. Received: "
                f"{name!r} as {number}, which is {id2label[int(number)]!r}."
            )


def _check_labels(config: BertConfig) -> None:
    labels = config.id2label
    if labels is None:
        return
    if not (
        isinstance(labels, Mapping)
        and labels
        and all(map(_is_integer, labels))
        and set(labels) == set(range(len(labels)))
    ):
        raise ValueError(
            "`id2label` must name the classes 0, 1, 2, ... without a gap, such "
            'as {0: "bad", 1: "good"}. '
            f"Received: {labels!r}."
        )
    for number, name in labels.items():
        check_text(name, f"id2label[{number}]")


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
