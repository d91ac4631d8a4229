"""`import bertbook` does no work and loads no backend."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("benchmarks", "bertbook", "experiments", "tests", "tools")
SCRIPTS = [
    path
    for folder in ("benchmarks", "experiments", "tools/models")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
HEAVY = ("keras", "tensorflow", "jax", "torch", "keras_hub", "matplotlib")
# What is installed, what KERAS_BACKEND says, and what it says after an import.
BACKENDS = [
    ("jax", "", "jax"),
    ("jax", "tensorflow", "tensorflow"),
    ("jax,tensorflow", "", ""),
    ("jax,torch", "", ""),
    ("tensorflow", "", ""),
    ("", "", ""),
]
SCRIPT = f"""
import importlib.util, os, sys
from types import SimpleNamespace
import bertbook
print([name for name in {HEAVY} if name in sys.modules])
dir(bertbook), bertbook.__version__
print([name for name in {HEAVY} if name in sys.modules])
find = importlib.util.find_spec
def pretend(name, package=None):
    if name in ("tensorflow", "jax", "torch"):
        return SimpleNamespace() if name in installed.split(",") else None
    return find(name, package)
importlib.util.find_spec = pretend
for installed, told, _ in {BACKENDS}:
    os.environ["KERAS_BACKEND"] = told
    if not told:
        del os.environ["KERAS_BACKEND"]
    for name in [n for n in sys.modules if n.startswith("bertbook")]:
        del sys.modules[name]
    import bertbook
    print(os.environ.get("KERAS_BACKEND", ""))
"""


def test_import_loads_no_backend():
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    found = [backend for _, _, backend in BACKENDS]
    assert finished.stdout.splitlines() == ["[]", "[]", *found]
    assert finished.stderr == ""


def test_the_command_line_loads_no_backend():
    """Several processes join before anything computes, and help is quick."""
    code = (
        f"import sys, bertbook.cli.main; print({{*{HEAVY}}} & {{*sys.modules}})"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "set()\n"


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


def test_a_script_imports_modules_that_are_there():
    assert len(SCRIPTS) > 20
    for path in SCRIPTS:
        assert missing_modules(path.read_text("utf-8")) == [], path


def test_a_module_that_has_moved_is_seen():
    source = "from tools.train_translation import RECIPE"
    assert missing_modules(source) == ["tools.train_translation"]
