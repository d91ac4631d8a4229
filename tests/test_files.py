"""Files as lines: packings, archives, and what is damaged."""

import re

import numpy as np
import pytest

from bertbook.datasets.readers import checked_columns, kept_rows
from bertbook.files import DataFile, read_json, write_json, write_whole
from bertbook.training.run import hash_columns
from tests.helpers.set_files import write, write_archive

# U+2028, U+0085, a form feed and a lone carriage return end no line.
ODD = "a\u2028b\x85c\x0cd\re"
TEXT = f"one\n{ODD}\nthrée"
LINES = ["one\n", ODD + "\n", "thrée"]

# Definition.


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.xz", "a.tsv.gz", "a"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_of_a_file(name, mark, tmp_path):
    file = DataFile(write(tmp_path / name, mark + TEXT))
    assert file.is_there()
    assert list(file.lines()) == LINES
    assert list(file.lines()) == LINES, "a second reading"
    assert str(file) == str(tmp_path / name)


def test_lines_of_a_member(tmp_path):
    path = write_archive(tmp_path / "S.zip", {"S/dev.tsv": TEXT, "S/x": "no"})
    file = DataFile(path, "S/dev.tsv")
    assert file.is_there()
    assert list(file.lines()) == LINES
    assert str(file) == f"{path}/S/dev.tsv"
    assert not DataFile(path, "dev.tsv").is_there()
    assert not DataFile(path, "S/").is_there()
    assert not DataFile(tmp_path / "T.zip", "S/dev.tsv").is_there()


def test_a_reader_that_stops_half_way_leaves_no_file_open(
    tmp_path, monkeypatch
):
    opened = []
    open_file = DataFile._open

    def remember(file):
        opened.append(open_file(file))
        return opened[-1]

    monkeypatch.setattr(DataFile, "_open", remember)
    lines = DataFile(write(tmp_path / "a", "one\ntwo\n")).lines()
    assert next(lines) == "one\n"
    assert opened[0].closed


def test_what_is_not_there(tmp_path):
    assert not DataFile(tmp_path / "a").is_there()
    assert not DataFile(tmp_path).is_there(), "a folder"


def test_a_mark_is_text_in_a_later_line(tmp_path):
    file = DataFile(write(tmp_path / "a", "one\n\ufefftwo"))
    assert list(file.lines()) == ["one\n", "\ufefftwo"]


def test_rows_that_are_kept():
    table = {"text": ["a", "b", "c"], "label": [0, 1, 2]}
    kept = kept_rows(table, (label != 1 for label in table["label"]))
    assert kept == {"text": ["a", "c"], "label": [0, 2]}


# Error.


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.xz", "a.tsv.gz"])
def test_an_empty_file(name, tmp_path):
    path = write(tmp_path / name, "")
    with pytest.raises(ValueError, match=r"must hold text.*0 bytes"):
        list(DataFile(path).lines())


def test_an_empty_member(tmp_path):
    path = write_archive(tmp_path / "S.zip", {"dev.tsv": ""})
    with pytest.raises(ValueError, match=r"S\.zip/dev\.tsv must hold text"):
        list(DataFile(path, "dev.tsv").lines())


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.xz"])
def test_a_file_that_is_not_utf8(name, tmp_path):
    path = write(tmp_path / name, "one\ntwo\ncaf\xe9".encode("latin-1"))
    message = f"{path} must be UTF-8. Received: byte 0xe9 in line 3."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        list(DataFile(path).lines())


@pytest.mark.parametrize("name", ["a.xz", "a.gz"])
@pytest.mark.parametrize("damage", ["cut", "changed", "not packed"])
def test_a_damaged_packed_file(name, damage, tmp_path):
    path = write(tmp_path / name, TEXT * 1_000)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-20:]
    elif damage == "changed":
        data[-6] ^= 255  # in the checksum or the footer
    else:
        data = TEXT.encode()
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))} is damaged"):
        list(DataFile(path).lines())


def test_a_damaged_archive(tmp_path):
    path = write_archive(tmp_path / "S.zip", {"dev.tsv": TEXT * 1_000})
    data = bytearray(path.read_bytes())
    whole = bytes(data)
    data[60] ^= 255  # inside of the packed text
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"S\.zip is damaged"):
        list(DataFile(path, "dev.tsv").lines())
    plain = write_archive(tmp_path / "P.zip", {"dev.tsv": TEXT}, packed=False)
    plain.write_bytes(plain.read_bytes().replace(b"one", b"two", 1))
    with pytest.raises(ValueError, match=r"P\.zip is damaged"):
        list(DataFile(plain, "dev.tsv").lines())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"S\.zip is damaged"):
        DataFile(path, "dev.tsv").is_there()


def test_columns_without_rows():
    file = DataFile("a.tsv")
    assert checked_columns(file, {"text": ["x"]}) == {"text": ["x"]}
    with pytest.raises(ValueError, match=r"a\.tsv must hold examples"):
        checked_columns(file, {"text": []})


def test_a_hash_tells_columns_apart():
    data = {"text": ["a", "b"], "label": np.array([0, 1])}
    same = {"label": (0, 1), "text": np.array(["a", "b"])}
    assert hash_columns(data) == hash_columns(same)
    others = [
        {**data, "text": ["b", "a"]},
        {"text": ["a", "b"], "labels": [0, 1]},
        {**data, "label": [{1, 2}, {2}]},
    ]
    assert len({hash_columns(other) for other in (data, *others)}) == 4
    assert hash_columns({"x": [{"b", "a"}]}) == hash_columns(
        {"x": [["a", "b"]]}
    )
    assert hash_columns(None) is None


# Files that are whole or not there.


def test_a_written_file_has_its_name_and_leaves_no_part(tmp_path):
    with write_whole(tmp_path / "a.txt") as part:
        part.write_text("new", "utf-8")
        assert not (tmp_path / "a.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text("utf-8") == "new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file(error, tmp_path):
    (tmp_path / "a.txt").write_text("old", "utf-8")

    def write():
        with write_whole(tmp_path / "a.txt") as part:
            part.write_text("half", "utf-8")
            raise error

    with pytest.raises(error):
        write()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text("utf-8") == "old"


def test_json_is_read_as_it_was_written(tmp_path):
    values = {"steps": 3, "name": "é", "nested": {"rate": 0.1}}
    write_json(tmp_path / "a.json", values)
    assert read_json(tmp_path / "a.json") == values
