"""A search lists first what was meant, and says no error."""

import pytest

from tests.site import browser as site

PAGE = "search.html"
FIRST = {
    "install": "index.html",
    "next sentence": "notebooks/31_next_sentence.html",
    "attention": "notebooks/20_attention.html",
    "decoder": "notebooks/60_decoder.html",
    "bb.finetune": "api/finetuning/finetune.html#bertbook.finetune",
    "finetune": "api/finetuning/finetune.html#bertbook.finetune",
    "Tokenizer": "api/text/tokenizer.html#bertbook.Tokenizer",
}


def search(tab, query, page=PAGE):
    """Searches, and returns the addresses and titles of what was found."""
    tab.goto(site.address(f"{page}?q={query}"))
    tab.get_by_text("Search finished").wait_for()
    return tab.locator("#search-results li > a").evaluate_all(
        "all => all.map((a) => [a.href, a.textContent])"
    )


def complaints(tab, page):
    """Returns what the console says while a page searches."""
    visit = site.Visit(page)
    site.watch(tab, visit)
    search(tab, "wordpiece", page)
    tab.wait_for_load_state("networkidle")
    return visit.console


@pytest.mark.parametrize("query", FIRST)
def test_what_was_meant_comes_first(desk, query):
    first, _ = search(desk, query)[0]
    assert first.split("#install")[0] == site.address(FIRST[query])


def test_a_module_is_listed_once(desk):
    titles = [title for _, title in search(desk, "wordpiece")]
    assert "text.wordpiece" in titles
    assert "bertbook.text.wordpiece" not in titles


def test_the_first_cells_are_no_text_of_the_chapters(desk):
    found = {address for address, _ in search(desk, "install")}
    assert site.address("index.html") in {one.split("#")[0] for one in found}
    assert site.address("notebooks/20_attention.html") not in found


def test_a_search_asks_a_file_for_no_neighbors(desk):
    assert complaints(desk, PAGE) == []


def test_a_search_that_asks_for_excerpts_is_seen(desk, planted):
    page = planted(PAGE, '<script src="_static/book.js', '<script src="')
    assert any("blocked by CORS" in one for one in complaints(desk, page))
