"""Beam search: by loops over lists, and what its options change."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

from bertbook.decoder.search import (
    Beams,
    go_on,
    length_score,
    likeliest,
    search_beams,
)
from bertbook.runtime import compile_with
from tests.helpers.models import to_numpy
from tests.helpers.searches import (
    END,
    PAD,
    Table,
    beams_by_loops,
    check_row,
    log_softmax,
)

pytestmark = pytest.mark.usefixtures("plain_graphs")
V, T = 7, 6


def draw_table(seed, scale=1.5):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=scale, size=(T, V, V)).astype("float32")


@lru_cache
def compiled(width, alpha):
    def run(table, first):
        steps = Table(table, first)
        return search_beams(steps, None, T, width, alpha, END, PAD)

    return compile_with(SimpleNamespace(variables=[]), run)


def search(table, first, width, alpha):
    table = np.broadcast_to(table, (T, V, V)).astype("float32")
    found = compiled(width, alpha)(table, np.array(first, "int32"))
    return Beams(*to_numpy(list(found)))


# Definition.


@pytest.mark.parametrize(
    ("width", "alpha"), [(1, 0.6), (2, 0.0), (3, 0.6), (4, 2.0), (V, 0.6)]
)
def test_beams_are_those_of_the_definition(width, alpha):
    first = [1, 4, 6, 5]
    for seed in range(3):
        table = draw_table(seed)
        found = search(table, first, width, alpha)
        assert found.ids.shape == (len(first), width, T)
        logs = log_softmax(table.astype("float64"))
        for row, token in enumerate(first):

            def next_logs(ids, logs=logs, token=token):
                return logs[len(ids), [token, *ids][-1]]

            expected = beams_by_loops(next_logs, T, width, alpha)
            check_row(found.ids[row], found.scores[row], expected)


def test_the_length_score_is_the_papers():
    for alpha in (0.0, 0.6, 1.0):
        for length in (1, 4, 20):
            penalty = (5 + length) ** alpha / (5 + 1) ** alpha
            score = to_numpy(length_score(np.float32(-3), length, alpha))
            assert score == pytest.approx(-3 / penalty, rel=1e-6)


# Properties.


def test_a_beam_of_one_is_greedy():
    first = [1, 4, 6, 5]
    for seed in range(3):
        table = draw_table(seed)
        table[0, 1, END] = 5.0  # a row that ends at once
        for alpha in (0.6, 2.0):
            found = search(table, first, 1, alpha)
            greedy = go_on(Table(table, first), None, T, likeliest, END, PAD)
            np.testing.assert_array_equal(found.ids[:, 0], to_numpy(greedy))


def test_a_row_gives_the_same_alone_and_among_others():
    first = [1, 4, 6, 5]
    table = draw_table(1)
    together = search(table, first, 3, 0.6)
    for row, token in enumerate(first):
        alone = search(table, [token], 3, 0.6)  # one shape, compiled once
        np.testing.assert_array_equal(together.ids[row], alone.ids[0])
        np.testing.assert_allclose(together.scores[row], alone.scores[0])


def test_a_beam_finds_the_likelier_text_behind_a_less_likely_token():
    """Greedy takes the likelier first token, and misses the likelier text."""
    table = np.full((V, V), -20.0)
    table[1, [2, 4]] = np.log([0.6, 0.4])
    table[2, [5, 6]] = np.log([0.5, 0.5])
    table[4, 6] = 0.0
    table[[5, 6], END] = 0.0
    assert search(table, [1], 1, 0.0).ids[0, 0, 0] == 2
    found = search(table, [1], 2, 0.0)
    assert found.ids[0, 0].tolist() == [4, 6, END, PAD, PAD, PAD]
    assert found.scores[0, 0] == pytest.approx(np.log(0.4), abs=1e-5)


def test_a_penalty_prefers_longer_texts():
    table = np.full((V, V), -20.0)
    table[1, [END, 2]] = np.log([0.5, 0.5])
    table[2, 4] = table[4, 5] = 0.0
    table[5, [END, 6]] = np.log([0.9, 0.1])
    table[6, END] = 0.0
    lengths = [
        (search(table, [1], 2, alpha).ids[0, 0] != PAD).sum()
        for alpha in (0.0, 1.0)
    ]
    assert lengths == [1, 4]


def test_texts_are_all_different():
    found = search(draw_table(2), [1, 4], V, 0.6)
    for ids in found.ids:
        assert len(np.unique(ids, axis=0)) == V


def test_texts_without_an_end_come_last():
    table = draw_table(0)
    table[..., END] -= 2.0
    found = search(table, [1, 4, 6, 5], 4, 0.6)
    has_end = (found.ids == END).any(axis=-1)
    assert has_end.any()
    assert not has_end.all()
    np.testing.assert_array_equal(has_end, np.sort(has_end)[:, ::-1])
