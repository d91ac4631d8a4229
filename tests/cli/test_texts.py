"""Texts of a command: words, a file, standard input."""

import argparse
import io
import lzma

import pytest

from bertbook.cli.texts import add_texts, read_lines, texts_of

TEXTS = ["One.", "¿Dos\ty tres?"]


def options_of(*words):
    parser = argparse.ArgumentParser()
    add_texts(parser, "texts", "lines")
    return parser.parse_args(words)


def test_words_a_file_and_standard_input_give_the_same(tmp_path, monkeypatch):
    path = tmp_path / "texts.txt"
    text = "\r\n \n".join(TEXTS) + "\n"
    path.write_text(text, encoding="utf-8", newline="")
    packed = tmp_path / "texts.txt.xz"
    packed.write_bytes(lzma.compress(text.encode()))
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    for words in (TEXTS, ["--file", str(path)], ["--file", str(packed)], []):
        assert texts_of("read", options_of(*words)) == TEXTS


def test_keep_empty_keeps_lines_without_text(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\nOne.\n \r\nTwo.\n", encoding="utf-8")
    options = options_of("--file", str(path))
    assert texts_of("read", options) == ["One.", "Two."]
    kept = texts_of("read", options, keep_empty=True)
    assert kept == ["", "One.", "", "Two."]


def test_words_and_a_file_are_refused():
    with pytest.raises(ValueError, match="`read` takes .*Received: both"):
        texts_of("read", options_of("--file", "x", "text"))


@pytest.mark.parametrize("stdin", [io.StringIO("\n \n"), None])
def test_no_text_is_refused(stdin, monkeypatch):
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(ValueError, match="must hold a text. Received: no line"):
        texts_of("read", options_of())


def test_a_file_that_is_not_utf_8_or_not_there_is_named(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("Käse".encode("latin-1"))
    with pytest.raises(ValueError, match="latin.txt must be UTF-8"):
        list(read_lines(str(path)))
    with pytest.raises(FileNotFoundError, match=r"gone\.txt"):
        list(read_lines(str(tmp_path / "gone.txt")))
