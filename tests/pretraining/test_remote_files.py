"""A prepared corpus is opened from its folder, or from a URL by fsspec."""

import sys

import pytest

from bertbook.cli.corpus import find_corpus
from bertbook.cli.main import main
from bertbook.pretraining.corpus import (
    RECORD,
    check_vocabulary,
    corpus_content,
    open_corpus,
    prepare,
    read_shard,
)
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.remote_files import is_url, open_url
from bertbook.pretraining.stream import ExampleStream
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.corpora import ODD, mini, mini_pieces, read_all, shelf_corpus


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "corpus"
    return shelf_corpus(folder, held_out=0.2, shard_tokens=9_001)


def url_of(corpus, protocol="file"):
    pytest.importorskip("fsspec")
    return f"{protocol}://{corpus.folder}"


def test_a_folder_is_opened_as_it_was_prepared(made):
    assert open_corpus(made.folder) == made
    assert open_corpus(str(made.folder)) == made


@pytest.mark.parametrize("end", ["", "/"])
def test_a_corpus_at_a_url_is_the_one_of_its_folder(made, end):
    remote = open_corpus(url_of(made) + end)
    assert remote.record == made.record
    assert remote.shards("held_out") == [
        f"file://{path}" for path in made.shards("held_out")
    ]
    for part in ("train", "held_out"):
        assert read_all(remote, part) == read_all(made, part)
    assert corpus_content(remote, 0.0) == corpus_content(made, 0.0)


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_read_shards_at_a_url(workers, made):
    settings = ExampleSettings(max_length=32)
    corpora = (
        made,
        open_corpus(url_of(made)),
        open_corpus(url_of(made, "simplecache::file")),
    )
    batches = [
        next(
            ExampleStream(
                corpus, mini_pieces(), settings, workers=workers
            ).batches(64)
        )
        for corpus in corpora
    ]
    for batch, position in batches[1:]:
        assert position == batches[0][1]
        for name, array in batches[0][0].items():
            assert (batch[name] == array).all()


def test_a_single_folder_or_url_is_a_prepared_corpus(made):
    for word in (str(made.folder), url_of(made)):
        assert find_corpus([word]).record == made.record
    assert find_corpus(["a.txt"]) == ["a.txt"]
    words = [str(made.folder), "a.txt"]
    assert find_corpus(words) == words


@pytest.mark.slow
def test_pretrain_reads_a_prepared_corpus_at_a_url(made, tmp_path, capsys):
    words = ["pretrain", "--steps", "1", "--batch-size", "2"]
    words += ["--max-length", "16", "--evaluation-steps", "1", "--corpus"]
    for corpus, name in ((str(made.folder), "a"), (url_of(made), "b")):
        out = ["--out", str(tmp_path / name)]
        assert main([*words, corpus, *out]) == 0, capsys.readouterr().err
    first, second = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in "ab"
    )
    assert first == second
    assert main([*words, str(tmp_path), "--out", str(tmp_path / "c")]) == 2
    assert "No corpus.json in " in capsys.readouterr().err


# Error.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No corpus.json in .* writes it last"),
        (b"{", "corpus.json is not valid JSON"),
        (b"\xff", "corpus.json is not valid JSON"),
        (b"[]", "corpus.json must hold a JSON object. Received: list"),
        (b"{}", "corpus.json must say how many `shards` .* Received: None"),
        (b'{"shards": {"train": 1}}', "corpus.json must say how many"),
        (b'{"shards": {"train": -1, "held_out": 0}}', "must say how many"),
        (b'{"shards": {"train": 1, "held_out": "0"}}', "must say how many"),
    ],
)
@pytest.mark.parametrize("start", ["", "file://"])
def test_a_folder_that_holds_no_corpus_is_named(
    start, content, message, tmp_path
):
    if start:
        pytest.importorskip("fsspec")
    if content is not None:
        (tmp_path / RECORD).write_bytes(content)
    kind = FileNotFoundError if content is None else ValueError
    with pytest.raises(kind, match=message) as error:
        open_corpus(f"{start}{tmp_path}")
    assert f"{start}{tmp_path}" in str(error.value)


def test_a_missing_or_damaged_shard_at_a_url_is_named(made, tmp_path):
    copy = prepare_copy(made, tmp_path)
    remote = open_corpus(url_of(copy))
    path = copy.shards()[1]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="train-00001.safetensors is damaged"):
        read_shard(remote.shards()[1])
    path.unlink()
    with pytest.raises(FileNotFoundError, match="train-00001"):
        read_shard(remote.shards()[1])
    with pytest.raises(FileNotFoundError, match=f"No shard at file://{path}"):
        corpus_content(remote, 0.0)


def prepare_copy(corpus, folder):
    for path in corpus.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return open_corpus(folder)


def test_what_a_url_needs_is_named(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "fsspec", None)
        with pytest.raises(ImportError, match="`pip install fsspec s3fs`"):
            open_corpus("s3://bucket/corpus")
    pytest.importorskip("fsspec")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "gcsfs", None)
        with pytest.raises(ImportError, match="needs gcsfs: `pip install gcsf"):
            read_shard("simplecache::gs://bucket/train-00000.safetensors")
    with pytest.raises(ValueError, match="protocol that fsspec reads. Receiv"):
        open_url("nothing://bucket/corpus")


def test_a_url_is_told_from_a_path(tmp_path):
    assert is_url("gs://bucket/corpus")
    assert not is_url("folder/corpus")
    assert not is_url(tmp_path)


def test_prepare_writes_to_no_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a\n\nb")
    with pytest.raises(ValueError, match="`folder` must be a folder of this"):
        prepare(["a.txt"], Tokenizer(ODD), "gs://bucket/corpus")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_another_vocabulary_is_refused(made):
    check_vocabulary(made, mini())
    with pytest.raises(ValueError, match="must be the one that the corpus in"):
        check_vocabulary(made, Tokenizer(ODD))


def test_beam_is_named_where_it_is_missing(monkeypatch, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("a\n\nb")
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.setitem(sys.modules, "apache_beam.io.filesystems", None)
    words = ["prepare", str(tmp_path / "a.txt"), "--beam=", "--out"]
    assert main([*words, str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("bertbook: A pipeline needs Apache Beam")
    assert "`pip install apache-beam`" in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()
