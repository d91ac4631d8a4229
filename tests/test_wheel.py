"""A wheel carries the package and what its shipped names need."""

import importlib
import shutil
import subprocess
import sys
import zipfile

import pytest

import book
import checksums
import first_cell


@pytest.fixture(scope="module")
def names(wheel):
    """The names of the files in it."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def read(wheel, ending):
    """Returns the text of the one file whose name ends so."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(ending))
        return archive.read(name).decode()


def test_wheel_holds_every_module(names):
    paths = [p for p in (book.ROOT / "bertbook").rglob("*") if p.is_file()]
    files = [p.relative_to(book.ROOT).as_posix() for p in paths]
    wanted = {f for f in files if "__pycache__" not in f}
    assert wanted - set(names) == set()
    assert "bertbook/py.typed" in names


def test_wheel_holds_what_ships(names):
    shipped = {
        f"bertbook/_data/{name}"
        for name in checksums.measured()
        if name.startswith(("models/", "runs/", "samples/", "splits/"))
        or name == "README.md"
    }
    assert {n for n in names if n.startswith("bertbook/_data/")} == shipped


def test_wheel_holds_nothing_else(names):
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "bertbook"
    }


def test_the_small_wheel_is_the_whole_one_without_models(wheel, names, small):
    with zipfile.ZipFile(small) as archive, zipfile.ZipFile(wheel) as whole:
        kept = archive.namelist()
        left_out = set(names) - set(kept)
        record = next(name for name in kept if name.endswith("/RECORD"))
        listed = archive.read(record).decode().splitlines()
        assert {line.split(",")[0] for line in listed} == set(kept)
        for name in set(kept) - {record}:
            assert archive.read(name) == whole.read(name)
    assert set(kept) < set(names)
    assert all(name.startswith("bertbook/_data/") for name in left_out)
    assert "bertbook/_data/models/mini/model.safetensors" in left_out
    assert "bertbook/_data/samples/help_desk/messages.csv" in kept
    assert small.stat().st_size < 1_000_000 < wheel.stat().st_size / 50


def test_wheel_installs_the_script(wheel):
    text = read(wheel, ".dist-info/entry_points.txt")
    assert "[console_scripts]" in text
    (line,) = (row for row in text.splitlines() if row.startswith("bertbook"))
    module, function = line.partition("=")[2].strip().split(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_wheel_names_both_licenses_and_holds_their_texts(wheel, names):
    text = read(wheel, ".dist-info/METADATA")
    assert "License-Expression: Apache-2.0 AND CC-BY-SA-4.0" in text
    licenses = {n.split("/licenses/")[1] for n in names if "/licenses/" in n}
    assert licenses == {"LICENSE", "data/README.md"}


def run_first_cell(python, folder):
    """Runs the first cell of a notebook in `folder`, then asks for a path."""
    source = f"{first_cell.SOURCE}\nprint(bb.__file__)"
    command = [python, "-I", "-c", source]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX layout")
def test_the_first_cell_finds_an_uploaded_wheel(wheel, colab, tmp_path):
    alone = run_first_cell(colab, tmp_path)
    assert alone.returncode == 1
    assert "No bertbook. Upload its wheel" in alone.stderr
    shutil.copy(wheel, tmp_path)
    done = run_first_cell(colab, tmp_path)
    assert done.returncode == 0, done.stderr
    place = done.stdout.splitlines()[-1]
    assert place.startswith(str(colab.parents[1]))
