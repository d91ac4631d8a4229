"""Several processes that train one model: joining, waiting, failing.

JAX joins their devices; every process runs the same program, and each step
waits for all of them. Process 0 alone writes files. The folder of a run must be
one that all of them see.
"""

import contextlib
import hashlib
import importlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from bertbook import runtime
from bertbook.checks import is_integer
from bertbook.devices.watch import Address, Watch, end_process, exit_now

Result = TypeVar("Result")

# What Keras reads, where an argument is not given.
ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
COUNT = "KERAS_DISTRIBUTION_NUM_PROCESSES"
INDEX = "KERAS_DISTRIBUTION_PROCESS_ID"
GRACE = 3.0  # seconds in which a lost process is heard of
MOST_BYTES = 512  # of an address
_watch: list[Watch] = []  # one, once this process has joined others


def join_processes(
    coordinator: str | None = None,
    processes: int | None = None,
    process_id: int | None = None,
) -> None:
    """Joins this process with others that train the same model, on JAX.

    Call it first, before anything computes, and in every process; then train
    as with one. It sets a `keras.distribution.DataParallel` over the devices
    of all processes.

    What is not given is taken from the environment: from
    KERAS_DISTRIBUTION_JOB_ADDRESSES, KERAS_DISTRIBUTION_NUM_PROCESSES and
    KERAS_DISTRIBUTION_PROCESS_ID, or else from the cluster, as
    `jax.distributed.initialize` finds it: Slurm, Open MPI, a slice of TPUs.

    Args:
        coordinator: Host and port of process 0, such as "10.0.0.1:1234".
        processes: How many there are.
        process_id: The number of this one, from 0 on.

    Raises:
        ValueError: An argument is of another kind, the backend is not JAX, or
            something has computed already.
        OSError: The others cannot be reached.
    """
    coordinator = coordinator or os.environ.get(ADDRESSES)
    processes = _number(processes, "processes", COUNT)
    process_id = _number(process_id, "process_id", INDEX)
    _check_place(coordinator, processes, process_id)
    if _watch:
        raise ValueError("`join_processes` must be called once.")
    if runtime.choose_backend() != "jax":
        raise ValueError(
            "`join_processes` needs the JAX backend. Received: "
            f"{runtime.choose_backend()}. On TensorFlow, build the model "
            "in the scope of a strategy of `tf.distribute` and call `fit`."
        )
    _initialize(coordinator, processes, process_id)
    if process_count() > 1:
        _watch.append(_connect(coordinator))
        from bertbook.devices.sharing import share_all_devices

        share_all_devices()


def _number(value: int | None, name: str, variable: str) -> int | None:
    """Returns a number that is given, or that the environment holds."""
    if value is not None or variable not in os.environ:
        return value
    text = os.environ[variable]
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(
            f"`{name}` must be an integer >= 0. Received: {text!r} in "
            f"{variable}."
        )
    return int(text)


def _check_place(coordinator, processes, process_id) -> None:
    """Refuses numbers that do not fit each other."""
    if processes is not None and not (is_integer(processes) and processes > 0):
        raise ValueError(
            f"`processes` must be an integer >= 1. Received: {processes!r}."
        )
    if process_id is not None:
        most = processes or 2**31
        if not (is_integer(process_id) and 0 <= process_id < most):
            raise ValueError(
                "`process_id` must be an integer from 0 to `processes` - 1. "
                f"Received: {process_id!r}, with `processes` {processes!r}."
            )
    if coordinator is not None:
        first = coordinator.split(",")[0]
        host, _, port = first.rpartition(":")
        if not host or not (port.isascii() and port.isdecimal()):
            raise ValueError(
                "`coordinator` must be a host and a port, such as "
                f'"10.0.0.1:1234". Received: {coordinator!r}.'
            )


def _initialize(coordinator, processes, process_id) -> None:
    """Lets JAX find the other processes."""
    import jax
    import keras

    # A seed that is set already: Keras would agree on one in a computation.
    keras.utils.set_random_seed(0)
    with contextlib.suppress(AttributeError):  # the default of newer versions
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        keras.distribution.initialize(coordinator, processes, process_id)
    except ValueError as error:
        raise ValueError(
            "`coordinator`, `processes` and `process_id` must be given where "
            f"no cluster tells them. JAX says: {error}"
        ) from error
    except RuntimeError as error:
        if "before any JAX" in str(error) or "only be called once" in str(
            error
        ):
            raise ValueError(
                "`join_processes` must be called before anything computes, "
                f"and once. JAX says: {error}"
            ) from error
        raise OSError(f"The processes did not find each other: {error}") from (
            error
        )


def _connect(coordinator: str | None) -> Watch:
    """Connects this process with process 0, or process 0 with all others."""
    index, count = process_index(), process_count()
    watch = Watch(index, count, end_process)
    if index == 0:
        host = coordinator or f"{socket.gethostname()}:0"
        address = watch.open(host.split(",")[0].rpartition(":")[0])
        _broadcast_text(" ".join(map(str, address)))
        watch.accept()
    else:
        host, port, token = _broadcast_text("").split()
        watch.connect(Address(host, int(port), token))
    return watch


def _broadcast_text(text: str) -> str:
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


def end_failed(status: int) -> int:
    """Ends this process if it has failed and others wait for it.

    Args:
        status: What it would exit with.

    Returns:
        The status, where it has not failed or has not joined others.
    """
    if status and _watch:
        exit_now(status)
    return status


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Ends the other processes where the body of the `with` fails here.

    A computation fails here, too, when another process has ended in it. The
    connection tells which one; it is waited for, and ends this process.
    """
    try:
        yield
    except BaseException as error:
        for watch in _watch:
            if isinstance(error, RuntimeError):
                time.sleep(GRACE)
            words = str(error) or type(error).__name__
            watch.stop(words)
        raise
