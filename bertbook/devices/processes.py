"""Several processes that train one model: their numbers, waiting, failing.

Every process runs the same program, and each step waits for all of them.
Process 0 alone writes files. The folder of a run must be one that all of them
see. `joining` says how they find each other.
"""

import contextlib
import hashlib
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from bertbook.devices.watch import Watch, exit_now

Result = TypeVar("Result")

GRACE = 3.0  # seconds in which a lost process is heard of
MOST_BYTES = 512  # of an address
watches: list[Watch] = []  # one, once this process has joined others


def broadcast_text(text: str) -> str:
    """Returns the text of process 0 on every process."""
    utils = _multihost()
    code = np.zeros(MOST_BYTES, "uint8")
    raw = np.frombuffer(text.encode(), "uint8")
    code[: len(raw)] = raw
    code = np.asarray(utils.broadcast_one_to_all(code))
    return bytes(code).rstrip(b"\0").decode()


def _multihost():
    return importlib.import_module("jax.experimental.multihost_utils")


def process_count() -> int:
    """Returns how many processes train together; 1 without others."""
    return _jax().process_count() if _is_joined() else 1


def process_index() -> int:
    """Returns the number of this process among them, from 0 on."""
    return _jax().process_index() if _is_joined() else 0


def _is_joined() -> bool:
    """Returns whether JAX was told of other processes, waking no device."""
    return "jax" in sys.modules and _jax().distributed.is_initialized()


def _jax():
    return importlib.import_module("jax")


def is_writer() -> bool:
    """Returns whether this process writes the files of a run."""
    return process_index() == 0


def wait_for_all(name: str) -> None:
    """Waits until every process is here.

    Args:
        name: What the place is called, the same in all of them.
    """
    if process_count() > 1:
        _multihost().sync_global_devices(name)


def writer_first(function: Callable[[], Result]) -> Result:
    """Calls a function in process 0, and then in the others.

    What process 0 writes, the others find written.

    Args:
        function: Called once in every process.

    Returns:
        What it returned here.
    """
    if process_count() == 1:
        return function()
    if is_writer():
        result = function()
        wait_for_all("written")
        return result
    wait_for_all("written")
    return function()


def check_same(settings: Any, name: str) -> None:
    """Refuses settings that differ between the processes.

    Args:
        settings: Anything that JSON holds.
        name: What they are called in the error.

    Raises:
        ValueError: They are not those of process 0.
    """
    if process_count() == 1:
        return
    text = json.dumps(settings, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).digest()
    rows = _multihost().process_allgather(np.frombuffer(digest, "uint8"))
    others = [i for i, row in enumerate(rows) if bytes(row) != bytes(rows[0])]
    if others:
        numbers = ", ".join(map(str, others))
        raise ValueError(
            f"Every process must get the same {name}. Received: others than "
            f"those of process 0 in process {numbers}."
        )


def end_failed(status: int, text: str) -> int:
    """Ends this process, which has failed, and tells the others why.

    Args:
        status: What it exits with.
        text: Its error.

    Returns:
        The status, where it has not joined others.
    """
    for watch in watches:
        watch.stop(text)
        exit_now(status)
    return status


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Ends the other processes where the body of the `with` fails here.

    A computation fails here, too, when another process has ended in it, with an
    error of whatever kind. Then the connection tells which one, within the
    seconds of grace, and ends this process.
    """
    try:
        yield
    except BaseException as error:
        if watches:
            time.sleep(GRACE)
        for watch in watches:
            watch.stop(str(error) or type(error).__name__)
        raise
