"""Pre-trains `mini` on one GPU: the recipe of `train_long.py` on JAX.

    KERAS_BACKEND=jax python tools/models/train_on_gpu.py OUT [FOLDER]

FOLDER, `local/long` if it is not named, holds what `tools/models/mix_corpus.py`
makes there. OUT then holds log.csv, recipe.json and the model, in float16.

What differs from `train_long.py`: worker processes draw the pairs of a whole
epoch, the GPU hides tokens itself, and one call of it takes many steps. The
tables of the embeddings compute in float32, so that the gradient of a row, to
which thousands of tokens of a batch add, is summed in float32.
"""

import csv
import dataclasses
import json
import os
import queue
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bertbook.files import read_json
from bertbook.pretraining.corpus import Corpus, read_shard
from bertbook.pretraining.examples import (
    ExampleSettings,
    assemble,
    draw_pairs,
)
from bertbook.pretraining.masking import Masking, Pieces
from bertbook.pretraining.stream import tie_to_parent

# Keras is imported late: the workers need none, and one process uses the GPU.

POSITIONS = 512
VOCABULARY = 16_384
MASK_RATE = 0.2
HELD_OUT_ROWS = 256  # of each genre
EVALUATION_CALLS = 25  # of the GPU


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """Steps with rows of one length.

    Attributes:
        tokens: How many are read, padding counted.
        begin: The learning rate of its first step.
        end: That of its last step; the rate falls in a line between.
        warmup: Steps on the way up to `begin`.
        batch_size: Rows a step.
        length: Tokens a row.
        chunk: Steps a call of the GPU.
        seed: None goes on as the part before it ended; a number begins
            anew, with fresh moments and another order.
        repeat_positions: Whether the vectors of the positions from 128 on
            start as those of the first 128.
    """

    tokens: int
    begin: float
    end: float
    warmup: int = 0
    batch_size: int = 256
    length: int = 128
    chunk: int = 200
    seed: int | None = None
    repeat_positions: bool = False

    @property
    def step_tokens(self) -> int:
        """Tokens a step."""
        return self.batch_size * self.length

    @property
    def calls(self) -> int:
        """Calls of the GPU."""
        return max(1, round(self.tokens / self.step_tokens / self.chunk))

    def rates(self) -> np.ndarray:
        """Returns the rate of every step, `(calls, chunk)` float32."""
        steps = self.calls * self.chunk
        rates = np.linspace(self.begin, self.end, steps)
        if self.warmup:
            rates *= np.minimum(1.0, (np.arange(steps) + 1) / self.warmup)
        return rates.astype("float32").reshape(self.calls, self.chunk)


# A model that starts from random weights stays with the frequencies of single
# pieces for long, unless it begins with short rows. The third part lost: it
# began with vectors for the positions from 128 on that nothing had trained,
# and at its rate they moved too little. The fourth repeats those below 128.
PARTS = (
    Part(
        tokens=16_384_000,
        begin=2e-3,
        end=2e-3,
        warmup=200,
        length=32,
        seed=0,
    ),
    Part(tokens=1_874_000_000, begin=2e-3, end=2e-4, warmup=200),
    Part(tokens=210_000_000, begin=2e-4, end=0.0, batch_size=64, length=512),
    Part(
        tokens=130_000_000,
        begin=5e-4,
        end=1e-4,
        warmup=200,
        batch_size=64,
        length=512,
        seed=5,
        repeat_positions=True,
    ),
    Part(tokens=80_000_000, begin=1.5e-4, end=0.0, warmup=50),
)


def main():
    """Trains a model."""
    out = Path(sys.argv[1])
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "local/long")
    run = Run(folder, out)
    for part in PARTS:
        run.train(part)
    run.save(out / "model")
    recipe = {"parts": [dataclasses.asdict(part) for part in PARTS]}
    text = json.dumps(recipe, indent=2) + "\n"
    (out / "recipe.json").write_text(text, encoding="utf-8")
    run.close()


class Rows:
    """Rows of a corpus, nothing hidden yet, made by other processes.

    Args:
        corpus: A `Corpus`.
        seed: Seed of pairs and order.
        draw: A function of a shard's path, a `Part` and a seed, that can be
            pickled; it returns arrays of rows by name.
    """

    def __init__(self, corpus: Corpus, seed: int, draw):
        self.paths = corpus.shards("train")
        self.once = corpus.record.get("once", 0)
        self.seed, self.draw, self.epochs = seed, draw, 0
        self.pool = ProcessPoolExecutor(
            max(1, (os.cpu_count() or 2) - 1),
            get_context("spawn"),
            initializer=tie_to_parent,
        )

    def epoch(self, part: Part) -> list:
        """Lets the workers begin another epoch; returns what they promise."""
        number, self.epochs = self.epochs, self.epochs + 1
        count = len(self.paths) - (self.once if number else 0)
        return [
            self.pool.submit(self.draw, path, part, (self.seed, number, shard))
            for shard, path in enumerate(self.paths[:count])
        ]

    def close(self) -> None:
        """Ends the workers; what they have not begun is dropped."""
        self.pool.shutdown(cancel_futures=True)

    def chunks(self, part: Part):
        """Yields what a call of the GPU reads, endlessly."""
        rng = np.random.default_rng(self.seed)
        rest, ahead = None, self.epoch(part)
        while True:
            parts = [future.result() for future in ahead]
            ahead = self.epoch(part)
            rows = {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}
            order = rng.permutation(len(rows["lengths"]))
            rows = {n: array[order] for n, array in rows.items()}
            if rest is not None:
                rows = {n: np.concatenate([rest[n], rows[n]]) for n in rows}
            size = part.chunk * part.batch_size
            for start in range(0, len(rows["lengths"]) - size + 1, size):
                yield {
                    n: array[start : start + size].reshape(
                        part.chunk, part.batch_size, *array.shape[1:]
                    )
                    for n, array in rows.items()
                }
            cut = len(rows["lengths"]) // size * size
            rest = {n: array[cut:] for n, array in rows.items()}


@dataclasses.dataclass(frozen=True)
class PairDrawer:
    """Draws the pairs of a shard: what a worker does."""

    pieces: Pieces

    def __call__(self, path: Path, part: Part, seed: tuple[int, ...]):
        """Returns rows.

        Returns:
            `ids`, `(n, S)`; `firsts`, where the second text begins, and
            `lengths`, `(n,)`; `labels`, `(n,)`.
        """
        settings = ExampleSettings(max_length=part.length)
        shard = read_shard(path)
        spans, labels = draw_pairs(shard, settings, np.random.default_rng(seed))
        rows = assemble(shard.tokens, spans, part.length, self.pieces)
        lengths = rows["attention_mask"].sum(axis=1)
        second = rows["token_type_ids"].sum(axis=1)
        return {
            "ids": rows["input_ids"].astype("uint16"),
            "firsts": (lengths - second).astype("int32"),
            "lengths": lengths.astype("int32"),
            "labels": labels,
        }


def made_ahead(iterator, count=4):
    """Yields what an iterator gives, made by a thread in advance."""
    waiting: queue.Queue = queue.Queue(count)

    def fill():
        try:
            for item in iterator:
                waiting.put(item)
        except Exception as error:  # raised where the next item is wanted
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        item = waiting.get()
        if isinstance(item, Exception):
            raise item
        yield item


class Run:
    """A model, its optimizer and what it reads, on one device.

    Args:
        folder: What `mix_corpus.py` has made.
        out: Where the log goes.
        start: A folder whose weights are the start; None draws them.
        mask_rate: Share of the tokens that are hidden.
    """

    def __init__(self, folder, out, start=None, mask_rate=MASK_RATE):
        import bertbook as bb

        out.mkdir(parents=True, exist_ok=True)
        self.out, self.mask_rate = out, mask_rate
        self.tokenizer = bb.Tokenizer.from_pretrained(
            folder / f"vocabulary-{VOCABULARY}"
        )
        self.pieces = Pieces.of(self.tokenizer)
        shards = folder / f"shards-{VOCABULARY}"
        self.corpus = Corpus(shards, read_json(shards / "corpus.json"))
        self.model = make_model(len(self.tokenizer), start)
        self.held_out = make_held_out(
            folder / f"genres-{VOCABULARY}", self.pieces
        )
        self.rows = None
        self.log, self.tokens, self.steps = [], 0, 0
        self.started = time.time()

    def learner(self):
        """Returns the Keras model that is trained."""
        return self.model

    def drawer(self):
        """Returns what draws the rows of a shard."""
        return PairDrawer(self.pieces)

    def begin(self, seed):
        """Makes the rows, the optimizer and the state of a run that begins."""
        import jax

        from bertbook.training.optimizers import make_optimizer

        self.close()
        self.rows = Rows(self.corpus, seed, self.drawer())
        learner, optimizer = self.learner(), make_optimizer(1e-3)
        optimizer.build(learner.trainable_variables)
        self.state = fresh_state(learner, optimizer, seed)
        step = make_step(optimizer, self.loss)
        self.take = jax.jit(
            lambda state, *inputs: jax.lax.scan(step, state, inputs),
            donate_argnums=0,
        )
        self.score = jax.jit(self.score_batch)

    def loss(self, weights, others, rows, key):
        """Returns the loss of rows, and what the log wants to know."""
        batch = hide(rows, self.pieces, self.mask_rate, key)
        outputs, others = self.model.stateless_call(
            weights, others, batch, training=True
        )
        loss, facts = pretraining_loss(outputs, batch)
        return loss, (others, facts)

    def train(self, part):
        """Trains through a part, and writes the log."""
        import jax

        if part.repeat_positions:
            self.keep_weights()
            repeat_positions(self.model)
        if part.seed is not None:
            self.begin(part.seed)
        chunks = made_ahead(self.rows.chunks(part))
        waiting = jax.device_put(next(chunks))
        for call, rates in enumerate(part.rates(), 1):
            start = time.time()
            self.state, facts = self.take(self.state, waiting, rates)
            if call < part.calls:
                waiting = jax.device_put(next(chunks))  # while it computes
            facts = {n: float(a.mean()) for n, a in facts.items()}
            if not np.isfinite(sum(facts.values())):
                raise SystemExit("The loss is not finite.")
            seconds = time.time() - start
            self.steps += part.chunk
            self.tokens += part.chunk * part.step_tokens
            row = {
                "step": self.steps,
                "tokens": self.tokens,
                "length": part.length,
                "rate": float(rates[-1]),
                **facts,
                "seconds": round(time.time() - self.started, 1),
                "tokens_per_second": int(
                    part.chunk * part.step_tokens / seconds
                ),
            }
            if call == part.calls or call % EVALUATION_CALLS == 0:
                row |= self.evaluate()
                print(show(row), flush=True)
            self.log.append(row)
        self.write_log()

    def evaluate(self):
        """Returns bits a character of each genre, their mean, accuracies."""
        from bertbook.pretraining.evaluation import bits_per_character

        bits, right, next_right = {}, [], []
        for genre, (batch, examples) in self.held_out.items():
            sums = self.score(*self.state[:2], batch)
            sums = {n: float(value) for n, value in sums.items()}
            bits[f"bits_{genre}"] = bits_per_character(
                sums["nats"] / sums["hidden"], examples, self.tokenizer
            )
            right.append(sums["right"] / sums["hidden"])
            next_right.append(sums["next_right"] / sums["pairs"])
        return bits | {
            "bits": float(np.mean(list(bits.values()))),
            "held_out_mlm_accuracy": float(np.mean(right)),
            "held_out_nsp_accuracy": float(np.mean(next_right)),
        }

    def score_batch(self, weights, others, batch):
        """Returns sums over a held-out batch."""
        outputs, _ = self.model.stateless_call(
            weights, others, batch, training=False
        )
        return held_out_sums(outputs, batch)

    def write_log(self):
        """Writes log.csv."""
        names = list(dict.fromkeys(name for row in self.log for name in row))
        path = self.out / "log.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.log)

    def keep_weights(self):
        """Takes the weights back from the device into the model."""
        for variable, value in zip(
            self.learner().trainable_variables, self.state[0], strict=True
        ):
            variable.assign(value)

    def close(self):
        """Ends what makes rows."""
        if self.rows is not None:
            self.rows.close()

    def save(self, folder):
        """Writes the model and its tokenizer."""
        self.keep_weights()
        self.model.tokenizer = self.tokenizer
        self.model.save_pretrained(folder, "float16")


def show(row):
    """Returns a row of the log for the screen."""
    parts = [
        f"{name} {value:.4g}"
        if isinstance(value, float)
        else f"{name} {value:,}"
        for name, value in row.items()
        if not name.startswith("bits_")
    ]
    return ", ".join(parts)


def make_model(vocab_size, start=None):
    """Returns a `BertForPreTraining` in bfloat16, its tables in float32."""
    import bertbook as bb
    from bertbook.runtime import keras

    dtype = "mixed_bfloat16"
    keras.utils.set_random_seed(0)
    if start is None:
        config = bb.BertConfig.named(
            "mini",
            vocab_size=vocab_size,
            max_position_embeddings=POSITIONS,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        model = bb.BertForPreTraining(config, dtype=dtype)
    else:
        model = bb.BertForPreTraining.from_pretrained(start, dtype=dtype)
    tables = model.encoder.embeddings
    parts = tables.token, tables.segment, tables.position, tables.norm
    for layer in (tables, *parts, tables.dropout):
        layer.dtype_policy = keras.DTypePolicy("float32")
    return model


def repeat_positions(model, count=128):
    """Gives all further positions the vectors of the first `count`."""
    variable = model.encoder.embeddings.position.table
    table = np.array(variable.value)
    times = -(-len(table) // count)
    table[:] = np.tile(table[:count], (times, 1))[: len(table)]
    # Position 0 is that of [CLS], which stands nowhere else.
    table[count::count] = table[count - 1]
    variable.assign(table)


def fresh_state(model, optimizer, seed):
    """Returns weights, what is not trained, moments, and a random key."""
    import jax

    def copy(variables):
        return [jax.numpy.array(variable.value) for variable in variables]

    return (
        copy(model.trainable_variables),
        copy(model.non_trainable_variables),
        copy(optimizer.variables),
        jax.random.key(seed),
    )


def make_step(optimizer, loss):
    """Returns one step of training, for `jax.lax.scan`.

    Args:
        optimizer: It is built, with a number as learning rate.
        loss: A function of weights, other variables, rows and a random key;
            it returns the loss, and the new other variables with a dict.
    """
    import jax

    place = next(
        number
        for number, variable in enumerate(optimizer.variables)
        if variable is optimizer.learning_rate
    )
    slopes_of = jax.value_and_grad(loss, has_aux=True)

    def step(state, inputs):
        weights, others, moments, key = state
        rows, rate = inputs
        key, here = jax.random.split(key)
        (_, (others, facts)), slopes = slopes_of(weights, others, rows, here)
        moments = [*moments[:place], rate, *moments[place + 1 :]]
        weights, moments = optimizer.stateless_apply(moments, slopes, weights)
        return (weights, others, moments, key), facts

    return step


def hide(rows, pieces, rate, key):
    """Hides tokens, as `masking.mask_rows` does with single pieces.

    Args:
        rows: `ids`, `(B, S)`; `firsts` and `lengths`, `(B,)`; it may hold
            `labels`, `(B,)`.
        pieces: The facts of the vocabulary.
        rate: Share of the tokens that are hidden.
        key: A random key.

    Returns:
        A batch for `BertForPreTraining`, slots in random order.
    """
    import jax
    import jax.numpy as jnp

    ids = rows["ids"].astype("int32")
    masking = Masking(rate=rate)
    slots = masking.slots(ids.shape[1])
    order, lot, other = jax.random.split(key, 3)
    scores = jax.random.uniform(order, ids.shape)
    scores = jnp.where(jnp.asarray(pieces.special)[ids], -1.0, scores)
    best, positions = jax.lax.top_k(scores, slots)  # (B, M)
    budgets = jnp.maximum(1, jnp.rint(rows["lengths"] * rate))
    used = (jnp.arange(slots) < budgets[:, None]) & (best >= 0)
    hidden = jnp.take_along_axis(ids, positions, axis=1)
    lot = jax.random.uniform(lot, hidden.shape)
    ordinary = jnp.asarray(pieces.ordinary.astype("int32"))
    drawn = jax.random.randint(other, hidden.shape, 0, len(ordinary))
    shares = np.cumsum([masking.mask_share, masking.random_share])
    new = jnp.where(
        lot < shares[0],
        pieces.mask,
        jnp.where(lot < shares[1], ordinary[drawn], hidden),
    )
    new = jnp.where(used, new, hidden)
    place = jnp.arange(ids.shape[1])
    is_real = place < rows["lengths"][:, None]
    is_second = is_real & (place >= rows["firsts"][:, None])
    batch = {
        "input_ids": jnp.put_along_axis(ids, positions, new, 1, inplace=False),
        "token_type_ids": is_second.astype("int32"),
        "attention_mask": is_real.astype("int32"),
        "masked_lm_positions": positions.astype("int32"),
        "masked_lm_ids": hidden,
        "masked_lm_weights": used.astype("float32"),
    }
    if "labels" in rows:
        batch["next_sentence_labels"] = rows["labels"]
    return batch


def nats_of(logits, ids):
    """Returns the loss of each id, `(...)` float32, for logits, `(..., K)`."""
    import jax
    import jax.numpy as jnp

    logits = logits.astype("float32")
    right = jnp.take_along_axis(logits, ids[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - right


def mean_nats(outputs, batch):
    """Returns the mean loss of the hidden tokens."""
    weights = batch["masked_lm_weights"]
    nats = nats_of(outputs["mlm_logits"], batch["masked_lm_ids"])
    return (nats * weights).sum() / weights.sum()


def pretraining_loss(outputs, batch):
    """Returns the sum of both mean losses, and a dict of the two."""
    labels = batch["next_sentence_labels"]
    facts = {
        "mlm_loss": mean_nats(outputs, batch),
        "nsp_loss": nats_of(outputs["nsp_logits"], labels).mean(),
    }
    return facts["mlm_loss"] + facts["nsp_loss"], facts


def held_out_sums(outputs, batch):
    """Returns sums over the slots and pairs of a batch with `row_weights`."""
    rows, ids = batch["row_weights"], batch["masked_lm_ids"]
    weights = batch["masked_lm_weights"] * rows[:, None]
    guesses = outputs["mlm_logits"].argmax(-1)
    answers = outputs["nsp_logits"].argmax(-1)
    is_right = answers == batch["next_sentence_labels"]
    return {
        "nats": (nats_of(outputs["mlm_logits"], ids) * weights).sum(),
        "right": ((guesses == ids) * weights).sum(),
        "hidden": weights.sum(),
        "next_right": (is_right * rows).sum(),
        "pairs": rows.sum(),
    }


def make_held_out(folder, pieces):
    """Returns for each genre a batch of one shape, and its examples.

    Length 128 and 15% hidden, as in the paper.
    """
    from bertbook.pretraining import evaluation

    found = {}
    for path in sorted(folder.iterdir()):
        corpus = Corpus(path, read_json(path / "corpus.json"))
        examples = evaluation.held_out_examples(
            corpus, pieces, ExampleSettings(), limit=HELD_OUT_ROWS, part="train"
        )
        rows = len(examples["input_ids"])
        batch = {}
        for name, array in examples.items():
            kind = "float32" if array.dtype == "float32" else "int32"
            batch[name] = np.zeros((HELD_OUT_ROWS, *array.shape[1:]), kind)
            batch[name][:rows] = array
        batch["row_weights"] = np.zeros(HELD_OUT_ROWS, "float32")
        batch["row_weights"][:rows] = 1.0
        found[path.name] = batch, examples
    return found


if __name__ == "__main__":
    main()
