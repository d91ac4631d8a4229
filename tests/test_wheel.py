"""A wheel carries the package and what its shipped names need."""

import importlib
import zipfile

import pytest
from hatchling import build

import book
import checksums


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(book.ROOT)
        name = build.build_wheel(str(folder))
    return folder / name


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
