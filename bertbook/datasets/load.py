"""`load_dataset`: data sets by name, shipped, local or downloaded; own files.

A set comes as a dict of columns, lists of equal length, whatever its official
file calls them. Labels are what that file holds: names are strings (`sorted`
gives `id2label`), numbers are integers, scores are floats.

Differences: none. The sets are those of Devlin et al. (2019), section 4 and
appendix B, with WNUT-17, English sentences in Spanish, and the samples that
were written for the book.
"""

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertbook.datasets.catalog import SETS, DataSet
from bertbook.datasets.download import ADVICE, cache_folder, downloads_of, fetch
from bertbook.datasets.own_files import checked_path, is_own, load_own
from bertbook.files import Columns, DataFile
from bertbook.locations import data_folder


def load_dataset(
    name: str | os.PathLike[str],
    split: str | None = None,
    data_dir: str | Path | None = None,
    *,
    text_column: str | None = None,
    text_pair_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    weight_column: str | None = None,
    tokens_column: str | None = None,
    tags_column: str | None = None,
    id_column: str | None = None,
    question_column: str | None = None,
    context_column: str | None = None,
    answers_column: str | None = None,
    choices_column: str | None = None,
    dev: float | None = None,
    seed: int = 0,
    mended: list[tuple[str, str]] | None = None,
    bad_rows: str = "error",
) -> Columns:
    """Loads a data set, or a file of your own, as a dict of columns.

    Sets and their columns, lists of equal length:

    - `sst2`, `cola`, `opinions`: `text`, `label` (0 or 1; 1 is positive,
      acceptable, good).
    - `mrpc`, `qqp`: `text`, `text_pair`, `label` (1: the same meaning).
    - `rte`, `qnli`, `mnli`, `pairs`: `text`, `text_pair`, `label` (names, such
      as "entailment"). `qnli` has the question as `text`.
    - `stsb`: `text`, `text_pair`, `label` (floats from 0 to 5).
    - `swag`, `choices`: `text`, `choices` (four strings each), `label` (the
      number of the right one).
    - `squad`, `squad_v2`, `questions`: `id`, `question`, `context`, `answers`
      (lists of {`text`, `answer_start`}; empty where there is no answer).
    - `conll2003`, `wnut17`, `tags`, `notes`: `tokens`, `tags` (lists of
      strings, BIO).
    - `spa_eng`, `translation`: `source`, `target` (an English sentence, and
      the same in Spanish, which is what is to be learned).

    `opinions`, `pairs`, `choices`, `questions`, `tags`, `notes` and
    `translation` ship with the package. The others are read from `data_dir`
    alone where it is given; else from the folder that the environment variable
    BERTBOOK_DATA names, else from the cache, into which they are downloaded
    once.

    A file of your own is CSV, TSV, JSON lines, JSON (a list of rows, or SQuAD's
    layout), Parquet, or tokens and tags in columns (.conll, .txt), packed as
    .gz, .xz, .bz2 or .zip or not. Its columns are those named above, also
    `sentence1` and `sentence2` or `premise` and `hypothesis` for two texts,
    `choice0`, `choice1`, ... for choices, and `weight`; any other is named in
    the call. Labels of a column are all integers, all scores, all names, or
    all lists of the labels that hold. Integers from 1 to 5, as of stars, are
    labels of a model with `num_labels=5`, which calls them "1" to "5".
    Answers are lists of {`text`, `answer_start`}, or the text alone: it is
    found where the context has it first. An empty text is no answer.

    What tools for annotation write is read as `tokens` and `tags`: texts whose
    entities are marked by characters (doccano, Label Studio, spaCy, Prodigy),
    and tables with a word in each row and the number of its sentence.

    Args:
        name: A name from the list above, or the path of a file of data, or of
            a folder with files such as train.csv and dev.csv.
        split: "train" or "dev", which None stands for; `mnli` has
            "dev_matched" ("dev" is the same) and "dev_mismatched";
            `conll2003`, `wnut17` and `spa_eng` have "test". The labels of the
            other test sets are not published.
            Of a folder it names the file: "train", "dev" or "test". A file
            has "train" and "dev" where `dev` is given; else None, all rows.
        data_dir: A folder with the official files, packed or not, or with
            `NAME/SPLIT` files, such as `sst2/dev.tsv.xz`.
        text_column: What the file calls the text, where it has another name.
            In the same way `text_pair_column`, `weight_column`,
            `tokens_column`, `tags_column`, `id_column`, `question_column`,
            `context_column`, `answers_column` and `choices_column`.
        text_pair_column: As `text_column`, for the second text.
        label_column: As `text_column`; "" for a file without labels; or a list
            of columns of zeros and ones, for several labels at once.
        weight_column: As `text_column`, for what a row counts.
        tokens_column: As `text_column`, for lists of words.
        tags_column: As `text_column`, for lists of tags.
        id_column: As `text_column`, for the names of rows.
        question_column: As `text_column`, for the question.
        context_column: As `text_column`, for the text that answers it.
        answers_column: As `text_column`, for lists of answers, or for texts.
        choices_column: As `text_column`, for lists of texts to choose from.
        dev: The share of the rows of a file that are for dev, such as 0.1;
            `train_dev_split` says how they are drawn.
        seed: Seed of this draw.
        mended: A list: the table of a file of your own is then mended and not
            refused, and for each change the list gets a place, such as
            "line 3", and what was done. Rows with an empty cell or with too
            few are left out, and so are texts that occur again, whatever their
            capitals. A label has its most frequent spelling. A file that is
            not UTF-8 is read as Windows writes it in the West. Words and tags
            may have spaces between them, and numbers a decimal comma.
        bad_rows: What happens to the rows of a file of your own that do not
            fit, such as those with an empty text or without a label. "error"
            names all of them in one error, each with its line. "skip" leaves
            them out, and changes nothing else; a warning says how many, by
            kind.

    Returns:
        A dict of columns, as `finetune`, `evaluate` and `train_dev_split` take.
        That of a file of your own knows the line of each row, so that later
        errors can name it. None is left out without `mended` or `bad_rows`.

    Raises:
        ValueError: `name` or `split` is unknown, a file is damaged, its
            columns are not known or values do not fit, or a download is not
            the published file.
        ImportError: Parquet without pyarrow.
        FileNotFoundError: The files are not there and cannot be downloaded;
            the message says where to get them.
        ConnectionError: A download broke off.

    A file of reviews, a tenth of it held out, and a known set:

        columns = {"text_column": "body", "label_column": "stars"}
        train = load_dataset("reviews.csv", "train", dev=0.1, **columns)
        dev = load_dataset("reviews.csv", "dev", dev=0.1, **columns)

    >>> import bertbook as bb
    >>> data = bb.load_dataset("opinions", "train")
    >>> sorted(data), len(data["text"]), data["label"][:3]
    (['label', 'text'], 400, [1, 1, 1])
    """
    asked = {
        "text": text_column,
        "text_pair": text_pair_column,
        "label": label_column,
        "weight": weight_column,
        "tokens": tokens_column,
        "tags": tags_column,
        "id": id_column,
        "question": question_column,
        "context": context_column,
        "answers": answers_column,
        "choices": choices_column,
    }
    if not _is_known(name) and is_own(name):
        _refuse({"data_dir": data_dir}, "of known sets alone")
        return load_own(name, split, asked, dev, seed, mended, bad_rows)
    named = {f"{role}_column": header for role, header in asked.items()}
    known = _check_name(name)
    own = {**named, "dev": dev, "mended": mended}
    own["bad_rows"] = None if bad_rows == "error" else bad_rows
    _refuse(own, f"of own files alone, not of {known!r}")
    split = "dev" if split is None else split
    return SETS[known].read(find_dataset(known, split, data_dir), split)


def _refuse(arguments: Mapping[str, Any], rule: str) -> None:
    """Refuses arguments that are given."""
    for word, value in arguments.items():
        if value is not None:
            raise ValueError(f"`{word}` is {rule}. Received: {value!r}.")


def find_dataset(
    name: str, split: str = "dev", data_dir: str | Path | None = None
) -> DataFile:
    """Returns the file that `load_dataset` reads, downloaded where needed.

    The arguments and errors are those of `load_dataset`.

    Raises:
        ValueError: `split` is unknown.
        FileNotFoundError: The file is not there and cannot be downloaded.
        ConnectionError: A download broke off.
    """
    known = SETS[_check_name(name)]
    if split not in list(known.files):
        raise ValueError(
            f"`split` of {name!r} must be one of {', '.join(known.files)}. "
            f"Received: {split!r}."
        )
    folder = _preferred_folder(known, data_dir)
    if folder is not None:
        file = _search(known, split, folder)
        if file is not None:
            return file
        if data_dir is not None or known.ships:
            raise _missing(name, split, folder)
    downloads = downloads_of(name, split)
    if not downloads:
        raise _missing(name, split, folder)
    for download in downloads:
        try:
            fetch(download)
        except ConnectionError as error:
            raise ConnectionError(f"{error} {_advice(name, split)}") from error
    file = _search(known, split, cache_folder())
    if file is None:  # an archive without its files
        raise _missing(name, split, cache_folder())
    return file


def _is_known(name: Any) -> bool:
    """Returns whether a value is the name of a set."""
    return isinstance(name, str) and name in SETS


def _check_name(name: Any) -> str:
    """Returns the name of a set; suggests the nearest for an unknown one."""
    if _is_known(name):
        return name
    spelling = (
        "" if name is None else str(name).lower()
    )  # "none" is near "notes"
    near = difflib.get_close_matches(spelling, SETS, n=3)
    offer = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(
        f"`name` must be one of {', '.join(SETS)}, or the path of a file or a "
        f"folder.{offer} Received: {name!r}."
    )


def _preferred_folder(
    known: DataSet, data_dir: str | Path | None
) -> Path | None:
    """Returns the folder that is to be looked into first, if there is one."""
    if data_dir is None and known.ships:
        return data_folder() / "samples"
    word, value = "data_dir", data_dir
    if data_dir is None:
        word, value = "BERTBOOK_DATA", os.environ.get("BERTBOOK_DATA") or None
    if value is None:
        return None
    folder = checked_path(value, word)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`{word}` must be a folder. Received: {str(value)!r}."
        )
    return folder


def _search(known: DataSet, split: str, folder: Path) -> DataFile | None:
    """Returns the first file of a split that is below a folder."""
    for place, member in known.places(split):
        file = DataFile(folder / place, member)
        if file.is_there():
            return file
    return None


def _missing(name: str, split: str, folder: Path | None) -> FileNotFoundError:
    """Returns the error for a set that is nowhere."""
    looked = "" if folder is None else f" It is not in {folder}."
    return FileNotFoundError(
        f"The split {split!r} of {name!r} is missing.{looked} "
        f"{_advice(name, split)}"
    )


def _advice(name: str, split: str) -> str:
    """Returns which files are read, and where to get them."""
    known = SETS[name]
    places = ", ".join([*known.files[split], *known.archives])
    advice = (
        "Below `data_dir`, or the folder that BERTBOOK_DATA names, any of "
        f"these is read, packed as .xz or .gz too: {places}."
    )
    urls = [download.url for download in downloads_of(name, split)]
    if urls:
        return f"{advice} Published at {' and '.join(urls)}."
    return f"{advice} {ADVICE.get(name, '')}".rstrip()
