"""Bad input to the text half: one row a case, and the message it gets.

The fields of a config stand in `test_config`, arrays in `test_batching`, names
of folders in `test_locations`.
"""

import json

import numpy as np
import pytest

from bertbook.text.tokenizer import ENGINES, Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

PIECES = [*SPECIAL_TOKENS, "a", "b", "##a", "##b", "[X]"]
SIZE = len(PIECES)
LONE = "\ud83d"  # half of an emoji


def make(**options):
    return Tokenizer(PIECES, **options)


def from_bytes(folder, content):
    (folder / "vocab.txt").write_bytes(content)
    return Tokenizer.from_vocab(folder / "vocab.txt")


def from_lines(folder, *lines):
    return from_bytes(folder, "\n".join([*PIECES, *lines]).encode() + b"\n")


def from_settings(folder, content):
    (folder / "tokenizer_config.json").write_text(content)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    return Tokenizer.from_pretrained(folder)


def from_json(folder, *path, value=None, cut=None, content=None):
    """Loads a good tokenizer.json after one change in it."""
    make().save_pretrained(folder)
    (folder / "vocab.txt").unlink()  # it would be compared
    file = folder / "tokenizer.json"
    if content is None:
        content = changed(file.read_text("utf-8"), path, value)[:cut]
    file.write_text(content, encoding="utf-8")
    return Tokenizer.from_pretrained(folder)


def changed(content, path, value):
    if not path:
        return content
    stored = json.loads(content)
    part = stored
    for key in path[:-1]:
        part = part[key]
    if value is KeyError:
        del part[path[-1]]
    elif path[-1] == "append":
        part.append(value)
    else:
        part[path[-1]] = value
    return json.dumps(stored)


def added(**changes):
    """One more added token behind the vocabulary, after some changes."""
    token = {
        "id": SIZE,
        "content": "[E]",
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    return {**token, **changes}


class Table(list):
    """Like a list of texts, but with rows and columns."""

    ndim = 2


# Name: (what is done with a tokenizer, parts of the message). For each engine.
TEXTS = {
    "a text that is a number": (lambda t: t.encode(5),
        ["`text` must be a string", "Received: int."]),
    "a text that is None": (lambda t: t.encode(None),
        ["`text` must be a string", "Received: NoneType."]),
    "a text of bytes": (lambda t: t.encode(b"ab"),
        ["`text` must be a string", "Received: bytes; `.decode()`"]),
    "a list of words": (lambda t: t.encode(["a", "b"]),
        ["`text` must be a string", "Received: list."]),
    "a second text that is a number": (lambda t: t.encode("a", 5.5),
        ["`pair` must be a string", "Received: float."]),
    "a lone surrogate in a text": (lambda t: t.encode(f"aé😀{LONE}b"),
        ["`text` must not hold a lone surrogate", "'\\ud83d' at index 3."]),
    "a lone surrogate in a second text": (lambda t: t.encode("a", f"{LONE}"),
        ["`pair` must not hold a lone surrogate", "at index 0."]),
    "a lone surrogate in a row": (lambda t: t(["a", "b", f"ab{LONE}"]),
        ["`texts[2]` must not hold a lone surrogate", "at index 2."]),
    "a lone surrogate in a second row": (lambda t: t(["a", "b"], ["a",
        f"a{LONE}"]),
        ["`pairs[1]` must not hold a lone surrogate", "at index 1."]),
    "an empty batch": (lambda t: t([]),
        ["`texts` must hold at least one text. Received: none."]),
    "an empty array": (lambda t: t(np.array([], dtype=str)),
        ["`texts` must hold at least one text. Received: none."]),
    "an empty batch of pairs": (lambda t: t([], []),
        ["`texts` must hold at least one text. Received: none."]),
    "fewer pairs than texts": (lambda t: t(["a", "b", "a"], ["a", "b"]),
        ["`pairs` must be as long as `texts`", "Received: 2 and 3."]),
    "no pairs for a text": (lambda t: t(["a"], []),
        ["`pairs` must be as long as `texts`", "Received: 0 and 1."]),
    "a single text for a batch": (lambda t: t("ab"),
        ["`texts` must be a list of strings", "str; `encode` takes a single"]),
    "a single text for the pairs": (lambda t: t(["a", "b"], "ab"),
        ["`pairs` must be a list of strings", "Received: str"]),
    "a batch of bytes": (lambda t: t(b"ab"),
        ["`texts` must be a list of strings", "Received: bytes"]),
    "a batch that is None": (lambda t: t(None),
        ["`texts` must be a list of strings", "Received: NoneType"]),
    "a generator": (lambda t: t(text for text in ["a", "b"]),
        ["`texts` must be a list of strings", "Received: generator"]),
    "a dict": (lambda t: t({"a": 1}),
        ["`texts` must be a list of strings", "Received: dict"]),
    "a set, which has no order": (lambda t: t({"a", "b"}),
        ["`texts` must be a list of strings", "Received: set"]),
    "an array of two axes": (lambda t: t(np.array([["a", "b"]])),
        ["`texts` must be a list of strings", "Received: ndarray"]),
    "an array of no axis": (lambda t: t(np.array("a")),
        ["`texts` must be a list of strings", "Received: ndarray"]),
    "a whole table": (lambda t: t(Table(["a", "b"])),
        ["`texts` must be a list of strings", "Received: Table"]),
    "a row that is missing": (lambda t: t(["a", None]),
        ["`texts[1]` must be a string", "Received: NoneType."]),
    "a row that is not a number": (lambda t: t(["a", "b"], ["b", float("nan")]),
        ["`pairs[1]` must be a string", "Received: nan, a missing"]),
    "rows that are pairs": (lambda t: t([("a", "b")]),
        ["`texts[0]` must be a string", "Received: tuple."]),
    "no room for a text": (lambda t: t.encode("a", max_length=2),
        ["`max_length` must be an integer >= 3", "Received: 2."]),
    "no room for a pair": (lambda t: t.encode("a", "b", max_length=4),
        ["`max_length` must be an integer >= 5", "Received: 4."]),
    "no room for a batch of pairs": (lambda t: t(["a"], ["b"], max_length=3),
        ["`max_length` must be an integer >= 5", "Received: 3."]),
    "a length below zero": (lambda t: t(["a"], max_length=-1),
        ["`max_length` must be an integer >= 3", "Received: -1."]),
    "a length that is True": (lambda t: t.encode("a", max_length=True),
        ["`max_length` must be an integer >= 3", "Received: True."]),
    "a length that is a float": (lambda t: t.encode("a", max_length=7.0),
        ["`max_length` must be an integer >= 3", "Received: 7.0."]),
    "a length that is a string": (lambda t: t(["a"], max_length="7"),
        ["`max_length` must be an integer >= 3", "Received: '7'."]),
    "an unknown padding": (lambda t: t(["a"], padding="left"),
        ['`padding` must be "longest" or "max_length"', "Received: 'left'."]),
    "padding as others say it": (lambda t: t(["a"], padding=True),
        ['`padding` must be "longest" or "max_length"', "Received: True."]),
    "padding to no length": (lambda t: t(["a"], padding="max_length"),
        ['`padding="max_length"` needs `max_length`.']),
    "padding that would fill the memory": (lambda t: t(["a"], max_length=10**9,
        padding="max_length"),
        ["`max_length` must be at most 1,048,576", "1 rows of 1,000,000,000."]),
    "padding to the length by which others say that there is none": (
        lambda t: t(["a"], max_length=10**30, padding="max_length"),
        ["`max_length` must be at most 1,048,576", "1 rows of "],
    ),
    "many rows of a long padding": (lambda t: t(["a"] * 1_100, max_length=10**6,
        padding="max_length"), ["all rows together at most 1,073,741,824",
        "1,100 rows of 1,000,000."]),
    "no ids": (lambda t: t.decode(None),
        ["`ids` must be a list. Received: NoneType."]),
    "one id": (lambda t: t.decode(5), ["`ids` must be a list. Received: int."]),
    "ids in a dict": (lambda t: t.decode({5: "a"}),
        ["`ids` must be a list. Received: dict."]),
    "an array of no axis of ids": (lambda t: t.decode(np.array(5)),
        ["`ids` must be a list. Received: ndarray."]),
    "a switch of decoding that is a number": (lambda t: t.decode([5], 1),
        ["`skip_special_tokens` must be True or False. Received: 1."]),
    "an id above the vocabulary": (lambda t: t.decode([0, SIZE]),
        [f"`ids` must hold integers in [0, {SIZE})", f"Received: {SIZE}."]),
    "an id below zero": (lambda t: t.decode(np.array([3, -1])),
        ["`ids` must hold integers in [0, ", "Received: np.int64(-1)."]),
    "an id that is a float": (lambda t: t.decode([3, 4.9]),
        ["`ids` must hold integers", "Received: 4.9."]),
    "an id that is a piece": (lambda t: t.decode(["a"]),
        ["`ids` must hold integers", "Received: 'a'."]),
    "an id that is a digit": (lambda t: t.decode("77"),
        ["`ids` must be a list. Received: str."]),
    "an id that is True": (lambda t: t.decode([True]),
        ["`ids` must hold integers", "Received: True."]),
    "a whole batch of ids": (lambda t: t.decode(np.array([[5, 6], [6, 5]])),
        ["`ids` must hold integers", "Received: array([5, 6])."]),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
def test_a_bad_text_or_option_is_refused_by_both_engines(case):
    act, parts = TEXTS[case]
    for engine in ENGINES:
        tokenizer = make(engine=engine)
        with pytest.raises(ValueError, match="`") as caught:
            act(tokenizer)
        for part in parts:
            assert part in str(caught.value)
        # The next call is not disturbed.
        assert tokenizer.encode("ab").input_ids == [2, 5, 8, 3]


# Name: (what is done in a folder, parts of the message).
TOKENIZERS = {
    "a doubled piece": (lambda d: from_lines(d, "c", "##a"),
        ["`vocabulary` must not hold a piece twice", "'##a' as ids 7 and 11."]),
    "a missing special token": (
        lambda d: Tokenizer([p for p in PIECES if p != "[MASK]"]),
        ["`vocabulary` must hold [PAD], [UNK], ", "Missing: [MASK]."],
    ),
    "special tokens of another model": (lambda d: Tokenizer(["<pad>", "<s>",
        "</s>", "<unk>", "a"]),
        ["Missing: [PAD], [UNK], [CLS], [SEP], [MASK]."]),
    "no pieces": (lambda d: Tokenizer([]), ["Missing: [PAD], "]),
    "a dict of pieces": (lambda d: Tokenizer({piece: i for i,
        piece in enumerate(PIECES)}),
        ["`vocabulary` must be a list of pieces in the order", "dict."]),
    "a set of pieces": (lambda d: Tokenizer(set(PIECES)),
        ["`vocabulary` must be a list of pieces in the order", "set."]),
    "a string for the pieces": (lambda d: Tokenizer("vocab.txt"),
        ["`vocabulary` must be a list of pieces in the order", "str."]),
    "None for the pieces": (lambda d: Tokenizer(None),
        ["`vocabulary` must be a list of pieces", "Received: NoneType."]),
    "a piece that is a number": (lambda d: Tokenizer([*PIECES, 5]),
        ["`vocabulary` must hold strings", f"Received: 5 as id {SIZE}."]),
    "an empty piece": (lambda d: Tokenizer([*PIECES, ""]),
        ["`vocabulary` must hold strings", f"Received: '' as id {SIZE}."]),
    "a piece of two lines": (lambda d: Tokenizer([*PIECES, "a\nb"]),
        ["`vocabulary` must hold strings that fill one line", "'a\\nb'"]),
    "a piece that ends like a line on Windows": (lambda d: Tokenizer([*PIECES,
        "a\r"]),
        ["`vocabulary` must hold strings that fill one line", "'a\\r'"]),
    "a piece with a lone surrogate": (lambda d: Tokenizer([*PIECES, LONE]),
        ["`vocabulary` must hold strings that fill one line", "'\\ud83d'"]),
    "an added token without an id": (lambda d: make(added_tokens=["[X]",
        "[Y]"]),
        ["`added_tokens` must be a list of pieces of `vocabulary`", "[Y]"]),
    "an added token that is not in a list": (lambda d: make(added_tokens="ab"),
        ["`added_tokens` must be a list of pieces", "Received: 'ab'."]),
    "an unknown engine": (lambda d: make(engine="cython"),
        ["`engine` must be one of rust, python. Received: 'cython'."]),
    "no engine": (lambda d: make(engine=None), ["`engine`", "None."]),
    "a word length of zero": (lambda d: make(max_word_length=0),
        ["`max_word_length` must be an integer in [1, 1000]", "Received: 0."]),
    "a word length that is a float": (lambda d: make(max_word_length=1e2),
        ["`max_word_length` must be an integer in [1, ", "Received: 100.0."]),
    "a word length that takes hours": (lambda d: make(max_word_length=10**12),
        ["`max_word_length` must be an integer in [1, 1000]", "10000"]),
    "added tokens that are None": (lambda d: make(added_tokens=None),
        ["`added_tokens` must be a list of pieces", "Received: None."]),
    "an added token that is a number": (lambda d: make(added_tokens=[5]),
        ["`added_tokens` must be a list of pieces", "Received: [5]."]),
    "a file named by a number": (lambda d: Tokenizer.from_vocab(5),
        ["`path` must be a path. Received: 5."]),
    "saving to nowhere": (lambda d: make().save_pretrained(None),
        ["`folder` must be the path of a folder. Received: None."]),
    "saving with no room": (lambda d: make().save_pretrained(d,
        model_max_length=0),
        ["`model_max_length` must be an integer >= 1, or None", "0."]),
    "lower case that is a word": (lambda d: make(lowercase="no"),
        ["`lowercase` must be True or False. Received: 'no'."]),
    "accents that are a number": (lambda d: make(strip_accents=1),
        ["`strip_accents` must be True or False. Received: 1."]),
    "CJK that is None": (lambda d: make(split_cjk=None),
        ["`split_cjk` must be True or False. Received: None."]),
    "training on a single string": (lambda d: Tokenizer.train("a text"),
        ["`lines` must be a list of strings", "Received: str."]),
    "training on None": (lambda d: Tokenizer.train(None),
        ["`lines` must be a list of strings", "Received: NoneType."]),
    "training on bytes": (lambda d: Tokenizer.train(["a", b"b"]),
        ["`lines[1]` must be a string. Received: bytes; `.d"]),
    "training on a lone surrogate": (lambda d: Tokenizer.train(["a", "b",
        f"cc{LONE}"]),
        ["`lines[2]` must not hold a lone surrogate", "at index 2."]),
    "training on nothing": (lambda d: Tokenizer.train(["", " \n", "\0"]),
        ["`lines` must hold at least one word. Received: none."]),
    "training too small a vocabulary": (lambda d: Tokenizer.train(["ab abc"],
        vocab_size=9),
        ["`vocab_size` must hold the special tokens and", "10. Received: 9."]),
    "training a vocabulary of a float": (lambda d: Tokenizer.train(["ab"],
        vocab_size=8e3),
        ["`vocab_size` must be an integer. Received: 8000.0."]),
    "training with a list for the alphabet": (lambda d: Tokenizer.train(["ab"],
        vocab_size=11, alphabet=["xy"]),
        ["`alphabet` must be a string. Received: list."]),
    "training with lower case that is None": (lambda d: Tokenizer.train(["ab"],
        lowercase=None),
        ["`lowercase` must be True or False. Received: None."]),
    "an empty file": (lambda d: from_bytes(d, b""), ["Missing: [PAD], "]),
    "an empty line": (lambda d: from_lines(d, "c", "", "d"),
        ["vocab.txt, line 12: an empty line is no piece."]),
    "an empty line at the end": (lambda d: from_lines(d, "c", ""),
        ["vocab.txt, line 12: an empty line is no piece."]),
    "an empty line on Windows": (lambda d: from_bytes(d, b"[PAD]\r\n\r\na\r\n"),
        ["vocab.txt, line 2: an empty line is no piece."]),
    "a line that is not UTF-8": (lambda d: from_bytes(d,
        b"[PAD]\n\xc3\xa9\ncaf\xe9\n"),
        ["vocab.txt, line 3: not UTF-8", "byte 0xe9 in position 3"]),
    "a file in UTF-16": (lambda d: from_bytes(d,
        "\n".join(PIECES).encode("utf-16")), ["vocab.txt, line 1: not UTF-8"]),
    "settings that are damaged": (lambda d: from_settings(d,
        '{"do_lower_case": tr'),
        ["tokenizer_config.json is not valid JSON", "line 1 column 19"]),
    "settings that are a list": (lambda d: from_settings(d, "[1]"),
        ["tokenizer_config.json must hold a JSON object. Received: list."]),
    "a setting that is a word": (lambda d: from_settings(d,
        '{"do_lower_case": "false"}'),
        ["`do_lower_case` must be true or false. Received: 'false'."]),
    "a tokenizer.json that is cut": (lambda d: from_json(d, cut=700),
        ["tokenizer.json is not valid JSON", "line "]),
    "a tokenizer.json that is empty": (lambda d: from_json(d, content=""),
        ["tokenizer.json is not valid JSON", "line 1 column 1"]),
    "a tokenizer.json that is a list": (lambda d: from_json(d, content="[]"),
        ["tokenizer.json must hold a JSON object. Received: list."]),
    "another model": (lambda d: from_json(d, "model", "type", value="BPE"),
        ["`type` of `model` must be 'WordPiece'. Received: 'BPE'."]),
    "a model that is a word": (lambda d: from_json(d, "model",
        value="WordPiece"),
        ["`type` of `model` must be 'WordPiece'. Received: None."]),
    "no model": (lambda d: from_json(d, "model", value=KeyError),
        ["`type` of `model` must be 'WordPiece'. Received: None."]),
    "another unknown token": (lambda d: from_json(d, "model", "unk_token",
        value="<unk>"),
        ["`unk_token` of `model` must be '[UNK]'. Received: '<unk>'."]),
    "another mark of continuing pieces": (
        lambda d: from_json(d, "model", "continuing_subword_prefix", value="_"),
        ["`continuing_subword_prefix` of `model` must be '##'. Received: '_'."],
    ),
    "another normalizer": (lambda d: from_json(d, "normalizer",
        value={"type": "NFC"}),
        ["`type` of `normalizer` must be 'BertNormalizer'. Received: 'NFC'."]),
    "a text that is not cleaned": (lambda d: from_json(d, "normalizer",
        "clean_text", value=False),
        ["`clean_text` of `normalizer` must be True. Received: False."]),
    "another way to split": (lambda d: from_json(d, "pre_tokenizer",
        value={"type": "Whitespace"}),
        ["`type` of `pre_tokenizer` must be", "Received: 'Whitespace'."]),
    "a vocabulary that is a list": (lambda d: from_json(d, "model", "vocab",
        value=PIECES), ["tokenizer.json is no tokenizer.json: "]),
    "no vocabulary": (lambda d: from_json(d, "model", "vocab", value=KeyError),
        ["tokenizer.json is no tokenizer.json: "]),
    "an id that is a word in a tokenizer.json": (lambda d: from_json(d, "model",
        "vocab", "c", value=str(SIZE)),
        ["tokenizer.json is no tokenizer.json: "]),
    "a switch that is a word": (lambda d: from_json(d, "normalizer",
        "lowercase", value="yes"), ["tokenizer.json is no tokenizer.json: "]),
    "no switch": (lambda d: from_json(d, "normalizer", "lowercase",
        value=KeyError), ["tokenizer.json is no tokenizer.json: "]),
    "a word length below zero": (lambda d: from_json(d, "model",
        "max_input_chars_per_word", value=-1),
        ["tokenizer.json is no tokenizer.json: "]),
    "two pieces with one id": (lambda d: from_json(d, "model", "vocab", "c",
        value=7),
        ["ids must be 0, 1, 2, ...", f"{SIZE + 1} pieces, ids up to 9."]),
    "a gap in the ids": (lambda d: from_json(d, "model", "vocab", "c",
        value=700),
        ["ids must be 0, 1, 2, ...", f"{SIZE + 1} pieces, ids up to 700."]),
    "a missing special token in a tokenizer.json": (lambda d: from_json(d,
        content=json.dumps({**json.loads(make()._rust(None).to_str()),
        "added_tokens": [], "post_processor": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 0, "a": 1}}})),
        ["Missing: [PAD], [CLS], [SEP], [MASK]."]),
    "an added token with the id of another piece": (lambda d: from_json(d,
        "added_tokens", "append", value=added(id=7)),
        ["ids must be 0, 1, 2, ...", f"{SIZE + 1} pieces, ids up to 9."]),
    "an added token with two ids": (lambda d: from_json(d, "added_tokens",
        "append", value=added(content="a")),
        ["a piece must have one id", f"'a' with 5 and {SIZE}."]),
    "an added token without a text": (lambda d: from_json(d, "added_tokens",
        "append", value={"id": SIZE}),
        ["tokenizer.json is no tokenizer.json: "]),
    "an added token that is a word": (lambda d: from_json(d, "added_tokens",
        "append", value="[E]"), ["tokenizer.json is no tokenizer.json: "]),
}  # fmt: skip


@pytest.mark.parametrize("case", TOKENIZERS)
def test_a_tokenizer_of_bad_arguments_is_refused(case, tmp_path):
    act, parts = TOKENIZERS[case]
    with pytest.raises(ValueError, match=".") as caught:
        act(tmp_path)
    message = str(caught.value)
    for part in parts:
        assert part in message
    if "vocab.txt, line" in message or ".json" in message:
        assert message.startswith(str(tmp_path))


@pytest.mark.parametrize("name", ["vocab.txt", "", "no/vocab.txt"])
def test_a_missing_vocabulary_is_named(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="No vocabulary at") as caught:
        Tokenizer.from_vocab(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


# What only looks bad has a right answer.


@pytest.mark.parametrize("engine", ENGINES)
def test_nul_bytes_are_dropped(engine):
    e = make(engine=engine).encode("\0a\0\0b\0 \0 \0b\0")
    assert e.tokens == ["[CLS]", "a", "##b", "b", "[SEP]"]
    assert e.offsets == [(0, 0), (1, 2), (4, 5), (10, 11), (0, 0)]
    only = make(engine=engine).encode("\0" * 17)
    assert only.tokens == ["[CLS]", "[SEP]"]


@pytest.mark.parametrize("engine", ENGINES)
def test_empty_texts_have_special_tokens_alone(engine):
    tokenizer = make(engine=engine)
    assert tokenizer.encode("").input_ids == [2, 3]
    assert tokenizer.encode(" \t\n", "").input_ids == [2, 3, 3]
    assert tokenizer.encode("", "a").sequence_ids == [None, None, 1, None]
    assert tokenizer(["", ""])["input_ids"].tolist() == [[2, 3], [2, 3]]
    assert tokenizer([""], ["a"], max_length=5)["input_ids"].shape == (1, 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_special_tokens_in_a_text_stay_whole(engine):
    tokenizer = make(engine=engine, added_tokens=["[X]"])

    def tokens(text):
        return tokenizer.encode(text).tokens[1:-1]

    assert tokens("[MASK][MASK]") == ["[MASK]", "[MASK]"]
    assert tokens("[mask]") == ["[UNK]"] * 3
    assert tokens("a[CLS]b[X]") == ["a", "[CLS]", "b", "[X]"]
    assert tokens("[[X]]") == ["[UNK]", "[X]", "[UNK]"]
    assert tokens("[X") == ["[UNK]", "[UNK]"]


@pytest.mark.filterwarnings("ignore:No text reaches")
@pytest.mark.parametrize("engine", ENGINES)
def test_pieces_that_no_text_can_reach_do_no_harm(engine, tmp_path):
    strange = ["a\u2028b", "\xa0", "\x85", "[\u2028]", "A", " ", "##"]
    content = "\r\n".join([*PIECES, *strange]) + "\r\n"
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf" + content.encode())
    tokenizer = Tokenizer.from_vocab(tmp_path / "vocab.txt", engine=engine)
    assert tokenizer.vocabulary == [*PIECES, *strange]
    assert tokenizer.encode("a\u2028b\xa0A").input_ids == [2, 5, 6, 5, 3]
    tokenizer.save_pretrained(tmp_path / "again")
    for name in ("tokenizer.json", "vocab.txt"):
        again = Tokenizer.from_pretrained(tmp_path / "again")
        assert again.vocabulary == tokenizer.vocabulary
        (tmp_path / "again" / name).unlink()


LARGE = {
    "one word": "a",
    "many words": "ab elephants ",
    "one letter and its marks": "\u0301\u0316",
    "NUL bytes": "\0",
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", LARGE)
def test_ten_megabytes_are_encoded(kind, engine):
    times = (10_000_000 - 1) // len(LARGE[kind].encode())
    text = "a" + LARGE[kind] * times
    assert 10_000_000 - 13 <= len(text.encode()) <= 10_000_000
    tokenizer = Tokenizer([*PIECES, "elephants"], engine=engine)
    e = tokenizer.encode(text)
    ids, offsets = e.input_ids[1:-1], e.offsets[1:-1]
    if kind == "one word":
        assert ids == [1]
        assert offsets == [(0, len(text))]
    elif kind == "many words":
        assert ids == [5, 7, 8, SIZE, *[5, 8, SIZE] * (times - 1)]
        assert offsets[-3:] == [
            (len(text) - 13, len(text) - 12),
            (len(text) - 12, len(text) - 11),
            (len(text) - 10, len(text) - 1),
        ]
        assert e.word_ids[-2] == 2 * times - 1
    else:  # all but the first letter is dropped
        assert ids == [5]
        assert offsets == [(0, 1)]


def test_the_table_covers_both_halves_of_the_fast_engine():
    # A text and a batch take different ways through the Rust library.
    tokenizer = Tokenizer(texts.mini_vocabulary())
    text = "The ferry, [MASK] \0 naïve 中文 👩‍👩‍👧 " * 7
    row = tokenizer([text])["input_ids"][0].tolist()
    assert row == tokenizer.encode(text).input_ids
