"""Quoted definitions: cells that show the package's own source.

Only a docstring of more than three lines is cut, to its first sentence. An
answer, below `@book`, is the source character by character.

`python tools/book/quotes.py` rewrites them everywhere, notebook and twin.
"""

import ast
import textwrap

import book

LONGEST_DOCSTRING = 3  # lines
LONGEST_LINE = 80
_DEFINITIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef


def source_of(dotted):
    """Returns the source of one definition, as `inspect.getsource` gives it.

    The file is read, not imported, so no backend is needed. A method is
    dedented.

    Args:
        dotted: A name such as `bertbook.model.attention.SelfAttention.call`.

    Returns:
        The lines from the first decorator to the end of the body.

    Raises:
        ValueError: `dotted` names no definition of the package.
    """
    package, *parts = dotted.split(".")
    folder = book.ROOT / "bertbook"
    while package == "bertbook" and parts and (folder / parts[0]).is_dir():
        folder /= parts.pop(0)
    if len(parts) < 2 or not (path := folder / f"{parts[0]}.py").is_file():
        raise ValueError(
            "`dotted` must read bertbook.room.module.name. "
            f"Received: {dotted!r}."
        )
    text = path.read_text("utf-8")
    node = _find(ast.parse(text), parts[1:])
    if node is None:
        raise ValueError(
            f"`dotted` must name a definition in {path.name}. "
            f"Received: {dotted!r}."
        )
    return _lines_of(text, node)


def _find(node, names):
    """Follows names from a module into its classes and functions."""
    for name in names:
        inside = [
            child
            for child in node.body
            if isinstance(child, _DEFINITIONS) and child.name == name
        ]
        if not inside:
            return None
        node = inside[-1]  # the last one wins, as in Python
    return node


def _lines_of(text, node):
    decorators = [decorator.lineno for decorator in node.decorator_list]
    start = min([node.lineno, *decorators])
    lines = text.splitlines()[start - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


def name_of(cell):
    """Returns the dotted name that a quote cell claims to show."""
    first = cell.source.split("\n", 1)[0]
    return first.partition(book.FIRST_LINE_OF_A_QUOTE)[2].strip()


def quote(dotted, is_answer=False):
    """Returns what a cell that quotes a definition must hold."""
    source = source_of(dotted)
    if is_answer:
        return f"{book.FIRST_LINE_OF_AN_ANSWER}{dotted}\n{source}"
    return f"{book.FIRST_LINE_OF_A_QUOTE}{dotted}\n{folded(source)}"


def folded(source):
    """Returns a definition with long docstrings cut to their first sentence.

    `help` shows them whole; a reader of a chapter has its prose.
    """
    lines = source.splitlines()
    docstrings = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DEFINITIONS) and ast.get_docstring(node):
            docstrings.append(node.body[0])
    for node in sorted(docstrings, key=lambda node: -node.lineno):
        if node.end_lineno - node.lineno + 1 > LONGEST_DOCSTRING:
            first = lines[node.lineno - 1].rstrip()
            short = [f'{first}"""']
            if len(short[0]) > LONGEST_LINE:
                short = [first, " " * node.col_offset + '"""']
            lines[node.lineno - 1 : node.end_lineno] = short
    return "\n".join(lines)


def refresh(notebook):
    """Rewrites the quote cells of a notebook.

    Args:
        notebook: The notebook, changed in place.

    Returns:
        The names whose cells were out of date.
    """
    changed = []
    for cell in filter(book.is_quote, notebook.cells):
        dotted = name_of(cell)
        current = quote(dotted, book.is_answer(cell))
        if cell.source != current:
            cell.source = current
            changed.append(dotted)
    return changed


def main():
    """Rewrites the quotes of chapters and labs and says what changed."""
    for chapter in book.written():
        changed = []

        def change(notebook, found=changed):
            found += refresh(notebook)

        book.rewrite(chapter, change)
        for dotted in sorted(set(changed)):
            print(f"{chapter.name}: {dotted}")


if __name__ == "__main__":
    main()
