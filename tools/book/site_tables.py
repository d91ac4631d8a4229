"""Parts of the front page, from chapters, measured results and the README."""

import re

import badges
import book
import navigation
import road

CITATION = """\
```bibtex
@software{{bertbook,
  author  = {{{{{author}}}}},
  title   = {{{title}}},
  version = {{{version}}},
  url     = {{{url}}},
}}
```"""
MARK = re.compile(r"<!-- (\w+): written by the build -->")
# In the order of the contents; other pages of `docs/` follow them.
PACKAGE = (
    "docs/using",
    "moving",
    "api/index",
    "docs/devices",
    "docs/scaling",
    "docs/large_corpora",
)
PROJECT = (
    "docs/results",
    "docs/coverage",
    "CONTRIBUTING",
    "docs/architecture",
    "docs/authoring",
)
AT_THE_ROOT = "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md"
STARTS = {
    "mini": "`mini`",
    "mini-taught": "`mini-taught`",
    "scratch": "random weights",
    "bag of words": "bag of words",
    "minilm": "MiniLM",
}
DATA = {
    "sst2": "SST-2, is a review good or bad? (accuracy)",
    "qnli": "QNLI, does the sentence answer the question? (accuracy)",
    "conll2003": "CoNLL-2003, which words are names? (F1)",
}


def filled(text):
    """Returns a page with its tables in place of their marks."""
    makers = {
        "contents": contents,
        "install": install,
        "chapters": chapters,
        "results": results,
        "citation": citation,
    }
    return MARK.sub(lambda match: makers[match[1]](), text)


def install():
    """Returns the section of the README that says how to run the book."""
    readme = (book.ROOT / "README.md").read_text("utf-8")
    section = re.search(r"^## Install\n.*?(?=^## )", readme, re.M | re.S)[0]
    note = "" if book.has_address() else badges.NOTE
    heading, _, rest = section.partition("\n\n")
    return f"{heading}\n\n{note}{rest}".rstrip()


def contents():
    """Returns the contents by part, which the theme shows beside each page."""
    return "\n\n".join(toctree(*part) for part in parts())


def parts():
    """Yields the title of each part of the site and its pages in order."""
    for number, name in road.PARTS.items():
        pages = [
            f"notebooks/{chapter.name}"
            for chapter in book.chapters()
            if chapter.part == number
        ]
        yield f"{number} {name.capitalize()}", pages
    yield "Package", PACKAGE
    docs = [f"docs/{path.stem}" for path in sorted(docs_pages())]
    root = [name.removesuffix(".md") for name in AT_THE_ROOT]
    rest = [p for p in docs + root if p not in PACKAGE + PROJECT]
    yield "Project", (*PROJECT, *rest)


def docs_pages():
    """Returns the pages of `docs/`."""
    return (book.ROOT / "docs").glob("*.md")


def toctree(caption, pages):
    """Returns a part of the contents, which is not shown in the page."""
    lines = ["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages]
    return "\n".join([*lines, "```"])


def chapters():
    """Returns the table of chapters, with the minutes to read and to run."""
    rows = ["| part | chapter | to read | to run |", "|---|---|--:|--:|"]
    before = None
    for chapter in book.chapters():
        opening = book.read_notebook(chapter.path).cells[0].source
        part = "" if chapter.part == before else _part(chapter.part)
        before = chapter.part
        title = navigation.title(chapter.name)
        link = f"[{title}](notebooks/{chapter.name}.ipynb)"
        read, run = road.minutes(opening), minutes_to_run(opening)
        rows.append(f"| {part} | {link} | {read} | {run} |")
    return "\n".join(rows)


def _part(number):
    return f"**{number}** {road.PARTS[number]}"


def minutes_to_run(opening):
    """Returns how many minutes a chapter runs, such as `< 2`."""
    found = re.search(r"under (\d) minute", opening)
    return f"< {found[1]}"


# All rows of a training set, or those that stand for it.
FULL = re.compile(r"all|[\d,]+, derived from \w+")
SECTION = re.compile(r"^## .*`(\w+)`.*\n((?:(?!##).*\n)*)", re.MULTILINE)


def results():
    """Returns the main measured results, a row for each data set."""
    measured = measurements()
    rows = [["data", *STARTS.values()], ["---", *["--:"] * len(STARTS)]]
    for data, title in DATA.items():
        rows.append([title, *(measured.get((data, s), "") for s in STARTS)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f":::{{container}} results\n{table}\n:::"


def measurements():
    """Returns the mean on dev by data and start, after learning from all rows.

    It is of the measure that decides, at the best epoch if there are several.
    Of several recipes the first in `docs/results.md` counts.
    """
    found = {}
    text = (book.ROOT / "docs" / "results.md").read_text("utf-8")
    for data, section in SECTION.findall(text):
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 10 and FULL.fullmatch(cells[1]):
                last, best = (cell.split(" ")[0] for cell in cells[3:5])
                mean = last if best == "–" else best
                found.setdefault((data, cells[0]), mean)
    return found


def citation():
    """Returns the entry for BibTeX, with the title of `CITATION.cff`."""
    cff = (book.ROOT / "CITATION.cff").read_text("utf-8")
    title = re.search(r'^title: "(.+)"$', cff, re.MULTILINE)[1]
    return CITATION.format(
        author=book.project()["project"]["authors"][0]["name"],
        title=title.replace("BERT", "{BERT}").replace("Keras", "{Keras}"),
        version=book.version(),
        url=book.address(),
    )
