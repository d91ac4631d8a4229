"""Links, captions and terms without a build, and links that lead nowhere.

`python tools/book/links.py` brings up to date what the tools write into the
text of every chapter and lab, runs no cell, and lists the links inside the book
whose file or heading is not there.
"""

import re
import sys
from functools import cache, partial
from urllib.parse import unquote

import badges
import book
import captions
import exercises
import glossary
import headings
import labs
import navigation
import road

PAGES = "*.md", "data/README.md", "docs/*.md"
NOTEBOOKS = [
    f"{folder}{below}*.ipynb"
    for folder in ("", "exercises/", "solutions/")
    for below in ("", "labs/")
]
_FENCED = r"^ *(?P<fence>```+|~~~+).*?^ *(?P=fence) *$"
_CODE = re.compile(
    rf"{_FENCED}"
    r"|(?P<ticks>(?<!`)`+(?!`))(?:(?!\n\s*\n).)+?(?<!`)(?P=ticks)(?!`)"
    r"|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)
_FENCES = re.compile(_FENCED, re.DOTALL | re.MULTILINE)
_TARGETS = re.compile(
    r"\]\(\s*(?:<(?P<pointed>[^>\n]*)>|(?P<plain>(?:[^()\s]|\([^()]*\))*))"
    r"|^ *\[(?!\^)[^\]\n]+\]:\s+(?P<defined>\S+)"
    r"|\b(?:href|src)=[\"'](?P<html>[^\"']+)",
    re.MULTILINE,
)
_RELATIVE = re.compile(r"\]\((?P<target>[^()\s#:<>]+)")
_HEADING = re.compile(r"^ {0,3}#{1,6} +(.+?)(?: +#+)? *$", re.MULTILINE)
_ID = re.compile(r"<[^>]*\b(?:id|name)=[\"']([^\"']+)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def refresh(notebook, name):
    """Writes all but quotes of one chapter or lab, in place."""
    _mend_moved(notebook, name)
    road.refresh(notebook, name)
    labs.refresh(notebook, name)
    exercises.refresh(notebook, name)
    glossary.refresh(notebook, name)
    captions.refresh(notebook, name)
    navigation.refresh(notebook, name)
    headings.refresh(notebook)  # counts what the others wrote


def _mend_moved(notebook, name):
    """Lets the links of a chapter that became a lab start from its folder."""
    if not book.Chapter(name).is_lab:
        return

    def mended(match):
        target = match["target"]
        here, before = f"labs/{target}", target
        notebooks = book.ROOT / "notebooks"
        if (notebooks / here).exists() or not (notebooks / before).exists():
            return match[0]
        return f"](../{target}"

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _RELATIVE.sub(mended, cell.source)


def files():
    """Returns the pages and notebooks that a reader may open."""
    found = [p for pattern in PAGES for p in book.ROOT.glob(pattern)]
    folder = book.ROOT / "notebooks"
    found += [p for pattern in NOTEBOOKS for p in folder.glob(pattern)]
    return sorted(found)


def text_of(path):
    """Returns the markdown of a page, or of the text cells of a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text("utf-8")
    cells = book.read_notebook(path).cells
    return "\n\n".join(c.source for c in cells if c.cell_type == "markdown")


def targets(text):
    """Returns what the links in markdown lead to, code left out."""
    matches = _TARGETS.finditer(_CODE.sub("", text))
    return [match[match.lastgroup] for match in matches if match.lastgroup]


@cache
def anchors(path):
    """Returns what may follow `#` in a link to a page or notebook.

    JupyterLab keeps the letters of a heading, GitHub makes them small and
    leaves the marks out.
    """
    text = text_of(path)
    found = set(_ID.findall(text))
    for heading in _HEADING.findall(_FENCES.sub("", text)):
        anchor = heading_anchor(heading)
        if path.suffix != ".ipynb":
            anchor = re.sub(r"[^\w-]", "", anchor.lower())
        found.add(anchor)
    return frozenset(found)


def heading_anchor(heading):
    """Returns the id that JupyterLab gives to a heading in markdown."""
    words = re.sub(r"!?\[([^\[\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]", "", words).strip().replace(" ", "-")


def dead(path):
    """Returns the links of a page or notebook that lead nowhere."""
    return [
        target
        for target in dict.fromkeys(targets(text_of(path)))
        if not _leads_somewhere(target, path)
    ]


def _leads_somewhere(target, path):
    here = path.parent
    for start in _own_addresses():
        if target.startswith(start):
            target, here = target.removeprefix(start), book.ROOT
    if _ELSEWHERE.match(target):
        return True
    place, _, anchor = target.partition("#")
    to = (here / unquote(place)).resolve() if place else path
    if not to.exists() or not to.is_relative_to(book.ROOT.resolve()):
        return False
    if not anchor:
        return bool(place)
    return to.suffix in {".md", ".ipynb"} and unquote(anchor) in anchors(to)


def _own_addresses():
    """Returns how addresses of the project's own files start."""
    github = [f"{book.address()}/{kind}/main/" for kind in ("blob", "tree")]
    return [
        *github,
        f"{badges.COLAB}/github/{badges.slug()}/blob/{book.ref()}/",
    ]


def main():
    """Rewrites chapters and labs, says which changed, lists dead links."""
    # The contents come last: they tell the minutes of all others.
    for chapter in sorted(book.written(), key=lambda c: c.number == "00"):
        if book.rewrite(chapter, partial(refresh, name=chapter.name)):
            print(chapter.name)
    status = 0
    for path in files():
        for target in dead(path):
            status = 1
            print(f"{path.relative_to(book.ROOT)}: dead link: {target}")
    return status


if __name__ == "__main__":
    sys.exit(main())
