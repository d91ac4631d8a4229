"""Docstrings say what goes in, what comes out and what is raised.

Nothing is imported: the files are read.
"""

import ast
import re
from functools import cache

import api_index

SECTION = re.compile(
    r"^(Args|Attributes|Returns|Yields|Raises|Warns):\n((?:(?: .*)?\n)*)", re.M
)
ITEM = re.compile(r"^    (\*{0,2}\w+):", re.M)
ERROR = re.compile(r"^    (\w+):", re.M)
FUNCTION = ast.FunctionDef
# These take longer than a docstring may, or several processes.
WITHOUT_EXAMPLE = {"join_processes", "pretrain", "train_translation"}


def sections(docstring):
    """Returns the text of each section by its name."""
    return dict(SECTION.findall(docstring + "\n"))


def own_nodes(node):
    """Yields the nodes of a function, those of functions inside left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTION | ast.ClassDef | ast.Lambda):
            yield child
            yield from own_nodes(child)


def undescribed(parameters, docstring):
    """Returns the parameters that no section and no sentence names."""
    found = sections(docstring)
    items = ITEM.findall(found.get("Args", "") + found.get("Attributes", ""))
    by_sentence = "Args" not in found
    return [
        name
        for name in parameters
        if name not in items
        and not (by_sentence and f"`{name.lstrip('*')}`" in docstring)
    ]


KINDS = {"RowErrors": "ValueError"}  # of rows of a table, which users catch


def raised(node):
    """Returns the names of the errors that a function's own lines raise."""
    names = set()
    for child in own_nodes(node):
        if isinstance(child, ast.Raise) and child.exc is not None:
            error = child.exc
            error = error.func if isinstance(error, ast.Call) else error
            name = ast.unparse(error)
            if name[0].isupper():  # an error that was caught goes on
                names.add(KINDS.get(name, name))
    return names


def unnamed_errors(node, docstring):
    """Returns the errors that a function raises and does not tell of."""
    said = ERROR.findall(sections(docstring).get("Raises", ""))
    return sorted(raised(node) - set(said))


def says_what_returns(node, docstring):
    """Tells whether a docstring says what comes back, if anything does."""
    gives = any(
        isinstance(child, ast.Return) and child.value is not None
        for child in own_nodes(node)
    )
    yields = any(
        isinstance(child, ast.Yield | ast.YieldFrom)
        for child in own_nodes(node)
    )
    if not gives or yields:
        return True
    first = docstring.partition("\n\n")[0]
    is_said = re.search(r"\b(R|r)eturns\b|\bTells\b", first) is not None
    return is_said or "Returns" in sections(docstring)


def is_property(node):
    names = [ast.unparse(d).rpartition(".")[2] for d in node.decorator_list]
    return bool({"property", "cached_property", "setter"} & set(names))


def public_functions():
    """Yields the functions behind the public names, methods too, by entry."""
    for home in api_index.public_names().values():
        definition = api_index.everything()[home]
        if not definition.is_class:
            yield definition.target, definition
            continue
        for member in api_index.members(home).values():
            yield f"{definition.target}.{member.node.name}", member


def all_functions():
    """Yields every function and method without an underscore."""
    for definition in api_index.everything().values():
        if not definition.is_class:
            yield definition
            continue
        for member in api_index.members(definition.home).values():
            if member.name.startswith(f"{definition.name}."):
                yield member


def test_every_definition_has_a_docstring():
    every = [*api_index.everything().values(), *all_functions()]
    assert len(every) > 1000
    assert [d.home for d in every if not d.docstring] == []


def test_public_functions_describe_every_parameter():
    found = {}
    for entry, definition in public_functions():
        names = api_index.parameters(definition.node)
        if "Keras" in definition.docstring:  # what goes on to Keras
            names = [n for n in names if not n.startswith("*")]
        missing = undescribed(names, definition.docstring)
        if missing:
            found[entry] = missing
    assert found == {}


def test_public_classes_describe_what_makes_them():
    found = {}
    for home in api_index.public_names().values():
        definition = api_index.everything()[home]
        if definition.is_class:
            maker = api_index.maker(definition)
            names = api_index.fields(definition)
            if maker is not None:
                names = api_index.parameters(maker)
            missing = undescribed(names, definition.docstring)
            if missing:
                found[definition.target] = missing
    assert found == {}


def test_public_functions_say_what_they_return():
    found = [
        entry
        for entry, definition in public_functions()
        if not is_property(definition.node)
        and not says_what_returns(definition.node, definition.docstring)
    ]
    assert found == []


def test_public_names_have_an_example_that_is_run():
    without = {
        name
        for name, home in api_index.public_names().items()
        if "\n>>> import bertbook as bb\n" not in docstring_of(home)
    }
    assert without == WITHOUT_EXAMPLE


def docstring_of(home):
    return api_index.everything()[home].docstring


def test_a_section_of_arguments_names_each_and_no_other():
    found = {}
    for definition in all_functions():
        args = sections(definition.docstring).get("Args")
        if args is not None:
            names = api_index.parameters(definition.node)
            if ITEM.findall(args) != names:
                found[definition.home] = names, ITEM.findall(args)
    assert found == {}


def test_functions_name_the_errors_that_they_raise():
    found = {
        definition.home: unnamed
        for definition in all_functions()
        if (unnamed := unnamed_errors(definition.node, definition.docstring))
    }
    assert found == {}


def called(module, node):
    """Yields the functions of the package that a function calls by name.

    What stands in a `try` is left out: its errors may be caught.
    """
    own = {d.name: d for d in functions_of(module)}
    tried = {
        id(inner)
        for child in own_nodes(node)
        if isinstance(child, ast.Try)
        for line in child.body
        for inner in ast.walk(line)
    }
    for child in own_nodes(node):
        if isinstance(child, ast.Call) and id(child) not in tried:
            name = getattr(child.func, "id", "")
            home = api_index.imported(module).get(name)
            found = own.get(name) or api_index.everything().get(home)
            if found is not None and not found.is_class:
                yield found


@cache
def functions_of(module):
    """Returns the functions of a module, those with an underscore too."""
    nodes = api_index.tree(module).body
    return [
        api_index.Definition(module, node.name, node)
        for node in nodes
        if isinstance(node, FUNCTION)
    ]


def raised_below(module, node, depth=2):
    """Returns the errors of a function and of what it calls."""
    names = raised(node)
    if depth:
        for other in called(module, node):
            names |= raised_below(other.module, other.node, depth - 1)
    return names


def test_public_functions_name_the_errors_of_what_they_call():
    found = {}
    for entry, definition in public_functions():
        said = sections(definition.docstring).get("Raises", "")
        below = raised_below(definition.module, definition.node)
        missing = below - set(ERROR.findall(said))
        if missing and not is_property(definition.node):
            found[entry] = missing
    assert found == {}


# Each fault is seen.

FUNCTION_TEXT = """
def half(number, digits=3):
    \'\'\'{docstring}\'\'\'
    if number < 0:
        raise ValueError(number)
    return round(number / 2, digits)
"""
WHOLE = """Returns one half.

    Args:
        number: Any, from 0 on.
        digits: How many to keep.

    Raises:
        ValueError: It is below 0.
    """


def judge(docstring):
    """Returns what the checks say of a function with this docstring."""
    text = FUNCTION_TEXT.format(docstring=docstring)
    node = ast.parse(text).body[0]
    docstring = ast.get_docstring(node)
    return (
        undescribed(api_index.parameters(node), docstring),
        unnamed_errors(node, docstring),
        says_what_returns(node, docstring),
    )


def test_each_fault_is_seen():
    for old, new, found in (
        ("", "", ([], [], True)),
        ("digits: How", "figures: How", (["digits"], [], True)),
        ("ValueError:", "TypeError:", ([], ["ValueError"], True)),
        ("Returns one", "Computes one", ([], [], False)),
    ):
        assert judge(WHOLE.replace(old, new)) == found


def test_a_sentence_may_name_the_parameters():
    short = "Returns half of `number`, rounded to `digits`."
    assert judge(short) == ([], ["ValueError"], True)
