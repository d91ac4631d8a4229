"""LSTM, ELMo, ULMFiT, GPT and BERT at one size, trained and read alike.

Differences: the papers differ in size, text and length of training, so that
their scores cannot tell what a design is worth. Here all of that is equal, and
small. Their heads differ too: BERT has a dense layer before its matrix, ULMFiT
one with batch normalization. `TextClassifier` has one vector a text and one
matrix, so that the readers are what is compared.
"""

import time
from typing import NamedTuple

import numpy as np

from bertbook.config import BertConfig
from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.config import CausalLMConfig
from bertbook.model.bert import BertForMaskedLM
from bertbook.model.layers import Dropout
from bertbook.pretraining.masking import Masking, mask_rows
from bertbook.relatives.elmo import (
    BidirectionalLM,
    LayerMix,
    LSTMConfig,
    LSTMLanguageModel,
)
from bertbook.runtime import keras, may_compile, ops
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import AdamW

WIDTH = 128  # D
WARMUP = 0.1  # share of the time on the way up
REPORTS = 30  # points of a curve
NEXT, BOTH, MASKED = "next", "both", "masked"


class Ancestor(NamedTuple):
    """One of the family.

    Attributes:
        guesses: What it learns to guess: the `NEXT` token, the next and the
            previous one (`BOTH`), or `MASKED` ones.
        pooling: Which vectors stand for a text; see `ancestors.pool`.
        widths: Of the LSTM layers of a direction; none for attention.
    """

    guesses: str
    pooling: str
    widths: tuple[int, ...] = ()


FAMILY = {
    "LSTM": Ancestor(NEXT, "last", (256, WIDTH)),
    "ELMo": Ancestor(BOTH, "mix", (WIDTH, WIDTH)),
    "ULMFiT": Ancestor(NEXT, "concat", (192, 192, WIDTH)),
    "GPT": Ancestor(NEXT, "last"),
    "BERT": Ancestor(MASKED, "first"),
}


def make_ancestor(name, pieces, length):
    """Builds one of the family, of about a million weights.

    Args:
        name: A key of `FAMILY`.
        pieces: The facts of a vocabulary, `masking.Pieces`.
        length: S, the most tokens of a row.

    Returns:
        A model; `hidden_states` reads with it.

    Raises:
        ValueError: `name` is unknown.
    """
    if name not in FAMILY:
        raise ValueError(
            f"`name` must be one of {', '.join(FAMILY)}. Received: {name!r}."
        )
    ancestor = FAMILY[name]
    vocab_size = len(pieces.special)
    if ancestor.widths:
        kind = (
            BidirectionalLM if ancestor.guesses == BOTH else LSTMLanguageModel
        )
        config = LSTMConfig(
            vocab_size=vocab_size, widths=ancestor.widths, initializer_range=0.4
        )  # with small vectors the gates hardly move at first
        return kind(config)
    sizes = {
        "vocab_size": vocab_size,
        "hidden_size": WIDTH,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 4 * WIDTH,
        "max_position_embeddings": length,
        "initializer_range": 0.05,
        "hidden_dropout_prob": 0.0,  # few rows are seen twice
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": pieces.pad,
    }
    if ancestor.guesses == MASKED:
        return BertForMaskedLM(BertConfig(**sizes))
    ids = {"bos_token_id": pieces.cls, "eos_token_id": pieces.sep}
    return CausalLM(CausalLMConfig(**sizes, **ids))


def hidden_states(model, batch, training=None):
    """Returns what every layer of one of the family gives.

    Args:
        model: What `make_ancestor` returned, or another model of its kind.
        batch: A dict of `input_ids` and perhaps `attention_mask`, `(B, S)`.
        training: Whether to drop values.

    Returns:
        A list of float tensors of shape `(B, S, width)`, token vectors first.
    """
    reader = reader_of(model)
    if hasattr(reader, "hidden_states"):
        return reader.hidden_states(batch, training=training)
    outputs = reader(batch, output_hidden_states=True, training=training)
    return list(outputs["hidden_states"])


def reader_of(model):
    """Returns what reads: the encoder of a BERT, else the model itself."""
    return getattr(model, "encoder", model)


def cut_rows(tokens, length, pieces):
    """Cuts a stream of tokens into rows of one length.

    Args:
        tokens: Ids of text, `(n,)`.
        length: S, with the [CLS] that every row begins with and the [SEP]
            that it ends with.
        pieces: The facts of the vocabulary.

    Returns:
        `(B, S)` int32; a rest that fills no row is left out.

    Raises:
        ValueError: `tokens` do not fill one row.
    """
    inner = length - 2
    count = len(tokens) // inner if inner >= 1 else 0
    if not count:
        raise ValueError(
            f"`tokens` must fill a row of {length}. Received: {len(tokens)}."
        )
    text = np.asarray(tokens[: count * inner], "int32").reshape(count, inner)
    ends = np.ones((count, 1), "int32")
    return np.hstack([ends * pieces.cls, text, ends * pieces.sep])


def lesson(guesses, rows, pieces, rng=None):
    """Makes of rows what a model is given and what it has to guess.

    Only ordinary pieces are asked for: that a row begins with [CLS] and ends
    with [SEP] is nothing to learn.

    Args:
        guesses: `NEXT`, `BOTH` or `MASKED`.
        rows: Ids, `(B, S)`.
        pieces: The facts of the vocabulary.
        rng: NumPy random generator; masks need it.

    Returns:
        What `fit` takes: a batch, what is right, and the weight of each
        guess, 0 or 1.

    Raises:
        ValueError: `guesses` is unknown.
    """
    if guesses not in (NEXT, BOTH, MASKED):
        raise ValueError(
            f"`guesses` must be one of {NEXT}, {BOTH}, {MASKED}. "
            f"Received: {guesses!r}."
        )
    if guesses == MASKED:
        batch = mask_rows(rows, pieces, Masking(), rng)
        right = batch.pop("masked_lm_ids")
        return batch, right, batch.pop("masked_lm_weights")
    right = {
        "next": np.roll(rows, -1, axis=1),
        "previous": np.roll(rows, 1, axis=1),
    }
    counted = {
        name: (~pieces.special[ids]).astype("float32")
        for name, ids in right.items()
    }
    counted["next"][:, -1] = counted["previous"][:, 0] = 0  # those came around
    if guesses == BOTH:
        return {"input_ids": rows}, right, counted
    return {"input_ids": rows}, right["next"], counted["next"]


def lessons(guesses, rows, pieces, batch_size=16, seed=0):
    """Yields lessons endlessly, the rows in a new order each time around.

    Raises:
        ValueError: There are fewer rows than `batch_size`.
    """
    if len(rows) < batch_size:
        raise ValueError(
            "`rows` must fill a batch. "
            f"Received: {len(rows)} rows for {batch_size}."
        )
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(len(rows))
        for start in range(0, len(rows) - batch_size + 1, batch_size):
            chosen = rows[order[start : start + batch_size]]
            yield lesson(guesses, chosen, pieces, rng)


def compile_ancestor(model, guesses):
    """Gives a model its loss and its optimizer; `train_for` sets the rate.

    XLA makes attention faster, and does nothing for a loop over tokens.
    """
    has_loop = hasattr(model, "hidden_states")
    loss = classification_loss()
    if guesses == BOTH:
        loss = {name: classification_loss() for name in ("next", "previous")}
    adam = AdamW(learning_rate=0.0, weight_decay=0.0, global_clipnorm=1.0)
    model.compile(adam, loss, jit_compile=may_compile(not has_loop))


def rate_at(share, peak, warmup=WARMUP):
    """Returns the rate when a share of the time is over: up, then down."""
    return peak * max(0.0, min(share / warmup, (1 - share) / (1 - warmup)))


def train_for(model, batches, seconds, peak, clock=time.process_time):
    """Trains for a time, not for a number of steps.

    The first step, in which the backend compiles, has the rate 0 and is not
    counted.

    Args:
        model: A compiled model.
        batches: Yields what `lesson` returns, endlessly.
        seconds: How long.
        peak: The highest learning rate.
        clock: Tells the time in seconds: that of this process, which stands
            still while others have the processor.

    Returns:
        A dict: `steps`, `tokens` that were read, `guesses` that counted,
        `seconds`, and `curve`: now and then the seconds and a batch's loss.

    Raises:
        ValueError: `seconds` or `peak` is not above 0, or the loss is not
            finite.
    """
    if not seconds > 0 or not peak > 0:
        raise ValueError(
            "`seconds` and `peak` must be above 0. "
            f"Received: {seconds} and {peak}."
        )
    model.optimizer.learning_rate = 0.0
    model.train_on_batch(*next(batches))
    history = {"steps": 0, "tokens": 0, "guesses": 0, "curve": []}
    start, spent = clock(), 0.0
    while spent < seconds:
        model.optimizer.learning_rate = rate_at(spent / seconds, peak)
        batch, right, weights = next(batches)
        loss = float(np.ravel(model.train_on_batch(batch, right, weights))[0])
        if not np.isfinite(loss):
            raise ValueError(f"The loss must be finite. Received: {loss}.")
        history["steps"] += 1
        history["tokens"] += batch["input_ids"].size
        history["guesses"] += count_guesses(weights)
        spent = clock() - start
        if spent >= (len(history["curve"]) + 1) * seconds / REPORTS:
            history["curve"].append((round(spent, 2), round(loss, 4)))
    return {**history, "seconds": round(spent, 2)}


def count_guesses(weights):
    """Returns how many guesses count, in one output or in several."""
    several = weights.values() if isinstance(weights, dict) else [weights]
    return int(sum(array.sum() for array in several))


def held_out_loss(model, guesses, rows, pieces, batch_size=32, seed=0):
    """Returns the mean loss of a guess, in nats, on rows not learned from.

    Args:
        model: What `make_ancestor` returned.
        guesses: As in `lesson`; of `BOTH` directions the next token alone
            counts, so that the number compares with that of `NEXT`.
        rows: Ids, `(B, S)`.
        pieces: The facts of the vocabulary.
        batch_size: Rows computed at a time.
        seed: Seed of the masks.
    """
    rng = np.random.default_rng(seed)
    total = count = 0.0
    for start in range(0, len(rows), batch_size):
        batch_rows = rows[start : start + batch_size]
        batch, right, weights = lesson(guesses, batch_rows, pieces, rng)
        logits = model(batch)
        if guesses == BOTH:
            logits, right, weights = (
                part["next"] for part in (logits, right, weights)
            )
        losses = ops.sparse_categorical_crossentropy(
            right, logits, from_logits=True
        )
        total += float((ops.convert_to_numpy(losses) * weights).sum())
        count += float(weights.sum())
    return total / count


POOLINGS = ("first", "last", "mean", "concat", "mix")


class TextClassifier(keras.Model):
    """Gives a text one logit for each label.

    Args:
        reader: An LSTM language model, a `CausalLM` or a `BertEncoder`.
        pooling: "first", the vector of the first token (BERT); "last", that of
            the last real one (GPT); "mean" of the real ones; "concat", last,
            maximum and mean side by side (ULMFiT); "mix", the mean of a
            weighted sum of all layers (ELMo).
        num_labels: K.
        dropout: Rate before the matrix.

    Raises:
        ValueError: `pooling` is unknown, or `num_labels` is below 2.
    """

    def __init__(self, reader, pooling, num_labels=2, dropout=0.1, **kwargs):
        if pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {', '.join(POOLINGS)}. "
                f"Received: {pooling!r}."
            )
        if not num_labels >= 2:
            raise ValueError(
                f"`num_labels` must be >= 2. Received: {num_labels}."
            )
        super().__init__(**kwargs)
        self.reader = reader
        self.pooling = pooling
        self.dropout = Dropout(dropout)
        self.mix = None
        if pooling == "mix":
            self.mix = LayerMix(len(reader.config.widths) + 1, name="mix")
        self.head = keras.layers.Dense(num_labels, name="head")

    def call(self, batch, training=None):
        """Returns logits, `(B, K)`.

        Args:
            batch: A dict of `input_ids` and `attention_mask`, `(B, S)`.
            training: Whether to drop values.
        """
        layers = hidden_states(self.reader, batch, training)
        last = layers[-1] if self.mix is None else self.mix(layers)
        pooling = "mean" if self.pooling == "mix" else self.pooling
        vector = pool(last, batch["attention_mask"], pooling)
        return self.head(self.dropout(vector, training=training))


def pool(vectors, attention_mask, pooling):
    """Makes one vector a text of one vector a token.

    Source: "concat" is Howard and Ruder (2018), section 3.3.

    Args:
        vectors: Float tensor of shape `(B, S, D)`.
        attention_mask: Integer tensor of shape `(B, S)`, 1 for real tokens,
            padding on the right.
        pooling: "first", "last", "mean" or "concat".

    Returns:
        `(B, D)`, or `(B, 3 D)` for "concat".
    """
    if pooling == "first":
        return vectors[:, 0]
    real = ops.cast(attention_mask, vectors.dtype)[:, :, None]  # (B, S, 1)
    counts = ops.sum(real, axis=1)  # (B, 1)
    mean = ops.sum(vectors * real, axis=1) / counts
    if pooling == "mean":
        return mean
    places = ops.cast(counts, "int32")[:, :, None] - 1  # (B, 1, 1)
    last = ops.take_along_axis(vectors, places, axis=1)[:, 0]
    if pooling == "last":
        return last
    highest = ops.max(ops.where(real > 0, vectors, -1e9), axis=1)
    return ops.concatenate([last, highest, mean], axis=-1)
