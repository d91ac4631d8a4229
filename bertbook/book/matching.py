"""Which sentence answers a question: choices, and rivals that count.

The rivals are what the models of chapter 41 must beat. A question and a
sentence are compared by the words, the pairs of words and the parts of words
that they share, rare ones counting more (TF-IDF). How much each comparison
counts is chosen on questions whose sentence is known.
"""

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from bertbook.datasets.load import load_dataset
from bertbook.text.sentences import split_sentences

UNITS = {
    "words": ("word", (1, 1)),
    "pairs of words": ("word", (1, 2)),
    "2 to 4 letters": ("char_wb", (2, 4)),
    "3 to 5 letters": ("char_wb", (3, 5)),
}
SHARES = 0.0, 0.3, 0.5, 0.7, 1.0  # of letters in a mixture
FOLDS = 10
INVERSE_PENALTIES = 0.001, 0.01, 0.1, 1.0, 10.0

# What a question asks for, and what a sentence holds.
ASKED = (
    r"\b(who|whose|whom)\b",
    r"\bhow (many|much|long|far|old|high|large|big|often|tall)\b",
    r"\b(when|(what|which) (day|month|time|year))\b",
    r"\b(where|place|town|city|country)\b",
    r"\b(why|reason|cause)\b",
)
HELD = (
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\w+teen|\w+ty|hundred|thousand|half|dozen|once|twice)\b",
    r"(?-i:.\b[A-Z][a-z])",
    r"\b(day|week|month|year|hour|minute|morning|evening|night|noon|o'clock"
    r"|\w+day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december)s?\b",
    r"\b(because|since|so that|in order|to)\b",
)


def sentence_choices(
    split: str, seed: int = 0
) -> tuple[list[str], list[list[str]], np.ndarray]:
    """Makes choices of the questions about the shelf.

    Each is the sentence that holds the answer and three others of the same
    paragraph, in random order. Questions without an answer are left out, and
    paragraphs of fewer than four sentences.

    Args:
        split: "train" or "dev".
        seed: Of the three others and the order.

    Returns:
        The questions, four sentences for each, and the number of the right
        one, `(B,)`.
    """
    rng = np.random.default_rng(seed)
    data = load_dataset("shelf_questions", split)
    columns = (data[name] for name in ("question", "context", "answers"))
    asked, fours, labels = [], [], []
    for question, paragraph, answers in zip(*columns, strict=True):
        sentences = split_sentences(paragraph)
        if not answers or len(sentences) < 4:
            continue
        ends = np.cumsum([len(one) + 1 for one in sentences])  # with a space
        right = ends.searchsorted(answers[0]["answer_start"], "right")
        others = np.delete(np.arange(len(sentences)), right)
        four = rng.permutation([right, *rng.choice(others, 3, replace=False)])
        asked.append(question)
        fours.append([sentences[i] for i in four])
        labels.append(int(np.flatnonzero(four == right)[0]))
    return asked, fours, np.array(labels)


def count_shared(
    questions: Sequence[str],
    choices: Sequence[Sequence[str]],
    corpus: Sequence[str],
) -> dict[str, np.ndarray]:
    """Returns how much each question shares with each of its choices.

    Args:
        questions: B texts.
        choices: For each of them C others.
        corpus: Texts that say how rare a word is.

    Returns:
        Name to numbers, `(B, C)`: for each unit the `cosine` of two TF-IDF
        vectors, and the `share` of the question's weight that a choice has.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    C = len(choices[0])
    asked = [question for question in questions for _ in range(C)]
    given = [choice for row in choices for choice in row]
    shared = {}
    for name, (analyzer, ngrams) in UNITS.items():
        how = {"analyzer": analyzer, "ngram_range": ngrams}
        if analyzer == "word":
            how["token_pattern"] = r"\w+"  # also words of one letter
        table = TfidfVectorizer(sublinear_tf=True, **how).fit(corpus)
        one, other = table.transform(asked), table.transform(given)
        cosine = _sums(one.multiply(other))
        both = _sums((one > 0).multiply(other > 0).multiply(table.idf_))
        whole = _sums((one > 0).multiply(table.idf_))
        shared[f"cosine of {name}"] = cosine.reshape(-1, C)
        share = both / np.maximum(whole, 1e-9)
        shared[f"share of {name}"] = share.reshape(-1, C)
    return shared


def _sums(matrix: Any) -> np.ndarray:
    """Returns the sum of each row of a sparse matrix."""
    return np.asarray(matrix.sum(axis=1)).ravel()


def best_mixture(
    shared: dict[str, np.ndarray], labels: np.ndarray
) -> tuple[str, np.ndarray]:
    """Mixes a count of words with a count of letters as is best on the labels.

    Args:
        shared: What `count_shared` returns.
        labels: The number of the right choice, `(B,)`.

    Returns:
        What was mixed, and the scores, `(B, C)`.
    """
    tried = []
    words, letters = list(UNITS)[:2], list(UNITS)[2:]
    for kind, word, letter, part in product(
        ("cosine", "share"), words, letters, SHARES
    ):
        one, other = shared[f"{kind} of {word}"], shared[f"{kind} of {letter}"]
        scores = (1 - part) * one + part * other
        right = (scores.argmax(axis=1) == labels).mean()
        name = f"{kind} of {word} and, by {part:.0%}, of {letter}"
        tried.append((right, name, scores))
    _, name, scores = max(tried, key=lambda one: one[0])
    return name, scores


def features(
    questions: Sequence[str],
    choices: Sequence[Sequence[str]],
    corpus: Sequence[str],
) -> np.ndarray:
    """Returns what a regression knows of each choice, `(B, C, F)`.

    What it shares with the question, its length, and whether it holds a
    number, a name, a time or a reason, alone and with what the question asks
    for. The arguments are those of `count_shared`.
    """
    columns = list(count_shared(questions, choices, corpus).values())
    lengths = [[len(one.split()) for one in row] for row in choices]
    held = [np.log(lengths)]
    for pattern in HELD:
        finds = re.compile(pattern, re.IGNORECASE).search
        held.append(
            np.array([[bool(finds(one)) for one in row] for row in choices])
        )
    columns += held
    for pattern in ASKED:
        asks = re.compile(pattern, re.IGNORECASE).search
        asked = np.array([[bool(asks(question))] for question in questions])
        columns += [asked * one for one in held]
    return np.stack(columns, axis=-1).astype(float)


def guess_by_regression(
    train: np.ndarray, labels: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Scores the choices of new questions by a logistic regression.

    It learns from the differences between the right choice and each other
    one. Its penalty is chosen on parts of the training questions.

    Args:
        train: What `features` returns, `(B, C, F)`.
        labels: The number of the right choice, `(B,)`.
        test: The features of other questions.

    Returns:
        Scores of the choices of the test questions.
    """
    mean, scale = train.mean(axis=(0, 1)), train.std(axis=(0, 1)) + 1e-9
    train, test = (train - mean) / scale, (test - mean) / scale
    part = np.arange(len(train)) * FOLDS // len(train)
    right = {}
    for penalty in INVERSE_PENALTIES:
        hits = []
        for fold in range(FOLDS):
            kept = part != fold
            weights = _weights(train[kept], labels[kept], penalty)
            guesses = (train[~kept] @ weights).argmax(axis=1)
            hits += list(guesses == labels[~kept])
        right[penalty] = np.mean(hits)
    best = max(right, key=right.__getitem__)
    return test @ _weights(train, labels, best)


def _weights(
    x: np.ndarray, labels: np.ndarray, inverse_penalty: float
) -> np.ndarray:
    from sklearn.linear_model import LogisticRegression

    gaps = x[np.arange(len(x)), labels][:, None] - x  # (B, C, F)
    gaps = gaps[np.arange(x.shape[1]) != labels[:, None]]
    model = LogisticRegression(
        C=inverse_penalty, fit_intercept=False, max_iter=3_000
    )
    signs = np.repeat([1, 0], len(gaps))
    return model.fit(np.concatenate([gaps, -gaps]), signs).coef_[0]
