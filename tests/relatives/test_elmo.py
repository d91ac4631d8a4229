"""LSTM language models: one direction, both, and a weighted sum of layers."""

import numpy as np
import pytest

from bertbook.relatives.elmo import (
    BidirectionalLM,
    LayerMix,
    LSTMConfig,
    LSTMLanguageModel,
    LSTMStack,
)
from bertbook.runtime import keras, ops
from tests.helpers.models import A_STEP, to_numpy

B, S, V, D = 3, 7, 19, 5


def config(**options):
    sizes = {"vocab_size": V, "hidden_size": D, "widths": (11, D)}
    return LSTMConfig(**sizes | {"initializer_range": 1.0} | options)


def draw_ids(seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, V, (B, S), "int32")


def lstm_by_loops(vectors, kernel, recurrent, bias):
    """The definition, one token at a time: gates i, f, c, o, NumPy only."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    hidden = cell = np.zeros((len(vectors), recurrent.shape[0]))
    states = []
    for t in range(vectors.shape[1]):
        gates = vectors[:, t] @ kernel + hidden @ recurrent + bias
        i, f, c, o = np.split(gates, 4, axis=-1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        hidden = sigmoid(o) * np.tanh(cell)
        states.append(hidden)
    return np.stack(states, axis=1)


def test_a_layer_matches_the_definition():
    model = LSTMLanguageModel(config())
    vectors, first, _ = to_numpy(model.hidden_states({"input_ids": draw_ids()}))
    weights = to_numpy(model.stack.parts[0].weights)
    np.testing.assert_allclose(
        first, lstm_by_loops(vectors, *weights), atol=1e-5
    )


def test_a_stack_backwards_is_one_forwards_on_turned_rows():
    vectors = np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")
    there = LSTMStack(config())
    back = LSTMStack(config(), backwards=True)
    expected = there(vectors[:, ::-1])
    back(vectors)
    back.set_weights(there.get_weights())
    for one, other in zip(back(vectors), expected, strict=True):
        np.testing.assert_allclose(
            to_numpy(one), to_numpy(other)[:, ::-1], atol=1e-6
        )


def test_logits_and_hidden_states_have_their_shapes():
    model = LSTMLanguageModel(config())
    batch = {"input_ids": draw_ids()}
    assert tuple(model(batch).shape) == (B, S, V)
    shapes = [tuple(x.shape) for x in model.hidden_states(batch)]
    assert shapes == [(B, S, D), (B, S, 11), (B, S, D)]


def test_a_later_token_changes_no_earlier_score():
    """The language model of one direction is causal: exactly 0."""
    model = LSTMLanguageModel(config())
    ids = draw_ids()
    before = to_numpy(model({"input_ids": ids}))
    for t in range(1, S):
        changed = ids.copy()
        changed[:, t:] = (changed[:, t:] + 1) % V
        after = to_numpy(model({"input_ids": changed}))
        np.testing.assert_array_equal(before[:, :t], after[:, :t])
        assert (before[:, t] != after[:, t]).any()


def test_scores_are_products_with_the_token_table():
    model = LSTMLanguageModel(config())
    batch = {"input_ids": draw_ids()}
    last = to_numpy(model.hidden_states(batch)[-1])
    table = to_numpy(model.token.embeddings)
    np.testing.assert_allclose(
        to_numpy(model(batch)), last @ table.T, atol=1e-5
    )


def test_both_directions_stand_side_by_side():
    """Forward and backward states make vectors of width 2 h."""
    model = BidirectionalLM(config(widths=(D, D)))
    batch = {"input_ids": draw_ids()}
    forward, backward = model.directions(batch)
    both = model.hidden_states(batch)
    assert [tuple(x.shape) for x in both] == [(B, S, 2 * D)] * 3
    for f, b, joined in zip(forward, backward, both, strict=True):
        np.testing.assert_array_equal(
            np.concatenate(to_numpy([f, b]), axis=-1), to_numpy(joined)
        )
    scores = model(batch)
    assert {k: tuple(v.shape) for k, v in scores.items()} == {
        "next": (B, S, V), "previous": (B, S, V),
    }  # fmt: skip


def test_neither_direction_is_asked_for_what_it_sees():
    model = BidirectionalLM(config(widths=(D, D)))
    ids, t = draw_ids(), 3
    changed = ids.copy()
    changed[:, t] = (changed[:, t] + 1) % V
    one, other = (to_numpy(model({"input_ids": x})) for x in (ids, changed))
    # At t - 1 the next token is asked for, at t + 1 the previous one.
    np.testing.assert_array_equal(one["next"][:, :t], other["next"][:, :t])
    np.testing.assert_array_equal(
        one["previous"][:, t + 1 :], other["previous"][:, t + 1 :]
    )


@pytest.mark.parametrize("kind", [LSTMLanguageModel, BidirectionalLM])
def test_padding_changes_nothing(kind):
    model = kind(config(widths=(D, D)))
    ids = draw_ids()
    mask = np.ones_like(ids)
    longer = np.pad(ids, ((0, 0), (0, 2)), constant_values=4)
    mask = np.pad(mask, ((0, 0), (0, 2)))
    alone = model.hidden_states({"input_ids": ids})
    padded = model.hidden_states({"input_ids": longer, "attention_mask": mask})
    for one, other in zip(alone, padded, strict=True):
        one, other = to_numpy([one, other])
        np.testing.assert_allclose(one, other[:, :S], atol=1e-6)
    assert (to_numpy(padded[-1])[:, S:] == 0).all()


def test_a_mix_is_the_weighted_sum():
    """Gamma times the sum of s_j times layer j, by hand in NumPy."""
    layers = np.random.default_rng(2).normal(size=(3, B, S, D))
    layers = list(layers.astype("float32"))
    mix = LayerMix(3)
    np.testing.assert_allclose(
        to_numpy(mix(layers)), np.mean(layers, axis=0), atol=1e-6
    )
    mix.scores.assign([0.0, 1.0, -2.0])
    mix.gamma.assign(0.7)
    shares = np.exp([0.0, 1.0, -2.0])
    shares /= shares.sum()
    expected = 0.7 * sum(s * x for s, x in zip(shares, layers, strict=True))
    np.testing.assert_allclose(to_numpy(mix(layers)), expected, atol=1e-6)
    assert len(mix.trainable_weights) == 2


def test_every_weight_is_trained():
    model = BidirectionalLM(config(widths=(D, D)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", {"next": loss, "previous": loss}, **A_STEP)
    before = to_numpy(model.trainable_weights)
    ids = draw_ids()
    right = {"next": ids, "previous": ids}
    model.fit({"input_ids": ids}, right, verbose=0)
    assert len(before) == 1 + 2 * 2 * 3
    for old, new in zip(before, model.trainable_weights, strict=True):
        assert not np.array_equal(old, to_numpy(new)), new.path


def test_weights_are_saved_and_loaded(tmp_path):
    model, other = (BidirectionalLM(config(widths=(D, D))) for _ in range(2))
    batch = {"input_ids": draw_ids()}
    model.save_weights(tmp_path / "one.weights.h5")
    other.load_weights(tmp_path / "one.weights.h5")
    np.testing.assert_array_equal(
        *(to_numpy(m(batch)["previous"]) for m in (model, other))
    )


def test_a_bad_config_is_refused():
    for options, message in (
        ({"vocab_size": 0}, "integers >= 1"),
        ({"widths": (4, 2.5)}, "integers >= 1"),
        ({"widths": (5, 4)}, "`widths` must end in `hidden_size`"),
        ({"widths": ()}, "`widths` must end in `hidden_size`"),
        ({"hidden_dropout_prob": 1.0}, r"must be in \[0, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            config(**options)


def test_bad_input_is_refused():
    for kind in (LSTMLanguageModel, BidirectionalLM):
        with pytest.raises(ValueError, match="must be an `LSTMConfig`"):
            kind({"vocab_size": 5})
    with pytest.raises(ValueError, match="must all be `hidden_size`"):
        BidirectionalLM(config())
    with pytest.raises(ValueError, match="`num_layers` must be >= 1"):
        LayerMix(0)
    mix, layer = LayerMix(2), ops.zeros((B, S, D))
    for layers in ([layer] * 3, [layer, ops.zeros((B, S, D + 1))]):
        with pytest.raises(ValueError, match="must be 2 tensors of one width"):
            mix(layers)
