"""Questions made unanswerable by one changed word, for mini-squad.

SQuAD 2.0's unanswerable questions look answerable: Rajpurkar et al. (2018),
table 2, find names exchanged, antonyms and negations among them. Here the same
is done by rule to questions of SQuAD 1.1.
"""

import re
from collections.abc import Callable, Iterator

import numpy as np

ANTONYMS = """
above below, allowed forbidden, before after, begin end, began ended, best worst
common rare, decrease increase, decreased increased, earliest latest, early late
east west, eastern western, external internal, first last, former latter
good bad, highest lowest, high low, large small, largest smallest,
long short, longest shortest, lose win, lost won, major minor, male female
many few, maximum minimum, men women, more less, most least, north south
northern southern, oldest youngest, old new, positive negative, public private
rich poor, same different, start stop, started stopped, strong weak
support oppose, upper lower
"""
PAIRS = [pair.split() for pair in re.split(r"[,\n]", ANTONYMS) if pair.strip()]
OPPOSITES = dict(PAIRS) | {second: first for first, second in PAIRS}
NUMBER = re.compile(r"\b\d[\d,.]*\b")
# Words with capitals, but for the first word of a text.
NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: (?:of )?[A-Z][\w'-]+)*")
WORD = re.compile(r"\w+")
VERB = re.compile(r"\b(is|was|are|were|did|does|do|can|could|will|would|has)\b")
DENIED = 0.1  # share of the questions that are denied, where they can be


def mislead(
    question: str, passage: str, answer: str, random: np.random.Generator
) -> str | None:
    """Changes a word of a question so that its passage has no answer to it.

    Returns:
        The changed question; None where no rule applies.
    """
    if random.random() < DENIED and (denied := deny(question)):
        return denied
    rules: list[Callable[..., Iterator[str]]] = [
        exchange_numbers,
        exchange_names,
        exchange_antonyms,
    ]
    for rule in random.permutation(np.array(rules, dtype=object)):
        found = list(rule(question, passage, answer))
        if found:
            return found[random.integers(len(found))]
    return None


def exchange_numbers(question, passage, answer):
    """Yields a question with other numbers of its passage."""
    yield from exchange(NUMBER, question, passage, answer)


def exchange_names(question, passage, answer):
    """Yields a question with other names of its passage."""
    yield from exchange(NAME, question, passage, answer)


def exchange(pattern, question, passage, answer):
    """Yields a question with one match exchanged for one of its passage."""
    others = sorted(
        text
        for text in set(pattern.findall(passage))
        if text not in question and text not in answer and answer not in text
    )
    for match in pattern.finditer(question):
        for other in others:
            yield replace(question, match, other)


def exchange_antonyms(question, _passage, _answer):
    """Yields a question with one word exchanged for its opposite."""
    for match in WORD.finditer(question):
        if match.group() in OPPOSITES:
            yield replace(question, match, OPPOSITES[match.group()])


def deny(question):
    """Returns a question with a "not" behind its verb, None without one."""
    match = VERB.search(question)
    return match and replace(question, match, f"{match.group()} not")


def replace(text, match, other):
    """Returns a text with another text in place of a match."""
    return text[: match.start()] + other + text[match.end() :]
