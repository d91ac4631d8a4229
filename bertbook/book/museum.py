"""Sixteen bugs, each with the place that it takes: the exhibits of chapter 54.

If you read that chapter, close this file. It holds the answers.
"""

import inspect
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from bertbook.model import attention, bert, encoder, layers
from bertbook.model.embeddings import LearnedPositions
from bertbook.model.encoder import EncoderBlock
from bertbook.pretraining import corpus, examples, stream
from bertbook.runtime import keras, ops
from bertbook.tasks import spans, tags, windows
from bertbook.training.losses import CrossEntropy

# What the wrong functions call, or stand in place of.
correct_matrix = bert.float_matrix
correct_pairs = examples.draw_pairs
correct_loss = CrossEntropy.__call__
kept: dict[Any, Any] = {}


class Exhibit(NamedTuple):
    """A wrong function, where it goes, and what finds it.

    Attributes:
        owner: The module or class whose function it replaces.
        name: The name of that function.
        wrong: The wrong one.
        test: A test of the package that fails while it is in place.
    """

    owner: Any
    name: str
    wrong: Callable
    test: str


EXHIBITS: dict[int | str, Exhibit] = {}


def exhibit(number: int | str, owner: Any, name: str, test: str) -> Callable:
    """Makes a decorator that keeps a wrong function under a number."""

    def keep(wrong: Callable) -> Callable:
        EXHIBITS[number] = Exhibit(owner, name, wrong, test)
        return wrong

    return keep


def planted(number):
    """Makes a `with` block in which a bug is in place; 0 is no bug."""
    if number == 0:
        return nullcontext()
    owner, name, wrong, _ = EXHIBITS[number]
    return mock.patch.object(owner, name, wrong)


def catches(test, number):
    """Tells whether a test passes, and fails while a bug is in place."""
    passes = test()
    if passes is None:
        print(f"{test.__name__}: not written yet")
        return False
    with planted(number):
        fails = not test()
    verdict = "passes" if passes else "FAILS"
    print(f"{test.__name__}: {verdict} for the correct code,", end=" ")
    print("fails" if fails else "PASSES", f"for exhibit {number}")
    return bool(passes and fails)


def show(number: int | str) -> None:
    """Prints the lines of a bug, and which test of the package finds it."""
    owner, name, wrong, test = EXHIBITS[number]
    _, _, lines = inspect.getsource(wrong).partition("def ")
    print(f"# in place of {owner.__name__.split('.')[-1]}.{name}")
    print(f"def {name}({lines.partition('(')[2].rstrip()}")
    print(f"# found by {test}\n")


@exhibit(
    1, EncoderBlock, "call", "test_blocks_compute_the_literal_forward_pass"
)
def _exhibit_1(self, hidden, attention_mask=None, **others):
    normed = self.attention_norm(hidden)
    hidden = hidden + self.attention(normed, attention_mask=attention_mask)
    return hidden + self.feed_forward(self.output_norm(hidden))


@exhibit(
    2, bert, "float_matrix", "test_the_token_table_learns_through_the_head"
)
def _exhibit_2(embedding):
    shape = tuple(embedding.embeddings.shape)
    return keras.random.normal(shape, stddev=0.02, seed=0)


@exhibit(
    "2b", bert, "float_matrix", "test_the_token_table_learns_through_the_head"
)
def _exhibit_2b(embedding):
    if embedding not in kept:  # the first call copies
        kept[embedding] = ops.copy(correct_matrix(embedding))
    return kept[embedding]


@exhibit(
    3, attention, "split_heads", "test_split_heads_keeps_every_token_together"
)
def _exhibit_3(vectors, num_heads, parts=1):
    length = vectors.shape[1]  # vectors: (B, S, parts * D)
    width = vectors.shape[2] // (parts * num_heads)
    cut = ops.split(vectors, parts, axis=-1)
    return [ops.reshape(x, (-1, num_heads, length, width)) for x in cut]


@exhibit(4, examples, "draw_pairs", "test_pairs_by_loops")
def _exhibit_4(shard, settings, rng):
    spans, labels = correct_pairs(shard, settings, rng)
    return spans, 1 - labels  # 1: B follows A


@exhibit(
    5,
    layers.Dropout,
    "call",
    "test_outputs_of_sublayers_are_dropped_in_training_alone",
)
def _exhibit_5(self, values, training=None):
    return keras.random.dropout(values, self.rate)


@exhibit(
    6, attention, "scaled_dot_product_attention", "test_matches_the_definition"
)
def _exhibit_6(query, key, value, attention_mask=None, dropout=None):
    scores = ops.einsum("bnth,bnsh->bnts", query, key)
    scores /= math.sqrt(query.shape[-1])
    if attention_mask is not None:
        scores = ops.where(attention_mask, scores, -10_000.0)
    weights = ops.softmax(scores, axis=2)
    return ops.einsum("bnts,bnsh->bnth", weights, value), weights


@exhibit(7, encoder, "visible_keys", "test_padding_changes_no_real_token")
def _exhibit_7(attention_mask):
    return None  # hides nothing


@exhibit(8, LearnedPositions, "call", "test_sum_and_norm_match_the_definition")
def _exhibit_8(self, vectors, position_ids=None):
    positions = 1 + ops.arange(vectors.shape[1])
    return vectors + ops.take(self.table, positions, axis=0)


@exhibit(
    9,
    CrossEntropy,
    "__call__",
    "test_without_smoothing_it_is_the_plain_loss_and_padding_counts_nothing",
)
def _exhibit_9(self, labels, logits, sample_weight=None):
    probabilities = ops.exp(ops.log_softmax(logits))
    return correct_loss(self, labels, probabilities, sample_weight)


@exhibit(10, windows, "window_starts", "test_windows_by_hand")
def _exhibit_10(total, room, stride):
    return [0]


@exhibit(
    11,
    spans,
    "best_spans",
    "test_separate_argmaxes_give_no_span_and_joint_decoding_does",
)
def _exhibit_11(start, end, *others):
    first, last = int(np.argmax(start)), int(np.argmax(end))
    return [(float(start[first] + end[last]), first, last)]


@exhibit(12, tags, "speaking_tokens", "test_labels_by_hand")
def _exhibit_12(window, strategy="first"):
    return np.array(window.word_ids) >= 0  # all but [CLS] and [SEP]


@exhibit(13, layers, "exact_gelu", "test_activations_have_the_published_values")
def _exhibit_13(x):
    return ops.gelu(x, approximate=True)


@exhibit(14, layers.LayerNorm, "call", "test_matches_hugging_face")
def _exhibit_14(self, inputs):
    centered = inputs - ops.mean(inputs, axis=-1, keepdims=True)
    variance = ops.var(inputs, axis=-1, keepdims=True)
    return self.gamma * centered / ops.sqrt(variance + 1e-5) + self.beta


@exhibit(
    15,
    CrossEntropy,
    "__call__",
    "test_without_smoothing_it_is_the_plain_loss_and_padding_counts_nothing",
)
def _exhibit_15(self, labels, logits, sample_weight=None):
    nats = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    loss = nats(labels, logits) * sample_weight
    return ops.sum(loss) / ops.sum(sample_weight)


@exhibit(
    16,
    stream,
    "run_task",
    "test_dynamic_epochs_differ_and_static_ones_do_not",
)
def _exhibit_16(task):
    rng = np.random.default_rng(0)
    shard = corpus.read_shard(task.path)
    return examples.make_examples(shard, task.pieces, task.settings, rng)
