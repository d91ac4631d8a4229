"""Reads docs/coverage.md: what the book covers, and the check of each row.

    .venv/bin/python tools/book/coverage_page.py       prints the rows that fail
    .venv/bin/python tools/book/coverage_page.py CHAPTER   prints its assertions

A row ends with the places that hold it. A place is a test of this repository or
an assertion in a chapter or a lab, named by its heading and a part of its text:

    `tests/text/test_merges.py::test_training_by_hand`
    `10_tokens`: Pairs (`segments == [0, 0, 1]`)
    `labs/10_hard_texts`: Accents (`ids == plain`)
"""

import ast
import dataclasses
import re
import sys
from functools import cache

import book

PAGE = book.ROOT / "docs" / "coverage.md"
ROW = re.compile(
    r"^\| (C\d{3}) \| (.+?) \| (fully|partly: .+?|not: .+?) \| (.+) \|$", re.M
)
NOWHERE = "-"  # what stands in place of the places of a row that is not held
TEST = re.compile(r"`((?:tests|bertbook)/\S+\.py)::(\w+)`")
CELL = re.compile(r"`((?:labs/)?\d\d_\w+)`: (.+) \(`([^`]+)`\)")
HEADING = re.compile(r"^(#+) (.*)$")
# Calls that raise by themselves when a claim does not hold.
CHECKS = re.compile(r"(^|\.|_)(assert|raises|check|warns|fail)")


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the page: what is covered, how far, and by which places."""

    id: str
    what: str
    verdict: str  # "fully", or "partly: " or "not: " and what is missing
    places: tuple[str, ...]


def rows(text: str) -> list[Row]:
    """Returns the rows of a page in its order."""
    return [
        Row(number, what, verdict, tuple(places.split("; ")))
        for number, what, verdict, places in ROW.findall(text)
    ]


def fault(place: str) -> str | None:
    """Returns why nothing would fail at a place, or None."""
    if test := TEST.fullmatch(place):
        return _fault_of_test(*test.groups())
    if cell := CELL.fullmatch(place):
        return _fault_of_cell(*cell.groups())
    return "names neither a test nor an assertion in a chapter"


def _fault_of_test(path, name):
    file = book.ROOT / path
    if not file.is_file():
        return f"{path} does not exist"
    functions = _functions(file)
    if name not in functions:
        return f"{path} has no test {name}"
    if not _asserts(functions[name], functions):
        return f"{name} asserts nothing"
    return None


def _fault_of_cell(chapter, heading, fragment):
    if chapter not in {known.name for known in book.everything()}:
        kind = "lab" if book.Chapter(chapter).is_lab else "chapter"
        return f"there is no {kind} {chapter}"
    found = sections(chapter)
    if heading not in found:
        return f"{chapter} has no heading {heading!r}"
    if not any(fragment in line for line in found[heading]):
        return f"no assertion there holds {fragment!r}"
    return None


@cache
def _functions(file):
    tree = ast.parse(file.read_text("utf-8"))
    return {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def _asserts(function, functions, depth=2):
    """Tells whether a test asserts, itself or in a helper of its file."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if CHECKS.search(name):
                return True
            helper = functions.get(name)
            if depth and helper and _asserts(helper, functions, depth - 1):
                return True
    return False


@cache
def sections(chapter: str) -> dict[str, list[str]]:
    """Returns the assertions of a chapter under each of its headings.

    A heading holds what stands under its smaller headings, too. A line without
    an end is joined, so that each assertion is one line.
    """
    found: dict[str, list[str]] = {}
    open_ones: list[tuple[int, str]] = []
    notebook = book.read_notebook(book.Chapter(chapter).path)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                if match := HEADING.match(line):
                    level = len(match[1])
                    open_ones = [one for one in open_ones if one[0] < level]
                    open_ones.append((level, match[2]))
                    found.setdefault(match[2], [])
        elif not book.is_quote(cell):
            for _, heading in open_ones:
                found[heading] += assertions(cell.source)
    return found


def assertions(source: str) -> list[str]:
    """Returns what a cell asserts, each as one line without its message."""
    code = "\n".join(
        "pass" if line.startswith(("%", "!")) else line
        for line in source.splitlines()
    )
    lines = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assert):
            lines.append(ast.unparse(node.test))
        elif isinstance(node, ast.Call) and CHECKS.search(
            ast.unparse(node.func)
        ):
            lines.append(ast.unparse(node))
    return lines


def main():
    """Prints what fails, or the assertions of a chapter."""
    if sys.argv[1:]:
        for heading, lines in sections(sys.argv[1]).items():
            print(f"## {heading}")
            for line in lines:
                print(f"   {line}")
        return
    for row in rows(PAGE.read_text("utf-8")):
        for place in set(row.places) - {NOWHERE}:
            if reason := fault(place):
                print(f"{row.id}: {place}: {reason}")


if __name__ == "__main__":
    main()
