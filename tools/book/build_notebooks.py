"""Makes the executed notebooks from the twins.

`python tools/book/build_notebooks.py 20_attention labs/10_hard_texts` reads
`notebooks/text/20_attention.md` and the text of the lab, brings badge, first
cell, quotes, links, captions and format up to date, runs all cells in a clean
kernel on the CPU, and writes both files. Without a name it does so for every
chapter and lab. Two runs give the same bytes, but for outputs that are not
compared: no time, no path and no machine is written.

The time and memory that a chapter took are printed, and a chapter that takes
more than one and a half times what its opening says fails.

With `--first-cell` it runs the first cell alone, once, and stores its output in
every notebook: that is all that a change of the version asks for.
"""

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from nbclient import NotebookClient
from nbclient.exceptions import (
    CellControlSignal,
    CellExecutionError,
    DeadKernelError,
)

import badges
import book
import first_cell
import headings
import links
import quotes

TOLERANCE = 1.5  # times what the opening says
CELL_TIMEOUT = 300  # seconds
FAILURES = (
    CellControlSignal,
    CellExecutionError,
    DeadKernelError,
    OSError,
    ValueError,
)


def read(chapter, from_notebook=False):
    """Returns the chapter's cells, from the twin unless told otherwise.

    Raises:
        FileNotFoundError: The chapter has no such file.
    """
    path = chapter.path if from_notebook else chapter.twin
    if not path.is_file():
        raise FileNotFoundError(
            f"`{chapter.name}` must have a file in notebooks/"
            f"{'' if from_notebook else 'text/'}. "
            f"Received: {path.relative_to(book.ROOT)}."
        )
    return book.read_notebook(path) if from_notebook else book.read_twin(path)


def refresh(notebook, name):
    """Brings all that the tools write up to date, in place."""
    badges.place(notebook, name)
    quotes.refresh(notebook)
    links.refresh(notebook, name)
    format_cells(notebook)


def format_cells(notebook):
    """Formats the code cells with ruff, all but the quotes, in place."""
    cells = [c for c in book.code_cells(notebook) if not book.is_quote(c)]
    plain = book.nbformat.v4.new_notebook(cells=cells)
    command = [sys.executable, "-m", "ruff", "format"]
    finished = subprocess.run(
        [*command, "--stdin-filename", str(book.ROOT / "cells.ipynb"), "-"],
        input=book.nbformat.writes(plain),
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise ValueError(
            "`notebook` must hold Python that can be formatted. "
            f"Received: {finished.stderr.strip()}"
        )
    formatted = json.loads(finished.stdout)["cells"]
    for cell, new in zip(cells, formatted, strict=True):
        cell.source = "".join(new["source"])


def execute(notebook, folder):
    """Runs all cells in a clean kernel, in place.

    Args:
        notebook: The notebook.
        folder: Where the kernel starts, as that of a reader does.

    Returns:
        The seconds that it took and the most memory in GB, kernel and child
        processes each on their own.
    """
    for cell in book.code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name=book.KERNEL["name"],
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
    )
    start = time.perf_counter()
    with book.empty_mybert():
        client.execute()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return seconds, peak / (1e9 if sys.platform == "darwin" else 1e6)


def build(name, from_notebook=False):
    """Builds one chapter or lab and writes both of its files.

    Returns:
        One line on time and memory, and whether both are within bounds.
    """
    chapter = book.Chapter(name)
    notebook = read(chapter, from_notebook)
    refresh(notebook, name)
    limits = headings.cost(notebook.cells[0].source)
    seconds, peak = execute(notebook, chapter.path.parent)
    first_cell.forget_processor(notebook)
    book.write_notebook(notebook, chapter.path)
    book.write_twin(notebook, chapter.twin)
    fits = seconds <= TOLERANCE * limits[0] and peak <= TOLERANCE * limits[1]
    line = (
        f"{name}: {seconds:.0f} s of {limits[0]:.0f}, "
        f"{peak:.1f} GB of {limits[1]:.1f}"
    )
    return line, fits


def store_first_output(names):
    """Runs each form of the first cell once and stores its output.

    Args:
        names: The chapters and labs.

    Returns:
        Those that changed.

    Raises:
        ValueError: The package that a kernel imports has another version than
            `pyproject.toml`, or a notebook has another first cell.
    """
    changed, outputs = [], {}
    for name in names:
        path = book.Chapter(name).path
        notebook = book.read_notebook(path)
        source = first_cell.source_for(notebook)
        cell = book.code_cells(notebook)[0]
        if cell.source != source:
            raise ValueError(
                "A notebook must begin with the common first cell; run `make "
                f"badges`. Received: {name}."
            )
        if source not in outputs:
            outputs[source] = first_outputs(source)
        if cell.outputs != outputs[source]:
            cell.outputs = outputs[source]
            book.write_notebook(notebook, path)
            changed.append(name)
    return changed


def first_outputs(source):
    """Runs a first cell and returns what it shows."""
    cell = book.nbformat.v4.new_code_cell(source)
    fresh = book.nbformat.v4.new_notebook(cells=[cell])
    execute(fresh, book.ROOT / "notebooks")
    first_cell.forget_processor(fresh)
    if line := first_cell.outdated(fresh):
        raise ValueError(
            "The installed package must have the version of pyproject.toml, "
            f"{book.version()}. Received: {line!r}. Install it again."
        )
    return cell.outputs


def use_plain_environment():
    """Hides from the kernels what a reader's machine may not have."""
    for name in ("BERTBOOK_DATA", "BERTBOOK_FULL", "MPLBACKEND"):
        os.environ.pop(name, None)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["KERAS_BACKEND"] = "tensorflow"


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="*", help="such as 20_attention or labs/10_hard_texts"
    )
    parser.add_argument(
        "--from-notebook",
        action="store_true",
        help="take the cells of the notebook and rewrite the twin",
    )
    parser.add_argument(
        "--first-cell",
        action="store_true",
        help="run the first cell alone and store its output everywhere",
    )
    return parser.parse_args()


def main():
    """Builds the chapters, each in a process of its own.

    Returns:
        The exit status: 1 when a chapter failed or went beyond its bounds.
    """
    options = arguments()
    use_plain_environment()
    names = options.names or [one.name for one in book.written()]
    if not names:
        print("notebooks/text/ holds no chapter (NN_topic.md).")
        return 1
    if options.first_cell:
        for name in store_first_output(names):
            print(f"{name}: the first output")
        return 0
    status = 0
    for name in names:
        # A fresh process: its children's peak memory is this chapter's alone.
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            try:
                line, fits = pool.submit(
                    build, name, options.from_notebook
                ).result()
            except FAILURES as error:
                line, fits = f"{name}: {error}", False
        print(line if fits else f"FAILED {line}")
        status = status if fits else 1
    return status


if __name__ == "__main__":
    sys.exit(main())
