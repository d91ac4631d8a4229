"""Every row of docs/coverage.md points to assertions that exist."""

import re
from collections import Counter

import coverage_page

TEXT = coverage_page.PAGE.read_text("utf-8")
ROWS = coverage_page.rows(TEXT)


def test_every_row_stands_once_and_in_order():
    assert [row.id for row in ROWS] == [f"C{i:03}" for i in range(1, 192)]
    assert len(re.findall(r"^\| C", TEXT, re.MULTILINE)) == len(ROWS)


def test_something_fails_where_a_row_stops_being_true():
    for row in ROWS:
        if row.verdict.startswith("not: "):
            assert row.places == (coverage_page.NOWHERE,)
            continue
        faults = {place: coverage_page.fault(place) for place in row.places}
        assert not any(faults.values()), (row.id, faults)


def test_a_row_that_is_partly_held_says_what_is_missing():
    verdicts = Counter(row.verdict.partition(":")[0] for row in ROWS)
    assert verdicts.keys() <= {"fully", "partly", "not"}
    assert verdicts["fully"] > 140


def test_a_place_where_nothing_would_fail_is_told():
    for place, reason in (
        ("`tests/text/nowhere.py::test_x`", "does not exist"),
        ("`tests/text/test_merges.py::test_x`", "has no test test_x"),
        ("`tests/conftest.py::seeds`", "seeds asserts nothing"),
        ("`99_nothing`: Pairs (`x == 1`)", "there is no chapter 99_nothing"),
        ("`labs/99_nothing`: A (`x`)", "there is no lab labs/99_nothing"),
        ("`10_tokens`: Nowhere (`x == 1`)", "has no heading 'Nowhere'"),
        ("`10_tokens`: Pairs (`never == 1`)", "no assertion there holds"),
        ("Makefile: make test", "names neither"),
        ("`10_tokens`: Pairs", "names neither"),
    ):
        assert reason in coverage_page.fault(place)


def test_assertions_of_a_cell():
    for source, lines in (
        ("x = 1", []),
        ("%time x\nassert x == 1, 'no'", ["x == 1"]),
        ("for i in y:\n    assert (i ==\n        2)", ["i == 2"]),
        (
            "np.testing.assert_allclose(a, b)",
            ["np.testing.assert_allclose(a, b)"],
        ),
        ("print('assert')", []),
    ):
        assert coverage_page.assertions(source) == lines
