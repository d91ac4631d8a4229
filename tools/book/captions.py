"""Captions: every picture has one below it, and the build counts them.

A caption is a markdown cell that starts with `**Figure.**`; the build writes
the number of the chapter and of the picture into it: `**Figure 20.3.**`. A lab
counts its own: `**Figure 3.**`, which no chapter has. Figures of papers are
written small, "figure 3". The picture of the first cell needs no caption: many
chapters have it, and its words are in it.
"""

import re

import book
import first_cell

NAMED = re.compile(r"\bFigure (\d+)(?:\.(\d+))?")
MARK = re.compile(r"^\*\*Figure(?: \d+(?:\.\d+)?)?\.\*\*")


def refresh(notebook, name):
    """Numbers the captions of one chapter or lab, in place."""
    chapter = book.Chapter(name)
    start = "" if chapter.is_lab else f"{int(chapter.number)}."
    number = 0
    for cell in notebook.cells:
        if is_caption(cell):
            number += 1
            new = f"**Figure {start}{number}.**"
            cell.source = MARK.sub(new, cell.source)


def is_caption(cell):
    """Tells whether a cell says what to see in the picture above it."""
    return cell.cell_type == "markdown" and bool(MARK.match(cell.source))


def faults(notebook):
    """Returns the pictures without a caption and the captions without one."""
    found = []
    if notebook.cells and is_caption(notebook.cells[0]):
        found.append("cell 1: a caption without a picture")
    pairs = zip(notebook.cells, [*notebook.cells[1:], None], strict=True)
    for number, (cell, after) in enumerate(pairs, start=1):
        shown = cell.cell_type == "code" and has_picture(cell)
        if shown and first_cell.is_first(cell):
            continue
        described = after is not None and is_caption(after)
        if shown and shows_one_twice(cell):
            found.append(f"cell {number}: the same picture twice")
        if shown and not described:
            found.append(f"cell {number}: a picture without a caption below it")
        if described and not shown:
            found.append(f"cell {number + 1}: a caption without a picture")
    return found + _lost_references(notebook)


def _lost_references(notebook):
    """Returns the figures of the notebook that its prose names in vain."""
    texts = [c.source for c in notebook.cells if c.cell_type == "markdown"]
    captions = {match[0][2:-3] for text in texts if (match := MARK.match(text))}
    starts = {caption.rpartition(".")[0] for caption in captions}
    named = {match[0] for text in texts for match in NAMED.finditer(text)}
    return [
        f"no {one} in this notebook"
        for one in sorted(named - captions)
        if one.rpartition(".")[0] in starts
    ]


def has_picture(cell):
    """Tells whether a code cell shows an image."""
    return bool(_images(cell))


def shows_one_twice(cell):
    """Tells whether a code cell shows the same image more than once."""
    images = _images(cell)
    return len(set(images)) < len(images)


def _images(cell):
    """Returns the images of a code cell, one for each output."""
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        kinds = [kind for kind in data if kind.startswith("image/")]
        found += [str(data[kind]) for kind in kinds[:1]]
    return found
