"""Pre-training: hide words, pair sentences, and train on both tasks."""

import keras
import numpy as np
from keras import ops

from .tokenizer import SPECIAL

IS_NEXT, NOT_NEXT = 0, 1  # as in Google's code
IGNORED = -100  # the label of a token of which nothing is asked


def mask_tokens(ids, special, mask_id, V, rng, rate=0.15):
    """Hides some tokens: 80 % become [MASK], 10 % a random piece, 10 % stay.

    Args: `ids`, `(B, S)`; `special`, the ids that are never chosen; `mask_id`,
    that of [MASK]; `V`, the number of pieces; `rng`, a NumPy generator.

    Returns the new ids, and the labels: the old id where a token was chosen,
    -100 elsewhere; both `(B, S)`. Source: Devlin et al. (2019), section 3.1.
    """
    ordinary = ~np.isin(ids, special)
    chosen = ordinary & (rng.random(ids.shape) < rate)
    lot = rng.random(ids.shape)
    pieces = np.setdiff1d(np.arange(V), special)
    hidden = np.where(chosen & (lot < 0.8), mask_id, ids)
    is_random = chosen & (lot >= 0.8) & (lot < 0.9)
    hidden = np.where(is_random, rng.choice(pieces, ids.shape), hidden)
    return hidden, np.where(chosen, ids, IGNORED)


def masked_loss(labels, logits):
    """Returns the mean cross-entropy, in nats, of the labels from 0 on.

    Args: `labels`, integers of shape `(...)`; `logits`, `(..., K)`.
    """
    labels, logits = ops.cast(labels, "int32"), ops.cast(logits, "float32")
    counts = ops.cast(labels >= 0, "float32")
    nats = ops.sparse_categorical_crossentropy(
        ops.maximum(labels, 0), logits, from_logits=True
    )
    return ops.sum(nats * counts) / ops.maximum(ops.sum(counts), 1.0)


def look_at_neighbors(model, offsets=(-1, 1, -2, 2)):
    """Sets weights with which the heads of each block look one or two away.

    Positions become waves, and queries read them moved by the head's offset.
    Args: `model`, a `BertForPreTraining` that has run, with P <= 2 H.

    Source: Vaswani et al. (2017), section 3.5; as a start of training, Trockman
    and Kolter (2023).
    """
    D, P = model.bert.sizes["D"], model.bert.sizes["P"]
    H = D // model.bert.sizes["N"]
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(D, H)))[0]  # (D, H)
    angles = np.pi * (np.arange(H // 2) + 0.5) / (H // 2)
    turned = np.outer(np.arange(P), angles)  # (P, H / 2)
    waves = np.concatenate([np.cos(turned), np.sin(turned)], axis=1)
    table = 0.028 * np.sqrt(2 * D / H) * waves @ basis.T
    model.bert.embeddings.position.embeddings.assign(table)
    for block in model.bert.blocks:
        query, key = block.attention.query, block.attention.key
        wq, wk = (np.array(one.get_weights()[0]) for one in (query, key))
        for head, offset in enumerate(offsets):
            cos, sin = np.cos(offset * angles), np.sin(offset * angles)
            turn = np.block(
                [[np.diag(cos), np.diag(sin)], [-np.diag(sin), np.diag(cos)]]
            )
            columns = slice(head * H, (head + 1) * H)
            wq[:, columns], wk[:, columns] = basis @ turn, basis
        gain = np.sqrt(12 * np.sqrt(H) / D)
        query.kernel.assign(gain * wq)
        key.kernel.assign(gain * wk)


def accuracy(labels, logits):
    """Returns the share of the labels from 0 on with the largest logit."""
    labels = ops.cast(labels, "int32")
    counts = ops.cast(labels >= 0, "float32")
    right = ops.cast(ops.argmax(logits, axis=-1), "int32") == labels
    right = ops.cast(right, "float32") * counts
    return ops.sum(right) / ops.maximum(ops.sum(counts), 1.0)


def sentence_pairs(documents, rng):
    """Yields (first, second, label) for each sentence but a document's last.

    For half of them, by chance, the second is the next sentence, label 0; for
    the others a sentence of another document, label 1.

    Args: `documents`, two or more lists of sentences; `rng`, a NumPy
    generator.
    """
    for number, document in enumerate(documents):
        for first, second in zip(document, document[1:], strict=False):
            if rng.random() < 0.5:
                yield first, second, IS_NEXT
            else:
                other = rng.integers(len(documents) - 1)
                other = documents[other + (other >= number)]
                yield first, other[rng.integers(len(other))], NOT_NEXT


def pretraining_batch(tokenizer, pairs, rng, max_length=128):
    """Makes what `fit` takes of some pairs: a batch and the labels of both.

    The labels are `mlm_logits`, `(B, S)`, and `nsp_logits`, `(B,)`.
    """
    first, second, labels = zip(*pairs, strict=True)
    batch = tokenizer(first, second, max_length)
    special = [tokenizer.ids[piece] for piece in SPECIAL]
    mask, V = tokenizer.ids["[MASK]"], len(tokenizer.pieces)
    ids = batch["input_ids"]
    batch["input_ids"], hidden = mask_tokens(ids, special, mask, V, rng)
    return batch, {"mlm_logits": hidden, "nsp_logits": np.array(labels)}


def batches(tokenizer, documents, rng, size=32, max_length=128):
    """Yields batches of `size` pairs without end, every round drawn anew."""
    pairs = []
    while True:
        drawn = list(sentence_pairs(documents, rng))
        pairs += [drawn[i] for i in rng.permutation(len(drawn))]
        while len(pairs) >= size:
            now, pairs = pairs[:size], pairs[size:]
            yield pretraining_batch(tokenizer, now, rng, max_length)


class WarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Raises the learning rate to a peak in a line, then lowers it to 0.

    Source: Devlin et al. (2019), appendix A.2.
    """

    def __init__(self, peak, warmup, total):
        self.peak, self.warmup, self.total = peak, warmup, total

    def __call__(self, step):
        """Returns the rate of a step, counted from 0."""
        step = ops.cast(step, "float32")
        up = (step + 1) / self.warmup
        down = (self.total - step) / (self.total - self.warmup + 1)
        return self.peak * ops.maximum(0.0, ops.minimum(up, down))

    def get_config(self):
        """Returns the arguments of `__init__`."""
        names = "peak", "warmup", "total"
        return {name: getattr(self, name) for name in names}


def adamw(peak, steps):
    """Returns BERT's optimizer: AdamW, a tenth of the steps to warm up.

    Gradients are clipped together; norms and biases do not decay.
    """
    optimizer = keras.optimizers.AdamW(
        WarmupDecay(peak, max(1, steps // 10), steps),
        weight_decay=0.01,
        global_clipnorm=1.0,
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


def pretrain(model, stream, steps, peak=1e-3, epochs=1, **options):
    """Trains a `BertForPreTraining` on a stream of batches.

    Args: `stream`, what `batches` yields; `steps`, the batches of the whole
    run; `peak`, the highest learning rate; `epochs`, in how many parts the
    run is told; `options`, others of Keras' `fit`. Returns what `fit` does.
    """
    names = "mlm_logits", "nsp_logits"
    model.compile(
        adamw(peak, steps),
        loss=dict.fromkeys(names, masked_loss),
        metrics=dict.fromkeys(names, accuracy),
    )
    options |= {"epochs": epochs, "steps_per_epoch": steps // epochs}
    return model.fit(stream, shuffle=False, **options)
