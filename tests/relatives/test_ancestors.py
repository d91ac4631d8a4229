"""The family: sizes, lessons, and training for a time."""

import itertools

import numpy as np
import pytest

from bertbook.pretraining.masking import Pieces
from bertbook.relatives import ancestors
from bertbook.relatives.ancestors import BOTH, FAMILY, MASKED, NEXT
from bertbook.runtime import keras, may_compile
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import decoders
from tests.helpers.models import to_numpy

PIECES = Pieces.of(decoders.TOKENIZER)
S = 10


def draw_rows(count=8, seed=0):
    rng = np.random.default_rng(seed)
    first, last = len(SPECIAL_TOKENS), len(decoders.TOKENIZER)
    return ancestors.cut_rows(
        rng.integers(first, last, count * (S - 2)), S, PIECES
    )


def test_rows_hold_the_tokens_in_their_order():
    rows = ancestors.cut_rows(np.arange(5, 5 + 3 * 8 + 2), S, PIECES)
    assert rows.shape == (3, S)
    assert rows.dtype == "int32"
    assert (rows[:, 0] == PIECES.cls).all()
    assert (rows[:, -1] == PIECES.sep).all()
    np.testing.assert_array_equal(rows[:, 1:-1].ravel(), np.arange(5, 29))


def test_a_lesson_asks_for_neighbors_and_never_for_special_tokens():
    rows = draw_rows()
    batch, right, weights = ancestors.lesson(BOTH, rows, PIECES)
    assert batch["input_ids"] is rows
    for t in range(S):
        asked = 1 <= t + 1 <= S - 2
        assert (weights["next"][:, t] == asked).all()
        if asked:
            np.testing.assert_array_equal(right["next"][:, t], rows[:, t + 1])
        asked = 1 <= t - 1 <= S - 2
        assert (weights["previous"][:, t] == asked).all()
        if asked:
            found = right["previous"][:, t]
            np.testing.assert_array_equal(found, rows[:, t - 1])
    _, same, one = ancestors.lesson(NEXT, rows, PIECES)
    np.testing.assert_array_equal(same, right["next"])
    np.testing.assert_array_equal(one, weights["next"])


def test_a_lesson_hides_what_it_asks_for():
    rows = draw_rows()
    rng = np.random.default_rng(0)
    batch, right, weights = ancestors.lesson(MASKED, rows, PIECES, rng)
    places = batch["masked_lm_positions"]
    found = np.take_along_axis(rows, places, axis=1)
    assert (found == right)[weights > 0].all()
    assert (batch["input_ids"] != rows).any()
    assert set(batch) == {"input_ids", "masked_lm_positions"}


@pytest.mark.slow  # ten seconds and more
@pytest.mark.parametrize("name", FAMILY)
def test_each_learns_and_is_read_layer_by_layer(name, monkeypatch):
    monkeypatch.setattr(ancestors, "may_compile", lambda _: may_compile(False))
    keras.utils.set_random_seed(0)
    model = ancestors.make_ancestor(name, PIECES, S)
    rows = np.repeat(draw_rows(4), 8, axis=0)
    guesses = FAMILY[name].guesses
    before = ancestors.held_out_loss(model, guesses, rows, PIECES)
    ancestors.compile_ancestor(model, guesses)
    given = ancestors.lessons(guesses, rows, PIECES, 32)
    ticks = itertools.count()
    found = ancestors.train_for(
        model, given, 30, 1e-2, clock=lambda: float(next(ticks))
    )
    assert found["steps"] == 30
    assert found["tokens"] == 30 * rows.size
    assert len(found["curve"]) == ancestors.REPORTS
    after = ancestors.held_out_loss(model, guesses, rows, PIECES)
    assert after < 0.9 * before
    states = ancestors.hidden_states(model, {"input_ids": rows[:2]})
    widths = [state.shape[-1] for state in states]
    assert all(tuple(state.shape[:2]) == (2, S) for state in states)
    one = FAMILY[name]
    if one.guesses == BOTH:
        assert widths == [2 * ancestors.WIDTH] * 3
    elif one.widths:
        assert widths == [ancestors.WIDTH, *one.widths]
    else:
        assert widths == [ancestors.WIDTH] * 5


@pytest.mark.slow  # ten seconds and more
def test_the_family_is_of_one_size():
    """About a million weights each, with the vocabulary of the runs."""
    special = np.zeros(2_048, bool)
    pieces = PIECES._replace(special=special)
    sizes = [
        ancestors.make_ancestor(name, pieces, 64).count_params()
        for name in FAMILY
    ]
    assert min(sizes) > 750_000
    assert max(sizes) < 1_100_000


def test_count_guesses_sums_the_weights_of_a_lesson():
    rows = draw_rows()
    counts = {}
    for guesses in (NEXT, BOTH, MASKED):
        rng = np.random.default_rng(0)
        _, _, weights = ancestors.lesson(guesses, rows, PIECES, rng)
        counts[guesses] = ancestors.count_guesses(weights)
    assert counts[NEXT] == rows[:, 1:-1].size
    assert counts[BOTH] == 2 * counts[NEXT]
    assert 0 < counts[MASKED] < counts[NEXT] / 3


def test_the_rate_goes_up_and_down():
    rates = [ancestors.rate_at(share, 2.0) for share in (0, 0.05, 0.1, 0.55, 1)]
    np.testing.assert_allclose(rates, [0, 1, 2, 1, 0], atol=1e-12)


def test_the_held_out_loss_is_that_of_a_guess():
    model = ancestors.make_ancestor("LSTM", PIECES, S)
    rows = draw_rows()
    logits = to_numpy(model({"input_ids": rows}))[:, : S - 2]
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    right = rows[:, 1:-1]
    chosen = np.take_along_axis(shares, right[:, :, None], axis=-1)
    found = ancestors.held_out_loss(model, NEXT, rows, PIECES, batch_size=3)
    assert found == pytest.approx(-np.log(chosen).mean(), rel=1e-4)


def test_bad_input_is_refused():
    rows = draw_rows(3)
    for call, message in (
        (lambda: ancestors.make_ancestor("GRU", PIECES, S),
         "`name` must be one of LSTM, ELMo, ULMFiT, GPT, BERT"),
        (lambda: ancestors.cut_rows([5] * 7, S, PIECES),
         "`tokens` must fill a row of 10. Received: 7"),
        (lambda: ancestors.lesson("all", rows, PIECES),
         "`guesses` must be one of next, both, masked"),
        (lambda: next(ancestors.lessons(NEXT, rows, PIECES)),
         "`rows` must fill a batch. Received: 3 rows for 16"),
        (lambda: ancestors.train_for(None, None, 0, 1e-3),
         "`seconds` and `peak` must be above 0"),
        (lambda: ancestors.train_for(None, None, 1, 0.0),
         "`seconds` and `peak` must be above 0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
