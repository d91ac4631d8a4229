"""`Listing`: a table, as HTML in a notebook and as lines elsewhere."""

import html
import textwrap
from collections.abc import Iterable, Sequence

LINE = 80  # columns of the text form
STYLE = "text-align: left; vertical-align: top"


class Listing:
    """Rows of text under named columns; the first column names the row.

    Args:
        columns: Their names.
        rows: For each row a text for each column.

    Raises:
        ValueError: A row is longer or shorter than `columns`.
    """

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[str]]):
        self.columns = list(columns)
        self.rows = [[str(cell) for cell in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"`rows` must have {len(self.columns)} cells each. "
                    f"Received: {len(row)}, {row!r}."
                )

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return "\n".join(self._record(row) for row in self.rows)

    def _record(self, row: Sequence[str]) -> str:
        """Returns a row as lines: its name, then each column that is filled."""
        wide = max(map(len, self.columns))
        lines = [row[0]]
        for name, cell in zip(self.columns[1:], row[1:], strict=True):
            if cell:
                first, later = f"  {name:{wide}} ", " " * (wide + 3)
                lines += textwrap.wrap(
                    cell, LINE, initial_indent=first, subsequent_indent=later
                )
        return "\n".join(lines)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html(), "text/plain": repr(self)}

    def html(self) -> str:
        """Returns the rows as an HTML table."""
        lines = ["<table>", _row("th", self.columns)]
        lines += [_row("td", row) for row in self.rows]
        return "\n".join([*lines, "</table>"])


def _row(tag: str, cells: Sequence[str]) -> str:
    inside = "".join(
        f'<{tag} style="{STYLE}">{html.escape(cell)}</{tag}>' for cell in cells
    )
    return f"<tr>{inside}</tr>"
