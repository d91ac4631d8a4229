"""Links between the chapters and the API: what a chapter names, and where.

`link_code` links the names in a page's highlighted code. `uses` says which
chapters quote or use a definition.
"""

import ast
import html
import re
from functools import cache

import api_index
import book
import quotes

# A name in prose, in backticks: `bb.finetune`, `bb.BertConfig.named("tiny")`.
NAME = re.compile(r"(?<![\w./-])(?:bb|bertbook)(?:\.[A-Za-z_]\w*)+")
_ALIAS = '<span class="n">bb</span>'
_DOT = '<span class="o">.</span>'
_CHAIN = re.compile(rf'{_ALIAS}(?:{_DOT}<span class="n">\w+</span>)+')
_PART = re.compile(r'<span class="n">(\w+)</span>')
_QUOTED = re.compile(r"(# quoted from )(bertbook[\w.]+)")
_IMPORTED = re.compile(r'<span class="nn">(bertbook(?:\.\w+)+)</span>')


def entry_of(text):
    """Returns the entry that code in prose names first, or None.

    Args:
        text: What stands in the backticks, such as `bb.setup()`.

    Returns:
        The name of an entry of the API, or None.
    """
    found = NAME.search(text)
    return found and resolve(found[0])


def resolve(dotted):
    """Returns the entry of the longest part of a name that has one, or None.

    Args:
        dotted: A name such as `bb.BertConfig.named` or the dotted name of a
            definition in a module.
    """
    parts = ["bertbook", *dotted.split(".")[1:]]
    for end in range(len(parts), 1, -1):
        name = ".".join(parts[:end])
        entry = api_index.resolve(name)
        if entry is None and name in api_index.modules():
            entry = name
        if entry is not None:
            return entry
    return None


def link_code(page, address_of):
    """Links the names of the package in the highlighted code of a page.

    Args:
        page: The page as HTML.
        address_of: Gives the address of an entry by its name, or None.

    Returns:
        The page with links around `bb.name`, around the name in the first
        line of a quoted definition, and around the module of an import.
    """

    def link(shown, entry):
        address = entry and address_of(entry)
        if not address:
            return shown
        return f'<a class="api" href="{html.escape(address)}">{shown}</a>'

    def chain(match):
        names = _PART.findall(match[0])
        return link(match[0], resolve(".".join(names)))

    def quoted(match):
        return match[1] + link(match[2], resolve(match[2]))

    def imported(match):
        return link(match[0], resolve(match[1]))

    page = _CHAIN.sub(chain, page)
    page = _QUOTED.sub(quoted, page)
    return _IMPORTED.sub(imported, page)


def soften(page):
    """Lets code in the tables of a page break at its signs.

    A browser breaks a long call anywhere else, in the middle of a word.
    """
    return re.sub(r"<td.*?</td>", _softened, page, flags=re.DOTALL)


def _softened(cell):
    def with_breaks(match):
        code = re.sub(r"(?<=[\w)])\.(?=[a-z])", "<wbr>.", match[0])
        return re.sub(r"([(=])(?=.)", r"\1<wbr>", code)

    return re.sub(r'(?<=<span class="pre">)[^<]+', with_breaks, cell[0])


@cache
def uses():
    """Returns what each chapter and lab takes from the package.

    Returns:
        For each entry, the names of the chapters in order, each with "quotes"
        or "uses". The first cell, which all chapters share, does not count.
    """
    found = {}
    for chapter in book.everything():
        for entry, how in _named_in(book.read_notebook(chapter.path)).items():
            found.setdefault(entry, {})[chapter.name] = how
    return found


def _named_in(notebook):
    """Returns the entries that a chapter names, and how."""
    found = {}
    first = book.code_cells(notebook)[:1]
    for cell in notebook.cells:
        if cell in first:
            continue
        if book.is_quote(cell):
            dotted = quotes.name_of(cell)
            found[resolve(dotted)] = "quotes"
        elif cell.cell_type == "code":
            for entry in _named_in_code(book.without_magics(cell.source)):
                found.setdefault(entry, "uses")
        else:
            for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", cell.source):
                if entry := entry_of(code):
                    found.setdefault(entry, "uses")
    found.pop(None, None)
    return found


def _named_in_code(source):
    """Yields the entries that the code of a cell names.

    `bb.name` and what is imported from a module count, and the names of a
    module that was imported whole.
    """
    for name in NAME.findall(source):
        if name.startswith("bb.") and (entry := resolve(name)):
            yield entry
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return  # a cell of the shell
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name.startswith("bertbook.") and (entry := resolve(name)):
                    yield entry
