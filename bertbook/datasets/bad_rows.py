"""Rows of a file that do not fit: all are told at once, or left out.

A file is read to its end, so that one message names every line that is to be
looked at.
"""

import re
import warnings
from typing import Any

from bertbook.checks import RowErrors
from bertbook.datasets.mending import Mended
from bertbook.files import DataFile

ACTIONS = ("error", "skip")
ADVICE = '`bad_rows="skip"` leaves them out'
PLACES_SHOWN = 5  # of each kind
VARYING = re.compile(r"""\ ?'[^']*'|\ ?"[^"]*"|\b[0-9]+\b""")


class BadRows:
    """Collects what is wrong with the rows of a file.

    Args:
        file: The file.
        action: "error" refuses them all at the end, "skip" leaves them out
            with a warning.
        mended: A list, as in `load_dataset`, which gets them instead.
        is_own: Whether the caller may leave rows out.
    """

    def __init__(
        self,
        file: DataFile,
        action: str = "error",
        mended: Mended | None = None,
        is_own: bool = True,
    ):
        self.file = file
        self.action = action
        self.mended = mended
        self.is_own = is_own
        self.found: list[tuple[str, str]] = []
        self.hint = ""  # what else may be done
        self.noted: list[tuple[str, str]] = []

    def add(self, place: str, error: ValueError) -> None:
        """Keeps where a row stands, and what is wrong with it."""
        reason = str(error).removeprefix(f"{self.file}, {place}")
        reason = reason.lstrip(":, ")
        if reason.startswith("is "):
            reason = f"the row {reason}"
        if self.mended is not None:
            self.mended.append((place, reason.rstrip(".")))
        else:
            self.found.append((place, reason))

    def note(self, place: str, remark: str) -> None:
        """Keeps what is to be told of a row that fits."""
        notes = self.noted if self.mended is None else self.mended
        notes.append((place, remark))

    def advise(self, hint: str, column: str) -> None:
        """Keeps how a row can be made to fit, if there is a way to tell."""
        self.hint = hint
        if hint and self.mended is not None:
            self.mended.append((f"`{column}`", hint))

    def settle(self, kept: int) -> None:
        """Refuses the rows, or warns of what is left out, and of notes.

        Args:
            kept: How many rows fit.

        Raises:
            ValueError: Rows do not fit and are not left out, or none fits.
        """
        if self.action == "skip" or not self.found:
            for text in self._summary_of_notes():
                warnings.warn(text, stacklevel=6)
        if not self.found:
            return
        total = kept + len(self.found)
        if self.action == "skip" and kept:
            warnings.warn(self._summary(total), stacklevel=6)
            return
        texts = [
            f"{self.file}, {place}: {reason}" for place, reason in self.found
        ]
        advice = ADVICE if self.is_own and kept else ""
        if len(texts) == 1 and advice:
            advice = advice.replace("them", "it")
        advice = "; ".join(filter(None, (self.hint, advice)))
        raise RowErrors(
            list(enumerate(texts)),
            total,
            f"{self.file} must hold rows that fit",
            advice,
        )

    def _summary_of_notes(self) -> list[str]:
        """Returns the first note of each kind, and how many are alike."""
        kinds: dict[str, list[tuple[str, str]]] = {}
        for place, remark in self.noted:
            kind = VARYING.sub("", remark)
            kinds.setdefault(kind, []).append((place, remark))
        texts = []
        for (place, remark), *others in kinds.values():
            rows = f"{len(others):,} more row{'s' * (len(others) > 1)}"
            more = f"; so in {rows}" * bool(others)
            texts.append(f"{self.file}, {place}: {remark}{more}.")
        return texts

    def _summary(self, total: int) -> str:
        """Returns how many rows are left out, by kind."""
        kinds: dict[str, list[tuple[str, str]]] = {}
        for place, reason in self.found:
            rule = reason.partition(" Received:")[0].rstrip(".")
            kinds.setdefault(VARYING.sub("", rule), []).append((place, rule))
        parts = []
        for kind, rows in kinds.items():
            rules = {rule for _, rule in rows}
            rule = rules.pop() if len(rules) == 1 else kind
            places = ", ".join(place for place, _ in rows[:PLACES_SHOWN])
            more = ", ..." if len(rows) > PLACES_SHOWN else ""
            parts.append(f"{len(rows):,}: {rule} ({places}{more})")
        count = len(self.found)
        verb = "was" if count == 1 else "were"
        return (
            f"{self.file}: {count:,} of {total:,} rows {verb} left out. "
            + "; ".join(parts)
            + "."
            + (self.hint and f" {self.hint}.")
        )


def check_action(action: Any, mended: Mended | None = None) -> None:
    """Refuses what is no action for bad rows.

    Raises:
        ValueError: It is unknown, or `mended` says something else.
    """
    if not isinstance(action, str) or action not in ACTIONS:
        raise ValueError(
            f'`bad_rows` must be "error" or "skip". Received: {action!r}.'
        )
    if action == "skip" and mended is not None:
        raise ValueError(
            "`bad_rows` must be left out with `mended`, which leaves bad rows "
            "out, too. Received: 'skip'."
        )
