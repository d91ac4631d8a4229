"""The register of errata: where five texts on BERT simplify or slip.

Each entry stands with its check in one of the modules of `SUBJECTS`.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bertbook.book.errata import (
    attention,
    block,
    decoder,
    history,
    positions,
    sizes,
    tokens,
    training,
)
from bertbook.book.errata.erratum import Erratum
from bertbook.book.listing import Listing
from bertbook.book.references import cite

SUBJECTS = {
    "tokens": tokens,
    "positions": positions,
    "attention": attention,
    "block": block,
    "sizes": sizes,
    "training": training,
    "decoder": decoder,
    "history": history,
}
COLUMNS = (
    "no.",
    "kind",
    "source",
    "says",
    "what is right",
    "computed",
    "chapter",
)
GUIDES = "Guides to Keras, of that time"  # where none of the texts says it


class Result(NamedTuple):
    """What the check of an erratum found.

    Attributes:
        erratum: The entry.
        computed_value: What its check returned; None where there is no check,
            or where what it needs is not installed.
        holds: Whether that is what is right, and not what the text says; None
            where nothing was computed.
    """

    erratum: Erratum
    computed_value: Any
    holds: bool | None


def of_subject(subject: str) -> list[Erratum]:
    """Returns the entries of a subject, in the order of their numbers.

    Raises:
        ValueError: There is no such subject.
    """
    if subject not in SUBJECTS:
        raise ValueError(
            f"`subject` must be one of {', '.join(SUBJECTS)}. "
            f"Received: {subject!r}."
        )
    module = SUBJECTS[subject]
    entries = [
        member.erratum
        for member in vars(module).values()
        if hasattr(member, "erratum")
    ]
    entries += getattr(module, "NOTED", ())
    return sorted(entries, key=lambda erratum: erratum.number)


def every() -> list[Erratum]:
    """Returns all entries, in the order of their numbers."""
    entries = [entry for subject in SUBJECTS for entry in of_subject(subject)]
    return sorted(entries, key=lambda erratum: erratum.number)


def run(entries: Iterable[Erratum]) -> list[Result]:
    """Runs the check of each entry that has one."""
    return [run_one(erratum) for erratum in entries]


def run_one(erratum: Erratum) -> Result:
    """Runs the check of one entry, if it has one."""
    computed_value = erratum.check() if erratum.check else None
    holds = None if computed_value is None else erratum.holds(computed_value)
    return Result(erratum, computed_value, holds)


def listing(results: Iterable[Result]) -> Listing:
    """Returns what was found as a table, a row for each entry."""
    return Listing(COLUMNS, [row(result) for result in results])


def row(result: Result) -> tuple[str, ...]:
    """Returns the cells of one entry.

    A check that fails is marked; one that could not run says so.
    """
    erratum, computed_value, holds = result
    said = "not installed here" if erratum.check else ""
    if computed_value is not None:
        said = erratum.shown(computed_value) + ("" if holds else " (FAILS)")
    return (
        str(erratum.number),
        erratum.kind,
        "; ".join(map(cite, erratum.sources)) or GUIDES,
        erratum.says,
        erratum.right,
        said,
        erratum.chapter,
    )
