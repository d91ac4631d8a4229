"""What a chip can do at most, and what a model asks of it.

A FLOP is a multiplication or an addition. Only matrix products are counted:
the rest is a few percent of a BERT. A product of (m, k) and (k, n) takes
2 m k n. A pass backward takes twice the pass forward, so that each of the N
numbers of a matrix takes 6 FLOPs for each token of training: 6 N. Scores and
mixing take 4 S D for each token and layer forward, 12 S D with backward.

What the package leaves out is not counted: after the attention of the last
layer only the tokens that a head reads go on.
"""

import re

# TFLOP/s of dense matrix products in 16 bits, by what JAX calls the device.
# The numbers with sparsity in the data sheets of NVIDIA are twice as large.
PEAKS = (
    (r"H100 80GB HBM3", 989),  # NVIDIA, data sheet of H100, SXM; PCIe has less
    (r"H200$", 989),  # NVIDIA, data sheet of H200, SXM
    (r"A100\b", 312),  # NVIDIA, data sheet of A100, 40 and 80 GB
    (r"T4$", 65),  # NVIDIA, data sheet of T4: float16, it has no bfloat16
    (r"\bL4$", 121),  # NVIDIA, data sheet of L4
    (r"TPU v5 ?(lite|e)$", 197),  # Google Cloud, TPU v5e
    (r"TPU v6 ?(lite|e)$", 918),  # Google Cloud, TPU v6e
    (r"TPU v4$", 275),  # Google Cloud, TPU v4
)
MEMORY_SHARE = 0.7  # of a device, for what the first batch keeps
KEPT = 80  # numbers for each of the D of a token, and
KEPT_SCORE = 5  # bytes for each score: what JAX keeps of a layer in 16 bits


def peak_of(kind):
    """Returns the most TFLOP/s in 16 bits of a device, None if unknown."""
    for pattern, peak in PEAKS:
        if re.search(pattern, kind):
            return peak
    return None


def forward_flops(config, length, slots=None):
    """Returns the FLOPs of one row of tokens, forward.

    Args:
        config: A `BertConfig`.
        length: S, padding counted.
        slots: M, hidden tokens of a `BertForPreTraining`; None for a
            classifier, whose head reads [CLS] alone.
    """
    layers, width = config.num_hidden_layers, config.hidden_size
    kept = 1 + (slots or 0)  # tokens that the last layer finishes
    attention = 2 * length * 4 * width**2 + 4 * length**2 * width
    feed_forward = 2 * 2 * width * config.intermediate_size
    widened = length * (layers - 1) + kept
    heads = 2 * width**2 + 2 * width * 2  # the pooler, and two logits
    if slots:
        heads += 2 * slots * (width**2 + width * config.vocab_size)
    return layers * attention + widened * feed_forward + heads


def training_flops(config, length, slots=None):
    """Returns the FLOPs of one row in a step of training."""
    return 3 * forward_flops(config, length, slots)


def first_rows(config, length, memory, most=512):
    """Returns how many rows of training should fit, a power of two.

    A step keeps much of every layer for the way back. XLA computes some of it
    again instead, so that more may fit.

    Args:
        config: A `BertConfig`.
        length: S.
        memory: Bytes of the device; None if it does not say.
        most: The most rows.
    """
    if memory is None:
        return min(8, most)
    token = 2 * KEPT * config.hidden_size
    token += KEPT_SCORE * config.num_attention_heads * length
    row = length * config.num_hidden_layers * token
    rows = 1
    while 2 * rows <= most and 2 * rows * row <= MEMORY_SHARE * memory:
        rows *= 2
    return rows
