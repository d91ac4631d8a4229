"""The list of planted faults fits the package and its tests."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tools.mutants import Fault, plant, read_faults

ROOT = Path(__file__).resolve().parents[1]
FAULTS = read_faults()


@cache
def functions(path):
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_the_famous_faults_are_in_the_list():
    assert len(FAULTS) >= 96


def test_no_name_stands_twice():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_no_fault_stands_twice():
    planted = {(fault.file, fault.old, fault.new) for fault in FAULTS}
    assert len(planted) == len(FAULTS)


def test_every_fault_can_be_planted():
    for fault in FAULTS:
        assert fault.file.startswith("bertbook/"), fault.name
        text = plant(fault)  # refuses what does not stand there once
        assert text != (ROOT / fault.file).read_text("utf-8"), fault.name
        ast.parse(text, fault.name)


def test_every_named_test_is_there():
    for fault in FAULTS:
        assert fault.tests, fault.name
        for test in fault.tests:
            path, _, name = test.partition("::")
            assert path.startswith("tests/"), fault.name
            assert (ROOT / path).is_file(), fault.name
            name = name.partition("[")[0]
            assert not name or name in functions(path), fault.name


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b", "c", "`old` must stand once .*Received: 'b', 2 times"),
        ("d", "c", "`old` must stand once .*Received: 'd', 0 times"),
        ("a", "a", "`old` must .* differ from `new`.*: 'a', 1 times"),
    ],
)
def test_what_cannot_be_planted_is_named(old, new, message, tmp_path):
    (tmp_path / "file.py").write_text("a b b")
    fault = Fault("a name", "file.py", old, new, [])
    with pytest.raises(ValueError, match=f"a name: {message}"):
        plant(fault, tmp_path)
