"""The four tasks: `tasks.py` of `mybert`.

A model is filled with known numbers and tried in steps: its layers, its logits,
dropout, and last what takes long, a compiled run. Training is tried on a table
of logits whose weights stay as they are, so that nothing depends on chance.
"""

import contextlib
import io
import sys
from collections.abc import Callable
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
)
from bertbook.plain import tasks as plain
from bertbook.plain.bert import Bert
from bertbook.plain.pretraining import IGNORED
from bertbook.plain.tokenizer import SPECIAL, Tokenizer
from bertbook.runtime import keras, ops

Batch = dict[str, np.ndarray]

# ----------------------------------------------------- models with a head


def _shown(dropout: Any) -> list[bool]:
    """Makes dropout square its input in training instead of dropping some.

    Returns:
        What it is told of training, call by call.
    """
    told: list[bool] = []

    def call(inputs, training=False):
        told.append(bool(training))
        return inputs * inputs if training else inputs

    dropout.call = call
    return told


@cache
def _filled_encoder() -> tuple[Any, list[bool]]:
    """Returns an encoder for all models, and what its dropout is told."""
    bert = Bert(**SIZES | {"L": 1}, dropout=0.0)
    bert(BATCH)
    filled(bert)
    return bert, _shown(bert.embeddings.dropout)


def _encoder() -> Any:
    bert, told = _filled_encoder()
    for value in (False, True):  # one that it has is not handed on
        bert.trainable = value
    told.clear()
    return bert


def _in_words(told: list[bool]) -> str:
    """Returns what a layer knows of training."""
    if not told:
        return "is not used"
    return "works" if any(told) else "does not know that it is training"


def _values(logits: Any) -> Any:
    """Returns logits as arrays: one, or a dictionary of two."""
    if isinstance(logits, dict):
        return {name: numbers(one) for name, one in logits.items()}
    return numbers(logits)


def _pair_of_logits(logits: Any) -> Any:
    if isinstance(logits, dict):
        return _values(logits)
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
        values: Makes arrays of what it returns.
        model_class: The class.
    """
    told = {"encoder": _filled_encoder()[1]}

    @cache
    def model():
        made = new(model_class, _encoder())
        if "dropout" in layers:
            told["dropout"] = _shown(made.dropout)
        return made

    @cache
    def trained():
        for one in told.values():
            one.clear()
        # As `fit` does on JAX: layers inside do not know that it is training.
        found = model().call(dict(batches[0]), training=True)
        return found, {name: _in_words(one) for name, one in told.items()}

    def parts():
        made = new(model_class, _encoder())
        missing = [f"`{name}`" for name in layers if not hasattr(made, name)]
        rate = getattr(getattr(made, "dropout", None), "rate", None)
        return {
            "missing attributes": ", ".join(missing) or "none",
            "the rate of dropout": rate if rate is None else round(rate, 3),
        }

    def weights():
        if model()(dict(batches[0])) is None:
            return None
        made = model()
        head = getattr(made, layers[-1])
        shapes = {f"{layers[-1]}.{k}": v for k, v in filled(head).items()}
        return shapes | {"all": len(made.weights)}

    def logits(batch):
        given = dict(batch)
        found = model()(given)
        if any(given[name] is not batch[name] for name in batch):
            raise ValueError("it changes the batch that it is given")
        return values(found)

    def trainable():
        bert = new(model_class, _encoder()).bert
        return {
            "pooler": bert.pooler.trainable,
            "weights of the encoder": len(bert.trainable_variables),
        }

    def compiled():
        rank = batches[0]["input_ids"].ndim
        unknown = {
            name: keras.Input(batch_shape=(None,) * rank, dtype="int32")
            for name in BATCH
        }
        found = model()(unknown)
        if isinstance(found, dict):
            return {name: str(one.shape) for name, one in found.items()}
        return str(found.shape)

    def drawn():
        made = new(model_class, Bert(**SIZES | {"L": 0, "D": 200}))
        head = getattr(made, layers[-1])
        if not head.built:
            head.build((None, 200))
        return {
            v.name: round(float(np.std(numbers(v.value))), 2)
            for v in head.weights
        }

    calls: Calls = {"its parts": parts, "its weights": weights}
    for batch in batches:
        size = ", ".join(map(str, batch["input_ids"].shape))
        calls[f"the logits of a batch, ({size})"] = partial(logits, batch)

    calls["in training, the encoder"] = lambda: trained()[1]["encoder"]
    if "dropout" in layers:
        calls["in training, `dropout`"] = lambda: trained()[1]["dropout"]
    return calls | {
        "the logits in training": lambda: values(trained()[0]),
        "what is trained": trainable,
        "the shape where B and S are not known, as in `fit`": compiled,
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


CLASSIFIER = "bert", "dropout", "classifier"
INIT = "self.bert, self.dropout = bert, layers.Dropout(0.1)"
POOLED = "self.bert.pooled(batch, training)"
LAST = "self.classifier(self.dropout(x, training=training))"
TEXT_CLASSIFIER = Part(
    "tasks",
    "40",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert, 3),
            CLASSIFIER,
            (BATCH,),
            _values,
        ),
        plain.TextClassifier,
    ),
    mistakes=(
        (
            POOLED,
            "self.bert(batch, training=training)[:, 0]",
            "the pooler is left out: `self.bert.pooled` takes the vector of "
            "[CLS] and puts it through the pooler",
        ),
        (
            f"return {LAST}",
            f"return ops.softmax({LAST})",
            "these are probabilities; leave softmax out, the loss has it",
        ),
        (
            f"return {LAST}",
            "return self.classifier(x)",
            "`dropout` is not used: put it between the pooled vector and "
            "`classifier`",
        ),
    ),
)
CHOICE_MODEL = Part(
    "tasks",
    "41",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert),
            CLASSIFIER,
            (_choices(2, 3, 4), _choices(3, 2, 5)),
            _values,
        ),
        plain.ChoiceModel,
    ),
    mistakes=(
        (
            "ops.reshape(super().call(flat, training), (B, C))",
            "super().call(flat, training)",
            "the logits are (B * C, 1); reshape them to (B, C)",
        ),
        (
            "super().call(flat, training)",
            "super().call(flat)",
            "`training` does not reach `super().call`",
        ),
    ),
)
SPAN_MODEL = Part(
    "tasks",
    "42",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert),
            ("bert", "span"),
            (BATCH,),
            _pair_of_logits,
        ),
        plain.SpanModel,
    ),
    mistakes=(
        (
            '"start_logits": logits[..., 0], "end_logits": logits[..., 1]',
            '"start_logits": logits[..., 1], "end_logits": logits[..., 0]',
            "start and end are exchanged: the first column of `span` is the "
            "start",
        ),
        (
            "        bert.pooler.trainable = False  # it reads [CLS], and is "
            "not used\n",
            "",
            "the pooler would be trained, and nothing reads it: "
            "`bert.pooler.trainable = False`",
        ),
    ),
)
TAG_MODEL = Part(
    "tasks",
    "43",
    attempt=in_turn(
        partial(
            _headed,
            lambda made, bert: made(bert, 3),
            CLASSIFIER,
            (BATCH,),
            _values,
        ),
        plain.TagModel,
    ),
    mistakes=(
        (
            "self.bert(batch, training=training)",
            POOLED,
            "there is one row of logits for a text; the pooled vector is that "
            "of [CLS], and every token must have a row",
        ),
        (
            f"return {LAST}",
            "return self.classifier(x)",
            "`dropout` is not used: put it between the vectors and "
            "`classifier`",
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


PEAK = 0.5


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
    """Trains tables of logits."""
    adamw = sys.modules[
        finetune.__module__.replace("tasks", "pretraining")
    ].adamw

    @cache
    def run(kind, rows, dtype, epochs, size, dev=2):
        keras.utils.set_random_seed(0)
        model = _Table(kind)
        heard: list[int] = []
        callback = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: heard.append(epoch)
        )
        pair = _rows(dev), _labels(kind, dev, dtype, hidden=kind != "numbers")
        with contextlib.redirect_stdout(io.StringIO()):
            log = finetune(
                model,
                _rows(rows),
                _labels(kind, rows, dtype, hidden=False),
                pair,
                epochs=epochs,
                peak=PEAK,
                size=size,
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
        rows = [row for step in run(*case)[0].rows for row in step]
        return "shuffled" if rows != sorted(rows) else "as they were given"

    def optimizer(*case):
        used, right = run(*case)[0].optimizer, adamw(PEAK, 9)
        names = "weight_decay", "global_clipnorm"
        same = type(used) is type(right) and all(
            getattr(used, name) == getattr(right, name) for name in names
        )
        decays = [
            v.name
            for v in run(*case)[0].trainable_variables
            if same and used._use_weight_decay(v)
        ]
        return "`adamw`" if decays == ["kernel"] else "another one"

    def rates(*case):
        model = run(*case)[0]
        found = []
        for step in range(len(model.rows) + 1):
            model.optimizer.iterations.assign(step)
            found.append(float(model.optimizer.learning_rate) / PEAK)
        return np.round(found, 4)

    def told(names, *case):
        log = run(*case)[1].history
        return {name: np.array(log[name]) for name in names if name in log}

    classes = "classes", 7, "int64", 3, 2
    spans = "spans", 4, "int32", 1, 2
    tags = "tags", 3, "int32", 1, 2
    calls: Calls = {
        "what it returns": partial(returned, *classes),
        "`options`": partial(options, *classes),
        "7 rows, three epochs, size 2": partial(steps, *classes),
        "the order of the rows": partial(order, *classes),
        "the optimizer": partial(optimizer, *classes),
        "the rate of each step, in parts of `peak`": partial(rates, *classes),
        "with classes": partial(
            told, ("loss", "val_loss", "accuracy", "val_accuracy"), *classes
        ),
        "with spans": partial(
            told,
            (
                "loss",
                "val_loss",
                "start_logits_accuracy",
                "val_end_logits_accuracy",
            ),
            *spans,
        ),
        "with spans, the rate of each step": partial(rates, *spans),
        "with tags": partial(
            told, ("loss", "val_loss", "accuracy", "val_accuracy"), *tags
        ),
    }
    for dtype in ("float32", "float64"):
        case = "numbers", 5, dtype, 1, 2
        names = "loss", "val_loss", "accuracy"
        calls[f"with numbers, {dtype}"] = partial(told, names, *case)
    return calls


STEPS = 'epochs * -(-len(batch["input_ids"]) // size)'
FINETUNE = Part(
    "tasks",
    "40",
    attempt=in_turn(_finetuned, plain.finetune),
    mistakes=(
        (
            STEPS,
            '-(-len(batch["input_ids"]) // size)',
            "the rate is 0 after the first epoch: `adamw` takes the steps of "
            "all epochs",
        ),
        (
            STEPS,
            'epochs * (len(batch["input_ids"]) // size)',
            "the last step of an epoch, with fewer rows, is not counted: round "
            "up",
        ),
        (
            "model.compile(adamw(peak, steps),",
            "model.compile(keras.optimizers.AdamW(peak),",
            "the optimizer is not BERT's: use `adamw(peak, steps)`",
        ),
        (
            "validation_data=dev, ",
            "",
            "`dev` is not used: `fit` takes it as `validation_data`",
        ),
    ),
)

# -------------------------------------------------- spans, words and tags


def _best(function: Any) -> Calls:
    """Looks for spans in logits; none has two best ones."""

    def best(start, end, *longest):
        given = np.array(start, float), np.array(end, float)
        before = [one.copy() for one in given]
        found = function(*given, *longest)
        if not all(map(np.array_equal, given, before)):
            raise ValueError("it changes what it is given; work on a copy")
        return found

    long = np.zeros(40), np.zeros(40)
    long[0][0], long[1][29:31], long[1][36] = 9, (1, 2), 3
    cases: dict[str, tuple] = {
        "start [0, 3, 1, 0, 0], end [0, 1, 0, 2, 0]": (
            [0, 3, 1, 0, 0],
            [0, 1, 0, 2, 0],
        ),
        "start [0, 1, 4, 0], end [5, 0, 0, 3]": ([0, 1, 4, 0], [5, 0, 0, 3]),
        "start [2, 0, 3, 0], end [0, 4, 1, 0]": ([2, 0, 3, 0], [0, 4, 1, 0]),
        "start [1, 0, 0, 3], end [3, 0, 0, 2]": ([1, 0, 0, 3], [3, 0, 0, 2]),
        "start [-5, -1, -3], end [-4, -6, -2]": ([-5, -1, -3], [-4, -6, -2]),
        "start [4, 0, 0, 0, 0], end [0, 0.5, 1, 2, 3], longest 3": (
            [4, 0, 0, 0, 0],
            [0, 0.5, 1, 2, 3],
            3,
        ),
        "40 tokens": long,
        "one token": ([-1], [2]),
    }
    return {
        f"with {name}": partial(best, *case) for name, case in cases.items()
    }


BEST_SPAN = Part(
    "tasks",
    "42",
    attempt=_best,
    mistakes=(
        (
            "range(first, min(first + longest, len(end)))",
            "range(len(end))",
            "a span may end before it starts, and `longest` is not used",
        ),
        (
            "range(first, min(first + longest, len(end)))",
            "range(first, len(end))",
            "`longest` is not used",
        ),
        (
            "start[span[0]] + end[span[1]]",
            "start[span[0]] * end[span[1]]",
            "the score is the sum of the two logits, not their product",
        ),
    ),
)


def _labeled(label_words: Any) -> Calls:
    """Labels words of one piece, of several, of none."""
    tokenizer = Tokenizer([*SPECIAL, *"abc.", "##a", "##b", "##c"])

    def flat(values):
        return [int(one) for one in values]

    def labeled(words, tags):
        given = list(words), list(tags)
        found = label_words(*given, tokenizer)
        if found is None:
            return None
        if given != (words, tags):
            raise ValueError("it changes what it is given; work on a copy")
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError("it must return two lists: ids and labels")
        return dict(zip(("ids", "labels"), map(flat, found), strict=True))

    cases: tuple[tuple[list[str], list[int]], ...] = (
        (["a", "b", "a"], [1, 2, 1]),
        (["abc", "b", "ca"], [1, 2, 3]),
        (["ab", "c"], [0, 2]),
        (["a.b.", "A"], [3, 1]),
        (["a", "\u200b", "b"], [1, 2, 3]),
        (["xyz", "a"], [1, 2]),
        ([], []),
    )
    return {
        f"words {words}, tags {tags}": partial(labeled, words, tags)
        for words, tags in cases
    }


LABELS = "[tag] + [IGNORED] * (len(pieces) - 1)"
LABEL_WORDS = Part(
    "tasks",
    "43",
    attempt=in_turn(_labeled, plain.label_words),
    mistakes=(
        (
            LABELS,
            "[tag] * len(pieces)",
            "every piece has the tag of its word; only the first must have it, "
            "the others -100",
        ),
        (
            LABELS,
            "[IGNORED] * (len(pieces) - 1) + [tag]",
            "the last piece of a word has the tag; the first must have it",
        ),
        (
            ' or [tokenizer.ids["[UNK]"]]',
            "",
            "a word without pieces, such as a control character alone, is "
            "lost, and its tag with it; it becomes [UNK]",
        ),
    ),
)
BIO_SPANS = Part(
    "tasks",
    "43",
    arguments=(
        (["B-PER", "I-PER", "O"],),
        (["O", "B-LOC"],),
        (["B-PER", "B-PER", "I-PER"],),
        (["B-PER", "I-LOC", "I-LOC"],),
        (["I-PER", "I-PER", "O", "I-LOC"],),
        (["O", "B-work-of-art", "I-work-of-art", "I-work"],),
        (["B-PER", "O", "I-PER"],),
        (["O", "O"],),
        ([],),
    ),
    mistakes=(
        (
            "i + 1)",
            "i)",
            "the end is the last word; it must be the word after it",
        ),
        (
            'elif tag != "O":',
            'elif mark == "B":',
            "an I- that continues nothing is lost; it begins a name",
        ),
    ),
)
