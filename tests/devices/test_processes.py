"""Several processes on this machine train as one does, and end together."""

import csv
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bertbook.runtime import choose_backend
from tests.helpers import together

pytestmark = pytest.mark.skipif(
    choose_backend() != "jax", reason="processes join on JAX alone"
)
PROGRAM = Path(together.__file__)
STEPS = 50
# XLA has as many threads as cores. More devices wait for each other forever.
FOUR_DEVICES = {"JAX_NUM_CPU_DEVICES": "4", "NPROC": "16"}


def start(out, task, count, steps=STEPS, **changed):
    """Starts processes that train together; `changed` by their numbers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, PROGRAM, out, task]
            + [str(changed.get(f"steps_{i}", steps))]
            + [str(i), str(count), str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]


def train(out, task, count=1):
    """Trains to the end."""
    group = start(out, task, count)
    errors = [process.communicate(timeout=300)[1] for process in group]
    assert [p.returncode for p in group] == [0] * count, errors


def losses(out):
    with open(out / "log.csv", newline="") as file:
        return np.array([float(row["loss"]) for row in csv.DictReader(file)])


def weights(out):
    return (out / "model.safetensors").read_bytes()


def assert_same_losses(out, other):
    np.testing.assert_allclose(losses(out), losses(other), rtol=0, atol=1e-4)


def kill_one(out, task, count, victim, step=12):
    """Kills one process after a step, and sees how the others end."""
    group = start(out, task, count)
    log = out / "log.csv"
    while not log.is_file() or len(log.read_text().splitlines()) <= step:
        assert all(p.poll() is None for p in group)
        time.sleep(0.01)
    group[victim].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    errors = [process.communicate(timeout=60)[1] for process in group]
    assert time.monotonic() - killed < 60
    for index, (process, error) in enumerate(zip(group, errors, strict=True)):
        if index != victim:
            assert process.returncode == 1
            lines = [li for li in error.splitlines() if "bertbook: " in li]
            assert len(lines) == 1, error
            assert f"process {victim} of {count} (" in lines[0]
            assert "Traceback" not in error


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a corpus of short documents."""
    folder = tmp_path_factory.mktemp("together")
    lines = together.sentences(400)
    documents = ["\n".join(lines[i : i + 5]) for i in range(0, 400, 5)]
    (folder / "corpus.txt").write_text("\n\n".join(documents))
    return folder


# Both tasks join processes by the same code.
@pytest.fixture(
    scope="module",
    params=[pytest.param("pretrain", marks=pytest.mark.slow), "finetune"],
)
def runs(request, folder):
    """A run of one process, and one of two, never interrupted."""
    task = request.param
    alone, shared = folder / f"{task}_1", folder / f"{task}_2"
    together.main(alone, task, STEPS)  # this process is one, too
    train(shared, task, 2)
    return task, alone, shared


def test_two_processes_have_the_losses_of_one(runs):
    _, alone, shared = runs
    assert len(losses(alone)) == STEPS
    assert_same_losses(shared, alone)


def test_a_killed_process_ends_the_other_and_the_run_goes_on(runs, folder):
    task, _, whole = runs
    out = folder / f"{task}_killed"
    kill_one(out, task, 2, victim=1)
    train(out, task, 2)
    assert weights(out) == weights(whole)


def test_four_devices_have_the_losses_of_one(runs, folder, monkeypatch):
    task, alone, _ = runs
    for name, value in FOUR_DEVICES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MODEL_PARALLEL", "1 2")
    train(folder / f"{task}_on_4_{{}}", task)
    for model_parallel in (1, 2):
        assert_same_losses(folder / f"{task}_on_4_{model_parallel}", alone)


@pytest.mark.slow  # starts three processes for what the others test, too
def test_packed_rows_are_shared_by_two_processes(folder, monkeypatch):
    monkeypatch.setenv("PACKED", "1")
    alone, shared = folder / "packed_1", folder / "packed_2"
    train(alone, "finetune")
    train(shared, "finetune", 2)
    assert_same_losses(shared, alone)


def test_other_settings_in_one_process_are_refused(folder):
    group = start(folder / "refused", "pretrain", 2, steps_1=STEPS + 1)
    errors = [process.communicate(timeout=120)[1] for process in group]
    assert all(process.returncode == 1 for process in group)
    assert all("the same settings" in error for error in errors)


SPLIT = """
import bertbook as bb
from bertbook.devices.sharing import LAYOUTS, make_distribution
from bertbook.training.optimizers import make_optimizer

bb.runtime.keras.distribution.set_distribution(make_distribution(2))
model = bb.BertForMaskedLM(bb.BertConfig.named("tiny", vocab_size=90))
optimizer = make_optimizer(1e-3)
optimizer.build(model.trainable_variables)


def is_split(variable):
    sharding = variable.value.sharding
    return sharding.shard_shape(tuple(variable.shape)) != variable.shape


moments = optimizer._momentums + optimizer._velocities
print(len(LAYOUTS) * model.config.num_hidden_layers)
print(sum(map(is_split, model.variables)), sum(map(is_split, moments)))
"""


def test_weights_and_moments_are_split_over_the_devices_of_a_model():
    program = [sys.executable, "-c", SPLIT]
    environment = {**os.environ, **FOUR_DEVICES}
    output = subprocess.check_output(program, env=environment, text=True)
    expected, weights, moments = map(int, output.split()[-3:])
    assert (weights, moments) == (expected, 2 * expected)
    assert expected > 0


@pytest.mark.slow
def test_four_processes_have_the_losses_of_one(runs, folder):
    task, alone, _ = runs
    out = folder / f"{task}_4"
    train(out, task, 4)
    assert_same_losses(out, alone)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1, 2, 3])
def test_killing_any_of_four_ends_the_others(folder, victim):
    kill_one(folder / f"victim_{victim}", "pretrain", 4, victim)


@pytest.mark.slow
def test_fewer_processes_go_on_with_the_same_losses(folder):
    alone, out = folder / "never_killed", folder / "fewer"
    train(alone, "pretrain")
    kill_one(out, "pretrain", 4, victim=0, step=12)
    kill_one(out, "pretrain", 2, victim=0, step=27)
    train(out, "pretrain", 1)
    assert_same_losses(out, alone)
