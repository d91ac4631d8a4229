"""Badges, first cells and addresses are those of `pyproject.toml`."""

import subprocess
import sys

import pytest

import badges
import book
import first_cell
from bertbook.book.parts import PARTS


def test_the_badge_opens_its_own_chapter(chapter, notebook):
    opening = notebook.cells[0].source.split("\n")
    assert badges.badge(chapter.name) in opening, "run `make badges`"
    assert sum(line.startswith(badges.MARK) for line in opening) == 1


def test_the_first_code_cell_is_the_common_one(notebook):
    cells = book.code_cells(notebook)
    assert cells, "the chapter holds no code"
    source = first_cell.source_for(notebook)
    assert cells[0].source == source, "run `make badges`"
    assert cells[0].metadata.get("tags") == first_cell.TAGS


def test_addresses_in_chapters_agree(notebook):
    for cell in notebook.cells:
        current = badges.with_current_addresses(cell.source)
        assert cell.source == current, "run `make badges`"


def test_no_chapter_opens_with_a_picture_of_the_network(notebook):
    opening = notebook.cells[0].source
    assert "![" not in opening
    assert "<img" not in opening


def test_pages_are_as_the_project_wants_them():
    names = {path.name for path in badges.pages()}
    assert {"README.md", "CITATION.cff", "using.md", "test.yml"} <= names
    for path in badges.pages():
        current = badges.brought_up_to_date(path)
        assert path.read_text("utf-8") == current, f"{path}: run `make badges`"


def test_the_readme_says_whether_the_address_is_set(monkeypatch):
    text = (book.ROOT / "README.md").read_text("utf-8")
    monkeypatch.setattr(book, "has_address", lambda: True)
    placed = badges.with_note(text)
    assert "OWNER" not in placed.replace(book.NO_ADDRESS, "")
    assert placed == badges.with_note(placed)
    monkeypatch.setattr(book, "has_address", lambda: False)
    assert badges.with_note(placed).split("\n\n")[1] == badges.NOTE.strip()


def test_the_first_cell_is_short_and_is_python():
    assert len(first_cell.SOURCE.split("\n")) <= 18
    compile(first_cell.with_start("start", '"20"'), "first cell", "exec")


@pytest.mark.parametrize(
    ("source", "ending"),
    [
        ("x = 1", "import bertbook as bb\n\nbb.setup()"),
        ("# @part\nx = '@part'", "\n\nbb.setup()"),
        (
            "import re\n\n\n@part\ndef split_words(text):\n    ...",
            "import bertbook as bb\n"
            "from bertbook.book.workbench import book, part, start\n\n"
            'bb.setup()\nstart("20")',
        ),
        (
            "from mybert.tokenizer import Tokenizer",
            "import bertbook as bb\n"
            "from bertbook.book.workbench import start\n\n"
            "bb.setup()\nstart()",
        ),
    ],
)
def test_the_first_cell_starts_the_workbench_where_it_is_used(source, ending):
    notebook = opening()
    notebook.cells[1].source = source
    for _ in range(2):
        first_cell.place(notebook)
        first, second = book.code_cells(notebook)
        assert first.source.endswith(ending)
        assert second.source == source
    second.source = "x = 1"
    first_cell.place(notebook)
    assert first.source == first_cell.SOURCE


@pytest.mark.parametrize(
    ("version", "ref", "ending"),
    [
        ("1.2.0", "v1.2.0", "bertbook@v1.2.0"),
        ("1.3.0.dev0", "main", "bertbook"),
    ],
)
def test_a_release_installs_its_own_tag(version, ref, ending, monkeypatch):
    monkeypatch.setattr(book, "version", lambda: version)
    monkeypatch.setattr(book, "has_address", lambda: True)
    assert first_cell.install_line().endswith(f"/{ending}")
    assert f"/blob/{ref}/notebooks/" in badges.badge("20_attention")


def test_without_an_address_no_stranger_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "has_address", lambda: False)
    line = first_cell.install_line()
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", line]
    done = subprocess.run(pip, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert "bertbook.whl" in done.stderr
    assert "http" not in done.stdout + done.stderr


def opening(source="# 20 Attention\n\nText."):
    new = book.nbformat.v4
    cells = [new.new_markdown_cell(source), new.new_code_cell("x = 1")]
    return new.new_notebook(cells=cells)


def test_place_writes_badge_and_first_cell_once():
    notebook = opening()
    badges.place(notebook, "20_attention")
    once = [cell.source for cell in notebook.cells]
    badges.place(notebook, "20_attention")
    assert [cell.source for cell in notebook.cells] == once
    assert once[0].split("\n")[2] == badges.badge("20_attention")
    assert once[1:] == [first_cell.SOURCE, "x = 1"]


def test_the_badge_of_a_lab_opens_the_lab():
    place = "/notebooks/labs/10_hard_texts.ipynb)"
    assert badges.badge("labs/10_hard_texts").endswith(place)


def test_place_corrects_an_older_badge():
    old = badges.badge("30_other").replace(badges.slug(), "someone/bertbook")
    notebook = opening(f"# 20 Attention\n\n{old}")
    badges.place(notebook, "20_attention")
    lines = notebook.cells[0].source.split("\n")
    assert lines[2] == badges.badge("20_attention")


def test_place_needs_a_title():
    notebook = book.nbformat.v4.new_notebook()
    with pytest.raises(ValueError, match="markdown"):
        badges.place(notebook, "20_attention")


def test_the_first_output_says_nothing_of_the_processor():
    new = book.nbformat.v4
    cell = new.new_code_cell("bb.setup()")
    text = "bertbook 1.0, Keras 3.15.1\nDevice: CPU, 2 cores\n"
    cell.outputs = [new.new_output("stream", text=text)]
    first_cell.forget_processor(new.new_notebook(cells=[cell]))
    assert cell.outputs[0].text == "bertbook 1.0, Keras 3.15.1\nDevice: CPU\n"


def test_a_first_output_of_another_version_is_seen():
    new = book.nbformat.v4
    cell = new.new_code_cell("bb.setup()")
    notebook = new.new_notebook(cells=[cell])
    assert first_cell.outdated(notebook) == ""
    for version, seen in ((book.version(), False), ("0.0.1", True)):
        text = f"bertbook {version}, Keras 3.15.1\nDevice: CPU\n"
        cell.outputs = [new.new_output("stream", text=text)]
        line = text.split("\n")[0]
        assert first_cell.outdated(notebook) == (line if seen else None)
    known = len(PARTS)
    for count, seen in ((known, False), (known - 1, True)):
        told = f"mybert: 0 of {count} parts"
        text = f"bertbook {book.version()}, Keras 3.15.1\n{told} are yours\n"
        cell.outputs = [new.new_output("stream", text=text)]
        assert first_cell.outdated(notebook) == (told if seen else None)


def test_an_output_of_a_missing_instruction_set_is_dropped():
    new = book.nbformat.v4
    said = f"E0000 00:00:17.9 305 util.cc:131] {first_cell.FALLBACK}. Falling\n"
    texts = [said, "a result\n", said + "a result\n"]
    cell = new.new_code_cell("train()")
    cell.outputs = [new.new_output("stream", text=text) for text in texts]
    setup = new.new_code_cell("bb.setup()")
    first_cell.forget_processor(new.new_notebook(cells=[setup, cell]))
    assert [output.text for output in cell.outputs] == texts[1:]
