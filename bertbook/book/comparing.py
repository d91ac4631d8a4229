"""`difference`: says in words how a value differs from the right one.

`expect` raises an error with these words, in the checks of the exercises.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from bertbook.runtime import ops

TOLERANCE = 1e-5
QUIET = "expected numbers", "expected the shape"  # these tell no value
SHORT = 60  # characters of a value that a line shows whole
LONGEST = 1_000  # items that are taken of what yields them
WHOLE, NUMBERS = "biu", "biuf"  # kinds of NumPy's dtypes


def collected(value: Any) -> Any:
    """Returns what an iterator yields as a list, at most a thousand items."""
    return (
        list(islice(value, LONGEST)) if isinstance(value, Iterator) else value
    )


def expect(
    received: Any,
    expected: Any,
    hint: str,
    tolerance: float = 0.0,
    tell: bool = True,
) -> None:
    """Raises an error with a hint and what differs, unless a value is right.

    Args:
        received: The reader's. `...` counts as not written yet.
        expected: The right one, as `difference` compares them.
        hint: What the reader should think of.
        tolerance: How far numbers may be from the right ones.
        tell: Whether the words may hold the right value. Where it is the
            answer to a question, they hold kinds and shapes alone.

    Raises:
        AssertionError: The value is not right.
    """
    received = collected(received)
    if _is_open(received):
        problem = "not written yet"
    elif received is None and expected is not None:
        problem = "it returns nothing: is there a `return`?"
    else:
        problem = difference(received, expected, tolerance, 0)
        if problem and not (tell or problem.startswith(QUIET)):
            problem = f"received {brief(received)}"
    if problem:
        raise AssertionError(f"{hint} ({problem})")


def _is_open(value: Any) -> bool:
    """Tells whether a value is `...`, or a list or the like that holds it."""
    if isinstance(value, dict):
        value = list(value.values())
    items = value if isinstance(value, list | tuple | set) else [value]
    return any(item is ... for item in items)


def difference(
    received: Any,
    expected: Any,
    absolute: float = TOLERANCE,
    relative: float = TOLERANCE,
) -> str:
    """Returns in words how a value differs from the right one, or "".

    Whole numbers must be equal. Others may differ by 1e-5, and by 1e-5 of the
    right value.

    Args:
        received: What a function gave.
        expected: A number, a text, None, an array, or a list, a tuple, a
            dictionary or a set of these.
        absolute: How far numbers may be from the right ones.
        relative: The same, as a share of the right one; both are added.

    Raises:
        TypeError: `expected` is of a kind that is not compared.
    """
    near = absolute, relative
    if isinstance(expected, dict):
        return _difference_of_dictionaries(received, expected, near)
    if isinstance(expected, str | bool | set | type(None)):
        same = _plain(received) == expected
        return "" if same else _both(received, expected)
    if isinstance(expected, list | tuple) and _numbers(expected) is None:
        return _difference_of_items(_plain(received), expected, near)
    got, wanted = _numbers(received), _numbers(expected)
    if wanted is None:
        raise TypeError(
            "`expected` must be numbers, texts, or lists of them. "
            f"Received: {brief(expected)}."
        )
    if got is None:
        return f"expected numbers, received {brief(received)}"
    if got.shape != wanted.shape:
        return f"expected the shape {wanted.shape}, received {got.shape}"
    return _difference_of_numbers(got, wanted, near)


def _difference_of_numbers(
    got: np.ndarray, wanted: np.ndarray, near: tuple[float, float]
) -> str:
    """Compares arrays of one shape."""
    absolute, relative = near
    whole = all(array.dtype.kind in WHOLE for array in (got, wanted))
    if whole and absolute < 1:
        wrong = got != wanted
    else:
        got, wanted = got.astype("float64"), wanted.astype("float64")
        wrong = ~np.isclose(got, wanted, relative, absolute, equal_nan=True)
    if not wrong.any():
        return ""
    if not np.isfinite(got[wrong]).all():
        return "a value is not a finite number"
    if got.ndim == 1 and max(len(str(got)), len(str(wanted))) < SHORT:
        return f"expected {wanted.tolist()}, received {got.tolist()}"
    one, other = wanted[wrong][0], got[wrong][0]
    show = _short if _short(one) != _short(other) else str
    first = f"expected {show(one)}, received {show(other)}"
    if not got.ndim or not np.isfinite(wanted[wrong]).all():
        return first
    gaps = np.where(wrong, np.abs(got.astype("float64") - wanted), 0.0)
    place = np.unravel_index(gaps.argmax(), gaps.shape)
    return (
        f"the shape is right; the largest difference is {gaps.max():.3g}, at "
        f"{list(map(int, place))}: expected {wanted[place]:.4g}, received "
        f"{got[place]:.4g}"
    )


def _difference_of_dictionaries(
    received: Any, expected: dict, near: tuple[float, float]
) -> str:
    """Compares the keys, then each value."""
    if not isinstance(received, dict):
        return f"expected a dictionary, received {brief(received)}"
    missing = [key for key in expected if key not in received]
    added = [key for key in received if key not in expected]
    problems = [f"{key!r} is missing" for key in missing]
    problems += [f"{key!r} is not expected" for key in added]
    for key in () if problems else expected:
        if problem := difference(received[key], expected[key], *near):
            problems.append(f"{key!r}: {problem}")
    short = max(len(repr(received)), len(repr(expected))) < SHORT
    if problems and short:
        return _both(received, expected)
    return next(iter(problems), "")


def _difference_of_items(
    received: Any, expected: Sequence, near: tuple[float, float]
) -> str:
    """Compares what is no table of numbers: texts, arrays of any shapes."""
    if not isinstance(received, list | tuple) or len(received) != len(expected):
        return _both(received, expected)
    pairs = zip(received, expected, strict=True)
    for place, (got, wanted) in enumerate(pairs):
        if problem := difference(got, wanted, *near):
            if max(len(repr(received)), len(repr(expected))) < SHORT:
                return _both(received, expected)
            return f"item {place}: {problem}"
    return ""


def _numbers(value: Any) -> np.ndarray | None:
    """Returns numbers, or lists of them of equal lengths, as an array."""
    try:
        if isinstance(value, list | tuple | int | float):
            array = np.asarray(value)
        elif isinstance(value, complex | str | bytes):
            return None
        else:
            array = np.asarray(ops.convert_to_numpy(value))
        if array.dtype.kind in NUMBERS:
            return array
        if array.dtype.kind in "cOSUMm":
            return None
        return array.astype("float64")  # bfloat16
    except (AttributeError, TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """Returns an array or a tensor as a number or as lists."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return np.asarray(ops.convert_to_numpy(value)).tolist()
    return value


def _short(number: Any) -> str:
    """Returns a whole number as it is, another one with ten digits."""
    return f"{number}" if number.dtype.kind in WHOLE else f"{number:.10g}"


def _both(received: Any, expected: Any) -> str:
    """Returns the right value and the other one in a line."""
    return f"expected {brief(expected)}, received {brief(received)}"


def brief(value: Any) -> str:
    """Returns a value in at most sixty characters."""
    if getattr(value, "shape", ()):
        return f"array of {tuple(value.shape)}"
    value = _plain(value)
    text = repr(value)
    if len(text) < SHORT:
        return text
    if isinstance(value, str):
        return f"{value[:20]!r}... of {len(value)} characters"
    return text[: SHORT - 3] + "..."
