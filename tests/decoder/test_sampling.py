"""Choosing a token: by loops, by counting, and what each option leaves."""

import numpy as np
import pytest

from bertbook.decoder.search import candidates, draw, go_on, likeliest
from tests.helpers.models import to_numpy
from tests.helpers.searches import END, PAD, Table

B, V = 3, 7


def draw_logits(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=2, size=(B, V)).astype("float32")


def candidates_by_loops(logits, temperature, top_k, top_p):
    """The definition, for one row: {token: probability}."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    order = order[:top_k]
    weights = [np.exp(logits[token] / temperature) for token in order]
    kept, so_far = {}, 0.0
    for token, weight in zip(order, weights, strict=True):
        if so_far < top_p * sum(weights):
            kept[token] = weight
        so_far += weight
    return {token: w / sum(kept.values()) for token, w in kept.items()}


# Definition.


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, 1.0), (0.5, 3, 1.0), (2.0, None, 0.6), (1.5, 4, 0.8)],
)
def test_candidates_are_those_of_the_definition(temperature, top_k, top_p):
    logits = draw_logits()
    ids, weights = to_numpy(list(candidates(logits, temperature, top_k, top_p)))
    assert ids.shape == weights.shape == (B, top_k or V)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)
    for row in range(B):
        expected = candidates_by_loops(logits[row], temperature, top_k, top_p)
        pairs = zip(ids[row].tolist(), weights[row].tolist(), strict=True)
        received = {token: weight for token, weight in pairs if weight > 0}
        assert list(received) == list(expected)
        assert received == pytest.approx(expected, abs=1e-6)


def test_a_uniform_number_draws_the_token_in_whose_share_it_falls():
    ids = np.array([[5, 2, 6, 0]])
    weights = np.array([[0.5, 0.25, 0.25, 0.0]], "float32")
    largest = np.nextafter(np.float32(1), np.float32(0))
    expected = {0.0: 5, 0.49: 5, 0.5: 2, 0.74: 2, 0.75: 6, float(largest): 6}
    for number, token in expected.items():
        drawn = draw(ids, weights, np.array([number], "float32"))
        assert to_numpy(drawn).tolist() == [token]


def test_go_on_is_a_loop_over_tokens():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(V, V)).astype("float32")
    first, length = [1, 4, 6], 9
    received = to_numpy(
        go_on(Table(table, first), None, length, likeliest, END, PAD)
    )
    for row, token in enumerate(first):
        expected = []
        while len(expected) < length and END not in expected:
            token = int(table[token].argmax())
            expected.append(token)
        expected += [PAD] * (length - len(expected))
        assert received[row].tolist() == expected


# Properties.


def test_every_row_stops_at_its_own_end():
    table = np.full((V, V), -9.0)
    for token, following in {1: 2, 2: END, 4: 5, 5: 6, 6: 4, END: 1}.items():
        table[token, following] = 9.0
    ids = to_numpy(go_on(Table(table, [1, 4, 2]), None, 5, likeliest, END, PAD))
    assert ids.tolist() == [
        [2, END, PAD, PAD, PAD],
        [5, 6, 4, 5, 6],
        [END, PAD, PAD, PAD, PAD],
    ]


def test_the_loop_ends_when_all_rows_have():
    table = np.full((V, V), -9.0)
    table[:, END] = 9.0
    calls = []

    class Counting(Table):
        def step(self, token, slot, history, given):
            calls.append(slot)
            return super().step(token, slot, history, given)

    go_on(Counting(table, [1, 2]), None, 50, likeliest, END, PAD)
    assert len(calls) < 5


def test_tokens_are_drawn_as_often_as_they_are_probable():
    logits = np.tile(draw_logits()[:1], (5_000, 1))
    ids, weights = candidates(logits, 1.3, top_k=4)
    numbers = np.random.default_rng(0).random(5_000, "float32")
    drawn = to_numpy(draw(ids, weights, numbers))
    for token, weight in zip(*to_numpy([ids[0], weights[0]]), strict=True):
        share = (drawn == token).mean()
        assert abs(share - weight) < 4 * np.sqrt(weight / 5_000)


def test_one_candidate_is_the_likeliest():
    for options in ({"top_k": 1}, {"top_p": 1e-6}, {"top_p": 1e-10}):
        logits = draw_logits()
        ids, weights = candidates(logits, **options)
        numbers = np.full(B, 0.999, "float32")
        np.testing.assert_array_equal(
            to_numpy(draw(ids, weights, numbers)), logits.argmax(axis=-1)
        )


def test_a_low_temperature_tends_to_the_likeliest_a_high_one_to_chance():
    logits = draw_logits()
    _, cold = candidates(logits, 0.01)
    _, hot = candidates(logits, 1e4)
    np.testing.assert_allclose(to_numpy(cold)[:, 0], 1.0, atol=1e-5)
    np.testing.assert_allclose(to_numpy(hot), 1 / V, atol=1e-3)
