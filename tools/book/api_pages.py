"""The API reference: a page for each room and module, and links to them.

A Sphinx extension; `docs/site/api_conf.py` switches it on.
"""

import ast
import copy
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

import api_docstrings
import api_index
import api_links
import book
import navigation

FOLDER = "api"
ROOT_ROOM = "root"  # the name of the room that has none
TYPES = {
    "Folder": "A path, as text or as a `pathlib.Path`.",
    "Batch": "A dict of arrays or tensors, as a tokenizer returns.",
    "Columns": "A dict of lists of equal length, as `load_dataset` returns.",
    "Tensor": "A tensor of the backend, or a NumPy array.",
    "Dtype": "The name of a dtype policy of Keras, or `auto`.",
    "Table": (
        "A dict of columns, a list of dicts, a DataFrame of pandas or Polars, "
        "or a `Dataset` of Hugging Face."
    ),
    "Texts": "A list of texts, an array, or a column of a table.",
    "Metric": "A function of the labels and the predictions.",
    "Metrics": (
        "A metric, its name, a list of them, or a dict that names them."
    ),
}


def setup(app):
    """Registers what the API reference adds to a build."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", as_rest, priority=400)
    app.connect("autodoc-process-signature", as_signature)
    app.connect("missing-reference", find_type)
    app.connect("html-page-context", link_code)
    app.add_directive("api-names", Names)
    app.add_directive("api-types", Types)
    app.add_transform(LinkProse)
    app.config.linkcode_resolve = source_link
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# Pages.


def rooms():
    """Returns what docs/architecture.md says of each room, in its order."""
    page = (book.ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:`(\w+)/`|\(root\)) \| (.+?) \|", page, re.M)
    return {room: _as_code(purpose) for room, purpose in rows}


def modules_of(room):
    """Returns the modules of a room, first the one to read first."""
    found = [
        m
        for m, path in api_index.modules().items()
        if api_index.room_of(m) == room
        and m not in ("bertbook", f"bertbook.{room}")
        and (api_index.definitions(m) or path.name != "__init__.py")
        and not path.name.startswith("__main__")
    ]
    page = (book.ROOT / "docs" / "architecture.md").read_text("utf-8")
    first = re.search(rf"\| `{room}/` \| .* \| `{room}/(\w+)\.py` \|", page)
    name = first[1] if first else "config"
    return sorted(found, key=lambda m: not m.endswith(f".{name}"))


def page_of(module):
    """Returns the name of a module's page, such as `api/model/encoder`."""
    room = api_index.room_of(module)
    path = module.removeprefix("bertbook.").replace(".", "/")
    return f"{FOLDER}/{path}" if room else f"{FOLDER}/{ROOT_ROOM}/{path}"


def write_pages(app):
    """Writes the pages of rooms and modules into the source folder."""
    source = Path(app.srcdir)
    chapters = _pages_of_chapters(source)
    for room, purpose in rooms().items():
        folder = f"{FOLDER}/{room or ROOT_ROOM}"
        _write(source / f"{folder}/index.rst", room_page(room, purpose))
        for module in modules_of(room):
            text = module_page(module, chapters)
            _write(source / f"{page_of(module)}.rst", text)


def _pages_of_chapters(source):
    """Returns the page of each chapter and lab, where the site has one."""
    pages = {one.name: f"notebooks/{one.name}" for one in book.everything()}
    return {
        name: f"/{page}"
        for name, page in pages.items()
        if (source / f"{page}.ipynb").is_file()
    }


def _write(path, text):
    """Writes a page, unless it is as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def room_page(room, purpose):
    """Returns the page of a room: its docstring and its modules."""
    name = f"bertbook.{room}" if room else "bertbook"
    lines = [*_title(name), ""]
    if room:
        lines += [f".. automodule:: {name}", "   :no-members:", ""]
    else:
        lines += [f"{purpose[0].upper()}{purpose[1:]}.", ""]
    for module in modules_of(room):
        summary = _summary(api_index.tree(module))
        lines += [f"* :doc:`{_short(module)} </{page_of(module)}>`: {summary}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    for module in modules_of(room):
        lines.append(f"   {_short(module)} </{page_of(module)}>")
    return "\n".join(lines) + "\n"


def module_page(module, chapters):
    """Returns the page of a module: all that it defines.

    Args:
        module: Its dotted name.
        chapters: The page of each chapter by the chapter's name.
    """
    file = api_index.modules()[module].relative_to(book.ROOT).as_posix()
    address = f"{book.address()}/blob/main/{file}"
    lines = [
        *_title(_short(module)),
        f"Source: `{file} <{address}>`__",
        "",
        f".. automodule:: {module}",
        "   :no-members:",
        "",
    ]
    for definition in api_index.definitions(module):
        lines += _entry(definition)
    return "\n".join([*lines, *_used_in(module, chapters)]) + "\n"


def _title(text):
    return [text, "=" * len(text), ""]


def _short(module):
    return module.removeprefix("bertbook.")


def _summary(tree):
    """Returns the first paragraph of a docstring, its code marked as code."""
    text = (ast.get_docstring(tree) or "").split("\n\n")[0]
    return _as_code(" ".join(text.split()))


def _as_code(text):
    """Doubles the backticks of Markdown."""
    return re.sub(r"`([^`]+)`", r"``\1``", text)


def _entry(definition):
    """Returns the directive of a function or class."""
    if not definition.is_class:
        return [f".. autofunction:: {definition.target}", ""]
    is_public = definition.target != definition.home
    names = [
        name
        for name, member in api_index.members(definition.home).items()
        if member.docstring
        and (is_public or member.name.startswith(f"{definition.name}."))
    ]
    lines = [f".. autoclass:: {definition.target}"]
    if names:
        lines.append(f"   :members: {', '.join(names)}")
    return [*lines, ""]


def _used_in(module, chapters):
    """Returns the list of the chapters that quote or use a module."""
    by_chapter = {}
    entries = {module: ""}
    for definition in api_index.definitions(module):
        entries[definition.target] = definition.name
    for entry, found in api_links.uses().items():
        top = entry if entry in entries else entry.rpartition(".")[0]
        if top in entries:
            for chapter, how in found.items():
                words = by_chapter.setdefault(chapter, {})
                words.setdefault(how, []).append(entry)
    if not by_chapter:
        return []
    lines = [".. rubric:: In the book", ""]
    for chapter, words in sorted(by_chapter.items()):
        said = [
            f"{how} {', '.join(_role(e) for e in sorted(words[how]))}"
            for how in ("quotes", "uses")
            if how in words
        ]
        lines.append(f"* {_chapter(chapter, chapters)}: {'; '.join(said)}")
    return lines


def _role(entry):
    kind = "mod" if entry in api_index.modules() else "obj"
    name = entry.removeprefix("bertbook.") if kind == "mod" else None
    short = name or ".".join(entry.split(".")[_depth(entry) :])
    return f":py:{kind}:`{short} <{entry}>`"


def _depth(entry):
    """Returns how many parts of an entry's name are its module's."""
    definition = api_index.find(entry)
    return len(entry.split(".")) - len(definition.name.split("."))


def _chapter(name, chapters):
    """Returns the title of a chapter, a link where it has a page."""
    title = navigation.title(name)
    page = chapters.get(name)
    return f":doc:`{title} <{page}>`" if page else title


class Names(SphinxDirective):
    """`api-names`: the table of the public names, by room."""

    def run(self):
        """Returns the nodes of a list for each room."""
        lines = []
        for room, purpose in rooms().items():
            found = {
                name: home
                for name, home in api_index.public_names().items()
                if api_index.room_of(home) == room
            }
            if not found:
                continue
            page = f"/{FOLDER}/{room or ROOT_ROOM}/index"
            lines += [f":doc:`{room or 'root'} <{page}>`: {purpose}", ""]
            for name, home in found.items():
                summary = _summary(api_index.everything()[home].node)
                lines.append(
                    f"* :py:obj:`bb.{name} <bertbook.{name}>`: {summary}"
                )
            lines.append("")
        return self.parse_text_to_nodes("\n".join(lines))


class Types(SphinxDirective):
    """`api-types`: the names of types that stand beside arguments."""

    def run(self):
        """Returns an entry for each alias of the stub."""
        lines = []
        for name in api_index.aliases():
            if not name.startswith("_"):
                lines += [f".. py:type:: {name}", "", f"   {TYPES[name]}", ""]
        return self.parse_text_to_nodes("\n".join(lines))


# Docstrings.


def as_rest(app, what, name, obj, options, lines):
    """Rewrites a docstring for Napoleon, in place."""
    definition = api_index.find(name)
    if what == "module":
        lines[:] = api_docstrings.as_rest(lines, _place_of_module(name))
    elif definition is not None:
        lines[:] = _rest_of(definition, name, lines)


def _place_of_module(name):
    is_package = api_index.modules()[name].name == "__init__.py"
    room = name if is_package else name.rpartition(".")[0]
    return api_docstrings.Place(name, room=room)


def _rest_of(definition, name, lines):
    """Returns the docstring of a function, class or method, with types."""
    owner, types, node = "", api_index.types(name), definition.node
    if definition.is_class:
        owner, node = definition.home, api_index.maker(definition)
        types = {**api_index.fields(definition), **types, "return": None}
        if node is None:  # its attributes are what makes it
            lines = ["Args:" if x == "Attributes:" else x for x in lines]
    elif definition.is_method:
        owner = definition.home.rpartition(".")[0]
    names = api_index.parameters(node) if node else ()
    own_names = frozenset(n.lstrip("*") for n in names)
    place = api_docstrings.Place(definition.module, owner, own_names)
    rest = api_docstrings.as_rest(lines, place, types)
    if definition.target == f"bertbook.{definition.name}":
        rest = [f"Use it as ``bb.{definition.name}``.", "", *rest]
    return rest


def as_signature(app, what, name, obj, options, signature, returns):
    """Returns the arguments of a class as its `__init__` has them.

    Keras puts a `__new__` before it that takes anything.
    """
    definition = api_index.find(name)
    if what != "class" or definition is None:
        return None
    node = api_index.maker(definition)
    if node is None:
        return None
    arguments = ast.unparse(_plain(node.args))
    return f"({arguments})", None


def _plain(args):
    """Returns the parameters of a method, without `self` and types."""
    args = copy.deepcopy(args)
    args.args = args.args[1:]
    for node in ast.walk(args):
        if isinstance(node, ast.arg):
            node.annotation = None
    return args


# Links.


def source_link(domain, info):
    """Returns the address of the lines that define an entry."""
    entry = ".".join(filter(None, (info["module"], info["fullname"])))
    definition = domain == "py" and api_index.find(entry)
    if not definition:
        return None
    path = api_index.modules()[definition.module].relative_to(book.ROOT)
    first, last = definition.lines
    address = f"{book.address()}/blob/main/{path.as_posix()}"
    return f"{address}#L{first}-L{last}"


def find_type(app, env, node, contnode):
    """Resolves the name of a class of ours among the types of arguments."""
    if node.get("refdomain") != "py" or node.get("reftype") != "class":
        return None
    entry = api_index.resolve(node["reftarget"])
    if entry is None:
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", entry, node, contnode
    )


class LinkProse(SphinxTransform):
    """Links `bb.name` in the prose of every page to its entry."""

    default_priority = 400

    def apply(self, **kwargs):
        """Puts a reference around the code that names an entry."""
        if self.env.docname.startswith(f"{FOLDER}/"):
            return
        for node in list(self.document.findall(nodes.literal)):
            entry = api_links.entry_of(node.astext())
            if entry and not isinstance(node.parent, nodes.reference):
                node.replace_self(_reference(node, entry, self.env.docname))


def _reference(node, entry, page):
    """Returns a reference to an entry, which Sphinx resolves."""
    kind = "mod" if entry in api_index.modules() else "obj"
    return addnodes.pending_xref(
        "",
        node.deepcopy(),
        refdomain="py",
        reftype=kind,
        reftarget=entry,
        refdoc=page,
        refwarn=True,
    )


def link_code(app, page, template, context, doctree):
    """Links names in the code of a page, once it is HTML.

    Code in a table may then break where a name ends.
    """
    if "body" not in context:
        return
    entries = app.env.domains["py"].objects

    def address_of(entry):
        found = entries.get(entry)
        if found is None:
            return None
        uri = app.builder.get_relative_uri(page, found.docname)
        return f"{uri}#{found.node_id}"

    body = api_links.link_code(context["body"], address_of)
    context["body"] = api_links.soften(body)
