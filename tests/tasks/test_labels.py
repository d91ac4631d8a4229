"""Labels: how many, what they are called, what they number, what is refused."""

import math

import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.tasks.labels import (
    ONE_LABEL,
    PROBLEMS,
    REGRESSION,
    SEVERAL_LABELS,
    check_names,
    choose_labels,
    choose_problem,
    names_of,
    names_of_tags,
    number_labels,
)

CONFIG = BertConfig.named("tiny")
NAMES = {0: "bad", 1: "fair", 2: "good"}


# Definition.


@pytest.mark.parametrize(
    ("known", "num_labels", "id2label", "count", "names"),
    [
        ({}, None, None, 2, None),
        ({}, 5, None, 5, None),
        ({}, None, NAMES, 3, NAMES),
        ({}, 3, NAMES, 3, NAMES),
        ({"id2label": NAMES}, None, None, 3, NAMES),
        ({"id2label": NAMES}, 3, None, 3, NAMES),
        ({"id2label": NAMES}, 2, None, 2, None),
        ({"id2label": NAMES}, None, {0: "no"}, 1, {0: "no"}),
        ({"extra": {"num_labels": 4}}, None, None, 4, None),
        ({"extra": {"num_labels": 4}}, 2, None, 2, None),
    ],
)  # fmt: skip
def test_choose_labels_takes_the_arguments_or_those_of_the_config(
    known, num_labels, id2label, count, names
):
    config, received = choose_labels(
        CONFIG.replace(**known), num_labels, id2label
    )
    assert received == count
    assert config.id2label == names
    assert config.extra["num_labels"] == count


def test_another_number_of_labels_drops_the_problem_and_label2id():
    extra = {"problem_type": SEVERAL_LABELS, "label2id": {"bad": 0}, "x": 1}
    config = CONFIG.replace(id2label=NAMES, extra=extra)
    kept, _ = choose_labels(config, 3, None)
    assert kept.extra == extra | {"num_labels": 3}
    changed, _ = choose_labels(config, 4, None)
    assert changed.extra == {"x": 1, "num_labels": 4}


def test_one_label_is_a_regression_and_several_are_one_label_a_row():
    assert choose_problem(None, 1) == REGRESSION
    assert choose_problem(None, 2) == ONE_LABEL
    for problem in PROBLEMS:
        assert choose_problem(problem, 1) == problem
    assert choose_problem(SEVERAL_LABELS, 3) == SEVERAL_LABELS


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["b", "a", "b"], ["a", "b"]),
        ([["b"], [], ("a", "c")], ["a", "b", "c"]),
        ([{"b", "a"}, {"b"}], ["a", "b"]),
        ([0, 1], None),
        ([0.5, 1.5], None),
        (["a", 1], None),
        ([["a"], [1]], None),
        ([], None),
        ([[], []], None),
        ([{"a": 1}], None),
    ],
)
def test_names_are_sorted_and_numbers_have_none(column, expected):
    assert names_of(column) == expected


def test_every_type_of_tags_has_a_b_and_an_i():
    tags = [["O", "B-LOC"], ["I-PER"], []]
    expected = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
    assert names_of_tags(tags) == expected
    assert names_of_tags([["O"]]) == ["O"]
    assert names_of_tags([["B-a-b"]]) == ["B-a-b", "I-a-b", "O"]


def test_one_label_by_loops():
    column = ["good", 0, "bad", np.int64(2), "fair"]
    numbers = number_labels(column, 3, ONE_LABEL, NAMES)
    assert numbers.dtype == np.int32
    for number, label in zip(numbers, column, strict=True):
        assert label in (number, NAMES[number])


def test_several_labels_by_loops():
    column = [["good", "bad"], [], [1, "good"], {2}]
    rows = number_labels(column, 3, SEVERAL_LABELS, NAMES)
    assert rows.dtype == np.float32
    for row, labels in zip(rows, column, strict=True):
        for number, name in NAMES.items():
            assert row[number] == float(number in labels or name in labels)


def test_labels_of_a_regression_stay_floats():
    column = [0.5, 2, np.float32(-1.5)]
    numbers = number_labels(column, 1, REGRESSION, None)
    assert numbers.dtype == np.float32
    assert numbers.tolist() == [[0.5], [2.0], [-1.5]]


ROWS = [[0, 1], [1, 0], [1, 1], [0, 0]]
FLAGS = {
    "integers": ROWS,
    "floats": [list(map(float, row)) for row in ROWS],
    "bools": [list(map(bool, row)) for row in ROWS],
    "tuples": [tuple(row) for row in ROWS],
    "NumPy rows": list(np.array(ROWS)),
    "NumPy bools": list(np.array(ROWS, bool)),
    "NumPy floats": list(np.array(ROWS, "float32")),
    "a NumPy table": np.array(ROWS),
    "bools of NumPy": [[np.bool_(x) for x in row] for row in ROWS],
}


@pytest.mark.parametrize("form", FLAGS)
@pytest.mark.parametrize("names", [None, {0: "a", 1: "b"}])
def test_rows_of_zeros_and_ones_are_what_they_say(form, names):
    rows = number_labels(FLAGS[form], 2, SEVERAL_LABELS, names)
    assert rows.dtype == np.float32
    assert rows.tolist() == ROWS
    wide = [[*row, 1] for row in FLAGS[form]]
    expected = [[*row, 1] for row in ROWS]
    assert number_labels(wide, 3, SEVERAL_LABELS, None).tolist() == expected


@pytest.mark.parametrize(
    ("column", "count", "expected"),
    [
        ([[1, 0]], 2, [[1, 0]]),  # nobody lists numbers in this order
        ([[0, 1], [1]], 2, [[1, 1], [0, 1]]),  # not K values in every row
        ([[0, 1], []], 2, [[1, 1], [0, 0]]),
        ([{0, 1}, {0, 1}], 2, [[1, 1], [1, 1]]),  # a set has no order
        ([[0, 2], [1, 0]], 3, [[1, 0, 1], [1, 1, 0]]),
        ([[0.0, 1.0]] * 2, 2, [[0, 1]] * 2),
        ([[False, True]] * 2, 2, [[0, 1]] * 2),
        ([[0], [1]], 1, [[0], [1]]),
        ([[0, 1, 0]], 3, [[0, 1, 0]]),
        ([[], []], 2, [[0, 0], [0, 0]]),
        ([np.array(["a"]), ["b", "a"]], 2, [[1, 0], [1, 1]]),
    ],
)
def test_lists_are_told_from_rows_of_zeros_and_ones(column, count, expected):
    names = {0: "a", 1: "b", 2: "c"}
    names = {i: name for i, name in names.items() if i < count}
    rows = number_labels(column, count, SEVERAL_LABELS, names)
    assert rows.tolist() == expected


@pytest.mark.parametrize(("row", "count"), [([0, 1], 2), ([0], 1)])
def test_rows_that_may_be_numbers_or_zeros_and_ones_are_refused(row, count):
    message = r"`label` must tell numbers .* every row is \[0.* Received: 3 r"
    with pytest.raises(ValueError, match=message):
        number_labels([row] * 3, count, SEVERAL_LABELS, None)


@pytest.mark.parametrize(
    ("column", "num_labels", "names"),
    [
        ([5, 1, 3, 4, 2], 5, ["1", "2", "3", "4", "5"]),
        ([10, 2], 2, ["2", "10"]),
        ([-1, 1], 2, ["-1", "1"]),
        ([np.int64(7), 9], 2, ["7", "9"]),
        ([0, 7], 2, None),  # counted from 0, and out of range
        ([0, 1, -1], 2, None),
        ([0, 1, -1], 3, ["-1", "0", "1"]),
        ([0, -1], 3, None),
        ([0, 1, 1], 2, None),
        ([1, 3], 4, None),
        ([0, 5], None, None),
        ([1.0, 5.0], 5, None),
        ([True, False], 1, None),
        ([[7], [9]], 2, None),
        (["10", "9", "-1"], 3, ["-1", "9", "10"]),
        (["007", "10", "9"], 3, ["007", "10", "9"]),
    ],
)
def test_integers_that_number_no_label_are_names(column, num_labels, names):
    """Stars from 1 to 5 are five labels; 0 to K - 1 are their numbers."""
    assert names_of(column, num_labels) == names


def test_integers_are_found_by_name_where_names_are_integers():
    names = {0: "1", 1: "2", 2: "10"}
    column = [10, 1, "2", np.int64(2)]
    assert number_labels(column, 3, ONE_LABEL, names).tolist() == [2, 0, 1, 1]
    with pytest.raises(
        ValueError, match=r"`label\[0\]` must be one of 1, 2, 10"
    ):
        number_labels([0], 3, ONE_LABEL, names)
    assert number_labels([1], 2, ONE_LABEL, {0: "1", 1: "b"}).tolist() == [1]


def test_truth_values_are_zeros_and_ones_where_there_are_two_labels():
    for column in ([True, False], np.array([True, False])):
        assert number_labels(column, 2, ONE_LABEL, None).tolist() == [1, 0]
    for column, count in (([True, False], 3), ([True, 0], 2)):
        with pytest.raises(ValueError, match=r"`label\[0\]` must be an int"):
            number_labels(column, count, ONE_LABEL, None)


def test_names_from_numpy_are_plain_strings():
    assert {type(name) for name in names_of(np.array(["b", "a"]))} == {str}


@pytest.mark.parametrize("label", ["", "  ", ["a", ""]])
def test_an_empty_name_is_a_missing_label(label):
    check_names(["a", ["b"], 1])
    with pytest.raises(ValueError, match=r"`label\[1\]` must not be missing"):
        check_names(["a", label])


def test_a_label_among_thousands_is_refused_in_a_few_words():
    names = {number: f"name {number} " * 30 for number in range(3_000)}
    with pytest.raises(ValueError, match=r"\(3000 in all\)") as error:
        number_labels(["other"], 3_000, ONE_LABEL, names)
    assert len(str(error.value)) < 2_500


# Property.


def test_labels_survive_a_config_file():
    for options in ({"num_labels": 3}, {"id2label": NAMES}):
        config, count = choose_labels(
            CONFIG, options.get("num_labels"), options.get("id2label")
        )
        again = BertConfig.from_dict(config.to_dict())
        assert again.to_dict()["num_labels"] == 3
        config, known = choose_labels(again, None, None)
        assert (config.id2label, known) == (options.get("id2label"), count)


# Error.


@pytest.mark.parametrize(
    ("num_labels", "id2label", "message"),
    [
        (0, None, "`num_labels` must be an integer >= 1. Received: 0"),
        (True, None, "`num_labels` must be an integer >= 1. Received: True"),
        (2.0, None, "`num_labels` must be an integer >= 1. Received: 2.0"),
        (None, {}, "`id2label` must name the classes 0, 1, 2.*Received: {}"),
        (2, NAMES, "`num_labels` must be the number .* Received: 2 and 3"),
        (None, {1: "a"}, "`id2label` must name the classes 0, 1, 2"),
        (None, {0: "a", 1: "a"}, "`id2label` must give each label a name of"),
        (None, ["a", "b"], "`id2label` must name the classes .*'a', 'b'"),
    ],
)
def test_bad_num_labels_and_id2label_are_refused(num_labels, id2label, message):
    with pytest.raises(ValueError, match=message):
        choose_labels(CONFIG, num_labels, id2label)


def test_problems_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`problem_type` must be one of .*'x'"):
        choose_problem("x", 2)
    with pytest.raises(ValueError, match="`num_labels` must be 1 .*: 2"):
        choose_problem(REGRESSION, 2)


@pytest.mark.parametrize("tag", ["PER", "B", "B-", "X-PER", "", 3, None])
def test_a_tag_that_is_not_bio_is_named_with_its_row(tag):
    with pytest.raises(ValueError, match=r"Row 1: `tags\[2\]` must be O, B-T"):
        names_of_tags([["O"], ["O", "B-X", tag]])


@pytest.mark.parametrize("tags", [None, "O", 3])
def test_a_row_of_tags_that_is_no_list_is_refused(tags):
    with pytest.raises(ValueError, match=r"`tags\[1\]` must be a list of tags"):
        names_of_tags([["O"], tags])


@pytest.mark.parametrize(
    ("label", "problem", "names", "message"),
    [
        (3, ONE_LABEL, None, r"`label\[1\]` .* in \[0, 3\).* Received: 3"),
        (-1, ONE_LABEL, None, r"`label\[1\]` must be an integer .*: -1"),
        (1.0, ONE_LABEL, None, r"`label\[1\]` must be an integer .*: 1.0"),
        (True, ONE_LABEL, None, r"`label\[1\]` must be an integer .*: True"),
        (None, ONE_LABEL, None, r"`label\[1\]` must be an integer .*: None"),
        (math.nan, ONE_LABEL, None, r"`label\[1\]` must be an integer .*nan"),
        ("x", ONE_LABEL, NAMES, r"`label\[1\]` must be one of bad, .*'x'"),
        ("x", ONE_LABEL, None, r"`label\[1\]` must be a number: .*'x'"),
        (1, SEVERAL_LABELS, None, r"`label\[1\]` must be a list of .*: 1"),
        ("x", SEVERAL_LABELS, NAMES, r"`label\[1\]` must be a list .*'x'"),
        ([3], SEVERAL_LABELS, None, r"`label\[1\]` .* in \[0, 3\).*: 3"),
        ([1, 0, 1], SEVERAL_LABELS, None, r"`label\[1\]` .* no row of zeros"),
        (
            [2, "good"],
            SEVERAL_LABELS,
            NAMES,
            r"`label\[1\]` .* each label once",
        ),
        (math.nan, REGRESSION, None, r"`label\[1\]` must be a finite .*nan"),
        (math.inf, REGRESSION, None, r"`label\[1\]` must be a finite .*inf"),
        ("1.5", REGRESSION, None, r"`label\[1\]` must be a finite .*'1.5'"),
        (None, REGRESSION, None, r"`label\[1\]` must be a finite .*None"),
        (True, REGRESSION, None, r"`label\[1\]` must be a finite .*True"),
        (10**400, REGRESSION, None, r"`label\[1\]` must be a finite "),
        (1e300, REGRESSION, None, r"`label\[1\]` must be a finite .*1e\+300"),
        (1.0, ONE_LABEL, None, r"`label\[1\]` .* write classes as integers"),
        ([0, 1, 0], ONE_LABEL, None, r"`label\[1\]` .*multi_label_classif"),
        (np.eye(3)[1], ONE_LABEL, None, r"`label\[1\]` .* give its number"),
        ([0.0, 1.0], SEVERAL_LABELS, None, r"`label\[1\]` .* as rows of K"),
        (
            [0.3, 1.0, 0],
            SEVERAL_LABELS,
            None,
            r"`label\[1\]` .*rows of K .*0.3",
        ),
        ([True, False], SEVERAL_LABELS, None, r"`label\[1\]` .* rows of K"),
        ([0, 1, None], SEVERAL_LABELS, None, r"`label\[1\]` .*Received: None"),
        ([0, math.nan], SEVERAL_LABELS, None, r"`label\[1\]` .*nan"),
        (np.eye(3), SEVERAL_LABELS, None, r"`label\[1\]` must be a list"),
    ],
)
def test_bad_labels_are_named_with_their_row(label, problem, names, message):
    first = [0] if problem == SEVERAL_LABELS else 0
    with pytest.raises(ValueError, match=message):
        number_labels([first, label], 3, problem, names)
