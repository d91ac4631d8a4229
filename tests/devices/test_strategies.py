"""Plain `fit` under strategies of TensorFlow has the losses of one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bertbook.runtime import choose_backend

pytestmark = pytest.mark.skipif(
    choose_backend() != "tensorflow", reason="strategies are TensorFlow's"
)
PROGRAM = Path(__file__).parents[1] / "helpers" / "strategies.py"


def start(*names, **environment):
    return subprocess.Popen(
        [sys.executable, PROGRAM, *names],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def losses(process, count=1):
    """The last lines of a process: the losses of each of its strategies."""
    output, error = process.communicate(timeout=300)
    assert not process.returncode, error
    return [np.array(json.loads(li)) for li in output.splitlines()[-count:]]


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow  # a process that compiles a model for each strategy
def test_two_replicas():
    alone, mirrored = losses(start("none", "mirrored"), 2)
    np.testing.assert_allclose(mirrored, alone, rtol=0, atol=1e-4)


@pytest.mark.slow  # three processes
def test_two_workers():
    cluster = {"worker": [free_address(), free_address()]}
    workers = [
        start(
            "workers",
            TF_CONFIG=json.dumps(
                {"cluster": cluster, "task": {"type": "worker", "index": i}}
            ),
        )
        for i in range(2)
    ]
    (alone,) = losses(start("none"))
    for worker in workers:
        (shared,) = losses(worker)
        np.testing.assert_allclose(shared, alone, rtol=0, atol=1e-4)
