"""What tests of data sets share: files as their publishers write them."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np

OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def write(path, content):
    """Writes text or bytes, packed where the name says so."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    with OPENERS.get(path.suffix.lower(), open)(path, "wb") as file:
        file.write(data)
    return path


def texts_in(folder):
    """Returns the text of every file below a folder, by its path in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def write_archive(path, members, packed=True):
    """Writes a ZIP archive of texts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def rows(*lines):
    """Joins rows of fields with tabs and line feeds."""
    return "".join("\t".join(line) + "\n" for line in lines)


def squad(*passages):
    """Returns the layout of SQuAD: one article of (context, questions)."""
    paragraphs = [{"context": c, "qas": list(q)} for c, q in passages]
    return {
        "version": "1.1",
        "data": [{"title": "T", "paragraphs": paragraphs}],
    }


def load_short(load, count=None):
    """Returns a `load_dataset` that gives the shortest rows of a set first.

    They share one length bucket, for which a model is compiled once.

    Args:
        load: The function that users call.
        count: How many rows are left; all where it is None.
    """

    def load_some(*args, **options):
        data = load(*args, **options)
        order = np.argsort([len(text) for text in data["text"]], kind="stable")
        return {c: [data[c][i] for i in order[:count]] for c in data}

    return load_some
