"""The files of a stored tokenizer: all are read, none against another."""

import json

import pytest
from tokenizers import Tokenizer as Library

from bertbook.text.tokenizer import ENGINES, Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

PIECES = [*SPECIAL_TOKENS, "hello", "world", "a", "##b", "new", "##s", "x"]
SIZE = len(PIECES)
ADDED = {"single_word": False, "lstrip": False, "rstrip": False}
SPECIAL = {**ADDED, "content": "[CITY]", "special": True, "normalized": False}
PLAIN = {**ADDED, "content": "covid", "special": False, "normalized": True}

engines = pytest.mark.parametrize("engine", ENGINES)


def write(folder, **files):
    """Writes files of a folder: `vocab` is a vocab.txt, the rest is JSON."""
    for name, content in files.items():
        if name == "vocab":
            text = "\n".join(content) + "\n"
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
        else:
            path = folder / f"{name}.json"
            path.write_text(json.dumps(content), encoding="utf-8")


def changed_library(folder, part=None, **changes):
    """Writes a tokenizer.json after a change in it, and nothing else."""
    Tokenizer(PIECES).save_pretrained(folder)
    stored = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    (stored if part is None else stored[part]).update(changes)
    for path in list(folder.iterdir()):
        path.unlink()
    write(folder, tokenizer=stored)
    return stored


# Definition: each file is read.


SOURCES = {
    "added_tokens.json alone": {"added_tokens": {"[CITY]": SIZE}},
    "added_tokens.json and a map": {
        "added_tokens": {"[CITY]": SIZE},
        "special_tokens_map": {"additional_special_tokens": ["[CITY]"]},
    },
    "a map alone": {
        "special_tokens_map": {"additional_special_tokens": ["[CITY]"]}
    },
    "a map of dicts": {
        "special_tokens_map": {"additional_special_tokens": [SPECIAL]}
    },
    "the settings": {"tokenizer_config": {"extra_special_tokens": ["[CITY]"]}},
    "the settings, by name": {
        "tokenizer_config": {"extra_special_tokens": {"city": "[CITY]"}}
    },
    "a token at the start": {"tokenizer_config": {"bos_token": "[CITY]"}},
    "the decoder": {
        "tokenizer_config": {"added_tokens_decoder": {str(SIZE): SPECIAL}}
    },
    "two files that agree": {
        "tokenizer_config": {"added_tokens_decoder": {str(SIZE): SPECIAL}},
        "added_tokens": {"[CITY]": SIZE},
    },
}


@engines
@pytest.mark.parametrize("source", SOURCES)
def test_an_added_token_beside_a_vocabulary_is_read(source, engine, tmp_path):
    write(tmp_path, vocab=PIECES, **SOURCES[source])
    tokenizer = Tokenizer.from_pretrained(tmp_path, engine=engine)
    assert tokenizer.encode("hello [CITY]a").input_ids == [2, 5, SIZE, 7, 3]
    assert tokenizer.vocabulary == [*PIECES, "[CITY]"]


@engines
def test_a_named_token_keeps_its_switches(engine, tmp_path):
    token = {**ADDED, "content": "[CITY]", "single_word": True}
    names = {"additional_special_tokens": [token]}
    write(tmp_path, vocab=PIECES, special_tokens_map=names)
    tokenizer = Tokenizer.from_pretrained(tmp_path, engine=engine)
    assert tokenizer.encode("hello [CITY]").input_ids == [2, 5, SIZE, 3]
    assert SIZE not in tokenizer.encode("hello [CITY]a").input_ids


@pytest.mark.parametrize("pieces", [[*PIECES, "hello"], PIECES[1:]])
def test_a_vocabulary_that_is_refused_is_named(pieces, tmp_path):
    write(tmp_path, vocab=pieces)
    with pytest.raises(ValueError, match="`vocabulary` must") as caught:
        Tokenizer.from_pretrained(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_special_tokens_of_the_vocabulary_are_kept_whole(tmp_path):
    pieces = [*PIECES, "[E1]", "[E2]"]
    names = {"additional_special_tokens": ["[E2]"]}
    write(tmp_path, vocab=pieces, special_tokens_map=names)
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("[E2]").input_ids == [2, SIZE + 1, 3]
    assert tokenizer.encode("[E1]").input_ids == [2, 1, 1, 1, 3]
    assert "[E2]" in tokenizer.special_tokens


@engines
def test_an_added_word_is_found_in_the_clean_text(engine, tmp_path):
    stored = changed_library(tmp_path)
    stored["added_tokens"].append({**PLAIN, "id": SIZE})
    write(tmp_path, tokenizer=stored)
    tokenizer = Tokenizer.from_pretrained(tmp_path, engine=engine)
    assert tokenizer.encode("hello Cóvid").input_ids == [2, 5, SIZE, 3]
    assert tokenizer.decode([5, SIZE]) == "hello covid"
    assert "covid" not in tokenizer.special_tokens


LEGITIMATE = {
    "nothing": {},
    "a lacking key": {"tokenizer_config": {"model_max_length": 512}},
    "no accents": {"tokenizer_config": {"do_lower_case": True,
        "strip_accents": None}},
    "the fast class": {
        "tokenizer_config": {"tokenizer_class": "BertTokenizerFast"}
    },
    "a relative's class": {
        "tokenizer_config": {"tokenizer_class": "DistilBertTokenizer"}
    },
    "the class of a retriever": {
        "tokenizer_config": {"tokenizer_class": "DPRQuestionEncoderTokenizer"}
    },
    "what transformers 4 writes": {"tokenizer_config": {"do_lower_case": True,
        "strip_accents": None, "tokenize_chinese_chars": True,
        "do_basic_tokenize": True, "never_split": None, "name_or_path": "x",
        "unk_token": "[UNK]", "mask_token": {**ADDED, "content": "[MASK]",
        "normalized": True}, "clean_up_tokenization_spaces": True,
        "padding_side": "right", "added_tokens_decoder": {"4": {**SPECIAL,
        "content": "[MASK]"}}},
        "special_tokens_map": {"mask_token": "[MASK]", "bos_token": None},
        "added_tokens": {}},
    "what transformers 5 writes": {"tokenizer_config": {"backend": "tokenizers",
        "do_lower_case": True, "extra_special_tokens": [], "is_local": True,
        "local_files_only": True, "model_max_length": 10**30,
        "strip_accents": None, "tokenize_chinese_chars": True,
        "tokenizer_class": "BertTokenizer"}},
    "Google's": {"bert_config": {"vocab_size": SIZE, "hidden_size": 8}},
    "a config with nulls": {"config": {"tokenizer_class": None}},
}  # fmt: skip


@pytest.mark.parametrize("has_library", [False, True])
@pytest.mark.parametrize("kind", LEGITIMATE)
def test_what_published_folders_hold_is_read(kind, has_library, tmp_path):
    if has_library:
        changed_library(tmp_path)
    write(tmp_path, vocab=PIECES, **LEGITIMATE[kind])
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("Hello [MASK]").input_ids == [2, 5, 4, 3]
    assert tokenizer.vocabulary == PIECES


def test_settings_without_case_leave_it_to_the_library_file(tmp_path):
    changed_library(tmp_path, "normalizer", lowercase=False)
    write(tmp_path, tokenizer_config={"model_max_length": 512})
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert not tokenizer.lowercase
    assert tokenizer.decided_by["lowercase"].startswith("tokenizer.json")


def test_what_decided_the_case_can_be_asked(tmp_path):
    write(tmp_path, vocab=PIECES)
    asked = Tokenizer.from_pretrained(tmp_path).decided_by["lowercase"]
    assert asked.startswith("0 of 7 pieces with letters are capitalized")
    write(tmp_path, tokenizer_config={"do_lower_case": False})
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.decided_by == {
        "lowercase": "tokenizer_config.json, `do_lower_case`"
    }
    assert not tokenizer.lowercase


def test_a_config_may_tell_the_case(tmp_path):
    write(tmp_path, vocab=PIECES, bert_config={"do_lower_case": False})
    assert not Tokenizer.from_pretrained(tmp_path).lowercase


LONG = "hello world new a"
SIDES = {
    "the settings": ({}, {"truncation_side": "left"}),
    "the library": ({"truncation": "Left"}, None),
    "the settings before the library": (
        {"truncation": "Right"},
        {"truncation_side": "left"},
    ),
    "a gap in the settings": (
        {"truncation": "Left"},
        {"truncation_side": None},
    ),
}


def write_sides(folder, library, settings):
    """Writes the directions of a tokenizer.json, and a tokenizer_config."""
    whole = {
        "truncation": {
            "max_length": 3, "strategy": "LongestFirst", "stride": 0
        },
        "padding": {
            "strategy": "BatchLongest", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        },
    }  # fmt: skip
    parts = {
        part: {**whole[part], "direction": direction}
        for part, direction in library.items()
    }
    changed_library(folder, **parts)
    if settings is not None:
        write(folder, tokenizer_config=settings)


@engines
@pytest.mark.parametrize("source", SIDES)
def test_the_end_that_is_cut_is_read(source, engine, tmp_path):
    write_sides(tmp_path, *SIDES[source])
    tokenizer = Tokenizer.from_pretrained(tmp_path, engine=engine)
    assert tokenizer.truncation_side == "left"
    assert len(tokenizer.encode(LONG)) == 6  # nothing else of it is read
    library = Library.from_file(str(tmp_path / "tokenizer.json"))
    library.enable_truncation(4, direction="left")
    ids = tokenizer([LONG, "x"], max_length=4)["input_ids"]
    assert ids[0].tolist() == library.encode(LONG).ids
    assert tokenizer.decode(ids[0]) == "new a"


def test_the_end_that_is_cut_is_saved(tmp_path):
    for side in ("left", "right"):
        tokenizer = Tokenizer(PIECES, truncation_side=side)
        tokenizer.save_pretrained(tmp_path)
        again = Tokenizer.from_pretrained(tmp_path)
        assert again.truncation_side == side
        settings = (tmp_path / "tokenizer_config.json").read_text("utf-8")
        assert ("truncation_side" in settings) == (side == "left")


@pytest.mark.parametrize(
    ("library", "settings"),
    [
        ({}, {"padding_side": "left"}),
        ({"padding": "Left"}, None),
        ({"padding": "Right"}, {"padding_side": "left"}),
    ],
)
def test_padding_on_the_left_is_told_and_left_out(library, settings, tmp_path):
    write_sides(tmp_path, library, settings)
    with pytest.warns(UserWarning, match="is 'left', but rows are padded on"):
        tokenizer = Tokenizer.from_pretrained(tmp_path)
    batch = tokenizer([LONG, "x"])
    assert batch["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]
    tokenizer.save_pretrained(tmp_path)
    Tokenizer.from_pretrained(tmp_path)  # a warning would be an error


# Error: two files disagree.


NORMALIZER = {"clean_text": True, "type": "BertNormalizer"}
DISAGREEMENTS = {
    "case": ({"lowercase": True},
        {"tokenizer_config": {"do_lower_case": False}},
        ["`lowercase` of `normalizer` is True", "`do_lower_case` is False"]),
    "case the other way": ({"lowercase": False},
        {"tokenizer_config": {"do_lower_case": True}},
        ["`lowercase` of `normalizer` is False", "`do_lower_case` is True"]),
    "accents": ({"strip_accents": False},
        {"tokenizer_config": {"strip_accents": True}},
        ["`strip_accents` of `normalizer` is False", "is True"]),
    "accents that go with the case": ({"strip_accents": None,
        "lowercase": True}, {"tokenizer_config": {"strip_accents": False}},
        ["`strip_accents` of `normalizer` is None", "is False"]),
    "Chinese": ({"handle_chinese_chars": True},
        {"tokenizer_config": {"tokenize_chinese_chars": False}},
        ["`handle_chinese_chars` of", "`tokenize_chinese_chars` is False"]),
    "pieces": ({}, {"vocab": [*PIECES[:-1], "y"]},
        ["must have the same pieces", f"'y' and 'x' as id {SIZE - 1}"]),
    "an id": ({}, {"added_tokens": {"x": 5}},
        ["a piece must have one id", f"'x' with {SIZE - 1} and 5"]),
    "a piece": ({}, {"added_tokens": {"y": 5}},
        ["must give an id to one piece", "5 for 'hello' and 'y'"]),
    "a switch": ({},
        {"tokenizer_config": {"added_tokens_decoder": {"4": {**SPECIAL,
        "content": "[MASK]", "lstrip": True}}}},
        ["`lstrip` of '[MASK]' is False, `lstrip` of '[MASK]' is True"]),
}  # fmt: skip


@pytest.mark.parametrize("case", DISAGREEMENTS)
def test_a_disagreement_names_both_files_and_values(case, tmp_path):
    normalizer, files, parts = DISAGREEMENTS[case]
    changed_library(tmp_path, "normalizer", **normalizer)
    write(tmp_path, **files)
    with pytest.raises(ValueError, match="Received: ") as caught:
        Tokenizer.from_pretrained(tmp_path)
    (name,) = files
    suffix = ".txt" if name == "vocab" else ".json"
    for part in [*parts, "tokenizer.json", name + suffix]:
        assert part in str(caught.value)


BAD_FILES = {
    "an end that is none": ({"tokenizer_config": {"truncation_side": "both"}},
        ["tokenizer_config.json: `truncation_side` must be 'right' or 'left'"]),
    "a side that is none": ({"tokenizer_config": {"padding_side": 1}},
        ["tokenizer_config.json: `padding_side` must be 'right' or 'left'"]),
    "another mask": ({"tokenizer_config": {"mask_token": "<mask>"}},
        ["`mask_token` must be '[MASK]'. Received: '<mask>'."]),
    "another mask in a dict": (
        {"special_tokens_map": {"mask_token": {"content": "<mask>"}}},
        ["special_tokens_map.json: `mask_token` must be '[MASK]'"],
    ),
    "two names of one token": ({"tokenizer_config": {"cls_token": "[CLS]"},
        "special_tokens_map": {"cls_token": "<s>"}},
        ["tokenizer_config.json and ", "`cls_token` is '<s>'"]),
    "a token that is a number": ({"special_tokens_map": {"pad_token": 0}},
        ["`pad_token` must be the text of a token. Received: 0."]),
    "a token in a dict without a text": (
        {"special_tokens_map": {"pad_token": {"lstrip": True}}},
        ["`pad_token` must be the text of a token."],
    ),
    "special tokens that are a number": (
        {"special_tokens_map": {"additional_special_tokens": 5}},
        ["`additional_special_tokens` must be a list of tokens", "5"],
    ),
    "added tokens in a list": ({"added_tokens": ["[CITY]"]},
        ["added_tokens.json", "Received: "]),
    "an id that is a word": ({"added_tokens": {"[CITY]": "last"}},
        ["added_tokens.json: an added token must have an id", "'last'"]),
    "an id between two integers": ({"added_tokens": {"[CITY]": SIZE + 0.5}},
        ["added_tokens.json: an added token must have an id", "12.5"]),
    "an id below zero": ({"added_tokens": {"[CITY]": -1}},
        ["added_tokens.json: an added token must have an id", "-1"]),
    "an id that is a truth": ({"added_tokens": {"[CITY]": True}},
        ["added_tokens.json: an added token must have an id", "True"]),
    "a class in a list": (
        {"tokenizer_config": {"tokenizer_class": ["BertTokenizer"]}},
        ["`tokenizer_class` must be one", "['BertTokenizer']"],
    ),
    "a switch of a named token that is a word": (
        {"tokenizer_config": {"eos_token": {**SPECIAL, "lstrip": "no"}}},
        ["tokenizer_config.json, `eos_token`: `lstrip` must be True or False"],
    ),
    "an id beyond a gap": ({"added_tokens": {"[CITY]": SIZE + 2}},
        ["added_tokens.json: the ids must be 0, 1, 2, ...", "up to 14."]),
    "a decoder that is a list": (
        {"tokenizer_config": {"added_tokens_decoder": [1]}},
        ["`added_tokens_decoder` must be a JSON object. Received: list."],
    ),
    "a switch that is a word": (
        {
            "tokenizer_config": {
                "added_tokens_decoder": {"12": {**SPECIAL, "lstrip": "no"}}
            }
        },
        ["an added token must have an id, a text and switches"],
    ),
    "a Japanese tokenizer": (
        {"tokenizer_config": {"tokenizer_class": "BertJapaneseTokenizer"}},
        ["`tokenizer_class` must be one", "'BertJapaneseTokenizer'"],
    ),
    "a Japanese tokenizer in the config": (
        {"config": {"tokenizer_class": "BertJapaneseTokenizer"}},
        ["config.json: `tokenizer_class`"],
    ),
    "words cut by another program": (
        {"tokenizer_config": {"word_tokenizer_type": "mecab"}},
        ["`word_tokenizer_type` must be 'basic'. Received: 'mecab'."],
    ),
    "text that is not cut": ({"tokenizer_config": {"do_basic_tokenize": False}},
        ["`do_basic_tokenize` must be True. Received: False."]),
    "case that is a word": ({"config": {"do_lower_case": "yes"}},
        ["config.json: `do_lower_case` must be true or false"]),
    "two cases": ({"tokenizer_config": {"do_lower_case": True},
        "bert_config": {"do_lower_case": False}},
        ["tokenizer_config.json and ", "bert_config.json must say the same"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_by_name(case, tmp_path):
    files, parts = BAD_FILES[case]
    write(tmp_path, vocab=PIECES, **files)
    with pytest.raises(ValueError, match="Received: ") as caught:
        Tokenizer.from_pretrained(tmp_path)
    for part in parts:
        assert part in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_other_tokens_around_a_text_are_refused(tmp_path):
    stored = changed_library(tmp_path)
    assert Tokenizer.from_pretrained(tmp_path).vocabulary == PIECES
    stored["post_processor"]["cls"] = ["[MASK]", 4]
    write(tmp_path, tokenizer=stored)
    with pytest.raises(ValueError, match=r"`post_processor` must put \[CLS\]"):
        Tokenizer.from_pretrained(tmp_path)
    stored["post_processor"]["cls"] = ["[CLS]", 4]  # of another vocabulary
    write(tmp_path, tokenizer=stored)
    with pytest.raises(ValueError, match="`post_processor` must put"):
        Tokenizer.from_pretrained(tmp_path)
    stored["post_processor"] = None
    write(tmp_path, tokenizer=stored)
    assert Tokenizer.from_pretrained(tmp_path).encode("x").input_ids[0] == 2


@pytest.mark.parametrize("limit", [1_001, 10**12, 0])
def test_a_word_length_that_takes_hours_is_refused(limit, tmp_path):
    changed_library(tmp_path, "model", max_input_chars_per_word=limit)
    with pytest.raises(
        ValueError, match=r"tokenizer.json: `max_input_chars_per_word` must be"
    ):
        Tokenizer.from_pretrained(tmp_path)


# Round trip.


@engines
def test_added_tokens_are_saved_and_read_back(engine, tmp_path):
    write(
        tmp_path,
        vocab=PIECES,
        added_tokens={"[CITY]": SIZE, "covid": SIZE + 1},
        special_tokens_map={"additional_special_tokens": ["[CITY]"]},
    )
    first = Tokenizer.from_pretrained(tmp_path, engine=engine)
    first.save_pretrained(tmp_path / "again", model_max_length=17)
    text = "Hello [CITY]COVIDb [city] new covids"
    expected = first.encode(text)
    assert expected.input_ids[1:5] == [5, SIZE, SIZE + 1, 1]
    for removed in (None, "tokenizer.json"):
        if removed:
            (tmp_path / "again" / removed).unlink()
        again = Tokenizer.from_pretrained(tmp_path / "again", engine=engine)
        assert again.encode(text) == expected
        assert again.added_tokens == first.added_tokens
        assert again.special_tokens == first.special_tokens
    stored = json.loads((tmp_path / "again/tokenizer_config.json").read_text())
    assert stored["model_max_length"] == 17


def test_the_peer_reads_what_is_saved(tmp_path):
    from tokenizers import Tokenizer as Library

    tokenizer = Tokenizer(PIECES, added_tokens=["[PAD]", "new"])
    tokenizer.save_pretrained(tmp_path)
    library = Library.from_file(str(tmp_path / "tokenizer.json"))
    text = "hello new news [MASK]a"
    assert texts.as_tuple(library.encode(text)) == texts.as_tuple(
        tokenizer.encode(text)
    )
