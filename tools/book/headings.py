"""What the opening and the sections of a chapter or lab must hold."""

import ast
import re

import badges
import book
import captions
import labs
import navigation

HOPS = ("Tokenizer.encode", "examples", "batch", "model", "loss")
BACK_MATTER = 9  # the part without experiments: errata, notation, timings

CUT = "**You will often read**"  # starts the one box on a misconception

_QUIET = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
_NAMING = ast.Assign, ast.AnnAssign
_COMPUTES = (
    ast.Call,
    ast.BinOp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_TIME = re.compile(
    r"^\*\*Time:\*\* (?:(\d+) minutes to read, )?"
    r"under ([1234]) minutes? on two CPU cores"
    r" · \*\*Memory:\*\* (\d+(?:\.5)?) GB$",
    re.MULTILINE,
)
# Rows of tables, addresses of links, comments.
_NOT_READ = re.compile(r"^\|.*$|\]\([^)]*\)|<!--.*?-->", re.MULTILINE)
_QUESTION = re.compile(r"^\*\*The question\.\*\* [^?]+\?", re.MULTILINE)


def cost(opening):
    """Returns what an opening allows: seconds and GB.

    Raises:
        ValueError: The line on time and memory is missing or misspelt.
    """
    found = _TIME.search(opening)
    if found is None:
        raise ValueError(
            "The opening must hold a line such as `**Time:** under 2 minutes "
            "on two CPU cores · **Memory:** 1.5 GB`. "
            f"Received: {_line(opening, '**Time:**')!r}."
        )
    return 60.0 * int(found[2]), float(found[3])


def reading_minutes(notebook):
    """Returns the minutes that a notebook takes, with what is written.

    A minute for 200 words, ten for a part of `mybert`, with its stub and its
    answer, half a minute for any other code cell. Tables are looked up, not
    read.
    """
    prose = _NOT_READ.sub("", prose_of(notebook))
    cells = book.code_cells(notebook)
    parts = sum(
        "your-turn" in cell.metadata.get("tags", []) and "@part" in cell.source
        for cell in cells
    )
    words = len(re.findall(r"\w[\w'’-]*", prose))
    others = len(cells) - 2 * parts
    return round(words / 200 + others / 2 + 10 * parts)


def refresh(notebook):
    """Writes the minutes into the opening, where it has some, in place."""
    opening = notebook.cells[0]
    found = _TIME.search(opening.source)
    if found and found[1]:
        start, end = found.span(1)
        minutes = str(reading_minutes(notebook))
        opening.source = opening.source[:start] + minutes + opening.source[end:]


def faults(notebook, name):
    """Returns what a notebook's opening and sections lack, in words."""
    if not notebook.cells or notebook.cells[0].cell_type != "markdown":
        return ["the first cell must be markdown"]
    opening = notebook.cells[0].source
    chapter = book.Chapter(name)
    found = _faults_of_opening(opening, chapter)
    wanted = [r"## Summary"]
    if chapter.part != BACK_MATTER:
        found += _faults_of_hops(opening)
        wanted.append(r"###? Predict before you run")
    if chapter.part != BACK_MATTER and not chapter.is_lab:
        found += _faults_of_goals(opening)
        wanted.append(r"## Exercises")
    prose = prose_of(notebook)
    for heading in wanted:
        if not re.search(rf"^{heading}", prose, re.MULTILINE):
            found.append(f"no section {heading.replace('?', '')!r}")
    if chapter.part != BACK_MATTER:
        found += faults_of_form(notebook, name)
    return found


def faults_of_form(notebook, name):
    """Returns what a notebook has too much of, or lacks, in words."""
    found, opening, prose = [], notebook.cells[0].source, prose_of(notebook)
    kind = "lab" if book.Chapter(name).is_lab else "chapter"
    if f"**Before this {kind}.**" not in opening:
        found.append(f"no line `**Before this {kind}.** ...`")
    time = _TIME.search(opening)
    if time is None or time[1] is None:
        found.append("the line on time must start `N minutes to read, under`")
    if prose.count(CUT) > 1:
        found.append(f"more than one box {CUT}")
    if "sources simplify" in prose:
        found.append("what sources simplify belongs in 90_errata")
    found += [
        f"code cell {number} shows nothing: {cell.source.split(chr(10))[0]}"
        for number, cell in enumerate(book.code_cells(notebook), start=1)
        if is_silent(cell)
    ]
    return found + captions.faults(notebook)


def is_silent(cell):
    """Tells whether a cell shows nothing and does more than to define.

    Imports, definitions, docstrings and names given to constants may be
    silent; a cell that is not run here says so by its tag.
    """
    if cell.outputs or "nbval-skip" in cell.metadata.get("tags", []):
        return False
    return not all(
        isinstance(node, _QUIET)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, _NAMING) and _is_plain(node.value))
        or _is_setting(node)
        for node in ast.parse(book.without_magics(cell.source)).body
    )


def _is_plain(value):
    """Tells whether a value is written out: no call, no operator."""
    if value is None:  # an annotation alone
        return True
    return not any(isinstance(node, _COMPUTES) for node in ast.walk(value))


def _is_setting(node):
    """Tells whether a line sets how numbers are printed."""
    return "set_printoptions" in ast.unparse(node)


def prose_of(notebook):
    """Returns the markdown cells as one text."""
    cells = (c.source for c in notebook.cells if c.cell_type == "markdown")
    return "\n\n".join(cells)


def _faults_of_opening(opening, chapter):
    found = []
    start = navigation.LAB if chapter.is_lab else f"{chapter.number} "
    if not re.match(rf"# {start}\S", opening):
        found.append(f"the first line must be `# {start}Title`")
    if badges.badge(chapter.name) not in opening.split("\n"):
        found.append("no badge of its own: `make badges`")
    if not _QUESTION.search(opening):
        found.append("no `**The question.** ...?`")
    if chapter.is_lab and not labs.is_one_sentence(labs.answer(opening)):
        found.append("no `**The answer.** ...` of one sentence")
    try:
        cost(opening)
    except ValueError as error:
        found.append(str(error))
    return found


def _faults_of_hops(opening):
    """Checks the line of the five hops, at least one of them in bold."""
    line = _line(opening, "**Where you are.**").replace("`", "")
    steps = line.removeprefix("**Where you are.**").split("→")
    steps = [step.strip() for step in steps]
    bold = [step for step in steps if step.startswith("**")]
    if [step.strip("*") for step in steps] != ["text", *HOPS] or not bold:
        return [
            "the line `**Where you are.** text → "
            f"{' → '.join(HOPS)}` must be there, the present hops in bold"
        ]
    return []


def _faults_of_goals(opening):
    """Checks that three list items follow the line that announces them."""
    after = opening.partition("**You will be able to**")[2]
    items = re.findall(r"^(?:[-*]|\d\.) \S", after, re.MULTILINE)
    if len(items) != 3:
        return [f"`**You will be able to**` needs 3 items, has {len(items)}"]
    return []


def _line(text, start):
    lines = (line for line in text.split("\n") if line.startswith(start))
    return next(lines, "").strip()
