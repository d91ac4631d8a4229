"""Columns of own tables: which is which, and their values row by row.

Columns are found by the names that the package gives them, and a few others
about which there is no doubt; capitals do not count. The name of any other is
given. Numbers in a table without types, such as CSV, are read as a whole
column: all integers are integers, others all scores. A number with a zero
before it, such as "07", is none, so that a column with one stays text. "NA",
"null" and "None" are texts like others.
"""

import contextlib
import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bertbook.checks import is_integer, listed
from bertbook.datasets.bad_rows import BadRows
from bertbook.datasets.cells import (
    MissingLabel,
    decimal_commas,
    held_names,
    kind_of_label,
    list_of,
    none_holds,
    odd_labels,
    parse_value,
    read_labels,
    shown,
    text_of,
    weight_of,
)
from bertbook.datasets.columns import (
    NAMES,
    PAIRS,
    SourceColumns,
    is_missing,
)
from bertbook.datasets.file_formats import Table
from bertbook.datasets.mending import Mended, mend_columns, rows_of
from bertbook.datasets.readers import is_plain_answer, list_answers
from bertbook.files import Columns, DataFile
from bertbook.text.bio import split_tag

# What each task needs, what it may have, and which of these is to be learned.
KINDS = {
    ("text",): ("text_pair", "choices", "label"),
    ("tokens",): ("tags",),
    ("question", "context"): ("answers",),
    ("source", "target"): (),
}
COMMON = ("id", "weight")
ROW_NUMBERS = ("", "id", "idx", "index", "unnamed: 0")
ROWS_LOOKED_AT = 1_000  # for the examples of a message
NUMBERED_CHOICE = re.compile(r"choice_?([0-9]+)")

Chosen = dict[str, list[str]]


def is_known(name: str) -> bool:
    """Returns whether a name of a column says its role."""
    known = {*sum(NAMES.values(), ()), *sum(PAIRS, ())}
    return name.strip().lower() in known


def choose_columns(
    file: DataFile, table: Table, asked: Mapping[str, Any]
) -> Chosen:
    """Returns the columns of a table by their role: text, label and so on.

    Args:
        file: The file, for messages.
        table: The table; its rows give examples for messages.
        asked: For some roles, what the file calls the column: None where it
            is not told, "" where there is none, and a list for a label that is
            several columns of zeros and ones.

    Returns:
        For each role that is there the names of its columns: one, or more
        of `choices` and of `label`.

    Raises:
        ValueError: A name is not there or stands twice, two columns may have
            one role, none is known, or what is to be learned is not told.
    """
    names = table.names
    _check_names(file, names)
    named = {
        role: headers for role, headers in asked.items() if headers is not None
    }
    chosen = {
        role: _named_columns(file, names, role, headers)
        for role, headers in named.items()
        if headers != ""
    }
    used = {name for headers in chosen.values() for name in headers}
    free = [name for name in names if name not in used]
    for role, headers in _found_columns(file, free, named).items():
        chosen.setdefault(role, headers)
    kinds = [needed for needed in KINDS if chosen.keys() >= set(needed)]
    roles_of_kinds = {*COMMON, *(x for k in kinds for x in (*k, *KINDS[k]))}
    for role in ("question", "context"):
        if role in chosen and role not in roles_of_kinds and "text" in chosen:
            # A pair of texts whose first half would be lost without a word.
            raise _ambiguous(file, "text_pair", chosen["text"] + chosen[role])
    unused = [f"{role}_column" for role in named if role not in roles_of_kinds]
    if not kinds or any(named[name.removesuffix("_column")] for name in unused):
        raise _unknown_layout(file, table, chosen, unused)
    chosen = {
        x: chosen[x] for x in NAMES if x in chosen and x in roles_of_kinds
    }
    _check_learned(file, table, chosen, named, kinds)
    return chosen


def _check_names(file: DataFile, names: Sequence[str]) -> None:
    """Refuses names that stand twice."""
    twice = [name for name, n in Counter(names).items() if n > 1 and name]
    if twice:
        raise ValueError(
            f"{file} must have one column `{twice[0]}`. Received: "
            f"{names.count(twice[0])} of that name."
        )


def _named_columns(
    file: DataFile, names: Sequence[str], role: str, headers: Any
) -> list[str]:
    """Returns the columns named in the call, each of which must be there."""
    several = role == "label" and isinstance(headers, list | tuple)
    given = list(headers) if several else [headers]
    given = [_in_its_case(name, names) for name in given]
    if several and not 2 <= len(set(map(str, given))) == len(given):
        raise ValueError(
            f"`{role}_column` must be a name, or name two columns or more, "
            f"each once. Received: {headers!r}."
        )
    for name in given:
        if not isinstance(name, str) or name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            offer = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"`{role}_column` must be a column of {file}: "
                f"{listed(names)}.{offer} Received: {name!r}."
            )
    return given


def _in_its_case(name: Any, names: Sequence[str]) -> Any:
    """Returns the column that a name means, whatever its capitals."""
    if not isinstance(name, str) or name in names:
        return name
    alike = [other for other in names if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else name


def _found_columns(
    file: DataFile, names: Sequence[str], named: Mapping[str, Any]
) -> Chosen:
    """Returns the columns that are known by name, without those in the call."""
    found: Chosen = {}
    options = {role: [(name,) for name in NAMES[role]] for role in NAMES}
    lower = {name.lower(): name for name in names}
    for role in NAMES:
        if role in named:
            continue
        fitting = [name for name in names if (name.lower(),) in options[role]]
        if role == "answers":  # of which `answer` may be the first
            fitting = [x for x in fitting if x.lower() == role] or fitting
        if len(fitting) > 1:
            raise _ambiguous(file, role, fitting)
        if fitting:
            found[role] = fitting
    if not {"text", "text_pair"} & named.keys():
        for pair in PAIRS:
            if lower.keys() >= set(pair) and not named.keys() & set(pair):
                both = [lower[name] for name in pair]
                texts = found.get("text", []) + found.get("text_pair", [])
                others = [name for name in texts if name not in both]
                if others:
                    raise _ambiguous(file, "text", [*others, *both])
                found["text"], found["text_pair"] = [both[0]], [both[1]]
                found = {x: n for x, n in found.items() if x != both[0].lower()}
    numbered = [n for n in names if NUMBERED_CHOICE.fullmatch(n.lower())]
    if numbered and not {"choices"} & {*named, *found}:
        found["choices"] = _numbered_choices(file, numbered)
    return found


def _numbered_choices(file: DataFile, names: list[str]) -> list[str]:
    """Returns the columns choice0, choice1 and so on, in order."""
    by_number = {int(re.sub(r"[^0-9]", "", name)): name for name in names}
    if sorted(by_number) != list(range(len(names))) or len(names) < 2:
        raise ValueError(
            f"{file} must have columns choice0, choice1 and so on, without a "
            "gap: labels are their numbers, from 0. Received: "
            f"{listed(names)}."
        )
    return [by_number[number] for number in sorted(by_number)]


def _ambiguous(file: DataFile, role: str, headers: list[str]) -> ValueError:
    """Returns the error for two columns that may have one role."""
    return ValueError(
        f"`{role}_column` must tell which column of {file} it is. Received: "
        f"none told, and the columns {', '.join(headers)}."
    )


def _unknown_layout(
    file: DataFile, table: Table, chosen: Chosen, unused: list[str]
) -> ValueError:
    """Returns the error for a table of which no task can be read."""
    used = {name for headers in chosen.values() for name in headers}
    free = [name for name in table.names if name not in used]
    text, *_ = chosen.get("text") or [_longest(table, free)]
    free = [name for name in free if name != text]
    label, *_ = chosen.get("label") or [_fewest(table, free)]
    named = f" with {', '.join(unused)} told" if unused else ""
    needed = "; ".join(", ".join(columns) for columns in KINDS)
    return ValueError(
        f"{file} must have the columns of a task, {needed}, or they must be "
        f"told, as in {_call(file, text=text, label=label)}. Received: the "
        f"columns {listed(table.names) or 'none'}{named}."
    )


def _call(file: DataFile, **columns: str) -> str:
    """Returns a call that names columns, as Python has it."""
    words = {f"{role}_column": listed([x]) for role, x in columns.items()}
    told = [f", {word}={_quoted(name)}" for word, name in words.items()]
    return f"load_dataset({_quoted(file.path.name)}{''.join(told)})"


def _quoted(name: str) -> str:
    """Returns a text in double quotes."""
    return json.dumps(name, ensure_ascii=False)


def _longest(table: Table, names: Sequence[str]) -> str:
    """Returns the column with the longest texts on average."""
    values = _first_values(table, names)
    means = {name: sum(map(len, x)) / len(x) for name, x in values.items() if x}
    return max(means or names, key=lambda x: means.get(x, 0), default="NAME")


def _fewest(table: Table, names: Sequence[str]) -> str:
    """Returns the column with the fewest different values, but two or more."""
    values = _first_values(table, names)
    counts = {name: len({*column}) for name, column in values.items()}
    several = [name for name in names if counts.get(name, 0) > 1]
    return min(several or names, key=lambda x: counts.get(x, 0), default="NAME")


def _first_values(table: Table, names: Sequence[str]) -> dict[str, list[str]]:
    """Returns what the first rows of a table hold, gaps left out, as texts."""
    values: dict[str, list[str]] = {name: [] for name in names}
    with contextlib.suppress(ValueError):
        for _, row in itertools.islice(table.read(names), ROWS_LOOKED_AT):
            if isinstance(row, ValueError):
                continue
            for name, value in zip(names, row, strict=True):
                if not is_missing(value) and str(value).strip():
                    values[name].append(str(value).strip())
    return values


def _check_learned(
    file: DataFile,
    table: Table,
    chosen: Chosen,
    named: Mapping[str, Any],
    kinds: list[tuple[str, ...]],
) -> None:
    """Refuses a table that may hold labels under a name that is not known."""
    learned = [KINDS[kind][-1] for kind in kinds if KINDS[kind]]
    if len(learned) < len(kinds) or {*chosen, *named} & set(learned):
        return
    used = {name for headers in chosen.values() for name in headers}
    others = [
        name
        for name in table.names
        if name not in used and name.lower() not in ROW_NUMBERS
    ]
    if others:
        word = learned[0]
        other = _fewest(table, others) if word == "label" else others[0]
        raise ValueError(
            f"`{word}_column` must tell which column of {file} is to be "
            f"learned, as in {_call(file, **{word: other})}, or be "
            '"" where none is. Received: none told, and the columns '
            f"{listed(table.names)}."
        )


def read_columns(
    file: DataFile, table: Table, chosen: Chosen, bad: BadRows
) -> Columns:
    """Returns the rows of a table as our columns.

    Args:
        file: The file, for messages.
        table: The table.
        chosen: What `choose_columns` returned.
        bad: Gets the rows that do not fit.

    Raises:
        ValueError: A value is missing or of another type, or a row does not
            fit together; the file and the lines are named. Or there are no
            rows.
    """
    headers = list(dict.fromkeys(n for names in chosen.values() for n in names))
    lacks_label = False
    data: Columns = {role: [] for role in chosen}
    places = []
    for place, values in table.read(headers):
        try:
            if isinstance(values, ValueError):
                raise values
            cells = dict(zip(headers, values, strict=True))
            row = _row(f"{file}, {place}", cells, chosen, table.typed, bad)
        except ValueError as error:
            bad.add(place, error)
            lacks_label |= isinstance(error, MissingLabel)
            continue
        for role, value in row.items():
            data[role].append(value)
        places.append(place)
    if not places and not bad.found:
        raise ValueError(f"{file} must hold examples. Received: none.")
    names = {role: _header(chosen, role) for role in chosen}
    if bad.mended is not None and len(chosen.get("label", ())) == 1:
        _mend_commas(data["label"], names["label"], bad.mended)
    for find in (_odd_labels, _wrong_choices, _equal_ids):
        wrong = find(data, chosen, places, table.typed)
        for row_number, reason in sorted(wrong.items()):
            place = places[row_number]
            bad.add(place, ValueError(f"{file}, {place}: {reason}"))
        kept = [n for n in range(len(places)) if n not in wrong]
        data, places = rows_of(data, kept), [places[n] for n in kept]
    if lacks_label:
        bad.advise(none_holds(data["label"], table.typed), names["label"])
    bad.settle(len(places))
    if len(chosen.get("label", ())) == 1:
        data["label"] = read_labels(
            file, places, data["label"], table.typed, names["label"]
        )
    if bad.mended is not None:
        label = names.get("label", "label")
        data, kept = mend_columns(data, places, bad.mended, label)
        places = [places[n] for n in kept]
    return SourceColumns(data, str(file), places, names)


def _mend_commas(labels: list[Any], column: str, mended: Mended) -> None:
    """Gives numbers with a decimal comma a point, and says so once."""
    are_texts = all(isinstance(label, str) for label in labels)
    points = decimal_commas(labels) if are_texts else {}
    for row, value in points.items():
        if row == min(points):
            count = f"{len(points):,} row{'s' * (len(points) > 1)}"
            why = f"{labels[row].strip()!r} is read as {value}, {count}"
            mended.append((f"`{column}`", why))
        labels[row] = value


def _header(chosen: Chosen, role: str) -> str:
    """Returns what the file calls a column; ours where it has several."""
    return chosen[role][0] if len(chosen[role]) == 1 else role


def _row(
    place: str,
    cells: Mapping[str, Any],
    chosen: Chosen,
    typed: bool,
    bad: BadRows,
) -> dict[str, Any]:
    """Returns the values of a row by their roles."""
    row: dict[str, Any] = {}
    for role, names in chosen.items():
        values = [cells[name] for name in names]
        if role == "answers":
            row[role] = _answers(
                place, names[0], values[0], row["context"], typed, bad
            )
            continue
        if bad.mended is not None and not typed and role in ("tokens", "tags"):
            values = [_from_plain(values[0])]
        if bad.mended is not None and not typed and role == "weight":
            values = [decimal_commas(values).get(0, values[0])]
        row[role] = _value(place, role, names, values, typed)
    if len(chosen.get("label", ())) == 1:
        kind_of_label(place, row["label"], typed, chosen["label"][0])
    _check_row(place, row, chosen)
    return row


def _from_plain(value: str) -> str:
    """Returns a list for words or tags that have spaces between them."""
    is_list = value.lstrip().startswith("[")
    return value if is_list else json.dumps(value.split())


def _value(
    place: str, role: str, names: list[str], values: list[Any], typed: bool
) -> Any:
    """Returns one value of a row; labels are left to be read as a column."""
    first, *others = values
    column = role if others else names[0]
    if role == "label":
        return held_names(place, names, values) if others else first
    if role == "weight":
        return weight_of(place, column, first, typed)
    if role == "id" and is_integer(first):
        return str(first)
    if role in ("choices", "tokens", "tags"):
        items = values if others else list_of(place, column, first, typed)
        if role == "tags":
            tags = [_tag(place, tag) for tag in items]
            if len({is_integer(tag) for tag in tags}) > 1:
                raise ValueError(
                    f"{place}: `{column}` must be all names or all numbers. "
                    f"Received: {shown(items)}."
                )
            return tags
        exact = typed or role == "tokens"
        return [text_of(place, column, text, exact) for text in items]
    exact = typed or role in ("question", "context")
    return text_of(place, column, first, exact)


def _tag(place: str, tag: Any) -> str | int:
    """Returns a tag: BIO, or the number that a model has for it."""
    if not is_integer(tag):
        try:
            split_tag(tag)
        except ValueError:
            raise ValueError(
                f"{place}: a tag must be O, B-TYPE, I-TYPE or the number of a "
                f"tag. Received: {shown(tag)}."
            ) from None
    return tag


def _answers(
    place: str,
    column: str,
    value: Any,
    context: str,
    typed: bool,
    bad: BadRows,
) -> list[dict[str, Any]]:
    """Returns the answers of a question, which may be a text of the context."""
    if not typed and value.lstrip().startswith(("[", "{")):
        try:
            value = parse_value(value, f"{place}, `{column}`")
        except ValueError:
            if value.strip() not in context:
                raise
    try:
        answers = list_answers(value, context)
    except ValueError as error:
        reason = str(error).replace("`answers`", f"`{column}`", 1)
        raise ValueError(f"{place}: {reason}") from None
    for answer in answers if is_plain_answer(value) else ():
        if (count := context.count(answer["text"])) > 1:
            why = f"the answer stands {count} times; the first is taken"
            bad.note(place.rpartition(", ")[2], why)
    return answers


def _check_row(place: str, row: Mapping[str, Any], chosen: Chosen) -> None:
    """Refuses a row whose values do not fit together."""
    if "tags" in row and len(row["tags"]) != len(row["tokens"]):
        raise ValueError(
            f"{place}: `{_header(chosen, 'tags')}` must hold a tag for each of "
            f"{len(row['tokens'])} tokens. Received: {len(row['tags'])}."
        )
    if "choices" in row and len(row["choices"]) < 2:
        raise ValueError(
            f"{place}: `{_header(chosen, 'choices')}` must hold two texts or "
            f"more. Received: {len(row['choices'])}."
        )
    for answer in row.get("answers", ()):
        text, start = answer["text"], answer.get("answer_start")
        end = start + len(text) if is_integer(start) and start >= 0 else 0
        if not text or row["context"][start:end] != text:
            raise ValueError(
                f"{place}: `answer_start` must point at the answer {text!r} in "
                f"the context. Received: {start!r}."
            )


Wrong = dict[int, str]  # what is wrong with a row, by its number


def _odd_labels(
    data: Columns, chosen: Chosen, places: list[str], typed: bool
) -> Wrong:
    """Returns labels of another kind than those of most rows."""
    if len(chosen.get("label", ())) != 1:
        return {}
    return odd_labels(data["label"], typed, chosen["label"][0])


def _wrong_choices(
    data: Columns, chosen: Chosen, places: list[str], typed: bool
) -> Wrong:
    """Returns labels that are not the number of a choice."""
    if "choices" not in data or len(chosen.get("label", ())) != 1:
        return {}
    wrong = {}
    column = chosen["label"][0]
    rows = zip(data["choices"], data["label"], strict=True)
    for row, (choices, label) in enumerate(rows):
        known = [str(number) for number in range(len(choices))]
        number = int(label) if isinstance(label, bool) else label
        if isinstance(number, float) or str(number).strip() not in known:
            wrong[row] = (
                f"`{column}` must be the number of a choice, 0 to "
                f"{len(choices) - 1}. Received: {label!r}."
            )
    return wrong


def _equal_ids(
    data: Columns, chosen: Chosen, places: list[str], typed: bool
) -> Wrong:
    """Returns questions whose id an earlier one has."""
    seen: dict[str, int] = {}
    wrong: Wrong = {}
    if "question" not in data:
        return wrong
    for row, name in enumerate(data.get("id", ())):
        first = seen.setdefault(name, row)
        if first != row:
            wrong[row] = (
                f"the `{chosen['id'][0]}` of a question must be its own. "
                f"Received: {name!r}, as in {places[first]}."
            )
    return wrong
