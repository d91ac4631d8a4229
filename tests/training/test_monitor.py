"""What a run says while it goes on."""

import sys

import keras
import numpy as np
import pytest

from bertbook.training import monitor


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(
    ("place", "end"), [("terminal", "\r"), ("GPU", "\n"), ("CPU", None)]
)
def test_a_run_that_is_compiled_says_so(
    is_compiled, place, end, capsys, monkeypatch
):
    """In a file or notebook of a CPU, where that is short, it does not."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=is_compiled)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: place == "terminal")
    device = "GPU" if place == "GPU" else "CPU"
    monkeypatch.setattr(monitor, "device_name", lambda: device)
    call = monitor.Monitor(
        1, 0, 2, {"loss": "loss"}, [(1, lambda row: None)], unit="rows"
    )
    model.fit(np.ones((2, 3)), np.ones((2, 1)), verbose=0, callbacks=[call])
    first, last = capsys.readouterr().out.partition("1/1")[::2]
    compiles = is_compiled or keras.backend.backend() == "jax"
    assert first.startswith(f"compiling ...{end}") == (compiles and bool(end))
    assert last.endswith("\n")
