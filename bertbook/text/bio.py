"""BIO tags, the entities that they mark, and their places in a text.

B- begins an entity, I- continues it, O is outside of any.

Differences: the paper does not say how it reads tags that break the rules. By
default they are read as `conlleval`, the standard script, reads them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bertbook.checks import check_text, checked_list, is_integer

WORD = re.compile(r"[^\W_]+")
APOSTROPHES = ("'", "’")
INNER_MARKS = "-.'’/&@_"  # join two words that touch them: U.S, O'Hara, A/B
NUMBER_MARKS = ",:"  # join two numbers: 1,000 and 10:30


class Entity(NamedTuple):
    """An entity: its type, its first word and the one after its last."""

    type: str
    start: int
    stop: int


MOST_PIECES_OF_A_CHARACTER = 3  # of a Korean syllable, decomposed


def split_tag(tag: str, place: int = 0) -> tuple[str, str]:
    """Returns B, I or O, and the type of the entity.

    Raises:
        ValueError: The tag is not BIO; `place` tells which one.

    >>> split_tag("B-creative-work")
    ('B', 'creative-work')
    """
    prefix, _, kind = str(tag).partition("-")
    if tag != "O" and not (prefix in ("B", "I") and kind):
        raise ValueError(
            f"`tags[{place}]` must be O, B-TYPE or I-TYPE. Received: {tag!r}."
        )
    return prefix, kind


def repair_bio(tags: Sequence[str]) -> list[str]:
    """Turns each I- that continues nothing into a B-.

    Raises:
        ValueError: A tag is not BIO.

    >>> repair_bio(["I-PER", "I-PER", "O", "B-LOC", "I-ORG"])
    ['B-PER', 'I-PER', 'O', 'B-LOC', 'B-ORG']
    """
    repaired, previous = [], ""
    for place, tag in enumerate(tags):
        prefix, kind = split_tag(tag, place)
        is_start = prefix == "I" and kind != previous
        repaired.append(f"B-{kind}" if is_start else tag)
        previous = kind
    return repaired


def find_entities(tags: Sequence[str], strict: bool = False) -> list[Entity]:
    """Reads the entities of one sentence.

    Source: Tjong Kim Sang and De Meulder (2003), `conlleval`: an I- that
    continues nothing begins an entity.

    Args:
        tags: The tag of each word, W.
        strict: Whether such an I- belongs to no entity instead.

    Raises:
        ValueError: A tag is not BIO.

    >>> find_entities(["B-PER", "I-PER", "I-LOC"])
    [Entity(type='PER', start=0, stop=2), Entity(type='LOC', start=2, stop=3)]
    """
    entities: list[Entity] = []
    open_type = ""
    for place, tag in enumerate(tags):
        prefix, kind = split_tag(tag, place)
        if prefix == "I" and kind == open_type:
            entities[-1] = entities[-1]._replace(stop=place + 1)
        elif prefix == "B" or (prefix == "I" and not strict):
            entities.append(Entity(kind, place, place + 1))
            open_type = kind
        else:
            open_type = ""
    return entities


def other_scheme(tag: object) -> str:
    """Returns advice for a tag of a scheme that is not read, else "".

    >>> other_scheme("B-PER")
    ''
    """
    if str(tag)[:2] not in ("S-", "U-", "E-", "L-", "M-"):
        return ""
    return (
        "; the schemes IOBES and BILOU are not read: write S- and U- as B-, "
        "the others as I-"
    )


def place_entities(
    text: str,
    offsets: Sequence[tuple[int, int]],
    entities: Sequence[Entity],
    probabilities: Sequence[float] | None = None,
) -> list[dict[str, Any]]:
    """Returns entities with their characters in the raw text.

    Args:
        text: The raw text.
        offsets: Start and end of each word, W, from `find_words`.
        entities: What `find_entities` read from the tags of these words.
        probabilities: Of the tags; the score is their mean over the words.

    Returns:
        Dicts of `text`, `type`, `start`, `end` and, where there are
        probabilities, `score`.

    Raises:
        ValueError: An entity ends after the last word, or an argument is
            something else.
    """
    check_text(text, "text")
    words = len(checked_list(offsets, "offsets"))
    for entity in checked_list(entities, "entities"):
        if not isinstance(entity, Entity):
            raise ValueError(
                f"`entities` must hold `Entity`s. Received: {entity!r}."
            )
    if any(entity.stop > words for entity in entities):
        raise ValueError(
            "`entities` must lie within the words of `offsets`, "
            f"{words}. Received: {entities}."
        )
    spans = []
    for kind, first, stop in entities:
        start, end = int(offsets[first][0]), int(offsets[stop - 1][1])
        entity = {
            "text": text[start:end], "type": kind, "start": start, "end": end
        }  # fmt: skip
        if probabilities is not None:
            entity["score"] = float(np.mean(probabilities[first:stop]))
        spans.append(entity)
    return spans


def find_words(
    tokenizer: Any, text: str, most_pieces: int | None = None
) -> list[tuple[int, int]]:
    """Cuts a raw text into words, as sets with tags do.

    The tokenizer cuts around every punctuation mark; what belongs together is
    joined again: U.S., O'Hara, 10:30, 's.

    Args:
        tokenizer: A `Tokenizer`.
        text: The raw text.
        most_pieces: Most pieces of a word. No longer one is joined, such as
            an address, and one that is longer by itself is cut; None has no
            limit.

    Returns:
        Start and end of each word in characters, a list.

    Raises:
        ValueError: An argument is something else.
    """
    if not hasattr(tokenizer, "encode") or isinstance(tokenizer, str):
        raise ValueError(
            "`tokenizer` must be a `Tokenizer`. Received: "
            f"{type(tokenizer).__name__}."
        )
    if most_pieces is not None and not is_integer(most_pieces):
        raise ValueError(
            "`most_pieces` must be an integer, or None. Received: "
            f"{most_pieces!r}."
        )
    encoding = tokenizer.encode(text)
    spans: dict[int, tuple[int, int]] = {}
    pieces = Counter(word for word in encoding.word_ids if word is not None)
    for word, (start, end) in zip(
        encoding.word_ids, encoding.offsets, strict=True
    ):
        if word is not None:
            spans[word] = spans.get(word, (start, end))[0], end
    words: list[tuple[int, int]] = []
    size = 0  # pieces of the last word
    for word, (start, end) in spans.items():
        fits = most_pieces is None or size + pieces[word] <= most_pieces
        if words and fits and _belongs(text, words[-1], start, end):
            words[-1] = words[-1][0], end
            size += pieces[word]
        else:
            most = end - start
            if most_pieces is not None and pieces[word] > most_pieces:
                most = max(1, most_pieces // MOST_PIECES_OF_A_CHARACTER)
            cuts = range(start, end, most)
            words += [(cut, min(cut + most, end)) for cut in cuts]
            size = pieces[word]
    return words


def _belongs(text: str, word: tuple[int, int], start: int, end: int) -> bool:
    """Returns whether a part of a text continues the word before it."""
    part = text[start:end]
    # Not a copy of the whole word, which may be as long as the text.
    first, last = text[word[0]], text[word[1] - 1]
    is_one = word[1] - word[0] == 1
    if word[1] != start:  # a space lies between them
        return False
    if is_one and first in APOSTROPHES:
        return part.lower() == "s"
    if part == "." and last.isalpha() and text.find(".", *word) >= 0:
        return True  # the last period of U.S. or e.g.
    after = WORD.match(text, end)
    if part in tuple(NUMBER_MARKS):
        return last.isdigit() and text[end : end + 1].isdigit()
    if part in tuple(INNER_MARKS):
        clitic = part in APOSTROPHES and after and after[0].lower() == "s"
        return last.isalnum() and after is not None and not clitic
    inside = not is_one and last in INNER_MARKS + NUMBER_MARKS
    return inside and part[0].isalnum()
