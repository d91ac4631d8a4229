"""Links: to the chapters before and after, to every chapter and paper named.

The build writes them, so that an author writes `20_attention` or "chapter
20_attention" and "Vaswani et al. (2017)", and a reader can follow both.
"""

import re
from functools import cache

import book
from bertbook.book import references

CONTENTS = "[Contents](00_start_here.ipynb)"
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
# What is not prose: code blocks, code spans, links, HTML comments, headings.
_NOT_PROSE = re.compile(
    r"^ *(?:```+|~~~+).*?^ *(?:```+|~~~+) *$"
    r"|`[^`\n]+`"
    r"|!?\[(?:[^\[\]]|\[[^\]]*\])*\]\([^)]*\)"
    r"|<[^>]+>"
    r"|^#+ [^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_CHAPTER = re.compile(
    r"(?P<word>\b[Cc]hapter )?(?<![\w/])(?P<name>\d\d_[a-z][a-z0-9_]*)"
    r"(?!\w|\.(?:ipynb|md|py|toml))"
)
_MORE = re.compile(r"\b[Cc]hapters (?:[^.\n]*(?:,|and|or|to) )?$")
_NAME = r"[A-ZÀ-Þ][\w’'-]*"
_CITATION = re.compile(
    rf"(?P<first>{_NAME})(?:(?:, {_NAME})*,? and (?:De )?{_NAME}|\s+et\s+al\.)"
    r"(?:,?\s+(?P<year>(?:19|20)\d\d)\b|\s+\((?P<in_brackets>(?:19|20)\d\d)\))"
    rf"|(?P<alone>{_NAME}) \((?P<year_alone>(?:19|20)\d\d)\)"
)


def refresh(notebook, name):
    """Writes all links of one chapter, in place."""
    line = line_of(name)
    opening = notebook.cells[0]
    opening.source = _with_line(opening.source, line)
    last = notebook.cells[-1]
    if len(notebook.cells) > 1 and _is_line(last.source):
        last.source = line
    else:
        notebook.cells.append(book.nbformat.v4.new_markdown_cell(line))
    for cell in notebook.cells[1:-1] + [opening]:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source, name)


def line_of(name):
    """Returns the line that leads to the chapters before and after."""
    names = [path.stem for path in book.twins() if book.is_name(path.stem)]
    place = names.index(name)
    before = names[place - 1] if place else None
    after = names[place + 1] if place + 1 < len(names) else None
    parts = [f"[← {title(before)}]({before}.ipynb)"] if before else []
    parts.append(CONTENTS)
    parts += [f"[{title(after)} →]({after}.ipynb)"] if after else []
    return " | ".join(parts)


@cache
def title(name):
    """Returns the title of a chapter with its number."""
    first = re.search(r"^# (.+)$", book.Chapter(name).twin.read_text(), re.M)
    return first[1].strip()


def _is_line(text):
    return CONTENTS in text and "\n" not in text


def _with_line(text, line):
    """Puts the line below the title, or in the place of the former one."""
    lines = text.split("\n")
    places = [i for i, found in enumerate(lines) if _is_line(found)]
    if places:
        lines[places[0]] = line
    else:
        lines[1:1] = ["", line]
    return "\n".join(lines)


def linked(text, name):
    """Returns markdown in which chapters and papers named are links.

    Args:
        text: The source of a markdown cell.
        name: The chapter that it belongs to, which is not linked.
    """
    pieces, end = [], 0
    for match in _NOT_PROSE.finditer(text):
        pieces += [_linked_prose(text[end : match.start()], name), match[0]]
        end = match.end()
    return "".join([*pieces, _linked_prose(text[end:], name)])


def _linked_prose(text, name):
    def chapter(match):
        target = match["name"]
        if target == name or not book.Chapter(target).twin.is_file():
            return match[0]
        if _MORE.search(text[: match.start()]):
            label = target[:2]
        else:
            label = f"{match['word'] or 'chapter '}{target[:2]}"
        return f"[{label}]({target}.ipynb)"

    def paper(match):
        first = match["first"] or match["alone"]
        year = match["year"] or match["in_brackets"] or match["year_alone"]
        url = papers().get((first, int(year)))
        return f"[{match[0]}]({url})" if url else match[0]

    return _CITATION.sub(paper, _CHAPTER.sub(chapter, text))


@cache
def papers():
    """Returns the address of each work by its first author and year.

    Two works of one author and year have none here: write their links out.
    """
    found = {}
    for work in (*references.OF_THE_SOURCES, *references.further()):
        first = re.split(r",| and | et al", work.authors)[0]
        found.setdefault((first, work.year), []).append(address(work))
    return {key: urls[0] for key, urls in found.items() if len(urls) == 1}


def address(work):
    """Returns where a work can be read, or None where no number says it."""
    number = ARXIV.search(work.where)
    return f"https://arxiv.org/abs/{number[1]}" if number else None
