"""Terms are defined once, where the glossary says, and linked both ways."""

import re
from collections import Counter

import pytest

import book
import glossary
import links
import navigation

DEFINED = re.compile(
    r"\[\*\*[^*]+\*\*\]\((?:\.\./)?92_glossary\.ipynb#((?:[^()\s]|\([^()]*\))*)\)"
)
TERM = glossary.Term(
    "head", "One of several.", "20_attention", ("attention head",)
)
LINK = "[**head**](92_glossary.ipynb#head)"


def chapter_92():
    return book.read_notebook(book.Chapter(glossary.NAME).path)


def notebook_of(*texts):
    new = book.nbformat.v4
    return new.new_notebook(cells=[new.new_markdown_cell(t) for t in texts])


def linked(monkeypatch, *texts, terms=(TERM,)):
    """Returns the text cells below an opening after a build."""
    monkeypatch.setattr(glossary, "terms", lambda name=None: list(terms))
    notebook = notebook_of("# 20 Attention", *texts)
    glossary.refresh(notebook, "20_attention")
    once = [cell.source for cell in notebook.cells]
    glossary.refresh(notebook, "20_attention")
    assert [cell.source for cell in notebook.cells] == once
    return once[1:]


# The glossary as it is.


def test_there_are_terms():
    assert glossary.terms()
    files = list(glossary.FOLDER.rglob("*.toml"))
    assert len(files) == len({term.chapter for term in glossary.terms()})


def test_every_file_belongs_to_a_chapter():
    names = {chapter.name for chapter in book.everything()}
    assert {term.chapter for term in glossary.terms()} <= names


def test_each_name_of_a_term_is_there_once():
    names = Counter(
        name.lower()
        for term in glossary.terms()
        for name in {term.word, *term.also}
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_each_term_is_said_in_sentences():
    for term in glossary.terms():
        assert re.fullmatch(r"[A-Z\W\d].*[.?!]", term.text), term.word
        assert len(term.text.split()) >= 4, term.word


def test_each_word_can_be_an_anchor():
    """Browsers write other letters in another way."""
    for term in glossary.terms():
        assert re.fullmatch(r"[\w ()\[\]'/,.+-]+", term.word, re.ASCII)


def test_the_chapter_defines_its_terms(chapter, notebook):
    terms = glossary.terms(chapter.name)
    lost = [t.word for t in terms if not glossary.is_linked(notebook, t)]
    assert lost == [], "make the term bold where the chapter defines it"


def test_the_chapter_defines_no_term_of_another(chapter, notebook):
    own = {term.anchor for term in glossary.terms(chapter.name)}
    text = "\n\n".join(c.source for c in notebook.cells)
    assert set(DEFINED.findall(text)) - own == set()


def test_a_definition_in_brackets_is_found():
    text = "([**a (b)**](92_glossary.ipynb#a-(b))) [d](92_glossary.ipynb#d)"
    assert DEFINED.findall(text) == ["a-(b)"]


def test_terms_of_the_chapter_are_current(chapter, notebook):
    before = book.twin_text(notebook)
    glossary.refresh(notebook, chapter.name)
    navigation.refresh(notebook, chapter.name)
    assert book.twin_text(notebook) == before, (
        f"run tools/book/build_notebooks.py {chapter.name}"
    )


def test_chapter_92_holds_every_term_in_order():
    text = "\n".join(cell.source for cell in chapter_92().cells)
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert headings == [term.word for term in glossary.terms()]
    assert headings == sorted(headings, key=str.lower)


def test_every_anchor_exists():
    found = links.anchors(book.Chapter(glossary.NAME).path)
    assert {term.anchor for term in glossary.terms()} <= found


# Links of terms.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A **head** is one.", f"A {LINK} is one."),
        ("There are **heads**.",
         "There are [**heads**](92_glossary.ipynb#head)."),
        ("A **Head** is.", "A [**Head**](92_glossary.ipynb#head) is."),
        ("An **attention head** is.",
         "An [**attention head**](92_glossary.ipynb#head) is."),
        ("An **attention\nhead** is.",
         "An [**attention\nhead**](92_glossary.ipynb#head) is."),
        ("| **head** | one |", f"| {LINK} | one |"),
        ("- **head**: one", f"- {LINK}: one"),
        ("A **head** and a **head**.", f"A {LINK} and a **head**."),
        ("## A **head**\n\nA **head**", f"## A **head**\n\nA {LINK}"),
        ("`**head**` and **head**", f"`**head**` and {LINK}"),
        ("[a **head**](b), **head**", f"[a **head**](b), {LINK}"),
        ("```\n**head**\n```\n\n**head**", f"```\n**head**\n```\n\n{LINK}"),
    ],
)  # fmt: skip
def test_a_bold_term_is_linked(monkeypatch, text, expected):
    assert linked(monkeypatch, text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "A head, a *head*, a **header**, a **large head**.",
        "## The **head**",
        "`f(**head**)`",
        "[**head**](elsewhere.ipynb)",
    ],
)
def test_what_defines_no_term_is_left(monkeypatch, text):
    assert linked(monkeypatch, text) == [text]
    assert not glossary.is_linked(notebook_of(text), TERM)


def test_the_first_of_several_cells_is_linked(monkeypatch):
    texts = linked(monkeypatch, "No term.", "A **head**.", "A **head**.")
    assert texts == ["No term.", f"A {LINK}.", "A **head**."]


def test_the_hops_of_an_opening_are_no_definition(monkeypatch):
    hops = "**Where you are.** text → examples → **model** → loss"
    model = glossary.Term("model", "What learns.", "20_attention")
    monkeypatch.setattr(glossary, "terms", lambda name=None: [model])
    opening = f"# 20 A\n\n{hops}\n\nA **model** learns, a **model** knows."
    notebook = notebook_of(opening)
    glossary.refresh(notebook, "20_attention")
    assert notebook.cells[0].source == opening.replace(
        "A **model**", "A [**model**](92_glossary.ipynb#model)"
    )
    assert glossary.is_linked(notebook, model)


def test_a_term_inside_another_term(monkeypatch):
    longer = glossary.Term("multi-head attention", "Many.", "20_attention")
    terms = TERM, longer
    text = "**multi-head attention** has more than one **head**"
    target = "92_glossary.ipynb#multi-head-attention"
    assert linked(monkeypatch, text, terms=terms) == [
        f"[**multi-head attention**]({target}) has more than one {LINK}"
    ]


@pytest.mark.parametrize(
    "word", ["residual (skip) connection", "[SEP]", "p-value"]
)
def test_a_term_with_marks_in_it(monkeypatch, word):
    term = glossary.Term(word, "One.", "20_attention")
    (text,) = linked(monkeypatch, f"A **{word}** is.", terms=[term])
    anchor = word.replace(" ", "-")
    assert text == f"A [**{word}**](92_glossary.ipynb#{anchor}) is."
    assert navigation.linked(text, "20_attention") == text
    assert links.targets(text) == [f"92_glossary.ipynb#{anchor}"]
    assert links.heading_anchor(word) == anchor


def test_another_link_defines_no_term():
    for text in (
        "a [head](92_glossary.ipynb#head)",  # not where it is defined
        "a [**head**](92_glossary.ipynb#heads)",
        "a [**head**](92_glossary.ipynb#Head)",
        "a [**tail**](92_glossary.ipynb#head)",
    ):
        assert not glossary.is_linked(notebook_of(text), TERM)


# The files and chapter 92.


def test_terms_are_read_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(glossary, "FOLDER", tmp_path)
    (tmp_path / "20_a.toml").write_text(
        "[logit]\ntext = '''A score\nbefore softmax.'''\n\n"
        "[Adam]\ntext = 'A rule.'\nalso = ['adam']\n"
    )
    (tmp_path / "10_b.toml").write_text('["p-value"]\ntext = "A chance."\n')
    assert [term.word for term in glossary.terms()] == [
        "Adam",
        "logit",
        "p-value",
    ]
    assert [term.word for term in glossary.terms("10_b")] == ["p-value"]
    assert glossary.terms("30_c") == []
    assert glossary.entries() == (
        "### Adam\n\nA rule. Also: adam. → [chapter 20](20_a.ipynb)\n\n"
        "### logit\n\nA score before softmax. → [chapter 20](20_a.ipynb)\n\n"
        "### p-value\n\nA chance. → [chapter 10](10_b.ipynb)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "[logit]\nother = 'A.'",
        "[a.b]\ntext = 'A.'",
        "[a]\ntext = 'A.'\nalos = []",
    ],
)
def test_a_wrong_entry_is_an_error(tmp_path, monkeypatch, text):
    monkeypatch.setattr(glossary, "FOLDER", tmp_path)
    (tmp_path / "20_a.toml").write_text(text)
    with pytest.raises(ValueError, match="Received: '.*in 20_a.toml"):
        glossary.terms()


def test_an_older_chapter_92_is_written_anew(monkeypatch):
    notebook = chapter_92()
    before = book.twin_text(notebook)
    monkeypatch.setattr(glossary, "terms", lambda name=None: [TERM])
    glossary.refresh(notebook, glossary.NAME)
    assert book.twin_text(notebook) != before
    text = "\n".join(cell.source for cell in notebook.cells)
    assert re.findall(r"^### (.+)$", text, re.MULTILINE) == ["head"]
