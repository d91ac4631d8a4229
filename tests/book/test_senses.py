"""Words with two meanings: fair sentences, and margins with known values."""

import itertools

import numpy as np
import pytest

from bertbook.book.senses import (
    NOUNS,
    POSITION,
    SENSES,
    margin,
    sense_margins,
)
from bertbook.config import BertConfig
from bertbook.model.encoder import BertEncoder
from bertbook.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("mini")


@pytest.mark.parametrize(("word", "texts"), [*SENSES.items(), *NOUNS.items()])
def test_sentences_share_nothing_but_the_word(word, texts, tokenizer):
    rows = [tokenizer.encode(text).tokens for text in texts]
    assert [row.index(word) for row in rows] == [POSITION] * 4
    for one, other in itertools.combinations(rows, 2):
        assert set(one) & set(other) == {word, "[CLS]", "[SEP]"}


def test_margin_by_hand():
    for vectors, expected in (
        ([[1, 0], [2, 0], [0, 1], [0, 3]], 1.0),
        ([[1, 0], [0, 1], [1, 0], [0, 1]], -0.5),
        ([[1, 0], [1, 0], [1, 0], [5, 0]], 0.0),
        ([[1, 0], [1, 0], [-1, 0], [-1, 0]], 2.0),
    ):
        assert margin(np.array(vectors, "float64")) == pytest.approx(expected)


def test_no_word_is_in_both_lists():
    assert not set(SENSES) & set(NOUNS)


def test_margins_are_those_of_each_word_and_state(tokenizer):
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    model = BertEncoder(config)
    found = sense_margins(model, tokenizer)
    assert found.shape == (3, len(SENSES))
    assert np.abs(found[0]).max() < 1e-5  # one word at one position
    out = model(tokenizer(SENSES["mine"]), output_hidden_states=True)
    vectors = np.asarray(out["hidden_states"][2])[:, POSITION]
    column = list(SENSES).index("mine")
    assert found[2, column] == pytest.approx(margin(vectors), abs=1e-5)
