"""Links: to the chapters before and after, to every chapter and paper named.

The build writes them, so that an author writes `20_attention`, "chapter
20_attention" or "chapter 20", "lab 10_hard_texts", and "Vaswani et al. (2017)",
and a reader can follow them.
"""

import re
from functools import cache

import book
from bertbook.book import references

START = "00_start_here"
LAB = "Lab: "  # starts the title of one
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
    r"(?P<word>\b(?:[Cc]hapter|[Ll]ab)\s)?"
    r"(?<![\w/])(?P<name>\d\d_[a-z][a-z0-9_]*)"
    r"(?!\w|\.(?:ipynb|md|py|toml))"
    r"|(?P<by_number>\b[Cc]hapter\s)(?P<number>\d\d)(?![\w.]\w)(?!\w)"
)
# "chapters 40_x, 41_y and 42_z": the word, and what stands before this one.
_ONE_OF_MORE = rf"(?:\d\d(?:_[a-z][a-z0-9_]*)?|{_LINK})"
_MORE = re.compile(
    rf"\b(?:[Cc]hapters|[Ll]abs)\s+(?:{_ONE_OF_MORE}"
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
    """Writes all links of one chapter or lab, in place."""
    line = line_of(name)
    opening = notebook.cells[0]
    opening.source = _with_line(opening.source, line)
    last = notebook.cells[-1]
    if len(notebook.cells) > 1 and is_line(last.source):
        last.source = line
    else:
        notebook.cells.append(book.nbformat.v4.new_markdown_cell(line))
    for cell in notebook.cells[1:-1] + [opening]:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source, name)


def line_of(name):
    """Returns the line that leads to the chapters before and after.

    That of a lab leads to its chapter and to the next lab of the chapter.
    """
    lab = book.Chapter(name) if book.Chapter(name).is_lab else None
    names = [
        one.name
        for one in book.written()
        if (one.is_lab and one.number == lab.number if lab else not one.is_lab)
    ]
    place = names.index(name)
    before = names[place - 1] if place else None
    after = names[place + 1] if place + 1 < len(names) else None
    parts = []
    if lab:
        back = f"[chapter {lab.number}]({book.link(chapter_of(name), name)})"
        parts.append(f"Lab after {back}")
    elif before:
        parts.append(f"[← {title(before)}]({book.link(before, name)})")
    parts.append(f"[Contents]({book.link(START, name)})")
    if after:
        parts.append(f"[{title(after)} →]({book.link(after, name)})")
    return " | ".join(parts)


def chapter_of(name):
    """Returns the name of the chapter that a lab follows.

    Raises:
        ValueError: No chapter has its number.
    """
    number = book.Chapter(name).number
    for one in book.written():
        if one.number == number and not one.is_lab:
            return one.name
    raise ValueError(
        "`name` must start with the two digits of a chapter. "
        f"Received: {name!r}."
    )


@cache
def title(name):
    """Returns the title of a chapter with its number, or of a lab."""
    text = book.Chapter(name).twin.read_text("utf-8")
    first = re.search(r"^# (.+)$", text, re.MULTILINE)
    return first[1].strip()


def topic(name):
    """Returns the title of a lab without the word "Lab"."""
    return title(name).removeprefix(LAB)


def is_line(text):
    """Tells whether a text is the line at head or foot."""
    starts = text.startswith(("[← ", "[Contents](", "Lab after "))
    return starts and "[Contents](" in text and "\n" not in text


def _with_line(text, line):
    """Puts the line below the title, or in place of the former one."""
    lines = text.split("\n")
    places = [i for i, found in enumerate(lines) if is_line(found)]
    if places:
        lines[places[0]] = line
    else:
        lines[1:1] = ["", line]
    return "\n".join(lines)


def linked(text, name):
    """Returns markdown in which chapters, labs and papers named are links.

    Args:
        text: The source of a markdown cell.
        name: The notebook that it belongs to, which is not linked, such as
            `20_attention`, `labs/10_hard_texts` or `exercises/20_attention`.
    """
    pieces, done = [], 0
    for start, end in prose(text):
        new = _linked_prose(text, start, end, name)
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


def _linked_prose(whole, start, end, name):
    def chapter(match):
        word = match["word"] or match["by_number"] or ""
        target = _target(match, word)
        if target in (None, name):
            return match[0]
        before = whole[: start + match.start()]
        several = match["name"] and not match["word"] and _MORE.search(before)
        one = book.Chapter(target)
        kind = "Lab" if one.is_lab else "Chapter"
        if not several and word.strip().lower() != kind.lower():
            word = f"{kind.lower()} "
        if word and _SENTENCE_START.search(before):
            word = word.capitalize()
        label = f"*{topic(target)}*" if one.is_lab else one.number
        return f"[{word}{label}]({book.link(target, name)})"

    def paper(match):
        first = match["first"] or match["alone"]
        year = match["year"] or match["in_brackets"] or match["year_alone"]
        url = papers().get((first, int(year)))
        return f"[{match[0]}]({url})" if url else match[0]

    return _CITATION.sub(paper, _CHAPTER.sub(chapter, whole[start:end]))


def _target(match, word):
    """Returns the name of the chapter or lab that a match names, or None.

    A chapter may have become a lab: what is there counts, then the word.
    """
    if match["number"]:
        return names_by_number().get(match["number"])
    names = [match["name"], f"labs/{match['name']}"]
    if word.lower().startswith("lab"):
        names.reverse()
    found = (one for one in names if book.Chapter(one).twin.is_file())
    return next(found, None)


@cache
def names_by_number():
    """Returns the name of each chapter by its two digits."""
    return {
        chapter.number: chapter.name
        for chapter in book.written()
        if not chapter.is_lab
    }


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
