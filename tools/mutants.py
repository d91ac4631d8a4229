"""Plants faults in the package, one at a time, and asks whether a test fails.

`python tools/mutants.py [NAME_PART ...]` takes the faults of
`tests/mutants.toml` whose names hold one of the parts, and all without any.
Each is planted in a copy of the package in a temporary folder, and the tests
named with it run in a process of their own. These are forked from a process
that has imported Keras and nothing of ours; it is made for Linux, because
elsewhere such a fork is missing or not safe.

Faults whose tests need JAX say `backend = "jax"`; they are planted where
KERAS_BACKEND names it, and the others elsewhere.

A fault is killed if a test fails. An error while tests are collected or set up
kills nothing, nor does a name that a fault misspells.
"""

import argparse
import functools
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutants.toml"
LINKED = ("tests", "tools", "data", "pyproject.toml")  # only read
# What tests import, imported once for all processes. None of it starts a
# thread, which would not survive a fork.
WARM = "keras pytest hypothesis jupytext nbformat tokenizers safetensors.numpy"
LIMIT = 300  # seconds, for a fault that never ends
# What a badly written fault raises: it says nothing about the tests.
MISTAKES = (ImportError, NameError, SyntaxError)


class Fault(NamedTuple):
    """One fault: `new` in place of `old`, and the tests that see it."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    backend: str = "tensorflow"  # that the tests need


class Found(NamedTuple):
    """What came of some tests; "" where nothing did."""

    passed: tuple[str, ...] = ()  # node ids
    failed: str = ""  # that of the last one, behind which none runs
    trouble: str = ""  # what else went wrong, in words


class Recorder:
    """A plugin of pytest that keeps what becomes of the tests."""

    def __init__(self):
        self.passed = []
        self.failed = self.trouble = ""

    def pytest_runtest_logreport(self, report):
        """Keeps the name of a test that passed."""
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)

    def pytest_exception_interact(self, call, report):
        """Keeps the name of a test that failed, or why none could run."""
        error = call.excinfo.value
        in_a_test = getattr(report, "when", "collect") == "call"
        if in_a_test and not isinstance(error, MISTAKES):
            self.failed = report.nodeid
        elif not self.trouble:
            self.trouble = f"{type(error).__name__}: {error}".splitlines()[0]


def read_faults(path=LIST):
    """Returns the faults of a list.

    Raises:
        TypeError: An entry lacks a field, or has another one.
    """
    with open(path, "rb") as file:
        return [Fault(**entry) for entry in tomllib.load(file)["fault"]]


def plant(fault, root=ROOT):
    """Returns the text of a fault's file, with the fault in it.

    Raises:
        ValueError: `old` does not stand in the file exactly once, or `new`
            is the same.
    """
    text = (root / fault.file).read_text("utf-8")
    count = text.count(fault.old)
    if count != 1 or fault.new == fault.old:
        raise ValueError(
            f"{fault.name}: `old` must stand once in {fault.file} and differ "
            f"from `new`. Received: {fault.old!r}, {count} times."
        )
    return text.replace(fault.old, fault.new)


def make_tree(folder, fault=None):
    """Copies the package into a folder, with a fault, and links the rest."""
    shutil.copytree(
        ROOT / "bertbook",
        folder / "bertbook",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    if fault is not None:
        (folder / fault.file).write_text(plant(fault), "utf-8")
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)


def run_tests(sender, folder, tests):
    """Runs tests in a tree and sends `Found`; does nothing else afterwards."""
    import pytest

    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)  # of what the tests start
    hush("log.txt")
    recorder = Recorder()
    options = ["-x", "-q", "-p", "no:cacheprovider"]
    status = pytest.main([*options, *tests], plugins=[recorder])
    found = Found(tuple(recorder.passed), recorder.failed, recorder.trouble)
    if status not in (0, 1) and not found.trouble:  # a test that is not there
        lines = Path("log.txt").read_text("utf-8").splitlines()
        errors = [line for line in lines if line.startswith("ERROR")]
        found = found._replace(trouble=errors[0] if errors else "no test ran")
    sender.send(found)


def hush(path=os.devnull):
    """Sends all that this process writes into a file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(file, stream)


@functools.cache
def warm_context():
    """Returns what starts processes that have imported Keras already."""
    # The plugins of other packages would take seconds in each process.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM.split())
    streams = [(number, os.dup(number)) for number in (1, 2)]
    hush()  # the log of TensorFlow's start
    forkserver.ensure_running()
    for number, stream in streams:
        os.dup2(stream, number)
        os.close(stream)
    return context


def run_apart(tests, fault=None):
    """Runs tests in a process and a tree of their own; returns `Found`."""
    context = warm_context()
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder), fault)
        process = context.Process(
            target=run_tests, args=(sender, folder, tests)
        )
        process.start()
        sender.close()  # so that the end of the process ends the pipe
        try:
            if not receiver.poll(LIMIT):
                return Found(trouble=f"no end within {LIMIT} s")
            return receiver.recv()
        except EOFError:
            return Found(trouble="the process died")
        finally:
            process.join(5)
            process.kill()
            process.join()


def check_tests(faults, workers):
    """Runs all named tests without a fault; returns what is wrong, in words."""
    named = list(dict.fromkeys(test for f in faults for test in f.tests))
    parts = [named[i::workers] for i in range(min(workers, len(named)))]
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(run_apart, parts))
    passed = [node for part in found for node in part.passed]
    wrong = [x for part in found for x in (part.failed, part.trouble) if x]
    return wrong or [
        f"{test}: no such test passed"
        for test in named
        if not any(is_part(node, test) for node in passed)
    ]


def is_part(node, test):
    """Returns whether a node id is that of a test, or of a case of it."""
    return node == test or node.startswith((f"{test}[", f"{test}::"))


def judge(fault):
    """Returns a verdict on one fault, why, and the seconds that it took."""
    started = time.monotonic()
    found = run_apart(fault.tests, fault)
    verdict = "killed" if found.failed else "survived"
    if found.trouble:
        verdict = "in trouble"
    why = found.trouble or found.failed or "no test failed"
    return verdict, why, time.monotonic() - started


def judge_all(faults, workers):
    """Plants the faults one after the other; returns lines on those alive."""
    alive = []
    with ThreadPoolExecutor(workers) as pool:
        verdicts = zip(faults, pool.map(judge, faults), strict=True)
        for number, (fault, (verdict, why, seconds)) in enumerate(verdicts, 1):
            place = f"{number:3}/{len(faults)}"
            print(f"{place} {verdict:10} {seconds:5.1f} s  {fault.name}")
            sys.stdout.flush()
            if verdict != "killed":
                alive.append(f"{fault.name}: {why}; {', '.join(fault.tests)}")
    return alive


def main(arguments=None):
    """Plants what the command asks for, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="NAME_PART")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    parts = options.parts or [""]
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    faults = [
        fault
        for fault in read_faults()
        if fault.backend == backend and any(p in fault.name for p in parts)
    ]
    if not faults:
        parser.error(
            f"no name of a fault of {backend} holds {' or '.join(parts)}"
        )
    for fault in faults:
        plant(fault)  # refuses what cannot be planted, before all work
    started = time.monotonic()
    warm_context()
    if wrong := check_tests(faults, options.workers):
        print("Without a fault:", *wrong, sep="\n  ")
        return 2
    print(f"all pass without a fault, {time.monotonic() - started:.0f} s")
    alive = judge_all(faults, options.workers)
    killed, seconds = len(faults) - len(alive), time.monotonic() - started
    print(f"{killed} of {len(faults)} faults killed, {seconds:.0f} s")
    for line in alive:
        print(line)
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
