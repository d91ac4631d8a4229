"""The copy button of a block of code gives the code, and nothing else."""

import pytest
from playwright.sync_api import expect

import book
from tests.site import browser as site

CHAPTER = "notebooks/20_attention.html"
EXERCISES = "notebooks/exercises/20_attention.html"
API = "api/finetuning/finetune.html"
CELLS = ".cell_input .highlight"
EXAMPLES = ".highlight-pycon, .highlight-default.doctest"

COPY = """async (block) => {
  await navigator.clipboard.writeText("nothing was copied");
  const button = block.querySelector(".copybtn");
  if (button) button.click();
  return await navigator.clipboard.readText();
}"""


@pytest.fixture
def desk(browser):
    """A tab on a desk that may use the clipboard."""
    rights = ["clipboard-read", "clipboard-write"]
    context = browser.new_context(viewport=site.DESK, permissions=rights)
    yield context.new_page()
    context.close()


def copied(tab, page, blocks):
    """Returns what the copy buttons of a page's blocks give."""
    tab.goto(site.address(page))
    tab.locator(".copybtn").first.wait_for(state="attached")
    return [one.evaluate(COPY).strip() for one in tab.locator(blocks).all()]


def cells(page):
    """Returns the code cells of the notebook that a page shows."""
    path = book.ROOT / page.replace(".html", ".ipynb")
    found = book.code_cells(book.read_notebook(path))
    return [cell.source.strip() for cell in found]


@pytest.mark.parametrize("page", [CHAPTER, EXERCISES])
def test_every_cell_is_copied_whole(desk, page):
    assert copied(desk, page, CELLS) == cells(page)
    assert desk.locator(".cell_output .copybtn").count() == 0


def test_an_example_is_copied_without_prompts_and_outputs(desk):
    found = copied(desk, API, EXAMPLES)
    assert len(found) >= 3
    for text in found:
        assert text.startswith("import bertbook as bb")
        compile(text, "example", "exec")


def test_a_finger_sees_the_copy_button(browser):
    context = browser.new_context(viewport=site.PHONE, has_touch=True)
    tab = context.new_page()
    tab.goto(site.address(CHAPTER))
    block = tab.locator(".cell_input .highlight:visible").first
    block.tap(position={"x": 5, "y": 5})
    expect(block.locator(".copybtn")).to_have_css("opacity", "1")
    block.locator(".copybtn").tap()
    tab.locator(".copybtn.success").wait_for()
    context.close()


def test_a_cell_that_is_copied_in_part_is_seen(desk, planted):
    page = planted(EXERCISES, "<pre><span></span>", "<pre><span></span>x")
    assert copied(desk, page, CELLS) != cells(EXERCISES)
