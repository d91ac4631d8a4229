"""What a reader does on the site, with mouse and keyboard."""

from itertools import pairwise

import pytest

import book
import first_cell
from captions import has_picture
from site_pages import has_viewer
from tests.site import browser as site
from tests.site import links

CHAPTER = "notebooks/21_several_heads.html"
EXERCISES = "notebooks/exercises/21_several_heads.html"
# A page of each kind, and the longest ones.
SAMPLE = [
    "index.html",
    "search.html?q=softmax",
    "notebooks/00_start_here.html",
    CHAPTER,
    "notebooks/54_bug_museum.html",
    "notebooks/90_errata.html",
    "notebooks/92_glossary.html",
    EXERCISES,
    "notebooks/solutions/21_several_heads.html",
    "docs/results.html",
    "docs/architecture.html",
    "api/index.html",
    "api/model/encoder.html",
]
TERMS = {
    "softmax": "notebooks/20_attention.html",
    "WordPiece": "notebooks/11_vocabulary.html",
    "perplexity": "notebooks/30_masked_words.html",
    "distillation": "notebooks/53_learning_from_a_larger_model.html",
    "beam search": "notebooks/61_translation.html",
}


def open_page(tab, page):
    tab.goto(site.address(page))
    site.settle(tab)
    return tab


@pytest.mark.parametrize("term", TERMS)
def test_search_finds_a_term_from_a_folder(desk, term):
    open_page(desk, "index.html")
    desk.keyboard.press("Control+k")
    desk.keyboard.type(term)
    desk.keyboard.press("Enter")
    found = desk.locator("#search-results li a")
    found.first.wait_for()
    desk.get_by_text("Search finished").wait_for()
    addresses = found.evaluate_all("all => all.map((a) => a.href)")
    pages = {address.split("?")[0].split("#")[0] for address in addresses}
    assert site.address(TERMS[term]) in pages


def test_search_finds_nothing_for_a_word_that_is_nowhere(desk):
    open_page(desk, "search.html?q=xyzzyqwert")
    desk.get_by_text("did not match any documents").wait_for()


def numbers(viewer):
    """Returns the numbers that a viewer shows beside its tokens."""
    texts = viewer.locator(".number").all_text_contents()
    return [float(text) for text in texts if text]


def test_attention_viewer_reacts_to_hover_and_choice(desk):
    viewer = open_page(desk, CHAPTER).locator(".bertbook-viewer").first
    assert numbers(viewer) == []
    viewer.locator(".left .token").nth(3).hover()
    before = numbers(viewer)
    assert len(before) == viewer.locator(".right .token").count()
    assert sum(before) == pytest.approx(1, abs=0.02)
    viewer.locator("select.head").select_option("2")
    viewer.locator(".left .token").nth(3).hover()
    assert numbers(viewer) != before
    desk.mouse.move(0, 0)
    assert numbers(viewer) == []


def test_attention_viewer_is_moved_by_keys(desk):
    viewer = open_page(desk, CHAPTER).locator(".bertbook-viewer").first
    viewer.locator(".left .token").first.focus()
    desk.keyboard.press("ArrowDown")
    desk.keyboard.press("Enter")
    pressed = viewer.locator("[aria-pressed=true]")
    assert pressed.count() == 1
    desk.keyboard.press("Escape")
    assert pressed.count() == 0


def test_similarity_viewer_reacts_on_a_page(desk, planted):
    viewers = pytest.importorskip("bertbook.figures.viewers")
    one = viewers.SimilarityViewer(
        ["a", "b"], [[1, 0], [0, 1]], ["c", "d"], [[1, 1], [0, -1]]
    )
    html = one._repr_mimebundle_()
    html = (html[0] if isinstance(html, tuple) else html)["text/html"]
    page = planted(EXERCISES, "</article>", f"{html}</article>")
    viewer = open_page(desk, page).locator(".bertbook-viewer")
    viewer.locator(".left .token").first.hover()
    assert numbers(viewer) == pytest.approx([0.707, 0.0], abs=1e-3)
    viewer.locator(".right .token").nth(1).click()
    assert numbers(viewer) == pytest.approx([0.0, -1.0], abs=1e-3)


def test_a_broken_viewer_is_seen(desk, planted):
    page = planted(CHAPTER, "function showViewer", "function brokenViewer")
    viewer = open_page(desk, page).locator(".bertbook-viewer").first
    assert viewer.locator(".token").count() == 0


def test_answers_checks_and_predicted_outputs_are_folded(desk):
    open_page(desk, CHAPTER)
    said = desk.locator("article summary").all_text_contents()
    for kind in ("the answer", "what it prints", "the first cell"):
        assert any(f"Show {kind}" in text for text in said), kind
    assert desk.locator("article details[open]").count() == 0
    fold = desk.locator("article details", has_text="Show the answer").first
    assert not fold.locator("pre").first.is_visible()
    fold.locator("summary").click()
    assert fold.locator("pre").first.is_visible()
    open_page(desk, EXERCISES)
    checks = desk.locator("article details", has_text="Show the check")
    assert checks.count() == 3
    assert not checks.first.locator("pre").first.is_visible()


def test_a_link_opens_the_fold_that_its_figure_is_in(desk, planted):
    page = planted(
        CHAPTER,
        '<figure class="',
        '<details><summary>x</summary><figure id="here"></figure></details>'
        '<figure class="',
    )
    open_page(desk, f"{page}#here")
    assert desk.locator("details[open] #here").count() == 1


def test_pictures_have_captions_numbers_and_words(desk):
    open_page(desk, CHAPTER)
    captions = desk.locator("figcaption").all_text_contents()
    captions = [text.strip() for text in captions]
    numbers = [text.split(".")[1] for text in captions]
    assert all(text.startswith("Figure 21.") for text in captions)
    assert numbers == sorted(numbers, key=int)
    alternatives = desk.locator("figure img").evaluate_all(
        "all => all.map((image) => image.alt)"
    )
    committed = book.read_notebook(book.Chapter("21_several_heads").path)
    wanted = sum(
        cell.cell_type == "code"
        and has_picture(cell)
        and not first_cell.is_first(cell)
        and not has_viewer(cell)
        for cell in committed.cells
    )
    assert len(alternatives) == len(captions) == wanted > 0
    assert all(len(text) > 20 for text in alternatives)


def test_buttons_lead_to_colab_notebook_and_exercises(desk, server):
    desk.goto(f"{server}/{CHAPTER}")
    row = desk.locator(".buttons")
    colab = row.get_by_text("Open in Colab").get_attribute("href")
    assert colab.endswith("/blob/main/notebooks/21_several_heads.ipynb")
    with desk.expect_download() as got:
        row.get_by_text("Download the notebook").click()
    committed = book.ROOT / "notebooks" / "21_several_heads.ipynb"
    assert got.value.suggested_filename == committed.name
    assert got.value.path().read_bytes() == committed.read_bytes()
    row.get_by_text("Exercises", exact=True).click()
    assert desk.url == f"{server}/{EXERCISES}"


def test_next_goes_through_all_chapters_in_order():
    names = [chapter.name for chapter in book.chapters()]
    for before, name in pairwise(names):
        page = links.read(site.HTML / "notebooks" / f"{before}.html")
        assert page.relations["next"] == [f"{name}.html"]
        page = links.read(site.HTML / "notebooks" / f"{name}.html")
        assert page.relations["prev"] == [f"{before}.html"]


def test_contents_name_every_chapter_by_part(desk):
    open_page(desk, "index.html")
    parts = desk.locator(".bd-sidebar-primary .caption-text")
    assert parts.all_text_contents()[:2] == ["0 Start", "1 Text"]
    entries = desk.locator(".bd-sidebar-primary .toctree-l1 > a")
    names = entries.evaluate_all("all => all.map((a) => a.href)")
    for chapter in book.chapters():
        assert site.address(f"notebooks/{chapter.name}.html") in names


def test_a_copy_button_copies_the_code(browser):
    context = browser.new_context(permissions=["clipboard-read"])
    tab = open_page(context.new_page(), "index.html")
    block = tab.locator(".highlight-python").first
    block.hover()
    block.locator(".copybtn").click()
    tab.evaluate(
        "() => { const t = document.createElement('textarea');"
        " document.body.append(t); t.id = 'paste'; t.focus(); }"
    )
    tab.keyboard.press("Control+v")
    pasted = tab.locator("#paste").input_value()
    code = block.locator("pre").text_content()
    context.close()
    assert pasted.strip() == code.strip()


@pytest.mark.parametrize("page", ["index.html", EXERCISES, CHAPTER])
def test_tab_reaches_everything_and_shows_where_it_is(desk, page):
    open_page(desk, page)
    lost, unseen = site.walk(desk)
    assert (lost, unseen) == ([], [])


def test_the_first_stop_skips_to_the_text(desk):
    open_page(desk, CHAPTER)
    desk.keyboard.press("Tab")
    link = desk.locator(":focus")
    assert link.text_content().strip() == "Skip to main content"
    assert link.is_visible()
    desk.keyboard.press("Enter")
    assert desk.url.endswith("#main-content")
    desk.keyboard.press("Tab")
    assert desk.evaluate(
        "document.querySelector('#main-content').contains("
        "document.activeElement)"
    )


def test_a_stop_without_a_ring_is_seen(desk, planted):
    ring = ":focus-visible:not(#a):not(#b)"
    style = f"{ring}{{outline:0 !important;box-shadow:none !important}}"
    page = planted(EXERCISES, "</head>", f"<style>{style}</style></head>")
    _, unseen = site.walk(open_page(desk, page))
    assert unseen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, scheme):
    context = browser.new_context(viewport=site.DESK, color_scheme=scheme)
    found = {}
    for page in SAMPLE:
        tab = open_page(context.new_page(), page)
        assert tab.evaluate("document.documentElement.dataset.theme") == scheme
        found[page] = site.accessibility(tab)
        tab.close()
    context.close()
    assert {page: faults for page, faults in found.items() if faults} == {}


@pytest.mark.parametrize(
    ("html", "rule"),
    [
        ('<img src="../_static/icon.svg">', "image-alt"),
        ('<p style="color:#999;background:#fff">pale</p>', "color-contrast"),
        ("<button></button>", "button-name"),
    ],
)
def test_axe_sees_a_planted_fault(desk, planted, html, rule):
    page = planted(
        "notebooks/92_glossary.html", "</article>", f"{html}</article>"
    )
    faults = site.accessibility(open_page(desk, page))
    assert any(fault.startswith(rule) for fault in faults)
