"""ULMFiT: the schedule, a rate for each layer, and what is frozen when."""

import numpy as np
import pytest

from bertbook.relatives.ancestors import TextClassifier
from bertbook.relatives.elmo import LSTMConfig, LSTMLanguageModel
from bertbook.relatives.ulmfit import (
    FACTOR,
    GradualAdam,
    SlantedTriangular,
    fit_gradually,
    layer_groups,
)
from bertbook.runtime import keras, ops
from bertbook.training.losses import classification_loss
from tests.helpers.models import to_numpy

V, D, ROWS, S = 13, 4, 20, 6
GROUPS = ["token", "lstm_0", "lstm_1", "head"]


@pytest.fixture
def classifier():
    keras.utils.set_random_seed(0)
    config = LSTMConfig(
        vocab_size=V, hidden_size=D, widths=(6, D), initializer_range=1.0
    )
    return TextClassifier(LSTMLanguageModel(config), "concat", dropout=0.0)


def draw():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, V, (ROWS, S), "int32")
    ids[:V, 0] = np.arange(V)  # each token is there
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return batch, (ids[:, -1] % 2).astype("int32")


def slanted_by_hand(step, peak, steps, cut=0.1, ratio=32):
    """Equation 3 of the paper."""
    top = int(steps * cut)
    if step < top:
        share = step / top
    else:
        share = 1 - (step - top) / (top * (1 / cut - 1))
    return peak * (1 + share * (ratio - 1)) / ratio


def test_the_schedule_is_that_of_the_paper():
    schedule = SlantedTriangular(0.01, 200)
    rates = [float(schedule(step)) for step in range(200)]
    expected = [slanted_by_hand(step, 0.01, 200) for step in range(200)]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert np.argmax(rates) == 20
    assert rates[0] == pytest.approx(0.01 / 32)
    again = SlantedTriangular.from_config(schedule.get_config())
    assert float(again(7)) == float(schedule(7))
    assert float(SlantedTriangular(0.01, 3)(2)) > 0  # a short run


def variables():
    return [
        [keras.Variable(np.ones(3, "float32")) for _ in range(2)]
        for _ in range(3)
    ]


def changes(groups, adam, gradient=1.0):
    """Applies one step of equal gradients, and returns what each moved by."""
    flat = [variable for group in groups for variable in group]
    before = to_numpy([v.value for v in flat])
    adam.apply([ops.ones(3) * gradient for _ in flat], flat)
    after = to_numpy([v.value for v in flat])
    return np.array(before) - np.array(after)


def test_each_layer_has_the_rate_of_the_one_above_over_2_6():
    groups = variables()
    adam = GradualAdam(groups, learning_rate=0.1)
    adam.unfreeze(3)
    moved = changes(groups, adam)[::2, 0]
    # The first step of Adam is the rate, whatever the gradient.
    np.testing.assert_allclose(moved, [0.1 / 2.6**2, 0.1 / 2.6, 0.1], rtol=1e-4)
    assert FACTOR == 2.6
    assert (adam.beta_1, adam.beta_2) == (0.7, 0.99)


def test_what_is_frozen_stays_bit_by_bit():
    groups = variables()
    adam = GradualAdam(groups, learning_rate=0.1)
    adam.unfreeze(1)
    moved = changes(groups, adam)
    assert (moved[:4] == 0).all()
    assert (moved[4:] > 0).all()
    assert all((to_numpy(m.value) == 0).all() for m in adam._momentums[:4])


def test_what_is_frozen_again_stays_though_it_has_moved():
    groups = variables()
    adam = GradualAdam(groups, learning_rate=0.1)
    adam.unfreeze(3)
    changes(groups, adam)
    adam.unfreeze(1)
    moved = changes(groups, adam)
    assert (moved[:4] == 0).all()
    assert (moved[4:] > 0).all()


def test_a_group_counts_its_steps_from_where_it_is_unfrozen():
    groups = variables()
    adam = GradualAdam(groups, factor=1, learning_rate=0.1)
    adam.unfreeze(1)
    for _ in range(5):
        changes(groups, adam, gradient=100.0)
    adam.unfreeze(2)
    moved = changes(groups, adam, gradient=0.01)
    np.testing.assert_allclose(moved[2:4], 0.1, rtol=1e-4)  # a first step
    assert (moved[:2] == 0).all()


def test_steps_are_those_of_keras_adam():
    groups, other = variables()[:1], keras.Variable(np.ones(3, "float32"))
    adam = GradualAdam(groups, learning_rate=0.1, epsilon=1e-12)
    adam.unfreeze(1)
    theirs = keras.optimizers.Adam(0.1, 0.7, 0.99, epsilon=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(4):
        gradient = rng.normal(size=3).astype("float32")
        adam.apply([ops.array(gradient)] * 2, groups[0])
        theirs.apply([ops.array(gradient)], [other])
    np.testing.assert_allclose(
        to_numpy(groups[0][1].value), to_numpy(other.value), rtol=1e-5
    )


def test_groups_begin_with_the_token_table(classifier):
    batch, _ = draw()
    classifier(batch)
    groups = layer_groups(classifier)
    for name, group in zip(GROUPS, groups, strict=True):
        assert all(name in variable.path for variable in group)
    assert sum(map(len, groups)) == len(classifier.trainable_variables)


@pytest.mark.slow  # ten seconds and more
def test_layers_are_unfrozen_from_the_top(classifier, monkeypatch):
    batch, labels = draw()
    classifier(batch)
    groups = layer_groups(classifier)
    seen = []
    fit = classifier.fit

    def watched(*args, **options):
        before = [to_numpy([v.value for v in group]) for group in groups]
        history = fit(*args, **options)
        after = [to_numpy([v.value for v in group]) for group in groups]
        seen.append([
            all((x != y).any() for x, y in zip(a, b, strict=True))
            for a, b in zip(before, after, strict=True)
        ])  # fmt: skip
        return history

    monkeypatch.setattr(classifier, "fit", watched)
    loss = classification_loss()
    losses = fit_gradually(classifier, batch, labels, loss, 5, 0.01)
    assert len(losses) == 5
    assert seen == [
        [False, False, False, True],
        [False, False, True, True],
        [False, True, True, True],
        [True, True, True, True],
        [True, True, True, True],
    ]


@pytest.mark.slow  # ten seconds and more
def test_without_gradual_unfreezing_all_groups_learn(classifier):
    batch, labels = draw()
    losses = fit_gradually(
        classifier, batch, labels, classification_loss(), 12, 0.05,
        gradual=False, factor=1, batch_size=5,
    )  # fmt: skip
    assert classifier.optimizer.shares == [1, 1, 1, 1]
    assert losses[-1] < 0.7 * losses[0]


def test_bad_numbers_are_refused():
    for call, message in (
        (lambda: SlantedTriangular(0.0, 10), "`peak` must be above 0"),
        (lambda: SlantedTriangular(0.1, 0), "`total_steps` and `ratio` must"),
        (lambda: SlantedTriangular(0.1, 9, cut=1.0), r"`cut` in \(0, 1\)"),
        (lambda: GradualAdam([]), "must hold a group"),
        (lambda: GradualAdam(variables(), 0.5), "`factor` must be >= 1"),
        (lambda: GradualAdam(variables()).unfreeze(4), r"in \[1, 3\].*: 4"),
        (lambda: GradualAdam(variables()).unfreeze(0), r"in \[1, 3\].*: 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_too_few_epochs_are_refused(classifier):
    batch, labels = draw()
    with pytest.raises(ValueError, match="`epochs` must be >= 4"):
        fit_gradually(classifier, batch, labels, classification_loss(), 3, 0.01)
