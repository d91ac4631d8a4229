"""The table of all chapters and labs in 00_start_here: the build writes it.

It stands below a comment that marks its place. Title, question and minutes to
read are those of each chapter's opening.
"""

import re

import book
import navigation

NAME = "00_start_here"
START = "<!-- all chapters: written by the build -->"
PARTS = {
    0: "start",
    1: "text",
    2: "model",
    3: "pre-training",
    4: "fine-tuning",
    5: "beyond",
    6: "the other half",
    9: "back matter",
}
_QUESTION = re.compile(r"^\*\*The question\.\*\* ([^?]+\?)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def table():
    """Returns the table of all chapters as markdown, labs under theirs."""
    rows = ["| part | chapter | the question | minutes |", "|---|---|---|---|"]
    before = None
    for chapter in book.written():
        part = "" if chapter.part == before else _part(chapter.part)
        before = chapter.part
        link = f"[{navigation.title(chapter.name)}]({chapter.name}.ipynb)"
        opening = book.read_twin(chapter.twin).cells[0].source
        rows.append(
            f"| {part} | {link} | {question(opening)} | {minutes(opening)} |"
        )
    return "\n".join(rows)


def question(opening):
    """Returns the first question of an opening, on one line."""
    found = _QUESTION.search(opening)
    return without_links(found[1]) if found else ""


def without_links(text):
    """Returns a text on one line, links without their addresses."""
    return _LINK.sub(r"\1", " ".join(text.split()))


def minutes(opening):
    """Returns the minutes that reading takes, "" where none are given."""
    found = re.search(r"(\d+) minutes to read", opening)
    return found[1] if found else ""


def refresh(notebook, name):
    """Writes the table into chapter 00, in place; others stay as they are."""
    if name != NAME:
        return
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(START):
            cell.source = f"{START}\n\n{table()}"


def _part(number):
    return f"{number} {PARTS[number]}"
