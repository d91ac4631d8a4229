"""A pipeline of Beam gives the bytes that one process gives.

Run by `make test-beam`, in an environment with Apache Beam.
"""

import gzip
import itertools
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bertbook.cli.main import main
from bertbook.locations import shelf
from bertbook.pretraining import beam_corpus, corpus
from bertbook.pretraining.beam_corpus import prepare_with_beam
from bertbook.pretraining.corpus import RECORD, prepare, read_documents
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.corpora import ODD, mini

FOUR_PROCESSES = [
    "--direct_num_workers=4",
    "--direct_running_mode=multi_processing",
]
WRITERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}


def write(path, data):
    """Writes bytes, packed where the name says so."""
    with WRITERS[path.suffix if path.suffix in WRITERS else ""](
        path, "wb"
    ) as file:
        file.write(data)
    return path


def files_of(folder):
    """The bytes of every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def outcome(call, *arguments, **keywords):
    """What a call returns, or the kind and the text of its error."""
    try:
        return call(*arguments, **keywords).record
    except (ValueError, OSError) as error:
        return type(error), str(error)


# Pieces.

# What may stand between documents, and within one.
LINES = ["", " ", "\u3000", "\ufeff", "a b", "b c. a", "\1", "é", "c " * 9]
ENDS = ["\n", "\r\n"]
texts = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)), max_size=24
).map(lambda lines: "".join(map("".join, lines)))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(text=texts, last=st.sampled_from(LINES), size=st.integers(1, 61))
@example(text="a\n\nb\n\nc\n", last="", size=3)  # a piece ends at a line's end
@example(text="a\n\n\n\n\nb\n", last="", size=4)
def test_pieces_hold_each_document_once_in_order(
    tmp_path_factory, text, last, size
):
    path = tmp_path_factory.mktemp("pieces") / "a.txt"
    path.write_bytes((text + last).encode())
    try:
        expected = list(read_documents([path]))
    except ValueError:  # no text
        expected = []
    file = beam_corpus.TextFile(0, "a.txt", str(path), path.stat().st_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam_corpus, "PIECE_BYTES", size)
        pieces = list(beam_corpus.split_file(file))
        found = [list(beam_corpus.read_piece(piece)) for piece in pieces]
    assert len(pieces) == max(1, -(-file.size // size))
    assert list(itertools.chain.from_iterable(found)) == expected


def test_a_piece_is_read_to_the_end_of_its_last_document_alone(tmp_path):
    path = write(tmp_path / "a.txt", b"a\n\nbb\nbb\n\nc\n\nd\n")
    starts = [0, 2, 3, 9, 12, 14]
    found = [
        list(beam_corpus.read_piece(beam_corpus.Piece(0, str(path), *ends)))
        for ends in itertools.pairwise([*starts, 99])
    ]
    assert found == [[["a"]], [["bb", "bb"]], [], [["c"]], [["d"]], []]


# The same bytes.


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    files=st.lists(
        st.tuples(texts, st.sampled_from(sorted(WRITERS))),
        min_size=1,
        max_size=3,
    ),
    held_out=st.sampled_from([0, 0.5]),
    seed=st.integers(0, 3),
    piece_bytes=st.sampled_from([3, 17, 2**22]),
    block_tokens=st.sampled_from([1, 7, 2**20]),
    mixed_tokens=st.sampled_from([12, 16_000_000]),
)
@example([("a\n", "")], 0, 0, 2**22, 2**20, 16_000_000)
@example([("a\n\nb\n", "")], 0.5, 1, 3, 1, 16_000_000)
@example([("a\n\nb\n\nc\n", "")], 0.5, 0, 3, 1, 16_000_000)
@example([("\1\n\na\n\n\1\n\nb", "")], 0.5, 0, 3, 1, 16_000_000)
@example([("\1\n", ""), ("a\n", ".gz")], 0, 0, 2**22, 1, 16_000_000)
@example([("\1\n", "")], 0, 0, 2**22, 1, 16_000_000)
@example([("a\n", ""), ("\n", ""), ("b", "")], 0, 0, 2**22, 1, 16_000_000)
def test_a_pipeline_gives_the_files_or_the_error_of_one_process(
    tmp_path_factory,
    files,
    held_out,
    seed,
    piece_bytes,
    block_tokens,
    mixed_tokens,
):
    folder = tmp_path_factory.mktemp("random")
    paths = [
        write(folder / f"{number}{suffix}", text.encode())
        for number, (text, suffix) in enumerate(files)
    ]
    options = {"held_out": held_out, "seed": seed, "shard_tokens": 7}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam_corpus, "PIECE_BYTES", piece_bytes)
        patch.setattr(beam_corpus, "BLOCK_TOKENS", block_tokens)
        patch.setattr(corpus, "MIXED_TOKENS", mixed_tokens)
        results = [
            outcome(call, paths, Tokenizer(ODD), folder / name, **options)
            for call, name in ((prepare, "one"), (prepare_with_beam, "many"))
        ]
    assert results[0] == results[1]
    if isinstance(results[0], dict):
        assert files_of(folder / "one") == files_of(folder / "many")
    else:
        assert RECORD not in files_of(folder / "many")


def some_texts(folder, count):
    """Three files, the first of them of `count` documents."""
    words = [f"{i % 47} {'abc'[i % 3]} {i % 13}." for i in range(2_003)]
    lines = "\n".join(words).encode() + b"\n\n"
    text = b"".join(b"%d\n" % (i % 31) + lines[i:] for i in range(count))
    return [
        write(folder / "a.txt", text),
        write(folder / "b.txt.gz", text[: 2**18]),
        write(folder / "c.txt", b"a b c\n\nc b a\n"),
    ]


def test_four_processes_give_the_bytes_of_one(tmp_path):
    paths = some_texts(tmp_path, 300)
    assert paths[0].stat().st_size > beam_corpus.PIECE_BYTES
    options = {"held_out": 0.1, "shard_tokens": 100_000, "seed": 3}
    one = prepare(paths, Tokenizer(ODD), tmp_path / "one", **options)
    many = prepare_with_beam(
        paths,
        Tokenizer(ODD),
        tmp_path / "many",
        options=FOUR_PROCESSES,
        **options,
    )
    assert many.record == one.record
    assert len(one.shards()) > 10
    assert files_of(tmp_path / "one") == files_of(tmp_path / "many")


def test_the_default_runner_gives_the_bytes_of_one_process(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    paths = [os.path.relpath(path) for path in shelf()]
    one = prepare(paths, mini(), "one")
    many = prepare_with_beam(paths, mini(), "many")
    assert many.record == one.record
    assert many.shards() == [Path("many/train-00000.safetensors")]
    assert files_of(Path("one")) == files_of(Path("many"))


# A folder that is there.


def test_a_prepared_folder_is_found_by_both_ways(tmp_path):
    options = {"tokenizer": mini(), "folder": tmp_path / "out"}
    first = prepare_with_beam(shelf(), **options)
    before = files_of(tmp_path)
    times = [path.stat().st_mtime_ns for path in first.shards()]
    assert prepare_with_beam(shelf(), **options) == first
    assert prepare(shelf(), **options) == first
    assert files_of(tmp_path) == before
    assert [path.stat().st_mtime_ns for path in first.shards()] == times


def test_another_corpus_is_refused_or_replaced(tmp_path):
    folder = tmp_path / "out"
    prepare(shelf(), mini(), folder, shard_tokens=2_000)
    before = files_of(folder)
    errors = [
        outcome(call, shelf()[:4], mini(), folder)
        for call in (prepare, prepare_with_beam)
    ]
    assert errors[0] == errors[1]
    assert "another `files`" in errors[0][1]
    assert files_of(folder) == before
    prepare_with_beam(shelf()[:4], mini(), folder, replace=True)
    prepare(shelf()[:4], mini(), tmp_path / "new")
    assert files_of(folder) == files_of(tmp_path / "new")


PREPARE = """
import sys
from bertbook.pretraining.beam_corpus import prepare_with_beam
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.corpora import ODD
folder, *paths = sys.argv[1:]
prepare_with_beam(
    paths, Tokenizer(ODD), folder, shard_tokens=5_000, held_out=0.1
)
"""


def test_a_killed_pipeline_leaves_no_manifest(tmp_path):
    """It is killed when the first shards are there."""
    paths = list(map(str, some_texts(tmp_path, 40)))
    folder = tmp_path / "many"
    program = subprocess.Popen(
        [sys.executable, "-c", PREPARE, str(folder), *paths],
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 120
    while not list(folder.glob("train-*")) and time.monotonic() < end:
        assert program.poll() is None
        time.sleep(0.01)
    program.send_signal(signal.SIGKILL)
    assert program.wait(60) == -signal.SIGKILL
    assert list(folder.glob("train-*"))
    assert not (folder / RECORD).exists()
    options = {"held_out": 0.1, "shard_tokens": 5_000}
    prepare_with_beam(paths, Tokenizer(ODD), folder, **options)
    prepare(paths, Tokenizer(ODD), tmp_path / "one", **options)
    assert files_of(folder) == files_of(tmp_path / "one")


# Error.

BAD = {
    "not UTF-8": b"a\n\n" * 40 + b"caf\xe9 a\n\nb\n",
    "no text": b"\n \n\t\n",
    "nothing": b"",
    "a line without end": b"a\n\n" * 40 + b"a" * 2_001,
    "a document without end": b"a\n\n" * 40 + b"a a\n" * 60,
    "damaged": None,
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_text_is_told_as_by_one_process(case, tmp_path, monkeypatch):
    """The second of three files is bad, in a piece in the middle of it."""
    monkeypatch.setattr(corpus, "LONGEST_LINE", 2_000)
    monkeypatch.setattr(corpus, "LONGEST_DOCUMENT", 3_000)
    monkeypatch.setattr(beam_corpus, "PIECE_BYTES", 50)
    bad = write(tmp_path / "bad.txt", BAD[case] or b"")
    if BAD[case] is None:
        bad = tmp_path / "bad.txt.gz"
        bad.write_bytes(gzip.compress(b"a b\n" * 99)[:-9])
    fine = write(tmp_path / "fine.txt", b"a\n\nb\n")
    worse = write(tmp_path / "worse.txt", b"\xff")
    errors = [
        outcome(call, [fine, bad, worse], Tokenizer(ODD), tmp_path / name)
        for call, name in ((prepare, "one"), (prepare_with_beam, "many"))
    ]
    assert errors[0] == errors[1]
    assert errors[0][0] is ValueError
    assert str(bad) in errors[0][1]
    assert RECORD not in files_of(tmp_path / "many")


@pytest.mark.parametrize(
    "paths",
    [[], "a.txt", ["missing.txt"], [shelf()[0], "missing.txt"], ["", 3]],
)
def test_paths_are_refused_as_by_one_process(paths, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    errors = [
        outcome(call, paths, mini(), tmp_path / "out")
        for call in (prepare, prepare_with_beam)
    ]
    assert errors[0] == errors[1]
    assert not list(tmp_path.iterdir())


def test_an_option_out_of_range_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`held_out` must be"):
        prepare_with_beam(shelf(), mini(), tmp_path, held_out=1)
    with pytest.raises(ValueError, match="`options` must be a list"):
        prepare_with_beam(shelf(), mini(), tmp_path, options="--runner=X")
    with pytest.raises(ValueError, match="`folder` must hold none of"):
        prepare_with_beam(shelf(), mini(), tmp_path / "a[1]")


def test_a_protocol_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"apache-beam\[gcp\].*gs://b/a"):
        prepare_with_beam(["gs://b/a.txt"], mini(), tmp_path)
    with pytest.raises(ValueError, match=r"apache-beam\[gcp\].*gs://b/out"):
        prepare_with_beam(shelf(), mini(), "gs://b/out")


def test_a_pipeline_that_fails_is_one_line(tmp_path, capsys):
    """A folder has the name of the shard, so that it cannot be written."""
    (tmp_path / "out" / "train-00000.safetensors" / "x").mkdir(parents=True)
    words = ["prepare", str(shelf()[0]), str(shelf()[1]), "--beam=", "--out"]
    assert main([*words, str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert printed[-1].startswith("bertbook: The pipeline failed: ")
    assert "train-00000.safetensors" in printed[-1]
    assert not (tmp_path / "out" / RECORD).exists()
    assert not (tmp_path / "out" / beam_corpus.WORK).exists()


# The command, and what it loads.

COMMAND = """
import sys
from bertbook.cli.main import main
assert main(sys.argv[1:]) == 0
print(*{"keras", "tensorflow", "jax"} & set(sys.modules))
"""


def test_the_command_prepares_without_a_backend(tmp_path):
    words = ["prepare", *map(str, shelf()), "--shard-tokens", "9000", "--out"]
    for name, more in (("one", []), ("many", ["--beam=--runner=FnApiRunner"])):
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *words, tmp_path / name, *more],
            capture_output=True,
            text=True,
            check=True,
        )
        *_, counts, loaded = done.stdout.splitlines()
        assert counts.startswith("44 documents, ")
        assert loaded == ""
    assert files_of(tmp_path / "one") == files_of(tmp_path / "many")


# Files of a user.


def test_what_is_only_like_a_shard_stays(tmp_path):
    folder = tmp_path / "out"
    prepare_with_beam(shelf(), mini(), folder, shard_tokens=9_001)
    names = ("train-mine.safetensors", "train-00001.old.safetensors")
    theirs = dict.fromkeys((*names, "corpus.json.bak"), b"mine")
    for name, data in theirs.items():
        (folder / name).write_bytes(data)
    settings = {"held_out": 0.0, "replace": True}
    prepare_with_beam(shelf(), mini(), folder, **settings)
    prepare(shelf(), mini(), tmp_path / "whole", held_out=0.0)
    assert files_of(folder) == files_of(tmp_path / "whole") | theirs


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_folder_of_work_that_is_a_users_own_stays(kind, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine", "utf-8")
    folder = tmp_path / "out"
    folder.mkdir()
    work = folder / beam_corpus.WORK
    if kind == "link":
        work.symlink_to(mine)
    else:
        mine.rename(work)
    with pytest.raises(ValueError, match=rf"{beam_corpus.WORK} must"):
        prepare_with_beam(shelf(), mini(), folder)
    assert (work / "notes.txt").read_text("utf-8") == "mine"
