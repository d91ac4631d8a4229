"""Texts of a command: words, a file, standard input; chunks of them."""

import argparse
import gzip
import io
import lzma
import os

import pytest

from bertbook.cli.texts import (
    LONGEST_LINE,
    add_texts,
    answer,
    check_source,
    chunks,
    number_lines,
    read_lines,
)

TEXTS = ["One.", "¿Dos\ty tres?"]


def options_of(*words):
    parser = argparse.ArgumentParser()
    add_texts(parser, "texts", "lines")
    return parser.parse_args(words)


@pytest.fixture
def pipe(monkeypatch):
    """Puts a pipe in place of standard input; yields its other end."""
    read, write = os.pipe()
    with open(read) as reader, open(write, "wb", buffering=0) as writer:
        monkeypatch.setattr("sys.stdin", reader)
        yield writer


def test_a_file_packed_or_not_and_standard_input_give_the_same(
    tmp_path, monkeypatch, pipe
):
    text = "\r\n \n".join(TEXTS) + "\n"
    path = tmp_path / "texts.txt"
    path.write_bytes(text.encode())
    for suffix, module in ((".xz", lzma), (".gz", gzip)):
        packed = tmp_path / f"texts.txt{suffix}"
        packed.write_bytes(module.compress(text.encode()))
        assert list(read_lines(str(packed))) == [TEXTS[0], "", TEXTS[1]]
    assert list(read_lines(str(path))) == [TEXTS[0], "", TEXTS[1]]
    pipe.write(text.encode())
    pipe.close()
    lines = [line for line in read_lines("-") if line is not None]
    assert lines == [TEXTS[0], "", TEXTS[1]]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert list(read_lines("-")) == [TEXTS[0], "", TEXTS[1]]


def test_a_byte_order_mark_and_a_last_line_without_end_are_read(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(b"\xef\xbb\xbfOne.\nTwo.")
    assert list(read_lines(str(path))) == ["One.", "Two."]


def test_a_line_longer_than_a_block_is_whole(tmp_path):
    path = tmp_path / "texts.txt"
    line = "ab" * 200_000
    path.write_text(f"{line}\n{line}b", encoding="utf-8")
    assert list(read_lines(str(path))) == [line, line + "b"]


def test_a_pipe_that_pauses_gives_what_is_there(pipe):
    pipe.write(b"One.\nTwo.\nTh")
    lines = read_lines("-")
    assert [next(lines) for _ in range(3)] == ["One.", "Two.", None]
    pipe.write(b"ree.\n")
    assert next(lines) == "Three."
    pipe.close()
    assert list(lines) == []


def test_where_nothing_tells_whether_a_read_waits_lines_come(pipe, monkeypatch):
    """On Windows `select` refuses what is no socket."""

    def refuse(*_):
        raise OSError("an operation was attempted on something not a socket")

    monkeypatch.setattr("select.select", refuse)
    pipe.write(b"One.\nTwo.\nTh")
    lines = read_lines("-")
    assert [next(lines) for _ in range(4)] == [None, "One.", "Two.", None]
    pipe.write(b"ree.\n")
    pipe.close()
    assert list(lines) == ["Three.", None]


def test_words_and_a_file_are_refused():
    with pytest.raises(ValueError, match="`read` takes .*Received: both"):
        check_source("read", options_of("--file", "x", "text"))
    check_source("read", options_of("text"))


def test_no_standard_input_gives_no_line(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert list(read_lines("-")) == []


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_that_is_not_utf_8_or_not_there_is_named(tmp_path, suffix):
    path = tmp_path / f"latin.txt{suffix}"
    content = "Tee\nKäse".encode("latin-1")
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(ValueError, match=r"latin\.txt.* must be UTF-8.*line 2"):
        list(read_lines(str(path)))
    with pytest.raises(FileNotFoundError, match=r"gone\.txt"):
        list(read_lines(str(tmp_path / f"gone.txt{suffix}")))


def test_a_line_without_end_is_refused_and_named(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"One.\n" + b"a" * (LONGEST_LINE + 1))
    with pytest.raises(ValueError, match="at most 16,777,216 bytes.* line 2"):
        list(read_lines(str(path)))


def test_chunks_grow_and_keep_every_row_in_its_place():
    rows = list(number_lines(["a"] * 200))
    found = list(chunks(rows, 4))
    assert [row for chunk in found for row in chunk] == rows
    sizes = [len(chunk) for chunk in found]
    assert sizes[:6] == [4, 8, 16, 32, 64, 76]
    sizes = [len(chunk) for chunk in chunks([*rows[:13], None], 32)]
    assert sizes == [8, 4, 1]
    assert [len(chunk) for chunk in chunks(rows[:13], 32)] == [13]


def test_answers_before_a_bad_line_are_given_and_the_line_is_named():
    def compute(texts):
        if "bad" in texts:
            raise ValueError("`text` must be good. Received: 'bad'.")
        return [text.upper() for text in texts]

    lines = ["a", "b", "", "c", "bad", "d"]
    rows = (row for row in number_lines(lines) if row[1])
    answers = answer(rows, 32, compute)
    first = [next(answers) for _ in range(3)]
    assert first == [("a", "A"), ("b", "B"), ("c", "C")]
    with pytest.raises(ValueError, match="Line 5: `text` must be good"):
        next(answers)
