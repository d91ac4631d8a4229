"""Data of your own on the command line: columns, parts, the task, its labels.

`load_dataset` reads the files. Here is what a command must know besides: which
rows are held out, which task the columns tell, and what its labels are called.
"""

import json
import re
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bertbook.checks import each_row, is_integer, listed
from bertbook.datasets.catalog import SETS
from bertbook.datasets.cells import COMMA, NONE_HOLDS, SEPARATORS
from bertbook.datasets.columns import under_its_names, with_rows_of
from bertbook.datasets.load import load_dataset
from bertbook.datasets.own_files import MOST_NUMBERS, column_names
from bertbook.tasks.label_counts import (
    counted,
    labels_of,
    remarks_on_labels,
)
from bertbook.tasks.labels import names_of

# The task of a data set, and the columns that it needs.
TASKS = {
    "classification": ("text", "label"),
    "regression": ("text", "label"),
    "several-labels": ("text", "label"),
    "questions": ("question", "context", "answers"),
    "tags": ("tokens", "tags"),
    "choices": ("text", "choices", "label"),
}
TASK_HELP = (
    "what is learned; without it the columns tell: tags, choices, answers, "
    "labels in lists (several-labels), numbers with a decimal point "
    "(regression), else classification. A field of several labels separates "
    "them by |, ; or a comma; | alone says that none holds"
)
COLUMNS = {
    "text": "text to read",
    "text-pair": "second text",
    "label": "class, number, or list of classes",
    "weight": "weight of the row in training, a number >= 0",
    "tokens": "words of a sentence",
    "tags": "tags of the words, BIO",
    "id": "name of the row",
    "question": "question",
    "context": "passage that holds the answer",
    "answers": "answers, texts of the passage or in the form of SQuAD",
    "choices": "texts of which one is right",
}
# A call in a message of `load_dataset`, and a keyword in it with its value.
QUOTED = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(rf"load_dataset\({QUOTED}((?:, \w+={QUOTED})+)\)")
KEYWORD = re.compile(rf"\b([a-z]+(?:_pair)?)_column\b(?:=({QUOTED}),?)?")
# A missing label, and the advice to leave its row out.
MISSING = re.compile(r'(?s)(must not be missing.*?)(`bad_rows="skip"` leaves)')


def add_columns(parser: Any, names: Any = tuple(COLUMNS)) -> None:
    """Adds an option for each column to the parser of a command."""
    group = parser.add_argument_group("columns of your own file")
    for name in names:
        group.add_argument(
            f"--{name}-column",
            metavar="NAME",
            help=f"column of the {COLUMNS[name]}; without it "
            f"{name.replace('-', '_')}",
        )


def add_skip(add: Any) -> None:
    """Adds the option that leaves out rows that do not fit."""
    add(
        "--skip-bad-rows",
        action="store_true",
        help="leave out rows of a file that do not fit, and say how many, by "
        "kind; without it they are an error that names their lines",
    )


def add_held_out(parser: Any) -> None:
    """Adds what chooses the held-out part of a file, as `finetune` did."""
    parser.add_argument(
        "--dev",
        help="share that was held out of the file, to take that part alone, "
        "as the run drew it; without it all rows",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="seed that drew the held-out part; without it that of the run",
    )


def add_mend(add: Any) -> None:
    """Adds the option that mends the table of a file."""
    add(
        "--mend",
        action="store_true",
        help="leave out rows of a file that do not fit and texts that occur "
        "again, give each label one spelling, read cp1252, and say so; "
        "without it such a table is refused",
    )


def named_columns(options: Any) -> dict[str, str]:
    """Returns the columns that a command names, as `load_dataset` takes them.

    >>> import argparse
    >>> named_columns(argparse.Namespace(text_column="body", id_column=None))
    {'text_column': 'body'}
    """
    return {
        name: value
        for name, value in vars(options).items()
        if name.endswith("_column") and value is not None
    }


def remembered_columns(
    path: str | None, config: Mapping[str, Any] | None, options: Any
) -> dict[str, Any]:
    """Returns the columns of a table: named ones, else those of a fine-tuning.

    Args:
        path: A table, as `load_dataset` takes it.
        config: What `config.json` of the model holds; None for nothing.
        options: What the command was given.
    """
    named = named_columns(options)
    past = (config or {}).get("bertbook_finetuning") or {}
    known = past.get("columns") or {}
    if path is None or not known or not Path(path).expanduser().is_file():
        return named
    names = column_names(Path(path).expanduser(), {*known.values()})
    kept = {
        f"{role}_column": name for role, name in known.items() if name in names
    }
    return {**kept, **named}


def read_parts(options: Any) -> tuple[dict, dict | None]:
    """Returns what `finetune` trains on, and what it chooses by, if anything.

    Raises:
        ValueError: `--dev` fits neither the set nor a file.
    """
    columns: dict[str, Any] = named_columns(options)
    name, data_dir = options.dataset, options.data_dir
    share = _share(options.dev)
    if options.mend:
        columns["mended"] = _Told()
    columns["task"] = options.task
    columns |= _action(options)
    has_parts = name in SETS or Path(name).expanduser().is_dir()
    if share is not None and has_parts:
        raise ValueError(
            "`--dev` must be a file where the data have a dev part of their "
            f"own, as {name} has. Received: {options.dev}."
        )
    if share is not None:
        held_out = columns | {"dev": share, "seed": options.seed}
        train = load(name, "train", data_dir, **held_out)
        return train, load(name, "dev", data_dir, tells=False, **held_out)
    train = load(name, "train" if has_parts else None, data_dir, **columns)
    if options.dev is not None:
        return train, load(options.dev, given_as="--dev", **columns)
    if has_parts:
        return train, load(name, "dev", data_dir, **columns)
    return train, None


class _Told(list):
    """What was mended, printed as it is added, each change once.

    Args:
        file: Where to; None is standard output.
    """

    def __init__(self, file: Any = None):
        super().__init__()
        self.file = file

    def append(self, change: tuple[str, str]) -> None:
        if change not in self:
            super().append(change)
            print(": ".join(change), file=self.file)


def read_one(options: Any, config: Mapping[str, Any] | None = None) -> dict:
    """Returns the rows that `evaluate` measures on.

    Args:
        options: What the command was given.
        config: What `config.json` of the model holds; None for nothing.

    Raises:
        ValueError: `--dev` is no share.
    """
    columns: dict[str, Any]
    columns = remembered_columns(options.dataset, config, options)
    name, split = options.dataset, options.split
    if options.mend:
        columns["mended"] = _Told(sys.stderr)
    columns |= _action(options)
    run = _held_out(name, config)
    if options.dev is not None:
        share = _share(options.dev)
        if share is None or name in SETS:
            raise ValueError(
                "`--dev` of `evaluate` must be the share of a file that was "
                f"held out, such as 0.1. Received: {options.dev}."
            )
        columns |= {"dev": share, "seed": options.seed or 0}
        if run is not None:
            columns |= _as_the_run(run, options)
        split = split or "dev"
    elif split is None and Path(name).is_dir():
        split = "dev"
    elif run is not None:
        tell(
            f"the model was trained on rows of {run['file']}; `--dev "
            f"{run['dev']:g}` measures it on those that were held out."
        )
    return load(name, split, options.data_dir, **columns)


def _held_out(
    name: str, config: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Returns how a run drew its dev rows, if from a file of this name."""
    past = (config or {}).get("bertbook_finetuning") or {}
    run = past.get("held_out") or {}
    return run if run.get("file") == Path(name).name else None


def _as_the_run(run: Mapping[str, Any], options: Any) -> dict[str, Any]:
    """Returns what `load_dataset` needs to draw the rows of a run again.

    Raises:
        ValueError: The options say something else, and would draw rows that
            the run has trained on.
    """
    seed = run["seed"] if options.seed is None else options.seed
    if (_share(options.dev), seed) != (run["dev"], run["seed"]):
        raise ValueError(
            f"`--dev` must be what the run held out of {run['file']}, `--dev "
            f"{run['dev']:g} --seed {run['seed']}`: it has trained on the "
            f"other rows. Received: --dev {options.dev} --seed {seed}."
        )
    drawn: dict[str, Any] = {"seed": seed}
    drawn["mended"] = _Told(sys.stderr) if run["mended"] else None
    return drawn | {"bad_rows": run["bad_rows"]}


def _action(options: Any) -> dict[str, str]:
    """Returns what happens to bad rows, as `load_dataset` takes it."""
    return {"bad_rows": "skip"} if options.skip_bad_rows else {}


def load(
    name: str,
    split: str | None = None,
    data_dir: str | None = None,
    *,
    given_as: str = "dataset",
    tells: bool = True,
    task: str | None = None,
    **options: Any,
) -> dict:
    """Returns what `load_dataset` reads, all rows of a file without a split.

    Args:
        name: As in `load_dataset`; `split` and `data_dir` alike.
        split: The part.
        data_dir: A folder of official files.
        given_as: What the command calls `name`.
        tells: Whether to say what is left out.
        task: The task, where it is told.
        **options: More keywords of `load_dataset`.

    Raises:
        ValueError: As `load_dataset`; columns are named as their options.
        FileNotFoundError: There is no such file.
    """
    if split is not None:
        options["split"] = split
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data = load_dataset(name, data_dir=data_dir, **options)
        for warning in caught if tells else ():
            tell(as_options(str(warning.message), given_as, task))
        return data
    except UnicodeError:  # has no message of its own
        raise
    except (ValueError, FileNotFoundError) as error:
        if error.args and isinstance(error.args[0], str):
            message = as_options(error.args[0], given_as, task)
            error.args = (message, *error.args[1:])
        raise


def tell(message: str) -> None:
    """Prints a remark on standard error, where no result is."""
    print(f"bertbook: {message}", file=sys.stderr)


def as_options(
    message: str, given_as: str = "dataset", task: str | None = None
) -> str:
    """Returns a message of `load_dataset` for one who typed a command.

    Args:
        message: The message.
        given_as: What the command calls `name`.
        task: The task, where it is told.

    >>> as_options("`text_column` must be a column of x.csv.")
    '`--text-column` must be a column of x.csv.'
    >>> as_options('none, as in load_dataset("x.csv", text_column="body").')
    'none, as in `--text-column body`.'
    >>> as_options('as in load_dataset("x.csv", label_column="The label").')
    "as in `--label-column 'The label'`."
    """
    if task == "several-labels" and NONE_HOLDS not in message:
        message = MISSING.sub(rf"\1`|` {NONE_HOLDS}; \2", message)
    message = CALL.sub(lambda call: f"`{call[1][2:]}`", message)
    message = KEYWORD.sub(_option, message)
    message = re.sub(r"`mended(=\[\])?`", "`--mend`", message)
    message = message.replace('`bad_rows="skip"`', "`--skip-bad-rows`")
    message = message.replace("`bad_rows`", "`--skip-bad-rows`")
    # Elsewhere it may be a column of the user.
    return re.sub(r"\A`name`", f"`{given_as}`", message)


def _option(keyword: re.Match) -> str:
    """Returns how a command takes a keyword of `load_dataset`."""
    option = f"--{keyword[1].replace('_', '-')}-column"
    if keyword[2] is None:
        return option
    return f"{option} {shlex.quote(json.loads(keyword[2]))}"


def _share(word: str | None) -> float | None:
    """Returns a share of the rows; None where the word names a file."""
    if word is None or Path(word).expanduser().exists():
        return None
    try:
        share = float(word)
    except ValueError:
        return None
    if not 0 < share < 1:
        raise ValueError(
            "`--dev` must be a share above 0 and below 1, or a file. "
            f"Received: {word}."
        )
    return share


def guess_task(data: dict) -> str:
    """Returns the task that the columns of a data set tell.

    Raises:
        ValueError: They tell none, or leave the choice open.

    >>> guess_task({"text": ["a", "b"], "label": ["bad", "good"]})
    'classification'
    >>> guess_task({"text": ["a", "b"], "label": [0.5, 2.0]})
    'regression'
    """
    for name, task in (
        ("tags", "tags"),
        ("choices", "choices"),
        ("answers", "questions"),
    ):
        if name in data:
            return task
    if "label" not in data:
        raise ValueError(
            "`data` must hold one of the columns tags, choices, answers, "
            "label; `--label-column` and its like name a column of yours. "
            f"Received: {', '.join(data)}."
        )
    labels = data["label"]
    if any(isinstance(label, list | tuple | set) for label in labels):
        return "several-labels"
    different = len({*labels})
    if any(isinstance(label, float) for label in labels):
        if different <= MOST_NUMBERS and all(map(_is_whole, labels)):
            raise ValueError(
                "`--task` must say whether the numbers of the label column "
                "are classes or scores, `--task classification` or `--task "
                "regression`. Received: no task, and numbers such as "
                f"{labels[0]!r}, which some programs write for classes."
            )
        return "regression"
    if names_of(labels) is None and different > MOST_NUMBERS:
        raise ValueError(
            "`--task` must say what the numbers of the label column are, "
            "classification or regression. Received: no task, and "
            f"{different:,} different numbers."
        )
    return "classification"


def _is_whole(label: Any) -> bool:
    """Returns whether a number has nothing behind its decimal point."""
    return isinstance(label, float | int) and float(label).is_integer()


def check_task(data: dict, task: str) -> None:
    """Refuses a task whose columns are not there, or that has one label.

    Raises:
        ValueError: A column is missing, and the option that names it is given;
            or there is nothing to tell apart.
    """
    missing = [name for name in TASKS[task] if name not in data]
    if missing:
        wanted = ", ".join(f"--{name}-column" for name in missing)
        raise ValueError(
            f"`--task {task}` needs the columns {', '.join(TASKS[task])}; "
            f"{wanted} can name them. Received: {', '.join(data)}."
        )
    labels = data.get("label", [])
    if task == "several-labels" and any(isinstance(x, float) for x in labels):
        raise ValueError(
            "`--task several-labels` needs names or lists of them; | separates "
            "those that are numbers. Received: a decimal number."
        )
    if task == "classification" and len(set(labels)) == 1:
        raise ValueError(
            "The label column must hold two labels or more, to be learned. "
            f"Received: {labels[0]!r} in all of {len(labels)} rows."
        )


def with_labels_of(data: dict, task: str) -> dict:
    """Returns columns whose labels are what a task learns.

    Classes become names, so that a saved model knows them: stars from 1 to 5
    are called "1" to "5". A regression gets floats.

    Raises:
        ValueError: A label of a regression is no number; its row is named.

    >>> with_labels_of({"label": [5, 1, True]}, "classification")
    {'label': ['5', '1', 'true']}
    >>> with_labels_of({"label": ["a|b", "b"]}, "several-labels")
    {'label': [['a', 'b'], ['b']]}
    """
    if "label" not in data or task not in list(TASKS)[:3]:
        return data
    labels = data["label"]
    if task == "regression":
        with under_its_names(data):
            labels = each_row(_number, labels)
    elif task == "several-labels":
        labels = [[*map(_name, several)] for several in _split(labels)]
    else:
        labels = [_name(label) for label in labels]
    return with_rows_of({**data, "label": labels}, data)


def with_labels_for(data: dict, model: Any, skip: bool = False) -> dict:
    """Returns columns whose labels are called as a model calls them.

    Args:
        data: Columns.
        model: A model that has learned its labels.
        skip: Whether to leave out rows with labels that it does not know.
    """
    named = _named_for(data, model, skip)
    known = model.config.id2label or {}
    return with_known_labels(named, known.values()) if skip else named


def _named_for(data: dict, model: Any, skip: bool) -> dict:
    """Returns columns with the names of a model as labels, where they fit."""
    names = getattr(model.config, "id2label", None)
    problem = getattr(model, "problem_type", None)
    if "label" not in data or problem is None:
        return data
    if problem == "regression":
        return with_labels_of(data, "regression")
    if names is None:
        return data
    several = problem == "multi_label_classification"
    task = "several-labels" if several else "classification"
    named = with_labels_of(data, task)
    used = {name for label in named["label"] for name in labels_in(label)}
    known = {*names.values()}
    return named if used <= known or (skip and used & known) else data


def with_known_labels(data: dict, known: Iterable[str]) -> dict:
    """Returns the rows whose labels or tags are known; says how many are not.

    Args:
        data: Columns, labels as `with_labels_of` gives them.
        known: The labels of a model; none where they are numbers.
    """
    from bertbook.tasks.tags import fit_tags  # it loads Keras

    names = set(known)
    column = next((name for name in ("label", "tags") if name in data), None)
    if not names or column is None or "choices" in data:
        return data
    kept: list[int] = []
    new: Counter[Any] = Counter()
    for row, value in enumerate(data[column]):
        labels = labels_in(value)
        if column == "tags" and not all(map(is_integer, labels)):
            labels = fit_tags(labels, names)
        is_known = all(is_integer(x) or x in names for x in labels)
        new.update(x for x in labels if x not in names and not is_known)
        if is_known:
            kept.append(row)
    left = len(data[column]) - len(kept)
    if not left:
        return data
    tell(
        f"{left:,} of {len(data[column]):,} rows were left out: labels that "
        f"the model does not know, {listed(new)}."
    )
    rows = {name: [values[n] for n in kept] for name, values in data.items()}
    return with_rows_of(rows, data, kept)


def labels_in(value: Any) -> list:
    """Returns the labels of one row as a list."""
    return [*value] if isinstance(value, list | tuple | set) else [value]


def say_task(data: dict, dev: dict | None, task: str) -> None:
    """Prints what is learned from how many rows, and counts of the labels.

    What is odd about the labels is told on standard error.
    """
    rows = len(next(iter(data.values())))
    text = f"task: {task}, {rows:,} rows"
    kinds = {label for labels in labels_of(data) for label in labels}
    if task in ("classification", "several-labels", "tags") and kinds:
        text += f", {len(kinds)} labels: {counted(data)}"
    print(text)
    if dev is None:
        print("no dev part, so the last weights stay; `--dev 0.1` makes one")
    else:
        print(f"dev: {len(next(iter(dev.values()))):,} rows")
    for remark in remarks_on_labels(data, dev):
        tell(remark)


def _name(label: Any) -> str:
    """Returns what a class is called."""
    if isinstance(label, bool):
        return json.dumps(label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label)


def _number(row: int, label: Any) -> float:
    """Returns a label of a regression."""
    try:
        return float(label)
    except (TypeError, ValueError):
        has_comma = isinstance(label, str) and COMMA.fullmatch(label)
        advice = "; `--mend` reads decimal commas" if has_comma else ""
        raise ValueError(
            f"`label[{row}]` must be a number for `--task regression`{advice}. "
            f"Received: {label!r}."
        ) from None


def _split(labels: list) -> list[list]:
    """Returns each field of several labels as a list."""
    blank = SEPARATORS + " "  # in a field that says that none holds
    fields = [x for x in labels if isinstance(x, str) and x.strip(blank)]
    separator = next(
        (mark for mark in SEPARATORS if any(mark in f for f in fields)), "|"
    )
    return [
        [part.strip() for part in label.split(separator) if part.strip(blank)]
        if isinstance(label, str)
        else labels_in(label)
        for label in labels
    ]
