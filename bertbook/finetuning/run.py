"""A fine-tuning run: its batches, its best weights and its checkpoints.

Differences: the best weights on dev are kept, where the paper keeps the last.
"""

import contextlib
import functools
import weakref
from datetime import timedelta

import numpy as np

from bertbook.batches.feeding import feed_fit, in_parts
from bertbook.batches.packed_rows import packed_steps
from bertbook.batches.ragged import compute, steps
from bertbook.checks import is_integer
from bertbook.devices.processes import (
    check_same,
    is_writer,
    process_count,
    together,
    wait_for_all,
)
from bertbook.devices.sharing import current_share
from bertbook.files import read_json, write_json
from bertbook.finetuning.callbacks import EpochCallbacks, sets_the_rate
from bertbook.finetuning.scores import check_metrics, mean_loss, score_task
from bertbook.finetuning.weighting import weights_of
from bertbook.runtime import choose_compilation
from bertbook.tasks.labels import REGRESSION
from bertbook.tasks.word_tasks import Questions
from bertbook.training import cards, checkpoint
from bertbook.training.checkpoint import check_finite
from bertbook.training.monitor import Monitor
from bertbook.training.optimizers import (
    AdamW,
    LayerwiseAdamW,
    WarmupLinearDecay,
    count_warmup_steps,
    make_optimizer,
)
from bertbook.training.run import (
    FINISHED,
    RunFolder,
    fit_steps,
    hash_tensors,
)
from bertbook.weights.lora import has_adapters
from bertbook.weights.pretrained import named_tensors

BEST = "best.safetensors"
NEW = ("class_weight",)  # what records of version 0.1.0 lack
HISTORY = "history.json"
SMALL = ("loss", "mean_squared_error")  # the smaller the better
FILLED = 1_024  # a batch with fewer rows of data is filled up with copies


class Judge:
    """Scores a model on dev, and says whether it is better than before.

    Args:
        model: The model.
        metric: The metric that decides; None for that of the task.
        batch_size: Rows computed at a time.
        metrics: Functions of the user, as in `finetune`.
        by_label: What `weigh` returned for the rows of the training.
    """

    def __init__(self, model, metric, batch_size, metrics=None, by_label=None):
        self.model = model
        self.metric = metric
        self.batch_size = batch_size
        self.metrics = metrics
        self.by_label = by_label
        self.first = None  # the set that decides
        self.own = {}
        self.tasks = {}
        self.names = {}  # the metrics of each set
        self.weights = {}  # of the rows in the loss, where there is one
        self.notes = []  # why there is none

    def add(self, prefix, task):
        """Adds a dev set; the first decides which weights are better.

        Args:
            prefix: What its numbers are called before the metric, such as
                "dev".
            task: The task of its rows.

        Raises:
            ValueError: Labels do not fit, or the metric is unknown.
        """
        names = list(task.blank_score())
        self.own = check_metrics(self.metrics, ["loss", *names])
        self.tasks[prefix] = task
        self.names[prefix] = [*names, *self.own]
        self._add_loss(prefix, task)
        if self.first is None:
            self.first = prefix
            self.metric = self.metric or task.main_metric
            names = self.names[prefix]
            if self.metric not in names:
                raise ValueError(
                    f"`metric` must be one of {', '.join(names)}. Received: "
                    f"{self.metric!r}."
                )

    def _add_loss(self, prefix, task):
        """Makes a set ready for its loss; some can only be measured.

        Answers without their place, and tags that the model does not know,
        have metrics and no loss.
        """
        try:
            task.learn()
        except ValueError as error:
            self.notes.append(f"no {prefix}_loss: {error}")
            return
        self.weights[prefix] = weights_of(task, self.by_label)
        self.names[prefix].append("loss")

    def modes(self):
        """Returns whether each number should be "min" or "max", by its name.

        What a function of the user gives is None: nobody knows.
        """
        modes = {}
        for prefix, names in self.names.items():
            for name in names:
                mode = "min" if name in SMALL else "max"
                mode = None if name in self.own else mode
                modes[f"{prefix}_{name}"] = mode
        return modes

    def score(self):
        """Returns loss and metrics of every set, by their names.

        Questions get the threshold that is best on the first set.
        """
        scores = {}
        for prefix, task in self.tasks.items():
            outputs = compute(self.model, task.rows, self.batch_size)
            if prefix == self.first:
                self._set_threshold(task, outputs)
            found = {}
            if prefix in self.weights:
                weights = self.weights[prefix]
                found["loss"] = mean_loss(task, outputs, weights)
            found |= score_task(task, outputs, self.own)
            scores |= {f"{prefix}_{k}": value for k, value in found.items()}
        return scores

    def _set_threshold(self, task, outputs):
        """Chooses when questions have no answer, where some have none."""
        if isinstance(task, Questions) and task.version() == 2:
            threshold = task.best_threshold(outputs)
            keep_in_config(self.model, no_answer_threshold=threshold)

    def is_better(self, row, before):
        """Returns whether a row of the history beats an earlier one."""
        name = f"{self.first}_{self.metric}"
        if self.metric in SMALL:
            return row[name] < before[name]
        return row[name] > before[name]


class Run:
    """One run: its batches, its best weights and its checkpoints."""

    def __init__(self, model, task, judge, record, options, out, callbacks=()):
        self.model = model
        self.task = task
        self.judge = judge
        self.record = record
        self.options = options
        self.callbacks = callbacks
        self.verbose = options.verbose and is_writer()
        self.folder = None
        if out is not None:
            self.folder = RunFolder(out, self.verbose, loss_label(task))
        self.rows = []
        self.best = None
        self.best_weights = None
        self.is_stopped = False  # by a callback
        most = max(FILLED, len(task.rows))
        self.batch_size = min(record["batch_size"], most)
        self.steps_per_epoch = -(-len(task.rows) // self.batch_size)
        self.total_steps = self.steps_per_epoch * record["epochs"]

    def go(self):
        """Trains, goes on, or loads what is finished; returns the history.

        Raises:
            ValueError: Another run trains into the folder, or it holds a run
                with other settings.
        """
        with together():
            if self.folder is None:
                check_same(self.record, "settings")
                self.train()
                return self.history()
            return self._go_in_folder()

    def _go_in_folder(self):
        """Trains into the folder, or loads what is finished there."""
        with self.folder.hold():
            start = hash_of_start(self.model, self.folder.record)
            self.record["start"] = start
            self.folder.begin(self.record, NEW)
            if self.folder.is_finished():
                return self.finished()
            self.train()
            return self.history()

    def train(self):
        """Trains to the end, from the last checkpoint where there is one."""
        model, record = self.model, self.record
        frozen = freeze(model, self.options.frozen_layers)
        try:
            _reseed(model, record["seed"])
            if isinstance(self.task, Questions) and self.task.version() == 2:
                keep_in_config(model, no_answer_threshold=0.0)
            if model.config.extra.get("label_thresholds") is not None:
                keep_in_config(model, label_thresholds=None)  # of old weights
            compile_model(
                model,
                self.task,
                record,
                self.options,
                self.total_steps,
                adjustable=sets_the_rate(self.callbacks),
            )
            done = self._resume()
            for note in self.judge.notes if self.verbose else ():
                print(note)
            if done < self.total_steps and not self._is_over():
                self._fit(done)
        finally:
            for layer, trainable in frozen:
                layer.trainable = trainable
        self._keep_best()
        if self.folder is not None and is_writer():
            history = self.history()
            write_json(self.folder.path / HISTORY, history)
            cards.write_task_card(self.folder.path, record, history)
            self.folder.draw_log()
            if model.lora is not None:
                model.save_adapter(self.folder.path)
            model.save_pretrained(self.folder.path)

    def _fit(self, done):
        limit = self.model.config.max_position_embeddings
        draw = packed_steps if self.options.packed else steps
        parts, share = self.options.accumulation_steps, current_share()
        batches = draw(
            self.task.rows,
            self.batch_size,
            limit,
            self.record["seed"],
            done,
            share._replace(groups=share.groups * parts),
        )
        tasks = [
            (self.options.evaluation_steps or self.steps_per_epoch, self._judge)
        ]
        if self.folder is not None:
            tasks.append((None, self.folder.open_log(done).add))
            tasks += [(pace, self._save) for pace in self._checkpoint_paces()]
            tasks.append((tasks[0][0], self.folder.draw_log))
        monitor = Monitor(
            self.total_steps,
            done,
            self.batch_size,
            {"loss": "loss"},
            tasks,
            parts,
            verbose=self.verbose,
            unit="rows",
        )
        fit_steps(
            self.model,
            feed_fit(in_parts(batches, parts)),
            (self.total_steps - done) * parts,
            monitor,
            self._epoch_callbacks(done),
        )
        if monitor.done < self.total_steps and not self._is_over():
            self.is_stopped = True
            monitor.finish()

    def _checkpoint_paces(self):
        """Returns after how many steps, and what time, checkpoints are due."""
        steps, minutes = (
            self.options.checkpoint_steps,
            self.options.checkpoint_minutes,
        )
        if process_count() > 1:  # their clocks differ, and all save together
            evaluation = self.options.evaluation_steps or self.steps_per_epoch
            return [steps or evaluation]
        if steps is None and minutes is None:
            return [self.total_steps]
        time = None if minutes is None else timedelta(minutes=float(minutes))
        return [pace for pace in (steps, time) if pace is not None]

    def _epoch_callbacks(self, done):
        """Returns the callbacks that `fit` calls beside the monitor."""
        if not self.callbacks:
            return []
        epochs = EpochCallbacks(
            self.callbacks,
            self.record["epochs"],
            self.steps_per_epoch,
            done,
            self._latest_scores,
            self.options.accumulation_steps,
        )
        return [epochs]

    def _latest_scores(self):
        """Returns the numbers on dev of the last evaluation."""
        row = self.rows[-1] if self.rows else {}
        return {k: v for k, v in row.items() if k.startswith("dev_")}

    def _judge(self, row):
        """Scores the model, and keeps its weights if they are the best."""
        self._check(row["step"])
        row["epoch"] = round(row["step"] / self.steps_per_epoch, 4)
        if self.judge.tasks:
            row |= self.judge.score()
            if self.best is None or self.judge.is_better(row, self.best):
                self.best = dict(row)
                self._store_best()
        self.rows.append(row)
        if self._is_over():
            self.model.stop_training = True

    def _is_over(self):
        """Returns whether too many evaluations were no better, or a stop."""
        if self.is_stopped:
            return True
        if self.options.patience is None or self.best is None:
            return False
        later = [r for r in self.rows if r["step"] > self.best["step"]]
        return len(later) >= self.options.patience

    def _store_best(self):
        threshold = getattr(self.model, "no_answer_threshold", None)
        self.best["no_answer_threshold"] = threshold
        if self.folder is None:
            self.best_weights = self.model.get_weights()
        elif is_writer():
            hashes = self.folder.checkpoints / checkpoint.HASHES
            checkpoint.save_weights(self.folder.path / BEST, self.model, hashes)

    def _keep_best(self):
        """Puts the best weights into the model."""
        if self.best is None:
            return
        if self.best_weights is not None:
            self.model.set_weights(self.best_weights)
        else:
            wait_for_all("the best weights are written")
            checkpoint.load_weights(self.folder.path / BEST, self.model)
        if self.best["no_answer_threshold"] is not None:
            keep_in_config(
                self.model, no_answer_threshold=self.best["no_answer_threshold"]
            )

    def _check(self, step):
        """Refuses weights that give nothing finite, before they are kept."""
        length = max(int(self.task.rows.lengths()[0]), 1)
        x = self.task.rows.inputs([0], length, 1)
        check_finite(self.model, step, lambda: self.model(x, training=False))

    def _save(self, row):
        self._check(row["step"])
        state = {
            "rows": self.rows,
            "best": self.best,
            "is_stopped": self.is_stopped,
        }
        self.folder.save(row["step"], self.model, state)

    def _resume(self):
        """Returns the steps that are done, and restores what was saved."""
        progress = None
        if self.folder is not None:
            progress = self.folder.resume(self.model, _is_state)
        if progress is None:
            return 0
        done, state = progress
        self.rows, self.best = state["rows"], state["best"]
        if self.best is not None:
            # Now, and not after the last step, a reader learns of a loss.
            hashes = self.folder.checkpoints / checkpoint.HASHES
            checkpoint.check_weights(
                self.folder.path / BEST, self.model, hashes
            )
        self.is_stopped = state.get("is_stopped", False)
        return done

    def finished(self):
        """Loads a finished run, and returns its history."""
        done = type(self.model).from_pretrained(self.folder.path)
        if self.model.lora is not None:
            self.model.load_adapter(self.folder.path)
        else:
            self.model.set_weights(done.get_weights())
        self.model.config = done.config
        return read_json(self.folder.path / HISTORY)

    def history(self):
        """Returns the evaluations as columns."""
        seen = [name for row in self.rows for name in row]
        names = list(dict.fromkeys(["step", "epoch", *seen]))
        return {name: [row.get(name) for row in self.rows] for name in names}


def compile_model(model, task, record, options, total, adjustable=False):
    """Compiles a model for `ragged.steps`, whose weights sum to 1.

    Args:
        model: A task model.
        task: Its task.
        record: What the run records of itself.
        options: A `FinetuningOptions`.
        total: Steps of the run.
        adjustable: Whether a callback may lower the rate.
    """
    warmup = count_warmup_steps(total, options.warmup)
    parts = options.accumulation_steps
    kind = optimizer_of(model, options.layer_decay)
    if adjustable:
        kind = functools.partial(kind, adjustable=True)
    optimizer = make_optimizer(
        WarmupLinearDecay(record["learning_rate"], warmup, total, parts),
        options.weight_decay,
        options.clip_norm,
        accumulation=parts,
        scale_loss=model.dtype_policy.name == "mixed_float16",
        kind=kind,
        compiled=choose_compilation(model.compute_dtype).path == "islands",
    )
    model.compile(optimizer, loss=task.loss())
    model._finetuned_with = weakref.ref(optimizer)
    optimizer.build(model.trainable_variables)


def optimizer_of(model, decay):
    """Returns the optimizer's class: AdamW, or one with a rate a layer.

    The head and the top layer have the full rate.

    Args:
        model: A task model.
        decay: The factor from a layer to the one below.
    """
    if decay == 1.0:
        return AdamW
    layers = len(model.encoder.blocks)
    depth = {"embeddings": layers}
    depth |= {f"block_{i}": layers - 1 - i for i in range(layers)}
    parts = [v.path.split("/") for v in model.trainable_variables]
    rates = [decay ** max(depth.get(n, 0) for n in path) for path in parts]
    return functools.partial(LayerwiseAdamW, rates)


def check_frozen(model, count):
    """Refuses what is not a number of layers of the model, -1, or None.

    Raises:
        ValueError: It is none of these, or the model has adapters.
    """
    most = len(model.encoder.blocks)
    if count is not None and not (is_integer(count) and -1 <= count <= most):
        raise ValueError(
            f"`frozen_layers` must be in [-1, {most}]. Received: {count!r}."
        )
    if count is not None and has_adapters(model):
        raise ValueError(
            "`frozen_layers` must be None for a model with adapters, whose "
            f"other weights are frozen. Received: {count!r}."
        )


def freeze(model, count):
    """Keeps the lowest layers from being trained.

    Returns:
        Every layer that it may have changed and whether it was trainable, each
        layer before its parts.

    Raises:
        ValueError: `count` is not a number of layers of the model.
    """
    check_frozen(model, count)
    if count is None:
        return []
    blocks = model.encoder.blocks
    layers = [model.encoder]
    if count >= 0:
        layers = [model.encoder.embeddings, *blocks[:count]]
    before = [
        (part, part.trainable)
        for layer in layers
        for part in layer._flatten_layers()
    ]
    for layer in layers:
        layer.trainable = False
    return before


def _reseed(model, seed):
    """Sets the random generators of a model, so that a run can be repeated."""
    random = np.random.default_rng(seed)
    for variable in model.non_trainable_variables:
        if variable.path.endswith("seed_generator_state"):
            state = random.integers(0, 2**31, variable.shape)
            variable.assign(state.astype("uint32"))


@contextlib.contextmanager
def unchanged_by_errors(model):
    """Restores a model where the body of the `with` statement fails.

    Where several processes train together a failure ends all of them, and
    nobody is left to restore it with.
    """
    config, weights = model.config, model.get_weights()
    count = getattr(model, "num_labels", None)
    try:
        yield
    except BaseException:  # an interruption, too
        if process_count() > 1:
            raise
        if count != getattr(model, "num_labels", None):
            model._draw_head(count)
        model.config = config
        model.set_weights(weights)
        raise


def _is_state(state):
    """Returns whether a checkpoint's state is that of a run of this kind."""
    return isinstance(state, dict) and {"rows", "best"} <= state.keys()


def loss_label(task):
    """Returns what the axis of a task's losses says."""
    is_number = getattr(task.model, "problem_type", None) == REGRESSION
    return "loss, squared error" if is_number else "loss, nats"


def hash_of_start(model, path):
    """Returns a hash of the weights that a run starts from.

    Weights that were drawn do not count: each process draws others, and a
    checkpoint holds them. The model that a finished run has trained may be
    given to the same call again; it has the hash that is recorded.

    Args:
        model: A task model.
        path: The record of the run, which may be missing.

    Returns:
        The hash; None where no weight was loaded.
    """
    if model.load_report is None:
        return None
    digest = hash_tensors(named_tensors(model), model.load_report.loaded)
    if not ((path.parent / FINISHED).is_file() and path.is_file()):
        return digest
    recorded = read_json(path).get("start")
    if digest == recorded:
        return digest
    done = type(model).from_pretrained(path.parent)
    is_trained = digest == hash_tensors(
        named_tensors(done), model.load_report.loaded
    )
    return recorded if is_trained else digest


def keep_in_config(model, **values):
    """Keeps what `predict_...` must know in the config, which is saved."""
    extra = {**model.config.extra, **values}
    model.config = model.config.replace(extra=extra)
