"""`learn_merges` and `train_vocabulary`: a vocabulary trainer to read.

Differences: how Google trained its WordPiece vocabularies was never published.
The score here is a reconstruction from the papers. `vocabulary.train_pieces`
is the fast trainer; it counts pairs, as BPE does.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

CONTINUATION = "##"


def learn_merges(
    word_counts: Mapping[str, int], score: str = "wordpiece"
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of pieces to merge, best first, until none is left.

    Two rules for "best". `"bpe"` takes the pair that is seen most often.
    `"wordpiece"` divides that count by the counts of both parts, so that a
    pair wins whose parts are seldom seen apart. Equal scores go to the pair
    that sorts first, so that every run gives the same list.

    Source: Sennrich et al. (2016) for BPE. The code of WordPiece was never
    published: Schuster and Nakajima (2012) take the pair that raises the
    likelihood of the text most; the ratio here is the usual reconstruction.

    Args:
        word_counts: How often each word occurs.
        score: "wordpiece" or "bpe".

    Raises:
        ValueError: `score` is unknown.
    """
    if score not in ("wordpiece", "bpe"):
        raise ValueError(
            f'`score` must be "wordpiece" or "bpe". Received: {score!r}.'
        )
    spellings = {word: spell(word) for word in word_counts}
    while True:
        pieces, pairs = count_pieces_and_pairs(spellings, word_counts)
        if not pairs:
            return
        points = pairs
        if score == "wordpiece":
            points = {
                (left, right): count / (pieces[left] * pieces[right])
                for (left, right), count in pairs.items()
            }
        best = min(points, key=lambda pair: (-points[pair], pair))
        yield best
        for word, spelling in spellings.items():
            if best[0] in spelling:
                spellings[word] = merge_pair(spelling, best)


def train_vocabulary(
    word_counts: Mapping[str, int],
    vocab_size: int,
    score: str = "wordpiece",
    special_tokens: Sequence[str] = (),
) -> list[str]:
    """Trains a vocabulary, the readable way.

    Args:
        word_counts: How often each word occurs.
        vocab_size: How many pieces to return, special tokens included.
        score: "wordpiece" or "bpe", as in `learn_merges`.
        special_tokens: Tokens that come first.

    Returns:
        The pieces: special tokens, characters, then merges in their order.

    Raises:
        ValueError: `vocab_size` does not hold the characters of the words, or
            the words do not have that many pieces.
    """
    alphabet = {piece for word in word_counts for piece in spell(word)}
    vocabulary = dict.fromkeys([*special_tokens, *sorted(alphabet)])
    if len(vocabulary) > vocab_size:
        raise ValueError(
            "`vocab_size` must hold the special tokens and every character: "
            f"at least {len(vocabulary)}. Received: {vocab_size}."
        )
    for left, right in learn_merges(word_counts, score):
        if len(vocabulary) == vocab_size:
            break
        vocabulary[left + right.removeprefix(CONTINUATION)] = None
    if len(vocabulary) < vocab_size:
        raise ValueError(
            f"`vocab_size` must be at most {len(vocabulary)}, all that these "
            f"words can give. Received: {vocab_size}."
        )
    return list(vocabulary)


def spell(word: str) -> tuple[str, ...]:
    """Spells a word with its characters: `cat` is `c ##a ##t`."""
    return (word[0], *(CONTINUATION + letter for letter in word[1:]))


def merge_pair(
    spelling: tuple[str, ...], pair: tuple[str, str]
) -> tuple[str, ...]:
    """Joins every occurrence of a pair of pieces in a spelling."""
    merged: list[str] = []
    position = 0
    while position < len(spelling):
        if spelling[position : position + 2] == pair:
            merged.append(pair[0] + pair[1].removeprefix(CONTINUATION))
            position += 2
        else:
            merged.append(spelling[position])
            position += 1
    return tuple(merged)


def count_pieces_and_pairs(spellings, word_counts):
    """Counts single pieces and neighbors over all words."""
    pieces: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for word, spelling in spellings.items():
        count = word_counts[word]
        for piece in spelling:
            pieces[piece] += count
        for pair in zip(spelling, spelling[1:], strict=False):
            pairs[pair] += count
    return pieces, pairs
