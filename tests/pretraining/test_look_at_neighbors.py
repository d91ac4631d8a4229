"""Heads that look at neighbors from the first step."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.pretraining.attention_init import (
    even_sinusoids,
    look_at_neighbors,
    turn,
)
from bertbook.runtime import keras


def fresh(**changes):
    keras.utils.set_random_seed(1)
    settings = {"vocab_size": 300, "max_position_embeddings": 128} | changes
    return bb.BertForPreTraining(bb.BertConfig.named("tiny", **settings))


def attentions(model, length, seed=0):
    ids = np.random.default_rng(seed).integers(5, 300, (2, length))
    outputs = model.encoder({"input_ids": ids}, output_attentions=True)
    return [keras.ops.convert_to_numpy(a) for a in outputs["attentions"]]


def test_sinusoids_know_their_own_position_alone():
    waves = even_sinusoids(np.arange(128), 64)
    products = waves @ waves.T
    apart = np.abs(np.subtract.outer(np.arange(128), np.arange(128)))
    np.testing.assert_allclose(products[apart == 0], 32)
    np.testing.assert_allclose(products[apart == 64], -32)
    rest = products[(apart != 0) & (apart != 64)]
    np.testing.assert_allclose(rest, 0, atol=1e-10)


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 5])
def test_turn_moves_sinusoids_by_its_offset(offset):
    waves = even_sinusoids(np.arange(20), 64)
    moved = even_sinusoids(np.arange(20) + offset, 64)
    np.testing.assert_allclose(waves @ turn(offset, 64), moved, atol=1e-12)


@pytest.mark.parametrize(("share", "sharpness"), [(0.5, 6.0), (0.8, 9.0)])
def test_heads_attend_at_their_offset(share, sharpness):
    model = fresh()
    look_at_neighbors(model, (-2, 1), share=share, sharpness=sharpness)
    first = attentions(model, 40)[0]  # (B, N, S, S)
    for head, offset in enumerate((-2, 1)):
        rows = np.arange(max(0, -offset), 40 - max(0, offset))
        found = first[:, head].argmax(-1)[:, rows]
        np.testing.assert_array_equal(found, np.tile(rows + offset, (2, 1)))
        weights = first[:, head, rows, rows + offset]
        expected = np.exp(sharpness) / (np.exp(sharpness) + 39)
        assert abs(weights.mean() - expected) < 0.1


def test_later_layers_attend_at_the_same_offset():
    model = fresh()
    look_at_neighbors(model)
    last = attentions(model, 40)[-1]
    beside = last[:, 0, np.arange(1, 40), np.arange(39)]  # to the one before
    assert beside.mean() > 5 / 40


def test_other_heads_and_all_values_keep_their_weights():
    model, same = fresh(), fresh()
    look_at_neighbors(model, (-1,))
    for block, other in zip(
        model.encoder.blocks, same.encoder.blocks, strict=True
    ):
        found = block.attention.query_key_value.kernel.numpy()
        kept = other.attention.query_key_value.kernel.numpy()
        changed = (found != kept).any(axis=0).reshape(3, 2, 64).any(-1)
        assert changed.tolist() == [[True, False], [True, False], [False] * 2]


def test_positions_get_the_stated_share_of_the_variance():
    model = fresh()
    look_at_neighbors(model, share=0.25)
    embeddings = model.encoder.embeddings
    tables = embeddings.token, embeddings.segment
    words = sum(part.embeddings.numpy().var() for part in tables)
    position = np.mean(embeddings.position.table.numpy() ** 2)
    assert position / (position + words) == pytest.approx(0.25, rel=0.02)


def test_too_many_positions_are_refused():
    with pytest.raises(ValueError, match="at most twice .* 128. Received: 129"):
        look_at_neighbors(fresh(max_position_embeddings=129))
