"""`lower_capitals`: texts in capitals as a translator has learned to read.

A translator that keeps capitals has learned from sentences that hold few of
them: `house` is one piece of its vocabulary, and `HOUSE` five letters, of which
it can make nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

WORD = re.compile(r"[^\W\d_]+")
SENTENCE_END = re.compile(r"[.!?…][^\s\w]*\s")
PRONOUN = "I"  # in English a capital everywhere
LONGEST_ABBREVIATION = 3  # letters; `US` and `us` are different words


def lower_capitals(
    texts: Iterable[str], tokenizer: Any
) -> tuple[list[str], list[bool]]:
    """Spells texts and words in capitals as in normal text.

    In a text without a small letter every word is spelled anew, with a capital
    at the beginning of a sentence. In other texts only a word of at least four
    letters is, and only if the vocabulary has its new form. Names and
    abbreviations keep the capitals with which the vocabulary has them.

    Args:
        texts: The texts.
        tokenizer: The `Tokenizer` that will read them. For one that drops
            capitals itself the texts stay as they are.

    Returns:
        The texts, and for each whether it was in capitals only, and is not now.

    >>> from bertbook.text.tokenizer import Tokenizer
    >>> pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] l o s t ##e ##t sit Tom Oslo"
    >>> tokenizer = Tokenizer(pieces.split(), lowercase=False)
    >>> lower_capitals(["LET TOM SIT. I SIT.", "I sit in OSLO."], tokenizer)
    (['Let Tom sit. I sit.', 'I sit in Oslo.'], [True, False])
    """
    texts = list(texts)
    if tokenizer.lowercase:
        return texts, [False] * len(texts)
    places = {piece: i for i, piece in enumerate(tokenizer.vocabulary)}
    lowered = [_lower(text, places) for text in texts]
    pairs = zip(texts, lowered, strict=True)
    return lowered, [text.isupper() and text != new for text, new in pairs]


def _lower(text: str, places: Mapping[str, int]) -> str:
    """Returns a text with its capitals spelled as in normal text."""
    words = list(WORD.finditer(text))
    in_capitals = text.isupper()
    if in_capitals and all(len(word.group()) == 1 for word in words):
        return text  # such as `I`, or the letters of an abbreviation
    spell = _spell if in_capitals else _spell_emphasized
    spelled: list[str] = []
    end = 0
    for word in words:
        between = text[end : word.start()]
        begins = not spelled or SENTENCE_END.search(between) is not None
        spelled += [between, spell(word.group(), begins, places)]
        end = word.end()
    return "".join([*spelled, text[end:]])


def _spell(word: str, begins: bool, places: Mapping[str, int]) -> str:
    """Returns the form of a word that a text in normal spelling would have.

    Args:
        word: A word in capitals.
        begins: Whether it is the first of a sentence.
        places: The pieces of the vocabulary, with their ids.
    """
    small = word.lower()
    if word == PRONOUN or small[0] not in places:  # no such letter was learned
        return word
    # Frequent pieces come first: `tom` is there for `tomorrow`, long after
    # `Tom`. A capital may come a little earlier for the sentences it begins.
    ranks = {
        form: places[form] * (1 if form == small else 2)
        for form in (small, word.capitalize(), word)
        if form in places
    }
    best = min(ranks, key=ranks.__getitem__, default=small)
    return word.capitalize() if begins and best == small else best


def _spell_emphasized(
    word: str, begins: bool, places: Mapping[str, int]
) -> str:
    """Returns the form of a word of a text that is not in capitals only."""
    if len(word) <= LONGEST_ABBREVIATION or not word.isupper():
        return word
    new = _spell(word, begins, places)
    return new if new in places or new.lower() in places else word
