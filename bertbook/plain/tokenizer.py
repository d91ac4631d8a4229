"""Texts to ids: clean, split into words, match the longest pieces.

Differences: Chinese characters, which Google's code makes words of their own,
stay together here.
"""

import re
import string
import unicodedata

import numpy as np

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BATCH = ["input_ids", "token_type_ids", "attention_mask"]


def clean(text):
    """Lower-cases a text and drops accents and control characters.

    Returns a list of (character, index): each with its place in `text`.
    """
    characters = []
    for index, character in enumerate(text):
        hidden = unicodedata.category(character) in ("Cc", "Cf", "Co")
        if character == "\ufffd" or (hidden and character not in "\t\n\r"):
            continue
        for part in unicodedata.normalize("NFD", character):
            if unicodedata.category(part) != "Mn":  # a mark, such as an accent
                characters += [(lower, index) for lower in part.lower()]
    return characters


def is_punctuation(character):
    """Returns whether a character is a word of its own."""
    category = unicodedata.category(character)
    return character in string.punctuation or category.startswith("P")


def split_words(characters):
    """Cuts (character, index) pairs at white space and around punctuation.

    Returns a list of words, each a list of such pairs.
    """
    words = [[]]
    for character, index in characters:
        if character.isspace():
            words.append([])
        elif is_punctuation(character):
            words += [[(character, index)], []]
        else:
            words[-1].append((character, index))
    return [word for word in words if word]


def match_longest(word, vocabulary):
    """Spells a word, a string, with the longest pieces, from left to right.

    Returns a list of pieces; ["[UNK]"] where the word cannot be spelled or has
    more than 100 characters.
    """
    if len(word) > 100:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


def tokenize(text, vocabulary):
    """Cuts a text into pieces; special tokens stay whole.

    Returns a list of (piece, start, end, word): the place of the piece in
    `text`, and the number of its word.
    """
    pieces, number, offset = [], 0, 0
    for part in re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text):
        if part in SPECIAL:
            pieces.append((part, offset, offset + len(part), number))
            number += 1
        for word in [] if part in SPECIAL else split_words(clean(part)):
            spelled, first = "".join(character for character, _ in word), 0
            for piece in match_longest(spelled, vocabulary):
                size = len(piece.removeprefix("##"))
                last = len(word) if piece == "[UNK]" else first + size
                start, end = word[first][1], word[last - 1][1] + 1
                pieces.append((piece, offset + start, offset + end, number))
                first = last
            number += 1
        offset += len(part)
    return pieces


class Tokenizer:
    """Turns texts into ids with a vocabulary, a list of pieces."""

    def __init__(self, vocabulary):
        self.pieces = list(vocabulary)
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}

    def encode(self, text):
        """Returns the ids of a text, without [CLS] and [SEP]."""
        return [self.ids[piece] for piece, *_ in tokenize(text, self.ids)]

    def pad(self, rows, length=None):
        """Returns a batch of rows, each a pair of ids and segments.

        All have the length that is given, or that of the longest.
        """
        shape = len(rows), length or max(len(ids) for ids, _ in rows)
        batch = {name: np.zeros(shape, "int32") for name in BATCH}
        batch["input_ids"][:] = self.ids["[PAD]"]
        for i, (ids, segments) in enumerate(rows):
            batch["input_ids"][i, : len(ids)] = ids
            batch["token_type_ids"][i, : len(ids)] = segments
            batch["attention_mask"][i, : len(ids)] = 1
        return batch

    def __call__(self, texts, pairs=None, max_length=None):
        """Returns `input_ids`, `token_type_ids`, `attention_mask`, `(B, S)`.

        S is the length of the longest row, or `max_length`: shorter rows are
        filled up, and a text that does not fit loses its end, the longer one
        of a pair first.
        """
        cls, sep = self.ids["[CLS]"], self.ids["[SEP]"]
        rows = []
        for i, text in enumerate(texts):
            first = self.encode(text)
            second = [] if pairs is None else self.encode(pairs[i])
            room = max_length and max_length - (2 if pairs is None else 3)
            both = sorted((first, second), key=len)
            while max_length and len(first) + len(second) > room:
                max(both, key=len).pop()
            first = [cls, *first, sep]
            second = [] if pairs is None else [*second, sep]
            segments = [0] * len(first) + [1] * len(second)
            rows.append((first + second, segments))
        return self.pad(rows, max_length)
