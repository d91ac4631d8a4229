"""Checkpoints in four layouts: files to named arrays and back.

Differences: none in the values; `names` is the table of names.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bertbook.config import BertConfig
from bertbook.files import read_json
from bertbook.locations import find_model
from bertbook.weights.names import (
    GOOGLE_TRANSPOSED,
    SIZES,
    TIED,
    encoder_names,
    encoder_shapes,
    head_names,
)
from bertbook.weights.sentence_transformers import with_vectors
from bertbook.weights.tensors import (
    has_tensors,
    open_tensors,
    read_floats,
    read_metadata,
    read_shapes,
    weights_name,
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
    # What the header of the weights says beside the tensors.
    metadata: dict[str, str] = field(default_factory=dict)

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
    folder = find_model(name_or_dir)
    has_config = (folder / "config.json").is_file()
    if has_config and "class_name" in read_json(folder / "config.json"):
        return _read_keras_hub(str(folder))  # what Keras serialized
    if has_config and has_tensors(folder):
        return _read_hugging_face(folder)
    if (folder / "bert_config.json").is_file() and _indexes(folder):
        return _read_google(folder)
    if not has_config:
        raise FileNotFoundError(
            f"{folder} holds no config.json and no bert_config.json with a "
            "TensorFlow checkpoint."
        )
    return _read_hugging_face(folder)


def config_path(checkpoint: Checkpoint) -> Path:
    """Returns the file that the config of a folder was read from."""
    name = "config.json"
    if checkpoint.layout == "Google":
        name = "bert_config.json"
    return (checkpoint.folder or Path()) / name


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
    config = with_vectors(config, folder)
    shapes = {_modern_name(n): s for n, s in read_shapes(folder).items()}
    first = {**TIED, **{n.hugging_face: n.bertbook for n in encoder_names(1)}}
    check_sizes(
        (folder / "config.json", weights_name(folder)),
        config,
        {
            "num_hidden_layers": count_layers(
                r"^encoder\.layer\.(\d+)\.", shapes
            )
        },
        {first[n]: s for n, s in shapes.items() if n in first},
    )
    table = {
        names.hugging_face: names.bertbook
        for names in (*encoder_names(config.num_hidden_layers), *head_names())
    }
    checkpoint = Checkpoint(
        config,
        {},
        "Hugging Face",
        folder=folder,
        metadata=read_metadata(folder),
    )
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


def count_layers(pattern: str, names: Iterable[str]) -> int:
    """Counts the layers that the names of tensors tell of.

    Args:
        pattern: A regular expression whose group is the number of a layer.
        names: The names that a file uses.
    """
    found = (re.search(pattern, name) for name in names)
    return len({match[1] for match in found if match})


def check_sizes(
    files: tuple[Path, Path],
    config: Any,
    layers: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    sizes: Mapping[str, tuple[str, int]] = SIZES,
    keys: Mapping[str, str] | None = None,
) -> None:
    """Compares the sizes of a config with the tensors before they are read.

    A model of the sizes of a config may need any amount of memory; the header
    of the weights says what is there.

    Args:
        files: The file of the config and that of the weights, for messages.
        config: The config.
        layers: How many layers the weights have, by the config's field.
        shapes: The shapes of the tensors that are there, by our names.
        sizes: Which axis of which tensor has the size of a field.
        keys: What the file calls a field, where not the same.

    Raises:
        ValueError: They differ; every key is named with both numbers.
    """
    stored: dict[str, int | None] = dict(layers)
    for name, (tensor, axis) in sizes.items():
        shape = shapes.get(tensor, ())
        stored[name] = shape[axis] if axis < len(shape) else None
    problems = []
    for name, size in stored.items():
        key = (keys or {}).get(name, name)
        value = getattr(config, name)
        if size is None:
            problems.append(f"{sizes[name][0]} is missing")
        elif size != value:
            problems.append(f"`{key}` must be {size}, not {value}")
    if problems:
        raise ValueError(
            f"{files[0]} must fit {files[1]}: {'; '.join(problems)}."
        )


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
            "`pip install tensorflow`."
        ) from error
    config = BertConfig.from_json(folder / "bert_config.json")
    prefix, skipped = find_google(folder)
    checkpoint = Checkpoint(
        config, {}, "Google", skipped=skipped, folder=folder
    )
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        _take_google(checkpoint, reader, prefix)
    except (tf.errors.OpError, IndexError) as error:  # IndexError: cut short
        reason = getattr(error, "message", error)
        raise ValueError(f"{prefix} is damaged: {reason}.") from error
    return checkpoint


def _take_google(checkpoint: Checkpoint, reader: Any, prefix: Path) -> None:
    """Takes the tensors of an open TensorFlow checkpoint."""
    shapes = reader.get_variable_to_shape_map()
    if OBJECT_GRAPH in shapes:
        raise ValueError(
            f"{prefix} must be a checkpoint of names, as TensorFlow 1 writes "
            "it. Received: one of objects, as TensorFlow 2 writes it."
        )
    config = checkpoint.config
    first = {f"bert/{n.google}": n.bertbook for n in encoder_names(1)}
    pattern = r"^bert/encoder/layer_(\d+)/"
    check_sizes(
        (prefix.parent / "bert_config.json", prefix),
        config,
        {"num_hidden_layers": count_layers(pattern, shapes)},
        {first[n]: tuple(s) for n, s in shapes.items() if n in first},
    )
    table = {
        f"bert/{names.google}": names.bertbook
        for names in encoder_names(config.num_hidden_layers)
    } | {names.google: names.bertbook for names in head_names()}
    for published_name in sorted(shapes):
        if published_name in table:
            array = reader.get_tensor(published_name).astype("float32")
            name = table[published_name]
            is_transposed = name in GOOGLE_TRANSPOSED
            checkpoint.arrays[name] = array.T if is_transposed else array
            checkpoint.stored_names[name] = published_name
        else:
            checkpoint.skipped[published_name] = _why_skipped_of_google(
                published_name, table
            )


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
    _check_backbone(type(backbone).__name__)
    config = _config_of_backbone(backbone.get_config())
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


# What KerasHub calls our fields.
KERAS_HUB_KEYS = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
# The tensors of a preset's file that have a size, and the axis.
PRESET_SIZES = {
    "vocab_size": ("layers/reversible_embedding/vars/0", 0),
    "hidden_size": ("layers/reversible_embedding/vars/0", 1),
    "max_position_embeddings": ("layers/position_embedding/vars/0", 0),
    "type_vocab_size": ("layers/embedding/vars/0", 0),
    "intermediate_size": (
        "layers/transformer_encoder/_feedforward_intermediate_dense/vars/1",
        0,
    ),
}


def _check_backbone(class_name: Any) -> None:
    """Refuses a serialized object of KerasHub that is no BERT."""
    if class_name != "BertBackbone":
        raise ValueError(
            "A KerasHub backbone must be a `BertBackbone`. Received: "
            f"{class_name}."
        )


def _config_of_backbone(sizes: Mapping[str, Any]) -> BertConfig:
    """Returns our config for that of a `BertBackbone`.

    Raises:
        ValueError: A value is none of a BERT's; its key there is named.
    """
    missing = [key for key in KERAS_HUB_KEYS.values() if key not in sizes]
    if missing:
        raise ValueError(f"`config` must hold `{missing[0]}`. Received: none.")
    fields = {name: sizes[key] for name, key in KERAS_HUB_KEYS.items()}
    try:
        return BertConfig(hidden_act="gelu_tanh", **fields)
    except ValueError as error:
        text = str(error)
        for name, key in KERAS_HUB_KEYS.items():
            text = text.replace(f"`{name}`", f"`{key}`")
        raise ValueError(text) from error


def _check_preset(folder: Path) -> None:
    """Checks a folder of a preset before KerasHub builds what it asks for.

    Raises:
        ValueError: config.json is damaged, is not that of a `BertBackbone`, or
            does not fit the weights.
    """
    path = folder / "config.json"
    stored = read_json(path)
    _check_backbone(stored.get("class_name"))
    sizes = stored.get("config")
    if not isinstance(sizes, Mapping):
        raise ValueError(
            f"{path}: `config` must be an object. Received: {sizes!r}."
        )
    try:
        config = _config_of_backbone(sizes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    weights = folder / "model.weights.h5"
    if not weights.is_file():  # in several files, whose names tell no layer
        return
    shapes = _shapes_of_preset(weights)
    if not all(name in shapes for name, _ in PRESET_SIZES.values()):
        return  # another release of KerasHub
    pattern = r"^layers/(transformer_encoder(?:_\d+)?)/"
    check_sizes(
        (path, weights),
        config,
        {"num_hidden_layers": count_layers(pattern, shapes)},
        shapes,
        PRESET_SIZES,
        KERAS_HUB_KEYS,
    )


def _shapes_of_preset(path: Path) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the tensors of an h5 file, from its headers.

    Raises:
        ValueError: The file is damaged.
    """
    import h5py  # what Keras itself reads these files with

    shapes: dict[str, tuple[int, ...]] = {}

    def take(name: str, node: Any) -> None:
        if hasattr(node, "shape"):
            shapes[name] = tuple(node.shape)

    try:
        with h5py.File(path) as file:
            file.visititems(take)
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    return shapes


def _open_preset(name: str) -> tuple[Any, dict[str, Any] | None]:
    """Opens a KerasHub preset: its backbone, its tokenizer's keywords.

    Raises:
        ValueError: A file of it cannot be read; it is named.
    """
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError(
            "A KerasHub preset needs KerasHub: `pip install keras-nlp`."
        ) from error
    folder = Path(name)
    if (folder / "config.json").is_file():
        _check_preset(folder)
    try:
        backbone = keras_hub.models.Backbone.from_preset(name)
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:  # of any kind, from a file that is damaged
        raise ValueError(f"{name} cannot be read: {error}.") from error
    if folder.is_dir() and not (folder / "tokenizer.json").is_file():
        return backbone, None  # a preset of weights alone
    try:
        stored = keras_hub.models.BertTokenizer.from_preset(name)
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not folder.is_dir():
            return backbone, None
        raise ValueError(
            f"{folder / 'tokenizer.json'} cannot be read: {error}."
        ) from error
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
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes config.json and the tensors, as Hugging Face names them.

    Args:
        folder: As in `tensors.write_tensors`.
        config: The config to write.
        arrays: Every tensor of the model under our names.
        prefix: What to put before the names of an encoder: "bert." for a
            model with a head, "" for an encoder alone.
        max_shard_bytes: Most bytes of tensors a file; above it there are
            several and an index. None writes one file.
        metadata: What to keep in the header of the weights.
    """
    tensors = {}
    for names in encoder_names(config.num_hidden_layers):
        if names.bertbook in arrays:  # an encoder may be without a pooler
            tensors[prefix + names.hugging_face] = _as_stored(names, arrays)
    for names in head_names():
        if names.bertbook in arrays:
            tensors[names.hugging_face] = _as_stored(names, arrays)
    write_tensors(folder, config, tensors, max_shard_bytes, metadata)


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
    if name.startswith(("encoder.", "embeddings.")):
        return "unknown"
    return "belongs to a head that this model does not have"


# How the names of TensorFlow's variables end or begin that are no weights.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
AVERAGE = "ExponentialMovingAverage"
COUNTERS = {
    "global_step", "beta1_power", "beta2_power", "loss_scale", "good_steps",
    "current_loss_scale", "learning_rate", "signal_early_stopping/STOP",
}  # fmt: skip


def _why_skipped_of_google(name: str, known: Mapping[str, str]) -> str:
    """Returns why a variable of TensorFlow is no weight of the model.

    What an optimizer keeps for a weight, a slot, has the name of the weight
    and a further part, whatever the optimizer is called.
    """
    if any(f"/{weight}/" in f"/{name}" for weight in known):
        if AVERAGE in name.split("/"):
            return "a moving average of a weight, not the weight"
        return "state of the optimizer"
    if name in COUNTERS:
        return "state of the optimizer"
    if name.startswith(("bert/encoder/", "bert/embeddings/")):
        return "unknown"
    return "belongs to a head that this model does not have"


def find_google(folder: Path) -> tuple[Path, dict[str, str]]:
    """Returns which TensorFlow checkpoint of a folder is read.

    Of several it is the one that the file `checkpoint` names; without that
    file bert_model.ckpt, as the published folders have it, else the one with
    the highest step.

    Returns:
        The common part of the file names, and the other checkpoints, each
        with the reason why it is skipped.

    Raises:
        ValueError: The choice is open, or falls on one that is not there.
    """
    names = [path.name.removesuffix(".index") for path in _indexes(folder)]
    if len(names) == 1:
        return folder / names[0], {}
    last = _named_last(folder) or _highest_step(names)
    if last not in names:
        raise ValueError(
            f"{folder} must hold one checkpoint, or several with their step "
            "in the name and the last one named by the file `checkpoint`. "
            f"Received: {', '.join(names)}; the last one: {last}."
        )
    why = f"another checkpoint of the folder; {last} is read"
    return folder / last, {name: why for name in names if name != last}


def _indexes(folder: Path) -> list[Path]:
    """Returns the index files of the TensorFlow checkpoints of a folder."""
    return sorted(path for path in folder.glob("*.index") if path.is_file())


def _named_last(folder: Path) -> str | None:
    """Returns the last checkpoint as the file `checkpoint` names it.

    The file may hold the path on the machine of the run; the name counts.
    """
    path = folder / "checkpoint"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.search(r'^model_checkpoint_path:\s*"(.*)"', text, re.MULTILINE)
    return re.split(r"[/\\]", found[1])[-1] if found else None


def _highest_step(names: list[str]) -> str | None:
    """Returns bert_model.ckpt, else the name with the highest step."""
    if "bert_model.ckpt" in names:
        return "bert_model.ckpt"
    found = [re.fullmatch(r"(.*)-(\d{1,18})", name) for name in names]
    steps = [match for match in found if match]
    if len(steps) < len(names) or len({match[1] for match in steps}) > 1:
        return None
    return max(steps, key=lambda match: int(match[2]))[0]
