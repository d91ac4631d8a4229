"""Own files as data sets, and parts of them.

A file comes as a dict of columns, as the known sets do. Nothing is guessed:
what is unknown, missing, empty or of two kinds is an error that names the file
and the line.
"""

import contextlib
import dataclasses
import difflib
import hashlib
import os
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from bertbook.checks import as_number, check_switch, is_integer
from bertbook.datasets.bad_rows import BadRows, check_action
from bertbook.datasets.cells import shown
from bertbook.datasets.columns import (
    SourceColumns,
    as_columns,
    with_known_names,
    with_rows_of,
)
from bertbook.datasets.file_formats import (
    Table,
    open_csv,
    open_json,
    open_json_lines,
    open_parquet,
    open_tsv,
)
from bertbook.datasets.marked_text import (
    marks_column,
    plain_pair,
    plain_rows,
    read_marked,
    read_words,
    word_columns,
)
from bertbook.datasets.mending import Mended, check_mended, readable
from bertbook.datasets.own_columns import (
    choose_columns,
    is_known,
    read_columns,
)
from bertbook.datasets.readers import (
    as_articles,
    questions_of,
    read_tags,
)
from bertbook.files import (
    DAMAGES,
    Columns,
    DataFile,
    check_no_pointer,
    parse_json,
)

PACKINGS = (".gz", ".xz", ".bz2", ".zip")
ENDINGS = (
    ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".conll", ".txt"
)  # fmt: skip
SPLITS = {
    "train": ("train",),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test",),
}
MOST_NUMBERS = 100  # different integers that are taken for names of classes


def is_own(name: Any) -> bool:
    """Returns whether a name is a path, not the name of a set.

    A string is one that has a slash in it, ends as a file of data does, or
    names a file or a folder that is there.
    """
    if isinstance(name, os.PathLike):
        return True
    if not isinstance(name, str) or not name:
        return False
    if {"/", os.sep} & set(name) or name.startswith("~"):
        return True
    stem = Path(name[:-4] if name.lower().endswith(".bz2") else name)
    if stem.suffix.lower() in PACKINGS:
        stem = Path(stem.stem)
    return stem.suffix.lower() in ENDINGS or os.path.exists(name)


def load_own(
    name: str | os.PathLike,
    split: str | None,
    asked: Mapping[str, Any],
    dev: float | None = None,
    seed: int = 0,
    mended: Mended | None = None,
    bad_rows: str = "error",
) -> Columns:
    """Returns the columns of a file, of a part of it, or of one in a folder.

    Args:
        name: A file or a folder.
        split: Of a folder the file; of a file with `dev` the part; else None.
        asked: What the file calls our columns, where it is told.
        dev: The share of the rows that are for dev.
        seed: Seed of the draw of these.
        mended: As in `load_dataset`; `bad_rows` alike.
        bad_rows: "error" or "skip".

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: The file is damaged or not of a known form, or its columns
            or `split` do not fit.
    """
    path, drawn = checked_path(name, "name"), dev is not None
    if path.is_dir():
        path, drawn = _file_of_split(path, split, drawn)
    elif not path.is_file():
        raise FileNotFoundError(
            f"`name` must be a file or a folder.{_nearest_file(path)} "
            f"Received: {str(path)!r}."
        )
    elif split not in (("train", "dev") if drawn else (None,)):
        raise ValueError(
            '`split` of a file must be "train" or "dev" with `dev`, the share '
            "of the rows for dev, such as 0.1; without `dev` all rows are "
            f"read. Received: {split!r} and `dev` {dev!r}."
        )
    check_mended(mended)
    check_action(bad_rows, mended)
    data = read_own(path, asked, mended, bad_rows)
    if drawn and dev is not None:
        train, held_out = train_dev_split(data, dev, seed)
        data = train if split == "train" else held_out
        if isinstance(data, SourceColumns):
            data.held_out = {
                "file": path.name,
                "dev": float(dev),
                "seed": int(seed),
                "mended": mended is not None,
                "bad_rows": bad_rows,
            }
    if split == "train":  # a file without parts may be one to measure on
        _check_several_labels(path, data)
    return data


def train_dev_split(
    data: Any, dev: float = 0.1, seed: int = 0, stratify: bool = True
) -> tuple[Columns, Columns]:
    """Draws some rows of a data set for dev; the others are for training.

    Of R rows, R times `dev` are drawn, rounded to the nearest number, half up,
    at least one for each part: those whose hash is smallest, the SHA-256 of
    the seed, a colon and the number of the row, such as "0:17". So the same
    rows are drawn on every machine and with every version. Both parts keep the
    order of the rows.

    Where each row has one label, a name or an integer, each label keeps its
    share: its rows times `dev`, rounded down or up so that the sum is right,
    the largest remainders up. A label of two rows or more has at least one in
    each part, even where dev becomes larger by it; the row of a label that
    occurs once is for training. Scores, lists of labels, choices, and more
    than 100 different integers are no such labels; nor are those of a column
    where most rows have a label that no other row has.

    Rows with the same text, pair of texts, words or context go to one part, so
    that dev asks for nothing that was learned by heart; the shares then hold
    as far as that leaves a choice. Where all rows have the same, each is drawn
    by itself; of questions about one passage a warning says so.

    Args:
        data: A table of R rows, as `finetune` takes: a dict of columns, a list
            of dicts, a DataFrame, or a `Dataset` of Hugging Face.
        dev: The share of the rows that are drawn, above 0 and below 1.
        seed: An integer; another one draws other rows.
        stratify: Whether each label keeps its share. False does not look at
            labels, so that dev may have no row of a rare one.

    Returns:
        The rows for training, and those for dev.

    Raises:
        ValueError: There are fewer than two rows, or an argument is of another
            kind. A warning names labels that only rows for dev have.

    >>> import bertbook as bb
    >>> train, dev = bb.train_dev_split({"text": list("abcde")}, dev=0.4)
    >>> train["text"], dev["text"]
    (['a', 'b', 'c'], ['d', 'e'])
    """
    columns = _columns_of(data)
    rows = len(next(iter(columns.values())))
    if not 0 < as_number(dev) < 1:  # nor NaN
        raise ValueError(
            f"`dev` must be above 0 and below 1. Received: {dev!r}."
        )
    if not is_integer(seed):
        raise ValueError(f"`seed` must be an integer. Received: {seed!r}.")
    check_switch(stratify, "stratify")
    if rows < 2:
        raise ValueError(
            "`data` must hold two rows or more, one for each part. Received: "
            f"{rows}."
        )
    order = sorted(range(rows), key=lambda row: _hash(seed, row))
    groups = []
    if stratify:
        groups = _rows_by_label(with_known_names(columns), order)
    groups = groups or [order]
    counts = _share_out([len(group) for group in groups], float(dev))
    drawn = _draw(groups, counts, _alike(columns))
    parts = []
    for is_dev in (False, True):
        kept = [row for row in range(rows) if (row in drawn) == is_dev]
        part = {
            name: [column[row] for row in kept]
            for name, column in columns.items()
        }
        parts.append(with_rows_of(part, columns, kept))
    _tell_new_labels(*parts)
    return parts[0], parts[1]


def _hash(seed: int, row: int) -> bytes:
    """Returns what decides whether a row is drawn."""
    return hashlib.sha256(f"{int(seed)}:{row}".encode()).digest()


def _alike(columns: Mapping[str, Any]) -> list[list[int]]:
    """Returns for each row which rows have the same to read, itself too."""
    names = [n for n in ("context", "tokens", "text") if n in columns][:1]
    if names == ["text"] and "text_pair" in columns:
        names.append("text_pair")
    rows = range(len(next(iter(columns.values()))))
    keys = [str([columns[name][row] for name in names]) for row in rows]
    rows_of = defaultdict(list)
    for row in rows:
        rows_of[keys[row]].append(row)
    if len(rows_of) < 2:
        if names == ["context"]:
            warnings.warn(
                f"all {len(rows):,} questions are about one passage: dev asks "
                "about what training has read; measure on others, too",
                stacklevel=3,
            )
        return [[row] for row in rows]
    return [rows_of[key] for key in keys]


def _draw(
    groups: Sequence[Sequence[int]],
    counts: Sequence[int],
    alike: Sequence[Sequence[int]],
) -> set[int]:
    """Returns which rows are for dev.

    Args:
        groups: Rows, in the order in which they are drawn; a row is in one
            group at most.
        counts: How many of each group are wanted; fewer come where it takes
            all of some rows that are alike, and those are too many.
        alike: For each row the rows that go with it.
    """
    drawn: set[int] = set()
    for group, count in zip(groups, counts, strict=True):
        members = {*group}
        found, seen = len(members & drawn), set()
        for first in (alike[row][0] for row in group):
            more = 0 if first in seen else len(members & {*alike[first]})
            seen.add(first)
            if more and first not in drawn and found + more / 2 < count + 0.5:
                drawn.update(alike[first])
                found += more
    smallest = min(alike, key=len)
    if not drawn:  # each are too many
        drawn.update(smallest)
    if len(drawn) == len(alike):
        drawn.difference_update(smallest)
    return drawn


def _rows_by_label(
    columns: Mapping[str, Any], order: Sequence[int]
) -> list[list[int]]:
    """Returns the rows of each label that occurs twice or more.

    Args:
        columns: A table.
        order: The numbers of its rows, in the order in which they are drawn.

    Returns:
        Lists of rows, in that order; none where rows have no label each.
    """
    labels = [] if "choices" in columns else list(columns.get("label", ()))
    are_names = all(isinstance(label, str) for label in labels)
    are_numbers = all(
        is_integer(label) or isinstance(label, bool | np.bool_)
        for label in labels
    )
    if not are_names and not are_numbers:
        return []
    if are_numbers and len(set(labels)) > MOST_NUMBERS:
        return []
    rows_of = defaultdict(list)
    for row in order if labels else ():
        rows_of[labels[row]].append(row)
    groups = [rows for rows in rows_of.values() if len(rows) > 1]
    are_classes = 2 * sum(map(len, groups)) >= len(labels)
    return groups if are_classes else []


def _share_out(sizes: Sequence[int], share: float) -> list[int]:
    """Returns how many members of each group a share of all of them takes.

    The sum is the share of all members, rounded half up, but that each group
    gives at least one member and keeps at least one. What is left after
    rounding down goes to the groups with the largest remainders.

    Args:
        sizes: Number of members of each group, two or more.
        share: Above 0 and below 1.

    >>> _share_out([95, 5], 0.1), _share_out([25, 15, 10], 0.1)
    ([9, 1], [3, 1, 1])
    """
    exact = [size * share for size in sizes]
    counts = [max(int(part), 1) for part in exact]
    left = int(sum(sizes) * share + 0.5) - sum(counts)
    remainders = [part - n for part, n in zip(exact, counts, strict=True)]
    largest = sorted(range(len(sizes)), key=lambda i: -remainders[i])
    for number in largest[: max(left, 0)]:
        counts[number] += 1
    return [min(n, size - 1) for n, size in zip(counts, sizes, strict=True)]


def _columns_of(data: Any) -> dict[str, Any]:
    """Returns any table as columns of one length."""
    columns = as_columns(data, "data")
    for name, column in columns.items():
        no_column = isinstance(column, str | bytes | Mapping | Set)
        if no_column or not hasattr(column, "__len__"):
            raise ValueError(
                f"`{name}` must be a list with an entry for each row. "
                f"Received: {shown(column)}."
            )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(
            "`data` must hold columns of one length. Received: "
            f"{lengths or 'no column'}."
        )
    return columns


def _tell_new_labels(train: Columns, dev: Columns) -> None:
    """Warns of names and integers that only rows for dev have as labels."""
    for name in ("label", "tags"):
        known, drawn = (_labels_in(part.get(name, ())) for part in (train, dev))
        new = sorted(drawn - known, key=str)
        if new:
            warnings.warn(
                f"`{name}`: {', '.join(map(repr, new[:10]))} occur only in "
                "the rows for dev, and a model cannot learn them. Take another "
                "`seed`, or fewer rows.",
                stacklevel=3,
            )


def _labels_in(column: Sequence[Any]) -> set[Any]:
    """Returns the labels of a column, or of its lists; scores are none."""
    flat = (
        label
        for value in column
        for label in (value if isinstance(value, list | tuple) else [value])
    )
    return {x for x in flat if isinstance(x, str) or is_integer(x)}


def _check_several_labels(path: Path, data: Columns) -> None:
    """Refuses rows to learn from that all have one label."""
    column = data.get("label", [])
    if "choices" in data or len(column) < 2:
        return
    if isinstance(column[0], str | int) and len(set(column)) == 1:
        raise ValueError(
            f"{path}: `{getattr(data, 'names', {}).get('label', 'label')}` "
            "must have two labels or more, to be learned. "
            f"Received: {column[0]!r} in all of {len(column)} rows."
        )


# Files.


def checked_path(value: Any, word: str) -> Path:
    """Returns a path whose home folder is known; it may not be there.

    Args:
        value: A string or a path.
        word: What the argument is called.

    Raises:
        ValueError: It is neither.
        FileNotFoundError: The system has no such home, or cannot look there.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError(
            f"`{word}` must be the path of a file or a folder. Received: "
            f"{shown(value)}."
        )
    try:
        path = Path(text).expanduser()
        path.is_dir()  # the system may refuse to look, or the length
    except (RuntimeError, OSError) as error:
        raise FileNotFoundError(
            f"`{word}` must be a path that can be opened. Received: "
            f"{shown(text)}; {str(error)[:80].rstrip('.')}."
        ) from error
    return path


def _nearest_file(path: Path) -> str:
    """Returns the question whether a file of a like name was meant."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return f" There is no folder {str(path.parent)!r}."
    near = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _file_of_split(
    folder: Path, split: str | None, drawn: bool
) -> tuple[Path, bool]:
    """Returns the file of a split, and whether a part of it is to be drawn.

    Raises:
        FileNotFoundError: There is none.
        ValueError: `split` is unknown, there are two files, or a part is to be
            drawn where there is a file.
    """
    if split is None or split not in list(SPLITS):
        raise ValueError(
            f"`split` of a folder must be one of {', '.join(SPLITS)}. "
            f"Received: {split!r}."
        )
    files = {
        name: _files_named(folder, names) for name, names in SPLITS.items()
    }
    for name, paths in files.items():
        if len(paths) > 1 and name in (split, "train" if drawn else split):
            raise ValueError(
                f"{folder} must hold one file for {name!r}. Received: "
                f"{', '.join(path.name for path in paths)}."
            )
    if drawn and split != "test":
        if files["dev"]:
            raise ValueError(
                f"`dev` must be left out where {folder} holds "
                f"{files['dev'][0].name}. Received: a share."
            )
        if files["train"]:
            return files["train"][0], True
    if files[split]:
        return files[split][0], False
    raise FileNotFoundError(
        f"{folder} must hold {' or '.join(SPLITS[split])} with one of the "
        f"endings {', '.join(ENDINGS)}, for `split` {split!r}. Received: "
        f"{', '.join(sorted(os.listdir(folder))[:20]) or 'no file'}."
    )


def _files_named(folder: Path, names: Sequence[str]) -> list[Path]:
    """Returns the files of data in a folder that have one of some names."""
    found = []
    for path in sorted(folder.iterdir()):
        plain = path.name.lower()
        for packing in PACKINGS:
            plain = plain.removesuffix(packing)
        stem, ending = os.path.splitext(plain)
        if stem in names and ending in ENDINGS and path.is_file():
            found.append(path)
    return found


def _open(path: Path) -> tuple[DataFile, str]:
    """Returns a file of data and its ending; one in a ZIP archive, if it is.

    Raises:
        ValueError: The ending is unknown, or an archive holds several files.
    """
    file, name = DataFile(path), path
    if path.suffix.lower() == ".zip":
        file = DataFile(path, _only_member(path))
        name = Path(file.member or "")
    elif path.suffix.lower() in PACKINGS:
        name = Path(path.stem)
    ending = name.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{file} must end in one of {', '.join(ENDINGS)}, or so and packed "
            f"once as {', '.join(PACKINGS)}. Received: {name.name!r}."
        )
    return file, ending


def _only_member(path: Path) -> str:
    """Returns the only file of a ZIP archive, beside those that macOS adds."""
    check_no_pointer(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except DAMAGES as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    files = [
        name
        for name in names
        if not name.endswith("/") and not name.startswith("__MACOSX/")
    ]
    if len(files) != 1:
        raise ValueError(
            f"{path} must hold one file; unpack it otherwise. Received: "
            f"{', '.join(files[:10]) or 'none'}."
        )
    return files[0]


def read_own(
    path: Path,
    asked: Mapping[str, Any],
    mended: Mended | None = None,
    bad_rows: str = "error",
) -> Columns:
    """Returns all rows of a file.

    Args:
        path: The file.
        asked: What the file calls our columns, where it is told.
        mended: As in `load_dataset`; `bad_rows` alike.
        bad_rows: "error" or "skip".

    Raises:
        ValueError: It is damaged or not of a known form, or its columns or
            values do not fit.
    """
    file, ending = _open(path)
    if mended is None:
        file = dataclasses.replace(file, remedy=", or use `mended=[]`")
    elif ending != ".parquet":
        file = readable(file, mended)
    bad = BadRows(file, bad_rows, mended)
    if ending in (".conll", ".txt"):
        _refuse_names(file, asked)
        return read_tags(file, None, None, bad)
    told = {name for name in asked.values() if isinstance(name, str)}
    table, articles = _table_in(file, ending, told)
    if table is None:
        _refuse_names(file, asked)
        return questions_of(file, articles, True, bad)
    data = _read_annotations(file, table, asked, bad)
    if data is not None:
        return data
    chosen = choose_columns(file, table, asked)
    return read_columns(file, table, chosen, bad)


def column_names(path: Path, told: Set[str]) -> list[str]:
    """Returns what a table calls its columns; nothing for another file.

    Args:
        path: The file.
        told: Names that are columns, where the delimiter is to be found.
    """
    try:
        file, ending = _open(path)
        if ending in (".conll", ".txt"):
            return []
        table, _ = _table_in(file, ending, told)
    except (ValueError, ImportError):  # reading it says why
        return []
    return table.names if table else []


def _table_in(
    file: DataFile, ending: str, told: Set[str]
) -> tuple[Table | None, Any]:
    """Returns a table, or None and the articles that SQuAD's layout has.

    Raises:
        ValueError: The file is damaged, or holds no rows.
    """

    def known(name: str) -> bool:
        return name in told or is_known(name)

    if ending == ".json":
        values, is_lines = _json_of(file)
        articles = as_articles(values)
        if articles is not None:
            return None, articles
        if is_lines:
            table = open_json_lines(file, known, plain_pair)
        else:
            table = open_json(file, plain_rows(values), known)
    elif ending == ".csv":
        table = open_csv(file, known)
    elif ending in (".jsonl", ".ndjson"):
        table = open_json_lines(file, known, plain_pair)
    else:
        table = open_tsv(file) if ending == ".tsv" else open_parquet(file)
    if not table.names:
        raise ValueError(f"{file} must hold examples. Received: none.")
    return table, None


def _read_annotations(
    file: DataFile,
    table: Table,
    asked: Mapping[str, Any],
    bad: BadRows,
) -> Columns | None:
    """Returns what tools for annotation write; None for another table."""
    if table.typed and {"context", "qas"} <= set(table.names):
        passages = []
        for place, values in table.read(["context", "qas"]):
            if isinstance(values, ValueError):
                bad.add(place, values)
                continue
            passages.append(dict(zip(("context", "qas"), values, strict=True)))
        return questions_of(file, as_articles(passages), True, bad)
    words = word_columns(table.names, asked)
    if words is not None:
        return read_words(file, table, words, bad)
    known: tuple[str, ...] = ("text", "sentence", "data", "content")
    told = asked.get("text")
    if isinstance(told, str) and told:
        known = (told.lower(),)
    texts = [name for name in table.names if name.lower() in known]
    marks = marks_column(table, texts[0]) if len(texts) == 1 else None
    if marks is None or asked.get("label") not in (None, marks):
        return None
    return read_marked(file, table, (texts[0], marks), bad)


def _json_of(file: DataFile) -> tuple[Any, bool]:
    """Returns what a JSON file holds, and whether it has a row a line."""
    text = file.text()
    first, _, rest = text.strip().partition("\n")
    if rest.strip() and first.startswith(("{", "[")):
        with contextlib.suppress(ValueError):
            parse_json(first, str(file))
            return None, True
    return parse_json(text, str(file)), False


def _refuse_names(file: DataFile, asked: Mapping[str, Any]) -> None:
    """Refuses names of columns for a file that has none."""
    for role, name in asked.items():
        if name:
            raise ValueError(
                f"`{role}_column` must be left out: {file} has no names of "
                f"columns. Received: {name!r}."
            )
