"""Predictions from raw texts: all scores, progress, and no score of NaN."""

import io
import math

import numpy as np
import pytest

import bertbook as bb
from bertbook.batches.progress import Progress
from bertbook.tasks.labels import SEVERAL_LABELS
from tests.helpers.toys import TOY, make, toy_config

pytestmark = pytest.mark.usefixtures("plain_graphs")
CLASSIFIER = "BertForSequenceClassification"
TEXTS = ["a b", "c", "a b c d"]
NAMES = {0: "x", 1: "y", 2: "z"}
SETS = {
    "one label": (lambda: make(CLASSIFIER, id2label=NAMES),
        lambda model: model.predict_texts(["a"]),
        {"text": ["a"], "label": ["x"]}),
    "several labels": (lambda: make(CLASSIFIER, id2label=NAMES,
        problem_type=SEVERAL_LABELS), lambda model: model.predict_texts(["a"]),
        {"text": ["a"], "label": [["x"]]}),
    "a number": (lambda: make(CLASSIFIER, num_labels=1),
        lambda model: model.predict_texts(["a"]),
        {"text": ["a", "b"], "label": [0.5, 1.5]}),
    "a choice": (lambda: make("BertForMultipleChoice"),
        lambda model: model.predict_choices(["a"], [["b", "c"]]),
        {"text": ["a"], "choices": [["b", "c"]], "label": [0]}),
    "answers": (lambda: make("BertForQuestionAnswering"),
        lambda model: model.predict_answers(["a"], ["b c"]),
        {"question": ["a"], "context": ["b c"], "answers": [[{"text": "b",
        "answer_start": 0}]]}),
    "tags": (lambda: make("BertForTokenClassification",
        id2label=dict(enumerate(["B-X", "I-X", "O"]))),
        lambda model: model.predict_entities(["a b"]),
        {"tokens": [["a"]], "tags": [["O"]]}),
}  # fmt: skip


@pytest.fixture(scope="module")
def classifier():
    return make(CLASSIFIER, id2label=NAMES)


# All scores.


def test_all_scores_are_the_probabilities_in_the_order_of_the_labels():
    classifier = make(CLASSIFIER, id2label=NAMES)
    classifier.classifier.bias.assign([9.0, 0.0, 5.0])  # no order of size
    found = classifier.predict_texts(TEXTS, all_scores=True)
    plain = classifier.predict_texts(TEXTS)
    for row, same in zip(found, plain, strict=True):
        scores = row.pop("scores")
        assert list(scores) == ["x", "y", "z"]
        assert sum(scores.values()) == pytest.approx(1)
        assert max(scores, key=scores.__getitem__) == row["label"]
        assert max(scores.values()) == row["score"]
        assert row == same


def test_all_scores_of_choices_are_by_number():
    model = make("BertForMultipleChoice")
    choices = [["b", "b", "c"], ["d", "e", "f"]]
    for row in model.predict_choices(["a", "b"], choices, all_scores=True):
        assert list(row["scores"]) == [0, 1, 2]
        assert row["scores"][row["choice"]] == row["score"]


def test_several_labels_have_all_scores_anyway():
    model = make(CLASSIFIER, id2label=NAMES, problem_type=SEVERAL_LABELS)
    found = model.predict_texts(TEXTS, all_scores=True)
    assert found == model.predict_texts(TEXTS)
    assert list(found[0]["scores"]) == ["x", "y", "z"]


def test_a_regression_has_no_labels_to_score():
    model = make(CLASSIFIER, num_labels=1)
    with pytest.raises(ValueError, match="`all_scores` needs labels"):
        model.predict_texts(["a"], all_scores=True)


# Columns.


def test_any_column_of_texts_is_read_in_its_order(classifier):
    class Column:
        """Stands for a column of a table with an index of its own."""

        def __init__(self, values):
            self.values = values

        def __len__(self):
            return len(self.values)

        def __iter__(self):
            return iter(self.values)

        def __getitem__(self, key):
            raise KeyError(key)

    expected = classifier.predict_texts(TEXTS)
    for texts in (tuple(TEXTS), np.array(TEXTS), Column(TEXTS)):
        assert classifier.predict_texts(texts) == expected
    encoder = bb.BertEncoder(toy_config())
    encoder.tokenizer = TOY
    expected = encoder.embed_texts(TEXTS)
    assert np.array_equal(encoder.embed_texts(Column(TEXTS)), expected)
    assert encoder.embed_texts([]).shape == (0, 12)


# Progress.


def test_progress_is_one_line_in_a_file(classifier, capsys):
    classifier.predict_texts(TEXTS, batch_size=1, verbose=True)
    said = capsys.readouterr().out
    assert said.startswith("[====================] 3/3  ")
    assert said.count("\n") == 1
    assert "\r" not in said
    classifier.predict_texts(TEXTS)
    assert not capsys.readouterr().out


def test_progress_writes_over_its_line_in_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("bertbook.batches.progress.PAUSE", 0)
    progress = Progress(4, "texts")
    for count in (1, 3):
        progress.add(count)
    first, second = terminal.getvalue().split("\r")
    assert first.startswith("[=====               ] 1/4  ")
    assert second.startswith("[====================] 4/4  ")
    assert second.endswith("texts/s  0:00:00 left\n")


# NaN is no score.


@pytest.mark.parametrize("name", SETS)
def test_broken_weights_give_no_score(name):
    build, predict, data = SETS[name]
    model = build()
    predict(model)
    model.encoder.embeddings.token.embeddings.assign(
        np.full((len(TOY), 16), math.nan)
    )
    before = model.get_weights()
    with pytest.raises(ValueError, match="The outputs of `model` must be fin"):
        predict(model)
    with pytest.raises(ValueError, match="The outputs of `model` must be fin"):
        bb.evaluate(model, data)
    pairs = zip(before, model.get_weights(), strict=True)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def test_broken_weights_give_no_vector():
    encoder = bb.BertEncoder(toy_config())
    encoder.tokenizer = TOY
    norm = encoder.blocks[-1].output_norm
    norm.set_weights([np.full(12, math.inf), np.zeros(12)])
    message = "The outputs of `model` must be fin"
    for pooling in ("mean", "cls", "max"):
        with pytest.raises(ValueError, match=message):
            encoder.embed_texts(TEXTS, pooling)


def test_numbers_that_are_too_large_for_float16_are_named():
    encoder = bb.BertEncoder(toy_config(), dtype="float16")
    encoder.tokenizer = TOY
    norm = encoder.blocks[-1].output_norm
    norm.set_weights([np.full(12, 6e4), np.full(12, 6e4)])
    with pytest.raises(ValueError, match="in float16; .* compute in float32"):
        encoder.embed_texts(TEXTS)


# Texts out of the ordinary.


def test_a_text_of_nothing_has_a_label(classifier):
    (empty,) = classifier.predict_texts([""])
    assert classifier.predict_texts([" \n\t"]) == [empty]
    assert 0 < empty["score"] <= 1


def test_a_very_long_text_is_an_error_with_row_and_both_numbers(classifier):
    texts = ["a", "b " * 100_000]
    for call in (
        classifier.predict_texts,
        lambda texts: bb.evaluate(classifier, {"text": texts, "label": [0, 1]}),
    ):
        with pytest.raises(ValueError, match="24. Received: 100002 .* row 1"):
            call(texts)
    assert len(classifier.predict_texts(texts, max_length=24)) == 2


@pytest.mark.parametrize(
    ("kind", "call", "name", "of"),
    [
        ("a number", "predict_texts", "pairs", "texts"),
        ("answers", "predict_answers", "contexts", "questions"),
        ("a choice", "predict_choices", "choices", "texts"),
    ],
)
def test_two_columns_have_one_length(kind, call, name, of):
    model = SETS[kind][0]()
    for count in (1, 3):
        second = [["b", "c"] if name == "choices" else "b"] * count
        expected = f"`{name}` must hold as many texts as `{of}`, 2. "
        with pytest.raises(ValueError, match=f"{expected}Received: {count}"):
            getattr(model, call)(["a", "b"], second)
