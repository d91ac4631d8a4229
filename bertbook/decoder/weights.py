"""Checkpoints of models with a decoder: tensor names, reading and writing.

A causal model is stored as GPT-2 is, so that other libraries open it. Our names
are the paths of our weights. GPT-2 stores a matrix as (in, out), as we do, and
query, key and value as one. For an encoder-decoder there is no such layout: its
tensors have our names, with dots.
"""

import math
from collections.abc import Iterator

import numpy as np

from bertbook.decoder.config import (
    GPT2_KEYS,
    CausalLMConfig,
    Seq2SeqConfig,
)
from bertbook.files import read_json
from bertbook.locations import find_model
from bertbook.weights.formats import Checkpoint, check_sizes, count_layers
from bertbook.weights.names import thirds_of
from bertbook.weights.tensors import (
    open_tensors,
    read_floats,
    read_metadata,
    read_shapes,
    weights_name,
    write_tensors,
)

# Ours, GPT-2's: a dense layer or a norm within a block.
BLOCK_PARTS = (
    ("attention_norm", "ln_1"),
    ("attention/query_key_value", "attn.c_attn"),
    ("attention/output", "attn.c_proj"),
    ("feed_forward_norm", "ln_2"),
    ("feed_forward/expand", "mlp.c_fc"),
    ("feed_forward/contract", "mlp.c_proj"),
)


def causal_names(num_layers: int) -> Iterator[tuple[str, str]]:
    """Yields our name and GPT-2's of every tensor of a model of L layers."""
    yield "token/embeddings", "wte.weight"
    yield "position/table", "wpe.weight"
    for i in range(num_layers):
        for name, published_name in BLOCK_PARTS:
            ends = "kernel", "bias"
            if name.endswith("norm"):
                ends = "gamma", "beta"
            yield (
                f"block_{i}/{name}/{ends[0]}",
                f"h.{i}.{published_name}.weight",
            )
            yield f"block_{i}/{name}/{ends[1]}", f"h.{i}.{published_name}.bias"
    yield "final_norm/gamma", "ln_f.weight"
    yield "final_norm/beta", "ln_f.bias"


def causal_shapes(config: CausalLMConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every tensor, under our names."""
    width, inner = config.hidden_size, config.intermediate_size
    tables = {
        "token/embeddings": (config.vocab_size, width),
        "position/table": (config.max_position_embeddings, width),
    }
    of_parts = {
        "query_key_value/kernel": (width, 3 * width),
        "query_key_value/bias": (3 * width,),
        "output/kernel": (width, width),
        "expand/kernel": (width, inner),
        "expand/bias": (inner,),
        "contract/kernel": (inner, width),
    }
    shapes = {}
    for name, _ in causal_names(config.num_hidden_layers):
        part = "/".join(name.split("/")[-2:])
        shapes[name] = tables.get(name, of_parts.get(part, (width,)))
    return shapes


def count_parameters(config: CausalLMConfig) -> int:
    """Counts the parameters of a causal model without building it."""
    return sum(math.prod(shape) for shape in causal_shapes(config).values())


# Which axis of which tensor has a size of the config.
CAUSAL_SIZES = {
    "vocab_size": ("token/embeddings", 0),
    "hidden_size": ("token/embeddings", 1),
    "max_position_embeddings": ("position/table", 0),
    "intermediate_size": ("block_0/feed_forward/expand/bias", 0),
}
SEQ2SEQ_SIZES = {
    "vocab_size": ("embeddings/token/embeddings", 0),
    "hidden_size": ("embeddings/token/embeddings", 1),
    "intermediate_size": ("encoder_block_0/feed_forward/expand/bias", 0),
}
TARGET_SIZE = {"target_vocab_size": ("target_embeddings/token/embeddings", 0)}

PREFIX = "transformer."  # A GPT-2 with a head puts this before its names.
OUTPUT = "lm_head.weight"  # tied to the token table


def read_causal(name_or_dir):
    """Reads config.json and the tensors of a GPT-2.

    Args:
        name_or_dir: A shipped name, a folder, or "hf://org/name".

    Returns:
        A `Checkpoint`, in which query, key and value are separate tensors.

    Raises:
        FileNotFoundError: There is no such folder, or a file is missing.
        ValueError: A file is damaged, or describes another model.
    """
    folder = find_model(name_or_dir)
    config = CausalLMConfig.from_json(folder / "config.json")
    shapes = {n.removeprefix(PREFIX): s for n, s in read_shapes(folder).items()}
    first = {published_name: name for name, published_name in causal_names(1)}
    check_sizes(
        (folder / "config.json", weights_name(folder)),
        config,
        {"num_hidden_layers": count_layers(r"^h\.(\d+)\.", shapes)},
        {first[n]: s for n, s in shapes.items() if n in first},
        CAUSAL_SIZES,
        GPT2_KEYS,
    )
    table = {
        published_name: name
        for name, published_name in causal_names(config.num_hidden_layers)
    }
    checkpoint = Checkpoint(
        config,
        {},
        "Hugging Face",
        folder=folder,
        metadata=read_metadata(folder),
    )
    output = None
    for stored_name, file in open_tensors(folder):
        name = stored_name.removeprefix(PREFIX)
        if name == OUTPUT:
            output = read_floats(file, stored_name)
        elif name in table:
            array = read_floats(file, stored_name)
            for part_name, part in _apart(table[name], array):
                checkpoint.arrays[part_name] = part
                checkpoint.stored_names[part_name] = stored_name
        else:
            checkpoint.skipped[stored_name] = _why_skipped(name)
    _check_output(output, checkpoint)
    _leave_other_vocabulary(checkpoint)
    return checkpoint


def write_causal(folder, config, arrays, max_shard_bytes=None, metadata=None):
    """Writes config.json and the tensors of a causal model as GPT-2's.

    Args:
        folder: As in `tensors.write_tensors`.
        config: The `CausalLMConfig` to write.
        arrays: Every tensor under our names; query, key and value apart.
        max_shard_bytes: As in `tensors.write_tensors`.
        metadata: As in `tensors.write_tensors`.
    """
    tensors = {
        PREFIX + published_name: np.ascontiguousarray(_joined(name, arrays))
        for name, published_name in causal_names(config.num_hidden_layers)
    }
    write_tensors(folder, config, tensors, max_shard_bytes, metadata)


def read_seq2seq(name_or_dir):
    """Reads config.json and the tensors of a `Seq2SeqTransformer`.

    Args:
        name_or_dir: A shipped name, a folder, or "hf://org/name".

    Raises:
        FileNotFoundError: There is no such folder, or a file is missing.
        ValueError: A file is damaged, or describes another model.
    """
    folder = find_model(name_or_dir)
    config = Seq2SeqConfig.from_json(folder / "config.json")
    _check_seq2seq_sizes(folder, config)
    checkpoint = Checkpoint(
        config, {}, "bertbook", folder=folder, metadata=read_metadata(folder)
    )
    for stored_name, file in open_tensors(folder):
        name = stored_name.replace(".", "/")
        checkpoint.arrays[name] = read_floats(file, stored_name)
        checkpoint.stored_names[name] = stored_name
    return checkpoint


def _check_seq2seq_sizes(folder, config):
    """Compares the sizes of a config with the tensors of its folder."""
    shapes = {n.replace(".", "/"): s for n, s in read_shapes(folder).items()}
    has_target = config.target_vocab_size is not None
    check_sizes(
        (folder / "config.json", weights_name(folder)),
        config,
        {
            "num_hidden_layers": count_layers(r"^encoder_block_(\d+)/", shapes),
            "decoder_layers": count_layers(r"^decoder_block_(\d+)/", shapes),
        },
        shapes,
        SEQ2SEQ_SIZES | (TARGET_SIZE if has_target else {}),
        {"decoder_layers": "num_decoder_layers"},
    )


def write_seq2seq(folder, config, arrays, max_shard_bytes=None, metadata=None):
    """Writes config.json and the tensors of a `Seq2SeqTransformer`.

    Args:
        folder: As in `tensors.write_tensors`.
        config: The `Seq2SeqConfig` to write.
        arrays: Every tensor under our names.
        max_shard_bytes: As in `tensors.write_tensors`.
        metadata: As in `tensors.write_tensors`.
    """
    tensors = {
        name.replace("/", "."): np.ascontiguousarray(array)
        for name, array in arrays.items()
    }
    write_tensors(folder, config, tensors, max_shard_bytes, metadata)


def _apart(name, array):
    """Returns a tensor with its name; query, key and value as three."""
    thirds = thirds_of(name)
    if not thirds:
        return [(name, array)]
    return list(zip(thirds, np.split(array, 3, axis=-1), strict=True))


def _joined(name, arrays):
    """Undoes `_apart`."""
    thirds = [arrays[third] for third in thirds_of(name)]
    return np.concatenate(thirds, axis=-1) if thirds else arrays[name]


def _check_output(output, checkpoint):
    """Skips an output matrix that equals the token table.

    Raises:
        ValueError: It differs.
    """
    if output is None:
        return
    table = checkpoint.arrays.get("token/embeddings")
    if table is None or not np.array_equal(output, table):
        raise ValueError(
            f"{OUTPUT} must be the same as token/embeddings, as in every "
            f"GPT-2. Received: another tensor in {checkpoint.folder}."
        )
    checkpoint.skipped[OUTPUT] = "the same tensor as token/embeddings"


def _leave_other_vocabulary(checkpoint):
    """Skips a tokenizer.json of another kind, as that of GPT-2 itself is."""
    path = checkpoint.folder / "tokenizer.json"
    if path.is_file():
        model = read_json(path).get("model")
        kind = model.get("type") if isinstance(model, dict) else None
        if kind != "WordPiece":
            why = f"a vocabulary of the kind {kind}, not WordPiece"
            checkpoint.skipped[path.name] = why


def _why_skipped(name):
    if name.endswith((".attn.bias", ".attn.masked_bias")):
        return "a causal mask, not a weight"
    if name.startswith(("h.", "wte", "wpe", "ln_f")):
        return "unknown"
    return "belongs to a head that this model does not have"
