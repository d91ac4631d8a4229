"""Corpora: documents of files, and shards that hold each of them once."""

import gzip
import hashlib
import json
import lzma
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.locations import shelf
from bertbook.pretraining import corpus
from bertbook.pretraining.corpus import (
    RECORD,
    prepare,
    read_documents,
    read_shard,
)
from bertbook.text.added_tokens import AddedToken
from bertbook.text.sentences import split_sentences
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers.corpora import ODD, as_lists, mini, read_all, shelf_corpus
from tests.helpers.disks import largest_file

# Many of these corpora have one sentence a document, as it is short.
pytestmark = pytest.mark.filterwarnings("ignore:Nearly every document")

random_tests = settings(max_examples=150, deadline=None, derandomize=True)

DOCUMENTS = [
    ["It rains. We stay.", "Then we go."],
    ["Snow fell."],
    ["The ferry left. “Where to?” he asked."],
]
TEXT = "\n\n".join("\n".join(document) for document in DOCUMENTS)


def write(path, content):
    """Writes text or bytes, packed where the name says so."""
    data = content.encode() if isinstance(content, str) else content
    opener = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    with opener(path, "wb") as file:
        file.write(data)
    return path


def files_of(folder):
    """The bytes of every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# Definition.

FORMS = {
    "Unix": TEXT + "\n",
    "no last line break": TEXT,
    "Windows": TEXT.replace("\n", "\r\n") + "\r\n",
    "a byte order mark": "\ufeff" + TEXT,
    "Windows and a mark": "\ufeff" + TEXT.replace("\n", "\r\n"),
    "many empty lines": "\n\n\n" + TEXT.replace("\n\n", "\n\n\n\n") + "\n\n\n",
    "lines of spaces": "  \n" + TEXT.replace("\n\n", "\n \t\n") + "\n \n",
    "page breaks": TEXT.replace("\n\n", "\n\x0c\n") + "\n\n\x0c\n",
    "no-break spaces": TEXT.replace("\n\n", "\n\xa0\n\u3000\n"),
    "spaces around lines": TEXT.replace("\n", "  \n\t"),
}


@pytest.mark.parametrize("suffix", [".txt", ".txt.xz", ".gz", ""])
@pytest.mark.parametrize("form", FORMS)
def test_read_documents_splits_a_file_at_empty_lines(form, suffix, tmp_path):
    path = write(tmp_path / f"text{suffix}", FORMS[form])
    assert list(read_documents([path])) == DOCUMENTS


def test_a_file_ends_a_document(tmp_path):
    first = write(tmp_path / "a.txt", "One.\nTwo.")
    second = write(tmp_path / "b.txt.xz", "Three.")
    assert list(read_documents([first, str(second), first])) == [
        ["One.", "Two."],
        ["Three."],
        ["One.", "Two."],
    ]


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    line = "a\u2028b\vc\x0cd\x85e\rf\x1cg"
    path = write(tmp_path / "a.txt", f"{line}\n\n{line}")
    assert list(read_documents([path])) == [[line], [line]]


def by_loops(documents, tokenizer):
    """Every document as sentences of ids, none above 512."""
    result = []
    for lines in documents:
        sentences = []
        for line in lines:
            for sentence in split_sentences(line):
                ids = tokenizer.encode(sentence).input_ids[1:-1]
                while ids:
                    sentences.append(ids[:512])
                    ids = ids[512:]
        result.append(sentences)
    return result


def test_a_corpus_by_loops(tmp_path):
    paths = [
        write(tmp_path / "a.txt", TEXT),
        write(tmp_path / "b.gz", "We stay.\n\n" + TEXT.upper()),
    ]
    made = prepare(paths, mini(), tmp_path / "out", held_out=0)
    expected = by_loops(read_documents(paths), mini())
    assert sorted(read_all(made)) == sorted(expected)
    (path,) = made.shards()
    assert path == tmp_path / "out" / "train-00000.safetensors"
    assert made.shards("held_out") == []
    assert made.record == {
        "files": [
            ["a.txt", len(TEXT.encode())],
            ["b.gz", paths[1].stat().st_size],
        ],
        "sha256": [
            hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
        ],
        "vocabulary": corpus.vocabulary_hash(mini()),
        "held_out": 0,
        "seed": 0,
        "shard_tokens": 1_000_000,
        "shards": {"train": 1, "held_out": 0},
        "documents": 7,
        "sentences": sum(map(len, expected)),
        "tokens": sum(len(ids) for document in expected for ids in document),
    }
    assert json.loads((tmp_path / "out" / RECORD).read_text()) == made.record


def test_a_shard_by_hand(tmp_path):
    path = write(tmp_path / "a.txt", "a b. c\nb\n\nc c c")
    made = prepare([path], Tokenizer(ODD), tmp_path / "out", held_out=0)
    shard = read_shard(made.shards()[0])
    unknown = ODD.index("[UNK]")  # no piece is a period
    a, b, c = (ODD.index(letter) for letter in "abc")
    if shard.tokens[0] == c:  # either may come first
        assert shard.tokens.tolist() == [c, c, c, a, b, unknown, c, b]
        assert shard.sentences.tolist() == [0, 3, 8 - 1, 8]
    assert len(shard) == 2
    assert sorted(as_lists(shard)) == [[[a, b, unknown, c], [b]], [[c, c, c]]]


def test_a_long_sentence_is_cut(tmp_path):
    sizes = (511, 512, 513, 1_024, 1_337)
    text = "\n\n".join("snow " * (size - 1) + "!" for size in sizes)
    path = write(tmp_path / "a.txt", text + "\n\n" + "rain " * 3)
    made = prepare([path], mini(), tmp_path / "out", held_out=0)
    lengths = sorted([len(s) for s in d] for d in read_all(made))
    expected = [[511], [512], [512, 1], [512, 512], [512, 512, 313], [3]]
    assert lengths == sorted(expected)
    assert made.record["tokens"] == sum(sizes) + 3


@pytest.mark.filterwarnings("ignore:None of .* is a single letter")
def test_many_pieces_need_wider_ids(tmp_path):
    path = write(tmp_path / "a.txt", "w65999 w7\n\nw7")
    for count, dtype in ((66_000, "int32"), (2**16 - 5, "uint16")):
        pieces = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(count))]
        made = prepare([path], Tokenizer(pieces), tmp_path / dtype, held_out=0)
        assert read_shard(made.shards()[0]).tokens.dtype == dtype
    wide = prepare(
        [path],
        Tokenizer([*SPECIAL_TOKENS, *(f"w{i}" for i in range(66_000))]),
        tmp_path / "int32",
        held_out=0,
    )
    assert sorted(read_all(wide)) == [[[12]], [[66_004, 12]]]


def test_text_that_gives_no_piece_is_left_out(tmp_path):
    """Control characters are dropped, as by every BERT tokenizer."""
    path = write(tmp_path / "a.txt", "sn\1ow\n\n\1\1\n\n\u200b\n\nsnow")
    made = prepare([path], mini(), tmp_path / "out", held_out=0)
    snow = mini().ids["snow"]
    assert read_all(made) == [[[snow]], [[snow]]]


# Peer: the tokenizer in Python, and the documents as they were read.


def test_the_shelf_holds_what_the_python_tokenizer_gives(tmp_path):
    python = Tokenizer(mini().vocabulary, engine="python")
    paths = shelf()[:5]
    made = prepare(paths, mini(), tmp_path, held_out=0)
    expected = by_loops(read_documents(paths), python)
    assert sorted(read_all(made)) == sorted(expected)


# Property.


@random_tests
@given(
    sizes=st.lists(st.integers(1, 31), min_size=5, max_size=47),
    shard_tokens=st.integers(1, 61),
    shards_mixed=st.integers(1, 5),
    held_out=st.sampled_from([0.0, 0.11, 0.29]),
    seed=st.integers(0, 7),
)
def test_every_document_comes_once_and_none_alone(
    tmp_path_factory, sizes, shard_tokens, shards_mixed, held_out, seed
):
    """Shards hold two documents, of which pairs can be made, or more."""
    folder = tmp_path_factory.mktemp("random")
    documents = [[str(i)] + ["a"] * (n - 1) for i, n in enumerate(sizes)]
    path = write(folder / "a.txt", "\n\n".join(map(" ".join, documents)))
    tokenizer = Tokenizer(ODD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "MIXED_TOKENS", shards_mixed * shard_tokens)
        patch.setattr(corpus, "LINES_A_CALL", 3)
        made = prepare(
            [path],
            tokenizer,
            folder / "out",
            held_out=held_out,
            seed=seed,
            shard_tokens=shard_tokens,
        )
    parts = [read_all(made, part) for part in ("train", "held_out")]
    assert len(parts[1]) != 1
    assert not parts[1] or held_out
    expected = [
        [tokenizer.encode(" ".join(d)).input_ids[1:-1]] for d in documents
    ]
    assert sorted(parts[0] + parts[1]) == sorted(expected)
    for part in ("train", "held_out"):
        paths = made.shards(part)
        check_shards(paths, shard_tokens, shards_mixed, max(sizes))


def check_shards(paths, shard_tokens, shards_mixed, longest):
    """Two documents or more; tokens enough, unless few documents wait."""
    always_enough = 2 * longest <= shard_tokens * min(1, shards_mixed - 1)
    for number, path in enumerate(paths):
        shard = read_shard(path)
        assert len(shard) >= 2
        if always_enough and number < len(paths) - 1:
            assert len(shard.tokens) >= shard_tokens
        most = max(2 * shard_tokens, shard_tokens + longest, 3 * longest)
        assert len(shard.tokens) <= most
        assert shard.sentences[0] == shard.documents[0] == 0
        assert shard.sentences[-1] == len(shard.tokens)
        assert shard.documents[-1] == len(shard.sentences) - 1
        assert (np.diff(shard.sentences) > 0).all()
        assert (np.diff(shard.documents) > 0).all()


def test_many_sentences_go_to_the_tokenizer_in_one_call(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "\n\n".join(["a\nb\nc"] * 100))
    monkeypatch.setattr(corpus, "LINES_A_CALL", 17)
    tokenizer, calls = Tokenizer(ODD), []
    real = tokenizer.encode_pieces
    tokenizer.encode_pieces = lambda x: calls.append(len(x)) or real(x)
    prepare([path], tokenizer, tmp_path / "out")
    assert calls == [18] * 16 + [12]


def test_a_long_document_at_the_end_is_not_alone(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "a\n\na\n\na\n\n" + "a " * 31)
    monkeypatch.setattr(corpus, "MIXED_TOKENS", 30)
    for seed in range(20):
        made = prepare(
            [path],
            Tokenizer(ODD),
            tmp_path / str(seed),
            held_out=0,
            seed=seed,
            shard_tokens=30,
        )
        assert all(len(read_shard(path)) >= 2 for path in made.shards())
        assert made.record["documents"] == 4


def test_documents_that_wait_for_a_shard_stay_below_the_bound(
    tmp_path, monkeypatch
):
    """What was read and is in no shard yet stays below the bound."""
    path = write(tmp_path / "a.txt", "\n\n".join(["a " * 13] * 1_009))
    monkeypatch.setattr(corpus, "MIXED_TOKENS", 1_000)
    monkeypatch.setattr(corpus, "LINES_A_CALL", 1)
    read, written, waiting = [], [], []

    def reading(paths):
        for document in read_documents(paths):
            read.append(13)
            yield document

    def saving(arrays, path):
        waiting.append(sum(read) - sum(written))
        written.append(len(arrays["tokens"]))

    monkeypatch.setattr(corpus, "read_documents", reading)
    monkeypatch.setattr(corpus.safetensors.numpy, "save_file", saving)
    prepare([path], Tokenizer(ODD), tmp_path, held_out=0, shard_tokens=300)
    assert sum(read) == sum(written) == 13 * 1_009
    assert max(waiting) <= 1_000 + 13
    assert len(written) > 30
    assert max(written) < 600


def test_documents_from_far_apart_come_into_one_shard(tmp_path):
    numbers = range(47)
    text = "\n\n".join(f"{i} a" for i in numbers)
    path = write(tmp_path / "a.txt", text)
    orders = []
    for seed in (0, 1):
        made = prepare(
            [path],
            Tokenizer(ODD),
            tmp_path / str(seed),
            held_out=0,
            seed=seed,
            shard_tokens=11,
        )
        assert len(made.shards()) == 8
        found = [document[0][0] - ODD.index("0") for document in read_all(made)]
        assert sorted(found) == [*numbers]
        steps = np.abs(np.diff(found))
        assert 10 < steps.mean() < 22  # a third of 47; in file order 1
        orders.append(found)
    assert orders[0] != orders[1]


def test_held_out_documents_are_no_training_ones(tmp_path):
    """47 documents in 20 files: 940 in all."""
    path = write(tmp_path / "a.txt", "\n\n".join(f"{i} a" for i in range(47)))
    counts = []
    for seed in range(5):
        made = prepare(
            [path] * 20,
            Tokenizer(ODD),
            tmp_path / str(seed),
            held_out=0.1,
            seed=seed,
        )
        parts = [read_all(made, part) for part in ("train", "held_out")]
        assert sum(map(len, parts)) == made.record["documents"] == 940
        counts.append(len(parts[1]))
        both = Counter(document[0][0] for part in parts for document in part)
        assert set(both.values()) == {20}
    assert len(set(counts)) > 1  # by chance
    assert abs(sum(counts) / (5 * 940) - 0.1) < 4 * (0.09 / 4_700) ** 0.5


@pytest.mark.parametrize("count", range(1, 7))
def test_no_part_holds_a_single_document(count, tmp_path):
    """Of one held-out document no pair can be made: it gets another."""
    text = "\n\n".join(f"{i} a" for i in range(count))
    path = write(tmp_path / "a.txt", text)
    options = {"paths": [path], "tokenizer": Tokenizer(ODD), "held_out": 0.3}
    seen = Counter()
    for seed in range(40):
        try:
            made = prepare(folder=tmp_path / str(seed), seed=seed, **options)
        except ValueError:
            seen["error"] += 1  # all were held out
            continue
        parts = [read_all(made, part) for part in ("train", "held_out")]
        assert sum(map(len, parts)) == count
        seen[tuple(map(len, parts))] += 1
        for path in made.shards() + made.shards("held_out"):
            assert len(read_shard(path)) >= min(2, count)
    assert set(seen) - {"error"} == {
        (count - n, n) for n in range(max(1, count - 1)) if n != 1
    }
    assert seen["error"] <= 40 * 2 * 0.3**count


def test_the_defaults_hold_out_two_documents_of_the_shelf(tmp_path):
    """The default seed draws one held-out document of the shelf."""
    made = prepare(shelf(), mini(), tmp_path)
    assert len(read_all(made, "held_out")) == 2
    assert len(read_all(made)) == 42


def test_a_prepared_folder_is_found(tmp_path, monkeypatch):
    options = {"held_out": 0.25, "seed": 3, "shard_tokens": 9_001}
    first = shelf_corpus(tmp_path, **options)
    before = files_of(tmp_path)

    def refuse(paths):
        raise AssertionError("the text is read again")

    monkeypatch.setattr(corpus, "read_documents", refuse)
    assert shelf_corpus(tmp_path, **options) == first
    assert files_of(tmp_path) == before
    assert len(first.shards()) > 2
    assert all(path.is_file() for path in first.shards())


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupted_call_starts_again(after, tmp_path, monkeypatch):
    whole = shelf_corpus(tmp_path / "whole", shard_tokens=9_001)
    assert len(whole.shards()) > after + 1
    real = safetensors.numpy.save_file
    saved = []

    def save_some(arrays, path):
        if len(saved) == after:
            path.write_bytes(b"half a sh")
            raise KeyboardInterrupt
        saved.append(path)
        real(arrays, path)

    with monkeypatch.context() as patch:
        patch.setattr(corpus.safetensors.numpy, "save_file", save_some)
        with pytest.raises(KeyboardInterrupt):
            shelf_corpus(tmp_path / "cut", shard_tokens=9_001)
    assert not (tmp_path / "cut" / RECORD).exists()
    shelf_corpus(tmp_path / "cut", shard_tokens=9_001)
    assert files_of(tmp_path / "cut") == files_of(tmp_path / "whole")


def test_a_record_that_was_being_written_does_not_count(tmp_path, monkeypatch):
    def write_half(path, text, encoding):
        path.write_bytes(text.encode()[:97])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", write_half)
        with pytest.raises(KeyboardInterrupt):
            shelf_corpus(tmp_path)
    assert RECORD not in files_of(tmp_path)
    made = shelf_corpus(tmp_path)
    assert json.loads((tmp_path / RECORD).read_text()) == made.record
    assert sorted(files_of(tmp_path)) == [RECORD, made.shards()[0].name]


PREPARE = """
import sys
from bertbook.pretraining.corpus import prepare
from bertbook.locations import shelf
from bertbook.text.tokenizer import Tokenizer

tokenizer = Tokenizer.from_pretrained("mini")
prepare(shelf(), tokenizer, sys.argv[1], held_out=0.2, shard_tokens=9_001)
"""


def test_two_processes_write_the_same_bytes(tmp_path):
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", PREPARE, str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
    first, second = (files_of(tmp_path / seed) for seed in ("1", "2"))
    assert len(first) > 4
    assert first == second


LONG_LINES = {
    "words": ("snow " * 200_000, 200_000),
    "marks": ("!" * 1_000_000, 1_000_000),
    "letters": ("a" * 1_000_000, 1),
    "sentences": ("Snow! " * 170_000, 340_000),
}


@pytest.mark.parametrize("case", LONG_LINES)
def test_a_line_of_a_million_bytes_is_cut_within_a_minute(case, tmp_path):
    line, tokens = LONG_LINES[case]
    path = write(tmp_path / "a.txt", f"{line}\n\nsnow")
    start = time.perf_counter()
    made = prepare([path], mini(), tmp_path / "out", held_out=0)
    assert time.perf_counter() - start < 60  # a few seconds
    assert made.record["tokens"] == tokens + 1
    lengths = [len(ids) for d in read_all(made) for ids in d]
    assert max(lengths) <= 512


def test_the_hash_tells_vocabularies_apart():
    other = [*ODD[:-2], ODD[-1], ODD[-2]]
    tokenizers = [
        Tokenizer(ODD),
        Tokenizer(other),
        Tokenizer(ODD, lowercase=False),
        Tokenizer(ODD, strip_accents=False),
        Tokenizer(ODD, split_cjk=False),
        Tokenizer(ODD, max_word_length=7),
        Tokenizer(ODD, added_tokens=["46"]),
        Tokenizer(ODD, added_tokens=[AddedToken("46", lstrip=True)]),
        Tokenizer(ODD, added_tokens=[AddedToken("46", special=False)]),
        Tokenizer(ODD[:-1]),
    ]
    hashes = [corpus.vocabulary_hash(tokenizer) for tokenizer in tokenizers]
    assert len(set(hashes)) == len(hashes)
    same = Tokenizer(ODD, strip_accents=True, engine="python")
    assert corpus.vocabulary_hash(same) == hashes[0]


# Error.


@pytest.mark.parametrize("suffix", [".txt", ".xz", ".gz"])
def test_a_file_that_is_not_utf_8_is_refused(suffix, tmp_path):
    content = "naïve\r\n\r\nsnow ".encode() + "é".encode("latin-1") + b" x\n"
    path = write(tmp_path / f"bad{suffix}", content)
    with pytest.raises(ValueError, match="must be UTF-8") as caught:
        prepare([path], mini(), tmp_path / "out")
    told = f"{path} must be UTF-8. Received: byte 0xe9 at 15, in line 3."
    assert told in str(caught.value)
    assert content[15] == 0xE9
    assert not (tmp_path / "out" / RECORD).exists()


NOT_UTF_8 = {
    "UTF-16": ("snow".encode("utf-16"), "0xff at 0"),
    "a lone surrogate": (b"ab\n\xed\xa0\x80 x\n", "0xed at 3"),
    "half a character": ("snow\nné".encode()[:-1], "0xc3 at 6"),
    "too long a form": (b"snow \xc0\xaf", "0xc0 at 5"),
}


@pytest.mark.parametrize("case", NOT_UTF_8)
def test_bytes_that_are_not_utf_8_are_named_with_their_place(case, tmp_path):
    content, message = NOT_UTF_8[case]
    path = write(tmp_path / "bad.txt", content)
    with pytest.raises(ValueError, match="bad.txt must be UTF-8") as caught:
        list(read_documents([path]))
    assert f"Received: byte {message}, in line " in str(caught.value)


def changed(data, place, value):
    return data[:place] + bytes([value]) + data[place + 1 :]


PACKED = {
    "xz": lzma.compress(TEXT.encode() * 97),
    "gz": gzip.compress(TEXT.encode() * 97, mtime=0),
}
DAMAGED = {
    "xz, cut": ("xz", PACKED["xz"][:-9]),
    "xz, no xz": ("xz", b"snow"),
    "xz, empty": ("xz", b""),
    "xz, changed": ("xz", changed(PACKED["xz"], 40, 0xAA)),
    "gz, cut": ("gz", PACKED["gz"][:-9]),
    "gz, no gz": ("gz", b"snow"),
    "gz, changed": ("gz", changed(PACKED["gz"], 10, 0xFF)),
    "gz, another sum": ("gz", changed(PACKED["gz"], -8 % len(PACKED["gz"]), 1)),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_archive_is_refused(case, tmp_path):
    suffix, content = DAMAGED[case]
    path = tmp_path / f"bad.txt.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"bad.txt.{suffix} is damaged: "):
        list(read_documents([path]))


EMPTY = {
    "no byte": "",
    "line breaks": "\n\r\n\n",
    "a byte order mark": "\ufeff",
    "page breaks": "\x0c\n\n\x0c\n",
    "spaces": " \t\u3000\xa0\n",
}


@pytest.mark.parametrize("case", EMPTY)
def test_a_corpus_without_text_is_refused(case, tmp_path):
    path = write(tmp_path / "a.txt", EMPTY[case])
    with pytest.raises(ValueError, match="a.txt must hold text. Received: "):
        prepare([path], mini(), tmp_path / "out")
    assert not (tmp_path / "out" / RECORD).exists()


def test_a_missing_text_file_is_named(tmp_path):
    path = write(tmp_path / "a.txt", "snow")
    for missing in (tmp_path / "b.txt", tmp_path, str(tmp_path / "b.txt")):
        with pytest.raises(FileNotFoundError, match="No text file at ") as e:
            prepare([path, missing], mini(), tmp_path / "out")
        assert str(missing) in str(e.value)
        with pytest.raises(FileNotFoundError, match="No text file at "):
            list(read_documents([path, missing]))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("paths", ["a.txt", shelf()[0]])
def test_a_path_in_place_of_a_list_is_refused(paths, tmp_path):
    for call in (
        lambda: prepare(paths, mini(), tmp_path),
        lambda: list(read_documents(paths)),
    ):
        with pytest.raises(ValueError, match="`paths` must be a list") as e:
            call()
        assert f"Received: '{paths}'" in str(e.value)


def test_an_empty_list_of_paths_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"`paths` must name .* Received: \[\]"
    ):
        prepare([], mini(), tmp_path)
    with pytest.raises(ValueError, match="`paths` must not hold a lone surrog"):
        prepare(["a\ud800.txt"], mini(), tmp_path)


@pytest.mark.parametrize(
    ("option", "value"),
    [("held_out", -0.1), ("held_out", 1), ("held_out", float("nan"))]
    + [("shard_tokens", 0), ("shard_tokens", -3)],
)
def test_an_option_out_of_range_is_refused(option, value, tmp_path):
    with pytest.raises(ValueError, match=f"`{option}` must be .* Received: "):
        prepare(shelf(), mini(), tmp_path, **{option: value})
    assert not list(tmp_path.iterdir())


OTHERS = {
    "files": {"paths": shelf()[:3]},
    "files in another order": {"paths": shelf()[3::-1]},
    "vocabulary": {"tokenizer": Tokenizer(ODD)},
    "vocabulary, cased": {"tokenizer": None},
    "held_out": {"held_out": 0.2},
    "seed": {"seed": 1},
    "shard_tokens": {"shard_tokens": 999_999},
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_folder_that_holds_another_corpus_is_refused(case, tmp_path):
    usual = {"paths": shelf()[:4], "tokenizer": mini(), "folder": tmp_path}
    prepare(**usual)
    before = files_of(tmp_path)
    other = {**usual, **OTHERS[case]}
    other["tokenizer"] = other["tokenizer"] or Tokenizer(
        mini().vocabulary, lowercase=False
    )
    key = case.split()[0].rstrip(",")
    with pytest.raises(
        ValueError, match=f"another `{key}`: .* Received: "
    ) as e:
        prepare(**other)
    assert str(tmp_path) in str(e.value)
    assert "Name another folder, or remove this one." in str(e.value)
    assert files_of(tmp_path) == before
    prepare(**usual)


def test_a_damaged_record_is_named(tmp_path):
    for content in ("{", "[]"):
        (tmp_path / RECORD).write_text(content)
        with pytest.raises(ValueError, match=r"corpus\.json"):
            shelf_corpus(tmp_path)


def test_a_damaged_shard_is_named(tmp_path):
    made = shelf_corpus(tmp_path)
    (path,) = made.shards()
    whole = path.read_bytes()
    for content in (whole[:-7], whole[:5], b"", b"snow"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="train-00000.safetensors is dama"):
            read_shard(path)
    safetensors.numpy.save_file({"tokens": np.arange(3)}, path)
    with pytest.raises(ValueError, match="train-00000.safetensors is dama"):
        read_shard(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="train-00000"):
        read_shard(path)


def test_an_unknown_part_of_a_corpus_is_refused(tmp_path):
    with pytest.raises(KeyError, match="dev"):
        shelf_corpus(tmp_path).shards("dev")


# Content, and what fills the memory.


def test_a_text_that_changed_and_kept_its_size_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("the cat sat.\n\nthe cat ran.\n")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    options = {"held_out": 0.0}
    prepare([path], mini(), tmp_path / "out", **options)
    path.write_text(path.read_text().replace("cat", "dog"))
    os.utime(path, ns=times)  # as a copy that keeps them
    with pytest.raises(ValueError, match="another `sha256`"):
        prepare([path], mini(), tmp_path / "out", **options)
    made = prepare([path], mini(), tmp_path / "out", replace=True, **options)
    whole = prepare([path], mini(), tmp_path / "whole", **options)
    assert made.record == whole.record
    for first, second in zip(made.shards(), whole.shards(), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_a_corpus_that_gives_way_leaves_no_shard(tmp_path):
    folder = tmp_path / "out"
    prepare(shelf(), mini(), folder, shard_tokens=2_000)
    many = len(list(folder.iterdir()))
    theirs = (
        "train-mine.safetensors",
        "train-00001.old.safetensors",
        "train-1.safetensors",
    )
    for name in theirs:  # of a user, and no shards
        (folder / name).write_text("mine", "utf-8")
    outside = tmp_path / "outside"
    outside.write_text("mine", "utf-8")
    (folder / "train-00000.safetensors").unlink()
    (folder / "train-00000.safetensors").symlink_to(outside)
    made = prepare(shelf(), mini(), folder, held_out=0.0, replace=True)
    for path in (outside, *(folder / name for name in theirs)):
        assert path.read_text("utf-8") == "mine"
        path.unlink()
    assert len(list(folder.iterdir())) == len(made.shards()) + 1 < many


def test_a_shard_is_not_written_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine", "utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train-00000.safetensors").symlink_to(outside)
    made = prepare(shelf(), mini(), tmp_path / "out", held_out=0.0)
    assert len(read_shard(made.shards()[0])) > 1
    assert outside.read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold text. Received: no line"),
        (b"\n \n\t\n", "must hold text. Received: no line"),
        (b"fine.\n" + b"a" * 101, "a line of more than 100 bytes, .* line 2"),
        (b"fine.\n" * 6, "a document of more than 400 bytes, .* line 6"),
        (b"fine.\n" * 5 + b"\n" + b"fine.\n" * 6, "more than 400 .* line 12"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_a_file_that_is_no_corpus_is_named_with_its_line(
    suffix, content, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(corpus, "LONGEST_LINE", 100)
    monkeypatch.setattr(corpus, "LONGEST_DOCUMENT", 400)
    fine, path = tmp_path / "fine.txt", tmp_path / f"text.txt{suffix}"
    fine.write_text("fine.\n")
    with {"": open, ".gz": gzip.open, ".xz": lzma.open}[suffix](
        path, "wb"
    ) as file:
        file.write(content)
    with pytest.raises(ValueError, match=f"{path.name} .*{message}"):
        list(corpus.read_documents([fine, path]))


@pytest.mark.skipif(sys.platform != "linux", reason="limits address space")
def test_a_packed_file_without_line_ends_fills_no_memory(tmp_path):
    path = tmp_path / "bomb.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(20):  # 320 MB, more than is left
            file.write(b"a" * 2**24)
    code = (
        "import resource, sys\n"
        "from bertbook.pretraining.corpus import read_documents\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28,) * 2)\n"
        "for _ in read_documents(sys.argv[1:]): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "bomb.txt.gz must hold documents of lines" in done.stderr


def test_a_shard_that_finds_no_room_is_no_corpus(tmp_path):
    with largest_file(200), pytest.raises(OSError, match="train-00000"):
        shelf_corpus(tmp_path)
    assert not (tmp_path / RECORD).exists()


def test_a_blank_line_after_every_sentence_is_said(tmp_path):
    path = write(tmp_path / "a.txt", "\n\n".join(["It rains."] * 20))
    with pytest.warns(UserWarning, match="Nearly every document is one sent"):
        prepare([path], mini(), tmp_path / "out")
