"""`Erratum`: what a text says, what is right, and a check of it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

TOLERANCE = 1e-3  # The texts give four digits of a number.

# What kinds of entry there are.
SLIP = "slip"  # wrong, whatever one takes it to be about
SIMPLIFIED = "simplified"  # of a toy, of the 2017 model, or not the whole
TRUE = "true, but"  # right, or right when it was written
KINDS = SLIP, SIMPLIFIED, TRUE


class Erratum(NamedTuple):
    """One place where a text simplifies, or slips.

    Attributes:
        number: Its place in the list.
        sources: The texts that say so: keys of `references.SOURCES`.
        chapter: Where the book treats the subject.
        says: What they say, in a few words.
        right: What is right.
        kind: One of `KINDS`.
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
    kind: str = SIMPLIFIED
    value: Any = None
    said: Any = None
    check: Callable[[], Any] | None = None

    def holds(self, computed_value: Any) -> bool:
        """Tells whether a computed value is right, and not what is said."""
        return agrees(computed_value, expected(self.value)) and not agrees(
            computed_value, self.said
        )

    def shown(self, computed_value: Any) -> str:
        """Returns a computed value as text, with its names."""
        if not isinstance(self.value, dict):
            return shown(computed_value)
        named = zip(self.value, computed_value, strict=True)
        return "; ".join(f"{name}: {shown(part)}" for name, part in named)


def computed(
    number,
    sources,
    chapter,
    *,
    says,
    right,
    value,
    kind=SIMPLIFIED,
    said=None,
):
    """Makes a function without arguments the check of an erratum.

    Args:
        number: As in `Erratum`; the others too.
        sources: One key, or several.
        chapter: A chapter's name.
        says: A few words.
        right: A sentence or two.
        value: What the function must return; for a tuple, a dict that names
            its parts.
        kind: One of `KINDS`.
        said: What the texts come to.

    Returns:
        A decorator. The function it gives back is the same, and has the
        erratum as `erratum`.
    """

    def mark(check):
        check.erratum = Erratum(
            number,
            _keys(sources),
            chapter,
            says,
            right,
            kind,
            value,
            said,
            check,
        )
        return check

    return mark


def noted(number, sources, chapter, *, says, right, kind=SIMPLIFIED):
    """Returns an erratum for which nothing can be computed."""
    return Erratum(number, _keys(sources), chapter, says, right, kind)


def _keys(sources: str | tuple[str, ...]) -> tuple[str, ...]:
    """Returns one key, or several, as a tuple."""
    return (sources,) if isinstance(sources, str) else sources


def expected(value: Any) -> Any:
    """Returns what a check must return: a dict's values are a tuple's."""
    return tuple(value.values()) if isinstance(value, dict) else value


def agrees(computed_value: Any, value: Any) -> bool:
    """Tells whether two values are the same; decimals to four digits."""
    if isinstance(value, tuple):
        return (
            isinstance(computed_value, tuple)
            and len(computed_value) == len(value)
            and all(map(agrees, computed_value, value))
        )
    if isinstance(value, float):
        return isinstance(computed_value, float) and math.isclose(
            computed_value, value, rel_tol=TOLERANCE
        )
    return type(computed_value) is type(value) and computed_value == value


def shown(value: Any) -> str:
    """Returns a value as text: five digits, grouped thousands, yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value)
