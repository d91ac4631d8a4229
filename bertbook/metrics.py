"""How good labels, numbers and tags are: the metrics of the field.

Differences: entity F1 is a share, where `conlleval` prints percent. A column
of one value has no correlation; here that is 0, where scipy gives nan.
"""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from bertbook.bio import find_entities

STRINGS = "OSU"  # the kinds of NumPy that hold them


# One label a row.


def accuracy(labels: Sequence, predictions: Sequence) -> float:
    """Returns the share of predictions that are the label.

    Args:
        labels: B integers or strings.
        predictions: B of the same kind.

    Raises:
        ValueError: They are empty, of different length or of different kind.
    """
    wanted, guesses = _check_columns(labels, predictions)
    return float((wanted == guesses).mean())


def f1(
    labels: Sequence,
    predictions: Sequence,
    average: str = "binary",
    positive: Any = 1,
) -> float:
    """Returns the F1 of one class, or the mean of all classes.

    Args:
        labels: B integers or strings.
        predictions: B of the same kind.
        average: "binary" for the class `positive`; "macro" for the plain mean
            of all that occur.
        positive: The class that counts.

    Raises:
        ImportError: scikit-learn is not installed.
        ValueError: What `accuracy` refuses, or `average` is unknown.
    """
    if average not in ("binary", "macro"):
        raise ValueError(
            f'`average` must be "binary" or "macro". Received: {average!r}.'
        )
    wanted, guesses = _check_columns(labels, predictions)
    if average == "macro":
        return float(
            _sklearn().f1_score(
                wanted, guesses, average="macro", zero_division=0
            )
        )
    if isinstance(positive, str) != (wanted.dtype.kind in STRINGS):
        raise ValueError(
            "`positive` must be of the kind of the labels. "
            f"Received: {positive!r} for {wanted.dtype}."
        )
    return float(
        _sklearn().f1_score(
            wanted == positive, guesses == positive, zero_division=0
        )
    )


def matthews(labels: Sequence, predictions: Sequence) -> float:
    """Returns the correlation of Matthews; 0 where either is constant.

    Source: Matthews (1975); the metric of CoLA.

    Args:
        labels: B integers or strings, of two classes or more.
        predictions: B of the same kind.

    Raises:
        ImportError: scikit-learn is not installed.
        ValueError: What `accuracy` refuses.
    """
    columns = _check_columns(labels, predictions)
    if any(_is_constant(column) for column in columns):
        return 0.0  # as scikit-learn, which also warns
    return float(_sklearn().matthews_corrcoef(*columns))


def pearson(labels: Sequence[float], predictions: Sequence[float]) -> float:
    """Returns the linear correlation; 0 where either is constant.

    Args:
        labels: B finite numbers, B >= 2.
        predictions: The same.

    Raises:
        ImportError: scipy is not installed.
        ValueError: They are fewer than 2, of different length or not finite.
    """
    return _correlation("pearsonr", labels, predictions)


def spearman(labels: Sequence[float], predictions: Sequence[float]) -> float:
    """Returns the correlation of the ranks; 0 where either is constant.

    Args:
        labels: B finite numbers, B >= 2.
        predictions: The same.

    Raises:
        ImportError: scipy is not installed.
        ValueError: They are fewer than 2, of different length or not finite.
    """
    return _correlation("spearmanr", labels, predictions)


# Entities.


def entity_f1(
    tags: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    strict: bool = False,
) -> dict[str, Any]:
    """Counts an entity as found where its type and both ends are right.

    Source: Tjong Kim Sang and De Meulder (2003), section 2.3; `conlleval`.

    Args:
        tags: BIO tags of each word of each sentence.
        predictions: The same, predicted.
        strict: Whether an I- that goes on with nothing belongs to no entity;
            by `conlleval` it begins one.

    Returns:
        `precision`, `recall` and `f1` over all entities; `by_type`, a dict of
        the three, and `count`, for each type. What has nothing to count is 0.

    Raises:
        ValueError: There is no sentence, two differ in length, or a tag is
            not BIO.
    """
    if len(tags) != len(predictions) or not len(tags):
        raise ValueError(
            "`tags` and `predictions` must hold the same sentences, one at "
            f"least. Received: {len(tags)} and {len(predictions)}."
        )
    true: Counter = Counter()
    guessed: Counter = Counter()
    right: Counter = Counter()
    for row, (wanted, found) in enumerate(zip(tags, predictions, strict=True)):
        if len(wanted) != len(found):
            raise ValueError(
                f"`predictions[{row}]` must hold a tag for each of "
                f"{len(wanted)} words. Received: {len(found)}."
            )
        sets = [set(find_entities(part, strict)) for part in (wanted, found)]
        true.update(entity.type for entity in sets[0])
        guessed.update(entity.type for entity in sets[1])
        right.update(entity.type for entity in sets[0] & sets[1])
    by_type = {
        kind: _ratios(right[kind], guessed[kind], true[kind])
        | {"count": true[kind]}
        for kind in sorted(true | guessed)
    }
    micro = _ratios(right.total(), guessed.total(), true.total())
    return {**micro, "by_type": by_type}


def several_labels(labels: np.ndarray, predictions: np.ndarray):
    """Returns metrics of several labels at once.

    Args:
        labels: 0 and 1, or bool, `(B, K)`.
        predictions: The same.

    Returns:
        `exact_match`, the share of rows with every label right, and
        `precision`, `recall` and `f1` over all labels of all rows together.

    Raises:
        ValueError: The shapes differ.
    """
    labels, predictions = (
        np.asarray(labels, bool),
        np.asarray(predictions, bool),
    )
    if labels.shape != predictions.shape or labels.ndim != 2 or not labels.size:
        raise ValueError(
            "`labels` and `predictions` must have one shape, (B, K). "
            f"Received: {labels.shape} and {predictions.shape}."
        )
    right = int((labels & predictions).sum())
    exact = float((labels == predictions).all(axis=1).mean())
    return {"exact_match": exact} | _ratios(
        right, int(predictions.sum()), int(labels.sum())
    )


def _ratios(right: int, guessed: int, true: int) -> dict[str, float]:
    """Returns precision, recall and their harmonic mean."""
    return {
        "precision": right / guessed if guessed else 0.0,
        "recall": right / true if true else 0.0,
        "f1": 2 * right / (guessed + true) if guessed + true else 0.0,
    }


def _check_columns(labels, predictions) -> tuple[np.ndarray, np.ndarray]:
    """Returns two columns as arrays; refuses what cannot be compared."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    shapes = labels.shape, predictions.shape
    if shapes[0] != shapes[1] or labels.ndim != 1 or not len(labels):
        raise ValueError(
            "`labels` and `predictions` must be of one length, 1 at least. "
            f"Received: shapes {shapes[0]} and {shapes[1]}."
        )
    kinds = [array.dtype.kind in STRINGS for array in (labels, predictions)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            "`labels` and `predictions` must both be integers or both be "
            f"strings. Received: {labels.dtype} and {predictions.dtype}."
        )
    return labels, predictions


def _is_constant(column: np.ndarray) -> bool:
    return bool((column == column[0]).all())


def _correlation(name: str, labels, predictions) -> float:
    """Returns what scipy gives, but 0 for a constant column."""
    columns = [
        np.asarray(x, float) for x in _check_columns(labels, predictions)
    ]
    if len(columns[0]) < 2 or not np.isfinite(columns).all():
        raise ValueError(
            "`labels` and `predictions` must be two finite numbers or more. "
            f"Received: {labels} and {predictions}."
        )
    if any(_is_constant(column) for column in columns):
        return 0.0
    try:
        from scipy import stats
    except ImportError as error:
        raise ImportError(
            "Correlations need scipy: `pip install bertbook[metrics]`."
        ) from error
    return float(getattr(stats, name)(*columns).statistic)


def has_sklearn() -> bool:
    """Returns whether scikit-learn is installed, which `f1` needs."""
    return find_spec("sklearn") is not None


def _sklearn():
    """Returns the metrics of scikit-learn."""
    try:
        from sklearn import metrics
    except ImportError as error:
        raise ImportError(
            "F1 and the correlation of Matthews need scikit-learn: "
            "`pip install bertbook[metrics]`."
        ) from error
    return metrics
