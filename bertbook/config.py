"""Sizes and rates of a BERT encoder.

Differences: none. Field names and meanings are the keys of the published
`bert_config.json` and `config.json` files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bertbook.stored_config import (
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
                del known[key]  # null stands for "as always" there
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
