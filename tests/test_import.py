"""`import bertbook` does no work and loads no backend."""

import subprocess
import sys

import pytest

HEAVY = ("keras", "tensorflow", "jax", "torch", "keras_hub", "matplotlib")
SCRIPT = f"""
import sys
import bertbook
print([name for name in {HEAVY} if name in sys.modules])
dir(bertbook), bertbook.__version__
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_import_loads_no_backend():
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == ["[]", "[]"]
    assert finished.stderr == ""


BACKENDS = """
import importlib.util, os, sys
from types import SimpleNamespace
installed, told = sys.argv[1].split(","), sys.argv[2]
os.environ.pop("KERAS_BACKEND", None)
if told:
    os.environ["KERAS_BACKEND"] = told
find = importlib.util.find_spec
backends = "tensorflow", "jax", "torch"
def pretend(name, package=None):
    if name in backends:
        return SimpleNamespace() if name in installed else None
    return find(name, package)
importlib.util.find_spec = pretend
import bertbook
print(os.environ.get("KERAS_BACKEND", ""))
"""


@pytest.mark.parametrize(
    ("installed", "told", "backend"),
    [
        ("jax", "", "jax"),
        ("jax", "tensorflow", "tensorflow"),
        ("jax,tensorflow", "", ""),
        ("jax,torch", "", ""),
        ("tensorflow", "", ""),
        ("", "", ""),
    ],
)
def test_keras_is_told_of_jax_where_it_is_alone(installed, told, backend):
    finished = subprocess.run(
        [sys.executable, "-c", BACKENDS, installed, told],
        capture_output=True,
        text=True,
    )
    assert finished.stdout == f"{backend}\n", finished.stderr
