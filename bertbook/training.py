"""Checkpoints that are whole or not there, exact resumption, and logs.

A checkpoint holds every variable of the model and the optimizer, among them
the states of the random generators, and where the stream of examples stands.
So a run that is killed and started again ends with the same bytes.

Differences: none; this module has no counterpart in the paper.
"""

import csv
import json
import math
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from bertbook.runtime import keras
from bertbook.stored_config import read_json

KEPT = 2  # checkpoints; the older one is for the case that the newer breaks
PATTERN = "checkpoint-*.safetensors"


# Checkpoints.


def save_checkpoint(folder, step, model, state):
    """Writes a checkpoint; it appears whole, or not at all.

    Args:
        folder: Made where it is missing.
        step: Number of steps done.
        model: A compiled model, its optimizer built.
        state: A dict for JSON, to be given back by `load_checkpoint`.

    Raises:
        OSError: The disk is full, or `folder` cannot be written. Older
            checkpoints are as they were.
    """
    folder = Path(folder)
    path = folder / f"checkpoint-{step:08d}.safetensors"
    unfinished = path.with_suffix(".part")
    metadata = {"step": str(step), "state": json.dumps(state)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        safetensors.numpy.save_file(
            {
                name: np.asarray(
                    keras.ops.convert_to_numpy(variable), order="C"
                )
                for name, variable in _named_variables(model).items()
            },
            unfinished,
            metadata=metadata,
        )
        with open(unfinished, "rb+") as file:
            os.fsync(file.fileno())  # on the disk before it gets its name
        unfinished.replace(path)
    except (OSError, safetensors.SafetensorError) as error:
        unfinished.unlink(missing_ok=True)
        raise OSError(
            f"The checkpoint {path} could not be written: {error}. Older "
            "checkpoints are untouched; the same command goes on from them."
        ) from error
    for old in sorted(folder.glob(PATTERN))[:-KEPT]:
        old.unlink()


def load_checkpoint(folder, model):
    """Puts the newest whole checkpoint of a folder into a model.

    A damaged one is named in a warning, and the one before it is taken.

    Args:
        folder: Where `save_checkpoint` wrote.
        model: A compiled model, its optimizer built.

    Returns:
        The number of steps done and the `state` that was saved, or None where
        there is no checkpoint.

    Raises:
        ValueError: Every checkpoint is damaged, or fits another model.
    """
    paths = sorted(Path(folder).glob(PATTERN), reverse=True)
    for path in paths:
        try:
            with safetensors.safe_open(path, "numpy") as file:
                metadata = file.metadata()
                names = file.keys()
                arrays = {name: file.get_tensor(name) for name in names}
        except (safetensors.SafetensorError, OSError) as error:
            warnings.warn(
                f"{path} is damaged ({error}); the one before it is taken.",
                stacklevel=2,
            )
            continue
        _assign(model, arrays, path)
        return int(metadata["step"]), json.loads(metadata["state"])
    if paths:
        raise ValueError(
            f"Every checkpoint in {folder} is damaged: "
            f"{', '.join(path.name for path in paths)}."
        )
    return None


def save_weights(path, model):
    """Writes the weights of a model alone; they appear whole, or not at all.

    Raises:
        OSError: The disk is full, or the folder cannot be written.
    """
    weights = {
        f"{number:04d}": np.asarray(array, order="C")
        for number, array in enumerate(model.get_weights())
    }
    unfinished = Path(path).with_suffix(".part")
    try:
        safetensors.numpy.save_file(weights, unfinished)
        unfinished.replace(path)
    except (OSError, safetensors.SafetensorError) as error:
        unfinished.unlink(missing_ok=True)
        raise OSError(f"{path} could not be written: {error}.") from error


def load_weights(path, model):
    """Puts what `save_weights` wrote into a model of the same kind.

    Raises:
        ValueError: The file is damaged.
    """
    try:
        weights = safetensors.numpy.load_file(path)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    model.set_weights([weights[name] for name in sorted(weights)])


def _named_variables(model):
    """Returns all that changes while training, under unique names."""
    parts = {"model": model.variables, "optimizer": model.optimizer.variables}
    return {
        f"{part}/{number:04d}/{variable.path}": variable
        for part, variables in parts.items()
        for number, variable in enumerate(variables)
        if not (part == "model" and _is_metric(model, variable))
    }


def _is_metric(model, variable):
    return any(variable is v for v in model.metrics_variables)


def _assign(model, arrays, path):
    """Copies arrays into variables of the same number and shape.

    Raises:
        ValueError: They belong to another model.
    """
    variables = {_key(n): v for n, v in _named_variables(model).items()}
    arrays = {_key(name): array for name, array in arrays.items()}
    wrong = [
        key
        for key in sorted(variables.keys() | arrays.keys())
        if key not in variables
        or key not in arrays
        or tuple(variables[key].shape) != arrays[key].shape
    ]
    if wrong:
        raise ValueError(
            f"{path} belongs to another model or optimizer. Tensors that do "
            f"not fit: {', '.join(wrong[:5])}; {len(wrong)} in all."
        )
    for key, variable in variables.items():
        variable.assign(arrays[key])


def _key(name):
    """Returns the part of a name that holds in every process.

    Keras numbers the names of seed generators and models as they are made.
    """
    return "/".join(name.split("/")[:2])


# Records of a run.


def check_record(path, record):
    """Writes what a run is made of, or refuses to go on with another.

    Args:
        path: A JSON file.
        record: Everything that changes the result.

    Raises:
        ValueError: The file tells of a run with other settings; all are named.
            Or there is none, and the folder holds a model from elsewhere; or
            it is damaged.
    """
    path = Path(path)
    if path.is_file():
        stored = read_json(path)
        record = json.loads(json.dumps(record))
        old, new = _settings(stored), _settings(record)
        differing = [
            f"`{name}` was {old.get(name)!r}, now {new.get(name)!r}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]
        if differing:
            raise ValueError(
                f"{path.parent} holds a run with other settings: "
                f"{'; '.join(differing)}. Name another folder, or go on with "
                "the old settings."
            )
        return
    if any(path.parent.glob("model*.safetensors")):
        raise ValueError(
            f"{path.parent} holds a model, but no {path.name} of the run that "
            "made it. Name another folder."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    unfinished.replace(path)


def _settings(record, prefix=""):
    """Returns the settings of a record by names such as `recipe.seed`."""
    settings = {}
    for key, value in record.items():
        if isinstance(value, dict):
            settings |= _settings(value, f"{prefix}{key}.")
        else:
            settings[prefix + key] = value
    return settings


class Log:
    """A CSV file of a run, one row for each stretch of steps.

    Args:
        path: The file; rows from a step on that will be done again are cut.
        done: Number of steps done.
    """

    def __init__(self, path, done=0):
        self.path = Path(path)
        self.rows = []
        if self.path.is_file():
            with open(self.path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.rows = [row for row in rows if int(row["step"]) <= done]
        self._write()

    def add(self, row):
        """Adds a row: a dict that holds `step`."""
        self.rows.append(row)
        self._write()

    def _write(self):
        """Writes all rows; columns are those of any of them."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        unfinished = self.path.with_suffix(".part")
        with open(unfinished, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self.rows)
        unfinished.replace(self.path)


# The callback.


class Monitor(keras.callbacks.Callback):
    """Logs, evaluates and saves every so many steps of a call of `fit`.

    A step is an update of the weights; with gradient accumulation `fit` sees
    several batches a step. A row of means is made whenever something is due.

    Args:
        total: Steps of the whole run.
        done: Steps done before this call.
        amount: Tokens of one step, padding counted, for the speed.
        names: What the logs of Keras are called in a row.
        tasks: Pairs of a number of steps and a function of the row, called
            in their order when they are due, and all at the end. None for
            the number means with every row.
        accumulation: Batches that make one step.
        verbose: Whether to print every row.
        unit: What `amount` counts.
        seconds: After how many seconds the run ends, whatever steps are left;
            None never ends it so.
        spent: Seconds that the run took before this call.
    """

    def __init__(
        self,
        total,
        done,
        amount,
        names,
        tasks,
        accumulation=1,
        verbose=True,
        unit="tokens",
        seconds=None,
        spent=0.0,
    ):
        super().__init__()
        self.total = total
        self.first = self.done = done
        self.amount = amount
        self.names = names
        self.tasks = tasks
        self.accumulation = accumulation
        self.verbose = verbose
        self.unit = unit
        self.seconds = seconds
        self.spent = spent
        self.is_last = False

    def on_train_begin(self, logs=None):
        """Starts the clock."""
        self.start = self.last = time.perf_counter()
        self.last_step = self.done

    def on_train_batch_end(self, batch, logs=None):
        """Does what is due after a step."""
        if (batch + 1) % self.accumulation:
            return
        self.done += 1
        self.is_last = self.done == self.total or self._is_late()
        if not any(map(self._is_due, self.tasks)):
            return
        model = self.model  # asked for, JAX brings its variables up to date
        row = self._row(logs)
        for steps, function in self.tasks:
            if steps is None or self._is_due((steps, function)):
                function(row)
        model.reset_metrics()
        if self.verbose:
            self._print(row)
        self.last, self.last_step = time.perf_counter(), self.done
        if self.is_last:
            model.stop_training = True

    def seconds_spent(self):
        """Returns how long the run has taken, earlier calls counted."""
        return self.spent + time.perf_counter() - self.start

    def _is_late(self):
        return self.seconds is not None and self.seconds_spent() > self.seconds

    def _is_due(self, task):
        steps, _ = task
        return steps is not None and (self.is_last or self.done % steps == 0)

    def _row(self, logs):
        """Returns the means since the last row.

        Raises:
            ValueError: The loss is NaN or infinite.
        """
        row = {"step": self.done}
        for theirs, ours in self.names.items():
            row[ours] = float(f"{float(logs[theirs]):.6g}")
        if not math.isfinite(row["loss"]):
            raise ValueError(
                f"The loss is {row['loss']} at step {self.done}: lower the "
                "learning rate, or lengthen the warm-up."
            )
        seconds = time.perf_counter() - self.last
        steps = self.done - self.last_step
        speed = round(steps * self.amount / seconds)
        row[f"{self.unit}_per_second"] = speed
        return row

    def _print(self, row):
        """Prints a bar, the means, the speed and the time that is left."""
        pace = (time.perf_counter() - self.start) / (self.done - self.first)
        left = pace * (self.total - self.done)
        if self.seconds is not None:
            left = min(left, max(0, self.seconds - self.seconds_spent()))
        left = round(left)
        facts = "  ".join(
            f"{name} {value:.3f}"
            for name, value in row.items()
            if isinstance(value, float)
        )
        filled = round(20 * self.done / self.total)
        line = (
            f"[{'=' * filled:20}] {self.done}/{self.total}  {facts}  "
            f"{row[f'{self.unit}_per_second']:,} {self.unit}/s  "
            f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
        )
        end = "\r" if sys.stdout.isatty() and self.done < self.total else "\n"
        print(line, end=end, flush=True)


def tensorboard_writer(folder):
    """Returns a function that writes a row of a log for TensorBoard.

    Args:
        folder: Where the event files go.

    Raises:
        ImportError: TensorFlow, which writes the format, is not installed.
    """
    try:
        import tensorflow as tf
    except ImportError as error:
        raise ImportError(
            "Logs for TensorBoard need TensorFlow: "
            "`pip install bertbook[tensorflow]`."
        ) from error
    writer = tf.summary.create_file_writer(str(folder))

    summary = tf.compat.v1.Summary  # needs no package beside TensorFlow

    def write(row):
        values = [
            summary.Value(tag=name, simple_value=float(value))
            for name, value in row.items()
            if name != "step"
        ]
        with writer.as_default():
            tf.summary.experimental.write_raw_pb(
                summary(value=values).SerializeToString(), step=row["step"]
            )
        writer.flush()

    return write
