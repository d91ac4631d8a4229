"""Every Your-turn cell has its answer, and a chapter runs either way."""

import ast
import os
import re
import tempfile

import pytest

import book
import stubs
from bertbook.book.parts import PARTS

DEFINITIONS = ast.FunctionDef, ast.ClassDef
RIGHT = re.compile(r": right, (kept|\d+ of \d+ checks)")


def defined(source, decorator=None):
    """Returns the definitions of a cell by name, those under a decorator."""
    tree = ast.parse(book.without_magics(source))
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, DEFINITIONS)
        and (
            decorator is None
            or decorator in map(ast.unparse, node.decorator_list)
        )
    }


def turns(notebook):
    """Yields cell, name and definition of each thing to write, in order.

    Chapter 54 has checks of its own: the reader writes tests there.
    """
    for cell in book.code_cells(notebook):
        if "your-turn" in cell.metadata.get("tags", []):
            for name, node in defined(cell.source).items():
                if unwritten(node) and f"catches({name}" not in cell.source:
                    yield cell, name, node


def unwritten(node):
    bodies = [n.body for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
    return any(ast.unparse(body[-1]) == "..." for body in bodies)


def answers(notebook):
    """Returns cell and definition of each answer by name."""
    return {
        name: (cell, node)
        for cell in book.code_cells(notebook)
        for name, node in defined(cell.source, "book").items()
    }


def without_bodies(node):
    """Returns the source of a definition with only what a stub has."""
    node = ast.parse(ast.unparse(node)).body[0]
    node.decorator_list = []
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef):
            one.body = [ast.Pass()]
            one.returns = None
            for argument in one.args.args + one.args.kwonlyargs:
                argument.annotation = None
    return ast.unparse(node)


def test_every_turn_has_its_answer(notebook):
    found = answers(notebook)
    names = [name for _, name, _ in turns(notebook)]
    assert sorted(names) == sorted(found)
    for _, name, node in turns(notebook):
        answer = found[name][1]
        assert without_bodies(node) == without_bodies(answer), name


def test_a_part_is_given_as_plain_has_it(notebook):
    found = answers(notebook)
    for cell, name, node in turns(notebook):
        kept = "part" in map(ast.unparse, node.decorator_list)
        assert kept == (name in PARTS), name
        if kept:
            assert ast.get_docstring(node) == ast.get_docstring(found[name][1])
            assert f"check({name}" not in cell.source


def filled(notebook):
    """Returns a chapter with the answers in the place of the stubs."""
    found = answers(notebook)
    for cell, name, node in reversed(list(turns(notebook))):  # lines move
        lines = cell.source.split("\n")
        answer_cell, answer = found[name]
        text = answer_cell.source.split("\n")
        start = answer.lineno - len(answer.decorator_list)
        body = text[: start - 1]  # a constant that the answer needs
        body += text[answer.lineno - 1 : answer.end_lineno]
        lines[node.lineno - 1 : node.end_lineno] = body
        cell.source = "\n".join(lines)
        answer_cell.source = "\n".join(text[answer.end_lineno :])
    return notebook


def outputs(name):
    """Runs a chapter with its answers in the stubs; returns what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MYBERT"] = folder
        os.chdir(book.ROOT / "notebooks")
        notebook = filled(book.read_notebook(book.Chapter(name).path))
        namespace = stubs.new_namespace()
        said = ""
        for cell in book.code_cells(notebook):
            if not stubs.skipped(cell):
                said += stubs.run(cell.source, namespace)
        return said


@pytest.mark.slow  # every chapter with something to write runs once more
def test_a_chapter_runs_with_the_answers_in_the_stubs(chapter, notebook):
    wanted = len(list(turns(notebook)))
    if not wanted:
        pytest.skip("nothing to write")
    said = stubs.isolated(outputs, chapter.name)
    assert len(RIGHT.findall(said)) == wanted
    assert "not yet" not in said
    assert "Used from here on: the book's." not in said
