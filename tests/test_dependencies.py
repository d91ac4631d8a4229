"""Who depends on whom, measured."""

import numpy as np
import pytest

from bertbook.dependencies import dependency_matrix
from tests import decoders
from tests.models import to_numpy

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


def test_a_replacement_that_is_there_is_refused():
    with pytest.raises(ValueError, match="`ids` must not hold `other_id`"):
        dependency_matrix(read_gpt, IDS, IDS[0])
