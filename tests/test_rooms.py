"""The package has rooms, and a room imports only from those above it."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

parse = cache(ast.parse)  # trees that nobody changes
PACKAGE = Path(__file__).resolve().parents[1] / "bertbook"
# Each may import from those before it; "" is the root.
ROOMS = (
    "",
    "plain",
    "devices",
    "text",
    "datasets",
    "batches",
    "training",
    "tasks",
    "weights",
    "model",
    "decoder",
    "pretraining",
    "figures",
    "finetuning",
    "translation",
    "relatives",
    "book",
    "cli",
)
LEAVES = {"relatives", "book", "cli"}  # nothing imports these
ALONE = "plain"  # imports itself, and is imported by `book`, alone
MOST_AT_THE_ROOT = 8
# One of these may be missing, so none is imported when a module is.
OPTIONAL = {
    "apache_beam",
    "fsspec",
    "huggingface_hub",
    "jax",
    "keras_hub",
    "keras_nlp",
    "matplotlib",
    "sacrebleu",
    "scipy",
    "sklearn",
    "tensorflow",
    "tensorflow_text",
    "torch",
    "transformers",
}


def modules():
    """Returns the path of every module by its dotted name."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(("bertbook", *parts)).removesuffix(".__init__")] = path
    return names


MODULES = modules()
ENTRANCES = {"bertbook", "bertbook.__main__"}  # above every room


def room_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or parts[-1] in ROOMS else ""


def imported(tree):
    """Yields the module of ours behind each import of a file, anywhere.

    A name that is no module, as in `from bertbook import BertConfig`, is
    yielded too: inside the package it would be a way around the rooms.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_ours(alias.name):
                    yield alias.name
        elif isinstance(node, ast.ImportFrom):
            module = f"{'.' * node.level}{node.module or ''}"
            if is_ours(module):
                yield from from_import(module, node.names)
        elif isinstance(node, ast.Call):
            yield from called_import(node)


def is_ours(module):
    return module.startswith(".") or module.split(".")[0] == "bertbook"


def from_import(module, names):
    """Reads `from bertbook.x import y`, where y may be a module."""
    module = re.sub(r"^\.(?=\w)", f"bertbook.{ALONE}.", module)
    for alias in names:
        inner = f"{module}.{alias.name}"
        yield inner if inner in MODULES or module in ENTRANCES else module


def called_import(node):
    """Reads `import_module("bertbook.x")` and `__import__("bertbook.x")`."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("import_module", "__import__") and node.args:
        value = getattr(node.args[0], "value", None)
        if isinstance(value, str) and is_ours(value):
            yield value


def faults(module, text):
    """Returns what is wrong with the imports of one module, in words."""
    if module in ENTRANCES:
        return []
    room = room_of(module)
    found = []
    for other in imported(parse(text)):
        if other not in MODULES or other in ENTRANCES:
            found.append(f"`{module}` imports {other}, which is no module")
        elif (theirs := room_of(other)) == room:
            continue
        elif room == ALONE or (theirs == ALONE and room != "book"):
            found.append(f"`{module}` imports `{other}`; {ALONE}/ stands alone")
        elif theirs in LEAVES:
            found.append(f"`{module}` imports `{other}` from a leaf")
        elif ROOMS.index(theirs) > ROOMS.index(room):
            found.append(f"`{module}` imports `{other}` from a room below")
    return found


def circle(edges):
    """Returns modules that import each other in a circle, or nothing."""
    left = dict(edges)
    while free := [m for m, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    return sorted(left)


def optional_at_the_top(text):
    """Returns the optional packages that importing a module would import."""
    names = set()
    for node in top_level(parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return sorted(OPTIONAL & names)


def top_level(node):
    """Yields the nodes that run when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from top_level(child)


def test_the_list_names_every_room_once():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(ROOMS) == sorted(folders | {""})


def test_the_root_stays_small():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_AT_THE_ROOT


def test_every_room_says_what_it_is_for():
    for room in ROOMS[1:]:
        tree = parse((PACKAGE / room / "__init__.py").read_text("utf-8"))
        assert ast.get_docstring(tree), room
        assert len(tree.body) == 1, f"{room}/__init__.py does work"


def test_the_page_of_the_architecture_names_files_that_are_there():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", page))
    assert len(named) > 60
    places = PACKAGE, PACKAGE.parent
    missing = [n for n in named if not any((p / n).is_file() for p in places)]
    assert missing == []


def test_a_room_and_the_page_name_the_same_first_file():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    for room in ROOMS[1:]:
        first = re.search(rf"\| `{room}/` \| .* \| `{room}/(\w+)\.py` \|", page)
        assert first, room
        face = (PACKAGE / room / "__init__.py").read_text("utf-8")
        assert f"Read `{first[1]}` first" in face


def test_imports_only_point_up_the_list():
    assert len(MODULES) > 100
    found = []
    for module, path in MODULES.items():
        found += faults(module, path.read_text("utf-8"))
    assert found == []


def test_no_modules_import_each_other_in_a_circle():
    edges = {
        module: set(imported(parse(path.read_text("utf-8"))))
        for module, path in MODULES.items()
    }
    assert circle(edges) == []


def test_no_optional_package_is_imported_with_a_module():
    found = [
        f"{module} imports {name}"
        for module, path in MODULES.items()
        for name in optional_at_the_top(path.read_text("utf-8"))
    ]
    assert found == []


def test_each_way_down_the_list_is_seen():
    for line in (
        "import bertbook.decoder.blocks",
        "import bertbook.decoder.blocks as b",
        "import bertbook",
        "from bertbook import BertEncoder",
        "from bertbook import decoder",
        "from bertbook.decoder import blocks",
        "from bertbook.decoder.blocks import causal_mask",
        "from bertbook.figures import charts",
        "from bertbook.encoder import BertEncoder",
        "from . import layers",
        "from .layers import Dense",
        "def late():\n    from bertbook.pretraining.corpus import Corpus",
        "import_module('bertbook.decoder.blocks')",
        "importlib.import_module('.blocks', 'bertbook.decoder')",
        "try:\n    import bertbook.cli.main\nexcept ImportError:\n    pass",
    ):
        assert faults("bertbook.model.attention", line) != []


def test_the_ways_up_the_list_are_free():
    for line in (
        "from bertbook.config import BertConfig",
        "from bertbook.text import tokenizer",
        "from bertbook.model.layers import Dense",
        "import keras",
    ):
        assert faults("bertbook.model.attention", line) == []


def test_a_leaf_may_not_import_another():
    line = "from bertbook.relatives import named"
    assert faults("bertbook.book.notation", line) != []
    line = "from bertbook.figures import charts"
    assert faults("bertbook.book.workbench", line) == []
    assert faults("bertbook.pretraining.corpus", line) != []


def test_the_plain_room_stands_alone():
    line = "from bertbook.plain.bert import Bert"
    assert faults("bertbook.book.workbench", line) == []
    assert faults("bertbook.model.encoder", line) != []
    assert faults("bertbook.figures.maps", line) != []
    assert faults("bertbook.plain.bert", "from .block import Block") == []
    assert faults("bertbook.plain.bert", "from .layers import Dense") != []
    line = "from bertbook.config import BertConfig"
    assert faults("bertbook.plain.bert", line) != []


def test_a_circle_is_seen():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["a", "b", "c"]
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_optional_packages_are_seen_at_the_top_only():
    assert optional_at_the_top("try:\n    import jax.numpy\nexcept E: pass")
    assert optional_at_the_top("from tensorflow import keras")
    assert not optional_at_the_top("def f():\n    import jax")


# Names in docstrings and comments.

# What other packages define, and files, is not looked up.
ELSEWHERE = {"keras", "np", "str", "tf", "time"}
SUFFIXES = {"json", "py", "txt"}


def dotted_names(text):
    """Yields the backticked dotted names of docstrings and comments."""
    passages = [
        ast.get_docstring(node) or ""
        for node in ast.walk(parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            passages.append(token.string)
    for passage in passages:
        for quoted in re.findall(r"`([^`]+)`", passage):
            name = re.match(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", quoted)
            first, *_, last = name[0].split(".") if name else ("keras", "")
            if first not in ELSEWHERE and last not in SUFFIXES:
                yield name[0]


def defined(body):
    """Returns the names that statements define, in a module or a class."""
    names = set()
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = getattr(node, "targets", None) or [node.target]
            names |= {n.id for t in targets for n in ast.walk(t) if is_name(n)}
    return names


def is_name(node):
    return isinstance(node, ast.Name)


def attributes(node):
    """Returns the members of a class, and what its methods set on `self`."""
    set_on_self = {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and is_name(n.value)
        and n.value.id == "self"
    }
    return defined(node.body) | set_on_self


def index():
    """Returns the names of each module stem, and each class's members."""
    names, members, bases = defaultdict(set), defaultdict(set), {}
    for path in MODULES.values():
        tree = parse(path.read_text("utf-8"))
        names[path.stem] |= defined(tree.body)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                members[node.name] |= attributes(node)
                bases[node.name] = [b.id for b in node.bases if is_name(b)]
    for name in bases:
        above = list(bases[name])
        while above:
            base = above.pop()
            members[name] |= members.get(base, set())
            above += bases.get(base, [])
    return names, members


NAMES, MEMBERS = index()


def resolves(dotted):
    """Tells whether a name of a docstring is one of the package.

    `room.module.name`, `module.name` and `Class.member` are looked up; of
    `recipe.seed`, an argument's attribute, some class must have the second.
    """
    parts = dotted.removeprefix("bertbook.").split(".")
    if parts[0] in ROOMS and len(parts) > 2:
        del parts[0]
    first, second, *rest = parts
    if first in NAMES or first in ROOMS:
        found = second in NAMES[first]
    elif first in MEMBERS:
        found = second in MEMBERS[first]
    else:
        found = any(second in members for members in MEMBERS.values())
    return found and all(name in MEMBERS[second] for name in rest)


def test_dotted_names_in_docstrings_are_names_of_the_package():
    seen = [
        (module, name)
        for module, path in MODULES.items()
        for name in dotted_names(path.read_text("utf-8"))
    ]
    assert len({name for _, name in seen}) > 30
    missing = [f"{m}: {name}" for m, name in seen if not resolves(name)]
    assert missing == []


@pytest.mark.parametrize(
    "name",
    [
        "batching.nothing",
        "bertbook.batches.batching.nothing",
        "model.bert.BertForMaskedLM.nothing",
        "figures.Picture",
        "BertEncoder.nothing",
        "recipe.nothing",
    ],
)
def test_a_wrong_name_in_a_docstring_is_seen(name):
    assert list(dotted_names(f'"""See `{name}`."""')) == [name]
    assert list(dotted_names(f"x = 1  # as in `{name}(x)`")) == [name]
    assert not resolves(name)
