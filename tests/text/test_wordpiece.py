"""WordPiece in pure Python: against its definition and the Rust library."""

import re
import string
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from bertbook.text import wordpiece
from bertbook.text.wordpiece import (
    Piece,
    clean,
    count_words,
    match_longest,
    split_special_tokens,
    split_words,
    tokenize,
)
from tests.helpers import texts
from tests.reference import make_unicode_differences as unicode

# With the tables that the list was made with, Unicode 14: uncased 563. Every
# later version of Python's adds marks that the library does not know yet, 629
# with Unicode 15.1 (Python 3.13).
MOST_DIFFERENCES = {"as the list": 600, "newer": 700}

random_tests = settings(max_examples=300, deadline=None, derandomize=True)


def spellings(text, lowercase):
    return [word for word, _, _ in unicode.words_in_python(text, lowercase)]


# Definition.


def test_words_of_the_sample_sentence():
    for lowercase, first in ((False, "Hello"), (True, "hello")):
        expected = [first, ",", "how", "are", "you", "?"]
        assert spellings("Hello, how are you?", lowercase) == expected


def test_ids_of_the_sample_sentence():
    ids = {"hello": 34, ",": 90, "how": 15, "are": 684, "you": 55, "?": 193}
    pieces = tokenize("Hello, how are you?", ids)
    assert [ids[piece.text] for piece in pieces] == [34, 90, 15, 684, 55, 193]


def test_a_word_is_spelled_with_a_continuing_piece():
    assert tokenize("playing", {"play", "##ing"}) == [
        Piece("play", 0, 4, 0),
        Piece("##ing", 4, 7, 0),
    ]


# Raw text, lower-casing, and the characters that remain with their indices.
CLEAN = [
    ("a\tb\nc", False, "a0 1b2 3c4"),
    ("a\x00b\x07c", False, "a0b2c4"),
    ("a\v\f\x85b", False, "a0b4"),  # white space in Python, controls here
    ("\ufffda\u200b\u00ad\ue000b", False, "a1b5"),
    ("a\u3000\u2028b", False, "a0 1 2b3"),
    ("Ab", True, "a0b1"),
    ("é", True, "e0"),
    ("e\u0301x", True, "e0x2"),
    ("\u0301", True, ""),
    ("ǅ", True, "ǆ0"),
    ("İ", True, "i0"),
    ("ΟΔΟΣ", True, "ο0δ1ο2σ3"),  # not the sigma of a word's end
    ("ﬁ", True, "ﬁ0"),
    ("각", True, "ᄀ0ᅡ0ᆨ0"),  # decomposed and kept so
    ("中a", False, " 0中0 0a1"),
]


@pytest.mark.parametrize(("text", "lowercase", "expected"), CLEAN)
def test_clean_keeps_the_index_of_each_character(text, lowercase, expected):
    received = clean(text, lowercase, strip_accents=lowercase)
    assert "".join(f"{c}{i}" for c, i in received) == expected


def test_accents_and_case_are_two_switches():
    def joined(**switches):
        return "".join(c for c, _ in clean("Él 中", **switches))

    assert joined(lowercase=False, strip_accents=False) == "Él  中 "
    assert joined(lowercase=False, strip_accents=True) == "El  中 "
    assert joined(lowercase=True, strip_accents=False) == "él  中 "
    assert joined(split_cjk=False) == "el 中"
    grown = clean("İ", lowercase=True, strip_accents=False)
    assert grown == [("i", 0), ("\u0307", 0)]


def test_offset_counts_from_the_start_of_the_whole_text():
    assert clean("ab", offset=7) == [("a", 7), ("b", 8)]


def test_combining_marks_are_sorted_but_not_their_indices():
    marks = "\U0001d165\U0001d16d"  # both take space: 216 sorts before 226
    assert clean(marks[::-1]) == [(marks[0], 0), (marks[1], 1)]
    cased = clean(marks[::-1], lowercase=False, strip_accents=False)
    assert cased == [(marks[1], 0), (marks[0], 1)]


def test_ascii_symbols_are_punctuation():
    found = {chr(c) for c in range(128) if wordpiece.is_punctuation(chr(c))}
    assert found == set(string.punctuation)


def test_beyond_ascii_only_unicode_punctuation_is():
    for character in "¡¿«»–—…、。؟՚":
        assert wordpiece.is_punctuation(character), character
    for character in "€©°×™á中\u0301":
        assert not wordpiece.is_punctuation(character), character


def test_is_cjk_includes_the_ends_of_its_ranges():
    for first, last in wordpiece.CJK_RANGES:
        assert [wordpiece.is_cjk(chr(c)) for c in (first, last)] == [True, True]
        outside = [wordpiece.is_cjk(chr(c)) for c in (first - 1, last + 1)]
        assert outside == [False, False]


def test_where_google_starts_one_range_the_library_does_not():
    assert not wordpiece.is_cjk("\U0002b820")
    assert not wordpiece.is_cjk("あ")
    assert not wordpiece.is_cjk("한")


def words_by_loops(text):
    """The definition: a space after and before all that stands alone."""
    spaced = "".join(
        f" {c} " if wordpiece.is_punctuation(c) else c for c in text
    )
    return spaced.split()


@random_tests
@given(texts.texts())
def test_split_words_matches_the_definition(text):
    characters = clean(text, lowercase=False, strip_accents=False)
    words = ["".join(c for c, _ in word) for word in split_words(characters)]
    assert words == words_by_loops("".join(c for c, _ in characters))


def longest_by_loops(word, vocabulary):
    """The definition: of all pieces that start the rest, the longest."""
    spans, rest, start = [], word, 0
    while rest:
        prefix = "##" if start else ""
        fitting = [
            piece
            for piece in vocabulary
            if len(piece) > len(prefix) and (prefix + rest).startswith(piece)
        ]
        if not fitting:
            return None
        best = max(fitting, key=len)
        end = start + len(best) - len(prefix)
        spans.append((best, start, end))
        rest, start = word[end:], end
    return spans


@random_tests
@given(
    st.text("abc", min_size=1, max_size=11),
    st.sets(
        st.builds(
            str.__add__,
            st.sampled_from(["", "##"]),
            st.text("abc", min_size=1, max_size=5),
        )
    ),
)
def test_match_longest_matches_the_definition(word, vocabulary):
    expected = longest_by_loops(word, vocabulary)
    assert match_longest(word, vocabulary) == expected


def test_a_longest_piece_that_leads_nowhere_leaves_the_word_unknown():
    assert match_longest("abc", {"a", "ab", "##bc"}) is None
    assert match_longest("ab#c", {"ab", "###c"}) == [
        ("ab", 0, 2),
        ("###c", 2, 4),
    ]


def test_a_word_above_the_limit_is_not_spelled():
    for limit in (
        wordpiece.HUGGING_FACE_WORD_LIMIT,
        wordpiece.GOOGLE_WORD_LIMIT,
    ):
        pieces = {"a", "##a"}
        assert len(match_longest("a" * limit, pieces, limit)) == limit
        assert match_longest("a" * (limit + 1), pieces, limit) is None
        unknown = tokenize("a" * (limit + 1), pieces, max_word_length=limit)
        assert unknown == [Piece("[UNK]", 0, limit + 1, 0)]


def test_special_tokens_are_cut_out_longest_first():
    received = split_special_tokens("a[X][X]]b", ["[X]", "[X]]"])
    assert list(received) == [
        (0, "a", False),
        (1, "[X]", True),
        (4, "[X]]", True),
        (8, "b", False),
    ]
    assert list(split_special_tokens("", ["[X]"])) == []
    assert list(split_special_tokens("a.b", ["."])) == [
        (0, "a", False),
        (1, ".", True),
        (2, "b", False),
    ]


def test_special_tokens_are_words_of_the_raw_text():
    pieces = tokenize(
        "Go [MASK][mask]",
        {"go", "[", "mask", "]"},
        special_tokens=["[MASK]"],
    )
    assert [(piece.text, piece.word) for piece in pieces] == [
        ("go", 0),
        ("[MASK]", 1),
        ("[", 2),
        ("mask", 3),
        ("]", 4),
    ]


def test_count_words_of_a_small_text():
    counted = count_words(["The cat, the CAT", "thé\ncat!"])
    assert counted == {"the": 3, "cat": 3, ",": 1, "!": 1}
    cased = count_words(["The thé"], lowercase=False)
    assert cased == {"The": 1, "thé": 1}


# Peer: the parts of the Rust library.


@random_tests
@given(texts.texts(), st.booleans())
def test_words_match_the_library(text, lowercase):
    expected = unicode.words_in_rust(text, lowercase)
    assert unicode.words_in_python(text, lowercase) == expected


@random_tests
@given(
    st.text("abcé中", min_size=1, max_size=17),
    st.sets(st.text("abcé中#", min_size=1, max_size=5), max_size=23),
    st.integers(1, 13),
)
def test_match_longest_matches_the_library(word, pieces, limit):
    vocabulary = ["[UNK]", *sorted(pieces | {f"##{p}" for p in pieces})]
    model = models.WordPiece(
        {piece: number for number, piece in enumerate(vocabulary)},
        unk_token="[UNK]",
        max_input_chars_per_word=limit,
    )
    spans = match_longest(word, vocabulary, limit)
    received = [piece for piece, _, _ in spans or [("[UNK]", 0, 0)]]
    assert received == [token.value for token in model.tokenize(word)]


@pytest.mark.slow
@pytest.mark.parametrize("case", unicode.CASES)
def test_every_code_point_matches_the_library_or_is_on_the_list(case):
    lowercase = unicode.CASES[case]
    found = unicode.differences(lowercase)
    causes = {code: unicode.cause(code, lowercase) for code in found}
    print(
        f"{case}: {len(unicode.CODE_POINTS)} code points in "
        f"{len(unicode.CONTEXTS)} contexts, {len(found)} come out differently: "
        f"{dict(Counter(causes.values()))}"
    )
    unexplained = [f"U+{code:04X}" for code in found if not causes[code]]
    assert unexplained == []
    record = unicode.stored()
    if {**record, **unicode.versions()} == record:
        assert len(found) <= MOST_DIFFERENCES["as the list"]
        assert causes == record[case]
    else:
        assert len(found) <= MOST_DIFFERENCES["newer"]
        print(
            f"not compared with the list: it is of {record['unidata_version']}"
        )


def test_the_list_of_differences_is_true_in_samples():
    record = unicode.stored()
    if {**record, **unicode.versions()} != record:
        pytest.skip(
            "the list is of Unicode "
            f"{record['unidata_version']}, tokenizers {record['tokenizers']}"
        )
    for case, lowercase in unicode.CASES.items():
        assert len(record[case]) <= 600
        for code in sorted(record[case])[::11]:
            found = [
                unicode.differ(t, lowercase) for t in unicode.in_context(code)
            ]
            assert any(found), f"U+{code:04X} does not come out differently"
            assert unicode.cause(code, lowercase) == record[case][code]


def test_old_characters_match_the_library_in_samples():
    for case, lowercase in unicode.CASES.items():
        for character in texts.old_characters()[::97]:
            text = "\n".join(unicode.in_context(ord(character)))
            assert not unicode.differ(text, lowercase), (case, character)


# Property.


@random_tests
@given(texts.texts(), st.booleans())
def test_pieces_lie_in_order_and_spell_their_words(text, lowercase):
    vocabulary = texts.wide_vocabulary()
    pieces = tokenize(text, set(vocabulary), lowercase=lowercase)
    numbers = [piece.word for piece in pieces]
    assert numbers == sorted(numbers)
    assert sorted(set(numbers)) == list(range(len(set(numbers))))
    for before, after in zip(pieces, pieces[1:], strict=False):
        if before.word < after.word:
            assert before.end <= after.start
    words = spellings(text, lowercase)
    for number, word in enumerate(words):
        own = [piece.text for piece in pieces if piece.word == number]
        if own != ["[UNK]"]:
            spelled = own[0] + "".join(p.removeprefix("##") for p in own[1:])
            assert spelled == word


@random_tests
@given(texts.texts())
def test_offsets_slice_the_word_out_of_the_raw_text(text):
    # Cased: nothing is decomposed, only dropped or made a space.
    for word, start, end in unicode.words_in_python(text, lowercase=False):
        kept = [c for c in text[start:end] if not wordpiece.is_control(c)]
        assert "".join(kept) == word


@random_tests
@given(texts.texts())
def test_cleaning_twice_changes_nothing(text):
    def cleaned(text):
        return "".join(c for c, _ in clean(text, split_cjk=False))

    once = cleaned(text)
    assert cleaned(once) == once


@random_tests
@given(texts.texts())
def test_uncased_words_hold_no_capital_and_no_accent(text):
    for word in spellings(text, lowercase=True):
        assert not any(unicodedata.category(c) == "Mn" for c in word)
        assert "".join(c.lower() for c in word) == word


@random_tests
@given(st.lists(texts.texts(max_size=5), max_size=3), st.booleans())
def test_counted_words_are_those_of_the_lines(lines, lowercase):
    expected = Counter()
    for line in lines:
        expected.update(spellings(line, lowercase))
    assert count_words(lines, lowercase) == expected


@random_tests
@given(texts.texts(), st.sets(st.sampled_from(["[MASK]", "[", "a", "]]", "é"])))
def test_special_parts_join_to_the_text(text, special):
    parts = list(split_special_tokens(text, special))
    assert "".join(part for _, part, _ in parts) == text
    for start, part, is_special in parts:
        assert text[start : start + len(part)] == part
        assert is_special == (part in special)
        if special and not is_special:
            assert not re.search("|".join(map(re.escape, special)), part)
