"""`as_columns`: any table as a dict of columns.

A table may be a dict of columns, a list of rows, a data frame of pandas or
Polars, a `Dataset` of Hugging Face or a table of Arrow. Each is known by what
it offers, so that none of these packages is imported.
"""

import contextlib
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from bertbook.checks import RowErrors, is_integer, without_place

# The roles of columns, and what files may call them, in small letters.
NAMES = {
    "id": ("id",),
    "text": ("text", "sentence"),
    "text_pair": ("text_pair",),
    "choices": ("choices",),
    "label": ("label", "labels"),
    "weight": ("weight",),
    "tokens": ("tokens",),
    "tags": ("tags", "ner_tags"),
    "question": ("question",),
    "context": ("context",),
    "answers": ("answers", "answer"),
    "source": ("source",),
    "target": ("target",),
}
PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
)

REMEDY = (
    "a dict of columns, a list of dicts, a DataFrame or a `Dataset` of Hugging "
    "Face"
)


class SourceColumns(dict[str, Any]):
    """Columns that know what their source calls them and their rows.

    Args:
        columns: The columns.
        file: What the file is called in messages; "" for a table in memory.
        places: The place of each row in the file, such as "line 3".
        names: What the source calls our columns, where it has another name.

    `held_out` says how a part of the file was drawn, where one was.
    """

    held_out: Mapping[str, Any] | None = None

    def __init__(
        self,
        columns: Mapping[str, Any],
        file: str = "",
        places: Sequence[str] = (),
        names: Mapping[str, str] | None = None,
    ):
        super().__init__(columns)
        self.file = file
        self.places = list(places)
        self.names = dict(names or {})

    def told(self, errors: RowErrors) -> RowErrors:
        """Returns errors of rows under the names and lines of the source."""
        faults, rule = errors.faults, errors.rule
        # Places are of no use where somebody has changed the columns.
        if self.places and errors.total == len(self.places):
            rule = f"{self.file} must hold rows that fit"
            faults = [
                (row, f"{self.file}, {self.places[row]}: {text}")
                for row, text in without_place(errors)
            ]
        faults = [(row, self._named(text)) for row, text in faults]
        return RowErrors(faults, errors.total, rule, errors.advice)

    def _named(self, message: str) -> str:
        """Returns a message with what the source calls the columns."""
        for ours, theirs in self.names.items():
            message = message.replace(f"`{ours}`", f"`{theirs}`")
            message = message.replace(f"`{ours}[", f"`{theirs}[")
        return message


def with_rows_of(
    columns: Mapping[str, Any], data: Any, kept: Sequence[int] | None = None
) -> dict[str, Any]:
    """Returns columns that know the places of other columns with their rows.

    Args:
        columns: The columns.
        data: Those whose rows they have.
        kept: The numbers of these rows; None for all.
    """
    if not isinstance(data, SourceColumns):
        return dict(columns)
    places = data.places
    if kept is not None:
        places = [places[row] for row in kept if row < len(places)]
    known = SourceColumns(columns, data.file, places, data.names)
    known.held_out = data.held_out
    return known


@contextlib.contextmanager
def under_its_names(data: Any) -> Iterator[None]:
    """Names rows and columns in errors of the body as the source does.

    Args:
        data: Columns, of a `SourceColumns` where a source is known.
    """
    try:
        yield
    except RowErrors as errors:
        if not isinstance(data, SourceColumns):
            raise
        raise data.told(errors) from None


def as_columns(data: Any, name: str) -> dict[str, Any]:
    """Returns a table as a dict of columns; the table stays as it is.

    Args:
        data: A dict of columns, a list of dicts, a data frame of pandas or
            Polars, a `Dataset` of Hugging Face, or a table of Arrow. A row
            that lacks a key of others has None there, a missing value.
        name: What the argument is called in an error.

    Returns:
        The columns by name, in the order of the table, the rows of each in
        the order of the table. The columns of a dict are those that it holds.

    Raises:
        ValueError: `data` are none of these, two columns have one name, or a
            name is no string.
    """
    if _is_table(data):
        columns = _of_table(data, name)
    elif isinstance(data, Mapping):
        columns = _of_dict(data, name)
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        columns = _of_rows(data, name)
    else:
        raise _refusal(data, name)
    for column in columns:
        if not isinstance(column, str):
            raise ValueError(
                f"`{name}` must have strings as names of columns. Received: "
                f"{column!r}."
            )
    return columns


def with_known_names(columns: dict[str, Any]) -> dict[str, Any]:
    """Returns columns under the names of the package, where there is no doubt.

    A table in memory may have the names that a file may have, such as
    `ner_tags` or `sentence1`. A column that already has a name of the package
    keeps it.

    Args:
        columns: A table.

    >>> with_known_names({"sentence": ["Good."], "labels": [1]})
    {'text': ['Good.'], 'label': [1]}
    """
    lower = {name.lower(): name for name in columns}
    ours: dict[str, str] = {}
    if not {"text", "text_pair", "context"} & lower.keys():
        pairs = [pair for pair in PAIRS if lower.keys() >= set(pair)]
        if len(pairs) == 1:
            first, second = (lower[name] for name in pairs[0])
            ours |= {first: "text", second: "text_pair"}
    for role, names in NAMES.items():
        fitting = [lower[name] for name in names if name in lower]
        if len(fitting) == 1 and role not in columns:
            ours.setdefault(fitting[0], role)
    named = {ours.get(name, name): column for name, column in columns.items()}
    if isinstance(columns, SourceColumns) or not ours:
        return with_rows_of(named, columns)
    return SourceColumns(named, names={ours[name]: name for name in ours})


def check_as_many(values: Any, name: str, others: Any, of: str) -> None:
    """Refuses two columns of which one is longer.

    Args:
        values: A column.
        name: What it is called in an error.
        others: The column that it belongs to.
        of: What that one is called.

    Raises:
        ValueError: Their lengths differ, both are named.
    """
    if len(values) != len(others):
        raise ValueError(
            f"`{name}` must hold as many texts as `{of}`, {len(others)}. "
            f"Received: {len(values)}."
        )


def as_list(values: Any, name: str) -> Any:
    """Returns a column of texts as a list, an array or the like.

    Args:
        values: A list, an array, or a column of a table.
        name: What the argument is called in an error.

    Raises:
        ValueError: `values` are a whole table, or have no order or no length.
    """
    if _is_table(values):
        raise ValueError(
            f"`{name}` must be one column of texts, such as `data['text']`. "
            f"Received: a whole {type(values).__name__}."
        )
    wrong = isinstance(values, str | bytes | Mapping | Set)
    if wrong or not has_length(values):
        remedy = ""
        if isinstance(values, str):
            remedy = "; a list may hold a single text"
        elif isinstance(values, Iterable) and not has_length(values):
            remedy = "; `list(...)` makes a list of it"
        raise ValueError(
            f"`{name}` must be a list of strings. Received: "
            f"{type(values).__name__}{remedy}."
        )
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _is_table(data: Any) -> bool:
    """Returns whether `data` are an object, not a class, with columns."""
    names = ("columns", "column_names")
    if isinstance(data, Mapping | type):
        return False
    # Asking the table itself might compute something.
    found = (inspect.getattr_static(data, name, None) for name in names)
    return any(value is not None for value in found)


def _of_table(data: Any, name: str) -> dict[str, Any]:
    """Returns the columns of a data frame, a `Dataset` or an Arrow table."""
    names = _names_of(data) if has_length(data) else None
    if names is None:
        raise _refusal(data, name)
    for column in names:
        if names.count(column) > 1:
            raise ValueError(
                f"`{name}` must give each column a name of its own. Received: "
                f"{column!r} twice."
            )
    if hasattr(data, "to_pydict"):  # Arrow would give scalars of its own
        return dict(data.to_pydict())
    if hasattr(data, "with_format"):  # `Dataset`: plain values, no tensors
        data = data.with_format(None)
    features = getattr(data, "features", None)
    if not isinstance(features, Mapping):
        features = {}
    return {
        column: _with_names(list(data[column]), features.get(column))
        for column in names
    }


def _with_names(column: list[Any], feature: Any) -> list[Any]:
    """Returns a column of a `Dataset` with the names of its classes.

    The numbers are those of the data set, and a model may count otherwise. A
    number below 0 stands for none.

    Args:
        column: Numbers, or lists of numbers.
        feature: What the data set says of them; None for nothing.
    """
    kind = getattr(feature, "feature", feature)
    names = getattr(kind, "names", None)
    if not isinstance(names, list | tuple) or all(map(str.isdigit, names)):
        return column

    def named(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [named(one) for one in value]
        if not is_integer(value) or value >= len(names):
            return value
        return None if value < 0 else names[value]

    return [named(value) for value in column]


def _names_of(data: Any) -> list[Any] | None:
    """Returns the names of the columns; None where they are not known."""
    names = getattr(data, "column_names", None)
    if names is None or callable(names):
        names = getattr(data, "columns", None)
    try:
        # An Arrow table has its columns themselves under `columns`.
        return None if names is None else list(names)
    except TypeError:
        return None


def _of_dict(data: Mapping, name: str) -> dict[str, Any]:
    """Returns a dict of columns; refuses a dict of data sets."""
    for key, value in data.items():
        if _is_table(value):
            names = ", ".join(map(str, data))
            raise ValueError(
                f"`{name}` must be one data set, such as `data[{key!r}]`. "
                f"Received: {type(data).__name__} of {names}."
            )
    return with_rows_of(data, data)


def _of_rows(data: Sequence, name: str) -> dict[str, Any]:
    """Returns the columns of a list of dicts."""
    if len(data) and not any(isinstance(row, Mapping) for row in data):
        raise _refusal(data, name)
    if not len(data):
        raise ValueError(
            f"`{name}` must hold columns of one length, 1 at least. Received: "
            "no row."
        )
    for row, values in enumerate(data):
        if not isinstance(values, Mapping):
            raise ValueError(
                f"`{name}[{row}]` must be a dict as the other rows. Received: "
                f"{type(values).__name__}."
            )
    # Rows of JSON often lack what only some have. A gap in a column that is
    # read is an error there, as None in a data frame is.
    keys = dict.fromkeys(key for values in data for key in values)
    return {key: [values.get(key) for values in data] for key in keys}


def has_length(data: Any) -> bool:
    """Returns whether `len` works; a generator or a stream has no length."""
    try:
        len(data)
    except TypeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Returns whether a cell is a gap: None, NaN, or the NA of pandas."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def _refusal(data: Any, name: str) -> ValueError:
    """Returns the error for what is no table, with what makes one of it."""
    remedy = ""
    if isinstance(data, str | os.PathLike):
        remedy = "; `load_dataset` reads a file"
    elif isinstance(data, list | tuple):
        remedy = (
            f" of {type(data[0]).__name__}; a dict such as "
            "{'text': ..., 'label': ...} names the columns"
        )
    elif hasattr(data, "collect"):  # a lazy frame of Polars
        remedy = "; `collect()` computes it"
    elif isinstance(data, Iterable) and not has_length(data):
        remedy = "; `list(...)` makes a list of its rows"
    return ValueError(
        f"`{name}` must be {REMEDY}. Received: {type(data).__name__}{remedy}."
    )
