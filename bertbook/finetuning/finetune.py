"""`finetune` and `evaluate`: one call for every task.

Differences: the best weights on dev are kept, where the paper keeps the last;
rows of similar length share a batch.
"""

import dataclasses
import math
from numbers import Real

import numpy as np

from bertbook.batches.ragged import compute
from bertbook.checks import is_integer
from bertbook.finetuning.run import (
    Judge,
    Run,
    check_frozen,
    hash_of_start,
    keep_in_config,
    nothing_is_kept,
    unchanged_by_errors,
)
from bertbook.tasks.base import Settings, labeled
from bertbook.tasks.labels import REGRESSION, names_of, names_of_tags
from bertbook.tasks.tags import STRATEGIES
from bertbook.tasks.text_tasks import Choices, Texts
from bertbook.tasks.word_tasks import Questions, Tags
from bertbook.training.run import check_record, hash_columns

# Keys of a config that say nothing about what a run computes.
NOT_RECORDED = (
    "_name_or_path",
    "architectures",
    "dtype",
    "no_answer_threshold",
    "torch_dtype",
    "transformers_version",
)
TASKS = {
    "BertForSequenceClassification": Texts,
    "BertForMultipleChoice": Choices,
    "BertForQuestionAnswering": Questions,
    "BertForTokenClassification": Tags,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningOptions:
    """Options that most runs leave at their defaults.

    Attributes:
        warmup: Share of the steps on the way up.
        weight_decay: As in `make_optimizer`; `clip_norm` alike.
        frozen_layers: Lowest layers that are not trained, with the
            embeddings; -1 for the whole encoder. None trains everything.
        layer_decay: Factor of the learning rate from each layer to the one
            below; 1 for one rate.
        patience: Evaluations without improvement before a run stops. None
            never stops early.
        evaluation_steps: Steps between evaluations on dev; None means once an
            epoch.
        checkpoint_steps: Steps between checkpoints, where there is `out`.
        stride: As in `base.Settings`; `strategy` alike.
        metric: The metric that chooses the best weights; None means that of
            the task.
        verbose: Whether to print a line at each evaluation.

    Raises:
        ValueError: A number is out of range.
    """

    warmup: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    frozen_layers: int | None = None
    layer_decay: float = 1.0
    patience: int | None = None
    evaluation_steps: int | None = None
    checkpoint_steps: int = 500
    stride: int | None = None
    strategy: str = "first"
    metric: str | None = None
    verbose: bool = True

    def __post_init__(self):
        _check_count("checkpoint_steps", self.checkpoint_steps)
        for name in ("patience", "evaluation_steps"):
            value = getattr(self, name)
            if value is not None:
                _check_count(name, value)
        for name in ("weight_decay", "clip_norm"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(
                    f"`{name}` must not be below 0. Received: {value}."
                )
        if not 0.0 <= self.warmup <= 1.0:
            raise ValueError(
                f"`warmup` must be in [0, 1]. Received: {self.warmup}."
            )
        if self.strategy not in STRATEGIES:
            raise ValueError(
                f"`strategy` must be one of {', '.join(STRATEGIES)}. "
                f"Received: {self.strategy!r}."
            )
        if not 0.0 < self.layer_decay <= 1.0:
            raise ValueError(
                f"`layer_decay` must be in (0, 1]. Received: "
                f"{self.layer_decay}."
            )


def finetune(
    model,
    train,
    dev=None,
    epochs=3,
    learning_rate=5e-5,
    batch_size=32,
    max_length=None,
    seed=0,
    out=None,
    options=None,
):
    """Trains a model with a head on a task, and leaves the best weights in it.

    With `out` the run may be killed at any moment: the same call again goes
    on and ends with the same weights, and once finished changes nothing. Where
    a call fails or is interrupted, the model is as it was before.

    Args:
        model: One of the task models, with a tokenizer. A model whose labels
            have no names takes those of the data.
        train: A dict of columns, as `load_dataset` returns.
        dev: The same, to choose the best weights by; without it the last ones
            stay.
        epochs: How often every row is seen.
        learning_rate: The peak, after the warm-up.
        batch_size: Rows an update of the weights.
        max_length: Tokens that texts are cut to, or of a window. None never
            cuts, and takes windows of at most 384.
        seed: Seed of the order of the rows and of dropout.
        out: Folder for checkpoints, the log, and the trained model.
        options: A `FinetuningOptions`.

    Returns:
        A dict of lists, one entry for each evaluation: `step`, `epoch`,
        `loss`, `rows_per_second` and, with `dev`, its metrics as `dev_...`.

    Raises:
        KeyError: A column is missing.
        ValueError: An argument or a row of the data does not fit the model,
            `out` holds a run with other settings, or the loss is not finite.
        OSError: A checkpoint cannot be written.
    """
    options = options or FinetuningOptions()
    _check_numbers(epochs, learning_rate, batch_size, seed)
    _check_dev(dev, options)
    settings = Settings(
        max_length=max_length, stride=options.stride, strategy=options.strategy
    )
    kind = task_of(model)
    check_frozen(model, options.frozen_layers)
    with unchanged_by_errors(model):
        if kind is Tags:
            keep_in_config(model, tag_strategy=options.strategy)
        task = kind(model, train, settings)
        take_labels(model, task.data)
        task.learn()
        dev_task = None if dev is None else kind(model, dev, settings)
        judge = Judge(model, dev_task, options.metric, batch_size)
        record = {
            "epochs": int(epochs),
            "learning_rate": float(learning_rate),
            "batch_size": int(batch_size),
            "max_length": None if max_length is None else int(max_length),
            "seed": int(seed),
            "options": _recorded(dataclasses.asdict(options), ["verbose"]),
            "config": _recorded(model.config.to_dict(), NOT_RECORDED),
            "train": hash_columns(train),
            "dev": hash_columns(dev),
        }
        if model.lora is not None:
            record["lora"] = model.lora._asdict()
        run = Run(model, task, judge, record, options, out)
        if (folder := run.folder) is not None:
            record["start"] = hash_of_start(model, folder.record)
            if nothing_is_kept(folder.path):
                folder.record.unlink(missing_ok=True)
            check_record(folder.record, record)
            if folder.is_finished():
                return run.finished()
        run.train()
        return run.history()


def evaluate(model, data, max_length=None, batch_size=32, stride=None):
    """Measures a model on labeled data.

    Args:
        model: One of the task models, with a tokenizer.
        data: A dict of columns, as `load_dataset` returns.
        max_length: As in `finetune`; `stride` as in `base.Settings`.
        batch_size: Rows computed at a time.
        stride: Tokens from one window to the next.

    Returns:
        The metrics of the task, shares in [0, 1]: one label: `accuracy`, and,
        where scikit-learn is installed, `f1` (of label 1; of more than two
        labels their mean) and `matthews`; several labels: `exact_match`,
        `precision`, `recall`, `f1`; a number: `pearson`, `spearman`,
        `mean_squared_error`; a choice: `accuracy`; questions: `exact_match`
        and `f1`, also separately for those with and without an answer; tags:
        `precision`, `recall` and `f1` of entities, `word_accuracy`.

    Raises:
        KeyError: A column is missing.
        ValueError: A row does not fit the model.
        ImportError: scipy, which correlations need, is not installed.
    """
    settings = Settings(max_length=max_length, stride=stride)
    task = task_of(model)(model, data, settings)
    return task.score(compute(model, task.rows, batch_size))


def take_labels(model, train):
    """Gives a model the names of the labels in the data, if it has none.

    Raises:
        KeyError: The data hold no labels.
        ValueError: Their number is not that of the model.
    """
    task = task_of(model)
    if model.config.id2label is not None or task not in (Texts, Tags):
        return
    column = labeled(train, "tags" if task is Tags else "label")
    names = names_of_tags(column) if task is Tags else names_of(column)
    if names is None or (task is Texts and model.problem_type == REGRESSION):
        return
    if len(names) != model.num_labels:
        advice = f"`num_labels={len(names)}`"
        if len(names) == 1:  # `num_labels=1` is a regression
            advice = "`id2label`, which names the labels that are not here too"
        raise ValueError(
            f"`num_labels` must be that of the data, {len(names)}: "
            f"{', '.join(names)}. Received: a model with {model.num_labels}; "
            f"load it with {advice}."
        )
    model.config = model.config.replace(id2label=dict(enumerate(names)))


def task_of(model):
    """Returns the class of the task that a model is made for.

    Raises:
        ValueError: The model has no head of a task.
    """
    name = getattr(model, "architecture", type(model).__name__)
    if name not in TASKS:
        raise ValueError(
            f"`model` must be one of {', '.join(TASKS)}. Received: {name}."
        )
    return TASKS[name]


def _check_numbers(epochs, learning_rate, batch_size, seed):
    _check_count("epochs", epochs)
    _check_count("batch_size", batch_size)
    _check_count("seed", seed, least=0)
    if not isinstance(learning_rate, Real) or not 0 < learning_rate < math.inf:
        raise ValueError(
            f"`learning_rate` must be above 0. Received: {learning_rate!r}."
        )


def _check_count(name, value, least=1):
    if not is_integer(value) or value < least:
        raise ValueError(
            f"`{name}` must be an integer >= {least}. Received: {value!r}."
        )


def _check_dev(dev, options):
    """Refuses what can only be done with dev."""
    for name in ("patience", "metric"):
        value = getattr(options, name)
        if dev is None and value is not None:
            raise ValueError(
                f"`{name}` needs `dev`, to choose by. Received: {value!r} "
                "and no `dev`."
            )


def _recorded(values, left_out):
    """Returns settings as a record holds them, numbers of NumPy as Python's."""
    return {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in values.items()
        if key not in left_out
    }
