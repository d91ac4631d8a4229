"""The exhibits of chapter 54: each has its place, and a test that finds it."""

import re

import pytest

from bertbook.book import museum
from tools.mutants import read_faults

NUMBERS = [*range(1, 17), "2b"]


def test_the_numbers_are_those_of_the_chapter():
    assert set(museum.EXHIBITS) == set(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_bug_is_in_place_inside_of_the_block_only(number):
    owner, name, wrong, _ = museum.EXHIBITS[number]
    before = getattr(owner, name)
    assert before is not wrong
    with museum.planted(number):
        assert getattr(owner, name) is wrong
    assert getattr(owner, name) is before


def test_exhibit_0_is_the_correct_code():
    before = [getattr(e.owner, e.name) for e in museum.EXHIBITS.values()]
    with museum.planted(0):
        inside = [getattr(e.owner, e.name) for e in museum.EXHIBITS.values()]
    assert inside == before


@pytest.mark.parametrize("number", NUMBERS)
def test_each_is_found_by_a_test_of_the_list_of_faults(number):
    listed = {re.split(r"::|\[", t)[1] for f in read_faults() for t in f.tests}
    assert museum.EXHIBITS[number].test in listed


@pytest.mark.parametrize("number", NUMBERS)
def test_an_exhibit_is_shown_under_the_name_that_it_takes(number, capsys):
    museum.show(number)
    first, second, *_, last, end = capsys.readouterr().out.split("\n")[:-1]
    name, test = museum.EXHIBITS[number][1::2]
    assert first.startswith("# in place of ")
    assert first.endswith(f".{name}")
    assert second.startswith(f"def {name}(")
    assert last == f"# found by {test}"
    assert end == ""


def number_of_windows():
    return len(museum.windows.window_starts(11, 5, 3))


def says(capsys, test):
    caught = museum.catches(test, 10)
    return caught, capsys.readouterr().out.strip()


def test_a_test_that_catches(capsys):
    def good():
        return number_of_windows() == 3

    line = "good: passes for the correct code, fails for exhibit 10"
    assert says(capsys, good) == (True, line)


def test_a_test_that_never_fails(capsys):
    def blind():
        return number_of_windows() > 0

    line = "blind: passes for the correct code, PASSES for exhibit 10"
    assert says(capsys, blind) == (False, line)


def test_a_test_that_always_fails(capsys):
    def strict():
        return number_of_windows() > 9

    line = "strict: FAILS for the correct code, fails for exhibit 10"
    assert says(capsys, strict) == (False, line)


def test_a_test_that_is_not_written(capsys):
    def stub():
        """Tells nothing."""
        ...

    assert says(capsys, stub) == (False, "stub: not written yet")
