"""Counts of labels, and what is odd about them before a model learns them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bertbook.checks import as_number, is_integer, listed
from bertbook.datasets.cells import combined_labels
from bertbook.text.bio import split_tag

MOST_SHOWN = 20  # labels
FEW = 5  # rows of a class, from which little is learned
CONSTANT = 0.95  # share of rows with one label, above which it is nearly all
LEAST_ROWS = 20  # a share of fewer rows says little
SEPARATORS = re.compile(r"[\s_./&-]+")
NUMBER = re.compile(r"-?[0-9][0-9.,]*")
NO_NAMES = (
    *("n/a", "na", "<na>", "#n/a", "nan", "nat", "none", "null", "nil"),
    *("-", "--", "?", "missing", "undefined", "tbd"),
)


def labels_of(data: Mapping[str, Any]) -> list[list[Any]]:
    """Returns the labels of each row: classes, types of entities, a place.

    Args:
        data: Columns of a task.

    Returns:
        A list for each row; none at all for questions and for scores.

    >>> labels_of({"tags": [["B-PER", "I-PER", "O"], ["O"]]})
    [['PER'], []]
    """
    if "tags" in data:
        return [_types(tags) for tags in data["tags"]]
    column = data.get("label", [])
    if any(isinstance(value, float | np.floating) for value in column):
        return []
    return [
        [*value] if isinstance(value, list | tuple | set) else [value]
        for value in column
    ]


def _types(tags: Sequence[Any]) -> list[str]:
    """Returns the type of each entity; tags may be numbers, which have none."""
    types = []
    before = ""
    for tag in tags:
        if is_integer(tag):
            return []
        begin, kind = split_tag(tag)
        if kind and (begin == "B" or kind != before):
            types.append(kind)
        before = kind
    return types


def counted(data: Mapping[str, Any]) -> str:
    """Returns how often each label occurs, the most frequent first.

    >>> counted({"label": ["b", "a", "b"]})
    'b (2), a (1)'
    """
    counts = Counter(x for labels in labels_of(data) for x in labels)
    return listed((f"{x} ({n:,})" for x, n in counts.most_common()), MOST_SHOWN)


def remarks_on_labels(
    train: Mapping[str, Any], dev: Mapping[str, Any] | None = None
) -> list[str]:
    """Returns what is odd about the names of labels and how often they occur.

    Args:
        train: Columns to learn from.
        dev: Columns to measure on.

    >>> remarks_on_labels({"label": ["IT", "it"] * 5})
    ['labels that may be one: IT (5 rows), it (5 rows)']
    """
    counts = Counter(x for row in labels_of(train) for x in row)
    if "choices" in train:
        return []
    remarks = []
    for names in _variants(counts):
        one = listed(f"{name} ({_rows(counts[name])})" for name in names)
        remarks.append(f"labels that may be one: {one}")
    missing = [x for x in counts if str(x).strip().casefold() in NO_NAMES]
    if missing:
        one = listed(f"{name} ({_rows(counts[name])})" for name in missing)
        remarks.append(f"labels that may stand for none: {one}")
    remarks += _remark_on_combined(train.get("label", ()), counts)
    few = [f"{x} ({n})" for x, n in counts.most_common() if n < FEW]
    if few:
        remarks.append(
            f"labels with fewer than {FEW} rows, too few to learn: "
            f"{listed(few)}"
        )
    measured = Counter(x for row in labels_of(dev or {}) for x in row)
    new = [str(label) for label in measured if label not in counts]
    if new:
        remarks.append(f"labels of dev that train lacks: {listed(new)}")
    return remarks


def _remark_on_combined(labels: Sequence[Any], counts: Counter) -> list[str]:
    """Returns the remark on labels that may be several in one text."""
    mark, several = combined_labels(labels)
    if not several:
        return []
    several = sorted(several, key=lambda name: -counts[name])
    one = listed((f"{name} ({_rows(counts[name])})" for name in several), 5)
    return [
        f"labels that may be several, separated by {mark}: {one}; `--task "
        "several-labels` reads them so"
    ]


def _rows(count: int) -> str:
    """Returns a number of rows."""
    return f"{count:,} row{'s' * (count != 1)}"


def _variants(counts: Counter) -> list[list[str]]:
    """Returns groups of names that differ in case and separators alone."""
    groups: dict[str, list[str]] = {}
    for name, _ in counts.most_common():
        if isinstance(name, str) and not NUMBER.fullmatch(name):
            plain = SEPARATORS.sub("", name.casefold())
            groups.setdefault(plain or name, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def nearly_constant(data: Mapping[str, Any]) -> str | None:
    """Returns what nearly all rows have to learn; None where they differ.

    Args:
        data: Columns of a task: tags, answers, or labels of any kind.

    >>> nearly_constant({"label": ["ham"] * 99 + ["spam"]})
    '99 of 100 rows have the label ham'
    """
    values, what = _values(data)
    if len(values) < LEAST_ROWS:
        return None
    ((value, count),) = Counter(values).most_common(1)
    if count > CONSTANT * len(values) and (what or value == ""):
        shown = f"{what} {value}" if what else NOTHING[_learned(data)]
        return f"{count:,} of {len(values):,} rows have {shown}"
    numbers = np.array([as_number(value) for value in values])
    if what == "the number" and np.ptp(numbers) <= 1e-3 * abs(numbers).max():
        return (
            f"all {len(values):,} rows have nearly the same number, from "
            f"{numbers.min():g} to {numbers.max():g}"
        )
    return None


NOTHING = {"tags": "no entity, their tags are all O", "answers": "no answer"}


def _learned(data: Mapping[str, Any]) -> str:
    """Returns the column that is learned."""
    return next(n for n in ("tags", "answers", "label") if n in data)


def _values(data: Mapping[str, Any]) -> tuple[list[Any], str]:
    """Returns a value for each row, and what it is; "" for one or none."""
    if "tags" in data:
        rows = data["tags"]
        if any(is_integer(tag) for tags in rows for tag in tags):
            return [], ""
        return ["x" * any(tag != "O" for tag in tags) for tags in rows], ""
    if "answers" in data:
        return ["x" * bool(answers) for answers in data["answers"]], ""
    column = data.get("label", [])
    if "choices" in data:
        return [*column], "the right choice at place"
    if any(isinstance(value, float | np.floating) for value in column):
        return [*column], "the number"
    rows = [tuple(map(str, labels)) for labels in labels_of(data)]
    if all(len(labels) == 1 for labels in rows):
        return [labels[0] for labels in rows], "the label"
    return [listed(labels) or "none" for labels in rows], "the labels"
