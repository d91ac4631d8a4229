"""AdamW by its definition, the schedule, and parts that make one step."""

import functools
import gc

import numpy as np
import pytest

from bertbook.runtime import keras, ops
from bertbook.training.optimizers import (
    AdamW,
    InverseSquareRootDecay,
    LayerwiseAdamW,
    WarmupLinearDecay,
    make_optimizer,
)


def rates(*arguments, **keywords):
    schedule = WarmupLinearDecay(*arguments, **keywords)
    return [float(schedule(step)) for step in range(12)]


def test_the_rate_goes_up_in_a_line_then_down_to_zero():
    received = rates(0.6, warmup_steps=3, total_steps=10)
    expected = [
        *(0.2, 0.4, 0.6),
        *(0.6 * left / 8 for left in (7, 6, 5, 4, 3, 2, 1)),
        *(0.0, 0.0),
    ]
    np.testing.assert_allclose(received, expected, rtol=1e-6, atol=1e-9)


def test_a_run_may_end_above_zero():
    received = rates(0.6, warmup_steps=3, total_steps=10, end=0.5)
    expected = [0.3 + 0.3 * left / 8 for left in (7, 6, 5, 4, 3, 2, 1, 0, 0)]
    np.testing.assert_allclose(received[:3], [0.2, 0.4, 0.6], rtol=1e-6)
    np.testing.assert_allclose(received[3:], expected, rtol=1e-6)


def test_parts_of_a_step_share_its_rate():
    whole = rates(0.6, 2, 6)
    parts = rates(0.6, 2, 6, accumulation=2)
    assert parts[0::2] == whole[:6]
    assert parts[1::2] == whole[:6]


def test_the_schedule_can_be_saved():
    schedule = WarmupLinearDecay(0.6, 3, 10, 2, 0.1)
    again = WarmupLinearDecay(**schedule.get_config())
    assert float(again(7)) == float(schedule(7))


@pytest.mark.parametrize(
    "arguments",
    [
        (1.0, 0, 10),
        (1.0, 11, 10),
        (1.0, 1, 10, 0),
        (0.0, 1, 10),
        (1.0, 1, 10, 1, 1.5),
    ],
)
def test_a_bad_schedule_is_refused(arguments):
    with pytest.raises(ValueError, match="Received"):
        WarmupLinearDecay(*arguments)


@pytest.mark.parametrize(("width", "warmup_steps"), [(512, 4_000), (256, 7)])
def test_the_rate_goes_down_by_the_root_as_in_the_paper(width, warmup_steps):
    peak = (width * warmup_steps) ** -0.5
    schedule = InverseSquareRootDecay(peak, warmup_steps)
    for step in (1, 2, warmup_steps - 1, warmup_steps, 9 * warmup_steps + 5):
        # Vaswani et al. (2017), equation 3; its first step is 1.
        expected = width**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
        assert float(schedule(step - 1)) == pytest.approx(expected, rel=1e-5)
    assert float(schedule(warmup_steps - 1)) == pytest.approx(peak, rel=1e-6)
    half = float(schedule(4 * warmup_steps - 1))
    assert half == pytest.approx(peak / 2, rel=1e-5)


def test_the_root_schedule_can_be_saved():
    schedule = InverseSquareRootDecay(0.6, 3)
    again = InverseSquareRootDecay(**schedule.get_config())
    assert float(again(7)) == float(schedule(7))


@pytest.mark.parametrize("arguments", [(1.0, 0), (0.0, 3), (-1.0, 3)])
def test_a_bad_root_schedule_is_refused(arguments):
    with pytest.raises(ValueError, match="Received"):
        InverseSquareRootDecay(*arguments)


class Point(keras.layers.Layer):
    """Three weights, named as those of a dense layer and a norm."""

    def build(self, _):
        self.kernel, self.bias, self.gamma = (
            self.add_weight(shape=(2,), initializer="ones", name=name)
            for name in ("kernel", "bias", "gamma")
        )


def adamw_by_hand(weights, gradients, rate, decay, clip, steps, epsilon=1e-6):
    """The definition, in NumPy; only the first weight decays."""
    first = [np.zeros(2) for _ in weights]
    second = [np.zeros(2) for _ in weights]
    for t in range(1, steps + 1):
        norm = np.sqrt(sum((g**2).sum() for g in gradients))
        clipped = [g * min(1.0, clip / norm) for g in gradients]
        for i, g in enumerate(clipped):
            if i == 0:
                weights[i] = weights[i] * (1 - rate * decay)
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            mean = first[i] / (1 - 0.9**t)
            root = np.sqrt(second[i] / (1 - 0.999**t))
            weights[i] = weights[i] - rate * mean / (root + epsilon)
    return weights


@pytest.mark.parametrize("clip", [1.0, 100.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5])
def test_adamw_computes_its_definition(clip, epsilon):
    layer = Point()
    layer.build(None)
    gradients = [np.array([3.0, -1.0]), np.array([0.5, 2.0]), np.ones(2)]
    optimizer = make_optimizer(
        0.1, weight_decay=0.3, clip_norm=clip, epsilon=epsilon
    )
    for _ in range(4):
        optimizer.apply(
            [ops.convert_to_tensor(g, "float32") for g in gradients],
            layer.trainable_variables,
        )
    expected = adamw_by_hand(
        [np.ones(2)] * 3, gradients, 0.1, 0.3, clip, 4, epsilon
    )
    for weight, value in zip(layer.weights, expected, strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(weight), value, rtol=1e-5
        )


@pytest.mark.parametrize("accumulation", [1, 2])
def test_rows_looked_up_several_times_are_clipped_as_their_sum(accumulation):
    model = keras.Sequential(
        [keras.layers.Embedding(3, 2, embeddings_initializer="ones")]
    )
    optimizer = make_optimizer(
        0.1, weight_decay=0.0, epsilon=1.0, accumulation=accumulation
    )
    model.compile(optimizer, loss=lambda _, found: ops.sum(found))
    for _ in range(accumulation):
        model.train_on_batch(np.array([[0, 0, 0, 1]]), np.zeros((1, 4, 2)))
    gradient = np.array([[3.0, 3.0], [1.0, 1.0], [0.0, 0.0]])
    gradient /= np.linalg.norm(gradient)  # above 1, the largest that is left
    step = 0.1 * gradient / (gradient + 1.0)
    np.testing.assert_allclose(model.get_weights()[0], 1 - step, atol=1e-6)


def test_a_rate_of_a_schedule_can_be_lowered():
    """One step at half the rate, decay too, then half of the next one."""
    schedule = WarmupLinearDecay(0.4, 1, 4)
    kind = functools.partial(AdamW, adjustable=True)
    optimizer = make_optimizer(schedule, kind=kind)
    layer, gradient = Point(), np.array([0.1, -0.2], "float32")
    layer.build(None)
    optimizer.build(layer.trainable_variables)
    assert float(optimizer.learning_rate) == pytest.approx(0.4)
    optimizer.learning_rate = 0.2
    gradients = [gradient] * 3
    optimizer.apply([ops.convert_to_tensor(g) for g in gradients])
    expected = adamw_by_hand([np.ones(2)] * 3, gradients, 0.2, 0.01, 1.0, 1)
    for weight, wanted in zip(layer.weights, expected, strict=True):
        np.testing.assert_allclose(weight, wanted, rtol=1e-5)
    rate = float(schedule(1)) / 2
    assert float(optimizer.learning_rate) == pytest.approx(rate)
    again = AdamW.from_config(optimizer.get_config())
    assert again.adjustable
    with pytest.raises(TypeError):  # as Keras has it
        make_optimizer(schedule).learning_rate = 0.2


def test_amsgrad_is_refused():
    with pytest.raises(ValueError, match="amsgrad"):
        AdamW(amsgrad=True)


def test_each_variable_may_have_a_rate_of_its_own():
    layer = Point()
    layer.build(None)
    rates = [1.0, 0.5, 0.25]
    kind = functools.partial(LayerwiseAdamW, rates)
    optimizer = make_optimizer(0.1, weight_decay=0.0, kind=kind)
    gradients = [np.array([3.0, -1.0]), np.array([0.5, 2.0]), np.ones(2)]
    optimizer.apply(
        [ops.convert_to_tensor(g, "float32") for g in gradients],
        layer.trainable_variables,
    )
    expected = adamw_by_hand([np.ones(2)] * 3, gradients, 0.1, 0.0, 1.0, 1)
    for rate, weight, value in zip(rates, layer.weights, expected, strict=True):
        moved = ops.convert_to_numpy(weight) - 1
        np.testing.assert_allclose(moved, rate * (value - 1), rtol=1e-4)


def test_the_rates_can_be_saved():
    optimizer = LayerwiseAdamW([1.0, 0.5], learning_rate=0.1)
    stored = keras.saving.serialize_keras_object(optimizer)
    again = keras.saving.deserialize_keras_object(stored)
    assert isinstance(again, LayerwiseAdamW)
    assert again.rates == [1.0, 0.5]


def test_norms_and_biases_of_a_model_do_not_decay():
    import bertbook as bb

    model = bb.BertForPreTraining(
        bb.BertConfig.named("tiny", vocab_size=11, max_position_embeddings=8)
    )
    optimizer = make_optimizer(0.1)
    optimizer.build(model.trainable_variables)
    decaying = {
        variable.path.rpartition("/")[2]
        for variable in model.trainable_variables
        if optimizer._use_weight_decay(variable)
    }
    assert decaying == {"kernel", "embeddings", "table"}


def test_the_defaults_are_those_of_googles_code():
    optimizer = make_optimizer(0.1)
    assert optimizer.weight_decay == 0.01
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.999)
    assert optimizer.epsilon == 1e-6
    assert optimizer.global_clipnorm == 1.0


def test_loss_scaling_is_on_demand():
    scaled = make_optimizer(0.1, scale_loss=True)
    assert isinstance(scaled, keras.optimizers.LossScaleOptimizer)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="needs TensorFlow"
)
def test_a_model_that_was_trained_can_be_forgotten():
    """TensorFlow keeps the graphs of some gradients; no step is in them."""

    def steps():
        gc.collect()
        graphs = [
            x for x in gc.get_objects() if type(x).__name__ == "FuncGraph"
        ]
        return [graph.name for graph in graphs].count("one_step_on_data")

    before = steps()
    table = keras.layers.Embedding(5, 3)
    model = keras.Sequential([table, keras.layers.Dense(1)])
    model.compile(AdamW(learning_rate=0.1, global_clipnorm=1.0), "mse")
    model.fit(np.ones((2, 4)), np.ones((2, 4, 1)), verbose=0)
    assert steps() > before
    del model, table
    keras.backend.clear_session()
    assert steps() == before
