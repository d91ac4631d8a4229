"""Scores of a task: its metrics, functions of the user, its loss."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bertbook.checks import as_number
from bertbook.tasks.labels import ONE_LABEL, REGRESSION

Metrics = dict[str, Callable[[Any, Any], float]]


def check_metrics(metrics: Any, names: list[str]) -> Metrics:
    """Returns the functions among some metrics, by their names.

    Args:
        metrics: A name, a function of the labels and the predictions, a list
            of those, a dict of functions, or None.
        names: The metrics that the task has anyway.

    Raises:
        ValueError: A metric is neither, a name is unknown, or two metrics
            have one name.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        pairs = list(metrics.items())
    else:
        listed = metrics if isinstance(metrics, list | tuple) else [metrics]
        pairs = [(_name_of(metric, names), metric) for metric in listed]
    functions: Metrics = {}
    for name, metric in pairs:
        if isinstance(metric, str) and metric == name and name in names:
            continue
        if not isinstance(name, str) or not name or not callable(metric):
            raise ValueError(
                "`metrics` must be functions of the labels and the "
                f"predictions, each with a name. Received: {metric!r} as "
                f"{name!r}."
            )
        if isinstance(metric, type) or hasattr(metric, "update_state"):
            # A metric of Keras would add up all that it ever saw.
            raise ValueError(
                "`metrics` must be functions, neither classes nor metrics of "
                f"Keras, which keep what they saw. Received: {metric!r}."
            )
        if name in names or name in functions:
            raise ValueError(
                "`metrics` must have names of their own. Received: a second "
                f"{name!r}."
            )
        functions[name] = metric
    return functions


def score_task(task: Any, outputs: list[Any], own: Metrics) -> dict[str, float]:
    """Returns the metrics of a task, and those of the user.

    Args:
        task: A task, with labels.
        outputs: What `ragged.compute` returned for its rows.
        own: Functions of what `compared` of the task returns.

    Raises:
        ValueError: A metric is no finite number.
    """
    scores = task.score(outputs)
    if own:
        labels, predictions = task.compared(outputs)
        for name, function in own.items():
            scores[name] = _checked(name, function(labels, predictions))
    for name, value in scores.items():
        if not math.isfinite(value):
            raise ValueError(
                f"The metric {name} must be a finite number. Received: "
                f"{value}; the outputs of the model are too large."
            )
    return scores


def mean_loss(task: Any, outputs: list[Any], weights: np.ndarray) -> float:
    """Returns the loss of outputs that are there, the mean as in training.

    Args:
        task: A task that has learned its labels.
        outputs: What `ragged.compute` returned for its rows.
        weights: How much each row counts, `(R,)`, 1 on average; a row of
            weight 0 is left out.
    """
    rows, problem = task.rows, getattr(task, "problem", ONE_LABEL)
    total = count = 0.0
    for number in np.flatnonzero(weights):
        for name, column in rows.targets.items():
            output = outputs[number][name] if name else outputs[number]
            logits, label = np.asarray(output, float), column[number]
            counted = np.ones(())
            if rows.weights is not None:  # of tokens; the rest is padding
                counted = rows.weights[number]  # (S,)
                logits = logits[: len(counted)]
            losses = _losses(np.asarray(label), logits, problem) * counted
            total += weights[number] * losses.sum()
            count += counted.sum()
    return float(f"{total / max(count, 1):.6g}")


def _losses(labels: np.ndarray, logits: np.ndarray, problem: str) -> np.ndarray:
    """Returns the losses that `loss()` of a task adds up, `(...)`.

    Args:
        labels: Integers, `(...)`; for several labels or a number `(K,)`.
        logits: Floats, `(..., K)`.
        problem: One of `labels.PROBLEMS`.
    """
    if problem == REGRESSION:
        return ((labels - logits) ** 2).mean(axis=-1)
    if problem != ONE_LABEL:
        return (np.logaddexp(0, logits) - labels * logits).mean(axis=-1)
    right = np.take_along_axis(logits, labels[..., None].astype(int), axis=-1)
    return np.logaddexp.reduce(logits, axis=-1) - right[..., 0]


def _name_of(metric: Any, names: list[str]) -> str:
    """Returns the name of a metric of a list."""
    if isinstance(metric, str):
        if metric not in names:
            raise ValueError(
                f"`metrics` must name one of {', '.join(names)}, or be "
                f"functions. Received: {metric!r}."
            )
        return metric
    name = getattr(metric, "__name__", None)
    if name is None or name == "<lambda>":
        raise ValueError(
            "`metrics` must be functions that have a name; a dict gives one. "
            f"Received: {metric!r}."
        )
    return name


def _checked(name: str, value: Any) -> float:
    """Returns what a function of the user gave, as a number of Python."""
    is_scalar = getattr(value, "shape", None) == ()
    number = as_number(float(value) if is_scalar else value)
    if not math.isfinite(number):
        raise ValueError(
            f"`metrics`: {name} must return a finite number. Received: "
            f"{value!r}."
        )
    return number
