"""Going on token by token gives what all tokens at once give."""

from functools import lru_cache

import numpy as np
import pytest

from bertbook.runtime import compile_with
from tests.helpers import decoders
from tests.helpers.decoders import BOS, MODELS, B, S, draw_given, draw_ids
from tests.helpers.models import to_numpy

pytestmark = pytest.mark.usefixtures("plain_graphs")
ROOM = 6
V = {"causal": 33, "seq2seq": 34}


@lru_cache
def compiled(name, use_cache):
    """Returns `start` and `step` of a model, compiled as in `generation`."""
    model = MODELS[name]()
    steps = model.steps(use_cache)
    start = compile_with(model, lambda given: steps.start(given, ROOM))
    return start, compile_with(model, steps.step)


def feed(name, use_cache, given, new):
    """Feeds tokens one by one and returns the logits, (B, ROOM, V)."""
    start, step = compiled(name, use_cache)
    token, slot, history, rest = start(given)
    logits = []
    for number in range(ROOM):
        place = np.int32(slot + number)
        scores, history = step(token, place, history, rest)
        logits.append(to_numpy(scores))
        token = new[:, number]
    return np.stack(logits, axis=1)


def at_once(name, model, given, new, row):
    """Reads a row and its new tokens in one call, as in training."""
    real = given["attention_mask"][row].sum()
    ids = given["input_ids"][row, :real]
    if name == "causal":
        whole = np.concatenate([ids, new[row, :-1]])
        return to_numpy(model({"input_ids": whole[None]}))[0, real - 1 :]
    target = np.concatenate([[BOS], new[row, :-1]])
    batch = {"input_ids": ids[None], "decoder_input_ids": target[None]}
    return to_numpy(model(batch))[0]


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_each_step_gives_the_logits_of_one_call_on_all_tokens(name, use_cache):
    model, given = MODELS[name](), draw_given()
    new = draw_ids(B, ROOM, V[name], seed=7)
    received = feed(name, use_cache, given, new)
    for row in range(B):
        expected = at_once(name, model, given, new, row)
        difference = np.abs(received[row] - expected).max()
        print(f"{name}, row {row}: {difference:.2e}")
        assert difference <= 1e-5


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_padding_and_other_rows_change_nothing(name, use_cache):
    given = draw_given()
    new = draw_ids(B, ROOM, V[name], seed=7)
    together = feed(name, use_cache, given, new)
    row, real = 1, given["attention_mask"][1].sum()
    one = {key: array[[row], :real] for key, array in given.items()}
    alone = feed(name, use_cache, one, new[[row]])
    np.testing.assert_allclose(together[row], alone[0], atol=1e-5)


def test_the_first_token_is_the_last_of_a_prompt_or_the_start():
    given = draw_given()
    lengths = given["attention_mask"].sum(axis=1)
    token, slot, caches, _ = decoders.causal().steps().start(given, ROOM)
    expected = given["input_ids"][np.arange(B), lengths - 1]
    np.testing.assert_array_equal(to_numpy(token), expected)
    assert slot == S
    assert [tuple(key.shape) for key, _ in caches] == [(B, 3, S + ROOM, 8)] * 2
    token, slot, caches, rest = decoders.seq2seq().steps().start(given, ROOM)
    assert (to_numpy(token) == BOS).all()
    assert slot == 0
    assert [tuple(key.shape) for key, _ in caches] == [(B, 3, ROOM, 8)] * 2
    assert [tuple(key.shape) for key, _ in rest["sources"]] == [
        (B, 3, S, 8)
    ] * 2
