"""Annotated texts to columns: questions as in SQuAD, tags as in CoNLL-2003.

A reader gives a dict of columns, lists of equal length, and names the file and
the question or the line where something is wrong.

Differences: a tag `I-X` that continues no entity of type X begins one and is
read as `B-X`, as the official scorer counts it. So CoNLL-2003 comes out the
same whether a file has the older tags (IOB1), as the official one, or the newer
(IOB2, or BIO).
"""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bertbook.bio import repair_bio
from bertbook.data_files import (
    Columns,
    DataFile,
    checked_columns,
    refuse_width,
)

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
            in the context where it should be, an id stands twice, or there are
            no questions. The question is named by its id.
    """
    try:
        values = json.loads("".join(file.lines()))
    except json.JSONDecodeError as error:
        raise ValueError(f"{file} is not valid JSON: {error}.") from error
    table: Columns = {"id": [], "question": [], "context": [], "answers": []}
    for article in _part(file, values, "data", list, "the file"):
        where = f"article {_shown(article, 'title')}"
        for passage in _part(file, article, "paragraphs", list, where):
            context = _part(file, passage, "context", str, where)
            for one in _part(file, passage, "qas", list, where):
                name = _part(file, one, "id", str, where)
                where_one = f"question {name!r}"
                text = _part(file, one, "question", str, where_one)
                answers = _answers(file, one, context, unanswerable)
                row = (name, text, context, answers)
                for column, value in zip(table.values(), row, strict=True):
                    column.append(value)
    twice = [x for x, n in Counter(table["id"]).items() if n > 1]
    if twice:
        raise ValueError(
            f"{file}: the `id` of a question must be its own. Received: "
            f"{twice[0]!r} twice."
        )
    return checked_columns(file, table)


def read_tags(file: DataFile, kinds: Sequence[str], width: int) -> Columns:
    """Reads tagged tokens, one a line, as CoNLL-2003 and WNUT-17 have them.

    The first column is the token, the last its tag; tabs separate them, or
    spaces. A line without text ends a sentence; `-DOCSTART-` is none.

    Args:
        file: The column file.
        kinds: The types of entities.
        width: The number of columns.

    Returns:
        `tokens` and `tags`, a list for each sentence. Each entity begins with
        `B-` and goes on with `I-`; other tokens have `O`.

    Raises:
        ValueError: A line has another number of columns, a tag is not one of
            the BIO scheme with these types, or there are no sentences. The
            file and the line are named.
    """
    table: Columns = {"tokens": [], "tags": []}
    known = {"O", *(f"{mark}-{kind}" for mark in "BI" for kind in kinds)}
    tokens: list[str] = []
    tags: list[str] = []
    for number, line in enumerate(itertools.chain(file.lines(), [""]), 1):
        if not line.strip():
            if tokens:
                table["tokens"].append(tokens)
                table["tags"].append(repair_bio(tags))
            tokens, tags = [], []
            continue
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) == 1:  # not `split()`: a token may hold other spaces
            fields = [field for field in fields[0].split(" ") if field]
        if fields[0] == "-DOCSTART-":
            continue
        if len(fields) != width:
            refuse_width(file, number, width, len(fields))
        if fields[-1] not in known:
            raise ValueError(
                f"{file}, line {number}: a tag must be O, or B- or I- and one "
                f"of {', '.join(kinds)}. Received: {fields[-1]!r}."
            )
        tags.append(fields[-1])
        tokens.append(fields[0])
    return checked_columns(file, table)


def _answers(
    file: DataFile, one: Mapping, context: str, unanswerable: bool
) -> list[dict[str, Any]]:
    """Returns the answers of a question, each where it should be."""
    where = f"question {one['id']!r}"
    answers = []
    for answer in _part(file, one, "answers", list, where):
        text = _part(file, answer, "text", str, where)
        start = _part(file, answer, "answer_start", int, where)
        found = context[start : start + len(text)] if start >= 0 else ""
        if not text or found != text:
            raise ValueError(
                f"{file}, {where}: `answer_start` must point at the answer "
                f"{text!r} in the context. Received: {start}, where there is "
                f"{found!r}."
            )
        answers.append({"text": text, "answer_start": start})
    none = one.get("is_impossible", not answers)
    if none == bool(answers) or (none and not unanswerable):
        rule = " or `is_impossible`" if unanswerable else ""
        said = one.get("is_impossible", "not there")
        raise ValueError(
            f"{file}, {where}: there must be answers{rule}. Received: "
            f"{len(answers)} answers, `is_impossible` {said}."
        )
    return answers


def _part(file: DataFile, value: Any, key: str, kind: type, where: str) -> Any:
    """Returns a part of a JSON object."""
    found = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ValueError(
            f"{file}, {where}: `{key}` must be {JSON_NAMES[kind]}. "
            f"Received: {type(found).__name__}."
        )
    return found


def _shown(value: Any, key: str) -> str:
    """Returns a part of a JSON object for a message."""
    return repr(value.get(key)) if isinstance(value, Mapping) else "?"
