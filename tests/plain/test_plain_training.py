"""Masks, pairs, losses, windows, tags; and a model of each kind that learns."""

import keras
import numpy as np
import pytest
from keras import ops

from bertbook.plain import tasks
from bertbook.plain.attention import attention
from bertbook.plain.bert import Bert, BertForPreTraining
from bertbook.plain.pretraining import (
    IGNORED,
    WarmupDecay,
    accuracy,
    adamw,
    batches,
    look_at_neighbors,
    mask_tokens,
    masked_loss,
    pretrain,
    sentence_pairs,
)
from bertbook.plain.tokenizer import SPECIAL, Tokenizer
from bertbook.tasks.spans import align_answer, best_spans, label_answer
from bertbook.tasks.windows import window_context
from bertbook.text import bio
from bertbook.text.tokenizer import Tokenizer as FastTokenizer
from bertbook.training.optimizers import WarmupLinearDecay

PIECES = [*SPECIAL, *"abcdef.?", "cat", "cats", "ran", "to", "the", "house"]
PIECES += ["##s", "##e"]
LIMITS = "start_logits", "end_logits"
SIZES = {"V": len(PIECES), "D": 8, "L": 1, "N": 2, "F": 8, "P": 16}


pytestmark = pytest.mark.usefixtures("graphs")


@pytest.fixture
def tokenizer():
    return Tokenizer(PIECES)


def tiny_bert():
    return Bert(**SIZES, dropout=0.0)


# Pre-training.


def test_masks_are_the_papers_shares():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 1_000, (400, 128))
    hidden, labels = mask_tokens(ids, range(5), 4, 1_000, rng)
    chosen = labels != IGNORED
    np.testing.assert_array_equal(labels[chosen], ids[chosen])
    np.testing.assert_array_equal(hidden[~chosen], ids[~chosen])
    assert not chosen[ids < 5].any()
    assert chosen[ids >= 5].mean() == pytest.approx(0.15, abs=0.005)
    now, before = hidden[chosen], ids[chosen]
    assert (now == 4).mean() == pytest.approx(0.8, abs=0.015)
    assert (now == before).mean() == pytest.approx(0.1, abs=0.015)
    others = now[(now != 4) & (now != before)]
    assert others.min() >= 5  # never a special token


def test_the_loss_counts_labels_from_0_on():
    logits = np.log([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.6, 0.2]]])
    labels = np.array([[1, IGNORED, 1]])
    expected = -(np.log(0.25) + np.log(0.6)) / 2
    assert float(masked_loss(labels, logits)) == pytest.approx(expected)
    assert float(accuracy(labels, logits)) == 0.5
    nothing = np.full((1, 3), IGNORED)
    assert float(masked_loss(nothing, logits)) == 0


def test_half_of_the_pairs_follow_and_the_others_come_from_elsewhere():
    documents = [[f"{d}.{s}" for s in range(50)] for d in range(20)]
    pairs = list(sentence_pairs(documents, np.random.default_rng(0)))
    assert len(pairs) == 20 * 49
    for first, second, label in pairs:
        document, number = first.split(".")
        follows = second == f"{document}.{int(number) + 1}"
        assert follows == (label == 0)
        assert follows or second.split(".")[0] != document
    share = np.mean([label for *_, label in pairs])
    assert share == pytest.approx(0.5, abs=0.05)


def test_the_rate_is_that_of_the_package():
    ours, theirs = WarmupDecay(0.1, 4, 20), WarmupLinearDecay(0.1, 4, 20)
    rates = [float(ours(step)) for step in range(22)]
    expected = [float(theirs(step)) for step in range(22)]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert WarmupDecay(**ours.get_config())(3) == ours(3)


def test_norms_and_biases_do_not_decay(tokenizer):
    model = BertForPreTraining(tiny_bert())
    model(tokenizer(["a"]))
    optimizer = adamw(0.1, 10)
    optimizer.build(model.trainable_variables)
    decays = {
        v.name
        for v in model.trainable_variables
        if optimizer._use_weight_decay(v)
    }
    assert decays == {"kernel", "embeddings"}


def test_heads_look_at_their_neighbors():
    sizes = {"V": 9, "D": 64, "L": 2, "N": 4, "F": 8, "P": 24}
    model = BertForPreTraining(Bert(**sizes, dropout=0.0))
    ids = np.random.default_rng(0).integers(5, 9, (1, 24))
    batch = {"input_ids": ids, "token_type_ids": 0 * ids}
    batch["attention_mask"] = 0 * ids + 1
    model(batch)
    look_at_neighbors(model)
    states = model.bert.states(batch)
    for block, x in zip(model.bert.blocks, states, strict=False):
        layer = block.attention
        query, key = (layer.heads(part(x)) for part in (layer.query, layer.key))
        _, weights = attention(query, key, key)
        best = ops.convert_to_numpy(weights)[0].argmax(axis=-1)  # (N, S)
        for found, offset in zip(best, (-1, 1, -2, 2), strict=True):
            right = found == np.arange(24) + offset
            assert right[2:-2].mean() > 0.9


@pytest.mark.parametrize("kind", ["pre-training", "text", "span", "tags"])
def test_fit_turns_dropout_on(tokenizer, kind):
    batch = tokenizer(["a b c d", "e f cat ran"])
    ids = batch["input_ids"]
    first = np.array([1, 2])
    make, labels = {
        "pre-training": (
            BertForPreTraining,
            {"mlm_logits": ids, "nsp_logits": first - 1},
        ),
        "text": (lambda bert: tasks.TextClassifier(bert, 3), first),
        "span": (tasks.SpanModel, dict.fromkeys(LIMITS, first)),
        "tags": (lambda bert: tasks.TagModel(bert, len(PIECES)), ids),
    }[kind]
    model = make(Bert(**{**SIZES, "D": 64}, dropout=0.5))
    model(batch)
    for variable in model.trainable_variables:  # else all logits are near 0
        if variable.name == "kernel":
            variable.assign(20 * variable)
    loss = masked_loss
    if isinstance(labels, dict):
        loss = dict.fromkeys(labels, masked_loss)
    model.compile(keras.optimizers.SGD(0.0), loss)
    how = {"batch_size": 2, "verbose": 0}
    without = model.evaluate(batch, labels, return_dict=True, **how)["loss"]
    trained = model.fit(batch, labels, **how).history["loss"][0]
    assert abs(trained - without) > 1e-3


def test_a_model_learns_both_tasks(tokenizer):
    documents = [["a a a", "b b b"] * 10, ["c c c", "d d d"] * 10]
    rng = np.random.default_rng(0)
    stream = batches(tokenizer, documents, rng, size=16, max_length=9)
    model = BertForPreTraining(Bert(**{**SIZES, "D": 64}, dropout=0.0))
    history = pretrain(
        model, stream, steps=240, peak=0.003, epochs=6, verbose=0
    ).history
    assert history["mlm_logits_accuracy"][0] < 0.5
    assert history["mlm_logits_accuracy"][-1] > 0.8
    assert history["nsp_logits_accuracy"][-1] > 0.8


# The tasks.


def fit(model, batch, labels, **options):
    options = {"epochs": 25, "peak": 0.02, "size": 8, "verbose": 0, **options}
    return tasks.finetune(model, batch, labels, **options).history


def test_one_output_learns_a_number(tokenizer):
    texts = ["a", "b", "c", "d"] * 4
    labels = np.array([0.0, 1.0, 2.0, 3.0] * 4, "float32")
    model = tasks.TextClassifier(tiny_bert(), 1)
    history = fit(model, tokenizer(texts), labels, epochs=40)
    assert history["loss"][-1] < 0.3 < 1.0 < history["loss"][0]


def test_a_span_is_learned_and_answered(tokenizer):
    contexts = ["a b the house c", "the house a b", "b c d the house"]
    found = [tasks.windows(tokenizer, "the ?", c, 14, 4) for c in contexts]
    spans = [
        tasks.label_span(places, start := c.index("the"), start + 9)
        for (_, places), c in zip(found, contexts, strict=True)
    ]
    batch = {
        name: np.concatenate([rows[name] for rows, _ in found] * 4)
        for name in found[0][0]
    }
    spans = np.concatenate(spans * 4)
    labels = {"start_logits": spans[:, 0], "end_logits": spans[:, 1]}
    model = tasks.SpanModel(tiny_bert())
    history = fit(model, batch, labels, epochs=40)
    assert history["start_logits_accuracy"][-1] == 1.0
    text = "a d b the house c"
    answer = tasks.answer(
        model, tokenizer, "the ?", text, max_length=14, stride=4
    )
    assert answer == ("the house", 6, 15)


def test_windows_and_labels_are_those_of_the_package(tokenizer):
    fast = FastTokenizer(PIECES)
    context = "a b c d e f cat ran to the house . the cat ran ."
    start = context.index("house")
    for length, stride in ((12, 3), (14, 4), (40, 9)):
        expected = window_context(fast, "cat ?", context, length, stride)
        batch, places = tasks.windows(
            tokenizer, "cat ?", context, length, stride
        )
        assert len(batch["input_ids"]) == len(expected.windows)
        for row, window in zip(
            batch["input_ids"], expected.windows, strict=True
        ):
            ids = window.input_ids
            np.testing.assert_array_equal(row[: len(ids)], ids)
        answer = align_answer(expected, start, "house")
        np.testing.assert_array_equal(
            tasks.label_span(places, start, start + 5),
            label_answer(expected, answer),
        )


def test_the_best_span_is_that_of_the_package():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        start, end = rng.normal(size=(2, size))
        (_, first, last), *_ = best_spans(start, end, 1, 5)
        assert tasks.best_span(start, end, longest=5) == (first, last)


def test_tags_are_learned(tokenizer):
    sentences = [["cats", "ran", "."], ["the", "house", "?"]] * 8
    tags = [[1, 0, 0], [0, 1, 0]] * 8
    ids, labels = tasks.label_words(["cats", "cate", "."], [1, 1, 0], tokenizer)
    assert [tokenizer.pieces[i] for i in ids] == ["cats", "cat", "##e", "."]
    assert labels == [1, 1, IGNORED, 0]
    batch, labels = tasks.tag_batch(tokenizer, sentences, tags)
    assert labels.shape == batch["input_ids"].shape == (16, 5)
    dev = batch, labels
    history = fit(tasks.TagModel(tiny_bert(), 2), *dev, dev=dev)
    assert history["val_accuracy"][-1] == 1.0
    short, cut = tasks.tag_batch(tokenizer, sentences, tags, max_length=4)
    assert cut.shape == (16, 4)
    assert (short["input_ids"][:, -1] == tokenizer.ids["[SEP]"]).all()


def test_names_are_read_as_the_package_reads_them():
    rng = np.random.default_rng(0)
    kinds = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    for _ in range(200):
        tags = list(rng.choice(kinds, rng.integers(0, 8)))
        expected = [tuple(entity) for entity in bio.find_entities(tags)]
        assert tasks.bio_spans(tags) == expected
