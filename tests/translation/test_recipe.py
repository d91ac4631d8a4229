"""The recipe of a translator: what is out of range is refused."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from bertbook.translation.train import SMALL, Recipe, Reporting


def test_minutes_become_seconds():
    assert Recipe().seconds is None
    assert Recipe(minutes=1.5).seconds == 90


def test_the_small_translator_fits_into_sixteen_megabytes():
    width, inner = SMALL.hidden_size, SMALL.intermediate_size
    tables = (SMALL.vocab_size + SMALL.target_vocab_size) * width
    attention, worked = 4 * width**2, 2 * width * inner
    encoder = SMALL.num_hidden_layers * (attention + worked)
    decoder = SMALL.decoder_layers * (2 * attention + worked)
    assert 2 * (tables + encoder + decoder) < 15.3e6  # bytes, in float16


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"steps": 2.0},
        {"batch_tokens": 0},
        {"warmup_steps": 0},
        {"checkpoint_steps": 0},
        {"averaged": 0},
        {"minutes": 0},
        {"learning_rate": 0.0},
        {"learning_rate": None},
        {"clip_norm": float("inf")},
        {"label_smoothing": 1.0},
        {"label_smoothing": -0.1},
        {"label_smoothing": None},
        {"label_smoothing": True},
        {"label_smoothing": "much"},
        {"steps": True},
        {"minutes": True},
        {"learning_rate": True},
        {"learning_rate": 10**400},
        {"clip_norm": "1"},
        {"seed": -1},
        {"seed": 2**32},
        {"seed": 1.5},
        {"seed": True},
        {"seed": None},
        {"dtype": "float16"},
        {"dtype": None},
    ],
)
def test_recipe_numbers_out_of_range_are_refused(options):
    (name, value), *_ = options.items()
    told = f"`{name}` must be .* Received: {value!r}"
    with pytest.raises(ValueError, match=told):
        Recipe(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"log_steps": 0},
        {"evaluation_steps": 0},
        {"translated": -1},
        {"translated": True},
        {"verbose": "no"},
    ],
)
def test_reporting_numbers_out_of_range_are_refused(options):
    (name, value), *_ = options.items()
    with pytest.raises(ValueError, match=f"`{name}` must be .* .?{value}"):
        Reporting(**options)


def test_numpy_numbers_of_a_recipe_become_plain_numbers():
    recipe = Recipe(
        steps=np.int64(7),
        seed=np.int32(3),
        label_smoothing=np.float32(0.25),
        learning_rate=np.float64(0.5),
        minutes=np.int16(2),
    )
    plain = Recipe(
        steps=7, seed=3, label_smoothing=0.25, learning_rate=0.5, minutes=2
    )
    assert json.dumps(asdict(recipe)) == json.dumps(asdict(plain))
    assert type(Reporting(translated=np.int64(2)).translated) is int
