"""Low-rank adapters: `add_lora`, `merge_lora`, and the file of an adapter.

Differences: the paper gives query and value adapters of their own. Here query,
key and value are one matrix, so one pair of small matrices changes all three.
It has as many parameters as the paper's two pairs: r D + 3 r D.
"""

import contextlib
import hashlib
import json
import math
from typing import NamedTuple

import numpy as np
import safetensors

from bertbook.checks import as_number, is_integer
from bertbook.files import (
    check_folder,
    check_no_pointer,
    made_folder,
    write_whole,
)
from bertbook.runtime import keras, ops
from bertbook.weights.matrices import (
    ADAPTERS,
    TABLE_ADAPTERS,
    check_floats,
    check_plain,
    collecting_little,
    float_matrix,
    matrix_layers,
    tensor_name,
)
from bertbook.weights.tensors import write_file

ADAPTER = "adapter.safetensors"
LAYERS = ("query_key_value",)


class LoraSettings(NamedTuple):
    """What tells one kind of adapters from another, and the frozen weights."""

    rank: int
    alpha: float
    layers: tuple[str, ...]
    base: str  # a hash of the frozen weights


class TrainedParameters(NamedTuple):
    """How many parameters of a model are trained, and how many it has."""

    trained: int
    total: int

    def __str__(self) -> str:
        share = self.trained / self.total
        return (
            f"{self.trained:,} of {self.total:,} parameters are trained "
            f"({share:.2%})"
        )


def add_lora(model, rank=8, alpha=None, layers=LAYERS):
    """Freezes a model, and lets small matrices beside its own learn instead.

    A dense layer then multiplies with W + alpha / rank * A B, where A is drawn
    and B is 0, so that the model computes what it did. The adapters and the
    head of the task are trained, and a pooler that was not loaded. Compile
    after it, or call `finetune`, with a learning rate about ten times that of
    all weights.

    Source: Hu et al. (2021), "LoRA: Low-Rank Adaptation of Large Language
    Models", section 4; the adapters are those of `keras.layers.Dense`.

    Args:
        model: A model of this package, its weights loaded.
        rank: r, the width between A, `(in, r)`, and B, `(r, out)`.
        alpha: Scales what the adapters add; None means `rank`, factor 1.
        layers: Names of the dense layers that get adapters, in every block:
            "query_key_value", "output", "expand", "contract"; in a decoder
            that reads a source "query" and "key_value" too.

    Returns:
        How many parameters are trained, and how many there are.

    Raises:
        ValueError: `model` is no model of this package, has adapters, or is
            quantized; `rank` or `alpha` is out of range, or `rank` larger than
            a side of a matrix; or `layers` names a layer that the model does
            not have. The model is as it was.

    >>> import bertbook as bb
    >>> model = bb.BertForSequenceClassification.from_pretrained("mini-taught")
    >>> print(bb.add_lora(model, rank=2))
    8,706 of 7,559,938 parameters are trained (0.12%)
    """
    rank, alpha = _check_numbers(rank, alpha)
    targets = _targets(model, layers)
    check_plain(model)
    _check_rank(rank, targets)
    settings = LoraSettings(rank, alpha, tuple(layers), _hash_base(model))
    trained = {id(weight) for weight in _head(model).values()}
    parts = [*model._flatten_layers(), *model.weights]
    before = [(part, part.trainable) for part in parts]
    try:
        model.trainable = True  # for every part, whatever was frozen before
        for weight in model.weights:
            weight.trainable = id(weight) in trained
        for layer in targets.values():
            _enable(layer, rank, alpha)
    except BaseException:  # of memory, say: the model is as it was
        for layer in targets.values():
            _remove(layer)
            layer._tracker.lock()  # Keras opens it to add a weight
        for part, trainable in before:
            part.trainable = trainable
        raise
    model.lora = settings
    _forget_compilation(model)
    counts = [
        sum(math.prod(weight.shape) for weight in weights)
        for weights in (model.trainable_weights, model.weights)
    ]
    return TrainedParameters(*counts)


def _check_rank(rank, targets):
    """Refuses a rank that no product of two matrices can have."""
    for name, layer in targets.items():
        most = min(layer._kernel.shape)
        if rank > most:
            raise ValueError(
                f"`rank` must be at most {most}, the smaller side of {name}. "
                f"Received: {rank}."
            )


def _enable(layer, rank, alpha):
    """Adds adapters to a layer, named as its matrix is."""
    with contextlib.ExitStack() as scopes:
        for part in layer.path.split("/"):
            scopes.enter_context(keras.name_scope(part))
        layer.enable_lora(rank, lora_alpha=alpha)


def merge_lora(model):
    """Adds what the adapters learned to the matrices, and takes them away.

    The model computes what it did, and all of it can be trained again.

    Args:
        model: A model with adapters, from `add_lora` or from `enable_lora` of
            its layers.

    Raises:
        ValueError: It has none, or one beside a quantized matrix.

    >>> import bertbook as bb
    >>> model = bb.BertForSequenceClassification.from_pretrained("mini-taught")
    >>> counts = bb.add_lora(model)
    >>> bb.merge_lora(model)
    >>> all(weight.trainable for weight in model.weights), model.lora
    (True, None)
    """
    layers = []
    if isinstance(model, keras.Model):
        layers = [one for one in matrix_layers(model) if one.lora_enabled]
    if not layers:
        raise ValueError(
            "`model` must have adapters; `add_lora` adds them. Received: "
            f"{type(model).__name__} without."
        )
    for layer in layers:
        if layer.quantization_mode is not None:
            raise ValueError(
                "Adapters beside a quantized matrix are not merged: it would "
                "be rounded again. Merge first, then quantize. Received: "
                f"{layer.quantization_mode!r} in {layer.path}."
            )
    with collecting_little():
        for layer in layers:
            _merge(layer)
    for weight in model.weights:
        weight.trainable = True
    model.lora = None
    _forget_compilation(model)


def _merge(layer):
    """Puts the sum into the matrix of a layer, and removes its adapters."""
    is_table = isinstance(layer, keras.layers.Embedding)
    name = "embeddings" if is_table else "kernel"
    getattr(layer, f"_{name}").assign(float_matrix(layer))
    _remove(layer)


def _remove(layer):
    """Removes the adapters of a layer, or as many as it has."""
    for name in (*ADAPTERS, *TABLE_ADAPTERS):
        if hasattr(layer, name):
            delattr(layer, name)
    layer.lora_enabled = False
    layer.lora_rank = layer.lora_alpha = None


def save_adapter(model, folder):
    """Writes what `add_lora` lets learn: the adapters and the head.

    Args:
        model: A model after `add_lora`.
        folder: Made where it is missing; the file in it appears whole.

    Raises:
        ValueError: The model has no adapters, its frozen weights have changed,
            a matrix is quantized, or a value is NaN or infinite.
        OSError: The disk is full, or the folder cannot be written.
    """
    check_floats(
        model,
        "`save_adapter` writes floats: call it before you quantize, or "
        '`model.save("small.keras")` after it.',
    )
    settings = _check_unchanged(model)
    arrays = {
        name: np.ascontiguousarray(ops.convert_to_numpy(weight), "float32")
        for name, weight in {**_adapters(model), **_head(model)}.items()
    }
    _check_finite(arrays, "The model")
    about = {
        **settings._asdict(),
        "architecture": model.architecture,
        "config": model.config.to_dict(),
    }
    folder = check_folder(folder)
    with made_folder(folder), write_whole(folder / ADAPTER) as part:
        write_file(part, arrays, {"adapter": json.dumps(about)})


def load_adapter(model, folder):
    """Puts what `save_adapter` wrote into a model with the same base.

    Args:
        model: The model that the adapter was trained on, before `add_lora`, or
            after it with the same settings.
        folder: Where `save_adapter` wrote.

    Raises:
        FileNotFoundError: There is no adapter.
        ValueError: It is damaged, or belongs to another base or another kind
            of model; the model is then as it was.
    """
    path = check_folder(folder) / ADAPTER
    about, arrays = _read_adapter(path)
    _check_fits(model, about, path)
    layers = about["layers"]
    shapes = {n: tuple(w.shape) for n, w in _head(model).items()}
    for name, layer in _targets(model, layers).items():
        rows, columns = layer._kernel.shape
        down, up = (f"{name}/{adapter}" for adapter in ADAPTERS)
        shapes |= {down: (rows, about["rank"]), up: (about["rank"], columns)}
    _check_arrays(shapes, arrays, path)
    stored = type(model.config).from_dict(about["config"], origin=str(path))
    if model.lora is None:
        add_lora(model, about["rank"], about["alpha"], layers)
    for name, weight in {**_adapters(model), **_head(model)}.items():
        weight.assign(arrays[name])
    model.config = stored


def has_adapters(model):
    """Returns whether a layer of a model has adapters."""
    return any(layer.lora_enabled for layer in matrix_layers(model))


def _check_numbers(rank, alpha):
    """Returns both numbers, `alpha` as a float."""
    if not is_integer(rank) or rank < 1:
        raise ValueError(f"`rank` must be an integer >= 1. Received: {rank!r}.")
    scale = float(rank) if alpha is None else as_number(alpha)
    if not 0 < scale < math.inf:
        raise ValueError(
            f"`alpha` must be a number above 0, or None. Received: {alpha!r}."
        )
    return int(rank), scale


def _targets(model, layers):
    """Returns the layers that get adapters, by our names."""
    if not hasattr(model, "load_adapter"):
        raise ValueError(
            "`model` must be a model of bertbook. Received: "
            f"{type(model).__name__}."
        )
    places = {
        tensor_name(layer._kernel).removesuffix("/kernel"): layer
        for layer in matrix_layers(model)
        if isinstance(layer, keras.layers.Dense)
        and getattr(layer, "_kernel", None) is not None
    }
    places = {name: layer for name, layer in places.items() if "block" in name}
    known = sorted({name.rpartition("/")[2] for name in places})
    is_list = isinstance(layers, list | tuple) and len(layers) > 0
    if not is_list or not all(name in known for name in layers):
        raise ValueError(
            f"`layers` must be a list of some of {', '.join(known)}. "
            f"Received: {layers!r}."
        )
    return {
        name: layer
        for name, layer in places.items()
        if name.rpartition("/")[2] in layers
    }


def _head(model):
    """Returns the weights that are trained in whole, by our names.

    Those outside of the encoder, and those that no file held.
    """
    drawn = set(model.load_report.drawn) if model.load_report else set()
    encoder = getattr(model, "encoder", model)
    frozen = {id(weight) for weight in encoder.weights}
    return {
        tensor_name(weight): weight
        for weight in model.weights
        if id(weight) not in frozen or tensor_name(weight) in drawn
    }


def _adapters(model):
    """Returns the adapters of a model, by our names."""
    return {
        f"{name}/{adapter}": getattr(layer, adapter)
        for name, layer in _targets(model, model.lora.layers).items()
        for adapter in ADAPTERS
    }


def _hash_base(model):
    """Returns a hash of the weights that adapters leave as they are."""
    trained = {id(weight) for weight in _head(model).values()}
    if has_adapters(model):
        trained |= {id(weight) for weight in _adapters(model).values()}
    digest = hashlib.sha256()
    for weight in model.weights:
        if id(weight) not in trained:
            array = np.asarray(ops.convert_to_numpy(weight), "float32")
            digest.update(f"{tensor_name(weight)} {array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def _check_unchanged(model):
    """Returns the settings of the adapters; the base must be as it was."""
    if model.lora is None:
        raise ValueError(
            "`save_adapter` needs the adapters of `add_lora`. Received: "
            f"{type(model).__name__} without."
        )
    if _hash_base(model) != model.lora.base:
        raise ValueError(
            "The weights beside the adapters must be as they were at "
            "`add_lora`; `save_pretrained` writes all. Received: others."
        )
    return model.lora


def _read_adapter(path):
    """Returns what a file says about its adapter, and its tensors."""
    if not path.is_file():
        raise FileNotFoundError(f"No adapter at {path}.")
    check_no_pointer(path)
    try:
        with safetensors.safe_open(path, "numpy") as file:
            about = json.loads((file.metadata() or {})["adapter"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        settings = {name: about[name] for name in LoraSettings._fields}
        about["config"], about["architecture"]
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must hold an adapter of `save_adapter`. Missing: {error}."
        ) from error
    _check_numbers(settings["rank"], settings["alpha"])
    return about, arrays


def _check_fits(model, about, path):
    """Refuses an adapter of another kind of model, or another base."""
    _targets(model, about["layers"])
    if about["architecture"] != model.architecture:
        raise ValueError(
            f"{path} belongs to a {about['architecture']}. Received: "
            f"{model.architecture}."
        )
    check_floats(model)
    if model.lora is None:
        check_plain(model)
    else:
        for name in ("rank", "alpha", "layers"):
            setting, stored = getattr(model.lora, name), about[name]
            stored = tuple(stored) if name == "layers" else stored
            if setting != stored:
                raise ValueError(
                    f"{path} holds adapters with `{name}` {stored!r}. "
                    f"Received: a model with {setting!r}."
                )
    if _hash_base(model) != about["base"]:
        raise ValueError(
            f"{path} belongs to another base: the frozen weights must be those "
            "that it was trained on. Received: other weights."
        )


def _check_arrays(shapes, arrays, path):
    """Raises one error that names every tensor that cannot be used."""
    problems = [f"{n} is missing" for n in shapes if n not in arrays]
    problems += [f"{n} is not known" for n in arrays if n not in shapes]
    problems += [
        f"{name} has shape {arrays[name].shape}, not {shape}"
        for name, shape in shapes.items()
        if name in arrays and arrays[name].shape != shape
    ]
    if problems:
        raise ValueError(
            f"{path} does not fit the model: {'; '.join(problems)}."
        )
    _check_finite(arrays, path)


def _check_finite(arrays, place):
    """Refuses NaN and infinity, and names the tensors."""
    wrong = [name for name, a in arrays.items() if not np.isfinite(a).all()]
    if wrong:
        raise ValueError(
            f"{place} must hold finite numbers. Received: NaN or infinity in "
            f"{', '.join(wrong)}."
        )


def _forget_compilation(model):
    """Lets `fit` ask for `compile`: the optimizer is of other weights."""
    model.compiled = False
    model.optimizer = None
    model.train_function = model.test_function = model.predict_function = None
