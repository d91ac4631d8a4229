"""Seeds, the real data, one test per chapter or lab, and what a run counted."""

import copy
import importlib.util
import os
import random
import sys
import sysconfig
import venv
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import book
import small_wheel

collect_ignore = ["helpers/strategies.py"]  # a program that needs TensorFlow
# The longest files, which workers begin with, so that none waits for the last.
LONGEST = (
    "finetuning/test_finetune.py",
    "pretraining/test_pretrain.py",
    "decoder/test_generate.py",
    "weights/test_lora.py",
    "translation/test_train.py",
    "weights/test_keras_config.py",
    "test_runtime.py",
    "model/test_encoder.py",
)


def pytest_collection_modifyitems(items):
    """Puts the longest files first; all others stay in their order."""
    rank = {Path(__file__).parent / name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.fixture(autouse=True)
def seeds():
    """Gives every test the same random numbers, in whatever order they run."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - for code that draws from the old one
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(0)


@pytest.fixture
def plain_graphs(monkeypatch):
    """Spares the seconds that XLA needs for each of many small functions."""
    monkeypatch.setattr("bertbook.runtime.COMPILE", False)
    import keras

    if keras.backend.backend() == "tensorflow":  # what "auto" asks
        name = "keras.src.trainers.trainer.model_supports_jit"
        monkeypatch.setattr(name, lambda model: False)


@pytest.fixture(scope="module")
def quick_runs():
    """Lets `fit` compile nothing on TensorFlow, for runs of a few steps.

    Tracing one step takes longer than computing forty, and XLA still longer.
    JAX compiles as always.
    """
    import keras

    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "tensorflow":
            trainer = "keras.src.trainers.trainer"
            eagerly = property(lambda model: True, lambda model, value: None)
            patch.setattr(f"{trainer}.Trainer.run_eagerly", eagerly)
            patch.setattr(f"{trainer}.model_supports_jit", lambda model: False)
            patch.setattr("bertbook.pretraining.pretrain.COMPILE", False)
            patch.setattr("bertbook.runtime.COMPILE", False)
        yield


@pytest.fixture
def graphs(quick_runs, monkeypatch):
    """Lets `fit` make graphs after all, without XLA, for many steps."""
    monkeypatch.setattr(
        "keras.src.trainers.trainer.Trainer.run_eagerly",
        property(lambda model: False, lambda model, value: None),
    )


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data sets, where this machine has one."""
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder:
        pytest.skip("needs real data sets: BERTBOOK_DATA is not set")
    if not Path(folder).is_dir():
        pytest.fail(f"`BERTBOOK_DATA` must be a folder. Received: {folder!r}.")
    return Path(folder)


@pytest.fixture
def chapter(request):
    """One chapter or lab of the book; a book without chapters fails."""
    if request.param is None:
        pytest.fail("notebooks/ holds no chapter (NN_topic.ipynb).")
    return request.param


@pytest.fixture
def notebook(chapter):
    """The cells of that chapter, with their outputs."""
    return copy.deepcopy(read_once(chapter.path))


@cache
def read_once(path):
    """Returns a notebook, which nobody changes."""
    return book.read_notebook(path)


def pytest_generate_tests(metafunc):
    """Runs a test that asks for `chapter` once for each chapter and lab."""
    if "chapter" in metafunc.fixturenames:
        found = book.everything()
        metafunc.parametrize(
            "chapter",
            found or [None],
            ids=[chapter.name for chapter in found] or ["no chapter"],
            indirect=True,
        )


def pytest_terminal_summary(terminalreporter):
    """Prints what tests counted, how many were skipped, and why."""
    for line in _counted(terminalreporter.stats):
        terminalreporter.write_line(line)
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report) for report in skipped)
    terminalreporter.write_sep("=", f"skips: {len(skipped)}")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} x {reason}")


def _counted(stats):
    """Returns what tests told with `record_property`, and the sums.

    A test records `"counts"` with a subject, a name and numbers by name.
    """
    reports = [*stats.get("passed", []), *stats.get("failed", [])]
    properties = [pair for report in reports for pair in report.user_properties]
    lines, sums = [], {}
    for subject, name, numbers in (v for k, v in properties if k == "counts"):
        lines.append(f"{subject}, {name}: {_listed(numbers)}")
        sums.setdefault(subject, Counter()).update(numbers)
    return lines + [f"{s}, in all: {_listed(n)}" for s, n in sums.items()]


def _listed(numbers):
    return ", ".join(f"{number} {name}" for name, number in numbers.items())


def _reason(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """A wheel built from this tree."""
    from hatchling import build

    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(book.ROOT)
        name = build.build_wheel(str(folder))
    return folder / name


@pytest.fixture(scope="session")
def small(wheel):
    """The wheel without models."""
    path = wheel.parent / "small" / wheel.name
    path.parent.mkdir()
    small_wheel.write_small(wheel, path)
    return path


@pytest.fixture(scope="session")
def colab(tmp_path_factory):
    """A Python like Colab's: it has what the book needs, not bertbook."""
    folder = tmp_path_factory.mktemp("colab") / "env"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    ours = sysconfig.get_path("purelib", vars={"base": folder})
    installed = Path(importlib.util.find_spec("keras").origin).parents[1]
    lines = (
        installed,
        (
            "import sys, unittest.mock as mock; "
            "sys.modules['google.colab'] = mock.MagicMock()"
        ),
    )
    Path(ours, "colab.pth").write_text("\n".join(map(str, lines)), "utf-8")
    return python
