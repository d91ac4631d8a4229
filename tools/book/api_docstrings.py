"""Docstrings as Sphinx reads them: types beside names, names as links.

The docstrings are written in Google's form with Markdown's backticks. What
Napoleon would take for something else is put right here, and it does the rest.
"""

import re

import api_index

_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Warns):$")
_ITEM = re.compile(r"    (\*{0,2}\w+)(?: \([^)]*\))?: (.*)")
_LITERAL = re.compile(r"(?<![`:])`([^`]+)`(?!`)(\w?)")


def as_rest(lines, module="", owner="", types=None, own_names=(), fields=False):
    """Returns the lines of a docstring as reStructuredText for Napoleon.

    Args:
        lines: The docstring without its indentation.
        module: The dotted name of the module that it stands in.
        owner: The home of the class that it stands in.
        types: The types of the parameters and of `return`, as text.
        own_names: Names that mean the parameters and are no links.
        fields: Whether the attributes of a class are what makes it.
    """
    types = types or {}
    if fields:
        lines = ["Args:" if x == "Attributes:" else x for x in lines]
    done, section = [], ""
    for line in _joined(lines):
        if found := _SECTION.match(line):
            section = found[1]
            if section not in ("Returns", "Yields"):
                done.append(line)
        elif section in ("Args", "Attributes"):
            done.append(_typed(line, types, module))
        elif section in ("Returns", "Yields") and line:
            is_first = not done or not done[-1].startswith(("   ", ":return"))
            mark = ":returns: " if is_first else "    "
            done.append(mark + line.strip())
        else:
            done.append(line)
    returned = types.get("return")
    if returned not in (None, "None", "Self"):
        done = _with_return_type(done, _qualified(returned, module))
    done = _with_code(done)
    return [_linked(line, module, owner, own_names) for line in done]


def _joined(lines):
    """Joins lines between which a pair of backticks is open."""
    joined, is_open = [], False
    for line in lines:
        if is_open and line.strip():
            joined[-1] += " " + line.strip()
        else:
            joined.append(line)
        is_open = joined[-1].count("`") % 2 == 1
    return joined


def _typed(line, types, module):
    """Puts the type of an argument behind its name."""
    item = _ITEM.match(line)
    text = item and types.get(item[1].lstrip("*"))
    if not text:
        return line
    return f"    {item[1]} ({_qualified(text, module)}): {item[2]}"


def _qualified(text, module):
    """Writes the classes in a type with their entries, which stay hidden."""

    def full(match):
        is_text = match[0].startswith("'")
        entry = None if is_text else api_index.resolve(match[0], module)
        return f"~{entry}" if entry else match[0]

    return re.sub(r"'[^']*'|\b(?:\w+\.)*[A-Z]\w*", full, text)


def _with_return_type(lines, text):
    """Adds the type of what comes back, below what says what it is."""
    starts = [i for i, line in enumerate(lines) if line == "Raises:"]
    starts += [i for i, line in enumerate(lines) if line.startswith(">>>")]
    place = min(starts, default=len(lines))
    field = [f":rtype: {text}"]
    if not any(line.startswith(":returns:") for line in lines):
        field = ["", *field]
    while place and not lines[place - 1]:
        place -= 1
    return [*lines[:place], *field, *lines[place:]]


def _with_code(lines):
    """Marks an indented block after a colon as code."""
    marked = list(lines)
    for i, line in enumerate(lines[:-2]):
        is_introduced = line.endswith(":") and not line.startswith((" ", ":"))
        if is_introduced and lines[i + 2].startswith("    "):
            marked[i] = f"{line}:" if not lines[i + 1] else line
    return marked


def _linked(line, module, owner, own_names):
    """Writes names in backticks as links or as code."""
    if line.lstrip().startswith((">>>", "...")):
        return line

    def role(match):
        text, target = match[1], None
        after = f"\\ {match[2]}" if match[2] else ""
        if text not in own_names:
            target = api_index.resolve(text, module, owner)
        if target is None:
            return f"``{text}``{after}"
        kind = "mod" if target in api_index.modules() else "obj"
        return f":py:{kind}:`{text} <{target}>`{after}"

    return _LITERAL.sub(role, line)
