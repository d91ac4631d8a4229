"""Settings, rows and checks that all tasks share.

Differences: none from Devlin et al. (2019), section 4 and 5.3, beside those
that `windows`, `spans` and `tags` name.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertbook.checks import each_row, is_integer
from bertbook.datasets.cells import NONE_HOLDS
from bertbook.datasets.columns import (
    as_columns,
    has_length,
    is_missing,
    with_known_names,
)

LONGEST_WINDOW = 384  # The paper's runs on SQuAD take this many tokens.


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How texts become rows.

    Attributes:
        max_length: Tokens that a text is cut to, or that a window holds. None
            never cuts, and takes windows as long as the model allows, at most
            384.
        stride: Tokens from one window to the next; None takes half.
        strategy: Which pieces of a word get its tag: "first", "last", "all";
            None means as the model was trained, else "first".
        max_answer_length: Most pieces of an answer.
        n_best: Answers among which probability is shared.
    """

    max_length: int | None = None
    stride: int | None = None
    strategy: str | None = None
    max_answer_length: int = 30
    n_best: int = 20


def remembered(model, settings):
    """Returns settings with those of the fine-tuning where none are given.

    Args:
        model: A task model, of which the config knows how it was trained.
        settings: A `Settings`. A stride belongs to a length, so that one of
            the fine-tuning is taken with its length alone.
    """
    if settings.max_length is not None:
        return settings
    past = model.config.extra.get("bertbook_finetuning") or {}
    stride = settings.stride or past.get("stride")
    return replace(settings, max_length=past.get("max_length"), stride=stride)


def in_rows(function, *columns):
    """Calls a function for each row, and names the rows that it refuses.

    Raises:
        ValueError: The function refuses rows; their numbers are named.
    """

    def named(row, *values):
        try:
            return function(*values)
        except ValueError as error:
            raise ValueError(f"Row {row}: {error}") from None

    return each_row(named, *columns)


class ReadColumns(dict[str, Any]):
    """The columns that a task reads.

    Attributes:
        others: The names of those that it does not read, for messages.
    """

    others: list[str]


def check_columns(
    data: Any, needed: list[str], others: list[str]
) -> dict[str, Any]:
    """Returns the columns that a task reads, as lists of one length.

    Args:
        data: What `as_columns` takes.
        needed: The columns that must be there.
        others: Those that are read where they are there.

    Raises:
        KeyError: A column is missing; the error names those there are.
        ValueError: `as_columns` refuses the data, they hold no row, or columns
            differ in length; or one is no list.
    """
    data = with_known_names(as_columns(data, "data"))
    missing = [name for name in needed if name not in data]
    if missing:
        raise KeyError(
            f"`data` must hold the columns {', '.join(needed)}. Received: "
            f"{', '.join(data) or 'none'}."
        )
    names = [name for name in (*needed, *others) if name in data]
    for name in names:
        column = data[name]
        no_column = isinstance(column, str | bytes | Mapping | Set)
        if no_column or not has_length(column):
            raise ValueError(
                f"`{name}` must be a list with an entry for each row. "
                f"Received: {type(column).__name__}."
            )
    columns = ReadColumns({name: list(data[name]) for name in names})
    columns.others = [name for name in data if name not in columns]
    labels = columns.get("label", [])
    several = any(isinstance(label, list | tuple | set) for label in labels)
    hint = f"; `[]` {NONE_HOLDS}" if several else ""
    each_row(lambda row, label: _check_label(row, label, hint), labels)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or not lengths[needed[0]]:
        raise ValueError(
            "`data` must hold columns of one length, 1 at least. Received: "
            f"{lengths}."
        )
    return columns


def _check_label(row, value, hint):
    """Refuses a gap in a column of labels."""
    if is_missing(value):
        raise ValueError(
            f"`label[{row}]` must not be missing{hint}. Received: {value}."
        )


def labeled(data, name):
    """Returns the column of labels.

    Raises:
        KeyError: It is missing.
    """
    if name not in data:
        raise KeyError(
            f"`data` must hold the column {name}. Received: "
            f"{', '.join([*data, *getattr(data, 'others', ())])}."
        )
    return data[name]


def needed_tokenizer(model):
    """Returns the tokenizer of a model.

    Raises:
        ValueError: It has none.
    """
    if model.tokenizer is None:
        raise ValueError(
            "`model` needs a tokenizer: no vocabulary was found beside the "
            "weights. Set `model.tokenizer`."
        )
    return model.tokenizer


def longest(model, settings):
    """Returns how many tokens a window holds.

    Raises:
        ValueError: More were asked for than the model allows.
    """
    limit = model.config.max_position_embeddings
    if settings.max_length is None:
        return min(LONGEST_WINDOW, limit)
    if is_integer(settings.max_length) and settings.max_length > limit:
        raise ValueError(
            "`max_length` must be at most `max_position_embeddings`, "
            f"{limit}. Received: {settings.max_length}."
        )
    return settings.max_length


def softmax(logits):
    """Returns probabilities, over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
