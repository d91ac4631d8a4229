"""Readers of data files: GLUE's and SWAG's tables, SQuAD's JSON, CoNLL's tags.

A reader gives a dict of columns, lists of equal length, and names the file and
the line or the question where something is wrong.

Differences: a tag `I-X` that continues no entity of type X begins one and is
read as `B-X`, as the official scorer counts it. So CoNLL-2003 comes out the
same whether a file has the older tags (IOB1), as the official one, or the newer
(IOB2, or BIO).
"""

import csv
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bertbook.checks import as_number, check_text, is_integer, listed
from bertbook.datasets.bad_rows import BadRows
from bertbook.datasets.columns import SourceColumns
from bertbook.files import Columns, DataFile, parse_json
from bertbook.text.bio import other_scheme, repair_bio

SCORES = (0.0, 5.0)  # the lowest and the highest of STS-B
# `float` also takes 0_1, 1e3, inf, and the digits of other scripts.
DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")


def read_table(
    file: DataFile,
    columns: Mapping[str, Sequence[str]],
    labels: Sequence[str] | int | None,
    header: Sequence[str] | None = None,
    skip_damaged: bool = False,
    filled: bool = False,
) -> Columns:
    """Reads a table whose columns are separated by tabs, as GLUE has them.

    Nothing is quoted or escaped. Spaces around a text are left out, and so are
    lines without text.

    Args:
        file: The table.
        columns: Our names, and for each the names that a file may give it.
        labels: What `label` may hold: these names, the integers below a
            number, or, for None, a score from 0 to 5.
        header: The columns of a file that may come without a first line of
            names; None where that line is always there.
        skip_damaged: Whether lines of another width are left out, with a
            warning that names them, instead of being an error.
        filled: Whether every text must hold something.

    Raises:
        ValueError: A column is missing, a line has another number of columns
            than the first, a label is not one of `labels`, a text is empty
            that must not be, or there are no rows. The file and the line are
            named.
    """
    lines = (line.rstrip("\r\n") for line in file.lines())
    rows: Iterator[tuple[int, list[str]]]
    rows = ((n, x.split("\t")) for n, x in enumerate(lines, 1) if x.strip())
    first = next(rows, (1, []))
    names = [name.strip() for name in first[1]]
    if header is not None and names != list(header):
        names, rows = list(header), itertools.chain([first], rows)
    places = {
        column: _place(file, names, columns[column]) for column in columns
    }
    table: Columns = {column: [] for column in columns}
    damaged = []
    for number, fields in rows:
        if len(fields) != len(names):
            if not skip_damaged:
                _refuse_width(file, number, len(names), len(fields))
            damaged.append(number)
            continue
        for column, place in places.items():
            value = fields[place].strip()
            if filled and not value:
                _refuse_empty(file, number, column)
            known = column == "label"
            table[column].append(
                _label(file, number, value, labels) if known else value
            )
    if damaged:
        warnings.warn(
            f"{file}: {len(damaged)} damaged lines without {len(names)} "
            f"columns were left out: {', '.join(map(str, damaged[:20]))}"
            f"{', ...' if len(damaged) > 20 else ''}.",
            stacklevel=4,
        )
    return checked_columns(file, table)


def read_choices(file: DataFile) -> Columns:
    """Reads beginnings with four endings from CSV, as SWAG has them.

    Returns:
        `text`, the first sentence; `choices`, four strings for each, what may
        follow: the beginning of the second sentence with an ending; and
        `label`, the number of the right one.

    Raises:
        ValueError: A column is missing, a line has another number of columns,
            a label is not 0, 1, 2 or 3, or there are no rows. The file and the
            line are named.
    """
    reader = csv.reader(file.lines(), strict=True)
    table: Columns = {"text": [], "choices": [], "label": []}
    try:
        names = next(reader)
        columns = ("sent1", "sent2", *(f"ending{i}" for i in range(4)), "label")
        places = [_place(file, names, [name]) for name in columns]
        for row in reader:
            if not row:  # an empty line
                continue
            number = reader.line_num
            if len(row) != len(names):
                _refuse_width(file, number, len(names), len(row))
            text, begun, *endings, label = (row[i].strip() for i in places)
            table["text"].append(text)
            table["choices"].append([f"{begun} {x}".strip() for x in endings])
            table["label"].append(_label(file, number, label, 4))
    except csv.Error as error:
        raise ValueError(f"{file}, line {reader.line_num}: {error}.") from error
    return checked_columns(file, table)


def _place(
    file: DataFile, names: list[str], accepted_names: Sequence[str]
) -> int:
    """Returns where the first of some names stands among the columns."""
    for name in accepted_names:
        if names.count(name) > 1:
            raise ValueError(
                f"{file} must have one column `{name}`. Received: "
                f"{names.count(name)} of that name."
            )
        if name in names:
            return names.index(name)
    raise ValueError(
        f"{file} must have a column `{'` or `'.join(accepted_names)}`. "
        f"Received: {', '.join(names)}."
    )


def _refuse_empty(file: DataFile, number: int, column: str) -> None:
    """Says that a line has no text in a column."""
    raise ValueError(
        f"{file}, line {number}: `{column}` must hold a text. Received: ''."
    )


def _label(
    file: DataFile,
    number: int,
    value: str,
    labels: Sequence[str] | int | None,
) -> str | int | float:
    """Returns the label of a row: a name, an integer or a score."""
    if labels is None:
        if DECIMAL.fullmatch(value) and SCORES[0] <= float(value) <= SCORES[1]:
            return float(value)
        rule = f"a score must be from {SCORES[0]:g} to {SCORES[1]:g}"
    elif isinstance(labels, int):
        if value in map(str, range(labels)):
            return int(value)
        rule = f"a label must be one of 0 to {labels - 1}"
    else:
        if value in labels:
            return value
        rule = f"a label must be one of {listed(labels)}"
    raise ValueError(f"{file}, line {number}: {rule}. Received: {value!r}.")


JSON_NAMES = {list: "a list", str: "a string", int: "an integer"}


def read_questions(file: DataFile, unanswerable: bool = False) -> Columns:
    """Reads questions about passages from JSON, as SQuAD has them.

    No character of a context is touched: `answer_start` counts them.

    Args:
        file: The JSON file.
        unanswerable: Whether a question may have no answer, as in SQuAD 2.0.

    Returns:
        `id`, `question`, `context` and `answers`; the answers of a question
        are a list of {`text`, `answer_start`}, empty where there is none.

    Raises:
        ValueError: The file is not JSON, a part is missing, an answer is not
            in the context where it should be, an id occurs twice, or there are
            no questions. The question is named by its id.
    """
    return questions_of(file, parse_json(file.text(), str(file)), unanswerable)


def questions_of(
    file: DataFile,
    values: Any,
    unanswerable: bool = False,
    bad: BadRows | None = None,
) -> Columns:
    """Returns the questions of a value that was read from JSON.

    Args:
        file: The JSON file, for messages.
        values: What it holds.
        unanswerable: Whether a question may have no answer, as in SQuAD 2.0.
        bad: Gets the questions that do not fit; None refuses them.

    Returns:
        What `read_questions` does.

    Raises:
        ValueError: What `read_questions` refuses in values that are JSON.
    """
    table: Columns = {"id": [], "question": [], "context": [], "answers": []}
    bad = bad or BadRows(file, is_own=False)
    places: list[str] = []
    seen: set[str] = set()
    numbers = itertools.count()
    for where, context, question in _questions_in(file, values, bad):
        number, place = next(numbers), where
        try:
            name = _id_of(file, question, where, number)
            place = f"question {name!r}"
            if name in seen:
                raise ValueError(
                    f"{file}, {place}: the `id` of a question must be its own. "
                    f"Received: {name!r} twice."
                )
            seen.add(name)
            text = _part(file, question, "question", str, place)
            answers = _answers(file, question, context, unanswerable, place)
        except ValueError as error:
            bad.add(place, error)
            continue
        row = (name, text, context, answers)
        for column, value in zip(table.values(), row, strict=True):
            column.append(value)
        places.append(place)
    bad.settle(len(places))
    checked_columns(file, table)
    return SourceColumns(table, str(file), places)


def _questions_in(
    file: DataFile, values: Any, bad: BadRows
) -> Iterator[tuple[str, str, Any]]:
    """Yields the article, the context and the object of each question."""
    for article in _part(file, values, "data", list, "the file"):
        where = f"article {_shown(article, 'title')}"
        for passage in _parts_or_bad(file, article, "paragraphs", where, bad):
            try:
                context = _part(file, passage, "context", str, where)
            except ValueError as error:
                bad.add(where, error)
                continue
            for question in _parts_or_bad(file, passage, "qas", where, bad):
                yield where, context, question


def _parts_or_bad(
    file: DataFile, value: Any, key: str, where: str, bad: BadRows
) -> list[Any]:
    """Returns a list in a JSON object; an empty one where it is none."""
    try:
        return list(_part(file, value, key, list, where))
    except ValueError as error:
        bad.add(where, error)
        return []


def as_articles(values: Any) -> Any:
    """Returns passages with questions in the layout of SQuAD.

    Many tools leave out its outer parts: a list of articles, a list of
    passages under `data` or alone, or one passage. Anything else is None.
    """
    listed = values
    if isinstance(values, Mapping):
        listed = [values] if "qas" in values else values.get("data")
    if not isinstance(listed, list) or not listed:
        return None
    if not all(isinstance(one, Mapping) for one in listed):
        return None
    if any("paragraphs" in one for one in listed):
        return {"data": listed}
    if all("qas" in one for one in listed):
        return {"data": [{"paragraphs": listed}]}
    return None


def read_tags(
    file: DataFile,
    kinds: Sequence[str] | None,
    width: int | None,
    bad: BadRows | None = None,
) -> Columns:
    """Reads tagged tokens, one a line, as CoNLL-2003 and WNUT-17 have them.

    The first column is the token, the last its tag; tabs separate them, or
    spaces. Where the first of three columns or more counts the tokens of every
    sentence, the second is the token. A line without text ends a sentence;
    `-DOCSTART-` is none, and neither is a line before a sentence that begins
    with `#` and has no tag.

    Args:
        file: The column file.
        kinds: The types of entities; None for any.
        width: The number of columns; None for that of the first line.
        bad: Gets the lines that do not fit, the first of each sentence; None
            refuses them.

    Returns:
        `tokens` and `tags`, a list for each sentence. Each entity begins with
        `B-` and goes on with `I-`; other tokens have `O`.

    Raises:
        ValueError: A line has another number of columns, a tag is not one of
            the BIO scheme with these types, or there are no sentences. The
            file and the line are named.
    """
    table: Columns = {"tokens": [], "tags": []}
    bad = bad or BadRows(file, is_own=False)
    places: list[str] = []
    tokens: list[str] = []
    tags: list[str] = []
    seconds: list[str] = []  # of the second column
    second_columns: list[list[str]] = []
    first, is_bad = 0, False
    for number, line in enumerate(itertools.chain(file.lines(), [""]), 1):
        if not line.strip():
            if tokens and not is_bad:
                table["tokens"].append(tokens)
                table["tags"].append(repair_bio(tags))
                second_columns.append(seconds)
                places.append(f"line {first}")
            tokens, tags, seconds, is_bad = [], [], [], False
            continue
        fields = _fields_of_token(line, width, not tokens and not is_bad)
        if fields is None or is_bad:
            continue
        width = width or max(2, len(fields))
        try:
            _check_token(file, number, fields, width, kinds)
        except ValueError as error:
            bad.add(f"line {number}", error)
            is_bad = True
            continue
        first = first if tokens else number
        tags.append(fields[-1])
        tokens.append(fields[0])
        seconds.append(fields[1])
    bad.settle(len(places))
    if (
        kinds is None
        and (width or 0) > 2
        and all(map(_counts, table["tokens"]))
    ):
        table["tokens"] = second_columns
    checked_columns(file, table)
    return SourceColumns(table, str(file), places)


def _counts(tokens: Sequence[str]) -> bool:
    """Returns whether the words of a sentence are their numbers, from 1."""
    return [*tokens] == [str(n) for n in range(1, len(tokens) + 1)]


def _fields_of_token(
    line: str, width: int | None, is_first: bool
) -> list[str] | None:
    """Returns the columns of a line; None where it holds no token."""
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) > (width or 2) and not fields[-1]:
        fields.pop()  # some tools end a line with a tab
    is_marked = is_first and fields[0].startswith("#")
    if is_marked and _is_comment(fields, width):
        return None
    if len(fields) == 1:  # not `split()`: a token may hold other spaces
        fields = [field for field in fields[0].split(" ") if field]
    return None if fields[0] == "-DOCSTART-" else fields


def _check_token(
    file: DataFile,
    number: int,
    fields: list[str],
    width: int,
    kinds: Sequence[str] | None,
) -> None:
    """Refuses a line that is no token with its tag."""
    if len(fields) != width:
        _refuse_width(file, number, width, len(fields))
    if not fields[0]:
        _refuse_empty(file, number, "tokens")
    if "\r" in "".join(fields[1:]):
        raise ValueError(
            f"{file}, line {number}: a line must end with a line feed. "
            "Received: a carriage return inside of it."
        )
    _check_tag(file, number, fields[-1], kinds)


def _is_comment(fields: list[str], width: int | None) -> bool:
    """Returns whether a line that begins with `#` is no token with its tag."""
    parts = fields if len(fields) > 1 else fields[0].split()
    prefix, _, kind = parts[-1].partition("-")
    has_tag = parts[-1] == "O" or (prefix in ("B", "I") and bool(kind))
    return not has_tag or len(parts) != (width or max(2, len(parts)))


def _id_of(file: DataFile, question: Any, where: str, number: int) -> str:
    """Returns the id of a question; tools for annotation write integers."""
    if isinstance(question, Mapping) and "id" not in question:
        return str(number)
    if isinstance(question, Mapping) and is_integer(question.get("id")):
        return str(question["id"])
    return _part(file, question, "id", str, where)


def _check_tag(
    file: DataFile, number: int, tag: str, kinds: Sequence[str] | None
) -> None:
    """Refuses a tag that is not BIO, or not of a known type."""
    prefix, _, kind = tag.partition("-")
    begins = prefix in ("B", "I") and kind and kind.isprintable()
    begins = begins and kind == kind.strip()
    if tag == "O" or (begins and (kinds is None or kind in kinds)):
        return
    one = "a type" if kinds is None else f"one of {', '.join(kinds)}"
    advice = ""
    if kinds is None and file.path.suffixes[:1] == [".txt"]:
        advice = "; tables of texts end in .csv, .tsv, .jsonl and the like"
    if kinds is None:
        advice = other_scheme(tag) or advice
    raise ValueError(
        f"{file}, line {number}: a tag must be O, or B- or I- and {one}"
        f"{advice}. Received: {tag!r}."
    )


def _answers(
    file: DataFile,
    question: Mapping,
    context: str,
    unanswerable: bool,
    where: str,
) -> list[dict[str, Any]]:
    """Returns the answers of a question, each where it should be."""
    answers = []
    for answer in _listed_answers(file, question, where):
        text = _part(file, answer, "text", str, where)
        start = _part(file, answer, "answer_start", int, where)
        substring = context[start : start + len(text)] if start >= 0 else ""
        if not text or substring != text:
            raise ValueError(
                f"{file}, {where}: `answer_start` must point at the answer "
                f"{text!r} in the context. Received: {start}, where there is "
                f"{substring!r}."
            )
        answers.append({"text": text, "answer_start": start})
    none = question.get("is_impossible", not answers)
    if not isinstance(none, bool):
        raise ValueError(
            f"{file}, {where}: `is_impossible` must be true or false. "
            f"Received: {none!r}."
        )
    if none == bool(answers) or (none and not unanswerable):
        rule = " or `is_impossible`" if unanswerable else ""
        said = question.get("is_impossible", "not there")
        raise ValueError(
            f"{file}, {where}: there must be answers{rule}. Received: "
            f"{len(answers)} answers, `is_impossible` {said}."
        )
    return answers


def _listed_answers(file: DataFile, question: Mapping, where: str) -> list[Any]:
    """Returns what `answers` lists; none may be there where there is none."""
    answers = question.get("answers")
    if answers is None and question.get("is_impossible") is True:
        return []
    if not isinstance(answers, Mapping):
        return _part(file, question, "answers", list, where)
    if isinstance(answers.get("text"), str):
        return [answers]
    try:
        return list(list_answers(answers))
    except ValueError as error:
        raise ValueError(f"{file}, {where}: {error}") from None


def list_answers(
    answers: Any, context: str | None = None
) -> list[dict[str, Any]]:
    """Returns the answers of a question as a list of dicts.

    Args:
        answers: A list of dicts of `text` and `answer_start`, or, as
            huggingface/datasets has them, a dict of two lists. With a context
            also a text or a number: one answer, where the context has it
            first. An empty text is no answer.
        context: The text that holds the answers.

    Raises:
        ValueError: They have none of these forms, the lists differ in length,
            or the context does not hold the text.

    >>> list_answers({"text": ["Tolva"], "answer_start": [5]})
    [{'text': 'Tolva', 'answer_start': 5}]
    >>> list_answers("in 1843", "Ada wrote it in 1843.")
    [{'text': 'in 1843', 'answer_start': 13}]
    """
    listed = answers
    if isinstance(context, str) and is_plain_answer(answers):
        return _found_answer(answers, context)
    if isinstance(answers, Mapping):
        texts: Any
        starts: Any
        texts, starts = answers.get("text"), answers.get("answer_start")
        if _is_list(texts) and _is_list(starts) and len(texts) == len(starts):
            listed = [
                {"text": text, "answer_start": start}
                for text, start in zip(texts, starts, strict=True)
            ]
    if not _is_list(listed) or not all(map(_is_answer, listed)):
        raise ValueError(
            "`answers` must be a list of dicts of `text` and `answer_start`, "
            "a dict of two lists of one length, `text` and `answer_start`, or "
            "a text of the context, an empty one for no answer. "
            f"Received: {answers!r}."
        )
    return [dict(answer) for answer in listed]


def is_plain_answer(value: Any) -> bool:
    """Returns whether an answer is a text or a number, without its place."""
    number = as_number(value)
    return isinstance(value, str) or number == number


def _found_answer(value: Any, context: str) -> list[dict[str, Any]]:
    """Returns the answer that is a text or a number; none for no text."""
    text = str(value).strip()
    is_whole = not isinstance(value, str) and as_number(value).is_integer()
    if text not in context and is_whole:  # a gap makes floats of a column
        text = str(int(value))
    if not text:
        return []
    if text not in context:
        raise ValueError(
            "`answers` must stand in the context as it is written, or be empty "
            f"where it holds no answer. Received: {text!r}."
        )
    return [{"text": text, "answer_start": context.index(text)}]


def _is_list(value: Any) -> bool:
    """Returns whether a value is a list, a tuple or an array of one axis."""
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1


def _is_answer(value: Any) -> bool:
    """Returns whether a value has the text of an answer, and may have a start.

    To measure answers, their texts are enough.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return False
    return is_integer(value.get("answer_start", 0))


def _part(file: DataFile, value: Any, key: str, kind: type, where: str) -> Any:
    """Returns a part of a JSON object."""
    part = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(part, kind) or isinstance(part, bool):
        raise ValueError(
            f"{file}, {where}: `{key}` must be {JSON_NAMES[kind]}. "
            f"Received: {type(part).__name__}."
        )
    if isinstance(part, str):
        try:
            check_text(part, key)
        except ValueError as error:
            raise ValueError(f"{file}, {where}: {error}") from None
    return part


def _shown(value: Any, key: str) -> str:
    """Returns a part of a JSON object for a message."""
    return repr(value.get(key)) if isinstance(value, Mapping) else "?"


def checked_columns(file: DataFile, table: Columns) -> Columns:
    """Returns the columns of a file that has rows.

    Raises:
        ValueError: The file has no rows.
    """
    if not all(table.values()):
        raise ValueError(f"{file} must hold examples. Received: none.")
    return table


def kept_rows(table: Columns, keep: Iterable[bool]) -> Columns:
    """Returns the rows of a table that are to be kept."""
    chosen = list(keep)
    return {
        name: list(itertools.compress(column, chosen))
        for name, column in table.items()
    }


def _refuse_width(
    file: DataFile, number: int, width: int, received: int
) -> None:
    """Says that a line has another number of columns than it must."""
    raise ValueError(
        f"{file}, line {number}: there must be {width} columns. "
        f"Received: {received}."
    )
