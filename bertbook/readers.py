"""Who reads which data set: functions of a file and a split.

Differences: none; this module has no counterpart in the paper.
"""

from collections.abc import Callable, Sequence
from typing import Any

from bertbook.annotations import read_questions, read_tags
from bertbook.data_files import (
    Columns,
    DataFile,
    checked_columns,
    kept_rows,
)
from bertbook.splits import rows_of_split
from bertbook.tables import read_choices, read_table

Reader = Callable[[DataFile, str], Columns]
MRPC_CORPUS = "msr_paraphrase_train.txt"
MRPC_DEV_IDS = ("mrpc_dev_ids.tsv", "dev_ids.tsv")
SPA_ENG_WHOLE = "spa-eng/spa.txt"


def table_reader(
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


def question_reader(unanswerable: bool) -> Reader:
    """Returns a reader of questions."""
    return lambda file, split: read_questions(file, unanswerable)


def tag_reader(kinds: Sequence[str], width: int) -> Reader:
    """Returns a reader of tags."""
    return lambda file, split: read_tags(file, kinds, width)


def choices_of(file: DataFile, split: str) -> Columns:
    """Reads choices."""
    return read_choices(file)


def mrpc_rows(file: DataFile, split: str) -> Columns:
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
    is_dev = [pair in dev for pair in pairs]
    if not any(is_dev):
        raise ValueError(
            f"{found} must hold the ids of rows of {file}. Received: "
            f"{len(dev)} lines, and none of them is."
        )
    return checked_columns(
        file, kept_rows(table, [one == (split == "dev") for one in is_dev])
    )


def translations_of(file: DataFile, split: str) -> Columns:
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
