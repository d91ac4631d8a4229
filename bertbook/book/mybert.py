"""The files of `mybert`, the reader's package: read, written and run.

Each definition stands under a line that says whose it is, `# ---- NAME: yours`
or `# ---- NAME: the book's`; what stands before the first of them belongs to
the whole file. The book's definitions are those of the room `plain`. What is
edited by hand counts as the reader's.
"""

import ast
import hashlib
import json
import linecache
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from bertbook import files, plain

YOURS, BOOKS = "yours", "the book's"
FILES = (
    "tokenizer",
    "vocabulary",
    "embeddings",
    "attention",
    "block",
    "bert",
    "weights",
    "pretraining",
    "tasks",
)
IN_DRIVE = Path("/content/drive/MyDrive/mybert")  # of Google, in Colab
_MARK = re.compile(r"^# ---- (\w+): (yours|the book's)\n", re.MULTILINE)
_RECORD = ".written.json"  # digests, so that an edit by hand shows
Sections = dict[str, tuple[str, str]]  # name: whose it is, its source
_loaded: dict[str, str] = {}  # file of `mybert`: the text that was run
broken: set[str] = set()  # files that do not run


def folder() -> Path:
    """Returns where `mybert` lies or will lie.

    That is the environment variable MYBERT, else Google Drive where Colab has
    it, else `mybert` here or up to two folders above, else a new folder beside
    the notebooks.
    """
    if os.environ.get("MYBERT"):
        return Path(os.environ["MYBERT"])
    if IN_DRIVE.parent.is_dir():
        return IN_DRIVE
    here = Path.cwd()
    above = [here, *here.parents[:2]]
    for path in above:
        if (path / "mybert" / "__init__.py").is_file():
            return path / "mybert"
    return next((p for p in above if p.name == "notebooks"), here) / "mybert"


@cache
def books(file: str) -> dict[str, str]:
    """Returns the source of every definition of a file of the book's."""
    return definitions(_text_of_book(file))


def definitions(text: str) -> dict[str, str]:
    """Returns the source of each function and class, without decorators."""
    lines = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


@cache
def _text_of_book(file: str) -> str:
    path = Path(plain.__file__).with_name(f"{file}.py")
    return path.read_text("utf-8")


@cache
def _head_of_book(file: str) -> str:
    """Returns imports and constants, without the docstring."""
    text = _text_of_book(file)
    lines = text.splitlines()
    rest = [
        "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body[1:]
        if not isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    return "\n".join(rest)


@cache
def names_of_head(file: str) -> set[str]:
    """Returns the names of the imports and constants of a file."""
    found = set()
    for node in ast.walk(ast.parse(_head_of_book(file))):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def sections(file: str) -> Sections:
    """Returns whose each definition of a file is, and its source.

    In the order of the book's file, with what the reader added at the end.
    """
    found: Sections = {
        name: (BOOKS, text) for name, text in books(file).items()
    }
    pieces = _MARK.split(_read(file))
    written = _record()
    for name, owner, text in zip(
        pieces[1::3], pieces[2::3], pieces[3::3], strict=True
    ):
        source = text.strip("\n")
        known = written.get(name) or _digest(books(file).get(name, ""))
        if source.strip() and (owner == YOURS or _digest(source) != known):
            found[name] = YOURS, source
    return found


def is_usable(name: str, source: str) -> bool:
    """Returns whether a section defines what its line says."""
    try:
        return name in definitions(source)
    except SyntaxError:
        return False


def text_of(file: str, parts: Sections, mine: bool = True) -> str:
    """Returns the text of a file with these definitions.

    Args:
        file: Its name.
        parts: Its definitions.
        mine: Whether the imports that the reader added come with them.
    """
    body = "\n\n\n".join(
        f"# ---- {name}: {owner}\n{source}"
        for name, (owner, source) in parts.items()
    )
    head = _head(file) if mine else _head_of_book(file)
    return f"{head}\n\n\n{body}\n"


def _head(file: str) -> str:
    """Returns what stands above the definitions, with the reader's imports."""
    first = f"# {file}, of my BERT. What is `yours` stays as it is."
    head = f"{first}\n{_head_of_book(file)}"
    own = _MARK.split(_read(file))[0].strip()
    comments = [
        line
        for line in own.split("\n")
        if line.startswith("#") and line != first
    ]
    try:
        statements = list(map(ast.unparse, ast.parse(own).body))
    except SyntaxError:  # it is kept, and harms nothing
        statements = [
            f"# {line}" for line in own.split("\n") if not line.startswith("#")
        ]
    known = set(map(ast.unparse, ast.parse(head).body))
    new = [text for text in statements if text not in known]
    return "\n".join([head, *comments, *new])


def save(file: str, parts: Sections, passed: str = "") -> None:
    """Writes a file, at once or not at all.

    Args:
        file: Its name.
        parts: Its definitions.
        passed: The part of the reader's that was just found right.

    Raises:
        ValueError: MYBERT names a file.
    """
    place = folder()
    if place.exists() and not place.is_dir():
        raise ValueError(f"`MYBERT` must be a folder. Received: {place}.")
    place.mkdir(parents=True, exist_ok=True)
    (place / "__init__.py").touch()
    record = _record()
    for name, (owner, source) in parts.items():
        if owner == BOOKS or name == passed:
            record[name] = _digest(source)
    text = text_of(file, parts)
    if text != _read(file):
        files.write_text(place / f"{file}.py", text)
    if record != _record():
        files.write_text(place / _RECORD, json.dumps(record, indent=1) + "\n")


def has_passed(name: str, source: str) -> bool:
    """Returns whether a source is the one that was found right last."""
    return _record().get(name) == _digest(source)


def texts(changes: Mapping[str, tuple[str, str]], mine: bool) -> dict[str, str]:
    """Returns the texts of all files as they are run.

    Args:
        changes: Definitions that take the place of others, by name.
        mine: Whether the others are the reader's where they have some, or the
            book's. A section that does not define its name is the book's.
    """
    found = {}
    with_head = mine or any(owner == YOURS for owner, _ in changes.values())
    for file in FILES:
        own = books(file)
        parts: Sections = {name: (BOOKS, text) for name, text in own.items()}
        if mine:
            parts |= {
                name: section
                for name, section in sections(file).items()
                if is_usable(name, section[1])
            }
        parts |= {name: changes[name] for name in parts if name in changes}
        found[file] = text_of(file, parts, with_head)
    return found


def run(package: str, sources: Mapping[str, str]) -> ModuleType:
    """Runs texts as the modules of a new package; nothing is written.

    A traceback shows the lines of a file as `<package.file>`.
    """
    parent = sys.modules[package] = ModuleType(package)
    parent.__path__ = []
    for file, text in sources.items():
        name = f"{package}.{file}"
        module = sys.modules[name] = ModuleType(name)
        module.__package__, module.__file__ = package, f"<{name}>"
        linecache.cache[f"<{name}>"] = (
            len(text),
            None,
            text.splitlines(True),
            f"<{name}>",
        )
        exec(compile(text, f"<{name}>", "exec"), module.__dict__)
        setattr(parent, file, module)
    return parent


def reload() -> ModuleType:
    """Runs what is new in the files of `mybert`, and what follows it.

    The modules stay the same objects. Where a file does not run, the book's is
    used, a line says so, and `broken` holds its name.

    Returns:
        The package.
    """
    parent = sys.modules.setdefault("mybert", ModuleType("mybert"))
    parent.__path__ = [str(folder())]
    stale = False
    for file, text in texts({}, mine=True).items():
        name, path = f"mybert.{file}", str(folder() / f"{file}.py")
        stale = stale or name not in sys.modules or _loaded.get(path) != text
        if not stale:
            continue
        module = sys.modules.setdefault(name, ModuleType(name))
        module.__package__, module.__file__ = "mybert", path
        broken.discard(file)
        try:
            exec(compile(text, path, "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            broken.add(file)
            print(
                f"mybert/{file}.py does not run: {error!r}. The book's is used."
            )
            exec(compile(_text_of_book(file), path, "exec"), module.__dict__)
        _loaded[path] = text
        setattr(parent, file, module)
    return parent


def _read(file: str) -> str:
    path = folder() / f"{file}.py"
    if not path.is_file():
        return ""
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"mybert/{file}.py must be UTF-8: {error}.") from None


def _record() -> dict[str, str]:
    path = folder() / _RECORD
    try:
        return dict(files.read_json(path))
    except (FileNotFoundError, ValueError, TypeError):
        return {}  # it is written anew


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:16]
