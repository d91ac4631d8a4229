"""Counts of labels, and what is told of them."""

import pytest

from bertbook.tasks.label_counts import (
    counted,
    labels_of,
    nearly_constant,
    remarks_on_labels,
)


def rows_of(**counts):
    return {"label": [name for name, n in counts.items() for _ in range(n)]}


def test_labels_are_counted_the_most_frequent_first():
    assert counted(rows_of(a=2, b=1_200)) == "b (1,200), a (2)"
    several = {"label": [["x", "y"], ["x"], []]}
    assert counted(several) == "x (2), y (1)"
    tags = {"tags": [["B-PER", "I-PER", "B-PER", "O"], ["I-LOC", "I-PER"]]}
    assert labels_of(tags) == [["PER", "PER"], ["LOC", "PER"]]
    many = {"label": [str(n) for n in range(30)]}
    assert counted(many).endswith("19 (1), ... (30 in all)")
    assert counted({"label": [0.5, 1.5]}) == ""


@pytest.mark.parametrize(
    "names",
    [
        ["BILLING", "billing"],
        ["sign-in", "sign in", "Sign_In"],
        ["N/A", "NA"],
        ["a.b", "ab"],
        [" HR", "hr"],
    ],
)
def test_names_that_differ_in_case_and_separators_are_told(names):
    labels = [*names, "another"] * 5
    told = remarks_on_labels({"label": labels})
    (line,) = [line for line in told if "may be one" in line]
    assert all(f"{name} (5 rows)" in line for name in names)
    assert "another" not in line


@pytest.mark.parametrize(
    "names", [["-1", "1"], ["C", "C++", "C#"], ["1.5", "15"], ["a", "b"]]
)
def test_names_that_differ_are_not(names):
    assert remarks_on_labels({"label": names * 5}) == []


@pytest.mark.parametrize("mark", "|;,")
def test_labels_that_may_be_several_are_told(mark):
    labels = [*"abc", f"a{mark}b", f"b{mark} c", f"a{mark}new"] * 5
    told = remarks_on_labels({"label": labels})
    assert told == [
        f"labels that may be several, separated by {mark}: a{mark}b (5 rows), "
        f"b{mark} c (5 rows), a{mark}new (5 rows); `--task several-labels` "
        "reads them so"
    ]
    assert remarks_on_labels({"label": [["a", "b"], ["a|b"]] * 5}) == []


def test_labels_with_a_comma_are_not_several_by_it():
    labels = ["Doe, Ada", "Roe, Eve", "Doe, Eve", "none; other", "|"]
    assert remarks_on_labels({"label": labels * 5}) == []


@pytest.mark.parametrize("name", ["N/A", "nan", "None", "NULL", "-", "?"])
def test_a_name_for_none_is_told(name):
    told = remarks_on_labels({"label": [name, "a"] * 7})
    assert told == [f"labels that may stand for none: {name} (7 rows)"]


def test_rare_labels_and_those_of_dev_alone_are_told():
    told = remarks_on_labels(rows_of(a=5, b=4, c=1), rows_of(a=1, d=2))
    assert told == [
        "labels with fewer than 5 rows, too few to learn: b (4), c (1)",
        "labels of dev that train lacks: d",
    ]
    tags = {"tags": [["B-PER"]] * 5 + [["B-per"]] * 2}
    told = remarks_on_labels(tags)
    assert "may be one: PER (5 rows), per (2 rows)" in told[0]
    assert told[1].endswith("per (2)")


CONSTANT = {
    "classes": ({"label": ["x"] * 39 + ["y"]}, "39 of 40 .* the label x"),
    "numbers of classes": ({"label": [1] * 39 + [0]}, "the label 1"),
    "scores": ({"label": [2.5] * 39 + [1.0]}, "the number 2.5"),
    "almost no variance": (
        {"label": [3 + n / 1e6 for n in range(40)]},
        "all 40 rows have nearly the same number, from 3 to 3",
    ),
    "several labels": ({"label": [["x", "y"]] * 40}, "the labels x, y"),
    "no label of several": ({"label": [[]] * 39 + [["x"]]}, "labels none"),
    "no answers": (
        {"answers": [[]] * 39 + [[{"text": "a"}]]},
        "39 of 40 rows have no answer",
    ),
    "no entities": ({"tags": [["O", "O"]] * 40}, "no entity, .* all O"),
    "one place": (
        {"choices": [["a", "b"]] * 40, "label": [1] * 40},
        "the right choice at place 1",
    ),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_nearly_constant_labels_are_found(name):
    import re

    data, message = CONSTANT[name]
    assert re.search(message, nearly_constant(data))
    few = {column: rows[:19] for column, rows in data.items()}
    assert nearly_constant(few) is None


@pytest.mark.parametrize(
    "data",
    [
        rows_of(x=38, y=2),
        {"label": [n / 40 for n in range(40)]},
        {"answers": [[{"text": "a"}]] * 40},
        {"tags": [["B-PER"]] * 40},
        {"tags": [[0, 0]] * 40},
        {"choices": [["a", "b"]] * 40, "label": [0, 1] * 20},
        {"text": ["a"] * 40},
    ],
)
def test_others_are_not(data):
    assert nearly_constant(data) is None
