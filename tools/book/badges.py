"""Colab badges, first cells, addresses, all written from `pyproject.toml`.

`python tools/book/badges.py` rewrites them in the chapters, the README and the
other pages, and the version in `CITATION.cff`.
"""

import re
from functools import partial

import book
import first_cell

COLAB = "https://colab.research.google.com"
MARK = "[Open in Colab]"
MARKS = MARK, "[![Open in Colab]"  # the second needs the network
_OWNED = re.compile(rf"(https://github\.com|{COLAB}/github)/[\w.-]+/bertbook")
_VERSION = re.compile(r"^version: .*$", re.MULTILINE)
PAGES = "*.md", "CITATION.cff", "data/*.md", "docs/**/*.md", ".github/**/*.yml"
# Stands below the title of the README until the address is set.
NOTE = """\
> Lines with `OWNER` do not work yet: the book has no address. In Colab, upload
> a chapter and `dist/bertbook-*.whl` (`make wheel`): the first cell finds it.

"""


def slug():
    """Returns `owner/name` of the repository."""
    return book.address().removeprefix("https://github.com/")


def badge(name):
    """Returns the line that opens a chapter in Colab, without an image."""
    target = f"{COLAB}/github/{slug()}/blob/{book.ref()}/notebooks/{name}.ipynb"
    return f"{MARK}({target})"


def with_current_addresses(text):
    """Returns `text` with every address of the project as it is now."""
    return _OWNED.sub(rf"\1/{slug()}", text)


def with_note(text):
    """Returns the README with the note that the address is not set, or not."""
    title, _, rest = text.replace(NOTE, "", 1).partition("\n\n")
    return f"{title}\n\n{'' if book.has_address() else NOTE}{rest}"


def with_version(text):
    """Returns `CITATION.cff` with the version as it is now."""
    return _VERSION.sub(f"version: {book.version()}", text)


def brought_up_to_date(path):
    """Returns the text of a page as `pyproject.toml` wants it."""
    text = with_current_addresses(path.read_text("utf-8"))
    if path == book.ROOT / "README.md":
        return with_note(text)
    return with_version(text) if path.name == "CITATION.cff" else text


def with_badge(text, name):
    """Returns a chapter's opening with its badge below the title."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.startswith(MARKS)]
    if places:
        lines[places[0]] = badge(name)
    else:
        lines[1:1] = ["", badge(name)]
    return "\n".join(lines)


def place(notebook, name):
    """Writes badge, first cell and addresses into one chapter.

    Args:
        notebook: The notebook, changed in place.
        name: The chapter's name, such as `20_attention`, or the lab's.

    Raises:
        ValueError: The notebook does not open with a markdown cell.
    """
    if not notebook.cells or notebook.cells[0].cell_type != "markdown":
        kinds = [cell.cell_type for cell in notebook.cells[:1]]
        raise ValueError(
            "`notebook` must open with a markdown cell that holds the title. "
            f"Received: {kinds} in {name}."
        )
    opening = notebook.cells[0]
    opening.source = with_badge(opening.source, name)
    first_cell.place(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_current_addresses(cell.source)


def pages():
    """Returns the files outside the chapters that name the address."""
    found = (book.ROOT.glob(pattern) for pattern in PAGES)
    return sorted(path for paths in found for path in paths)


def main():
    """Rewrites chapters, labs and pages, and says which changed."""
    for chapter in book.written():
        if book.rewrite(chapter, partial(place, name=chapter.name)):
            print(chapter.name)
    for path in pages():
        text = brought_up_to_date(path)
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
            print(path.relative_to(book.ROOT))


if __name__ == "__main__":
    main()
