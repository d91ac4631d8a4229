"""Every page of the site, opened once, and every link followed."""

import pytest

from tests.site import browser as site
from tests.site import links

FONT = (
    "<style>@font-face{font-family:x;src:url(https://fonts.example/x.woff2)}"
    "body{font-family:x}</style></head>"
)
WIDE = f"<pre>{'wide ' * 99}</pre></article>"  # it scrolls in its own box
BURST = "pre{overflow:visible !important}"
PAGE = "notebooks/20_attention.html"


@pytest.fixture(scope="module")
def visits(phone):
    return [site.visit(phone, page) for page in site.pages()]


def told(visits, what):
    return {v.page: getattr(v, what) for v in visits if getattr(v, what)}


def test_there_are_pages_of_every_kind(visits):
    names = {visit.page for visit in visits}
    assert len(site.NOTEBOOKS) > 80
    shown = {name for name in names if name.startswith("notebooks/")}
    assert shown == set(site.NOTEBOOKS)
    assert {"index.html", "search.html", "docs/results.html"} <= names


def test_no_page_says_an_error(visits):
    assert told(visits, "console") == {}


def test_no_page_asks_for_anything_outside_its_folder(visits):
    assert told(visits, "outside") == {}
    assert told(visits, "missing") == {}


def test_nothing_runs_out_of_a_page_on_a_phone(visits):
    assert told(visits, "overflow") == {}


@pytest.mark.parametrize("page", ["index.html", "moving.html"])
def test_tables_that_compare_fit_on_a_phone(phone, page):
    tab = phone.new_page()
    tab.goto(site.address(page))
    boxes = tab.locator(".pst-scrollable-table-container")
    wide = "all => all.filter((b) => b.scrollWidth > b.clientWidth).length"
    assert boxes.count()
    assert boxes.evaluate_all(wide) == 0
    tab.close()


def test_formulas_are_drawn(visits):
    assert told(visits, "math") == {}
    assert sum(visit.formulas for visit in visits) > 40


def test_links_lead_somewhere():
    found = {p: links.faults(site.HTML / p) for p in site.pages()}
    assert {page: faults for page, faults in found.items() if faults} == {}


def test_links_to_other_hosts_are_listed():
    found = links.outside()
    assert len(found) > 50
    assert all(one.startswith("https://") for one in found)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("</head>", FONT, "outside"),
        ("</head>", '<script src="lost.js"></script></head>', "missing"),
        ("</head>", "<script>nobody()</script></head>", "console"),
        ("</article>", WIDE, ""),
        ("</article>", f"<style>{BURST}</style>{WIDE}", "overflow"),
        ("</article>", '<p style="width:600px">w</p></article>', "overflow"),
        ("</article>", r'<span class="math">\(x</span></article>', "math"),
        ("</article>", r"<p>$\frac{1}{2}$</p></article>", "math"),
    ],
)
def test_a_planted_fault_is_seen(phone, planted, old, new, what):
    found = site.visit(phone, planted(PAGE, old, new))
    told = ("console", "outside", "missing", "overflow", "math")
    seen = [name for name in told if getattr(found, name)]
    # A file that is not there is an error in the console too.
    assert what in seen if what else not seen


@pytest.mark.parametrize(
    "link",
    [
        "nowhere.html",
        "92_glossary.html#no-such-term",
        "../../index.md",
        "https://nobody.example/",
    ],
)
def test_a_planted_dead_link_is_seen(planted, link):
    page = planted(PAGE, "</article>", f'<a href="{link}">x</a></article>')
    assert [one.split(": ")[1] for one in links.faults(site.HTML / page)] == [
        link
    ]
