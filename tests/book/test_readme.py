"""The Python in the README and in docs/using.md runs, block after block."""

import importlib.util
import re

import pytest

import bertbook as bb
import book
from tests.helpers.set_files import load_short

README = book.ROOT / "README.md"
USING = book.ROOT / "docs" / "using.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = re.compile(
    r"^```(?!python\n|sh\n)(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


def blocks(text):
    """Returns `(line number, source)` of each Python block."""
    return [
        (text.count("\n", 0, match.start()) + 2, match[1])
        for match in BLOCK.finditer(text)
    ]


def run(path, namespace):
    """Runs the blocks of a page; a traceback names the line.

    What needs TensorFlow is left out where it is not installed.
    """
    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    for line, source in blocks(path.read_text("utf-8")):
        if "tf." in source and not has_tensorflow:
            continue
        padded = "\n" * (line - 1) + source
        exec(compile(padded, str(path), "exec"), namespace)


@pytest.mark.usefixtures("quick_runs")
@pytest.mark.parametrize(
    "path",
    [README, pytest.param(USING, marks=pytest.mark.slow)],  # a minute
    ids=lambda path: path.name,
)
def test_the_python_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.setattr(bb, "load_dataset", load_short(bb.load_dataset, 48))
    assert blocks(path.read_text("utf-8")), f"{path} holds no Python"
    monkeypatch.chdir(tmp_path)
    run(path, {"__name__": "__main__"})


@pytest.mark.parametrize(
    "path",
    [README, pytest.param(USING, marks=pytest.mark.slow)],  # a minute
    ids=lambda path: path.name,
)
def test_no_block_is_left_out_but_what_asks_the_network(path):
    """Those are marked `py`, and say so by an address on the Hub."""
    for mark, source in LEFT_OUT.findall(path.read_text("utf-8")):
        assert (mark, "hf://" in source) == ("py", True), source


def test_the_first_result_comes_within_15_lines():
    """Blank lines left out: what the book is, two commands, a result."""
    line, source = blocks(README.read_text("utf-8"))[0]
    above = README.read_text("utf-8").splitlines()[: line - 1]
    assert {"make lab"} < set(above)
    lines = [text for text in [*above, *source.splitlines()] if text]
    assert len(lines) <= 15


def test_fine_tuning_takes_at_most_20_lines():
    """From the import to a label for a text, saved on the way."""
    source = next(
        s for _, s in blocks(USING.read_text("utf-8")) if "finetune" in s
    )
    assert len(source.splitlines()) <= 20
    steps = (
        "import bertbook", "load_dataset(", "from_pretrained(", "finetune(",
        "evaluate(", "save_pretrained(", "predict_texts(",
    )  # fmt: skip
    places = [source.index(step) for step in steps]
    assert places == sorted(places)


def test_blocks_share_a_namespace_and_know_their_line(tmp_path):
    text = "# Title\n\n```python\na = 1\n```\n\ntext\n\n```python\nb = a\n```\n"
    (tmp_path / "page.md").write_text(text, "utf-8")
    namespace = {}
    run(tmp_path / "page.md", namespace)
    assert namespace["b"] == 1
    assert [line for line, _ in blocks(text)] == [4, 10]
