"""Shapes of what the layers of a model give, for `summary`.

Differences: Keras knows them where a model is a graph of layers. A model that
is written as a function shows "?".
"""

import contextlib
from types import SimpleNamespace

from bertbook.runtime import keras

# Of rows and of every other axis of the inputs. An axis whose size differs
# between both is of any size.
SIZES = ((2, 2), (3, 3))


@contextlib.contextmanager
def shown_shapes(model):
    """Lets Keras show the shapes of a model's layers.

    Args:
        model: A model of this package. It is as it was afterwards.
    """
    nodes = [
        (layer, SimpleNamespace(output_tensors=outputs))
        for layer, outputs in outputs_of_layers(model)
    ]
    for layer, node in nodes:
        layer._inbound_nodes.append(node)
    try:
        yield
    finally:
        for layer, node in nodes:
            layer._inbound_nodes.remove(node)


def outputs_of_layers(model):
    """Returns the layers of a model that it calls, and what they give.

    Args:
        model: A model of this package.

    Returns:
        Pairs of a layer and a `KerasTensor`, or a structure of them; None in
        its shape is an axis of any size.
    """
    first, second = (_trace(model, *sizes) for sizes in SIZES)
    return [
        (layer, keras.tree.map_structure(_common, outputs, second[number][1]))
        for number, (layer, outputs) in first.items()
    ]


def _trace(model, rows, others):
    """Returns each layer and its outputs, for inputs of some size."""
    found = {}
    layers = model._flatten_layers(include_self=False)
    with contextlib.ExitStack() as undo:
        for layer in layers:
            object.__setattr__(layer, "call", _recorder(layer, found))
            undo.callback(object.__delattr__, layer, "call")
        shape = (rows,) + (others,) * (model.input_rank - 1)
        model.compute_output_spec(
            {
                name: keras.KerasTensor(shape, "int32", name=name)
                for name in model.input_names
            }
        )
    return found


def _recorder(layer, found):
    """Returns the `call` of a layer, which keeps the shapes of its result."""
    call = layer.call

    def record(*args, **kwargs):
        """Calls the layer."""
        result = call(*args, **kwargs)
        shown = _first(result)
        found[id(layer)] = (layer, keras.tree.map_structure(_shape, shown))
        return result

    return record


def _first(result):
    """Returns of a result what the next layer reads, without what is None."""
    if isinstance(result, tuple):
        return _first(result[0])
    if isinstance(result, dict):
        return {name: x for name, x in result.items() if x is not None}
    return result


def _shape(tensor):
    """Returns what is known of a tensor beside its values."""
    return keras.KerasTensor(tuple(tensor.shape), tensor.dtype)


def _common(first, second):
    """Returns a tensor whose axes are None where those of two differ."""
    shape = (
        size if size == other else None
        for size, other in zip(first.shape, second.shape, strict=True)
    )
    return keras.KerasTensor(tuple(shape), first.dtype)
