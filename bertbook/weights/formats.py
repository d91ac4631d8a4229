"""Checkpoints in four layouts: files to named arrays and back.

Differences: none in the values; `names` is the table of names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bertbook.config import BertConfig
from bertbook.files import read_json
from bertbook.locations import find_folder
from bertbook.weights.names import (
    GOOGLE_TRANSPOSED,
    TIED,
    encoder_names,
    encoder_shapes,
    head_names,
)
from bertbook.weights.tensors import (
    has_tensors,
    open_tensors,
    read_floats,
    write_tensors,
)


@dataclass
class Checkpoint:
    """What a folder holds: its config and its tensors under our names."""

    config: BertConfig
    arrays: dict[str, np.ndarray]
    layout: str
    # From our name of a tensor to its name in the file.
    stored_names: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    tokenizer: dict[str, Any] | None = None  # keywords, where no file has it

    def leave_out(self, names: Iterable[str], why: str) -> None:
        """Skips tensors that the file holds but the model will not take."""
        for name in [name for name in names if name in self.arrays]:
            del self.arrays[name]
            self.skipped[self.stored_names[name]] = why


def read_checkpoint(name_or_dir: Any) -> Checkpoint:
    """Reads a checkpoint of any layout.

    A folder that holds a checkpoint of Google and model.safetensors is read
    as Hugging Face's: so it is after `save_pretrained` wrote into it.

    Args:
        name_or_dir: A shipped name, a folder, "hf://org/name",
            "keras://preset", or a KerasHub `BertBackbone`.

    Raises:
        FileNotFoundError: There is no such folder, or no weights in it.
        ValueError: A file is damaged, or describes another model.
    """
    if hasattr(name_or_dir, "token_embedding_matrix") or hasattr(
        name_or_dir, "token_embedding"
    ):
        return _read_keras_hub(name_or_dir)
    if str(name_or_dir).startswith("keras://"):
        return _read_keras_hub(str(name_or_dir).removeprefix("keras://"))
    folder = find_folder(name_or_dir)
    has_config = (folder / "config.json").is_file()
    if has_config and "class_name" in read_json(folder / "config.json"):
        return _read_keras_hub(str(folder))  # what Keras serialized
    if has_config and has_tensors(folder):
        return _read_hugging_face(folder)
    if (folder / "bert_config.json").is_file() and _google_prefix(folder):
        return _read_google(folder)
    if not has_config:
        raise FileNotFoundError(
            f"{folder} holds no config.json and no bert_config.json with a "
            "TensorFlow checkpoint."
        )
    return _read_hugging_face(folder)


def _read_hugging_face(folder: Path) -> Checkpoint:
    """Reads config.json and model.safetensors, whole or in shards.

    Old files say gamma and beta, new ones weight and bias; files of a model
    with a head put `bert.` before the encoder's names. All are read.

    Raises:
        FileNotFoundError: There is no safetensors file.
        ValueError: A file is damaged, a tensor of the encoder occurs twice,
            or holds no floats, as in a quantized file.
    """
    config = BertConfig.from_json(folder / "config.json")
    table = {
        names.hugging_face: names.bertbook
        for names in (*encoder_names(config.num_hidden_layers), *head_names())
    }
    checkpoint = Checkpoint(config, {}, "Hugging Face", folder=folder)
    tied: dict[str, np.ndarray] = {}
    for stored_name, file in open_tensors(folder):
        published_name = _modern_name(stored_name)
        if published_name in TIED:
            tied[published_name] = read_floats(file, stored_name)
            continue
        if published_name not in table:
            checkpoint.skipped[stored_name] = _why_skipped(published_name)
            continue
        name = table[published_name]
        if name in checkpoint.arrays:
            raise ValueError(
                f"{folder} must hold {name} once. Received: {stored_name} too."
            )
        array = read_floats(file, stored_name)
        checkpoint.arrays[name] = array.T if name.endswith("kernel") else array
        checkpoint.stored_names[name] = stored_name
    _check_tied(tied, checkpoint)
    return checkpoint


def _check_tied(tied: dict[str, np.ndarray], checkpoint: Checkpoint) -> None:
    """Takes or skips tensors that a file should hold once.

    Raises:
        ValueError: One differs from the tensor that it is tied to.
    """
    for published_name, array in tied.items():
        name = TIED[published_name]
        if name not in checkpoint.arrays:
            checkpoint.arrays[name] = array  # the file holds it here alone
            checkpoint.stored_names[name] = published_name
        elif not np.array_equal(checkpoint.arrays[name], array):
            raise ValueError(
                f"{published_name} must be the same as {name}, as in every "
                f"BERT. Received: another tensor in {checkpoint.folder}."
            )
        else:
            checkpoint.skipped[published_name] = f"the same tensor as {name}"


def _read_google(folder: Path) -> Checkpoint:
    """Reads bert_config.json and a TensorFlow 1 checkpoint.

    Raises:
        ImportError: TensorFlow, which reads the format, is not installed.
        ValueError: The checkpoint is damaged.
    """
    try:
        import tensorflow as tf
    except ImportError as error:
        raise ImportError(
            "A folder in Google's layout needs TensorFlow to be read: "
            "`pip install bertbook[tensorflow]`."
        ) from error
    config = BertConfig.from_json(folder / "bert_config.json")
    table = {
        f"bert/{names.google}": names.bertbook
        for names in encoder_names(config.num_hidden_layers)
    } | {names.google: names.bertbook for names in head_names()}
    checkpoint = Checkpoint(config, {}, "Google", folder=folder)
    prefix = _google_prefix(folder)
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        for published_name in sorted(reader.get_variable_to_shape_map()):
            if published_name in table:
                array = reader.get_tensor(published_name).astype("float32")
                name = table[published_name]
                is_transposed = name in GOOGLE_TRANSPOSED
                checkpoint.arrays[name] = array.T if is_transposed else array
                checkpoint.stored_names[name] = published_name
            else:
                checkpoint.skipped[published_name] = _why_skipped(
                    published_name
                )
    except (tf.errors.OpError, IndexError) as error:  # IndexError: cut short
        reason = getattr(error, "message", error)
        raise ValueError(f"{prefix} is damaged: {reason}.") from error
    return checkpoint


def _read_keras_hub(backbone: Any) -> Checkpoint:
    """Reads a KerasHub `BertBackbone`, or the preset of that name.

    KerasHub uses the tanh form of GELU and one dropout rate.

    Raises:
        ImportError: A preset without KerasHub.
        ValueError: It is not a `BertBackbone`, has more weights than one, or
            its files cannot be read.
    """
    tokenizer = None
    if isinstance(backbone, str):
        backbone, tokenizer = _open_preset(backbone)
    sizes = backbone.get_config()
    if type(backbone).__name__ != "BertBackbone":
        raise ValueError(
            "A KerasHub backbone must be a `BertBackbone`. Received: "
            f"{type(backbone).__name__}."
        )
    config = BertConfig(
        vocab_size=sizes["vocabulary_size"],
        hidden_size=sizes["hidden_dim"],
        num_hidden_layers=sizes["num_layers"],
        num_attention_heads=sizes["num_heads"],
        intermediate_size=sizes["intermediate_dim"],
        hidden_act="gelu_tanh",
        hidden_dropout_prob=sizes["dropout"],
        attention_probs_dropout_prob=sizes["dropout"],
        max_position_embeddings=sizes["max_sequence_length"],
        type_vocab_size=sizes["num_segments"],
    )
    checkpoint = Checkpoint(config, {}, "KerasHub", tokenizer=tokenizer)
    table = {
        names.keras_hub: names.bertbook
        for names in encoder_names(config.num_hidden_layers)
    }
    shapes = encoder_shapes(config)
    for weight in backbone.weights:
        array = np.asarray(weight, "float32")
        published_name = weight.path.removeprefix(f"{backbone.name}/")
        if published_name not in table:
            raise ValueError(
                "A `BertBackbone` must be neither quantized nor extended. "
                f"Received: one with {published_name}."
            )
        name = table[published_name]
        checkpoint.arrays[name] = array.reshape(shapes[name])
        checkpoint.stored_names[name] = published_name
    return checkpoint


def _open_preset(name: str) -> tuple[Any, dict[str, Any] | None]:
    """Opens a KerasHub preset: its backbone, its tokenizer's keywords."""
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError(
            "A KerasHub preset needs KerasHub: `pip install keras-nlp`."
        ) from error
    try:
        backbone = keras_hub.models.Backbone.from_preset(name)
    except FileNotFoundError:
        raise
    except OSError as error:  # a file that was cut short, or no connection
        raise ValueError(f"{name} cannot be read: {error}.") from error
    try:
        stored = keras_hub.models.BertTokenizer.from_preset(name)
    except (FileNotFoundError, ValueError):  # a preset of weights alone
        return backbone, None
    return backbone, {
        "vocabulary": stored.get_vocabulary(),
        "lowercase": stored.lowercase,
        "strip_accents": stored.strip_accents,
    }


def write_hugging_face(
    folder: Path,
    config: BertConfig,
    arrays: Mapping[str, np.ndarray],
    prefix: str,
    max_shard_bytes: int | None = None,
) -> None:
    """Writes config.json and the tensors, as Hugging Face names them.

    Each file appears whole or not at all, the weights last.

    Args:
        folder: Made where it is missing.
        config: The config to write.
        arrays: Every tensor of the model under our names.
        prefix: What to put before the names of an encoder: "bert." for a
            model with a head, "" for an encoder alone.
        max_shard_bytes: Most bytes of tensors a file; above it there are
            several and an index. None writes one file.
    """
    tensors = {}
    for names in encoder_names(config.num_hidden_layers):
        if names.bertbook in arrays:  # an encoder may be without a pooler
            tensors[prefix + names.hugging_face] = _as_stored(names, arrays)
    for names in head_names():
        if names.bertbook in arrays:
            tensors[names.hugging_face] = _as_stored(names, arrays)
    write_tensors(folder, config, tensors, max_shard_bytes)


def _as_stored(names: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns a tensor as PyTorch lays it out: matrices as (out, in)."""
    array = arrays[names.bertbook]
    array = array.T if names.bertbook.endswith("kernel") else array
    return np.ascontiguousarray(array)


def _modern_name(name: str) -> str:
    """Returns today's form of a name: no `bert.`, weight and bias in norms."""
    name = name.removeprefix("bert.")
    if name.endswith("LayerNorm.gamma"):
        return name.removesuffix("gamma") + "weight"
    if name.endswith("LayerNorm.beta"):
        return name.removesuffix("beta") + "bias"
    return name


def _why_skipped(name: str) -> str:
    if name.endswith("position_ids"):
        return "a list of positions, not a weight"
    if name.endswith(("/adam_m", "/adam_v")) or name == "global_step":
        return "state of the optimizer"
    if name.startswith(
        ("encoder", "embeddings", "bert/encoder", "bert/embeddings")
    ):
        return "unknown"
    return "belongs to a head that this model does not have"


def _google_prefix(folder: Path) -> Path | None:
    """Returns the common part of the checkpoint's file names."""
    index_files = sorted(folder.glob("*.index"))
    named = [
        path for path in index_files if path.name == "bert_model.ckpt.index"
    ]
    if len(named or index_files) > 1:
        raise ValueError(
            f"{folder} must hold one checkpoint. Received: "
            f"{', '.join(path.name for path in index_files)}."
        )
    return (named or index_files)[0].with_suffix("") if index_files else None
