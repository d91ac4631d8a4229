"""Labels of a head: how many, their names, and columns as integers.

Differences: none; the keys of the config are those of Hugging Face.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from bertbook.checks import as_number, each_row, is_integer, listed
from bertbook.config import PROBLEM_TYPES, BertConfig, check_kind
from bertbook.datasets.cells import INTEGER
from bertbook.text.bio import other_scheme, split_tag

PROBLEMS = PROBLEM_TYPES
REGRESSION, ONE_LABEL, SEVERAL_LABELS = PROBLEMS
TRUTH = (bool, np.bool_)
LARGEST_SCORE = float(np.finfo("float32").max)


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
    check_kind(config, BertConfig)
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
        names = "problem_type", "label2id", "label_thresholds"
        for name in (*names, "bertbook_finetuning"):
            extra.pop(name, None)  # these describe the old head
        config = config.replace(id2label=None)
    return config.replace(extra=extra), num_labels


def has_open_labels(
    config: BertConfig, num_labels: int | None, id2label: Any
) -> bool:
    """Returns whether neither a config nor an argument tells of labels.

    The arguments are those of `choose_labels`.
    """
    told = config.extra.get("num_labels"), config.id2label, num_labels, id2label
    return all(value is None for value in told)


def choose_problem(problem_type: str | None, num_labels: int) -> str:
    """Returns what the logits mean: a number, one label, or several.

    Raises:
        ValueError: `problem_type` is unknown, or a regression has more than one
            label.
    """
    if problem_type is None:
        return REGRESSION if num_labels == 1 else ONE_LABEL
    if not isinstance(problem_type, str) or problem_type not in PROBLEMS:
        raise ValueError(
            f"`problem_type` must be one of {', '.join(PROBLEMS)}. "
            f"Received: {problem_type!r}."
        )
    if problem_type == REGRESSION and num_labels != 1:
        raise ValueError(
            f"`num_labels` must be 1 for a regression. Received: {num_labels}."
        )
    return problem_type


def names_of(
    column: Iterable[Any], num_labels: int | None = None
) -> list[str] | None:
    """Returns the names of the labels of a column, sorted; None for numbers.

    Integers are numbers of labels where the model has such labels, or one is 0.
    Others, such as one to five stars for a model with five labels, are names:
    "1" to "5". So are -1, 0 and 1 for a model with three.

    Args:
        column: Labels, or lists of labels.
        num_labels: K; None where every integer is the number of a label.
    """
    column = list(column)
    rows = any(map(_is_row, column))
    flat = [
        label
        for value in column
        for label in (value if _is_row(value) else [value])
    ]
    if flat and all(isinstance(label, str) for label in flat):
        return sorted_names(set(map(str, flat)))  # not strings of NumPy
    if num_labels is None or rows or not all(map(is_integer, flat)):
        return None
    names = {str(int(label)) for label in flat}
    if 0 in flat and not (min(flat) < 0 and len(names) == num_labels):
        return None  # a single -1 often marks a row without a label
    if all(0 < label < num_labels for label in flat):
        return None
    return sorted_names(names)


def check_names(column: Iterable[Any]) -> None:
    """Refuses a label without a name, as a table has where one is missing.

    Raises:
        ValueError: A label is an empty text; its row is named.
    """

    def check(row, value):
        for label in value if _is_row(value) else [value]:
            if isinstance(label, str) and not label.strip():
                raise ValueError(
                    f"`label[{row}]` must not be missing. Received: {label!r}."
                )

    each_row(check, column)


def sorted_names(names: set[str]) -> list[str]:
    """Returns names in order: "2" before "10" where all are integers."""
    if all(INTEGER.fullmatch(name) for name in names):
        return sorted(names, key=int)
    return sorted(names)


def _is_row(value: Any) -> bool:
    """Returns whether a value is a list of labels, not one label."""
    if isinstance(value, list | tuple | set | frozenset):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 1


def names_of_tags(column: Iterable[Sequence[str]]) -> list[str]:
    """Returns B- and I- for every type that occurs in tags, and O.

    A type that occurs with B- alone gets its I- too.

    Raises:
        ValueError: A tag is not BIO, or a row is no list; it is named.
    """

    def kinds_of(row, tags):
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            raise ValueError(
                f"`tags[{row}]` must be a list of tags. Received: {tags!r}."
            )
        return {_type_of_tag(tag, row, n) for n, tag in enumerate(tags)}

    kinds = set().union(*each_row(kinds_of, column))
    kinds.discard("")
    return sorted([f"{b}-{kind}" for kind in kinds for b in "BI"]) + ["O"]


def _type_of_tag(tag: Any, row: int, place: int) -> str:
    """Returns the type of the entity of a tag, "" for O."""
    try:
        return split_tag(tag)[1]
    except ValueError:
        advice = other_scheme(tag)
        if is_integer(tag):
            advice = "; integers need a model with `id2label`, which names them"
        raise ValueError(
            f"Row {row}: `tags[{place}]` must be O, B-TYPE or I-TYPE{advice}. "
            f"Received: {tag!r}."
        ) from None


def number_labels(
    column: Sequence[Any],
    num_labels: int,
    problem: str,
    id2label: Mapping[int, str] | None,
) -> np.ndarray:
    """Turns a column of labels into what a loss takes.

    Args:
        column: R integers or names. For several labels at once lists of those
            that hold, or rows of K zeros and ones. Floats for a regression.
        num_labels: K.
        problem: One of `PROBLEMS`.
        id2label: What the labels are called.

    Returns:
        `(R,)` int32; for several labels `(R, K)` float32, 0 or 1; for a
        regression `(R, 1)` float32.

    Integers are looked up by name where all names are integers. True and False
    alone are 1 and 0 where there are two labels.

    Raises:
        ValueError: A label is out of range or of the wrong kind, or occurs
            twice in a row; the row is named. Or rows may be numbers of labels
            as well as zeros and ones.
    """
    if problem == REGRESSION:
        numbers = each_row(_number, column)
        return np.array(numbers, "f4").reshape(-1, 1)
    ids = {name: i for i, name in (id2label or {}).items()}
    if problem == ONE_LABEL:
        if num_labels == 2 and all(isinstance(x, TRUTH) for x in column):
            column = list(map(int, column))  # as in files
        numbers = each_row(
            lambda row, value: _label(value, row, num_labels, ids), column
        )
        return np.array(numbers, "int32")
    each_row(_check_list, column)
    if _are_flags(column, num_labels):
        return np.array([list(values) for values in column], "float32")
    return _mark(column, num_labels, ids)


def _check_list(row, values) -> None:
    """Refuses what is no list of labels."""
    if not _is_row(values):
        raise ValueError(
            f"`label[{row}]` must be a list of labels for a model with "
            f"several labels at once. Received: {values!r}."
        )


def _mark(column, num_labels, ids) -> np.ndarray:
    """Turns lists of labels into rows of zeros and ones, `(R, K)`."""
    several = np.zeros((len(column), num_labels), "float32")

    def mark(row, values):
        numbers = [_label(value, row, num_labels, ids) for value in values]
        if len(set(numbers)) < len(numbers):
            raise ValueError(
                f"`label[{row}]` must name each label once, those that hold; "
                f"it is no row of zeros and ones, which has {num_labels} "
                f"values in every row. Received: {values!r}."
            )
        several[row, numbers] = 1.0

    each_row(mark, column)
    return several


def _are_flags(column, num_labels) -> bool:
    """Returns whether lists are rows of K zeros and ones, not label numbers.

    Raises:
        ValueError: They may be both: `[0, 1]` in every row, for two labels.
    """
    values = [value for row in column for value in row]
    if not values or not all(_is_flag(value) for value in values):
        return False
    if any(len(row) != num_labels for row in column):
        return False
    rows = [list(row) for row in column if not isinstance(row, set | frozenset)]
    if len(rows) < len(column):
        return False
    # Nobody lists numbers of labels as 1, 0; but 0, 1 may be both.
    either = all(row == list(range(num_labels)) for row in rows)
    if either and all(map(is_integer, values)):
        raise ValueError(
            "`label` must tell numbers of labels from zeros and ones: every "
            f"row is {rows[0]}. Write the names of those that hold, or zeros "
            f"and ones as floats. Received: {len(rows)} rows."
        )
    return True


def _is_flag(value) -> bool:
    """Returns whether a value is 0 or 1, of any type of number, or a bool."""
    return isinstance(value, Real | np.bool_) and value in (0, 1)


def _label(value, row, num_labels, ids) -> int:
    """Returns the number of one label."""
    if is_integer(value) and ids and all(map(INTEGER.fullmatch, ids)):
        value = str(int(value))
    if isinstance(value, str):
        if value in ids:
            return ids[value]
        rule = f"one of {listed(ids)}" if ids else "a number"
        raise ValueError(
            f"`label[{row}]` must be {rule}: the model has no such label. "
            f"Received: {value!r}."
        )
    if not is_integer(value) or not 0 <= value < num_labels:
        raise ValueError(
            f"`label[{row}]` must be an integer in [0, {num_labels}), the "
            f"labels of the model{_advice(value)}. Received: {value!r}."
        )
    return int(value)


def _advice(value) -> str:
    """Returns what to do with a label that is no integer, in a few words."""
    if _is_row(value):
        return (
            "; for several labels a row load it with "
            f"`problem_type={SEVERAL_LABELS!r}`, for one give its number alone"
        )
    if isinstance(value, Real | np.bool_) and not is_integer(value):
        return (
            "; write classes as integers, for example by `.astype(int)`, or as "
            "names, and lists of labels as the labels that hold, or as rows of "
            "K zeros and ones, and load a model for scores with `num_labels=1`"
        )
    return ""


def _number(row, value) -> float:
    """Returns one value of a regression."""
    number = as_number(value)
    if not abs(number) <= LARGEST_SCORE:  # NaN is not
        raise ValueError(
            f"`label[{row}]` must be a finite number for a model with "
            f"`num_labels=1`. Received: {value!r}."
        )
    return number
