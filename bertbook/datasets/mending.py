"""What a table of the real world needs before it can be learned from.

A row that does not fit is left out and not refused, equal texts stay once,
spellings of a label become one, and an old encoding is read. Nothing happens
in silence: `Mended` holds a line for each change.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bertbook.files import Columns, DataFile

Mended = list[tuple[str, str]]  # a place such as "line 3", and what was done
OLD_ENCODING = "cp1252"  # what Excel writes as CSV on Windows in the West
SHOWN = 40  # characters of a text that is shown


def check_mended(mended: Any) -> None:
    """Refuses what cannot hold what was mended.

    Raises:
        ValueError: It is neither a list nor None.
    """
    if mended is not None and not isinstance(mended, list):
        raise ValueError(
            "`mended` must be a list, to which each change is added, or None. "
            f"Received: {type(mended).__name__}."
        )


def readable(file: DataFile, mended: Mended) -> DataFile:
    """Returns a file with the encoding that can read it.

    Args:
        file: The file. One that is not UTF-8 is taken for what Windows writes
            in the West.
        mended: Gets the first line that is read otherwise.

    Raises:
        ValueError: The file is damaged, or in neither encoding.
    """
    try:
        for _ in file.lines():
            pass
    except ValueError as error:
        is_wide = "UTF-16" in str(error)
        if not isinstance(error.__cause__, UnicodeDecodeError) or is_wide:
            raise
        old = dataclasses.replace(file, encoding=OLD_ENCODING)
        numbered = enumerate(old.lines(), 1)
        number, line = next(x for x in numbered if not x[1].isascii())
        said = f"read as Windows-1252 it has {shortened(line)!r}"
        mended.append((f"line {number}", f"the file is not UTF-8; {said}"))
        return old
    return file


def one_spelling(names: Iterable[str]) -> dict[str, str]:
    """Returns for each spelling of a label the most frequent one.

    >>> one_spelling(["IT", "IT", "it", "HR"])
    {'IT': 'IT', 'it': 'IT', 'HR': 'HR'}
    """
    best: dict[str, str] = {}
    counts = Counter(names)
    for name, _ in counts.most_common():
        best.setdefault(_plain(name), name)
    return {name: best[_plain(name)] for name in counts}


def mend_columns(
    data: Columns, places: Sequence[str], mended: Mended, label: str = "label"
) -> tuple[Columns, list[int]]:
    """Returns the columns of a table, mended, and the numbers of their rows.

    Args:
        data: Columns whose rows can be learned from.
        places: Where each row stands.
        mended: Gets what is changed.
        label: What the table calls the labels.
    """
    for name in ("text", "text_pair"):
        if name in data:
            data[name] = [" ".join(text.split()) for text in data[name]]
    if all(isinstance(label, str) for label in data.get("label", [0])):
        data["label"] = _respelled(data["label"], mended, label)
    kept = _first_ones(data, places, mended)
    return rows_of(data, kept), kept


def rows_of(data: Columns, rows: Sequence[int]) -> Columns:
    """Returns the rows of some numbers."""
    return {
        name: [column[row] for row in rows] for name, column in data.items()
    }


def _respelled(labels: list[str], mended: Mended, column: str) -> list[str]:
    """Returns labels of which each has one spelling."""
    best, counts = one_spelling(labels), Counter(labels)
    for name, new in best.items():
        if name != new:
            rows = f"{counts[name]} row{'s' * (counts[name] > 1)}"
            mended.append(
                (f"`{column}`", f"{name!r} is read as {new!r}, {rows}")
            )
    return [best[label] for label in labels]


def _first_ones(
    data: Columns, places: Sequence[str], mended: Mended
) -> list[int]:
    """Returns the rows whose texts do not stand in a row before."""
    texts = "text", "text_pair", "choices", "tokens", "question", "context"
    columns = [data[name] for name in texts if name in data]
    if not columns:  # pairs of languages may have one sentence twice
        return list(range(len(places)))
    learned = next((n for n in ("label", "answers", "tags") if n in data), "")
    first: dict[tuple[str, ...], int] = {}
    kept = []
    for row, values in enumerate(zip(*columns, strict=True)):
        key = tuple(_plain(value) for value in values)
        before = first.setdefault(key, row)
        if before == row:
            kept.append(row)
            continue
        why = f"the text of {places[before]} again"
        if learned and data[learned][row] != data[learned][before]:
            was, now = (shortened(data[learned][i]) for i in (before, row))
            why += f", with {now!r} and not {was!r}"
        mended.append((places[row], why))
    return kept


def shortened(value: Any) -> str:
    """Returns what is shown of a value."""
    text = " ".join(str(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _plain(value: Any) -> str:
    """Returns a text, or texts, without capitals and further spaces."""
    text = value if isinstance(value, str) else "\n".join(map(str, value))
    return " ".join(text.split()).casefold()
