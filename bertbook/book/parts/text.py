"""Text: `tokenizer.py` and `vocabulary.py` of `mybert`."""

from functools import partial
from typing import Any

from bertbook.book.parts.part import Calls, Part


def pairs_of(text: str, first: int) -> list[tuple[str, int]]:
    """Returns (character, index) pairs as `clean` does, of a longer text."""
    return [(character, index) for index, character in enumerate(text, first)]


SPLIT_WORDS = Part(
    "tokenizer",
    "10",
    arguments=tuple(
        (pairs_of(text, 3),)
        for text in (
            "no, it is!",
            "two  spaces\nand\ta tab ",
            "(a) don't... £5 $5 “so” ¿x—y… 「z」",
            "a\u00a0b\u2003c\r\nd",
            " ",
            "end",
        )
    ),
    mistakes=(
        (
            "words += [[(character, index)], []]",
            "words.append([])",
            "punctuation is lost; each mark is a word of its own",
        ),
        (
            "elif is_punctuation(character):",
            "elif False:",
            "punctuation stays with the word; each mark is a word of its own",
        ),
        (
            "words += [[(character, index)], []]",
            "words += [[(character, index)]]",
            "what follows a punctuation mark sticks to it",
        ),
        (
            "words += [[(character, index)], []]",
            "if len(words) > 1 and not words[-1] "
            "and is_punctuation(words[-2][-1][0]) "
            "and words[-2][-1][1] == index - 1:\n"
            "                words[-2].append((character, index))\n"
            "            else:\n"
            "                words += [[(character, index)], []]",
            "marks in a row, such as `...`, are one word each",
        ),
        (
            "[word for word in words if word]",
            "words",
            "there are empty words, as where two spaces follow each other",
        ),
        (
            "words.append([])",
            "words += [[(character, index)], []]",
            "white space is a word of its own; it is left out",
        ),
        (
            "words.append([])",
            "words[-1].append((character, index)); words.append([])",
            "white space is kept at the end of a word; it is left out",
        ),
        (
            "character.isspace()",
            'character == " "',
            "tabs and line breaks are white space too: `character.isspace()`",
        ),
        (
            "character.isspace()",
            'character in " \\t\\n\\r"',
            "there are more kinds of white space, such as the no-break space: "
            "`character.isspace()`",
        ),
        (
            "is_punctuation(character)",
            "character in string.punctuation",
            "`string.punctuation` lacks marks such as “ and ”: "
            "`is_punctuation` knows them",
        ),
        (
            "is_punctuation(character)",
            "not character.isalnum()",
            "`£` is no punctuation here: ask `is_punctuation`",
        ),
        (
            "[word for word in words if word]",
            "[word for word in words[:-1] if word]",
            "the last word is lost: nothing follows it that would end it",
        ),
        (
            "[word for word in words if word]",
            '["".join(c for c, _ in word) for word in words if word]',
            "the words are strings; keep the (character, index) pairs",
        ),
        (
            "[word for word in words if word]",
            "[[c for c, _ in word] for word in words if word]",
            "the indices are lost; keep the (character, index) pairs",
        ),
        (
            "for character, index in characters:",
            "for index, (character, _) in enumerate(characters):",
            "the indices are counted anew; keep those of the pairs",
        ),
    ),
)

TOY = {
    "play",
    "##grounds",
    "##ing",
    "##in",
    "##g",
    "pl",
    "##ay",
    "a",
    "ab",
    "##bc",
    "x",
}
LIMIT = {"a", "##a"}
BACKTRACKING = """\
def spell(rest, prefix):
        for end in range(len(rest), 0, -1):
            if prefix + rest[:end] in vocabulary:
                found = spell(rest[end:], "##") if rest[end:] else []
                if found is not None:
                    return [prefix + rest[:end], *found]
        return None

    return spell(word, "") or ["[UNK]"]
    pieces, start = [], 0
"""
MATCH_LONGEST = Part(
    "tokenizer",
    "10",
    arguments=(
        *((word, TOY) for word in ("playing", "play", "a", "aing", "abc")),
        *((word, TOY) for word in ("playzing", "zplay", "ing", "playgrounds")),
        ("playing", TOY - {"play"}),
        *(("a" * length, LIMIT) for length in (100, 101)),
    ),
    mistakes=(
        (
            "range(len(word), start, -1)",
            "range(start + 1, len(word) + 1)",
            "the shortest piece that fits comes first; it must be the longest",
        ),
        (
            '("##" if start else "") + ',
            "",
            "a piece inside a word begins with ##",
        ),
        (
            '("##" if start else "") + ',
            '"##" + ',
            "the first piece of a word has no ##",
        ),
        (
            "pieces.append(piece)",
            "pieces.append(word[start:end])",
            "the pieces that are returned must keep their ##",
        ),
        (
            'else:\n            return ["[UNK]"]\n',
            'else:\n            return [*pieces, "[UNK]"]\n',
            "a word that cannot be spelled whole is one [UNK], without the "
            "pieces before it",
        ),
        (
            'else:\n            return ["[UNK]"]\n',
            "else:\n            return pieces\n",
            "a word that cannot be spelled whole is [UNK], not the pieces "
            "that were found",
        ),
        (
            'else:\n            return ["[UNK]"]\n',
            "else:\n            return []\n",
            "a word that cannot be spelled is [UNK], not nothing",
        ),
        (
            'else:\n            return ["[UNK]"]\n',
            'else:\n            piece, end = "[UNK]", start + 1\n',
            "only the character without a piece becomes [UNK]; it must be the "
            "whole word",
        ),
        (
            'else:\n            return ["[UNK]"]\n',
            "else:\n            start += 1\n            continue\n",
            "a character without a piece is skipped; the whole word must be "
            "[UNK]",
        ),
        (
            "pieces, start = [], 0\n",
            BACKTRACKING,
            "it goes back where it is stuck; the rule never does, so `abc` of "
            "`a`, `ab` and `##bc` is [UNK]",
        ),
        (
            "range(len(word), start, -1)",
            "range(len(word) - 1, start, -1)",
            "the piece that reaches the end of the word is never tried",
        ),
        (
            "range(len(word), start, -1)",
            "range(len(word), start + 1, -1)",
            "pieces of a single character are never tried",
        ),
        (
            "len(word) > 100",
            "False",
            "a word of more than 100 characters is [UNK]",
        ),
        (
            "len(word) > 100",
            "len(word) >= 100",
            "a word of 100 characters is still spelled; only longer ones are "
            "[UNK]",
        ),
    ),
)

# In no usual order: the ids of special tokens are looked up.
PIECES = [*"abc", "[SEP]", "[MASK]", "##c", "[PAD]", "[CLS]", *"de", "[UNK]"]


def _batches(tokenizer_class: Any) -> Calls:
    """Calls a tokenizer in the ways that the book does."""
    one, two = ["a b c", "a", "c c c c"], ["d", "e e e e e e", ""]
    arguments = {
        "two texts": (one[:2],),
        "two pairs": (one[:2], two[:2]),
        "`max_length` of 4": (["c c c c c c", "a"], None, 4),
        "`max_length` of 8": (["a"], None, 8),
        "pairs, `max_length` of 6": (one, two, 6),
        "pairs, `max_length` of 7": (["c c c c c"], ["d d d d d d"], 7),
        "a long second text": (["a"], ["d d d d d d"], 6),
        "no room for a piece": (["a"], ["d"], 3),
        "a pair with nothing in it": (["a"], [""]),
    }

    def batch(*given):
        found = tokenizer_class(PIECES)(*given)
        for name, array in found.items() if isinstance(found, dict) else ():
            if not hasattr(array, "shape"):
                raise TypeError(f"`{name}` must be an array, `(B, S)`")
            if array.dtype.kind not in "iu":
                raise TypeError(f"`{name}` must hold integers")
        return found

    return {label: partial(batch, *a) for label, a in arguments.items()}


TOKENIZER = Part(
    "tokenizer",
    "10",
    attempt=_batches,
    mistakes=(
        (
            "[cls, *first, sep]",
            "[*first, sep]",
            "[CLS] is missing; it opens every row",
        ),
        (
            "[cls, *first, sep]",
            "[cls, *first]",
            "the first text does not end in [SEP]",
        ),
        (
            "[*second, sep]",
            "second",
            "the second text does not end in [SEP]",
        ),
        (
            "[*second, sep]",
            "[cls, *second, sep]",
            "the second text opens with [CLS]; there is only one in a row",
        ),
        (
            "[] if pairs is None else [*second, sep]",
            "[*second, sep]",
            "a row without a second text has a [SEP] too many",
        ),
        (
            "[1] * len(second)",
            "[0] * len(second)",
            "the segment of the second text is 1",
        ),
        (
            "[0] * len(first) + [1] * len(second)",
            "[0] * (len(first) - bool(second)) + "
            "[1] * (len(second) + bool(second))",
            "the first [SEP] belongs to segment 0",
        ),
        (
            "[0] * len(first) + [1] * len(second)",
            "[0] * (len(first) + bool(second)) + "
            "[1] * (len(second) - bool(second))",
            "the last [SEP] belongs to segment 1",
        ),
        (
            "[0] * len(first) + [1] * len(second)",
            "[1] * len(first) + [2] * len(second)",
            "segments count from 0",
        ),
        (
            "self.pad(rows, max_length)",
            "self.pad(rows)",
            "with `max_length` every row has this length, short ones too",
        ),
        (
            "room = max_length and max_length - (2 if pairs is None else 3)",
            "room = max_length = None",
            "`max_length` is not used: long rows are cut to it, short ones "
            "filled up",
        ),
        (
            "            while max_length and "
            "len(first) + len(second) > room:\n"
            "                max(both, key=len).pop()\n"
            "            first = [cls, *first, sep]\n"
            "            second = [] if pairs is None else [*second, sep]\n"
            "            segments = [0] * len(first) + [1] * len(second)\n"
            "            rows.append((first + second, segments))\n",
            "            first = [cls, *first, sep]\n"
            "            second = [] if pairs is None else [*second, sep]\n"
            "            segments = [0] * len(first) + [1] * len(second)\n"
            "            rows.append(((first + second)[:max_length], "
            "segments[:max_length]))\n",
            "the row is cut after its [SEP] is in, and loses it; cut the texts "
            "first",
        ),
        (
            "return self.pad(rows, max_length)",
            "return rows",
            "the rows are returned as they are; `self.pad` makes a batch of "
            "them",
        ),
        (
            "while max_length and len(first) + len(second) > room:",
            "while False:",
            "a text that is longer than `max_length` is not cut",
        ),
        (
            "max_length - (2 if pairs is None else 3)",
            "max_length",
            "[CLS] and [SEP] count too: less room is left for the text than "
            "`max_length`",
        ),
        (
            "(2 if pairs is None else 3)",
            "3",
            "a row without a second text has two special tokens, not three",
        ),
        (
            "(2 if pairs is None else 3)",
            "2",
            "a pair has three special tokens, not two",
        ),
        (
            "max(both, key=len).pop()",
            "(second or first).pop()",
            "the second text is cut before the first; cut whichever is longer",
        ),
        (
            "max(both, key=len).pop()",
            "(first or second).pop()",
            "the first text is cut before the second; cut whichever is longer",
        ),
        (
            "max(both, key=len).pop()",
            "max(both, key=len).pop(0)",
            "a text loses its beginning; cut its end",
        ),
    ),
)

SPELLINGS = {
    "sea": ["s", "##e", "##a"],
    "tea": ["t", "##e", "##a"],
    "banana": ["b", "##a", "##n", "##a", "##n", "##a"],
    "seat": ["s", "##ea", "##t"],
    "ab": ["a", "##b"],
    "a": ["a"],
}
COUNT_PAIRS = Part(
    "vocabulary",
    "11",
    arguments=(
        (
            SPELLINGS,
            {"sea": 6, "tea": 3, "banana": 5, "seat": 4, "ab": 2, "a": 9},
        ),
        ({"a": ["a"]}, {"a": 3}),
    ),
    mistakes=(
        (
            "+= counts[word]",
            "+= 1",
            "a word that occurs six times counts six times, not once",
        ),
        (
            "zip(pieces, pieces[1:], strict=False)",
            "set(zip(pieces, pieces[1:], strict=False))",
            "a pair that is twice in a word, as in `banana`, counts twice",
        ),
        (
            "pairs[pair] += counts[word]",
            "pairs[pair] = counts[word]",
            "the count of the last word takes the place of the others; add",
        ),
        (
            "zip(pieces, pieces[1:], strict=False)",
            "zip(pieces, pieces[1:-1], strict=False)",
            "the last pair of each word is missing",
        ),
        (
            "zip(pieces, pieces[1:], strict=False)",
            "zip(pieces[::2], pieces[1::2], strict=False)",
            "every second pair is missing: pairs overlap",
        ),
        (
            "zip(pieces, pieces[1:], strict=False)",
            "zip(pieces[1:], pieces, strict=False)",
            "the two pieces of a pair are the wrong way round",
        ),
        (
            "pairs[pair] +=",
            'pairs["".join(pair)] +=',
            "a key is a pair of pieces, a tuple, not one string",
        ),
        (
            "zip(pieces, pieces[1:], strict=False)",
            "((p, q) for i, p in enumerate(pieces) for q in pieces[i + 1 :])",
            "only neighbors are a pair",
        ),
        (
            "for word, pieces in spellings.items():\n",
            "for word in spellings:\n        pieces = spell(word)\n",
            "the words are spelled anew; count the pieces of `spellings`",
        ),
        (
            "            pairs[pair] += counts[word]\n    return pairs",
            "            pairs[pair] += counts[word]\n        return pairs",
            "only the first word is counted: `return` stands inside the loop",
        ),
    ),
)

MERGE_PAIR = Part(
    "vocabulary",
    "11",
    arguments=(
        (["s", "##e", "##a", "##t"], ("##e", "##a")),
        (["s", "##ea", "##t"], ("s", "##e")),
        (["b", "##a", "##n", "##a", "##n", "##a"], ("##a", "##n")),
        (["b", "##a", "##a", "##a"], ("##a", "##a")),
        (["a", "##b"], ("a", "##b")),
        (["n", "##a", "##n"], ("##n", "##a")),
        (["b", "##a"], ("##a", "b")),
        (["ab", "##c"], ("a", "##bc")),
        (["a"], ("a", "##b")),
    ),
    mistakes=(
        (
            '.removeprefix("##")',
            "",
            "the second piece keeps its ## inside the new one",
        ),
        (
            "pieces[i] + pieces[i + 1].removeprefix",
            'pieces[i].removeprefix("##") + pieces[i + 1].removeprefix',
            "the new piece loses the ## of its first part",
        ),
        (
            "i += 2",
            "i += 1",
            "the second piece of a pair that was joined is still there",
        ),
        (
            "merged.append(pieces[i] + pieces[i + 1]"
            '.removeprefix("##"))\n            i += 2',
            "merged.append(pieces[i] + pieces[i + 1]"
            '.removeprefix("##"))\n'
            "            return merged + pieces[i + 2 :]",
            "only the first occurrence is joined; join every one",
        ),
        (
            "tuple(pieces[i : i + 2]) == pair",
            "sorted(pieces[i : i + 2]) == sorted(pair)",
            "the same two pieces in the other order are another pair",
        ),
        (
            "tuple(pieces[i : i + 2]) == pair",
            "i + 1 < len(pieces) and pieces[i] == pair[0] "
            "and pieces[i + 1].startswith(pair[1])",
            "`##ea` is another piece than `##e`: compare whole pieces",
        ),
        (
            "tuple(pieces[i : i + 2]) == pair",
            "i + 1 < len(pieces) and pieces[i] + pieces[i + 1]"
            '.removeprefix("##") == pair[0] + pair[1].removeprefix("##")',
            "`ab ##c` is another pair than `a ##bc`, although both give `abc`",
        ),
        (
            "tuple(pieces[i : i + 2]) == pair",
            "pieces[i : i + 2] == pair",
            "nothing is ever joined; does a list stand beside a tuple?",
        ),
        (
            "merged.append(pieces[i])\n            i += 1",
            "i += 1",
            "pieces that are not part of the pair are lost",
        ),
        (
            "while i < len(pieces):",
            "while i < len(pieces) - 1:",
            "the last piece is lost where no pair ends the word",
        ),
    ),
)

TRAIN_VOCABULARY = Part(
    "vocabulary",
    "11",
    arguments=(
        ({"sea": 6, "tea": 5, "seat": 3, "team": 2, "quit": 2}, 20),
        ({"ab": 2, "abc": 1, "cb": 2}, 11),
        ({"ca": 1, "ba": 1, "da": 1}, 10),
        ({"ab": 2, "a": 1}, 99),
    ),
    mistakes=(
        (
            "[*SPECIAL, *sorted(characters)]",
            "sorted(characters)",
            "the special tokens are missing; they come first",
        ),
        (
            "[*SPECIAL, *sorted(characters)]",
            "SPECIAL",
            "the characters are missing; they follow the special tokens",
        ),
        (
            "[*SPECIAL, *sorted(characters)]",
            "[*sorted(characters), *SPECIAL]",
            "the special tokens come before the characters",
        ),
        (
            "[*SPECIAL, *sorted(characters)]",
            "[*SPECIAL, *dict.fromkeys(p for s in spellings.values() "
            "for p in s)]",
            "the characters are not sorted",
        ),
        (
            "piece for pieces in spellings.values() for piece in pieces",
            "character for word in counts for character in word",
            "the characters must be spelled as `spell` does, with ## inside a "
            "word",
        ),
        (
            "min(pairs, key=lambda pair: (-pairs[pair], pair))",
            "max(pairs, key=pairs.get)",
            "of pairs that are seen equally often, take the one that sorts "
            "first",
        ),
        (
            "min(pairs, key=lambda pair: (-pairs[pair], pair))",
            "max(pairs, key=lambda pair: (pairs[pair], pair))",
            "of pairs that are seen equally often, the one that sorts last is "
            "joined; it must be the first",
        ),
        (
            "(-pairs[pair], pair)",
            "(pairs[pair], pair)",
            "the rarest pair is joined; it must be the most frequent",
        ),
        (
            '[best[0] + best[1].removeprefix("##")]',
            "[best[0] + best[1]]",
            "the new piece in the list keeps a ## in its middle",
        ),
        (
            "len(vocabulary) < size",
            "len(vocabulary) <= size",
            "the list is one piece too long",
        ),
        (
            "len(vocabulary) < size",
            "len(vocabulary) < size - 1",
            "the list is one piece too short",
        ),
        (
            "len(vocabulary) < size",
            "len(vocabulary) < size + len(SPECIAL)",
            "the special tokens count too: `size` is the length of the list",
        ),
    ),
)
