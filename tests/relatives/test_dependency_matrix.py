"""Who depends on whom, measured."""

import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.model.encoder import BertEncoder
from bertbook.relatives.ancestors import hidden_states
from bertbook.relatives.elmo import (
    BidirectionalLM,
    LSTMConfig,
    LSTMLanguageModel,
)
from bertbook.relatives.probes import dependency_matrix
from tests.helpers import decoders
from tests.helpers.models import to_numpy

S, OTHER = 7, 9
IDS = [4, 20, 7, 31, 4, 15, 28]
LOWER = np.tril(np.ones((S, S), bool))


def read_gpt(ids):
    batch = {"input_ids": ids}
    outputs = decoders.causal()(batch, output_hidden_states=True)
    return to_numpy(outputs["hidden_states"][-1])


def test_a_known_dependency_is_found():
    wanted = np.random.default_rng(0).normal(size=(S, S))
    wanted[2, 5] = wanted[4, 1] = 0

    def read(ids):
        return (wanted * ids[0]).sum(axis=1)[None, :, None]

    found = dependency_matrix(read, IDS, OTHER)
    expected = np.abs(wanted * (OTHER - np.array(IDS)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_causal_model_depends_on_itself_and_what_is_before():
    found = dependency_matrix(read_gpt, IDS, OTHER)
    assert np.array_equal(found != 0, LOWER)


def states_of(model):
    def read(ids):
        return to_numpy(hidden_states(model, {"input_ids": ids})[-1])

    return read


def test_an_lstm_depends_on_itself_and_what_is_before():
    sizes = LSTMConfig(
        vocab_size=33, hidden_size=5, widths=(7, 5), initializer_range=1.0
    )
    found = dependency_matrix(states_of(LSTMLanguageModel(sizes)), IDS, OTHER)
    assert np.array_equal(found != 0, LOWER)


def test_elmo_depends_on_all_by_two_triangles():
    sizes = LSTMConfig(
        vocab_size=33, hidden_size=5, widths=(5, 5), initializer_range=1.0
    )
    states, known = states_of(BidirectionalLM(sizes)), {}

    def read(ids):
        key = tuple(map(tuple, ids))
        if key not in known:
            known[key] = states(ids)
        return known[key]

    whole, forward, backward = (
        dependency_matrix(
            lambda ids, part=part: read(ids)[..., part], IDS, OTHER
        )
        for part in (slice(0, 10), slice(0, 5), slice(5, 10))
    )
    assert (whole != 0).all()
    assert np.array_equal(forward != 0, LOWER)
    assert np.array_equal(backward != 0, LOWER.T)


def test_bert_depends_on_all():
    config = BertConfig(
        vocab_size=33,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=9,
        initializer_range=0.2,
    )
    found = dependency_matrix(states_of(BertEncoder(config)), IDS, OTHER)
    assert (found != 0).all()


def test_a_replacement_that_is_there_is_refused():
    with pytest.raises(ValueError, match="`ids` must not hold `other_id`"):
        dependency_matrix(read_gpt, IDS, IDS[0])
