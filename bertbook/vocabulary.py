"""Vocabularies: read from files, checked, and trained with the Rust library.

Differences: the Rust trainer picks the pair that occurs most often, as BPE
does, not by WordPiece's score. Its own order of equally frequent characters
changes from run to run; here the alphabet is sorted and handed to it first.
"""

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
REPEATS = 1_000  # occurrences of one word handed to the trainer in one string

# What the parts of a tokenizer.json must be for it to be BERT's.
BERT_PARTS = {
    "model": "WordPiece",
    "normalizer": "BertNormalizer",
    "pre_tokenizer": "BertPreTokenizer",
}


def number_pieces(pieces: Sequence[str]) -> dict[str, int]:
    """Returns the id of each piece: its place in the list.

    Raises:
        ValueError: A piece stands twice, or a special token is missing.
    """
    ids: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        if piece in ids:
            raise ValueError(
                "`vocabulary` must not hold a piece twice. Received: "
                f"{piece!r} as ids {ids[piece]} and {number}."
            )
        ids[piece] = number
    missing = [token for token in SPECIAL_TOKENS if token not in ids]
    if missing:
        raise ValueError(
            f"`vocabulary` must hold {', '.join(SPECIAL_TOKENS)}. "
            f"Missing: {', '.join(missing)}."
        )
    return ids


def read_vocabulary(path: Path) -> list[str]:
    """Reads a `vocab.txt`: one piece a line, the line number is the id.

    Raises:
        FileNotFoundError: `path` is not a file.
        ValueError: The file is not UTF-8, or a line in it is empty.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No vocabulary at {path}.")
    lines = path.read_bytes().split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    pieces = []
    for number, line in enumerate(lines, 1):
        try:
            piece = line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: not UTF-8 ({error})."
            ) from error
        if not piece:
            raise ValueError(
                f"{path}, line {number}: an empty line is no piece."
            )
        pieces.append(piece)
    return pieces


def has_capitals(pieces: Sequence[str]) -> bool:
    """Returns whether a vocabulary is cased: special tokens do not count."""
    return any(
        piece != piece.lower()
        for piece in pieces
        if not (piece.startswith("[") and piece.endswith("]"))
    )


def read_settings(path: Path) -> dict[str, Any]:
    """Reads the settings of a `tokenizer_config.json`, none where it is absent.

    Returns:
        Keywords of `Tokenizer`: those that the file sets.
    """
    if not path.is_file():
        return {}
    stored = _read_json(path)
    keywords = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "split_cjk",
    }
    return {
        ours: stored[theirs]
        for theirs, ours in keywords.items()
        if stored.get(theirs) is not None
    }


def read_tokenizer_json(path: Path) -> dict[str, Any]:
    """Reads the vocabulary and the settings of a `tokenizer.json`.

    Stored truncation and padding are left out on purpose.

    Returns:
        Keywords of `Tokenizer`.

    Raises:
        ValueError: The file is damaged or describes another tokenizer.
    """
    stored = _read_json(path)
    for part, expected in BERT_PARTS.items():
        received = (stored.get(part) or {}).get("type")
        if received != expected:
            raise ValueError(
                f"{path}: `{part}` must be {expected}. Received: {received!r}."
            )
    if not stored["normalizer"].get("clean_text", True):
        raise ValueError(f"{path}: `clean_text` must be true. Received: false.")
    return {
        "vocabulary": _pieces_in_order(stored, path),
        "lowercase": stored["normalizer"]["lowercase"],
        "strip_accents": stored["normalizer"].get("strip_accents"),
        "split_cjk": stored["normalizer"].get("handle_chinese_chars", True),
        "max_word_length": stored["model"].get("max_input_chars_per_word", 100),
        "added_tokens": [t["content"] for t in stored.get("added_tokens", [])],
    }


def train_pieces(
    word_counts: Mapping[str, int], vocab_size: int, alphabet: str = ""
) -> list[str]:
    """Trains the pieces of a vocabulary from counted words.

    Args:
        word_counts: How often each clean word occurs.
        vocab_size: How many pieces, special tokens included.
        alphabet: Characters that get a piece even where no word has them.

    Returns:
        Special tokens, first characters, continuing characters, merges.

    Raises:
        ValueError: There are no words, or `vocab_size` does not hold the
            special tokens and every character.
    """
    if not word_counts:
        raise ValueError("`lines` must hold at least one word. Received: none.")
    first = {letter for word in word_counts for letter in word} | set(alphabet)
    later = {"##" + letter for word in word_counts for letter in word[1:]}
    start = [*SPECIAL_TOKENS, *sorted(first), *sorted(later)]
    if vocab_size < len(start):
        raise ValueError(
            "`vocab_size` must hold the special tokens and every character: "
            f"at least {len(start)}. Received: {vocab_size}."
        )
    rust = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rust.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=start, show_progress=False
    )
    rust.train_from_iterator(_repeat(word_counts), trainer)
    ids = rust.get_vocab()
    if len(ids) < vocab_size:
        warnings.warn(
            f"The text gives {len(ids)} pieces, not the {vocab_size} of "
            "`vocab_size`.",
            stacklevel=3,
        )
    return sorted(ids, key=ids.__getitem__)


def _repeat(word_counts: Mapping[str, int]) -> Iterator[str]:
    """Writes the words out again, as often as they occur."""
    for word, count in Counter(word_counts).items():
        for done in range(0, count, REPEATS):
            yield " ".join([word] * min(REPEATS, count - done))


def _pieces_in_order(stored: Mapping[str, Any], path: Path) -> list[str]:
    """Lists the pieces of a tokenizer.json by their ids, without gaps."""
    numbered = {i: piece for piece, i in stored["model"]["vocab"].items()}
    numbered |= {t["id"]: t["content"] for t in stored.get("added_tokens", [])}
    if sorted(numbered) != list(range(len(numbered))):
        raise ValueError(
            f"{path}: the ids must be 0, 1, 2, ... without a gap. Received "
            f"{len(numbered)} ids up to {max(numbered)}."
        )
    return [numbered[i] for i in range(len(numbered))]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from error
