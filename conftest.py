"""Examples run without XLA, and each notebook has an empty `mybert`."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

PACKAGE = Path(__file__).parent / "bertbook"
FOLDERS = {}  # of `mybert`, by notebook; they go when the run ends


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Sets MYBERT for a notebook, before nbval starts its kernel."""
    if item.path.suffix == ".ipynb":
        if item.path not in FOLDERS:
            FOLDERS[item.path] = TemporaryDirectory(prefix="mybert")
        os.environ["MYBERT"] = FOLDERS[item.path].name


def pytest_unconfigure():
    """Removes what the notebooks wrote."""
    while FOLDERS:
        FOLDERS.popitem()[1].cleanup()


@pytest.fixture(autouse=True)
def plain_examples(request, monkeypatch):
    """Asks TensorFlow for plain graphs in examples; tests decide themselves."""
    if not request.path.is_relative_to(PACKAGE):
        return
    monkeypatch.setattr("bertbook.runtime.COMPILE", False)
    keras = sys.modules.get("keras")
    if keras and keras.backend.backend() == "tensorflow":
        name = "keras.src.trainers.trainer.model_supports_jit"
        monkeypatch.setattr(name, lambda model: False)
