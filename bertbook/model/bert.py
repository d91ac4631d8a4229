"""BERT with a head: a class for pre-training and one for each task.

Differences: none in the values; the names are those of Hugging Face. The
masked-word head shares the token table, and is computed for the hidden tokens
alone, as in Google's code. Where only [CLS] is wanted, the last layer computes
nothing else.
"""

import numpy as np

from bertbook.batches import batching
from bertbook.batches.batching import without_lists
from bertbook.batches.ragged import compute
from bertbook.checks import (
    as_number,
    check_count,
    check_max_length,
    check_switch,
)
from bertbook.datasets.columns import (
    SourceColumns,
    as_list,
    check_as_many,
    under_its_names,
)
from bertbook.model.attention import MASKED_SCORE
from bertbook.model.encoder import BertEncoder
from bertbook.model.layers import Dense, Dropout, LayerNorm, activation
from bertbook.runtime import is_concrete, keras, ops, refuse_forked_process
from bertbook.tasks import text_tasks, word_tasks
from bertbook.tasks.base import Settings, remembered
from bertbook.tasks.labels import (
    REGRESSION,
    SEVERAL_LABELS,
    choose_labels,
    choose_problem,
    has_open_labels,
)
from bertbook.weights.matrices import float_matrix
from bertbook.weights.pretrained import Pretrained


class MaskedLMHead(keras.layers.Layer):
    """Scores every piece of the vocabulary for a hidden token.

    A dense layer, activation and norm, then the product with the token table
    and a bias of its own for every piece.

    Source: Devlin et al. (2019), section 3.1, and `get_masked_lm_output` of
    Google's code.

    Args:
        config: A `BertConfig`.
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size
        self.dense = Dense(
            config.hidden_size,
            config.initializer_range,
            activation(config.hidden_act),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.norm = LayerNorm(
            epsilon=config.layer_norm_eps, dtype=self.dtype_policy, name="norm"
        )

    def build(self, hidden_shape):
        """Creates the dense layer, the norm and the bias, `(V,)`."""
        self.dense.build(hidden_shape)
        self.norm.build(hidden_shape)
        self.bias = self.add_weight(
            shape=(self.vocab_size,), initializer="zeros", name="bias"
        )

    def call(self, hidden, token_table):
        """Returns logits, `(B, M, V)`.

        Args:
            hidden: Float tensor of shape `(B, M, D)`.
            token_table: The table of the token embeddings, `(V, D)`.
        """
        hidden = self.norm(self.dense(hidden))  # (B, M, D)
        table = ops.cast(token_table, hidden.dtype)
        logits = ops.matmul(hidden, ops.transpose(table))  # (B, M, V)
        return logits + self.bias


def next_sentence_head(config, dtype):
    """Returns the layer of two logits, IsNext and NotNext, `(B, 2)`.

    Source: Devlin et al. (2019), section 3.1.

    Args:
        config: A `BertConfig`.
        dtype: The dtype policy of the model.
    """
    return Dense(2, config.initializer_range, dtype=dtype, name="next_sentence")


def task_head(units, config, dtype, name):
    """Returns the one layer that a task adds on top of the encoder.

    Source: Devlin et al. (2019), section 4.

    Args:
        units: Number of outputs, for example K classes.
        config: A `BertConfig`.
        dtype: The dtype policy of the model.
        name: The layer's name, "classifier" or "span".
    """
    return Dense(units, config.initializer_range, dtype=dtype, name=name)


# What methods that predict call the columns of a task.
ARGUMENTS = {
    "text": "texts",
    "text_pair": "pairs",
    "question": "questions",
    "context": "contexts",
}


class BertWithHead(Pretrained, keras.Model):
    """An encoder below a head: what all models of this module share.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.
    """

    _weight_prefix = "bert."
    has_pooler = True

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.encoder = BertEncoder(
            config,
            attention,
            pooler=self.has_pooler,
            dtype=self.dtype_policy,
            name="encoder",
        )

    def get_config(self):
        """Returns what Keras needs to build this model again."""
        attention = self.encoder.asked_attention
        return {**super().get_config(), "attention": attention}

    def _draw_head(self, num_labels):
        """Draws a head for another number of labels in place of the old one.

        Args:
            num_labels: K.
        """
        self.classifier.resize(num_labels)
        extra = {**self.config.extra, "num_labels": num_labels}
        self.config = self.config.replace(id2label=None, extra=extra)
        self.num_labels = num_labels
        self.train_function = self.test_function = None
        self.predict_function = None

    def _predict(self, kind, columns, settings, batch_size, verbose, **options):
        """Returns the predictions for columns of raw texts; [] for no text.

        Args:
            kind: The class of the task.
            columns: The columns that it reads.
            settings: A `Settings`.
            batch_size: Most rows computed at a time.
            verbose: Whether to print how far it is.
            **options: Arguments of `predictions` of the task.
        """
        check_count(batch_size, "batch_size")
        check_switch(verbose, "verbose")
        check_max_length(settings.max_length, has_pair=len(columns) > 1)
        if not any(map(len, columns.values())):
            return []
        settings = remembered(self, settings)
        data = SourceColumns(columns, names=ARGUMENTS)
        with under_its_names(data):
            task = kind(self, data, settings)
        outputs = compute(self, task.rows, batch_size, verbose, kind.unit)
        return task.predictions(outputs, **options)


@keras.saving.register_keras_serializable("bertbook")
class BertForMaskedLM(BertWithHead):
    """Guesses hidden tokens.

    Source: Devlin et al. (2019), section 3.1, task 1.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    >>> import bertbook as bb
    >>> model = bb.BertForMaskedLM.from_pretrained("mini")
    >>> logits = model(model.tokenizer(["The [MASK] was shut."]))
    >>> tuple(logits.shape), model.config.vocab_size
    ((1, 7, 16384), 16384)
    """

    architecture = "BertForMaskedLM"
    has_pooler = False

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(config, attention, **kwargs)
        self.masked_lm = MaskedLMHead(
            config, dtype=self.dtype_policy, name="masked_lm"
        )
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the head; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        self.masked_lm.build((None, None, self.config.hidden_size))

    def call(self, batch, training=None):
        """Returns logits: `(B, M, V)` for the tokens at `masked_lm_positions`.

        Args:
            batch: As in `BertEncoder.call`, and `masked_lm_positions`,
                `(B, M)`; without them every token gets logits, `(B, S, V)`.
            training: Whether to drop values.

        Raises:
            ValueError: A table is quantized in a way that is not read.
        """
        outputs = self.encoder(
            batch,
            positions=batch.get("masked_lm_positions"),
            training=training,
        )
        table = float_matrix(self.encoder.embeddings.token)  # (V, D), shared
        return self.masked_lm(outputs["sequence_output"], table)


@keras.saving.register_keras_serializable("bertbook")
class BertForPreTraining(BertWithHead):
    """Guesses hidden tokens, and whether the second text goes on.

    Source: Devlin et al. (2019), section 3.1.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    >>> import bertbook as bb
    >>> model = bb.BertForPreTraining.from_pretrained("mini")
    >>> outputs = model(model.tokenizer(["It rained."], ["The road was wet."]))
    >>> tuple(outputs["nsp_logits"].shape)
    (1, 2)
    """

    architecture = "BertForPreTraining"

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(config, attention, **kwargs)
        self.masked_lm = MaskedLMHead(
            config, dtype=self.dtype_policy, name="masked_lm"
        )
        self.next_sentence = next_sentence_head(config, self.dtype_policy)
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the heads; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        width = self.config.hidden_size
        self.masked_lm.build((None, None, width))
        self.next_sentence.build((None, width))

    def call(self, batch, training=None):
        """Returns a dict of both logits.

        Args:
            batch: As in `BertEncoder.call`, and `masked_lm_positions`,
                `(B, M)`; without them every token gets logits.
            training: Whether to drop values.

        Returns:
            `mlm_logits`, `(B, M, V)`, and `nsp_logits`, `(B, 2)`: first "goes
            on", then "does not"; `(B, E, 2)` for rows of E examples.

        Raises:
            ValueError: A table is quantized in a way that is not read.
        """
        pooled, hidden = _pooled_and_hidden(self.encoder, batch, training)
        table = float_matrix(self.encoder.embeddings.token)  # (V, D), shared
        return {
            "mlm_logits": self.masked_lm(hidden, table),
            "nsp_logits": self.next_sentence(pooled),
        }


def _pooled_and_hidden(encoder, batch, training=None):
    """Returns the vectors that both tasks need, and computes no others.

    At a length of 128, one token in six is hidden. The last feed-forward
    network works on those and on [CLS] alone.

    Args:
        encoder: A `BertEncoder` with a pooler.
        batch: The batch, with `masked_lm_positions` or without.
        training: Whether to drop values.

    Returns:
        The pooled vectors, `(B, D)`, or `(B, E, D)` for rows of E examples;
        and those of the hidden tokens, `(B, M, D)`, or of all, `(B, S, D)`.
    """
    if "masked_lm_positions" not in batch:
        outputs = encoder(batch, training=training)
        return outputs["pooled_output"], outputs["sequence_output"]
    masked = ops.cast(batch["masked_lm_positions"], "int32")
    first = batch.get("cls_positions", ops.zeros_like(masked[:, :1]))  # (B, E)
    positions = ops.concatenate([ops.cast(first, "int32"), masked], axis=1)
    outputs = encoder(batch, positions=positions, training=training)
    vectors = outputs["sequence_output"]  # (B, E + M, D)
    count = ops.shape(first)[1]
    pooled = encoder.pooler(vectors[:, :count])
    if "cls_positions" not in batch:
        pooled = pooled[:, 0]
    return pooled, vectors[:, count:]


@keras.saving.register_keras_serializable("bertbook")
class BertForSequenceClassification(BertWithHead):
    """Puts one text, or two, into a class, into several, or on a scale.

    Source: Devlin et al. (2019), section 4.1.

    Args:
        config: A `BertConfig`.
        num_labels: K classes; 1 for a number. None takes those that the
            config knows, else 2, until `finetune` takes those of its data.
        id2label: Names of the classes 0, 1, 2, ..., instead of their number.
        problem_type: "regression", "single_label_classification" or
            "multi_label_classification", as Hugging Face has it. None means
            regression for one label, else one class a text.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    Raises:
        ValueError: An argument is out of range.

    >>> import bertbook as bb
    >>> model = bb.BertForSequenceClassification.from_pretrained("mini-qnli")
    >>> question, answer = "Who wrote the book?", "Ada wrote the book in 1843."
    >>> (found,) = model.predict_texts([question], [answer])
    >>> found["label"], round(found["score"], 2)
    ('entailment', 0.88)
    """

    architecture = "BertForSequenceClassification"

    def __init__(
        self,
        config,
        num_labels=None,
        id2label=None,
        problem_type=None,
        attention="auto",
        **kwargs,
    ):
        given = config
        config, count = choose_labels(config, num_labels, id2label)
        is_open = has_open_labels(given, num_labels, id2label)
        problem = problem_type or config.extra.get("problem_type")
        problem_type = choose_problem(problem, count)
        config = config.replace(
            extra={**config.extra, "problem_type": problem_type}
        )
        super().__init__(config, attention, **kwargs)
        self.num_labels, self.problem_type = count, problem_type
        self._has_open_labels = is_open
        self.dropout = _head_dropout(config, self.dtype_policy)
        self.classifier = task_head(
            self.num_labels, config, self.dtype_policy, "classifier"
        )
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the head; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        self.classifier.build((None, self.config.hidden_size))

    @property
    def label_thresholds(self):
        """The probability above which each of several labels is predicted.

        A list of K numbers, or None for one half. `save_pretrained` keeps it;
        the `thresholds` of a report are the best on its rows.
        """
        return self.config.extra.get("label_thresholds")

    @label_thresholds.setter
    def label_thresholds(self, thresholds):
        if thresholds is not None:
            thresholds = list(map(as_number, thresholds))
            several = self.problem_type == SEVERAL_LABELS
            if not several or len(thresholds) != self.num_labels:
                raise ValueError(
                    "`label_thresholds` must be None, or a number for each "
                    "label of a model with several labels at once. Received: "
                    f"{thresholds!r} for {self.num_labels} labels, "
                    f"{self.problem_type}."
                )
        extra = {**self.config.extra, "label_thresholds": thresholds}
        self.config = self.config.replace(extra=extra)

    def call(self, batch, training=None):
        """Returns logits, `(B, K)`, of a batch as in `BertEncoder.call`.

        Args:
            batch: As in `BertEncoder.call`. For rows that hold E texts the
                logits are `(B, E, K)`.
            training: Whether to drop values.
        """
        if "cls_positions" in batch:
            pooled = pooled_outputs(self.encoder, batch, training)  # (B, E, D)
        else:
            pooled = pooled_output(self.encoder, batch, training)  # (B, D)
        return self.classifier(self.dropout(pooled, training=training))

    def predict_texts(
        self,
        texts,
        pairs=None,
        max_length=None,
        batch_size=32,
        *,
        all_scores=False,
        verbose=False,
    ):
        """Labels raw texts.

        Args:
            texts: A list of texts, or a column of a table; [] gives []. One
                text goes in a list, too. An empty text gets a label like any
                other; in a file it is a gap, which `bertbook predict` refuses.
            pairs: Optional list of their second texts.
            max_length: Tokens that longer texts are cut to. None: those of
                the fine-tuning, else none is cut, and a text that is longer
                than the model can read is an error.
            batch_size: Most texts computed at a time. It does not change the
                results.
            all_scores: Whether to return the probability of every label.
            verbose: Whether to print how far it is.

        Returns:
            A dict for each text, in the order of the texts: `label`, its name
            or else its number, and `score`, its probability; with
            `all_scores` also `scores`, a dict of the probability of every
            label, in the order of the labels. For a number `score` alone; for
            several labels at once `labels`, those above one half, or above
            `label_thresholds`, and `scores`.

        Raises:
            ValueError: The model has no tokenizer, a text is too long, its
                row is named; an output is NaN or infinite, or `all_scores` are
                asked of a model that gives a number.
        """
        check_switch(all_scores, "all_scores")
        if all_scores and self.problem_type == REGRESSION:
            raise ValueError(
                "`all_scores` needs labels: this model gives one number for "
                "a text. Received: True."
            )
        columns = {"text": as_list(texts, "texts")}
        if pairs is not None:
            columns["text_pair"] = as_list(pairs, "pairs")
            check_as_many(
                columns["text_pair"], "pairs", columns["text"], "texts"
            )
        return self._predict(
            text_tasks.Texts,
            columns,
            Settings(max_length=max_length),
            batch_size,
            verbose,
            all_scores=all_scores,
        )

    def get_config(self):
        """Returns what Keras needs to build this model again."""
        return {**super().get_config(), "num_labels": self.num_labels}

    @classmethod
    def _options(cls, checkpoint, options):
        return _labels_of(checkpoint, options)


@keras.saving.register_keras_serializable("bertbook")
class BertForTokenClassification(BertWithHead):
    """Puts every token into a class.

    Source: Devlin et al. (2019), section 5.3.

    Args:
        config: A `BertConfig`.
        num_labels: K tags. None takes those that the config knows, else 2,
            until `finetune` takes those of its data.
        id2label: Names of the tags 0, 1, 2, ..., instead of their number.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    Raises:
        ValueError: An argument is out of range.

    >>> import bertbook as bb
    >>> names = {0: "O", 1: "B-PER", 2: "I-PER"}
    >>> model = bb.BertForTokenClassification.from_pretrained(
    ...     "mini", id2label=names
    ... )
    >>> tuple(model(model.tokenizer(["The bank was shut."])).shape)
    (1, 7, 3)
    """

    architecture = "BertForTokenClassification"
    has_pooler = False

    def __init__(
        self, config, num_labels=None, id2label=None, attention="auto", **kwargs
    ):
        given = config
        config, count = choose_labels(config, num_labels, id2label)
        is_open = has_open_labels(given, num_labels, id2label)
        super().__init__(config, attention, **kwargs)
        self.num_labels = count
        self._has_open_labels = is_open
        self.dropout = _head_dropout(config, self.dtype_policy)
        self.classifier = task_head(
            self.num_labels, config, self.dtype_policy, "classifier"
        )
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the head; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        self.classifier.build((None, None, self.config.hidden_size))

    def call(self, batch, training=None):
        """Returns logits, `(B, S, K)`, of a batch as in `BertEncoder.call`.

        Args:
            batch: As in `BertEncoder.call`.
            training: Whether to drop values.
        """
        hidden = self.encoder(batch, training=training)["sequence_output"]
        return self.classifier(self.dropout(hidden, training=training))

    def predict_tags(
        self, tokens, max_length=None, batch_size=32, *, verbose=False
    ):
        """Gives each of some given words a tag.

        Args:
            tokens: A list of R lists of words, as `load_dataset` has them.
            max_length: Tokens of a window; a longer sentence goes into
                several. None: as in the fine-tuning, else at most 384.
            batch_size: Most windows computed at a time.
            verbose: Whether to print how far it is.

        Returns:
            R lists, a tag for each word.

        Raises:
            ValueError: The model has no tokenizer, its labels are not BIO, a
                row holds no words, or an output is NaN or infinite.
        """
        settings = Settings(max_length=max_length)
        columns = {"tokens": as_list(tokens, "tokens")}
        return self._predict(
            word_tasks.Tags, columns, settings, batch_size, verbose
        )

    def predict_entities(
        self, texts, max_length=None, batch_size=32, *, verbose=False
    ):
        """Finds entities in raw texts.

        Args:
            texts: A list of texts, or a column of a table.
            max_length: Tokens of a window; a longer text goes into several.
                None: as in the fine-tuning, else at most 384.
            batch_size: Most windows computed at a time.
            verbose: Whether to print how far it is.

        Returns:
            A list for each text of dicts: `text`, `type`, `start` and `end`
            in characters, and `score`, the mean probability of its words.

        Raises:
            ValueError: The model has no tokenizer, its labels are not BIO, or
                an output is NaN or infinite.
        """
        check_count(batch_size, "batch_size")
        check_switch(verbose, "verbose")
        check_max_length(max_length, has_pair=False)
        texts = as_list(texts, "texts")
        if not len(texts):
            return []
        if isinstance(texts[0], list | tuple):
            raise ValueError(
                "`texts[0]` must be a string; `predict_tags` takes lists of "
                f"words. Received: {type(texts[0]).__name__}."
            )
        return word_tasks.find_entities_in(
            self, texts, max_length, batch_size, verbose
        )

    def get_config(self):
        """Returns what Keras needs to build this model again."""
        return {**super().get_config(), "num_labels": self.num_labels}

    @classmethod
    def _options(cls, checkpoint, options):
        return _labels_of(checkpoint, options)


@keras.saving.register_keras_serializable("bertbook")
class BertForQuestionAnswering(BertWithHead):
    """Finds where the answer to a question starts and ends in a text.

    Source: Devlin et al. (2019), section 4.2.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    >>> import bertbook as bb
    >>> model = bb.BertForQuestionAnswering.from_pretrained("mini-squad")
    >>> text = "The library was built in 1843 by the town."
    >>> (found,) = model.predict_answers(["When was it built?"], [text])
    >>> found["text"], found["start"], found["end"]
    ('1843', 25, 29)
    """

    architecture = "BertForQuestionAnswering"
    has_pooler = False

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(config, attention, **kwargs)
        self.span = task_head(2, config, self.dtype_policy, "span")
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the head; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        self.span.build((None, None, self.config.hidden_size))

    @property
    def no_answer_threshold(self):
        """How much better "no answer" must score than the best answer.

        None for a model that was trained on questions that all have one.
        """
        return self.config.extra.get("no_answer_threshold")

    def call(self, batch, training=None):
        """Returns `start_logits` and `end_logits`, `(B, S)` each.

        Args:
            batch: As in `BertEncoder.call`, the question first. For rows that
                hold E texts the logits are `(B, E, S)`, those of other texts
                -1e4.
            training: Whether to drop values.
        """
        hidden = self.encoder(batch, training=training)["sequence_output"]
        logits = self.span(hidden)  # (B, S, 2)
        both = {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
        if "cls_positions" not in batch:
            return both
        is_own = own_tokens(batch)  # (B, E, S)
        return {
            name: ops.where(is_own, scores[:, None], MASKED_SCORE)
            for name, scores in both.items()
        }

    def predict_answers(
        self,
        questions,
        contexts,
        max_length=None,
        stride=None,
        max_answer_length=30,
        batch_size=32,
        *,
        verbose=False,
    ):
        """Answers questions with a part of a text.

        Args:
            questions: A list of questions.
            contexts: A list of as many texts, one for each question.
            max_length: Tokens of a window. A longer context goes into
                several. None: as in the fine-tuning, else at most 384.
            stride: Tokens from one window to the next. None: as in the
                fine-tuning where `max_length` is None, else half of what a
                window holds of the context.
            max_answer_length: Most pieces of an answer.
            batch_size: Most windows computed at a time.
            verbose: Whether to print how far it is.

        Returns:
            A dict for each question: `text`, `start` and `end` in characters
            of the context, and `score`, its probability among the best
            answers. The text is empty where "no answer" wins.

        Raises:
            ValueError: The model has no tokenizer, a text is empty, or a
                question leaves no room for the context, its row is named; or
                an output is NaN or infinite.
        """
        columns = {
            "question": as_list(questions, "questions"),
            "context": as_list(contexts, "contexts"),
        }
        check_as_many(
            columns["context"], "contexts", columns["question"], "questions"
        )
        check_count(max_answer_length, "max_answer_length")
        if stride is not None:
            check_count(stride, "stride")
        settings = Settings(
            max_length=max_length,
            stride=stride,
            max_answer_length=max_answer_length,
        )
        return self._predict(
            word_tasks.Questions, columns, settings, batch_size, verbose
        )


@keras.saving.register_keras_serializable("bertbook")
class BertForMultipleChoice(BertWithHead):
    """Chooses how a text goes on.

    Source: Devlin et al. (2019), section 4.4.

    Args:
        config: A `BertConfig`.
        attention: As in `BertEncoder`.
        **kwargs: Keywords of `keras.Model`, for example `dtype`.

    >>> import bertbook as bb
    >>> model = bb.BertForMultipleChoice.from_pretrained("mini")
    >>> choices = ["The road is wet.", "The road is dry."]
    >>> (found,) = model.predict_choices(["It rained."], [choices])
    >>> found["text"] == choices[found["choice"]]
    True
    """

    architecture = "BertForMultipleChoice"
    _input_rank = 3

    def __init__(self, config, attention="auto", **kwargs):
        super().__init__(config, attention, **kwargs)
        self.dropout = _head_dropout(config, self.dtype_policy)
        self.classifier = task_head(1, config, self.dtype_policy, "classifier")
        self.build()

    def build(self, input_shape=None):
        """Creates the weights of the head; called once, by `__init__`.

        Args:
            input_shape: Given by Keras, and not read.
        """
        self.classifier.build((None, self.config.hidden_size))

    def call(self, batch, training=None):
        """Returns logits, `(B, C)`.

        Args:
            batch: `input_ids`, `token_type_ids` and `attention_mask` of shape
                `(B, C, S)`: the text with each of C choices.
            training: Whether to drop values.
        """
        choices, length = ops.shape(batch["input_ids"])[1:]
        flat = {
            name: ops.reshape(array, (-1, length))  # (B * C, S)
            for name, array in batch.items()
        }
        pooled = pooled_output(self.encoder, flat, training)  # (B * C, D)
        scores = self.classifier(self.dropout(pooled, training=training))
        return ops.reshape(scores, (-1, choices))

    def predict_choices(
        self,
        texts,
        choices,
        max_length=None,
        batch_size=8,
        *,
        all_scores=False,
        verbose=False,
    ):
        """Chooses for raw texts.

        Args:
            texts: A list of texts.
            choices: For each a list of C texts that may follow.
            max_length: Tokens that longer pairs are cut to. None: those of
                the fine-tuning, else none is cut.
            batch_size: Most texts computed at a time.
            all_scores: Whether to return the probability of every choice.
            verbose: Whether to print how far it is.

        Returns:
            A dict for each text: `choice`, its number, `text`, the choice
            itself, and `score`, its probability; with `all_scores` also
            `scores`, a dict of the probability of each number.

        Raises:
            ValueError: The model has no tokenizer, a text has another number
                of choices, or a pair is too long, the row is named; or an
                output is NaN or infinite.
        """
        check_switch(all_scores, "all_scores")
        columns = {
            "text": as_list(texts, "texts"),
            "choices": as_list(choices, "choices"),
        }
        check_as_many(columns["choices"], "choices", columns["text"], "texts")
        return self._predict(
            text_tasks.Choices,
            columns,
            Settings(max_length=max_length),
            batch_size,
            verbose,
            all_scores=all_scores,
        )

    def _checked(self, batch):
        """Returns a batch that fits the config, its lists made arrays.

        Args:
            batch: A dict of arrays or tensors of shape `(B, C, S)`.

        Raises:
            KeyError: There are no `input_ids`.
            ValueError: It does not fit.
            RuntimeError: The process was forked after Keras was loaded.
        """
        refuse_forked_process()
        batch = without_lists(batch)
        ids = batch.get("input_ids")
        if ids is not None and len(ids.shape) != 3:
            raise ValueError(
                "`input_ids` must have shape (B, C, S), a row for each "
                f"choice. Received: {tuple(ids.shape)}."
            )
        if all(is_concrete(array) for array in batch.values()):
            flat = {
                name: np.reshape(array, (-1, np.shape(array)[-1]))
                for name, array in batch.items()
            }
            batching.check_batch(flat, self.config)
        elif ids is not None:
            batching.check_shape(ids.shape[1:], self.config)
        return batch


def pooled_output(encoder, batch, training=None):
    """Returns the pooled vector of each row, `(B, D)`.

    The last layer computes [CLS] alone.
    """
    first = ops.zeros_like(batch["input_ids"][:, :1])  # (B, 1)
    outputs = encoder(batch, positions=first, training=training)
    return encoder.pooler(outputs["sequence_output"][:, 0])


def pooled_outputs(encoder, batch, training=None):
    """Returns the pooled vectors of rows that hold E texts, `(B, E, D)`.

    The last layer computes the [CLS] of each text alone.
    """
    first = batch["cls_positions"]  # (B, E)
    outputs = encoder(batch, positions=first, training=training)
    return encoder.pooler(outputs["sequence_output"])


def own_tokens(batch):
    """Tells which tokens of a row belong to each of its E texts.

    Args:
        batch: A packed batch: the [CLS] of a text sees its own tokens alone.

    Returns:
        Boolean tensor of shape `(B, E, S)`.
    """
    first = batch["cls_positions"][:, :, None]  # (B, E, 1)
    visible = ops.take_along_axis(batch["attention_mask"], first, axis=1)
    return ops.not_equal(visible, 0)


def _head_dropout(config, dtype):
    """Returns the dropout before a head.

    Its rate is `classifier_dropout` where a config has it, else that of the
    encoder.
    """
    rate = config.extra.get("classifier_dropout")
    if rate is None:
        rate = config.hidden_dropout_prob
    return Dropout(rate, dtype=dtype)


def _labels_of(checkpoint, options):
    """Adds the number of labels of a stored head to the keywords of a model.

    Raises:
        ValueError: The config counts other labels than the head has.
    """
    is_open = options.get("num_labels") is None and not options.get("id2label")
    if not is_open or "classifier/bias" not in checkpoint.arrays:
        return options
    count = checkpoint.arrays["classifier/bias"].size
    config = checkpoint.config
    known = {"num_labels": config.extra.get("num_labels", count)}
    if config.id2label is not None:
        known["id2label"] = len(config.id2label)
    for key, number in known.items():
        if number != count:
            raise ValueError(
                f"`{key}` must tell of {count} labels, as "
                f"{checkpoint.stored_names['classifier/bias']} has. "
                f"Received: {number}."
            )
    return {**options, "num_labels": count}
