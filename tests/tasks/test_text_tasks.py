"""Tasks about whole texts: rows, what is learned, predictions, bad input."""

import math
import sys

import numpy as np
import pytest

from bertbook.tasks import metrics, text_tasks
from bertbook.tasks.base import Settings, softmax
from bertbook.tasks.labels import ONE_LABEL, REGRESSION, SEVERAL_LABELS
from bertbook.tasks.text_tasks import Choices, Texts
from tests.helpers.toys import TOY, stand_in

TEXTS = ["a b", "c", "d e f g", "", "h i"]
PAIRS = ["z", "y x", "w", "v", "u t s"]
CHOICES = [["m n", "o", "p"], ["q", "r s t", "u"]]
CUT = Settings(max_length=6)


def task_of(data, settings=CUT, kind=Texts, **options):
    return kind(stand_in(**options), data, settings)


# Definition.


@pytest.mark.parametrize("chunk", [2, 2_000])
@pytest.mark.parametrize("pairs", [None, PAIRS])
def test_rows_are_what_the_tokenizer_gives(pairs, chunk, monkeypatch):
    monkeypatch.setattr(text_tasks, "CHUNK", chunk)
    data = {"text": TEXTS} | ({} if pairs is None else {"text_pair": pairs})
    rows = task_of(data).rows
    for row, text in enumerate(TEXTS):
        pair = None if pairs is None else pairs[row]
        expected = TOY.encode(text, pair, max_length=6)
        assert rows.input_ids[row].tolist() == expected.input_ids
        assert rows.token_type_ids[row].tolist() == expected.token_type_ids


def test_rows_of_choices_are_the_text_with_each():
    data = {"text": TEXTS[:2], "choices": CHOICES}
    rows = task_of(data, kind=Choices).rows
    assert (len(rows), rows.choices) == (2, 3)
    expected = [
        TOY.encode(text, choice, max_length=6).input_ids
        for text, choices in zip(TEXTS, CHOICES, strict=False)
        for choice in choices
    ]
    assert [ids.tolist() for ids in rows.input_ids] == expected


def test_softmax_by_loops():
    logits = np.random.default_rng(0).normal(size=(3, 5)) * 9
    received = softmax(logits)
    for row, column in np.ndindex(3, 5):
        below = sum(math.exp(x) for x in logits[row])
        expected = math.exp(logits[row, column]) / below
        assert received[row, column] == pytest.approx(expected)
    assert np.isfinite(softmax(logits * 1e4)).all()


@pytest.mark.parametrize("names", [None, ["no", "maybe", "yes"]])
def test_one_label_is_the_likeliest(names):
    task = task_of({"text": TEXTS[:2]}, names=names, num_labels=3)
    logits = np.log([[1, 2, 7], [5, 3, 2]])
    found = task.predictions(list(logits))
    labels = names or [0, 1, 2]
    assert [row["label"] for row in found] == [labels[2], labels[0]]
    assert [row["score"] for row in found] == pytest.approx([0.7, 0.5])


def test_several_labels_are_those_above_one_half():
    names = ["red", "green", "blue"]
    task = task_of({"text": TEXTS[:2]}, names=names, problem=SEVERAL_LABELS)
    found = task.predictions([np.array([2.0, -1, 0.5]), -np.ones(3)])
    assert [row["labels"] for row in found] == [["red", "blue"], []]
    for name, logit in zip(names, (2.0, -1, 0.5), strict=True):
        expected = 1 / (1 + math.exp(-logit))
        assert found[0]["scores"][name] == pytest.approx(expected)


def test_the_prediction_of_a_regression_is_its_logit():
    task = task_of({"text": TEXTS[:2]}, num_labels=1, problem=REGRESSION)
    found = task.predictions([np.array([2.5]), np.array([-1.0])])
    assert found == [{"score": 2.5}, {"score": -1.0}]


def test_a_choice_is_the_likeliest():
    task = task_of({"text": TEXTS[:2], "choices": CHOICES}, kind=Choices)
    found = task.predictions(list(np.log([[1, 2, 7], [5, 3, 2]])))
    assert [row["choice"] for row in found] == [2, 0]
    assert [row["text"] for row in found] == ["p", "q"]
    assert [row["score"] for row in found] == pytest.approx([0.7, 0.5])


def one_label(num_labels):
    rng = np.random.default_rng(num_labels)
    labels = rng.integers(0, num_labels, 5).tolist()
    logits = rng.normal(size=(5, num_labels))
    task = task_of({"text": TEXTS, "label": labels}, num_labels=num_labels)
    return task, logits, labels, logits.argmax(axis=1)


@pytest.mark.parametrize(("num_labels", "mean"), [(2, "binary"), (3, "macro")])
def test_scores_of_one_label(num_labels, mean):
    task, logits, labels, guesses = one_label(num_labels)
    assert task.score(list(logits)) == {
        "accuracy": metrics.accuracy(labels, guesses),
        "f1": metrics.f1(labels, guesses, mean),
        "matthews": metrics.matthews(labels, guesses),
    }


@pytest.mark.parametrize("name", ["sklearn", "scipy"])
def test_scores_need_no_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    task, logits, _, _ = one_label(3)
    assert set(task.score(list(logits))) == {"accuracy", "f1", "matthews"}
    data = {"text": TEXTS[:3], "label": [1.0, 2.0, 4.0]}
    task = task_of(data, num_labels=1, problem=REGRESSION)
    found = task.score([np.array([value]) for value in (2.0, 3.0, 5.0)])
    assert found["spearman"] == pytest.approx(1.0)


def test_scores_of_several_labels_and_of_numbers():
    data = {"text": TEXTS[:3], "label": [[0], [0, 2], []]}
    task = task_of(data, num_labels=3, problem=SEVERAL_LABELS)
    logits = [np.array(row) for row in ([1, -1, -1], [1, 1, -1], [-1, -1, -1])]
    assert task.score(logits) == pytest.approx(
        {"exact_match": 2 / 3, "precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3}
    )
    data = {"text": TEXTS[:3], "label": [1.0, 2.0, 4.0]}
    task = task_of(data, num_labels=1, problem=REGRESSION)
    found = task.score([np.array([value]) for value in (2.0, 3.0, 5.0)])
    expected = {"pearson": 1.0, "spearman": 1.0, "mean_squared_error": 1.0}
    assert found == pytest.approx(expected)


def test_scores_of_choices():
    data = {"text": TEXTS[:2], "choices": CHOICES, "label": [2, 1]}
    task = task_of(data, kind=Choices)
    assert task.score(list(np.eye(3)[[2, 0]])) == {"accuracy": 0.5}


# Property.

TASKS = {
    "one": ({"label": [0, 1, 1, 0, 1]}, {}, (5,), "int32"),
    "several": (
        {"label": [[0], [], [1, 2], [2], [0]]},
        {"num_labels": 3, "problem": SEVERAL_LABELS},
        (5, 3),
        "float32",
    ),
    "number": (
        {"label": [0.5, 1, 2, 3, 4]},
        {"num_labels": 1, "problem": REGRESSION},
        (5, 1),
        "float32",
    ),
    "choice": (
        {"choices": [["m", "n"]] * 5, "label": [0, 1, 1, 0, 1]},
        {"kind": Choices},
        (5,),
        "int32",
    ),
}
every_task = pytest.mark.parametrize("name", TASKS)


@every_task
def test_targets_fit_the_loss_and_the_main_metric_is_scored(name):
    data, options, shape, dtype = TASKS[name]
    task = task_of({"text": TEXTS} | data, **options)
    task.learn()
    target = np.array(task.rows.targets[""])
    assert target.shape == shape
    assert target.dtype == dtype
    assert task.main_metric in task.blank_score()


@every_task
def test_the_order_of_the_rows_changes_no_metric(name):
    data, options, *_ = TASKS[name]
    data = {"text": TEXTS} | data
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(5, options.get("num_labels", 2)))
    order = rng.permutation(5)
    moved = {key: [rows[i] for i in order] for key, rows in data.items()}
    expected = task_of(data, **options).score(list(outputs))
    received = task_of(moved, **options).score(list(outputs[order]))
    assert received == pytest.approx(expected)
    assert list(received) == list(task_of(data, **options).blank_score())


# Error.

FULL = {"text": TEXTS, "label": [0, 1, 1, 0, 1]}


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({}, KeyError, "`data` must hold the columns text. Received: none"),
        ({"label": [0]}, KeyError, "must hold the columns text.*: label"),
        (FULL | {"label": [0]}, ValueError, "'text': 5, 'label': 1"),
        (FULL | {"text_pair": ["a"]}, ValueError, "one length.*'text_pair': 1"),
        ({"text": [], "label": []}, ValueError, "1 at least.*'text': 0"),
        ([("a", 1)], ValueError, "`data` must be a dict of columns.*: list"),
        ({"text": "abc"}, ValueError, "`text` must be a list .*: str"),
        ({"text": {"a"}}, ValueError, "`text` must be a list with an entry"),
        ({"text": {"a": 1}}, ValueError, "`text` must be a list with an entr"),
        (FULL | {"label": 1}, ValueError, "`label` must be a list .*: int"),
        (FULL | {"text_pair": None}, ValueError, "`text_pair` must be a list"),
        (
            {"text": ["a", 7, "b"]},
            ValueError,
            r"`text\[1\]` must be a string. Received: int",
        ),
        (
            {"text": ["a", "b"], "text_pair": ["a", None]},
            ValueError,
            r"`text_pair\[1\]` must be a string. Received: NoneType",
        ),
        ({"text": ["a", "\ud83d"]}, ValueError, r"`text\[1\]` .* surrogate"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_refused(data, error, message):
    with pytest.raises(error, match=message):
        task_of(data)


def test_logits_that_are_no_numbers_have_no_label():
    task = Texts(stand_in(), {"text": ["a", "b"]}, Settings())
    with pytest.raises(ValueError, match="load the weights again"):
        task.predictions([np.array([0.0, np.nan]), np.zeros(2)])


def test_a_text_is_never_cut_in_silence():
    data = {"text": ["a b", "a " * 20]}
    with pytest.raises(ValueError, match="17. Received: 22 tokens in row 1"):
        task_of(data, Settings())
    with pytest.raises(ValueError, match="17. Received: 22 tokens in row 1"):
        task_of(data, Settings(max_length=30))
    assert task_of(data, Settings(max_length=17)).rows.lengths().max() == 17
    choices = {"text": ["a", "b"], "choices": [["c", "d"], ["e", "f " * 20]]}
    with pytest.raises(ValueError, match="17. Received: 24 tokens in row 1"):
        task_of(choices, Settings(), Choices)


@pytest.mark.parametrize("max_length", [0, 2, 4.5, "all"])
def test_a_max_length_out_of_range_is_refused(max_length):
    with pytest.raises(
        ValueError, match="`max_length` must be an integer >= 3"
    ):
        task_of({"text": ["a"]}, Settings(max_length=max_length))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([["a", "b"], ["c"]], r"`choices\[1\]` must .* rows, 2. Received: 1"),
        ([["a"], ["b", "c"]], r"`choices\[0\]` must .* rows, 2. Received: 1"),
        ([["a"], ["b"]], r"`choices\[0\]` must hold 2 texts or more.*: 1"),
        ([["a", "b"], []], r"`choices\[1\]` must .* rows, 2. Received: 0"),
        ([["a", "b"], "cd"], r"`choices\[1\]` must be a list of strings.*str"),
        ([["a", "b"], 3], r"`choices\[1\]` must be a list of strings.*int"),
        ([["a", "b"], ["c", 3]], r"`choices\[1\]\[1\]` must be a string.*int"),
    ],
)
def test_bad_choices_are_named_with_their_row(choices, message):
    with pytest.raises(ValueError, match=message):
        task_of({"text": ["x", "y"], "choices": choices}, kind=Choices)


def test_a_text_with_choices_that_is_none_is_named_with_its_row():
    data = {"text": ["x", None], "choices": [["a", "b"]] * 2}
    with pytest.raises(ValueError, match=r"`text\[1\]` must be a string"):
        task_of(data, kind=Choices)


@every_task
def test_labels_are_needed_to_learn_and_to_score(name):
    data, options, *_ = TASKS[name]
    data = {"text": TEXTS} | {k: v for k, v in data.items() if k != "label"}
    task = task_of(data, **options)
    for call in (task.learn, task.blank_score):
        with pytest.raises(KeyError, match="must hold the column label"):
            call()


def test_a_label_without_a_choice_is_refused():
    data = {"text": TEXTS[:2], "choices": CHOICES, "label": [0, 3]}
    task = task_of(data, kind=Choices)
    with pytest.raises(ValueError, match=r"`label\[1\]` .* \[0, 3\).*: 3"):
        task.learn()


def test_a_model_without_tokenizer_is_refused():
    model = stand_in(problem=ONE_LABEL)
    model.tokenizer = None
    with pytest.raises(ValueError, match="`model` needs a tokenizer"):
        Texts(model, FULL, CUT)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_scores_do_not_hide_logits_that_are_no_numbers(value):
    data = {"text": ["a", "b"], "label": [0, 1]}
    tasks = [Texts(stand_in(), data, Settings())]
    data["choices"] = [["a", "b"]] * 2
    tasks.append(Choices(stand_in(), data, Settings()))
    for task in tasks:
        with pytest.raises(ValueError, match="logits .* must be finite"):
            task.score([np.zeros(2), np.array([value, 0.0])])
