"""Labels of a head: how many, their names, and columns as integers.

Differences: none; the keys of the config are those of Hugging Face.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from bertbook.checks import is_integer
from bertbook.config import BertConfig
from bertbook.text.bio import split_tag

REGRESSION = "regression"
ONE_LABEL = "single_label_classification"
SEVERAL_LABELS = "multi_label_classification"
PROBLEMS = (REGRESSION, ONE_LABEL, SEVERAL_LABELS)


def choose_labels(
    config: BertConfig,
    num_labels: int | None,
    id2label: Mapping[int, str] | None,
) -> tuple[BertConfig, int]:
    """Returns a config that knows the labels of a head, and their number.

    Args:
        config: The config of the encoder, perhaps with the labels of a head.
        num_labels: K; None for those that are known, else 2.
        id2label: Names of the labels; None for those that are known.

    Raises:
        ValueError: There is no label, two have one name, or both arguments
            contradict each other.
    """
    if id2label is not None:
        config = config.replace(id2label=id2label)
        if len(set(id2label.values())) < len(id2label):
            raise ValueError(
                "`id2label` must give each label a name of its own. "
                f"Received: {dict(id2label)!r}."
            )
    known = config.extra.get("num_labels", 2)
    if config.id2label is not None:
        known = len(config.id2label)
    if num_labels is None:
        num_labels = known
    if not is_integer(num_labels) or num_labels < 1:
        raise ValueError(
            f"`num_labels` must be an integer >= 1. Received: {num_labels!r}."
        )
    extra = {**config.extra, "num_labels": num_labels}
    if known != num_labels:
        if id2label is not None:
            raise ValueError(
                "`num_labels` must be the number of names in `id2label`. "
                f"Received: {num_labels} and {len(id2label)} names."
            )
        for name in ("problem_type", "label2id"):
            extra.pop(name, None)  # these describe the old head
        config = config.replace(id2label=None)
    return config.replace(extra=extra), num_labels


def choose_problem(problem_type: str | None, num_labels: int) -> str:
    """Returns what the logits mean: a number, one label, or several.

    Raises:
        ValueError: `problem_type` is unknown, or a regression has more than one
            label.
    """
    if problem_type is None:
        return REGRESSION if num_labels == 1 else ONE_LABEL
    if problem_type not in PROBLEMS:
        raise ValueError(
            f"`problem_type` must be one of {', '.join(PROBLEMS)}. "
            f"Received: {problem_type!r}."
        )
    if problem_type == REGRESSION and num_labels != 1:
        raise ValueError(
            f"`num_labels` must be 1 for a regression. Received: {num_labels}."
        )
    return problem_type


def names_of(column: Iterable[Any]) -> list[str] | None:
    """Returns the names of the labels of a column, sorted; None for numbers.

    Args:
        column: Labels, or lists of labels.
    """
    flat = [
        label
        for value in column
        for label in (
            value if isinstance(value, list | tuple | set) else [value]
        )
    ]
    if flat and all(isinstance(label, str) for label in flat):
        return sorted(set(flat))
    return None


def names_of_tags(column: Iterable[Sequence[str]]) -> list[str]:
    """Returns B- and I- for every type that occurs in tags, and O.

    A type that occurs with B- alone gets its I- too.

    Raises:
        ValueError: A tag is not BIO, or a row is no list; it is named.
    """
    kinds = set()
    for row, tags in enumerate(column):
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            raise ValueError(
                f"`tags[{row}]` must be a list of tags. Received: {tags!r}."
            )
        try:
            kinds |= {split_tag(tag, n)[1] for n, tag in enumerate(tags)}
        except ValueError as error:
            raise ValueError(f"Row {row}: {error}") from None
    kinds.discard("")
    return sorted([f"{b}-{kind}" for kind in kinds for b in "BI"]) + ["O"]


def number_labels(
    column: Sequence[Any],
    num_labels: int,
    problem: str,
    id2label: Mapping[int, str] | None,
) -> np.ndarray:
    """Turns a column of labels into what a loss takes.

    Args:
        column: R integers or names; lists of those that hold for several
            labels at once, not rows of zeros and ones; floats for a
            regression.
        num_labels: K.
        problem: One of `PROBLEMS`.
        id2label: What the labels are called.

    Returns:
        `(R,)` int32; for several labels `(R, K)` float32, 0 or 1; for a
        regression `(R, 1)` float32.

    Raises:
        ValueError: A label is out of range or of the wrong kind, or occurs
            twice in a row; the row is named.
    """
    if problem == REGRESSION:
        return np.array([[_number(v, i)] for i, v in enumerate(column)], "f4")
    ids = {name: i for i, name in (id2label or {}).items()}
    if problem == ONE_LABEL:
        numbers = [
            _label(value, row, num_labels, ids)
            for row, value in enumerate(column)
        ]
        return np.array(numbers, "int32")
    several = np.zeros((len(column), num_labels), "float32")
    for row, values in enumerate(column):
        if not isinstance(values, list | tuple | set):
            raise ValueError(
                f"`label[{row}]` must be a list of labels for a model with "
                f"several labels at once. Received: {values!r}."
            )
        numbers = [_label(value, row, num_labels, ids) for value in values]
        if len(set(numbers)) < len(numbers):
            raise ValueError(
                f"`label[{row}]` must name each label once, those that hold; "
                f"it is no row of zeros and ones. Received: {values!r}."
            )
        several[row, numbers] = 1.0
    return several


def _label(value, row, num_labels, ids) -> int:
    """Returns the number of one label."""
    if isinstance(value, str):
        if value in ids:
            return ids[value]
        rule = f"one of {', '.join(ids)}" if ids else "a number"
        raise ValueError(
            f"`label[{row}]` must be {rule}: the model has no such label. "
            f"Received: {value!r}."
        )
    if not is_integer(value) or not 0 <= value < num_labels:
        raise ValueError(
            f"`label[{row}]` must be an integer in [0, {num_labels}), the "
            f"labels of the model. Received: {value!r}."
        )
    return int(value)


def _number(value, row) -> float:
    """Returns one value of a regression."""
    number = float(value) if isinstance(value, Real) else float("nan")
    if not np.isfinite(number):
        raise ValueError(
            f"`label[{row}]` must be a finite number for a model with "
            f"`num_labels=1`. Received: {value!r}."
        )
    return number
