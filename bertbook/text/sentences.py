"""`split_sentences`: paragraphs to sentences, by rule.

Differences: the paper does not say how its documents were split; Google's
generator takes one sentence a line. A "sentence" there is any run of text, so
that a wrong cut costs little.
"""

import re

from bertbook.checks import check_text

# Words before which a period ends no sentence, in lower case.
LISTED = (
    "mr mrs ms messrs dr prof rev hon st gen col maj capt lt sgt sen rep gov "
    "pres jr sr mt ft vs etc no vol pp p ch fig ed al cf viz e.g i.e u.s u.k "
    "jan feb mar apr jun jul aug sept sep oct nov dec"
)
ABBREVIATIONS = frozenset(LISTED.split())

# What ends a sentence: a mark, closing quotes and brackets, then space; the
# full-width marks of Chinese and Japanese need no space after them. `++` and
# the look behind keep a line of a million marks from taking hours.
SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s+"
    r"|[。！？]++[”’」』）]*+\s*"
)
LAST_WORD = re.compile(r"([^\s(\[\"'“‘]*)$")
OPENING = "\"'“‘«([—–-"


def split_sentences(paragraph: str) -> list[str]:
    """Cuts a paragraph into sentences; nothing but spaces is lost.

    A punctuation mark ends a sentence unless a lower-case letter follows, or
    the word before a period is an abbreviation or a single initial.

    Args:
        paragraph: Text on one line.

    >>> split_sentences('Mr. Reed saw it. "Go!" he said. It was 4.5 m long.')
    ['Mr. Reed saw it.', '"Go!" he said.', 'It was 4.5 m long.']
    """
    check_text(paragraph, "paragraph")
    sentences, start = [], 0
    for match in SENTENCE_END.finditer(paragraph):
        if _ends_here(paragraph, start, match):
            sentences.append(paragraph[start : match.end()].strip())
            start = match.end()
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_here(paragraph: str, start: int, match: re.Match[str]) -> bool:
    """Returns whether punctuation and the spaces after it end a sentence."""
    following = paragraph[match.end() : match.end() + 4].lstrip(OPENING)
    if following[:1].islower():
        return False
    if match.group().rstrip() != ".":
        return True
    before = paragraph[max(start, match.start() - 20) : match.start()]
    word = LAST_WORD.search(before).group(1)  # type: ignore[union-attr]
    is_initial = len(word) == 1 and word.isalpha() and word not in "IiAa"
    return not (is_initial or word.lower() in ABBREVIATIONS)
