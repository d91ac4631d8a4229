"""The calls of docs/site/moving.md run, from the top of the page to its end."""

import ast
import importlib.util
import re
import socket
import subprocess
import sys

import pytest

import bertbook as bb
import book
from tests.helpers.set_files import load_short

PAGE = book.ROOT / "docs" / "site" / "moving.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
# A call that holds this runs on this backend alone.
ONLY_ON = {
    ".export(": "tensorflow",
    "tf.": "tensorflow",
    "set_distribution(": "jax",
}
ALONE = "bb.join_processes("  # before anything computes: in a new process
JOBS = 12


def calls(text):
    """Returns the line and the source of what is ours on the page."""
    found = [(m.start(), m[1]) for m in BLOCK.finditer(text)]
    for match in ROW.finditer(text):
        cells = [cell.strip() for cell in match[1].split("|")]
        code = re.fullmatch(r"`(.+)`", cells[-1])
        if code:
            found.append((match.start(), code[1]))
    return [
        (text.count("\n", 0, place) + 1, source)
        for place, source in sorted(found)
    ]


def runs_here(source, backend):
    """Tells whether a call is one for this backend."""
    if source.startswith(ALONE):
        return False
    only = [name for mark, name in ONLY_ON.items() if mark in source]
    return only in ([], [backend])


def run(found, namespace, backend):
    """Runs the calls; a traceback names the line of the page."""
    count = 0
    for line, source in found:
        if runs_here(source, backend):
            padded = "\n" * (line - 1) + source
            exec(compile(padded, str(PAGE), "exec"), namespace)
            count += 1
    return count


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    """A folder to write into, and names of Keras as they were."""
    import keras

    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    if importlib.util.find_spec("tensorflow"):
        names["tf"] = importlib.import_module("tensorflow")
    yield names
    if keras.backend.backend() == "jax":
        keras.distribution.set_distribution(None)


@pytest.mark.slow  # ten seconds and more
def test_every_call_of_ours_runs(
    namespace, record_property, quick_runs, monkeypatch
):
    import keras

    monkeypatch.setattr(bb, "load_dataset", load_short(bb.load_dataset))
    found = calls(PAGE.read_text("utf-8"))
    count = run(found, namespace, keras.backend.backend())
    record_property("counts", ("moving.md", "calls", {"calls": count}))
    assert count > 40
    guesses = namespace["bb"].fill_mask("The United [MASK] of America.")
    assert guesses[0]["token"] == "states"


def test_joining_processes_runs_alone():
    """On JAX, in a new process, at a port that is free."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("needs JAX")
    found = [s for _, s in calls(PAGE.read_text("utf-8")) if ALONE in s]
    assert len(found) == 1
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    source = found[0].replace("localhost:1234", f"localhost:{port}")
    program = (
        "import os; os.environ['KERAS_BACKEND'] = 'jax'\n"
        f"import bertbook as bb\n{source}\n"
        "import jax; print(jax.process_count())"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.stdout.strip().endswith("1"), finished.stderr


def test_the_page_has_a_table_for_each_job():
    text = PAGE.read_text("utf-8")
    head = r"^\| Hugging Face.*\| KerasHub \| bertbook \|$"
    heads = re.findall(head, text, re.M)
    assert len(heads) == JOBS
    assert "the same call again" in text


def test_calls_of_others_are_python():
    for match in ROW.finditer(PAGE.read_text("utf-8")):
        for cell in match[1].split("|")[:-1]:
            code = re.fullmatch(r"`(.+)`", cell.strip())
            if code and not code[1].startswith(("torchrun", "optimum-cli")):
                ast.parse(code[1])


def test_a_wrong_call_is_seen():
    text = "| Hugging Face | KerasHub | bertbook |\n| `a` | | `x = 1` |\n"
    assert calls(text) == [(2, "x = 1")]
    wrong = calls(text.replace("x = 1", "nothing.here()"))
    with pytest.raises(NameError):
        run(wrong, {}, "jax")


def test_the_backend_decides_what_runs():
    assert runs_here('model.export("served")', "tensorflow")
    assert not runs_here('model.export("served")', "jax")
    assert runs_here("bb.evaluate(model, dev)", "jax")
    assert not runs_here("bb.join_processes()", "jax")
