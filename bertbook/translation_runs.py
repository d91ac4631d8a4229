"""Training a translator: from pairs of texts to a folder that translates.

Differences: AdamW without decay is the paper's Adam. The learning rate has a
peak of its own; see `InverseSquareRootDecay`.
"""

import dataclasses
import time
from pathlib import Path

from bertbook import cards, training
from bertbook.averages import average_weights, keep_weights
from bertbook.bitexts import count_steps, steps
from bertbook.data_files import hash_columns
from bertbook.feeding import feed_fit
from bertbook.losses import SmoothedLoss
from bertbook.optimization import InverseSquareRootDecay, make_optimizer
from bertbook.runtime import keras, may_compile
from bertbook.seq2seq import Seq2SeqTransformer
from bertbook.translation import (
    columns_of,
    encode_columns,
    score,
    take_pairs,
    token_loss,
)
from bertbook.translation_recipe import (
    SMALL,
    Recipe,
    Reporting,
    check_settings,
)
from bertbook.translation_scores import check_scoring
from bertbook.translation_vocabularies import (
    keep_vocabularies,
    train_vocabularies,
)

RECORD = "run.json"
FINISHED = "model.safetensors"  # what is written last
COMPILE = False  # with XLA, once for every length; JAX always does


def train_translation(
    train,
    out,
    recipe=None,
    dev=None,
    config=None,
    lowercase=False,
    reporting=None,
):
    """Trains a translator and leaves it in a folder; goes on where it stopped.

    The same call again resumes, and once finished changes nothing. Killed at
    any moment it ends with the same weights, unless minutes decide the end.

    Args:
        train: A dict of the columns `source` and `target`.
        out: The folder of the run: in the end config.json, model.safetensors,
            the vocabularies, log.csv and README.md.
        recipe: A `Recipe`.
        dev: The same columns, to measure on; the weights do not depend on it.
        config: A `Seq2SeqConfig`, `SMALL` if none: its `vocab_size` and
            `target_vocab_size` are those that vocabularies are trained to.
            Pairs longer than its positions are left out, and counted.
        lowercase: Whether to lower-case the texts and drop accents.
        reporting: A `Reporting`.

    Returns:
        The trained `Seq2SeqTransformer`.

    Raises:
        KeyError: A column is missing.
        ValueError: A row is empty, `out` holds a run with other settings, or
            the loss is not finite. What the arguments hold is checked before
            anything is written.
        ImportError: Translations are to be scored, and sacrebleu is missing.
        OSError: A checkpoint cannot be written.
    """
    started = time.perf_counter()
    out, config = Path(out), SMALL if config is None else config
    recipe = Recipe() if recipe is None else recipe
    reporting = Reporting() if reporting is None else reporting
    check_settings(recipe, reporting, config, lowercase)
    for data in (train,) if dev is None else (train, dev):
        columns_of(data)
    record = {
        "recipe": dataclasses.asdict(recipe),
        "config": config.to_dict(),
        "lowercase": lowercase,
        "train": hash_columns(train),
        "dev": hash_columns(dev),
    }
    if (out / RECORD).is_file() or (out / FINISHED).is_file():
        training.check_record(out / RECORD, record)
    if (out / FINISHED).is_file():
        if reporting.verbose:
            print(f"{out} holds the finished run; nothing is changed.")
        return Seq2SeqTransformer.from_pretrained(out)
    model = make_model(train, config, lowercase, recipe, out)
    run = Run(model, train, dev, record, out, recipe, reporting)
    training.check_record(out / RECORD, record)  # the first to be written
    keep_vocabularies(model, out)
    run.train(started)
    return model


def make_model(train, config, lowercase, recipe, out):
    """Returns a model with drawn weights and the vocabularies of its texts."""
    own, target = train_vocabularies(train, config, lowercase, out)
    config = config.replace(vocab_size=len(own))
    if config.target_vocab_size is not None:
        config = config.replace(target_vocab_size=len(target))
    keras.utils.set_random_seed(recipe.seed)
    model = Seq2SeqTransformer(config, dtype=recipe.dtype)
    model.tokenizer, model.target_tokenizer = own, target
    return model


class Run:
    """One run: its steps, what it says of itself, and its last weights."""

    def __init__(self, model, train, dev, record, out, recipe, reporting):
        self.model = model
        self.pairs = encode_columns(model, train)
        self.dev_pairs = None if dev is None else encode_columns(model, dev)
        self.translated = None
        if dev is not None and reporting.translated:
            rows = self.dev_pairs.rows[: reporting.translated]
            self.translated = take_pairs(dev, rows)
            check_scoring(*self.translated.values())
        self.record = record
        self.out = out
        self.recipe = recipe
        self.reporting = reporting
        self.checkpoints = out / "checkpoints"
        limit = model.config.max_position_embeddings
        self.batches = self.pairs, recipe.batch_tokens, limit
        self.an_epoch = count_steps(*self.batches)

    def train(self, started):
        """Trains to the end, from the last checkpoint where there is one.

        Args:
            started: When the call began, by `time.perf_counter`.
        """
        recipe = self.recipe
        compile_for_translation(self.model, recipe)
        found = training.load_checkpoint(self.checkpoints, self.model)
        done, state = found or (0, {"seconds": 0.0, "is_last": False})
        self._say(done)
        if done < recipe.steps and not state["is_last"]:
            spent = state["seconds"] + time.perf_counter() - started
            self._fit(done, spent)
        average_weights(self.checkpoints, self.model)
        found = self._measure(beams=True)
        facts = {"pairs": len(self.pairs), "left_out": self.pairs.left_out}
        cards.write_translation_card(self.out, self.record, facts, found)
        self.model.save_pretrained(self.out)

    def _fit(self, done, spent):
        recipe, reporting = self.recipe, self.reporting
        log = training.Log(self.out / "log.csv", done)
        tasks = [
            (None, self._note),
            (reporting.log_steps, lambda row: None),
            (reporting.evaluation_steps, self._evaluate),
            (None, log.add),
            (recipe.checkpoint_steps, self._save),
        ]
        self.monitor = training.Monitor(
            recipe.steps,
            done,
            recipe.batch_tokens,
            {"loss": "loss"},
            tasks,
            verbose=reporting.verbose,
            seconds=recipe.seconds,
            spent=spent,
        )
        self.model.fit(
            feed_fit(steps(*self.batches, recipe.seed, done)),
            steps_per_epoch=recipe.steps - done,
            shuffle=False,
            callbacks=[self.monitor],
            verbose=0,
        )

    def _say(self, done):
        if self.reporting.verbose:
            print(f"{len(self.pairs)} pairs, {self.pairs.left_out} too long")
            if done:
                print(f"going on after step {done}")

    def _note(self, row):
        """Adds the epoch and the time to a row of the log."""
        row["epoch"] = round(row["step"] / self.an_epoch, 3)
        row["seconds"] = round(self.monitor.seconds_spent(), 1)

    def _evaluate(self, row):
        """Adds what the weights of now give on dev to a row of the log."""
        found = self._measure()
        row |= {f"dev_{name}": value for name, value in found.items()}

    def _measure(self, beams=False):
        """Returns the loss on dev, and BLEU and chrF where they are wanted."""
        if self.dev_pairs is None:
            return {}
        found = {"loss": round(token_loss(self.model, self.dev_pairs), 4)}
        if self.translated is not None:
            search = "beams" if beams else "greedy"
            scored = score(self.model, self.translated, search=search)
            found |= {n: round(scored[n], 2) for n in ("bleu", "chrf")}
        return found

    def _save(self, row):
        """Keeps the weights for the average, then all that a run needs."""
        step, folder = row["step"], self.checkpoints
        keep_weights(folder, step, self.model, self.recipe.averaged)
        state = {
            "seconds": self.monitor.seconds_spent(),
            "is_last": self.monitor.is_last,
        }
        training.save_checkpoint(folder, step, self.model, state)


def compile_for_translation(model, recipe):
    """Compiles a model for `bitexts.steps`, whose weights sum to 1."""
    optimizer = make_optimizer(
        InverseSquareRootDecay(recipe.learning_rate, recipe.warmup_steps),
        weight_decay=0.0,
        clip_norm=recipe.clip_norm,
        beta_2=0.98,
        epsilon=1e-9,
        scale_loss=recipe.dtype == "mixed_float16",
    )
    loss = SmoothedLoss(recipe.label_smoothing, reduction="sum")
    model.compile(optimizer, loss=loss, jit_compile=may_compile(COMPILE))
    optimizer.build(model.trainable_variables)
