"""`check`, `difference` and `expect` say in words what a reader gets wrong."""

from collections import Counter

import numpy as np
import pytest

from bertbook.book import workbench
from bertbook.book.comparing import difference, expect
from bertbook.runtime import ops

ROW = [0.25, 0.5, 0.25]
TABLE = np.arange(6.0).reshape(2, 3)


def said(capsys, function, *cases):
    """Returns the one line that `check` prints."""
    workbench.check(function, *cases)
    (line,) = capsys.readouterr().out.splitlines()
    return line


def test_not_written(capsys):
    def double(x):
        """Doubles."""
        ...

    assert said(capsys, double, ((1,), 2)) == "double: not written yet"


def test_right(capsys):
    def double(x):
        return 2 * x

    line = said(capsys, double, ((1,), 2), ((0.5,), 1.0))
    assert line == "double: right, 2 of 2 checks"


def test_the_first_wrong_case_is_told(capsys):
    def double(x):
        return x * x

    line = said(capsys, double, ((2,), 4), ((3,), 6), ((1,), 2))
    assert line == "double(3): expected 6, received 9"


def test_arguments_are_told_in_short(capsys):
    def add(*things):
        return 0

    line = said(capsys, add, ((TABLE, "a" * 99, None), 1))
    assert line.startswith("add(array of (2, 3), 'aaa")
    assert line.endswith("of 99 characters, None): expected 1, received 0")
    assert len(line) < 120


def test_what_is_yielded_counts_as_a_list(capsys):
    def halves(word):
        yield word[:2]
        yield word[2:]

    line = said(capsys, halves, (("seat",), ["se", "at"]))
    assert line == "halves: right, 1 of 1 checks"
    line = said(capsys, halves, (("team",), ["t", "eam"]))
    assert line.endswith("expected ['t', 'eam'], received ['te', 'am']")


def test_a_function_that_returns_nothing_can_be_right(capsys):
    line = said(capsys, lambda x: None, ((1,), None))
    assert line == "<lambda>: right, 1 of 1 checks"


def test_an_object_that_can_be_called_is_checked(capsys):
    class Doubler:
        def __call__(self, x):
            return 2 * x

    assert said(capsys, Doubler(), ((1,), 2)).startswith("Doubler: right")


def test_no_case_proves_nothing():
    with pytest.raises(ValueError, match="`cases`"):
        workbench.check(abs)


def test_a_right_value_has_no_difference():
    for received, expected in (
        (3, 3),
        (3.0, 3),
        (0.999999, 1),
        (True, True),
        (np.bool_(True), True),
        (np.array(False), False),
        (np.float32(0.1), 0.1),
        (ROW, np.array(ROW)),
        (tuple(ROW), ROW),
        (np.array(ROW, "float32"), ROW),
        (TABLE + 1e-6, TABLE),
        (TABLE.tolist(), TABLE),
        (list(TABLE), TABLE),
        (1e6 + 1, 1e6),  # 1e-5 of what is right
        ([], []),
        ("a", "a"),
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        ([("a", 0.1 + 0.2)], [["a", 0.3]]),
        ((TABLE, ROW), (TABLE, np.array(ROW))),
        ([[1, 2], [3]], [[1, 2], [3]]),
        ({"a": 1}, {"a": 1}),
        ((Counter("aab"), {}), ({"a": 2, "b": 1}, {})),
        ({1, 2}, {2, 1}),
        (None, None),
        ([np.nan, 1.0], [np.nan, 1.0]),
        ([-np.inf, 1.0], [-np.inf, 1.0]),
    ):
        assert difference(received, expected) == ""


SHAPE = "expected the shape {}, received {}"


def test_each_difference_is_told():
    for received, expected, words in (
        (2, 3, "expected 3, received 2"),
        (2.5, 3, "expected 3, received 2.5"),
        (109_482_241, 109_482_240, "expected 109482240, received 109482241"),
        (False, True, "expected True, received False"),
        (np.array([True, True]), True, "expected True, received array of (2,)"),
        (TABLE + 0.5, TABLE,
         "the shape is right; the largest difference is 0.5"),
        ([1, 2, 4], [1, 2, 3], "expected [1, 2, 3], received [1, 2, 4]"),
        (TABLE.T, TABLE, SHAPE.format((2, 3), (3, 2))),
        ([3.0], 3.0, SHAPE.format((), (1,))),
        (3.0, [3.0], SHAPE.format((1,), ())),
        ([], [1.0], SHAPE.format((1,), (0,))),
        ([np.nan, 0.5, 0.5], ROW, "a value is not a finite number"),
        (np.full((2, 3), np.nan), TABLE, "a value is not a finite number"),
        (np.inf, 3.0, "a value is not a finite number"),
        ([0.0, 1.0], [-np.inf, 1.0],
         "expected [-inf, 1.0], received [0.0, 1.0]"),
        ("3", 3, "expected numbers, received '3'"),
        ("abc", ROW, "expected numbers, received 'abc'"),
        ([[1, 2], [3]], TABLE, "expected numbers, received [[1, 2], [3]]"),
        ({}, 3, "expected numbers, received {}"),
        (1 + 5j, 1.0, "expected numbers, received (1+5j)"),
        (np.array([1j]), [1.0], "expected numbers, received array of (1,)"),
        (["1", "2"], [1, 2], "expected numbers, received ['1', '2']"),
        (2**53 + 1, 2**53, f"expected {2**53}, received {2**53 + 1}"),
        ([1], {"a": 1}, "expected a dictionary, received [1]"),
        ({"b": 1}, {"a": 1}, "expected {'a': 1}, received {'b': 1}"),
        ({"a": np.ones(70)}, {"a": np.zeros(70)}, "'a': the shape is right; "),
        (iter([1]), [1], "expected numbers, received <list_iterator"),
        ("a", "b", "expected 'b', received 'a'"),
        (3, "b", "expected 'b', received 3"),
        (TABLE, "b", "expected 'b', received array of (2, 3)"),
        (["a"], ["a", "b"], "expected ['a', 'b'], received ['a']"),
        (["a", "c"], ["a", "b"], "expected ['a', 'b'], received ['a', 'c']"),
        ("ab", ["a", "b"], "expected ['a', 'b'], received 'ab'"),
        (5, ["a", "b"], "expected ['a', 'b'], received 5"),
        (["a"] * 40, ["a"] * 39 + ["b"], "item 39: expected 'b', received 'a'"),
        ((TABLE, TABLE), (TABLE, np.zeros(70)),
         "item 1: " + SHAPE.format((70,), (2, 3))),
        ({"a": 2}, {"a": 1}, "expected {'a': 1}, received {'a': 2}"),
        (({"a": 2},), ({"a": 2}, {}), "expected ({'a': 2}, {}), received"),
        (3, None, "expected None, received 3"),
    ):  # fmt: skip
        assert difference(received, expected).startswith(words)


def test_tensors_are_compared():
    tensor = ops.convert_to_tensor(TABLE, "float32")
    assert difference(tensor, TABLE) == ""
    assert difference(TABLE, tensor) == ""
    assert difference((tensor, tensor[0]), (TABLE, TABLE[0])) == ""
    assert difference([tensor[0], tensor[1]], TABLE) == ""
    assert difference(ops.sum(tensor), 15) == ""
    assert difference(ops.all(tensor >= 0), True) == ""
    assert difference(ops.cast(tensor, "bfloat16"), TABLE) == ""
    assert difference(ops.transpose(tensor), TABLE) == (
        SHAPE.format((2, 3), (3, 2))
    )
    assert difference(tensor, "b") == ("expected 'b', received array of (2, 3)")


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(TypeError, match="`expected` must be"):
        difference(3, object())


def told(*arguments, **options):
    """Returns what `expect` says, "" where the value is right."""
    try:
        expect(*arguments, **options)
    except AssertionError as error:
        return str(error)
    return ""


def test_right_answers_pass():
    tensor = ops.convert_to_tensor(TABLE, "float32")
    for received, expected, tolerance in (
        (3, 3, 0),
        (3.0, 3, 0),
        (2.9995, 3, 1e-3),
        (99, 100, 2),
        (tensor, TABLE, 0),
        (TABLE, tensor, 0),
        (TABLE.tolist(), TABLE, 0),
        (tensor + 0.05, TABLE, 0.1),
        ({"a": ROW}, {"a": np.array(ROW) + 1e-4}, 1e-3),
        ((("a", 0.1),), [("a", 0.2)], 0.11),
        ((x for x in "ab"), ["a", "b"], 0),
        (np.bool_(True), True, 0),
        ({1, 2}, {2, 1}, 0),
        (None, None, 0),
    ):
        assert told(received, expected, "hint", tolerance) == ""


def test_a_hint_is_followed_by_what_differs():
    tensor = ops.convert_to_tensor(TABLE, "float32")
    for received, expected, words in (
        (..., 3, "not written yet"),
        ([1, ...], [1, 2], "not written yet"),
        ({"a": ...}, {"a": 1}, "not written yet"),
        (None, 3, "it returns nothing: is there a `return`?"),
        (None, "a", "it returns nothing: is there a `return`?"),
        ("3", 3, "expected numbers, received '3'"),
        (tensor, TABLE.T, SHAPE.format((3, 2), (2, 3))),
        (tensor + 1, TABLE, "the shape is right; the largest difference is 1"),
        (3.001, 3, "expected 3, received 3.001"),
        (0.1 + 0.2, 0.3, "expected 0.3, received 0.30000000000000004"),
        (np.float64(2.5), "a", "expected 'a', received 2.5"),
        (2.0000001, [2.0], SHAPE.format((1,), ())),
        (109_482_240.5, 109_482_240, "expected 109482240, received"),
    ):
        assert told(received, expected, "why?").startswith(f"why? ({words}")


def test_numbers_that_are_farther_than_the_tolerance_are_wrong():
    words = "near (expected 3, received 3.002)"
    assert told(3.002, 3, "near", 1e-3) == words
    assert told(97, 100, "near", 2) == "near (expected 100, received 97)"
    assert told({"a": 1.2}, {"a": 1.0}, "near", 0.1).startswith("near (")
    assert told([("a", 1.2)], [("a", 1.0)], "near", 0.1).startswith("near (")


def test_the_right_value_is_not_told_where_it_is_the_answer():
    for received, expected, words in (
        (..., 3, "not written yet"),
        (2, 3, "received 2"),
        ("words", "positions", "received 'words'"),
        (3, "positions", "received 3"),
        ([0], {0, 7}, "received [0]"),
        (["a", "b"], ["a"], "received ['a', 'b']"),
        ("3", 3, "expected numbers, received '3'"),
        ([1.0], ROW, SHAPE.format((3,), (1,))),
        ([0.5, 0.25, 0.25], ROW, "received [0.5, 0.25, 0.25]"),
        (TABLE + 1, TABLE, "received array of (2, 3)"),
    ):
        assert told(received, expected, "why?", tell=False) == (
            f"why? ({words})"
        )
    assert told(3, 3, "why?", tell=False) == ""
