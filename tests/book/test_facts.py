"""Every number in prose or docstring is computed or printed.

What is scanned and what is not stands in `tools/book/facts.py`.
"""

import csv
import json
import math
from importlib import import_module

import nbformat
import numpy as np

import book
import facts

FACTS = facts.facts()
COMPUTED = [fact for fact in FACTS if "value" in fact]


def read_csv(path):
    """Returns the rows of a file below the repository as dictionaries."""
    with (book.ROOT / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def computed(expression):
    import bertbook as bb

    names = {
        "bb": bb,
        "import_module": import_module,
        "json": json,
        "math": math,
        "np": np,
        "read_csv": read_csv,
        "root": book.ROOT,
    }
    return eval(expression, names)


def test_facts_are_what_their_expressions_give():
    found = {
        fact["text"]: facts.shown(computed(fact["value"]), fact["text"])
        for fact in COMPUTED
    }
    assert {text: shown for text, shown in found.items() if text != shown} == {}


def test_each_fact_has_a_number_and_one_source():
    assert FACTS, "tests/book/facts.toml holds no fact"
    for fact in FACTS:
        assert fact.keys() - {"text", "value", "cited"} == set(), fact
        assert ("value" in fact) != ("cited" in fact), fact
        assert facts.plain_numbers(fact["text"]), fact


def test_no_fact_stands_twice():
    texts = [fact["text"] for fact in FACTS]
    assert len(texts) == len(set(texts))


def test_numbers_of_the_chapter_are_backed(notebook):
    assert facts.unbacked_in_chapter(notebook) == []


def test_numbers_of_the_pages_are_backed():
    for name in facts.PAGES:
        text = (book.ROOT / name).read_text("utf-8")
        assert facts.unbacked(text, facts.known()) == []


def test_numbers_of_the_docstrings_are_backed():
    paths = sorted((book.ROOT / "bertbook").rglob("*.py"))
    assert len(paths) > 100
    known = facts.known()
    found = [
        f"{path.name}, {name}: {numbers}"
        for path in paths
        for name, text in facts.docstrings(path)
        if (numbers := facts.unbacked(text, known))
    ]
    assert found == []


def test_numbers_in_finds_numbers_of_prose():
    for prose, numbers in (
        ("BERT has 109,482,240 weights.", ["109,482,240"]),
        ("The loss falls to 0.7319, then 0.5.", ["0.7319", "0.5"]),
        ("Rows of 128 or 512–1024 tokens", ["128", "512", "1024"]),
        ("about 110M weights, 12.5% of them", ["110", "12.5"]),
        ("The loss is `0.73`, at `step` `1,000`.", ["0.73", "1,000"]),
        ("$\\frac{1}{\\sqrt{768}}$ and $1{,}024$", ["768", "1,024"]),
        ("at -0.25 and −0.75 and 1.5e-4", ["0.25", "0.75", "1.5e-4"]),
        ("a 512-token window", ["512"]),
        ("| a | 0.125 |", ["0.125"]),
        ("Python 3.11 takes 0.25 s", ["0.25"]),
        ("By section 3, 0.5 of them", ["0.5"]),
    ):
        assert facts.numbers_in(prose) == numbers


def test_numbers_in_skips_code_dates_and_references():
    for prose in (
        "12 layers of 64, half of 10 heads",
        "Vaswani et al. (2017), in 2018, Devlin et al. (2019)",
        "arXiv:1810.04805 and doi:10.18653/v1/N19-1423",
        "see `10_tokens`, 32_pretraining and section 3.2, table 4.1, § 5.11",
        "pages 4171–4186, equation 1.1",
        "`BertConfig(vocab_size=30522)` and `x = 0.5`",
        "```python\nx = 1.25\n```\n\nText.",
        "Example:\n\n>>> 1 / 8\n0.125\n\nText.",
        "[a link](https://example.org/1234.5) and https://example.org/0.5",
        "Python 3.11, version 2.21, keras 3.15.1, SHA-256, UTF-16",
        "Python 3.11, 3.12 or 3.13; sections 3.2 and 3.4",
        "SQuAD 1.1, Apache License 2.0, Apache-2.0, CC BY 4.0",
        "**Time:** under 2 minutes on two CPU cores · **Memory:** 1.5 GB",
        "<!-- 0.5 -->",
    ):
        assert facts.numbers_in(prose) == []


def test_outputs_back_what_was_printed_and_its_roundings():
    for number, backed in (
        ("1,024", True),
        ("0.73", True),
        ("0.732", True),
        ("0.7319", True),
        ("0.7", True),
        ("0.74", False),
        ("0.73190", False),
        ("128", True),
        ("2,128", True),
        ("129", False),
    ):
        cell = nbformat.v4.new_code_cell("...")
        text = "0.7319 1024 (2,128)"
        cell.outputs = [nbformat.v4.new_output("stream", text=text)]
        notebook = nbformat.v4.new_notebook(cells=[cell])
        assert facts.backed_by(number, facts.outputs_of(notebook)) == backed


def test_a_value_is_shown_in_the_form_of_its_text():
    for value, text in (
        (109482240, "109,482,240"),
        (512, "512"),
        (0.73186, "0.732"),
        (0.125, "12.5%"),
        (1234.5, "1,234.5"),
        ("110M", "110M"),
    ):
        assert facts.shown(value, text) == text


def test_a_number_that_nothing_backs_is_seen():
    new = nbformat.v4
    text = "It has 123,457 weights and a loss of 0.987654."
    cells = [new.new_markdown_cell(text)]
    notebook = new.new_notebook(cells=cells)
    assert facts.unbacked_in_chapter(notebook) == ["123,457", "0.987654"]
