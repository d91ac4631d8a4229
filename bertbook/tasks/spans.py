"""Answer spans: from characters to tokens, and from logits to characters.

Differences: Google's code pairs the best starts with the best ends, and takes
a start only from the window where it has the most context. We score every
legal pair, and take a span from any window that holds it
(`most_context_only` does as Google's code).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bertbook.checks import as_number, check_text, is_integer
from bertbook.tasks.windows import WindowedContext


class AnswerPieces(NamedTuple):
    """The pieces of an answer: the first, the last, and whether they fit.

    `at_borders` is False where the answer starts or ends inside of a piece, so
    that no span of pieces is exactly the answer.
    """

    first: int
    last: int
    at_borders: bool


class Answer(NamedTuple):
    """A span of the context in characters; empty for "no answer"."""

    text: str
    start: int
    end: int
    score: float
    probability: float = 1.0


def align_answer(
    windowed: WindowedContext, answer_start: int, text: str
) -> AnswerPieces:
    """Finds the pieces that an answer, given in characters, is made of.

    Args:
        windowed: The context.
        answer_start: Index of the answer's first character in the context.
        text: The answer.

    Raises:
        ValueError: `answer_start` does not point at the answer, or the answer
            has no piece.
    """
    check_text(text, "text")
    substring = None
    if is_integer(answer_start) and answer_start >= 0:
        substring = windowed.context[answer_start : answer_start + len(text)]
    if substring != text:
        raise ValueError(
            f"`answer_start` must point at the answer, {text!r}. Received: "
            f"{answer_start!r}, where the context holds {substring!r}."
        )
    end = answer_start + len(text)
    starts, ends = windowed.offsets.T
    (pieces,) = np.nonzero((starts < end) & (ends > answer_start))
    if not text or not len(pieces):
        raise ValueError(
            f"`text` must hold at least one piece. Received: {text!r}."
        )
    first, last = int(pieces[0]), int(pieces[-1])
    fits = starts[first] == answer_start and ends[last] == end
    return AnswerPieces(first, last, bool(fits))


def label_answer(
    windowed: WindowedContext, answer: AnswerPieces | None
) -> np.ndarray:
    """Returns the columns where the answer starts and ends in each window.

    Args:
        windowed: The context.
        answer: Its pieces; None for a question without an answer.

    Returns:
        `(W, 2)` int32. 0 and 0, the column of [CLS], where a window does not
        hold the whole answer.
    """
    labels = np.zeros((len(windowed.windows), 2), "int32")
    if answer is None:
        return labels
    for row, window in zip(labels, windowed.windows, strict=True):
        last = window.first + window.size - 1
        if window.first <= answer.first and answer.last <= last:
            row[:] = answer.first, answer.last
            row += window.column - window.first
    return labels


def best_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    n_best: int = 20,
    max_answer_length: int = 30,
    may_start: np.ndarray | None = None,
) -> list[tuple[float, int, int]]:
    """Returns the legal spans with the largest sum of both logits.

    A span is legal where its start is not after its end and it has at most
    `max_answer_length` pieces. Of equal spans the earlier comes first, then the
    shorter.

    Source: Devlin et al. (2019), section 4.2: the score of a span is S.T_i +
    E.T_j for j >= i.

    Args:
        start_logits: Floats of the context's pieces alone, `(C,)`.
        end_logits: The same for the ends.
        n_best: Most spans to return.
        max_answer_length: Most pieces of a span.
        may_start: Where a span may start, `(C,)`; everywhere for None.

    Returns:
        Score, first and last place of each span, the best first.

    Raises:
        ValueError: The logits are not two finite vectors of one length,
            or a limit is below 1.
    """
    start, end = np.asarray(start_logits, float), np.asarray(end_logits, float)
    check_logits(start, end)
    check_limit(n_best, "n_best")
    check_limit(max_answer_length, "max_answer_length")
    if may_start is not None:
        start = np.where(may_start, start, -np.inf)
    width = min(max_answer_length, len(end))
    ends = np.pad(end, (0, width - 1), constant_values=-np.inf)
    ends = np.lib.stride_tricks.sliding_window_view(ends, width)
    table = (start[:, None] + ends).ravel()  # (C, width): by start, by length
    count = min(n_best, len(table))
    least = np.partition(table, -count)[-count]
    (indices,) = np.nonzero((table >= least) & np.isfinite(table))
    order = indices[np.argsort(-table[indices], kind="stable")][:n_best]
    firsts, longer = np.divmod(order, width)
    lasts = firsts + longer
    scores = table[order]
    return list(
        zip(scores.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
    )


def rank_answers(
    windowed: WindowedContext,
    start_logits: Sequence[np.ndarray],
    end_logits: Sequence[np.ndarray],
    n_best: int = 20,
    max_answer_length: int = 30,
    most_context_only: bool = False,
) -> list[Answer]:
    """Returns the best answers of all windows; a span that is in two, once.

    Args:
        windowed: The context.
        start_logits: A row of floats for each window, `(W, S)`; columns that
            pad it are not looked at.
        end_logits: The same for the ends.
        n_best: Most answers to return.
        max_answer_length: Most pieces of an answer.
        most_context_only: Whether a piece may start an answer only in the
            window where it has the most context, as in Google's code.

    Returns:
        The answers, the best first, one at least. Their probabilities are the
        softmax of the scores, and sum to 1.

    Raises:
        ValueError: There is not a row for each window, a row is too short, or
            what `best_spans` refuses.
    """
    _check_rows(windowed, start_logits, end_logits)
    scores: dict[tuple[int, int], float] = {}
    rows = zip(windowed.windows, start_logits, end_logits, strict=True)
    for number, (window, starts, ends) in enumerate(rows):
        inside = slice(window.column, window.column + window.size)
        pieces = slice(window.first, window.first + window.size)
        may_start = windowed.owners[pieces] == number
        offsets = windowed.offsets[pieces]
        for score, first, last in best_spans(
            starts[inside],
            ends[inside],
            n_best,
            max_answer_length,
            may_start if most_context_only else None,
        ):
            span = int(offsets[first, 0]), int(offsets[last, 1])
            scores[span] = max(score, scores.get(span, score))
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    answers = [
        Answer(windowed.context[start:end], start, end, score)
        for (start, end), score in ranked[:n_best]
    ]
    return _with_probabilities(answers)


def no_answer_score(
    start_logits: Sequence[np.ndarray], end_logits: Sequence[np.ndarray]
) -> float:
    """Returns the score of "no answer": of [CLS], the lowest of all windows.

    One window that sees the answer is enough against it.

    Source: Devlin et al. (2019), section 4.3; the minimum: `run_squad.py`.

    Args:
        start_logits: A row for each window, `(W, S)`.
        end_logits: The same for the ends.

    Raises:
        ValueError: A score is NaN or infinite.
    """
    firsts = [float(row[0]) for row in (*start_logits, *end_logits)]
    if not np.isfinite(firsts).all():
        raise ValueError(
            "`start_logits` and `end_logits` must be finite at [CLS]. "
            f"Received: {firsts}."
        )
    return min(
        float(starts[0]) + float(ends[0])
        for starts, ends in zip(start_logits, end_logits, strict=True)
    )


def choose_answer(
    answers: Sequence[Answer],
    no_answer: float | None = None,
    threshold: float = 0.0,
) -> Answer:
    """Returns the best answer, or the empty one where "no answer" wins.

    Source: Devlin et al. (2019), section 4.3, with the threshold tau on the
    other side: "no answer" where its score exceeds the best one by more.

    Args:
        answers: What `rank_answers` returned.
        no_answer: What `no_answer_score` returned; None where every question
            has an answer.
        threshold: Found on dev by `metrics.best_threshold`.

    Returns:
        An `Answer`. Its probability is among all answers and, where it was
        given, "no answer".

    Raises:
        ValueError: `no_answer` or `threshold` is NaN, which is above nothing.
    """
    if no_answer is None:
        return answers[0]
    for name, value in (("no_answer", no_answer), ("threshold", threshold)):
        if np.isnan(as_number(value)):
            raise ValueError(f"`{name}` must be a number. Received: {value!r}.")
    empty = Answer("", 0, 0, no_answer)
    *spans, empty = _with_probabilities([*answers, empty])
    return empty if no_answer - answers[0].score > threshold else spans[0]


def _with_probabilities(answers: list[Answer]) -> list[Answer]:
    """Adds the softmax of the scores."""
    scores = np.array([answer.score for answer in answers])
    weights = np.exp(scores - scores.max())
    weights = (weights / weights.sum()).tolist()
    return [
        answer._replace(probability=weight)
        for answer, weight in zip(answers, weights, strict=True)
    ]


def check_limit(value, name: str) -> None:
    """Refuses what is not an integer >= 1.

    Raises:
        ValueError: It is no such integer.
    """
    if not is_integer(value) or value < 1:
        raise ValueError(
            f"`{name}` must be an integer >= 1. Received: {value}."
        )


def check_logits(start: np.ndarray, end: np.ndarray) -> None:
    """Refuses arrays that are not two rows of numbers of one length.

    Raises:
        ValueError: They differ in length, or hold NaN or infinity.
    """
    if start.ndim != 1 or start.shape != end.shape or not len(start):
        raise ValueError(
            "`start_logits` and `end_logits` must be vectors of one length. "
            f"Received: shapes {start.shape} and {end.shape}."
        )
    for name, logits in (("start_logits", start), ("end_logits", end)):
        wrong = np.flatnonzero(~np.isfinite(logits))
        if len(wrong):
            raise ValueError(
                f"`{name}` must be finite. Received: {logits[wrong[0]]} at "
                f"piece {wrong[0]}."
            )


def _check_rows(windowed, start_logits, end_logits) -> None:
    """Refuses logits that do not cover every window."""
    needed = [len(window.input_ids) for window in windowed.windows]
    for name, rows in (
        ("start_logits", start_logits),
        ("end_logits", end_logits),
    ):
        lengths = [len(row) for row in rows]
        if len(lengths) != len(needed) or any(
            length < least
            for length, least in zip(lengths, needed, strict=True)
        ):
            raise ValueError(
                f"`{name}` must hold a row for each window, of {needed} "
                f"columns at least. Received: {lengths}."
            )
