"""Chapters and papers that a chapter names are links, and no link is dead."""

import pytest

import book
import links
import navigation

CONTENTS = "[Contents](00_start_here.ipynb)"
CHAPTER_20 = "[chapter 20](20_attention.ipynb)"
DEVLIN = "https://arxiv.org/abs/1810.04805"
CLARK = "https://arxiv.org/abs/1906.04341"
POST = "https://arxiv.org/abs/1804.08771"
BA = "https://arxiv.org/abs/1607.06450"
SENNRICH = "https://arxiv.org/abs/1508.07909"

WHOLE = {
    "40_a": "40_one_sentence",
    "41_c": "41_two_sentences",
    "43_b": "43_tags",
    "40]": "40](40_one_sentence.ipynb)",
    "41]": "41](41_two_sentences.ipynb)",
    "43]": "43](43_tags.ipynb)",
}


def linked(text):
    return navigation.linked(text, "10_tokens")


def cells(*texts):
    new = book.nbformat.v4
    return new.new_notebook(cells=[new.new_markdown_cell(t) for t in texts])


# The chapters as they are.


def test_links_of_the_chapter_are_current(chapter, notebook):
    before = book.twin_text(notebook)
    navigation.refresh(notebook, chapter.name)
    assert book.twin_text(notebook) == before, "run `make links`"


def test_line_stands_at_head_and_foot(chapter, notebook):
    line = navigation.line_of(chapter.name)
    assert notebook.cells[0].source.split("\n")[2] == line
    assert notebook.cells[-1].source == line


def test_the_lines_lead_through_the_whole_book():
    names = [chapter.name for chapter in book.chapters()]
    assert len(names) > 20
    for before, after in zip(names, names[1:], strict=False):
        assert f"]({after}.ipynb)" in navigation.line_of(before)
        assert f"]({before}.ipynb)" in navigation.line_of(after)


def test_no_link_inside_the_book_is_dead():
    paths = links.files()
    folders = {path.parent.name for path in paths}
    assert {book.ROOT.name, "docs", "data", "notebooks"} <= folders
    assert set(book.notebooks()) <= set(paths)
    dead = {path.name: links.dead(path) for path in paths}
    assert {name: found for name, found in dead.items() if found} == {}
    assert sum(len(links.targets(links.text_of(p))) for p in paths) > 300


# Chapters that the prose names.


def test_a_chapter_is_linked():
    for text, expected in (
        ("See 20_attention.", f"See {CHAPTER_20}."),
        ("See chapter 20_attention, too", f"See {CHAPTER_20}, too"),
        ("See chapter 20, too", f"See {CHAPTER_20}, too"),
        ("chapter 20's", "[Chapter 20](20_attention.ipynb)'s"),
        ("see chapter 2012, chapter 19", "see chapter 2012, chapter 19"),
        ("see chapter\n20_attention", "see [chapter\n20](20_attention.ipynb)"),
        ("(20_attention)", f"({CHAPTER_20})"),
        ("**see 20_attention**", f"**see {CHAPTER_20}**"),
        ("| 20_attention | a |", f"| {CHAPTER_20} | a |"),
        ("a < b in 20_attention, c > d", f"a < b in {CHAPTER_20}, c > d"),
        ("in [a](b), 20_attention", f"in [a](b), {CHAPTER_20}"),
        ("20_attention says", "[Chapter 20](20_attention.ipynb) says"),
        ("Yes. 20_attention!", "Yes. [Chapter 20](20_attention.ipynb)!"),
        (
            "**First.** 20_attention",
            "**First.** [Chapter 20](20_attention.ipynb)",
        ),
        ("A\n\n20_attention", "A\n\n[Chapter 20](20_attention.ipynb)"),
        ("e.g. 20_attention", f"e.g. {CHAPTER_20}"),
        ("by Ba et al. 20_attention", f"by Ba et al. {CHAPTER_20}"),
    ):
        assert linked(text) == expected
        assert linked(expected) == expected


def test_several_chapters_are_linked():
    for text, expected in (
        ("chapters 40 to 43", "chapters 40 to 43"),
        ("chapters 40_a and 43_b", "chapters [40] and [43]"),
        ("Chapters 40_a, 41_c, and 43_b", "Chapters [40], [41], and [43]"),
        ("chapters 40_a to\n43_b", "chapters [40] to\n[43]"),
        ("chapters 40_a–43_b", "chapters [40]–[43]"),
        (
            "chapters 40_a or 43_b, not 41_c",
            "chapters [40] or [43], not [chapter 41]",
        ),
        ("chapters [40] and 43_b", "chapters [40] and [43]"),
        (
            "The chapters before, and 40_a",
            "The chapters before, and [chapter 40]",
        ),
    ):
        for short, whole in WHOLE.items():
            text = text.replace(short, whole)
            expected = expected.replace(short, whole)
        assert linked(text) == expected
        assert linked(expected) == expected


def test_what_is_no_prose_is_left():
    for text in (
        "`20_attention` and ``20_attention`` and `` a ` 20_attention ``",
        "a `20_attention\nand more` b",
        "```text\nsee 20_attention\n```",
        "````md\n```\nsee 20_attention\n```\n````",
        "## On 20_attention, by Devlin et al. (2019)",
        "[see 20_attention](there)",
        "[see [20_attention] here](there)",
        "[![20_attention](a.png)](there)",
        "[a](https://a.org/b_(c)_20_attention)",
        "[Devlin et al. (2019)][1]",
        "<a href='x'>20_attention</a> <b title='20_attention'>",
        "<!-- 20_attention -> 30_masked_words -->",
        "https://a.org/20_attention",
        "20_attention.ipynb, notebooks/text/20_attention.md, x/20_attention",
        "x $$\na_{20_attention}\n$$ y",
        "see 10_tokens, this chapter, and 79_nothing",
        "20_000 and 120_attention",
    ):
        assert linked(text) == text


def test_prose_after_code_and_links_is_linked():
    text = "`20_attention`, [20_attention](a) <b>, $$x$$ see 20_attention"
    assert linked(text) == text.replace("see 20_attention", f"see {CHAPTER_20}")


def test_links_from_another_folder():
    for name, up in (
        ("exercises/20_attention", "../"),
        ("labs/20_why_many_heads", "../"),
        ("solutions/labs/20_why_many_heads", "../../"),
    ):
        text = navigation.linked("see 20_attention", name)
        assert text == f"see [chapter 20]({up}20_attention.ipynb)"


# Papers that the prose names.


def test_a_paper_is_linked():
    for text, label, url in (
        ("Devlin et al. (2019) write", "Devlin et al. (2019)", DEVLIN),
        ("(Devlin et al., 2019)", "Devlin et al., 2019", DEVLIN),
        ("Devlin et al.\n(2019)", "Devlin et al.\n(2019)", DEVLIN),
        ("Clark et al., 2019, section 3", "Clark et al., 2019", CLARK),
        ("Clark et al. (2019, section 3) say", "Clark et al. (2019, section 3)",
         CLARK),
        ("in Post (2018)", "Post (2018)", POST),
        ("in Post (2018, table 1)", "Post (2018, table 1)", POST),
        ("as Ba, Kiros\nand Hinton (2016)", "Ba, Kiros\nand Hinton (2016)", BA),
        ("Sennrich, Haddow, and Birch, 2016",
         "Sennrich, Haddow, and Birch, 2016", SENNRICH),
        ("[^1]: Devlin et al., 2019", "Devlin et al., 2019", DEVLIN),
        ("| Devlin et al. (2019) |", "Devlin et al. (2019)", DEVLIN),
    ):  # fmt: skip
        expected = text.replace(label, f"[{label}]({url})")
        assert linked(text) == expected
        assert linked(expected) == expected


def test_two_papers_in_one_pair_of_brackets():
    text = linked("(Devlin et al., 2019; Clark et al., 2019)")
    assert text == (
        f"([Devlin et al., 2019]({DEVLIN}); [Clark et al., 2019]({CLARK}))"
    )


def test_what_has_no_address_is_left():
    for text in (
        "Sun et al. (2019)",  # two works of one name and year
        "Lee et al. (2020)",  # one of the two has no number
        "Hochreiter and Schmidhuber (1997)",  # no number
        "In May (2019) Devlin wrote",
        "Devlin (about 2019)",
        "Nobody et al. (2019)",
        "[Devlin et al. (2019)](there)",
    ):
        assert linked(text) == text


def test_each_work_with_a_number_of_its_own_has_an_address():
    found = navigation.papers()
    assert found["Vaswani", 2017] == "https://arxiv.org/abs/1706.03762"
    assert ("Sun", 2019) not in found
    assert len(found) > 40


# The line to the chapters before and after.


def test_refresh_writes_each_line_once():
    notebook = cells("# 20 Attention\n\nText.", "See 22_block.")
    navigation.refresh(notebook, "20_attention")
    once = [cell.source for cell in notebook.cells]
    navigation.refresh(notebook, "20_attention")
    assert [cell.source for cell in notebook.cells] == once
    line = navigation.line_of("20_attention")
    assert once[0] == f"# 20 Attention\n\n{line}\n\nText."
    assert once[1].startswith("See [chapter 22](")
    assert once[2:] == [line]


def test_refresh_mends_former_lines():
    former = f"[← 10 Old](10_old.ipynb) | {CONTENTS}"
    notebook = cells(f"# 20 Attention\n\n{former}\n\nText.", "More.", former)
    navigation.refresh(notebook, "20_attention")
    assert "Old" not in "".join(cell.source for cell in notebook.cells)
    assert len(notebook.cells) == 3


def test_a_paragraph_with_a_link_to_the_contents_is_no_line():
    text = f"Back to {CONTENTS}."
    notebook = cells("# 20 Attention", text)
    navigation.refresh(notebook, "20_attention")
    assert notebook.cells[1].source == text
    assert len(notebook.cells) == 3


def test_first_and_last_chapter_have_one_neighbor():
    names = [chapter.name for chapter in book.chapters()]
    assert "←" not in navigation.line_of(names[0])
    assert "→" not in navigation.line_of(names[-1])


# Dead links.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small book: two chapters and a page."""
    monkeypatch.setattr(book, "ROOT", tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "docs").mkdir()
    text = "# 20 A\n\n## The *first* `step`\n\n<a id='here'></a>\n\n### p (x)"
    book.write_notebook(cells(text), tmp_path / "notebooks" / "20_a.ipynb")
    page = "# The *Page*\n\n## It's a `step`, again\n\n```\n# no heading\n```\n"
    (tmp_path / "docs" / "page.md").write_text(page, "utf-8")
    links.anchors.cache_clear()
    yield tmp_path
    links.anchors.cache_clear()


def dead_in(folder, text):
    book.write_notebook(cells(text), folder / "notebooks" / "10_b.ipynb")
    return links.dead(folder / "notebooks" / "10_b.ipynb")


@pytest.mark.parametrize(
    "text",
    [
        "[a](20_a.ipynb)",
        "[a](20_a.ipynb#The-first-step)",
        "[a](20_a.ipynb#p-(x))",
        "[a](20_a.ipynb#here)",
        "[a](<20_a.ipynb> 'title')",
        "[a](../docs/page.md#its-a-step-again)",
        "[a](../docs)",
        "# Top\n\n[a](#Top)",
        "[a](https://a.org/nothing) [b](mailto:a@b.org)",
        "`[a](nowhere.ipynb)`\n\n```\n[a](nowhere.ipynb)\n```",
        "[^1]: a note",
    ],
)
def test_a_link_that_leads_somewhere(folder, text):
    assert dead_in(folder, text) == []


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("[a](21_a.ipynb)", "21_a.ipynb"),
        ("[a](20_a.ipynb#the-first-step)", "20_a.ipynb#the-first-step"),
        ("[a](20_a.ipynb#There)", "20_a.ipynb#There"),
        ("[a](../docs/page.md#no-heading)", "../docs/page.md#no-heading"),
        ("# Top\n\n[a](#top)", "#top"),
        ("![a](a.png)", "a.png"),
        ("[![a](a.png)](20_a.ipynb)", "a.png"),
        ("[a `b`](nowhere.ipynb)", "nowhere.ipynb"),
        ("[a][1]\n\n[1]: nowhere.md", "nowhere.md"),
        ("<a href='nowhere.md'>a</a>", "nowhere.md"),
        ("<img src='nowhere.png'>", "nowhere.png"),
        ("[a](../../outside.md)", "../../outside.md"),
        ("[a]()", ""),
    ],
)
def test_a_dead_link_is_told(folder, text, target):
    (folder.parent / "outside.md").touch()
    assert dead_in(folder, text) == [target]


def test_an_address_of_the_book_itself_is_followed(folder):
    start = f"{book.address()}/blob/main/"
    assert dead_in(folder, f"[a]({start}docs/page.md)") == []
    gone = f"{start}docs/gone.md"
    assert dead_in(folder, f"[a]({gone})") == [gone]
