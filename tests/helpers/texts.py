"""What several tests of texts share: random texts, vocabularies, the peer."""

import json
import lzma
import unicodedata
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bertbook.text.vocabulary import SPECIAL_TOKENS

REFERENCE = Path(__file__).parents[1] / "reference"
MINI = Path(__file__).resolve().parents[2] / "data/models/mini/vocab.txt"

WORDS = ["the", "ferry", "Unaffable", "naïve", "SNOW", "déjà", "x2", "don't"]
SPECIAL_TEXTS = [
    *SPECIAL_TOKENS,
    "[MASK][MASK]",
    "[mask]",
    "[CLS] in the text",
    "[ MASK ]",
    "[[SEP]]",
    "[unused1]",
]
# One string a kind of character: a text mixes them.
KINDS = {
    "ascii": "abcxyzABCXYZ0189",
    "punctuation": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡§«»–—‘’“”…、。「」·¿՚؟",
    "space": " \t\n\r\v\f\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000",
    "control": "\0\x01\x07\x08\x1b\x7f\x80\xad\u200b\u200c\u200d\u200e\u200f"
    "\u202a\u202b\u202e\u2060\ufeff\ufffd\ue000\U000f0000\U000e0041\u061c\u180e",
    "latin": "ÀÁÅÇÉÑÖØÜßàåçéñöøüÿĀıİŁłŐŒœŠžſƀǅǆǱǲǳȺɐẞấṩﬀﬁﬃＡａªº",
    "greek": "ΑΆΐΣσςΩωΰϒϴἀᾳᾼῌⅣⅳⒶⓐ",
    "cyrillic": "ЁёЙйЇїѢԀӐ",
    "marks": "\u0300\u0301\u0308\u030a\u0315\u0316\u031b\u0323\u0327\u0334"
    "\u0338\u0345\u034f\u035c\u0360\u0483\u0591\u05b0\u064b\u0651\u0670\u093c"
    "\u0e38\u0e48\u0f71\u0f72\u20d0\u20dd\u302a\u3099\ufe20\U0001d165\ufe0f",
    "right to left": "אבגדהשׁשּׂﬡﭏابتثجحאلآأإؤئيﷺﷲ٠١٢",
    "indic": "कखगजड़ढ़क़ऩািীুোংঃগাதிொைโำกขฃ",
    "hangul": "가각힣한글ᄀ나ᅢᆨᆩᇂㄱㅏﾡ",
    "cjk": "一中国語漢字豈更㐀䶵丽𠀀𪛖𪜀𫠝乁あいがぱゞアカガヽﾊﾞ",
    "emoji": "😀👍🏽👨‍👩‍👧🇪🇸❤️☺✈⌚🏴󠁧󠁢󠁥󠁮󠁧󠁿",
}


@cache
def differing():
    """The code points that the slow test knows to come out differently."""
    record = json.loads(
        (REFERENCE / "unicode_differences.json").read_text("utf-8")
    )
    names = " ".join([*record["uncased"].values(), *record["cased"].values()])
    return {int(name.removeprefix("U+"), 16) for name in names.split()}


@cache
def old_characters():
    """Every character of Unicode 3.2, whose tables no longer change.

    What the slow test knows to come out differently is left out.
    """
    category = unicodedata.ucd_3_2_0.category
    return [
        chr(code)
        for code in range(0x110000)
        if category(chr(code)) not in ("Cn", "Co", "Cs")
        and code not in differing()
    ]


def texts(max_size=14):
    """Random texts: words, special tokens, and characters of every kind."""
    part = st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(SPECIAL_TEXTS),
        *(
            st.text(st.sampled_from(letters), max_size=5)
            for letters in KINDS.values()
        ),
        st.sampled_from(old_characters()),
    )
    return st.lists(part, max_size=max_size).map("".join)


@cache
def wide_vocabulary():
    """A vocabulary in which almost no word is unknown.

    It holds the pieces of `mini` and, so that an unknown word hides no
    difference, every part that the characters above can give.
    """
    letters = set()
    for character in "".join([*KINDS.values(), *WORDS]):
        forms = {character, character.lower()}
        for form in [*forms]:
            forms |= set(unicodedata.normalize("NFD", form))
        letters |= set("".join(forms)) | set("".join(forms).lower())
    letters = sorted(c for c in letters if not c.isspace())
    pieces = [*mini_vocabulary(), *letters, *(f"##{c}" for c in letters)]
    return list(dict.fromkeys(pieces))


@cache
def mini_vocabulary():
    """The vocabulary that ships."""
    return MINI.read_text("utf-8").split("\n")[:-1]


@cache
def published_vocabulary(folder, case):
    """The vocabulary of bert-base-uncased or bert-base-cased."""
    path = folder / "vocab" / f"bert-base-{case}-vocab.txt.xz"
    return lzma.open(path, "rt", encoding="utf-8").read().split("\n")[:-1]


def peer(vocabulary, **options):
    """The BERT tokenizer of the Rust library, from the same vocabulary."""
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    return BertWordPieceTokenizer(vocab=ids, **options)


def as_tuple(encoded):
    """What every kind of encoding says, in one order, to be compared.

    Ours says `input_ids` and `token_type_ids`, the peer `ids` and `type_ids`.
    """
    ours = hasattr(encoded, "input_ids")
    return (
        encoded.tokens,
        encoded.input_ids if ours else encoded.ids,
        encoded.token_type_ids if ours else encoded.type_ids,
        encoded.attention_mask,
        encoded.offsets,
        encoded.word_ids,
        encoded.sequence_ids,
    )
