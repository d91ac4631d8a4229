"""A definition shown in a chapter is the package's own source."""

import importlib
import inspect
import textwrap
from collections import Counter

import pytest

import book
import quotes

PURE = ["bertbook.config", "bertbook.text.wordpiece"]  # need no backend


def names_in(notebook):
    return [quotes.name_of(c) for c in notebook.cells if book.is_quote(c)]


def test_quotes_are_current(notebook):
    assert quotes.refresh(notebook) == [], "run `make quotes`"


def test_each_definition_is_quoted_once():
    assert book.chapters(), "notebooks/ holds no chapter (NN_topic.ipynb)"
    met = Counter()
    for chapter in book.everything():
        met.update(names_in(book.read_notebook(chapter.path)))
    assert [name for name, count in met.items() if count > 1] == []


def test_no_quote_is_misspelt(notebook):
    """A line such as `# Quoted from` would slip past the other tests."""
    lines = [
        line
        for cell in book.code_cells(notebook)
        for number, line in enumerate(cell.source.split("\n"))
        if "quoted from" in line.lower()
        and not (number == 0 and book.is_quote(cell))
    ]
    assert lines == []


@pytest.mark.parametrize("name", PURE)
def test_source_is_what_inspect_gives(name):
    module = importlib.import_module(name)
    found = [
        member
        for member in vars(module).values()
        if getattr(member, "__module__", None) == name
        and (inspect.isclass(member) or inspect.isfunction(member))
    ]
    assert found
    for member in found:
        dotted = f"{name}.{member.__qualname__}"
        expected = textwrap.dedent(inspect.getsource(member)).rstrip("\n")
        assert quotes.source_of(dotted) == expected, dotted


def test_only_a_long_docstring_is_cut():
    source = (
        'class A:\n    """First.\n\n    Args:\n        x: One.\n    """\n\n'
        '    def f(self):\n        """Short\n        one."""\n        return 1'
    )
    assert quotes.folded(source) == (
        'class A:\n    """First."""\n\n'
        '    def f(self):\n        """Short\n        one."""\n        return 1'
    )


def test_a_method_is_dedented():
    source = quotes.source_of("bertbook.config.BertConfig.__post_init__")
    assert source.startswith("def __post_init__(self)")


def test_a_wrong_name_is_an_error():
    for dotted in (
        "config.BertConfig",
        "bertbook.config",
        "bertbook.nowhere.BertConfig",
        "bertbook.config.Nothing",
        "bertbook.config.BertConfig.nothing",
    ):
        with pytest.raises(ValueError, match="Received: '"):
            quotes.source_of(dotted)


def test_a_changed_quote_is_seen_and_rewritten():
    current = quotes.quote("bertbook.config.BertConfig")
    cell = book.nbformat.v4.new_code_cell(current + "\nprint('more')")
    notebook = book.nbformat.v4.new_notebook(cells=[cell])
    assert quotes.refresh(notebook) == ["bertbook.config.BertConfig"]
    assert notebook.cells[0].source == current
    assert quotes.refresh(notebook) == []


SPLIT = "bertbook.plain.tokenizer.split_words"


def test_an_answer_is_the_source_under_the_decorator():
    answer = quotes.quote(SPLIT, is_answer=True)
    first, rest = answer.split("\n", 1)
    assert first == f"@book  # quoted from {SPLIT}"
    assert rest == quotes.source_of(SPLIT)
    shown = book.nbformat.v4.new_code_cell(quotes.quote(SPLIT))
    cell = book.nbformat.v4.new_code_cell(answer)
    assert quotes.name_of(cell) == quotes.name_of(shown) == SPLIT
    assert book.is_quote(cell)
    assert book.is_answer(cell)
    assert book.is_quote(shown)
    assert not book.is_answer(shown)


def test_a_changed_answer_is_rewritten_as_an_answer():
    answer = quotes.quote(SPLIT, is_answer=True)
    cell = book.nbformat.v4.new_code_cell(answer.split("\n", 1)[0])
    notebook = book.nbformat.v4.new_notebook(cells=[cell])
    assert quotes.refresh(notebook) == [SPLIT]
    assert notebook.cells[0].source == answer
    assert quotes.refresh(notebook) == []


def test_a_long_docstring_of_an_answer_is_whole():
    dotted = "bertbook.config.BertConfig"
    assert len(quotes.quote(dotted)) < len(quotes.source_of(dotted))
    assert quotes.source_of(dotted) in quotes.quote(dotted, is_answer=True)


def test_an_answer_of_practice_is_no_quote():
    cell = book.nbformat.v4.new_code_cell("@book\ndef double(x):\n    ...")
    assert not book.is_quote(cell)
