"""Exercises: two notebooks a chapter, one to fill in and one with solutions.

`python tools/book/exercises.py [CHAPTER ...]` writes both from one source,
`tools/book/exercises/NN_topic.md` or, of a lab, `labs/NN_topic.md` there; with
`--run` it runs both as well, and fails where a check fails in the solutions or
passes in the exercises. The source is MyST text with these cells:

* the title, `# Exercises to 20 Attention` or `# Exercises to lab: Hard texts`,
  then what all exercises need;
* for each exercise a heading, `## 1. Title (easy)`, and its text; the grade is
  `easy`, `think` or `project`;
* a code cell tagged `stub`: what the reader starts from;
* a code cell tagged `solution`, which takes the place of the stub;
* a code cell tagged `check`, which raises, with a message, until it is right.

Text tagged `solution` stands in the solutions alone. Chapters and papers that
the text names become links.
"""

import argparse
import os
import re
import sys
from dataclasses import dataclass

import book
import first_cell
import navigation
import stubs

SOURCES = book.ROOT / "tools" / "book" / "exercises"
FOLDERS = {"stub": "exercises", "solution": "solutions"}
GRADES = "easy", "think", "project"
# What a check that stumbles over a stub raises: it says nothing to a reader.
ACCIDENTS = AttributeError, NameError, TypeError
_HEADING = re.compile(r"^## (\d+)\. (.+) \((\w+)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter."""

    number: int
    title: str
    grade: str


def sources():
    """Returns the source files in order, those of the labs last."""
    return [*sorted(SOURCES.glob("*.md")), *sorted(SOURCES.glob("labs/*.md"))]


def names():
    """Returns the chapters and labs that have exercises."""
    paths = (path.relative_to(SOURCES) for path in sources())
    return [path.with_suffix("").as_posix() for path in paths]


def path_of(name, kind):
    """Returns where the notebook of a chapter is, for "stub" or "solution"."""
    return book.ROOT / "notebooks" / FOLDERS[kind] / f"{name}.ipynb"


def read(name):
    """Returns the source of a chapter's exercises as a notebook."""
    return book.read_twin(SOURCES / f"{name}.md")


def exercises_of(notebook):
    """Returns the exercises of a source."""
    prose = "\n\n".join(
        cell.source for cell in notebook.cells if cell.cell_type == "markdown"
    )
    return [Exercise(int(n), t, g) for n, t, g in _HEADING.findall(prose)]


def tags_of(cell):
    """Returns the tags of a cell as a set."""
    return set(cell.metadata.get("tags", []))


def made(name, kind):
    """Returns one of the two notebooks of a chapter.

    Args:
        name: The chapter, such as `20_attention`.
        kind: "stub" or "solution"; the cells of the other kind are left out.
    """
    other = ({"stub", "solution"} - {kind}).pop()
    source = read(name)
    cells = [cell for cell in source.cells if other not in tags_of(cell)]
    notebook = book.nbformat.v4.new_notebook(cells=cells)
    first_cell.place(notebook)
    here, there = (f"{FOLDERS[one]}/{name}" for one in (kind, other))
    links = (
        f"[{back(name)}]({book.link(name, here)}) | "
        f"[{FOLDERS[other].capitalize()}]({book.link(there, here)})"
    )
    title, _, rest = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{links}\n{rest}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = navigation.linked(cell.source, here)
        else:
            cell.outputs, cell.execution_count = [], None
    tidy = book.tidied(notebook)
    # Saved in JupyterLab, they write no twin.
    tidy.metadata["jupytext"] = {"formats": "ipynb"}
    return tidy


def back(name):
    """Returns the text of the link to the chapter or lab."""
    chapter = book.Chapter(name)
    return "Lab" if chapter.is_lab else f"Chapter {chapter.number}"


def faults(name):
    """Returns what is wrong with the source of a chapter's exercises."""
    notebook, chapter = read(name), book.Chapter(name)
    found = []
    title = f"# Exercises to {'lab:' if chapter.is_lab else chapter.number} "
    if not notebook.cells[0].source.startswith(title):
        found.append(f"the first line must be `{title}...`")
    exercises = exercises_of(notebook)
    if [one.number for one in exercises] != list(range(1, len(exercises) + 1)):
        found.append("the exercises must be numbered from 1")
    found += [
        f"{one.number}: the grade must be one of {', '.join(GRADES)}"
        for one in exercises
        if one.grade not in GRADES
    ]
    before, *each = _kinds(notebook)
    if before:
        found.append(f"before the first exercise: {before}")
    for number, kinds in enumerate(each, start=1):
        if kinds != ["stub", "solution", "check"]:
            found.append(f"{number}: stub, solution, check, not {kinds}")
    found += [
        f"`{line}` must read `## 1. Title (easy)`"
        for line in headings_of(notebook)
        if not _HEADING.fullmatch(line)
    ]
    return found


def headings_of(notebook):
    """Returns the headings of level 2, one of which starts each exercise."""
    return [
        line
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.split("\n")
        if line.startswith("## ")
    ]


def _kinds(notebook):
    """Yields the tags of the code cells before and in each exercise."""
    kinds = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for _ in _HEADING.findall(cell.source):
                yield kinds
                kinds = []
        elif cell.cell_type == "code":
            kinds += sorted(tags_of(cell) & {"stub", "solution", "check"})
    yield kinds


def section(name):
    """Returns what a chapter says under `## Exercises`."""
    lines = [
        "## Exercises",
        "",
        "They are in a [notebook of their own]"
        f"({book.link(f'exercises/{name}', name)}). Each "
        "has a cell to fill in and a cell that checks your answer. The "
        f"[solutions]({book.link(f'solutions/{name}', name)}) are in another "
        "one.",
        "",
    ]
    lines += [
        f"{one.number}. {one.title} ({one.grade})"
        for one in exercises_of(read(name))
    ]
    return "\n".join(lines)


def refresh(notebook, name):
    """Writes the list of exercises into a chapter with a source, in place."""
    if not (SOURCES / f"{name}.md").is_file():
        return
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(
            "## Exercises"
        ):
            cell.source = section(name)


def write(name):
    """Writes both notebooks of a chapter."""
    for kind in FOLDERS:
        path = path_of(name, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = book.nbformat.writes(made(name, kind)) + "\n"
        path.write_text(text, "utf-8")


def outcomes(name, kind):
    """Runs one of the two notebooks of a chapter, a check after the other.

    Args:
        name: The chapter, such as `20_attention`.
        kind: "stub" or "solution".

    Returns:
        What each check says, in order: "" where it passes.

    Raises:
        RuntimeError: A cell that is no check fails.
    """
    path = path_of(name, kind)
    os.chdir(path.parent)
    namespace, said = stubs.new_namespace(), []
    cells = book.code_cells(book.read_notebook(path))
    for number, cell in enumerate(cells, start=1):
        problem = ""
        try:
            stubs.run(cell.source, namespace)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if "check" not in tags_of(cell):
                raise RuntimeError(f"code cell {number}: {problem}") from None
            if isinstance(error, ACCIDENTS) or not str(error):
                problem = f"no message: {problem}"
        if "check" in tags_of(cell):
            said.append(problem)
    return said


def faults_when_run(name):
    """Runs both notebooks of a chapter, each in a process of its own.

    Returns:
        What is wrong, and the number of checks in each notebook.
    """
    found, counts = [], set()
    for kind in FOLDERS:
        try:
            said = stubs.isolated(outcomes, name, kind)
        except RuntimeError as error:
            found.append(f"{FOLDERS[kind]}: {error}")
            continue
        counts.add(len(said))
        for number, problem in enumerate(said, start=1):
            if kind == "solution" and problem:
                found.append(f"solution {number}: {problem}")
            elif kind == "stub" and not problem:
                found.append(f"{number}: the check passes before it is solved")
            elif kind == "stub" and problem.startswith("no message"):
                found.append(f"{number}: the check says {problem}")
    if len(counts) > 1:
        found.append(f"the notebooks hold different checks: {sorted(counts)}")
    return found, max(counts, default=0)


def main():
    """Writes the notebooks of the chapters named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--run", action="store_true", help="and run them")
    options = parser.parse_args()
    status = 0
    for name in options.names or names():
        problems = faults(name)
        if not problems:
            write(name)
            if options.run:
                problems, _ = faults_when_run(name)
        for problem in problems:
            status = 1
            print(f"{name}: {problem}")
    return status


if __name__ == "__main__":
    sys.exit(main())
