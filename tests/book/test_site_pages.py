"""What the site changes in a notebook before it becomes a page."""

import itertools
import re
from pathlib import Path
from posixpath import normpath

import pytest

import badges
import book
import captions
import site_navigation
import site_pages
import site_tables
import site_vendor
from exercises import FOLDERS

NAMES = [chapter.name for chapter in book.chapters()]
EVERYTHING = [chapter.name for chapter in book.everything()]


def texts(notebook, kind="markdown"):
    return [c.source for c in notebook.cells if c.cell_type == kind]


@pytest.fixture(scope="module", params=EVERYTHING)
def page_pair(request):
    name = request.param
    committed = book.read_notebook(book.Chapter(name).path)
    return name, committed, site_pages.chapter_page(name)


def test_prose_and_code_stay(page_pair):
    _, committed, page = page_pair
    assert texts(page, "code") == texts(committed, "code")
    kept = "\n".join(texts(page)) + "".join(
        cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
        for cell in book.code_cells(page)
    )
    prose = re.sub(r"\]\([^)]*\)", "]", "\n".join(texts(committed)[1:-1]))
    words = re.findall(r"\w+", prose.lower())
    assert set(words) <= set(re.findall(r"\w+", kept.lower()))


def test_outputs_stay(page_pair):
    _, committed, page = page_pair
    for before, after in zip(
        book.code_cells(committed), book.code_cells(page), strict=True
    ):
        kinds = [
            sorted(o.get("data", {o["output_type"]: 0})) for o in before.outputs
        ]
        assert kinds == [
            sorted(o.get("data", {o["output_type"]: 0})) for o in after.outputs
        ]


def test_buttons_take_the_place_of_the_links_at_the_top(page_pair):
    name, _, page = page_pair
    opening = page.cells[0].source
    row = next(line for line in opening.split("\n") if "Download the" in line)
    assert "\n{.buttons}\n" + row in opening
    assert f"/notebooks/{name}.ipynb)" in row
    assert ("[Exercises]" in row) == bool(site_pages.folders_of(name))
    assert len(re.findall(r"Open in Colab|← |→\]", opening)) == 1


def test_every_picture_has_its_caption_and_words(page_pair):
    _, committed, page = page_pair
    wanted = sum(captions.is_caption(cell) for cell in committed.cells)
    figures = [
        cell.metadata["mystnb"]
        for cell in book.code_cells(page)
        if "figure" in cell.metadata.get("mystnb", {})
    ]
    below = [text for text in texts(page) if "{.viewer-caption}" in text]
    assert len(figures) + len(below) == wanted
    assert all(figure["image"]["alt"] for figure in figures)


def test_answers_are_folded(page_pair):
    _, committed, page = page_pair
    pairs = zip(book.code_cells(committed), book.code_cells(page), strict=True)
    for before, after in pairs:
        if "hide-input" in before.metadata.get("tags", []):
            assert after.metadata["mystnb"]["code_prompt_show"] in (
                "Show the answer",
                "Show the code",
            )


def test_the_output_after_a_prediction_is_folded():
    notebook = book.nbformat.v4.new_notebook(
        cells=[
            site_pages.markdown("# 20 Attention"),
            output_cell("setup"),
            output_cell("shown"),
            site_pages.markdown("### Predict before you run\n\nWhat?"),
            book.nbformat.v4.new_code_cell("x = 1"),
            output_cell("folded"),
            output_cell("shown again"),
            site_pages.markdown("### Predict before you run"),
            site_pages.markdown("## Another section"),
            output_cell("shown too"),
        ]
    )
    site_pages.with_folds(notebook)
    folded = {
        cell.source: cell.metadata.get("tags", [])
        for cell in book.code_cells(notebook)
        if cell.metadata.get("tags")
    }
    assert folded == {"setup": ["hide-cell"], "folded": ["hide-output"]}


def output_cell(source):
    output = book.nbformat.v4.new_output("stream", text=source)
    return book.nbformat.v4.new_code_cell(source, outputs=[output])


def test_checks_are_folded_and_the_title_of_solutions_says_so():
    page = site_pages.exercise_page("20_attention", "solutions")
    assert page.cells[0].source.startswith("# Solutions to 20 Attention\n")
    checks = [
        cell
        for cell in book.code_cells(page)
        if "check" in cell.metadata.get("tags", [])
    ]
    assert checks
    assert all("hide-input" in cell.metadata["tags"] for cell in checks)


def test_links_lead_to_pages_or_to_the_repository():
    for text, place, expected in (
        ("[a](20_attention.ipynb)", "notebooks/x.ipynb", None),
        ("[a](../docs/scaling.md)", "notebooks/x.ipynb", None),
        ("[a](../docs/site/moving.md#b)", "notebooks/x.ipynb",
         "[a](../moving.md#b)"),
        ("[a](CONTRIBUTING.md)", "README.md", None),
        ("[a](../README.md#b)", "docs/x.md", "[a](../index.md#b)"),
        ("[a](https://arxiv.org/abs/1)", "docs/x.md", None),
        ("[a](92_glossary.ipynb#AdamW)", "notebooks/x.ipynb",
         "[a](92_glossary.ipynb#adamw)"),
        ("[a](../benchmarks/chips.py)", "docs/x.md",
         "[a](ADDRESS/blob/REF/benchmarks/chips.py)"),
        ("[a](../data)", "docs/x.md", "[a](ADDRESS/tree/REF/data)"),
        ("[a](templates/b.ipynb)", "notebooks/x.ipynb",
         "{download}`a <../downloads/notebooks/templates/b.ipynb>`"),
        ("see Figure 50.3", "docs/x.md", "see [Figure 50.3](#figure-50-3)"),
        ("`Figure 50.3`", "docs/x.md", None),
        ("see Figure 3", "notebooks/20_attention.ipynb", None),
        ("see Figure 3 and 50.3 and Figure 50.3",
         "notebooks/labs/20_why_many_heads.ipynb",
         "see [Figure 3](#figure-20-why-many-heads-3) and 50.3 and "
         "[Figure 50.3](#figure-50-3)"),
    ):  # fmt: skip
        expected = (expected or text).replace("ADDRESS", book.address())
        expected = expected.replace("REF", book.ref())
        assert site_pages.linked(text, place) == expected


def test_every_link_to_a_notebook_leads_to_a_page():
    pages = {f"notebooks/{name}.ipynb" for name in site_pages.chapter_names()}
    for one in book.everything():
        place = f"notebooks/{one.name}.ipynb"
        text = site_pages.linked(one.twin.read_text("utf-8"), place)
        for _, target, _ in site_pages._RELATIVE.findall(text):
            path = normpath((Path(place).parent / target).as_posix())
            if not path.endswith(".ipynb") or path in pages:
                continue
            folder = path.removeprefix("notebooks/").split("/")[0]
            assert folder in FOLDERS.values(), (place, target)
            assert (book.ROOT / path).is_file(), (place, target)


def test_the_api_names_every_room():
    text = (site_pages.SITE / "api" / "index.md").read_text("utf-8")
    named = set(re.findall(r"^(\w+)/index$", text, re.MULTILINE)) - {"root"}
    folders = (book.ROOT / "bertbook").glob("*/__init__.py")
    assert named == {path.parent.name for path in folders}


def test_contents_name_every_page_once():
    pages = [page for _, pages in site_tables.parts() for page in pages]
    assert len(pages) == len(set(pages))
    assert {f"notebooks/{name}" for name in NAMES} <= set(pages)
    docs = {f"docs/{path.stem}" for path in site_tables.docs_pages()}
    assert docs <= set(pages)


def test_front_page_has_its_tables():
    text = (site_pages.SITE / "index.md").read_text("utf-8")
    marks = site_tables.MARK.findall(text)
    wanted = ["chapters", "citation", "contents", "install", "results"]
    assert sorted(marks) == wanted
    filled = site_tables.filled(text)
    assert "written by the build" not in filled
    assert f"version = {{{book.version()}}}" in filled
    sst2 = next(line for line in filled.split("\n") if "SST-2" in line)
    assert len(re.findall(r"\d\d\.\d", sst2)) == 5


def test_front_page_says_how_to_run_the_book_as_the_readme_does():
    section = site_tables.install()
    note = "" if book.has_address() else badges.NOTE
    assert section.startswith(f"## Install\n\n{note}```sh\ngit clone ")
    readme = (book.ROOT / "README.md").read_text("utf-8")
    assert section.replace(note, "", 1) in readme
    for word in ("make lab", "conda", "Windows", "Colab"):
        assert word in section


def test_front_page_has_a_result_for_each_set_and_start():
    wanted = set(itertools.product(site_tables.DATA, site_tables.STARTS))
    missing = wanted - site_tables.measurements().keys()
    assert missing == {("conll2003", "bag of words")}  # it tags no words


def test_a_table_leads_to_chapters_and_labs():
    html = "<td>20_attention</td><td a>labs/20_why</td><td>20_x y</td>"
    for place, up in (
        ("20_a", ""),
        ("labs/20_b", "../"),
        ("solutions/a", "../"),
    ):
        there = site_pages._linked_table(html, f"notebooks/{place}.ipynb")
        lab = "20_why" if place.startswith("labs/") else f"{up}labs/20_why"
        assert there == (
            f'<td><a href="{up}20_attention.html">20_attention</a></td>'
            f'<td a><a href="{lab}.html">20_why</a></td><td>20_x y</td>'
        )


def test_neighbors_are_chapters():
    assert site_navigation.neighbors(NAMES[0]) == (None, NAMES[1])
    assert site_navigation.neighbors(NAMES[-1]) == (NAMES[-2], None)


def test_a_changed_archive_is_refused(tmp_path):
    path = tmp_path / "mathjax-3.2.2.tgz"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="must have the checksum"):
        site_vendor.check(path, site_vendor.PACKAGES["mathjax"].integrity)
