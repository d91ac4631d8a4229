"""The ways through the book and all its chapters, in 00_start_here.

The build writes each below a comment that marks its place. Title, question and
minutes to read are those of each chapter's opening.
"""

import re

import book
import navigation

NAME = "00_start_here"
START = "<!-- all chapters: written by the build -->"
WAYS = "<!-- three ways: written by the build -->"
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
OWN_BERT = "24"  # the chapter at whose end the reader's model fills in words
PACKAGE = "00", "44", "51"  # for those who only use the package
_QUESTION = re.compile(r"^\*\*The question\.\*\* ([^?]+\?)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def routes():
    """Returns three ways through the book as markdown, with their hours."""
    spent = {
        chapter: int(minutes(book.read_twin(chapter.twin).cells[0].source) or 0)
        for chapter in book.written()
    }

    def hours(chosen):
        return round(sum(spent[c] for c in spent if chosen(c)) / 60)

    chapters = hours(lambda c: not c.is_lab)
    own = hours(lambda c: not c.is_lab and c.number <= OWN_BERT)
    package = hours(lambda c: not c.is_lab and c.number in PACKAGE)
    by_number = navigation.names_by_number()
    links = {n: f"[chapter {n}]({by_number[n]}.ipynb)" for n in by_number}
    others = [links[number] for number in PACKAGE[1:]]
    return (
        f"- *The chapters*, in order: about {chapters} hours with all that you "
        f"write. At the end of {links[OWN_BERT]}, after about {own} of them, "
        "your own BERT fills in hidden words.\n"
        "- *The chapters and the labs*, each lab after its chapter: about "
        f"{hours(lambda c: True)} hours.\n"
        f"- *The package alone*: this chapter, {' and '.join(others)}, about "
        f"{package} hours, and then `docs/using.md`."
    )


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
    """Writes both into chapter 00, in place; others stay as they are."""
    if name != NAME:
        return
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(START):
            cell.source = f"{START}\n\n{table()}"
        elif cell.cell_type == "markdown" and cell.source.startswith(WAYS):
            cell.source = f"{WAYS}\n\n{routes()}"


def _part(number):
    return f"{number} {PARTS[number]}"
