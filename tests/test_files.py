"""Files as lines: packings, archives, and what is damaged."""

import contextlib
import errno
import os
import re
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bertbook import files
from bertbook.datasets.readers import checked_columns, kept_rows
from bertbook.files import (
    DataFile,
    check_folder,
    files_named,
    finish_saving,
    folder_to_read,
    parse_json,
    read_json,
    remove_parts,
    write_json,
    write_together,
    write_whole,
)
from bertbook.training.run import hash_columns
from tests.helpers.kills import Killed, stop_after
from tests.helpers.set_files import texts_in, write, write_archive

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


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_written_file_has_its_name_and_leaves_no_part(tmp_path):
    with write_whole(tmp_path / "a.txt") as part:
        part.write_text("new", "utf-8")
        assert not (tmp_path / "a.txt").exists()
        assert part.suffix == ".txt", "libraries ask for it"
    assert names_in(tmp_path) == ["a.txt"]
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
    assert names_in(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text("utf-8") == "old"


@pytest.mark.parametrize("name", ["run.json", "run.json.part", "run.part"])
def test_what_is_behind_a_link_stays_as_it_is(name, tmp_path):
    mine = write(tmp_path / "mine", "precious")
    mine.chmod(0o640)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(mine)
    write_json(tmp_path / "run" / "run.json", {"a": 1})
    assert read_json(tmp_path / "run" / "run.json") == {"a": 1}
    assert not (tmp_path / "run" / "run.json").is_symlink()
    assert mine.read_text("utf-8") == "precious"
    assert mine.stat().st_mode & 0o777 == 0o640


def test_the_name_of_a_part_cannot_be_taken_before(tmp_path, monkeypatch):
    """Where one is guessed, a link there is not followed."""
    mine = write(tmp_path / "mine", "precious")
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "0" * 16)
    taken = tmp_path / f".bertbook-{'0' * 16}.json"
    taken.symlink_to(mine)
    with pytest.raises(FileExistsError):
        write_json(tmp_path / "a.json", {})
    assert mine.read_text("utf-8") == "precious"
    assert taken.is_symlink()


def test_two_writers_of_a_file_end_well_and_the_last_one_wins(tmp_path):
    path = tmp_path / "a.json"
    with write_whole(path) as first:
        write_json(path, {"second": 2})
        first.write_text('{"first": 1}', "utf-8")
    assert read_json(path) == {"first": 1}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda n: write_json(path, {"n": n}), range(200)))
    assert names_in(tmp_path) == ["a.json"]


def test_a_file_gets_the_mode_of_the_process(tmp_path):
    old = os.umask(0o027)
    try:
        with write_whole(tmp_path / "a") as part:
            part.unlink()  # a library may write a file of its own
            os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_only_what_a_killed_writer_left_is_removed(tmp_path):
    mine = write(tmp_path / "mine", "precious")
    kept = ["a.json.part", ".bertbook-0.json", ".bertbook", ".bertbook-notes"]
    for name in kept:
        write(tmp_path / name, "mine")
    write(tmp_path / f".bertbook-{'a1' * 8}.safetensors", "half")
    (tmp_path / f".bertbook-{'b2' * 8}.json").symlink_to(mine)
    (tmp_path / f".bertbook-{'c3' * 8}").mkdir()
    remove_parts(tmp_path)
    remove_parts(tmp_path / "missing")
    assert names_in(tmp_path) == sorted(
        ["mine", f".bertbook-{'c3' * 8}", *kept]
    )
    assert mine.read_text("utf-8") == "precious"


def test_files_have_a_name_of_ours_exactly_or_they_are_not_ours(tmp_path):
    name = "model-{:05d}-of-{:05d}.safetensors"
    ours = [
        "model-00002-of-00010.safetensors",
        "model-00010-of-00010.safetensors",
    ]
    theirs = [
        "model-00001-of-00002.backup.safetensors",
        "model-1-of-2.safetensors",
        "model-000001-of-000002.safetensors",
        "model-old-of-anna.safetensors",
        "model-00001-of-00002.safetensors.bak",
        "my-model-00001-of-00002.safetensors",
        "model-00001.safetensors",
        "model-٠٠٠٠١-of-٠٠٠٠٢.safetensors",
        "model.safetensors",
    ]
    for file in (*reversed(ours), *theirs):
        write(tmp_path / file, "x")
    (tmp_path / "model-00003-of-00010.safetensors").mkdir()
    assert [path.name for path in files_named(tmp_path, name)] == ours
    assert files_named(tmp_path, "model.safetensors") == [
        tmp_path / "model.safetensors"
    ]
    assert files_named(tmp_path, "model") == []
    assert files_named(tmp_path / "missing", name) == []
    for step in (5, 10**8, 10**8 - 1):
        write(tmp_path / f"checkpoint-{step:08d}", "x")
    found = files_named(tmp_path, "checkpoint-{:08d}")
    assert [int(path.name[11:]) for path in found] == [5, 10**8 - 1, 10**8]


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
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_read_json_names_the_file_that_is_no_json_object(case, tmp_path):
    path = write(tmp_path / "a.json", BAD_JSON[case])
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        read_json(path)
    assert "JSON" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_read_json_leaves_out_a_byte_order_mark(tmp_path):
    path = write(tmp_path / "a.json", '\ufeff{"a": 1}')
    assert read_json(path) == {"a": 1}


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
SET = ("a", "b", "d", "z", "sub/c", "sub/e")


def fill(folder, texts):
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


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
    """Who reads it changes nothing; who writes next finishes it."""
    seen = []
    views = 0
    for count in range(100):
        folder = fill(tmp_path / f"{count}", OLD)
        with monkeypatch.context() as patch:
            left = stop_after(patch, count)
            with contextlib.suppress(Killed):
                save(folder)
        before = texts_in(folder)
        with monkeypatch.context() as patch:
            frozen = OSError(errno.EROFS, "Read-only file system")
            stop_after(patch, 0, frozen, ("replace", "unlink", "rmdir"))
            view = folder_to_read(folder)
        found = texts_in(view)
        found = {n: t for n, t in found.items() if not n.startswith(".saving/")}
        assert found in (OLD, AFTER), count
        assert texts_in(folder) == before, "nothing is changed there"
        seen.append(found == AFTER)
        views += view != folder
        if count % 2:
            finish_saving(folder)
            assert not (folder / ".saved").exists()
            assert found.items() <= texts_in(folder).items()
            assert folder_to_read(folder) == folder
        save(folder, {"z": "later"})
        assert texts_in(folder) == {"z": "later", "other": "kept"}, count
        assert not {".saved", ".saving"} & set(names_in(folder))
        if left[0] > 0:
            break
    assert seen == sorted(seen), "once new, always new"
    assert seen.count(False) > 5
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


GRAPH = {"graph": "old", "variables/data": "old", "variables/index": "old"}


def save_graph(folder, text):
    with write_together(folder, last="graph", for_others=True) as new:
        fill(new, dict.fromkeys(GRAPH, text))
        (new / "assets").mkdir()


def graph_in(folder):
    """What a program sees that does not know the folders of a save."""
    found = texts_in(folder)
    return {n: t for n, t in found.items() if not n.startswith(".sav")}


@pytest.mark.usefixtures("fast_disk")
@pytest.mark.parametrize("case", ["exchanged", "others", "old system", "link"])
def test_other_programs_never_see_a_mixture_wherever_a_process_ends(
    case, tmp_path, monkeypatch
):
    if case == "old system":
        monkeypatch.setattr(files, "_swap_names", lambda one, other: False)
    elif case == "exchanged" and sys.platform != "linux":
        pytest.skip("needs Linux")
    kept = {"notes": "mine"} if case == "others" else {}
    seen = set()
    for count in range(100):
        real = fill(tmp_path / f"{count}" / "graph", GRAPH | kept)
        folder = real
        if case == "link":
            folder = tmp_path / f"{count}" / "link"
            folder.symlink_to(real)
        with monkeypatch.context() as patch:
            left = stop_after(patch, count)
            with contextlib.suppress(Killed):
                save_graph(folder, "new")
        found = graph_in(real)
        assert {n: found.pop(n) for n in kept} == kept
        state = "".join(sorted(set(found.values())))
        if case in ("exchanged", "link"):
            assert state in ("old", "new"), count
            assert found == dict.fromkeys(GRAPH, state)
        elif "graph" in found:
            assert found == dict.fromkeys(GRAPH, state), count
        seen.add(found.get("graph"))
        save_graph(folder, "later")
        assert graph_in(real) == dict.fromkeys(GRAPH, "later") | kept
        assert not {".saved", ".saving"} & set(names_in(real))
        expected = ["graph", "link"] if case == "link" else ["graph"]
        assert names_in(real.parent) == expected
        if left[0] > 0:
            break
    no_window = case in ("exchanged", "link")
    assert seen == {"old", "new"} | (set() if no_window else {None})


def test_a_folder_that_somebody_stands_in_is_not_exchanged(
    tmp_path, monkeypatch
):
    folder = fill(tmp_path / "graph", GRAPH)
    monkeypatch.chdir(folder)
    save_graph(files.Path(), "new")
    assert graph_in(files.Path()) == dict.fromkeys(GRAPH, "new")
    assert texts_in(folder) == dict.fromkeys(GRAPH, "new")


def test_an_exchanged_folder_keeps_its_mode_and_its_writers_wait(tmp_path):
    folder = fill(tmp_path / "graph", GRAPH)
    folder.chmod(0o750)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda n: save_graph(folder, f"{n}"), range(400)))
    assert len(set(graph_in(folder).values())) == 1
    assert folder.stat().st_mode & 0o777 == 0o750
    assert names_in(tmp_path) == ["graph"]


class LibraryError(Exception):
    """As TensorFlow and safetensors have for a full disk."""


FULL = os.strerror(errno.ENOSPC)
DISKS = [
    (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), errno.EFBIG),
    (OSError(f"Can't write (errno = 28, error message = '{FULL}')"), 28),
    (LibraryError(f"[node] /x/.saving/part-0; {FULL} [Op:SaveV2]"), 28),
    (RuntimeError(f"I/O error: {FULL} (os error 28)"), 28),
]


@pytest.mark.parametrize(("error", "number"), DISKS, ids=range(4))
def test_an_error_of_the_disk_names_what_the_user_asked_for(
    error, number, tmp_path
):
    def write_file():
        with write_whole(tmp_path / "a"):
            raise error

    def write_set():
        with write_together(tmp_path / "b" / "c"):
            raise error

    for write_it, name, state in (
        (write_file, "a", ""),
        (write_set, "b/c", ", and is as it was"),
    ):
        with pytest.raises(OSError, match="could not be") as caught:
            write_it()
        assert caught.value.errno == number
        assert str(caught.value) == (
            f"{tmp_path / name} could not be written{state}: "
            f"{os.strerror(number)}."
        )
    assert names_in(tmp_path) == []


def test_a_library_that_lacks_memory_keeps_its_error(tmp_path):
    error = LibraryError("OOM when allocating tensor with shape[3,4]")
    with pytest.raises(LibraryError), write_whole(tmp_path / "a"):
        raise error
    with pytest.raises(LibraryError), write_together(tmp_path / "b"):
        raise error


def test_a_file_in_a_folder_that_is_missing_or_frozen_is_named(
    tmp_path, monkeypatch
):
    path = tmp_path / "missing" / "a.json"
    message = f"{path} could not be written: No such file or directory."
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        write_json(path, {})
    denied = OSError(errno.EACCES, "x")
    with monkeypatch.context() as patch:
        stop_after(patch, 0, denied, ("replace",))
        with pytest.raises(PermissionError, match=r"a\.json could not be"):
            write_json(tmp_path / "a.json", {})
    assert names_in(tmp_path) == []


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
    {"files": [".saved/record.json"], "removed": []},
    {"files": ["a"], "removed": ["."]},
    {"files": [3], "removed": []},
    {"files": ["a\0b"], "removed": []},
    {"files": "a", "removed": []},
    {"files": {"a": 1}, "removed": []},
    {"files": ["b"], "removed": []},
    {"removed": []},
]


@pytest.mark.parametrize("record", BAD_RECORDS, ids=str)
def test_a_record_cannot_reach_out_of_its_folder(record, tmp_path):
    outside = write(tmp_path / "outside", "mine")
    folder = tmp_path / "model"
    fill(folder / ".saved" / "files", {"a": "new"})
    (folder / "link").symlink_to(tmp_path)
    write_json(folder / ".saved" / "record.json", record)
    before = texts_in(folder)
    for function in (folder_to_read, finish_saving, save):
        with pytest.raises(ValueError, match=r"must (name|hold|be).*Received"):
            function(folder)
    assert texts_in(folder) == before
    assert outside.read_text("utf-8") == "mine"


LINKS = [
    ".saved",
    ".saved/files",
    ".saved/files/a",
    ".saved/files/sub",
    ".saved/files/sub/e",
    ".saved/record.json",
    ".saving",
    ".saving/files",
    ".saving/record.json",
    "sub",
]


@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_followed_to_what_lies_outside(name, tmp_path):
    """The key of a user, where a folder from elsewhere points to it."""
    home = fill(tmp_path / "home", {"a": "my a", "sub/e": "my e", "e": "key"})
    write_json(home / "record.json", {"files": ["a", "e"], "removed": ["e"]})
    (home / "files").mkdir()
    folder = fill(tmp_path / "model", {"a": "old", ".saved/files/a": "new"})
    fill(folder, {".saved/files/sub/e": "new"})
    record = {"files": ["a", "sub/e"], "removed": []}
    write_json(folder / ".saved" / "record.json", record)
    link = folder / name
    if link.is_dir():
        link.rename(tmp_path / "aside")
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(home / ("e" if name.endswith(("/a", "/e")) else "."))
    if name.endswith(".json"):
        link.unlink()
        link.symlink_to(home / "record.json")
    before, modes = (
        texts_in(home),
        {p: p.stat().st_mode for p in home.iterdir()},
    )
    for function in (folder_to_read, finish_saving, save):
        with contextlib.suppress(ValueError):
            function(folder)
    assert link.is_symlink()
    with pytest.raises(ValueError, match=f"{re.escape(str(folder))}.* link"):
        save(folder)
    assert texts_in(home) == before
    assert {p: p.stat().st_mode for p in home.iterdir()} == modes


@pytest.mark.parametrize("name", [".saved", ".saving"])
def test_a_folder_of_that_name_that_is_a_users_own_stays(name, tmp_path):
    folder = fill(tmp_path, {"a": "old", f"{name}/notes.txt": "mine"})
    assert folder_to_read(folder) == folder
    with pytest.raises(ValueError, match=r"what a save has left.*notes\.txt"):
        save(folder)
    assert texts_in(folder) == {"a": "old", f"{name}/notes.txt": "mine"}


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        ({"a/mine": "1"}, "must be a file, or not there"),
        ({"sub": "1"}, "must be a folder of its own.* a file"),
        ({"d/x/y": "1", "z": "2"}, "must be a file, or not there"),
    ],
)
def test_what_is_in_the_way_of_a_set_is_said_before_it_counts(
    texts, rule, tmp_path
):
    fill(tmp_path, texts)
    with pytest.raises(ValueError, match=rule):
        save(tmp_path)
    assert texts_in(tmp_path) == texts


def test_a_link_to_a_file_is_read_and_a_save_replaces_the_link(tmp_path):
    """So the cache of a library holds the files of a model."""
    blobs = fill(tmp_path / "blobs", {"1": "a blob", "2": "another"})
    folder = tmp_path / "snapshots" / "x"
    (folder / "sub").mkdir(parents=True)
    (folder / "a").symlink_to("../../blobs/1")
    (folder / "b").symlink_to("../../blobs/2")
    (folder / "sub" / "c").symlink_to("../../../blobs/2")
    assert texts_in(folder_to_read(folder))["b"] == "another"
    save(folder)
    assert texts_in(folder) == NEW
    assert not (folder / "a").is_symlink()
    assert texts_in(blobs) == {"1": "a blob", "2": "another"}


def test_an_older_set_behind_a_link_is_not_removed(tmp_path):
    mine = fill(tmp_path / "mine", {"c": "mine"})
    folder = fill(tmp_path / "model", OLD)
    (folder / "sub" / "c").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(mine)
    with write_together(folder, ("sub/c", "b")) as new:
        fill(new, {"a": "new"})
    assert texts_in(mine) == {"c": "mine"}
    assert not (folder / "b").exists()


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


def test_a_link_that_leads_nowhere_is_no_folder(tmp_path):
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to").symlink_to(tmp_path)
    for name in ("gone", "loop", "gone/a/b", "loop/a"):
        link = tmp_path / name.split("/")[0]
        message = f"`out` must be a folder, or not there. Received: {link}, a "
        with pytest.raises(ValueError, match=f"^{re.escape(message)}link"):
            check_folder(tmp_path / name, "out")
    assert check_folder(tmp_path / "to" / "a") == tmp_path / "to" / "a"
