"""Templates for data of one's own: as written, as chapter 44 explains them."""

import os
import subprocess
import sys

import nbformat
import pytest

import book
import templates

FAKE = "import sys, unittest.mock; "
FAKE += "sys.modules['google.colab'] = unittest.mock.MagicMock()\n"


def cells_of(name):
    """The code of a template, cell by cell, without the first."""
    return [c.source for c in book.code_cells(templates.made(name))[1:]]


@pytest.mark.parametrize("name", templates.names())
def test_a_template_is_built_from_its_text(name):
    written = nbformat.writes(templates.made(name)) + "\n"
    assert templates.path_of(name).read_text("utf-8") == written


def test_there_are_three_and_no_other():
    assert templates.names() == ["own_questions", "own_table", "own_tags"]
    files = {path.stem for path in templates.FOLDER.iterdir()}
    assert files == set(templates.names())


def test_chapter_44_explains_the_cells_of_the_table():
    chapter = book.read_twin(book.Chapter("44_now_for_real").twin)
    shown = [c.source for c in book.code_cells(chapter)]
    shown = [
        code.partition("\n")[2] if code.startswith("# Not compared") else code
        for code in shown
    ]
    settings, drive, *steps = cells_of("own_table")
    assert "FILE" in settings
    assert "drive.mount" in drive
    *steps, use = steps
    assert "from_pretrained(out)" in use  # the chapter asserts it
    assert [code for code in steps if code not in shown] == []


DATA = {
    "own_table": ("mine.csv", "help_desk/messages.csv", "mini-taught"),
    "own_questions": ("questions.json", "questions/train.json", "mini-squad"),
    "own_tags": ("mine.conll", "tags/train.txt", "mini"),
}


def walk(name, folder, **environment):
    """Runs a template in a folder that holds its data, as on Colab."""
    file, sample, source = DATA[name]
    content = (book.ROOT / "data" / "samples" / sample).read_bytes()
    (folder / file).write_bytes(content)
    drive = folder / "drive"
    (drive / "MyDrive").mkdir(parents=True, exist_ok=True)
    lines = []
    for code in cells_of(name):
        code = code.replace(
            'Path("/content") / "drive"', f"Path({str(drive)!r})"
        )
        for line in code.splitlines():
            known = {
                "FILE": f"FILE = {file!r}",
                "READY": f"READY = {source!r}",
                "SOURCE": f"SOURCE, RATE = {source!r}, 3e-4",
            }
            lines.append(known.get(line.split(" ")[0].strip(","), line))
    code = f"{FAKE}import bertbook as bb\nbb.setup()\n" + "\n".join(lines)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | environment | {"PYTHONPATH": str(book.ROOT)},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", templates.names())
def test_a_template_runs_from_top_to_bottom_in_an_empty_folder(name, tmp_path):
    done = walk(name, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = (tmp_path / "drive" / "MyDrive").iterdir()
    assert (folder / "model.safetensors").is_file()
