"""The first code cell: the same everywhere, but for what the reader writes.

A chapter whose cells stand under `@part` imports the workbench there and starts
it, with the picture of the files of `mybert`, and a notebook that imports from
`mybert` starts it.
"""

import ast
import re

import book

TAGS = ["nbval-ignore-output"]
CORES = re.compile(r", \d+ cores?$", re.MULTILINE)  # of this machine
# TensorFlow says once, on a processor without AVX-512, that it goes on.
FALLBACK = "oneDNN supports DT_BOOL only on platforms with AVX-512"
_PARTS = re.compile(r"^mybert: \d+ of (\d+) parts", re.MULTILINE)
_PART = re.compile(r"^@part\b", re.MULTILINE)
_NUMBER = re.compile(r"# (\d\d) ")  # of a chapter, in its title
_MYBERT = re.compile(r"^(?:from|import) mybert\b", re.MULTILINE)


# Where there is neither an address nor a wheel, pip says that this file is
# missing. The name of another account would install a stranger's code.
NO_WHEEL = "./bertbook.whl"


def install_line():
    """Returns what pip installs where there is no wheel.

    From the address, a release by its tag; a missing file while there is none.
    """
    if not book.has_address():
        return NO_WHEEL
    tag = "" if book.ref() == "main" else f"@{book.ref()}"
    return f"bertbook[book] @ git+{book.address()}{tag}"


SOURCE = f"""\
# Not compared: it prints the versions and the device of this machine.
import subprocess
import sys
from glob import glob

if "google.colab" in sys.modules or glob("bertbook-*.whl"):
    package = "{install_line()}"
    if wheels := glob("bertbook-*.whl") or glob("/content/bertbook-*.whl"):
        package = f"{{max(wheels)}}[book]"
    command = [sys.executable, "-m", "pip", "install", "-q", package]
    if "google.colab" in sys.modules:  # Colab has the rest already
        command.append("--no-deps")
    if subprocess.run(command).returncode:
        raise SystemExit("No bertbook. Upload its wheel, run this cell again.")

import bertbook as bb

bb.setup()"""


def with_start(names, chapter=""):
    """Returns the source that imports from the workbench and starts it."""
    head, _, call = SOURCE.rpartition("\n\n")
    line = f"from bertbook.book.workbench import {names}"
    return f"{head}\n{line}\n\n{call}\nstart({chapter})"


def source_for(notebook):
    """Returns the source that a notebook must begin with."""
    cells = [c for c in book.code_cells(notebook) if not book.is_quote(c)]
    code = "\n".join(cell.source for cell in cells)
    number = _NUMBER.match(notebook.cells[0].source)
    chapter = f'"{number[1]}"' if number else ""
    if _PART.search(code):
        return with_start("book, part, start", chapter)
    if not _MYBERT.search(code):
        return SOURCE
    return with_start("start", chapter if chapter == '"00"' else "")


def is_first(cell):
    """Tells whether a code cell is that of `source_for`."""
    return cell.source.startswith(SOURCE.rpartition("\n\n")[0])


def place(notebook):
    """Puts the common source and tags into the first code cell.

    A notebook whose first code cell is something else gets a new cell before
    it.

    Args:
        notebook: The notebook, changed in place.
    """
    cells = book.code_cells(notebook)
    if cells and "bb.setup()" in cells[0].source:
        cell = cells[0]
    else:
        cell = book.nbformat.v4.new_code_cell()
        place = notebook.cells.index(cells[0]) if cells else 1
        notebook.cells.insert(place, cell)
    cell.source = source_for(notebook)
    cell.metadata["tags"] = list(TAGS)


def outdated(notebook):
    """Returns the line of a stored output that is of an older state.

    Args:
        notebook: An executed notebook.

    Returns:
        The line with another version than `pyproject.toml`, or with another
        number of parts than `mybert` has; None where there is none.
    """
    outputs = book.code_cells(notebook)[0].outputs
    text = "".join(output.get("text", "") for output in outputs)
    line = text.split("\n")[0]
    if not line.startswith(f"bertbook {book.version()}, "):
        return line
    told = _PARTS.search(text)
    return told[0] if told and int(told[1]) != count_parts() else None


def count_parts():
    """Returns how many parts `mybert` has, without importing them."""
    path = book.ROOT / "bertbook" / "book" / "parts" / "__init__.py"
    tables = ast.walk(ast.parse(path.read_text("utf-8")))
    return sum(len(n.keys) for n in tables if isinstance(n, ast.Dict))


def forget_processor(notebook):
    """Drops what outputs say of this processor alone.

    Args:
        notebook: An executed notebook, changed in place.
    """
    for output in book.code_cells(notebook)[0].outputs:
        if output.get("text"):
            output["text"] = CORES.sub("", output.text)
    for cell in book.code_cells(notebook):
        cell["outputs"] = [
            output
            for output in cell.get("outputs", [])
            if not _is_fallback(output)
        ]


def _is_fallback(output):
    """Returns whether an output is that line of TensorFlow and no more."""
    lines = output.get("text", "").strip().splitlines()
    return len(lines) == 1 and FALLBACK in lines[0]
