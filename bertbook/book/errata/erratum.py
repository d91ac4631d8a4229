"""`Erratum`: what a text says, what is right, and a check of it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

TOLERANCE = 1e-3  # The texts give four digits of a number.


class Erratum(NamedTuple):
    """One place where a text simplifies, or slips.

    Attributes:
        number: Its place in the list.
        sources: The texts that say so: keys of `references.SOURCES`.
        chapter: Where the book treats the subject.
        says: What they say, in a few words.
        right: What is right.
        value: The same as a value, or as a dict of named values; None where
            nothing can be computed.
        said: What the texts come to, in the form of the check's value; None
            where they come to none.
        check: Computes the value; None where nothing can be computed.
    """

    number: int
    sources: tuple[str, ...]
    chapter: str
    says: str
    right: str
    value: Any = None
    said: Any = None
    check: Callable[[], Any] | None = None

    def holds(self, found: Any) -> bool:
        """Tells whether a computed value is right, and not what is said."""
        return agrees(found, expected(self.value)) and not agrees(
            found, self.said
        )

    def shown(self, found: Any) -> str:
        """Returns a computed value as text, with its names."""
        if not isinstance(self.value, dict):
            return shown(found)
        named = zip(self.value, found, strict=True)
        return "; ".join(f"{name}: {shown(part)}" for name, part in named)


def computed(number, sources, chapter, *, says, right, value, said=None):
    """Makes a function without arguments the check of an erratum.

    Args:
        number: As in `Erratum`; the others too.
        sources: One key, or several.
        chapter: A chapter's name.
        says: A few words.
        right: A sentence or two.
        value: What the function must return; for a tuple, a dict that names
            its parts.
        said: What the texts come to.

    Returns:
        A decorator. The function it gives back is the same, and has the
        erratum as `erratum`.
    """

    def mark(check):
        check.erratum = Erratum(
            number, keys(sources), chapter, says, right, value, said, check
        )
        return check

    return mark


def noted(number, sources, chapter, *, says, right):
    """Returns an erratum for which nothing can be computed."""
    return Erratum(number, keys(sources), chapter, says, right)


def keys(sources: str | tuple[str, ...]) -> tuple[str, ...]:
    """Returns one key, or several, as a tuple."""
    return (sources,) if isinstance(sources, str) else sources


def expected(value: Any) -> Any:
    """Returns what a check must return: a dict's values are a tuple's."""
    return tuple(value.values()) if isinstance(value, dict) else value


def agrees(found: Any, value: Any) -> bool:
    """Tells whether two values are the same; decimals to four digits."""
    if isinstance(value, tuple):
        return (
            isinstance(found, tuple)
            and len(found) == len(value)
            and all(map(agrees, found, value))
        )
    if isinstance(value, float):
        return isinstance(found, float) and math.isclose(
            found, value, rel_tol=TOLERANCE
        )
    return type(found) is type(value) and found == value


def shown(value: Any) -> str:
    """Returns a value as text: five digits, grouped thousands, yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value)
