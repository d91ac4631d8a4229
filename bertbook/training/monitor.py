"""The `Monitor` of a run, a Keras callback, and the `Log` that it writes."""

import csv
import math
import sys
import time
from datetime import timedelta
from pathlib import Path

from bertbook.batches.progress import progress_bar, time_left
from bertbook.files import write_whole
from bertbook.runtime import compiles_shapes, device_name, keras


class Log:
    """A CSV file of a run, one row for each stretch of steps.

    Args:
        path: The file; rows from a step on that will be done again are cut.
        done: Number of steps done.
        is_kept: Whether the file is written; where several processes train
            together, one of them does.

    Raises:
        ValueError: The file is damaged, or is no log of a run.
    """

    def __init__(self, path, done=0, is_kept=True):
        self.path = Path(path)
        self.is_kept = is_kept
        self.rows = []
        if self.path.is_file():
            rows = _read_log(self.path)
            self.rows = [row for row in rows if int(row["step"]) <= done]
        self._write()

    def add(self, row):
        """Adds a row: a dict that holds `step`."""
        self.rows.append(row)
        self._write()

    def _write(self):
        """Writes all rows; columns are those of any of them."""
        if not self.is_kept:
            return
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        with (
            write_whole(self.path) as part,
            open(part, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self.rows)


def _read_log(path):
    """Returns the rows of a log.

    Raises:
        ValueError: The file is damaged, or is no log of a run.
    """
    advice = "Remove the file to go on without its rows."
    try:
        # A spreadsheet puts a byte order mark at the beginning.
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            columns = reader.fieldnames or []
            rows = [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} must be a CSV file in UTF-8. Received: {error}. {advice}"
        ) from error
    if rows and ("step" not in columns or len(set(columns)) < len(columns)):
        raise ValueError(
            f"{path} must have a column `step`, and each name once. Received: "
            f"{', '.join(columns)}. {advice}"
        )
    for line, row in rows:
        is_whole = None not in row and None not in row.values()
        if not is_whole or not (
            row["step"].isascii() and row["step"].isdigit()
        ):
            raise ValueError(
                f"{path} must hold a step and as many values as columns in "
                f"line {line}. Received: {list(row.values())!r:.80}. {advice}"
            )
    return [row for _, row in rows]


class Monitor(keras.callbacks.Callback):
    """Logs, evaluates and saves every so many steps of a call of `fit`.

    A step is an update of the weights; with gradient accumulation `fit` sees
    several batches a step. Where it takes several steps per call, what is due
    in one of them is done after the last. A row of means is made whenever
    something is due.

    Args:
        total: Steps of the whole run.
        done: Steps done before this call.
        amount: Tokens of one step, padding counted, for the speed.
        names: What the logs of Keras are called in a row.
        tasks: Pairs of a number of steps and a function of the row, called
            in their order when they are due, and all at the end. None for
            the number means with every row; a `timedelta` is the time after
            which the function is due again. A function that two pairs name is
            called once for a row.
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
        self.first = self.before = self.done = done
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
        """Starts the clock, and says where the first step will take long."""
        self.start = self.last = time.perf_counter()
        is_seen = sys.stdout.isatty() or device_name() != "CPU"
        if self.verbose and is_seen and compiles_shapes(self.model):
            print("compiling ...", end=self._end(), flush=True)
        self.called = {}  # when each function was called last
        self.last_step = self.done

    def on_train_batch_end(self, batch, logs=None):
        """Does what is due after a step."""
        done = self.first + (batch + 1) // self.accumulation
        self.before, self.done = self.done, min(done, self.total)
        if self.done == self.before:
            return
        self.logs = logs
        self.is_last = self.done == self.total or self._is_late()
        if any(map(self._is_due, self.tasks)):
            self._report()

    def finish(self):
        """Does what is due at the end, where `fit` ended before all steps."""
        self.is_last = True
        if self.done > self.last_step:
            self._report()
            return
        late = {  # the others have seen the last row
            function: None
            for pace, function in self.tasks
            if isinstance(pace, timedelta)
            or (pace is not None and self.done % pace)
        }
        for function in late:
            function(self.row)

    def _report(self):
        """Makes a row, and does what is due."""
        model = self.model  # asked for, JAX brings its variables up to date
        row = self.row = self._row(self.logs)
        due = {
            function: None
            for pace, function in self.tasks
            if pace is None or self._is_due((pace, function))
        }
        for function in due:
            function(row)
            self.called[function] = time.perf_counter()
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
        pace, function = task
        if pace is None or self.is_last:
            return self.is_last and pace is not None
        if isinstance(pace, timedelta):
            waited = time.perf_counter() - self.called.get(function, self.start)
            return waited >= pace.total_seconds()
        return self.done // pace > self.before // pace

    def _row(self, logs):
        """Returns the means since the last row.

        Raises:
            ValueError: The loss is NaN or infinite.
        """
        row = {"step": self.done}
        for logged_name, name in self.names.items():
            row[name] = float(f"{float(logs[logged_name]):.6g}")
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
        facts = "  ".join(
            f"{name} {value:.3f}"
            for name, value in row.items()
            if isinstance(value, float)
        )
        line = (
            f"{progress_bar(self.done, self.total)}  {facts}  "
            f"{row[f'{self.unit}_per_second']:,} {self.unit}/s  "
            f"{time_left(left)}"
        )
        print(line, end=self._end(), flush=True)

    def _end(self):
        """Returns what ends a line: in a terminal the next one covers it."""
        is_covered = sys.stdout.isatty() and self.done < self.total
        return "\r" if is_covered else "\n"


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
            "Logs for TensorBoard need TensorFlow: `pip install tensorflow`."
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
