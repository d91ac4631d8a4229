"""WordPiece in pure Python: clean, split, match the longest piece.

Every step keeps, beside each character, its index in the raw text. That is
where the offsets of the pieces come from.

Differences: Google's `tokenization.py` keeps characters of private use, starts
one range of CJK characters at U+2B820 and lower-cases whole words (so that a
Greek word ends in another sigma). We follow the Rust library `tokenizers`,
which removes the first, starts that range at U+2B920 and lower-cases one
character at a time. Google allows words of 200 characters, the Rust library
100: `max_word_length`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from bertbook.checks import check_text, checked_lines

CONTINUATION = "##"
HUGGING_FACE_WORD_LIMIT = 100
GOOGLE_WORD_LIMIT = 200
MOST_WORD_LENGTH = 1_000  # the time for a word grows with the cube of it

CJK_RANGES = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

# Characters at which `str.split` splits, though cleaning removes them.
NO_SPACE = dict.fromkeys(map(ord, "\v\f\x1c\x1d\x1e\x1f\x85"))

# A character of the cleaned text and the index it had in the raw text.
Character = tuple[str, int]


class Piece(NamedTuple):
    """A word piece, its place in the raw text, and the number of its word."""

    text: str
    start: int
    end: int
    word: int


def tokenize(
    text: str,
    vocabulary: Collection[str],
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    split_cjk: bool = True,
    special_tokens: Collection[str] = (),
    unknown: str = "[UNK]",
    max_word_length: int = HUGGING_FACE_WORD_LIMIT,
) -> list[Piece]:
    """Cuts a text into word pieces.

    Source: Devlin et al. (2019), section 3; `tokenization.py` of its code.

    Args:
        text: The raw text.
        vocabulary: The known pieces; continuing pieces start with `##`.
        lowercase: Whether to lower-case, as uncased models do.
        strip_accents: Whether to drop accents; None means "as `lowercase`".
        split_cjk: Whether each CJK character is a word of its own.
        special_tokens: Tokens that are kept whole where the raw text has them.
        unknown: The piece for a word that the vocabulary cannot spell.
        max_word_length: A longer word, in characters, is `unknown`.

    Returns:
        The pieces, in order.
    """
    if strip_accents is None:
        strip_accents = lowercase
    pieces: list[Piece] = []
    word_number = 0
    for start, part, is_special in split_special_tokens(text, special_tokens):
        if is_special:
            end = start + len(part)
            pieces.append(Piece(part, start, end, word_number))
            word_number += 1
            continue
        characters = clean(part, lowercase, strip_accents, split_cjk, start)
        for word in split_words(characters):
            spelling = "".join(character for character, _ in word)
            spans = match_longest(spelling, vocabulary, max_word_length)
            for piece, first, last in spans or [(unknown, 0, len(word))]:
                # The raw text may hold more characters than the clean word.
                start_of_piece = word[first][1]
                end_of_piece = word[last - 1][1] + 1
                pieces.append(
                    Piece(piece, start_of_piece, end_of_piece, word_number)
                )
            word_number += 1
    return pieces


def split_special_tokens(
    text: str, special_tokens: Collection[str]
) -> Iterator[tuple[int, str, bool]]:
    """Yields the parts of a text: start, part, and whether it is special."""
    check_text(text, "text")
    if not special_tokens:
        yield 0, text, False
        return
    longest_first = sorted(special_tokens, key=len, reverse=True)
    pattern = "|".join(re.escape(token) for token in longest_first)
    position = 0
    for match in re.finditer(pattern, text):
        if match.start() > position:
            yield position, text[position : match.start()], False
        yield match.start(), match.group(), True
        position = match.end()
    if position < len(text):
        yield position, text[position:], False


def clean(
    text: str,
    lowercase: bool = True,
    strip_accents: bool = True,
    split_cjk: bool = True,
    offset: int = 0,
) -> list[Character]:
    """Removes what the model never sees, keeping every character's index.

    Args:
        text: The raw text.
        lowercase: Whether to lower-case.
        strip_accents: Whether to decompose (NFD) and drop accents.
        split_cjk: Whether to put spaces around CJK characters.
        offset: Index of the first character in the whole text.

    Returns:
        The characters that remain, with their indices in the whole text.
    """
    characters = [
        (" " if character.isspace() else character, index)
        for index, character in enumerate(text, offset)
        if not is_control(character)
    ]
    if split_cjk:
        characters = list(isolate_cjk(characters))
    if strip_accents:
        characters = drop_accents(characters)
    if lowercase:
        characters = [
            (lower, index)
            for character, index in characters
            for lower in character.lower()
        ]
    return characters


def is_control(character: str) -> bool:
    """Returns whether cleaning removes a character."""
    if character in "\t\n\r":
        return False
    return character == "\ufffd" or (
        unicodedata.category(character) in ("Cc", "Cf", "Co")
    )


def is_cjk(character: str) -> bool:
    """Returns whether a character is written without spaces between words."""
    code = ord(character)
    return any(first <= code <= last for first, last in CJK_RANGES)


def is_punctuation(character: str) -> bool:
    """Returns whether a character stands alone: `$`, `+` and `~` included."""
    if character.isascii():
        return character.isprintable() and not (
            character.isalnum() or character == " "
        )
    return unicodedata.category(character).startswith("P")


def split_words(characters: Iterable[Character]) -> Iterator[list[Character]]:
    """Yields the words: cut at white space and around punctuation."""
    word: list[Character] = []
    for character, index in characters:
        if character.isspace() or is_punctuation(character):
            if word:
                yield word
            word = []
            if not character.isspace():
                yield [(character, index)]
        else:
            word.append((character, index))
    if word:
        yield word


def match_longest(
    word: str,
    vocabulary: Collection[str],
    max_word_length: int = HUGGING_FACE_WORD_LIMIT,
) -> list[tuple[str, int, int]] | None:
    """Spells a word with the longest pieces, from left to right.

    Args:
        word: A clean word.
        vocabulary: The known pieces; continuing pieces start with `##`.
        max_word_length: A longer word is not spelled at all.

    Returns:
        A list of (piece, start, end) within the word; None where no spelling
        is found, because then the whole word is unknown.
    """
    if len(word) > max_word_length:
        return None
    spans = []
    start = 0
    while start < len(word):
        prefix = CONTINUATION if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return None
        spans.append((prefix + word[start:end], start, end))
        start = end
    return spans


def count_words(lines: Iterable[str], lowercase: bool = True) -> Counter[str]:
    """Counts the clean words of a text, for training a vocabulary."""
    chunks: Counter[str] = Counter()
    for line in checked_lines(lines):
        chunks.update(line.translate(NO_SPACE).split())
    words: Counter[str] = Counter()
    for chunk, count in chunks.items():
        for word in split_words(clean(chunk, lowercase, lowercase)):
            words["".join(character for character, _ in word)] += count
    return words


def isolate_cjk(characters: Iterable[Character]) -> Iterator[Character]:
    """Yields the characters, with a space before and after each CJK one."""
    for character, index in characters:
        if is_cjk(character):
            yield from ((" ", index), (character, index), (" ", index))
        else:
            yield character, index


def drop_accents(characters: list[Character]) -> list[Character]:
    """Decomposes each character (NFD) and drops the marks that do not space.

    NFD also sorts neighboring marks. The sorted text keeps the indices in
    their old order.
    """
    if all(character.isascii() for character, _ in characters):
        return characters
    decomposed = [
        (part, number > 0)  # True: this part came out of the one before
        for character, _ in characters
        for number, part in enumerate(unicodedata.normalize("NFD", character))
    ]
    stripped = []
    source = -1
    for part, same_source in _sort_marks(decomposed):
        source += not same_source
        if unicodedata.category(part) != "Mn":
            stripped.append((part, characters[source][1]))
    return stripped


def _sort_marks(decomposed):
    """Puts runs of combining marks into canonical order."""
    result = []
    marks = []
    for part, same_source in decomposed:
        order = unicodedata.combining(part)
        if order:
            marks.append((order, part, same_source))
            continue
        marks.sort(key=lambda mark: mark[0])  # stable
        result.extend((mark, same) for _, mark, same in marks)
        marks = []
        result.append((part, same_source))
    marks.sort(key=lambda mark: mark[0])
    result.extend((mark, same) for _, mark, same in marks)
    return result
