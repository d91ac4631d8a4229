"""Rivals that answer questions without reading: shared words, and features.

Source: Rajpurkar et al. (2016), section 5, whose baseline is a logistic
regression on features of spans, too. Theirs has the parts of parsed sentences
for spans; ours has no parser, and takes all runs of words.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bertbook.tasks.metrics import answer_f1, normalize_answer
from bertbook.text.sentences import split_sentences

LONGEST = 8  # words of a span
DRAWN = 40  # wrong spans of a question that the rival learns from
STRENGTHS = 0.1, 0.3, 1.0, 3.0  # of the regression, tried on questions apart
QUESTION_WORDS = "who", "whose", "when", "where", "why", "which", "what", "how"
NUMBERS = {
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "twenty", "thirty", "forty", "fifty", "sixty"),
    *("seventy", "eighty", "ninety", "hundred", "thousand", "million"),
    *("half", "dozen", "first", "second", "third"),
}
WORD = re.compile(r"\w+(?:['’.,-]\w+)*|\S")
Features = dict[str, float]


def bag_of(text: str) -> set[str]:
    """Returns the words of a text, without case, punctuation and articles."""
    return set(normalize_answer(text).split())


class SharedWords:
    """A rule: the sentence that shares most with the question is the answer.

    A word counts more the fewer of the contexts hold it.

    Args:
        contexts: Texts to count words in; one that comes twice counts once.
    """

    def __init__(self, contexts: Sequence[str]) -> None:
        passages = set(contexts)
        self.size = len(passages)
        self.counts = Counter(word for p in passages for word in bag_of(p))

    def answer(self, question: str, context: str) -> str:
        """Returns a sentence of the context, of equals the first."""
        asked, sentences = bag_of(question), split_sentences(context)
        shared = [
            sum(
                np.log(self.size / self.counts[word])
                for word in sorted(asked & bag_of(sentence))
                if self.counts[word]
            )
            for sentence in sentences
        ]
        return sentences[int(np.argmax(shared))]


class SpanRival:
    """A logistic regression that tells right spans from wrong ones.

    It sees how many words and how many groups of three to five letters the
    sentence of a span shares with the question, the first and last word of the
    span and its neighbors, its length, numbers and capitals, each by itself
    and together with the word that asks. Its strength is chosen by five-fold
    cross-validation.

    Args:
        data: Questions that have an answer, as `load_dataset` gives them.
        groups: What must not be on both sides of a fold, such as the document
            of each question.
        seed: Of the wrong spans that are drawn.

    Attributes:
        tried: The cross-validated F1 of each strength.
        strength: The best of them.
    """

    def __init__(self, data: dict, groups: Sequence, seed: int = 0) -> None:
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.model_selection import GroupKFold

        self.rng = np.random.default_rng(seed)
        texts = [*dict.fromkeys(data["context"]), *data["question"]]
        self.views = [
            TfidfVectorizer(sublinear_tf=True).fit(texts),
            TfidfVectorizer(
                analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True
            ).fit(texts),
        ]
        pairs = list(zip(data["question"], data["context"], strict=True))
        # Twice computed: as dictionaries, all features need two gigabytes.
        self.columns = DictVectorizer().fit(
            features for pair in pairs for features in self._spans(*pair)[1]
        )
        spans, rows = [], []
        for pair in pairs:
            texts, features = self._spans(*pair)
            spans.append(texts)
            rows.append(self.columns.transform(features))
        accepted = [[a["text"] for a in row] for row in data["answers"]]
        is_right = [
            np.isin([normalize_answer(text) for text in texts], known)
            for texts, known in zip(
                spans,
                ([normalize_answer(a) for a in row] for row in accepted),
                strict=True,
            )
        ]
        everything = np.arange(len(rows))
        self.tried = {}
        for strength in STRENGTHS:
            scores = np.zeros(len(rows))
            folds = GroupKFold(5).split(everything, groups=groups)
            for learned, held_out in folds:
                model = self._fit(rows, is_right, learned, strength)
                for i in held_out:
                    best = spans[i][model.decision_function(rows[i]).argmax()]
                    scores[i] = max(answer_f1(best, a) for a in accepted[i])
            self.tried[strength] = float(scores.mean())
        self.strength = max(self.tried, key=self.tried.__getitem__)
        self.model = self._fit(rows, is_right, everything, self.strength)

    def answer(self, question: str, context: str) -> str:
        """Returns the span of the context that is right most probably."""
        spans, features = self._spans(question, context)
        rows = self.columns.transform(features)
        return spans[self.model.decision_function(rows).argmax()]

    def _fit(
        self,
        rows: Sequence[Any],
        is_right: Sequence[np.ndarray],
        learned: np.ndarray,
        strength: float,
    ) -> Any:
        """Learns from all right spans of some questions and a few wrong."""
        from scipy.sparse import vstack
        from sklearn.linear_model import LogisticRegression

        x, y = [], []
        for i in learned:
            wrong = np.flatnonzero(~is_right[i])
            wrong = self.rng.permutation(wrong)[:DRAWN]
            chosen = np.append(np.flatnonzero(is_right[i]), wrong)
            x.append(rows[i][chosen])
            y.append(is_right[i][chosen])
        model = LogisticRegression(C=strength, max_iter=300)
        return model.fit(vstack(x), np.concatenate(y))

    def _spans(
        self, question: str, context: str
    ) -> tuple[list[str], list[Features]]:
        """Returns the texts and the features of all spans of a context."""
        sentences = split_sentences(context)
        shared = [
            (view.transform(sentences) @ view.transform([question]).T)
            .toarray()
            .ravel()
            for view in self.views
        ]
        texts, features = [], []
        for number, sentence in enumerate(sentences):
            about: Features = {"opens": float(number == 0)}
            for name, values in zip(("words", "letters"), shared, strict=True):
                about[name] = float(values[number])
                about[f"most {name}"] = float(values[number] == values.max())
            for text, own in _spans_of(question, sentence):
                texts.append(text)
                features.append(about | own)
        return texts, features


def _spans_of(question: str, sentence: str) -> Iterator[tuple[str, Features]]:
    """Yields the spans of a sentence, and what it needs no others for."""
    found = list(WORD.finditer(sentence))
    words = ["^", *(match[0] for match in found), "$"]
    lower = [word.lower() for word in words]
    asked = [match[0].lower() for match in WORD.finditer(question)]
    asking = [i for i, word in enumerate(asked) if word in QUESTION_WORDS]
    kind = asked[asking[0]] if asking else "none"
    finer = " ".join(asked[asking[0] : asking[0] + 2]) if asking else "none"
    near = [i for i, w in enumerate(lower) if w in asked and len(w) > 3]
    for i in range(1, len(words) - 1):
        for j in range(i, min(i + LONGEST, len(words) - 1)):
            if lower[j] in set('.;:!?"()'):
                break
            if not (lower[i][0].isalnum() and lower[j][0].isalnum()):
                continue
            inside = lower[i : j + 1]
            marks = {
                f"length {j - i + 1}",
                f"first {lower[i]}",
                f"last {lower[j]}",
                f"before {lower[i - 1]}",
                f"after {lower[j + 1]}",
            }
            if any(w in NUMBERS or w[0].isdigit() for w in inside):
                marks.add("number")
            if all(w[0].isupper() for w in words[i : j + 1]):
                marks.add("name")
            gaps = [max(i - n, n - j, 0) for n in near]
            features: Features = {
                "asked": sum(w in asked for w in inside) / len(inside),
                "gap": float(np.log1p(min(gaps, default=20))),
            }
            for mark in marks:
                for name in (mark, f"{kind} {mark}", f"{finer} {mark}"):
                    features[name] = 1.0
            yield sentence[found[i - 1].start() : found[j - 1].end()], features
