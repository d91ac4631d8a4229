"""Checks of texts, columns, numbers and options."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from numbers import Integral, Real

ROWS_SHOWN = 10  # rows that do not fit, in one message


class RowErrors(ValueError):
    """Rows that do not fit, all of them.

    Args:
        faults: The number of each row, and what is wrong with it: a message
            that names the row.
        total: How many rows there are.
        rule: What holds of the whole.
        advice: What can be done.
    """

    def __init__(
        self,
        faults: list[tuple[int, str]],
        total: int,
        rule: str = "Every row must fit",
        advice: str = "",
    ):
        self.faults, self.total = faults, total
        self.rule, self.advice = rule, advice
        if len(faults) == 1:
            text = faults[0][1].removesuffix(".")
            super().__init__(f"{text}{advice and '; '}{advice}.")
            return
        lines = [f"  {text}" for _, text in faults[:ROWS_SHOWN]]
        if len(faults) > ROWS_SHOWN:
            lines.append(f"  and {len(faults) - ROWS_SHOWN:,} more.")
        if advice:
            lines.append(f"{advice}.")
        received = f"{len(faults):,} of {total:,} that do not"
        super().__init__("\n".join([f"{rule}. Received: {received}:", *lines]))


def each_row(function, *columns) -> list:
    """Calls a function for each row, and refuses all rows that do not fit.

    Args:
        function: Takes the number of a row, and a value of each column.
        *columns: Columns of one length.

    Returns:
        What it returned.

    Raises:
        ValueError: The function refuses rows; they are named.
    """
    results, faults = [], []
    for row, values in enumerate(zip(*columns, strict=True)):
        try:
            results.append(function(row, *values))
        except ValueError as error:
            faults.append((row, str(error)))
    if faults:
        raise RowErrors(faults, len(results) + len(faults))
    return results


def without_place(errors: RowErrors) -> list[tuple[int, str]]:
    """Returns the faults of rows without the numbers of these.

    >>> without_place(RowErrors([(3, "Row 3: `label[3]` is odd.")], 5))
    [(3, '`label` is odd.')]
    """
    faults = []
    for row, text in errors.faults:
        text = text.removeprefix(f"Row {row}: ").replace(f"[{row}]`", "`")
        faults.append((row, text.removesuffix(f" in row {row}")))
    return faults


def check_text(text, name: str) -> None:
    """Refuses what is not a string of whole characters.

    Raises:
        ValueError: It is no string, or holds a lone surrogate.
    """
    if not isinstance(text, str):
        remedy = ""
        if isinstance(text, bytes):
            remedy = "; `.decode()` makes a string of it"
        elif hasattr(text, "numpy"):  # a tensor, as of a `tf.data.Dataset`
            remedy = "; `.numpy().decode()` makes a string of it"
        raise ValueError(
            f"`{name}` must be a string. Received: {_kind(text)}{remedy}."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must not hold a lone surrogate. Received: "
            f"{text[error.start]!r} at index {error.start}."
        ) from None


def _kind(value) -> str:
    """Returns the type of a value, and nan for the gap of a table."""
    is_gap = isinstance(value, float) and value != value
    return "nan, a missing value" if is_gap else type(value).__name__


def checked_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines of a text; refuses one that is not a string.

    Raises:
        ValueError: `lines` is a string, or a line is none.
    """
    no_lines = isinstance(lines, str | bytes | Mapping)
    if no_lines or not isinstance(lines, Iterable):
        raise ValueError(
            "`lines` must be a list of strings, an open file or the like. "
            f"Received: {type(lines).__name__}."
        )
    for number, line in enumerate(lines):
        check_text(line, f"lines[{number}]")
        yield line


def check_rows(
    texts, pairs, names: tuple[str, str] = ("texts", "pairs")
) -> tuple[list[str], list[str] | None]:
    """Returns the columns of a batch as lists.

    Refuses an empty batch, columns of different length, and rows that are not
    texts.

    Raises:
        ValueError: The batch is one of these.
    """
    first, second = names
    texts = check_column(texts, first)
    if not texts:
        raise ValueError(
            f"`{first}` must hold at least one text. Received: none."
        )
    if pairs is None:
        return texts, None
    pairs = check_column(pairs, second)
    if len(pairs) != len(texts):
        raise ValueError(
            f"`{second}` must be as long as `{first}`. Received: "
            f"{len(pairs)} and {len(texts)}."
        )
    return texts, pairs


def check_column(rows, name: str) -> list[str]:
    """Returns a list, an array or a column of a table as a list of texts.

    Raises:
        ValueError: It has no order, or a row is not a string.
    """
    no_column = isinstance(rows, str | bytes | Mapping | Set)
    if no_column or not hasattr(rows, "__len__") or _rank(rows) != 1:
        raise ValueError(
            f"`{name}` must be a list of strings. Received: "
            f"{type(rows).__name__}; `encode` takes a single text."
        )
    rows = list(rows)
    each_row(lambda row, text: check_text(text, f"{name}[{row}]"), rows)
    return rows


def _rank(rows) -> int:
    """Returns the number of axes: a list has one, a table two."""
    return getattr(rows, "ndim", 1)


def check_max_length(max_length: int | None, has_pair: bool) -> int | None:
    """Returns a length that the Rust library takes; None stays None.

    Raises:
        ValueError: It is no integer, or leaves no room for the texts.
    """
    least = 5 if has_pair else 3
    if max_length is None:
        return None
    if not is_integer(max_length) or max_length < least:
        raise ValueError(
            f"`max_length` must be an integer >= {least}, room for [CLS], "
            f"[SEP] and a piece of each text. Received: {max_length!r}."
        )
    return min(int(max_length), sys.maxsize)


def checked_list(values, name: str) -> list:
    """Returns what has an order as a list; refuses a string, a set, a dict.

    Raises:
        ValueError: It is one of these, or holds nothing in order.
    """
    no_list = isinstance(values, str | bytes | Mapping | Set)
    if no_list or not isinstance(values, Iterable) or not _rank(values):
        raise ValueError(
            f"`{name}` must be a list. Received: {type(values).__name__}."
        )
    return list(values)


def listed(values: Iterable, most: int = 20) -> str:
    """Returns names for a message: the first of them, and how many there are.

    >>> listed(["a", "b"]), listed("abcd", most=2)
    ('a, b', 'a, b, ... (4 in all)')
    """
    names = list(map(str, values))
    shown = [name if len(name) <= 80 else f"{name[:77]}..." for name in names]
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(shown[:most]) + more


def check_switch(value, name: str) -> None:
    """Refuses what is neither True nor False.

    Raises:
        ValueError: It is neither.
    """
    if not isinstance(value, bool):
        raise ValueError(
            f"`{name}` must be True or False. Received: {value!r}."
        )


def check_count(value, name: str, least: int = 1) -> None:
    """Refuses what is no integer, or one below `least`.

    Raises:
        ValueError: It is one of these.
    """
    if not is_integer(value) or value < least:
        raise ValueError(
            f"`{name}` must be an integer >= {least}. Received: {value!r}."
        )


def is_integer(value) -> bool:
    """Returns whether a value is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_number(value) -> float:
    """Returns a number as a float, and NaN for anything else, even a bool."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # an integer that no float holds
        return float("inf")
