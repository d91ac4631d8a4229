"""What several tests of runs share: their ends, and what they leave."""

import csv
import itertools
from contextlib import contextmanager

import numpy as np
import pytest

from bertbook.training import checkpoint


class KilledError(Exception):
    """Stands for a kill between two steps of a run."""


@contextmanager
def killed_at_save(number, is_written=True):
    """Ends the run of a `with` statement at one of its checkpoints.

    Args:
        number: Which checkpoint of the call, from 1.
        is_written: Whether it is still written.
    """
    save, counter = checkpoint.save_checkpoint, itertools.count(1)

    def save_and_stop(*arguments):
        is_last = next(counter) == number
        if is_written or not is_last:
            save(*arguments)
        if is_last:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save_checkpoint", save_and_stop)
        with pytest.raises(KilledError):
            yield


def weights(folder):
    """The bytes of the model of a finished run."""
    return (folder / "model.safetensors").read_bytes()


def read_log(folder):
    """The rows of a run's log, as dicts of strings."""
    with open(folder / "log.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def losses(folder):
    """The values of each row of a log but its times, by the step."""
    return {
        int(row["step"]): [v for k, v in row.items() if "second" not in k]
        for row in read_log(folder)
    }


def checkpoints_of(folder):
    """The steps that a run keeps checkpoints of, sorted."""
    paths = (folder / "checkpoints").glob("checkpoint-*.safetensors")
    return sorted(int(path.stem.rpartition("-")[2]) for path in paths)


def modified(folder):
    """When each file of a folder was written, by its path."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.*")}


def same(first, second):
    """Returns whether two lists hold the same arrays, bit by bit."""
    pairs = zip(first, second, strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)
