"""Checkpoints: atomic files, exact resumption, averaged weights.

A checkpoint holds every variable of the model and the optimizer, among them
the states of the random generators, and where the stream of examples stands.
So a run that is killed and started again ends with the same bytes.

Differences: Vaswani et al. (2017) average checkpoints of ten minutes each; here
they are some steps apart, so that the result does not depend on the machine.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.files import write_whole
from bertbook.runtime import keras

KEPT = 2  # checkpoints, because the newest may be damaged
PATTERN = "checkpoint-*.safetensors"


def save_checkpoint(folder, step, model, state):
    """Writes a checkpoint; it appears whole, or not at all.

    Args:
        folder: Made where it is missing.
        step: Number of steps done.
        model: A compiled model, its optimizer built.
        state: A dict for JSON, to be given back by `load_checkpoint`.

    Raises:
        OSError: The disk is full, or `folder` cannot be written. Older
            checkpoints are as they were.
    """
    folder = Path(folder)
    path = folder / f"checkpoint-{step:08d}.safetensors"
    metadata = {"step": str(step), "state": json.dumps(state)}
    tensors = {
        name: np.asarray(keras.ops.convert_to_numpy(variable), order="C")
        for name, variable in named_variables(model).items()
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as part:
            safetensors.numpy.save_file(tensors, part, metadata=metadata)
    except (OSError, safetensors.SafetensorError) as error:
        raise OSError(
            f"The checkpoint {path} could not be written: {error}. Older "
            "checkpoints are untouched; the same command goes on from them."
        ) from error
    for old in sorted(folder.glob(PATTERN))[:-KEPT]:
        old.unlink()


def load_checkpoint(folder, model):
    """Puts the newest whole checkpoint of a folder into a model.

    A damaged one is named in a warning, and the one before it is taken.

    Args:
        folder: Where `save_checkpoint` wrote.
        model: A compiled model, its optimizer built.

    Returns:
        The number of steps done and the `state` that was saved, or None where
        there is no checkpoint.

    Raises:
        ValueError: Every checkpoint is damaged, or fits another model.
    """
    paths = sorted(Path(folder).glob(PATTERN), reverse=True)
    for path in paths:
        try:
            with safetensors.safe_open(path, "numpy") as file:
                step, state = _read_progress(file.metadata())
                names = file.keys()
                arrays = {name: file.get_tensor(name) for name in names}
        except (safetensors.SafetensorError, OSError, ValueError) as error:
            warnings.warn(
                f"{path} is damaged ({error}); the one before it is taken.",
                stacklevel=2,
            )
            continue
        _assign(model, arrays, path)
        return step, state
    if paths:
        raise ValueError(
            f"Every checkpoint in {folder} is damaged: "
            f"{', '.join(path.name for path in paths)}."
        )
    return None


def _read_progress(metadata):
    """Returns the step and the state that the header of a checkpoint holds.

    Raises:
        ValueError: They are not there, as after another program wrote the
            file again, or they are no number and no JSON.
    """
    missing = [n for n in ("step", "state") if n not in (metadata or {})]
    if missing:
        raise ValueError(f"its header lacks {' and '.join(missing)}")
    return int(metadata["step"]), json.loads(metadata["state"])


def save_weights(path, model):
    """Writes the weights of a model alone; they appear whole, or not at all.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    weights = {
        f"{number:04d}": np.asarray(array, order="C")
        for number, array in enumerate(model.get_weights())
    }
    try:
        with write_whole(Path(path)) as part:
            safetensors.numpy.save_file(weights, part)
    except (OSError, safetensors.SafetensorError) as error:
        raise OSError(f"{path} could not be written: {error}.") from error


def load_weights(path, model):
    """Puts what `save_weights` wrote into a model of the same kind.

    Raises:
        ValueError: The file is damaged.
    """
    try:
        weights = safetensors.numpy.load_file(path)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    model.set_weights([weights[name] for name in sorted(weights)])


def named_variables(model):
    """Returns all that changes while training, under unique names."""
    parts = {"model": model.variables, "optimizer": model.optimizer.variables}
    return {
        f"{part}/{number:04d}/{variable.path}": variable
        for part, variables in parts.items()
        for number, variable in enumerate(variables)
        if not (part == "model" and _is_metric(model, variable))
    }


def _is_metric(model, variable):
    return any(variable is v for v in model.metrics_variables)


def _assign(model, arrays, path):
    """Copies arrays into variables of the same number and shape.

    Raises:
        ValueError: They belong to another model.
    """
    variables = {_key(n): v for n, v in named_variables(model).items()}
    arrays = {_key(name): array for name, array in arrays.items()}
    wrong = [
        key
        for key in sorted(variables.keys() | arrays.keys())
        if key not in variables
        or key not in arrays
        or tuple(variables[key].shape) != arrays[key].shape
    ]
    if wrong:
        raise ValueError(
            f"{path} belongs to another model or optimizer. Tensors that do "
            f"not fit: {', '.join(wrong[:5])}; {len(wrong)} in all."
        )
    for key, variable in variables.items():
        variable.assign(arrays[key])


def _key(name):
    """Returns the part of a name that holds in every process.

    Keras numbers the names of seed generators and models as they are made.
    """
    return "/".join(name.split("/")[:2])


AVERAGED = "weights-*.safetensors"


def keep_weights(folder, step, model, max_to_keep):
    """Writes the weights of a step, and removes the oldest of too many.

    Args:
        folder: Made where it is missing.
        step: Number of steps done.
        model: A model.
        max_to_keep: How many steps are kept, at least 1.

    Raises:
        OSError: The disk is full, or `folder` cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / AVERAGED.replace("*", f"{step:08d}"), model)
    for old in sorted(folder.glob(AVERAGED))[:-max_to_keep]:
        old.unlink()


def average_weights(folder, model):
    """Puts the mean of all that `keep_weights` kept into a model.

    Source: Vaswani et al. (2017), section 6.1.

    Args:
        folder: As in `keep_weights`.
        model: A model of the same kind.

    Raises:
        FileNotFoundError: Nothing was kept there.
        ValueError: A file is damaged.
    """
    paths = sorted(Path(folder).glob(AVERAGED))
    if not paths:
        raise FileNotFoundError(f"No weights to average in {folder}.")
    sums = [0.0] * len(model.weights)
    for path in paths:
        load_weights(path, model)
        pairs = zip(sums, model.get_weights(), strict=True)
        sums = [total + array.astype("float64") for total, array in pairs]
    model.set_weights([total / len(paths) for total in sums])
