"""The four tasks: `tasks.py` of `mybert`.

A model is filled with known numbers and tried in steps: its layers, its logits,
dropout, and last what takes long, a compiled run. Training is tried on a table
of logits whose weights stay as they are, so that nothing depends on chance.
"""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from bertbook.book.parts.bert import BATCH, SIZES
from bertbook.book.parts.part import (
    Calls,
    Part,
    filled,
    in_turn,
    numbers,
    of_tensorflow,
    outcome,
)
from bertbook.plain import tasks as plain
from bertbook.plain.bert import Bert
from bertbook.plain.pretraining import IGNORED
from bertbook.plain.tokenizer import SPECIAL, Tokenizer
from bertbook.runtime import keras, ops

Batch = dict[str, np.ndarray]

# -------------------------------------------------- models with a head


@contextlib.contextmanager
def _squares() -> Iterator[list[tuple[Any, bool]]]:
    """Makes dropout square its input in training instead of dropping some.

    Yields:
        Each layer that is called, and whether it knows of a training.
    """
    told: list[tuple[Any, bool]] = []

    def call(self, inputs, training=False):
        told.append((self, bool(training)))
        return inputs * inputs if training else inputs

    before = keras.layers.Dropout.call
    keras.layers.Dropout.call = call
    try:
        yield told
    finally:
        keras.layers.Dropout.call = before


@cache
def _filled_encoder() -> Any:
    bert = Bert(**SIZES | {"L": 1})
    bert(BATCH)
    filled(bert)
    return bert


def _encoder() -> Any:
    """Returns the encoder of all models, as it was before one had it."""
    bert = _filled_encoder()
    for value in (False, True):  # one that it has is not handed on
        bert.trainable = value
    return bert


def _in_words(told: list[bool]) -> str:
    """Returns what a layer knows of training."""
    if not told:
        return "is not used"
    return "works" if any(told) else "does not know that it is training"


def _pair(logits: Any) -> dict[str, np.ndarray]:
    """Returns the logits of starts and ends as arrays.

    Raises:
        TypeError: They are no dictionary.
    """
    if isinstance(logits, dict):
        return {name: numbers(one) for name, one in logits.items()}
    kind = type(logits).__name__
    kind = f"a {kind}" if isinstance(logits, list | tuple) else "something else"
    raise TypeError(
        "it must return a dictionary of `start_logits` and `end_logits`; it "
        f"returns {kind}"
    )


def _headed(
    new: Callable[[Any, Any], Any],
    layers: tuple[str, ...],
    batches: tuple[Batch, ...],
    values: Callable[[Any], Any],
    model_class: Any,
) -> Calls:
    """Tries an encoder with a head.

    Args:
        new: Takes a class and an encoder, and returns a model.
        layers: The attributes that other parts of the book use. The last one
            is the head.
        batches: What it is tried on.
        values: Makes arrays of its logits.
        model_class: The class.
    """
    model = cache(lambda: new(model_class, _encoder()))

    @cache
    def trained():
        # As `fit` does on JAX: layers inside do not know that it is training.
        with _squares() as told:
            found = model().call(dict(batches[0]), training=True)
        return found, told

    def knows(layer):
        return _in_words([known for one, known in trained()[1] if one is layer])

    def parts():
        made = new(model_class, _encoder())
        missing = [f"`{name}`" for name in layers if not hasattr(made, name)]
        found = {"missing attributes": ", ".join(missing) or "none"}
        if "dropout" in layers:
            rate = getattr(getattr(made, "dropout", None), "rate", 0)
            found["the rate of `dropout`"] = round(rate, 3)
        return found

    def weights():
        if model()(dict(batches[0])) is None:
            return None
        head = getattr(model(), layers[-1])
        return filled(head)

    def logits(batch):
        with _squares():
            return values(model()(dict(batch)))

    def trainable():
        bert = new(model_class, _encoder()).bert
        return {
            "pooler": bert.pooler.trainable,
            "weights of the encoder": len(bert.trainable_variables),
        }

    def compiled():
        _, *choices, _ = batches[0]["input_ids"].shape
        unknown = keras.Input(batch_shape=(None, *choices, None), dtype="int32")
        try:
            found = model()(dict.fromkeys(BATCH, unknown))
        except Exception as error:  # Keras says much, and not what helps
            words = (
                "in `fit` no value is known before the run, nor B, nor S: use "
                "`ops` alone, and `ops.shape` for sizes"
            )
            raise TypeError(words).with_traceback(error.__traceback__) from None
        if isinstance(found, dict):
            return {name: len(one.shape) for name, one in found.items()}
        return len(found.shape)

    def drawn():
        made = new(model_class, Bert(**SIZES | {"L": 0, "D": 200}))
        head = getattr(made, layers[-1])
        if not head.built:
            head.build((None, 200))
        return {
            v.name: round(float(np.std(numbers(v.value))), 2)
            for v in head.weights
        }

    calls: Calls = {
        "its parts": parts,
        f"the weights of `{layers[-1]}`": weights,
        "how many weights the model has": lambda: len(model().weights),
    }
    for batch in batches:
        size = ", ".join(map(str, batch["input_ids"].shape))
        calls[f"the logits of a batch, ({size})"] = partial(logits, batch)

    calls["in training, the encoder"] = lambda: knows(
        model().bert.embeddings.dropout
    )
    if "dropout" in layers:
        calls["in training, `dropout`"] = lambda: knows(model().dropout)
    return calls | {
        "the logits in training": lambda: values(trained()[0]),
        "what is trained": trainable,
        "the axes where B and S are not known, as in `fit`": compiled,
        "the spread of new weights": drawn,
        "its names": lambda: {
            "architecture": model().architecture,
            "heads": ", ".join(model().heads()),
        },
    }


def _choices(B: int, C: int, S: int) -> Batch:
    """Returns a batch whose rows are choices."""
    draw = np.random.default_rng(B)
    lengths = draw.integers(2, S + 1, (B, C, 1))
    batch = {
        "input_ids": draw.integers(1, 7, (B, C, S)),
        "token_type_ids": np.tile(np.arange(S) > 1, (B, C, 1)),
        "attention_mask": np.arange(S) < lengths,
    }
    return {name: array.astype("int32") for name, array in batch.items()}


K = 8
CLASSIFIER = "bert", "dropout", "classifier"
ENCODER = "self.bert, self.dropout = bert, layers.Dropout(0.1)"
POOLED = "self.bert.pooled(batch, training)"
TOKENS = "self.bert(batch, training=training)"
LAST = "self.classifier(self.dropout(x, training=training))"
DRAWN = "kernel_initializer=normal()"
TEXT_CLASSIFIER = Part(
    "tasks",
    "40",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert, K),
            CLASSIFIER,
            (BATCH,),
            numbers,
        ),
        plain.TextClassifier,
    ),
    mistakes=(
        (
            DRAWN,
            "kernel_initializer=normal",
            "`normal` is a function that makes the initializer, so it needs "
            "its parentheses: `normal()`",
        ),
        (
            "def call(self, batch, training=None):",
            "def call(self, batch):\n        training = None",
            "`call` must take `training`, too: with it `fit` says that it is "
            "training",
        ),
        (
            POOLED,
            f"{TOKENS}[:, 0]",
            "the pooler is left out: `self.bert.pooled` takes the vector of "
            "[CLS] and puts it through the pooler",
        ),
        (
            POOLED,
            f"self.bert.pooler({TOKENS}[:, -1])",
            "the pooler gets the last token; it must get [CLS], the first",
        ),
        (
            POOLED,
            f"{TOKENS}[:, -1]",
            "the last token is read; read the pooled vector, which is that of "
            "[CLS]",
        ),
        (
            POOLED,
            f"ops.mean({TOKENS}, axis=1)",
            "the mean of all tokens is read, padding too; read the pooled "
            "vector, which is that of [CLS]",
        ),
        (
            f"x = {POOLED}",
            'real = ops.cast(batch["attention_mask"], "float32")[..., None]\n'
            f"        x = ops.sum({TOKENS} * real, 1) / ops.sum(real, 1)",
            "the mean of the real tokens is read; read the pooled vector, "
            "which is that of [CLS]",
        ),
        (
            POOLED,
            f"self.bert.pooler(ops.mean({TOKENS}, axis=1))",
            "the pooler gets the mean of all tokens; it must get [CLS]",
        ),
        (
            POOLED,
            f"ops.max({TOKENS}, axis=1)",
            "the largest value over all tokens is read; read the pooled "
            "vector, which is that of [CLS]",
        ),
        (
            POOLED,
            TOKENS,
            "each token has logits, and a text must have one row: read the "
            "pooled vector",
        ),
        (
            POOLED,
            f"self.bert.pooler({TOKENS})",
            "the pooler gets every token, so that each has logits; it must "
            "get [CLS] alone",
        ),
        (
            POOLED,
            "self.bert.pooler(self.bert.states(batch)[0][:, 0])",
            "the pooler gets the embedding of [CLS], the same for every text; "
            "it must get the vector after the last block",
        ),
        (
            POOLED,
            f"ops.tanh({POOLED})",
            "tanh comes twice: it is in the pooler",
        ),
        (
            POOLED,
            f"ops.expand_dims({POOLED}, 1)",
            "the logits have an axis of length 1 too many: they must be (B, K)",
        ),
        (
            f"return {LAST}",
            f"return ops.softmax({LAST})",
            "these are probabilities; leave softmax out, the loss has it",
        ),
        (
            f"return {LAST}",
            f"return ops.log_softmax({LAST})",
            "these are logarithms of probabilities; leave softmax out, the "
            "loss has it",
        ),
        (
            f"return {LAST}",
            f"return ops.sigmoid({LAST})",
            "sigmoid makes something else of the logits; leave it out",
        ),
        (
            f"return {LAST}",
            f"return ops.argmax({LAST}, axis=-1)",
            "it returns the number of the best class; return all K logits",
        ),
        (
            f"return {LAST}",
            f"return layers.Dense({K})(self.dropout(x, training=training))",
            "`self.classifier` is not used; a layer that `call` makes would be "
            "new each time",
        ),
        (
            f"return {LAST}",
            "return self.classifier(x)",
            "`dropout` is not used: put it between the pooled vector and "
            "`classifier`",
        ),
        (
            f"return {LAST}",
            "return self.dropout(self.classifier(x), training=training)",
            "`dropout` comes after `classifier`; it must come before",
        ),
        (
            "self.dropout(x, training=training)",
            "self.dropout(x, training=True)",
            "`dropout` is always at work; hand `training` on, which says when",
        ),
        (
            "self.dropout(x, training=training)",
            "self.dropout(x, training)",
            "`self.dropout` takes `training` by its name: "
            "`self.dropout(x, training=training)`",
        ),
        (
            "self.dropout(x, training=training)",
            "self.dropout(x)",
            "`dropout` does not learn that it is training: hand `training` on",
        ),
        (
            POOLED,
            "self.bert.pooled(batch)",
            "the encoder does not learn that it is training, so that its own "
            "dropout never works: hand `training` on",
        ),
        (
            POOLED,
            "self.bert.pooled(batch, True)",
            "the encoder's dropout is always at work; hand `training` on, "
            "which says when",
        ),
        (
            POOLED,
            "self.bert.pooler(self.bert(batch, training)[:, 0])",
            "`self.bert` takes `training` by its name: "
            "`self.bert(batch, training=training)`",
        ),
        (
            "layers.Dense(K, ",
            "layers.Dense(2, ",
            "there are always two logits; K says how many",
        ),
        (
            "layers.Dense(K, ",
            "layers.Dense(K, 'tanh', ",
            "`classifier` has tanh; logits need no activation",
        ),
        (
            "layers.Dense(K, ",
            "layers.Dense(K, use_bias=False, ",
            "`classifier` has no bias",
        ),
        (
            f", {DRAWN}",
            "",
            "`classifier` starts from Keras' own draw; give it "
            "`kernel_initializer=normal()`",
        ),
        (
            DRAWN,
            "kernel_initializer='zeros'",
            "`classifier` starts at 0; give it `kernel_initializer=normal()`",
        ),
        (
            ENCODER,
            "self.bert, self.dropout = bert, layers.Dropout(0.9)",
            "`layers.Dropout` takes the share that is dropped, 0.1",
        ),
        (
            ENCODER,
            "self.bert, self.dropout = bert, layers.Dropout(0.5)",
            "half of the vector is dropped; the rate is 0.1",
        ),
        (
            "self.bert, ",
            "self.encoder, ",
            "the encoder must be `self.bert`: `load` and `save` look there",
        ),
        (
            ", self.dropout = bert, layers.Dropout(0.1)",
            " = bert",
            "`self.dropout` is missing, a `layers.Dropout` of 0.1",
        ),
        (
            "self.classifier = ",
            "self.head = ",
            "the head must be `self.classifier`: `load` and `save` look there",
        ),
        (
            ENCODER,
            f"{ENCODER}\n        bert.trainable = False",
            "the encoder is frozen; it is trained with the head",
        ),
        (
            ENCODER,
            f"{ENCODER}\n        bert.pooler.trainable = False",
            "the pooler is frozen; it is trained with the head",
        ),
    ),
)

FLAT = "flat = {name: ops.reshape(batch[name], (B * C, S)) for name in BATCH}"
SCORED = "ops.reshape(super().call(flat, training), (B, C))"
CHOICE_MODEL = Part(
    "tasks",
    "41",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert),
            CLASSIFIER,
            (_choices(2, 3, 4), _choices(3, 2, 5)),
            numbers,
        ),
        plain.ChoiceModel,
    ),
    mistakes=(
        (
            "def call(self, batch, training=None):",
            "def call(self, batch):\n        training = None",
            "`call` must take `training`, too: with it `fit` says that it is "
            "training",
        ),
        (
            SCORED,
            "super().call(flat, training)",
            "the logits are (B * C, 1): a row for each choice; reshape them "
            "to (B, C), a row for each text",
        ),
        (
            SCORED,
            "ops.reshape(super().call(flat, training), (B, C, 1))",
            "the logits are (B, C, 1): leave the last axis out",
        ),
        (
            SCORED,
            "super().call(flat, training)[:, 0]",
            "the logits are (B * C,); reshape them to (B, C), a row for each "
            "text",
        ),
        (
            SCORED,
            "ops.reshape(super().call(flat, training), (C, B))",
            "the logits are (C, B); they must be (B, C), a row for each text",
        ),
        (
            SCORED,
            "ops.transpose(ops.reshape(super().call(flat, training), (C, B)))",
            "the shape is right, and the rows are mixed: all choices of the "
            "first text come first, so that it is `(B, C)` at once",
        ),
        (
            "ops.reshape(batch[name], (B * C, S))",
            "ops.reshape(ops.swapaxes(batch[name], 0, 1), (B * C, S))",
            "B and C are exchanged before the texts go through the encoder; "
            "then a row of the result holds choices of several texts",
        ),
        (
            f"{FLAT}\n        return {SCORED}",
            "flat = {name: batch[name][:, 0] for name in BATCH}\n"
            "        return super().call(flat, training)",
            "only the first choice of each text is read",
        ),
        (
            SCORED,
            f"ops.softmax({SCORED})",
            "these are probabilities; leave softmax out, the loss has it",
        ),
        (
            SCORED,
            f"ops.log_softmax({SCORED})",
            "these are logarithms of probabilities; leave softmax out, the "
            "loss has it",
        ),
        (
            "super().call(flat, training)",
            "super().call(batch, training)",
            "the encoder takes arrays (B, S): put all choices of all texts "
            "under one another first, and hand these on",
        ),
        (
            "(B * C, S)) for",
            "(B, C * S)) for",
            "the choices of a text are joined into one long row; each must be "
            "a row by itself",
        ),
        (
            "for name in BATCH}",
            'for name in ["input_ids"]}',
            "the encoder needs all three arrays of the batch",
        ),
        (
            SCORED,
            f"ops.softmax({SCORED}, axis=0)",
            "softmax runs over the texts, and there should be none: return "
            "logits",
        ),
        (
            SCORED,
            "ops.reshape(ops.softmax(super().call(flat, training)), (B, C))",
            "softmax runs over an axis of length 1, and every choice gets 1; "
            "leave it out",
        ),
        (
            SCORED,
            f"ops.sigmoid({SCORED})",
            "sigmoid judges each choice by itself; return logits, among which "
            "the loss chooses",
        ),
        (
            SCORED,
            f"ops.argmax({SCORED}, axis=-1)",
            "it returns the number of the best choice; return all C logits",
        ),
        (
            "super().call(flat, training)",
            "super().call(flat)",
            "`training` does not reach `super().call`, so that no dropout "
            "works",
        ),
        (
            "super().call(flat, training)",
            "super().call(flat, True)",
            "dropout is always at work; hand `training` on, which says when",
        ),
        (
            "super().call(flat, training)",
            "self.call(flat, training)",
            "it calls itself, with arrays of two axes: `super().call` is the "
            "`call` of `TextClassifier`",
        ),
        (
            "super().call(flat, training)",
            "self.classifier(self.bert.pooled(flat, training))",
            "`dropout` is left out: let `super().call` do all this",
        ),
        (
            "super().call(flat, training)",
            "self.classifier(self.dropout(self.bert(flat, training=training)"
            "[:, 0], training=training))",
            "the pooler is left out: let `super().call` do all this",
        ),
        (
            FLAT,
            f"{FLAT}\n        flat['attention_mask'] = ops.ones((B * C, S), "
            "'int32')",
            "the masks are lost: padding is read",
        ),
        (
            FLAT,
            f"{FLAT}\n        flat['token_type_ids'] = ops.zeros((B * C, S), "
            "'int32')",
            "the segments are lost",
        ),
        (
            "super().__init__(bert, 1)",
            "super().__init__(bert, 2)",
            "a choice has two logits; it needs one: K = 1",
        ),
        *of_tensorflow(
            'ops.shape(batch["input_ids"])',
            'batch["input_ids"].shape',
            "in `fit` the number of texts is not known before the run, and "
            "`.shape` has None for it: use `ops.shape`",
        ),
    ),
)

NO_POOLER = """\
        bert.pooler.trainable = False  # it reads [CLS], and is not used
"""
BOTH = '"start_logits": logits[..., 0], "end_logits": logits[..., 1]'
SPAN_MODEL = Part(
    "tasks",
    "42",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert),
            ("bert", "span"),
            (BATCH,),
            _pair,
        ),
        plain.SpanModel,
    ),
    mistakes=(
        (
            "def call(self, batch, training=None):",
            "def call(self, batch):\n        training = None",
            "`call` must take `training`, too: with it `fit` says that it is "
            "training",
        ),
        (
            BOTH,
            '"start_logits": logits[..., 1], "end_logits": logits[..., 0]',
            "start and end are exchanged: the first column of `span` is the "
            "start",
        ),
        (
            BOTH,
            '"start": logits[..., 0], "end": logits[..., 1]',
            "the two outputs must be called `start_logits` and `end_logits`",
        ),
        (
            "return {" + BOTH + "}",
            "return logits",
            "it returns one array, (B, S, 2); return a dictionary of "
            "`start_logits` and `end_logits`, one column each",
        ),
        (
            "return {" + BOTH + "}",
            "return logits[..., 0], logits[..., 1]",
            "it returns a pair; return a dictionary of `start_logits` and "
            "`end_logits`",
        ),
        (
            BOTH,
            '"start_logits": logits[:, 0], "end_logits": logits[:, 1]',
            "the first two tokens are taken for the two columns: the last "
            "axis has them, `logits[..., 0]`",
        ),
        (
            BOTH,
            '"start_logits": logits[..., :1], "end_logits": logits[..., 1:]',
            "the outputs have an axis of length 1 too many: they must be "
            "(B, S)",
        ),
        (
            BOTH,
            BOTH.replace("1", "0"),
            "start and end are the same column of `span`",
        ),
        (
            BOTH,
            '"start_logits": ops.softmax(logits[..., 0]), '
            '"end_logits": ops.softmax(logits[..., 1])',
            "these are probabilities; leave softmax out, the loss has it",
        ),
        (
            BOTH,
            '"start_logits": ops.log_softmax(logits[..., 0]), '
            '"end_logits": ops.log_softmax(logits[..., 1])',
            "these are logarithms of probabilities; leave softmax out, the "
            "loss has it",
        ),
        (
            BOTH,
            '"start_logits": ops.sigmoid(logits[..., 0]), '
            '"end_logits": ops.sigmoid(logits[..., 1])',
            "sigmoid makes something else of the logits; leave it out",
        ),
        (
            f"self.span({TOKENS})",
            f"self.span({TOKENS}) "
            '+ ops.cast(batch["attention_mask"][..., None] - 1, "float32") * '
            "1e9",
            "padding is masked; leave its logits, whoever reads them looks at "
            "the context alone",
        ),
        (
            f"self.span({TOKENS})  # (B, S, 2)\n        return {{{BOTH}}}",
            f"self.span({TOKENS})\n"
            '        S = ops.shape(batch["input_ids"])[1]\n'
            "        logits = ops.reshape(logits, (-1, 2, S))\n"
            '        return {"start_logits": logits[:, 0], '
            '"end_logits": logits[:, 1]}',
            "`reshape` mixes tokens with columns; take the columns by their "
            "place on the last axis",
        ),
        (
            f"self.span({TOKENS})",
            f"ops.softmax(self.span({TOKENS}))",
            "softmax runs over start and end of one token; leave it out",
        ),
        (
            BOTH,
            '"start_logits": ops.argmax(logits[..., 0], axis=-1), '
            '"end_logits": ops.argmax(logits[..., 1], axis=-1)',
            "it returns the two best places; return the logits of all tokens",
        ),
        (
            TOKENS,
            POOLED,
            "the pooled vector is that of [CLS] alone; every token needs two "
            "logits",
        ),
        (
            TOKENS,
            f"self.bert.pooler({TOKENS})",
            "the vectors go through the pooler; `span` reads them as they are",
        ),
        (
            TOKENS,
            "self.bert.states(batch)[0]",
            "`span` reads the embeddings; it must read the last vectors",
        ),
        (
            TOKENS,
            f"ops.tanh({TOKENS})",
            "tanh comes between the vectors and `span`; nothing does",
        ),
        (
            TOKENS,
            f"layers.Dropout(0.1)({TOKENS}, training=training)",
            "there is dropout before `span`; this head has none",
        ),
        (
            TOKENS,
            "self.bert(batch)",
            "the encoder does not learn that it is training, so that its "
            "dropout never works: hand `training` on",
        ),
        (
            TOKENS,
            "self.bert(batch, training=True)",
            "the encoder's dropout is always at work; hand `training` on, "
            "which says when",
        ),
        (
            TOKENS,
            "self.bert(batch, training)",
            "`self.bert` takes `training` by its name: "
            "`self.bert(batch, training=training)`",
        ),
        (
            NO_POOLER,
            "",
            "the pooler would be trained, and nothing reads it: "
            "`bert.pooler.trainable = False`",
        ),
        (
            NO_POOLER,
            "        bert.trainable = False\n",
            "the whole encoder is frozen; only its pooler must be",
        ),
        (
            "layers.Dense(2, ",
            "layers.Dense(1, ",
            "`span` has one column; it needs two, for start and end",
        ),
        (
            "layers.Dense(2, ",
            "layers.Dense(2, 'tanh', ",
            "`span` has tanh; logits need no activation",
        ),
        (
            f", {DRAWN}",
            "",
            "`span` starts from Keras' own draw; give it "
            "`kernel_initializer=normal()`",
        ),
        (
            "self.span = ",
            "self.head = ",
            "the head must be `self.span`: `load` and `save` look there",
        ),
        (
            "self.bert = bert",
            "self.encoder = bert",
            "the encoder must be `self.bert`: `load` and `save` look there",
        ),
    ),
)

TAG_MODEL = Part(
    "tasks",
    "43",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert, K),
            CLASSIFIER,
            (BATCH,),
            numbers,
        ),
        plain.TagModel,
    ),
    mistakes=(
        (
            "def call(self, batch, training=None):",
            "def call(self, batch):\n        training = None",
            "`call` must take `training`, too: with it `fit` says that it is "
            "training",
        ),
        (
            TOKENS,
            POOLED,
            "there is one row of logits for a text: the pooled vector is that "
            "of [CLS], and every token must have its row",
        ),
        (
            TOKENS,
            f"{TOKENS}[:, 0]",
            "only [CLS] is read; every token must have a row of logits",
        ),
        (
            TOKENS,
            f"ops.mean({TOKENS}, axis=1)",
            "the mean of all tokens is read; every token must have a row of "
            "logits",
        ),
        (
            TOKENS,
            f"{TOKENS}[:, 1:-1]",
            "the first and the last token are cut off; labels of -100 leave "
            "them out of the loss, and the shape stays (B, S, K)",
        ),
        (
            TOKENS,
            f"{TOKENS}[:, 1:]",
            "[CLS] is cut off; a label of -100 leaves it out of the loss, and "
            "the shape stays (B, S, K)",
        ),
        (
            TOKENS,
            f"self.bert.pooler({TOKENS})",
            "the vectors go through the pooler; the head reads them as they "
            "are",
        ),
        (
            TOKENS,
            "self.bert.states(batch)[0]",
            "the head reads the embeddings; it must read the last vectors",
        ),
        (
            TOKENS,
            f'{TOKENS} * batch["attention_mask"][..., None]',
            "the vectors of padding are set to 0; leave them, labels of -100 "
            "leave them out of the loss",
        ),
        (
            f"return {LAST}",
            f"return ops.softmax({LAST})",
            "these are probabilities; leave softmax out, the loss has it",
        ),
        (
            f"return {LAST}",
            f"return ops.softmax({LAST}, axis=1)",
            "softmax runs over the tokens, and there should be none: return "
            "logits",
        ),
        (
            f"return {LAST}",
            f"return ops.argmax({LAST}, axis=-1)",
            "it returns the best tag of each token; return all K logits",
        ),
        (
            f"return {LAST}",
            f"return ops.swapaxes({LAST}, 1, 2)",
            "the logits are (B, K, S); K must be the last axis",
        ),
        (
            f"return {LAST}",
            f"return ops.reshape({LAST}, (-1, {K}))",
            "the logits are (B * S, K); leave them (B, S, K)",
        ),
        (
            f"return {LAST}",
            f"return layers.Dense({K})(self.dropout(x, training=training))",
            "`classifier` is not used; it has K columns already",
        ),
        (
            f"return {LAST}",
            "return self.classifier(x)",
            "`dropout` is not used: put it between the vectors and "
            "`classifier`",
        ),
        (
            f"return {LAST}",
            "return self.dropout(self.classifier(x), training=training)",
            "`dropout` comes after `classifier`; it must come before",
        ),
        (
            "self.dropout(x, training=training)",
            "self.dropout(x, training=True)",
            "`dropout` is always at work; hand `training` on, which says when",
        ),
        (
            "self.dropout(x, training=training)",
            "self.dropout(x, training)",
            "`self.dropout` takes `training` by its name: "
            "`self.dropout(x, training=training)`",
        ),
        (
            "self.dropout(x, training=training)",
            "self.dropout(x)",
            "`dropout` does not learn that it is training: hand `training` on",
        ),
        (
            TOKENS,
            "self.bert(batch)",
            "the encoder does not learn that it is training, so that its own "
            "dropout never works: hand `training` on",
        ),
        (
            TOKENS,
            "self.bert(batch, training)",
            "`self.bert` takes `training` by its name: "
            "`self.bert(batch, training=training)`",
        ),
        (
            NO_POOLER.rstrip(),
            "",
            "the pooler would be trained, and nothing reads it: "
            "`bert.pooler.trainable = False`",
        ),
        (
            NO_POOLER.rstrip(),
            "        bert.trainable = False",
            "the whole encoder is frozen; only its pooler must be",
        ),
        (
            "super().__init__(bert, K)",
            "super().__init__(bert, 2)",
            "each token has two logits; K says how many",
        ),
    ),
)

# ----------------------------------------------------------------- the training


class _Table(keras.Model):
    """A table of logits, which tells how it is trained."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.rows: list[tuple[int, ...]] = []  # of each step
        self.kernel = self.add_weight((7, 3), name="kernel")
        self.bias = self.add_weight((3,), "zeros", name="bias")
        draw = np.random.default_rng(1)
        self.kernel.assign(draw.normal(size=(7, 3)))

    def call(self, batch):
        """Returns logits as the four models have them."""
        logits = ops.take(self.kernel, batch["input_ids"], axis=0) + self.bias
        if self.kind == "spans":
            names = "start_logits", "end_logits"
            return {name: logits[..., i] for i, name in enumerate(names)}
        if self.kind == "numbers":
            return logits[:, 0, :1]
        return logits[:, 0] if self.kind == "classes" else logits

    def compile(self, *args, **options):
        """Compiles without a graph, so that a step is cheap."""
        super().compile(*args, **options)
        self.run_eagerly = True

    def train_step(self, *given):
        """Keeps the numbers of the rows, and trains nothing."""
        rows = numbers(given[-1][0]["token_type_ids"])[:, 0]
        self.rows.append(tuple(rows.tolist()))
        if len(given) == 1:
            return self.test_step(*given)
        (weights, others, optimizer, metrics), data = given  # of JAX
        told, state = self.test_step((weights, others, metrics), data)
        return told, (*state[:2], optimizer, state[2])


PEAK, SIZE = 0.5, 4


def _rows(count: int) -> Batch:
    draw = np.random.default_rng(count)
    batch = {name: draw.integers(0, 7, (count, 5)) for name in BATCH}
    return batch | {"token_type_ids": np.arange(5 * count).reshape(-1, 5)}


def _labels(kind: str, count: int, dtype: str, hidden: bool) -> Any:
    """Returns labels of one kind, in dev with some that are not asked."""
    draw = np.random.default_rng(count)
    if kind == "numbers":
        return draw.normal(size=count).astype(dtype)
    shape = (count, 5) if kind == "tags" else (count,)
    both = [draw.integers(0, 3, shape).astype(dtype) for _ in range(2)]
    if hidden:
        for one in both:
            one[1:3] = IGNORED
    if kind == "spans":
        return dict(zip(("start_logits", "end_logits"), both, strict=True))
    return both[0]


def _finetuned(finetune: Any) -> Calls:
    """Trains tables of logits of each kind."""
    module = finetune.__module__.replace("tasks", "pretraining")
    adamw = sys.modules[module].adamw

    @cache
    def run(kind, rows, dtype, epochs, with_dev=True):
        keras.utils.set_random_seed(0)
        model = _Table(kind)
        heard: list[int] = []
        callback = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: heard.append(epoch)
        )
        hidden = kind in ("spans", "tags")
        dev = _rows(SIZE), _labels(kind, SIZE, dtype, hidden)
        with contextlib.redirect_stdout(io.StringIO()):  # of a progress bar
            log = finetune(
                model,
                _rows(rows),
                _labels(kind, rows, dtype, hidden=False),
                dev if with_dev else None,
                epochs=epochs,
                peak=PEAK,
                size=SIZE,
                callbacks=[callback],
                verbose=0,
            )
        return model, log, heard

    def returned(*case):
        _, log, _ = run(*case)
        if log is None:
            return None
        is_log = isinstance(log, keras.callbacks.History)
        return "what `fit` returns" if is_log else "something else"

    def options(*case):
        return "reach `fit`" if run(*case)[2] else "do not reach `fit`"

    def steps(*case):
        model, log, _ = run(*case)
        return {
            "epochs": len(log.history["loss"]),
            "rows in each step": [len(rows) for rows in model.rows],
        }

    def order(*case):
        rows = [row for step in run(*case)[0].rows for row in step][: case[1]]
        return "as they were given" if rows == sorted(rows) else "mixed"

    def optimizer(*case):
        model = run(*case)[0]
        used, right = model.optimizer, adamw(PEAK, 9)
        names = "weight_decay", "global_clipnorm"
        same = type(used) is type(right) and all(
            getattr(used, name) == getattr(right, name) for name in names
        )
        weights = model.trainable_variables if same else []
        decays = [v.name for v in weights if used._use_weight_decay(v)]
        return "`adamw`" if decays == ["kernel"] else "another one"

    def rates(*case):
        model = run(*case)[0]
        found = []
        for step in range(len(model.rows) + 1):
            model.optimizer.iterations.assign(step)
            found.append(float(model.optimizer.learning_rate) / PEAK)
        return np.round(found, 4)

    def told(name, *case):
        log = run(*case)[1].history
        return np.array(log[name]) if name in log else "missing"

    classes = "classes", 14, "int64", 2
    spans = "spans", 8, "int32", 1
    tags = "tags", 3, "int32", 1
    numbers32 = "numbers", 5, "float32", 1
    numbers64 = "numbers", 3, "float64", 1, False
    return {
        "what it returns": partial(returned, *classes),
        "`options`": partial(options, *classes),
        "14 rows, two epochs, size 4": partial(steps, *classes),
        "the order of the rows": partial(order, *classes),
        "the optimizer": partial(optimizer, *classes),
        "the rate of each step, in parts of `peak`": partial(rates, *classes),
        "the loss, labels 0, 1, 2": partial(told, "loss", *classes),
        "the loss in `dev`": partial(told, "val_loss", *classes),
        "the accuracy": partial(told, "accuracy", *classes),
        "the accuracy in `dev`": partial(told, "val_accuracy", *classes),
        "the loss of a model with two outputs": partial(told, "loss", *spans),
        "the rate of each of its steps": partial(rates, *spans),
        "the accuracy of its first output": partial(
            told, "start_logits_accuracy", *spans
        ),
        "the accuracy of its second output": partial(
            told, "val_end_logits_accuracy", *spans
        ),
        "the loss of tags, some of them -100": partial(told, "val_loss", *tags),
        "the accuracy of tags, some of them -100": partial(
            told, "val_accuracy", *tags
        ),
        "the loss of numbers": partial(told, "loss", *numbers32),
        "the accuracy of numbers": partial(told, "accuracy", *numbers32),
        "the loss of numbers, float64, without `dev`": partial(
            told, "loss", *numbers64
        ),
    }


LOSSES = "loss, metrics = masked_loss, [accuracy]"
COUNTED = 'epochs * -(-len(batch["input_ids"]) // size)'
COMPILED = "model.compile(adamw(peak, steps), loss, metrics=metrics)"
FITTED = """\
    return model.fit(
        batch, labels, size, epochs, validation_data=dev, **options
    )"""
OF_DICT = """\
        loss = dict.fromkeys(labels, masked_loss)
        metrics = dict.fromkeys(labels, accuracy)"""
FINETUNE = Part(
    "tasks",
    "40",
    attempt=in_turn(_finetuned, plain.finetune),
    mistakes=(
        (
            FITTED,
            f"{FITTED}.history",
            "it must return what `fit` returns, as it is",
        ),
        (
            "dev, **options\n",
            "dev\n",
            "`options` do not reach `fit`: write `**options`",
        ),
        (
            "labels, size, epochs, ",
            "labels, size, ",
            "`epochs` is not used: `fit` stops after the first",
        ),
        (
            "labels, size, epochs, ",
            "labels, epochs=epochs, ",
            "`size` is not used: `fit` takes 32 rows in a step",
        ),
        (
            "labels, size, epochs, ",
            "labels, epochs, size, ",
            "`fit` gets size and epochs the wrong way round",
        ),
        (
            FITTED,
            "    for _ in range(epochs):\n        log = model.fit(batch, "
            "labels, size, validation_data=dev, **options)\n    return log",
            "each epoch is a `fit` of its own, and what is returned tells of "
            "the last alone; `fit` takes `epochs`",
        ),
        (
            "validation_data=dev, **options",
            "validation_data=dev, shuffle=False, **options",
            "the rows come in the same order in every epoch; let `fit` shuffle "
            "them",
        ),
        (
            "adamw(peak, steps)",
            "keras.optimizers.AdamW(peak)",
            "the optimizer is not BERT's: use `adamw(peak, steps)`",
        ),
        (
            COUNTED,
            '-(-len(batch["input_ids"]) // size)',
            "the rate is 0 after the first epoch: `adamw` takes the steps of "
            "all epochs",
        ),
        (
            COUNTED,
            'epochs * (len(batch["input_ids"]) // size)',
            "the last step of an epoch, which has fewer rows, is not counted: "
            "round up",
        ),
        (
            COUNTED,
            '-(-epochs * len(batch["input_ids"]) // size)',
            "it rounds up once for the whole run; each epoch has a last step "
            "with fewer rows",
        ),
        (
            COUNTED,
            'epochs * len(batch["input_ids"])',
            "rows are counted as steps; a step has `size` of them",
        ),
        (
            COUNTED,
            "epochs * -(-len(batch) // size)",
            "`len(batch)` is the number of arrays in the batch; count the rows "
            "of one of them",
        ),
        (
            COUNTED,
            "epochs * -(-len(labels) // size)",
            "labels may be a dictionary, whose length is that of its names; "
            "count the rows of the batch",
        ),
        (
            COUNTED,
            'epochs * (len(batch["input_ids"]) // size + 1)',
            "where `size` divides the number of rows, a step is counted that "
            "does not come",
        ),
        (
            "adamw(peak, steps)",
            "adamw(1e-4, steps)",
            "`peak` is not used",
        ),
        (
            LOSSES,
            "loss, metrics = 'sparse_categorical_crossentropy', [accuracy]",
            "Keras' own loss takes logits for probabilities: use `masked_loss`",
        ),
        (
            LOSSES,
            "loss, metrics = keras.losses.SparseCategoricalCrossentropy("
            "from_logits=True), [accuracy]",
            "Keras' own loss counts labels of -100: use `masked_loss`",
        ),
        (
            'elif labels.dtype.kind == "f":',
            "else:",
            "classes are trained like numbers; see what kind of labels they "
            "are: `labels.dtype.kind`",
        ),
        (
            "validation_data=dev, ",
            "",
            "`dev` is not used: `fit` takes it as `validation_data`",
        ),
        (
            "validation_data=dev",
            "validation_data=(batch, labels)",
            "it is tried on what it learns from; try it on `dev`",
        ),
        (
            LOSSES,
            "loss, metrics = masked_loss, []",
            "`fit` tells no accuracy: give `compile` the metric",
        ),
        (
            LOSSES,
            "loss, metrics = masked_loss, ['accuracy']",
            "Keras' own accuracy counts labels of -100 as wrong: use "
            "`accuracy`, without quotes",
        ),
        (
            f"isinstance(labels, dict):\n{OF_DICT}",
            "False:\n        pass",
            "labels may be a dictionary of arrays, for a model with several "
            "outputs; give a loss and a metric for each",
        ),
        (
            OF_DICT,
            '        loss = {"start_logits": masked_loss}\n'
            "        metrics = dict.fromkeys(labels, accuracy)",
            "only the first of two outputs has a loss; give each one",
        ),
        (
            "metrics = dict.fromkeys(labels, accuracy)",
            "metrics = []",
            "with several outputs `fit` tells no accuracy; give each the "
            "metric",
        ),
        (
            "metrics = dict.fromkeys(labels, accuracy)",
            "metrics = dict.fromkeys(labels, 'accuracy')",
            "with several outputs Keras' own accuracy counts labels of -100 as "
            "wrong: use `accuracy`, without quotes",
        ),
        (
            "metrics = dict.fromkeys(labels, accuracy)",
            "metrics = [accuracy]",
            "one metric stands for two outputs; give each one, by its name",
        ),
        (
            'elif labels.dtype.kind == "f":',
            "elif False:",
            "labels that are floats are taken for classes; their loss is the "
            "mean squared error",
        ),
        (
            '"mean_squared_error"',
            '"mean_absolute_error"',
            "the loss of numbers is the mean absolute error; it must be the "
            "mean squared error",
        ),
        (
            '"mean_squared_error", []',
            '"mean_squared_error", [accuracy]',
            "numbers have no accuracy: leave the metric out",
        ),
        (
            'labels.dtype.kind == "f"',
            'labels.dtype == "float32"',
            "floats of 64 bits, which NumPy makes, are taken for classes",
        ),
        (
            "validation_data=dev",
            "validation_data=(dev[0], dev[1])",
            "`dev` may be None: hand it on as it is",
        ),
    ),
)

# -------------------------------------------------- spans, words and tags


def _best(function: Any) -> Calls:
    """Looks for spans in logits; none has two best ones."""

    def best(start, end, *longest):
        found = outcome(function, (np.array(start), np.array(end), *longest))
        return tuple(found) if isinstance(found, list) else found

    far = np.zeros(40), np.zeros(40)
    far[0][0], far[1][29:31], far[1][36] = 9, (1, 2), 3
    cases: dict[str, tuple] = {
        f"start {start}, end {end}": (start, end)
        for start, end in (
            ([0.0, 3.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.5, 2.0, 0.0]),
            ([0.0, 1.0, 4.0, 0.0], [5.0, 0.0, 0.0, 3.0]),
            ([2.0, 0.0, 3.0, 0.0], [0.0, 4.0, 1.0, 0.0]),
            ([1.0, 0.0, 0.0, 3.0], [3.0, 0.0, 0.0, 2.0]),
            ([1.0, 4.0, 0.5], [3.5, 1.0, 0.0]),
            ([-5.0, -1.0, -3.0], [-4.0, -6.0, -2.0]),
        )
    }
    start = [4.0, 0.0, 0.0, 0.0, 0.0]
    for longest, end in (
        (3, [0.0, 0.5, 1.0, 2.0, 3.0]),
        (3, [0.0, 1.0, 0.5, 0.0, 3.0]),
        (1, [0.0, 0.5, 1.0, 2.0, 3.0]),
    ):
        name = f"start {start}, end {end}, longest {longest}"
        cases[name] = start, end, longest
    cases["40 tokens, of which the first and the 37th score most"] = far
    cases["one token"] = [-1.0], [2.0]
    return {
        f"with {name}": partial(best, *case) for name, case in cases.items()
    }


INSIDE = "range(first, min(first + longest, len(end)))"
BEST = "max(spans, key=lambda span: start[span[0]] + end[span[1]])"
GREEDY = """\
first = int(np.argmax(start))
    last = int(np.argmax(end))
"""
BEST_SPAN = Part(
    "tasks",
    "42",
    attempt=_best,
    mistakes=(
        (
            f"return {BEST}",
            f"first, last = {BEST}\n    return start[first] + end[last]",
            "it returns the score; return the two places",
        ),
        (
            f"return {BEST}",
            f"first, last = {BEST}\n    return start[first], end[last]",
            "it returns the two logits; return their places",
        ),
        (
            f"return {BEST}",
            f"first, last = {BEST}\n    return first, last + 1",
            "the end is one too far: return the place of the last token itself",
        ),
        (
            f"return {BEST}",
            f"first, last = {BEST}\n    return last, first",
            "the two places are the wrong way round",
        ),
        (
            f"return {BEST}",
            f"first, last = {BEST}\n    return first, last - first + 1",
            "it returns the start and the length; return the last place",
        ),
        (
            BEST,
            BEST.replace("max", "min", 1),
            "it takes the span that scores least",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "start[span[0]] - end[span[1]]",
            "the logit of the end is subtracted; add it",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "start[span[0]]",
            "the logits of the end do not count",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "end[span[1]]",
            "the logits of the start do not count",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "start[span[0]] * end[span[1]]",
            "the score is the sum of the two logits, not their product",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "max(start[span[0]], end[span[1]])",
            "the score is the larger of the two logits; it must be their sum",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "sum(start[span[0] : span[1] + 1]) "
            "+ sum(end[span[0] : span[1] + 1])",
            "the logits of all tokens of the span are added; add that of its "
            "start and that of its end",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "np.exp(start[span[0]]) + np.exp(end[span[1]])",
            "exponentials are added; add the logits",
        ),
        (
            f"return {BEST}",
            "best, place = 0, (0, 0)\n"
            "    for first, last in spans:\n"
            "        if start[first] + end[last] > best:\n"
            "            best = start[first] + end[last]\n"
            "            place = first, last\n"
            "    return place",
            "the search starts with a score of 0, and a sum of logits may be "
            "negative; start with the first span, or with -infinity",
        ),
        (
            INSIDE,
            "range(len(end))",
            "the best start and the best end are taken, and the end comes "
            "before the start; it must not",
        ),
        (
            f"return {BEST}",
            f"{GREEDY}    return min(first, last), max(first, last)",
            "where the best end comes before the best start, the two are "
            "exchanged; look for the best pair",
        ),
        (
            f"return {BEST}",
            f"{GREEDY}    return (first, max(first, last))",
            "where the best end comes before the best start, it is moved to "
            "the start; look for the best pair",
        ),
        (
            f"return {BEST}",
            f"{GREEDY}    return (0, 0) if last < first else (first, last)",
            "where the best end comes before the best start, it gives up; "
            "another pair is the best",
        ),
        (
            f"return {BEST}",
            "first = int(np.argmax(start))\n"
            "    stop = first + longest\n"
            "    return first, first + int(np.argmax(end[first:stop]))",
            "it takes the best start, then the best end after it; two others "
            "may score more together",
        ),
        (
            f"return {BEST}",
            "last = int(np.argmax(end))\n"
            "    low = max(0, last - longest + 1)\n"
            "    return low + int(np.argmax(start[low : last + 1])), last",
            "it takes the best end, then the best start before it; two others "
            "may score more together",
        ),
        (
            INSIDE,
            "range(first + 1, min(first + longest, len(end)))",
            "a span of a single token is not found: first and last may be the "
            "same",
        ),
        (
            f"return {BEST}",
            "scores = start[:, None] + end[None]\n"
            "    allowed = np.tri(len(start), k=longest - 1) "
            "* np.tri(len(start)).T\n"
            "    best = int(np.argmax(scores * allowed))\n"
            "    return best // len(start), best % len(start)",
            "pairs that are not allowed score 0, which is more than a negative "
            "sum; they must score less than all others",
        ),
        (
            INSIDE,
            "range(first, len(end))",
            "`longest` is not used",
        ),
        (
            INSIDE,
            "range(first, min(first + longest + 1, len(end)))",
            "a span of `longest` + 1 tokens is found: its first and its last "
            "token both count",
        ),
        (
            INSIDE,
            "range(first, min(first + longest - 1, len(end)))",
            "a span of `longest` tokens is not found",
        ),
        (
            INSIDE,
            "range(first, min(first + 30, len(end)))",
            "the limit is always 30; it is `longest`",
        ),
        (
            INSIDE,
            "range(max(0, first - longest + 1), "
            "min(first + longest, len(end)))",
            "a span may end before it starts",
        ),
        (
            INSIDE,
            "range(first, min(first + longest, len(end) - 1))",
            "the last token is never the end",
        ),
        (
            INSIDE,
            "range(first, first + longest)",
            "near the end of the context `first + longest` is too far",
        ),
        (
            f"return {BEST}",
            f"longest, most = len(end), longest\n    first, last = {BEST}\n"
            "    return first, min(last, first + most - 1)",
            "it finds the best span of any length and cuts it off; look among "
            "the short ones alone",
        ),
    ),
)


def _labeled(label_words: Any) -> Calls:
    """Labels words of one piece, of several, of none."""
    tokenizer = Tokenizer([*SPECIAL, *"abc.", "##a", "##b", "##c"])

    def flat(name, values):
        odd = [one for one in values if not hasattr(one, "__index__")]
        if any(np.ndim(one) for one in values) or odd:
            kind = type(odd[0] if odd else values[0]).__name__
            raise TypeError(f"{name} must be whole numbers; there is a {kind}")
        return list(map(int, values))

    def labeled(words, tags):
        found = outcome(
            lambda *given: label_words(*given, tokenizer), (words, tags)
        )
        if found is None:
            return None
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError("it must return two lists: ids and labels")
        if not all(isinstance(one, list) for one in found):
            raise TypeError("it must return two lists, of ids and of labels")
        names = "ids", "labels"
        return {n: flat(n, one) for n, one in zip(names, found, strict=True)}

    cases: tuple[tuple[list[str], list[int]], ...] = (
        (["a", "b", "c"], [2, 1, 1]),
        (["abc", "b", "ca"], [1, 2, 3]),
        (["ab", "c"], [0, 2]),
        (["a.b.", "A"], [3, 1]),
        (["a", "b", "a"], [3, 1, 2]),
        (["xyz", "a"], [1, 2]),
        (["a", "\u200b", "b"], [1, 2, 3]),
        ([], []),
    )
    return {
        f"words {words}, tags {tags}": partial(labeled, words, tags)
        for words, tags in cases
    }


PIECES = 'pieces = tokenizer.encode(word) or [tokenizer.ids["[UNK]"]]'
LABELS = "labels += [tag] + [IGNORED] * (len(pieces) - 1)"
RETURNED = "return ids, labels"
LABEL_WORDS = Part(
    "tasks",
    "43",
    attempt=in_turn(_labeled, plain.label_words),
    mistakes=(
        (
            RETURNED,
            "return labels, ids",
            "the two lists are the wrong way round: ids come first",
        ),
        (
            RETURNED,
            "return ids",
            "it returns one list; return two, ids and labels",
        ),
        (
            RETURNED,
            'return [tokenizer.ids["[CLS]"], *ids, tokenizer.ids["[SEP]"]], '
            "[IGNORED, *labels, IGNORED]",
            "[CLS] and [SEP] are added; they come later, once for a sentence",
        ),
        (
            PIECES,
            'pieces = list(tokenizer([word])["input_ids"][0])',
            "each word is given [CLS] and [SEP]: `tokenizer.encode` adds none",
        ),
        (
            PIECES,
            "pieces = [tokenizer.pieces[i] for i in tokenizer.encode(word)]",
            "it returns pieces; return their ids",
        ),
        (
            "ids += pieces",
            "ids.append(pieces)",
            "the ids are a list of lists; add those of each word to one list",
        ),
        (
            LABELS,
            "labels.append([tag] + [IGNORED] * (len(pieces) - 1))",
            "the labels are a list of lists; add those of each word to one "
            "list",
        ),
        (
            "for word, tag in zip(words, tags, strict=True):",
            "for tag, word in enumerate(words):",
            "the labels count the words; they must be the tags",
        ),
        (
            LABELS,
            "labels += [tag] * len(pieces)",
            "every piece has the tag of its word; only the first must have it, "
            "the others -100",
        ),
        (
            LABELS,
            "labels += [IGNORED] * (len(pieces) - 1) + [tag]",
            "the last piece of a word has the tag; the first must have it",
        ),
        (
            LABELS,
            "labels += [tag] + [0] * (len(pieces) - 1)",
            "the other pieces of a word have 0, which is a tag; they must "
            "have -100",
        ),
        (
            LABELS,
            "labels += [tag] + [-1] * (len(pieces) - 1)",
            "the other pieces of a word have -1; they must have -100",
        ),
        (
            LABELS,
            "labels += [tag]",
            "there is one label for each word; there must be one for each "
            "piece",
        ),
        (
            LABELS,
            "labels += [tag] + [IGNORED] * len(pieces)",
            "there is one -100 too many for each word",
        ),
        (
            LABELS,
            "labels += [IGNORED] + [tag] * (len(pieces) - 1)",
            "the first piece of a word has -100 and the others the tag; it "
            "must be the other way round",
        ),
        (
            LABELS,
            "labels += [tag if len(pieces) == 1 else IGNORED] + [IGNORED] * "
            "(len(pieces) - 1)",
            "a word of several pieces has no tag; its first piece must have it",
        ),
        (
            PIECES,
            "pieces = tokenizer.encode(word)[:1]",
            "only the first piece of each word is kept",
        ),
        (
            LABELS,
            LABELS.replace("[tag]", "[tag or IGNORED]"),
            "tag 0 is taken for no tag",
        ),
        (
            PIECES,
            "pieces = tokenizer.encode(word)",
            "a word without pieces, such as a control character alone, has a "
            "label and no id; give it the id of [UNK]",
        ),
        (
            PIECES,
            "pieces = tokenizer.encode(word)\n"
            "        if not pieces:\n            continue",
            "a word without pieces, such as a control character alone, is "
            "lost, and its tag with it; give it the id of [UNK]",
        ),
        (
            PIECES,
            f"{PIECES}\n        if not tokenizer.encode(word):\n"
            "            tag = IGNORED",
            "a word without pieces becomes [UNK] without its tag; its tag must "
            "stay",
        ),
        (
            PIECES,
            PIECES.replace("[UNK]", "[PAD]"),
            "a word without pieces becomes [PAD]; it must become [UNK]",
        ),
    ),
)


def _names(bio_spans: Any) -> Calls:
    """Finds names in tags."""

    def found(tags):
        names = outcome(bio_spans, (tags,))
        if isinstance(names, tuple | list):
            if any(isinstance(name, list) for name in names):
                raise TypeError("each name must be a tuple: type, first, end")
            return list(names)
        return names

    cases = (
        "B-PER I-PER I-PER O",
        "O B-LOC",
        "B-PER I-PER B-PER O",
        "B-PER B-PER I-PER O",
        "B-PER I-LOC I-LOC O",
        "I-PER I-PER O I-LOC O",
        "B-PER O I-PER O",
        "O B-work-of-art I-work-of-art I-work O",
        "O O",
        "",
    )
    return {
        f"`bio_spans({case.split()})`": partial(found, case.split())
        for case in cases
    }


GOES_ON = 'if mark == "I" and name == kind:'
LONGER = "spans[-1] = (kind, spans[-1][1], i + 1)"
BEGINS = 'elif tag != "O":\n            spans.append((name, i, i + 1))'
CUT = 'mark, _, name = tag.partition("-")'
BIO_SPANS = Part(
    "tasks",
    "43",
    attempt=in_turn(_names, plain.bio_spans),
    mistakes=(
        (
            "i + 1)",
            "i)",
            "the end is the last word; it must be the word after it",
        ),
        (
            "i + 1)",
            "i + 2)",
            "the end is one too far; it must be the word after the last",
        ),
        (
            LONGER,
            "pass",
            "a name ends after its first word; an I- of the same type goes on",
        ),
        (
            GOES_ON,
            "if False:",
            "each word is a name by itself; an I- of the same type goes on",
        ),
        (
            'elif tag != "O":',
            "else:",
            "O is taken for a name",
        ),
        (
            CUT,
            'mark, name = tag[0], tag if tag != "O" else ""',
            "the B- and I- stay in the type",
        ),
        (
            "return spans",
            "return [(first, end, name) for name, first, end in spans]",
            "the type must come first, then the first word and the end",
        ),
        (
            "return spans",
            "return [(name, first, end - first) for name, first, end in spans]",
            "the third number is the length; it must be the end",
        ),
        (
            "return spans",
            "return [(first, end) for name, first, end in spans]",
            "the types are missing",
        ),
        (
            "return spans",
            "return [name for name, *_ in spans]",
            "only the types are returned; first word and end are missing",
        ),
        (
            "return spans",
            "return [s for s in spans if s[2] < len(tags)]",
            "a name that reaches the end of the list is lost",
        ),
        (
            GOES_ON,
            "if name and name == kind:",
            "a B- after a name of the same type goes on with it; it must "
            "begin another",
        ),
        (
            f"{GOES_ON}\n            {LONGER}",
            'if mark == "I" and kind:\n'
            "            spans[-1] = (spans[-1][0], spans[-1][1], i + 1)",
            "an I- of another type goes on with the name before; it must "
            "begin another",
        ),
        (
            f"{LONGER}\n        {BEGINS}",
            f"{LONGER}\n        elif mark == 'B' or (name and not kind):\n"
            "            spans.append((name, i, i + 1))\n"
            "        elif name:\n            name = ''",
            "an I- of another type ends the name before, and begins none; it "
            "must begin one",
        ),
        (
            f"{LONGER}\n        {BEGINS}",
            f"{LONGER}\n        elif mark == 'B':\n"
            "            spans.append((name, i, i + 1))\n"
            "        elif not kind:\n            name = ''\n"
            "        elif tag != 'O':\n"
            "            spans.append((name, i, i + 1))",
            "an I- with no name before it is lost; it must begin one",
        ),
        (
            f"{LONGER}\n        {BEGINS}",
            f"{LONGER}\n        elif mark == 'B':\n"
            "            spans.append((name, i, i + 1))\n"
            "        else:\n            name = ''",
            "names begin with B- alone; an I- that continues nothing begins "
            "one, too",
        ),
        (
            "kind = name or None",
            "kind = name or kind",
            "an I- after O goes on with the name before the O; it must begin "
            "another",
        ),
        (
            CUT,
            'mark, name = tag[0], tag.split("-")[-1] if "-" in tag else ""',
            "a type may have hyphens, and only its last word is kept: cut at "
            "the first hyphen",
        ),
        (
            CUT,
            'mark, name = tag[0], tag.split("-")[1] if "-" in tag else ""',
            "a type may have hyphens, and only its first word is kept: cut "
            "once",
        ),
        (
            CUT,
            'mark, _, name = tag.rpartition("-")',
            "it cuts at the last hyphen, and a type may have some; cut at the "
            "first",
        ),
        (
            CUT,
            'mark, name = tag.split("-") if tag != "O" else ("O", "")',
            "a type may have hyphens, and `split` cuts at each: cut once",
        ),
        (
            "spans, kind = [], None",
            'spans, kind = [], None if tags[0] else ""',
            "the list may be empty",
        ),
    ),
)
