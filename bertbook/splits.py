"""Splits of a set that is published as one file: which row belongs where.

A list that ships names the rows of dev and test by fingerprints of their
texts; all others are train. So a set keeps its splits from one edition to the
next, and no text of it ships.

Differences: none; this module has no counterpart in the paper.
"""

import hashlib
from functools import cache

from bertbook.data_files import Columns, kept_rows
from bertbook.locations import data_folder

DIGITS = 8  # hexadecimal: 4,000 of them meet one other text in a million


def fingerprint(text: str) -> str:
    """Returns the first digits of the SHA-256 of a text.

    >>> fingerprint("Hello!")
    '334d016f'
    """
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:DIGITS]


@cache
def listed_rows(name: str) -> dict[str, str]:
    """Returns the split of each fingerprint that ships for a set."""
    path = data_folder() / "splits" / f"{name}.txt"
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    return {one: split for split, *prints in lines for one in prints}


def rows_of_split(
    table: Columns, split: str, column: str, name: str
) -> Columns:
    """Returns the rows of a table that belong to a split.

    Args:
        table: All rows of a set.
        split: "train", "dev" or "test".
        column: The column whose texts are listed.
        name: The name of the set.
    """
    listed = listed_rows(name)
    splits = (listed.get(fingerprint(x), "train") for x in table[column])
    return kept_rows(table, (found == split for found in splits))
