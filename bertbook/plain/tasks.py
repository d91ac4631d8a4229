"""Four tasks: a text, a choice, a span, tags. One head each on a `Bert`."""

import keras
import numpy as np
from keras import layers, ops

from .embeddings import normal
from .pretraining import IGNORED, accuracy, adamw, masked_loss
from .tokenizer import BATCH, tokenize


class TextClassifier(keras.Model):
    """Puts a text, or two, into one of K classes; K = 1 gives a number.

    Parts: `bert`, a `Bert`; `dropout` of 0.1 on its pooled vector; `classifier`
    on top, a Dense layer that starts from `normal()`.
    Source: Devlin et al. (2019), section 4.1.
    """

    architecture = "BertForSequenceClassification"

    def __init__(self, bert, K):
        super().__init__()
        self.bert, self.dropout = bert, layers.Dropout(0.1)
        self.classifier = layers.Dense(K, kernel_initializer=normal())

    def call(self, batch, training=None):
        """Returns logits, `(B, K)`; `training` goes to encoder and dropout."""
        x = self.bert.pooled(batch, training)  # (B, D)
        return self.classifier(self.dropout(x, training=training))

    def heads(self):
        """Returns the layer above the encoder by its published name."""
        return {"classifier": self.classifier}


class ChoiceModel(TextClassifier):
    """Chooses which of C texts goes on from a first one.

    Source: Devlin et al. (2019), section 4.4.
    """

    architecture = "BertForMultipleChoice"

    def __init__(self, bert):
        super().__init__(bert, 1)

    def call(self, batch, training=None):
        """Returns logits, `(B, C)`, for a batch of arrays `(B, C, S)`."""
        B, C, S = ops.shape(batch["input_ids"])
        flat = {name: ops.reshape(batch[name], (B * C, S)) for name in BATCH}
        return ops.reshape(super().call(flat, training), (B, C))


class SpanModel(keras.Model):
    """Points at the first and the last token of an answer.

    Parts: `bert`, whose pooler is not used, and not trained; `span`, a Dense
    layer that starts from `normal()`. There is no dropout between the two.
    Source: Devlin et al. (2019), section 4.2.
    """

    architecture = "BertForQuestionAnswering"

    def __init__(self, bert):
        super().__init__()
        self.bert = bert
        bert.pooler.trainable = False  # it reads [CLS], and is not used
        self.span = layers.Dense(2, kernel_initializer=normal())

    def call(self, batch, training=None):
        """Returns `start_logits` and `end_logits`, `(B, S)`.

        They are the two columns of `span`; `training` goes to the encoder.
        """
        logits = self.span(self.bert(batch, training=training))  # (B, S, 2)
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def heads(self):
        """Returns the layer above the encoder by its published name."""
        return {"qa_outputs": self.span}


class TagModel(TextClassifier):
    """Gives each token one of K tags.

    It has the parts of its parent; the pooler is not used, and not trained.
    Source: Devlin et al. (2019), section 5.3.
    """

    architecture = "BertForTokenClassification"

    def __init__(self, bert, K):
        super().__init__(bert, K)
        bert.pooler.trainable = False  # it reads [CLS], and is not used

    def call(self, batch, training=None):
        """Returns logits, `(B, S, K)`."""
        x = self.bert(batch, training=training)  # (B, S, D)
        return self.classifier(self.dropout(x, training=training))


def finetune(
    model, batch, labels, dev=None, epochs=3, peak=1e-4, size=32, **options
):
    """Trains a model with a head; after each epoch it is tried on `dev`.

    Args: `batch`, all rows, as `Tokenizer` gives them; `labels`, an array, or
    a dict of arrays for a model with several outputs; `dev`, such a pair;
    `peak`, the highest rate of `adamw`; `size`, rows in a step; `options`,
    others of Keras' `fit`. Returns what `fit` does.

    Labels that are integers are classes, -100 where nothing is asked: the loss
    is `masked_loss`, and `accuracy` is told. Floats are numbers to come near
    to: the loss is the mean squared error.
    """
    loss, metrics = masked_loss, [accuracy]
    if isinstance(labels, dict):
        loss = dict.fromkeys(labels, masked_loss)
        metrics = dict.fromkeys(labels, accuracy)
    elif labels.dtype.kind == "f":
        loss, metrics = "mean_squared_error", []
    steps = epochs * -(-len(batch["input_ids"]) // size)  # rounded up
    model.compile(adamw(peak, steps), loss, metrics=metrics)
    return model.fit(
        batch, labels, size, epochs, validation_data=dev, **options
    )


def choice_batch(tokenizer, texts, choices, max_length=None):
    """Returns a batch of shape `(B, C, S)`: each text with each of C others."""
    first = [text for text in texts for _ in choices[0]]
    second = [choice for row in choices for choice in row]
    batch = tokenizer(first, second, max_length)
    shape = len(texts), len(choices[0]), -1
    return {name: array.reshape(shape) for name, array in batch.items()}


def windows(tokenizer, question, context, max_length=128, stride=64):
    """Puts a question in front of overlapping parts of a long context.

    Returns a batch, a row for each window, and the places of its tokens in
    the context, for each row `(S, 2)`: start and end in characters, 0 and 0
    for all other tokens.
    """
    cls, sep = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    front = [cls, *tokenizer.encode(question), sep]
    pieces = tokenize(context, tokenizer.ids)
    room = max_length - len(front) - 1
    starts = range(0, max(1, len(pieces) - room + stride), stride)
    places = np.zeros((len(starts), max_length, 2), int)
    rows = []
    for number, start in enumerate(starts):
        part = pieces[start : start + room]
        for column, (_, *place, _) in enumerate(part, len(front)):
            places[number, column] = place
        ids = [*(tokenizer.ids[piece] for piece, *_ in part), sep]
        rows.append((front + ids, [0] * len(front) + [1] * len(ids)))
    return tokenizer.pad(rows, max_length), places


def label_span(places, start, end):
    """Returns the columns of an answer's first and last token in each window.

    The answer is given in characters; `places` are those of `windows`. A window
    without all of it gets 0 and 0, the column of [CLS].
    """
    labels = np.zeros((len(places), 2), "int32")
    for row, place in zip(labels, places, strict=True):
        inside = (place[:, 0] < end) & (place[:, 1] > start)
        columns = np.flatnonzero(inside)
        if len(columns):
            first, last = columns[0], columns[-1]
            if place[first, 0] <= start and place[last, 1] >= end:
                row[:] = first, last
    return labels


def best_span(start, end, longest=30):
    """Returns the first and the last place of the span that scores most.

    Args: `start`, `end`, the logits of a context's tokens alone, `(S,)`;
    `longest`, the most tokens of a span. Its score is the sum of two logits.
    """
    spans = (
        (first, last)
        for first in range(len(start))
        for last in range(first, min(first + longest, len(end)))
    )
    return max(spans, key=lambda span: start[span[0]] + end[span[1]])


def answer(model, tokenizer, question, context, **options):
    """Returns the answer of a `SpanModel`, its start and its end.

    `options` are those of `windows`. The best span of all windows wins.
    """
    batch, places = windows(tokenizer, question, context, **options)
    outputs = model.predict(batch, verbose=0)
    found = []
    for i, place in enumerate(places):
        columns = np.flatnonzero(place[:, 1])  # of the context
        start = outputs["start_logits"][i, columns]
        end = outputs["end_logits"][i, columns]
        first, last = best_span(start, end)
        score = start[first] + end[last]
        found.append((score, place[columns[first], 0], place[columns[last], 1]))
    _, first, last = max(found)
    return context[first:last], int(first), int(last)


def label_words(words, tags, tokenizer):
    """Returns the ids of some words, and the label of each piece.

    The first piece of a word has its tag, an integer; the others -100. A word
    that has no pieces becomes [UNK].
    """
    ids, labels = [], []
    for word, tag in zip(words, tags, strict=True):
        pieces = tokenizer.encode(word) or [tokenizer.ids["[UNK]"]]
        ids += pieces
        labels += [tag] + [IGNORED] * (len(pieces) - 1)
    return ids, labels


def tag_batch(tokenizer, sentences, tags, max_length=None):
    """Returns a batch of sentences, lists of words, and its labels, `(B, S)`.

    Pieces that do not fit into `max_length` are cut off.
    """
    cls, sep = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    room = max_length and max_length - 2
    cut = [
        [part[:room] for part in label_words(words, numbers, tokenizer)]
        for words, numbers in zip(sentences, tags, strict=True)
    ]
    rows = [([cls, *ids, sep], [0] * (len(ids) + 2)) for ids, _ in cut]
    batch = tokenizer.pad(rows, max_length)
    labels = np.full(batch["input_ids"].shape, IGNORED)
    for i, (_, own) in enumerate(cut):
        labels[i, 1 : len(own) + 1] = own
    return batch, labels


def bio_spans(tags):
    """Returns the names in a list of BIO tags: (type, first word, end).

    `end` is the word after the last. An I- that continues nothing begins a
    name, as in `conlleval`.
    """
    spans, kind = [], None
    for i, tag in enumerate(tags):
        mark, _, name = tag.partition("-")
        if mark == "I" and name == kind:
            spans[-1] = (kind, spans[-1][1], i + 1)
        elif tag != "O":
            spans.append((name, i, i + 1))
        kind = name or None
    return spans
