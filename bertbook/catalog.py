"""The data sets that the package knows: their files and who reads them.

Differences: none; this module has no counterpart in the paper.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertbook.annotations import read_questions, read_tags
from bertbook.data_files import Columns, DataFile
from bertbook.tables import read_choices, read_table

Reader = Callable[[DataFile, str], Columns]
PACKINGS = ("", ".xz", ".gz")
ENTAILMENT = ("entailment", "not_entailment")
THREE_WAY = ("contradiction", "entailment", "neutral")
NEWS_ENTITIES = ("LOC", "MISC", "ORG", "PER")
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
MRPC_CORPUS = "msr_paraphrase_train.txt"
MRPC_DEV_IDS = ("mrpc_dev_ids.tsv", "dev_ids.tsv")


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


def _table(
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
    theirs = {
        ours: names.split("/") for ours, names in columns.items() if names
    }
    return lambda file, split: read_table(file, theirs, labels, **options)


def _questions(unanswerable: bool) -> Reader:
    """Returns a reader of questions."""
    return lambda file, split: read_questions(file, unanswerable)


def _tags(kinds: Sequence[str], width: int) -> Reader:
    """Returns a reader of tags."""
    return lambda file, split: read_tags(file, kinds, width)


def _choices(file: DataFile, split: str) -> Columns:
    """Reads choices."""
    return read_choices(file)


def _mrpc(file: DataFile, split: str) -> Columns:
    """Reads MRPC: a table of GLUE, or the corpus and the ids of its dev rows.

    Raises:
        FileNotFoundError: The corpus is there, and the ids are not.
    """
    columns = {
        "text": ["sentence1", "#1 String"],
        "text_pair": ["sentence2", "#2 String"],
        "label": ["label", "Quality"],
    }
    if not file.path.name.startswith(MRPC_CORPUS):
        return read_table(file, columns, 2)
    ids = [DataFile(file.path.with_name(name)) for name in MRPC_DEV_IDS]
    found = next((one for one in ids if one.is_there()), None)
    if found is None:
        raise FileNotFoundError(
            f"{file} must have the ids of the dev rows beside it, "
            f"{' or '.join(MRPC_DEV_IDS)}. Received: neither."
        )
    dev = {tuple(line.split()) for line in found.lines()}
    columns |= {"first": ["#1 ID"], "second": ["#2 ID"]}
    table = read_table(file, columns, 2)
    pairs = zip(table.pop("first"), table.pop("second"), strict=True)
    keep = [(pair in dev) == (split == "dev") for pair in pairs]
    return {
        name: list(itertools.compress(column, keep))
        for name, column in table.items()
    }


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
    "sst2": _glue("sst2", "SST-2", ("SST-2.zip",), _table(2, "sentence")),
    "cola": _glue(
        "cola",
        "CoLA",
        ("CoLA.zip",),
        _table(2, "sentence", header=("source", "label", "mark", "sentence")),
    ),
    "mrpc": _glue("mrpc", "MRPC", (), _mrpc, more=(f"MRPC/{MRPC_CORPUS}",)),
    "rte": _glue(
        "rte", "RTE", ("RTE.zip",), _table(ENTAILMENT, "sentence1", "sentence2")
    ),
    "qnli": _glue(
        "qnli",
        "QNLI",
        ("QNLIv2.zip", "QNLI.zip"),
        _table(ENTAILMENT, "question", "sentence"),
    ),
    "mnli": _glue(
        "mnli",
        "MNLI",
        ("MNLI.zip",),
        _table(THREE_WAY, "sentence1", "sentence2", "gold_label/label"),
        MNLI_SPLITS,
    ),
    "qqp": _glue(
        "qqp",
        "QQP",
        ("QQP-clean.zip", "QQP.zip"),
        _table(
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
        _table(None, "sentence1", "sentence2", "score/label"),
    ),
    "swag": DataSet(
        _choices,
        {
            "train": ("swag/train.csv",),
            "dev": ("swag/dev.csv", "swag/val.csv"),
        },
    ),
    "squad": DataSet(
        _questions(unanswerable=False),
        {
            "train": ("squad/train-v1.1.json", "train-v1.1.json"),
            "dev": ("squad/dev-v1.1.json", "dev-v1.1.json"),
        },
    ),
    "squad_v2": DataSet(
        _questions(unanswerable=True),
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
        _tags(NEWS_ENTITIES, width=4),
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
        _tags(NEW_ENTITIES, width=2),
        {
            "train": ("wnut17/train.txt", "wnut17/wnut17train.conll"),
            "dev": ("wnut17/dev.txt", "wnut17/emerging.dev.conll"),
            "test": ("wnut17/test.txt", "wnut17/emerging.test.annotated"),
        },
    ),
    "opinions": _sample("opinions", "tsv", _table(2, "sentence")),
    "pairs": _sample(
        "pairs", "tsv", _table(THREE_WAY, "sentence1", "sentence2")
    ),
    "questions": _sample("questions", "json", _questions(unanswerable=True)),
    "tags": _sample("tags", "txt", _tags(NEWS_ENTITIES, width=2)),
    "choices": _sample("choices", "csv", _choices),
}
