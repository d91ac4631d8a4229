"""Metrics of labels, numbers, tags and answers.

Differences: shares, where `conlleval` and the scripts of SQuAD print percent. A
column of one value has no correlation; here that is 0, where scipy gives nan.
The script of SQuAD 1.1 counts a question without a prediction as wrong, the one
of SQuAD 2.0 leaves it out; here it is an error.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from bertbook.checks import check_text
from bertbook.text.bio import find_entities

NUMBERS = "biuf"  # the kinds of NumPy dtypes that hold numbers
NUMBER = Real | np.bool_


# One label a row.


def accuracy(labels: Sequence, predictions: Sequence) -> float:
    """Returns the share of predictions that are the label.

    Args:
        labels: B integers or strings.
        predictions: B of the same kind.

    Raises:
        ValueError: They are empty, of different length or of different kind.
    """
    expected, predicted = _check_columns(labels, predictions)
    return float((expected == predicted).mean())


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
        ValueError: What `accuracy` refuses, or `average` is unknown.
    """
    if average not in ("binary", "macro"):
        raise ValueError(
            f'`average` must be "binary" or "macro". Received: {average!r}.'
        )
    expected, predicted = _check_columns(labels, predictions)
    if average == "macro":
        table = _counts(expected, predicted)
        right, true, guessed = np.diag(table), table.sum(1), table.sum(0)
        # Each class occurs in a column, so that no sum is 0.
        return float((2 * right / (true + guessed)).mean())
    if isinstance(positive, str) != (expected.dtype.kind not in NUMBERS):
        raise ValueError(
            "`positive` must be of the kind of the labels. "
            f"Received: {positive!r} for {expected.dtype}."
        )
    true, guessed = expected == positive, predicted == positive
    counts = (true & guessed).sum(), guessed.sum(), true.sum()
    return _ratios(*map(int, counts))["f1"]


def class_scores(table: np.ndarray) -> list[dict[str, float]]:
    """Returns `precision`, `recall`, `f1` and `support` of each class.

    Args:
        table: How often each class, by row, is predicted as each, `(K, K)`.

    >>> class_scores(np.array([[3, 1], [2, 4]]))[1]["precision"]
    0.8
    """
    columns = np.diag(table), table.sum(axis=0), table.sum(axis=1)
    return [
        _ratios(right, guessed, true) | {"support": true}
        for right, guessed, true in np.stack(columns, axis=1).tolist()
    ]


def best_f1_threshold(
    labels: np.ndarray, scores: np.ndarray
) -> tuple[float, float]:
    """Finds the threshold above which a class should be predicted.

    Args:
        labels: Whether a row is of the class, 0 and 1, `(B,)`.
        scores: Its probability, `(B,)`.

    Returns:
        The threshold with the best F1 of the class, half way between two
        probabilities and of equal ones the nearest to one half; and that F1.
        One half and 0 where no row is of the class.

    >>> best_f1_threshold(np.array([0, 1, 1]), np.array([0.1, 0.3, 0.4]))
    (0.2, 1.0)
    """
    labels, scores = np.asarray(labels, bool), np.asarray(scores, float)
    if not labels.any():
        return 0.5, 0.0
    order = np.argsort(-scores, kind="stable")
    sorted_scores = scores[order]
    lower = np.append(sorted_scores[1:], 0.0)  # the first that is not predicted
    counts = np.arange(1, len(scores) + 1)
    f1s = 2 * np.cumsum(labels[order]) / (counts + labels.sum())
    f1s = np.where(sorted_scores > lower, f1s, -1.0)  # equal ones stay together
    best = f1s.max()
    thresholds = ((sorted_scores + lower) / 2)[f1s == best]
    nearest = np.abs(thresholds - 0.5).argmin()
    return float(thresholds[nearest]), float(best)


def matthews(labels: Sequence, predictions: Sequence) -> float:
    """Returns Matthews's correlation; 0 where either is constant.

    Source: Matthews (1975); the metric of CoLA. For more than two classes:
    Gorodkin (2004), equation 8.

    Args:
        labels: B integers or strings, of two classes or more.
        predictions: B of the same kind.

    Raises:
        ValueError: What `accuracy` refuses.
    """
    table = _counts(*_check_columns(labels, predictions))
    # As integers of Python: the products exceed 64 bits.
    true, guessed = table.sum(1).tolist(), table.sum(0).tolist()
    rows, right = sum(true), int(np.trace(table))
    both = sum(t * g for t, g in zip(true, guessed, strict=True))
    spread = (rows**2 - sum(t * t for t in true)) * (
        rows**2 - sum(g * g for g in guessed)
    )
    return (right * rows - both) / math.sqrt(spread) if spread else 0.0


def pearson(labels: Sequence[float], predictions: Sequence[float]) -> float:
    """Returns the linear correlation; 0 where either is constant.

    Args:
        labels: B finite numbers, B >= 2.
        predictions: The same.

    Raises:
        ValueError: They are fewer than 2, of different length or not finite.
    """
    return _correlation(*_check_numbers(labels, predictions))


def spearman(labels: Sequence[float], predictions: Sequence[float]) -> float:
    """Returns the correlation of the ranks; 0 where either is constant.

    Args:
        labels: B finite numbers, B >= 2.
        predictions: The same.

    Raises:
        ValueError: They are fewer than 2, of different length or not finite.
    """
    return _correlation(*map(_ranks, _check_numbers(labels, predictions)))


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
        strict: Whether an I- that continues nothing belongs to no entity;
            by `conlleval` it begins one.

    Returns:
        `precision`, `recall` and `f1` over all entities; `by_type`, a dict of
        the three, and `count`, for each type. What has nothing to count is 0.

    Raises:
        ValueError: There is no sentence, one is no list, two differ in length,
            or a tag is not BIO.
    """
    if len(tags) != len(predictions) or not len(tags):
        raise ValueError(
            "`tags` and `predictions` must hold the same sentences, one at "
            f"least. Received: {len(tags)} and {len(predictions)}."
        )
    true: Counter = Counter()
    guessed: Counter = Counter()
    right: Counter = Counter()
    for row, (expected, predicted) in enumerate(
        zip(tags, predictions, strict=True)
    ):
        if isinstance(expected, str) or isinstance(predicted, str):
            raise ValueError(
                "`tags` and `predictions` must hold lists of tags. Received: "
                f"{expected!r} and {predicted!r} in row {row}."
            )
        if len(expected) != len(predicted):
            raise ValueError(
                f"`predictions[{row}]` must hold a tag for each of "
                f"{len(expected)} words. Received: {len(predicted)}."
            )
        sets = [
            set(find_entities(part, strict)) for part in (expected, predicted)
        ]
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
        ValueError: The shapes differ, or a value is neither 0 nor 1.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.shape != predictions.shape or labels.ndim != 2 or not labels.size:
        raise ValueError(
            "`labels` and `predictions` must have one shape, (B, K). "
            f"Received: {labels.shape} and {predictions.shape}."
        )
    for name, table in (("labels", labels), ("predictions", predictions)):
        wrong = table[~np.isin(table, (0, 1))]  # NaN too
        if wrong.size:
            raise ValueError(
                f"`{name}` must hold 0 and 1. Received: {wrong[0]}."
            )
    labels, predictions = labels.astype(bool), predictions.astype(bool)
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
    """Returns two columns of classes; refuses what cannot be compared."""
    columns = _two_columns(labels, predictions)
    for column in columns:
        if column.dtype.kind in NUMBERS and not np.isfinite(column).all():
            _refuse_kind(column[~np.isfinite(column)][0])
    return columns


def _two_columns(labels, predictions) -> tuple[np.ndarray, np.ndarray]:
    """Returns two columns of one length, both numbers or both strings."""
    columns = _column(labels), _column(predictions)
    shapes = columns[0].shape, columns[1].shape
    if shapes[0] != shapes[1] or len(shapes[0]) != 1 or not shapes[0][0]:
        raise ValueError(
            "`labels` and `predictions` must be of one length, 1 at least. "
            f"Received: shapes {shapes[0]} and {shapes[1]}."
        )
    kinds = [column.dtype.kind in NUMBERS for column in columns]
    if kinds[0] != kinds[1]:
        raise ValueError(
            "`labels` and `predictions` must both be integers or both be "
            f"strings. Received: {columns[0].dtype} and {columns[1].dtype}."
        )
    return columns


def _column(values) -> np.ndarray:
    """Returns an array of numbers or of strings; refuses anything else."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise ValueError(
            "`labels` and `predictions` must be lists or arrays. Received: "
            f"{type(values).__name__}."
        )
    items = list(values)
    if any(all(isinstance(x, kind) for x in items) for kind in (str, NUMBER)):
        array = np.asarray(items)
    else:  # NumPy would make "nan" of NaN beside strings
        array = np.asarray(values, object)
    if array.dtype == object and array.ndim == 1:
        for value in items:
            if not isinstance(value, str):
                _refuse_kind(value)
    return array


def _refuse_kind(value) -> None:
    """Says that a value is no class."""
    raise ValueError(
        "`labels` and `predictions` must both be integers or both be strings, "
        f"and never NaN or infinite. Received: {value!r} among them."
    )


def _counts(labels: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """Returns how often each class, by row, is predicted as each, `(K, K)`."""
    classes, numbers = np.unique(
        np.concatenate([labels, predictions]), return_inverse=True
    )
    expected, predicted = np.split(numbers, 2)
    count = len(classes)
    table = np.bincount(expected * count + predicted, minlength=count**2)
    return table.reshape(count, count)


def _check_numbers(labels, predictions) -> tuple[np.ndarray, np.ndarray]:
    """Returns two columns of two numbers or more."""
    x, y = _two_columns(labels, predictions)
    if len(x) >= 2 and x.dtype.kind in NUMBERS:
        x, y = x.astype(float), y.astype(float)
        if np.isfinite(x).all() and np.isfinite(y).all():
            return x, y
    raise ValueError(
        "`labels` and `predictions` must be two finite numbers or more. "
        f"Received: {labels} and {predictions}."
    )


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Returns the linear correlation; 0 where either is constant."""
    scaled = []
    for column in (x, y):
        if (column == column[0]).all():
            return 0.0
        column = column / np.abs(column).max()  # no square overflows
        column = column - column.mean()
        scaled.append(column / np.linalg.norm(column))
    return float(np.clip(scaled[0] @ scaled[1], -1.0, 1.0))


def _ranks(column: np.ndarray) -> np.ndarray:
    """Returns the rank of each number; equal ones share the mean of theirs."""
    _, numbers, counts = np.unique(
        column, return_inverse=True, return_counts=True
    )
    return (np.cumsum(counts) - (counts - 1) / 2)[numbers]


VERSIONS = (1, 2)
PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Drops case, ASCII punctuation, articles and further white space.

    Source: Rajpurkar et al. (2016), section 6.1; the official script.

    >>> normalize_answer("The  U.S.A.'s  an-them, a")
    'usas anthem'
    """
    text = ARTICLES.sub(" ", text.lower().translate(PUNCTUATION))
    return " ".join(text.split())


def answer_f1(prediction: str, answer: str, version: int = 1) -> float:
    """Returns the F1 of the words of a prediction and one answer.

    Source: Rajpurkar et al. (2016), section 6.1; the official scripts. Where
    neither has a word, the one of version 2 gives 1, the other gives 0.

    >>> answer_f1("the red house", "a red barn")
    0.5
    """
    predicted = normalize_answer(prediction).split()
    expected = normalize_answer(answer).split()
    if not predicted and not expected:
        return float(version == 2)
    common = (Counter(predicted) & Counter(expected)).total()
    return 2 * common / (len(predicted) + len(expected))


def score_questions(
    questions: Sequence[Mapping],
    predictions: Mapping[str, str],
    version: int = 1,
) -> dict[str, np.ndarray]:
    """Scores each question by the answer that fits its prediction best.

    Args:
        questions: Q rows with `id` and `answers`, a list of dicts with `text`.
        predictions: The predicted text for each id; "" for "no answer".
        version: 1, where every question has an answer, or 2.

    Returns:
        `exact_match` and `f1`, `(Q,)` float64.

    Raises:
        ValueError: There is no question, one has no prediction, an id is not
            among them or occurs twice, or version 1 has one without an answer.
    """
    if version not in VERSIONS:
        raise ValueError(f"`version` must be 1 or 2. Received: {version!r}.")
    _check_ids([question["id"] for question in questions], predictions)
    exact, overlap = np.zeros(len(questions)), np.zeros(len(questions))
    for row, question in enumerate(questions):
        answers = _accepted_answers(question, version)
        guess = predictions[question["id"]]
        check_text(guess, f"predictions[{question['id']!r}]")
        spelling = normalize_answer(guess)
        exact[row] = spelling in map(normalize_answer, answers)
        overlap[row] = max(answer_f1(guess, text, version) for text in answers)
    return {"exact_match": exact, "f1": overlap}


def squad(
    questions: Sequence[Mapping],
    predictions: Mapping[str, str],
    version: int = 1,
) -> dict[str, float]:
    """Returns exact match and F1, as the official script of that version.

    Args:
        questions: As in `score_questions`.
        predictions: As in `score_questions`.
        version: 1 or 2.

    Returns:
        `exact_match`, `f1`; for version 2 also those of the questions with an
        answer, `answered_...`, and of the others, `unanswered_...`, where
        there are any.
    """
    scores = score_questions(questions, predictions, version)
    means = {name: float(column.mean()) for name, column in scores.items()}
    if version == 2:
        has_answer = answerable(questions)
        for part, rows in (
            ("answered", has_answer),
            ("unanswered", ~has_answer),
        ):
            for name, column in scores.items():
                if rows.any():
                    means[f"{part}_{name}"] = float(column[rows].mean())
    return means


def answerable(questions: Sequence[Mapping]) -> np.ndarray:
    """Returns which questions have an answer, `(Q,)` bool."""
    return np.array([bool(question["answers"]) for question in questions])


def best_threshold(
    scores: np.ndarray, no_answer: np.ndarray, has_answer: np.ndarray
) -> tuple[float, float]:
    """Finds the threshold above which "no answer" should win.

    Source: `find_best_thresh` of the official script of SQuAD 2.0. It also
    tries thresholds between equal scores, which no rule can apply; returns 0
    where no question should be answered, here just below the lowest score;
    and holds "the" against an empty answer, which its own scores do not.

    Args:
        scores: What each question scores if it is answered, `(Q,)`: exact
            match or F1 of what was predicted, as `score_questions` gives it.
        no_answer: By how much "no answer" beats the best span, Q floats.
        has_answer: Which questions have an answer, `(Q,)`.

    Returns:
        The threshold, to be used as `no_answer > threshold`, and the mean
        score with it.

    Raises:
        ValueError: The three differ in length, are empty or not finite.
    """
    scores, no_answer = np.asarray(scores), np.asarray(no_answer, float)
    has_answer = np.asarray(has_answer, bool)
    shapes = scores.shape, no_answer.shape, has_answer.shape
    if len(set(shapes)) != 1 or scores.ndim != 1 or not len(scores):
        raise ValueError(
            "`scores`, `no_answer` and `has_answer` must be vectors of one "
            f"length. Received: shapes {shapes}."
        )
    for name, column in (("scores", scores), ("no_answer", no_answer)):
        if not np.isfinite(column).all():
            raise ValueError(f"`{name}` must be finite. Received: {column}.")
    order = np.argsort(no_answer, kind="stable")
    levels = no_answer[order]
    gains = np.where(has_answer, scores, scores - 1.0)[order]
    totals = np.cumsum([np.sum(~has_answer), *gains])  # 0 to Q answered
    can_cut = np.concatenate([[True], levels[1:] > levels[:-1], [True]])
    best = int(np.where(can_cut, totals, -np.inf).argmax())
    threshold = levels[best - 1] if best else np.nextafter(levels[0], -np.inf)
    return float(threshold), float(totals[best] / len(scores))


def _accepted_answers(question: Mapping, version: int) -> list[str]:
    """Returns the texts of the answers, as the official script takes them."""
    texts = [answer["text"] for answer in question["answers"]]
    if version == 2:
        return [text for text in texts if normalize_answer(text)] or [""]
    if not texts:
        raise ValueError(
            "`version=1` needs an answer to every question. Received: "
            f"none for {question['id']!r}."
        )
    return texts


def _check_ids(ids: Iterable[str], predictions: Mapping[str, str]) -> None:
    """Refuses predictions that are not one for each question."""
    counts = Counter(ids)
    if not counts:
        raise ValueError("`questions` must hold at least one. Received: none.")
    for rule, wrong in (
        ("must have different ids", [i for i, n in counts.items() if n > 1]),
        ("must all be predicted", [i for i in counts if i not in predictions]),
        (
            "must hold what is predicted",
            [i for i in predictions if i not in counts],
        ),
    ):
        if wrong:
            raise ValueError(
                f"`questions` {rule}. Received: {wrong[0]!r} and "
                f"{len(wrong) - 1} more that break this."
            )
