"""`pretrain`: from text files to a folder that holds a model.

Differences: the rows of every epoch are drawn again; what else differs is
said in `examples`, `masking` and `optimizers`.
"""

import contextlib
import dataclasses
from pathlib import Path

import numpy as np

from bertbook.batches.feeding import Feed
from bertbook.config import SIZES, BertConfig
from bertbook.files import read_json
from bertbook.locations import find_folder
from bertbook.model.bert import BertForPreTraining
from bertbook.pretraining import evaluation
from bertbook.pretraining.corpus import Corpus, prepare, vocabulary_hash
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.stream import ExampleStream, Position
from bertbook.runtime import (
    choose_compilation,
    choose_dtype,
    compiles_whole,
    keras,
    ops,
)
from bertbook.text.tokenizer import Tokenizer
from bertbook.training import cards
from bertbook.training.losses import pretraining_losses, pretraining_metrics
from bertbook.training.monitor import Monitor, tensorboard_writer
from bertbook.training.optimizers import (
    WarmupLinearDecay,
    count_warmup_steps,
    make_optimizer,
)
from bertbook.training.run import RunFolder, check_record, fit_steps

COMPILE = True  # with XLA; JAX always does
# What Keras calls the means, and what a log calls them.
LOGS = {
    "loss": "loss",
    "mlm_logits_loss": "mlm_loss",
    "mlm_logits_accuracy": "mlm_accuracy",
    "nsp_logits_loss": "nsp_loss",
    "nsp_logits_accuracy": "nsp_accuracy",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingRecipe:
    """The hyperparameters of a run.

    The defaults suit a small model and a small corpus; the paper trains with
    256 rows, a peak of 1e-4 and 10,000 steps of warm-up.

    Attributes:
        steps: Updates of the weights.
        batch_size: Rows an update.
        learning_rate: The peak, at the end of the warm-up.
        warmup: Share of the steps on the way up.
        end: Share of the peak that is left after the last step.
        weight_decay: As in `make_optimizer`; `beta_2` and `clip_norm` alike.
        accumulation: Parts that an update is computed in.
        dtype: "float32", "mixed_bfloat16", or "mixed_float16", which scales
            the loss; "auto" is what `runtime.choose_dtype` says.
        seed: Seed of weights, dropout, pairs, masks and order.

    Raises:
        ValueError: A number is out of range, or `batch_size` does not split
            evenly into `accumulation` parts.
    """

    steps: int = 1_000
    batch_size: int = 64
    learning_rate: float = 1e-3
    warmup: float = 0.1
    end: float = 0.0
    weight_decay: float = 0.01
    beta_2: float = 0.999
    clip_norm: float = 1.0
    accumulation: int = 1
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self):
        for name in ("steps", "batch_size", "accumulation"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(
                    f"`{name}` must be an integer >= 1. Received: {value!r}."
                )
        for name in ("warmup", "end"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(
                    f"`{name}` must be in [0, 1]. Received: {value}."
                )
        if self.batch_size % self.accumulation:
            raise ValueError(
                "`batch_size` must be a multiple of `accumulation`. Received: "
                f"{self.batch_size} and {self.accumulation}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reporting:
    """How often a run logs, evaluates and saves; none changes the result.

    Attributes:
        log_steps: Steps a row of log.csv; whatever else is due adds one.
        evaluation_steps: Steps between evaluations on held-out documents.
        checkpoint_steps: Steps between checkpoints.
        tensorboard: Whether to write logs for TensorBoard too.
        verbose: Whether to print.

    Raises:
        ValueError: A number of steps is below 1.
    """

    log_steps: int = 50
    evaluation_steps: int = 500
    checkpoint_steps: int = 500
    tensorboard: bool = False
    verbose: bool = True

    def __post_init__(self):
        for name in ("log_steps", "evaluation_steps", "checkpoint_steps"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be >= 1. Received: {getattr(self, name)}."
                )


def pretrain(
    corpus,
    out,
    recipe,
    model="tiny",
    tokenizer="mini",
    examples=None,
    held_out=0.01,
    workers=0,
    data_parallel=False,
    reporting=None,
    evaluate=None,
):
    """Pre-trains a BERT and saves it in a folder; resumes where it stopped.

    The same call again resumes, and once finished changes nothing. It may be
    killed at any moment: the result is the same, byte for byte.

    Args:
        corpus: Text files, documents separated by an empty line; or a
            `Corpus` that was prepared before, held-out share and all.
        out: The folder of the run: in the end config.json, model.safetensors,
            vocab.txt, log.csv and README.md.
        recipe: A `PretrainingRecipe`.
        model: A published size such as "mini", with random weights; a
            `BertConfig`; or a folder whose weights are the start, such as
            `locations.find_folder("mini")`.
        tokenizer: A `Tokenizer`, a shipped name or a folder.
        examples: An `ExampleSettings`; None means the paper's.
        held_out: Share of the documents that are only evaluated on.
        workers: Processes that make examples in advance.
        data_parallel: Whether all devices share each batch; JAX only.
        reporting: A `Reporting`.
        evaluate: A function of the model that returns a dict of numbers for
            the log, in place of the scores on held-out documents.

    Returns:
        The trained `BertForPreTraining`.

    Raises:
        FileNotFoundError: A text file is missing.
        ValueError: `out` holds a run with other settings, the corpus is empty
            or not UTF-8, or the loss is not finite.
        OSError: A checkpoint cannot be written.
    """
    out = Path(out)
    examples = examples or ExampleSettings()
    reporting = reporting or Reporting()
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer.from_pretrained(tokenizer)
    config = choose_config(model, tokenizer, examples)
    folder = RunFolder(out, reporting.verbose)
    recipe = settle_dtype(recipe, folder.record, reporting.verbose)
    record = _make_record(model, config, tokenizer, recipe, examples)
    check_record(folder.record, record)
    if folder.is_finished():
        return BertForPreTraining.from_pretrained(out)
    shards = corpus
    if not isinstance(corpus, Corpus):
        shards = prepare(
            corpus,
            tokenizer,
            out / "corpus",
            held_out=held_out,
            seed=recipe.seed,
        )
    pieces = Pieces.of(tokenizer)
    stream = ExampleStream(shards, pieces, examples, recipe.seed, workers)
    with _shared_devices(data_parallel) as devices:
        trained = make_model(model, config, recipe)
        compile_for_pretraining(trained, recipe)
        if evaluate is None:
            evaluate = evaluator(stream, shards)
        run_steps(trained, stream, folder, recipe, reporting, evaluate, devices)
        trained.tokenizer = tokenizer
        cards.write_card(out, record, shards.record)
        trained.save_pretrained(out)
    return trained


def choose_config(model, tokenizer, examples):
    """Returns the config of a size, a config or a folder, with our vocabulary.

    Raises:
        ValueError: The config does not hold the vocabulary, or the examples
            are longer than it allows.
    """
    if isinstance(model, BertConfig):
        config = model
    elif model in SIZES:
        longest = max(128, examples.max_length)
        config = BertConfig.named(
            model, vocab_size=len(tokenizer), max_position_embeddings=longest
        )
    else:
        config = BertConfig.from_json(find_folder(model) / "config.json")
    if config.vocab_size < len(tokenizer):  # more rows are padding
        raise ValueError(
            "`vocab_size` must hold the pieces of the tokenizer, "
            f"{len(tokenizer)}. Received: {config.vocab_size}."
        )
    if examples.max_length > config.max_position_embeddings:
        raise ValueError(
            "`max_length` must be at most `max_position_embeddings`, "
            f"{config.max_position_embeddings}. Received: "
            f"{examples.max_length}."
        )
    return config


def settle_dtype(recipe, path, verbose=True):
    """Returns a recipe with a definite `dtype`, where it was "auto".

    A run that was begun on another machine keeps its dtype.

    Args:
        recipe: A `PretrainingRecipe`.
        path: The record of the run, which may exist already.
        verbose: Whether to print what it is, and why.
    """
    if recipe.dtype != "auto":
        return recipe
    dtype, why = choose_dtype()
    if path.is_file():
        stored = read_json(path).get("recipe", {})
        dtype, why = stored.get("dtype", dtype), "as the run began"
    if verbose:
        print(f"dtype: {dtype}, {why}")
    return dataclasses.replace(recipe, dtype=dtype)


def _make_record(model, config, tokenizer, recipe, examples):
    """Returns everything that changes the result of a run, for JSON."""
    is_start = isinstance(model, str | Path) and model not in SIZES
    return {
        "recipe": dataclasses.asdict(recipe),
        "examples": dataclasses.asdict(examples),
        "config": config.to_dict(),
        "start": Path(model).name if is_start else None,
        "vocabulary": vocabulary_hash(tokenizer),
    }


def make_model(model, config, recipe):
    """Returns a model with random weights, or those of a folder."""
    keras.utils.set_random_seed(recipe.seed)
    if isinstance(model, BertConfig) or model in SIZES:
        return BertForPreTraining(config, dtype=recipe.dtype)
    return BertForPreTraining.from_pretrained(model, dtype=recipe.dtype)


def compile_for_pretraining(model, recipe):
    """Compiles a model with both losses, accuracies and the optimizer.

    The losses are sums, for the weights of `feeding.to_steps`.
    """
    schedule = WarmupLinearDecay(
        recipe.learning_rate,
        count_warmup_steps(recipe.steps, recipe.warmup),
        recipe.steps,
        recipe.accumulation,
        recipe.end,
    )
    optimizer = make_optimizer(
        schedule,
        recipe.weight_decay,
        recipe.clip_norm,
        recipe.beta_2,
        accumulation=recipe.accumulation,
        scale_loss=recipe.dtype == "mixed_float16",
        compiled=choose_compilation(model.compute_dtype).path == "islands",
    )
    model.compile(
        optimizer,
        loss=pretraining_losses("sum"),
        weighted_metrics=pretraining_metrics(),
        jit_compile=compiles_whole(model.compute_dtype, COMPILE),
    )
    optimizer.build(model.trainable_variables)
    _build_losses(model)


def _build_losses(model):
    """Makes the counters of both losses.

    Keras would make them in the first step, and TensorFlow traces a step
    again when it has made variables.
    """
    label, weight = np.zeros((1, 1), "int32"), np.zeros((1, 1), "float32")
    model.compute_loss(
        y={"mlm_logits": label, "nsp_logits": label[0]},
        y_pred={
            "mlm_logits": ops.zeros((1, 1, model.config.vocab_size)),
            "nsp_logits": ops.zeros((1, 2)),
        },
        sample_weight={"mlm_logits": weight, "nsp_logits": weight[0]},
    )
    model.reset_metrics()


@contextlib.contextmanager
def _shared_devices(data_parallel):
    """Lets Keras split every batch over all devices, and yields their number.

    Raises:
        ValueError: The backend is TensorFlow, where Keras cannot.
    """
    if not data_parallel:
        yield 1
        return
    if keras.backend.backend() != "jax":
        raise ValueError(
            "`data_parallel` needs the JAX backend. Received: "
            f"{keras.backend.backend()}."
        )
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    try:
        yield len(keras.distribution.list_devices())
    finally:
        keras.distribution.set_distribution(before)


def run_steps(model, stream, folder, recipe, reporting, evaluate, devices=1):
    """Trains a compiled model from its last checkpoint to the last step.

    Args:
        model: A model of `compile_for_pretraining`.
        stream: An `ExampleStream`.
        folder: The `RunFolder`.
        recipe: A `PretrainingRecipe`.
        reporting: A `Reporting`.
        evaluate: A function of the model that returns numbers for the log.
        devices: How many share a batch.
    """
    done, place = folder.resume(model) or (0, Position())
    if done == recipe.steps:
        return
    feed = Feed(
        stream,
        recipe.batch_size,
        done,
        Position(*place),
        recipe.accumulation,
        devices,
    )

    def save(row):
        folder.save(row["step"], model, feed.positions[row["step"]])

    tasks = [
        (reporting.log_steps, lambda row: None),
        (reporting.evaluation_steps, lambda row: row.update(evaluate(model))),
        (None, folder.open_log(done).add),
        (reporting.checkpoint_steps, save),
    ]
    if reporting.tensorboard:
        writer = tensorboard_writer(folder.path / "tensorboard")
        tasks.insert(-1, (None, writer))
    monitor = Monitor(
        recipe.steps,
        done,
        recipe.batch_size * stream.settings.max_length,
        LOGS,
        tasks,
        recipe.accumulation,
        reporting.verbose,
    )
    steps = (recipe.steps - done) * recipe.accumulation
    fit_steps(model, feed.batches(), steps, monitor)


def evaluator(stream, shards):
    """Returns a function of a model that scores it on held-out documents."""
    if not shards.shards("held_out"):
        return lambda model: {}
    examples = evaluation.held_out_examples(
        shards, stream.pieces, stream.settings
    )

    def evaluate(model):
        scores = evaluation.score_pretraining(model, examples)
        return {f"held_out_{name}": value for name, value in scores.items()}

    return evaluate
