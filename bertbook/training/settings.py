"""Fields of frozen settings: checked, and made plain numbers.

A field that is out of range, of another kind, or NaN is refused before a run
writes anything. Numbers of NumPy become plain ones, so that a record can hold
them.
"""

import math
from collections.abc import Collection
from typing import Any

from bertbook.checks import as_number, check_count, check_switch, is_integer

MOST = 2**31 - 1  # what the counters of every backend hold
SEEDS = 2**32  # how many there are


def set_count(settings: Any, name: str, least: int = 1) -> None:
    """Makes a field a plain integer, `least` at least."""
    value = checked_count(getattr(settings, name), name, least)
    object.__setattr__(settings, name, value)


def checked_count(value: Any, name: str, least: int = 1) -> int:
    """Returns a number of things as a plain integer.

    Raises:
        ValueError: It is no integer, or out of range.
    """
    check_count(value, name, least)
    if value > MOST:
        raise ValueError(
            f"`{name}` must be an integer <= {MOST}. Received: {value!r}."
        )
    return int(value)


def set_number(settings: Any, name: str, zero: bool = False) -> None:
    """Makes a field a plain number above 0, or from 0 on with `zero`.

    Raises:
        ValueError: The field is no such number.
    """
    value = getattr(settings, name)
    number = as_number(value)
    if not 0 < number < math.inf and not (zero and number == 0):
        rule = "a number >= 0" if zero else "above 0"
        raise ValueError(f"`{name}` must be {rule}. Received: {value!r}.")
    object.__setattr__(settings, name, number)


def set_share(
    settings: Any, name: str, zero: bool = True, one: bool = True
) -> None:
    """Makes a field a plain number between 0 and 1.

    Args:
        settings: Frozen settings.
        name: The field.
        zero: Whether it may be 0.
        one: Whether it may be 1.
    """
    number = checked_share(getattr(settings, name), name, zero, one)
    object.__setattr__(settings, name, number)


def checked_share(
    value: Any, name: str, zero: bool = True, one: bool = True
) -> float:
    """Returns a share as a plain number; see `set_share`.

    Raises:
        ValueError: It is no number, or out of range.
    """
    number = as_number(value)
    is_inside = (
        0 < number < 1 or (zero and number == 0) or (one and number == 1)
    )
    if not is_inside:
        span = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise ValueError(f"`{name}` must be in {span}. Received: {value!r}.")
    return number


def set_seed(settings: Any, name: str = "seed") -> None:
    """Makes a field a seed that NumPy and Keras take."""
    value = checked_seed(getattr(settings, name), name)
    object.__setattr__(settings, name, value)


def checked_seed(value: Any, name: str = "seed") -> int:
    """Returns a seed as a plain integer.

    Raises:
        ValueError: It is no integer, or out of range.
    """
    if not is_integer(value) or not 0 <= value < SEEDS:
        raise ValueError(
            f"`{name}` must be an integer in [0, {SEEDS}). Received: {value!r}."
        )
    return int(value)


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Refuses what is none of some words.

    Raises:
        ValueError: It is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(choices)}. "
            f"Received: {value!r}."
        )


def check_switches(settings: Any, *names: str) -> None:
    """Refuses fields that are neither True nor False."""
    for name in names:
        check_switch(getattr(settings, name), name)


def check_kind(value: Any, name: str, kind: type) -> None:
    """Refuses settings that are not of their class.

    Raises:
        ValueError: They are of another class.
    """
    if not isinstance(value, kind):
        raise ValueError(
            f"`{name}` must be a `{kind.__name__}`. Received: "
            f"{type(value).__name__}."
        )
