"""Your turn: a Keras layer that only one notebook needs."""

from typing import Any

import numpy as np

from bertbook.book import workbench
from bertbook.runtime import keras


class _Called:
    """A class of layers as a function of the inputs and the weights."""

    def __init__(self, layer: type[keras.Layer]) -> None:
        self.layer = layer
        self.__name__ = layer.__name__
        self.__code__ = layer.call.__code__  # whose lines an error quotes

    def __call__(self, inputs: Any, *weights: Any) -> Any:
        layer = self.layer()
        outputs = layer(inputs)
        if weights:
            layer.set_weights([np.asarray(weight) for weight in weights])
            outputs = layer(inputs)
        if outputs is None:
            raise ValueError("`call` returns nothing: is there a `return`?")
        return outputs


def check_layer(layer: type[keras.Layer], *cases: tuple[tuple, Any]) -> None:
    """Prints whether a layer is right, as `workbench.check` does.

    Args:
        layer: The class that the reader wrote, whose instances need no
            settings.
        *cases: Pairs of arguments and the right outputs. The arguments are the
            inputs and then the arrays of the weights; without any the layer
            keeps those that it starts from.
    """
    name = layer.__name__
    workbench._passed.pop(name, None)
    if not layer.call.__code__.co_names:  # a body of `...` uses nothing
        print(f"{name}: not written yet")
        return
    workbench.check(_Called(layer), *cases)
    if name in workbench._passed:
        workbench._passed[name] = layer
