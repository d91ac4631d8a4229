"""`train_translation`: from pairs of texts to a folder that translates.

Differences: the defaults suit a small model, short sentences and a short run;
the paper trains with 25,000 tokens a side, 4,000 steps of warm-up and a peak
of 7e-4, for 100,000 steps. AdamW without decay is the paper's Adam. The
learning rate has a peak of its own; see `InverseSquareRootDecay`. The paper's
vocabularies are byte pairs, shared by both sides.
"""

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

from bertbook.batches.feeding import feed_fit
from bertbook.checks import check_switch
from bertbook.decoder.config import Seq2SeqConfig
from bertbook.decoder.seq2seq import TARGET, Seq2SeqTransformer
from bertbook.runtime import keras, may_compile
from bertbook.text.tokenizer import Tokenizer
from bertbook.training import cards
from bertbook.training.checkpoint import (
    average_weights,
    check_finite,
    keep_weights,
    restore_kept,
)
from bertbook.training.losses import SmoothedLoss
from bertbook.training.monitor import Monitor
from bertbook.training.optimizers import InverseSquareRootDecay, make_optimizer
from bertbook.training.run import (
    RunFolder,
    fit_steps,
    hash_columns,
    last_step,
)
from bertbook.training.settings import (
    check_choice,
    check_kind,
    check_switches,
    set_count,
    set_number,
    set_seed,
    set_share,
)
from bertbook.translation.bitext import count_steps, steps
from bertbook.translation.metrics import check_scoring
from bertbook.translation.translate import (
    columns_of,
    encode_columns,
    score,
    take_pairs,
    token_loss,
)

DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")

# Small enough to be trained on two cores within an hour. Its matrices start
# larger than BERT's, because it is narrower.
SMALL = Seq2SeqConfig(
    vocab_size=4_096,
    target_vocab_size=4_096,
    hidden_size=256,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=1_024,
    max_position_embeddings=96,
    initializer_range=0.05,
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything about a run but the data and the model.

    Attributes:
        steps: Most updates of the weights.
        minutes: After how many minutes the run ends, whatever steps are left;
            its end then depends on the machine. None for no such end.
        batch_tokens: Tokens of one side of a batch, padding counted.
        learning_rate: The peak, at the end of the warm-up.
        warmup_steps: Steps on the way up.
        label_smoothing: As in `losses.SmoothedLoss`.
        clip_norm: Largest norm of all gradients together.
        checkpoint_steps: Steps between checkpoints.
        averaged: The weights of how many of the last checkpoints are averaged
            in the end; 1 for those of the last step.
        dtype: "float32", "mixed_bfloat16", or "mixed_float16", which scales
            the loss.
        seed: Seed of weights, dropout and order.

    Numbers of NumPy become plain ones, so that a record can hold them.

    Raises:
        ValueError: Something is out of range, or of another kind.

    Source: Vaswani et al. (2017), sections 5.3, 5.4 and 6.1.
    """

    steps: int = 2_000
    minutes: float | None = None
    batch_tokens: int = 2_048
    learning_rate: float = 1e-3
    warmup_steps: int = 400
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    checkpoint_steps: int = 200
    averaged: int = 5
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        counts = "steps", "batch_tokens", "warmup_steps", "checkpoint_steps"
        for name in (*counts, "averaged"):
            set_count(self, name)
        for name in ("minutes", "learning_rate", "clip_norm"):
            if name != "minutes" or self.minutes is not None:
                set_number(self, name)
        set_share(self, "label_smoothing", one=False)
        check_choice(self.dtype, "dtype", DTYPES)
        set_seed(self)

    @property
    def seconds(self) -> float | None:
        """After how many seconds the run ends."""
        return None if self.minutes is None else 60 * self.minutes


@dataclass(frozen=True, kw_only=True)
class Reporting:
    """How often a run logs and evaluates; none of it changes its weights.

    Attributes:
        log_steps: Steps a row of log.csv; whatever else is due adds one.
        evaluation_steps: Steps between evaluations on dev.
        translated: How many pairs of dev, the first that are short enough,
            are translated each time for BLEU and chrF, greedily; 0 for none.
            It needs sacrebleu.
        verbose: Whether to print.

    Raises:
        ValueError: A number is out of range.
    """

    log_steps: int = 50
    evaluation_steps: int = 500
    translated: int = 0
    verbose: bool = True

    def __post_init__(self) -> None:
        set_count(self, "log_steps")
        set_count(self, "evaluation_steps")
        set_count(self, "translated", least=0)
        check_switches(self, "verbose")


def _check_settings(
    recipe: Any, reporting: Any, config: Any, lowercase: Any
) -> None:
    """Refuses settings of a run that are of another kind.

    Raises:
        ValueError: A setting is of another kind; it is named.
    """
    check_kind(recipe, "recipe", Recipe)
    check_kind(reporting, "reporting", Reporting)
    check_kind(config, "config", Seq2SeqConfig)
    check_switch(lowercase, "lowercase")


def _train_vocabularies(train, config, lowercase, kept):
    """Returns the tokenizers of sources and targets, read or trained.

    Args:
        train: The pairs.
        config: A `Seq2SeqConfig`; without `target_vocab_size` one vocabulary
            is trained on both sides.
        lowercase: As in `train_translation`.
        kept: The folder of a run that goes on, where `_keep_vocabularies` put
            them; None trains them.
    """
    sources, targets = columns_of(train)
    if config.target_vocab_size is None:
        lines = [*sources, *targets]
        tokenizer = _kept_tokenizer(lines, config.vocab_size, lowercase, kept)
        return tokenizer, tokenizer
    return (
        _kept_tokenizer(sources, config.vocab_size, lowercase, kept),
        _kept_tokenizer(
            targets,
            config.target_vocab_size,
            lowercase,
            kept and kept / TARGET,
        ),
    )


def _kept_tokenizer(lines, vocab_size, lowercase, folder):
    if folder is not None:
        return Tokenizer.from_pretrained(folder)
    return Tokenizer.train(lines, vocab_size, lowercase)


def _keep_vocabularies(model, out):
    """Writes the tokenizers of a model, in place of those of a failed run."""
    folders = {out: model.tokenizer}
    if model.target_tokenizer is not model.tokenizer:
        folders[out / TARGET] = model.target_tokenizer
    for folder, tokenizer in folders.items():
        tokenizer.save_pretrained(folder)


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
    """Trains a translator and saves it in a folder; resumes where it stopped.

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
    config = SMALL if config is None else config
    recipe = Recipe() if recipe is None else recipe
    reporting = Reporting() if reporting is None else reporting
    _check_settings(recipe, reporting, config, lowercase)
    for data in (train,) if dev is None else (train, dev):
        columns_of(data)
    record = {
        "recipe": dataclasses.asdict(recipe),
        "config": config.to_dict(),
        "lowercase": lowercase,
        "train": hash_columns(train),
        "dev": hash_columns(dev),
    }
    folder = RunFolder(out, reporting.verbose)
    with folder.hold():
        folder.check(record)
        if folder.is_finished():
            return Seq2SeqTransformer.from_pretrained(folder.path)
        kept = folder.path if folder.keeps_something() else None
        model = _make_model(train, config, lowercase, recipe, kept)
        run = _Run(model, train, dev, record, folder, recipe, reporting)
        folder.begin(record)  # the first to be written
        if kept is None:
            _keep_vocabularies(model, folder.path)
        run.train(started)
    return model


def _make_model(train, config, lowercase, recipe, kept):
    """Returns a model with drawn weights and the vocabularies of its texts."""
    tokenizer, target_tokenizer = _train_vocabularies(
        train, config, lowercase, kept
    )
    config = config.replace(vocab_size=len(tokenizer))
    if config.target_vocab_size is not None:
        config = config.replace(target_vocab_size=len(target_tokenizer))
    keras.utils.set_random_seed(recipe.seed)
    model = Seq2SeqTransformer(config, dtype=recipe.dtype)
    model.tokenizer, model.target_tokenizer = tokenizer, target_tokenizer
    return model


class _Run:
    """One run: its steps, its record, and its averaged weights."""

    def __init__(self, model, train, dev, record, folder, recipe, reporting):
        self.model = model
        self.pairs = encode_columns(model, train)
        self.dev_pairs = None if dev is None else encode_columns(model, dev)
        self.translated = None
        if dev is not None and reporting.translated:
            rows = self.dev_pairs.rows[: reporting.translated]
            self.translated = take_pairs(dev, rows)
            check_scoring(*self.translated.values())
        self.record = record
        self.folder = folder
        self.recipe = recipe
        self.reporting = reporting
        limit = model.config.max_position_embeddings
        self.batches = self.pairs, recipe.batch_tokens, limit
        self.steps_per_epoch = count_steps(*self.batches)

    def train(self, started):
        """Trains to the end, from the last checkpoint where there is one.

        Args:
            started: When the call began, by `time.perf_counter`.
        """
        recipe = self.recipe
        compile_for_translation(self.model, recipe)
        if self.reporting.verbose:
            print(f"{len(self.pairs)} pairs, {self.pairs.left_out} too long")
        start = 0, {"seconds": 0.0, "is_last": False}
        done, state = self.folder.resume(self.model, _is_state) or start
        needed = self._averaged_steps(done, state["is_last"])
        restore_kept(self.folder.checkpoints, done, needed)
        if done < recipe.steps and not state["is_last"]:
            spent = state["seconds"] + time.perf_counter() - started
            self._fit(done, spent)
        average_weights(self.folder.checkpoints, self.model)
        self._check(last_step(self.folder.path))
        scores = self._measure(beams=True)
        facts = {"pairs": len(self.pairs), "left_out": self.pairs.left_out}
        cards.write_translation_card(
            self.folder.path, self.record, facts, scores
        )
        self.folder.draw_log()
        self.model.save_pretrained(self.folder.path)

    def _averaged_steps(self, done, is_last):
        """Returns the steps up to now whose weights the end will average.

        Where minutes decide the end, that is not known before.
        """
        end = done if is_last else self.recipe.steps
        if self.recipe.minutes is not None and not is_last:
            return []
        pace, most = self.recipe.checkpoint_steps, self.recipe.averaged
        first = max(1, end // pace - most) * pace
        steps = sorted({*range(first, end + 1, pace), end})[-most:]
        return [step for step in steps if step <= done]

    def _check(self, step):
        """Refuses weights that give nothing finite, before they are kept."""
        limit = self.model.config.max_position_embeddings
        x, _, _ = self.pairs.step([0], limit, 1)
        check_finite(self.model, step, lambda: self.model(x, training=False))

    def _fit(self, done, spent):
        recipe, reporting = self.recipe, self.reporting
        tasks = [
            (None, self._note),
            (reporting.log_steps, lambda row: None),
            (reporting.evaluation_steps, self._evaluate),
            (None, self.folder.open_log(done).add),
            (recipe.checkpoint_steps, self._save),
            (reporting.evaluation_steps, self.folder.draw_log),
        ]
        self.monitor = Monitor(
            recipe.steps,
            done,
            recipe.batch_tokens,
            {"loss": "loss"},
            tasks,
            verbose=reporting.verbose,
            seconds=recipe.seconds,
            spent=spent,
        )
        batches = feed_fit(steps(*self.batches, recipe.seed, done))
        fit_steps(self.model, batches, recipe.steps - done, self.monitor)

    def _note(self, row):
        """Adds the epoch and the time to a row of the log."""
        row["epoch"] = round(row["step"] / self.steps_per_epoch, 3)
        row["seconds"] = round(self.monitor.seconds_spent(), 1)

    def _evaluate(self, row):
        """Adds the scores of the current weights on dev to a row of the log."""
        self._check(row["step"])
        scores = self._measure()
        row |= {f"dev_{name}": value for name, value in scores.items()}

    def _measure(self, beams=False):
        """Returns the loss on dev, and BLEU and chrF where they are wanted."""
        if self.dev_pairs is None:
            return {}
        scores = {"loss": round(token_loss(self.model, self.dev_pairs), 4)}
        if self.translated is not None:
            search = "beams" if beams else "greedy"
            metrics = score(self.model, self.translated, search=search)
            scores |= {n: round(metrics[n], 2) for n in ("bleu", "chrf")}
        return scores

    def _save(self, row):
        """Keeps the weights for the average, then all that a run needs."""
        step = row["step"]
        self._check(step)
        keep_weights(
            self.folder.checkpoints, step, self.model, self.recipe.averaged
        )
        state = {
            "seconds": self.monitor.seconds_spent(),
            "is_last": self.monitor.is_last,
        }
        self.folder.save(step, self.model, state)


def _is_state(state):
    """Returns whether a checkpoint's state is that of a run of this kind."""
    return isinstance(state, dict) and {"seconds", "is_last"} <= state.keys()


def compile_for_translation(model, recipe):
    """Compiles a model for `bitext.steps`, whose weights sum to 1."""
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
