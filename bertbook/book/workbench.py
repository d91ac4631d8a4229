"""Your turn: what the reader writes is checked, kept and used.

A chapter calls `start` first. A cell under `part` holds what the reader writes;
the cell after it, under `book`, what the book has in its place. Both give back
what is used from there on: the reader's where it passed, else the book's.
`check` does the same for functions that one notebook needs and `mybert` does
not.
"""

import ast
import contextlib
import inspect
import linecache
import re
import signal
import symtable
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import Any

from bertbook.book import mybert
from bertbook.book.comparing import brief, collected, difference
from bertbook.book.mybert import BOOKS, YOURS
from bertbook.book.parts import PARTS
from bertbook.book.parts.part import ChangedArgumentError, outcome

SECONDS = 20  # of computing that a call may take
PATIENCE = 6  # times as long by the clock, where others compute beside it
_NODE = re.compile(r"^\{\{.*?\}\} ")  # of a graph, in errors of TensorFlow
# What differs from run to run in an error of Keras: the counter of a layer,
# an address, and the numbers of tensors.
_COUNTER = re.compile(r"_\d+\b| at 0x[0-9a-f]+|Inputs received: .*", re.DOTALL)
_COLOR = re.compile(r"(?:\x1b|\\x1b)\[[0-9;]*m")  # of a KeyError, too
_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
Results = dict[str, Any]  # of calls by their names
_IMPORTS = ast.Import, ast.ImportFrom
_PACKAGES = {YOURS: "_reader", BOOKS: "_book"}  # in which a part is tried
_passed: dict[str, Any] = {}  # practice of this notebook that was right


def start(chapter: str = "") -> Any:
    """Completes `mybert`, loads it, and says in a line whose its parts are.

    Args:
        chapter: The two digits of the chapter in hand.

    Returns:
        A picture of the files where there is a chapter, else None.
    """
    if "google.colab" in sys.modules:
        _offer_drive()
    for file in mybert.FILES:
        mybert.save(file, mybert.sections(file))
    mine = _mine()
    names = f" ({', '.join(mine)})" if mine else ""
    print(f"mybert: {len(mine)} of {len(PARTS)} parts are yours{names}")
    for file in mybert.FILES:
        for name, (owner, source) in mybert.sections(file).items():
            if owner == BOOKS or mybert.has_passed(name, source):
                continue
            if words := _damage(name, source):
                print(f"{name} in mybert/{file}.py: {_sentence(words)}")
    mybert.reload()
    return _picture(chapter, mine) if chapter else None


def _picture(chapter: str, mine: list[str]) -> Any:
    """Draws the files of `mybert` as they are in a chapter."""
    from bertbook.figures import diagrams

    parts = {
        file: [
            (name, part.chapter, name in mine)
            for name, part in PARTS.items()
            if part.file == file
        ]
        for file in mybert.FILES
    }
    return diagrams.package_files(parts, chapter)


def part(thing: Any) -> Any:
    """Checks a definition of the reader's, and keeps it where it is right.

    Use it as a decorator. It prints what is wrong, or where the part is kept,
    and whose is used from there on.

    Returns:
        The reader's definition if it passed now or before, else the book's.

    Raises:
        ValueError: The name is no part of `mybert`.
    """
    name = thing.__name__
    if name not in PARTS:
        raise ValueError(
            f"`{name}` must be a part of mybert: {', '.join(PARTS)}. "
            f"Received: {name!r}."
        )
    file = PARTS[name].file
    sections = mybert.sections(file)
    frame = sys._getframe(1)
    source = _source_in(_cell_of(frame), name, frame.f_globals)
    if not source:
        said = "its cell cannot be read; is there a `%%time` above it?"
    elif not _is_written(source, name):
        said = "not written yet"
    elif words := fault(name, source):
        said = f"not yet: {words}"
    else:
        said = f"right, kept in mybert/{file}.py"
        mybert.save(file, sections | {name: (YOURS, source)}, passed=name)
    print(f"{name}: {_sentence(said)}")
    used = _in_force(name)
    owner = _owner(name)
    if owner == YOURS and not said.startswith("right"):
        owner += ", as it was before"
    print(f"Used from here on: {owner}.")
    return used


def book(thing: Any) -> Any:
    """Puts what the reader wrote in the place of what the book shows.

    Use it as a decorator of the answer to a part, or to a function that
    `check` has seen.

    Returns:
        The reader's definition if it passed, else the book's.
    """
    name = thing.__name__
    kept = name in PARTS
    used = _in_force(name) if kept else _passed.get(name, thing)
    owner = _owner(name) if kept else YOURS if name in _passed else BOOKS
    print(f"Used from here on: {owner}.")
    return used


def check(function: Callable, *cases: tuple[tuple, Any]) -> None:
    """Prints whether a function is right that only this notebook needs.

    Args:
        function: The one that the reader wrote. While its body is `...`, the
            line says that it is not written yet.
        *cases: Pairs of the arguments, as a tuple, and the right value, as
            `difference` compares them. What a generator yields is a list.

    Raises:
        ValueError: There are no cases.
    """
    if not cases:
        raise ValueError("`cases` must hold at least one. Received: none.")
    name = getattr(function, "__name__", type(function).__name__)
    _passed.pop(name, None)
    code = getattr(function, "__code__", None)
    for arguments, expected in cases:
        try:
            received = collected(outcome(function, arguments))
        except Exception as error:
            print(
                f"{name}: {_error_in_words(error, code and code.co_filename)}"
            )
            return
        if received is None and expected is not None:
            print(f"{name}: {_nothing(function)}")
            return
        if problem := difference(received, expected):
            print(f"{name}({', '.join(map(brief, arguments))}): {problem}")
            return
    _passed[name] = function
    print(f"{name}: right, {len(cases)} of {len(cases)} checks")


def trace(agrees: Callable[[ModuleType], Any]) -> list[str]:
    """Finds the parts of the reader's that make the whole disagree.

    Puts the book's in the place of each part of the reader's, one at a time,
    then of more and more of them, until the whole agrees.

    Args:
        agrees: Takes a package such as `mybert` and tells whether it does what
            it should. An error counts as no.

    Returns:
        The names of the parts at fault: none where the whole agrees.
    """
    places = {
        name: file
        for file in mybert.FILES
        for name, (owner, _) in mybert.sections(file).items()
        if owner == YOURS and name in mybert.books(file)
    }

    def holds(swapped):
        changes = {
            name: (BOOKS, mybert.books(places[name])[name]) for name in swapped
        }
        with contextlib.suppress(Exception):
            texts = mybert.texts(changes, mine=True)
            return bool(agrees(mybert.run("_swapped", texts)))
        return False

    mine = list(places)
    tries = [[], *([name] for name in mine)]
    tries += [mine[:count] for count in range(2, len(mine) + 1)]
    found = next((swapped for swapped in tries if holds(swapped)), None)
    if found is None:
        print("It disagrees with the book's parts, too.")
    for name in found or []:
        print(f"At fault: {name}, in mybert/{places[name]}.py.")
    return found or []


def fault(name: str, source: str) -> str:
    """Returns what is wrong with a part, in words; "" if nothing is.

    All other parts are the book's.

    Args:
        name: Of the part.
        source: Its definition, with the imports and helpers that it needs.
    """
    try:
        clash = _clash(name, source)
    except SyntaxError as error:
        return (
            f"line {error.lineno}, `{(error.text or '').strip()}`: {error.msg}"
        )
    if clash:
        return f"`{clash}` is another thing in the file: call yours otherwise"
    return _fault_in(name, source, _tried(name, YOURS, source))


def _fault_in(name: str, source: str, got: Results) -> str:
    """Returns in words what the results of a source show."""
    right = _right(name)
    if words := _raw_fault(got, right):
        return words
    if _equal(got, right):
        return ""
    for place, (_, _, words) in enumerate(PARTS[name].mistakes):
        if _equal(got, _tried_mistake(name, place)):
            return words
    for one in got.values():
        if isinstance(one, BaseException):
            file = f"<{_PACKAGES[YOURS]}.{PARTS[name].file}>"
            return _error_in_words(one, file, source, _answer(name))
    return _difference_in_words(got, right)


def edited(name: str, place: int) -> str:
    """Returns the book's source of a part with one of its mistakes.

    Raises:
        ValueError: The book's source does not hold what is edited.
    """
    old, new, _ = PARTS[name].mistakes[place]
    if old not in (source := _answer(name)):
        raise ValueError(f"`{name}` must hold what is edited: {old!r}.")
    return source.replace(old, new)


# ------------------------------------------------------------ trying a part


def _tried(name: str, owner: str, source: str) -> Results:
    """Runs a part among the book's others.

    Args:
        name: Of the part.
        owner: Whose the source is: the reader's comes with their imports, and
            its lines stay to be quoted while the book's are run.
        source: Its definition.

    Returns:
        The result of each call by its name, or the error that it raised.
    """
    part = PARTS[name]
    texts = mybert.texts({name: (owner, source)}, mine=False)
    try:
        package = mybert.run(_PACKAGES[owner], texts)
        thing = getattr(getattr(package, part.file), name)
        calls = (
            part.attempt(thing)
            if part.attempt
            else {
                f"`{name}({', '.join(map(brief, each))})`": partial(
                    outcome, thing, each
                )
                for each in part.arguments
            }
        )
    except (Exception, SystemExit) as error:
        _forget_unmade()
        return {"": error}
    results: Results = {}
    for label, call in calls.items():
        try:
            with _time_limit(), warnings.catch_warnings(action="ignore"):
                results[label] = call()
        except (Exception, SystemExit) as error:
            results[label] = error
            if isinstance(error, TimeoutError):
                break
    _forget_unmade()
    return results


def _forget_unmade() -> None:
    """Takes from Keras' list the variables that a wrong part left half made.

    Else the next model that is built, right as it may be, would fail on them.
    """
    keras = sys.modules.get("keras.src.backend.common.global_state")
    if keras is not None:  # parts on text need no Keras
        keras.set_global_attribute("uninitialized_variables", [])


@cache
def _right(name: str) -> Results:
    return _tried(name, BOOKS, _answer(name))


@cache
def _tried_mistake(name: str, place: int) -> Results:
    return _tried(name, BOOKS, edited(name, place))


class _Late(BaseException):
    """Time is over; no `except Exception` in a loop holds it up."""


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raises TimeoutError where a loop does not end, on Linux and macOS."""
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "SIGALRM"):
        yield
        return

    began, computed = time.monotonic(), time.process_time()

    def stop(number, frame):
        signal.alarm(1)  # again, where the error is lost in a callback
        waits = time.monotonic() - began < PATIENCE * SECONDS
        if not waits or time.process_time() - computed >= SECONDS:
            raise _Late

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    except _Late as error:
        late = f"not done after {SECONDS} s: does the loop end?"
        raise TimeoutError(late).with_traceback(error.__traceback__) from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------ in words


def _raw_fault(got: Results, right: Results) -> str:
    """Returns what is wrong before values are compared, or ""."""
    for label, one in got.items():
        other = right.get(label)
        if isinstance(one, BaseException):
            continue
        if one is None and other is not None:
            return "it returns nothing: is there a `return`?"
        if isinstance(one, Iterator):
            return "it yields its items one by one; return a list of them"
        if isinstance(other, list) and not isinstance(one, list):
            return f"it must return a list; it returns {_kind(one)}"
    return ""


def _kind(value: Any) -> str:
    """Returns the type of a value with its article."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _difference_in_words(got: Results, right: Results) -> str:
    """Returns the first difference."""
    for label, one in got.items():
        if problem := difference(one, right[label]):
            return f"{label}: {problem}" if label else problem
    return ""


def _equal(got: Results, right: Results) -> bool:
    """Compares results, and errors by what they say."""

    def same(one, other):
        if isinstance(one, BaseException) or isinstance(other, BaseException):
            said = [_COUNTER.sub("", str(error)) for error in (one, other)]
            return type(one) is type(other) and said[0] == said[1]
        with contextlib.suppress(TypeError):  # of a kind that is not compared
            return not difference(one, other)
        return False

    return got.keys() == right.keys() and all(
        same(one, right[label]) for label, one in got.items()
    )


def _error_in_words(
    error: BaseException, file: str | None, source: str = "", answer: str = ""
) -> str:
    """Returns what an error says, and in which line of the reader's.

    Args:
        error: What a call raised.
        file: Whose lines are looked at.
        source: The reader's source, if the file holds more than that.
        answer: The book's, whose lines are the last to blame.
    """
    if isinstance(error, ChangedArgumentError):
        return str(error)
    if isinstance(error, NameError) and (name := _UNKNOWN.search(str(error))):
        return (  # Keras raises it anew, without its `name`
            f"`{name[1]}` is not known there: import or define it in this "
            "cell, or take it as an argument"
        )
    frames = traceback.extract_tb(error.__traceback__)
    given = set(map(str.strip, answer.split("\n")))
    own = [f.line or "" for f in frames if f.filename == file]
    own = [line for line in own if not source or line in source]
    own = [line for line in own if line not in given] or own
    where = f", in your line `{own[-1]}`" if own else ""
    words = str(error)
    if isinstance(error, KeyError) and "\\n" in words:
        words = str(error.args[0])  # of Keras, with its line ends
    lines = [_COLOR.sub("", line).strip() for line in words.splitlines()]
    if lines and lines[0].startswith("Exception encountered when calling"):
        del lines[0]  # of Keras, which then says what it was
    said = _NODE.sub("", next(filter(None, lines), ""))
    return f"{type(error).__name__}{where}: {said[:200]}"


def _sentence(words: str) -> str:
    return words if words.endswith(("?", "!", ".")) else f"{words}."


def _nothing(function: Callable) -> str:
    """Tells a function that is not written from one without `return`."""
    try:
        source = inspect.cleandoc("\n" + inspect.getsource(function))
        written = _is_written(source, function.__name__)
    except (AttributeError, OSError, TypeError, SyntaxError):
        written = False
    if written:
        return "it returns nothing: is there a `return`?"
    return "not written yet"


# --------------------------------------------------------------- the sources


def _cell_of(frame: Any) -> str:
    """Returns the source of the cell that runs."""
    return "".join(linecache.getlines(frame.f_code.co_filename))


def _source_in(cell: str, name: str, names: dict[str, Any]) -> str:
    """Returns a definition of a cell with all of the cell that it needs.

    Args:
        cell: Its source.
        name: Of the definition.
        names: What the notebook knows, to recognize the decorator.
    """
    tree, lines = ast.parse(_without_magics(cell)), cell.splitlines()
    nodes = [
        node
        for node in tree.body
        if not _is_left_out(node) and not (_binds(node) & PARTS.keys() - {name})
    ]
    kept, needed = [], {name}
    while new := [
        node
        for node in nodes
        if node not in kept
        and (isinstance(node, _IMPORTS) or _binds(node) & needed)
    ]:
        kept += new
        needed |= {used for node in new for used in _uses(node)}
    pieces = []
    for node in sorted(kept, key=nodes.index):
        decorators = [
            f"@{ast.unparse(one)}"
            for one in getattr(node, "decorator_list", [])
            if not _is_part(one, names)
        ]
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        pieces.append("\n".join([*decorators, text]))
    return "\n\n\n".join(pieces)


def _is_left_out(node: ast.stmt) -> bool:
    """Returns whether an import is not for mybert: bertbook, __future__."""
    modules = []
    if isinstance(node, ast.ImportFrom):
        modules = [node.module or ""]
    elif isinstance(node, ast.Import):
        modules = [one.name for one in node.names]
    return any(m.split(".")[0] in ("bertbook", "__future__") for m in modules)


def _is_part(decorator: ast.expr, names: dict[str, Any]) -> bool:
    """Returns whether a decorator is `part`, whatever it is called."""
    with contextlib.suppress(Exception):
        if isinstance(decorator, ast.Name | ast.Attribute):
            return eval(ast.unparse(decorator), names) is part
    return False


def _without_magics(cell: str) -> str:
    """Blanks the lines that only IPython knows."""
    return "\n".join(
        "" if line.startswith(("%", "!")) else line
        for line in cell.splitlines()
    )


def _binds(node: ast.stmt) -> set[str]:
    """Returns the names that a statement defines or changes."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return {node.name}
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            found.add(one.id)
        elif isinstance(one, ast.FunctionDef | ast.ClassDef):
            found.add(one.name)
        elif isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store):
            found |= _base(one.value)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func  # a call that changes it
        if isinstance(function, ast.Attribute):
            found |= _base(function.value)
    return found


def _base(node: ast.expr) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) else set()


def _uses(node: ast.stmt) -> set[str]:
    """Returns the names that a statement takes from around it."""

    def walk(table):
        for symbol in table.get_symbols():
            outer = symbol.is_global() or table.get_type() == "module"
            if outer and symbol.is_referenced():
                yield symbol.get_name()
        for child in table.get_children():
            yield from walk(child)

    return set(walk(symtable.symtable(ast.unparse(node), "cell", "exec")))


def _is_written(source: str, name: str) -> bool:
    """Returns whether nothing in a definition is still to be written."""
    for node in ast.parse(source).body:
        if getattr(node, "name", "") == name:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            return not any(map(_is_stub, inside))
    return True


def _is_stub(node: ast.stmt) -> bool:
    """Returns whether a function ends in `...` and returns nothing."""
    if not isinstance(node, ast.FunctionDef):
        return False
    results = ast.Return, ast.Yield, ast.YieldFrom
    returns = any(isinstance(one, results) for one in ast.walk(node))
    return ast.unparse(node.body[-1]) == "..." and not returns


def _clash(name: str, source: str) -> str:
    """Returns what a source binds and the rest of its file has, or ""."""
    file = PARTS[name].file
    own = [n for n in ast.parse(source).body if not isinstance(n, _IMPORTS)]
    mine = {bound: ast.unparse(n) for n in own for bound in _binds(n)}
    taken: dict[str, str] = {}
    for other, (_, text) in mybert.sections(file).items():
        if other != name and mybert.is_usable(other, text):
            for node in ast.parse(text).body:
                taken |= dict.fromkeys(_binds(node), ast.unparse(node))
    taken |= dict.fromkeys(mybert.names_of_head(file), "")
    return next(
        (
            bound
            for bound, text in mine.items()
            if bound != name and taken.get(bound, text) != text
        ),
        "",
    )


def _damage(name: str, source: str) -> str:
    """Returns what is wrong with a section of the reader's, or ""."""
    if name in PARTS:
        words = fault(name, source)
        return f"it does not pass any more: {words}" if words else ""
    if mybert.is_usable(name, source):
        return ""
    return f"it does not define `{name}`; the book's is used"


def _answer(name: str) -> str:
    return mybert.books(PARTS[name].file)[name]


def _section(name: str) -> tuple[str, str]:
    return mybert.sections(PARTS[name].file)[name]


def _mine() -> list[str]:
    return [name for name in PARTS if _section(name)[0] == YOURS]


def _owner(name: str) -> str:
    """Returns whose definition is used, after `_in_force`."""
    owner, source = _section(name)
    usable = mybert.is_usable(name, source)
    return owner if usable and PARTS[name].file not in mybert.broken else BOOKS


def _in_force(name: str) -> Any:
    return getattr(getattr(mybert.reload(), PARTS[name].file), name)


def _offer_drive() -> None:
    """Asks for Google Drive, where what the reader writes outlives Colab."""
    try:
        from google.colab import drive

        drive.mount(str(mybert.IN_DRIVE.parents[1]))
    except Exception as error:
        print(f"No Drive ({error}): what you write goes with this machine.")
