"""Templates: notebooks for data of one's own, which hold no outputs.

`python tools/book/templates.py` writes `notebooks/templates/*.ipynb` from the
texts of the same names in `tools/book/templates/`, with the common first cell.
"""

import book
import first_cell

SOURCES = book.ROOT / "tools" / "book" / "templates"
FOLDER = book.ROOT / "notebooks" / "templates"


def names():
    """Returns the names of the templates, sorted."""
    return sorted(path.stem for path in SOURCES.glob("*.md"))


def made(name):
    """Returns a template as a notebook."""
    notebook = book.read_twin(SOURCES / f"{name}.md")
    notebook.metadata.pop("jupytext", None)
    first_cell.place(notebook)
    return book.tidied(notebook)


def path_of(name):
    """Returns where a template stands."""
    return FOLDER / f"{name}.ipynb"


def main():
    """Writes all templates."""
    for name in names():
        book.write_notebook(made(name), path_of(name))
        print(path_of(name).relative_to(book.ROOT))


if __name__ == "__main__":
    main()
