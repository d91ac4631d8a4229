"""`finetune` and `evaluate`: one call for every task.

Differences: the best weights on dev are kept, where the paper keeps the last;
rows of similar length share a batch.
"""

import dataclasses
import warnings
from collections.abc import Mapping

import numpy as np

from bertbook.batches.ragged import compute
from bertbook.checks import (
    as_number,
    check_count,
    check_switch,
    is_integer,
    listed,
)
from bertbook.datasets.columns import (
    as_columns,
    under_its_names,
    with_known_names,
)
from bertbook.datasets.own_files import MOST_NUMBERS
from bertbook.files import check_folder
from bertbook.finetuning.callbacks import (
    check_callbacks,
    check_monitored,
    with_aliases,
)
from bertbook.finetuning.error_analysis import find
from bertbook.finetuning.rates import choose_rate
from bertbook.finetuning.report import Report
from bertbook.finetuning.run import (
    Judge,
    Run,
    check_frozen,
    keep_in_config,
    unchanged_by_errors,
)
from bertbook.finetuning.scores import check_metrics, score_task
from bertbook.finetuning.weighting import weigh
from bertbook.tasks.base import Settings, labeled, remembered
from bertbook.tasks.label_counts import nearly_constant
from bertbook.tasks.labels import (
    ONE_LABEL,
    REGRESSION,
    SEVERAL_LABELS,
    check_names,
    names_of,
    names_of_tags,
)
from bertbook.tasks.tags import STRATEGIES
from bertbook.tasks.text_tasks import Choices, Texts
from bertbook.tasks.word_tasks import Questions, Tags
from bertbook.training.run import hash_columns
from bertbook.weights.matrices import check_floats

# Keys of a config that say nothing about what a run computes.
NOT_RECORDED = (
    "_name_or_path",
    "architectures",
    "bertbook_finetuning",
    "dtype",
    "label_thresholds",
    "no_answer_threshold",
    "torch_dtype",
    "transformers_version",
)
MOST_EPOCHS = 1_000_000  # so that steps can be counted in 64 bits
MOST_MINUTES = 1_000_000  # what a `timedelta` holds, by far
# Options that say nothing about the weights that a run ends with.
PACES = "checkpoint_steps", "checkpoint_minutes"
PROBLEM_NAMES = {
    ONE_LABEL: "classification",
    SEVERAL_LABELS: "several-labels",
    REGRESSION: "regression",
}
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
        warmup: Share of the steps in which the learning rate rises to its
            peak; after them it falls to 0.
        weight_decay: Share of a weight taken off at each step, times the
            learning rate; norms and biases have none.
        clip_norm: Largest norm of all gradients together; None never clips.
        accumulation_steps: Parts that an update is computed in, one after the
            other, to save memory; `batch_size` is a multiple of it, and still
            the rows of an update. The weights are those of the whole batch.
        frozen_layers: Lowest layers that are not trained, with the
            embeddings; -1 for the whole encoder. None trains everything.
        layer_decay: Factor of the learning rate from each layer to the one
            below; 1 for one rate.
        patience: Evaluations without improvement before a run stops. None
            never stops early.
        evaluation_steps: Steps between evaluations on dev; None means once an
            epoch.
        checkpoint_steps: Steps between checkpoints, where there is `out`. None
            counts minutes alone; where several processes train together, it
            means once an evaluation.
        checkpoint_minutes: Minutes after which a checkpoint is written,
            whatever the steps; None counts steps alone. Not looked at where
            several processes train together.
        stride: Tokens from one window of a long text to the next, for
            questions and tags; None takes half of a window.
        strategy: Which pieces of a word get its tag: "first", "last" or "all".
        packed: Whether several short texts share a row, each blind to the
            others, so that less is padding. An update sees as many texts as
            without, in another order. Not for models that choose.
        metric: The metric that chooses the best weights, as `evaluate` calls
            it, one of `metrics`, or "loss", the loss on dev. None means
            `accuracy`; for several labels, questions and tags `f1`; for a
            number `spearman`.
        verbose: Whether to print progress, and a line at each evaluation.

    Raises:
        ValueError: A number is out of range.

    >>> import bertbook as bb
    >>> options = bb.FinetuningOptions(frozen_layers=2, verbose=False)
    >>> options.frozen_layers, options.warmup
    (2, 0.1)
    """

    warmup: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    accumulation_steps: int = 1
    frozen_layers: int | None = None
    layer_decay: float = 1.0
    patience: int | None = None
    evaluation_steps: int | None = None
    checkpoint_steps: int | None = None
    checkpoint_minutes: float | None = 10.0
    stride: int | None = None
    strategy: str = "first"
    packed: bool = False
    metric: str | None = None
    verbose: bool = True

    def __post_init__(self):
        for name in (
            "patience",
            "evaluation_steps",
            "checkpoint_steps",
            "stride",
        ):
            value = getattr(self, name)
            if value is not None:
                check_count(value, name)
        check_count(self.accumulation_steps, "accumulation_steps")
        minutes = self.checkpoint_minutes
        if minutes is not None and not 0.0 < as_number(minutes) <= MOST_MINUTES:
            raise ValueError(
                "`checkpoint_minutes` must be a finite number above 0, or "
                f"None, which counts steps alone. Received: {minutes!r}."
            )
        check_switch(self.packed, "packed")
        check_switch(self.verbose, "verbose")
        if not 0.0 <= _in_float32(self.weight_decay) < np.inf:
            raise ValueError(
                "`weight_decay` must be a finite number >= 0. Received: "
                f"{self.weight_decay!r}."
            )
        clip_norm = self.clip_norm  # 0 would clip all that is to be learned
        if clip_norm is not None and not 0.0 < _in_float32(clip_norm) < np.inf:
            raise ValueError(
                "`clip_norm` must be a finite number above 0, or None, which "
                f"never clips. Received: {clip_norm!r}."
            )
        if not 0.0 <= as_number(self.warmup) <= 1.0:
            raise ValueError(
                f"`warmup` must be in [0, 1]. Received: {self.warmup!r}."
            )
        if self.metric is not None and (
            not isinstance(self.metric, str) or not self.metric
        ):
            raise ValueError(
                "`metric` must be the name of a metric, or None. Received: "
                f"{self.metric!r}."
            )
        if not isinstance(self.strategy, str) or (
            self.strategy not in STRATEGIES
        ):
            raise ValueError(
                f"`strategy` must be one of {', '.join(STRATEGIES)}. "
                f"Received: {self.strategy!r}."
            )
        if not 0.0 < as_number(self.layer_decay) <= 1.0:
            raise ValueError(
                f"`layer_decay` must be in (0, 1]. Received: "
                f"{self.layer_decay!r}."
            )


def finetune(
    model,
    train,
    dev=None,
    epochs=3,
    learning_rate=None,
    batch_size=32,
    max_length=None,
    seed=0,
    out=None,
    options=None,
    *,
    class_weight=None,
    callbacks=None,
    metrics=None,
):
    """Trains a model with a head on a task, and leaves the best weights in it.

    With `out` the run may be killed at any moment: the same call again goes
    on and ends with the same weights, and once finished changes nothing. Where
    a call fails or is interrupted, the model is as it was before.

    A column `weight` of `train` says how much each row counts in the loss.
    Only the ratios count, and a row of weight 0 is left out. Other columns
    that the task does not know are not read.

    Callbacks see epochs, and after each the logs `loss`, `dev_...` and, for
    these, the names of Keras: `val_loss`, `val_accuracy`. `ReduceLROnPlateau`
    scales what is left of the schedule. A callback that counts, such as
    `EarlyStopping`, begins anew where a run resumes; `patience` of the options
    resumes exactly.

    Args:
        model: A `BertForSequenceClassification`, `BertForTokenClassification`,
            `BertForQuestionAnswering` or `BertForMultipleChoice`, with a
            tokenizer. It need not be compiled. A model whose labels have no
            names takes those of the data. A new head whose labels nobody has
            counted, by `num_labels` or `id2label`, also takes their number;
            one that was loaded or trained is never replaced.
        train: A dict of columns, as `load_dataset` returns, a list of dicts, a
            DataFrame, or a `Dataset` of Hugging Face. The columns are those of
            `load_dataset`, with its labels: `text` and `label`, for example.
            An empty text is one like any other, for `evaluate`,
            `predict_texts` and `embed_texts` too; here a warning counts them.
        dev: The same, to choose the best weights by; without it the last ones
            stay. Its rows count alike in the metrics, and in its loss as in
            that of the training. A dict of several data sets by name, such as
            `{"clean": ..., "noisy": ...}`, gives numbers for each; the first
            of them decides which weights stay.
        epochs: How often every row is seen.
        learning_rate: The peak, after the warm-up. None chooses and prints
            it: 5e-5 for a width of 512 or more, as of the size `base`; 1e-4
            for 320 or more; 3e-4 below, as of the models that ship with the
            package; ten times as much and more for adapters of `add_lora`. A
            run that began in `out` keeps its rate.
        batch_size: Rows an update of the weights.
        max_length: Tokens that texts are cut to, or of a window. None never
            cuts: a text that is longer than the model can read is an error,
            for questions and tags it is read in windows of at most 384. The
            model keeps it, with the stride and what a file calls the columns:
            `evaluate` and `predict_...` take it where none is given.
        seed: Seed of the order of the rows and of dropout.
        out: Folder for checkpoints, the log, and the trained model, which
            `from_pretrained` reads. None writes nothing.
        options: A `FinetuningOptions`, which `bertbook` has too: warm-up,
            frozen layers, early stopping, the metric that decides, silence.
        class_weight: The weight of each label, by its name or its number, for
            a model with one label a text; 1 for one that is not there. Or
            "balanced": the rarer a label is, the more it counts, as in
            scikit-learn.
        callbacks: A callback of Keras, or a list of them.
        metrics: Further metrics on `dev`: a function of the labels and the
            predictions, a list of functions, or a dict that names them. They
            get arrays of numbers, 0 and 1 for several labels at once; lists of
            accepted texts and a text for questions; lists of tags. The larger
            the better, where one is the `metric` of the options.

    Returns:
        A dict of lists, one entry for each evaluation: `step`, `epoch`,
        `loss`, `rows_per_second` and, with `dev`, `dev_loss` and its metrics
        as `dev_...`, those of `evaluate`; of several dev sets as
        `dev_clean_...`. There is no loss where rows can only be measured:
        answers without their place, tags that the model does not know.

    Raises:
        KeyError: A column is missing.
        ValueError: An argument or a row of the data does not fit the model,
            `out` holds a run with other settings (all are named), or the loss,
            an output or a metric is not finite.
        OSError: A checkpoint cannot be written.
        ImportError: A callback needs a package that is not installed.

    >>> import bertbook as bb
    >>> train = {"text": ["Good.", "Bad."], "label": [1, 0]}
    >>> model = bb.BertForSequenceClassification.from_pretrained("mini-taught")
    >>> options = bb.FinetuningOptions(verbose=False)
    >>> history = bb.finetune(model, train, epochs=1, options=options)
    >>> history["step"], len(history["loss"])
    ([1], 1)
    """
    options = _checked_options(options)
    _check_numbers(epochs, learning_rate, batch_size, seed)
    if out is not None:
        check_folder(out, "out")
    _check_dev(dev, options, metrics)
    callbacks = check_callbacks(callbacks)
    settings = Settings(
        max_length=max_length, stride=options.stride, strategy=options.strategy
    )
    kind = task_of(model)
    if options.packed and kind is Choices:
        raise ValueError(
            "`packed` must be False for a model that chooses: its texts are "
            "read in groups. Received: True."
        )
    if batch_size % options.accumulation_steps:
        raise ValueError(
            "`batch_size` must be a multiple of `accumulation_steps`. "
            f"Received: {batch_size} and {options.accumulation_steps}."
        )
    check_frozen(model, options.frozen_layers)
    check_floats(model)
    if learning_rate is None:
        learning_rate = choose_rate(model, out, options.verbose)
    train = with_known_names(as_columns(train, "train"))
    dev = {n: with_known_names(part) for n, part in named_sets(dev).items()}
    with unchanged_by_errors(model):
        if kind is Tags:
            keep_in_config(model, tag_strategy=options.strategy)
        with under_its_names(train):
            task = kind(model, train, settings)
            take_labels(model, task.data)
            task.learn()
            label_weights = weigh(task, class_weight)
            _tell_constant(task.data)
            _tell_empty(task.data)
        judge = Judge(model, options.metric, batch_size, metrics, label_weights)
        for name, part in dev.items():
            with under_its_names(part):
                judge.add(name, kind(model, part, settings))
        keep_in_config(
            model, bertbook_finetuning=_remembered(task, train, settings)
        )
        modes = {"loss": "min", **with_aliases(judge.modes())}
        check_monitored(callbacks, modes)
        # Records of version 0.1.0 lack the others.
        unrecorded = ["verbose", *PACES]
        unrecorded += [] if options.packed else ["packed"]
        if options.accumulation_steps == 1:
            unrecorded.append("accumulation_steps")
        record = {
            "epochs": int(epochs),
            "learning_rate": float(learning_rate),
            "batch_size": int(batch_size),
            "max_length": None if max_length is None else int(max_length),
            "seed": int(seed),
            "options": _recorded(dataclasses.asdict(options), unrecorded),
            "config": _recorded(model.config.to_dict(), NOT_RECORDED),
            "train": hash_columns(task.data),
            "dev": _hash_of(judge.tasks),
            "class_weight": label_weights,
        }
        if model.lora is not None:
            record["lora"] = model.lora._asdict()
        run = Run(model, task, judge, record, options, out, callbacks)
        return run.go()


def evaluate(
    model,
    data,
    max_length=None,
    batch_size=32,
    stride=None,
    *,
    metrics=None,
    report=False,
):
    """Measures a model on labeled data.

    Args:
        model: As in `finetune`; no further training is needed.
        data: As `train` in `finetune`. Every row counts alike.
        max_length: As in `finetune`; None takes that of the fine-tuning.
        batch_size: Rows computed at a time.
        stride: Tokens from one window of a long text to the next, for
            questions and tags; None takes that of the fine-tuning where
            `max_length` is None, else half of a window.
        metrics: Further metrics, as in `finetune`.
        report: Whether to return the metrics as a `Report`: a dict all the
            same, which `print` shows as tables of the labels, the worst errors
            and the calibration. Its `tables` hold them, `plot()` draws one,
            and `save(folder)` writes report.html, report.txt and report.json.

    Returns:
        The metrics of the task, shares in [0, 1]: one label: `accuracy`, `f1`
        (of label 1; of more than two labels their mean) and `matthews`, from
        -1 to 1; several labels: `exact_match`, `precision`, `recall`, `f1`; a
        number: `pearson`, `spearman`, `mean_squared_error`; a choice:
        `accuracy`; questions: `exact_match` and `f1`, also separately for those
        with and without an answer; tags: `precision`, `recall` and `f1` of
        entities, `word_accuracy`.

    Raises:
        KeyError: A column is missing.
        ValueError: An argument or a row does not fit the model, or an output
            or a metric is not finite.

    >>> import bertbook as bb
    >>> model = bb.BertForSequenceClassification.from_pretrained("mini-qnli")
    >>> data = {
    ...     "text": ["Who wrote the book?", "Who wrote the book?"],
    ...     "text_pair": ["Ada wrote the book in 1843.", "It is cold."],
    ...     "label": ["entailment", "not_entailment"],
    ... }
    >>> bb.evaluate(model, data)["accuracy"]
    1.0
    """
    check_count(batch_size, "batch_size")
    if stride is not None:
        check_count(stride, "stride")
    check_switch(report, "report")
    settings = Settings(max_length=max_length, stride=stride)
    kind, settings = task_of(model), remembered(model, settings)
    data = with_known_names(as_columns(data, "data"))
    with under_its_names(data):
        task = kind(model, data, settings)
        names = list(task.blank_score())  # refuses labels, before hours
    own = check_metrics(metrics, names if metrics is not None else [])
    outputs = compute(model, task.rows, batch_size)
    scores = score_task(task, outputs, own)
    if not report:
        return scores
    places = getattr(data, "places", [])
    if len(places) != len(next(iter(data.values()))):
        places = []  # somebody has changed the columns
    return Report(scores, find(task, outputs).at(places))


def _remembered(task, train, settings):
    """Returns what the config of a model keeps about its fine-tuning."""
    names = getattr(train, "names", {})
    read = task.data.keys() - {"id", "weight"}
    columns = {role: name for role, name in names.items() if role in read}
    past = {
        "task": name_of_task(task),
        "max_length": settings.max_length,
        "stride": settings.stride,
        "columns": columns,
        "held_out": getattr(train, "held_out", None),
    }
    past = {key: value for key, value in past.items() if value}
    return _recorded(past, ())


def name_of_task(task):
    """Returns what the command line calls a task."""
    problem = getattr(task, "problem", None)
    if problem is None:
        return type(task).__name__.lower()
    return PROBLEM_NAMES[problem]


def _tell_constant(data):
    """Warns where nearly all rows have the same to learn."""
    constant = nearly_constant(data)
    if constant is not None:
        warnings.warn(
            f"{constant}: a model that always says so is right as often. Look "
            "at more than accuracy, and at how the rows were collected.",
            stacklevel=3,
        )


def _tell_empty(data):
    """Warns of texts without a word, which files are not let to hold."""
    for name in ("text", "text_pair"):
        empty = [
            row for row, x in enumerate(data.get(name, ())) if not x.strip()
        ]
        if empty:
            warnings.warn(
                f"`{name}`: {len(empty):,} of {len(data[name]):,} rows hold an "
                f"empty text, such as row {empty[0]}. They are learned like "
                "any other; leave them out if they are gaps.",
                stacklevel=3,
            )


def take_labels(model, train):
    """Gives a model the names of the labels in the data, if it has none.

    A new head for which nobody has given a number of labels gets that of the
    data.

    Raises:
        KeyError: The data hold no labels.
        ValueError: Their number is not that of the model.
    """
    task = task_of(model)
    if model.config.id2label is not None or task not in (Texts, Tags):
        return
    column = labeled(train, "tags" if task is Tags else "label")
    is_open = _has_new_head(model)
    if task is Tags:
        names = names_of_tags(column)
    else:
        check_names(column)
        names = names_of(column, model.num_labels)
        if is_open and all(map(is_integer, column)):
            names = _fit_to_numbers(model, column)
    if is_open and len(names or ()) not in (0, 1, model.num_labels):
        model._draw_head(len(names))
    if names is None or (task is Texts and model.problem_type == REGRESSION):
        return
    if len(names) != model.num_labels:
        advice = f"`num_labels={len(names)}`"
        if len(names) == 1:  # `num_labels=1` is a regression
            advice = "`id2label`, which names the labels that are not here too"
        elif model._has_open_labels:
            advice += "; its head was trained, and is not replaced"
        raise ValueError(
            f"`num_labels` must be that of the data, {len(names)}: "
            f"{listed(names)}. Received: a model with {model.num_labels}; "
            f"load it with {advice}."
        )
    model.config = model.config.replace(id2label=dict(enumerate(names)))


def _has_new_head(model):
    """Returns whether a head is as it was drawn, its labels told by nobody.

    Every step of training moves the biases, which begin as zeros.
    """
    if not model._has_open_labels:
        return False
    return not np.any(model.classifier.bias.numpy())


def _fit_to_numbers(model, column):
    """Draws a head for integers as labels; returns their names, if any.

    Raises:
        ValueError: The largest says that there are very many labels.
    """
    different = len(set(column))
    names = names_of(column, max(different, model.num_labels))
    if names is not None or min(column) < 0:
        return names
    count = int(max(column)) + 1
    if count > max(MOST_NUMBERS, different):
        raise ValueError(
            "`num_labels` must be given for labels with large gaps: load the "
            f"model with it. Received: {different} labels up to {count - 1:,}."
        )
    if count > model.num_labels:
        model._draw_head(count)
    return None


def task_of(model):
    """Returns the class of the task that a model is made for.

    Raises:
        ValueError: The model has no head of a task.
    """
    name = getattr(model, "architecture", type(model).__name__)
    if isinstance(model, type):
        name = f"the class {model.__name__}"
    if not isinstance(name, str) or name not in TASKS:
        raise ValueError(
            f"`model` must be one of {', '.join(TASKS)}. Received: {name}."
        )
    return TASKS[name]


def _checked_options(options):
    """Returns the options, or those that hold without any."""
    if options is None:
        return FinetuningOptions()
    if not isinstance(options, FinetuningOptions):
        raise ValueError(
            f"`options` must be a `FinetuningOptions`. Received: {options!r}."
        )
    return options


def _check_numbers(epochs, learning_rate, batch_size, seed):
    check_count(epochs, "epochs")
    check_count(batch_size, "batch_size")
    check_count(seed, "seed", least=0)
    if epochs > MOST_EPOCHS:
        raise ValueError(
            f"`epochs` must be at most {MOST_EPOCHS}. Received: {epochs!r}."
        )
    chosen = learning_rate is None
    if not chosen and not 0 < _in_float32(learning_rate) < np.inf:
        raise ValueError(
            "`learning_rate` must be above 0, and finite, or None, which "
            f"chooses it. Received: {learning_rate!r}."
        )


def _in_float32(value):
    """Returns a number as weights would hold it; NaN for anything else."""
    with np.errstate(over="ignore", under="ignore"):
        return np.float32(as_number(value))


def _check_dev(dev, options, metrics):
    """Refuses what can only be done with dev."""
    needing = {
        "patience": options.patience,
        "metric": options.metric,
        "metrics": metrics,
    }
    for name, value in needing.items():
        if dev is None and value is not None:
            raise ValueError(
                f"`{name}` needs `dev`, to choose by. Received: {value!r} "
                "and no `dev`."
            )


def named_sets(dev):
    """Returns the columns of each dev set, by what its numbers are called.

    Args:
        dev: As in `finetune`: None, a data set, or a dict of several.

    Raises:
        ValueError: A name is no text, or what `as_columns` refuses.
    """
    if dev is None:
        return {}
    if not _are_several(dev):
        return {"dev": as_columns(dev, "dev")}
    for name in dev:
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"`dev` must name each data set by a text. Received: {name!r}."
            )
    return {
        f"dev_{name}": as_columns(part, f"dev[{name!r}]")
        for name, part in dev.items()
    }


def _are_several(dev):
    """Returns whether a dict holds data sets, not columns.

    In every task a column is read that holds texts, or lists of texts; no
    such column is a data set.
    """
    return (
        isinstance(dev, Mapping)
        and bool(dev)
        and all(map(_is_data_set, dev.values()))
    )


def _is_data_set(value):
    """Returns whether a value has columns by name, or is a list of dicts."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, Mapping) for row in value)
    names = "columns", "column_names"
    return isinstance(value, Mapping) or any(hasattr(value, n) for n in names)


def _hash_of(tasks):
    """Returns the hash of a dev set, or of each of several by its name."""
    hashes = {name: hash_columns(task.data) for name, task in tasks.items()}
    return hashes.get("dev", hashes or None)


def _recorded(values, left_out):
    """Returns settings as a record holds them, numbers of NumPy as Python's."""
    return {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in values.items()
        if key not in left_out
    }
