"""Weights of rows and labels: by hand, and what a run makes of them."""

import json
import math

import numpy as np
import pytest

import bertbook as bb
from bertbook.finetuning.weighting import weigh
from bertbook.tasks.base import Settings
from bertbook.tasks.labels import SEVERAL_LABELS
from bertbook.tasks.text_tasks import Texts
from bertbook.tasks.word_tasks import Questions, Tags
from tests.helpers.runs import same
from tests.helpers.toys import make, stand_in

pytestmark = pytest.mark.usefixtures("quick_runs")
QUIET = bb.FinetuningOptions(verbose=False)
NAMES = ("x", "y", "z")


def task_of(labels, weight=None, names=NAMES):
    data = {"text": ["a"] * len(labels), "label": labels}
    if weight is not None:
        data["weight"] = weight
    task = Texts(stand_in(names=names), data, Settings())
    task.learn()
    return task


def weights_of(labels, weight=None, class_weight=None):
    task = task_of(labels, weight)
    weigh(task, class_weight)
    return task.rows.row_weights


# By hand.


def test_weights_of_rows_are_1_on_average():
    found = weights_of(["x", "y", "z"], [1, 2.0, np.float32(6)])
    assert found.tolist() == pytest.approx([1 / 3, 2 / 3, 2])


@pytest.mark.parametrize("weight", [[0.3] * 7, [1e308] * 7, [5e-324] * 7])
def test_equal_weights_are_none(weight):
    assert weights_of([0] * 7, weight) is None


def test_a_row_of_weight_0_is_left_out():
    task = task_of(["x", "y", "z", "y"], [2, 0, 1, 1])
    weigh(task)
    assert len(task.rows) == 3
    assert task.rows.targets[""].tolist() == [0, 2, 1]
    assert task.rows.row_weights.tolist() == pytest.approx([1.5, 0.75, 0.75])


def test_weights_of_labels_by_name_and_by_number_multiply_those_of_rows():
    labels, weight = ["x", "y", "z", "x"], [1, 1, 2, 3]
    by_hand = np.array([4, 1, 1, 12]) / 4.5
    for class_weight in ({"x": 8, 1: 2, "z": 1}, {0: 8, "y": 2, np.int8(2): 1}):
        task = task_of(labels, weight)
        assert weigh(task, class_weight) == [8, 2, 1]
        assert task.rows.row_weights.tolist() == pytest.approx(by_hand)


def test_a_label_that_is_not_named_weighs_1_and_one_of_0_is_left_out():
    task = task_of(["x", "y", "z", "y"])
    assert weigh(task, {"y": 0}) == [1, 0, 1]
    assert task.rows.targets[""].tolist() == [0, 2]


def test_balanced_is_what_scikit_learn_computes():
    sklearn = pytest.importorskip("sklearn.utils.class_weight")
    labels = ["x"] * 5 + ["z"] * 2  # y occurs nowhere
    expected = sklearn.compute_class_weight(
        "balanced", classes=np.array(["x", "z"]), y=labels
    )
    assert weigh(task_of(labels), "balanced") == pytest.approx(
        [expected[0], 1, expected[1]]
    )


def test_balanced_counts_no_row_of_weight_0():
    found = weigh(task_of(["x", "x", "x", "y"], [1, 0, 0, 1]), "balanced")
    assert found == [1, 1, 1]


def test_large_weights_do_not_overflow():
    found = weights_of(["x", "y"], [1e308, 1e308], {"x": 1e308, "y": 1e307})
    assert found.tolist() == pytest.approx([2 / 1.1, 0.2 / 1.1])


def test_every_window_of_a_row_has_its_weight():
    data = {"tokens": [["a"] * 30, ["b"]], "tags": [["O"] * 30, ["O"]]}
    task = Tags(stand_in(names=["O"]), data | {"weight": [3, 1]}, Settings())
    task.learn()
    count = len(task.rows) - 1
    assert count > 1
    weigh(task)
    found = task.rows.row_weights
    assert found.tolist() == pytest.approx(
        np.array([3.0] * count + [1.0]) * (count + 1) / (3 * count + 1)
    )
    data = {
        "question": ["a", "a"],
        "context": ["b c", "b " * 30],
        "answers": [[{"text": "b", "answer_start": 0}]] * 2,
        "weight": [1, 0],
    }
    task = Questions(stand_in(), data, Settings())
    task.learn()
    weigh(task)
    assert len(task.rows) == 1
    assert len(task.rows.targets["start_logits"]) == 1


def test_a_step_has_the_weights_of_its_rows():
    task = task_of(["x", "y", "z"], [1, 2, 3])
    weigh(task)
    _, _, weights = task.rows.step([2, 0], length=3, batch_size=3)
    assert weights.tolist() == pytest.approx([0.75, 0.25, 0])


# A run.


def data_of(count=16):
    labels = ["good", "bad"] * (count // 2)
    text = [f"{'abcd'[i % 4]} {n[0]}" for i, n in enumerate(labels)]
    return {"text": text, "label": labels}


def run(data, **options):
    model = make("BertForSequenceClassification", dropout=0.1)
    history = bb.finetune(
        model,
        data,
        epochs=1,
        learning_rate=1e-2,
        batch_size=6,
        options=QUIET,
        **options,
    )
    return model.get_weights(), history["loss"]


def same_run(first, second):
    """Compares weights and losses."""
    return same(first[0], second[0]) and first[1] == second[1]


@pytest.fixture(scope="module")
def plain(quick_runs):
    return run(data_of())


def test_equal_weights_change_no_bit_and_others_do(plain):
    data = data_of()
    assert same_run(run(data | {"weight": [0.3] * 16}), plain)
    weighed = run(data | {"weight": [5.0, 1.0] * 8})
    assert not same_run(weighed, plain)
    assert same_run(run(data, class_weight={"good": 5}), weighed)


@pytest.mark.any_backend
def test_a_run_with_rows_of_weight_0_is_one_without_them(plain):
    data = data_of()
    more = {name: column + column[:5] for name, column in data.items()}
    more["label"][-5:] = ["bad"] * 5
    assert same_run(run(more | {"weight": [2] * 16 + [0] * 5}), plain)


@pytest.mark.any_backend
def test_the_weights_are_a_part_of_the_record(tmp_path):
    data = data_of() | {"weight": [1, 2] * 8}
    run(data, out=tmp_path, class_weight="balanced")
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["class_weight"] == [1, 1]
    run(data, out=tmp_path, class_weight={"bad": 1, 1: 1.0})  # the same
    with pytest.raises(ValueError, match=r"`class_weight` was \[1.0, 1.0\]"):
        run(data, out=tmp_path, class_weight={"bad": 2})
    with pytest.raises(ValueError, match="`train` is other"):
        run(data | {"weight": [2, 1] * 8}, out=tmp_path)


# Error.


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -1], r"`weight\[1\]` must be a finite number >= 0.*: -1"),
        ([1, math.nan], r"`weight\[1\]` .* Received: nan"),
        ([math.inf, 1], r"`weight\[0\]` .* Received: inf"),
        ([1, None], r"`weight\[1\]` .* Received: None"),
        ([1, "2"], r"`weight\[1\]` .* Received: '2'"),
        ([True, 1], r"`weight\[0\]` .* Received: True"),
        ([1, 10**400], r"`weight\[1\]` must be a finite"),
        ([[1], 1], r"`weight\[0\]` .* Received: \[1\]"),
        ([0, 0.0], "`weight` must be above 0 in one row"),
        ([1], "columns of one length"),
        (3, "`weight` must be a list"),
    ],
)
def test_bad_weights_are_refused_with_their_row(weight, message):
    with pytest.raises(ValueError, match=message):
        weigh(task_of(["x", "y"], weight))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "`class_weight` must be \"balanced\" or a dict.*: 'even'"),
        ([1, 2, 3], r"must be \"balanced\" or a dict.*: \[1, 2, 3\]"),
        ({"w": 1}, r"of the model: x, y, z, or integers in \[0, 3\).*: 'w'"),
        ({3: 1}, "must name labels of the model.* Received: 3"),
        ({True: 1}, "must name labels of the model.* Received: True"),
        ({1.0: 1}, "must name labels of the model.* Received: 1.0"),
        ({"x": 1, 0: 2}, "must name each label once"),
        ({"x": -1}, r"`class_weight\['x'\]` must be a finite .*: -1"),
        ({"x": "1"}, r"`class_weight\['x'\]` .* Received: '1'"),
        ({"x": math.nan}, r"`class_weight\['x'\]` .* Received: nan"),
        ({"x": 0, "y": 0}, "`class_weight` must leave a row"),
    ],
)
def test_bad_weights_of_labels_are_refused(class_weight, message):
    with pytest.raises(ValueError, match=message):
        weigh(task_of(["x", "y"]), class_weight)


def test_a_weight_by_name_is_refused_where_labels_have_no_names():
    task = task_of([0, 1], names=NAMES)
    task.model.config = bb.BertConfig(id2label=None)
    with pytest.raises(
        ValueError, match=r"integers in \[0, 3\); these have no"
    ):
        weigh(task, {"x": 2.0})


def test_weights_of_labels_are_refused_where_a_row_has_not_one_label():
    tagger = Tags(
        stand_in(names=["O"]), {"tokens": [["a"]], "tags": [["O"]]}, Settings()
    )
    tagger.learn()
    several = Texts(
        stand_in(names=NAMES, problem=SEVERAL_LABELS),
        {"text": ["a"], "label": [["x"]]},
        Settings(),
    )
    several.learn()
    for task in (tagger, several):
        with pytest.raises(ValueError, match="one label a text; a column"):
            weigh(task, "balanced")
