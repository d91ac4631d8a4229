"""Graphs that run without this package: SavedModel, ONNX and LiteRT.

Differences: `keras.Model.export` wants a model that was called, and takes the
shapes of that call. Here the signature is known: integers of any number of
rows and any length, under the names of a batch.
"""

import contextlib
import importlib.util
import io
from pathlib import Path

from bertbook.files import check_folder, write_together, write_whole
from bertbook.islands import exporting
from bertbook.runtime import keras
from bertbook.weights.matrices import (
    check_floats,
    float_weights,
    tensor_name,
)

FORMATS = ("tf_saved_model", "onnx", "litert")
# What a format needs besides TensorFlow to be written.
WRITERS = {"onnx": "tf2onnx"}


def export_model(model, path, format, verbose, input_signature, **options):
    """Writes a graph of a model that other runtimes run.

    A SavedModel takes the place of an older one as `files.write_together` says
    for other programs: TensorFlow finds one graph or the other, however the
    process ends; where the folder cannot be renamed it may find none.

    Args:
        model: A model of this package.
        path: A folder for a SavedModel, else a file.
        format: One of `FORMATS`.
        verbose: Whether Keras prints what it has written.
        input_signature: As in `keras.Model.export`; None for that of
            `signature_of`.
        **options: As in `keras.Model.export`.

    Raises:
        ValueError: `format` is unknown, does not fit the name of the file, or
            cannot hold a layer of the model, as one that is quantized; or the
            backend is not TensorFlow.
        ImportError: What writes the format is not installed.
        OSError: The disk is full, or `path` cannot be written; what was there
            stays.
    """
    if not isinstance(path, str | Path):
        raise ValueError(f"`filepath` must be a path. Received: {path!r}.")
    _check_format(format, Path(path))
    if format != "tf_saved_model":
        check_floats(
            model,
            f'`format="{format}"` holds floats: export before you quantize, or '
            'as "tf_saved_model".',
        )
    if input_signature is None:
        input_signature = signature_of(model)
    if format == "litert":
        options = {**_builtin_operations(), **options}
    if format != "tf_saved_model":
        model = _in_float32(model)

    def write(place):
        """Exports to a place of our own, and names the one asked for."""
        said = io.StringIO()
        with exporting(), contextlib.redirect_stdout(said):
            keras.Model.export(
                model,
                str(place),
                format=format,
                verbose=verbose,
                input_signature=input_signature,
                **options,
            )
        print(said.getvalue().replace(str(place), str(path)), end="")

    if format == "tf_saved_model":
        graph = "saved_model.pb"
        with write_together(Path(path), last=graph, for_others=True) as new:
            write(new)
        return
    with write_whole(Path(path)) as part:
        write(part)
        if format == "onnx":
            _name_dimensions(str(part))
            _check_operations(str(part))


def signature_of(model):
    """Returns the inputs of a model: int32 of any number of rows and length."""
    shape = (None,) * model._input_rank
    inputs = {
        name: keras.layers.InputSpec(shape=shape, dtype="int32", name=name)
        for name in model.input_names
    }
    return [inputs]


def _check_format(format, path):
    """Refuses a format that cannot be written here, before any work."""
    if not isinstance(format, str) or format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {', '.join(FORMATS)}. "
            f"Received: {format!r}."
        )
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "`export` needs the TensorFlow backend: call `save_pretrained` "
            "here, then `from_pretrained` and `export` with "
            "KERAS_BACKEND=tensorflow. Received: "
            f"{keras.backend.backend()}."
        )
    if format == "litert" and path.suffix != ".tflite":
        raise ValueError(
            '`filepath` must end in ".tflite" for `format="litert"`. '
            f"Received: {path}."
        )
    if format == "tf_saved_model":
        check_folder(path, "filepath")
    elif path.is_dir():
        raise ValueError(
            f'`filepath` must be a file for `format="{format}"`. Received the '
            f"folder {path}."
        )
    writer = WRITERS.get(format)
    if writer and importlib.util.find_spec(writer) is None:
        raise ImportError(
            f'`format="{format}"` needs {writer}: `pip install {writer}`.'
        )


def _builtin_operations():
    """Returns options that keep out operations of TensorFlow itself.

    A LiteRT runtime has them only where TensorFlow is linked into it.
    """
    import tensorflow as tf

    return {"target_spec": {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}}


def _in_float32(model):
    """Returns a model that computes in float32, a copy where it did not.

    Neither runtime computes with 16-bit floats on a processor.
    """
    if model.compute_dtype == "float32":
        return model
    config = {**model.get_config(), "dtype": "float32"}
    copy = type(model).from_config(config)
    values = {tensor_name(w): value for w, value in float_weights(model)}
    for weight in copy.weights:  # what adapters add is in the matrices
        weight.assign(values[tensor_name(weight)])
    return copy


def _name_dimensions(path):
    """Names the open dimensions of an ONNX file, alike for each array.

    The converter gives each a name of its own, such as unk__666.
    """
    import onnx

    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        shape = value.type.tensor_type.shape.dim
        is_target = value.name.startswith(("target", "decoder"))
        sequence = "target_sequence" if is_target else "sequence"
        names = ("batch", sequence)
        if len(shape) == 3 and shape[2].dim_param:  # texts to choose from
            names = ("batch", "choices", sequence)
        for dimension, name in zip(shape, names, strict=False):
            if dimension.dim_param or not dimension.HasField("dim_value"):
                dimension.dim_param = name
    del model.graph.value_info[:]  # shapes in between have the old names
    onnx.save(model, path)


def _check_operations(path):
    """Refuses an ONNX file that holds operations that ONNX does not know.

    The converter only logs them.
    """
    import onnx

    try:
        onnx.checker.check_model(path, full_check=True)
    except (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
    ) as error:
        raise ValueError(
            f'`format="onnx"` cannot hold this model: {error}'
        ) from error
