"""The list of errata: whole, right where it is computed, and able to fail."""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

import book
import facts
from bertbook.book import forward_pass
from bertbook.book.errata import attention, erratum, register
from bertbook.book.errata.erratum import agrees, computed, expected
from bertbook.book.errata.history import REPORTED
from bertbook.book.errata.tokens import IDS, PUBLISHED_IDS, SENTENCE
from bertbook.book.references import OF_THE_SOURCES, SOURCES
from bertbook.config import BertConfig
from bertbook.datasets.catalog import SETS
from bertbook.model.encoder import EncoderBlock
from bertbook.pretraining import masking
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from bertbook.weights import names
from tests.helpers import texts

EVERY = {entry.number: entry for entry in register.every()}
CHECKED = [number for number, entry in EVERY.items() if entry.check]
NOTED = {37, 38, 40, 46, 51, 52, 53, 61, 72, 80, 81, 82}
# How many entries each text has; two texts may share one.
COUNTS = {
    "encoder": 18,
    "forward pass": 11,
    "encoder layer": 11,
    "decoder": 12,
    "lecture notes": 38,
}
# Chapters that are named before they are there.
CHAPTERS = {
    *("40_one_sentence", "41_two_sentences", "42_questions", "43_tags"),
    *("52_variants", "60_decoder", "61_translation", "62_lineage"),
}


def ids(number):
    return f"E{number:02}"


def test_errata_are_numbered_from_1_to_83():
    assert list(EVERY) == list(range(1, 84))
    assert len(register.every()) == 83
    assert set(EVERY) - set(CHECKED) == NOTED


def test_slips_are_told_from_what_is_true_and_from_what_is_simplified():
    """A reader must know which entries are no fault of the text."""
    assert {entry.kind for entry in EVERY.values()} == set(erratum.KINDS)
    assert EVERY[1].kind == erratum.SLIP
    for number in (3, 18, 36, 40, 42, 80):
        assert EVERY[number].kind == erratum.TRUE


def test_each_subject_holds_some_and_none_twice():
    found = [
        entry.number
        for subject in register.SUBJECTS
        for entry in register.of_subject(subject)
    ]
    assert len(found) == len(set(found))
    assert min(len(register.of_subject(s)) for s in register.SUBJECTS) >= 7


@pytest.mark.parametrize("number", CHECKED, ids=ids)
def test_what_is_right_is_computed(number):
    result = register.run_one(EVERY[number])
    if result.computed_value is None:
        pytest.skip("needs keras-nlp")
    assert result.holds, (result.computed_value, EVERY[number].value)


def test_what_the_text_says_does_not_hold():
    for number in CHECKED:
        entry = EVERY[number]
        assert not entry.holds(entry.said), number
        turned = entry._replace(value=entry.said)
        assert not turned.holds(entry.said), number


def test_an_entry_is_short_and_whole():
    known = {chapter.name for chapter in book.everything()} | CHAPTERS
    for number, entry in EVERY.items():
        assert set(entry.sources) <= set(SOURCES)
        assert bool(entry.sources) == (number != 83)  # guides, not one text
        assert entry.chapter in known
        assert entry.says != entry.right
        assert 1 <= len(entry.says.split()) <= 20
        assert len(entry.right.split()) <= 50
        assert "`" not in entry.says + entry.right  # shown as it is


def test_its_numbers_are_computed_or_cited():
    """What the sentence about the right states stands behind it."""
    known = facts.plain_numbers(str(PUBLISHED_IDS)) | facts.known()
    for number, entry in EVERY.items():
        value = entry.shown(expected(entry.value)) if entry.check else ""
        allowed = facts.plain_numbers(f"{value} {entry.says} {IDS}") | known
        assert facts.unbacked(entry.right, allowed) == [], number


def test_the_printed_softmax_has_one_misprint():
    """All other entries are right to three digits, cut off."""
    weights = forward_pass.softmax(attention.SCORES)
    wrong = np.abs(attention.PRINTED / weights - 1) > 0.01
    assert np.argwhere(wrong).tolist() == [[0, 0]]
    assert attention.digits_cut_off() == (34, 18)
    single = forward_pass.softmax(attention.SCORES.astype("float32"))
    assert (single == 0).sum() == 7


def test_errata_are_counted_for_each_text():
    found = dict.fromkeys(SOURCES, 0)
    for entry in EVERY.values():
        for source in entry.sources:
            found[source] += 1
    assert found == COUNTS


# The same with the published vocabulary.


def test_ids_and_pieces_are_those_of_bert_base_uncased(shared_data):
    vocabulary = texts.published_vocabulary(shared_data, "uncased")
    tokenizer = Tokenizer(vocabulary)
    assert tuple(tokenizer.encode(SENTENCE).input_ids[1:-1]) == PUBLISHED_IDS
    assert all(vocabulary[i].startswith("[unused") for i in (*IDS, 5))
    assert tokenizer.encode("playing").input_ids[1:-1] == [2652]
    second = tokenizer.encode("flightless").tokens[1:-1]
    assert second == ["flight", "##less"]
    assert len(tokenizer.encode("hello world")) == 4


# Each check fails when the thing that it is about is broken.


def doubled(function):
    """Gives every shape twice as many rows."""

    def shapes(config):
        found = function(config)
        return {name: (2 * rows, *s) for name, (rows, *s) in found.items()}

    return shapes


class Whole(Tokenizer):
    """A tokenizer whose vocabulary is words, with the sources' ids."""

    @classmethod
    def from_pretrained(cls, name):
        words = {*(f"[unused{i}]" for i in range(700)), "play", "##ing"}
        pieces = [*SPECIAL_TOKENS, *sorted(words)]
        words = ("hello", ",", "how", "are", "you", "?")
        for i, word in zip(IDS, words, strict=True):
            pieces[i] = word
        return cls(pieces)


class DenseOnly(EncoderBlock):
    """A block that ends with its two dense layers."""

    def call(self, hidden):
        half = self.attention_norm(hidden + self.attention(hidden))
        return self.feed_forward(half)


class OtherConfig(BertConfig):
    """A config with other rates, epsilon, activation and sizes."""

    def __init__(self, **sizes):
        other = {
            "hidden_dropout_prob": 0.2,
            "layer_norm_eps": 1e-5,
            "hidden_act": "relu",
            "max_position_embeddings": 128,
            "pad_token_id": 5,
        }
        super().__init__(**sizes | other)

    @classmethod
    def named(cls, name, **sizes):
        other = {
            "hidden_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 3,
            "intermediate_size": 40,
            "hidden_act": "relu",
        }
        return BertConfig(**sizes | other)


def no_exponents(length, width):
    table = np.zeros((length, width))
    table[:, 0::2] = np.sin(np.arange(length))[:, None]
    table[:, 1::2] = np.cos(np.arange(length))[:, None]
    return table


def by_columns(scores):
    return forward_pass.softmax(scores.T).T


def one_winner(scores):
    return np.eye(scores.shape[-1])[scores.argmax(axis=-1)]


def even_shares(scores):
    return np.full(scores.shape, 1 / scores.shape[-1])


def noise(weights, ids, config):
    rows = np.random.default_rng(ids).normal(size=(2, 11, 128))
    return rows, None


def best_of_each(start, end, n_best):
    return [(0.0, int(start.argmax()), int(end.argmax()))]


def two_scores(*args, **kwargs):
    kernel = np.zeros((128, 2))
    model = SimpleNamespace(classifier=SimpleNamespace(kernel=kernel))
    return _Model(model, np.zeros((2, 2)))


class _Model(SimpleNamespace):
    def __init__(self, model, logits):
        super().__init__(**vars(model), logits=logits)

    def __call__(self, batch):
        return self.logits


def one_for_each(batch):
    """An encoder that knows the ids alone: no place, no context, no mask."""
    return {"sequence_output": np.eye(50)[batch["input_ids"]]}


def rows_of_ids(config):
    """Embeddings that know no place."""
    return lambda ids, segments: np.eye(30)[ids]


def dated(works):
    return [w._replace(first=w.first[::-1]) for w in works]


shapes_doubled = doubled(names.encoder_shapes)
literal_doubled = doubled(forward_pass.literal_shapes)
heads_doubled = doubled(names.head_shapes)
masked_always = masking.Masking(mask_share=1, random_share=0)
# Module, its name, what stands there instead, and the checks that then fail.
FAULTS = [
    ("tokens", "untrained_encoder", lambda: one_for_each, {8, 11, 39}),
    ("tokens", "BertConfig", OtherConfig, {8}),
    ("tokens", "Tokenizer", Whole, {9, 12, 73}),
    ("tokens", "softmax", lambda scores: scores / scores.sum(), {10}),
    ("tokens", "wordpiece",
     SimpleNamespace(match_longest=lambda word, known: [word]), {74}),
    ("positions", "sinusoids", no_exponents, {16, 63, 64}),
    ("positions", "sinusoids", lambda s, d: np.ones((s, d)), {13}),
    ("positions", "LearnedPositions", lambda limit: lambda rows: rows, {14}),
    ("positions", "encoder_shapes", shapes_doubled, {15, 54, 65}),
    ("positions", "BertEmbeddings", rows_of_ids, {31}),
    ("positions", "read_checkpoint",
     lambda name: SimpleNamespace(arrays={"w": np.zeros(2)}), {62}),
    ("attention", "softmax", by_columns, {1, 2, 3, 36}),
    ("attention", "softmax", one_winner, {68}),
    ("attention", "softmax", even_shares, {33}),
    ("attention", "draw", lambda *s, seed=0: np.ones(s), {4, 6, 36}),
    ("attention", "ROW", (0, 0, 0, 1, 0, 0), {5}),
    ("attention", "literal_shapes", literal_doubled, {7}),
    ("attention", "Tokenizer", lambda words: SimpleNamespace(encode=str.split),
     {34}),
    ("attention", "STATES", ((2, 3), (4, 6)), {66}),
    ("block", "BertConfig", OtherConfig, {17, 19, 20}),
    ("block", "tanh_form", np.abs, {18}),
    ("block", "encoder_shapes", shapes_doubled, {20, 69}),
    ("block", "literal_forward_pass", noise, {32}),
    ("block", "EncoderBlock", DenseOnly, {35}),
    ("block", "BLOCK_PARTS", names.BLOCK_PARTS[:6], {67}),
    ("block", "layer_norm", lambda rows: rows - rows.mean(axis=0), {69}),
    ("sizes", "encoder_shapes", shapes_doubled, {21, 22, 23, 24, 25, 27}),
    ("sizes", "literal_shapes", literal_doubled, {27}),
    ("sizes", "BertConfig", OtherConfig, {26, 30, 55}),
    ("sizes", "literal_attention_head", lambda h, q, k, v: h @ q, {28}),
    ("sizes", "draw_matrix", lambda: np.eye(3), {29}),
    ("sizes", "SIZES", {"base": 0, "large": 0}, {56}),
    ("sizes", "BertConfig", lambda **sizes: SimpleNamespace(head_size=64),
     {76}),
    ("training", "BertForSequenceClassification", two_scores, {60}),
    ("training", "BertForMultipleChoice", two_scores, {79}),
    ("training", "Masking", lambda: masked_always, {70}),
    ("training", "head_shapes", heads_doubled, {71, 77}),
    ("training", "BertConfig", OtherConfig, {75}),
    ("training", "best_spans", best_of_each, {78}),
    ("decoder", "softmax", even_shares, {41, 42, 43, 48, 49}),
    ("decoder", "shift_right", lambda tokens: tuple(tokens), {44, 45, 59}),
    ("decoder", "split_words", lambda characters: ["Hola,"], {44}),
    ("decoder", "SOURCE", ("Hello", "?", "how", "are", "you", "?"), {47}),
    ("decoder", "OUTPUT_MATRIX", (768, 37_000), {50}),
    ("history", "OF_THE_SOURCES", dated(OF_THE_SOURCES), {57}),
    ("history", "gpt_block", lambda width: 12 * width * width, {58}),
    ("history", "metadata", SimpleNamespace(requires=lambda name: ["keras"],
     PackageNotFoundError=ImportError), {83}),
]  # fmt: skip


def test_a_check_fails_where_its_subject_is_broken(monkeypatch):
    for module, name, other, numbers in FAULTS:
        home = importlib.import_module(f"bertbook.book.errata.{module}")
        with monkeypatch.context() as patch:
            patch.setattr(home, name, other)
            for number in numbers:
                found = register.run_one(EVERY[number])
                assert found.holds is False, (number, name)


def test_every_check_was_broken():
    assert set().union(*(numbers for *_, numbers in FAULTS)) == set(CHECKED)


def test_what_the_paper_reports_is_known():
    """The sets have readers here; 13 scores of BERT-large, 12 of base."""
    sets = {name.split(",")[0].lower() for name, *_ in REPORTED}
    sets = {s.replace("-", "").replace(" 1.1", "") for s in sets}
    assert {s.replace(" 2.0", "_v2") for s in sets} <= set(SETS)
    assert [sum(map(bool, column)) for column in zip(*REPORTED, strict=True)][
        2:4
    ] == [12, 13]


# What an erratum is.


def test_agreement_is_of_kind_and_value():
    assert agrees(2.4001e-06, 2.400e-06)
    assert not agrees(2.41e-06, 2.400e-06)
    assert agrees((1, True, "a"), (1, True, "a"))
    for found, value in (
        (True, 1),
        (1, 1.0),
        ((1,), 1),
        ((1, 2), (1,)),
        (109_482_241, 109_482_240),
        ("relu", "gelu"),
        (None, 0),
    ):
        assert not agrees(found, value)


def test_a_check_stays_a_function_and_is_shown_with_its_names():
    @computed(
        7,
        "encoder",
        "20_attention",
        says="one",
        right="two",
        value={"how many": 2, "share": 0.25, "seen": True},
        said=(1, 0.5, False),
    )
    def check():
        return 2, 0.25, True

    entry = check.erratum
    assert check() == (2, 0.25, True) == expected(entry.value)
    assert entry.sources == ("encoder",)
    assert entry.holds(check())
    assert not entry.holds((2, 0.25, False))
    assert entry.shown(check()) == "how many: 2; share: 0.25; seen: yes"
    assert erratum.shown(1_234) == "1,234"


def test_a_row_says_what_was_found(monkeypatch):
    entry = EVERY[1]
    cells = register.row(register.run_one(entry))
    assert cells[:2] == ("1", "slip")
    assert cells[2].endswith("Dissecting BERT Part 1: The Encoder")
    assert cells[5:] == ("2.4001e-06", "20_attention")
    wrong = entry._replace(check=lambda: 0.5)
    assert register.row(register.run_one(wrong))[5] == "0.5 (FAILS)"
    absent = EVERY[83]._replace(check=lambda: None)
    assert register.row(register.run_one(absent))[5] == "not installed here"
    assert register.row(register.run_one(absent))[2] == register.GUIDES
    assert register.row(register.run_one(EVERY[37]))[5] == ""
    assert len(register.listing(register.run([entry, wrong]))) == 2


def test_an_unknown_subject_is_refused():
    with pytest.raises(ValueError, match="`subject` must be one of tokens, "):
        register.of_subject("words")
