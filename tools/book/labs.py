"""Labs: what their openings say, and the section `## Labs` of a chapter.

A lab opens with its question and, in the next paragraph, its answer:

    **The question.** Does it matter on which side a batch is padded?

    **The answer.** Not to BERT: the mask hides either side.

The build lists both in the chapter that the lab follows.
"""

import re

import book
import navigation
import road

HEADING = "## Labs"
_ANSWER = re.compile(
    r"^\*\*The answer\.\*\* (.+?)\s*?(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL
)
_TWO_SENTENCES = re.compile(r"[.?!] +[A-Z]")


def of_chapter(name):
    """Returns the names of the labs that follow a chapter, in order."""
    number = book.Chapter(name).number
    return [
        one.name
        for one in book.written()
        if one.is_lab and one.number == number
    ]


def opening(name):
    """Returns the first cell of a chapter or lab, from its twin."""
    return book.read_twin(book.Chapter(name).twin).cells[0].source


def answer(text):
    """Returns the answer that an opening gives, on one line, or ""."""
    found = _ANSWER.search(text)
    return road.without_links(found[1]) if found else ""


def is_one_sentence(text):
    """Tells whether an answer is one, as the list of labs wants it."""
    return text.endswith((".", "!")) and not _TWO_SENTENCES.search(text)


def section(name):
    """Returns the list of a chapter's labs as markdown, "" where none are."""
    names = of_chapter(name)
    if not names:
        return ""
    lines = [
        HEADING,
        "",
        "Each lab is a notebook of its own that takes one question further. No "
        "later chapter needs it.",
        "",
    ]
    for lab in names:
        text = opening(lab)
        link = f"[{navigation.topic(lab)}]({book.link(lab, name)})"
        lines.append(f"- {link}. *{road.question(text)}* {answer(text)}")
    return "\n".join(lines)


def refresh(notebook, name):
    """Writes the list of labs before the exercises of a chapter, in place."""
    if book.Chapter(name).is_lab:
        return
    cells = [c for c in notebook.cells if not is_section(c)]
    if text := section(name):
        old = next(filter(is_section, notebook.cells), None)
        cell = old or book.nbformat.v4.new_markdown_cell()
        cell.source = text
        cells.insert(_place(cells), cell)
    notebook.cells = cells


def is_section(cell):
    """Tells whether a cell holds the list of a chapter's labs."""
    return cell.cell_type == "markdown" and cell.source.startswith(HEADING)


def _place(cells):
    """Returns where the list stands: before exercises, or before the foot."""
    for number, cell in enumerate(cells):
        starts = cell.source.startswith("## Exercises")
        if cell.cell_type == "markdown" and starts:
            return number
    return len(cells) - navigation.is_line(cells[-1].source)
