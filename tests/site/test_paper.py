"""A printed page has everything that the page has, and only that."""

import pytest

from tests.site import browser as site

CHAPTER = "notebooks/21_several_heads.html"
EXERCISES = "notebooks/exercises/21_several_heads.html"
PAGES = [
    CHAPTER,
    EXERCISES,
    "notebooks/61_translation.html",
    "index.html",
    "moving.html",
    "docs/devices.html",
    "docs/results.html",
    "api/finetuning/finetune.html",
]
# A4 with a margin of 1 cm, in the pixels of a style sheet.
PAPER = {"width": 718, "height": 1047}

# What a printer would get; Chromium asks at the moment when it prints.
WATCH = """() => {
  matchMedia("print").addEventListener("change", (event) => {
    if (!event.matches) return;
    const all = [...document.querySelectorAll("article details")];
    const shown = (one) => one.open && [...one.children].every(
      (child) => getComputedStyle(child).opacity === "1");
    const bars = ".bd-sidebar-primary, .bd-sidebar-secondary, .copybtn, " +
      ".bd-header-article, .prev-next-footer, .buttons, .skip-link";
    window.printed = {
      folds: all.length,
      hidden: all.filter((one) => !shown(one)).length,
      bars: [...document.querySelectorAll(bars)]
        .filter((one) => one.checkVisibility())
        .map((one) => one.className),
      scheme: document.documentElement.dataset.theme,
    };
  });
}"""

CUT = """() => {
  const found = [];
  for (const node of document.querySelectorAll(
      "article :is(pre, table, img, svg)")) {
    if (!node.checkVisibility()) continue;
    const right = Math.ceil(node.getBoundingClientRect().right);
    const wide = node.scrollWidth > node.clientWidth + 1;
    if (right > innerWidth || (node.tagName === "PRE" && wide))
      found.push(`${node.tagName} ${right}: ` +
        node.textContent.trim().slice(0, 30));
  }
  return found;
}"""


def printed(tab, page):
    """Prints a page in the dark scheme, and returns what was on it."""
    tab.emulate_media(color_scheme="dark")
    tab.goto(site.address(page))
    site.settle(tab)
    tab.evaluate(WATCH)
    assert tab.pdf().startswith(b"%PDF")
    return tab.evaluate("printed")


def cut(tab, page):
    """Returns the code, tables and pictures that end beyond the paper."""
    tab.set_viewport_size(PAPER)
    tab.goto(site.address(page))
    site.settle(tab)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    tab.emulate_media(media="print")
    return tab.evaluate(CUT)


@pytest.mark.parametrize("page", [CHAPTER, EXERCISES])
def test_folds_are_printed_open_and_bars_are_not(desk, page):
    found = printed(desk, page)
    assert found.pop("folds") > 2
    assert found == {"hidden": 0, "bars": [], "scheme": "light"}
    assert desk.evaluate("document.documentElement.dataset.theme") == "dark"
    assert desk.locator("article details[open]").count() == 0


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_cut_off_on_paper(desk, page):
    assert cut(desk, page) == []


@pytest.mark.parametrize(
    ("old", "what"),
    [("_static/book.js", "hidden"), ("_static/book.css", "bars")],
)
def test_a_page_that_does_not_care_for_paper_is_seen(desk, planted, old, what):
    page = planted(EXERCISES, old, old.replace("book.", "lost."))
    assert printed(desk, page)[what]


def test_a_fold_that_fades_in_too_late_is_seen(desk, planted):
    style = "<style>details *{animation:late 9s !important}"
    style += "@keyframes late{from{opacity:0}}</style></body>"
    page = planted(EXERCISES, "</body>", style)
    assert printed(desk, page)["hidden"] > 2


@pytest.mark.parametrize(
    "html",
    [
        f'<pre style="white-space:pre">{"wide " * 99}</pre>',
        '<table style="min-width:900px"><tr><td>x</td></tr></table>',
        '<img src="../_static/icon.svg" style="min-width:900px">',
    ],
)
def test_what_is_wider_than_the_paper_is_seen(desk, planted, html):
    page = planted(EXERCISES, "</article>", f"{html}</article>")
    assert cut(desk, page) != []
