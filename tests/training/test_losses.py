"""The smoothed loss: by loops, against Keras, at its limits."""

import numpy as np
import pytest

from bertbook.runtime import keras
from bertbook.training.losses import SmoothedLoss, classification_loss
from tests.helpers.models import to_numpy

B, T, V = 2, 3, 7


def draw_case():
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=2, size=(B, T, V)).astype("float32")
    return rng.integers(0, V, (B, T), "int32"), logits


def smoothed_by_loops(labels, logits, smoothing):
    """The definition: the label keeps its share, all V have the rest."""
    losses = np.zeros((B, T))
    for b, t in np.ndindex(B, T):
        log_sum = np.log(np.exp(logits[b, t]).sum())
        for token in range(V):
            share = smoothing / V + (1 - smoothing) * (token == labels[b, t])
            losses[b, t] -= share * (logits[b, t, token] - log_sum)
    return losses


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_each_token_has_the_loss_of_the_definition(smoothing):
    labels, logits = draw_case()
    received = SmoothedLoss(smoothing, reduction=None)(labels, logits)
    expected = smoothed_by_loops(labels, logits, smoothing)
    np.testing.assert_allclose(to_numpy(received), expected, atol=1e-5)


def test_smoothed_loss_is_that_of_keras_on_one_hot_labels():
    labels, logits = draw_case()
    peer = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=0.1, reduction=None
    )
    expected = peer(np.eye(V, dtype="float32")[labels], logits)
    received = SmoothedLoss(0.1, reduction=None)(labels, logits)
    np.testing.assert_allclose(*to_numpy([received, expected]), atol=1e-5)


def test_without_smoothing_it_is_the_plain_loss_and_padding_counts_nothing():
    labels, logits = draw_case()
    weights = np.array([[1, 1, 0], [1, 0, 0]], "float32")
    plain, smoothed = (
        to_numpy(loss(labels, logits, weights))
        for loss in (classification_loss(), SmoothedLoss(0.0))
    )
    assert smoothed == pytest.approx(plain, rel=1e-6)
    labels[weights == 0] = 0
    again = to_numpy(SmoothedLoss(0.0)(labels, logits, weights))
    assert again == pytest.approx(plain, rel=1e-6)


def test_smoothed_loss_is_least_where_the_right_token_is_not_certain():
    labels = np.zeros((1, 1), "int32")
    losses = [
        float(SmoothedLoss(0.1)(labels, np.array([[[x, 0.0, 0.0]]], "float32")))
        for x in (0.0, 3.3, 20.0)
    ]
    assert losses[1] < losses[0]
    assert losses[1] < losses[2]


def test_smoothed_loss_can_be_saved():
    config = keras.losses.serialize(SmoothedLoss(0.2, "sum"))
    again = keras.losses.deserialize(config)
    assert (again.smoothing, again.reduction) == (0.2, "sum")


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_a_smoothing_out_of_range_is_refused(smoothing):
    with pytest.raises(ValueError, match=f"`smoothing` .* {smoothing}"):
        SmoothedLoss(smoothing)
