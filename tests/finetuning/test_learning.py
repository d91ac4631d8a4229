"""Fine-tuning learns a small example of every task."""

import pytest

from bertbook.runtime import keras
from tests.helpers.tasks import TASKS, learn
from tests.helpers.toys import PIECES

pytestmark = pytest.mark.usefixtures("graphs")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_learned(name):
    learn(name)


def test_float16_scales_the_loss_and_learns():
    model = learn("one label", dtype="mixed_float16")
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}


def test_the_words_are_in_the_vocabulary():
    for name in ("one label", "several labels", "a number"):
        for text in TASKS[name][2]()["text"]:
            assert set(text.split()) <= set(PIECES)
