"""Held-out evaluation: a model beside unigrams and bigrams.

Differences: none; the paper reports no such figures for its models.
"""

import math
from typing import NamedTuple

import numpy as np

from bertbook.batches.batching import to_fit
from bertbook.batches.feeding import pad_rows, with_weights
from bertbook.devices.sharing import current_share
from bertbook.pretraining.corpus import read_shard
from bertbook.pretraining.stream import ExampleStream
from bertbook.text.wordpiece import CONTINUATION
from bertbook.training.losses import pretraining_losses, pretraining_metrics

DISCOUNT = 0.75  # taken off every count of a pair, as usual


def held_out_examples(
    corpus, pieces, settings, seed=0, limit=4_096, part="held_out"
):
    """Makes the examples that models are compared on; always the same.

    Args:
        corpus: A `Corpus` with held-out documents.
        pieces: The facts of the vocabulary.
        settings: An `ExampleSettings`.
        seed: Seed of pairs and masks.
        limit: Most examples.
        part: "held_out", or "train" for a corpus that is held out as a whole.

    Returns:
        A batch.

    Raises:
        ValueError: No document is held out.
    """
    stream = ExampleStream(corpus, pieces, settings, seed, part=part)
    parts, count = [], 0
    for examples in stream.epoch(0):
        parts.append(examples)
        count += len(examples["input_ids"])
        if count >= limit:
            break
    return {
        name: np.concatenate([rows[name] for rows in parts])[:limit]
        for name in parts[0]
    }


def score_pretraining(model, examples, batch_size=64):
    """Measures a `BertForPreTraining` on examples.

    Args:
        model: The model. One that is not compiled is compiled here.
        examples: A batch of any number of rows.
        batch_size: Rows computed at a time.

    Returns:
        A dict: `mlm_loss`, nats a hidden token, `mlm_accuracy`, and for pairs
        `nsp_loss` and `nsp_accuracy`.
    """
    if not model.compiled:
        model.compile(
            loss=pretraining_losses("sum"),
            weighted_metrics=pretraining_metrics(),
        )
    rows = len(examples["input_ids"])
    starts = range(0, rows, batch_size)
    examples = with_weights(examples)
    share = current_share()
    filled = share.round_up(batch_size)

    def batches():
        for start in starts:
            cut = {
                n: a[start : start + batch_size] for n, a in examples.items()
            }
            cut = {
                n: a if a.dtype == "float32" else a.astype("int32")
                for n, a in cut.items()
            }
            yield share.own(to_fit(pad_rows(cut, filled)))

    logs = model.evaluate(
        batches(), steps=len(starts), verbose=0, return_dict=True
    )
    scores = {}
    for task, name in (("masked_lm", "mlm"), ("next_sentence", "nsp")):
        slots = examples[f"{task}_weights"].sum()
        if slots:
            mean = logs[f"{name}_logits_loss"]  # over batches, of their sums
            scores[f"{name}_loss"] = float(mean * len(starts) / slots)
            scores[f"{name}_accuracy"] = float(logs[f"{name}_logits_accuracy"])
    return scores


def bits_per_character(nats, examples, tokenizer):
    """Turns nats a hidden token into bits a character of these tokens.

    It compares models of different vocabularies. A piece that begins a word
    counts a space.

    Args:
        nats: Mean over the hidden tokens of `examples`.
        examples: A batch of examples.
        tokenizer: The `Tokenizer` that they were made with.
    """
    hidden_ids = examples["masked_lm_ids"][examples["masked_lm_weights"] > 0]
    pieces = [tokenizer.vocabulary[i] for i in hidden_ids]
    characters = sum(
        len(piece.removeprefix(CONTINUATION))
        + (not piece.startswith(CONTINUATION))
        for piece in pieces
    )
    return nats * len(pieces) / math.log(2) / characters


def count_unigrams(corpus, vocab_size):
    """Returns how often each piece occurs in the training documents, `(V,)`."""
    counts = np.zeros(vocab_size, "int64")
    for path in corpus.shards():
        counts += np.bincount(read_shard(path).tokens, minlength=vocab_size)
    return counts


def score_unigrams(counts, examples):
    """Scores the guess that never looks at the text.

    Args:
        counts: `(V,)`; one is added to each, so that none is impossible.
        examples: A batch of examples.

    Returns:
        `mlm_loss` and `mlm_accuracy`.
    """
    hidden_ids = examples["masked_lm_ids"][examples["masked_lm_weights"] > 0]
    probabilities = (counts + 1) / (counts + 1).sum()
    return {
        "mlm_loss": float(-np.log(probabilities[hidden_ids]).mean()),
        "mlm_accuracy": float((hidden_ids == counts.argmax()).mean()),
    }


class Bigrams(NamedTuple):
    """How often each piece follows each other one, seen pairs only.

    Attributes:
        keys: The pairs, first times V plus second, sorted, `(n,)`.
        counts: How often each occurs, `(n,)`.
        vocab_size: V.
    """

    keys: np.ndarray
    counts: np.ndarray
    vocab_size: int


def count_bigrams(corpus, vocab_size):
    """Returns the `Bigrams` of the training documents."""
    keys, counts = np.empty(0, "int64"), np.empty(0, "int64")
    for path in corpus.shards():
        shard = read_shard(path)
        tokens = shard.tokens.astype("int64")
        pairs = tokens[:-1] * vocab_size + tokens[1:]
        # No pair begins with the last token of a document.
        ends = shard.sentences[shard.documents[1:-1]] - 1
        pairs = np.delete(pairs, ends)
        new_keys, new_counts = np.unique(pairs, return_counts=True)
        keys, inverse = np.unique(
            np.concatenate([keys, new_keys]), return_inverse=True
        )
        counts = np.bincount(
            inverse, np.concatenate([counts, new_counts]), len(keys)
        ).astype("int64")
    return Bigrams(keys, counts, vocab_size)


def score_bigrams(bigrams, unigrams, examples):
    """Scores the guess that looks at the piece on the left, never hidden.

    Pairs are discounted and what that leaves goes to single pieces, as in
    Ney et al. (1994).

    Args:
        bigrams: `Bigrams`.
        unigrams: `(V,)` counts.
        examples: A batch of examples.

    Returns:
        `mlm_loss` and `mlm_accuracy`.
    """
    hidden_ids, left_ids = hidden_and_left(examples)
    firsts, seconds = np.divmod(bigrams.keys, bigrams.vocab_size)
    size = bigrams.vocab_size
    totals = np.bincount(firsts, bigrams.counts, size)  # (V,)
    kinds = np.bincount(firsts, minlength=size)
    place = np.searchsorted(bigrams.keys, left_ids * size + hidden_ids)
    place = np.minimum(place, len(bigrams.keys) - 1)
    seen = bigrams.keys[place] == left_ids * size + hidden_ids
    count = np.where(seen, bigrams.counts[place] - DISCOUNT, 0.0)
    alone = ((unigrams + 1) / (unigrams + 1).sum())[hidden_ids]
    known = totals[left_ids] > 0  # [CLS] and [SEP] begin no pair
    total = np.maximum(totals[left_ids], 1)
    mixed = (count + DISCOUNT * kinds[left_ids] * alone) / total
    likeliest = np.full(size, unigrams.argmax())
    order = np.argsort(bigrams.counts, kind="stable")  # the last one stays
    likeliest[firsts[order]] = seconds[order]
    return {
        "mlm_loss": float(-np.log(np.where(known, mixed, alone)).mean()),
        "mlm_accuracy": float((likeliest[left_ids] == hidden_ids).mean()),
    }


def hidden_and_left(examples):
    """Returns the hidden pieces and what stands before each, `(n,)` each."""
    used = examples["masked_lm_weights"] > 0
    rows, slots = np.nonzero(used)
    columns = examples["masked_lm_positions"][rows, slots]
    hidden_ids = examples["masked_lm_ids"][rows, slots].astype("int64")
    unmasked = examples["input_ids"].astype("int64")
    unmasked[rows, columns] = hidden_ids
    return hidden_ids, unmasked[rows, columns - 1]
