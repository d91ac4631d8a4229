"""Links: to the chapters before and after, to every chapter and paper named.

The build writes them, so that an author writes `20_attention`, "chapter
20_attention" or "chapter 20", and "Vaswani et al. (2017)", and a reader can
follow them.
"""

import re
from functools import cache

import book
from bertbook.book import references

CONTENTS = "[Contents](00_start_here.ipynb)"
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
# A link: its text may hold brackets, and its address parentheses.
_LINK = r"!?\[(?:[^\[\]]|\[[^\]]*\])*\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])"
# What is not prose: code blocks, formulas, code spans, links, HTML, headings.
_NOT_PROSE = re.compile(
    r"^ *(?P<fence>```+|~~~+).*?^ *(?P=fence) *$"
    r"|\$\$.*?\$\$"
    r"|(?P<ticks>(?<!`)`+(?!`))(?:(?!\n\s*\n).)+?(?<!`)(?P=ticks)(?!`)"
    rf"|{_LINK}"
    r"|<!--.*?-->|<a\b.*?</a>|</?[a-zA-Z][^>\n]*>"
    r"|^#+ [^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_CHAPTER = re.compile(
    r"(?P<word>\b[Cc]hapter\s)?(?<![\w/])(?P<name>\d\d_[a-z][a-z0-9_]*)"
    r"(?!\w|\.(?:ipynb|md|py|toml))"
    r"|(?P<by_number>\b[Cc]hapter\s)(?P<number>\d\d)(?![\w.]\w)(?!\w)"
)
# "chapters 40_x, 41_y and 42_z": the word, and the chapters before this one.
_ONE_OF_MORE = rf"(?:\d\d(?:_[a-z][a-z0-9_]*)?|{_LINK})"
_MORE = re.compile(
    rf"\b[Cc]hapters\s+(?:{_ONE_OF_MORE}"
    r"(?:,\s+(?:(?:and|or)\s+)?|\s+(?:and|or|to)\s+|–))*$"
)
_SENTENCE_START = re.compile(
    r"(?:\A|\n\s*\n|(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bal)(?<!\bvs)"
    r"[.?!][\"”)*]*\s+)$"
)
_NAME = r"[A-ZÀ-Þ][\w’'-]*"
_CITATION = re.compile(
    rf"(?P<first>{_NAME})"
    rf"(?:(?:,\s{_NAME})*,?\sand\s(?:De )?{_NAME}|\s+et\s+al\.)"
    r"(?:,?\s+(?P<year>(?:19|20)\d\d)\b"
    r"|\s+\((?P<in_brackets>(?:19|20)\d\d)(?:, [^()\n]*)?\))"
    rf"|(?P<alone>{_NAME}) \((?P<year_alone>(?:19|20)\d\d)(?:, [^()\n]*)?\)"
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
    text = book.Chapter(name).twin.read_text("utf-8")
    first = re.search(r"^# (.+)$", text, re.MULTILINE)
    return first[1].strip()


def _is_line(text):
    starts = text.startswith(("[← ", CONTENTS))
    return starts and CONTENTS in text and "\n" not in text


def _with_line(text, line):
    """Puts the line below the title, or in place of the former one."""
    lines = text.split("\n")
    places = [i for i, found in enumerate(lines) if _is_line(found)]
    if places:
        lines[places[0]] = line
    else:
        lines[1:1] = ["", line]
    return "\n".join(lines)


def linked(text, name, folder=""):
    """Returns markdown in which chapters and papers named are links.

    Args:
        text: The source of a markdown cell.
        name: The chapter that it belongs to, which is not linked.
        folder: Where the chapters are, seen from the notebook: "" or "../".
    """
    pieces, done = [], 0
    for start, end in prose(text):
        new = _linked_prose(text, start, end, name, folder)
        pieces += [text[done:start], new]
        done = end
    return "".join(pieces)


def prose(text):
    """Yields start and end of each piece of markdown that is prose."""
    start = 0
    for match in _NOT_PROSE.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _linked_prose(whole, start, end, name, folder):
    def chapter(match):
        target = match["name"] or names_by_number().get(match["number"], "")
        if target == name or not book.Chapter(target).twin.is_file():
            return match[0]
        before = whole[: start + match.start()]
        word = match["word"] or match["by_number"] or "chapter "
        if _SENTENCE_START.search(before):
            word = word.capitalize()
        if match["name"] and not match["word"] and _MORE.search(before):
            word = ""
        label = f"{word}{target[:2]}"
        return f"[{label}]({folder}{target}.ipynb)"

    def paper(match):
        first = match["first"] or match["alone"]
        year = match["year"] or match["in_brackets"] or match["year_alone"]
        url = papers().get((first, int(year)))
        return f"[{match[0]}]({url})" if url else match[0]

    return _CITATION.sub(paper, _CHAPTER.sub(chapter, whole[start:end]))


@cache
def names_by_number():
    """Returns the name of each chapter by its two digits."""
    return {chapter.name[:2]: chapter.name for chapter in book.chapters()}


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
