"""How often XLA compiles a step of training or evaluation, on JAX.

A TPU takes seconds to compile a step of a small model and minutes for a large
one, so each shape is compiled once, and there are few.
"""

from collections import Counter

import numpy as np
import pytest

import bertbook as bb
from bertbook.batches.batching import BUCKETS, bucketed
from bertbook.batches.ragged import draw_batches
from bertbook.finetuning.finetune import FinetuningOptions, finetune
from bertbook.locations import shelf
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    Reporting,
    pretrain,
)
from bertbook.runtime import choose_backend
from tests.helpers.toys import TOY, toy_config

pytestmark = pytest.mark.skipif(
    choose_backend() != "jax", reason="counts what JAX compiles"
)
EVENT = "/jax/core/compile/backend_compile_duration"
BATCH, EPOCHS, LIMIT = 8, 2, 32
TRAIN, DEV = 203, 43  # both leave a ragged last batch
STEP = "jit(train_step)"


@pytest.fixture
def compiled():
    """A list of the names of what XLA compiles, as it is compiled."""
    import jax

    names = []

    def listen(event, seconds, **facts):
        if event == EVENT:
            names.append(facts["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def draw(rows, seed):
    random = np.random.default_rng(seed)
    words = [random.integers(2, LIMIT - 2) for _ in range(rows)]
    text = [" ".join(random.choice(list("abcdefgh"), n)) for n in words]
    return {"text": text, "label": [row % 2 for row in range(rows)]}


def lengths(data):
    return np.array([len(text.split()) + 2 for text in data["text"]])


def tune(train, dev, **options):
    """Fine-tunes a small model."""
    config = toy_config(max_position_embeddings=LIMIT, num_hidden_layers=1)
    model = bb.BertForSequenceClassification(
        config, num_labels=2, dtype="mixed_bfloat16"
    )
    model.tokenizer = TOY
    finetune(
        model,
        train,
        dev,
        epochs=EPOCHS,
        batch_size=BATCH,
        options=FinetuningOptions(verbose=False, **options),
    )


def test_fine_tuning_compiles_a_step_for_each_bucket(compiled):
    train, dev = draw(TRAIN, 0), draw(DEV, 1)
    tune(train, dev)
    buckets = {
        length
        for epoch in range(EPOCHS)
        for _, length in draw_batches(lengths(train), BATCH, LIMIT, (0, epoch))
    }
    dev_buckets = {n for _, n in bucketed(lengths(dev), BATCH, LIMIT)}
    assert len(buckets) > 2
    counts = Counter(compiled)
    assert counts[STEP] == len(buckets)
    assert counts["jit(predict_step)"] == len(dev_buckets)


def test_packed_rows_compile_no_more_steps_than_there_are_buckets(compiled):
    tune(draw(TRAIN, 0), None, packed=True)
    assert 1 <= Counter(compiled)[STEP] <= len(BUCKETS)


def pretrain_once(out, recipe, evaluated=True, **options):
    return pretrain(
        shelf()[:4],
        out,
        recipe,
        model=toy_config(num_hidden_layers=1),
        tokenizer=TOY,
        examples=ExampleSettings(max_length=16),
        held_out=0.2,
        reporting=Reporting(
            log_steps=2, evaluation_steps=3, checkpoint_steps=3, verbose=False
        ),
        evaluate=None if evaluated else lambda model: {},
        **options,
    )


@pytest.mark.parametrize(
    ("dtype", "evaluated"), [("float32", False), ("mixed_bfloat16", True)]
)
def test_pre_training_compiles_one_step(dtype, evaluated, compiled, tmp_path):
    recipe = PretrainingRecipe(steps=7, batch_size=BATCH, dtype=dtype)
    pretrain_once(tmp_path, recipe, evaluated)
    counts = Counter(compiled)
    assert counts[STEP] == 1
    assert counts["jit(test_step)"] == evaluated


def test_steps_of_one_call_are_compiled_once_and_the_rest_once(
    compiled, tmp_path
):
    recipe = PretrainingRecipe(steps=7, batch_size=BATCH)
    pretrain_once(tmp_path, recipe, steps_per_execution=3)
    counts = Counter(compiled)
    assert counts["jit(compute)"] == 2  # three steps twice, and one
    assert counts["jit(test_step)"] == 1
    assert counts[STEP] == 0


@pytest.mark.parametrize("accumulation", [1, 2])
def test_several_steps_of_one_call_give_the_same_weights(
    accumulation, tmp_path
):
    recipe = PretrainingRecipe(
        steps=7, batch_size=BATCH, accumulation=accumulation
    )
    for count in (1, 3):
        pretrain_once(tmp_path / f"{count}", recipe, steps_per_execution=count)
    one, three = (
        (tmp_path / f"{count}" / "model.safetensors").read_bytes()
        for count in (1, 3)
    )
    assert three == one


def test_parts_of_a_step_are_compiled_once(compiled, tmp_path):
    recipe = PretrainingRecipe(steps=7, batch_size=BATCH, accumulation=2)
    pretrain_once(tmp_path, recipe)
    counts = Counter(compiled)
    assert counts["jit(compute)"] == 1
    assert counts["jit(test_step)"] == 1
