"""`RunFolder`: a run that may stop at any moment, and resumes exactly."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertbook.files import read_json, write_json
from bertbook.training import checkpoint
from bertbook.training.monitor import Log

RECORD = "run.json"
FINISHED = "model.safetensors"  # written last


class RunFolder:
    """The folder of a run: its record, its checkpoints and its log.

    Args:
        path: The folder.
        verbose: Whether to print that a run resumes, or is finished.
    """

    def __init__(self, path, verbose=True):
        self.path = Path(path)
        self.record = self.path / RECORD
        self.checkpoints = self.path / "checkpoints"
        self.verbose = verbose

    def has_begun(self):
        """Returns whether a record or a trained model is there."""
        return self.record.is_file() or (self.path / FINISHED).is_file()

    def is_finished(self):
        """Returns whether the run is finished, and says so."""
        finished = (self.path / FINISHED).is_file()
        if finished and self.verbose:
            print(f"{self.path} holds the finished run; nothing is changed.")
        return finished

    def resume(self, model):
        """Puts the newest checkpoint into a compiled model.

        Returns:
            The steps done and the state that was saved with them, or None
            where the run is at its start.
        """
        progress = checkpoint.load_checkpoint(self.checkpoints, model)
        if progress is not None and self.verbose:
            print(f"going on after step {progress[0]}")
        return progress

    def save(self, step, model, state):
        """Writes a checkpoint of a step."""
        checkpoint.save_checkpoint(self.checkpoints, step, model, state)

    def open_log(self, done):
        """Returns the log, without the rows of steps that are done again."""
        return Log(self.path / "log.csv", done)


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


def _plain(value: Any) -> Any:
    """Returns what JSON can hold, the same in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)


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
    write_json(path, record)


def _settings(record, prefix=""):
    """Returns the settings of a record by names such as `recipe.seed`."""
    settings = {}
    for key, value in record.items():
        if isinstance(value, dict):
            settings |= _settings(value, f"{prefix}{key}.")
        else:
            settings[prefix + key] = value
    return settings
