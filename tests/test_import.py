"""`import bertbook` does no work and loads no backend."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("benchmarks", "bertbook", "experiments", "tests", "tools")
SCRIPTS = [
    path
    for folder in ("benchmarks", "experiments", "tools/models")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
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


def missing_modules(source):
    """Returns the modules of the repository that a script cannot import."""
    names = [
        node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module
    ]
    paths = {
        name: ROOT.joinpath(*name.split("."))
        for name in names
        if name.partition(".")[0] in OURS
    }
    return [
        name
        for name, path in paths.items()
        if not path.is_dir() and not path.with_suffix(".py").is_file()
    ]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_modules_that_are_there(path):
    assert missing_modules(path.read_text("utf-8")) == []


def test_a_module_that_has_moved_is_seen():
    source = "from tools.train_translation import RECIPE"
    assert missing_modules(source) == ["tools.train_translation"]


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
