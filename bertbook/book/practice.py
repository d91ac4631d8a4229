"""`check`: tells a reader whether the function that they wrote is right."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bertbook.runtime import ops

TOLERANCE = 1e-5


def check(function: Callable, *cases: tuple[Sequence, Any]) -> None:
    """Prints whether a function gives what it should.

    Args:
        function: The one that the reader wrote. While its body is `...`, and
            so it returns None, the line says that it is not written yet.
        *cases: Pairs of the arguments, as a tuple, and the right value: a
            number, a text, a list, an array or a tuple of these. Numbers are
            compared with a tolerance of 1e-5.
    """
    name = function.__name__
    for arguments, expected in cases:
        received = function(*arguments)
        if received is None:
            print(f"{name}: not written yet")
            return
        if problem := difference(received, expected):
            given = ", ".join(map(_brief, arguments))
            print(f"{name}({given}): {problem}")
            return
    print(f"{name}: right, {len(cases)} of {len(cases)} checks")


def difference(received: Any, expected: Any) -> str:
    """Returns in words how a value differs from the right one, or ""."""
    if isinstance(expected, str | bool | type(None)):
        same = received == expected
        return "" if same else f"expected {expected!r}, received {received!r}"
    if _holds_text(expected):
        same = list(received) == list(expected)
        return "" if same else f"expected {expected!r}, received {received!r}"
    try:
        if isinstance(received, list | tuple | int | float):
            got = np.asarray(received, "float64")
        else:
            got = np.asarray(ops.convert_to_numpy(received), "float64")
    except (TypeError, ValueError):
        return f"expected numbers, received {received!r}"
    wanted = np.asarray(ops.convert_to_numpy(expected), "float64")
    if got.shape != wanted.shape:
        return f"expected the shape {wanted.shape}, received {got.shape}"
    if not np.allclose(got, wanted, atol=TOLERANCE):
        gap = np.nanmax(np.abs(got - wanted))
        if not np.isfinite(got).all():
            return "a value is not a finite number"
        return f"the shape is right; the largest difference is {gap:.3g}"
    return ""


def _holds_text(value: Any) -> bool:
    """Tells whether a list holds anything but numbers and lists of them."""
    if isinstance(value, list | tuple):
        return any(isinstance(v, str) or _holds_text(v) for v in value)
    return False


def _brief(value: Any) -> str:
    text = repr(value)
    if hasattr(value, "shape"):
        return f"array of {tuple(value.shape)}"
    return text if len(text) < 40 else text[:37] + "..."
