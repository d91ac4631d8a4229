"""Packed pre-training: the same examples, fewer rows, the same losses."""

import numpy as np
import pytest

from bertbook.batches.feeding import (
    Feed,
    to_steps,
    with_block_mask,
    with_weights,
)
from bertbook.pretraining.corpus import read_shard
from bertbook.pretraining.examples import (
    MOST_IN_A_ROW,
    ExampleSettings,
    make_examples,
    pack_examples,
)
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
    make_model,
)
from bertbook.pretraining.stream import ExampleStream, Position
from tests.helpers.corpora import mini, mini_pieces, shelf_corpus
from tests.helpers.toys import toy_config

LENGTH = 96


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return shelf_corpus(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module", params=[True, False], ids=["pairs", "runs"])
def both(request, corpus):
    """Settings, some examples one a row, and the same ones packed."""
    settings = ExampleSettings(
        max_length=LENGTH, next_sentence=request.param, short_share=0.6
    )
    random = np.random.default_rng(0)
    shard = read_shard(corpus.shards()[0])
    examples = make_examples(shard, mini_pieces(), settings, random)
    examples = {name: array[:60] for name, array in examples.items()}
    return examples, pack_examples(examples, settings, random)


def model():
    config = toy_config(
        vocab_size=len(mini()),
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    recipe = PretrainingRecipe(steps=4)
    made = make_model(config, config, recipe)
    for weight in made.trainable_variables:
        if len(weight.shape) == 2:  # so that attention is far from even
            weight.assign(10 * weight)
    compile_for_pretraining(made, recipe)
    return made


def test_packed_rows_have_the_losses_of_single_rows(both, graphs):
    made = model()
    single, packed = (
        made.evaluate(
            to_steps(with_block_mask(with_weights(batch))),
            steps=1,
            verbose=0,
            return_dict=True,
        )
        for batch in both
    )
    assert len(both[1]["input_ids"]) < len(both[0]["input_ids"])
    assert single["mlm_logits_loss"] > 5
    for name, loss in single.items():
        assert packed[name] == pytest.approx(loss, abs=1e-5), name


def test_every_example_is_packed_once(both):
    single, packed = both
    lengths = single["attention_mask"].sum(axis=1).tolist()
    found = []
    for ids, numbers in zip(
        packed["input_ids"], packed["example_numbers"], strict=True
    ):
        for number in range(1, numbers.max() + 1):
            found.append(ids[numbers == number].tolist())
    expected = [
        ids[:length].tolist()
        for ids, length in zip(single["input_ids"], lengths, strict=True)
    ]
    assert sorted(found) == sorted(expected)


def test_batches_of_packed_rows_have_one_shape(corpus):
    settings = ExampleSettings(max_length=LENGTH, short_share=0.8, packed=True)
    stream = ExampleStream(corpus, mini_pieces(), settings)
    batches = Feed(stream, 4, 0, Position()).batches()
    shapes = set()
    for _ in range(12):
        x, y, weights = next(batches)
        shapes.add(
            tuple(a.shape for part in (x, y, weights) for a in part.values())
        )
        assert x["attention_mask"].shape == (4, LENGTH, LENGTH)
        assert x["cls_positions"].shape == (4, MOST_IN_A_ROW)
        assert sum(w.sum() for w in weights.values()) == pytest.approx(2)
    assert len(shapes) == 1
