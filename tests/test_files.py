"""Files as lines: packings, archives, and what is damaged."""

import contextlib
import errno
import os
import re
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bertbook import files
from bertbook.datasets.readers import checked_columns, kept_rows
from bertbook.files import (
    DataFile,
    check_folder,
    finish_saving,
    parse_json,
    read_json,
    write_json,
    write_together,
    write_whole,
)
from bertbook.training.run import hash_columns
from tests.helpers.kills import Killed, stop_after
from tests.helpers.set_files import write, write_archive

# U+2028, U+0085, a form feed and a lone carriage return end no line.
ODD = "a\u2028b\x85c\x0cd\re"
TEXT = f"one\n{ODD}\nthrée"
LINES = ["one\n", ODD + "\n", "thrée"]

# Definition.


@pytest.mark.parametrize(
    "name", ["a.tsv", "a.tsv.xz", "a.tsv.gz", "a.bz2", "a"]
)
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
    del lines
    assert opened[0].closed


def test_the_whole_text_of_a_file(tmp_path):
    file = DataFile(write(tmp_path / "a.xz", "\ufeff" + TEXT))
    assert file.text() == TEXT


@pytest.mark.parametrize("end", [".gz", ".xz", ".bz2", ".zip"])
def test_reading_lines_needs_no_memory_for_the_rest(end, tmp_path):
    """A packed file of few bytes may hold gigabytes."""
    text = "one\n" + ("x" * 1_023 + "\n") * 30_000  # 30 MB
    if end == ".zip":
        file = DataFile(write_archive(tmp_path / "a.zip", {"t": text}), "t")
    else:
        file = DataFile(write(tmp_path / f"a{end}", text))
    tracemalloc.start()
    assert sum(1 for _ in file.lines()) == 30_001
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000  # xz keeps 8 MB of what it unpacked


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
    message = f"{path} must be UTF-8. Received: byte 0xe9 in line 3, as Windows"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}-1252 has"):
        list(DataFile(path).lines())


@pytest.mark.parametrize("name", ["a.xz", "a.gz", "a.bz2"])
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


@pytest.mark.parametrize("at", [6, 8], ids=["a password", "a packing"])
def test_an_archive_that_cannot_be_unpacked_is_refused(at, tmp_path):
    path = write_archive(tmp_path / "S.zip", {"dev.tsv": TEXT}, packed=False)
    data = bytearray(path.read_bytes())
    mark = 1 if at == 6 else 99
    data[at] = data[data.find(b"PK\x01\x02") + at + 2] = mark
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"S\.zip is damaged"):
        list(DataFile(path, "dev.tsv").lines())


@pytest.mark.parametrize("end", ["", ".gz", ".xz", ".bz2"])
def test_a_line_without_an_end_is_refused(end, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 1_000)
    good = write(tmp_path / f"a{end}", "x" * 999 + "\n" + "y" * 1_000)
    assert list(map(len, DataFile(good).lines())) == [1_000, 1_000]
    path = write(tmp_path / f"b{end}", b"one\n" + bytes(1_001))
    message = "at most 1,000 bytes. Received: a longer one, line 2."
    with pytest.raises(ValueError, match=re.escape(message)):
        list(DataFile(path).lines())


def test_a_text_that_is_too_large_to_be_read_at_once_is_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(files, "LARGEST_WHOLE", 1_000)
    assert len(DataFile(write(tmp_path / "a.gz", "x" * 1_000)).text()) == 1_000
    file = DataFile(write(tmp_path / "b.gz", "x" * 1_001))
    with pytest.raises(ValueError, match=r"b\.gz must be at most 1,000 bytes"):
        file.text()
    with pytest.raises(ValueError, match="must hold text"):
        DataFile(write(tmp_path / "c", "")).text()
    latin = DataFile(write(tmp_path / "d", "one\ncaf\xe9".encode("latin-1")))
    with pytest.raises(ValueError, match="byte 0xe9 in line 2"):
        latin.text()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("9" * 5_000, "integer string conversion"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ('[{"b": {"c": 1, "d": 1, "c": 1}}]', "the key 'c' occurs twice"),
        ("{", "line 1"),
        ("", "line 1"),
    ],
    ids=range(7),
)
def test_a_text_that_is_not_json_is_refused_with_the_name(text, rule):
    with pytest.raises(ValueError, match=f"^a, line 7 is not valid .*{rule}"):
        parse_json(text, "a, line 7")


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


# JSON that cannot be read.

DEEP = "[" * 100_000
BAD_JSON = {
    "deep": '{"a": ' + DEEP,
    "deep objects": '{"a": ' * 100_000,
    "a long number": '{"a": ' + "9" * 5_000 + "}",
    "a list": "[]",
    "a text": '"a"',
    "null": "null",
    "nothing": "",
    "a space": " ",
    "cut": '{"a": 1',
    "more": '{"a": 1} {}',
    "a comment": '{"a": 1} // one',
    "a key named twice": '{"a": 1, "a": 2}',
    "a key named twice inside": '{"b": [{"a": 1, "a": 1}]}',
    "a byte order mark": '\ufeff{"a": 1}',
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_read_json_names_the_file_that_is_no_json_object(case, tmp_path):
    path = write(tmp_path / "a.json", BAD_JSON[case])
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        read_json(path)
    assert "JSON" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_read_json_refuses_bytes_that_are_not_utf8(tmp_path):
    path = write(tmp_path / "a.json", '{"a": "é"}'.encode("latin-1"))
    with pytest.raises(ValueError, match=r"a\.json is not valid JSON: 'utf-8'"):
        read_json(path)
    path.write_bytes('{"a": "é"}'.encode("utf-16"))
    with pytest.raises(ValueError, match=r"a\.json is not valid JSON: 'utf-8'"):
        read_json(path)


def test_read_json_refuses_a_huge_file_before_it_is_read(tmp_path):
    path = tmp_path / "a.json"
    with open(path, "wb") as file:
        file.truncate(2**40)  # a hole: it takes no room on the disk
    with pytest.raises(ValueError, match=rf"at most.*Received: {2**40}"):
        read_json(path)


# Sets of files that take effect together.

OLD = {"a": "old a", "b": "old b", "sub/c": "old c", "other": "kept"}
NEW = {"a": "new a", "d": "new d", "sub/e": "new e"}
AFTER = {**NEW, "other": "kept"}  # `other` is none of the set
SET = ("?", "sub/?")


def fill(folder, texts):
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def texts_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def save(folder, texts=NEW):
    with write_together(folder, SET, last="a") as new:
        fill(new, texts)


def test_a_set_replaces_an_older_one_and_leaves_other_files(tmp_path):
    save(fill(tmp_path, OLD))
    assert texts_in(tmp_path) == AFTER
    save(tmp_path / "x" / "y")
    assert texts_in(tmp_path / "x" / "y") == NEW
    assert not (tmp_path / "x" / "y" / ".saving").exists()


@pytest.fixture
def fast_disk(monkeypatch):
    """A disk on which bringing a file to it takes no time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.mark.usefixtures("fast_disk")
def test_a_set_counts_from_one_moment_on_wherever_a_process_ends(
    tmp_path, monkeypatch
):
    seen = []
    for count in range(100):
        folder = fill(tmp_path / f"{count}", OLD)
        with monkeypatch.context() as patch:
            left = stop_after(patch, count)
            with contextlib.suppress(Killed):
                save(folder)
        assert finish_saving(folder) == folder
        found = texts_in(folder)
        found = {n: t for n, t in found.items() if not n.startswith(".saving/")}
        assert found in (OLD, AFTER), count
        seen.append(found == AFTER)
        save(folder, {"z": "later"})
        assert texts_in(folder) == {"z": "later", "other": "kept"}, count
        if left[0] > 0:
            break
    assert seen == sorted(seen), "once new, always new"
    assert seen.count(False) > 5
    assert seen.count(True) > 5


@pytest.mark.usefixtures("fast_disk")
def test_a_folder_that_cannot_be_written_is_read_as_if_finished(
    tmp_path, monkeypatch
):
    views = 0
    for count in range(5, 40):
        folder = fill(tmp_path / f"{count}", OLD)
        with monkeypatch.context() as patch:
            stop_after(patch, count)
            with contextlib.suppress(Killed):
                save(folder)
        before = texts_in(folder)
        with monkeypatch.context() as patch:
            frozen = OSError(errno.EROFS, "Read-only file system")
            stop_after(patch, 0, frozen, ("replace", "unlink", "rmdir"))
            view = finish_saving(folder)
        if view != folder:
            assert texts_in(view) == AFTER
            views += 1
        assert texts_in(folder) == before, "nothing is changed there"
    assert views > 5


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_leaves_the_old_set_and_nothing_else(error, tmp_path):
    def broken(folder):
        with write_together(folder, SET) as new:
            fill(new, NEW)
            raise error("no room")

    fill(tmp_path, OLD)
    with pytest.raises(error, match="no room"):
        broken(tmp_path)
    assert texts_in(tmp_path) == OLD
    with pytest.raises(error, match="no room"):
        broken(tmp_path / "x" / "y")
    assert not (tmp_path / "x").exists(), "folders that were made for it"


def test_a_full_disk_is_one_error_that_says_what_the_folder_holds(
    tmp_path, monkeypatch
):
    full = OSError(errno.ENOSPC, "No space left on device")
    fill(tmp_path, OLD)
    for count in range(len(NEW) + 1):  # each file, and the record of them
        with monkeypatch.context() as patch:
            stop_after(patch, count, full, ("fsync",))
            with pytest.raises(OSError, match="No space left") as caught:
                save(tmp_path)
        assert caught.value.errno == errno.ENOSPC
        message = str(caught.value)
        assert message.startswith(f"{tmp_path} could not be written, and is as")
        assert texts_in(tmp_path) == OLD


@pytest.mark.usefixtures("fast_disk")
def test_two_threads_write_one_set_after_the_other(tmp_path):
    sets = [dict.fromkeys("abcdefgh", f"{i}") for i in range(4)]

    def repeat(texts):
        for _ in range(20):
            save(tmp_path, texts)

    with ThreadPoolExecutor() as pool:
        list(pool.map(repeat, sets))
    assert texts_in(tmp_path) in sets


BAD_RECORDS = [
    {"files": ["a"], "removed": ["../outside"]},
    {"files": ["a"], "removed": ["link/outside"]},
    {"files": ["../outside"], "removed": []},
    {"files": ["/tmp/outside"], "removed": []},
    {"files": [3], "removed": []},
    {"files": ["a\0b"], "removed": []},
    {"files": "a", "removed": []},
    {"files": {"a": 1}, "removed": []},
    {"removed": []},
]


@pytest.mark.parametrize("record", BAD_RECORDS, ids=str)
def test_a_record_cannot_reach_out_of_its_folder(record, tmp_path):
    outside = write(tmp_path / "outside", "mine")
    folder = tmp_path / "model"
    fill(folder / ".saved" / "files", {"a": "new"})
    (folder / "link").symlink_to(tmp_path)
    write_json(folder / ".saved" / "record.json", record)
    with pytest.raises(ValueError, match=r"record\.json must"):
        finish_saving(folder)
    assert outside.read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    "folder", [None, 3, True, b"x", "", [], {}, "a\0b", "\ud800", "o\udcff"]
)
def test_what_is_no_folder_to_write_to(folder):
    with pytest.raises(ValueError, match=r"^`folder` must be.*Received"):
        check_folder(folder)


def test_a_file_is_no_folder_to_write_to(tmp_path):
    path = write(tmp_path / "a", "text")
    with pytest.raises(ValueError, match="must be a folder, not a file"):
        check_folder(path)
    assert check_folder(str(tmp_path)) == tmp_path
