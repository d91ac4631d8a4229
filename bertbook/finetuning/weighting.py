"""Weights of rows and of labels: how much each row counts in the loss.

Only the ratios of weights count: they are divided by their mean. A row of
weight 0 is left out, so that a run is the same as one without it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bertbook.checks import as_number, each_row, is_integer, listed
from bertbook.tasks.labels import ONE_LABEL
from bertbook.tasks.text_tasks import Texts

BALANCED = "balanced"


def weigh(task: Any, class_weight: Any = None) -> list[float] | None:
    """Weighs the rows of a task that has learned its labels.

    Args:
        task: The task; a column `weight` of its data weighs its rows.
        class_weight: A dict of the weight of each label, by its name or its
            number, 1 for one that is not there; or "balanced", which gives a
            label that n of N rows have, of K that occur, the weight N / (K n).

    Returns:
        The weight of each label; None without `class_weight`.

    Raises:
        ValueError: A weight is no finite number or below 0, all are 0, a
            label is unknown, or a row has not one label.
    """
    weights = np.ones(1 + int(task.owners().max()))
    if "weight" in task.data:
        weights = _row_weights(task.data["weight"])
    by_label = None
    if class_weight is not None:
        by_label = label_weights(task, class_weight, weights > 0)
        largest = max(by_label.max(), 1e-300)  # a product may be too large
        factors = (by_label / largest)[task.rows.targets[""]]
        weights = weights / weights.max() * factors
        if not weights.any():
            raise ValueError(
                "`class_weight` must leave a row with a weight above 0. "
                f"Received: {class_weight!r}."
            )
    _set_weights(task, weights[task.owners()])
    return None if by_label is None else by_label.tolist()


def weights_of(task: Any, by_label: list[float] | None) -> np.ndarray:
    """Returns how much each row of a dev set counts in its loss, `(R,)`.

    As in training, by its column `weight` and by its label, 1 on average over
    the rows that count; where none would, all count alike.

    Args:
        task: A task that has learned its labels.
        by_label: What `weigh` returned for the rows of the training.

    Raises:
        ValueError: A weight is no finite number or below 0, or all are 0.
    """
    weights = np.ones(len(task.rows))
    if "weight" in task.data:
        column = _row_weights(task.data["weight"])
        weights = (column / column.max())[task.owners()]
    if by_label is not None:
        factors = np.array(by_label) / max(by_label)
        weights = weights * factors[task.rows.targets[""]]
    is_counted = weights > 0
    if not is_counted.any():
        return np.ones(len(weights))
    return weights / weights[is_counted].mean()


def label_weights(
    task: Any, class_weight: Any, counted: np.ndarray
) -> np.ndarray:
    """Returns the weight of each label, `(K,)`; the rest is as in `weigh`.

    Source: "balanced" is that of `compute_class_weight` in scikit-learn.

    Args:
        task: The task.
        class_weight: As in `weigh`.
        counted: Which rows count, `(N,)` bool.

    Raises:
        ValueError: The model has no labels to weigh, or `class_weight` names
            labels that are not there, or one twice.
    """
    if not isinstance(task, Texts) or task.problem != ONE_LABEL:
        raise ValueError(
            "`class_weight` needs a classifier with one label a text; a "
            "column `weight` weighs the rows of any task. Received: "
            f"{class_weight!r} for {type(task.model).__name__}"
            + (f", {task.problem}." if isinstance(task, Texts) else ".")
        )
    weights = np.ones(task.model.num_labels)
    if isinstance(class_weight, str) and class_weight == BALANCED:
        labels = task.rows.targets[""][counted]
        counts = np.bincount(labels, minlength=len(weights))
        occurring = counts > 0
        share = len(labels) / occurring.sum()
        weights[occurring] = share / counts[occurring]
        return weights
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f'`class_weight` must be "{BALANCED}" or a dict of a weight for '
            f"each label. Received: {class_weight!r}."
        )
    numbers = [_number_of(key, task.model) for key in class_weight]
    for number, (key, value) in zip(numbers, class_weight.items(), strict=True):
        if numbers.count(number) > 1:
            raise ValueError(
                "`class_weight` must name each label once. Received: "
                f"{class_weight!r}."
            )
        weights[number] = _checked(value, f"class_weight[{key!r}]")
    return weights


def _number_of(key: Any, model: Any) -> int:
    """Returns the number of a label that is given by name or by number."""
    names = model.config.id2label or {}
    for number, name in names.items():
        if isinstance(key, str) and key == name:
            return int(number)
    if is_integer(key) and 0 <= key < model.num_labels:
        return int(key)
    numbers = f"integers in [0, {model.num_labels})"
    known = f"{listed(names.values())}, or {numbers}"
    if not names:
        known = f"{numbers}; these have no names"
    raise ValueError(
        f"`class_weight` must name labels of the model: {known}. "
        f"Received: {key!r}."
    )


def _row_weights(column: list[Any]) -> np.ndarray:
    """Returns the column of weights as floats, `(N,)`."""
    weights = np.array(
        each_row(lambda row, value: _checked(value, f"weight[{row}]"), column)
    )
    if not weights.any():
        raise ValueError(
            "`weight` must be above 0 in one row at least. Received: zeros "
            "alone."
        )
    return weights


def _checked(value: Any, name: str) -> float:
    """Returns a weight as a float."""
    number = as_number(value)
    if not 0 <= number < float("inf"):
        raise ValueError(
            f"`{name}` must be a finite number >= 0. Received: {value!r}."
        )
    return number


def _set_weights(task: Any, weights: np.ndarray) -> None:
    """Leaves rows of weight 0 out; the weights of the others are 1 on average.

    Args:
        task: The task.
        weights: One for each row that is computed, `(R,)`.
    """
    (kept,) = np.nonzero(weights > 0)
    if len(kept) < len(weights):
        task.rows = task.rows.take(kept.tolist())
    kept_weights = weights[kept] / weights.max()  # the largest may be 1e308
    if (kept_weights != 1).any():
        task.rows.row_weights = kept_weights / kept_weights.mean()
