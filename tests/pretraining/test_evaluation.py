"""Scores against their definitions, counted by hand."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import bertbook as bb
from bertbook.locations import shelf
from bertbook.pretraining import evaluation
from bertbook.pretraining.corpus import prepare, read_shard
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from tests.helpers.models import to_numpy

SETTINGS = ExampleSettings(max_length=24)


@pytest.fixture(scope="module")
def tokenizer():
    lines = [path.read_text(encoding="utf-8") for path in shelf()]
    return bb.Tokenizer.train(lines, vocab_size=300)


@pytest.fixture(scope="module")
def corpus(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    return prepare(
        shelf(), tokenizer, folder, held_out=0.2, shard_tokens=20_000
    )


@pytest.fixture(scope="module")
def examples(corpus, tokenizer):
    return evaluation.held_out_examples(corpus, Pieces.of(tokenizer), SETTINGS)


def test_held_out_examples_are_always_the_same(corpus, tokenizer, examples):
    again = evaluation.held_out_examples(corpus, Pieces.of(tokenizer), SETTINGS)
    for name, array in examples.items():
        assert np.array_equal(array, again[name])
    few = evaluation.held_out_examples(
        corpus, Pieces.of(tokenizer), SETTINGS, limit=5
    )
    assert len(few["input_ids"]) == 5


def token_rows(corpus):
    """Yields every training document as a list of ids."""
    for path in corpus.shards():
        shard = read_shard(path)
        bounds = shard.sentences[shard.documents]
        for start, end in zip(bounds[:-1], bounds[1:], strict=True):
            yield shard.tokens[start:end].tolist()


def slots(examples):
    """Yields each hidden id and the true id before it."""
    rows = zip(
        examples["input_ids"],
        examples["masked_lm_positions"],
        examples["masked_lm_ids"],
        examples["masked_lm_weights"],
        strict=True,
    )
    for ids, places, wanted, weights in rows:
        whole = ids.astype(int).tolist()
        used = [i for i, weight in enumerate(weights) if weight]
        for i in used:
            whole[places[i]] = int(wanted[i])
        for i in used:
            yield int(wanted[i]), whole[places[i] - 1]


def test_unigrams_are_counted_and_scored_by_loops(corpus, examples):
    counts = evaluation.count_unigrams(corpus, 300)
    counter = Counter(i for row in token_rows(corpus) for i in row)
    assert counts.tolist() == [counter[i] for i in range(300)]
    total = sum(counter.values()) + 300
    expected = [
        -math.log((counter[wanted] + 1) / total)
        for wanted, _ in slots(examples)
    ]
    received = evaluation.score_unigrams(counts, examples)
    assert received["mlm_loss"] == pytest.approx(np.mean(expected), rel=1e-6)
    (likeliest,) = (i for i, _ in counter.most_common(1))
    hits = [wanted == likeliest for wanted, _ in slots(examples)]
    assert received["mlm_accuracy"] == pytest.approx(np.mean(hits))


def test_bigrams_are_counted_and_scored_by_loops(corpus, examples):
    counter = Counter(
        pair for row in token_rows(corpus) for pair in itertools.pairwise(row)
    )  # fmt: skip
    bigrams = evaluation.count_bigrams(corpus, 300)
    pairs = [divmod(int(key), 300) for key in bigrams.keys]
    assert dict(zip(pairs, bigrams.counts.tolist(), strict=True)) == counter
    unigrams = evaluation.count_unigrams(corpus, 300)
    alone = (unigrams + 1) / (unigrams + 1).sum()
    total, kinds = Counter(), Counter()
    for (first, _), n in counter.items():
        total[first] += n
        kinds[first] += 1
    expected = []
    for wanted, left in slots(examples):
        p = alone[wanted]
        if total[left]:
            kept = max(counter[left, wanted] - 0.75, 0)
            p = (kept + 0.75 * kinds[left] * alone[wanted]) / total[left]
        expected.append(-math.log(p))
    received = evaluation.score_bigrams(bigrams, unigrams, examples)
    assert received["mlm_loss"] == pytest.approx(np.mean(expected), rel=1e-6)
    assert (
        received["mlm_loss"]
        < evaluation.score_unigrams(unigrams, examples)["mlm_loss"]
    )


def test_bigrams_are_a_distribution(corpus):
    unigrams = evaluation.count_unigrams(corpus, 300)
    bigrams = evaluation.count_bigrams(corpus, 300)
    left = int(unigrams.argmax())
    every = {
        "input_ids": np.array([[left, i] for i in range(300)]),
        "masked_lm_positions": np.ones((300, 1), int),
        "masked_lm_ids": np.arange(300)[:, None],
        "masked_lm_weights": np.ones((300, 1)),
    }
    hidden_ids, lefts = evaluation.hidden_and_left(every)
    assert set(lefts) == {left}
    probabilities = [
        math.exp(
            -evaluation.score_bigrams(
                bigrams, unigrams, {n: a[i : i + 1] for n, a in every.items()}
            )["mlm_loss"]
        )
        for i in hidden_ids
    ]
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-6)


def test_scores_of_a_model_are_the_means_over_all_slots(examples, tokenizer):
    config = bb.BertConfig.named(
        "tiny", vocab_size=300, max_position_embeddings=24
    )
    model = bb.BertForPreTraining(config)
    few = {name: array[:37] for name, array in examples.items()}
    received = evaluation.score_pretraining(model, few, batch_size=16)
    batch = {
        n: a.astype("float32" if a.dtype.kind == "f" else "int32")
        for n, a in few.items()
    }
    names = ("input_ids", "token_type_ids", "attention_mask")
    inputs = {n: batch[n] for n in (*names, "masked_lm_positions")}
    outputs = to_numpy(model(inputs))
    for task, logits, labels, weights in (
        ("mlm", "mlm_logits", "masked_lm_ids", batch["masked_lm_weights"]),
        ("nsp", "nsp_logits", "next_sentence_labels", np.ones(37)),
    ):
        x = outputs[logits].astype(float)
        logs = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
        wanted = batch[labels]
        picked = np.take_along_axis(logs, wanted[..., None], -1)[..., 0]
        loss = -(picked * weights).sum() / weights.sum()
        hits = (x.argmax(axis=-1) == wanted) * weights
        assert received[f"{task}_loss"] == pytest.approx(loss, abs=1e-5)
        assert received[f"{task}_accuracy"] == pytest.approx(
            hits.sum() / weights.sum(), abs=1e-6
        )


def test_bits_count_the_characters_of_hidden_pieces():
    tokenizer = bb.Tokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fire", "##s", "a"]
    )
    batch = {
        "masked_lm_ids": np.array([[5, 6], [7, 5]]),
        "masked_lm_weights": np.array([[1.0, 1.0], [1.0, 0.0]]),
    }
    # " fire", "s", " a": 5 + 1 + 2 characters
    bits = evaluation.bits_per_character(math.log(2) * 4, batch, tokenizer)
    assert bits == pytest.approx(4 * 3 / 8)
