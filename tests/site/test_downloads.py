"""The buttons below a title: a notebook to keep, and the pages beside it."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

import book
from tests.site import browser as site
from tests.site import links

PAGE = "notebooks/20_attention.html"
PAGES = site.NOTEBOOKS
TEMPLATES = sorted((book.ROOT / "notebooks" / "templates").glob("*.ipynb"))


def download_faults(page):
    """Returns what is wrong with the notebooks that a page offers.

    One is the page's own; others may be templates.

    Args:
        page: The path below the site's folder.
    """
    path = site.HTML / page
    offers = {
        link
        for link in links.read(path).links
        if link.endswith(".ipynb") and not urlsplit(link).netloc
    }
    own = (book.ROOT / page).with_suffix(".ipynb")
    originals = {own.name: own} | {path.name: path for path in TEMPLATES}
    files = {Path(link).name: path.parent / link for link in offers}
    if missing := [name for name in files if not files[name].is_file()]:
        return f"no such file: {missing}"
    if own.name not in files or not originals.keys() >= files.keys():
        return f"offers {sorted(files)}"
    for name, file in files.items():
        if file.read_bytes() != originals[name].read_bytes():
            return f"not as in the repository: {name}"
    return ""


def pages_beside(page):
    """Returns the pages of the site that a page links to."""
    folder, root = (site.HTML / page).parent, site.HTML.resolve()
    found = links.read(site.HTML / page).links
    paths = [(folder / one).resolve() for one in found if one.endswith("html")]
    return {
        path.relative_to(root).as_posix()
        for path in paths
        if path.is_relative_to(root)
    }


def test_every_page_of_a_notebook_offers_it():
    found = {page: download_faults(page) for page in PAGES}
    assert len(found) > 80
    assert {page: fault for page, fault in found.items() if fault} == {}


def test_colab_opens_the_notebook_of_the_page():
    for page in PAGES:
        path = page.replace(".html", ".ipynb")
        found = links.read(site.HTML / page).links
        colab = [link for link in found if "colab." in link]
        end = f"/blob/{book.ref()}/{path}"
        assert any(link.endswith(end) for link in colab), page


def test_chapter_exercises_and_solutions_lead_to_each_other():
    for page in PAGES:
        name = page.removeprefix("notebooks/")
        for folder in ("exercises/", "solutions/"):
            name = name.removeprefix(folder)
        family = {f"{folder}/{name}" for folder in site.FOLDERS} & set(PAGES)
        assert family - {page} <= pages_beside(page), page


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('href="../_downloads/', 'href="nowhere/', "no such file"),
        ('href="../_downloads/', 'data-lost="', "offers []"),
    ],
)
def test_a_planted_dead_download_is_seen(planted, old, new, told):
    assert download_faults(planted(PAGE, old, new)).startswith(told)


def test_the_notebook_of_another_page_is_seen(planted):
    page = planted(PAGE, "</title>", "</title>")  # a copy has another name
    assert download_faults(page).startswith("offers [")
