"""Numbers in prose: what is scanned, what is not, and what backs a number.

A number counts when it has three digits or more, or a decimal point. It must
be a fact of `tests/book/facts.toml` or, in a chapter, stand in an output of the
same chapter; there a decimal may also be a rounding of what was printed.

Not scanned: code (fenced, indented by `>>>`, or in backticks, unless the
backticks hold a number alone), link targets, HTML comments, the line on time
and memory, names such as 10_tokens, SHA-256 or Python 3.11, references such
as section 3.2 or arXiv:1706.03762, and years: whole numbers from 1950 to 2030
without a comma. So write counts of 1,000 and more with their comma.

`python tools/book/facts.py` lists the numbers that nothing backs.
"""

import ast
import re
import tomllib
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import book
import labs

NUMBER = re.compile(
    r"""(?<![\w.])(?P<whole>\d{1,3}(?:,\d{3})+|\d+)
        (?P<decimals>\.\d+)?(?P<exponent>[eE][+-]?\d+)?(?!\d)""",
    re.VERBOSE,
)
PAGES = "README.md", "docs/using.md"
YEARS = range(1950, 2031)

_VERSIONED = (
    "Python|TensorFlow|Keras|KerasHub|JAX|NumPy|SciPy|PyTorch|Transformers|"
    "Unicode|CUDA|Apache|License,?|BY(?:-SA)?|[Vv]ersions?"
)
_REFERENCES = (
    r"sections?|chapters?|parts?|tables?|figures?|equations?|appendix|pages?|"
    r"pp?\.|lines?|§"
)
_AND_MORE = r"(?:(?:,|,? and|,? or|,? to)\s+v?[1-9]\d*(?:\.\d+)+)*"
_CODE_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_NUMBER_ALONE = re.compile(r"\s*[-+−]?[\d,.]+%?\s*")
_BLOCKS = [
    re.compile(pattern, re.DOTALL | re.MULTILINE)
    for pattern in (
        r"<!--.*?-->",
        r"^ *(```+|~~~+).*?^ *\1 *$",  # fenced code
        r"^ *(?:>>>|\.\.\.) .*?(?:\n\s*\n|\Z)",  # a doctest and its output
    )
]
_PHRASES = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\*\*Time:\*\*.*$",
        r"(?<=\])\([^)]*\)",  # the target of a link
        r"\b(?:https?://|arXiv:|doi:|10\.\d{4,}/)\S+",
        r"\b[A-Z]{2,}-\d[\d.]*",  # SHA-256, UTF-16
        rf"(?:\b|(?=§))(?i:{_REFERENCES})\s*\d[\d.]*(?:[-–]\d[\d.]*)?"
        + _AND_MORE,
        rf"\b(?:{_VERSIONED})[\s-]+v?\d+(?:\.\d+)*" + _AND_MORE,
        r"\bSQuAD\s+v?[12]\.[01]\b",
        r"\bv?\d+\.\d+\.\d+[\w.]*",  # a version
        r"\b(?:[A-Za-z_]\w*|\d+_\w+)\b",  # words and names such as 10_tokens
    )
]


def numbers_in(prose):
    """Returns the numbers of a text that must be backed, as written."""
    text = prose.replace("{,}", ",")  # LaTeX writes 1{,}024
    for pattern in _BLOCKS:
        text = pattern.sub(" ", text)
    text = _CODE_SPAN.sub(_number_alone, text)
    for pattern in _PHRASES:
        text = pattern.sub(" ", text)
    return [m[0] for m in NUMBER.finditer(text) if _counts(m)]


def _number_alone(span):
    """Keeps a number that stands alone in backticks, drops other code."""
    return span[2] if _NUMBER_ALONE.fullmatch(span[2]) else " "


def _counts(match):
    if match["decimals"]:
        return True
    whole = match["whole"]
    return len(whole.replace(",", "")) >= 3 and not (
        "," not in whole and int(whole) in YEARS
    )


def backed_by(number, allowed):
    """Tells whether a number is among `allowed`, or rounds one of them."""
    plain = number.replace(",", "")
    if plain in allowed:
        return True
    digits = len(plain.partition(".")[2])
    if not digits or "e" in plain.lower():
        return False
    step = Decimal(1).scaleb(-digits)
    return any(
        Decimal(other).quantize(step, rounding) == Decimal(plain)
        for other in allowed
        if len(other.partition(".")[2]) > digits and "e" not in other.lower()
        for rounding in (ROUND_HALF_UP, ROUND_HALF_EVEN)
    )


def plain_numbers(text):
    """Returns every number of an output or a fact, without commas.

    A comma may group the digits of one number or part two, as in `(2,128)`:
    both readings are returned.
    """
    both = text, text.replace(",", " ")
    found = (m[0] for reading in both for m in NUMBER.finditer(reading))
    return {number.replace(",", "") for number in found}


def facts():
    """Returns the entries of `tests/book/facts.toml`."""
    text = (book.ROOT / "tests" / "book" / "facts.toml").read_text("utf-8")
    return tomllib.loads(text).get("fact", [])


def known():
    """Returns the numbers that the facts hold."""
    return set().union(*(plain_numbers(fact["text"]) for fact in facts()))


def shown(value, text):
    """Returns a value as its fact writes it.

    A string is taken as it is. Otherwise `text` gives the form: its decimals,
    its commas, and a percent sign for a share.
    """
    if isinstance(value, str):
        return value
    digits = len(text.rstrip("%").partition(".")[2])
    comma = "," if "," in text else ""
    if text.endswith("%"):
        return f"{value:.{digits}%}"
    return f"{value:{comma}.{digits}f}" if digits else f"{value:{comma}}"


def outputs_of(notebook):
    """Returns the numbers in the text outputs of a notebook."""
    found = set()
    for cell in book.code_cells(notebook):
        for output in cell.outputs:
            data = output.get("data", {})
            texts = output.get("text", ""), data.get("text/plain", "")
            found |= plain_numbers("\n".join(texts))
    return found


def docstrings(path):
    """Yields `(name, docstring)` for a module and all it defines."""
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, kinds) and ast.get_docstring(node):
            name = getattr(node, "name", "the module")
            yield name, ast.get_docstring(node)


def unbacked_in_chapter(notebook):
    """Returns the numbers of a chapter's prose that nothing backs.

    Those in the list of its labs are backed in the labs.
    """
    allowed = known() | outputs_of(notebook)
    prose = (
        cell.source
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        and not cell.source.startswith(labs.HEADING)
    )
    return unbacked("\n\n".join(prose), allowed)


def unbacked(prose, allowed):
    """Returns the numbers of a text that `allowed` does not back."""
    return [n for n in numbers_in(prose) if not backed_by(n, allowed)]


def report():
    """Yields `(place, numbers)` wherever a number has nothing behind it."""
    allowed = known()
    for chapter in book.everything():
        notebook = book.read_notebook(chapter.path)
        yield chapter.name, unbacked_in_chapter(notebook)
    for name in PAGES:
        text = (book.ROOT / name).read_text("utf-8")
        yield name, unbacked(text, allowed)
    for path in sorted((book.ROOT / "bertbook").rglob("*.py")):
        for name, text in docstrings(path):
            yield f"{path.name}, {name}", unbacked(text, allowed)


def main():
    """Lists the numbers that nothing backs, with their places."""
    for place, numbers in report():
        if numbers:
            print(f"{place}: {', '.join(numbers)}")


if __name__ == "__main__":
    main()
