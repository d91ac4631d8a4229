"""Values of every wrong type for every public name of the room.

Whatever comes, the answer is a result or an error of ours: it names the
argument, says the rule and what it received.
"""

import inspect
import re

import pytest

from bertbook.text import (
    added_tokens,
    bio,
    detokenize,
    merges,
    reach,
    sentences,
    tensor_map,
    tokenizer,
    tokenizer_files,
    vocabulary,
    wordpiece,
)
from bertbook.text.tokenizer import ENGINES, Tokenizer
from tests.helpers.toys import PIECES, TOY

VALUES = {
    "None": None,
    "an integer": 5,
    "a string": "x",
    "bytes": b"x",
    "a list of a number": [1],
    "a dict": {},
    "an object": object(),
    "not a number": float("nan"),
}
# Call: how it is called with a value.
CALLS = {
    "Tokenizer vocabulary": lambda v: Tokenizer(v),
    "Tokenizer lowercase": lambda v: Tokenizer(PIECES, lowercase=v),
    "Tokenizer strip_accents": lambda v: Tokenizer(PIECES, strip_accents=v),
    "Tokenizer split_cjk": lambda v: Tokenizer(PIECES, split_cjk=v),
    "Tokenizer max_word_length": lambda v: Tokenizer(PIECES, max_word_length=v),
    "Tokenizer added_tokens": lambda v: Tokenizer(PIECES, added_tokens=v),
    "Tokenizer engine": lambda v: Tokenizer(PIECES, engine=v),
    "from_vocab path": lambda v: Tokenizer.from_vocab(v),
    "from_pretrained name": lambda v: Tokenizer.from_pretrained(v),
    "from_pretrained engine": lambda v: Tokenizer.from_pretrained("mini", v),
    "train lines": lambda v: Tokenizer.train(v),
    "train vocab_size": lambda v: Tokenizer.train(["a"], v),
    "train lowercase": lambda v: Tokenizer.train(["a"], 6, v),
    "train alphabet": lambda v: Tokenizer.train(["a"], 8, alphabet=v),
    "train limit": lambda v: Tokenizer.train(["a"], 6, limit_alphabet=v),
    "train engine": lambda v: Tokenizer.train(["a"], 6, engine=v),
    "save_pretrained folder": lambda v: TOY.save_pretrained(v),
    "save_pretrained limit": lambda v: TOY.save_pretrained("folder", v),
    "write_files folder": lambda v: TOY.write_files(v),
    "write_files limit": lambda v: TOY.write_files("folder", v),
    "encode text": lambda v: TOY.encode(v),
    "encode pair": lambda v: TOY.encode("a", v),
    "encode max_length": lambda v: TOY.encode("a", max_length=v),
    "call texts": lambda v: TOY(v),
    "call pairs": lambda v: TOY(["a"], v),
    "call max_length": lambda v: TOY(["a"], max_length=v),
    "call padding": lambda v: TOY(["a"], padding=v),
    "as_map max_length": lambda v: TOY.as_map(v),
    "as_map padding": lambda v: TOY.as_map(9, v),
    "BatchMap element": lambda v: TOY.as_map(9)(v),
    "encode_pieces texts": lambda v: TOY.encode_pieces(v),
    "decode ids": lambda v: TOY.decode(v),
    "decode skip": lambda v: TOY.decode([5], v),
    "AddedToken content": lambda v: added_tokens.AddedToken(v),
    "AddedToken special": lambda v: added_tokens.AddedToken("a", special=v),
    "checked_tokens": lambda v: added_tokens.checked_tokens(v, TOY.ids),
    "split_tag": lambda v: bio.split_tag(v),
    "place_entities text": lambda v: bio.place_entities(v, [], []),
    "place_entities offsets": lambda v: bio.place_entities("a", v, []),
    "place_entities entities": lambda v: bio.place_entities("a", [], v),
    "find_words tokenizer": lambda v: bio.find_words(v, "a"),
    "find_words text": lambda v: bio.find_words(TOY, v),
    "find_words most_pieces": lambda v: bio.find_words(TOY, "a-a", v),
    "spell ids": lambda v: detokenize.spell(v, TOY),
    "spell tokenizer": lambda v: detokenize.spell([5], v),
    "join_pieces": lambda v: detokenize.join_pieces(v),
    "join_words": lambda v: detokenize.join_words(v),
    "split_sentences": lambda v: sentences.split_sentences(v),
    "number_pieces": lambda v: vocabulary.number_pieces(v),
    "read_vocabulary": lambda v: vocabulary.read_vocabulary(v),
    "limit_letters counts": lambda v: vocabulary.limit_letters(v, 2),
    "limit_letters limit": lambda v: vocabulary.limit_letters({"a": 1}, v),
    "train_pieces counts": lambda v: vocabulary.train_pieces(v, 9),
    "train_pieces size": lambda v: vocabulary.train_pieces({"a": 1}, v),
    "tokenize text": lambda v: wordpiece.tokenize(v, PIECES),
    "count_words": lambda v: wordpiece.count_words(v),
}
# Right answers to values that only look wrong.
FINE = {
    ("Tokenizer strip_accents", "None"),
    ("Tokenizer max_word_length", "an integer"),
    ("train limit", "None"),
    ("train limit", "an integer"),
    ("train alphabet", "a string"),
    ("save_pretrained folder", "a string"),
    ("save_pretrained limit", "None"),
    ("save_pretrained limit", "an integer"),
    ("write_files folder", "a string"),
    ("write_files limit", "None"),
    ("write_files limit", "an integer"),
    ("encode text", "a string"),
    ("encode pair", "None"),
    ("encode pair", "a string"),
    ("encode max_length", "None"),
    ("encode max_length", "an integer"),
    ("call pairs", "None"),
    ("call max_length", "None"),
    ("call max_length", "an integer"),
    ("as_map max_length", "an integer"),
    ("decode ids", "a list of a number"),
    ("AddedToken content", "a string"),
    ("place_entities text", "a string"),
    ("place_entities offsets", "a list of a number"),  # no entity, no place
    ("limit_letters counts", "a dict"),
    ("find_words text", "a string"),
    ("find_words most_pieces", "None"),
    ("find_words most_pieces", "an integer"),
    ("spell ids", "a list of a number"),
    ("split_sentences", "a string"),
    ("limit_letters limit", "an integer"),
    ("tokenize text", "a string"),
}
# Names that chapters quote, or that only other files of the room call with
# values of their own, or that take any value (`other_scheme`).
INNER = {
    "added_tokens": {"cut", "split_at", "without_doubles"},
    "merges": {"count_pieces_and_pairs", "learn_merges", "merge_pair", "spell",
        "train_vocabulary"},
    "reach": {"check_reach", "guess_accents", "guess_lowercase", "ordinary"},
    "tokenizer": {"Encoding", "longest_first"},
    "tokenizer_files": {"Claim", "read_library_file", "read_tokenizer"},
    "wordpiece": {"Piece", "clean", "drop_accents", "isolate_cjk", "is_cjk",
        "is_control", "is_punctuation", "match_longest", "split_special_tokens",
        "split_words"},
    "bio": {"Entity", "find_entities", "other_scheme", "repair_bio"},
}  # fmt: skip
MODULES = (
    added_tokens,
    bio,
    detokenize,
    merges,
    reach,
    sentences,
    tensor_map,
    tokenizer,
    tokenizer_files,
    vocabulary,
    wordpiece,
)


@pytest.mark.filterwarnings("ignore:The text gives", "ignore:No text reaches")
@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_type_is_refused_in_our_words(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in VALUES.items():
        if (call, name) in FINE:
            CALLS[call](value)
            continue
        with pytest.raises((ValueError, FileNotFoundError)) as caught:
            CALLS[call](value)
        message = str(caught.value)
        ours = re.search(
            r"`\w+[`\[(]|No vocabulary at|An element must", message
        )
        assert ours, (name, message)
        assert len(message) < 1_000, name


@pytest.mark.parametrize("engine", ENGINES)
def test_both_engines_refuse_alike(engine):
    tokenizer = Tokenizer(PIECES, engine=engine)
    for name in VALUES.keys() - {"a string"}:
        with pytest.raises(ValueError, match="`text` must be a string"):
            tokenizer.encode(VALUES[name])


def test_every_public_name_is_called():
    called = " ".join(CALLS)
    public = 0
    for module in MODULES:
        name = module.__name__.split(".")[-1]
        for found, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if found.startswith("_") or not callable(value):
                continue
            public += 1
            known = found in called or found in INNER.get(name, ())
            assert known, f"{name}.{found}"
    assert public > 40


def test_every_public_method_of_the_tokenizer_is_called():
    called = " ".join(CALLS)
    for name, _ in inspect.getmembers(Tokenizer, inspect.isroutine):
        if not name.startswith("_"):
            assert name.removesuffix("_pretrained") in called, name
