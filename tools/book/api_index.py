"""What the package defines and what of it is public: read, not imported.

The API pages, the links to them and the tests of docstrings stand on this.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache

import book

PACKAGE = book.ROOT / "bertbook"
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
# Names of the stub that only checkers know, and what a reader knows.
_STUB_NAMES = {
    "_Array": "np.ndarray",
    "_Model": "keras.Model",
    "_BertWithHead": "BertWithHead",
    "_BertWithLabels": "BertWithHead",
}


@dataclass(frozen=True)
class Definition:
    """A function, a class or a method of the package."""

    module: str  # such as `bertbook.model.encoder`
    name: str  # such as `BertEncoder` or `BertEncoder.call`
    node: ast.AST

    @property
    def home(self):
        """The dotted name under which it is written."""
        return f"{self.module}.{self.name}"

    @property
    def target(self):
        """The name of its entry: a public name is one of `bertbook`."""
        first, dot, rest = self.name.partition(".")
        if public_names().get(first) == f"{self.module}.{first}":
            return f"bertbook.{first}{dot}{rest}"
        return self.home

    @property
    def is_class(self):
        """Whether it is a class."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_method(self):
        """Whether it stands in a class."""
        return "." in self.name

    @property
    def docstring(self):
        """Its docstring, or an empty text."""
        return ast.get_docstring(self.node) or ""

    @property
    def lines(self):
        """The first and the last line in the file."""
        decorators = [d.lineno for d in self.node.decorator_list]
        return min([self.node.lineno, *decorators]), self.node.end_lineno


@cache
def modules():
    """Returns the path of every module by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(book.ROOT).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def tree(module):
    """Returns the parsed file of a module."""
    return ast.parse(modules()[module].read_text("utf-8"))


def room_of(module):
    """Returns the room that a module belongs to; "" is the root."""
    parts = module.split(".")
    is_room = len(parts) > 1 and (PACKAGE / parts[1]).is_dir()
    return parts[1] if is_room else ""


@cache
def public_names():
    """Returns the dotted home of every public name, `__version__` left out."""
    for node in tree("bertbook").body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "_HOMES":
            homes = ast.literal_eval(node.value)
            return {n: f"bertbook.{h}.{n}" for n, h in homes.items()}
    raise ValueError("bertbook/__init__.py must hold `_HOMES`.")


@cache
def definitions(module):
    """Returns what a module defines without an underscore, in its order."""
    return tuple(_defined(module, tree(module).body))


def _defined(module, body):
    kinds = (*FUNCTIONS, ast.ClassDef)
    for node in body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield Definition(module, node.name, node)


@cache
def members(home):
    """Returns the methods of a class by name, those of its bases too.

    Only bases of the package count; `__call__` counts where it is written.
    """
    definition = everything()[home]
    found = {}
    for base in _bases(definition):
        found |= members(base)
    for node in definition.node.body:
        is_shown = isinstance(node, FUNCTIONS) and (
            not node.name.startswith("_") or node.name == "__call__"
        )
        is_shown = is_shown and not _is_setter(node)
        if is_shown:
            name = f"{definition.name}.{node.name}"
            found[node.name] = Definition(definition.module, name, node)
    return found


def _is_setter(node):
    return any(ast.unparse(d).endswith(".setter") for d in node.decorator_list)


def _bases(definition):
    """Returns the homes of the bases that the package defines."""
    names = [b.id for b in definition.node.bases if isinstance(b, ast.Name)]
    homes = []
    for name in reversed(names):
        own = f"{definition.module}.{name}"
        found = [own] if own in everything() else classes().get(name, [])
        homes += found[:1]
    return homes


@cache
def everything():
    """Returns every function and class by its home."""
    return {d.home: d for m in modules() for d in definitions(m)}


@cache
def classes():
    """Returns the homes of the classes of each name."""
    found = {}
    for home, definition in everything().items():
        if definition.is_class:
            found.setdefault(definition.name, []).append(home)
    return found


@cache
def imported(module):
    """Returns the homes of what a module imports from others, by name."""
    found = {}
    for node in tree(module).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                home = f"{node.module}.{alias.name}"
                if home in everything():
                    found[alias.asname or alias.name] = home
    return found


def parameters(node):
    """Returns the names of a function's parameters, stars in front."""
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args)]
    if args.vararg:
        names.append(f"*{args.vararg.arg}")
    names += [a.arg for a in args.kwonlyargs]
    if args.kwarg:
        names.append(f"**{args.kwarg.arg}")
    return [n for n in names if n not in ("self", "cls")]


def maker(definition):
    """Returns the `__init__` of a class, its own or a base's, or None."""
    for node in definition.node.body:
        if isinstance(node, FUNCTIONS) and node.name == "__init__":
            return node
    for base in reversed(_bases(definition)):
        node = maker(everything()[base])
        if node is not None:
            return node
    return None


def fields(definition):
    """Returns the types of the fields of a data class by their names."""
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in definition.node.body
        if isinstance(node, ast.AnnAssign)
    }


# Types.


@cache
def _stub():
    text = (PACKAGE / "__init__.pyi").read_text("utf-8")
    return {
        node.name: node
        for node in ast.parse(text).body
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
    }


@cache
def aliases():
    """Returns the type aliases of the stub by their names."""
    text = (PACKAGE / "__init__.pyi").read_text("utf-8")
    return {
        node.target.id: ast.unparse(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.AnnAssign) and node.value is not None
    }


def types(target):
    """Returns the types of a public function, class or method.

    The stub has them, or the source where the stub takes it from there.

    Args:
        target: The name of an entry, such as `bertbook.BertEncoder.call`.

    Returns:
        The types by parameter, as text; `return` is what comes back.
    """
    names = target.split(".")[1:]
    node = _stubbed(names) or _annotated(target)
    if node is None:
        return {}
    args = node.args
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs)
    found = {a.arg: _shown(a.annotation) for a in every if a.annotation}
    if node.returns is not None:
        found["return"] = _shown(node.returns)
    return found


def _stubbed(names):
    """Follows names into the stub: a function, or a method of a class."""
    node = _stub().get(names[0])
    if node is None or isinstance(node, FUNCTIONS):
        return node if len(names) == 1 else None
    wanted = names[1] if len(names) > 1 else "__init__"
    return _method_of_stub(node, {"call": "__call__"}.get(wanted, wanted))


def _method_of_stub(node, name):
    for child in node.body:
        if isinstance(child, FUNCTIONS) and child.name == name:
            return child
    for base in node.bases:
        above = _stub().get(ast.unparse(base))
        found = above and _method_of_stub(above, name)
        if found:
            return found
    return None


def _annotated(target):
    """Returns the function behind an entry as the source has it."""
    definition = find(target)
    if definition is None:
        return None
    return maker(definition) if definition.is_class else definition.node


def find(target):
    """Returns the definition of an entry's name, or None."""
    _, _, name = target.partition(".")
    first, *rest = name.split(".")
    home = public_names().get(first)
    if home is None:
        home, rest = target, []
        if home not in everything() and "." in home:
            home, _, last = home.rpartition(".")
            rest = [last]
    definition = everything().get(home)
    if definition is None or not rest:
        return definition
    return members(home).get(rest[0]) if len(rest) == 1 else None


def _shown(annotation):
    """Returns a type as a reader knows it."""
    text = ast.unparse(annotation)
    text = re.sub(r"NDArray\[np\.float32\]", "np.ndarray", text)
    text = re.sub(r"NDArray\[Any\]", "np.ndarray", text)
    if text.startswith("_"):
        text = aliases().get(text, text)
    names = [_STUB_NAMES.get(n, n) for n in text.split(" | ")]
    text = " | ".join(dict.fromkeys(names))
    return text.strip("\"'")


# Names in docstrings and in chapters.

_NAME = re.compile(r"(?:bb\.|bertbook\.)?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def resolve(text, module="", owner=""):
    """Returns the entry that a name in backticks stands for, or None.

    Args:
        text: What the backticks hold, such as `bb.finetune`,
            `BertEncoder.call`, `batching.check_batch` or `finetune(...)`.
        module: The dotted name of the module that says so.
        owner: The home of the class that says so.
    """
    name = text.partition("(")[0]
    if not _NAME.fullmatch(name) or text.startswith("("):
        return None
    name = re.sub(r"^(bb|bertbook)\.", "", name)
    first, _, rest = name.partition(".")
    if first in public_names():
        return _entry(public_names()[first], rest)
    if owner and not rest and first in members(owner):
        return f"{everything()[owner].target}.{first}"
    if module and f"{module}.{first}" in everything():
        return _entry(f"{module}.{first}", rest)
    if module and first in imported(module):
        return _entry(imported(module)[first], rest)
    if len(classes().get(first, ())) == 1:
        return _entry(classes()[first][0], rest)
    return _in_a_module(name)


def _entry(home, rest):
    """Returns the entry of a home, or of a member of that class."""
    definition = everything()[home]
    if not rest:
        return definition.target
    has_it = definition.is_class and rest in members(home)
    return f"{definition.target}.{rest}" if has_it else None


def _in_a_module(name):
    """Reads `room.module.name`, `module.name`, and either with a member."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        ending = "." + ".".join(parts[:end])
        found = [m for m in modules() if m.endswith(ending)]
        if len(found) == 1 and found[0] != "bertbook":
            rest = parts[end:]
            if not rest:
                return found[0] if end > 1 else None
            home = f"{found[0]}.{rest[0]}"
            if home in everything():
                return _entry(home, ".".join(rest[1:]))
    return None
