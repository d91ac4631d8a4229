"""What a part of `mybert` is: how it is tried, and its usual mistakes.

A mistake is an edit of the book's own source: what stands there, what a reader
writes in its place, and the sentence that they get. The test of the tables is
the tables: each edited source must get its own sentence.
"""

import contextlib
import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from bertbook.book.comparing import difference
from bertbook.runtime import keras, ops

_COUNTER = re.compile(r"_\d+$")
Mistake = tuple[str, str, str]  # old source, new source, sentence
Calls = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Part:
    """A definition of `mybert` that the reader writes.

    `file` and `chapter` say where it stands and where it is written.
    `arguments` are those of a function, one tuple for each call. Otherwise
    `attempt` takes the definition and returns calls by name, whose results are
    compared.
    """

    file: str
    chapter: str
    mistakes: tuple[Mistake, ...]
    arguments: tuple[tuple, ...] = ()
    attempt: Callable[[Any], Calls] | None = None


def in_turn(
    calls_of: Callable[[Any], Calls], books: Any
) -> Callable[[Any], Calls]:
    """Returns an attempt whose calls stop at the first wrong result.

    What follows it counts as right: so two mistakes at once get the sentence of
    one, and what takes long runs only where all before it is right.

    Args:
        calls_of: Takes a definition and returns calls by name.
        books: The book's definition.
    """

    @cache
    def answers() -> dict[str, Any]:
        return {label: call() for label, call in calls_of(books).items()}

    def attempt(thing: Any) -> Calls:
        right = answers()  # here, where no time is measured
        calls = calls_of(thing)
        wrong: list[str] = []

        def result(label: str) -> Any:
            if wrong:
                return right[label]
            wrong.append(label)  # until it is found right
            found = calls[label]()
            if found is not None and not difference(found, right[label]):
                wrong.clear()
            return found

        return {label: partial(result, label) for label in calls}

    return attempt


class ChangedArgumentError(Exception):
    """A function changed what it was given."""


def outcome(function: Callable, arguments: tuple) -> Any:
    """Calls a function with copies of its arguments.

    Raises:
        ChangedArgumentError: It changes one of them.
    """
    given = copy.deepcopy(arguments)
    result = function(*given)
    with contextlib.suppress(TypeError):  # of a kind that is not compared
        if difference(given, arguments):
            raise ChangedArgumentError(
                "it changes what it is given; work on a copy"
            )
    return result


def of_tensorflow(old: str, new: str, words: str) -> tuple[Mistake, ...]:
    """Returns a mistake where it is one: JAX knows all sizes."""
    mine = keras.backend.backend() == "tensorflow"
    return ((old, new, words),) if mine else ()


def weights_of(layer: Any, path: str = "") -> dict[str, Any]:
    """Returns the variables of a layer by the attributes that lead to them."""
    found: dict[str, Any] = {}
    for name, value in sorted(vars(layer).items()):
        if name.startswith("_"):
            continue
        several = isinstance(value, list | tuple)
        for place, one in enumerate(value if several else [value]):
            if isinstance(one, keras.layers.Layer):
                step = f"{name}[{place}]" if several else name
                found |= weights_of(one, f"{path}{step}.")
    inside = {id(v) for v in found.values()}
    own = [v for v in layer.weights if id(v) not in inside]
    # One without a name is called variable, variable_1, ...
    return found | {f"{path}{_COUNTER.sub('', v.name)}": v for v in own}


def filled(layer: Any) -> dict[str, str]:
    """Fills each weight of a layer that has run with numbers for its name.

    Returns:
        The shapes of the weights by name, in the layer's order.
    """
    names = {id(v): name for name, v in weights_of(layer).items()}
    for variable in layer.weights:
        draw = np.random.default_rng(list(names[id(variable)].encode()))
        variable.assign(draw.normal(size=variable.shape))
    return {names[id(v)]: str(tuple(v.shape)) for v in layer.weights}


def numbers(tensor: Any) -> np.ndarray:
    """Returns a tensor as an array.

    Raises:
        TypeError: It is something else.
    """
    if not hasattr(tensor, "shape"):
        kind = type(tensor).__name__
        hint = ": use `ops` from first to last" if kind == "float" else ""
        raise TypeError(f"it must return a tensor; it returns a {kind}{hint}")
    return ops.convert_to_numpy(tensor)


def squares(values: Any, **_: Any) -> Any:
    """Stands in for dropout: it shows what dropout is given."""
    return values * values
