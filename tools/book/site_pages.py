"""Pages of the site, written from the notebooks, `docs/` and `docs/site/`.

`python tools/book/site_pages.py` writes the source folder that Sphinx reads,
`build/site/source`, laid out as the repository is. No cell runs. A page differs
from its notebook in what a page does better: buttons under the title, folded
answers and checks, folded outputs below "Predict before you run", captions in
their figures, links to the figures.
"""

import re
import shutil
import sys
from pathlib import Path
from posixpath import normpath

import badges
import book
import captions
import exercises
import labs
import navigation
import site_tables
from exercises import FOLDERS, tags_of

SOURCE = book.ROOT / "build" / "site" / "source"
SITE = book.ROOT / "docs" / "site"
DOWNLOADS = "downloads"  # the notebooks as they are, for the buttons
TEMPLATES = "notebooks/templates/"  # to be downloaded; no pages
PREDICT = "Predict before you run"
PROMPTS = {
    "first": "the first cell, which is the same everywhere",
    "answer": "the answer",
    "check": "the check",
    "code": "the code",
    "output": "what it prints",
}
_LINE = re.compile(
    r"^(?:\[(?:←|Contents\]|Chapter \d\d\]|Lab\])|Lab after \[).*$\n*",
    re.MULTILINE,
)
_BADGE = re.compile(r"^\[Open in Colab\]\(.*\)$\n*", re.MULTILINE)
_ANCHOR = re.compile(r"(\]\([^()\s]+\.(?:ipynb|md)#)([^()\s]+)\)")
_TEMPLATE = re.compile(r"\[([^\]]*)\]\((templates/[a-z_]+\.ipynb)\)")
_RELATIVE = re.compile(r"(\]\()(?![a-z]+:|#)([^()\s#]+)(#[^()\s]*)?\)")
_LEVEL_2 = re.compile(r"^## ", re.MULTILINE)
_LEVEL_3 = re.compile(r"^### ", re.MULTILINE)
_TABLE_CHAPTER = re.compile(r"(<td[^>]*>)((?:labs/)?(\d\d_[a-z0-9_]+))(</td>)")


def main():
    """Writes every page, and removes what is no page any more."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for name in chapter_names():
        write_notebook(chapter_page(name), f"notebooks/{name}.ipynb")
        copy(f"notebooks/{name}.ipynb", DOWNLOADS)
        for folder in folders_of(name):
            place = f"notebooks/{folder}/{name}.ipynb"
            write_notebook(exercise_page(name, folder), place)
            copy(place, DOWNLOADS)
    for path in sorted((book.ROOT / TEMPLATES).glob("*.ipynb")):
        copy(f"{TEMPLATES}{path.name}", DOWNLOADS)
    root = [book.ROOT / name for name in site_tables.AT_THE_ROOT]
    for path in [*site_tables.docs_pages(), *root]:
        write(doc_page(path), path.relative_to(book.ROOT))
    for path in [*sorted(SITE.rglob("*.md")), SITE / "bert.svg"]:
        write(site_page(path), path.relative_to(SITE))


def chapter_names():
    """Returns the names of the chapters and labs in order."""
    return [one.name for one in book.everything()]


def folders_of(name):
    """Returns "exercises" and "solutions", or nothing for a chapter without."""
    folder = book.ROOT / "notebooks"
    return [
        kind
        for kind in FOLDERS.values()
        if (folder / kind / f"{name}.ipynb").is_file()
    ]


def write(text, place):
    """Writes a text to a place in the source folder."""
    path = SOURCE / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def write_notebook(notebook, place):
    """Writes a notebook with the metadata that the page's cells need."""
    write(book.nbformat.writes(notebook), place)


def copy(place, folder):
    """Copies a file of the repository into a folder of the source folder."""
    path = SOURCE / folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(book.ROOT / place, path)


def chapter_page(name):
    """Returns the notebook of a chapter or lab as the page shows it."""
    notebook = book.read_notebook(book.Chapter(name).path)
    del notebook.cells[-1]  # the line that leads on: the theme has its own
    with_buttons(notebook, name, f"notebooks/{name}.ipynb")
    with_folds(notebook)
    with_figures(notebook, name)
    with_levels(notebook)
    with_links(notebook, f"notebooks/{name}.ipynb")
    entries = [f"/notebooks/{folder}/{name}" for folder in folders_of(name)]
    if not book.Chapter(name).is_lab:
        entries += [f"/notebooks/{lab}" for lab in labs.of_chapter(name)]
    if entries:
        notebook.cells.append(markdown(toctree(entries)))
    return notebook


def exercise_page(name, folder):
    """Returns a notebook of exercises or solutions as the page shows it."""
    place = f"notebooks/{folder}/{name}.ipynb"
    notebook = book.read_notebook(book.ROOT / place)
    if folder == "solutions":
        opening = notebook.cells[0]
        opening.source = opening.source.replace("# Exercises", "# Solutions", 1)
    with_buttons(notebook, name, place)
    with_folds(notebook)
    with_links(notebook, place)
    return notebook


def doc_page(path):
    """Returns the text of a page of `docs/` or of the root."""
    place = path.relative_to(book.ROOT).as_posix()
    return linked(path.read_text("utf-8"), place)


def site_page(path):
    """Returns the text of a page of `docs/site/`.

    Its links start in the site's folder, or where the file itself is.
    """
    place = path.relative_to(SITE)

    def moved(match):
        target = (path.parent / match[2]).resolve()
        if not target.is_file() or target.is_relative_to(SITE):
            return match[0]
        target = target.relative_to(book.ROOT).as_posix()
        up = "../" * (len(place.parts) - 1)
        return f"{match[1]}{up}{target}{match[3] or ''})"

    return _RELATIVE.sub(moved, site_tables.filled(path.read_text("utf-8")))


def markdown(text):
    """Returns a markdown cell."""
    return book.nbformat.v4.new_markdown_cell(text)


def toctree(entries):
    """Returns a list of pages that is part of the contents and not shown."""
    lines = ["```{toctree}", ":hidden:", "", *entries, "```"]
    return "\n".join(lines)


def with_buttons(notebook, name, place):
    """Puts buttons in place of the links below the title, in place."""
    opening = notebook.cells[0]
    text = _BADGE.sub("", _LINE.sub("", opening.source))
    title, _, rest = text.partition("\n")
    line = " ".join(buttons(name, place))
    opening.source = f"{title}\n\n{{.buttons}}\n{line}\n\n{rest.lstrip()}"


def buttons(name, place):
    """Returns the buttons of a page as links in markdown."""
    colab = f"{badges.COLAB}/github/{badges.slug()}/blob/{book.ref()}/{place}"
    up = "../" * (place.count("/") - 1)
    found = [
        f"[Open in Colab]({colab})",
        f"{{download}}`Download the notebook <{up}../{DOWNLOADS}/{place}>`",
    ]
    here = place.removeprefix("notebooks/")
    if here != f"{name}.ipynb":
        found.append(f"[{exercises.back(name)}]({book.link(name, here)})")
    elif book.Chapter(name).is_lab:
        chapter = navigation.chapter_of(name)
        label = f"Chapter {book.Chapter(chapter).number}"
        found.append(f"[{label}]({book.link(chapter, here)})")
    found += [
        f"[{folder.capitalize()}]({book.link(f'{folder}/{name}', here)})"
        for folder in folders_of(name)
        if not here.startswith(f"{folder}/")
    ]
    return found


def with_folds(notebook):
    """Folds first cell, answers, checks and predicted outputs, in place."""
    predicted = turn = False
    code = book.code_cells(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            predicted = predicted or PREDICT in cell.source
            if cell.source.startswith("## "):
                predicted = PREDICT in cell.source.split("\n", 1)[0]
            continue
        if cell is code[0]:
            fold(cell, "hide-cell", "first")
        elif "check" in tags_of(cell):
            fold(cell, "hide-input", "check")
        elif "hide-input" in tags_of(cell):
            answer = "answer" if turn else "code"
            fold(cell, "hide-input", answer)
        elif predicted and cell.outputs:
            fold(cell, "hide-output", "output")
            predicted = False
        turn = "your-turn" in tags_of(cell)


def fold(cell, tag, what):
    """Folds a part of a cell below a line that says what is there."""
    tags = cell.metadata.get("tags", [])
    cell.metadata["tags"] = [one for one in tags if one != tag] + [tag]
    cell.metadata.setdefault("mystnb", {}).update(
        code_prompt_show=f"Show {PROMPTS[what]}",
        code_prompt_hide=f"Hide {PROMPTS[what]}",
    )


def with_figures(notebook, name):
    """Moves captions into the figures that they belong to, in place."""
    cells = []
    for cell in notebook.cells:
        if not captions.is_caption(cell):
            cells.append(cell)
        elif has_viewer(cells[-1]):
            cells.append(viewer_caption(cell, name))
        else:
            set_figure(cells[-1], cell.source, name)
    notebook.cells = cells


def has_viewer(cell):
    """Tells whether an output of a code cell is a viewer."""
    return any("text/html" in output.get("data", {}) for output in cell.outputs)


def viewer_caption(cell, name):
    """Returns the caption below a viewer, which links can lead to."""
    target = f"({figure_id(captions.NAMED.search(cell.source), name)})="
    return markdown("\n".join([target, "{.viewer-caption}", cell.source]))


def figure_id(match, name):
    """Returns the id of a figure, which no other page has.

    Args:
        match: Where the prose names it, a match of `captions.NAMED`.
        name: The notebook that the prose belongs to.

    Returns:
        For figure 20.3 `figure-20-3`; for figure 3 of a lab
        `figure-10-hard-texts-3`.
    """
    first, second = match.groups()
    if second is None:
        first, second = name.rpartition("/")[2].replace("_", "-"), first
    return f"figure-{first}-{second}"


def set_figure(cell, caption, name):
    """Gives the picture of a code cell its caption and alternative text."""
    (image,) = (
        output.metadata["image/png"]
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    )
    cell.metadata.setdefault("mystnb", {}).update(
        figure={
            "caption": caption,
            "name": figure_id(captions.NAMED.search(caption), name),
        },
        image={"alt": image["alt"]},
    )


def with_levels(notebook):
    """Raises the headings that would skip level 2, in place.

    The terms of the glossary have level 3, right below the title.
    """
    for cell in notebook.cells[1:]:
        if cell.cell_type == "markdown":
            if _LEVEL_2.search(cell.source):
                return
            cell.source = _LEVEL_3.sub("## ", cell.source)


def with_links(notebook, place):
    """Lets the links of a notebook lead to pages, in place."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = linked(cell.source, place)
            continue
        caption = cell.metadata.get("mystnb", {}).get("figure", {})
        if caption:
            caption["caption"] = linked(caption["caption"], place)
        for output in cell.outputs:
            html = output.get("data", {}).get("text/html")
            if html:
                html = html if isinstance(html, str) else "".join(html)
                output.data["text/html"] = _linked_table(html, place)


def _linked_table(html, place):
    """Returns HTML whose cells with the name of a chapter or lab are links."""

    def link(match):
        here = place.removeprefix("notebooks/")
        page = book.link(match[2], here).replace(".ipynb", ".html")
        return f'{match[1]}<a href="{page}">{match[3]}</a>{match[4]}'

    return _TABLE_CHAPTER.sub(link, html)


def linked(text, place):
    """Returns markdown whose links lead to pages of the site.

    Args:
        text: Markdown of the repository.
        place: Where it is in the repository, such as `docs/results.md`.
    """
    text = _with_figure_links(text, place)
    text = _TEMPLATE.sub(
        rf"{{download}}`\1 <../{DOWNLOADS}/notebooks/\2>`", text
    )
    text = _ANCHOR.sub(lambda m: f"{m[1]}{anchor(m[2])})", text)
    return _RELATIVE.sub(lambda m: _to_page(m, place), text)


def anchor(heading):
    """Returns the id that the site gives to a heading, from JupyterLab's."""
    return re.sub(r"[^\w\- ]", "", heading.lower())


def _with_figure_links(text, place):
    """Links figures by their number; a lab has figures of its own."""
    is_lab = place.startswith("notebooks/labs/")
    name = place.removesuffix(".ipynb")

    def link(match):
        if match[2] is None and not is_lab:
            return match[0]
        return f"[{match[0]}](#{figure_id(match, name)})"

    pieces, done = [], 0
    for start, end in navigation.prose(text):
        if captions.MARK.match(text) and start == 0:
            start = captions.MARK.match(text).end()
        new = captions.NAMED.sub(link, text[start:end])
        pieces += [text[done:start], new]
        done = end
    return "".join([*pieces, text[done:]])


def _to_page(match, place):
    """Leaves a link between pages, and sends others to the repository."""
    start, target, rest = match[1], match[2], match[3] or ""
    path = normpath((Path(place).parent / target).as_posix())
    if path == "README.md":  # the front page has its section
        return f"{start}{target.replace('README', 'index')}{rest})"
    if path.startswith("docs/site/"):  # the site has these at its root
        return f"{start}{target.replace('docs/site/', '')}{rest})"
    folders = "notebooks/", "docs/", DOWNLOADS
    is_page = path.startswith(folders) and path.endswith((".ipynb", ".md"))
    if is_page or path in site_tables.AT_THE_ROOT:
        return match[0]
    kind = "tree" if (book.ROOT / path).is_dir() else "blob"
    return f"{start}{book.address()}/{kind}/{book.ref()}/{path}{rest})"


if __name__ == "__main__":
    sys.exit(main())
