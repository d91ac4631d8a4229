"""Weights of the last steps, and their mean."""

import numpy as np
import pytest

from bertbook.runtime import keras
from bertbook.training.checkpoint import average_weights, keep_weights


def make_model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.set_weights([np.zeros((3, 2)), np.zeros(2)])
    return model


def test_the_mean_is_that_of_the_last_steps(tmp_path):
    model, rng = make_model(), np.random.default_rng(0)
    history = []
    for step in (5, 90, 1_000, 12_000):
        history.append([rng.normal(size=(3, 2)), rng.normal(size=2)])
        model.set_weights(history[-1])
        keep_weights(tmp_path / "kept", step, model, max_to_keep=3)
    names = sorted(path.name for path in (tmp_path / "kept").glob("weights-*"))
    assert names == [
        f"weights-{step:08d}.safetensors" for step in (90, 1_000, 12_000)
    ]
    average_weights(tmp_path / "kept", model)
    for number, received in enumerate(model.get_weights()):
        expected = np.mean([weights[number] for weights in history[1:]], axis=0)
        np.testing.assert_allclose(received, expected, atol=1e-6)


def test_one_step_is_its_own_mean_and_may_be_overwritten(tmp_path):
    model = make_model()
    for value in (1.0, 2.0):
        model.set_weights([np.full((3, 2), value), np.full(2, value)])
        keep_weights(tmp_path, 7, model, max_to_keep=1)
    model.set_weights(make_model().get_weights())
    average_weights(tmp_path, model)
    assert (model.get_weights()[1] == 2.0).all()


def test_a_folder_without_weights_to_average_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="No weights to average"):
        average_weights(tmp_path, make_model())


def test_a_cut_file_is_named_as_damaged(tmp_path):
    model = make_model()
    keep_weights(tmp_path, 7, model, max_to_keep=1)
    (path,) = tmp_path.glob("weights-*")
    whole = path.read_bytes()
    for part in (whole[: len(whole) // 2], whole[:5], b""):
        path.write_bytes(part)
        with pytest.raises(ValueError, match=rf"{path.name} is damaged"):
            average_weights(tmp_path, model)
