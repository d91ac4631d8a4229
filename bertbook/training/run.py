"""`RunFolder`: a run that may stop at any moment, and resumes exactly."""

import contextlib
import hashlib
import itertools
import json
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bertbook.devices.processes import (
    check_same,
    is_writer,
    process_index,
    wait_for_all,
)
from bertbook.files import (
    check_folder,
    check_subfolder,
    files_named,
    finish_saving,
    read_json,
    remove_parts,
    write_json,
)
from bertbook.locations import WEIGHTS, holds_model
from bertbook.runtime import keras
from bertbook.training import checkpoint
from bertbook.training.curves import draw_curves
from bertbook.training.lock import NAME as LOCK
from bertbook.training.lock import only_run
from bertbook.training.monitor import Log

RECORD = "run.json"
CURVES = "log.png"
FINISHED = WEIGHTS  # written last
# What a run writes, beside the record that it writes first and what belongs to
# a model, which the start of a run may bring along.
OVERWRITTEN = (
    "log.csv",
    CURVES,
    "history.json",
    "best.safetensors",
    "adapter.safetensors",
)
SUBFOLDERS = ("checkpoints", "corpus", "tokenizer", "target", "tensorboard")
# What records of version 0.1.0 hold, and no weight depends on.
NOT_COMPARED = ("options.checkpoint_steps",)
DRAWING_SECONDS = 60  # between two pictures of an unfinished run


class RunFolder:
    """The folder of a run: its record, its checkpoints and its log.

    Where several processes train together, all of them read it, and process 0
    writes it.

    Args:
        path: The folder.
        verbose: Whether to print that a run resumes, or is finished.
        loss_label: What the picture of the log says of the losses.

    Raises:
        ValueError: `path` is no name of a folder.
    """

    def __init__(self, path, verbose=True, loss_label="loss, nats"):
        self.path = check_folder(path, "out")
        self.record = self.path / RECORD
        self.checkpoints = self.path / "checkpoints"
        self.verbose = verbose
        self.loss_label = loss_label
        self.log = None
        self.drawn = time.monotonic()

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other runs out while the `with` statement lasts.

        Raises:
            ValueError: Another run trains into the folder, or process 0 writes
                another one.
        """
        writer = is_writer()
        with only_run(self.path) if writer else contextlib.nullcontext():
            wait_for_all("the folder is held")
            self._check_seen()
            if writer:
                self._clean()
            wait_for_all("the folder is seen")
            yield
            wait_for_all("the folder is whole")

    def _check_seen(self):
        """Refuses a folder that is not the one of process 0."""
        if not is_writer() and not (self.path / LOCK).exists():
            raise ValueError(
                "`out` must be a folder that every process sees. Received: "
                f"{self.path}, in which process {process_index()} does not see "
                "what process 0 writes."
            )

    def _clean(self):
        """Does what a killed process has left to do; refuses links."""
        for name in SUBFOLDERS:
            check_subfolder(self.path / name)
        finish_saving(self.path)
        for folder in (self.path, self.checkpoints):
            remove_parts(folder)

    def keeps_something(self):
        """Returns whether a checkpoint or a trained model is there."""
        return last_step(self.path) is not None or holds_model(self.path)

    def is_finished(self):
        """Returns whether the run is finished, and says so."""
        finished = (self.path / FINISHED).is_file()
        if finished and self.verbose:
            print(f"{self.path} holds the finished run; nothing is changed.")
        return finished

    def check(self, record, added=()):
        """Refuses another run where the folder keeps something of one.

        A run of which nothing is kept has nothing to go on with: a call with
        other settings may take its place.

        Args:
            record: Everything that changes the result.
            added: Names in it that records of older versions lack. Where they
                are missing they are not compared.

        Raises:
            ValueError: As `check_record` says.
        """
        check_same(record, "settings")
        if self.keeps_something():
            check_record(self.record, record, added)
        elif not self.record.is_file():
            self._check_free()

    def _check_free(self):
        """Refuses a folder whose files a new run would write over."""
        theirs = [n for n in OVERWRITTEN if os.path.lexists(self.path / n)]
        if theirs:
            raise ValueError(
                "`out` must be a folder without files of a user that the run "
                f"would write over. Received: {self.path / theirs[0]}, of no "
                f"run, as there is no {RECORD}. Name another folder."
            )

    def begin(self, record, added=()):
        """Writes the record of a run, or refuses another one, as `check`."""
        self.check(record, added)
        if is_writer() and not self.keeps_something():
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(self.record, record)

    def resume(self, model, fits=None):
        """Puts the newest checkpoint into a compiled model.

        Args:
            model: The model.
            fits: As in `checkpoint.load_checkpoint`.

        Returns:
            The steps done and the state that was saved with them, or None
            where the run is at its start.
        """
        progress = checkpoint.load_checkpoint(self.checkpoints, model, fits)
        check_same(progress and progress[0], "checkpoint")
        if progress is not None and self.verbose:
            print(f"going on after step {progress[0]}")
        return progress

    def save(self, step, model, state):
        """Writes a checkpoint of a step."""
        if is_writer():
            checkpoint.save_checkpoint(self.checkpoints, step, model, state)

    def open_log(self, done):
        """Returns the log, without the rows of steps that are done again."""
        self.log = Log(self.path / "log.csv", done, is_writer())
        return self.log

    def draw_log(self, row=None):
        """Draws the log, at most once a minute while the run goes on.

        Args:
            row: The newest row of an unfinished run; None at the end.
        """
        if row is not None and time.monotonic() - self.drawn < DRAWING_SECONDS:
            return
        if self.log is not None and is_writer():
            draw_curves(self.path / CURVES, self.log.rows, self.loss_label)
        self.drawn = time.monotonic()


def last_step(folder: str | Path) -> int | None:
    """Returns the step after which the same call goes on.

    Args:
        folder: The folder of a run, which may be missing.

    Returns:
        The step of the newest checkpoint; None where there is none, so that
        the run begins again.
    """
    paths = files_named(Path(folder, "checkpoints"), checkpoint.NAME)
    return int(paths[-1].stem.rpartition("-")[2]) if paths else None


def fit_steps(model, batches, steps, monitor, callbacks=()):
    """Trains a compiled model for some batches under a `Monitor`.

    Args:
        model: The model.
        batches: An iterator or a `keras.utils.PyDataset`, in the order in
            which they are trained on.
        steps: How many batches.
        monitor: The `Monitor` that logs, evaluates and saves.
        callbacks: Further callbacks of Keras, which are called after it.
    """
    if isinstance(batches, Iterator):  # the last call may hold fewer steps
        batches = (batch for batch in itertools.islice(batches, steps))
    model.fit(
        batches,
        steps_per_epoch=steps,
        shuffle=False,
        callbacks=[monitor, *callbacks],
        verbose=0,
    )


def hash_columns(data: Mapping[str, Any] | None) -> str | None:
    """Returns a hash of columns, None for none.

    Runs on different data are different runs.
    """
    if data is None:
        return None
    columns = {name: list(column) for name, column in data.items()}
    text = json.dumps(columns, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_tensors(tensors: Mapping[str, Any], names: Collection[str]) -> str:
    """Returns a hash of some tensors, by their names."""
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode())
        digest.update(keras.ops.convert_to_numpy(tensors[name]).tobytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Returns what JSON can hold, the same in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


def check_record(
    path: Path, record: Mapping[str, Any], added: Collection[str] = ()
) -> None:
    """Refuses to go on with a run that has other settings.

    Args:
        path: The record of the run that a folder keeps something of.
        record: What the new call would record.
        added: As in `RunFolder.check`.

    Raises:
        ValueError: The file tells of a run with other settings; all are named.
            Or it is missing, so that what the folder keeps is from elsewhere;
            or it is damaged.
    """
    if not path.is_file():
        kept = "a model" if holds_model(path.parent) else "checkpoints"
        raise ValueError(
            f"{path.parent} holds {kept}, but no {path.name} of the run that "
            f"made {'it' if kept == 'a model' else 'them'}. Name another "
            "folder."
        )
    stored = read_json(path)
    missing = [name for name in added if name not in stored]
    record = json.loads(
        json.dumps({k: v for k, v in record.items() if k not in missing})
    )
    old, new = _settings(stored), _settings(record)
    differing = [
        _difference(name, old.get(name), new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) and name not in NOT_COMPARED
    ]
    if differing:
        raise ValueError(
            f"{path.parent} holds a run with other settings: "
            f"{'; '.join(differing)}. Name another folder, or go on with "
            "the old settings."
        )


# What settings are that a record knows by a hash alone.
HASHED = {
    "start": "another starting model",
    "start_weights": "another starting model",
    "train": "other training data",
    "dev": "other dev data",
    "vocabulary": "another vocabulary",
    "corpus": "another corpus",
}
HASH = re.compile("[0-9a-f]{64}")


def _difference(name, old, new):
    """Returns how a setting differs; nobody can read a hash."""
    if all(isinstance(v, str) and HASH.fullmatch(v) for v in (old, new)):
        kind = HASHED.get(name.partition(".")[0], "other content")
        return f"`{name}` is {kind} than before"
    return f"`{name}` was {old!r}, now {new!r}"


def _settings(record, prefix=""):
    """Returns the settings of a record by names such as `recipe.seed`."""
    settings = {}
    for key, value in record.items():
        if isinstance(value, dict):
            settings |= _settings(value, f"{prefix}{key}.")
        else:
            settings[prefix + key] = value
    return settings
