"""Tables as columns: all kinds alike, and what to write instead of others."""

import copy
from collections import UserDict

import numpy as np
import pytest

from bertbook.datasets.columns import as_columns, as_list
from bertbook.tasks.base import check_columns

COLUMNS = {"text": ["c", "a", "b"], "label": [1, 0, 1]}
ROWS = [
    {"text": text, "label": label}
    for text, label in zip(*COLUMNS.values(), strict=True)
]


class Frame:
    """Stands for a data frame: columns by name, and one that is an index."""

    def __init__(self, columns):
        self._columns = columns

    @property
    def columns(self):
        return np.array(list(self._columns), object)

    def __len__(self):
        return len(next(iter(self._columns.values()), []))

    def __getitem__(self, name):
        return np.array(self._columns[name])


class HubDataset:
    """Stands for a `Dataset` whose format gives tensors."""

    def __init__(self, columns, plain=False):
        self.table, self.plain = columns, plain

    @property
    def column_names(self):
        return list(self.table)

    def __len__(self):
        return len(self.table["text"])

    def with_format(self, kind):
        assert kind is None
        return HubDataset(self.table, plain=True)

    def __getitem__(self, name):
        assert self.plain
        return tuple(self.table[name])


class ArrowTable:
    """Stands for a table whose `columns` are no names."""

    column_names = ("text", "label")
    columns = (object(), object())

    def __len__(self):
        return 3

    def to_pydict(self):
        return COLUMNS


class Stream:
    """Stands for a data set of which no one knows the length."""

    column_names = ("text", "label")

    def __iter__(self):
        return iter(ROWS)


class Lazy:
    """Stands for a lazy frame."""

    columns = ("text",)

    def collect(self):
        raise AssertionError


def test_every_table_gives_its_columns_in_its_order():
    for data in (
        COLUMNS,
        UserDict(COLUMNS),
        {name: np.array(column) for name, column in COLUMNS.items()},
        ROWS,
        tuple(ROWS),
        [UserDict(row) for row in ROWS],
        Frame(COLUMNS),
        HubDataset(COLUMNS),
        ArrowTable(),
    ):
        before = copy.deepcopy(data)
        found = as_columns(data, "train")
        assert type(found) is dict
        assert {name: list(found[name]) for name in found} == COLUMNS
        if isinstance(data, dict | list):
            assert str(data) == str(before)


def test_a_frame_keeps_the_columns_that_no_task_reads():
    found = as_columns(Frame(COLUMNS | {"origin": ["x", "y", "z"]}), "dev")
    assert list(found) == ["text", "label", "origin"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "Received: NoneType"),
        (5, "Received: int"),
        (10**400, "Received: int"),
        (float("nan"), "Received: float"),
        (True, "Received: bool"),
        (b"x", "Received: bytes"),
        (object(), "Received: object"),
        ({"a"}, "Received: set"),
        (np.array(["a"]), "Received: ndarray"),
        (Frame, "Received: type"),
        ("train.csv", "Received: str; `load_dataset` reads a file"),
        ([1], "list of int; a dict such as {'text'"),
        ((["a"], [1]), "tuple of list; a dict such as {'text'"),
        ((row for row in ROWS), r"generator; `list\(...\)` makes a list"),
        (Stream(), r"Stream; `list\(...\)` makes a list of its rows"),
        (Lazy(), r"Lazy; `collect\(\)` computes it"),
    ],
)
def test_what_is_no_table_is_refused_with_a_remedy(data, message):
    with pytest.raises(ValueError, match=f"`train` must be a dict.*{message}"):
        as_columns(data, "train")


def test_a_table_with_a_fault_is_refused():
    for data, message in (
        ([], "`dev` must hold .* Received: no row"),
        ([{"text": "a"}, None], r"`dev\[1\]` must be a dict .*: NoneType"),
        (
            {"train": Frame(COLUMNS)},
            r"such as `data\['train'\]`. Received: dict",
        ),
        (Frame({0: ["a"]}), "`dev` must have strings as names .* Received: 0"),
        ({1: ["a"]}, "`dev` must have strings as names .* Received: 1"),
        ([{None: 1}], "`dev` must have strings as names .* Received: None"),
    ):
        with pytest.raises(ValueError, match=message):
            as_columns(data, "dev")


def test_rows_that_lack_a_key_have_a_gap_there():
    rows = [{"text": "a"}, {"label": 1, "text": "b"}, {}]
    assert as_columns(rows, "train") == {
        "text": ["a", "b", None],
        "label": [None, 1, None],
    }
    with pytest.raises(ValueError, match=r"`label\[0\]` must not be missing"):
        check_columns(rows, ["text"], ["label"])


def test_a_column_that_occurs_twice_is_refused():
    class Twice(Frame):
        columns = ("text", "text")

    with pytest.raises(ValueError, match="`dev` must give .*'text' twice"):
        as_columns(Twice(COLUMNS), "dev")


def test_what_is_no_column_is_refused():
    for values, message in (
        (Frame(COLUMNS), r"such as `data\['text'\]`. Received: a whole Frame"),
        (COLUMNS, "a list of strings. Received: dict"),
        ("abc", "Received: str; a list may hold a single text"),
        (b"x", "Received: bytes"),
        (None, "Received: NoneType"),
        (5, "Received: int"),
        ({"a"}, "Received: set"),
        ((text for text in "ab"), r"generator; `list\(...\)` makes a list"),
        (np.array("a"), "Received: ndarray"),
    ):
        with pytest.raises(ValueError, match=f"`texts` must be .*{message}"):
            as_list(values, "texts")


def test_a_column_of_an_arrow_table_gives_plain_strings():
    class Column:
        def __len__(self):
            return 2

        def to_pylist(self):
            return ["a", "b"]

    assert as_list(Column(), "texts") == ["a", "b"]
    assert as_list(("a", "b"), "texts") == ("a", "b")
