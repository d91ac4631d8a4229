"""What do several processes cost that train one model on this machine?

    KERAS_BACKEND=jax JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 \
        python -m benchmarks.processes

`bertbook pretrain` trains `tiny` on the shelf that ships, with 1, 2 and 4
processes in turns, each held to one thread, and the same batch in all. A rate
is that of the lines of log.csv after the first, which compiles. The seconds of
CPU of all processes are those of a run less those of a shorter one.
"""

import csv
import operator
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import turns
from bertbook.locations import shelf

COUNTS = (1, 2, 4)
ROUNDS = 2
SHORT, LONG, LINES = 10, 40, 10  # steps of the two runs, and of a line
ROWS, LENGTH = 32, 128


def main():
    """Runs all of it and keeps the results."""
    rounds = {count: [] for count in COUNTS}
    milliseconds = {}
    for number in range(ROUNDS):
        for count in COUNTS:
            used, speed = measure(count, LONG)
            if number == 0:
                used -= measure(count, SHORT)[0]
                milliseconds[count] = 1_000 * used / (LONG - SHORT)
            rounds[count].append(speed)
            print(count, speed, milliseconds[count], flush=True)
    results = {
        str(count): {
            "steps_a_second": speeds,
            "times_as_fast_as_one": round(
                statistics.median(map(operator.truediv, speeds, rounds[1])), 3
            ),
            "cpu_milliseconds_a_step": round(milliseconds[count]),
        }
        for count, speeds in rounds.items()
    }
    turns.save("processes_jax", results, ["bertbook", "keras", "jax"])


def measure(count, steps):
    """Returns the seconds of CPU and the steps a second of some processes.

    Args:
        count: How many train together.
        steps: How many steps.
    """
    used, rows = train(count, steps)
    tokens = [int(row["tokens_per_second"]) for row in rows]
    speed = statistics.median(tokens[1:] or tokens) / (ROWS * LENGTH)
    return used, round(speed, 2)


def train(count, steps):
    """Trains; returns the seconds of CPU and the lines of the log."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = os.environ | {"XLA_FLAGS": flags}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "bertbook", "pretrain"]
        command += ["--corpus", *map(str, shelf()), "--out", str(out)]
        command += ["--steps", str(steps), "--log-steps", str(LINES)]
        command += ["--batch-size", str(ROWS)]
        if count > 1:
            command += ["--processes", str(count)]
            command += ["--coordinator", f"127.0.0.1:{port}"]
        before = cpu_seconds()
        group = [
            subprocess.Popen(
                command + (["--process-id", str(i)] if count > 1 else []),
                stdout=subprocess.DEVNULL,
                env=environment,
            )
            for i in range(count)
        ]
        statuses = [process.wait() for process in group]
        if any(statuses):
            raise RuntimeError(f"{count} processes did not train.")
        with open(out / "log.csv", newline="") as file:
            return cpu_seconds() - before, list(csv.DictReader(file))


def cpu_seconds():
    """Returns the seconds of CPU of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
