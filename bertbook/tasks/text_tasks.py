"""`Texts` and `Choices`: tasks about whole texts.

Each class holds one data set as one model sees it: `rows` to compute,
`learn()` to add what is to be learned, `owners()` of the rows, `predictions`,
`compared` and `score` of what the model gave.

Differences: none from Devlin et al. (2019), sections 4.1 and 4.4.
"""

import numpy as np

from bertbook.batches.batching import check_lengths
from bertbook.batches.ragged import Rows
from bertbook.checks import check_column, check_rows, each_row
from bertbook.tasks import metrics
from bertbook.tasks.base import (
    check_columns,
    labeled,
    needed_tokenizer,
    softmax,
)
from bertbook.tasks.labels import ONE_LABEL, REGRESSION, number_labels
from bertbook.training.losses import (
    classification_loss,
    number_loss,
    several_loss,
)

CHUNK = 2_000  # texts tokenized at a time


class Texts:
    """One text or two, with a label, several, or a number."""

    unit = "texts"  # what is counted while predicting

    def __init__(self, model, data, settings):
        self.model = model
        self.data = check_columns(
            data, ["text"], ["text_pair", "label", "weight"]
        )
        self.problem = model.problem_type
        self.rows = tokenize_texts(
            model, self.data["text"], self.data.get("text_pair"), settings
        )

    @property
    def main_metric(self):
        """The metric that chooses the best weights."""
        if self.problem == REGRESSION:
            return "spearman"
        return "accuracy" if self.problem == ONE_LABEL else "f1"

    def learn(self):
        """Adds the labels to the rows."""
        self.rows.targets = {"": self._labels()}

    def loss(self):
        """Returns the loss of the model's output."""
        if self.problem == REGRESSION:
            return number_loss("sum")
        if self.problem == ONE_LABEL:
            return classification_loss("sum")
        return several_loss("sum")

    def owners(self):
        """Returns for each row that is computed the row of the data, `(R,)`."""
        return np.arange(len(self.rows))

    def predictions(self, outputs, all_scores=False):
        """Returns what `predict_texts` does."""
        logits = _finite(np.stack(outputs))  # (R, K)
        if self.problem == REGRESSION:
            return [{"score": float(value)} for value in logits[:, 0]]
        name = self.model.config.id2label or range(logits.shape[1])
        if self.problem == ONE_LABEL:
            return [
                {"label": name[int(p.argmax())], "score": float(p.max())}
                | ({"scores": _named(p, name)} if all_scores else {})
                for p in softmax(logits)
            ]
        return [
            {
                "labels": [name[i] for i in np.flatnonzero(holds)],
                "scores": _named(p, name),
            }
            for p, holds in zip(
                1 / (1 + np.exp(-logits)), self._holding(logits), strict=True
            )
        ]

    def compared(self, outputs):
        """Returns labels and predictions: numbers, `(R,)`, or 0 and 1."""
        logits, labels = _finite(np.stack(outputs)), self._labels()
        if self.problem == REGRESSION:
            return labels[:, 0], logits[:, 0]
        if self.problem == ONE_LABEL:
            return labels, logits.argmax(axis=1)
        return labels.astype("int32"), self._holding(logits).astype("int32")

    def _holding(self, logits):
        """Returns which of several labels are predicted, `(R, K)` bool."""
        thresholds = self.model.config.extra.get("label_thresholds")
        if thresholds is None:
            return logits > 0
        if len(thresholds) != logits.shape[1]:
            raise ValueError(
                "`label_thresholds` must hold a number for each of "
                f"{logits.shape[1]} labels. Received: {thresholds!r}."
            )
        return 1 / (1 + np.exp(-logits.astype(float))) > np.array(thresholds)

    def score(self, outputs):
        """Returns the metrics of the labels."""
        labels, guesses = self.compared(outputs)
        if self.problem == REGRESSION:
            expected = labels
            return {
                "pearson": metrics.pearson(expected, guesses),
                "spearman": metrics.spearman(expected, guesses),
                "mean_squared_error": float(((expected - guesses) ** 2).mean()),
            }
        if self.problem != ONE_LABEL:
            return metrics.several_labels(labels, guesses)
        scores = {"accuracy": metrics.accuracy(labels, guesses)}
        if self.model.num_labels == 2:
            scores["f1"] = metrics.f1(labels, guesses)
        else:
            scores["f1"] = metrics.f1(labels, guesses, "macro")
        scores["matthews"] = metrics.matthews(labels, guesses)
        return scores

    def blank_score(self):
        """Returns the metrics of numbers that no model gave.

        So labels that do not fit are refused before hours of training.
        """
        shape = len(self.rows), self.model.num_labels
        return self.score(np.arange(np.prod(shape), dtype=float).reshape(shape))

    def _labels(self):
        """Returns the labels as numbers, `(R,)`, `(R, 1)` or `(R, K)`."""
        column = labeled(self.data, "label")
        return number_labels(
            column,
            self.model.num_labels,
            self.problem,
            self.model.config.id2label,
        )


class Choices:
    """A text and C texts of which one follows."""

    main_metric = "accuracy"
    unit = "texts"  # what is counted while predicting

    def __init__(self, model, data, settings):
        self.model = model
        self.data = check_columns(
            data, ["text", "choices"], ["label", "weight"]
        )
        check_column(self.data["text"], "text")
        counts = each_row(
            lambda row, choices: len(check_column(choices, f"choices[{row}]")),
            self.data["choices"],
        )
        self.count = max(2, *counts)

        def check_count(row, count):
            if count != self.count:
                raise ValueError(
                    f"`choices[{row}]` must hold 2 texts or more, as many as "
                    f"in the other rows, {self.count}. Received: {count}."
                )

        each_row(check_count, counts)
        first = [t for t in self.data["text"] for _ in range(self.count)]
        second = [choice for row in self.data["choices"] for choice in row]
        self.rows = tokenize_texts(model, first, second, settings, self.count)

    def learn(self):
        """Adds the number of the right choice to the rows."""
        self.rows.targets = {"": self._labels()}

    def loss(self):
        """Returns the loss of the model's output."""
        return classification_loss("sum")

    def owners(self):
        """Returns for each row that is computed the row of the data, `(R,)`."""
        return np.arange(len(self.rows))

    def predictions(self, outputs, all_scores=False):
        """Returns what `predict_choices` does."""
        return [
            {
                "choice": int(p.argmax()),
                "text": choices[int(p.argmax())],
                "score": float(p.max()),
            }
            | ({"scores": _named(p, range(self.count))} if all_scores else {})
            for p, choices in zip(
                softmax(_finite(np.stack(outputs))),
                self.data["choices"],
                strict=True,
            )
        ]

    def compared(self, outputs):
        """Returns the right and the likeliest numbers of choices, `(R,)`."""
        return self._labels(), _finite(np.stack(outputs)).argmax(axis=1)

    def score(self, outputs):
        """Returns the share of right choices."""
        return {"accuracy": metrics.accuracy(*self.compared(outputs))}

    def blank_score(self):
        """Returns the metrics where no choice is better than another."""
        return self.score(np.zeros((len(self.rows), self.count)))

    def _labels(self):
        column = labeled(self.data, "label")
        return number_labels(column, self.count, ONE_LABEL, None)


def _finite(logits):
    """Returns logits that are numbers.

    Raises:
        ValueError: One is NaN or infinite: the weights are broken.
    """
    if not np.isfinite(logits).all():
        raise ValueError(
            "The logits of `model` must be finite numbers. Received: NaN or "
            "infinity; load the weights again."
        )
    return logits


def _named(probabilities, names):
    """Returns the probability of each label, in the order of the labels."""
    return {names[i]: float(p) for i, p in enumerate(probabilities)}


def tokenize_texts(model, texts, pairs, settings, choices=None):
    """Returns the rows of texts, or of pairs of them.

    Raises:
        ValueError: A text is longer than the model allows; its row is named.
    """
    tokenizer = needed_tokenizer(model)
    texts, pairs = check_rows(texts, pairs, ("text", "text_pair"))
    ids, segments = [], []
    for start in range(0, len(texts), CHUNK):
        part = slice(start, start + CHUNK)
        batch = tokenizer(
            texts[part],
            None if pairs is None else pairs[part],
            max_length=settings.max_length,
        )
        for row, size in enumerate(batch["attention_mask"].sum(axis=1)):
            ids.append(batch["input_ids"][row, :size].copy())
            segments.append(batch["token_type_ids"][row, :size].copy())
    rows = Rows(ids, segments, choices, pad_token_id=model.config.pad_token_id)
    check_lengths(rows.lengths(), model.config.max_position_embeddings)
    return rows
