"""How good answers are: exact match, F1, and the threshold of "no answer".

Differences: shares, where the official scripts print percent. The script of
SQuAD 1.1 counts a question without a prediction as wrong, the one of SQuAD 2.0
leaves it out; here it is an error.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

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
    wanted = normalize_answer(answer).split()
    if not predicted and not wanted:
        return float(version == 2)
    common = (Counter(predicted) & Counter(wanted)).total()
    return 2 * common / (len(predicted) + len(wanted))


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
            among them or there twice, or version 1 has one without an answer.
    """
    if version not in VERSIONS:
        raise ValueError(f"`version` must be 1 or 2. Received: {version!r}.")
    _check_ids([question["id"] for question in questions], predictions)
    exact, overlap = np.zeros(len(questions)), np.zeros(len(questions))
    for row, question in enumerate(questions):
        wanted = _wanted(question, version)
        guess = predictions[question["id"]]
        spelling = normalize_answer(guess)
        exact[row] = spelling in map(normalize_answer, wanted)
        overlap[row] = max(answer_f1(guess, text, version) for text in wanted)
    return {"exact_match": exact, "f1": overlap}


def squad(
    questions: Sequence[Mapping],
    predictions: Mapping[str, str],
    version: int = 1,
) -> dict[str, float]:
    """Returns exact match and F1, as the official script of that version.

    Args:
        questions: As in `score_questions`.
        predictions: As there.
        version: 1 or 2.

    Returns:
        `exact_match`, `f1`; for version 2 also those of the questions with an
        answer, `answered_...`, and of the others, `unanswered_...`, where
        there are any.
    """
    scores = score_questions(questions, predictions, version)
    found = {name: float(column.mean()) for name, column in scores.items()}
    if version == 2:
        has_answer = answerable(questions)
        for part, rows in (
            ("answered", has_answer),
            ("unanswered", ~has_answer),
        ):
            for name, column in scores.items():
                if rows.any():
                    found[f"{part}_{name}"] = float(column[rows].mean())
    return found


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
    if not np.isfinite(no_answer).all():
        raise ValueError(f"`no_answer` must be finite. Received: {no_answer}.")
    order = np.argsort(no_answer, kind="stable")
    levels = no_answer[order]
    gains = np.where(has_answer, scores, scores - 1.0)[order]
    totals = np.cumsum([np.sum(~has_answer), *gains])  # 0 to Q answered
    can_cut = np.concatenate([[True], levels[1:] > levels[:-1], [True]])
    best = int(np.where(can_cut, totals, -np.inf).argmax())
    threshold = levels[best - 1] if best else np.nextafter(levels[0], -np.inf)
    return float(threshold), float(totals[best] / len(scores))


def _wanted(question: Mapping, version: int) -> list[str]:
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
