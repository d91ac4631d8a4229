"""One block for all layers."""

import numpy as np
import pytest

from bertbook.model.bert import BertForPreTraining
from bertbook.model.encoder import BertEncoder
from bertbook.relatives.albert import (
    ALBERT_BASE,
    count_shared,
    share_blocks,
)
from bertbook.runtime import keras
from bertbook.weights.names import count_parameters
from tests.helpers.models import to_numpy
from tests.helpers.toys import TOY, toy_config

CONFIG = toy_config(num_hidden_layers=3)
BATCH = TOY(["ab c", "d"])


def test_share_blocks_runs_the_first_block_at_each_layer():
    keras.utils.set_random_seed(0)
    model = BertEncoder(CONFIG)
    block = model.blocks[0]
    states = to_numpy(
        share_blocks(model)(BATCH, output_hidden_states=True)["hidden_states"]
    )
    mask = np.asarray(BATCH["attention_mask"], bool)[:, None, None]
    for before, after in zip(states[:-1], states[1:], strict=True):
        again = to_numpy(block(before, attention_mask=mask))
        np.testing.assert_allclose(again, after, atol=1e-5)
    assert len(states) == 4


def test_the_weights_are_counted_once():
    model = share_blocks(BertEncoder(CONFIG))
    assert model.count_params() == count_shared(CONFIG)
    one = CONFIG.replace(num_hidden_layers=1)
    assert count_shared(CONFIG) == count_parameters(one)
    names = [weight.path for weight in model.trainable_variables]
    assert len(names) == len(BertEncoder(one).trainable_variables)


def test_a_step_changes_every_layer_at_once():
    model = share_blocks(BertForPreTraining(CONFIG))
    positions = np.array([[1, 2], [1, 0]], "int32")
    batch = {**BATCH, "masked_lm_positions": positions}
    before = to_numpy(model(batch))
    whole = to_numpy(model(BATCH))["mlm_logits"]
    rows = np.take_along_axis(whole, positions[..., None], axis=1)
    np.testing.assert_allclose(before["mlm_logits"], rows, atol=1e-5)
    weight = model.encoder.blocks[0].feed_forward.expand.kernel
    weight.assign(2 * weight)
    assert np.abs(to_numpy(model(batch))["mlm_logits"] - rows).max() > 1e-4


def test_count_shared_gives_the_published_count():
    assert count_shared(ALBERT_BASE, 128) == 11_683_584


def test_bad_input_is_refused():
    model = share_blocks(BertForPreTraining(CONFIG))
    assert isinstance(model, BertForPreTraining)
    with pytest.raises(ValueError, match="whose layers share"):
        share_blocks(model)
    with pytest.raises(ValueError, match="Received: 0"):
        count_shared(CONFIG, 0)
