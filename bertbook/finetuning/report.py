"""`Report`: the metrics of an evaluation with tables, pictures and a page."""

import base64
import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bertbook.files import (
    check_folder,
    write_json,
    write_text,
    write_together,
)

SHOWN_ROWS = 10  # of a table in plain text; the files hold all
SHOWN_COLUMNS = 14  # a wider table is in report.json alone
CELL = 60  # characters of a cell in plain text
# All but tabs and the ends of lines.
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #22262B; margin: 2em auto;
  max-width: 60em; padding: 0 1em; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #E3E6EA; padding: .25em .8em .25em 0;
  text-align: left; vertical-align: top; }
td { white-space: pre-wrap; }
th.number, td.number { font-variant-numeric: tabular-nums; text-align: right; }
img { max-width: 100%; height: auto; }
p.note { color: #5F6B7A; }
"""


@dataclass(frozen=True)
class Table:
    """Rows under named columns.

    Attributes:
        title: What the rows are.
        columns: The names of the columns.
        rows: A list for each row: a text or a number for each column.
        note: How to read it, or "".
    """

    title: str
    columns: list[str]
    rows: list[list[Any]]
    note: str = ""


@dataclass(frozen=True)
class Findings:
    """What a report says beside the metrics.

    Attributes:
        facts: Numbers of the whole data set, by their names.
        tables: The tables by their names, in the order of the page.
        pictures: For some of the tables a function that draws it.
        thresholds: The best threshold of each label, where several hold.
    """

    facts: dict[str, float]
    tables: dict[str, Table]
    pictures: dict[str, Callable[[], Any]] = field(default_factory=dict)
    thresholds: list[float] | None = None

    def at(self, places: Sequence[str]) -> "Findings":
        """Returns the same, with the places of rows in a file beside them.

        Args:
            places: The place of each row, such as "line 3"; empty for none.
        """
        if not places:
            return self
        tables = {
            name: replace(
                table,
                columns=["row", "place", *table.columns[1:]],
                rows=[[n, places[n], *row] for n, *row in table.rows],
            )
            if table.columns[0] == "row"
            else table
            for name, table in self.tables.items()
        }
        return replace(self, tables=tables)


class Report(dict[str, float]):
    """The metrics of an evaluation, and where the model is right and wrong.

    It is the dict of metrics that `evaluate` returns without a report. `print`
    shows the tables, `plot` draws one, `save` writes them.

    Args:
        metrics: The metrics.
        findings: What was found beside them.

    Attributes:
        facts: Numbers of the whole data set, by their names.
        tables: The tables by their names; each has a `title`, `columns`,
            `rows` and a `note`.
        thresholds: For several labels the threshold of each that gives its
            best F1 on these rows, in the order of the labels; else None.
    """

    def __init__(self, metrics: Mapping[str, float], findings: Findings):
        super().__init__(metrics)
        self.facts = findings.facts
        self.tables = findings.tables
        self.thresholds = findings.thresholds
        self._pictures = findings.pictures

    def __str__(self) -> str:
        parts = [_as_text(_metrics_table(self))]
        parts += map(_as_text, self.tables.values())
        return "\n\n".join(parts)

    def plot(self, name: str | None = None) -> Any:
        """Draws a table; a notebook shows the picture.

        Args:
            name: The table; the first that has a picture for None.

        Returns:
            A `Picture`; its `save` writes a PNG.

        Raises:
            ValueError: The table has no picture.
            ImportError: Matplotlib is not installed.
        """
        if name is None:
            name = next(iter(self._pictures), None)
        if name not in self._pictures:
            raise ValueError(
                "`name` must be a table with a picture: "
                f"{', '.join(self._pictures) or 'there is none'}. Received: "
                f"{name!r}."
            )
        return self._pictures[name]()

    def save(self, folder: Any) -> None:
        """Writes report.txt, report.json and report.html into a folder.

        They take effect together, as `files.write_together` says. The page
        stands for itself: its pictures are in it, where Matplotlib is
        installed. The texts of the data are in all three files.

        Args:
            folder: The folder, which may be missing.

        Raises:
            ValueError: It is no folder.
            OSError: A file cannot be written; an older report stays, and no
                folder that was made for this one.
        """
        path = check_folder(folder, "folder")
        with write_together(path) as new:
            write_text(new / "report.txt", _storable(f"{self}\n"))
            write_json(new / "report.json", self.to_dict())
            write_text(new / "report.html", _storable(self.to_html()))

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as JSON can hold it."""
        tables = {name: asdict(table) for name, table in self.tables.items()}
        found = {"metrics": dict(self), "facts": self.facts, "tables": tables}
        if self.thresholds is not None:
            found["thresholds"] = self.thresholds
        return found

    def to_html(self) -> str:
        """Returns a page that stands for itself."""
        parts = [_as_html(_metrics_table(self))]
        for name, table in self.tables.items():
            parts += [_as_html(table), self._image(name)]
        body = "\n".join(part for part in parts if part)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
            f"<title>Report of an evaluation</title>\n<style>\n{STYLE}</style>"
            f"\n<h1>Report of an evaluation</h1>\n{body}\n</html>\n"
        )

    def _image(self, name: str) -> str:
        """Returns the picture of a table as HTML; "" where there is none."""
        if name not in self._pictures:
            return ""
        try:
            picture = self.plot(name)
        except ImportError:  # without Matplotlib the tables are enough
            return ""
        data = base64.b64encode(picture.png()).decode()
        return (
            f'<p><img width="{picture.metadata["width"]}" '
            f'alt="{_escaped(picture.alt)}" '
            f'src="data:image/png;base64,{data}"></p>'
        )


def _metrics_table(report: Report) -> Table:
    """Returns the metrics and the facts as the first table."""
    values = {**report, **report.facts}
    return Table("Metrics", ["", "value"], [[k, v] for k, v in values.items()])


def _as_text(table: Table) -> str:
    """Returns a table in plain text: numbers to the right, texts cut."""
    lines = [_printable(table.title)]
    if len(table.columns) > SHOWN_COLUMNS:
        lines.append(f"{len(table.columns)} columns: see report.json.")
    elif table.rows:
        shown = table.rows
        if table.columns[0] == "row":  # of the data, with its texts
            shown = shown[:SHOWN_ROWS]
        cells = [[_cut(_written(value)) for value in row] for row in shown]
        lines += _aligned(table.columns, cells, shown[0])
        if len(shown) < len(table.rows):
            lines.append(f"... {len(table.rows) - len(shown)} more rows")
    else:
        lines.append("none")
    return "\n".join([*lines, *filter(None, [_printable(table.note)])])


def _aligned(
    columns: Sequence[str], cells: Sequence[Sequence[str]], kinds: Sequence[Any]
) -> list[str]:
    """Returns the lines of a table, all columns of their widest cell."""
    lines = [list(map(_cut, columns)), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width)
            if isinstance(kind, int | float)
            else cell.ljust(width)
            for cell, width, kind in zip(line, widths, kinds, strict=True)
        ).rstrip()
        for line in lines
    ]


def _written(value: Any) -> str:
    """Returns a cell: floats with three decimals, lists with commas."""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return ", ".join(map(_written, value))
    return str(value)


def _cut(text: str) -> str:
    """Returns the beginning of a text, on one line."""
    line = _printable(text)
    return line if len(line) <= CELL else f"{line[: CELL - 3]}..."


def _printable(text: str) -> str:
    """Returns a text on one line, which no terminal takes for a command."""
    return "".join(c if c.isprintable() else " " for c in text)


def _as_html(table: Table) -> str:
    """Returns a table as HTML, every character of the data escaped."""
    title = f"<h2>{_escaped(table.title)}</h2>"
    note = f'<p class="note">{_escaped(table.note)}</p>'
    if not table.rows:
        return f"{title}\n<p>none</p>"
    head = "".join(
        f"<th{_kind(value)}>{_escaped(name)}</th>"
        for name, value in zip(table.columns, table.rows[0], strict=True)
    )
    rows = "\n".join(
        f"<tr>{''.join(map(_as_cell, row))}</tr>" for row in table.rows
    )
    return f"{title}\n<table>\n<tr>{head}</tr>\n{rows}\n</table>\n{note}"


def _as_cell(value: Any) -> str:
    """Returns a cell of a table in HTML."""
    return f"<td{_kind(value)}>{_escaped(_written(value))}</td>"


def _escaped(text: str) -> str:
    """Returns a text as HTML, which can hold no control character."""
    return html.escape(CONTROLS.sub(" ", text))


def _kind(value: Any) -> str:
    """Returns the class of a cell in HTML, of numbers alone."""
    return "" if isinstance(value, str | list) else ' class="number"'


def _storable(text: str) -> str:
    """Returns a text that UTF-8 can hold: half of a character is a "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")
