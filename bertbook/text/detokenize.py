"""Detokenizing: from tokens back to a text, spaces where they belong.

A tokenizer splits words from punctuation and forgets where spaces were. In
English and Spanish a few rules put them back. They cannot know everything: a
dash between spaces is taken for a hyphen.

Differences: none; the papers leave this step to the programs that score.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from bertbook.checks import check_text, checked_list, is_integer
from bertbook.text.wordpiece import CONTINUATION

CLOSING = frozenset(".,;:!?%)]}»”…")  # no space before them
OPENING = frozenset("¿¡([{«“")  # no space after them
JOINING = frozenset("'’-")  # no space around them between words
IN_NUMBERS = frozenset(".,:")  # no space around them between digits
QUOTE = '"'  # opens, closes, opens again


def spell(ids: Iterable[int], tokenizer: Any) -> str:
    """Returns the text of ids; special tokens are left out.

    Args:
        ids: The ids of one text.
        tokenizer: A `Tokenizer`.

    Raises:
        ValueError: An id is not in the vocabulary: it is of another model, or
            of a model whose table has more rows.
    """
    if not hasattr(tokenizer, "special_tokens"):
        raise ValueError(
            "`tokenizer` must be a `Tokenizer`. Received: "
            f"{type(tokenizer).__name__}."
        )
    numbers = checked_list(ids, "ids")
    pieces = (_piece(i, tokenizer.vocabulary) for i in numbers)
    ordinary = (
        piece for piece in pieces if piece not in tokenizer.special_tokens
    )
    return join_words(join_pieces(ordinary))


def _piece(number: int, vocabulary: Sequence[str]) -> str:
    """Returns the piece of an id."""
    if not is_integer(number) or not 0 <= number < len(vocabulary):
        raise ValueError(
            f"`ids` must hold integers in [0, {len(vocabulary)}), of which "
            f"the vocabulary has a piece. Received: {number}."
        )
    return vocabulary[number]


def join_pieces(pieces: Iterable[str]) -> list[str]:
    """Joins pieces to words and punctuation."""
    words: list[list[str]] = []
    for piece in _checked_texts(pieces, "pieces"):
        if piece.startswith(CONTINUATION) and words:
            words[-1].append(piece.removeprefix(CONTINUATION))
        else:
            words.append([piece])
    return ["".join(word) for word in words]


def join_words(words: Sequence[str]) -> str:
    """Joins words and punctuation to a text.

    >>> join_words(["¿", "Qué", "son", '"', "1", ",", "5", "m", '"', "?"])
    '¿Qué son "1,5 m"?'
    """
    words = _checked_texts(words, "words")
    text, in_quotes = "", False
    for place, word in enumerate(words):
        if place and not _stand_together(words, place, in_quotes):
            text += " "
        in_quotes ^= word == QUOTE
        text += word
    return text


def _checked_texts(texts: Iterable[str], name: str) -> list[str]:
    """Returns strings as a list; refuses anything else."""
    listed = checked_list(texts, name)
    for place, text in enumerate(listed):
        check_text(text, f"{name}[{place}]")
    return listed


def _stand_together(words: Sequence[str], place: int, in_quotes: bool) -> bool:
    """Returns whether there is no space before a word.

    Args:
        words: Words and punctuation.
        place: The number of the word, above 0.
        in_quotes: Whether a quote is open before it.
    """
    last, word = words[place - 1], words[place]
    if in_quotes and QUOTE in (last, word):
        return True
    if word in CLOSING or last in OPENING:
        return True
    if word in JOINING:
        return _is_word(words, place - 1) and _is_word(words, place + 1)
    if last in JOINING:
        return _is_word(words, place - 2) and _is_word(words, place)
    in_number = last in IN_NUMBERS and place > 1
    return in_number and (words[place - 2] + word).isdecimal()


def _is_word(words: Sequence[str], place: int) -> bool:
    """Returns whether there is a word, not punctuation, at a place."""
    return 0 <= place < len(words) and words[place][0].isalnum()
