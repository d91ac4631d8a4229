"""What the tools and tests of the book share: chapters, labs, cells, files."""

import contextlib
import hashlib
import os
import posixpath
import re
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

import jupytext
import nbformat
from jupytext.config import load_jupytext_configuration_file

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"(?:labs/)?\d\d_[a-z0-9_]+")
TWIN_FORMAT = "md:myst"
NO_ADDRESS = "https://github.com/OWNER/bertbook"
FIRST_LINE_OF_A_QUOTE = "# quoted from "
# The answer to what the reader writes: plain's source under the decorator.
FIRST_LINE_OF_AN_ANSWER = f"@book  {FIRST_LINE_OF_A_QUOTE}"
QUOTES = FIRST_LINE_OF_A_QUOTE, FIRST_LINE_OF_AN_ANSWER
KERNEL = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}


@dataclass(frozen=True)
class Chapter:
    """A chapter or a lab: the notebook and its twin in text."""

    name: str  # such as `20_attention` or `labs/10_hard_texts`

    @property
    def path(self):
        """The notebook that a reader opens."""
        return ROOT / "notebooks" / f"{self.name}.ipynb"

    @property
    def twin(self):
        """The same cells as MyST text, without outputs."""
        return ROOT / "notebooks" / "text" / f"{self.name}.md"

    @property
    def is_lab(self):
        """Whether it is a lab, which nobody has to read to go on."""
        return self.name.startswith("labs/")

    @property
    def number(self):
        """Two digits: of the chapter, or of the chapter that a lab follows."""
        return posixpath.basename(self.name)[:2]

    @property
    def part(self):
        """The part of the book, the first of the two digits."""
        return int(self.number[0])


def everything():
    """Returns chapters and labs that have a notebook, labs after theirs."""
    return _named(notebooks(), "notebooks")


def chapters():
    """Returns the chapters that have a notebook, in the order of names."""
    return [one for one in everything() if not one.is_lab]


def labs():
    """Returns the labs that have a notebook, in the order of names."""
    return [one for one in everything() if one.is_lab]


def written():
    """Returns chapters and labs that have a twin, built already or not."""
    return _named(twins(), "notebooks/text")


def notebooks():
    """Returns every notebook of a chapter or lab, whatever its name."""
    return _both("notebooks", "ipynb")


def twins():
    """Returns every text of a chapter or lab, whatever its name."""
    return _both("notebooks/text", "md")


def _both(folder, ending):
    """Returns the files in a folder and in its `labs/`."""
    place = ROOT / folder
    found = [*place.glob(f"*.{ending}"), *place.glob(f"labs/*.{ending}")]
    return sorted(found)


def _named(paths, folder):
    """Returns what files have the name of a chapter or lab, in order."""
    found = [Chapter(name_of(path, folder)) for path in paths]
    found = [one for one in found if is_name(one.name)]
    return sorted(found, key=lambda one: (one.number, one.is_lab, one.name))


def name_of(path, folder):
    """Returns the name that a file has, such as `labs/10_hard_texts`."""
    return path.relative_to(ROOT / folder).with_suffix("").as_posix()


def is_name(name):
    """Tells whether `name` is two digits and a topic, below `labs/` or not."""
    return NAME.fullmatch(name) is not None


def link(to, name):
    """Returns the address of a notebook as another one links to it.

    Args:
        to: The name of the one that the link leads to.
        name: The name of the one that holds it, such as `20_attention`,
            `labs/10_hard_texts` or `exercises/20_attention`.
    """
    return posixpath.relpath(f"{to}.ipynb", posixpath.dirname(name) or ".")


@contextlib.contextmanager
def empty_mybert():
    """Gives a notebook that runs an empty folder for what the reader writes."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, MYBERT=folder),
    ):
        yield folder


@cache
def project():
    """Returns `pyproject.toml` as a dictionary."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def address():
    """Returns the address of the repository, which stands only there."""
    return project()["project"]["urls"]["Repository"]


def has_address():
    """Tells whether the address is set: `OWNER` stands for none."""
    return address() != NO_ADDRESS


def version():
    """Returns the version of the package, which stands only there."""
    return project()["project"]["version"]


def ref():
    """Returns the tag of a released version, `main` between releases."""
    return "main" if ".dev" in version() else f"v{version()}"


@cache
def _settings():
    return load_jupytext_configuration_file(str(ROOT / "pyproject.toml"))


def read_notebook(path):
    """Reads an `.ipynb` file."""
    return nbformat.read(path, as_version=4)


def read_twin(path):
    """Reads a MyST text as a notebook without outputs."""
    text = path.read_text("utf-8")
    return jupytext.reads(text, fmt=TWIN_FORMAT, config=_settings())


def write_notebook(notebook, path):
    """Writes an `.ipynb` file, the same bytes for the same cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(tidied(notebook)) + "\n", "utf-8")


def write_twin(notebook, path):
    """Writes the cells as MyST text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(twin_text(notebook), "utf-8")


def twin_text(notebook):
    """Returns the cells as MyST text.

    Its head says that tags are all it holds of a cell's metadata: JupyterLab
    takes the others, which fold a cell, from the notebook.
    """
    copy = tidied(notebook)
    held = _settings().cell_metadata_filter
    copy.metadata["jupytext"] = {"cell_metadata_filter": held}
    return jupytext.writes(copy, fmt=TWIN_FORMAT, config=_settings())


def rewrite(chapter, change):
    """Applies a function to both files of a chapter, and keeps what it changed.

    Each file on its own: the text may be ahead of the notebook.

    Args:
        chapter: The chapter.
        change: Changes the cells of a notebook in place.

    Returns:
        Whether one of the files is another now.
    """
    pairs = (
        (chapter.path, read_notebook, write_notebook),
        (chapter.twin, read_twin, write_twin),
    )
    changed = False
    for path, read, write in pairs:
        if path.is_file():
            notebook = read(path)
            before = twin_text(notebook)
            change(notebook)
            if twin_text(notebook) != before:
                write(notebook, path)
                changed = True
    return changed


def tidied(notebook):
    """Returns a copy that holds nothing of the machine or of the editor."""
    language = {"name": "python", "pygments_lexer": "ipython3"}
    return nbformat.v4.new_notebook(
        metadata={"kernelspec": KERNEL, "language_info": language},
        cells=_cells_with_stable_ids(notebook.cells),
    )


def _cells_with_stable_ids(cells):
    """Copies cells, each with an id that follows from its own source."""
    copies, met = [], {}
    for cell in cells:
        digest = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
        met[digest] = met.get(digest, 0) + 1
        copy = nbformat.from_dict(cell)
        copy["id"] = f"{digest}-{met[digest]}"
        copy["metadata"] = nbformat.from_dict(
            _metadata(cell.metadata.get("tags"))
        )
        copies.append(copy)
    return copies


def _metadata(tags):
    """Returns what a cell keeps: its tags, and what folds it where it may."""
    if not tags:
        return {}
    kept = {"tags": tags}
    if "hide-input" in tags:  # JupyterLab, Colab; the site reads the tag
        kept |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
    return kept


def same_cells(one, other):
    """Tells the first difference between two notebooks, or None.

    Only what both forms hold is compared: kinds, sources and tags.
    """
    pairs = zip(one.cells, other.cells, strict=False)
    for number, cells in enumerate(pairs, start=1):
        left, right = (_content(cell) for cell in cells)
        if left != right:
            return f"cell {number}: {left} is not {right}"
    if len(one.cells) != len(other.cells):
        return f"{len(one.cells)} cells against {len(other.cells)}"
    return None


def _content(cell):
    return cell.cell_type, cell.source, cell.metadata.get("tags", [])


def code_cells(notebook):
    """Returns the code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def without_magics(source):
    """Returns a cell's source without the lines that only IPython knows."""
    return "\n".join(
        "pass" if line.startswith(("%", "!")) else line
        for line in source.splitlines()
    )


def is_quote(cell):
    """Tells whether a cell shows a definition of the package."""
    return cell.cell_type == "code" and cell.source.startswith(QUOTES)


def is_answer(cell):
    """Tells whether a cell is a quote that answers a cell of the reader's."""
    return cell.cell_type == "code" and cell.source.startswith(
        FIRST_LINE_OF_AN_ANSWER
    )
