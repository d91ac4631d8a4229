"""Every section and test that docs/coverage.md names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COVERAGE = ROOT / "docs" / "coverage.md"
ROW = re.compile(r"^\| (C\d{3}) \| (.+?) \| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall(COVERAGE.read_text("utf-8"))
SECTION = re.compile(r"`(\d\d_\w+)`: (.*)")
# The rows that the parts so far and the house take.
NUMBERS = range(1, 192)
TAKEN = [f"C{i:03}" for i in NUMBERS]


def headings(chapter):
    text = (ROOT / "notebooks" / "text" / f"{chapter}.md").read_text("utf-8")
    return re.findall(r"^#+ (.*)$", text, re.MULTILINE)


def exists(place):
    section = SECTION.fullmatch(place)
    if section:
        return section[2] in headings(section[1])
    path, _, name = place.strip("`").partition("::")
    if "/" not in path:
        return True  # words: a later part, or a command
    file = ROOT / path
    return file.is_file() and f"def {name}" in file.read_text("utf-8") + "def "


def test_every_row_stands_once_and_in_order():
    assert [row[0] for row in ROWS] == TAKEN


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_holds_a_row_exists(row):
    for place in row[2].split("; "):
        assert exists(place), f"{row[0]}: {place} does not exist"
