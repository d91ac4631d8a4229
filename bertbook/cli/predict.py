"""The command `predict`: a line of output for each row, as the rows come."""

import csv
import io
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from bertbook import runtime
from bertbook.checks import listed
from bertbook.cli import finetuning, own_data
from bertbook.cli.parsing import add_command, count
from bertbook.cli.texts import (
    add_texts,
    answer,
    check_source,
    number_lines,
    read_lines,
)
from bertbook.datasets import own_files
from bertbook.files import parse_json

FORMATS = ("json", "tsv")
CLASSES = "BertForSequenceClassification"
# The columns of a table that each model reads, in the order of a row's parts.
READ = {
    CLASSES: ("text", "text_pair"),
    "BertForTokenClassification": ("text",),
    "BertForQuestionAnswering": ("question", "context"),
    "BertForMultipleChoice": ("text", "choices"),
}
TABLE_COLUMNS = ("text", "text-pair", "question", "context", "choices", "id")


def add_commands(commands) -> None:
    """Adds the command to a parser."""
    parser = add_command(
        commands,
        "predict",
        "let a fine-tuned model read texts; a line of output for each",
        predict,
    )
    parser.set_defaults(prints=True)
    add = parser.add_argument
    add("--model", required=True, help="folder that `finetune` wrote")
    add(
        "--max-length",
        type=count,
        help="tokens that texts are cut to; without it those of the run, if "
        "it had any",
    )
    add("--batch-size", type=count, default=32, help="rows at a time")
    add(
        "--all-scores",
        action="store_true",
        help="print the probability of every class too, as scores",
    )
    add(
        "--format",
        choices=FORMATS,
        default="json",
        help="form of a line: JSON, or label and scores between tabs",
    )
    add_texts(
        parser,
        "one text; or the parts of one row: text and second text, question "
        "and context, text and choices. Or a table, with --text-column or its "
        "like, or with the columns of the run",
        "text file, a row a line, its parts between tabs, empty lines left "
        "out; or a table, with --text-column or its like or the columns of "
        "the run",
    )
    own_data.add_columns(parser, TABLE_COLUMNS)
    own_data.add_skip(add)


def predict(options) -> None:
    """Prints what a model reads out of each row, while rows come in.

    Raises:
        ValueError: No text comes in, or one does not fit the model.
    """
    columns = _columns(options)
    if columns and not options.file and len(options.text) == 1:
        options.file, options.text = options.text[0], []
    check_source("predict", options)
    rows = _read_rows(options, columns)
    first = next(rows, None)
    while first is None:
        try:
            first = next(rows)
        except StopIteration:
            raise ValueError(
                "The input must hold a text. Received: no line."
            ) from None
    model = finetuning.load_finetuned(options.model)
    writer = Writer(model, options)
    rows = itertools.chain([first], rows)
    skipped: list[int] | None = [] if options.skip_bad_rows else None
    fitting = parts_of(rows, model.architecture, bool(columns), skipped)

    def compute(found: list[Any]) -> list[Any]:
        return finetuning.predict_rows(
            model,
            [parts for _, parts in found],
            options.max_length,
            _rows_at_a_time(model, options.batch_size),
            **writer.wanted,
        )

    def compute_at_once(found: list[Any]) -> list[Any]:
        with runtime.uncompiled():
            return compute(found)

    answers = itertools.chain(
        answer(itertools.islice(fitting, 1), 1, compute_at_once),
        answer(fitting, options.batch_size, compute),
    )
    for number, ((name, _), prediction) in enumerate(answers, 1):
        writer.write(name, prediction)
        writer.show(number)
    writer.end()
    if skipped:
        own_data.tell(
            f"left out {len(skipped):,} lines that do not fit: "
            f"{listed(skipped)}."
        )


def _columns(options: Any) -> dict[str, str]:
    """Returns the columns of a table: named ones, else as the model knows."""
    named = own_data.named_columns(options)
    path = options.file
    if path is None and len(options.text) == 1:
        path = options.text[0]
    texts = named.keys() - {"id_column"}
    if texts or path is None or not own_files.is_own(path):
        return named
    config = finetuning.config_of(options.model)
    found = own_data.remembered_columns(path, config, options)
    read = {f"{x}_column" for names in READ.values() for x in names}
    return named | {role: x for role, x in found.items() if role in read}


def _rows_at_a_time(model: Any, batch_size: int) -> int:
    """Returns a batch size; of choices each row is several texts."""
    if model.architecture == "BertForMultipleChoice":
        return max(1, batch_size // 4)
    return batch_size


def _read_rows(options: Any, columns: dict[str, str]) -> Iterator[Any]:
    """Yields numbered rows: the parts of a line, or the columns of a table."""
    if columns:
        if options.file in (None, "-"):
            lines = read_lines("-")
            yield from _read_table(lines, columns, options.skip_bad_rows)
        else:
            yield from _load_table(options, columns)
    elif options.text:
        yield 1, options.text
    else:
        for row in number_lines(read_lines(options.file or "-")):
            if row is None:
                yield None
            elif row[1]:
                yield row[0], row[1].split("\t")


def _load_table(options: Any, columns: dict[str, str]) -> Iterator[Any]:
    """Yields the rows of a file with columns, as dicts; labels are not read."""
    more: dict[str, Any] = {}
    if options.skip_bad_rows:
        more["bad_rows"] = "skip"
    learned = "answers" if "question_column" in columns else "label"
    more[f"{learned}_column"] = ""
    try:
        data = own_data.load(options.file, **(more | columns))
    except ValueError as error:  # every row has its line: nothing is mended
        error.args = (str(error).replace(", or use `--mend`", ""),)
        raise
    places = getattr(data, "places", [])
    for number, values in enumerate(zip(*data.values(), strict=True)):
        line = re.fullmatch("line ([0-9]+)", places[number] if places else "")
        row = dict(zip(data, values, strict=True))
        yield int(line[1]) if line else number + 1, row


def _read_table(
    lines: Iterable[str | None], columns: dict[str, str], skip: bool = False
) -> Iterator[Any]:
    """Yields the rows of a table that comes in by lines.

    Lines of JSON begin with a brace. Else the first line names the columns,
    and tabs or commas separate them; a row is one line. A row that does not
    fit is an error, which is yielded with `skip` and else raised.
    """
    names: list[str] | None = None
    delimiter = ","
    wanted = {c: name.removesuffix("_column") for name, c in columns.items()}
    for row in number_lines(lines):
        if row is None or not row[1]:
            if row is None:
                yield None
            continue
        number, line = row
        if names is None and not line.startswith("{"):
            delimiter = "\t" if "\t" in line else ","
            names = _fields(line, delimiter, number)
            _check_once(names, wanted, number)
            continue
        try:
            if line.startswith("{"):
                values = _json_row(line, number)
            else:
                values = _delimited_row(line, delimiter, number, names or [])
            yield (
                number,
                {
                    role: _column(values, header, number)
                    for header, role in wanted.items()
                },
            )
        except ValueError as error:
            if not skip:
                raise
            yield number, error


def _check_once(names: list[str], wanted: Iterable[str], number: int) -> None:
    """Refuses a table with two columns of a name that is read."""
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"Line {number} must name a column once. Received: "
            f"{twice[0]!r} {names.count(twice[0])} times."
        )


def _delimited_row(
    line: str, delimiter: str, number: int, names: list[str]
) -> dict[str, str]:
    """Returns the values of a line with delimiters."""
    fields = _fields(line, delimiter, number)
    if len(fields) != len(names):
        raise ValueError(
            f"Line {number} must hold {len(names)} fields, as the first "
            f"line. Received: {len(fields)}."
        )
    return dict(zip(names, fields, strict=True))


def _fields(line: str, delimiter: str, number: int) -> list[str]:
    """Returns the fields of a line of a table."""
    if delimiter == "\t":
        return line.split("\t")
    try:
        return next(csv.reader(io.StringIO(line, newline=""), strict=True))
    except csv.Error as error:
        raise ValueError(
            f"Line {number} must be a whole row; a field with line breaks "
            f"needs `--file`. Received: {error}."
        ) from error


def _json_row(line: str, number: int) -> dict:
    """Returns the values of a line of JSON."""
    try:
        values = parse_json(line, "The line")
    except ValueError as error:
        raise ValueError(
            f"Line {number} must be a JSON object. Received: {error}"
        ) from None
    if not isinstance(values, dict):
        raise ValueError(
            f"Line {number} must be a JSON object. Received: "
            f"{type(values).__name__}."
        )
    return values


def _column(values: dict, name: str, number: int) -> Any:
    """Returns the value of a column."""
    if name not in values:
        raise ValueError(
            f"Line {number} must hold the column {name!r}. Received: "
            f"{', '.join(map(repr, values))}."
        )
    return values[name]


def parts_of(
    rows: Iterable[Any],
    architecture: str,
    is_table: bool,
    skipped: list[int] | None = None,
) -> Iterator[Any]:
    """Yields numbered rows as a name, if any, and the parts that a model reads.

    Args:
        rows: Numbered rows: parts, columns, or what is wrong with a row.
        architecture: The class of the model.
        is_table: Whether rows have columns.
        skipped: Gets the lines that do not fit; None refuses them.

    Raises:
        ValueError: A row has other parts than the model reads, or than the
            first row; its line is named.
    """
    fewest, most, description = finetuning.PARTS[architecture]
    width = None
    for row in rows:
        if row is None:
            yield None
            continue
        number, parts = row
        try:
            if isinstance(parts, ValueError):
                raise parts
            name = parts.get("id") if is_table else None
            if is_table:
                parts = _parts_of_table(parts, architecture)
            _check_texts(parts, number)
            alike = width in (None, len(parts))
            if not fewest <= len(parts) <= most or not alike:
                raise ValueError(
                    f"Line {number} must hold {description}, separated by "
                    "tabs, as many as the other lines. Received: "
                    f"{len(parts)} parts."
                )
        except ValueError:
            if skipped is None:
                raise
            skipped.append(number)
            continue
        width = len(parts)
        yield number, (name, parts)


def _check_texts(parts: list, number: int) -> None:
    """Refuses a part without a text."""
    for part in parts:
        if isinstance(part, str) and not part.strip():
            raise ValueError(
                f"Line {number} must hold a text in each part. Received: "
                f"{part!r}."
            )


def _parts_of_table(values: dict, architecture: str) -> list:
    """Returns the parts of a row of a table."""
    parts: list[Any] = []
    for name in READ[architecture]:
        value = values.get(name)
        if isinstance(value, list | tuple):
            parts += value
        elif value is not None:
            parts.append(value)
    return parts


class Writer:
    """Writes predictions to standard output, and how many, to a terminal.

    Args:
        model: The model.
        options: What the command was given.

    Raises:
        ValueError: The model does not give what is asked for.
    """

    def __init__(self, model: Any, options: Any):
        self.architecture = model.architecture
        self.format = options.format
        self.wanted: dict[str, Any] = {}
        for name, is_asked in (
            ("--all-scores", options.all_scores),
            ("--format tsv", options.format == "tsv"),
        ):
            if is_asked and self.architecture != CLASSES:
                raise ValueError(
                    f"`{name}` is for a model that puts texts into classes. "
                    f"Received: {self.architecture}."
                )
        if options.all_scores:
            self.wanted["all_scores"] = True
        encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
        self.is_ascii = encoding.replace("-", "") != "utf8"
        self.shows = _is_terminal(sys.stderr) and not _is_terminal(sys.stdout)
        self.has_head = self.has_shown = False

    def write(self, name: Any, prediction: Any) -> None:
        """Writes a line; the name of the row comes first, if it has one."""
        if self.format == "tsv":
            self._write_fields(name, prediction)
            return
        if name is not None and isinstance(prediction, dict):
            prediction = {"id": name, **prediction}
        elif name is not None:
            prediction = {"id": name, "entities": prediction}
        text = json.dumps(prediction, ensure_ascii=self.is_ascii)
        print(text, flush=True)

    def _write_fields(self, name: Any, prediction: dict) -> None:
        """Writes what a line of JSON holds, between tabs, under a head."""
        row = {} if name is None else {"id": name}
        for key, value in prediction.items():
            if key == "scores":
                row |= {
                    f"score {label}": score for label, score in value.items()
                }
            else:
                row[key] = "|".join(value) if isinstance(value, list) else value
        if not self.has_head:
            print(*map(_plain, row), sep="\t")
            self.has_head = True
        print(*map(_plain, row.values()), sep="\t", flush=True)

    def show(self, count: int) -> None:
        """Shows on a terminal how many rows are done, every hundredth."""
        if self.shows and count % 100 == 0:
            print(f"\r{count:,} rows", end="", file=sys.stderr, flush=True)
            self.has_shown = True

    def end(self) -> None:
        """Ends the line that `show` wrote."""
        if self.has_shown:
            print(file=sys.stderr)


def _plain(value: Any) -> str:
    """Returns a field that holds neither tab nor line end."""
    return " ".join(str(value).split("\t")).replace("\n", " ")


def _is_terminal(stream: Any) -> bool:
    """Returns whether a stream is there, and a terminal."""
    return stream is not None and stream.isatty()
