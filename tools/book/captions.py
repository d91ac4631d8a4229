"""Captions: every picture has one below it, and the build counts them.

A caption is a markdown cell that starts with `**Figure.**`; the build writes
the number of the chapter and of the picture into it: `**Figure 20.3.**`.
"""

import re

import book

MARK = re.compile(r"^\*\*Figure(?: \d+\.\d+)?\.\*\*")


def refresh(notebook, name):
    """Numbers the captions of one chapter, in place."""
    number = 0
    for cell in notebook.cells:
        if is_caption(cell):
            number += 1
            new = f"**Figure {int(name[:2])}.{number}.**"
            cell.source = MARK.sub(new, cell.source)


def is_caption(cell):
    """Tells whether a cell says what to see in the picture above it."""
    return cell.cell_type == "markdown" and bool(MARK.match(cell.source))


def faults(notebook):
    """Returns the pictures without a caption and the captions without one."""
    found = []
    pairs = zip(notebook.cells, [*notebook.cells[1:], None], strict=True)
    for number, (cell, after) in enumerate(pairs, start=1):
        shown = cell.cell_type == "code" and has_picture(cell)
        described = after is not None and is_caption(after)
        if shown and not described:
            found.append(f"cell {number}: a picture without a caption below it")
        if described and not shown:
            found.append(f"cell {number + 1}: a caption without a picture")
    return found


def has_picture(cell):
    """Tells whether a code cell shows an image."""
    return any("image/png" in o.get("data", {}) for o in cell.outputs)


def pictures(notebook):
    """Returns how many code cells show an image."""
    return sum(has_picture(cell) for cell in book.code_cells(notebook))
