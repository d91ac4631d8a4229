"""What tests of searches share: a table for a model, beams by loops."""

import numpy as np
import pytest

from bertbook.runtime import ops

END, PAD = 3, 0


class Table:
    """Stands in for `steps`: logits by the slot, or for all, and the token."""

    def __init__(self, logits, first):
        self.logits = ops.convert_to_tensor(logits, "float32")
        self.first = first

    def start(self, batch, room):
        token = ops.convert_to_tensor(self.first, "int32")
        return token, 0, ops.zeros((token.shape[0], room), "int32"), {}

    def step(self, token, slot, history, given):
        history = ops.slice_update(history, (0, slot), token[:, None])
        table = self.logits  # (V, V), or one for each slot
        if len(table.shape) == 3:
            table = ops.take(table, slot, axis=0)
        return ops.take(table, token, axis=0), history


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def beams_by_loops(next_logs, length, width, alpha, end=END):
    """The definition, for one row: [(ids, score)], the best first.

    `next_logs` gives the log-probability of every token after some ids.
    """

    def score(text):
        return text[1] / ((5 + len(text[0])) / 6) ** alpha

    going, ended = [([], 0.0)], []
    for _ in range(length):
        if len(ended) >= width:
            break
        longer = [
            ([*ids, token], total + log)
            for ids, total in going
            for token, log in enumerate(next_logs(ids))
        ]
        longer.sort(key=lambda text: -text[1])
        ended += [text for text in longer[:width] if text[0][-1] == end]
        ended = sorted(ended, key=score, reverse=True)[:width]
        going = [text for text in longer if text[0][-1] != end][:width]
    going = sorted(going, key=score, reverse=True)
    return [(text[0], score(text)) for text in (ended + going)[:width]]


def check_row(ids, scores, expected):
    """Compares what was found for a row with the definition."""
    for row, score, (tokens, wanted) in zip(ids, scores, expected, strict=True):
        assert row.tolist() == tokens + [PAD] * (len(row) - len(tokens))
        assert score == pytest.approx(wanted, abs=1e-5)
