"""Splits by fingerprint: of one file, and of the real one."""

import hashlib

import pytest

from bertbook.datasets import catalog
from bertbook.datasets.catalog import fingerprint, listed_rows, rows_of_split
from bertbook.datasets.load import load_dataset
from bertbook.locations import data_folder
from tests.helpers.set_files import rows, write, write_archive

TABLE = {"source": ["one", "two", "one", "three", "four"], "target": [*"abcde"]}
EXPECTED = {
    "train": {"source": ["three"], "target": ["d"]},
    "dev": {"source": ["two"], "target": ["b"]},
    "test": {"source": ["one", "one", "four"], "target": ["a", "c", "e"]},
}
LISTED = {"one": "test", "two": "dev", "four": "test"}


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A folder of data with the list of a set of four texts."""
    lines = [[split, fingerprint(text)] for text, split in LISTED.items()]
    folder = tmp_path / "splits"
    folder.mkdir()
    text = "".join(" ".join(line) + "\n" for line in lines)
    (folder / "spa_eng.txt").write_text(text)
    monkeypatch.setattr(catalog, "data_folder", lambda: tmp_path)
    listed_rows.cache_clear()
    yield
    listed_rows.cache_clear()


# Definition.


def test_a_fingerprint_is_the_start_of_the_sha256():
    for text in "¿Qué?", "", "a" * 1_000:
        whole = hashlib.sha256(text.encode()).hexdigest()
        assert len(fingerprint(text)) == 8
        assert whole.startswith(fingerprint(text))


@pytest.mark.parametrize("split", EXPECTED)
def test_rows_go_to_the_split_that_lists_them(split, listed):
    received = rows_of_split(TABLE, split, "source", "spa_eng")
    assert received == EXPECTED[split]


@pytest.mark.parametrize("split", EXPECTED)
def test_the_official_archive_is_split_by_the_list(split, listed, tmp_path):
    """It has no names of columns; no line is in two splits, or in none."""
    lines = zip(TABLE["source"], TABLE["target"], strict=True)
    members = {"spa-eng/_about.txt": "About", "spa-eng/spa.txt": rows(*lines)}
    write_archive(tmp_path / "spa-eng.zip", members)
    assert load_dataset("spa_eng", split, tmp_path) == EXPECTED[split]


@pytest.mark.parametrize("packing", ["", ".xz", ".gz"])
def test_the_official_file_is_split_by_the_list(packing, listed, tmp_path):
    lines = zip(TABLE["source"], TABLE["target"], strict=True)
    write(tmp_path / "spa-eng" / f"spa.txt{packing}", rows(*lines))
    for split, expected in EXPECTED.items():
        assert load_dataset("spa_eng", split, tmp_path) == expected


# Property.


def test_the_list_that_ships_names_2000_rows_a_split():
    path = data_folder() / "splits" / "spa_eng.txt"
    lines = [line.split() for line in path.read_text().splitlines()]
    prints = {split: [] for split in ("dev", "test")}
    for split, *several in lines:
        prints[split] += several
    for several in prints.values():
        assert len(several) == len(set(several)) == 2_000
        assert several == sorted(several)
    assert len(listed_rows("spa_eng")) == 4_000, "one is in both"


@pytest.mark.slow
def test_the_list_gives_the_splits_of_the_folder(shared_data, tmp_path):
    names = ("train", "dev", "test")
    expected = {
        name: load_dataset("spa_eng", name, shared_data) for name in names
    }
    lines = [
        pair
        for table in expected.values()
        for pair in zip(table["source"], table["target"], strict=True)
    ]
    write_archive(tmp_path / "spa-eng.zip", {"spa-eng/spa.txt": rows(*lines)})
    for name in names:
        assert load_dataset("spa_eng", name, tmp_path) == expected[name]


# Error.


@pytest.mark.parametrize(
    ("line", "found"), [(("three",), 1), (("three", "d", "CC BY"), 3)]
)
def test_a_line_with_another_number_of_columns_is_refused(
    line, found, listed, tmp_path
):
    content = rows(("one", "a"), ("two", "b"), line)
    path = write_archive(tmp_path / "spa-eng.zip", {"spa-eng/spa.txt": content})
    message = f"line 3: there must be 2 columns. Received: {found}."
    with pytest.raises(ValueError, match=message) as caught:
        load_dataset("spa_eng", "dev", tmp_path)
    assert str(caught.value).startswith(f"{path}/spa-eng/spa.txt, ")


def test_a_split_that_no_line_belongs_to_is_refused(listed, tmp_path):
    members = {"spa-eng/spa.txt": rows(("one", "a"))}
    write_archive(tmp_path / "spa-eng.zip", members)
    with pytest.raises(ValueError, match=r"spa\.txt must hold examples"):
        load_dataset("spa_eng", "dev", tmp_path)
