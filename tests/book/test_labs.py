"""Labs: a notebook below `labs/` is linked, listed and built like a chapter."""

import os
import re
import subprocess
import sys

import pytest

import badges
import book
import build_notebooks
import captions
import coverage_page
import exercises
import facts
import glossary
import labs
import links
import navigation
import road
import site_navigation
import site_pages
import site_tables
import turns

HOPS = "text → Tokenizer.encode → examples → **batch** → model → loss"
TIME = "**Time:** 5 minutes to read, under 1 minute on two CPU cores · \
**Memory:** 1 GB"
X, Y = "labs/10_hard_texts", "labs/10_sides"
TEXTS = {
    "00_start_here": ["# 00 Start here", road.START],
    "10_tokens": [
        "# 10 Tokens\n\n**The question.** How? And why?",
        "See lab 10_sides, labs 10_hard_texts and 10_sides, and Figure 10.1.",
        "## Exercises",
    ],
    "11_vocabulary": ["# 11 Vocabulary", "Lab 10_sides, and chapter 10."],
    "92_glossary": [
        "# 92 Glossary",
        "<!-- the terms: written by the build -->",
    ],
    X: [
        "# Lab: Hard texts\n\n**The question.** Are accents\nhard?"
        "\n\n**The answer.** No: 99.25 % of them, as "
        "[chapter\n11](../11_vocabulary.ipynb) says."
        f"\n\n**Where you are.** {HOPS}"
        f"\n\n**Before this lab.** 10_tokens\n\n{TIME}",
        "An **accent** is a mark, see chapter 11, lab 10_sides and Figure 1.",
        "A link of before: [a](11_vocabulary.ipynb#11-Vocabulary), "
        "[b](../docs).",
        "### Accents",
        "**Figure.** What is seen.",
        "## Exercises",
    ],
    Y: [
        "# Lab: Both sides\n\n**The question.** Left?"
        "\n\n**The answer.** Right.",
        "## Summary",
    ],
}
SOURCE = """\
# Exercises to lab: Hard texts

As in lab 10_hard_texts, chapter 10.

## 1. One (easy)

```{code-cell} ipython3
:tags: [stub]

a = None
```

```{code-cell} ipython3
:tags: [solution]

a = 1
```

```{code-cell} ipython3
:tags: [check]

assert a == 1, "1"
```
"""
CODE = "assert accents == 1\naccents"
CACHED = (
    navigation.title,
    navigation.names_by_number,
    links.anchors,
    coverage_page.sections,
)


def forget():
    for function in CACHED:
        function.cache_clear()


def made(texts):
    new = book.nbformat.v4
    cells = [new.new_markdown_cell(text) for text in texts]
    picture = new.new_output(
        "display_data",
        {"image/png": "abc", "text/plain": "a"},
        metadata={"image/png": {"alt": "An accent."}},
    )
    for number, cell in enumerate(cells):
        if captions.is_caption(cell):
            code = new.new_code_cell(CODE, outputs=[picture])
            cells.insert(number, code)
            break
    return new.new_notebook(cells=cells)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A book of four chapters and two labs, as the build leaves it."""
    book.project(), book.twin_text(made(["# A"]))  # read while they are there
    monkeypatch.setattr(book, "ROOT", tmp_path)
    monkeypatch.setattr(exercises, "SOURCES", tmp_path / "exercises")
    monkeypatch.setattr(glossary, "FOLDER", tmp_path / "terms")
    for folder in ("docs", "exercises/labs", "terms/labs", "notebooks/labs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / f"exercises/{X}.md").write_text(SOURCE, "utf-8")
    term = '[accent]\ntext = "A mark on a letter, as here."\n'
    (tmp_path / f"terms/{X}.toml").write_text(term, "utf-8")
    for name, texts in TEXTS.items():
        chapter = book.Chapter(name)
        book.write_notebook(made(texts), chapter.path)
        book.write_twin(made(texts), chapter.twin)
    forget()
    exercises.write(X)
    badges.main()
    links.main()
    yield tmp_path
    forget()


def text_of(name):
    notebook = book.read_notebook(book.Chapter(name).path)
    twin = book.read_twin(book.Chapter(name).twin)
    assert book.same_cells(notebook, twin) is None
    return "\n\n".join(cell.source for cell in notebook.cells)


# Names.


def test_a_name_tells_a_lab_from_a_chapter():
    lab, chapter = book.Chapter(X), book.Chapter("10_tokens")
    assert lab.is_lab
    assert not chapter.is_lab
    assert (lab.number, lab.part) == (chapter.number, chapter.part) == ("10", 1)
    assert lab.path == book.ROOT / "notebooks/labs/10_hard_texts.ipynb"
    assert lab.twin == book.ROOT / "notebooks/text/labs/10_hard_texts.md"
    for name in ("labs/hard", "labs/labs/10_a", "lab/10_a", "labs/10_A"):
        assert not book.is_name(name)


def test_chapters_and_labs_are_told_apart(small):
    names = [one.name for one in book.everything()]
    assert names == ["00_start_here", "10_tokens", X, Y, *names[4:]]
    assert [one.name for one in book.labs()] == [X, Y]
    assert [one.name for one in book.chapters()] == names[:2] + names[4:]
    assert [one.name for one in book.written()] == names


def test_links_between_notebooks():
    for to, name, expected in (
        ("11_b", "10_a", "11_b.ipynb"),
        (X, "10_a", "labs/10_hard_texts.ipynb"),
        ("10_a", X, "../10_a.ipynb"),
        (Y, X, "10_sides.ipynb"),
        (f"exercises/{X}", X, "../exercises/labs/10_hard_texts.ipynb"),
        (X, f"exercises/{X}", "../../labs/10_hard_texts.ipynb"),
    ):
        assert book.link(to, name) == expected


# The labs as they are.


def test_every_lab_follows_a_chapter():
    numbers = {chapter.number for chapter in book.chapters()}
    assert {lab.number for lab in book.labs()} <= numbers


def test_every_chapter_lists_its_labs():
    for chapter in book.chapters():
        for read, path in (
            (book.read_notebook, chapter.path),
            (book.read_twin, chapter.twin),
        ):
            notebook = read(path)
            before = book.twin_text(notebook)
            labs.refresh(notebook, chapter.name)
            navigation.refresh(notebook, chapter.name)
            assert book.twin_text(notebook) == before, "run `make links`"


# Openings.


def test_an_opening_gives_its_answer_on_one_line():
    text = "**The question.** Why?\n\n**The answer.** It\nis [so](a.ipynb).\n"
    assert (
        labs.answer(text) == labs.answer(f"{text}\n**Time:** 1") == "It is so."
    )
    assert labs.answer("**The question.** Why?") == ""


def test_an_answer_is_one_sentence():
    for text, right in (
        ("No: 0.5 e.g. against 0.75, 2.5 times as much.", True),
        ("No. It is not.", False),
        ("Is it? No.", False),
        ("No", False),
        ("", False),
    ):
        assert labs.is_one_sentence(text) is right


# What the build writes.


def test_a_chapter_lists_its_labs_before_its_exercises(small):
    _, _, after = text_of("10_tokens").partition(f"\n\n{labs.HEADING}\n\n")
    assert after.split("\n\n")[1] == (
        "- [Hard texts](labs/10_hard_texts.ipynb). *Are accents hard?* "
        "No: 99.25 % of them, as [chapter 11](11_vocabulary.ipynb) says.\n"
        "- [Both sides](labs/10_sides.ipynb). *Left?* Right."
    )
    assert after.split("\n\n")[2] == "## Exercises"
    assert labs.HEADING not in text_of("11_vocabulary")
    assert labs.HEADING not in text_of(X)


def test_the_list_goes_with_the_last_lab(small):
    for name in (X, Y):
        book.Chapter(name).twin.unlink()
    book.rewrite(
        book.Chapter("10_tokens"), lambda n: labs.refresh(n, "10_tokens")
    )
    assert labs.HEADING not in text_of("10_tokens")


def test_the_list_stands_at_the_end_where_there_are_no_exercises(small):
    notebook = made(["# 10 Tokens", "## Summary", "[Contents](a.ipynb)"])
    labs.refresh(notebook, "10_tokens")
    assert labs.is_section(notebook.cells[2])
    assert len(notebook.cells) == 4


def test_a_lab_leads_to_its_chapter_and_to_the_next_lab(small):
    line = (
        "Lab after [chapter 10](../10_tokens.ipynb) | "
        "[Contents](../00_start_here.ipynb)"
    )
    to_next = f"{line} | [Lab: Both sides →](10_sides.ipynb)"
    assert text_of(X).split("\n")[2] == text_of(X).split("\n")[-1] == to_next
    assert text_of(Y).split("\n")[2] == text_of(Y).split("\n")[-1] == line
    assert "labs/" not in navigation.line_of("11_vocabulary")
    assert "Hard" not in navigation.line_of("10_tokens")


def test_a_lab_of_no_chapter_is_an_error(small):
    twin = book.Chapter("labs/13_lost").twin
    book.write_twin(made(["# Lab: Lost"]), twin)
    with pytest.raises(ValueError, match="Received: 'labs/13_lost'"):
        navigation.line_of("labs/13_lost")


def test_labs_that_prose_names_are_linked(small):
    sides = "[lab *Both sides*](labs/10_sides.ipynb)"
    assert (
        f"See {sides}, labs [*Hard texts*](labs/10_hard_texts.ipynb) and "
        "[*Both sides*](labs/10_sides.ipynb), and Figure 10.1."
    ) in text_of("10_tokens")
    assert (
        f"{sides.replace('[lab', '[Lab')}, and [chapter 10](10_tokens.ipynb)."
    ) in text_of("11_vocabulary")
    assert (
        "see [chapter 11](../11_vocabulary.ipynb), "
        "[lab *Both sides*](10_sides.ipynb) and Figure 1."
    ) in text_of(X)


def test_a_chapter_that_became_a_lab_is_linked_as_a_lab(small):
    for text in ("see 10_sides", "see chapter 10_sides", "see lab 10_sides"):
        assert navigation.linked(text, "11_vocabulary") == (
            "see [lab *Both sides*](labs/10_sides.ipynb)"
        )


def test_links_of_a_chapter_that_became_a_lab_are_mended(small):
    assert (
        "before: [a](../11_vocabulary.ipynb#11-Vocabulary), [b](../../docs)."
    ) in text_of(X)


def test_terms_of_a_lab_are_linked_both_ways(small):
    link = "An [**accent**](../92_glossary.ipynb#accent) is a mark"
    assert link in text_of(X)
    there = "→ [lab *Hard texts*](labs/10_hard_texts.ipynb)"
    assert there in text_of("92_glossary")


def test_figures_of_a_lab_and_of_its_chapter_differ(small):
    assert "**Figure 1.** What is seen." in text_of(X)


def test_exercises_of_a_lab(small):
    assert exercises.names() == [X]
    assert exercises.faults(X) == []
    assert "](../exercises/labs/10_hard_texts.ipynb)" in text_of(X)
    path = exercises.path_of(X, "stub")
    assert path == small / "notebooks/exercises/labs/10_hard_texts.ipynb"
    opening = book.read_notebook(path).cells[0].source
    assert (
        "[Lab](../../labs/10_hard_texts.ipynb) | "
        "[Solutions](../../solutions/labs/10_hard_texts.ipynb)\n"
    ) in opening
    assert (
        "As in [lab *Hard texts*](../../labs/10_hard_texts.ipynb), "
        "[chapter 10](../../10_tokens.ipynb)."
    ) in opening


def test_the_contents_hold_labs_below_their_chapter(small):
    rows = [row.split(" | ") for row in road.table().split("\n")[3:6]]
    assert [row[1] for row in rows] == [
        "[10 Tokens](10_tokens.ipynb)",
        "[Lab: Hard texts](labs/10_hard_texts.ipynb)",
        "[Lab: Both sides](labs/10_sides.ipynb)",
    ]
    assert [row[2] for row in rows] == ["How?", "Are accents hard?", "Left?"]
    assert "[Lab: Hard texts](labs/10_" in text_of("00_start_here")


def test_no_link_is_dead_and_a_second_build_changes_nothing(small, capsys):
    found = {p: links.dead(p) for p in links.files()}
    assert len(found) == 8  # two of them are the exercises of the lab
    assert {path: dead for path, dead in found.items() if dead} == {}
    capsys.readouterr()
    assert links.main() == 0
    assert capsys.readouterr().out == ""


def test_a_dead_link_of_a_lab_is_seen(small):
    path = book.Chapter(Y).path
    book.write_notebook(made(["[a](10_tokens.ipynb) [b](10_no.ipynb)"]), path)
    assert links.dead(path) == ["10_tokens.ipynb", "10_no.ipynb"]


def test_a_row_may_rest_on_a_lab(small):
    place = f"`{X}`: Accents (`accents == 1`)"
    assert coverage_page.fault(place) is None
    assert coverage_page.fault(place.replace("== 1", "== 2"))


def test_numbers_in_the_list_of_labs_are_backed_there(small, monkeypatch):
    monkeypatch.setattr(facts, "known", set)
    notebook = book.read_notebook(book.Chapter("10_tokens").path)
    assert "99.25" in text_of("10_tokens")
    assert facts.unbacked_in_chapter(notebook) == []
    lab = book.read_notebook(book.Chapter(X).path)
    assert facts.unbacked_in_chapter(lab) == ["99.25"]


def test_labs_are_tested_by_turns(small):
    assert f"notebooks/{X}.ipynb" in turns.others()


# The site.


def test_the_page_of_a_lab(small):
    page = site_pages.chapter_page(X)
    opening, *rest = (c.source for c in page.cells if c.cell_type == "markdown")
    row = next(line for line in opening.split("\n") if "Download the" in line)
    for button in (
        f"/notebooks/{X}.ipynb)",
        f"<../../downloads/notebooks/{X}.ipynb>",
        "[Chapter 10](../10_tokens.ipynb)",
        f"[Exercises](../exercises/{X}.ipynb)",
        f"[Solutions](../solutions/{X}.ipynb)",
    ):
        assert button in row
    assert "Lab after" not in opening
    assert "see [chapter 11](../11_vocabulary.ipynb)" in rest[0]
    assert "[Figure 1](#figure-10-hard-texts-1)" in rest[0]
    (code,) = book.code_cells(page)[1:]
    name = code.metadata["mystnb"]["figure"]["name"]
    assert name == "figure-10-hard-texts-1"
    assert f"\n/notebooks/exercises/{X}\n" in rest[-1]
    page = site_pages.exercise_page(X, "exercises")
    assert f"[Lab](../../{X}.ipynb)" in page.cells[0].source
    assert "| [Solutions]" not in page.cells[0].source


def test_labs_stand_below_their_chapter_in_the_contents(small):
    page = site_pages.chapter_page("10_tokens")
    entries = re.findall(r"^/notebooks/(.*)$", page.cells[-1].source, re.M)
    assert entries == [X, Y]
    pages = dict(site_tables.parts())["1 Text"]
    assert pages == ["notebooks/10_tokens", "notebooks/11_vocabulary"]


def test_the_reader_goes_on_from_lab_to_lab_and_to_the_next_chapter(small):
    assert site_navigation.neighbors(X) == ("10_tokens", Y)
    assert site_navigation.neighbors(Y) == (X, "11_vocabulary")
    assert site_navigation.neighbors("10_tokens") == (
        "00_start_here",
        "11_vocabulary",
    )


# What runs a notebook gives it an empty `mybert`.

WRITES = """\
import os
from pathlib import Path

place = Path(os.environ["MYBERT"])
print([path.name for path in place.iterdir()], Path.cwd().name)
(place / "mine.py").touch()"""


def test_a_build_runs_where_the_notebook_is_with_an_empty_mybert(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MYBERT", "mine")
    (tmp_path / "labs").mkdir()
    cell = book.nbformat.v4.new_code_cell(WRITES)
    notebook = book.nbformat.v4.new_notebook(cells=[cell])
    for _ in range(2):
        build_notebooks.execute(notebook, tmp_path / "labs")
        assert cell.outputs[0].text == "[] labs\n"
    assert os.environ["MYBERT"] == "mine"


def test_nbval_runs_each_notebook_with_an_empty_mybert(tmp_path):
    """The kernels of both start in one process."""
    new = book.nbformat.v4
    cell = new.new_code_cell(WRITES, execution_count=1)
    line = f"[] {tmp_path.name}\n"
    cell.outputs = [new.new_output("stream", text=line)]
    for name in ("10_a", "10_b"):
        notebook = new.new_notebook(cells=[cell])
        book.nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env"]
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", "-p", "conftest"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(book.ROOT), "MYBERT": "mine"},
        capture_output=True,
        text=True,
    )
    assert "2 passed" in done.stdout, done.stdout
