"""Tables to columns: what GLUE writes with tabs, and SWAG with commas.

A reader gives a dict of columns, lists of equal length, and names the file and
the line where something is wrong.

Differences: none; this module has no counterpart in the paper.
"""

import contextlib
import csv
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence

from bertbook.data_files import (
    Columns,
    DataFile,
    checked_columns,
    refuse_width,
)

SCORES = (0.0, 5.0)  # of STS-B


def read_table(
    file: DataFile,
    columns: Mapping[str, Sequence[str]],
    labels: Sequence[str] | int | None,
    header: Sequence[str] | None = None,
    skip_damaged: bool = False,
    filled: bool = False,
) -> Columns:
    """Reads a table whose columns are separated by tabs, as GLUE has them.

    Nothing is quoted or escaped. Spaces around a text are left out, and so are
    lines without text.

    Args:
        file: The table.
        columns: Our names, and for each the names that a file may give it.
        labels: What `label` may hold: these names, the integers below a
            number, or, for None, a score from 0 to 5.
        header: The columns of a file that may come without a first line of
            names; None where that line is always there.
        skip_damaged: Whether lines of another width are left out, with a
            warning that names them, instead of being an error.
        filled: Whether every text must hold something.

    Raises:
        ValueError: A column is missing, a line has another number of columns
            than the first, a label is not one of `labels`, a text is empty
            that must not be, or there are no rows. The file and the line are
            named.
    """
    lines = (line.rstrip("\r\n") for line in file.lines())
    rows: Iterator[tuple[int, list[str]]]
    rows = ((n, x.split("\t")) for n, x in enumerate(lines, 1) if x.strip())
    first = next(rows, (1, []))
    names = [name.strip() for name in first[1]]
    if header is not None and names != list(header):
        names, rows = list(header), itertools.chain([first], rows)
    places = {ours: _place(file, names, columns[ours]) for ours in columns}
    table: Columns = {ours: [] for ours in columns}
    damaged = []
    for number, fields in rows:
        if len(fields) != len(names):
            if not skip_damaged:
                refuse_width(file, number, len(names), len(fields))
            damaged.append(number)
            continue
        for ours, place in places.items():
            value = fields[place].strip()
            if filled and not value:
                _refuse_empty(file, number, ours)
            known = ours == "label"
            table[ours].append(
                _label(file, number, value, labels) if known else value
            )
    if damaged:
        warnings.warn(
            f"{file}: {len(damaged)} damaged lines without {len(names)} "
            f"columns were left out: {', '.join(map(str, damaged[:20]))}"
            f"{', ...' if len(damaged) > 20 else ''}.",
            stacklevel=4,
        )
    return checked_columns(file, table)


def read_choices(file: DataFile) -> Columns:
    """Reads beginnings with four endings from CSV, as SWAG has them.

    Returns:
        `text`, the first sentence; `choices`, four strings for each, what may
        follow: the beginning of the second sentence with an ending; and
        `label`, the number of the right one.

    Raises:
        ValueError: A column is missing, a line has another number of columns,
            a label is not 0, 1, 2 or 3, or there are no rows. The file and the
            line are named.
    """
    reader = csv.reader(file.lines(), strict=True)
    table: Columns = {"text": [], "choices": [], "label": []}
    try:
        names = next(reader)
        wanted = ("sent1", "sent2", *(f"ending{i}" for i in range(4)), "label")
        places = [_place(file, names, [name]) for name in wanted]
        for row in reader:
            if not row:  # an empty line
                continue
            number = reader.line_num
            if len(row) != len(names):
                refuse_width(file, number, len(names), len(row))
            text, begun, *endings, label = (row[i].strip() for i in places)
            table["text"].append(text)
            table["choices"].append([f"{begun} {x}".strip() for x in endings])
            table["label"].append(_label(file, number, label, 4))
    except csv.Error as error:
        raise ValueError(f"{file}, line {reader.line_num}: {error}.") from error
    return checked_columns(file, table)


def _place(file: DataFile, names: list[str], theirs: Sequence[str]) -> int:
    """Returns where the first of some names stands among the columns."""
    for name in theirs:
        if name in names:
            return names.index(name)
    raise ValueError(
        f"{file} must have a column `{'` or `'.join(theirs)}`. Received: "
        f"{', '.join(names)}."
    )


def _refuse_empty(file: DataFile, number: int, ours: str) -> None:
    """Says that a line has no text in a column."""
    raise ValueError(
        f"{file}, line {number}: `{ours}` must hold a text. Received: ''."
    )


def _label(
    file: DataFile,
    number: int,
    value: str,
    labels: Sequence[str] | int | None,
) -> str | int | float:
    """Returns the label of a row: a name, an integer or a score."""
    if labels is None:
        with contextlib.suppress(ValueError):
            if SCORES[0] <= float(value) <= SCORES[1]:  # NaN is not
                return float(value)
        rule = f"a score must be from {SCORES[0]:g} to {SCORES[1]:g}"
    elif isinstance(labels, int):
        if value in map(str, range(labels)):
            return int(value)
        rule = f"a label must be one of 0 to {labels - 1}"
    else:
        if value in labels:
            return value
        rule = f"a label must be one of {', '.join(labels)}"
    raise ValueError(f"{file}, line {number}: {rule}. Received: {value!r}.")
