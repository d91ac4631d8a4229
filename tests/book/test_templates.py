"""Templates for data of one's own: as written, as chapter 44 explains them."""

import csv
import io
import os
import shutil
import subprocess
import sys
import time

import nbformat
import pytest

import bertbook as bb
import book
import first_cell
import templates
from bertbook.training import run


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


SAMPLES = book.ROOT / "data" / "samples"
MODELS = book.ROOT / "data" / "models"
TABLE = SAMPLES / "help_desk" / "messages.csv"
DATA = {
    "own_table": ("mine.csv", "help_desk/messages.csv", "mini-taught"),
    "own_questions": ("questions.json", "questions/train.json", "mini-squad"),
    "own_tags": ("mine.conll", "tags/train.txt", "mini"),
}


def cells_for(name, folder, file, source):
    """The code of a template with its settings changed, cell by cell."""
    known = {
        "FILE": f"FILE = {file!r}",
        "READY": f"READY = {source!r}",
        "SOURCE": f"SOURCE, RATE = {source!r}, 3e-4",
        "EPOCHS": "EPOCHS = 4",
    }
    drive = f"Path({str(folder / 'drive')!r})"
    return [
        "\n".join(
            known.get(line.split(" ")[0].strip(","), line)
            for line in code.replace(
                'Path("/content") / "drive"', drive
            ).splitlines()
        )
        for code in cells_of(name)
    ]


def started(name, folder, colab, wheel, every=None):
    """Starts a template in a folder with no more than a reader has there.

    That is a wheel, a model and, in a new folder, a file of data.

    Args:
        name: Of the template.
        folder: Holds the Drive, and the machine that may be taken away.
        colab: A Python without bertbook.
        wheel: What the reader uploads.
        every: Minutes between two checkpoints; None leaves the default.

    Returns:
        The process.
    """
    file, sample, source = DATA[name]
    drive, machine = folder / "drive" / "MyDrive", folder / "machine"
    is_new = not drive.is_dir()
    drive.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(machine, ignore_errors=True)
    machine.mkdir()
    shutil.copy(wheel, machine)
    shutil.copytree(MODELS / source, machine / source)
    if is_new:
        shutil.copy(SAMPLES / sample, machine / file)
    code = "\n".join(cells_for(name, folder, file, f"./{source}"))
    if every:
        options = f"options=bb.FinetuningOptions(checkpoint_minutes={every})"
        code = code.replace("out=out,", f"out=out, {options},")
    return subprocess.Popen(
        [colab, "-I", "-c", f"{first_cell.SOURCE}\n{code}"],
        cwd=machine,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    """Returns what a process prints until its end, which must be good."""
    told, errors = process.communicate()
    assert process.returncode == 0, errors[-2000:]
    return told


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX layout")
@pytest.mark.parametrize("name", templates.names())
def test_a_template_runs_in_an_empty_folder(name, tmp_path, colab, small):
    finished(started(name, tmp_path, colab, small))
    drive = tmp_path / "drive" / "MyDrive"
    (out,) = (path for path in drive.iterdir() if path.is_dir())
    assert (out / "model.safetensors").is_file()
    assert [p.name for p in drive.iterdir() if p != out] == [DATA[name][0]]


def reported(told):
    """The lines of the report: scores with intervals, and who won."""
    lines = told.splitlines()
    return [line for line in lines if "±" in line or "alone right" in line]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX layout")
def test_a_run_killed_three_times_goes_on_from_the_drive_alone(
    tmp_path, colab, small
):
    """Killed at its first checkpoint, while it writes one, and later."""
    once, often = tmp_path / "once", tmp_path / "often"
    expected = reported(finished(started("own_table", once, colab, small)))
    assert len(expected) == 3
    out = often / "drive" / "MyDrive" / "mine"
    for least, moment in ((1, "written"), (9, "writing"), (18, "written")):
        process = started("own_table", often, colab, small, every=1e-3)
        while process.poll() is None:
            step = (out.is_dir() and run.last_step(out)) or 0
            halves = list(out.glob("checkpoints/.bertbook-*"))
            if step >= least and (moment == "written" or halves):
                break
            time.sleep(0.001)
        assert process.poll() is None, process.communicate()[1][-2000:]
        process.kill()
        process.communicate()
        last = run.last_step(out)
    told = finished(started("own_table", often, colab, small))
    assert reported(told) == expected
    assert f"going on after step {last}\n" in told


def export(kind):
    """The table of the help desk as another program writes it."""
    with open(TABLE, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    if kind == "tabs":
        lines = ["\t".join(row) for row in rows]
        return "mine.tsv", "\n".join(lines).encode()
    rows[0] = ["Ticket", " Message", "Department"]
    with io.StringIO(newline="") as text:
        csv.writer(text, delimiter=";").writerows(rows)
        content = text.getvalue()
    if kind == "short rows, copies, spellings":
        lines = [line.rstrip(";") for line in content.splitlines()]
        lines += [lines[10].upper(), "", lines[20].replace("IT", " it")]
        return "mine.csv", "\n".join(lines).encode()
    if kind == "Excel in the West":
        content = content.replace("Prague", "Zürich").encode("cp1252")
        return "mine.csv", content
    return "mine.csv", content.encode("utf-8-sig")


KINDS = (
    "tabs",
    "semicolons, a header in capitals",
    "Excel in the West",
    "short rows, copies, spellings",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_export_gives_the_parts_of_the_table(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = {}
    for name, content in (("mine.csv", TABLE.read_bytes()), export(kind)):
        (tmp_path / name).write_bytes(content)
        space = {"bb": bb}
        for code in cells_for("own_table", tmp_path, name, "none")[:4]:
            exec(code, space)
        found = [space[part] for part in ("train", "dev", "test")]
        parts[len(parts)] = [
            [text.replace("Zürich", "Prague") for text in part["text"]]
            for part in found
        ] + [part["label"] for part in found]
        assert [len(part["text"]) for part in found] == [252, 63, 79]
    assert parts[0] == parts[1]
