"""Tensor names: ours, Hugging Face's, Google's and KerasHub's.

Our names are the paths of our weights, for example
`block_0/attention/query/kernel`. The fused matrix of query, key and value has
three rows in the table, one for each third.

Differences: none in the values. PyTorch stores a matrix as (out, in), we as
(in, out); KerasHub gives the heads an axis of their own.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from bertbook.config import BertConfig

FUSED = "query_key_value"
THIRDS = ("query", "key", "value")


class Names(NamedTuple):
    """What one tensor is called here and elsewhere; `{i}` is the layer."""

    bertbook: str
    hugging_face: str
    google: str
    keras_hub: str


# fmt: off
EMBEDDINGS = (
    Names("embeddings/token/embeddings", "embeddings.word_embeddings.weight",
          "embeddings/word_embeddings", "token_embedding/embeddings"),
    Names("embeddings/position/table", "embeddings.position_embeddings.weight",
          "embeddings/position_embeddings", "position_embedding/embeddings"),
    Names("embeddings/segment/embeddings",
          "embeddings.token_type_embeddings.weight",
          "embeddings/token_type_embeddings", "segment_embedding/embeddings"),
    Names("embeddings/norm/gamma", "embeddings.LayerNorm.weight",
          "embeddings/LayerNorm/gamma", "embeddings_layer_norm/gamma"),
    Names("embeddings/norm/beta", "embeddings.LayerNorm.bias",
          "embeddings/LayerNorm/beta", "embeddings_layer_norm/beta"),
)
# Ours, Hugging Face, Google, KerasHub: a dense layer or a norm within a block.
BLOCK_PARTS = (
    ("attention/query", "attention.self.query",
     "attention/self/query", "self_attention_layer/query"),
    ("attention/key", "attention.self.key",
     "attention/self/key", "self_attention_layer/key"),
    ("attention/value", "attention.self.value",
     "attention/self/value", "self_attention_layer/value"),
    ("attention/output", "attention.output.dense",
     "attention/output/dense", "self_attention_layer/attention_output"),
    ("attention_norm", "attention.output.LayerNorm",
     "attention/output/LayerNorm", "self_attention_layer_norm"),
    ("feed_forward/expand", "intermediate.dense",
     "intermediate/dense", "feedforward_intermediate_dense"),
    ("feed_forward/contract", "output.dense",
     "output/dense", "feedforward_output_dense"),
    ("output_norm", "output.LayerNorm",
     "output/LayerNorm", "feedforward_layer_norm"),
)
POOLER = (
    Names("pooler/kernel", "pooler.dense.weight",
          "pooler/dense/kernel", "pooled_dense/kernel"),
    Names("pooler/bias", "pooler.dense.bias",
          "pooler/dense/bias", "pooled_dense/bias"),
)
# KerasHub has no next-sentence head, and keeps the other one in a task model.
HEADS = {
    "masked_lm": (
        Names("masked_lm/dense/kernel",
              "cls.predictions.transform.dense.weight",
              "cls/predictions/transform/dense/kernel", ""),
        Names("masked_lm/dense/bias",
              "cls.predictions.transform.dense.bias",
              "cls/predictions/transform/dense/bias", ""),
        Names("masked_lm/norm/gamma",
              "cls.predictions.transform.LayerNorm.weight",
              "cls/predictions/transform/LayerNorm/gamma", ""),
        Names("masked_lm/norm/beta",
              "cls.predictions.transform.LayerNorm.bias",
              "cls/predictions/transform/LayerNorm/beta", ""),
        Names("masked_lm/bias", "cls.predictions.bias",
              "cls/predictions/output_bias", ""),
    ),
    "next_sentence": (
        Names("next_sentence/kernel", "cls.seq_relationship.weight",
              "cls/seq_relationship/output_weights", ""),
        Names("next_sentence/bias", "cls.seq_relationship.bias",
              "cls/seq_relationship/output_bias", ""),
    ),
}
# What fine-tuning adds. Hugging Face calls three different heads `classifier`;
# `architectures` in config.json tells which one a file holds.
TASK_HEADS = {
    "classifier": (
        Names("classifier/kernel", "classifier.weight", "output_weights", ""),
        Names("classifier/bias", "classifier.bias", "output_bias", ""),
    ),
    "span": (
        Names("span/kernel", "qa_outputs.weight",
              "cls/squad/output_weights", ""),
        Names("span/bias", "qa_outputs.bias", "cls/squad/output_bias", ""),
    ),
}
# fmt: on
# Tensors that some files hold twice: the head shares them with another name.
TIED = {
    "cls.predictions.decoder.weight": "embeddings/token/embeddings",
    "cls.predictions.decoder.bias": "masked_lm/bias",
}
# Which axis of which tensor has a size of the config.
SIZES = {
    "vocab_size": ("embeddings/token/embeddings", 0),
    "hidden_size": ("embeddings/token/embeddings", 1),
    "max_position_embeddings": ("embeddings/position/table", 0),
    "type_vocab_size": ("embeddings/segment/embeddings", 0),
    "intermediate_size": ("block_0/feed_forward/expand/bias", 0),
}
# Stored as (out, in) there.
GOOGLE_TRANSPOSED = (
    "next_sentence/kernel",
    "classifier/kernel",
    "span/kernel",
)


def thirds_of(name: str) -> list[str]:
    """Returns the names of query, key and value for that of the fused tensor.

    For any other tensor the list is empty.
    """
    if f"/{FUSED}/" not in name:
        return []
    return [name.replace(FUSED, third) for third in THIRDS]


def head_names() -> Iterator[Names]:
    """Yields the table of names of every head."""
    for rows in (*HEADS.values(), *TASK_HEADS.values()):
        yield from rows


def encoder_names(num_layers: int) -> Iterator[Names]:
    """Yields the table of names for an encoder of L layers, pooler last."""
    yield from EMBEDDINGS
    for i in range(num_layers):
        for part, hugging_face, google, keras_hub in BLOCK_PARTS:
            is_norm = part.endswith("norm")
            ends = ("gamma", "beta") if is_norm else ("kernel", "bias")
            for end, torch_end in zip(ends, ("weight", "bias"), strict=True):
                yield Names(
                    f"block_{i}/{part}/{end}",
                    f"encoder.layer.{i}.{hugging_face}.{torch_end}",
                    f"encoder/layer_{i}/{google}/{end}",
                    f"transformer_layer_{i}/{keras_hub}/{end}",
                )
    yield from POOLER


def encoder_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every tensor of an encoder, under our names."""
    width, inner = config.hidden_size, config.intermediate_size
    rows = {
        "embeddings/token/embeddings": config.vocab_size,
        "embeddings/position/table": config.max_position_embeddings,
        "embeddings/segment/embeddings": config.type_vocab_size,
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for names in encoder_names(config.num_hidden_layers):
        name = names.bertbook
        if name in rows:
            shapes[name] = (rows[name], width)
        elif name.endswith("expand/kernel"):
            shapes[name] = (width, inner)
        elif name.endswith("contract/kernel"):
            shapes[name] = (inner, width)
        elif name.endswith("kernel"):
            shapes[name] = (width, width)
        elif name.endswith("expand/bias"):
            shapes[name] = (inner,)
        else:
            shapes[name] = (width,)
    return shapes


def head_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the heads of pre-training, under our names."""
    width = config.hidden_size
    return {
        "masked_lm/dense/kernel": (width, width),
        "masked_lm/dense/bias": (width,),
        "masked_lm/norm/gamma": (width,),
        "masked_lm/norm/beta": (width,),
        "masked_lm/bias": (config.vocab_size,),
        "next_sentence/kernel": (width, 2),
        "next_sentence/bias": (2,),
    }


def count_parameters(config: BertConfig) -> int:
    """Counts the parameters of an encoder without building it."""
    return sum(math.prod(shape) for shape in encoder_shapes(config).values())
