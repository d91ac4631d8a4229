"""Metrics of the user, and scores that must be numbers."""

import math

import numpy as np
import pytest

import bertbook as bb
from bertbook.batches.batching import bucket_length
from bertbook.batches.ragged import compute
from bertbook.finetuning import run as task_runs
from bertbook.finetuning.finetune import named_sets
from bertbook.finetuning.scores import check_metrics, mean_loss, score_task
from bertbook.finetuning.weighting import weigh, weights_of
from bertbook.runtime import keras
from bertbook.tasks.base import Settings
from bertbook.tasks.labels import REGRESSION, SEVERAL_LABELS
from bertbook.tasks.text_tasks import Choices, Texts
from bertbook.tasks.word_tasks import Questions, Tags
from tests.helpers.runs import killed_at_save, same
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
        task_runs.Judge(model, "x", 8, errors).add("dev", task)


# The loss on dev, and several dev sets.


def numbers(count):
    return {"text": [f"{'abcd'[i % 4]} b" for i in range(count)]}


def learned_tasks():
    """Yields a trained task of each kind, and the class weights."""
    names = {0: "x", 1: "y", 2: "z"}
    data = numbers(5) | {"label": [0, 1, 2, 1, 0], "weight": [1, 2, 0, 4, 1]}
    model = make("BertForSequenceClassification", id2label=names)
    yield Texts(model, data, Settings()), {"x": 3.0, "z": 0.5}
    del data["weight"]
    yield Texts(model, data, Settings()), None
    model = make(
        "BertForSequenceClassification",
        id2label=names,
        problem_type=SEVERAL_LABELS,
    )
    data = numbers(2) | {"label": [["x", "z"], []]}
    yield Texts(model, data, Settings()), None
    data = numbers(3) | {"label": [0.5, 2, -1], "weight": [1, 3, 1]}
    model = make("BertForSequenceClassification", num_labels=1)
    yield Texts(model, data, Settings()), None
    data = numbers(2) | {"choices": [["b", "c", "d"]] * 2, "label": [2, 0]}
    yield Choices(make("BertForMultipleChoice"), data, Settings()), None
    answers = [{"text": "c", "answer_start": 2}]
    context = "b c " + "d " * 30  # several windows
    data = {
        "question": ["a", "a"],
        "context": [context, "b c"],
        "answers": [answers, answers],
        "weight": [1, 2],
    }
    yield Questions(make("BertForQuestionAnswering"), data, Settings()), None
    tags = {0: "B-X", 1: "I-X", 2: "O"}
    data = {
        "tokens": [["a", "bc", "d"], ["e"]],
        "tags": [["B-X", "O", "O"], ["B-X"]],
        "weight": [1, 3],
    }
    model = make("BertForTokenClassification", id2label=tags)
    yield Tags(model, data, Settings()), None


def test_the_loss_on_dev_is_that_of_training():
    """The same rows as one batch of training give the same loss."""
    for task, class_weight in learned_tasks():
        dev = type(task)(task.model, dict(task.data), Settings())
        task.learn()
        by_label = weigh(task, class_weight)
        rows, model = task.rows, task.model
        length = bucket_length(int(rows.lengths().max()), 24)
        x, y, weights = rows.step(range(len(rows)), length, len(rows))
        losses = keras.tree.map_structure(
            lambda *given: float(given[0](*given[1:])),
            task.loss(),
            y,
            model(x),
            weights,
        )
        expected = sum(keras.tree.flatten(losses))
        dev.learn()
        outputs = compute(model, dev.rows, len(dev.rows))
        found = mean_loss(dev, outputs, weights_of(dev, by_label))
        assert found == pytest.approx(expected, rel=1e-4), task


def tune(dev, model=None, data=None, out=None, metrics=None, **options):
    """Two epochs on a small set."""
    model = model or make("BertForSequenceClassification", num_labels=2)
    data = data or numbers(8) | {"label": [0, 1] * 4}
    options = bb.FinetuningOptions(**{"verbose": False} | options)
    return model, bb.finetune(
        model,
        data,
        dev,
        epochs=2,
        learning_rate=1e-2,
        batch_size=4,
        out=out,
        options=options,
        metrics=metrics,
    )


def test_the_history_has_the_loss_on_dev(capsys):
    dev = numbers(4) | {"label": [1, 1, 0, 0]}
    model, history = tune(dev, metric="loss", verbose=True)
    assert list(history)[:6] == [
        "step", "epoch", "loss", "rows_per_second", "dev_loss", "dev_accuracy"
    ]  # fmt: skip
    assert f"dev_loss {history['dev_loss'][1]:.3f}" in capsys.readouterr().out
    task = Texts(model, dev, Settings())
    task.learn()
    outputs = compute(model, task.rows)
    assert mean_loss(task, outputs, np.ones(4)) == pytest.approx(
        min(history["dev_loss"]), rel=1e-4
    )
    dev["weight"] = [1, 0, 0, 0]  # counts in the loss alone
    _, weighted = tune(dev)
    assert weighted["dev_accuracy"] == history["dev_accuracy"]
    assert weighted["dev_loss"] != history["dev_loss"]


def test_a_run_that_began_without_the_loss_resumes(tmp_path, monkeypatch):
    dev = numbers(4) | {"label": [1, 1, 0, 0]}
    options = {"out": tmp_path, "checkpoint_steps": 2}
    with monkeypatch.context() as patch, killed_at_save(1):
        patch.setattr(task_runs.Judge, "_add_loss", lambda *arguments: None)
        tune(dev, **options)
    _, history = tune(dev, **options)
    assert history["dev_loss"] == [None, tune(dev)[1]["dev_loss"][1]]


def test_a_dev_set_that_cannot_be_learned_has_metrics_and_no_loss(capsys):
    answers = [{"text": "b"}]  # its place is not told
    dev = {"question": ["a"], "context": ["b c"], "answers": [answers]}
    answers = [{"text": "b", "answer_start": 0}]
    data = {"question": ["a"], "context": ["b c"], "answers": [answers]}
    model = make("BertForQuestionAnswering")
    _, history = tune(dev, model, data, verbose=True)
    assert "dev_loss" not in history
    assert len(history["dev_f1"]) == 2
    assert "no dev_loss: Row 0: `answer_start`" in capsys.readouterr().out
    with pytest.raises(ValueError, match="`metric` must be one of .*'loss'"):
        tune(dev, model, data, metric="loss")


def test_several_dev_sets_have_numbers_of_their_own():
    """The first decides which weights are kept."""
    clean = numbers(4) | {"label": [0, 1, 0, 1]}
    noisy = [{"text": "a b", "label": 1}, {"text": "b b", "label": 0}]
    scores = {4: iter([0.9, 0.1]), 2: iter([0.1, 0.9])}

    def mine(labels, predictions):
        return next(scores[len(labels)])

    sets = {"clean": clean, "noisy": noisy}
    model, history = tune(sets, metric="mine", metrics=mine)
    assert history["dev_clean_mine"] == [0.9, 0.1]
    assert history["dev_noisy_mine"] == [0.1, 0.9]
    for name, data in sets.items():
        assert len(set(history[f"dev_{name}_loss"])) == 2
        for metric, value in bb.evaluate(model, data).items():
            assert history[f"dev_{name}_{metric}"][0] == value
    task = Texts(model, clean, Settings())
    task.learn()
    found = mean_loss(task, compute(model, task.rows), np.ones(4))
    assert found == pytest.approx(history["dev_clean_loss"][0], rel=1e-4)
    alone = tune(clean)[1]
    assert alone["dev_loss"] == history["dev_clean_loss"]


def test_data_sets_are_told_from_columns():
    columns = numbers(2) | {"label": [0, 1]}
    answers = {
        "question": ["a"],
        "context": ["b"],
        "answers": [[{"text": "b"}]],
    }
    rows = [{"text": "a", "label": 0}]
    assert named_sets(None) == {}
    for one in (columns, rows, answers):
        assert list(named_sets(one)) == ["dev"]
    several = {"a": columns, "b": rows, "c": answers}
    assert list(named_sets(several)) == ["dev_a", "dev_b", "dev_c"]
    assert named_sets(several)["dev_b"] == {"text": ["a"], "label": [0]}
    for wrong in ({1: columns}, {"": columns}):
        with pytest.raises(ValueError, match="`dev` must name each data set"):
            named_sets(wrong)
    with pytest.raises(KeyError, match="text"):
        tune({"a": columns, "b": {"body": ["a"], "label": [0]}})
