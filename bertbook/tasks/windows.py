"""Overlapping windows over texts that are too long for a model.

Differences: Google's code cuts a question to 64 pieces and skips pieces where
the stride is larger than the window; we refuse both. Where a piece has as much
context in two windows, it prefers the longer one, we the first.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bertbook.batches.ragged import stack_rows
from bertbook.checks import check_max_length, check_text, is_integer


class Window(NamedTuple):
    """A part of the context after the question, as the model sees it.

    Attributes:
        input_ids: [CLS] question [SEP] part of the context [SEP], S ids.
        token_type_ids: 0 through the first [SEP], then 1.
        column: Column of the first piece of the context.
        first: Number of that piece in the whole context.
        size: How many pieces of the context the window holds.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    column: int
    first: int
    size: int


class WindowedContext(NamedTuple):
    """A context in windows that overlap and together hold every piece.

    Attributes:
        context: The raw text.
        offsets: Start and end of each piece in characters, `(P, 2)`.
        windows: The windows, in the order of the text.
        owners: For each piece the window where it has the most context,
            `(P,)`.
    """

    context: str
    offsets: np.ndarray
    windows: list[Window]
    owners: np.ndarray


def window_context(
    tokenizer: Any,
    question: str,
    context: str,
    max_length: int = 384,
    stride: int | None = None,
) -> WindowedContext:
    """Puts a long context into windows, the question in front of each.

    Source: Devlin et al. (2019), section 4.2; `run_squad.py` of its code.

    Args:
        tokenizer: A `Tokenizer`.
        question: The raw question, never cut.
        context: The raw text that holds the answer.
        max_length: S of the longest window, special tokens included.
        stride: Pieces from the start of a window to that of the next. None
            takes half of what a window holds of the context.

    Raises:
        ValueError: A text is no string or has no pieces, the question leaves
            no room, or `stride` is not smaller than the window.
    """
    check_text(question, "question")
    check_text(context, "context")
    max_length = check_window(max_length, has_pair=True)
    encoding = tokenizer.encode(question, context)
    parts = np.array([-1 if n is None else n for n in encoding.sequence_ids])
    for part, name in enumerate(("question", "context")):
        if not (parts == part).any():
            raise ValueError(
                f"`{name}` must not be empty: no piece is left of it. "
                f"Received: {(question, context)[part]!r}."
            )
    column = int(np.flatnonzero(parts == 1)[0])
    total = int((parts == 1).sum())
    room = max_length - column - 1
    if room < 2:
        raise ValueError(
            "`question` must leave room for 2 pieces of the context in "
            f"`max_length`, {max_length}. Received: {column - 2} pieces."
        )
    starts = window_starts(total, room, check_stride(stride, room, max_length))
    counts = [min(room, total - start) for start in starts]
    windows = [
        _cut(encoding, column, start, count)
        for start, count in zip(starts, counts, strict=True)
    ]
    offsets = np.array(encoding.offsets)[parts == 1]  # (P, 2)
    return WindowedContext(
        context, offsets, windows, most_context(starts, counts)
    )


def _cut(encoding: Any, column: int, first: int, count: int) -> Window:
    """Leaves out all pieces of the context but `count`, from `first` on."""
    ids, types = (
        [*row[:column], *row[column:-1][first : first + count], row[-1]]
        for row in (encoding.input_ids, encoding.token_type_ids)
    )
    return Window(ids, types, column, first, count)


def window_starts(total: int, room: int, stride: int) -> list[int]:
    """Returns where windows over a row of things start.

    >>> window_starts(total=11, room=5, stride=3)
    [0, 3, 6]
    """
    steps = max(0, -(-(total - room) // stride))  # rounded up
    return [step * stride for step in range(steps + 1)]


def most_context(starts: Sequence[int], counts: Sequence[int]) -> np.ndarray:
    """Returns the window in which each thing has the most context.

    The context of a thing is the smaller number of things on its left and its
    right.

    Source: `_check_is_max_context` in `run_squad.py` of Google's code.

    Args:
        starts: Where the windows start; the first at 0, without gaps.
        counts: How many things each window holds.

    >>> most_context([0, 3, 6], [5, 5, 5]).tolist()
    [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    """
    total = max(s + n for s, n in zip(starts, counts, strict=True))
    best = np.full(total, -1)
    owners = np.zeros(total, int)
    for number, (start, count) in enumerate(zip(starts, counts, strict=True)):
        here = slice(start, start + count)
        left = np.arange(count)
        score = np.minimum(left, left[::-1])
        better = score > best[here]
        owners[here][better] = number
        best[here][better] = score[better]
    return owners


def stack_windows(
    windows: Sequence[Any], pad_token_id: int = 0
) -> dict[str, np.ndarray]:
    """Makes a batch of windows, also of those of several contexts.

    Args:
        windows: Anything with `input_ids` and `token_type_ids`.
        pad_token_id: What `input_ids` are padded with.

    Returns:
        `input_ids`, `token_type_ids` and `attention_mask`, `(B, S)` int32.
    """
    ids = [window.input_ids for window in windows]
    return {
        "input_ids": stack_rows(ids, pad_token_id),
        "token_type_ids": stack_rows([w.token_type_ids for w in windows]),
        "attention_mask": stack_rows([[1] * len(row) for row in ids]),
    }


def check_window(max_length: int, has_pair: bool) -> int:
    """Returns the length of a window; unlike a text, it must have one.

    Raises:
        ValueError: It is None, or leaves no room for the texts.
    """
    checked = check_max_length(max_length, has_pair)
    if checked is None:
        raise ValueError("`max_length` must be an integer. Received: None.")
    return checked


def check_stride(stride: int | None, room: int, max_length: int) -> int:
    """Returns the stride, half of `room` for None; refuses one without overlap.

    Args:
        stride: How far apart the windows start.
        room: What a window holds beside special tokens and a question.
        max_length: S of a window, for the message.

    Raises:
        ValueError: Two windows would not overlap, or it is no integer >= 1.
    """
    if stride is None:
        return max(1, room // 2)
    if not is_integer(stride) or not 1 <= stride < room:
        raise ValueError(
            f"`stride` must be an integer in [1, {room}), smaller than the "
            f"{room} pieces that a window of {max_length} has room for. "
            f"Received: {stride!r}."
        )
    return int(stride)
