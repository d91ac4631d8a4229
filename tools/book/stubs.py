"""Breaks the quoted definitions of a chapter, one at a time.

`python tools/book/stubs.py [CHAPTER ...]` runs the chapter's cells. At each
quote it goes on with a stub in its place, which raises when it is called, and
says which cell failed. A quote whose stub fails no cell is decoration: the
chapter runs other code than it shows.
"""

import argparse
import ast
import contextlib
import io
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import book
import quotes


class StubCalledError(Exception):
    """A quoted definition was used after a stub took its place."""


def stub(source):
    """Returns a definition of the same name that raises when it is used.

    Args:
        source: A quoted definition, a function or a class.
    """
    node = ast.parse(source).body[0]
    raises = ast.parse(f"raise StubCalledError({node.name!r})").body
    if isinstance(node, ast.ClassDef):
        code = f"class {node.name}:\n    def __init__(self, *a, **k): pass\n"
        new = ast.parse(code).body[0]
        new.body[0].body = raises
    else:
        code = f"def {node.name}(*args, **kwargs): pass"
        new = ast.parse(code).body[0]
        new.body = raises
    return ast.unparse(new)


def run(source, namespace):
    """Runs a cell as IPython would show it: its prints are thrown away."""
    code = "\n".join(
        "pass" if line.startswith(("%", "!")) else line
        for line in source.splitlines()
    )
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        exec(compile(code, "<cell>", "exec"), namespace)


def skipped(cell):
    """Tells whether a run of the chapter leaves a cell out."""
    return "nbval-skip" in cell.metadata.get("tags", [])


def first_failure(cells, number, namespace):
    """Runs cells with a stub in the place of a quote.

    Args:
        cells: The code cells of a chapter.
        number: The index of the quote.
        namespace: What the cells before it left; it is not changed, but what
            it holds may be.

    Returns:
        The index of the cell that used the stub, or the error of another
        kind, or None where no cell failed.
    """
    trial = {**namespace, "StubCalledError": StubCalledError}
    run(stub(cells[number].source), trial)
    for later in range(number + 1, len(cells)):
        if skipped(cells[later]):
            continue
        try:
            run(cells[later].source, trial)
        except StubCalledError:
            return later
        except Exception as error:
            return f"{type(error).__name__} in cell {later}: {error}"
    return None


def fresh_failure(cells, number):
    """The same from a namespace that nobody used before."""
    namespace = new_namespace()
    for cell in cells[:number]:
        if not skipped(cell):
            run(cell.source, namespace)
    return first_failure(cells, number, namespace)


def new_namespace():
    """Returns what a kernel starts with."""
    return {"__name__": "__main__", "display": lambda *things: None}


def trial(name, wanted=None):
    """Breaks each quote of a chapter.

    Args:
        name: The chapter, such as `20_attention`.
        wanted: Optional dotted name; other quotes are left whole.

    Returns:
        `(dotted name, index of the cell that failed)` for each quote; in the
        place of the index None where the chapter passed, and a text where
        another error came first.
    """
    os.chdir(book.ROOT / "notebooks")
    notebook = book.read_notebook(book.Chapter(name).path)
    cells = book.code_cells(notebook)
    namespace, found = new_namespace(), []
    for number, cell in enumerate(cells):
        if book.is_quote(cell):
            dotted = quotes.name_of(cell)
            if wanted in (None, dotted):
                failed = first_failure(cells, number, namespace)
                if not isinstance(failed, int):
                    # What ran ahead may have changed what the cells share.
                    failed = fresh_failure(cells, number)
                found.append((dotted, failed))
        if not skipped(cell):
            run(cell.source, namespace)
    return found


def isolated_trial(name):
    """Breaks the quotes of a chapter in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(trial, name).result()


def main():
    """Prints for each quote which cell its stub fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    survivors = 0
    for name in names or [chapter.name for chapter in book.chapters()]:
        start = time.perf_counter()
        results = isolated_trial(name)
        for dotted, failed in results:
            fine = isinstance(failed, int)
            survivors += not fine
            print(f"{name}: {dotted}: {'cell ' if fine else ''}{failed}")
        seconds = time.perf_counter() - start
        print(f"{name}: {len(results)} quotes, {seconds:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
