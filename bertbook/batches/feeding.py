"""Feeding `fit`: one batch a step, or a step in parts.

Differences: Google's code divides the loss of a batch by its slots inside the
model; here the weights hold the division, so that the parts of a step, or the
devices that share one, give the gradients of the whole.
"""

import itertools

import numpy as np

from bertbook.batches.batching import to_fit
from bertbook.batches.packing import block_mask
from bertbook.devices.sharing import WHOLE
from bertbook.runtime import keras, without_tuning

POSITIONS_KEPT = 1_000  # far more steps than `fit` reads ahead


def with_weights(batch):
    """Adds the labels and weights of the next sentence where they are missing.

    Args:
        batch: A batch of examples, pairs or single texts.

    Returns:
        The batch with `next_sentence_labels` and `next_sentence_weights`,
        `(B,)`: weight 1 for a pair, 0 for a single text.
    """
    if "next_sentence_weights" in batch:
        return batch
    is_pair = "next_sentence_labels" in batch
    rows = len(batch["input_ids"])
    labels = batch.get("next_sentence_labels", np.zeros(rows, "int32"))
    return batch | {
        "next_sentence_labels": labels,
        "next_sentence_weights": np.full(rows, is_pair, "float32"),
    }


def with_block_mask(batch):
    """Makes the mask of rows that hold several examples, where they do."""
    if "example_numbers" not in batch:
        return batch
    rest = dict(batch)
    return rest | {"attention_mask": block_mask(rest.pop("example_numbers"))}


def pad_rows(batch, rows):
    """Fills a batch up with copies of its first row that count for nothing.

    Args:
        batch: A batch of at most `rows` rows, with the weights of every task.
        rows: B of the result.
    """
    missing = rows - len(batch["input_ids"])
    if missing <= 0:
        return batch
    padded = {}
    for name, array in batch.items():
        copies = np.repeat(array[:1], missing, axis=0)
        if name.endswith("_weights"):
            copies = np.zeros_like(copies)
        padded[name] = np.concatenate([array, copies])
    return padded


def to_steps(batch, parts=1):
    """Yields the parts of a batch as `fit` takes them, `(x, y, weights)`.

    The weights of each task sum to the number of parts, over all of them: a
    loss that is a weighted sum, and the mean of the gradients over the parts,
    then give the mean over all slots of the whole batch.

    Args:
        batch: A batch with the weights of every task; its rows split evenly.
        parts: Number of parts.
    """
    x, y, weights = to_fit(batch)
    weights = {
        name: (array * (parts / max(array.sum(), 1.0))).astype("float32")
        for name, array in weights.items()
    }
    rows = len(batch["input_ids"]) // parts
    for start in range(0, rows * parts, rows):
        part = slice(start, start + rows)
        yield tuple(
            {name: array[part] for name, array in arrays.items()}
            for arrays in (x, y, weights)
        )


def in_parts(batches, parts):
    """Yields the parts of each batch, `(x, y, weights)`, one after the other.

    The weights are as in `to_steps`: the mean over the parts is what the whole
    batch gives.

    Args:
        batches: Batches as `fit` takes them; their rows split evenly.
        parts: Number of parts.
    """
    for x, y, weights in batches:
        weights = keras.tree.map_structure(lambda w: w * parts, weights)
        rows = len(keras.tree.flatten(x)[0]) // parts
        for start in range(0, rows * parts, rows):
            part = slice(start, start + rows)
            yield keras.tree.map_structure(
                lambda array, part=part: array[part], (x, y, weights)
            )


def feed_fit(batches):
    """Returns batches of several lengths in a form that `fit` takes.

    Keras on TensorFlow holds every batch against the first two; a data set that
    says which sizes vary avoids that.

    Args:
        batches: A generator of `(x, y, sample_weight)`.
    """
    if keras.backend.backend() != "tensorflow":
        return batches
    import tensorflow as tf

    first = next(batches)
    signature = keras.tree.map_structure(
        lambda a: tf.TensorSpec([None] * a.ndim, tf.as_dtype(a.dtype)), first
    )
    data = tf.data.Dataset.from_generator(
        lambda: itertools.chain([first], batches), output_signature=signature
    )
    return without_tuning(data.prefetch(2))


class Feed:
    """Batches for `fit`, and the position of the stream after each step.

    `fit` may read ahead, so positions are kept by the number of the step.

    Args:
        stream: An `ExampleStream`.
        batch_size: Rows a step.
        done: Steps done.
        position: The position of the stream after them.
        parts: Parts that a step is computed in.
        share: How the rows of each part are split over devices; rows of
            weight 0 fill up what does not split evenly.
    """

    def __init__(
        self, stream, batch_size, done, position, parts=1, share=WHOLE
    ):
        self.stream = stream
        self.batch_size = batch_size
        self.done = done
        self.positions = {done: position}
        self.parts = parts
        self.share = share
        self.rows = share.round_up(-(-batch_size // parts)) * parts

    def batches(self):
        """Yields `(x, y, sample_weight)` of this process endlessly."""
        start = self.positions[self.done]
        numbered = enumerate(
            self.stream.batches(self.batch_size, start), self.done + 1
        )
        for step, (batch, position) in numbered:
            self.positions[step] = position
            self.positions.pop(step - POSITIONS_KEPT, None)
            batch = with_block_mask(pad_rows(with_weights(batch), self.rows))
            for part in to_steps(batch, self.parts):
                yield self.share.own(part)
