"""Entities that are marked in a text by characters, and words in rows.

Tools for annotation write one or the other: doccano, Label Studio and spaCy
count characters, tables of words have a row for each. Both become `tokens` and
`tags`, as `finetune` reads them.
"""

import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from bertbook.checks import is_integer
from bertbook.datasets.bad_rows import BadRows
from bertbook.datasets.cells import shown, text_of
from bertbook.datasets.columns import SourceColumns
from bertbook.datasets.file_formats import Table
from bertbook.files import Columns, DataFile
from bertbook.text.bio import repair_bio, split_tag
from bertbook.text.wordpiece import is_cjk

MARKS = ("label", "labels", "entities", "spans", "ents", "annotations")
WORD = ("word", "words", "token", "tokens")
TAG = ("tag", "tags", "ner", "ner_tag", "ner_tags", "label", "labels")
SENTENCE = (
    *("sentence_id", "sentence id", "sent_id", "sentence", "sentence #"),
    *("sentence_number", "sentence number", "sentence_idx"),
)
REFUSED = ("reject", "ignore")  # what Prodigy writes as `answer`
INSIDE = re.compile(r"\w\w")  # the characters around a place inside a word
Span = tuple[int, int, str]


# ------------------------------------------------------------ by characters


def spans_of(place: str, marks: Any) -> list[Span]:
    """Returns entities as (start, end, type), in the order of the text.

    Args:
        place: The file and the line, for messages.
        marks: A list of [start, end, type] (doccano, spaCy), or of dicts with
            `start` and `end`, or `start_offset` and `end_offset`, and `label`,
            `type`, `tag` or `labels` (Label Studio, doccano, Prodigy).

    Raises:
        ValueError: An entity has another form, or two overlap.
    """
    spans = sorted(_span(place, mark) for mark in marks)
    for (_, end, _), (start, *_) in zip(spans, spans[1:], strict=False):
        if start < end:
            raise ValueError(
                f"{place}: entities must not overlap, as each word has one "
                f"tag. Received: one that begins at {start}, and another that "
                f"ends at {end}."
            )
    return spans


def _span(place: str, mark: Any) -> Span:
    """Returns one entity."""
    values: Sequence[Any] = ()
    if isinstance(mark, Mapping):
        found = mark.get("value", mark)  # of Label Studio's results
        named = [
            next((found[name] for name in names if name in found), None)
            for names in (
                ("start", "start_offset"),
                ("end", "end_offset"),
                ("label", "type", "tag", "labels"),
            )
        ]
        if isinstance(named[2], list) and len(named[2]) == 1:
            named[2] = named[2][0]
        values = named
    elif isinstance(mark, list | tuple) and len(mark) == 3:
        values = mark
    if len(values) == 3:
        start, end, kind = values
        is_span = is_integer(start) and is_integer(end)
        if is_span and not 0 <= start < end:
            raise ValueError(
                f"{place}: an entity must end after it begins, at 0 or later. "
                f"Received: {shown(mark)}."
            )
        if is_span and isinstance(kind, str) and kind.strip():
            return int(start), int(end), kind.strip()
    raise ValueError(
        f"{place}: an entity must be [start, end, type], or a dict of `start`, "
        f"`end` and `label`. Received: {shown(mark)}."
    )


def tags_of_spans(
    place: str, text: str, spans: Sequence[Span]
) -> tuple[list[str], list[str]]:
    """Returns the words of a text and their tags, BIO.

    A text is cut at spaces, at signs that are no letters or digits, and where
    an entity begins or ends.

    Args:
        place: The file and the line, for messages.
        text: The text.
        spans: Its entities, in order; spaces around one do not count.

    Raises:
        ValueError: An entity lies outside of the text, or has no word.

    >>> tags_of_spans("", "Ada's cat", [(0, 3, "PER")])
    (['Ada', "'", 's', 'cat'], ['B-PER', 'O', 'O', 'O'])
    """
    tokens: list[str] = []
    tags: list[str] = []

    def add(part: str, kind: str) -> None:
        words = _words_of(part)
        tokens.extend(words)
        for number in range(len(words)):
            mark = f"{'I' if number else 'B'}-{kind}"
            tags.append(mark if kind else "O")

    last = 0
    for start, end, kind in spans:
        if end > len(text):
            raise ValueError(
                f"{place}: an entity must lie in the text, of {len(text)} "
                f"characters. Received: {start} to {end}, {kind!r}."
            )
        if not text[start:end].strip():
            raise ValueError(
                f"{place}: an entity must hold a word. Received: {start} to "
                f"{end}, {kind!r}, where there is {text[start:end]!r}."
            )
        add(text[last:start], "")
        add(text[start:end], kind)
        last = end
    add(text[last:], "")
    return tokens, tags


def _words_of(text: str) -> list[str]:
    """Returns words and signs; the marks of a letter stay in its word.

    >>> _words_of("Ada's हिन्दी")
    ['Ada', "'", 's', 'हिन्दी']
    """
    words: list[str] = []
    goes_on = False
    for char in text:
        is_mark = goes_on and unicodedata.category(char).startswith("M")
        is_letter = char.isalnum() or char == "_" or is_mark
        if is_letter and goes_on:
            words[-1] += char
        elif not char.isspace():
            words.append(char)
        goes_on = is_letter
    return words


def check_said(place: str, text: str, marks: Any) -> None:
    """Refuses entities that say another text than the one at their place.

    Some tools count characters in UTF-16, where most emoji are two.

    Args:
        place: The file and the line, for messages.
        text: The text.
        marks: As in `spans_of`.

    Raises:
        ValueError: One does.
    """
    for mark in marks:
        found = mark.get("value", mark) if isinstance(mark, Mapping) else {}
        said = found.get("text") if isinstance(found, Mapping) else None
        if not isinstance(said, str):
            continue
        start, end, _ = _span(place, mark)
        if said.strip() != text[start:end].strip():
            raise ValueError(
                f"{place}: an entity must say the text at its place, "
                f"{start} to {end} in characters, {text[start:end]!r}. "
                f"Received: {said!r}."
            )


def cut_words(text: str, spans: Sequence[Span]) -> list[tuple[str, str]]:
    """Returns entities that begin or end inside a word, each with the word.

    In Chinese each character may be a word.

    >>> cut_words("Anna Brown", [(0, 9, "PER")])
    [('Anna Brow', 'Brown')]
    """
    cut = []
    for start, end, _ in spans:
        for edge in (start, end):
            around = text[max(edge - 1, 0) : edge + 1]
            if INSIDE.fullmatch(around) and not any(map(is_cjk, around)):
                words = re.finditer(r"\w+", text)
                word = next(one for one in words if one.end() > edge)
                cut.append((text[start:end], word.group()))
                break
    return cut


def marks_column(table: Table, text: str) -> str | None:
    """Returns the column that marks entities in a text; None without one.

    The first row that marks something decides: it has a list of triples or of
    dicts there.

    Args:
        table: A table with types, such as JSON.
        text: The column of the texts.
    """
    for name in table.names:
        if name == text or name.lower() not in MARKS or not table.typed:
            continue
        for _, values in table.read([name]):
            if isinstance(values, ValueError):
                continue
            (marks,) = values
            if not isinstance(marks, list):
                break
            if marks:
                form = marks[0]
                is_triple = isinstance(form, list) and len(form) == 3
                if isinstance(form, dict) or (
                    is_triple and is_integer(form[0])
                ):
                    return name
                break
    return None


def read_marked(
    file: DataFile,
    table: Table,
    columns: tuple[str, str],
    bad: BadRows,
) -> Columns:
    """Returns `tokens` and `tags` of a table of texts and their entities.

    Args:
        file: The file, for messages.
        table: The table.
        columns: Those of the texts and of the entities.
        bad: Gets the rows that do not fit.

    Raises:
        ValueError: A text or an entity is none; the line is named.
    """
    data: Columns = {"tokens": [], "tags": []}
    places = []
    names = [*columns, *({"answer"} & {*table.names})]
    for place, values in table.read(names):
        where = f"{file}, {place}"
        try:
            if isinstance(values, ValueError):
                raise values
            if values[2:] and values[2] in REFUSED:
                bad.note(place, f"left out, as its `answer` is {values[2]!r}")
                continue
            text = text_of(where, columns[0], values[0], exact=True)
            spans = spans_of(where, values[1] or ())
            check_said(where, text, values[1] or ())
            tokens, tags = tags_of_spans(where, text, spans)
        except ValueError as error:
            bad.add(place, error)
            continue
        for entity, word in cut_words(text, spans)[:1]:
            bad.note(
                place,
                f"the entity {entity!r} begins or ends inside the word "
                f"{word!r}, which is cut there",
            )
        data["tokens"].append(tokens)
        data["tags"].append(tags)
        places.append(place)
    bad.settle(len(places))
    if not places:
        raise ValueError(f"{file} must hold examples. Received: none.")
    return SourceColumns(data, str(file), places)


def plain_rows(values: Any) -> Any:
    """Returns rows of `text` and `entities` for the exports of two tools.

    Label Studio nests them, in `data` and `annotations`; spaCy's training
    data are pairs of a text and a dict. Anything else is returned as it is.
    Texts that nobody annotated, or with annotations that were cancelled alone,
    are left out, and of several annotations the first is taken; warnings count
    both.
    """
    if not isinstance(values, list) or not values:
        return values
    if _is_pair(values):
        values = [values]
    rows = []
    empty = several = 0
    for value in values:
        if isinstance(value, dict) and isinstance(value.get("data"), dict):
            done = value.get("annotations")
            valid = [
                one
                for one in (done if isinstance(done, list) else [])
                if isinstance(one, dict) and not one.get("was_cancelled")
            ]
            empty += not valid
            several += len(valid) > 1
            if not valid:
                continue
            texts = [x for x in value["data"].values() if isinstance(x, str)]
            found = value["data"].get("text", texts[0] if texts else None)
            results = [
                one
                for one in valid[0].get("result", [])
                if "start" in one.get("value", {})
            ]
            rows.append({"text": found, "entities": results})
        elif _is_pair(value):
            rows.append(plain_pair(value))
        else:
            return values
    if empty:
        warnings.warn(
            f"{empty:,} of {len(values):,} texts have no annotation that was "
            "submitted, and are left out.",
            stacklevel=6,
        )
    if several:
        warnings.warn(
            f"{several:,} of {len(values):,} texts have several annotations, "
            "of which the first is taken.",
            stacklevel=6,
        )
    return rows


def plain_pair(value: Any) -> Any:
    """Returns a row of spaCy's training data as a dict; others as they are.

    >>> plain_pair(["Ada", {"entities": [[0, 3, "PER"]]}])
    {'text': 'Ada', 'entities': [[0, 3, 'PER']]}
    """
    if not _is_pair(value):
        return value
    return {"text": value[0], "entities": value[1].get("entities", [])}


def _is_pair(value: Any) -> bool:
    """Returns whether a value is a list of a text and a dict."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    return isinstance(value[0], str) and isinstance(value[1], dict)


# ------------------------------------------------------------- a word a row


def word_columns(
    names: Sequence[str], asked: Mapping[str, Any]
) -> tuple[str, str, str] | None:
    """Returns the columns of sentence, word and tag; None where one is missing.

    Args:
        names: The columns of a table.
        asked: What the call says that the file names them: `id` stands for the
            sentence, `tokens` and `tags` for the others.
    """
    found = []
    roles: dict[str, tuple[str, ...]]
    roles = {"id": SENTENCE, "tokens": WORD, "tags": TAG}
    for role, known in roles.items():
        told = asked.get(role)
        if isinstance(told, str) and told:
            known = (told.lower(),)
        fitting = [name for name in names if name.lower() in known]
        if len(fitting) != 1:
            return None
        found.append(fitting[0])
    return found[0], found[1], found[2]


def read_words(
    file: DataFile,
    table: Table,
    columns: tuple[str, str, str],
    bad: BadRows,
) -> Columns | None:
    """Returns `tokens` and `tags` of a table with a word in each row.

    Rows of one sentence have one number. Where it stands in the first of them
    alone, the others have an empty cell.

    Args:
        file: The file, for messages.
        table: The table.
        columns: Those of sentence, word and tag.
        bad: Gets the rows that do not fit. Where they are left out, so are
            their sentences; of a table that is mended the words alone.

    Returns:
        The columns; None where the first row has no tag, and so the table is
        another one, such as of whole sentences.

    Raises:
        ValueError: A word or a tag is missing, or a tag is not BIO; the line
            is named.
    """
    sentences: dict[str, tuple[list[str], list[str]]] = {}
    places: dict[str, str] = {}
    current, broken = "", set()
    for row, (place, values) in enumerate(table.read(columns)):
        where = f"{file}, {place}"
        try:
            if isinstance(values, ValueError):
                raise values
            number, word, tag = values
            if number not in (None, ""):
                current = str(number).strip()
            if not is_tag(tag):
                if not row:
                    return None
                raise ValueError(
                    f"{where}: a tag must be O, B-TYPE or I-TYPE, where a row "
                    f"holds a word. Received: {shown(tag)}."
                )
            word = text_of(where, columns[1], word, exact=False)
        except ValueError as error:
            bad.add(place, error)
            broken.add(current)
            continue
        places.setdefault(current, place)
        tokens, tags = sentences.setdefault(current, ([], []))
        tokens.append(word)
        tags.append(tag)
    if bad.mended is None:
        sentences = {
            name: words
            for name, words in sentences.items()
            if name not in broken
        }
    bad.settle(len(sentences))
    data = {
        "tokens": [tokens for tokens, _ in sentences.values()],
        "tags": [repair_bio(tags) for _, tags in sentences.values()],
    }
    return SourceColumns(data, str(file), [places[name] for name in sentences])


def is_tag(value: Any) -> bool:
    """Returns whether a value is a tag of the BIO scheme."""
    try:
        split_tag(value)
    except ValueError:
        return False
    return True
