"""Exercises: two notebooks a chapter, one to fill in and one with solutions.

`python tools/book/exercises.py [CHAPTER ...]` writes both from one source,
`tools/book/exercises/NN_topic.md`, MyST text with these cells:

* the title, `# Exercises to chapter 20`, then what all exercises need;
* for each exercise a heading, `## 1. Title (easy)`, and its text; the grade is
  `easy`, `think` or `project`;
* a code cell tagged `stub`: what the reader starts from;
* a code cell tagged `solution`, which takes the place of the stub;
* a code cell tagged `check`, which raises, with a message, until it is right.

Text tagged `solution` stands in the solutions alone.
"""

import re
import sys
from dataclasses import dataclass

import book
import first_cell

SOURCES = book.ROOT / "tools" / "book" / "exercises"
FOLDERS = {"stub": "exercises", "solution": "solutions"}
GRADES = "easy", "think", "project"
_HEADING = re.compile(r"^## (\d+)\. (.+) \((\w+)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter."""

    number: int
    title: str
    grade: str


def sources():
    """Returns the source files in the order of the chapters."""
    return sorted(SOURCES.glob("*.md"))


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
    there = "../solutions" if kind == "stub" else "../exercises"
    links = (
        f"[Chapter {name[:2]}](../{name}.ipynb) | "
        f"[{'Solutions' if kind == 'stub' else 'Exercises'}]"
        f"({there}/{name}.ipynb)"
    )
    title, _, rest = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{links}\n{rest}"
    for cell in book.code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    tidy = book.tidied(notebook)
    # Saved in JupyterLab, they write no twin.
    tidy.metadata["jupytext"] = {"formats": "ipynb"}
    return tidy


def faults(name):
    """Returns what is wrong with the source of a chapter's exercises."""
    notebook = read(name)
    found = []
    if not notebook.cells[0].source.startswith(f"# Exercises to {name[:2]} "):
        found.append(f"the first line must be `# Exercises to {name[:2]} ...`")
    exercises = exercises_of(notebook)
    if [one.number for one in exercises] != list(range(1, len(exercises) + 1)):
        found.append("the exercises must be numbered from 1")
    found += [
        f"{one.number}: the grade must be one of {', '.join(GRADES)}"
        for one in exercises
        if one.grade not in GRADES
    ]
    for number, kinds in enumerate(_kinds(notebook), start=1):
        if kinds != ["stub", "solution", "check"]:
            found.append(f"{number}: stub, solution, check, not {kinds}")
    return found


def _kinds(notebook):
    """Yields the tags of the code cells of each exercise."""
    kinds = None
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and _HEADING.search(cell.source):
            if kinds is not None:
                yield kinds
            kinds = []
        elif cell.cell_type == "code" and kinds is not None:
            kinds += sorted(tags_of(cell) & {"stub", "solution", "check"})
    if kinds is not None:
        yield kinds


def section(name):
    """Returns what a chapter says under `## Exercises`."""
    lines = [
        "## Exercises",
        "",
        f"Work on them in [exercises](exercises/{name}.ipynb): each has a cell "
        "to fill in and a cell that checks it. The answers are in "
        f"[solutions](solutions/{name}.ipynb).",
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


def main():
    """Writes the notebooks of the chapters named, or of all."""
    names = sys.argv[1:] or [path.stem for path in sources()]
    for name in names:
        if problems := faults(name):
            print(f"{name}: {'; '.join(problems)}")
            return 1
        write(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
