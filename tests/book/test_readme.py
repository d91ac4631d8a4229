"""The Python in the README runs, block after block, in one namespace."""

import importlib.util
import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text):
    """Returns `(line number, source)` of each Python block."""
    return [
        (text.count("\n", 0, match.start()) + 2, match[1])
        for match in BLOCK.finditer(text)
    ]


def run(text, namespace):
    """Runs the blocks; a traceback names the line of the README.

    What needs TensorFlow is left out where it is not installed.
    """
    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    for line, source in blocks(text):
        if "tf." in source and not has_tensorflow:
            continue
        padded = "\n" * (line - 1) + source
        exec(compile(padded, str(README), "exec"), namespace)


def test_the_python_blocks_run(tmp_path, monkeypatch):
    assert README.is_file(), "README.md is missing"
    text = README.read_text("utf-8")
    assert blocks(text), "README.md holds no Python"
    monkeypatch.chdir(tmp_path)
    run(text, {"__name__": "__main__"})


def test_fine_tuning_takes_at_most_20_lines():
    """From the import to a label for a text, saved on the way."""
    source = next(s for _, s in blocks(README.read_text()) if "finetune" in s)
    assert len(source.splitlines()) <= 20
    steps = (
        "import bertbook", "load_dataset(", "from_pretrained(", "finetune(",
        "evaluate(", "save_pretrained(", "predict_texts(",
    )  # fmt: skip
    places = [source.index(step) for step in steps]
    assert places == sorted(places)


def test_blocks_share_a_namespace_and_know_their_line():
    text = "# Title\n\n```python\na = 1\n```\n\ntext\n\n```python\nb = a\n```\n"
    namespace = {}
    run(text, namespace)
    assert namespace["b"] == 1
    assert [line for line, _ in blocks(text)] == [4, 10]
