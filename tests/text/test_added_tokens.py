"""Tokens that are added to a vocabulary: found as the Rust library does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken as PeersToken

from bertbook.text.added_tokens import AddedToken
from bertbook.text.tokenizer import ENGINES, Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

CONTENTS = ["ab", "Ab", "é", "É", "中", "b中", "ba c", "[E]", "İ", "ß", "x"]
LETTERS = sorted(set("abcdexéßiσςสวัสดีहिन्दी中漢😀ａ０[]_-.i\u0307"))
PIECES = [*SPECIAL_TOKENS, *CONTENTS]
PIECES += [c for c in LETTERS if c not in PIECES]
PIECES += [f"##{c}" for c in LETTERS]

# The vocabulary holds pieces of every case.
pytestmark = pytest.mark.filterwarnings("ignore:No text reaches")
random_tests = settings(max_examples=300, deadline=None, derandomize=True)
engines = pytest.mark.parametrize("engine", ENGINES)


def peer(tokens, lowercase=True, split_cjk=True):
    """The BERT tokenizer of the Rust library, with the same tokens."""
    library = texts.peer(
        PIECES, lowercase=lowercase, handle_chinese_chars=split_cjk
    )
    for token in tokens:
        made = PeersToken(**token.to_dict())
        add = (
            library.add_special_tokens if token.special else library.add_tokens
        )
        add([made])
    return library


def _lower(token):
    return token.content.lower()


def tokens():
    """Random added tokens, no two of which look alike in lower case."""
    switch = st.booleans()
    one = st.builds(
        AddedToken,
        st.sampled_from(CONTENTS),
        special=switch,
        normalized=switch,
        single_word=switch,
        lstrip=switch,
        rstrip=switch,
    )
    return st.lists(one, max_size=4, unique_by=_lower)


def strings():
    """Random texts that hold the contents, and what may touch them."""
    parts = [*CONTENTS, *LETTERS, "AB", "BA\tC", "Ba  c", " ", "  ", "\u3000"]
    parts += ["\x1c", "\0", "\u200d", "\u0301", "²", "Ⓐ", "_", "İ", "ΑΣ", "ﬁ"]
    return st.lists(st.sampled_from(parts), max_size=11).map("".join)


@random_tests
@given(tokens(), strings(), st.booleans(), st.booleans())
def test_both_engines_cut_as_the_peer(added, text, lowercase, split_cjk):
    expected = texts.as_tuple(peer(added, lowercase, split_cjk).encode(text))
    for engine in ENGINES:
        tokenizer = Tokenizer(
            PIECES,
            lowercase=lowercase,
            split_cjk=split_cjk,
            added_tokens=added,
            engine=engine,
        )
        assert texts.as_tuple(tokenizer.encode(text)) == expected
        ids = tokenizer.encode_pieces([text])[0]
        assert ids == expected[1][1:-1]


@engines
def test_tokens_by_hand(engine):
    added = [
        AddedToken("ab", special=False, normalized=True),
        AddedToken("[E]", lstrip=True, rstrip=True),
        AddedToken("x", special=False, single_word=True),
    ]
    tokenizer = Tokenizer(PIECES, added_tokens=added, engine=engine)
    e = tokenizer.encode("cAb [E]  xx x_ x")
    ids = [tokenizer.ids[p] for p in ("c", "ab", "[E]", "x", "##x", "x", "_")]
    assert e.input_ids[1:-1] == [*ids, tokenizer.ids["x"]]
    assert e.offsets[1:5] == [(0, 1), (1, 3), (3, 9), (9, 10)]
    assert e.word_ids[1:6] == [0, 1, 2, 3, 3]
    assert tokenizer.decode(e.input_ids) == "c ab xx x _ x"


@engines
def test_of_tokens_that_look_alike_the_first_counts(engine):
    added = [
        AddedToken("Ab", special=False, normalized=True),
        AddedToken("ab", special=False, normalized=True),
    ]
    tokenizer = Tokenizer(PIECES, added_tokens=added, engine=engine)
    assert tokenizer.encode("AB").input_ids[1] == tokenizer.ids["Ab"]
    raw = [AddedToken("Ab"), AddedToken("ab", normalized=True)]
    tokenizer = Tokenizer(PIECES, added_tokens=raw, engine=engine)
    assert tokenizer.encode("AbaB").input_ids[1:3] == [
        tokenizer.ids["Ab"],
        tokenizer.ids["ab"],
    ]


def test_a_bad_token_is_refused():
    for options, message in (
        ({"content": ""}, "`content` of an added token"),
        ({"content": 5}, "`content` of an added token"),
        ({"content": "a", "special": 1}, "`special` must be True or False"),
        ({"content": "a", "lstrip": None}, "`lstrip` must be True or False"),
    ):
        with pytest.raises(ValueError, match=message):
            AddedToken(**options)
