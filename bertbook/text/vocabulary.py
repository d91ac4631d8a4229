"""Vocabularies: read from files, checked, and trained with the Rust library.

Differences: the Rust trainer picks the pair that occurs most often, as BPE
does, not by WordPiece's score. Its own order of equally frequent characters
changes from run to run; here the alphabet is sorted and handed to it first.
Words of more than 100 characters, which no tokenizer spells, are left out.
"""

import codecs
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertbook.checks import is_integer
from bertbook.files import check_no_pointer
from bertbook.text.wordpiece import HUGGING_FACE_WORD_LIMIT as WORD_LIMIT

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
REPEATS = 1_000  # occurrences of one word handed to the trainer in one string

# What a `vocab.txt` could not give back: a lone surrogate, a line break.
UNWRITABLE = re.compile(r"[\ud800-\udfff\n]|\r\Z")


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


def read_vocabulary(path: str | Path) -> list[str]:
    """Reads a `vocab.txt`: one piece a line, the line number is the id.

    Lines may end as on Windows, and a byte order mark may come first.

    Raises:
        FileNotFoundError: `path` is not a file.
        ValueError: The file is not UTF-8, or a line in it is empty.
    """
    if not isinstance(path, str | PathLike):
        raise ValueError(f"`path` must be a path. Received: {path!r}.")
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"No vocabulary at {path}.")
    check_no_pointer(path)
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


def limit_letters(word_counts: Mapping[str, int], limit: int) -> dict[str, int]:
    """Leaves out the words that hold a rare character.

    A large text holds thousands of characters of other scripts; a piece for
    each, and one for each inside a word, would fill a vocabulary.

    Args:
        word_counts: How often each clean word occurs.
        limit: How many characters stay, the most frequent ones; of those that
            occur as often, the ones that sort first.

    Returns:
        The counts of the words that are left.

    Raises:
        ValueError: `limit` is no integer >= 1.
    """
    _check_counts(word_counts)
    if not is_integer(limit) or limit < 1:
        raise ValueError(
            f"`limit` must be an integer >= 1. Received: {limit!r}."
        )
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
    _check_counts(word_counts)
    if not is_integer(vocab_size):
        raise ValueError(
            f"`vocab_size` must be an integer. Received: {vocab_size!r}."
        )
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
    # No text reaches the pieces of a word that is too long to be spelled.
    short = {w: n for w, n in word_counts.items() if len(w) <= WORD_LIMIT}
    # The trainer reserves room for every piece that it is asked for. Each
    # merge shortens a word, so that one of n letters gives at most n - 1.
    most = len(start) + sum(len(word) - 1 for word in short)
    trainer = trainers.WordPieceTrainer(
        vocab_size=min(vocab_size, most),
        special_tokens=start,
        show_progress=False,
    )
    rust.train_from_iterator(_repeat(short), trainer)
    ids = rust.get_vocab()
    if len(ids) < vocab_size:
        warnings.warn(
            f"The text gives {len(ids)} pieces, not the {vocab_size} of "
            "`vocab_size`.",
            stacklevel=3,
        )
    return sorted(ids, key=ids.__getitem__)


def _check_counts(word_counts: Mapping[str, int]) -> None:
    """Refuses what does not count words."""
    if not isinstance(word_counts, Mapping):
        raise ValueError(
            "`word_counts` must be a dict of words and how often they occur. "
            f"Received: {type(word_counts).__name__}."
        )


def _repeat(word_counts: Mapping[str, int]) -> Iterator[str]:
    """Writes the words out again, as often as they occur."""
    for word, count in Counter(word_counts).items():
        for done in range(0, count, REPEATS):
            yield " ".join([word] * min(REPEATS, count - done))
