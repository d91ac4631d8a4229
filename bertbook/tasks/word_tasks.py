"""`Questions` and `Tags`: tasks about parts of texts.

The classes have the methods of those in `text_tasks`.

Differences: those that `windows`, `spans` and `tags` name.
"""

import numpy as np

from bertbook.batches.ragged import Rows, compute
from bertbook.checks import check_rows, each_row, is_integer, listed
from bertbook.datasets.readers import list_answers
from bertbook.tasks import metrics as answer_scores
from bertbook.tasks.base import (
    Settings,
    check_columns,
    in_rows,
    labeled,
    longest,
    needed_tokenizer,
    remembered,
)
from bertbook.tasks.labels import names_of_tags
from bertbook.tasks.spans import (
    align_answer,
    choose_answer,
    label_answer,
    no_answer_score,
    rank_answers,
)
from bertbook.tasks.tags import (
    decode_tags,
    fit_tags,
    label_words,
    name_tags,
    window_words,
)
from bertbook.tasks.windows import window_context
from bertbook.text.bio import (
    find_entities,
    find_words,
    place_entities,
    repair_bio,
)
from bertbook.training.losses import classification_loss

NO_WORDS = ["."]  # replaces an empty list, so that every text has a row


class Questions:
    """Questions, and texts that hold the answers."""

    main_metric = "f1"
    unit = "windows"  # what is counted while predicting

    def __init__(self, model, data, settings):
        self.model = model
        self.settings = settings
        self.data = check_columns(
            data, ["question", "context"], ["id", "answers", "weight"]
        )
        tokenizer, limit = needed_tokenizer(model), longest(model, settings)
        if "answers" in self.data:
            self.data["answers"] = in_rows(
                list_answers, self.data["answers"], self.data["context"]
            )
        self.contexts = in_rows(
            lambda question, context: window_context(
                tokenizer, question, context, limit, settings.stride
            ),
            self.data["question"],
            self.data["context"],
        )
        windows = [w for context in self.contexts for w in context.windows]
        self.rows = Rows(
            [np.array(window.input_ids, "int32") for window in windows],
            [np.array(window.token_type_ids, "int32") for window in windows],
            pad_token_id=model.config.pad_token_id,
        )

    def learn(self):
        """Adds the columns where the first answer starts and ends."""
        answers = labeled(self.data, "answers")
        spans = np.concatenate(in_rows(_label_window, self.contexts, answers))
        self.rows.targets = {
            "start_logits": spans[:, 0],
            "end_logits": spans[:, 1],
        }
        self.rows.are_positions = True

    def owners(self):
        """Returns for each window the row of its question, `(R,)`."""
        counts = [len(context.windows) for context in self.contexts]
        return np.repeat(np.arange(len(counts)), counts)

    def loss(self):
        """Returns the losses of the model's outputs."""
        loss = classification_loss("sum")
        return {"start_logits": loss, "end_logits": loss}

    def predictions(self, outputs):
        """Returns what `predict_answers` does."""
        threshold = self.model.no_answer_threshold
        return [
            {
                "text": answer.text,
                "start": answer.start,
                "end": answer.end,
                "score": answer.probability,
            }
            for answer in (
                choose_answer(answers, none, threshold)
                if threshold is not None
                else answers[0]
                for answers, none in self.ranked(outputs)
            )
        ]

    def ranked(self, outputs):
        """Yields the best answers of each question, and "no answer"'s score."""
        first = 0
        for context in self.contexts:
            parts = outputs[first : first + len(context.windows)]
            first += len(parts)
            starts = [part["start_logits"] for part in parts]
            ends = [part["end_logits"] for part in parts]
            answers = rank_answers(
                context,
                starts,
                ends,
                self.settings.n_best,
                self.settings.max_answer_length,
            )
            yield answers, no_answer_score(starts, ends)

    def compared(self, outputs):
        """Returns the texts of the answers of each row, and those predicted."""
        accepted = [
            [answer["text"] for answer in answers]
            for answers in labeled(self.data, "answers")
        ]
        return accepted, [a["text"] for a in self.predictions(outputs)]

    def score(self, outputs):
        """Returns exact match and F1, as the official scripts do."""
        guesses = [answer["text"] for answer in self.predictions(outputs)]
        return self._measure(guesses)

    def scored(self, outputs):
        """Returns the predictions, and what each question scores.

        Returns:
            The predictions; `exact_match` and `f1`, `(Q,)` each; and which
            questions have an answer, `(Q,)` bool.
        """
        predictions = self.predictions(outputs)
        questions, guesses = self._numbered([a["text"] for a in predictions])
        scores = answer_scores.score_questions(
            questions, guesses, self.version()
        )
        return predictions, scores, answer_scores.answerable(questions)

    def blank_score(self):
        """Returns the metrics of empty answers."""
        return self._measure([""] * len(self.contexts))

    def version(self):
        """Returns 2 where a question has no answer, else 1."""
        return 1 if all(labeled(self.data, "answers")) else 2

    def best_threshold(self, outputs):
        """Returns where "no answer" should win, for the best F1."""
        ranked = list(self.ranked(outputs))
        questions, guesses = self._numbered([a[0].text for a, _ in ranked])
        scores = answer_scores.score_questions(questions, guesses, version=2)
        return answer_scores.best_threshold(
            scores["f1"],
            np.array([none - answers[0].score for answers, none in ranked]),
            answer_scores.answerable(questions),
        )[0]

    def _measure(self, guesses):
        return answer_scores.squad(*self._numbered(guesses), self.version())

    def _numbered(self, guesses):
        """Returns the questions and guesses as the scripts take them."""
        answers = labeled(self.data, "answers")
        ids = self.data.get("id") or [str(i) for i in range(len(answers))]
        for row, name in enumerate(ids):
            if not isinstance(name, str) and not is_integer(name):
                raise ValueError(
                    f"`id[{row}]` must be a string or an integer. Received: "
                    f"{name!r}."
                )
        questions = [
            {"id": name, "answers": accepted}
            for name, accepted in zip(ids, answers, strict=True)
        ]
        return questions, dict(zip(ids, guesses, strict=True))


class Tags:
    """Words, each with a tag."""

    main_metric = "f1"
    unit = "windows"  # what is counted while predicting

    def __init__(self, model, data, settings):
        self.model = model
        self.strategy = settings.strategy or model.config.extra.get(
            "tag_strategy", "first"
        )
        self.data = check_columns(data, ["tokens"], ["tags", "weight"])
        tokenizer, limit = needed_tokenizer(model), longest(model, settings)
        self.sentences = in_rows(
            lambda words: window_words(
                tokenizer, words, limit, settings.stride
            ),
            self.data["tokens"],
        )
        windows = [w for sentence in self.sentences for w in sentence]
        self.rows = Rows(
            [np.array(window.input_ids, "int32") for window in windows],
            [np.array(window.token_type_ids, "int32") for window in windows],
            pad_token_id=model.config.pad_token_id,
        )

    def learn(self):
        """Adds the tags of the words to their pieces."""
        ids = {name: i for i, name in self._names().items()}
        labels, weights = [], []
        for windows, tags in zip(
            self.sentences, self._tags(known=ids), strict=True
        ):
            token_labels, token_weights = label_words(
                windows, tags, ids, self.strategy
            )
            labels += token_labels
            weights += token_weights
        self.rows.targets, self.rows.weights = {"": labels}, weights

    def owners(self):
        """Returns for each window the row of its sentence, `(R,)`."""
        counts = [len(windows) for windows in self.sentences]
        return np.repeat(np.arange(len(counts)), counts)

    def loss(self):
        """Returns the loss of the model's output."""
        return classification_loss("sum")

    def decoded(self, outputs):
        """Yields the repaired tags of each sentence, and probabilities."""
        names = self._names()
        labels = [names[i] for i in range(len(names))]
        first = 0
        for windows in self.sentences:
            logits = outputs[first : first + len(windows)]
            first += len(windows)
            tags, p = decode_tags(windows, logits, labels, self.strategy)
            yield repair_bio(tags), p

    def predictions(self, outputs):
        """Returns the tags of each sentence."""
        return [tags for tags, _ in self.decoded(outputs)]

    def compared(self, outputs):
        """Returns the repaired tags of each row, and those predicted."""
        return self._tags(), self.predictions(outputs)

    def score(self, outputs):
        """Returns precision, recall and F1 of entities, and accuracy of words.

        The accuracy is high where most words are O, whatever the model does.
        """
        return self._measure(self.predictions(outputs))

    def blank_score(self):
        """Returns the metrics where no entity is found."""
        return self._measure([["O"] * len(row) for row in self.data["tokens"]])

    def _measure(self, guesses):
        expected = self._tags()
        flat = [
            [tag for tags in column for tag in tags]
            for column in (expected, guesses)
        ]
        scores = answer_scores.entity_f1(expected, guesses)
        ratios = {name: scores[name] for name in ("precision", "recall", "f1")}
        return ratios | {"word_accuracy": answer_scores.accuracy(*flat)}

    def _names(self):
        """Returns the names of the tags by number."""
        names = self.model.config.id2label
        if names is None:
            raise ValueError(
                "`model` must know its tags: load it with `id2label`, or "
                "fine-tune it. Received: none."
            )
        return names

    def _tags(self, known=None):
        """Returns the repaired tags of the data, one for each word.

        Raises:
            ValueError: A sentence has more or fewer, or one is not known or
                not BIO; the row is named.
        """
        column = labeled(self.data, "tags")
        column = name_tags(column, self.model.config.id2label or {})
        names_of_tags(column)

        def fitted(row, tags, words):
            if len(tags) != len(words):
                raise ValueError(
                    f"`tags[{row}]` must hold a tag for each of {len(words)} "
                    f"words. Received: {len(tags)}."
                )
            tags = fit_tags(tags, known or ())
            for tag in tags:
                if known is not None and tag not in known:
                    raise ValueError(
                        f"`tags[{row}]` must be tags of the model, "
                        f"{listed(known)}. Received: {tag!r}."
                    )
            return tags

        return each_row(fitted, column, self.data["tokens"])


def find_entities_in(
    model, texts, max_length=None, batch_size=32, verbose=False
):
    """Finds entities in raw texts; see `predict_entities` of the model."""
    texts, _ = check_rows(texts, None)
    tokenizer = needed_tokenizer(model)
    settings = remembered(model, Settings(max_length=max_length))
    room = longest(model, settings) - 2  # beside [CLS] and [SEP]
    spans = [find_words(tokenizer, text, room) for text in texts]
    words = [
        [text[slice(*span)] for span in row] or NO_WORDS
        for text, row in zip(texts, spans, strict=True)
    ]
    task = Tags(model, {"tokens": words}, settings)
    outputs = compute(model, task.rows, batch_size, verbose, task.unit)
    decoded = task.decoded(outputs)
    return [
        place_entities(text, row, find_entities(tags) if row else [], p)
        for text, row, (tags, p) in zip(texts, spans, decoded, strict=True)
    ]


def _label_window(context, answers):
    """Returns the columns of the first answer in each window, `(W, 2)`."""
    if not answers:
        return label_answer(context, None)
    first = answers[0]
    pieces = align_answer(context, first.get("answer_start"), first["text"])
    return label_answer(context, pieces)
