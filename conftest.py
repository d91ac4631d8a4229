"""Examples in docstrings run without XLA, which takes seconds a model."""

import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "bertbook"


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
