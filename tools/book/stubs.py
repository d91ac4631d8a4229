"""Breaks the quoted definitions of a chapter or lab, one at a time.

`python tools/book/stubs.py [CHAPTER ...]` runs the chapter's cells. At each
quote it goes on with a stub in its place, which raises when it is called, and
says which cell failed. A quote whose stub fails no cell is decoration: the
chapter runs other code than it shows.
"""

import argparse
import ast
import contextlib
import io
import linecache
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context

import book
import quotes

_numbers = count(1)  # of the cells that were run


class StubCalledError(Exception):
    """A quoted definition was used after a stub took its place."""


class _RaisingClass(type):
    def __getattr__(cls, name):
        return _refuse(cls.__name__, name)


class StubbedClass(metaclass=_RaisingClass):
    """A class that raises when it is called or asked for what it had."""

    def __init__(self, *args, **kwargs):
        raise StubCalledError(type(self).__name__)

    def __getattr__(self, name):
        return _refuse(type(self).__name__, name)


def _refuse(owner, name):
    """Raises for an attribute; Python itself asks for those with `__`."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise StubCalledError(f"{owner}.{name}")


def stub(source):
    """Returns a definition of the same name that raises when it is used.

    It stands under no decorator: `@book` would put the whole one in its place.

    Args:
        source: A quoted definition, a function or a class.
    """
    node = ast.parse(source).body[0]
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}(StubbedClass):\n    pass"
    return (
        f"def {node.name}(*args, **kwargs):\n"
        f"    raise StubCalledError({node.name!r})"
    )


def run(source, namespace):
    """Runs a cell as IPython would show it, and returns what it printed."""
    code = book.without_magics(source)
    name = f"<cell {next(_numbers)}>"
    # `inspect.getsource` works in a notebook, and TensorFlow needs it.
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        exec(compile(code, name, "exec"), namespace)
    return shown.getvalue()


def skipped(cell):
    """Tells whether a run of the chapter leaves a cell out."""
    return "nbval-skip" in cell.metadata.get("tags", [])


def first_failure(cells, number, namespace):
    """Runs cells with a stub in place of a quote.

    Args:
        cells: The code cells of a chapter.
        number: The index of the quote.
        namespace: What the cells before it left; it is not changed, but what
            it holds may be.

    Returns:
        The index of the cell that used the stub, or the error of another
        kind, or None where no cell failed.
    """
    return _failure(cells, number, dict(namespace))


def fresh_failure(cells, number):
    """The same from a namespace that nobody used before.

    It is not a copy: functions that were defined in it see the stub.
    """
    return _failure(cells, number, namespace_before(cells, number))


def _failure(cells, number, namespace):
    namespace |= {c.__name__: c for c in (StubCalledError, StubbedClass)}
    run(stub(cells[number].source), namespace)
    for later in range(number + 1, len(cells)):
        if skipped(cells[later]):
            continue
        try:
            run(cells[later].source, namespace)
        except Exception as error:
            if comes_from_stub(error):
                return later
            return f"{type(error).__name__} in code cell {later + 1}: {error}"
    return None


def comes_from_stub(error):
    """Tells whether a stub raised an error, or what the error came from."""
    while error is not None:
        is_stub = isinstance(error, StubCalledError)
        if is_stub or StubCalledError.__name__ in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def namespace_before(cells, number):
    """Runs the cells before one and returns what they leave.

    Raises:
        RuntimeError: One of them fails, with no stub in it.
    """
    namespace = new_namespace()
    for place, cell in enumerate(cells[:number], start=1):
        if skipped(cell):
            continue
        try:
            run(cell.source, namespace)
        except Exception as error:
            raise RuntimeError(
                f"code cell {place} fails without a stub: "
                f"{type(error).__name__}: {error}"
            ) from None
    return namespace


def new_namespace():
    """Returns what a kernel starts with."""
    return {"__name__": "__main__", "display": lambda *things: None}


def trial(name):
    """Breaks each quote of a chapter.

    Args:
        name: The chapter or lab, such as `20_attention`.

    Returns:
        `(dotted name, index of the cell that failed)` for each quote; in the
        place of the index None where the chapter passed, as it does when
        it swallows the error, and a text where another error came first.

    Raises:
        RuntimeError: A cell fails with no stub in the chapter.
    """
    path = book.Chapter(name).path
    os.chdir(path.parent)
    notebook = book.read_notebook(path)
    cells = book.code_cells(notebook)
    namespace, found = new_namespace(), []
    for number, cell in enumerate(cells):
        if book.is_quote(cell):
            failed = first_failure(cells, number, namespace)
            if not isinstance(failed, int):
                # What ran ahead may have changed what the cells share.
                failed = fresh_failure(cells, number)
            found.append((quotes.name_of(cell), failed))
        if not skipped(cell):
            try:
                run(cell.source, namespace)
            except Exception:  # for the same reason
                namespace = namespace_before(cells, number + 1)
    return found


def isolated_trial(name):
    """Breaks the quotes of a chapter in a process of its own."""
    return isolated(trial, name)


def isolated(function, *arguments):
    """Calls a function in a process of its own, as on a reader's machine."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_on_cpu, function, *arguments).result()


def _on_cpu(function, *arguments):
    for name in ("BERTBOOK_DATA", "BERTBOOK_FULL", "MPLBACKEND"):
        os.environ.pop(name, None)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    with book.empty_mybert():
        return function(*arguments)


def main():
    """Prints for each quote which cell its stub fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    survivors = 0
    for name in names or [one.name for one in book.everything()]:
        start = time.perf_counter()
        results = isolated_trial(name)
        for dotted, failed in results:
            fine = isinstance(failed, int)
            survivors += not fine
            where = f"code cell {failed + 1}" if fine else failed
            print(f"{name}: {dotted}: {where}")
        killed = sum(isinstance(failed, int) for _, failed in results)
        seconds = time.perf_counter() - start
        print(
            f"{name}: {len(results)} quotes, {killed} killed, {seconds:.0f} s"
        )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
