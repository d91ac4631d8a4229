"""Tags by features of words: what the model of chapter 43 must beat.

A logistic regression sees the letters of a word, the words at its sides, and
the tag before. The best row of tags is searched with what it says of each
word after each tag (a maximum entropy Markov model). How strongly its weights
are held down, and how far it looks, is chosen by cross-validation.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, product
from typing import Any

import numpy as np

Words = Sequence[str]
Tags = list[str]
STRENGTHS = 1, 10, 100  # of `LogisticRegression`, its `C`
REACHES = 1, 2  # words on a side
FOLDS = 3


def tag_by_features(
    rows: Sequence[Words],
    tags: Sequence[Tags],
    test: Sequence[Words],
    score: Callable[[list[Tags], list[Tags]], float],
    capitals: bool = True,
    strengths: Sequence[float] = STRENGTHS,
    reaches: Sequence[int] = REACHES,
) -> tuple[list[Tags], dict[str, float]]:
    """Returns the tags of test sentences, and what was chosen.

    Args:
        rows: The sentences to learn from.
        tags: Their tags.
        test: The sentences to tag.
        score: A function of guesses and tags, the larger the better.
        capitals: Whether capitals can be seen.
        strengths: What is tried for `C` of the logistic regression.
        reaches: What is tried for the words that it sees on a side.
    """
    choices = list(product(strengths, reaches))
    best, chosen = np.nan, choices[0]
    if len(choices) > 1:
        tried = []
        for strength, reach in choices:
            seen = [list(_features(row, capitals, reach)) for row in rows]
            guesses = _cross_validate(seen, tags, strength)
            tried.append((score(guesses, list(tags)), (strength, reach)))
        best, chosen = max(tried)
    strength, reach = chosen
    seen = [list(_features(row, capitals, reach)) for row in rows]
    tagger = _Tagger(seen, tags, strength)
    found = [tagger.tag(list(_features(row, capitals, reach))) for row in test]
    return found, {"C": strength, "reach": reach, "score": best}


def _cross_validate(
    seen: Sequence[list[list[str]]], tags: Sequence[Tags], strength: float
) -> list[Tags]:
    """Returns the tags that sentences get from taggers of the others."""
    fold = np.random.default_rng(0).permutation(len(seen)) % FOLDS
    guesses: list[Tags] = [[] for _ in seen]
    for held in range(FOLDS):
        learn = np.flatnonzero(fold != held).tolist()
        tagger = _Tagger(
            [seen[i] for i in learn], [tags[i] for i in learn], strength
        )
        for i in np.flatnonzero(fold == held).tolist():
            guesses[i] = tagger.tag(seen[i])
    return guesses


def _features(words: Words, capitals: bool, reach: int) -> Iterator[list[str]]:
    """Yields the features of each word of a sentence."""
    low = ["<s>"] * reach + [word.lower() for word in words] + ["</s>"] * reach
    high = [""] * reach + list(words) + [""] * reach
    is_headline = all(word.upper() == word for word in words)
    for at in range(reach, reach + len(words)):
        word = low[at]
        found = ["bias", f"first {at == reach}"]
        for n in range(1, 5):
            found += [f"starts {word[:n]}", f"ends {word[-n:]}"]
        for k in range(-reach, reach + 1):
            near = low[at + k]
            found.append(f"{k} is {near}")
            if any(letter.isdigit() for letter in near):
                found.append(f"{k} has a digit")
            if k in (-1, 1):
                found += [f"{k} ends {near[-n:]}" for n in (2, 3)]
        if capitals:
            begins = [word[:1].isupper() for word in high]
            for k in range(-reach, reach + 1):
                found.append(f"{k} looks {_shape(high[at + k])}")
            found += [
                f"capitals {begins[at - 1 : at + 2]}",
                f"capitals {begins[at - reach : at + reach + 1]}",
                f"first {at == reach}, capital {begins[at]}",
                f"headline {is_headline}",
            ]
        yield found


def _shape(word: str) -> str:
    """Returns the kinds of a word's letters: McKay3 becomes XxXxd."""
    kinds = []
    for letter in word:
        if letter.isdigit():
            kinds.append("d")
        elif letter.isalpha():
            kinds.append("X" if letter.isupper() else "x")
        else:
            kinds.append(letter)
    return "".join(kind for kind, _ in groupby(kinds))


class _Tagger:
    """A logistic regression over the features of a word and the tag before."""

    def __init__(
        self, rows: Sequence[list[list[str]]], tags: Sequence[Tags], C: float
    ):
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression

        before = [["<s>", *row[:-1]] for row in tags]
        self.vectorizer = DictVectorizer()
        counts = self.vectorizer.fit_transform(
            dict.fromkeys([*features, f"after {tag}"], 1)
            for row, past in zip(rows, before, strict=True)
            for features, tag in zip(row, past, strict=True)
        )
        self.model: Any = LogisticRegression(C=C, max_iter=300)
        self.model.fit(counts, [tag for row in tags for tag in row])
        self.tags = list(self.model.classes_)

    def tag(self, row: list[list[str]]) -> Tags:
        """Returns the best row of tags."""
        features = (dict.fromkeys(one, 1) for one in row)
        logits = self.model.decision_function(
            self.vectorizer.transform(features)
        )  # (W, K), what the tag before adds is missing
        place = self.vectorizer.vocabulary_
        past = np.array(
            [self.model.coef_[:, place[f"after {tag}"]] for tag in self.tags]
        )  # (K, K)
        start = self.model.coef_[:, place["after <s>"]]
        scores = _log_softmax(logits[0] + start)
        steps = []
        for logit in logits[1:]:
            ways = scores[:, None] + _log_softmax(logit + past)
            steps.append(ways.argmax(axis=0))
            scores = ways.max(axis=0)
        at = int(scores.argmax())
        path = [at]
        for step in reversed(steps):
            at = int(step[at])
            path.append(at)
        return [self.tags[i] for i in reversed(path)]


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
