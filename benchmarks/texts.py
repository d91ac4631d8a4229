"""Real texts for timing: from $BERTBOOK_DATA, else the shelf that ships."""

import json
import lzma
import os
from pathlib import Path

from bertbook.locations import shelf


def read(name):
    """Reads a packed file of the folder of real data sets."""
    path = Path(os.environ["BERTBOOK_DATA"]) / name
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read()


def have_real_data():
    """Returns whether the folder of real data sets is known."""
    return "BERTBOOK_DATA" in os.environ


def sentences(count):
    """Returns short texts: SST-2 dev, else sentences of the shelf."""
    if have_real_data():
        rows = read("sst2/dev.tsv.xz").split("\n")[1:]
        return [row.split("\t")[0] for row in rows if row][:count]
    parts = [s.strip() for text in paragraphs(10**6) for s in text.split(". ")]
    return [part for part in parts if part][:count]


def paragraphs(count):
    """Returns long texts: SQuAD dev paragraphs, else those of the shelf."""
    if have_real_data():
        articles = json.loads(read("squad/dev-v1.1.json.xz"))["data"]
        found = [p["context"] for a in articles for p in a["paragraphs"]]
    else:
        found = [
            line
            for path in shelf()
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
    return found[:count]
