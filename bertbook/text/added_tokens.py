"""`AddedToken`: pieces that are kept whole in a raw text, and where they are.

The rules are those of the Rust library `tokenizers`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bertbook.checks import check_switch
from bertbook.text import wordpiece
from bertbook.text.wordpiece import Piece

# White space to the Rust library; `str.isspace` also takes \x1c to \x1f.
WHITE_SPACE = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
) | frozenset(map(chr, range(0x2000, 0x200B)))
# Letters in circles and squares, which are symbols to `unicodedata`.
CIRCLED = (
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
)
JOINERS = "\u200c\u200d"

# A text, where it starts and ends, and the token there, None between tokens.
Part = tuple[int, int, "AddedToken | None"]


@dataclass(frozen=True)
class AddedToken:
    """A piece that is looked for in a text before the text is cut into words.

    The names are those of `tokenizer.json`. As in the Rust library, a token
    that is not `normalized` is looked for first.

    Args:
        content: The piece.
        special: Whether `decode` leaves it out, and no masking hides it.
        normalized: Whether it is looked for in the clean text, so that an
            uncased model finds it whatever its case.
        single_word: Whether it counts only where no word touches it.
        lstrip: Whether it takes the white space before it.
        rstrip: Whether it takes the white space after it.

    Raises:
        ValueError: `content` is no string, or a switch is not True or False.
    """

    content: str
    special: bool = True
    normalized: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.content, str) or not self.content:
            raise ValueError(
                "`content` of an added token must be a string that is not "
                f"empty. Received: {self.content!r}."
            )
        for switch in SWITCHES:
            check_switch(getattr(self, switch), switch)

    @property
    def is_plain(self) -> bool:
        """Whether it is found wherever the raw text holds it."""
        flags = self.normalized, self.single_word, self.lstrip, self.rstrip
        return not any(flags)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as the files of Hugging Face have them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


SWITCHES = tuple(f.name for f in fields(AddedToken) if f.name != "content")


def checked_tokens(
    added_tokens: Iterable[Any], ids: Mapping[str, int]
) -> list[AddedToken]:
    """Returns added tokens, each once; a string stands for a special one.

    Args:
        added_tokens: Strings or `AddedToken`s.
        ids: The ids of the vocabulary.

    Raises:
        ValueError: It is no list of pieces of the vocabulary.
    """
    is_list = isinstance(added_tokens, Iterable)
    if is_list and not isinstance(added_tokens, str | bytes | Mapping):
        tokens = [_as_token(token) for token in added_tokens]
        if all(token is not None and token.content in ids for token in tokens):
            # Where one is given twice, the last word on it counts.
            return list({t.content: t for t in tokens if t}.values())
    raise ValueError(
        "`added_tokens` must be a list of pieces of `vocabulary`. "
        f"Received: {added_tokens!r}."
    )


def _as_token(token: Any) -> AddedToken | None:
    """Returns an added token; None for what is neither a token nor a name."""
    if isinstance(token, AddedToken):
        return token
    is_name = isinstance(token, str) and token
    return AddedToken(token) if is_name else None


def without_doubles(
    tokens: Iterable[AddedToken], *rules: bool
) -> list[AddedToken]:
    """Leaves out tokens that look like an earlier one in the clean text.

    The Rust library would choose one of them at random.

    Args:
        tokens: Added tokens.
        *rules: Of `wordpiece.clean`: whether to lower-case, to drop accents,
            and to split CJK characters.
    """
    found: dict[tuple[bool, str], AddedToken] = {}
    for token in tokens:
        spelling = token.content
        if token.normalized:
            spelling = _join(wordpiece.clean(spelling, *rules))
        found.setdefault((token.normalized, spelling), token)
    return list(found.values())


def cut(
    text: str,
    tokens: Sequence[AddedToken],
    vocabulary: Mapping[str, int],
    *,
    lowercase: bool,
    strip_accents: bool,
    split_cjk: bool,
    max_word_length: int,
) -> Iterator[tuple[Piece, int]]:
    """Cuts a text as `wordpiece.tokenize` does, around added tokens.

    Args:
        text: The raw text.
        tokens: The added tokens, `without_doubles`.
        vocabulary: The ids of the pieces.
        lowercase: Whether to lower-case.
        strip_accents: Whether to drop accents.
        split_cjk: Whether each CJK character is a word of its own.
        max_word_length: A longer word, in characters, is [UNK].

    Yields:
        The pieces and their ids. The text of an added token is what stands
        in its place, with the white space that it takes.
    """
    rules = lowercase, strip_accents, split_cjk
    raw = [(t.content, t) for t in tokens if not t.normalized]
    clean = [
        (spelling, token)
        for token in tokens
        if token.normalized
        and (spelling := _join(wordpiece.clean(token.content, *rules)))
    ]
    word = 0
    for start, end, token in split_at(text, raw):
        if token is not None:
            piece = Piece(text[start:end], start, end, word)
            yield piece, vocabulary[token.content]
            word += 1
            continue
        characters = wordpiece.clean(text[start:end], *rules, start)
        cleaned = _join(characters)
        for first, last, token in split_at(cleaned, clean):
            if token is not None:
                places = characters[first][1], characters[last - 1][1] + 1
                piece = Piece(cleaned[first:last], *places, word)
                yield piece, vocabulary[token.content]
                word += 1
                continue
            pieces = wordpiece.tokenize(
                cleaned[first:last],
                vocabulary,
                lowercase=False,
                split_cjk=False,
                max_word_length=max_word_length,
            )
            for piece in pieces:
                begins = characters[first + piece.start][1]
                ends = characters[first + piece.end - 1][1] + 1
                number = word + piece.word
                yield (
                    Piece(piece.text, begins, ends, number),
                    vocabulary[piece.text],
                )
            word += pieces[-1].word + 1 if pieces else 0


def split_at(
    text: str, patterns: Sequence[tuple[str, AddedToken]]
) -> Iterator[Part]:
    """Yields the tokens in a text and what is between them.

    Args:
        text: A text, raw or clean.
        patterns: How each token looks there; of those that start at the same
            place the longest counts, of equal ones the first.
    """
    tokens: dict[str, AddedToken] = {}
    for spelling, token in patterns:
        tokens.setdefault(spelling, token)
    longest_first = sorted(tokens, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first)) or r"(?!)"
    done = 0
    for match in re.finditer(pattern, text):
        token = tokens[match.group()]
        start, end = match.span()
        if token.single_word and _touches_a_word(text, start, end):
            continue
        while token.lstrip and start > done and text[start - 1] in WHITE_SPACE:
            start -= 1
        while token.rstrip and text[end : end + 1] in WHITE_SPACE:
            end += 1
        if done < start:
            yield done, start, None
        yield start, end, token
        done = end
    if done < len(text):
        yield done, len(text), None


def _touches_a_word(text: str, start: int, end: int) -> bool:
    """Returns whether a word goes on before or after a part of a text."""
    around = text[max(start - 1, 0) : start] + text[end : end + 1]
    return any(map(_is_in_a_word, around))


def _is_in_a_word(character: str) -> bool:
    """Returns whether a character is a part of a word to the Rust library."""
    category = unicodedata.category(character)
    if category[0] in "LM" or category in ("Nd", "Nl", "Pc"):
        return True
    code = ord(character)
    circled = any(first <= code <= last for first, last in CIRCLED)
    return circled or character in JOINERS


def _join(characters: Iterable[tuple[str, int]]) -> str:
    """Returns the text of characters with their places."""
    return "".join(character for character, _ in characters)
