"""Vocabularies: read from files, checked, and trained with the Rust library.

Differences: the Rust trainer picks the pair that occurs most often, as BPE
does, not by WordPiece's score. Its own order of equally frequent characters
changes from run to run; here the alphabet is sorted and handed to it first.
"""

import codecs
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
REPEATS = 1_000  # occurrences of one word handed to the trainer in one string

# What a `vocab.txt` could not give back: a lone surrogate, a line break.
UNWRITABLE = re.compile(r"[\ud800-\udfff\n]|\r\Z")

# What the parts of a tokenizer.json must be for it to be BERT's.
BERT_PARTS = {
    ("model", "type"): "WordPiece",
    ("model", "unk_token"): "[UNK]",
    ("model", "continuing_subword_prefix"): "##",
    ("normalizer", "type"): "BertNormalizer",
    ("normalizer", "clean_text"): True,
    ("pre_tokenizer", "type"): "BertPreTokenizer",
}

# An added token is looked for in the raw text, everywhere and as it is.
ADDED_TOKEN = {
    "special": True,
    "normalized": False,
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
}


def number_pieces(pieces: Sequence[str]) -> dict[str, int]:
    """Returns the id of each piece: its place in the list.

    Raises:
        ValueError: `pieces` has no order, one of them is not a piece or occurs
            twice, or a special token is missing.
    """
    if isinstance(pieces, str) or not isinstance(pieces, Sequence):
        raise ValueError(
            "`vocabulary` must be a list of pieces in the order of their ids. "
            f"Received: {type(pieces).__name__}."
        )
    ids: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        if not isinstance(piece, str) or not piece or UNWRITABLE.search(piece):
            raise ValueError(
                "`vocabulary` must hold strings that fill one line of a file. "
                f"Received: {piece!r} as id {number}."
            )
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

    Lines may end as on Windows, and a byte order mark may come first.

    Raises:
        FileNotFoundError: `path` is not a file.
        ValueError: The file is not UTF-8, or a line in it is empty.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No vocabulary at {path}.")
    text = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    lines = text.split(b"\n")
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

    Raises:
        ValueError: The file is damaged, or a setting is not true or false.
    """
    if not path.is_file():
        return {}
    stored = _read_json(path)
    keywords = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "split_cjk",
    }
    settings = {
        keyword: stored[key]
        for key, keyword in keywords.items()
        if stored.get(key) is not None
    }
    for key, keyword in keywords.items():
        if not isinstance(settings.get(keyword, True), bool):
            raise ValueError(
                f"{path}: `{key}` must be true or false. "
                f"Received: {stored[key]!r}."
            )
    return settings


def read_tokenizer_json(path: Path) -> dict[str, Any]:
    """Reads the vocabulary and the settings of a `tokenizer.json`.

    Stored truncation and padding are left out on purpose.

    Returns:
        Keywords of `Tokenizer`.

    Raises:
        ValueError: The file is damaged or describes another tokenizer.
    """
    stored = _read_json(path)
    _check_is_berts(stored, path)
    model, normalizer = stored["model"], stored["normalizer"]
    return {
        "vocabulary": _pieces_in_order(stored, path),
        "lowercase": normalizer["lowercase"],
        "strip_accents": normalizer.get("strip_accents"),
        "split_cjk": normalizer["handle_chinese_chars"],
        "max_word_length": model["max_input_chars_per_word"],
        "added_tokens": [token["content"] for token in _added(stored)],
    }


def limit_letters(word_counts: Mapping[str, int], limit: int) -> dict[str, int]:
    """Leaves out the words that hold a rare character.

    A large text holds thousands of characters of other scripts; a piece for
    each, and one for each inside a word, would fill a vocabulary.

    Args:
        word_counts: How often each clean word occurs.
        limit: How many characters stay, the most frequent ones; of those that
            occur as often, the ones that sort first.
    """
    letters: Counter[str] = Counter()
    for word, count in word_counts.items():
        for letter in word:
            letters[letter] += count
    order = sorted(letters, key=lambda letter: (-letters[letter], letter))
    rare = set(order[limit:])
    return {w: n for w, n in word_counts.items() if rare.isdisjoint(w)}


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


def _check_is_berts(stored: Mapping[str, Any], path: Path) -> None:
    """Raises where a tokenizer.json is damaged, or not one of BERT's."""
    for (part, key), expected in BERT_PARTS.items():
        settings = stored.get(part)
        received = settings.get(key) if isinstance(settings, dict) else None
        if received != expected:
            raise ValueError(
                f"{path}: `{key}` of `{part}` must be {expected!r}. "
                f"Received: {received!r}."
            )
    try:
        Tokenizer.from_str(json.dumps(stored))
    except Exception as error:  # the library raises no narrower one
        raise ValueError(f"{path} is no tokenizer.json: {error}.") from error
    for token in _added(stored):
        for key, expected in ADDED_TOKEN.items():
            if token[key] != expected:
                raise ValueError(
                    f"{path}: `{key}` of the added token {token['content']!r} "
                    f"must be {expected}. Received: {token[key]}."
                )


def _added(stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    return stored.get("added_tokens") or []


def _pieces_in_order(stored: Mapping[str, Any], path: Path) -> list[str]:
    """Lists the pieces of a tokenizer.json by their ids, without gaps."""
    ids = dict(stored["model"]["vocab"])
    for token in _added(stored):
        number = ids.setdefault(token["content"], token["id"])
        if number != token["id"]:
            raise ValueError(
                f"{path}: a piece must have one id. Received: "
                f"{token['content']!r} with {number} and {token['id']}."
            )
    if sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(
            f"{path}: the ids must be 0, 1, 2, ... without a gap. Received: "
            f"{len(ids)} pieces, ids up to {max(ids.values())}."
        )
    return sorted(ids, key=ids.__getitem__)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(stored, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: "
            f"{type(stored).__name__}."
        )
    return stored
