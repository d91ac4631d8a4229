"""`check`: tells a reader whether the function that they wrote is right."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bertbook.runtime import ops

TOLERANCE = 1e-5
SHORT = 60  # characters of a value that a line shows whole


def check(function: Callable, *cases: tuple[Sequence, Any]) -> None:
    """Prints whether a function gives what it should.

    Args:
        function: The one that the reader wrote. While its body is `...`, and
            so it returns None, the line says that it is not written yet.
            What a generator yields counts as a list.
        *cases: Pairs of the arguments, as a tuple, and the right value: a
            number, a text, a list, an array or a tuple of these. Integers
            must be equal; other numbers may differ by 1e-5, and by 1e-5 of
            the right value.

    Raises:
        ValueError: There are no cases.
    """
    if not cases:
        raise ValueError("`cases` must hold at least one. Received: none.")
    name = getattr(function, "__name__", type(function).__name__)
    for arguments, expected in cases:
        received = function(*arguments)
        if isinstance(received, Iterator):
            received = list(received)
        if received is None and expected is not None:
            print(f"{name}: not written yet")
            return
        if problem := difference(received, expected):
            given = ", ".join(map(_brief, arguments))
            print(f"{name}({given}): {problem}")
            return
    print(f"{name}: right, {len(cases)} of {len(cases)} checks")


def difference(received: Any, expected: Any) -> str:
    """Returns in words how a value differs from the right one, or "".

    Raises:
        TypeError: `expected` is of a kind that is not compared.
    """
    if isinstance(expected, str | bool | dict | set | type(None)):
        same = _plain(received) == expected
        return "" if same else _both(received, expected)
    if isinstance(expected, list | tuple) and _numbers(expected) is None:
        return _difference_of_items(_plain(received), expected)
    got, wanted = _numbers(received), _numbers(expected)
    if wanted is None:
        raise TypeError(
            "`expected` must be numbers, texts, or lists of them. "
            f"Received: {_brief(expected)}."
        )
    if got is None:
        return f"expected numbers, received {_brief(received)}"
    if got.shape != wanted.shape:
        return f"expected the shape {wanted.shape}, received {got.shape}"
    return _difference_of_numbers(got, wanted)


def _difference_of_numbers(got: np.ndarray, wanted: np.ndarray) -> str:
    """Compares arrays of one shape; integers must be equal."""
    whole = all(array.dtype.kind in "biu" for array in (got, wanted))
    tolerance = 0.0 if whole else TOLERANCE
    got, wanted = got.astype("float64"), wanted.astype("float64")
    wrong = ~np.isclose(got, wanted, tolerance, tolerance, equal_nan=True)
    if not wrong.any():
        return ""
    if not np.isfinite(got[wrong]).all():
        return "a value is not a finite number"
    first = f"expected {wanted[wrong][0]:.10g}, received {got[wrong][0]:.10g}"
    if not got.ndim or not np.isfinite(wanted[wrong]).all():
        return first
    gap = np.abs(got - wanted)[wrong].max()
    return f"the shape is right; the largest difference is {gap:.3g}"


def _difference_of_items(received: Any, expected: Sequence) -> str:
    """Compares what is no table of numbers: texts, arrays of any shapes."""
    if not isinstance(received, list | tuple) or len(received) != len(expected):
        return _both(received, expected)
    pairs = zip(received, expected, strict=True)
    for place, (got, wanted) in enumerate(pairs):
        if problem := difference(got, wanted):
            if max(len(repr(received)), len(repr(expected))) < SHORT:
                return _both(received, expected)
            return f"item {place}: {problem}"
    return ""


def _numbers(value: Any) -> np.ndarray | None:
    """Returns numbers, or lists of them of equal lengths, as an array."""
    try:
        if isinstance(value, list | tuple | int | float):
            array = np.asarray(value)
        else:
            array = np.asarray(ops.convert_to_numpy(value))
        if array.dtype.kind in "biu":
            return array
        return None if array.dtype.kind in "US" else array.astype("float64")
    except (AttributeError, TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """Returns an array or a tensor as a number or as lists."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return np.asarray(ops.convert_to_numpy(value)).tolist()
    return value


def _both(received: Any, expected: Any) -> str:
    return f"expected {_brief(expected)}, received {_brief(received)}"


def _brief(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"array of {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) < SHORT else text[: SHORT - 3] + "..."
