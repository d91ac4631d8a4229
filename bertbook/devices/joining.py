"""`join_processes`: several processes find each other, on JAX."""

import contextlib
import os
import socket

from bertbook import runtime
from bertbook.checks import is_integer
from bertbook.devices.processes import (
    broadcast_text,
    process_count,
    process_index,
    watches,
)
from bertbook.devices.watch import Address, Watch, end_process

# What Keras reads, where an argument is not given.
ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
COUNT = "KERAS_DISTRIBUTION_NUM_PROCESSES"
INDEX = "KERAS_DISTRIBUTION_PROCESS_ID"


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
    KERAS_DISTRIBUTION_PROCESS_ID, or else from the cluster, where JAX knows
    it: Slurm, Open MPI, Kubernetes, a slice of TPUs.

    Args:
        coordinator: The address of process 0, HOST:PORT.
        processes: How many there are.
        process_id: The number of this one, from 0 on.

    Raises:
        ValueError: An argument is of another kind, the backend is not JAX, or
            something has computed already.
        OSError: The others cannot be reached.
        ImportError: No backend is installed.
    """
    coordinator = coordinator or os.environ.get(ADDRESSES)
    processes = _number(processes, "processes", COUNT)
    process_id = _number(process_id, "process_id", INDEX)
    _check_place(coordinator, processes, process_id)
    if watches:
        raise ValueError("`join_processes` must be called once.")
    if runtime.choose_backend() != "jax":
        raise ValueError(
            "`join_processes` needs the JAX backend. Received: "
            f"{runtime.choose_backend()}. On TensorFlow, build the model "
            "in the scope of a strategy of `tf.distribute` and call `fit`."
        )
    _initialize(coordinator, processes, process_id)
    if process_count() > 1:
        # It loads Keras, whose first computation must not come before.
        from bertbook.devices.sharing import share_all_devices

        watches.append(_connect(coordinator))
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
        broadcast_text(" ".join(map(str, address)))
        watch.accept()
    else:
        host, port, token = broadcast_text("").split()
        watch.connect(Address(host, int(port), token))
    return watch
