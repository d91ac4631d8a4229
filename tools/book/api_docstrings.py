"""Docstrings as Sphinx reads them: types beside names, names as links.

The docstrings are written in Google's form with Markdown's backticks. What
Napoleon would take for something else is put right here, and it does the rest.
"""

import re
from dataclasses import dataclass

import api_index

_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Warns):$")
_ITEM = re.compile(r"    (\*{0,2}\w+)(?: \([^)]*\))?: (.*)")
_LITERAL = re.compile(r"(?<![`:])`([^`]+)`(?!`)(\w?)")
_CLASS = re.compile(r"'[^']*'|\b(?:\w+\.)*[A-Z]\w*")


@dataclass(frozen=True)
class Place:
    """Where a docstring stands, which decides what its names mean."""

    module: str = ""  # the dotted name of the module
    owner: str = ""  # the home of the class, for a class and its methods
    own_names: frozenset = frozenset()  # parameters, which are no links
    room: str = ""  # the package whose modules one word may name

    def entry_of(self, name):
        """Returns the entry, or the module, that a name means here."""
        if name in self.own_names:
            return None
        entry = api_index.resolve(name, self.module, self.owner)
        if entry is None and f"{self.room}.{name}" in api_index.modules():
            entry = f"{self.room}.{name}"
        return entry


def as_rest(lines, place, types=None):
    """Returns the lines of a docstring as reStructuredText for Napoleon.

    Args:
        lines: The docstring without its indentation.
        place: The `Place` where it stands.
        types: The types of the parameters and of `return`, as text.
    """
    types = types or {}
    done, section = [], ""
    for line in _joined(lines):
        if found := _SECTION.match(line):
            section = found[1]
            if section not in ("Returns", "Yields"):
                done.append(line)
        elif section in ("Args", "Attributes"):
            done.append(_typed(line, types, place))
        elif section in ("Returns", "Yields") and line:
            is_first = not done or not done[-1].startswith(("   ", ":return"))
            mark = ":returns: " if is_first else "    "
            done.append(mark + line.strip())
        else:
            done.append(line)
    returned = types.get("return")
    if returned not in (None, "None", "Self"):
        done = _with_return_type(done, _qualified(returned, place))
    return [_linked(line, place) for line in _with_code(done)]


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


def _typed(line, types, place):
    """Puts the type of an argument behind its name."""
    item = _ITEM.match(line)
    if not item:
        return line
    text = types.get(item[1].lstrip("*"))
    kind = f" ({_qualified(text, place)})" if text else ""
    says = re.sub(r"^(\w\.)", r"\\\1", item[2])  # `H.` begins no list
    return f"    {item[1]}{kind}: {says}"


def _qualified(text, place):
    """Writes the classes in a type with their entries, which stay hidden."""

    def full(match):
        is_text = match[0].startswith("'")
        entry = None if is_text else api_index.resolve(match[0], place.module)
        return f"~{entry}" if entry else match[0]

    return _CLASS.sub(full, text)


def _with_return_type(lines, text):
    """Adds the type of what comes back, below what says what it is."""
    starts = [i for i, line in enumerate(lines) if line == "Raises:"]
    starts += [i for i, line in enumerate(lines) if line.startswith(">>>")]
    end = min(starts, default=len(lines))
    while end and not lines[end - 1]:
        end -= 1
    field = [f":rtype: {text}"]
    if not any(line.startswith(":returns:") for line in lines):
        field = ["", *field]
    return [*lines[:end], *field, *lines[end:]]


def _with_code(lines):
    """Marks an indented block after a colon as code."""
    marked = list(lines)
    for i, line in enumerate(lines[:-2]):
        is_prose = line.endswith(":") and not line.startswith((" ", ":"))
        is_followed = not lines[i + 1] and lines[i + 2].startswith("    ")
        if is_prose and is_followed:
            marked[i] = f"{line}:"
    return marked


def _linked(line, place):
    """Writes names in backticks as links or as code."""
    if line.lstrip().startswith((">>>", "...")):
        return line

    def role(match):
        entry = place.entry_of(match[1])
        after = f"\\ {match[2]}" if match[2] else ""
        if entry is None:
            return f"``{match[1]}``{after}"
        kind = "mod" if entry in api_index.modules() else "obj"
        return f":py:{kind}:`{match[1]} <{entry}>`{after}"

    return _LITERAL.sub(role, line)
