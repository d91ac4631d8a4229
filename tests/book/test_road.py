"""The ways through the book, and all chapters and labs, in 00_start_here."""

import re

import book
import road

OPENING = """\
# 20 Attention

**The question.** How does a word look at
[another](12_vectors.ipynb)? And at itself?

**Time:** 45 minutes to read, under 2 minutes on two CPU cores
"""


def test_an_opening_gives_question_and_minutes():
    assert road.question(OPENING) == "How does a word look at another?"
    assert road.minutes(OPENING) == "45"
    assert road.minutes("**Time:** under 2 minutes on two CPU cores") == ""


def test_the_table_leads_to_every_chapter_and_is_that_of_chapter_00():
    """Where it is not, build 00_start_here again."""
    table = road.table()
    rows = table.split("\n")[2:]
    names = [chapter.name for chapter in book.everything()]
    assert len(names) > 20
    for row, name in zip(rows, names, strict=True):
        assert f"]({name}.ipynb) |" in row
        assert row.count("|") == 5
        assert "?" in row
    parts = [row.split("|")[1].strip() for row in rows]
    assert [p for p in parts if p] == [
        f"{number} {part}" for number, part in road.PARTS.items()
    ]
    cells = book.read_notebook(book.Chapter(road.NAME).path).cells
    tables = [c.source for c in cells if c.source.startswith(road.START)]
    assert tables == [f"{road.START}\n\n{table}"]


def test_the_ways_give_the_hours_of_their_chapters():
    text = road.routes()
    chapters, own, both, package = map(int, re.findall(r"about (\d+)", text))
    labs = [book.read_twin(one.twin).cells[0].source for one in book.labs()]
    minutes = sum(int(road.minutes(opening)) for opening in labs)
    assert abs(both - chapters - minutes / 60) <= 1
    assert package < own < chapters < both
    cells = book.read_notebook(book.Chapter(road.NAME).path).cells
    ways = [c.source for c in cells if c.source.startswith(road.WAYS)]
    assert ways == [f"{road.WAYS}\n\n{text}"]


def test_other_chapters_stay_as_they_are():
    cell = book.nbformat.v4.new_markdown_cell(road.START)
    notebook = book.nbformat.v4.new_notebook(cells=[cell])
    road.refresh(notebook, "20_attention")
    assert cell.source == road.START
    road.refresh(notebook, road.NAME)
    assert "](20_attention.ipynb)" in notebook.cells[0].source
