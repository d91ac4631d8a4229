"""The pages of the API lead on: names, types, sources, chapters, and back."""

import re
from functools import cache

import pytest
from bs4 import BeautifulSoup

import api_index
import api_links
import api_pages
import book
import quotes

HTML = book.ROOT / "build" / "site" / "html"
MODULES = [m for room in api_pages.rooms() for m in api_pages.modules_of(room)]


@cache
def page(name):
    """Returns a page of the site as a tree."""
    return parsed((HTML / f"{name}.html").read_text("utf-8"))


def parsed(text):
    return BeautifulSoup(text, "html.parser").select_one("article") or (
        BeautifulSoup(text, "html.parser")
    )


def unlinked(tree):
    """Returns the names that should be links to an entry and are none."""
    names = tree.select("code.py-obj, code.py-mod")
    return [n.text for n in names if n.find_parent("a") is None]


def nameless_types(tree):
    """Returns names of checkers' own types that a reader cannot know."""
    shown = tree.select("dd.field-odd em, dd.field-even em, em.sig-param")
    return [n.text for n in shown if re.match(r"_[A-Z]\w+", n.text)]


def bare_marks(tree):
    """Returns text in which markup was not read: a role, or backticks."""
    texts = tree.find_all(string=True)
    prose = [t for t in texts if t.find_parent(["pre", "code", "dt"]) is None]
    return re.findall(r":py:\w+:|`[^`]+`|\*\*\w+\*\*", "".join(prose))


def test_every_module_has_a_page_with_its_source():
    assert len(MODULES) > 140
    for module in MODULES:
        tree = page(api_pages.page_of(module))
        file = api_index.modules()[module].relative_to(book.ROOT).as_posix()
        address = f"{book.address()}/blob/main/{file}"
        assert tree.select_one(f'a[href="{address}"]'), module
        for definition in api_index.definitions(module):
            assert tree.find(id=definition.target), definition.target


def test_entries_lead_to_their_lines():
    tree = page("api/model/encoder")
    entry = tree.find(id="bertbook.BertEncoder").find(
        "a", href=re.compile("#L")
    )
    first, last = map(int, re.findall(r"L(\d+)", entry["href"]))
    lines = (book.ROOT / "bertbook/model/encoder.py").read_text().splitlines()
    assert "class BertEncoder" in "\n".join(lines[first - 1 : first + 1])
    assert last <= len(lines)


def accidental_lists(tree):
    """Returns lists that a letter with a period began."""
    lists = tree.select("ol.upperalpha, ol.loweralpha, ol.upperroman")
    return [str(found) for found in lists]


CHECKS = unlinked, nameless_types, bare_marks, accidental_lists


@pytest.mark.parametrize("check", CHECKS)
def test_names_and_types_are_for_readers(check):
    for module in MODULES:
        assert check(page(api_pages.page_of(module))) == [], module


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (unlinked, '<code class="xref py py-obj">gone</code>'),
        (nameless_types, '<dd class="field-odd"><em>_Frame</em></dd>'),
        (bare_marks, "<p>see :py:obj:<code>x</code></p>"),
        (bare_marks, "<p>see `x`</p>"),
        (accidental_lists, '<ol class="upperalpha"><li></li></ol>'),
    ],
)
def test_each_fault_is_seen(check, text):
    assert check(parsed(f"<article>{text}</article>")) != []


def test_types_lead_to_what_they_are():
    tree = page("api/finetuning/finetune")
    entry = tree.find(id="bertbook.finetune").find_next_sibling("dd")
    links = {node.text for node in entry.select("a em")}
    assert {"Table", "Metrics", "FinetuningOptions"} <= links
    assert "BertForSequenceClassification" in links


def test_every_public_name_is_listed():
    tree = page("api/index")
    for name in api_index.public_names():
        link = tree.find("a", href=re.compile(rf"#bertbook\.{name}$"))
        assert link is not None, name
        assert link.text == f"bb.{name}"


def chapter_page(name):
    (found,) = HTML.glob(f"notebooks/{name}.html")
    return found.relative_to(HTML).with_suffix("").as_posix()


def test_chapters_lead_to_the_entries_that_they_use_and_back():
    for entry, chapters in api_links.uses().items():
        definition = api_index.find(entry)
        if definition is None:  # a module
            continue
        if definition.is_method:  # where the class is, not its base
            definition = api_index.find(entry.rpartition(".")[0])
        there = page(api_pages.page_of(definition.module))
        for chapter in chapters:
            back = there.find("a", href=re.compile(rf"/{chapter}\.html$"))
            assert back is not None, (entry, chapter)
    names = api_links.uses()
    for entry in ("bertbook.finetune", "bertbook.BertEncoder.from_pretrained"):
        for chapter in names[entry]:
            tree = page(chapter_page(chapter))
            assert tree.find("a", href=re.compile(f"#{re.escape(entry)}$"))


def test_quoted_definitions_are_links():
    for chapter in book.everything():
        tree = page(chapter_page(chapter.name))
        for cell in book.read_notebook(chapter.path).cells:
            if book.is_quote(cell):
                dotted = quotes.name_of(cell)
                entry = api_links.resolve(dotted)
                link = tree.find("a", string=dotted)
                assert link is not None, dotted
                assert link["href"].endswith(f"#{entry}")


def test_calls_of_ours_are_links_where_others_are_compared():
    rows = page("moving").select("tbody tr")
    cells = [row.select("td")[-1] for row in rows]
    ours = [cell for cell in cells if "bb." in cell.text]
    assert len(ours) > 25
    assert [cell.text for cell in ours if cell.select_one("a") is None] == []
