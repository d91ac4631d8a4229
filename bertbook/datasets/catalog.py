"""The data sets that the package knows: their files, splits and readers.

A set that is published as one file has a list that ships: it names the rows of
dev and test by fingerprints of their texts; all others are train. So a set
keeps its splits from one edition to the next, and no text of it ships.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bertbook.datasets.readers import (
    checked_columns,
    kept_rows,
    read_choices,
    read_questions,
    read_table,
    read_tags,
)
from bertbook.files import Columns, DataFile
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
    return {digest: split for split, *digests in lines for digest in digests}


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
    return kept_rows(table, (row_split == split for row_split in splits))


Reader = Callable[[DataFile, str], Columns]
MRPC_CORPUS = "msr_paraphrase_train.txt"
MRPC_DEV_IDS = ("mrpc_dev_ids.tsv", "dev_ids.tsv")
SPA_ENG_WHOLE = "spa-eng/spa.txt"


def _table_reader(
    labels: Sequence[str] | int | None,
    text: str,
    pair: str = "",
    label: str = "label",
    **options: Any,
) -> Reader:
    """Returns a reader of tables.

    Args:
        labels: What a label may be; see `read_table`.
        text: What files call `text`: one name, or two with a slash between.
        pair: What they call `text_pair`, where there is one.
        label: What they call `label`.
        **options: Others of `read_table`.
    """
    columns = {"text": text, "text_pair": pair, "label": label}
    accepted_names = {
        column: names.split("/") for column, names in columns.items() if names
    }
    return lambda file, split: read_table(
        file, accepted_names, labels, **options
    )


def _question_reader(unanswerable: bool) -> Reader:
    """Returns a reader of questions."""
    return lambda file, split: read_questions(file, unanswerable)


def _tag_reader(kinds: Sequence[str], width: int) -> Reader:
    """Returns a reader of tags."""
    return lambda file, split: read_tags(file, kinds, width)


def _choices_of(file: DataFile, split: str) -> Columns:
    """Reads choices."""
    return read_choices(file)


def _mrpc_rows(file: DataFile, split: str) -> Columns:
    """Reads MRPC: a table of GLUE, or the corpus and the ids of its dev rows.

    Raises:
        FileNotFoundError: The corpus is there, and the ids are not.
        ValueError: No id is in the corpus.
    """
    columns = {
        "text": ["sentence1", "#1 String"],
        "text_pair": ["sentence2", "#2 String"],
        "label": ["label", "Quality"],
    }
    if not file.path.name.startswith(MRPC_CORPUS):
        return read_table(file, columns, 2)
    id_files = [DataFile(file.path.with_name(name)) for name in MRPC_DEV_IDS]
    id_file = next((file for file in id_files if file.is_there()), None)
    if id_file is None:
        raise FileNotFoundError(
            f"{file} must have the ids of the dev rows beside it, "
            f"{' or '.join(MRPC_DEV_IDS)}. Received: neither."
        )
    dev = {tuple(line.split()) for line in id_file.lines()}
    columns |= {"first": ["#1 ID"], "second": ["#2 ID"]}
    table = read_table(file, columns, 2)
    pairs = zip(table.pop("first"), table.pop("second"), strict=True)
    is_dev = [pair in dev for pair in pairs]
    if not any(is_dev):
        raise ValueError(
            f"{id_file} must hold the ids of rows of {file}. Received: "
            f"{len(dev)} lines, and none of them is."
        )
    return checked_columns(
        file,
        kept_rows(table, [in_dev == (split == "dev") for in_dev in is_dev]),
    )


def _translations_of(file: DataFile, split: str) -> Columns:
    """Reads English sentences and their Spanish translations.

    The official file has no first line of names, and holds all splits.

    Raises:
        ValueError: A sentence is empty; the file and the line are named.
    """
    columns = {"source": ["english"], "target": ["spanish"]}
    names = "english", "spanish"
    table = read_table(file, columns, None, header=names, filled=True)
    if SPA_ENG_WHOLE not in (file.member or file.path.as_posix()):
        return table
    return checked_columns(
        file, rows_of_split(table, split, "source", "spa_eng")
    )


PACKINGS = ("", ".xz", ".gz")
ENTAILMENT = ("entailment", "not_entailment")
THREE_WAY = ("contradiction", "entailment", "neutral")
NEWS_ENTITIES = ("LOC", "MISC", "ORG", "PER")
CLINICAL_ENTITIES = ("DRUG", "PROBLEM", "TEST")
NEW_ENTITIES = (
    "corporation",
    "creative-work",
    "group",
    "location",
    "person",
    "product",
)
TWO_SPLITS = {"train": "train", "dev": "dev"}
MNLI_SPLITS = {
    "train": "train",
    "dev": "dev_matched",
    "dev_matched": "dev_matched",
    "dev_mismatched": "dev_mismatched",
}


@dataclass(frozen=True)
class DataSet:
    """What the package knows of a set.

    Attributes:
        read: Gives the columns of a file that holds a split.
        files: For each split the paths where its file may be, below a folder
            of data; the first that is there is taken.
        archives: Official ZIP archives whose members have such paths.
        ships: Whether the set comes with the package.
    """

    read: Reader
    files: Mapping[str, tuple[str, ...]]
    archives: tuple[str, ...] = ()
    ships: bool = False

    def places(self, split: str) -> Iterator[tuple[str, str | None]]:
        """Yields paths below a folder, each with the member inside of it."""
        for path in self.files[split]:
            for packing in PACKINGS:
                yield path + packing, None
        for archive in self.archives:
            for path in self.files[split]:
                yield archive, path


def _glue(
    name: str,
    folder: str,
    archives: tuple[str, ...],
    read: Reader,
    splits: Mapping[str, str] = TWO_SPLITS,
    more: tuple[str, ...] = (),
) -> DataSet:
    """Returns a set of GLUE.

    Args:
        name: Its name here, and the folder for files named like our splits.
        folder: Its official folder.
        archives: Its official archives, which hold that folder.
        read: Its reader.
        splits: The official name of each split.
        more: Other paths where a split may be.
    """
    files = {
        split: (f"{name}/{file}.tsv", f"{folder}/{file}.tsv", *more)
        for split, file in splits.items()
    }
    return DataSet(read, files, archives)


def _sample(name: str, end: str, read: Reader) -> DataSet:
    """Returns a set that ships."""
    files = {split: (f"{name}/{split}.{end}",) for split in TWO_SPLITS}
    return DataSet(read, files, ships=True)


SETS: dict[str, DataSet] = {
    "sst2": _glue(
        "sst2", "SST-2", ("SST-2.zip",), _table_reader(2, "sentence")
    ),
    "cola": _glue(
        "cola",
        "CoLA",
        ("CoLA.zip",),
        _table_reader(
            2, "sentence", header=("source", "label", "mark", "sentence")
        ),
    ),
    "mrpc": _glue(
        "mrpc", "MRPC", (), _mrpc_rows, more=(f"MRPC/{MRPC_CORPUS}",)
    ),
    "rte": _glue(
        "rte",
        "RTE",
        ("RTE.zip",),
        _table_reader(ENTAILMENT, "sentence1", "sentence2"),
    ),
    "qnli": _glue(
        "qnli",
        "QNLI",
        ("QNLIv2.zip", "QNLI.zip"),
        _table_reader(ENTAILMENT, "question", "sentence"),
    ),
    "mnli": _glue(
        "mnli",
        "MNLI",
        ("MNLI.zip",),
        _table_reader(THREE_WAY, "sentence1", "sentence2", "gold_label/label"),
        MNLI_SPLITS,
    ),
    "qqp": _glue(
        "qqp",
        "QQP",
        ("QQP-clean.zip", "QQP.zip"),
        _table_reader(
            2,
            "question1",
            "question2",
            "is_duplicate/label",
            skip_damaged=True,  # older archives have such lines
        ),
    ),
    "stsb": _glue(
        "stsb",
        "STS-B",
        ("STS-B.zip",),
        _table_reader(None, "sentence1", "sentence2", "score/label"),
    ),
    "swag": DataSet(
        _choices_of,
        {
            "train": ("swag/train.csv",),
            "dev": ("swag/dev.csv", "swag/val.csv"),
        },
    ),
    "squad": DataSet(
        _question_reader(unanswerable=False),
        {
            "train": ("squad/train-v1.1.json", "train-v1.1.json"),
            "dev": ("squad/dev-v1.1.json", "dev-v1.1.json"),
        },
    ),
    "squad_v2": DataSet(
        _question_reader(unanswerable=True),
        {
            split: (
                f"squad/{split}-v2.0.json",
                f"squad_v2/{split}-v2.0.json",
                f"{split}-v2.0.json",
            )
            for split in TWO_SPLITS
        },
    ),
    "conll2003": DataSet(
        _tag_reader(NEWS_ENTITIES, width=4),
        {
            "train": ("conll2003/train.txt", "conll2003/eng.train"),
            "dev": (
                "conll2003/dev.txt",
                "conll2003/eng.testa",
                "conll2003/valid.txt",
            ),
            "test": ("conll2003/test.txt", "conll2003/eng.testb"),
        },
    ),
    "wnut17": DataSet(
        _tag_reader(NEW_ENTITIES, width=2),
        {
            "train": ("wnut17/train.txt", "wnut17/wnut17train.conll"),
            "dev": ("wnut17/dev.txt", "wnut17/emerging.dev.conll"),
            "test": ("wnut17/test.txt", "wnut17/emerging.test.annotated"),
        },
    ),
    "spa_eng": DataSet(
        _translations_of,
        {
            split: (f"spa_eng/{split}.tsv", SPA_ENG_WHOLE)
            for split in ("train", "dev", "test")
        },
        ("spa-eng.zip",),
    ),
    "opinions": _sample("opinions", "tsv", _table_reader(2, "sentence")),
    "reviews": _sample("reviews", "tsv", _table_reader(2, "sentence")),
    "pairs": _sample(
        "pairs", "tsv", _table_reader(THREE_WAY, "sentence1", "sentence2")
    ),
    "questions": _sample(
        "questions", "json", _question_reader(unanswerable=True)
    ),
    "shelf_questions": _sample(
        "shelf_questions", "json", _question_reader(unanswerable=True)
    ),
    "tags": _sample("tags", "txt", _tag_reader(NEWS_ENTITIES, width=2)),
    "names": _sample("names", "txt", _tag_reader(NEWS_ENTITIES, width=2)),
    "notes": _sample("notes", "txt", _tag_reader(CLINICAL_ENTITIES, width=2)),
    "choices": _sample("choices", "csv", _choices_of),
    "translation": _sample("translation", "tsv", _translations_of),
}
