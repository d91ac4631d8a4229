"""`pretrain`: from text files to a folder that holds a model.

Differences: the rows of every epoch are drawn again; what else differs is
said in `examples`, `masking` and `optimizers`.
"""

import dataclasses
import itertools
from pathlib import Path

import numpy as np

from bertbook.batches.feeding import Feed
from bertbook.checks import is_integer
from bertbook.config import SIZES, BertConfig
from bertbook.devices.processes import is_writer, together, writer_first
from bertbook.devices.sharing import WHOLE, shared_devices
from bertbook.files import read_json
from bertbook.locations import find_model
from bertbook.model.bert import BertForPreTraining
from bertbook.pretraining import evaluation
from bertbook.pretraining.corpus import (
    Corpus,
    check_files,
    check_vocabulary,
    corpus_content,
    prepare,
    read_documents,
    vocabulary_hash,
)
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.stream import ExampleStream, Position
from bertbook.runtime import (
    choose_compilation,
    choose_dtype,
    compiles_whole,
    default_dtype,
    keras,
    ops,
)
from bertbook.text.tokenizer import Tokenizer
from bertbook.training import cards
from bertbook.training.checkpoint import check_finite
from bertbook.training.losses import pretraining_losses, pretraining_metrics
from bertbook.training.monitor import Monitor, tensorboard_writer
from bertbook.training.optimizers import (
    WarmupLinearDecay,
    count_warmup_steps,
    make_optimizer,
)
from bertbook.training.run import RunFolder, fit_steps, hash_tensors
from bertbook.training.settings import (
    check_choice,
    check_kind,
    check_switches,
    checked_count,
    set_count,
    set_number,
    set_seed,
    set_share,
)
from bertbook.weights.pretrained import named_tensors

DTYPES = ("float32", "mixed_bfloat16", "mixed_float16", "auto")
TOKENIZER = "tokenizer"  # the folder of a vocabulary that a run has trained
# What records of older versions lack.
ADDED = "start_weights", "corpus", "vocab_size"
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
            the loss; "auto" is what `runtime.choose_dtype` says. None is
            "float32", and "mixed_bfloat16" on a TPU.
        seed: Seed of weights, dropout, pairs, masks and order.

    Numbers of NumPy become plain ones, so that a record can hold them.

    Raises:
        ValueError: Something is out of range, or of another kind, or
            `batch_size` does not split evenly into `accumulation` parts.

    >>> import bertbook as bb
    >>> recipe = bb.PretrainingRecipe(steps=500, batch_size=32)
    >>> recipe.steps, recipe.learning_rate
    (500, 0.001)
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
    dtype: str | None = None
    seed: int = 0

    def __post_init__(self):
        for name in ("steps", "batch_size", "accumulation"):
            set_count(self, name)
        for name in ("learning_rate", "clip_norm"):
            set_number(self, name)
        for name in ("warmup", "end"):
            set_share(self, name)
        set_number(self, "weight_decay", zero=True)
        set_share(self, "beta_2", one=False)
        if self.dtype is not None:
            check_choice(self.dtype, "dtype", DTYPES)
        set_seed(self)
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
        ValueError: A number of steps is below 1, or a switch is neither True
            nor False.
    """

    log_steps: int = 50
    evaluation_steps: int = 500
    checkpoint_steps: int = 500
    tensorboard: bool = False
    verbose: bool = True

    def __post_init__(self):
        for name in ("log_steps", "evaluation_steps", "checkpoint_steps"):
            set_count(self, name)
        check_switches(self, "tensorboard", "verbose")


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
    model_parallel=1,
    steps_per_execution=1,
):
    """Pre-trains a BERT and saves it in a folder; resumes where it stopped.

    The same call again resumes, and once finished changes nothing. It may be
    killed at any moment: the result is the same, byte for byte.

    After `join_processes` each process computes its rows of every batch, and
    process 0 writes the folder, which all of them must see. The losses are
    those of one process, so that any number of them may resume.

    Args:
        corpus: Text files, documents separated by an empty line; or a
            `Corpus` that was prepared before, as `corpus.open_corpus` opens
            it, held-out share and all. Each call reads it once, to see that
            it is the one of the run.
        out: The folder of the run: in the end config.json, model.safetensors,
            vocab.txt, log.csv and README.md.
        recipe: A `PretrainingRecipe`.
        model: A published size such as "mini", with random weights; a
            `BertConfig`; or a folder whose weights are the start, such as
            `locations.find_folder("mini")`.
        tokenizer: A `Tokenizer`, a shipped name or a folder; or how many
            pieces a vocabulary is trained to, on the text files.
        examples: An `ExampleSettings`; None means the paper's.
        held_out: Share of the documents that are only evaluated on.
        workers: Processes that make examples in advance.
        data_parallel: Whether all devices share each batch; JAX only. A
            distribution of Keras that is set already stays.
        reporting: A `Reporting`.
        evaluate: A function of the model that returns a dict of numbers for
            the log, in place of the scores on held-out documents. Every
            process calls it.
        model_parallel: Devices that share one copy of the model, for one that
            is too large for a device; JAX only.
        steps_per_execution: Steps that the device takes per call. A small
            model is faster with 10 to 100; what is due in one of them is done
            after the last. The result is the same.

    Returns:
        The trained `BertForPreTraining`.

    Raises:
        FileNotFoundError: A text file is missing.
        ValueError: An argument is of another kind or out of range, `out` holds
            a run with other settings or is trained into right now, the corpus
            is empty or not UTF-8, or loss or weights are not finite.
        OSError: A checkpoint cannot be written.
        ImportError: A "hf://" name without huggingface_hub.
    """
    examples = ExampleSettings() if examples is None else examples
    reporting = Reporting() if reporting is None else reporting
    _check_settings(recipe, examples, reporting, evaluate)
    workers = checked_count(workers, "workers", least=0)
    together_steps = checked_count(steps_per_execution, "steps_per_execution")
    if not is_writer():
        reporting = dataclasses.replace(
            reporting, verbose=False, tensorboard=False
        )
    folder = RunFolder(out, reporting.verbose)
    if not isinstance(corpus, Corpus):
        corpus = check_files(corpus)
    content = corpus_content(corpus, held_out)
    with (
        together(),
        folder.hold(),
        shared_devices(data_parallel, model_parallel) as share,
    ):
        vocab_size = tokenizer if is_integer(tokenizer) else None
        tokenizer = _choose_tokenizer(tokenizer, corpus, folder)
        config = choose_config(model, tokenizer, examples)
        recipe = settle_dtype(recipe, folder.record, reporting.verbose)
        trained = make_model(model, config, recipe)
        record = {
            **_make_record(model, config, tokenizer, recipe, examples),
            "start_weights": hash_of_start(trained),
            "corpus": content,
            "vocab_size": vocab_size,
        }
        folder.check(record, ADDED)
        if folder.is_finished():
            return BertForPreTraining.from_pretrained(folder.path)
        shards = writer_first(
            lambda: _prepare_shards(corpus, tokenizer, folder, held_out, recipe)
        )
        pieces = Pieces.of(tokenizer)
        stream = ExampleStream(shards, pieces, examples, recipe.seed, workers)
        compile_for_pretraining(trained, recipe, together_steps)
        folder.begin(record, ADDED)  # now that nothing is left to be refused
        if vocab_size is not None and is_writer():
            tokenizer.save_pretrained(folder.path / TOKENIZER)
        evaluate = evaluate or evaluator(stream, shards)
        run_steps(trained, stream, folder, recipe, reporting, evaluate, share)
        trained.tokenizer = tokenizer
        if is_writer():
            folder.draw_log()
            cards.write_card(folder.path, record, shards.record)
            trained.save_pretrained(folder.path)
    return trained


def _check_settings(recipe, examples, reporting, evaluate):
    """Refuses settings of a run that are of another kind."""
    check_kind(recipe, "recipe", PretrainingRecipe)
    check_kind(examples, "examples", ExampleSettings)
    check_kind(reporting, "reporting", Reporting)
    if evaluate is not None and not callable(evaluate):
        raise ValueError(
            "`evaluate` must be a function of the model. Received: "
            f"{type(evaluate).__name__}."
        )


def _choose_tokenizer(tokenizer, corpus, folder):
    """Returns a tokenizer, by name, or trained on the corpus, once a run."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    if not is_integer(tokenizer):
        return Tokenizer.from_pretrained(tokenizer)
    kept = folder.path / TOKENIZER
    if folder.keeps_something() and kept.is_dir():
        trained = Tokenizer.from_pretrained(kept)
        if len(trained) > tokenizer:
            raise ValueError(
                f"`tokenizer` must be that of the run in {folder.path}, of "
                f"{len(trained)} pieces. Received: {tokenizer}."
            )
        return trained
    if isinstance(corpus, Corpus):
        raise ValueError(
            "`tokenizer` must be a tokenizer where the corpus is prepared "
            f"already. Received: {tokenizer}."
        )
    lines = itertools.chain.from_iterable(read_documents(corpus))
    return Tokenizer.train(lines, tokenizer)


def _prepare_shards(corpus, tokenizer, folder, held_out, recipe):
    """Returns the shards of text files, or those that are given."""
    if isinstance(corpus, Corpus):
        check_vocabulary(corpus, tokenizer)
        return corpus
    return prepare(
        corpus,
        tokenizer,
        folder.path / "corpus",
        held_out=held_out,
        seed=recipe.seed,
        replace=not folder.keeps_something(),
    )


def choose_config(model, tokenizer, examples):
    """Returns the config of a size, a config or a folder, with our vocabulary.

    Raises:
        ValueError: The config does not hold the vocabulary, or the examples
            are longer than it allows.
    """
    if isinstance(model, BertConfig):
        config = model
    elif isinstance(model, str) and model in SIZES:
        longest = max(128, examples.max_length)
        config = BertConfig.named(
            model, vocab_size=len(tokenizer), max_position_embeddings=longest
        )
    else:
        config = BertConfig.from_json(find_model(model) / "config.json")
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
    """Returns a recipe with a definite `dtype`, where it was "auto" or None.

    A run that was begun on another machine keeps its dtype.

    Args:
        recipe: A `PretrainingRecipe`.
        path: The record of the run, which may exist already.
        verbose: Whether to print what it is, and why; float32 is not worth a
            line where nothing was asked for.
    """
    if recipe.dtype not in ("auto", None):
        return recipe
    choose = choose_dtype if recipe.dtype == "auto" else default_dtype
    dtype, why = choose()
    if path.is_file():
        stored = read_json(path).get("recipe", {})
        dtype, why = stored.get("dtype") or dtype, "as the run began"
    if verbose and (recipe.dtype == "auto" or dtype != "float32"):
        print(f"dtype: {dtype}, {why}")
    return dataclasses.replace(recipe, dtype=dtype)


def _make_record(model, config, tokenizer, recipe, examples):
    """Returns everything that changes the result of a run, for JSON."""
    is_start = isinstance(model, str | Path) and model not in SIZES
    settings = dataclasses.asdict(examples)
    if not examples.packed:
        del settings["packed"]  # which older records lack
    return {
        "recipe": dataclasses.asdict(recipe),
        "examples": settings,
        "config": config.to_dict(),
        "start": Path(model).name if is_start else None,
        "vocabulary": vocabulary_hash(tokenizer),
    }


def hash_of_start(model):
    """Returns a hash of the weights that were loaded, None for none.

    What was drawn beside them follows from the seed.
    """
    if model.load_report is None:
        return None
    return hash_tensors(named_tensors(model), model.load_report.loaded)


def make_model(model, config, recipe):
    """Returns a model with random weights, or those of a folder."""
    keras.utils.set_random_seed(recipe.seed)
    if isinstance(model, BertConfig) or model in SIZES:
        return BertForPreTraining(config, dtype=recipe.dtype)
    return BertForPreTraining.from_pretrained(model, dtype=recipe.dtype)


def compile_for_pretraining(model, recipe, steps_per_execution=1):
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
        steps_per_execution=steps_per_execution * recipe.accumulation,
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


def run_steps(model, stream, folder, recipe, reporting, evaluate, share=WHOLE):
    """Trains a compiled model from its last checkpoint to the last step.

    Args:
        model: A model of `compile_for_pretraining`.
        stream: An `ExampleStream`.
        folder: The `RunFolder`.
        recipe: A `PretrainingRecipe`.
        reporting: A `Reporting`.
        evaluate: A function of the model that returns numbers for the log.
        share: How the rows of a batch are split over devices.
    """
    done, place = folder.resume(model, _is_position) or (0, Position())
    if done == recipe.steps:
        return
    feed = Feed(
        stream,
        recipe.batch_size,
        done,
        Position(*place),
        recipe.accumulation,
        share,
    )

    def check(row):
        check_finite(model, row["step"], lambda: _sample_outputs(model, stream))

    def score(row):
        check(row)
        row.update(evaluate(model))

    def save(row):
        check(row)
        folder.save(row["step"], model, feed.positions[row["step"]])

    tasks = [
        (reporting.log_steps, lambda row: None),
        (reporting.evaluation_steps, score),
        (None, folder.open_log(done).add),
        (reporting.checkpoint_steps, save),
        (reporting.evaluation_steps, folder.draw_log),
    ]
    if reporting.tensorboard:
        writer = tensorboard_writer(folder.path / "tensorboard")
        tasks.insert(-2, (None, writer))
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


def _is_position(state):
    """Returns whether a checkpoint's state is that of a run of this kind."""
    numbers = state if isinstance(state, list) else []
    return len(numbers) == len(Position._fields) and all(
        is_integer(number) and number >= 0 for number in numbers
    )


def _sample_outputs(model, stream):
    """Returns what a model gives for a row of ordinary pieces."""
    ids = np.resize(stream.pieces.ordinary, (1, stream.settings.max_length))
    batch = {
        "input_ids": ids.astype("int32"),
        "token_type_ids": np.zeros(ids.shape, "int32"),
        "attention_mask": np.ones(ids.shape, "int32"),
        "masked_lm_positions": np.ones((1, 1), "int32"),
    }
    return model(batch, training=False)


def evaluator(stream, shards):
    """Returns a function of a model that scores it on held-out documents."""
    if not shards.shards("held_out"):
        return lambda model: {}
    one_a_row = dataclasses.replace(stream.settings, packed=False)
    examples = evaluation.held_out_examples(shards, stream.pieces, one_a_row)

    def evaluate(model):
        scores = evaluation.score_pretraining(model, examples)
        return {f"held_out_{name}": value for name, value in scores.items()}

    return evaluate
