"""Vocabularies: files, checks, and training that gives the same each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.locations import shelf
from bertbook.text import wordpiece
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import (
    SPECIAL_TOKENS,
    limit_letters,
    number_pieces,
    read_vocabulary,
    train_pieces,
)
from tests.helpers import texts

ROOT = Path(__file__).resolve().parents[2]
PIECES = [*SPECIAL_TOKENS, "a", "b", "##a", "##b", "ab", "[unused1]"]

random_tests = settings(max_examples=50, deadline=None, derandomize=True)


@pytest.fixture
def saved(tmp_path):
    """The three files of a small tokenizer."""
    Tokenizer(PIECES).save_pretrained(tmp_path)
    return tmp_path


# Definition.


def test_the_id_of_a_piece_is_its_place():
    ids = number_pieces(PIECES)
    assert [ids[piece] for piece in PIECES] == list(range(len(PIECES)))
    assert list(ids) == PIECES


ENDINGS = {
    "Unix": "\n".join(PIECES) + "\n",
    "no last line break": "\n".join(PIECES),
    "Windows": "\r\n".join(PIECES) + "\r\n",
    "a byte order mark": "\ufeff" + "\n".join(PIECES) + "\n",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_read_vocabulary(ending, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(ENDINGS[ending].encode())
    assert read_vocabulary(path) == PIECES


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    strange = [*PIECES, "a\u2028b", "\xa0", "\x85x", " ", "c\rd", "\v", "\0"]
    path = tmp_path / "vocab.txt"
    path.write_bytes("\n".join(strange).encode())
    assert read_vocabulary(path) == strange


def test_a_second_byte_order_mark_is_a_piece(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("[PAD]\n\ufeff\n".encode())
    assert read_vocabulary(path) == ["[PAD]", "\ufeff"]


@pytest.mark.filterwarnings("ignore:The text gives")
@random_tests
@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=7), st.integers(1, 5), min_size=1
    )
)
def test_trained_pieces_are_letters_and_joins_of_two_pieces(counts):
    first = sorted({letter for word in counts for letter in word})
    later = sorted({"##" + c for word in counts for c in word[1:]})
    start = [*SPECIAL_TOKENS, *first, *later]
    assert train_pieces(counts, len(start)) == start
    pieces = train_pieces(counts, 41)
    assert pieces[: len(start)] == start
    for number, piece in enumerate(pieces[len(start) :], len(start)):
        cuts = range(3 if piece.startswith("##") else 1, len(piece))
        earlier = pieces[5:number]
        assert any(
            piece[:cut] in earlier and "##" + piece[cut:] in earlier
            for cut in cuts
        ), piece
    assert len(pieces) == 41 or set(counts) <= set(pieces)


@pytest.mark.filterwarnings("ignore:The text gives")
def test_a_huge_size_gives_what_the_text_gives():
    lines = ["the cat sat on the mat", "the dog", "x" * 90]
    expected = Tokenizer.train(lines, vocab_size=10**4).vocabulary
    assert len(expected) < 300
    for size in (10**9, 10**30, len(expected)):
        assert Tokenizer.train(lines, vocab_size=size).vocabulary == expected
    some = Tokenizer.train(lines, vocab_size=40).vocabulary
    assert some == expected[:40]


@pytest.mark.filterwarnings("ignore:The text gives")
def test_words_that_no_tokenizer_spells_give_letters_alone():
    endless = Tokenizer.train(["ab" * 500_000, "ba ba"], vocab_size=300)
    short = Tokenizer.train(["bab aba", "ba ba"], vocab_size=9)
    assert endless.vocabulary == [*short.vocabulary, "ba"]


def test_a_piece_of_its_own_for_each_character_of_the_alphabet():
    pieces = train_pieces({"ba": 3}, 11, alphabet="z!a")
    assert pieces[5:] == ["!", "a", "b", "z", "##a", "ba"]


# Peer: a vocabulary that the Rust library reads.


def test_the_saved_file_is_one_of_the_library(saved):
    from tokenizers import Tokenizer as Library

    library = Library.from_file(str(saved / "tokenizer.json"))
    assert library.get_vocab() == number_pieces(PIECES)
    assert library.encode("AB b").tokens == ["[CLS]", "ab", "b", "[SEP]"]


def test_the_library_trains_the_same_pieces():
    """Its own trainer on the raw text, whose ties fall as they may."""
    lines = [
        line
        for path in shelf()[:5]
        for line in path.read_text("utf-8").splitlines()
    ]
    counts = wordpiece.count_words(lines)
    library = texts.peer(PIECES)
    library.train_from_iterator(lines, vocab_size=600, show_progress=False)
    theirs = library.get_vocab()
    ours = train_pieces(counts, 600)
    letters = {p for p in theirs if len(p.removeprefix("##")) == 1}
    assert letters <= set(ours)
    # Ours gives first letters to all, so that fewer merges fit in.
    assert len(set(ours) & set(theirs)) > 0.9 * len(theirs)


# Property.


@pytest.mark.filterwarnings("ignore:No text reaches")
@random_tests
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
            lambda piece: "\n" not in piece and not piece.endswith("\r")
        ),
        unique=True,
    )
)
def test_what_is_saved_is_read_back(tmp_path_factory, more):
    pieces = list(dict.fromkeys([*SPECIAL_TOKENS, *more]))
    folder = tmp_path_factory.mktemp("saved")
    tokenizer = Tokenizer(pieces, lowercase=False, max_word_length=23)
    tokenizer.save_pretrained(folder)
    again = Tokenizer.from_pretrained(folder)
    assert again.vocabulary == pieces
    assert (again.lowercase, again.max_word_length) == (False, 23)
    (folder / "tokenizer.json").unlink()
    from_vocab = Tokenizer.from_pretrained(folder)
    assert from_vocab.vocabulary == pieces
    assert from_vocab.lowercase is False


def test_training_words_are_never_unknown():
    lines = [
        line
        for path in shelf()
        for line in path.read_text("utf-8").splitlines()
    ]
    tokenizer = Tokenizer.train(lines, vocab_size=1_024)
    assert len(tokenizer) == 1_024
    batch = tokenizer(lines)
    assert (batch["input_ids"] != tokenizer.unk_token_id).all()


TRAIN = """
import sys
from pathlib import Path
from bertbook.locations import shelf
from bertbook.text.tokenizer import Tokenizer

lines = [x for p in shelf() for x in p.read_text("utf-8").splitlines()]
Tokenizer.train(lines, vocab_size=2_048).save_pretrained(Path(sys.argv[1]))
"""


def test_two_processes_train_the_same_files(tmp_path):
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", TRAIN, str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    for name in names:
        first, second = (tmp_path / seed / name for seed in ("1", "2"))
        assert first.read_bytes() == second.read_bytes(), name


TRAIN_SHIPPED = """
import sys
from pathlib import Path
import mix_corpus

data, out, size = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
mix_corpus.split(data, out)
mix_corpus.train_vocabulary(out, size).save_pretrained(out / "trained")
"""


@pytest.mark.slow
def test_the_shipped_vocabulary_is_trained_again(shared_data, tmp_path):
    shipped = texts.MINI.read_bytes()
    size = str(len(read_vocabulary(texts.MINI)))
    subprocess.run(
        [sys.executable, "-c", TRAIN_SHIPPED, shared_data, tmp_path, size],
        cwd=ROOT / "tools/models",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert (tmp_path / "trained/vocab.txt").read_bytes() == shipped


# Error. Files and single options are in `test_bad_input_text`.


@pytest.mark.parametrize("size", [5, 8, -1])
def test_a_size_below_the_alphabet_is_refused(size):
    with pytest.raises(ValueError, match=r"`vocab_size` must hold .* least 9"):
        train_pieces({"ab": 3, "ba": 1}, size)


def test_a_vocabulary_of_no_words_is_refused():
    with pytest.raises(ValueError, match="at least one word. Received: none"):
        train_pieces({}, 11)


def test_a_text_too_small_for_the_size_brings_a_warning():
    with pytest.warns(UserWarning, match="9 pieces, not the 13") as caught:
        tokenizer = Tokenizer.train(["ab"], vocab_size=13)
    assert caught[0].filename == __file__
    assert tokenizer.vocabulary[5:] == ["a", "b", "##b", "ab"]


# Rare characters.


def test_words_with_rare_characters_are_left_out():
    counts = {"ab": 5, "ba": 4, "ac": 1, "é": 2, "z": 1}
    assert limit_letters(counts, 2) == {"ab": 5, "ba": 4}
    assert limit_letters(counts, 3) == {"ab": 5, "ba": 4, "é": 2}
    assert limit_letters(counts, 9) == counts


def test_of_two_characters_as_rare_the_first_stays():
    assert limit_letters({"b": 1, "a": 1}, 1) == {"a": 1}


def test_a_limited_alphabet_fills_no_vocabulary():
    lines = ["the bank of the river", "நதி கரை 学校"] * 3
    all_letters = Tokenizer.train(lines, vocab_size=50)
    few = Tokenizer.train(lines, vocab_size=30, limit_alphabet=12)
    assert any(not piece.isascii() for piece in all_letters.vocabulary)
    assert all(piece.isascii() for piece in few.vocabulary)
    assert few.encode("நதி").tokens == ["[CLS]", "[UNK]", "[SEP]"]


def test_a_limit_that_is_no_positive_integer_is_refused():
    for limit in (0, -1, 2.5, True, "3"):
        with pytest.raises(ValueError, match="`limit_alphabet` must be"):
            Tokenizer.train(["a b"], vocab_size=30, limit_alphabet=limit)
