"""What the opening of a chapter and its sections must hold."""

import re

import badges

HOPS = ("Tokenizer.encode", "examples", "batch", "model", "loss")
BACK_MATTER = 9  # the part without experiments: errata, notation, timings

_TIME = re.compile(
    r"^\*\*Time:\*\* under ([123]) minutes? on two CPU cores"
    r" · \*\*Memory:\*\* (\d+(?:\.5)?) GB$",
    re.MULTILINE,
)
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
    return 60.0 * int(found[1]), float(found[2])


def faults(notebook, name):
    """Returns what a chapter's opening and sections lack, in words."""
    if not notebook.cells or notebook.cells[0].cell_type != "markdown":
        return ["the first cell must be markdown"]
    opening = notebook.cells[0].source
    found = _faults_of_opening(opening, name)
    wanted = [r"## Summary"]
    if int(name[0]) != BACK_MATTER:
        found += _faults_of_hops(opening) + _faults_of_goals(opening)
        wanted += [r"###? Predict before you run", r"## Exercises"]
    prose = prose_of(notebook)
    for heading in wanted:
        if not re.search(rf"^{heading}", prose, re.MULTILINE):
            found.append(f"no section {heading.replace('?', '')!r}")
    return found


def prose_of(notebook):
    """Returns the markdown cells as one text."""
    cells = (c.source for c in notebook.cells if c.cell_type == "markdown")
    return "\n\n".join(cells)


def _faults_of_opening(opening, name):
    found = []
    if not re.match(rf"# {name[:2]} \S", opening):
        found.append(f"the first line must be `# {name[:2]} Title`")
    if badges.badge(name) not in opening.split("\n"):
        found.append("no badge of its own: `make badges`")
    if not _QUESTION.search(opening):
        found.append("no `**The question.** ...?`")
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
