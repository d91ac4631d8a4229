"""Writes `data/splits/spa_eng.txt`: which sentences are dev and test.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/make_splits.py

The splits of FOLDER/spa_eng were drawn by English sentence, 2,000 for dev and
2,000 for test, so that no English sentence is in two splits. The list has the
fingerprints of those sentences, and none of their text.
"""

import itertools
import os
import sys
from pathlib import Path

from bertbook.datasets.catalog import DIGITS, fingerprint
from bertbook.datasets.load import load_dataset

TARGET = Path(__file__).resolve().parents[2] / "data/splits/spa_eng.txt"
WIDTH = 79  # of a line


def prints_of(folder, split):
    """Returns the sorted fingerprints of the English sentences of a split."""
    sentences = load_dataset("spa_eng", split, folder)["source"]
    return sorted(set(map(fingerprint, sentences)))


def main():
    """Writes the list, after a look for sentences that it would mistake."""
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder:
        sys.exit("`BERTBOOK_DATA` must name the folder of real data sets.")
    prints = {
        split: prints_of(folder, split) for split in ("train", "dev", "test")
    }
    for one, other in itertools.combinations(prints, 2):
        if set(prints[one]) & set(prints[other]):
            sys.exit(f"A fingerprint is in {one} and in {other}.")
    lines = []
    for split in ("dev", "test"):
        count = (WIDTH - len(split)) // (DIGITS + 1)
        for start in range(0, len(prints[split]), count):
            line = " ".join([split, *prints[split][start : start + count]])
            lines.append(line + "\n")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("".join(lines), encoding="utf-8", newline="\n")
    print(f"{len(lines)} lines in {TARGET.name}")


if __name__ == "__main__":
    main()
