"""What a `Report` holds for each task: scores by label, errors, calibration."""

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bertbook.finetuning.report import Findings, Table
from bertbook.tasks import metrics
from bertbook.tasks.base import softmax
from bertbook.tasks.labels import ONE_LABEL, REGRESSION
from bertbook.tasks.text_tasks import Choices, Texts
from bertbook.tasks.word_tasks import Questions, Tags

MOST_ERRORS = 100  # rows of a table of errors
MOST_CONFUSIONS = 30
DRAWN_LABELS = 25  # a confusion matrix of more labels is not drawn
LISTED_LABELS = 200  # one of more labels is not in the tables, either
BINS = 10  # of the calibration curve
PARTS = 4  # of the labels of a regression
ON_THESE = "Chosen on these rows: measure it on others."

Pictures = dict[str, Callable[[], Any]]


def find(task: Any, outputs: list[Any]) -> Findings:
    """Returns what a report says of a task, by its kind.

    Args:
        task: A task, with labels.
        outputs: What `ragged.compute` returned for its rows.
    """
    if isinstance(task, Questions):
        return _questions(task, outputs)
    if isinstance(task, Tags):
        return _tags(task, outputs)
    if isinstance(task, Choices):
        return _choices(task, outputs)
    if task.problem == REGRESSION:
        return _numbers(task, outputs)
    if task.problem == ONE_LABEL:
        return _one_label(task, outputs)
    return _several_labels(task, outputs)


# Whole texts.


def _one_label(task: Texts, outputs: list[Any]) -> Findings:
    labels, guesses = task.compared(outputs)
    p = softmax(np.stack(outputs))  # (R, K)
    names = _names(task, p.shape[1])
    matrix = _confusion(labels, guesses, len(names))
    wrong = _surest_errors(labels, guesses, p)
    columns = ["label", "predicted", "probability"]
    errors = [
        [row, names[labels[row]], names[guesses[row]], float(p[row].max())]
        for row in wrong
    ]
    facts: dict[str, float] = {"rows": len(labels), "errors": len(wrong)}
    tables = {"labels": _by_label(names, metrics.class_scores(matrix))}
    pictures: Pictures = {}
    if len(names) <= LISTED_LABELS:
        tables["confusion"] = _confusion_table(names, matrix)
    if len(names) <= DRAWN_LABELS:
        drawn = functools.partial(_draw_confusion, matrix, names)
        pictures["confusion"] = drawn
    else:
        pictures["labels"] = _bars_of(tables["labels"], "f1")
    if len(names) > 2:
        tables["confusions"] = _confusions(names, matrix)
    tables["errors"] = _errors("the surest first", columns, task, errors)
    _add_calibration(facts, tables, pictures, p.max(axis=1), labels == guesses)
    if len(names) == 2:
        _add_threshold(facts, tables, labels, p[:, 1], names[1])
    return Findings(facts, tables, pictures)


def _several_labels(task: Texts, outputs: list[Any]) -> Findings:
    labels, guesses = task.compared(outputs)  # (R, K)
    p = 1 / (1 + np.exp(-np.stack(outputs).astype(float)))
    names = _names(task, p.shape[1])
    scores = [
        metrics.class_scores(_confusion(labels[:, k], guesses[:, k], 2))[1]
        for k in range(len(names))
    ]
    best = [
        metrics.best_f1_threshold(labels[:, k], p[:, k])
        for k in range(len(names))
    ]
    table = _by_label(names, scores)
    rows = [[*row, *found] for row, found in zip(table.rows, best, strict=True)]
    columns = [*table.columns, "threshold", "f1_at_threshold"]
    gap = np.abs(p - labels)  # (R, K)
    wrong = np.flatnonzero((labels != guesses).any(axis=1))
    order = wrong[np.argsort(-gap[wrong].max(axis=1), kind="stable")]
    errors = []
    for row in order:
        worst = int(gap[row].argmax())
        lists = [
            [names[k] for k in np.flatnonzero(flags[row])]
            for flags in (labels, guesses)
        ]
        errors.append([row, *lists, names[worst], float(p[row, worst])])
    tables = {
        "labels": Table(table.title, columns, rows, f"Thresholds: {ON_THESE}"),
        "errors": _errors(
            "the surest first",
            ["labels", "predicted", "worst label", "its probability"],
            task,
            errors,
        ),
    }
    return Findings(
        {"rows": len(labels), "errors": len(wrong)},
        tables,
        {"labels": _bars_of(tables["labels"], "f1", "f1_at_threshold")},
        [threshold for threshold, _ in best],
    )


def _numbers(task: Texts, outputs: list[Any]) -> Findings:
    labels, guesses = (
        column.astype(float) for column in task.compared(outputs)
    )
    residuals = guesses - labels
    order = np.argsort(-np.abs(residuals), kind="stable")
    edges = np.unique(np.quantile(labels, np.linspace(0, 1, PARTS + 1)))
    part = np.digitize(labels, edges[1:-1])
    rows = []
    for number in np.unique(part):
        here = part == number
        found = residuals[here]
        rows.append(
            [float(labels[here].min()), float(labels[here].max()), len(found)]
            + [float(found.mean()), float(np.abs(found).mean())]
        )
    tables = {
        "residuals": Table(
            "Residuals, prediction minus label, by the size of the label",
            ["from", "to", "count", "mean", "mean absolute"],
            rows,
        ),
        "errors": _errors(
            "the largest first",
            ["label", "predicted", "residual"],
            task,
            [
                [row, float(labels[row]), float(guesses[row])]
                + [float(residuals[row])]
                for row in order
            ],
        ),
    }
    facts = {
        "rows": len(labels),
        "mean_residual": float(residuals.mean()),
        "mean_absolute_residual": float(np.abs(residuals).mean()),
    }
    drawn = functools.partial(_draw_residuals, residuals)
    return Findings(facts, tables, {"residuals": drawn})


def _choices(task: Choices, outputs: list[Any]) -> Findings:
    labels, guesses = task.compared(outputs)
    p = softmax(np.stack(outputs))  # (R, C)
    wrong = _surest_errors(labels, guesses, p)
    choices = task.data["choices"]
    errors = [
        [row, choices[row][labels[row]], choices[row][guesses[row]]]
        + [float(p[row].max())]
        for row in wrong
    ]
    tables = {
        "errors": _errors(
            "the surest first",
            ["right", "predicted", "probability"],
            task,
            errors,
        )
    }
    facts: dict[str, float] = {"rows": len(labels), "errors": len(wrong)}
    pictures: Pictures = {}
    _add_calibration(facts, tables, pictures, p.max(axis=1), labels == guesses)
    return Findings(facts, tables, pictures)


# Parts of texts.


def _questions(task: Questions, outputs: list[Any]) -> Findings:
    predictions, scores, has_answer = task.scored(outputs)
    exact, overlap = scores["exact_match"], scores["f1"]
    p = np.array([answer["score"] for answer in predictions])
    wrong = np.flatnonzero(exact == 0)
    order = wrong[np.lexsort((-p[wrong], overlap[wrong]))]
    parts = {"all": np.ones(len(p), bool), "with an answer": has_answer}
    parts["without an answer"] = ~has_answer
    rows = [
        [name, int(here.sum()), float(exact[here].mean())]
        + [float(overlap[here].mean())]
        for name, here in parts.items()
        if here.any()
    ]
    tables = {
        "questions": Table(
            "Questions", ["questions", "count", "exact_match", "f1"], rows
        ),
        "errors": Table(
            _worst("the least overlap first"),
            ["row", "question", "accepted", "predicted", "probability", "f1"],
            [
                [int(row), task.data["question"][row]]
                + [[a["text"] for a in task.data["answers"][row]] or "none"]
                + [predictions[row]["text"] or "none"]
                + [float(p[row]), float(overlap[row])]
                for row in order[:MOST_ERRORS]
            ],
        ),
    }
    drawn = _bars_of(tables["questions"], "exact_match", "f1")
    facts: dict[str, float] = {"rows": len(p), "errors": len(wrong)}
    return Findings(facts, tables, {"questions": drawn})


def _tags(task: Tags, outputs: list[Any]) -> Findings:
    expected, guesses = task.compared(outputs)
    by_type = metrics.entity_f1(expected, guesses)["by_type"]
    kinds = [[kind, *scores.values()] for kind, scores in by_type.items()]
    pairs: Counter = Counter()
    sentences: list[list[Any]] = []
    for row, (right, found) in enumerate(zip(expected, guesses, strict=True)):
        words = task.data["tokens"][row]
        wrong = [i for i in range(len(words)) if right[i] != found[i]]
        pairs.update((right[i], found[i]) for i in wrong)
        mistakes = [f"{words[i]}: {right[i]} as {found[i]}" for i in wrong]
        if wrong:
            text = " ".join(map(str, words))
            sentences.append([row, len(wrong), text, "; ".join(mistakes)])
    tables = {
        "types": Table(
            "Entities, found where type and both ends are right",
            ["type", "precision", "recall", "f1", "count"],
            kinds,
        ),
        "confusions": Table(
            "Most frequent confusions of words",
            ["tag", "predicted", "count"],
            [[*pair, n] for pair, n in pairs.most_common(MOST_CONFUSIONS)],
        ),
        "errors": Table(
            _worst("most wrong words first"),
            ["row", "wrong words", "sentence", "mistakes"],
            sorted(sentences, key=lambda row: -row[1])[:MOST_ERRORS],
        ),
    }
    facts: dict[str, float] = {
        "rows": len(expected),
        "wrong_words": pairs.total(),
    }
    pictures = {"types": _bars_of(tables["types"], "f1")} if kinds else {}
    return Findings(facts, tables, pictures)


# Tables of several tasks.


def _names(task: Texts, count: int) -> list[str]:
    """Returns the names of the labels, or else their numbers."""
    names = task.model.config.id2label or {}
    return [str(names.get(i, i)) for i in range(count)]


def _confusion(labels: Any, guesses: Any, count: int) -> np.ndarray:
    """Returns how often each label, by row, is predicted as each, `(K, K)`."""
    pairs = labels.astype(int) * count + guesses
    return np.bincount(pairs, minlength=count**2).reshape(count, count)


def _surest_errors(labels: Any, guesses: Any, p: np.ndarray) -> np.ndarray:
    """Returns the rows that are wrong, the most probable predictions first."""
    wrong = np.flatnonzero(labels != guesses)
    return wrong[np.argsort(-p[wrong].max(axis=1), kind="stable")]


def _confusion_table(names: list[str], matrix: np.ndarray) -> Table:
    """Returns a confusion matrix with its names."""
    counts = zip(names, matrix.tolist(), strict=True)
    return Table(
        "Confusion matrix: rows are labels, columns predictions",
        ["label", *names],
        [[name, *row] for name, row in counts],
    )


def _by_label(names: list[str], scores: Sequence[dict[str, float]]) -> Table:
    """Returns precision, recall, F1 and support of each label."""
    rows = [[name, *s.values()] for name, s in zip(names, scores, strict=True)]
    return Table("Labels", ["label", *scores[0]], rows)


def _confusions(names: list[str], matrix: np.ndarray) -> Table:
    """Returns the most frequent wrong pairs of a confusion matrix."""
    pairs = Counter(
        {
            (names[i], names[j]): int(matrix[i, j])
            for i, j in np.argwhere(matrix)
            if i != j
        }
    )
    rows = [
        [*pair, count] for pair, count in pairs.most_common(MOST_CONFUSIONS)
    ]
    columns = ["label", "predicted", "count"]
    return Table("Most frequent confusions", columns, rows)


def _worst(order: str) -> str:
    """Returns the title of a table of errors."""
    return f"Worst errors, {order}, {MOST_ERRORS} at most"


def _errors(
    order: str, columns: list[str], task: Any, rows: list[list[Any]]
) -> Table:
    """Returns the worst errors of a task of texts, with their texts.

    Args:
        order: Which come first.
        columns: What the rows hold beside their number.
        task: The task.
        rows: Rows that begin with their number, the worst first.
    """
    names = [name for name in ("text", "text_pair") if name in task.data]
    return Table(
        _worst(order),
        ["row", *names, *columns],
        [
            [int(row), *(task.data[name][row] for name in names), *values]
            for row, *values in rows[:MOST_ERRORS]
        ],
    )


def _add_calibration(
    facts: dict[str, float],
    tables: dict[str, Table],
    pictures: Pictures,
    confidence: np.ndarray,
    is_right: np.ndarray,
) -> None:
    """Adds how often a prediction of some probability is right.

    Source: Guo et al. (2017), equation 3, with ten bins of equal width.

    Args:
        facts: Gets the expected calibration error.
        tables: Gets a row for each bin that is not empty.
        pictures: Gets the curve.
        confidence: The probability of each prediction, `(R,)`.
        is_right: Whether it is the label, `(R,)` bool.
    """
    numbers = np.minimum((confidence * BINS).astype(int), BINS - 1)
    rows, error = [], 0.0
    for number in np.unique(numbers).tolist():
        here = numbers == number
        mean, share = (
            float(confidence[here].mean()),
            float(is_right[here].mean()),
        )
        edges = [number / BINS, (number + 1) / BINS]
        rows.append([*edges, int(here.sum()), mean, share])
        error += float(here.mean()) * abs(mean - share)
    facts["expected_calibration_error"] = error
    tables["calibration"] = Table(
        "Calibration: how often predictions of a probability are right",
        ["from", "to", "count", "confidence", "accuracy"],
        rows,
        "The expected calibration error is the mean distance of confidence and "
        "accuracy.",
    )
    pictures["calibration"] = functools.partial(_draw_calibration, rows)


def _add_threshold(facts, tables, labels, p, name) -> None:
    """Adds the best threshold of the second of two labels."""
    best, _ = metrics.best_f1_threshold(labels, p)
    rows = []
    for threshold in (0.5, best):
        guesses = (p > threshold).astype(int)
        scores = metrics.class_scores(_confusion(labels, guesses, 2))[1]
        accuracy = float((labels == guesses).mean())
        rows.append([threshold, accuracy, *list(scores.values())[:3]])
    facts["best_threshold"] = best
    tables["threshold"] = Table(
        f"Threshold: {name!r} is predicted above this probability",
        ["threshold", "accuracy", "precision", "recall", "f1"],
        rows,
        f"One half, and the one with the best F1 of {name!r}. {ON_THESE}",
    )


# Pictures.


def _bars_of(table: Table, *columns: str) -> Callable[[], Any]:
    """Returns a function that draws columns of a table as bars."""
    places = [table.columns.index(name) for name in columns]
    values: dict[str, Any] = {
        str(row[0]): {table.columns[i]: row[i] for i in places}
        for row in table.rows[:DRAWN_LABELS]
    }
    if len(columns) == 1:
        values = {name: group[columns[0]] for name, group in values.items()}
    return functools.partial(_draw_bars, values, " and ".join(columns))


def _draw_bars(values: dict[str, Any], label: str) -> Any:
    from bertbook.figures.charts import bars

    return bars(values, x_label=label)


def _draw_confusion(matrix: np.ndarray, names: list[str]) -> Any:
    from bertbook.figures.heatmaps import heat_map

    return heat_map(
        matrix,
        names,
        names,
        title="Confusion matrix",
        x_label="predicted",
        y_label="label",
        numbers=True,
    )


def _draw_calibration(rows: list[list[float]]) -> Any:
    from bertbook.figures.charts import curves

    confidence, accuracy = ([row[i] for row in rows] for i in (3, 4))
    lines = {"model": (confidence, accuracy), "perfect": ([0, 1], [0, 1])}
    return curves(
        lines,
        x_label="probability of the prediction",
        y_label="share that is right",
        title="Calibration",
        from_zero=True,
    )


def _draw_residuals(residuals: np.ndarray) -> Any:
    from bertbook.figures.charts import histogram

    return histogram({"residuals": residuals}, x_label="prediction minus label")
