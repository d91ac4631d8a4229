"""A wheel carries the package and what its shipped names need."""

import zipfile

import pytest
from hatchling import build

import book
import checksums


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The names of the files in a wheel built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(book.ROOT)
        wheel = build.build_wheel(str(folder))
    with zipfile.ZipFile(folder / wheel) as archive:
        return archive.namelist()


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
