"""Matrices of layers as floats: quantized ones, and those with adapters.

`keras.layers.Dense.kernel` is the matrix that is multiplied with only where
nothing is quantized: for "int8" and "int4" it holds the codes, without their
scale.
"""

import contextlib
import gc

from bertbook.runtime import keras, ops

ADAPTERS = ("lora_kernel_a", "lora_kernel_b")
TABLE_ADAPTERS = ("lora_embeddings_a", "lora_embeddings_b")
SCALED = ("int8", "int4")
# What a layer stores as floats: "float8" rounds them as it multiplies.
AS_FLOATS = (None, "float8")


def float_matrix(layer):
    """Returns what a layer multiplies with, or looks its rows up in.

    Args:
        layer: A `keras.layers.Dense` or `keras.layers.Embedding`, built.

    Returns:
        The matrix, `(in, out)`, or the table, `(V, D)`: the variable itself
        where it holds floats and has no adapters, else a float32 tensor.

    Raises:
        ValueError: The layer is quantized in a way that is not read.
    """
    name = _name(layer)
    mode = layer.quantization_mode
    if mode in AS_FLOATS:
        matrix = getattr(layer, f"_{name}")
    elif mode in SCALED:
        matrix = _scaled_codes(layer, name, mode)
    else:
        raise ValueError(
            f'A matrix must hold floats, or be quantized as "int8" or "int4". '
            f"Received: {mode!r} in {layer.path}."
        )
    if not layer.lora_enabled:
        return matrix
    adapters = TABLE_ADAPTERS if name == "embeddings" else ADAPTERS
    down, up = (getattr(layer, adapter) for adapter in adapters)
    change = layer.lora_alpha / layer.lora_rank * ops.matmul(down, up)
    return ops.cast(matrix, "float32") + ops.cast(change, "float32")


def _name(layer):
    """Returns what Keras calls the matrix of a layer."""
    is_table = isinstance(layer, keras.layers.Embedding)
    return "embeddings" if is_table else "kernel"


def _scaled_codes(layer, name, mode):
    """Returns the floats that the codes of a matrix stand for.

    A code is a value times its scale; where there is a zero, a value is the
    distance of a code from it, times the scale of a group of inputs.
    """
    codes = getattr(layer, f"_{name}")
    if mode == "int4":  # two codes in every byte
        width = layer._orig_output_dim
        codes = keras.quantizers.unpack_int4(codes, width, axis=-1)
    codes = ops.cast(codes, "float32")
    scale = ops.cast(getattr(layer, f"{name}_scale"), "float32")
    zero = getattr(layer, f"{name}_zero", None)
    is_table = name == "embeddings"
    if zero is None:
        return codes / (scale[:, None] if is_table else scale)
    axis = -1 if is_table else 0
    groups = ops.cast(layer.g_idx, "int32")
    zero = ops.take(ops.cast(zero, "float32"), groups, axis=axis)
    return (codes - zero) * ops.take(scale, groups, axis=axis)


def matrix_layers(model):
    """Returns the dense layers and the tables of a model, in its own order."""
    kinds = keras.layers.Dense | keras.layers.Embedding
    return [part for part in model._flatten_layers() if isinstance(part, kinds)]


def check_plain(model):
    """Refuses a model that has adapters, or is quantized.

    Raises:
        ValueError: It is, or has them; the layer is named.
    """
    check_merged(model)
    check_floats(model)


def check_merged(model):
    """Refuses a model that has adapters.

    Raises:
        ValueError: It has; the layer is named.
    """
    for layer in matrix_layers(model):
        if layer.lora_enabled:
            raise ValueError(
                "`model` has adapters: `merge_lora` merges them first. "
                f"Received: rank {layer.lora_rank} in {layer.path}."
            )


def check_floats(
    model, rule="`model` must hold floats: do this first, then quantize."
):
    """Refuses a quantized model, where floats learn or are written.

    Args:
        model: A model of this package.
        rule: What must be, for the message.

    Raises:
        ValueError: It is quantized; the layer is named.
    """
    for layer in matrix_layers(model):
        if layer.quantization_mode is not None:
            raise ValueError(
                f"{rule} Received: {layer.quantization_mode!r} in {layer.path}."
            )


def layer_names(model):
    """Returns the layers of `matrix_layers`, by our names.

    Raises:
        ValueError: Two have one name.
    """
    layers = matrix_layers(model)
    names = {layer.path.partition("/")[2]: layer for layer in layers}
    if len(names) < len(layers):
        raise ValueError(
            "The layers of a model must have names of their own. Received: "
            f"{', '.join(layer.path for layer in layers)}."
        )
    return names


@contextlib.contextmanager
def collecting_little():
    """Keeps the collection of garbage short while matrices are replaced.

    Keras collects once for every matrix that it takes away, and each time looks
    at all that is in memory: most of the time that quantizing takes. What is
    there now is left out until the end.
    """
    if gc.get_freeze_count() > 0:  # it is left out already
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def tensor_name(weight):
    """Returns our name of a weight: its path without the model's own name."""
    name = weight.path.partition("/")[2]
    return name.removeprefix("encoder/")


def float_weights(model):
    """Yields the weights of a model that make up its float twin.

    Yields:
        A variable of the model, for its name, and its value: the variable
        itself, or a tensor where it is quantized or has adapters. Scales and
        adapters are left out.

    Raises:
        ValueError: As `float_matrix`.
    """
    values = {}
    for layer in matrix_layers(model):
        if layer.quantization_mode is None and not layer.lora_enabled:
            continue
        matrix = float_matrix(layer)
        values |= {id(weight): None for weight in layer.weights}
        values[id(getattr(layer, f"_{_name(layer)}"))] = matrix
        bias = getattr(layer, "bias", None)
        if bias is not None:
            values[id(bias)] = bias
    for weight in model.weights:
        value = values.get(id(weight), weight)
        if value is not None:
            yield weight, value
