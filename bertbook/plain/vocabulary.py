"""A vocabulary from counted words: join the pair of pieces seen most often.

Differences: the rule is that of BPE (Sennrich et al., 2016). How Google trained
its vocabularies was never published.
"""

from collections import Counter

from .tokenizer import SPECIAL, clean, split_words


def count_words(lines):
    """Returns how often each clean word occurs in some lines of text."""
    counts = Counter()
    for line in lines:
        for word in split_words(clean(line)):
            counts["".join(character for character, _ in word)] += 1
    return counts


def spell(word):
    """Spells a word with its characters: `cat` is `c ##a ##t`."""
    return [word[0], *("##" + character for character in word[1:])]


def count_pairs(spellings, counts):
    """Counts neighboring pieces over all words, each as often as it occurs.

    Args: `spellings`, word -> list of pieces; `counts`, word -> int.
    """
    pairs = Counter()
    for word, pieces in spellings.items():
        for pair in zip(pieces, pieces[1:], strict=False):
            pairs[pair] += counts[word]
    return pairs


def merge_pair(pieces, pair):
    """Joins every occurrence of a pair in a list of pieces, left to right."""
    merged, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            merged.append(pieces[i] + pieces[i + 1].removeprefix("##"))
            i += 2
        else:
            merged.append(pieces[i])
            i += 1
    return merged


def train_vocabulary(counts, size):
    """Returns a list of pieces: special tokens, characters, then merges.

    Of pairs that are seen equally often the one that sorts first is joined.
    The list is shorter than `size` where the words give no more pieces.
    """
    spellings = {word: spell(word) for word in counts}
    characters = {piece for pieces in spellings.values() for piece in pieces}
    vocabulary = dict.fromkeys([*SPECIAL, *sorted(characters)])
    while len(vocabulary) < size:
        pairs = count_pairs(spellings, counts)
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        vocabulary[best[0] + best[1].removeprefix("##")] = None
        for word, pieces in spellings.items():
            spellings[word] = merge_pair(pieces, best)
    return list(vocabulary)
