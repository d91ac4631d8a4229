"""What a vocabulary says of itself: its case, and pieces that no text reaches.

Differences: Google's code is told the case of a vocabulary; here the pieces
tell it where no file does.
"""

import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from bertbook.text import wordpiece
from bertbook.text.wordpiece import CONTINUATION

MARKUP = (("[", "]"), ("<", ">"))  # around pieces that stand for something else
STRAY_ACCENTS = 0.001  # of the pieces, that a stripped vocabulary may have
LEAST_CAPITALIZED = 0.02  # share of capitalized words in a cased vocabulary
LEAST_CAPITALS = 0.5  # the same with words all in capitals, such as k-mers
MOST_UNREACHED = 0.002  # share of pieces; published vocabularies are below it
FEW_PIECES = 1_000  # a list of words so short need not hold letters
A_HUNDRED = 100  # so many pieces are no toy: out of reach, they are refused
EXAMPLES = 5
LONGEST_SHOWN = 30  # characters of an example
TWO_WORDS = "white space separates words"


def guess_lowercase(pieces: Sequence[str]) -> tuple[bool, str]:
    """Guesses from its pieces whether a vocabulary is uncased.

    A cased vocabulary is full of capitalized words. An uncased one may hold
    some capitals that no text reaches or that a program puts in: `<S>`,
    `[ENT`, `xxMAJ`, `URL`.

    Args:
        pieces: The pieces; those in brackets do not count.

    Returns:
        Whether it is uncased, and the reason in words.
    """
    words = [w for w in map(_body, ordinary(pieces)) if w.lower() != w.upper()]
    words = [w for w in words if w.isalpha() or len(w) == 1]
    capitals = [w for w in words if w[0] != w[0].lower()]
    capitalized = [w for w in capitals if len(w) == 1 or w != w.upper()]
    cased = bool(words) and (
        len(capitalized) >= LEAST_CAPITALIZED * len(words)
        or len(capitals) >= LEAST_CAPITALS * len(words)
    )
    return not cased, (
        f"{len(capitalized):,} of {len(words):,} pieces with letters are "
        f"capitalized, {len(capitals) - len(capitalized):,} all in capitals"
    )


def guess_accents(pieces: Sequence[str]) -> bool:
    """Guesses whether texts were stripped of accents for a vocabulary.

    They were not where it holds pieces that stripping would change: umlauts,
    voiced kana, Korean syllables.
    """
    bodies = [_body(piece) for piece in ordinary(pieces)]
    changed = [
        body
        for body in bodies
        if not body.isascii()
        and _spell(body, False, True) != _spell(body, False, False)
    ]
    return len(changed) <= STRAY_ACCENTS * len(bodies)


def ordinary(pieces: Sequence[str]) -> Iterator[str]:
    """Yields the pieces that are not in square or pointed brackets."""
    for piece in pieces:
        if not any(piece[0] == a and piece[-1] == b for a, b in MARKUP):
            yield piece


def check_reach(
    pieces: Sequence[str],
    lowercase: bool,
    strip_accents: bool,
    split_cjk: bool,
    max_word_length: int,
    kept: Collection[str] = (),
) -> None:
    """Warns of pieces that no text can reach.

    Continuing pieces that are one punctuation mark or one CJK character do not
    count: published vocabularies are full of them.

    Args:
        pieces: The pieces of a vocabulary.
        lowercase: Whether texts are lower-cased.
        strip_accents: Whether accents are dropped.
        split_cjk: Whether each CJK character is a word of its own.
        max_word_length: A longer word, in characters, is [UNK].
        kept: Pieces that are kept whole wherever a text holds them.

    Raises:
        ValueError: Most of a hundred pieces or more are out of reach.
    """
    candidates = [piece for piece in ordinary(pieces) if piece not in kept]
    rules = lowercase, strip_accents, split_cjk
    unreached = defaultdict(list)
    for piece in candidates:
        why = _why_unreached(piece, *rules, max_word_length)
        if why:
            unreached[why].append(piece)
    if candidates and all(p.startswith(CONTINUATION) for p in candidates):
        unreached["no piece begins a word"] = candidates
    count = sum(map(len, unreached.values()))
    found = "; ".join(
        f"{len(examples):,} as {why}, such as "
        f"{', '.join(repr(e[:LONGEST_SHOWN]) for e in examples[:EXAMPLES])}"
        for why, examples in unreached.items()
    )
    if count > len(candidates) / 2 and len(candidates) >= A_HUNDRED:
        raise ValueError(
            "`vocabulary` must hold pieces that texts can reach. Is it of "
            "another `lowercase`, `strip_accents` or `split_cjk`? Received: "
            f"{len(candidates):,} pieces, out of reach {found}."
        )
    # Where one line of a file holds two words, no share of them is harmless.
    if TWO_WORDS in unreached or count > MOST_UNREACHED * len(candidates):
        warnings.warn(
            f"No text reaches {count:,} of {len(candidates):,} pieces: "
            f"{found}. Is the vocabulary of another `lowercase`, "
            "`strip_accents` or `split_cjk`?",
            stacklevel=3,
        )
    elif len(candidates) > FEW_PIECES and not any(map(_is_letter, candidates)):
        warnings.warn(
            f"None of {len(candidates):,} pieces is a single letter: every "
            "word that is not in the vocabulary becomes [UNK].",
            stacklevel=3,
        )


def _why_unreached(
    piece: str,
    lowercase: bool,
    strip_accents: bool,
    split_cjk: bool,
    max_word_length: int,
) -> str:
    """Returns why no text gives a piece, "" where one does."""
    body = _body(piece)
    if len(body) > max_word_length:
        return f"they are longer than `max_word_length={max_word_length}`"
    if body.isascii() and body.isalnum():
        if lowercase and body != body.lower():
            return "texts are lower-cased"
        return ""
    if len(body.split()) > 1:
        return TWO_WORDS
    if _spell(body, False, False) != body:
        return "white space and control characters are no part of a word"
    if strip_accents and _spell(body, False, True) != body:
        return "accents are dropped"
    if lowercase and _spell(body, True, False) != body:
        return "texts are lower-cased"
    if len(body) > 1 and any(map(wordpiece.is_punctuation, body)):
        return "a punctuation mark is a word of its own"
    if split_cjk and len(body) > 1 and any(map(wordpiece.is_cjk, body)):
        return "a CJK character is a word of its own"
    return ""


def _spell(body: str, lowercase: bool, strip_accents: bool) -> str:
    """Returns what cleaning leaves of a piece, without white space."""
    characters = wordpiece.clean(body, lowercase, strip_accents, False)
    return "".join(c for c, _ in characters if not c.isspace())


def _body(piece: str) -> str:
    """Returns a piece without the mark of a continuing one."""
    return piece.removeprefix(CONTINUATION) or piece


def _is_letter(piece: str) -> bool:
    return len(piece) == 1 and piece.isalpha()
