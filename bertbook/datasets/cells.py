"""Values of own tables: texts, lists, weights, and columns of labels.

A value of CSV is a text; one of JSON or Parquet has a type. What is missing or
of another type is an error that names the place and the column.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bertbook.checks import as_number, check_text, is_integer
from bertbook.files import parse_json

LARGEST_INTEGER = 2**63
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
CODE = re.compile(r"0[0-9]+")  # such as 007, whose zeros belong to it
DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?")
HAS_COMMA = "`mended=[]` reads decimal commas"  # advice
COMMA = re.compile(r"-?[0-9]+,[0-9]+")
SEVERAL = re.compile(r"[|;]|([0-9]+[|;])+[0-9]*")  # numbers of labels
FLAGS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
# What a column of labels may hold together, and what it is then read as.
TOGETHER = {
    frozenset({"integer"}): int,
    frozenset({"truth"}): int,
    frozenset({"decimal"}): float,
    frozenset({"integer", "decimal"}): float,
    frozenset({"word"}): str,
    frozenset({"code"}): str,
    frozenset({"code", "integer"}): str,
    frozenset({"code", "word"}): str,
    frozenset({"list"}): list,
}
WHAT = {int: "an integer", float: "a number", str: "a name", list: "a list"}
# A text in quotes, which stays, or an array, of which its list does.
ARRAY = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
    r"""|array\((?P<list>\[[^\[\]]*\])(?:,\s*dtype=[\w.]+)?\)"""
)
NO_LITERAL = (
    ValueError,
    SyntaxError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)
VALUES = tokenize.STRING, tokenize.NUMBER, tokenize.NAME
SEPARATORS = "|;,"  # of several labels in a cell
NONE_HOLDS = "in a cell says that none of several labels holds"


class MissingLabel(ValueError):
    """A label that is not there."""


def parse_value(text: str, name: str) -> Any:
    """Returns the value of a cell: JSON, or as Python or NumPy print it.

    pandas writes a list as `['a', 'b']`, and an array as `['a' 'b']`.

    Args:
        text: The cell.
        name: The file, the line and the column, for messages.

    Raises:
        ValueError: The text is neither.

    >>> parse_value("['a' 'b']", "")
    ['a', 'b']
    """
    try:
        return parse_json(text, name)
    except ValueError as error:
        try:
            text = ARRAY.sub(lambda one: one["list"] or one[0], text.strip())
            return ast.literal_eval(_with_commas(text))
        except NO_LITERAL:
            raise error from None


def _with_commas(text: str) -> str:
    """Returns a list in Python; NumPy prints its values without commas."""
    parts: list[str] = []
    was_value = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_value = token.type in VALUES
        if token.type in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER):
            continue
        if is_value and was_value:
            parts.append(",")
        parts.append(token.string)
        was_value = is_value
    return " ".join(parts)


def text_of(place: str, column: str, value: Any, exact: bool) -> str:
    """Returns a text; one that is not exact without the spaces around it.

    Args:
        place: The file and the line, for messages.
        column: The name of the column.
        value: What the table holds.
        exact: Whether each character counts, as in a context of answers.

    Raises:
        ValueError: It is no text, or has nothing but spaces.
    """
    if not isinstance(value, str):
        raise ValueError(
            f"{place}: `{column}` must be a text. Received: {shown(value)}."
        )
    try:
        check_text(value, column)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    if not value.strip():
        raise ValueError(
            f"{place}: `{column}` must hold a text. Received: {value!r}."
        )
    return value if exact else value.strip()


def list_of(place: str, column: str, value: Any, typed: bool) -> list[Any]:
    """Returns a list; in a table without types it is written as a text.

    Args:
        place: As in `text_of`; `column` and `value` alike.
        column: The name of the column.
        value: What the table holds.
        typed: Whether values have types.

    Raises:
        ValueError: It is no list, or an empty one.
    """
    if not typed:
        value = parse_value(value, f"{place}, `{column}`")
    if not isinstance(value, list) or not value:
        raise ValueError(
            f"{place}: `{column}` must be a list of one value or more. "
            f"Received: {shown(value)}."
        )
    return value


def weight_of(place: str, column: str, value: Any, typed: bool) -> float:
    """Returns a weight.

    The arguments are those of `list_of`.

    Raises:
        ValueError: It is no finite number, or below 0.
    """
    number = as_number(value)
    if not typed and DECIMAL.fullmatch(value.strip()):
        number = float(value)
    if not 0 <= number < float("inf"):
        has_comma = isinstance(value, str) and COMMA.fullmatch(value.strip())
        advice = f"; {HAS_COMMA}" if has_comma else ""
        raise ValueError(
            f"{place}: `{column}` must be a finite number, 0 or above{advice}. "
            f"Received: {shown(value)}."
        )
    return number


def decimal_commas(values: Sequence[str]) -> dict[int, str]:
    """Returns numbers that have a decimal comma with a point in its place.

    Args:
        values: A column of texts.

    Returns:
        The number by its row. There is none where a value has a point, and
        none where most values are no numbers.

    >>> decimal_commas(["5,00", "3", "4,25"])
    {0: '5.00', 2: '4.25'}
    """
    values = [value.strip() for value in values]
    commas = [row for row, x in enumerate(values) if COMMA.fullmatch(x)]
    points = [x for x in values if "." in x and DECIMAL.fullmatch(x)]
    numbers = len(commas) + sum(map(bool, map(INTEGER.fullmatch, values)))
    if points or 2 * numbers <= len(values):
        return {}
    return {row: values[row].replace(",", ".") for row in commas}


def read_labels(
    file: Any,
    places: Sequence[str],
    values: Sequence[Any],
    typed: bool,
    column: str = "label",
) -> list[Any]:
    """Returns a column of labels: integers, scores, names, or lists of labels.

    All of a column have one type. Truth values are 0 and 1. Spaces around a
    name are left out.

    Args:
        file: The file, for messages.
        places: The line of each value.
        values: What the table holds.
        typed: Whether values have types; else lists are written as JSON.
        column: What the file calls the column.

    Raises:
        ValueError: A label is missing, or two are of different types.
    """
    if not typed and all(value.strip().startswith("[") for value in values):
        typed, values = (
            True,
            [
                parse_value(value, f"{file}, {place}, `{column}`")
                for place, value in zip(places, values, strict=True)
            ],
        )
    values = [x.strip() if isinstance(x, str) else x for x in values]
    first: dict[str, int] = {}
    for row, (place, value) in enumerate(zip(places, values, strict=True)):
        kind = kind_of_label(f"{file}, {place}", value, typed, column)
        first.setdefault(kind, row)
    if "comma" in first and first.keys() <= {"comma", "integer"}:
        row = first["comma"]
        raise ValueError(
            f"{file}, {places[row]}: `{column}` must have a decimal point, as "
            f"in 3.5, where it is a score; {HAS_COMMA}. Received: "
            f"{values[row]!r}."
        )
    kinds = frozenset(_as_words(first))
    if kinds not in TOGETHER:
        rows = sorted(first.values())[:2]
        raise ValueError(
            f"{file}: `{column}` must be all integers, all scores, all names "
            "or all lists; a missing label has no word of its own. Received: "
            + " and ".join(f"{shown(values[r])} in {places[r]}" for r in rows)
            + "."
        )
    change = TOGETHER[kinds]
    return [change(value) for value in values]


def kind_of_label(
    place: str, value: Any, typed: bool, column: str = "label"
) -> str:
    """Returns what a label is; the arguments are those of `list_of`.

    Raises:
        MissingLabel: It is missing.
        ValueError: It is none of a name, a number and a list.
    """
    value = value.strip() if isinstance(value, str) else value
    missing = value is None or value == "" or _is_nan(value)
    if missing:
        raise MissingLabel(
            f"{place}: `{column}` must not be missing. Received: "
            f"{shown(value)}."
        )
    if isinstance(value, str):
        _check_name(place, value, column)
        return "word" if typed else _kind_of_text(value)
    if isinstance(value, list):
        _check_list(place, value, column)
        return "list"
    if isinstance(value, bool | np.bool_):
        return "truth"
    if is_integer(value) and abs(value) < LARGEST_INTEGER:
        return "integer"
    if is_integer(value):
        raise ValueError(
            f"{place}: `{column}` must be an integer of 64 bits. Received: "
            f"{shown(value)}."
        )
    if abs(as_number(value)) < float("inf"):  # not NaN either
        return "decimal"
    raise ValueError(
        f"{place}: `{column}` must be a name, a finite number or a list of "
        f"labels. Received: {shown(value)}."
    )


def _check_name(place: str, value: str, column: str) -> None:
    """Refuses a name that no file can hold."""
    try:
        check_text(value, column)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _kind_of_text(value: str) -> str:
    """Returns what a label is that is written as text."""
    forms = {
        "integer": INTEGER,
        "code": CODE,
        "comma": COMMA,
        "several": SEVERAL,
    }
    for kind, form in forms.items():
        if form.fullmatch(value):
            return kind
    if value.startswith("[") and _is_json(value):
        return "list"
    number = DECIMAL.fullmatch(value) and set(value) & set(".eE")
    return "decimal" if number and abs(float(value)) < 1e38 else "word"


def _as_words(kinds: Iterable[str]) -> list[str]:
    """Returns kinds of labels, those made names that only look like numbers.

    One number stands beside several, as in 1|2, for one label.
    """
    kinds = [*kinds]
    words = {"comma", "several"}
    if "several" in kinds and words | {"integer"} >= set(kinds):
        words.add("integer")
    return ["word" if kind in words else kind for kind in kinds]


def _is_json(value: str) -> bool:
    """Returns whether a text is JSON."""
    try:
        parse_value(value, "")
    except ValueError:
        return False
    return True


def _check_list(place: str, labels: list[Any], column: str) -> None:
    """Refuses a list that holds anything but names or anything but numbers."""
    names = [isinstance(label, str) and bool(label) for label in labels]
    for label in labels:
        if isinstance(label, str):
            _check_name(place, label, column)
    numbers = [as_number(label) == as_number(label) for label in labels]
    truths = [isinstance(label, bool) for label in labels]
    if not any(map(all, (names, numbers, truths))):
        raise ValueError(
            f"{place}: `{column}` must be a list of names, of integers, or of "
            f"zeros and ones. Received: {shown(labels)}."
        )


def combined_labels(labels: Iterable[Any]) -> tuple[str, list[str]]:
    """Returns the labels that may be several in one text, and what separates.

    Most parts of these are labels by themselves, or stand beside others too.

    >>> combined_labels(["bug", "ui", "bug|ui"])
    ('|', ['bug|ui'])
    """
    names = dict.fromkeys(x for x in labels if isinstance(x, str))
    for mark in SEPARATORS:
        parts = {
            name: {part.strip() for part in name.split(mark)} - {""}
            for name in names
        }
        counts = Counter(part for each in parts.values() for part in each)
        several = [name for name in names if len(parts[name]) > 1]
        known = [x for x in several if all(counts[y] > 1 for y in parts[x])]
        if known and 2 * len(known) >= len(several):
            return mark, several
    return "", []


def none_holds(labels: Sequence[Any], typed: bool) -> str:
    """Returns how a table of several labels says that none of them holds.

    Args:
        labels: The labels of its other rows.
        typed: Whether values have types.

    Returns:
        A clause; "" for a table that has one label a row.
    """
    if any(
        isinstance(x, list) or (not typed and x.strip().startswith("["))
        for x in labels
    ):
        return f"`[]` {NONE_HOLDS}"
    return f"`|` {NONE_HOLDS}" if combined_labels(labels)[0] else ""


def held_names(
    place: str, names: Sequence[str], values: Sequence[Any]
) -> list[str]:
    """Returns the names of the columns that hold 1 in a row.

    Args:
        place: The file and the line, for messages.
        names: The names of columns of zeros and ones.
        values: The value of each.

    Raises:
        ValueError: A value is neither 0 nor 1.
    """
    held = []
    for name, value in zip(names, values, strict=True):
        flag = value.strip().lower() if isinstance(value, str) else value
        if isinstance(flag, list) or flag not in (0, 1, *FLAGS):
            raise ValueError(
                f"{place}: `{name}` must be 0 or 1, as one of "
                f"several columns of labels. Received: {shown(value)}."
            )
        if FLAGS.get(flag, flag):
            held.append(name)
    return held


def odd_labels(
    values: Sequence[Any], typed: bool, column: str
) -> dict[int, str]:
    """Returns what is wrong with labels of another kind than most.

    Args:
        values: Labels, of which `kind_of_label` knows the kind.
        typed: Whether values have types.
        column: What their column is called.

    Returns:
        A message by the number of a row. There is none where one kind goes
        with all others, and none where no kind is that of most rows.
    """
    kinds = [kind_of_label("", value, typed) for value in values]
    if set(kinds) <= {"comma", "integer", "decimal"}:  # 3,5 is for 3.5
        return {}
    kinds = _as_words(kinds)
    counts = Counter(kinds)
    together = [kinds for kinds in TOGETHER if kinds <= counts.keys()]
    if frozenset(counts) in TOGETHER or not together:
        return {}
    most = max(together, key=lambda kinds: sum(counts[k] for k in kinds))
    share = sum(counts[kind] for kind in most)
    if 2 * share <= len(kinds):
        return {}
    what = WHAT[TOGETHER[most]]
    return {
        row: f"`{column}` must be {what}, as in {share:,} of {len(kinds):,} "
        f"rows. Received: {shown(values[row])}."
        for row, kind in enumerate(kinds)
        if kind not in most
    }


def _is_nan(value: Any) -> bool:
    """Returns whether a value is the number that is none."""
    return isinstance(value, float) and value != value


def shown(value: Any) -> str:
    """Returns a value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
