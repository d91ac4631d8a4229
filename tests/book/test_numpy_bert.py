"""The BERT in NumPy: the package's numbers, and each fault moves them."""

import numpy as np
import pytest

from bertbook.book import numpy_bert
from bertbook.book.numpy_bert import How
from bertbook.model.encoder import BertEncoder
from bertbook.weights.names import encoder_names
from bertbook.weights.pretrained import named_tensors
from tests.helpers.toys import toy_config

BATCH = {
    "input_ids": np.array([[2, 9, 8, 3, 7, 3], [2, 5, 3, 6, 0, 0]], "int32"),
    "token_type_ids": np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]]),
    "attention_mask": np.array([[1] * 6, [1, 1, 1, 1, 0, 0]], "int32"),
}
REAL = BATCH["attention_mask"] != 0


@pytest.fixture(scope="module")
def both():
    """The package's hidden states, and the weights under their names."""
    model = BertEncoder(toy_config())
    rng = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape))
    states = model(BATCH, output_hidden_states=True)["hidden_states"]
    ours = {n: np.array(t) for n, t in named_tensors(model).items()}
    weights = {}
    for row in encoder_names(model.config.num_hidden_layers):
        array = ours[row.bertbook].astype("float64")
        is_matrix = row.bertbook.endswith("kernel")
        weights[row.hugging_face] = array.T if is_matrix else array
    heads = model.config.num_attention_heads
    return np.stack([np.asarray(h) for h in states]), weights, heads


def gap(states, other):
    return np.abs(states - other)[:, REAL].max(axis=(1, 2))


def test_agrees_with_the_package_in_every_hidden_state(both):
    states, weights, heads = both
    found = numpy_bert.numpy_bert(BATCH, weights, heads)
    assert found.shape == states.shape
    assert gap(found, states).max() < 1e-4


@pytest.mark.parametrize(
    ("how", "first"),
    [
        (How(epsilon=1e-3), 0),
        (How(drop=lambda x: 0.9 * x), 0),
        (How(norm_first=True), 1),
        (How(gelu=numpy_bert.gelu_tanh), 1),
    ],
)
def test_each_change_is_seen_from_its_layer_on(how, first, both):
    _, weights, heads = both
    right = numpy_bert.numpy_bert(BATCH, weights, heads)
    moved = gap(numpy_bert.numpy_bert(BATCH, weights, heads, how), right)
    assert (moved[:first] == 0).all()
    assert (moved[first:] > 1e-6).all()


def test_it_imports_nothing_of_the_package():
    with open(numpy_bert.__file__, encoding="utf-8") as file:
        text = file.read()
    lines = [line for line in text.splitlines() if "import" in line]
    assert "import numpy as np" in lines
    assert not any("bertbook" in line for line in lines)
