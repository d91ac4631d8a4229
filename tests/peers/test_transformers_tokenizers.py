"""Tokenizers that transformers saves, and that it opens: the same ids.

Run by `make test-peers`, in an environment with transformers.
"""

import numpy as np
import pytest

from bertbook.text.added_tokens import AddedToken
from bertbook.text.tokenizer import ENGINES, Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

transformers = pytest.importorskip("transformers", reason="needs transformers")

# Pieces of every case, for cased and uncased alike.
pytestmark = pytest.mark.filterwarnings("ignore:No text reaches")
TEXTS = [
    "Hello zovid ZOVID Zóvidx, the [CITY] of [E1][E2]!",
    "中国漢字 and text在其中 中 zovid在",
    "ประเทศไทย ภาษาไทย [CITY]ไทย",
    "العَرَبِيَّة الكتاب لا إله ﷲ",
    "हिन्दी क्षत्रिय ज़िंदगी क्\u200dष",
    "a smile 😀 👍🏽 👩\u200d👩\u200d👧 🇪🇸 ❤\ufe0f",
    "İSTANBUL ısı IŞIK i\u0307",
    "STRASSE straße ẞ Größe",
    "ΟΔΥΣΣΕΥΣ οδός ΑΣ ς σ",
    "ＦＵＬＬ ｗｉｄｔｈ ０１２ ｱｲｳ",
    "zero\u200bwidth\u200djoin\u200cers\ufeff \u2060x",
    "e\u0301 é [MASK]\u0301 New York new york NEW  YORK",
    "",
]
ADDED = [
    AddedToken("[CITY]"),
    AddedToken("zovid", special=False, normalized=True),
    AddedToken("[E1]", lstrip=True, rstrip=True),
    AddedToken("New York", special=False, normalized=True, single_word=True),
]


def pieces():
    """A vocabulary that spells nearly every text above."""
    letters = sorted({c for text in TEXTS for c in text + text.lower()})
    letters = [c for c in letters if not c.isspace()]
    known = [*texts.wide_vocabulary(), *letters, *(f"##{c}" for c in letters)]
    return list(dict.fromkeys([*SPECIAL_TOKENS, *known]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [None, True, False])
@pytest.mark.parametrize("added", [[], ADDED])
def test_transformers_opens_what_is_saved(
    added, strip_accents, lowercase, engine, tmp_path
):
    ours = Tokenizer(
        [*pieces(), *(token.content for token in added)],
        lowercase=lowercase,
        strip_accents=strip_accents,
        added_tokens=added,
        engine=engine,
    )
    ours.save_pretrained(tmp_path, model_max_length=512)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == 512
    assert len(theirs) == len(ours)
    for text in TEXTS:
        encoded = ours.encode(text)
        peer = theirs(text, return_offsets_mapping=True)
        assert encoded.input_ids == peer["input_ids"]
        assert encoded.offsets == peer["offset_mapping"]
    again = theirs.decode(encoded.input_ids, skip_special_tokens=True)
    assert again == ours.decode(encoded.input_ids)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [None, True, False])
def test_what_transformers_saves_is_read(
    strip_accents, lowercase, engine, tmp_path
):
    (tmp_path / "vocab.txt").write_text("\n".join(pieces()), encoding="utf-8")
    theirs = transformers.BertTokenizer.from_pretrained(
        tmp_path, do_lower_case=lowercase, strip_accents=strip_accents
    )
    for token in ADDED:
        theirs.add_tokens([transformers.AddedToken(**token.to_dict())])
    theirs.add_special_tokens({"additional_special_tokens": ["[E2]"]})
    theirs.save_pretrained(tmp_path / "saved")
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    ours = Tokenizer.from_pretrained(tmp_path / "saved", engine=engine)
    assert len(ours) == len(saved)
    assert ours.lowercase is lowercase
    for text in TEXTS:
        peer = saved(text, return_offsets_mapping=True)
        encoded = ours.encode(text)
        assert encoded.input_ids == peer["input_ids"]
        assert encoded.offsets == peer["offset_mapping"]


def test_files_beside_a_vocabulary_are_read_as_transformers_reads_them(
    tmp_path,
):
    known = pieces()
    (tmp_path / "vocab.txt").write_text("\n".join(known), encoding="utf-8")
    (tmp_path / "special_tokens_map.json").write_text(
        '{"additional_special_tokens": ["[CITY]", "[E1]"]}'
    )
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    ours = Tokenizer.from_pretrained(tmp_path)
    assert ours.ids["[CITY]"] == theirs.convert_tokens_to_ids("[CITY]")
    assert ours.ids["[E1]"] == theirs.convert_tokens_to_ids("[E1]")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("side", ["right", "left"])
def test_long_texts_lose_the_same_end(side, engine, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(pieces()), encoding="utf-8")
    theirs = transformers.BertTokenizer.from_pretrained(
        tmp_path, truncation_side=side
    )
    theirs.save_pretrained(tmp_path / "saved")
    ours = Tokenizer.from_pretrained(tmp_path / "saved", engine=engine)
    ours.save_pretrained(tmp_path / "again")
    for folder in ("saved", "again"):
        saved = transformers.AutoTokenizer.from_pretrained(tmp_path / folder)
        for seconds in (None, TEXTS[::-1]):
            peer = saved(
                TEXTS,
                seconds,
                truncation=True,
                max_length=9,
                padding=True,
                return_tensors="np",
            )
            batch = ours(TEXTS, seconds, max_length=9)
            for name, array in batch.items():
                np.testing.assert_array_equal(array, peer[name])
