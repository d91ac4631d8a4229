"""The glossary: terms with the chapter that defines them, linked both ways.

`tools/book/glossary/NN_topic.toml` holds the terms of a chapter, and
`tools/book/glossary/labs/NN_topic.toml` those of a lab:

    [attention]
    text = "The part of BERT in which a token takes in something of others."
    also = ["self-attention"]

In that chapter the term stands in bold where it is defined, `**attention**`;
the build makes it a link to chapter 92, which it writes from these files.
"""

import re
import tomllib
from dataclasses import dataclass

import book
import navigation

FOLDER = book.ROOT / "tools" / "book" / "glossary"
NAME = "92_glossary"
HOPS = "**Where you are.**"  # starts the line of the five hops
_START = "<!-- the terms: written by the build -->"


@dataclass(frozen=True)
class Term:
    """A word of the field, what it means, and where the book defines it."""

    word: str
    text: str
    chapter: str
    also: tuple[str, ...] = ()

    @property
    def anchor(self):
        """The part of a link after `#`, as JupyterLab makes it of a heading."""
        return self.word.replace(" ", "-")


def terms(name=None):
    """Returns the terms of a chapter, or all in the order of the alphabet."""
    found = []
    for path in sorted(FOLDER.rglob("*.toml")):
        chapter = path.relative_to(FOLDER).with_suffix("").as_posix()
        if name not in (None, chapter):
            continue
        for word, entry in tomllib.loads(path.read_text("utf-8")).items():
            if not {"text"} <= set(entry) <= {"text", "also"}:
                raise ValueError(
                    "A term must hold `text`, and `also` where it has other "
                    f"names. Received: {word!r} with {sorted(entry)} in "
                    f"{path.name}."
                )
            text = " ".join(entry["text"].split())
            also = tuple(entry.get("also", ()))
            found.append(Term(word, text, chapter, also))
    return sorted(found, key=lambda term: (term.word.lower(), term.chapter))


def refresh(notebook, name):
    """Makes the terms of a chapter links, in place; writes chapter 92."""
    if name == NAME:
        _write_entries(notebook)
        return
    for term in terms(name):
        _link_first(notebook, term, book.link(NAME, name))


def _link_first(notebook, term, page):
    """Links the first bold one in prose; the five hops are bold as well."""
    if is_linked(notebook, term):
        return
    bold = re.compile(rf"\*\*{_words(term)}\*\*")
    cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    for cell in cells:
        text = cell.source
        for start, end in navigation.prose(text):
            for found in bold.finditer(text, start, end):
                line = text[text.rfind("\n", 0, found.start()) + 1 :]
                if line.startswith(HOPS):
                    continue
                link = f"[{found[0]}]({page}#{term.anchor})"
                cell.source = text[: found.start()] + link + text[found.end() :]
                return


def _words(term):
    """Returns a pattern of the names of a term, and of more than one of it."""
    names = (re.escape(name) for name in (term.word, *term.also))
    return f"(?i:(?:{'|'.join(names)})s?)".replace(r"\ ", r"\s+")


def is_linked(notebook, term):
    """Tells whether a chapter links the term where it defines it."""
    page = book.link(NAME, term.chapter)
    target = re.escape(f"]({page}#{term.anchor})")
    link = re.compile(rf"\[\*\*{_words(term)}\*\*{target}")
    return any(
        link.search(cell.source)
        for cell in notebook.cells
        if cell.cell_type == "markdown"
    )


def entries():
    """Returns the glossary as markdown, a heading for each term."""
    blocks = []
    for term in terms():
        also = f" Also: {', '.join(term.also)}." if term.also else ""
        link = _link_to(term.chapter)
        blocks.append(f"### {term.word}\n\n{term.text}{also} → {link}")
    return "\n\n".join(blocks)


def _link_to(name):
    chapter = book.Chapter(name)
    label = f"chapter {chapter.number}"
    if chapter.is_lab:
        label = f"lab *{navigation.topic(name)}*"
    return f"[{label}]({book.link(name, NAME)})"


def _write_entries(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith(_START):
            cell.source = f"{_START}\n\n{entries()}"
