"""Windows: every piece in one, the question before each, the most context."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.batches.ragged import stack_rows
from bertbook.tasks.windows import (
    check_stride,
    most_context,
    stack_windows,
    window_context,
    window_starts,
)
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import texts

LETTERS = [chr(i) for i in range(ord("a"), ord("z") + 1)]
TOY = Tokenizer([*SPECIAL_TOKENS, *LETTERS, "?"])
QUESTION, CONTEXT = "w ?", "a b c d e f g h i j k"  # 2 and 11 pieces

# The wide vocabulary has a piece for every character of every case.
pytestmark = pytest.mark.filterwarnings("ignore:No text reaches")
random_tests = settings(max_examples=100, deadline=None, derandomize=True)
parts = st.tuples(
    st.integers(1, 61), st.integers(2, 23), st.integers(1, 22)
).filter(lambda sizes: sizes[2] < sizes[1])


@cache
def wide():
    return Tokenizer(texts.wide_vocabulary())


def tokens(window):
    return " ".join(TOY.vocabulary[i] for i in window.input_ids)


# Definition.


def test_windows_by_hand():
    found = window_context(TOY, QUESTION, CONTEXT, max_length=10, stride=3)
    assert [tokens(window) for window in found.windows] == [
        "[CLS] w ? [SEP] a b c d e [SEP]",
        "[CLS] w ? [SEP] d e f g h [SEP]",
        "[CLS] w ? [SEP] g h i j k [SEP]",
    ]
    assert [w.token_type_ids for w in found.windows] == [[0] * 4 + [1] * 6] * 3
    assert [w[2:] for w in found.windows] == [(4, 0, 5), (4, 3, 5), (4, 6, 5)]
    assert found.offsets.tolist() == [[i, i + 1] for i in range(0, 22, 2)]
    assert found.owners.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert found.context == CONTEXT


def test_a_short_context_is_one_window_as_the_tokenizer_encodes_it():
    found = window_context(TOY, QUESTION, CONTEXT)
    encoding = TOY.encode(QUESTION, CONTEXT)
    (window,) = found.windows
    assert window.input_ids == encoding.input_ids
    assert window.token_type_ids == encoding.token_type_ids
    assert window[2:] == (4, 0, 11)


def test_the_last_window_may_be_shorter():
    found = window_context(TOY, QUESTION, CONTEXT, max_length=10, stride=4)
    assert [w.first for w in found.windows] == [0, 4, 8]
    assert tokens(found.windows[-1]) == "[CLS] w ? [SEP] i j k [SEP]"
    assert found.windows[-1].token_type_ids == [0] * 4 + [1] * 4
    exact = window_context(TOY, QUESTION, CONTEXT, max_length=12, stride=4)
    assert [w[3:] for w in exact.windows] == [(0, 7), (4, 7)]


def test_half_a_window_is_the_stride_where_none_is_given():
    for max_length, stride in ((10, 2), (11, 3)):
        expected = window_context(TOY, QUESTION, CONTEXT, max_length, stride)
        received = window_context(TOY, QUESTION, CONTEXT, max_length)
        assert received.windows == expected.windows


def most_context_by_loops(starts, sizes):
    owners = []
    for piece in range(starts[-1] + sizes[-1]):
        scores = [
            min(piece - start, start + size - 1 - piece)
            for start, size in zip(starts, sizes, strict=True)
        ]
        owners.append(scores.index(max(scores)))
    return owners


@random_tests
@given(parts)
def test_most_context_by_loops(sizes):
    total, room, stride = sizes
    starts = window_starts(total, room, stride)
    counts = [min(room, total - start) for start in starts]
    owners = most_context(starts, counts).tolist()
    assert owners == most_context_by_loops(starts, counts)


def starts_as_google(total, room, stride):
    """The loop of `run_squad.py`, in our words."""
    starts, start = [], 0
    while start < total:
        starts.append(start)
        length = min(room, total - start)
        if start + length == total:
            break
        start += min(length, stride)
    return starts


@random_tests
@given(parts)
def test_windows_start_where_googles_do(sizes):
    assert window_starts(*sizes) == starts_as_google(*sizes)


def test_a_batch_by_hand():
    found = window_context(TOY, QUESTION, CONTEXT, max_length=10, stride=4)
    batch = stack_windows(found.windows, pad_token_id=7)
    assert {array.dtype.name for array in batch.values()} == {"int32"}
    assert {array.shape for array in batch.values()} == {(3, 10)}
    last = {name: array[-1].tolist() for name, array in batch.items()}
    assert last["input_ids"] == [*found.windows[-1].input_ids, 7, 7]
    assert last["token_type_ids"] == [0] * 4 + [1] * 4 + [0] * 2
    assert last["attention_mask"] == [1] * 8 + [0] * 2
    rows = stack_rows([[0.5], [1.5, 2.5]], fill=-1, dtype="float32")
    assert rows.tolist() == [[0.5, -1.0], [1.5, 2.5]]
    assert rows.dtype == np.float32


# Property.


@random_tests
@given(texts.texts(), texts.texts(max_size=40), st.integers(2, 31), st.data())
def test_every_piece_is_in_a_window_behind_the_question(
    question, context, room, data
):
    tokenizer, question, context = wide(), f"x {question}", f"{context} x"
    asked = tokenizer.encode(question).input_ids[1:-1]
    pieces = tokenizer.encode(context).input_ids[1:-1]
    max_length = len(asked) + 3 + room
    stride = data.draw(st.integers(1, room - 1))
    found = window_context(tokenizer, question, context, max_length, stride)
    assert len(found.offsets) == len(pieces)
    assert found.windows[0].first == 0
    for number, window in enumerate(found.windows):
        ids, types = window.input_ids, window.token_type_ids
        assert len(ids) == len(types) <= max_length
        inside = slice(window.column, window.column + window.size)
        assert ids[inside] == pieces[window.first :][: window.size]
        rest = [*ids[: inside.start], *ids[inside.stop :]]
        sep = tokenizer.sep_token_id
        assert rest == [tokenizer.cls_token_id, *asked, sep, sep]
        assert types == [0] * window.column + [1] * (window.size + 1)
        (owned,) = np.nonzero(found.owners == number)
        assert all(0 <= i - window.first < window.size for i in owned)
    last = found.windows[-1]
    assert last.first + last.size == len(pieces)
    spans = [(w.first, w.first + w.size) for w in found.windows]
    for before, after in zip(spans, spans[1:], strict=False):
        assert before[0] < after[0] < before[1] < after[1]  # they overlap


@random_tests
@given(parts)
def test_the_pieces_that_a_window_owns_are_neighbors(sizes):
    total, room, stride = sizes
    starts = window_starts(total, room, stride)
    owners = most_context(starts, [min(room, total - s) for s in starts])
    assert (np.diff(owners) >= 0).all()
    assert owners[0] == 0
    assert owners[-1] == len(starts) - 1


# Error.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", CONTEXT), "`question` must not be empty.* Received: ''"),
        ((" \t", CONTEXT), "`question` must not be empty"),
        ((QUESTION, ""), "`context` must not be empty.* Received: ''"),
        ((QUESTION, "\u200b"), "`context` must not be empty"),
        ((None, CONTEXT), "`question` must be a string"),
        ((QUESTION, 3), "`context` must be a string"),
        ((QUESTION, "\ud800"), "`context` must not hold a lone surrogate"),
        (("w " * 6, CONTEXT, 10), "`question` must leave room .* 10. .* 6 p"),
        ((QUESTION, CONTEXT, 6), "`question` must leave room for 2 pieces"),
        ((QUESTION, CONTEXT, 10, 5), r"`stride` .* \[1, 5\), .* Received: 5"),
        ((QUESTION, CONTEXT, 10, 128), "`stride` .* a window of 10 .*: 128"),
        ((QUESTION, CONTEXT, 10, 0), "`stride` must be an integer .* 0"),
        ((QUESTION, CONTEXT, 10, 2.5), "`stride` must be an integer .* 2.5"),
        ((QUESTION, CONTEXT, None), "`max_length` must be an integer.* None"),
        ((QUESTION, CONTEXT, 4), "`max_length` must be an integer >= 5"),
    ],
)
def test_questions_and_contexts_without_windows_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        window_context(TOY, *arguments)


def test_bad_rows_and_strides_are_refused():
    with pytest.raises(ValueError, match="`rows` must hold at least one row"):
        stack_rows([])
    with pytest.raises(ValueError, match="`length` must .*: 2, and a row of 3"):
        stack_rows([[1], [1, 2, 3]], length=2)
    assert stack_rows([[1], [2, 3]], 9, length=3).tolist() == [
        [1, 9, 9],
        [2, 3, 9],
    ]
    with pytest.raises(ValueError, match="`stride` .* Received: True"):
        check_stride(True, 5, 10)
    assert check_stride(None, 1, 3) == 1
