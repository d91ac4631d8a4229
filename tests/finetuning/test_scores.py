"""Metrics of the user, and scores that must be numbers."""

import math

import numpy as np
import pytest

import bertbook as bb
from bertbook.finetuning import run as task_runs
from bertbook.finetuning.scores import check_metrics, score_task
from bertbook.tasks.base import Settings
from bertbook.tasks.labels import REGRESSION, SEVERAL_LABELS
from bertbook.tasks.text_tasks import Choices, Texts
from bertbook.tasks.word_tasks import Questions, Tags
from tests.helpers.runs import same
from tests.helpers.toys import make, stand_in

pytestmark = pytest.mark.usefixtures("quick_runs")
NAMES = ["accuracy", "f1"]


def errors(labels, predictions):
    return (labels != predictions).sum()


# What a function gets.


def compared(task, outputs):
    seen = []

    def keep(labels, predictions):
        seen[:] = labels, predictions
        return 0.5

    scores = score_task(task, outputs, {"kept": keep})
    assert scores["kept"] == 0.5
    return seen


def test_a_function_gets_the_labels_and_predictions_of_every_task():
    data = {"text": ["a", "b"], "label": ["y", "x"]}
    task = Texts(stand_in(names=("x", "y")), data, Settings())
    labels, found = compared(task, [np.array([2.0, 1]), np.array([3.0, 1])])
    assert (labels.tolist(), found.tolist()) == ([1, 0], [0, 0])

    data = {"text": ["a", "b"], "label": [["x"], []]}
    model = stand_in(names=("x", "y"), problem=SEVERAL_LABELS)
    outputs = [np.array([1.0, 1]), np.array([-1.0, 1])]
    labels, found = compared(Texts(model, data, Settings()), outputs)
    assert labels.tolist() == [[1, 0], [0, 0]]
    assert found.tolist() == [[1, 1], [0, 1]]

    data = {"text": ["a", "b"], "label": [0.5, 2]}
    task = Texts(stand_in(1, problem=REGRESSION), data, Settings())
    labels, found = compared(task, [np.array([1.5]), np.array([3.0])])
    assert (labels.tolist(), found.tolist()) == ([0.5, 2], [1.5, 3])

    data = {"text": ["a"], "choices": [["b", "c", "d"]], "label": [2]}
    task = Choices(stand_in(), data, Settings())
    labels, found = compared(task, [np.array([1.0, 3, 2])])
    assert (labels.tolist(), found.tolist()) == ([2], [1])

    data = {"tokens": [["a", "b"]], "tags": [["B-X", "O"]]}
    task = Tags(stand_in(names=("B-X", "I-X", "O")), data, Settings())
    logits = np.eye(3)[[0, 2, 0, 0]]
    assert compared(task, [logits]) == [[["B-X", "O"]], [["O", "B-X"]]]

    answers = {"text": ["b", "c"], "answer_start": [0, 2]}  # Hugging Face's
    data = {"question": ["a"], "context": ["b c"], "answers": [answers]}
    task = Questions(stand_in(), data, Settings())
    logits = np.array([0.0, 0, 0, 9, 0, 0])
    outputs = [{"start_logits": logits, "end_logits": logits}]
    assert compared(task, outputs) == [[["b", "c"]], ["b"]]


# Names.


class Counting:
    """Adds up what it sees, as a metric of Keras does."""

    def update_state(self, labels, predictions):
        self.count = len(labels)

    def __call__(self, labels, predictions):
        return 1.0


def test_functions_have_their_names_or_those_of_a_dict():
    assert check_metrics(None, NAMES) == {}
    assert check_metrics("f1", NAMES) == {}
    assert check_metrics(errors, NAMES) == {"errors": errors}
    assert check_metrics(["f1", errors], NAMES) == {"errors": errors}
    assert check_metrics({"wrong": errors, "f1": "f1"}, NAMES) == {
        "wrong": errors
    }


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("bleu", "`metrics` must name one of accuracy, f1, or be .*: 'bleu'"),
        (["f1", "bleu"], "`metrics` must name one of accuracy, f1"),
        (lambda a, b: 1, "must be functions that have a name; a dict"),
        (5, "must be functions that have a name"),
        ({"x": 5}, "each with a name. Received: 5 as 'x'"),
        ({"x": "f1"}, "each with a name. Received: 'f1' as 'x'"),
        ({"": errors}, "each with a name"),
        ({1: errors}, "each with a name"),
        ({"f1": errors}, "names of their own. Received: a second 'f1'"),
        ({"x": Counting}, "neither classes nor metrics of Keras"),
        ({"x": Counting()}, "neither classes nor metrics of Keras"),
        ([errors, errors], "names of their own. Received: a second 'errors'"),
    ],
)
def test_bad_metrics_are_refused(metrics, message):
    with pytest.raises(ValueError, match=message):
        check_metrics(metrics, NAMES)


@pytest.mark.parametrize(
    "value",
    [None, "1", math.nan, math.inf, True, np.array([1.0, 2.0]), [1], 10**400],
)
def test_a_function_that_gives_no_finite_number_is_named(value):
    data = {"text": ["a"], "label": [0]}
    task = Texts(stand_in(), data, Settings())
    with pytest.raises(
        ValueError, match="`metrics`: mine must return a finite"
    ):
        score_task(task, [np.zeros(2)], {"mine": lambda *_: value})


@pytest.mark.parametrize(
    "value", [1, np.float32(1), np.int64(1), np.array(1.0)]
)
def test_a_function_may_give_any_number(value):
    data = {"text": ["a"], "label": [0]}
    task = Texts(stand_in(), data, Settings())
    scores = score_task(task, [np.zeros(2)], {"mine": lambda *_: value})
    assert type(scores["mine"]) is float
    assert scores["mine"] == 1


def test_a_score_that_overflows_is_refused():
    data = {"text": ["a", "b"], "label": [0.5, 2]}
    task = Texts(stand_in(1, problem=REGRESSION), data, Settings())
    outputs = [np.array([value], "float32") for value in (1e30, 2e30)]
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match="metric mean_squared_error must"),
    ):
        score_task(task, outputs, {})


# In a run.


@pytest.mark.any_backend
def test_a_function_chooses_the_best_weights(monkeypatch):
    scores = iter([0.1, 0.9, 0.5])
    data = {"text": ["a", "b"] * 4, "label": [0, 1] * 4}
    kept = []

    def mine(labels, predictions):
        kept.append(model.get_weights())
        return next(scores)

    model = make("BertForSequenceClassification")
    history = bb.finetune(
        model,
        data,
        data,
        learning_rate=1e-2,
        batch_size=8,
        options=bb.FinetuningOptions(verbose=False, metric="mine"),
        metrics=mine,
    )
    assert history["dev_mine"] == [0.1, 0.9, 0.5]
    assert "dev_accuracy" in history
    assert same(model.get_weights(), kept[1])
    found = bb.evaluate(model, data, metrics={"wrong": errors})
    assert found["wrong"] == round(8 * (1 - found["accuracy"]))


def test_metrics_need_dev():
    data = {"text": ["a", "b"], "label": [0, 1]}
    model = make("BertForSequenceClassification")
    with pytest.raises(ValueError, match="`metrics` needs `dev`"):
        bb.finetune(model, data, metrics=errors)
    task = Texts(stand_in(), data, Settings())
    with pytest.raises(ValueError, match="must be one of .*, errors. .*'x'"):
        task_runs.Judge(model, task, "x", 8, errors)
