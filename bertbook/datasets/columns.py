"""`as_columns`: any table as a dict of columns.

A table may be a dict of columns, a list of rows, a data frame of pandas or
Polars, a `Dataset` of Hugging Face or a table of Arrow. Each is known by what
it offers, so that none of these packages is imported.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any

REMEDY = (
    "a dict of columns, a list of dicts, a DataFrame or a `Dataset` of Hugging "
    "Face"
)


def as_columns(data: Any, name: str) -> dict[str, Any]:
    """Returns a table as a dict of columns; the table stays as it is.

    Args:
        data: A dict of columns, a list of dicts that have the same keys, a
            data frame of pandas or Polars, a `Dataset` of Hugging Face, or a
            table of Arrow.
        name: What the argument is called in an error.

    Returns:
        The columns by name, in the order of the table, the rows of each in
        the order of the table. The columns of a dict are those that it holds.

    Raises:
        ValueError: `data` are none of these, a row lacks a key of the first
            row, two columns have one name, or a name is no string.
    """
    if _is_table(data):
        columns = _of_table(data, name)
    elif isinstance(data, Mapping):
        columns = _of_dict(data, name)
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        columns = _of_rows(data, name)
    else:
        raise ValueError(
            f"`{name}` must be {REMEDY}. Received: {_describe(data)}."
        )
    for column in columns:
        if not isinstance(column, str):
            raise ValueError(
                f"`{name}` must have strings as names of columns. Received: "
                f"{column!r}."
            )
    return columns


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
        raise ValueError(
            f"`{name}` must be a list of strings. Received: "
            f"{_describe(values)}."
        )
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _is_table(data: Any) -> bool:
    """Returns whether `data` are an object, not a class, with columns."""
    names = ("columns", "column_names")
    is_dict = isinstance(data, Mapping | type)
    return not is_dict and any(hasattr(data, n) for n in names)


def _of_table(data: Any, name: str) -> dict[str, Any]:
    """Returns the columns of a data frame, a `Dataset` or an Arrow table."""
    names = _names_of(data)
    if names is None or not has_length(data):
        raise ValueError(
            f"`{name}` must be {REMEDY}, with all rows at hand. Received: "
            f"{type(data).__name__}; `list(...)` of it gives rows."
        )
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
    return {column: list(data[column]) for column in names}


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
            raise ValueError(
                f"`{name}` must be one data set, such as `data[{key!r}]`. "
                f"Received: {type(data).__name__} of {', '.join(map(str, data))}."
            )
    return dict(data)


def _of_rows(data: Sequence, name: str) -> dict[str, Any]:
    """Returns the columns of a list of dicts."""
    if not len(data):
        raise ValueError(
            f"`{name}` must hold columns of one length, 1 at least. Received: "
            "no row."
        )
    for row, values in enumerate(data):
        if not isinstance(values, Mapping):
            raise ValueError(
                f"`{name}` must be {REMEDY}. Received: {_describe(data)}, with "
                f"{_describe(values)} in row {row}."
            )
        if values.keys() != data[0].keys():
            raise ValueError(
                f"`{name}[{row}]` must have the keys of the first row, "
                f"{', '.join(map(str, data[0]))}. Received: "
                f"{', '.join(map(str, values)) or 'none'}."
            )
    return {key: [values[key] for values in data] for key in data[0]}


def has_length(data: Any) -> bool:
    """Returns whether `len` works; a generator or a stream has no length."""
    try:
        len(data)
    except TypeError:
        return False
    return True


def _describe(value: Any) -> str:
    """Returns what a value is, in short."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"a string, {value[:40]!r}; `load_dataset` reads files"
    return type(value).__name__
