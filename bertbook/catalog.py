"""The data sets that the package knows: their files and who reads them.

Differences: none; this module has no counterpart in the paper.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bertbook.readers import (
    MRPC_CORPUS,
    SPA_ENG_WHOLE,
    Reader,
    choices_of,
    mrpc_rows,
    question_reader,
    table_reader,
    tag_reader,
    translations_of,
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
    "sst2": _glue("sst2", "SST-2", ("SST-2.zip",), table_reader(2, "sentence")),
    "cola": _glue(
        "cola",
        "CoLA",
        ("CoLA.zip",),
        table_reader(
            2, "sentence", header=("source", "label", "mark", "sentence")
        ),
    ),
    "mrpc": _glue("mrpc", "MRPC", (), mrpc_rows, more=(f"MRPC/{MRPC_CORPUS}",)),
    "rte": _glue(
        "rte",
        "RTE",
        ("RTE.zip",),
        table_reader(ENTAILMENT, "sentence1", "sentence2"),
    ),
    "qnli": _glue(
        "qnli",
        "QNLI",
        ("QNLIv2.zip", "QNLI.zip"),
        table_reader(ENTAILMENT, "question", "sentence"),
    ),
    "mnli": _glue(
        "mnli",
        "MNLI",
        ("MNLI.zip",),
        table_reader(THREE_WAY, "sentence1", "sentence2", "gold_label/label"),
        MNLI_SPLITS,
    ),
    "qqp": _glue(
        "qqp",
        "QQP",
        ("QQP-clean.zip", "QQP.zip"),
        table_reader(
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
        table_reader(None, "sentence1", "sentence2", "score/label"),
    ),
    "swag": DataSet(
        choices_of,
        {
            "train": ("swag/train.csv",),
            "dev": ("swag/dev.csv", "swag/val.csv"),
        },
    ),
    "squad": DataSet(
        question_reader(unanswerable=False),
        {
            "train": ("squad/train-v1.1.json", "train-v1.1.json"),
            "dev": ("squad/dev-v1.1.json", "dev-v1.1.json"),
        },
    ),
    "squad_v2": DataSet(
        question_reader(unanswerable=True),
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
        tag_reader(NEWS_ENTITIES, width=4),
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
        tag_reader(NEW_ENTITIES, width=2),
        {
            "train": ("wnut17/train.txt", "wnut17/wnut17train.conll"),
            "dev": ("wnut17/dev.txt", "wnut17/emerging.dev.conll"),
            "test": ("wnut17/test.txt", "wnut17/emerging.test.annotated"),
        },
    ),
    "spa_eng": DataSet(
        translations_of,
        {
            split: (f"spa_eng/{split}.tsv", SPA_ENG_WHOLE)
            for split in ("train", "dev", "test")
        },
        ("spa-eng.zip",),
    ),
    "opinions": _sample("opinions", "tsv", table_reader(2, "sentence")),
    "pairs": _sample(
        "pairs", "tsv", table_reader(THREE_WAY, "sentence1", "sentence2")
    ),
    "questions": _sample(
        "questions", "json", question_reader(unanswerable=True)
    ),
    "tags": _sample("tags", "txt", tag_reader(NEWS_ENTITIES, width=2)),
    "notes": _sample("notes", "txt", tag_reader(CLINICAL_ENTITIES, width=2)),
    "choices": _sample("choices", "csv", choices_of),
    "translation": _sample("translation", "tsv", translations_of),
}
