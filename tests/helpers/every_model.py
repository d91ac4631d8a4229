"""One small model of every class, its weights drawn, and batches for it."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from tests.helpers.decoders import causal_config, seq2seq_config
from tests.helpers.decoders import draw_weights as draw_decoder
from tests.helpers.models import to_numpy
from tests.helpers.toys import TOY, toy_config

ENCODERS = (
    "BertEncoder",
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
)
CLASSES = (*ENCODERS, "CausalLM", "Seq2SeqTransformer")
CHOICES = 3


def each_class(*quick):
    """Runs a test for every class, as `kind`; those not named are slow."""
    kinds = [
        kind if kind in quick else pytest.param(kind, marks=pytest.mark.slow)
        for kind in CLASSES
    ]
    return pytest.mark.parametrize("kind", kinds)


def make(kind, **options):
    """Returns a model whose outputs vary, the same one every time."""
    keras.utils.set_random_seed(2)
    if kind in ENCODERS:
        model = getattr(bb, kind)(toy_config(), **options)
        model.tokenizer = TOY
        return draw(model)
    config = causal_config() if kind == "CausalLM" else seq2seq_config()
    model = getattr(bb, kind)(config, **options)
    draw_decoder(model, 0.3)  # sharper attention would magnify rounding
    return model


def draw(model, scale=0.3):
    """Gives every weight of a model a value that shows."""
    random = np.random.default_rng(0)
    for weight in model.weights:
        values = random.normal(0, scale, weight.shape)
        weight.assign(values + weight.path.endswith("gamma"))
    return model


def draw_batch(model, rows=2, length=6, seed=0):
    """Returns the inputs of a model; the first row is padded."""
    random = np.random.default_rng(seed)
    shape = (rows, length)
    if model._input_rank == 3:
        shape = (rows, CHOICES, length)
    batch = {}
    for name in model.input_names:
        if name == "attention_mask":
            array = np.ones(shape)
            array[0, ..., length // 2 :] = 0
        elif name == "token_type_ids":
            array = random.integers(0, 2, shape)
        else:
            array = random.integers(5, 33, shape)
        batch[name] = array.astype("int32")
    return batch


def outputs_of(model, batch):
    """Returns what a model gives, by name, as float32 NumPy arrays."""
    return named(to_numpy(model(batch)))


def named(outputs):
    """Returns outputs by name; a single one is called "logits"."""
    if not isinstance(outputs, dict):
        outputs = {"logits": outputs}
    return {name: np.float32(array) for name, array in outputs.items()}


def check_close(received, expected, tolerance=1e-4):
    """Asserts that outputs have the same names and shapes, and agree."""
    assert received.keys() == expected.keys()
    for name, array in expected.items():
        assert received[name].shape == array.shape, name
        np.testing.assert_allclose(received[name], array, atol=tolerance)
