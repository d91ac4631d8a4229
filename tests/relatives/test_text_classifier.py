"""One classifier for every reader, and how a text becomes one vector."""

import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.model.encoder import BertEncoder
from bertbook.relatives.ancestors import POOLINGS, TextClassifier, pool
from bertbook.relatives.elmo import (
    BidirectionalLM,
    LSTMConfig,
    LSTMLanguageModel,
)
from bertbook.runtime import keras
from bertbook.training.losses import classification_loss
from tests.helpers import decoders
from tests.helpers.models import to_numpy

B, S, D, V = 3, 5, 4, 11
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
VECTORS = np.random.default_rng(0).normal(size=(B, S, D)).astype("float32")


def test_pooling_matches_the_definition():
    real = [VECTORS[b, : MASK[b].sum()] for b in range(B)]
    expected = {
        "first": np.stack([x[0] for x in real]),
        "last": np.stack([x[-1] for x in real]),
        "mean": np.stack([x.mean(axis=0) for x in real]),
    }
    highest = np.stack([x.max(axis=0) for x in real])
    expected["concat"] = np.concatenate(
        [expected["last"], highest, expected["mean"]], axis=-1
    )
    for name, vectors in expected.items():
        found = to_numpy(pool(VECTORS, MASK, name))
        np.testing.assert_allclose(found, vectors, atol=1e-6, err_msg=name)


def lstm(kind, **options):
    config = LSTMConfig(vocab_size=V, hidden_size=D, widths=(D, D))
    return kind(config, **options)


def bert():
    return BertEncoder(
        BertConfig(
            vocab_size=V,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=40,
            max_position_embeddings=9,
            initializer_range=0.2,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        ),
        pooler=False,
    )


READERS = {
    "LSTM": (lambda: lstm(LSTMLanguageModel), "concat"),
    "ELMo": (lambda: lstm(BidirectionalLM), "mix"),
    "GPT": (decoders.causal, "last"),
    "BERT": (bert, "first"),
}


@pytest.mark.parametrize("name", READERS)
def test_padding_changes_no_logit(name):
    make, pooling = READERS[name]
    classifier = TextClassifier(make(), pooling, num_labels=3)
    ids = np.random.default_rng(1).integers(5, V, (B, S), "int32")
    other = np.where(MASK, ids, 5 + (ids - 4) % (V - 5)).astype("int32")
    one, two = (
        to_numpy(classifier({"input_ids": x, "attention_mask": MASK}))
        for x in (ids, other)
    )
    assert one.shape == (B, 3)
    assert (ids != other).any()
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_a_mix_learns_its_shares():
    classifier = TextClassifier(lstm(BidirectionalLM), "mix")
    batch = {"input_ids": np.ones((B, S), "int32"), "attention_mask": MASK}
    classifier(batch)
    names = [w.path for w in classifier.mix.trainable_weights]
    assert len(names) == 2
    assert classifier.mix.scores.shape == (3,)
    assert set(names) <= {w.path for w in classifier.trainable_weights}


@pytest.mark.slow  # ten seconds and more
def test_an_encoder_alone_classifies(plain_graphs):
    """Encoder-decoders translate; to classify, the encoder is enough."""
    keras.utils.set_random_seed(0)
    classifier = TextClassifier(bert(), "first", dropout=0.0)
    rng = np.random.default_rng(0)
    ids = rng.integers(5, V, (400, 7), "int32")
    ids[:, 0] = 2
    labels = (ids == 7).any(axis=1).astype("int32")
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    adam = keras.optimizers.Adam(3e-3)
    classifier.compile(adam, classification_loss())
    parts = [{k: v[i] for k, v in batch.items()} for i in
             (slice(0, 320), slice(320, 400))]  # fmt: skip
    classifier.fit(parts[0], labels[:320], batch_size=32, epochs=10, verbose=0)
    right = to_numpy(classifier(parts[1])).argmax(axis=-1) == labels[320:]
    assert right.mean() > 0.95 > max(labels.mean(), 1 - labels.mean()) + 0.1


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="`pooling` must be one of first"):
        TextClassifier(None, "middle")
    with pytest.raises(ValueError, match="`num_labels` must be >= 2"):
        TextClassifier(None, "first", num_labels=1)
    assert len(POOLINGS) == 5
