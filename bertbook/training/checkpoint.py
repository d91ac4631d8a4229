"""Checkpoints: atomic files, exact resumption, averaged weights.

A checkpoint holds every variable of the model and the optimizer, among them
the states of the random generators, and where the stream of examples stands.
So a run that is killed and started again ends with the same bytes.

Differences: Vaswani et al. (2017) average checkpoints of ten minutes each; here
they are some steps apart, so that the result does not depend on the machine.
"""

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.files import (
    files_named,
    hash_file,
    read_json,
    reason_of,
    write_json,
    write_whole,
)
from bertbook.runtime import keras

KEPT = 2  # checkpoints, because the newest may be damaged
NAME = "checkpoint-{:08d}.safetensors"  # of the checkpoint of a step


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
    path = folder / NAME.format(step)
    tensors = {
        name: np.asarray(keras.ops.convert_to_numpy(variable), order="C")
        for name, variable in named_variables(model).items()
    }
    metadata = {
        "step": str(step),
        "state": json.dumps(state),
        "sha256": _hash_arrays(tensors),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as part:
            safetensors.numpy.save_file(tensors, part, metadata=metadata)
    except OSError as error:
        raise OSError(
            f"The checkpoint {path} could not be written: {reason_of(error)}. "
            "Older checkpoints are untouched; the same command goes on from "
            "them."
        ) from error
    for old in files_named(folder, NAME)[:-KEPT]:
        old.unlink()


def load_checkpoint(folder, model, fits=None):
    """Puts the newest whole checkpoint of a folder into a model.

    A damaged one is named in a warning, and the one before it is taken. One
    that tells neither its step nor its state, or whose numbers are not finite
    or not those that were saved, is damaged too; versions before this one kept
    no hash, and their numbers are taken as they are.

    Args:
        folder: Where `save_checkpoint` wrote.
        model: A compiled model, its optimizer built.
        fits: A function that says whether a state is of the kind that the run
            saves; None takes any.

    Returns:
        The number of steps done and the `state` that was saved, or None where
        there is no checkpoint.

    Raises:
        ValueError: Every checkpoint is damaged, or fits another model.
    """
    paths = files_named(Path(folder), NAME)[::-1]
    for path in paths:
        try:
            step, state, arrays = _read_checkpoint(path)
            if fits is not None and not fits(state):
                raise ValueError(f"its state is of another kind: {state!r:.80}")
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


def _read_checkpoint(path):
    """Returns the step, the state and the arrays of a checkpoint.

    Raises:
        ValueError: It does not say what it is, or a number is not finite.
        OSError: It cannot be read; or a `SafetensorError`.
    """
    with safetensors.safe_open(path, "numpy") as file:
        metadata, names = file.metadata() or {}, file.keys()
        arrays = {name: file.get_tensor(name) for name in names}
    if not {"step", "state"} <= metadata.keys():
        raise ValueError("it does not tell its step and its state")
    step = metadata["step"]
    if not step.isdecimal() or path.name != NAME.format(int(step)):
        raise ValueError(f"it says that it is of step {step[:20]!r}")
    try:
        state = json.loads(metadata["state"])
    except RecursionError:
        raise ValueError("its state is too deep") from None
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
    if metadata.get("sha256", digest := _hash_arrays(arrays)) != digest:
        raise ValueError("its numbers are not those that were saved")
    return int(step), state, arrays


def _hash_arrays(arrays):
    """Returns the SHA-256 of names and bytes, whatever their order is."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return digest.hexdigest()


HASHES = "hashes.json"  # of files of weights, beside the checkpoints
ADVICE = (
    "Put it back from a copy, name another folder, or remove the folder of the "
    "run to begin again."
)


def save_weights(path, model, hashes=None):
    """Writes the weights of a model alone; they appear whole, or not at all.

    Args:
        path: The file.
        model: The model.
        hashes: Where the SHA-256 of the file is kept, a JSON file of several;
            made where it is missing. None keeps none.

    Raises:
        ValueError: What `hashes` holds are no hashes.
        OSError: The disk is full, or the folder cannot be written.
    """
    weights = {
        f"{number:04d}": np.asarray(array, order="C")
        for number, array in enumerate(model.get_weights())
    }
    path = Path(path)
    with write_whole(path) as part:
        safetensors.numpy.save_file(weights, part)
        if hashes is not None:
            _keep_hash(hashes, path.name, hash_file(part))


def _keep_hash(path, name, digest):
    """Writes a hash down, before the file that has it gets its name.

    A process that ends in between leaves the older file, so that older hashes
    stay beside the newest.
    """
    known = _read_hashes(path)
    older = [other for other in known.get(name, ()) if other != digest]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {**known, name: [*older[-2:], digest]})


def _read_hashes(path):
    """Returns the hashes of each file by its name."""
    known = read_json(path) if path.is_file() else {}
    if not all(isinstance(hashes, list) for hashes in known.values()):
        raise ValueError(
            f"{path} must hold lists of hashes. Received: {known!r:.80}. "
            "Remove the file to go on without them."
        )
    return known


def load_weights(path, model):
    """Puts what `save_weights` wrote into a model of the same kind.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged, or belongs to another model.
    """
    check_weights(path, model)
    weights = safetensors.numpy.load_file(path)
    model.set_weights([weights[name] for name in sorted(weights)])


def check_weights(path, model, hashes=None):
    """Refuses a file that `load_weights` could not read, or that has changed.

    Args:
        path: The file.
        model: The model.
        hashes: As in `save_weights`; a file without a hash there, as older
            versions have left it, is taken for what it says that it is. None
            reads the header alone.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged, belongs to another model, or is not
            the one that was saved.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} with the weights of a run is missing. {ADVICE}"
        )
    try:
        with safetensors.safe_open(path, "numpy") as file:
            names = sorted(file.keys())
            found = [tuple(file.get_slice(n).get_shape()) for n in names]
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}. {ADVICE}") from error
    expected = [tuple(weight.shape) for weight in model.weights]
    if found != expected:
        raise ValueError(
            f"{path} holds the weights of another model: {len(found)} tensors "
            f"where this one has {len(expected)}, or other shapes. {ADVICE}"
        )
    if hashes is not None:
        _check_hash(path, hashes)


def _check_hash(path, hashes):
    """Refuses a file whose content is not what a run wrote."""
    known = _read_hashes(hashes).get(path.name)
    if known is not None and hash_file(path) not in known:
        raise ValueError(
            f"{path} must hold the weights that the run wrote. Received: "
            f"another content. {ADVICE}"
        )


def check_finite(model, step, outputs=None):
    """Refuses weights or outputs that are not finite, before they are kept.

    The variables are looked at where they are, and one answer is fetched; so
    it costs little beside writing them.

    Args:
        model: A compiled model, its optimizer built.
        step: Number of steps done.
        outputs: A function that returns what the model gives for a few rows,
            arrays in any structure: weights may be finite, and so large that
            nothing finite comes out. None looks at the variables alone.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    if not _are_finite(named_variables(model).values()):
        found = "weights"
    elif outputs is not None and not _are_finite(keras.tree.flatten(outputs())):
        found = "outputs"
    else:
        return
    raise ValueError(
        f"The {found} are not finite after step {step}: lower the learning "
        "rate, or lengthen the warm-up. Nothing of this step is kept, and "
        "older checkpoints are as they were."
    )


def _are_finite(tensors):
    """Returns whether every number is neither NaN nor infinite."""
    floats = [
        keras.ops.convert_to_tensor(tensor)
        for tensor in tensors
        if "float" in keras.backend.standardize_dtype(tensor.dtype)
    ]
    answers = [keras.ops.all(keras.ops.isfinite(tensor)) for tensor in floats]
    return not answers or bool(keras.ops.all(keras.ops.stack(answers)))


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


AVERAGED = "weights-{:08d}.safetensors"  # of the weights of a step


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
    save_weights(_averaged_path(folder, step), model, folder / HASHES)
    for old in files_named(folder, AVERAGED)[:-max_to_keep]:
        old.unlink()


def restore_kept(folder, step, steps):
    """Removes weights of steps that are done again, and looks for the others.

    Args:
        folder: As in `keep_weights`.
        step: Number of steps done.
        steps: The steps up to it whose weights must be there.

    Raises:
        FileNotFoundError: Weights are missing; they are named.
        ValueError: Weights are not those that `keep_weights` wrote.
    """
    folder = Path(folder)
    for path in files_named(folder, AVERAGED):
        if int(path.stem.rpartition("-")[2]) > step:
            path.unlink()
    paths = [_averaged_path(folder, number) for number in steps]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks weights that the run averages in the end: "
            f"{', '.join(missing)}. {ADVICE}"
        )
    for path in paths:
        _check_hash(path, folder / HASHES)


def _averaged_path(folder, step):
    return folder / AVERAGED.format(step)


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
    paths = files_named(Path(folder), AVERAGED)
    if not paths:
        raise FileNotFoundError(f"No weights to average in {folder}.")
    sums = [0.0] * len(model.weights)
    for path in paths:
        load_weights(path, model)
        pairs = zip(sums, model.get_weights(), strict=True)
        sums = [total + array.astype("float64") for total, array in pairs]
    model.set_weights([total / len(paths) for total in sums])
