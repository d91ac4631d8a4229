"""Attention heads that are prepared before training.

`look_at_neighbors` sets initial weights with which heads look at the tokens
beside them. The result is a plain BERT, and every weight can be trained on.

Differences: the paper draws all initial weights at random, and its model has to
find out by itself that neighbors matter, which takes a small model millions of
tokens. To start attention from a structure is the idea of Trockman and Kolter
(2023), "Mimetic Initialization of Self-Attention Layers"; here the structure is
the rotation that moves sinusoids by some positions, from Vaswani et al. (2017),
section 3.5.
"""

import numpy as np


def look_at_neighbors(
    model, offsets=(-1, 1, -2, 2), share=0.5, sharpness=6.0, seed=0
):
    """Sets positions, queries and keys so that heads look a few tokens away.

    The position table becomes sinusoids in a random subspace of width H. The
    keys of a head read them, its queries read them moved by the head's
    offset. The other weights stay as they are.

    Args:
        model: A `BertEncoder`, or a model that has one, with fresh weights.
        offsets: Where each head of a layer looks: -1 is the token before.
            Heads that are left over stay random.
        share: Part of the variance of an embedding that is its position. The
            smaller it is, the more the words blur where a head looks.
        sharpness: The score of the token that is looked at; all others get
            about 0.
        seed: Seed of the subspace.

    Raises:
        ValueError: The model has more positions than sinusoids of width H can
            tell apart, 2H.
    """
    config = model.config
    width = config.hidden_size
    head_width = width // config.num_attention_heads  # H
    count = config.max_position_embeddings
    if count > 2 * head_width:
        raise ValueError(
            "`max_position_embeddings` must be at most twice the width of a "
            f"head, {2 * head_width}. Received: {count}."
        )
    rng = np.random.default_rng(seed)
    subspace = np.linalg.qr(rng.normal(size=(width, head_width)))[0]  # (D, H)
    encoder = getattr(model, "encoder", model)
    embeddings = encoder.embeddings
    tables = embeddings.token.embeddings, embeddings.segment.embeddings
    variance = sum(np.asarray(table.numpy()).var() for table in tables)
    waves = even_sinusoids(np.arange(count), head_width)  # (P, H)
    waves *= np.sqrt(2 * width / head_width)  # variance 1 in D dimensions
    scale = np.sqrt(variance * share / (1 - share))
    embeddings.position.table.assign(scale * waves @ subspace.T)  # (P, D)
    # After normalization, position times position is share * D.
    gain = np.sqrt(sharpness * np.sqrt(head_width) / (share * width))
    for block in encoder.blocks:
        kernel = block.attention.query_key_value.kernel
        matrix = np.array(kernel.numpy())  # (D, 3D): queries, keys, values
        for head, offset in enumerate(offsets[: config.num_attention_heads]):
            start = head * head_width
            query = slice(start, start + head_width)
            key = slice(width + start, width + start + head_width)
            matrix[:, query] = gain * subspace @ turn(offset, head_width)
            matrix[:, key] = gain * subspace
        kernel.assign(matrix)


def even_sinusoids(positions, width):
    """Returns sinusoids whose frequencies are spread evenly up to half a turn.

    The product of two rows is width / 2 where the positions are the same, and
    0 where they differ by less than `width`.

    Args:
        positions: Numbers, shape `(P,)`.
        width: H, even: cosines in the first half, sines in the second.

    Returns:
        NumPy array of shape `(P, H)`, float64, in [-1, 1].
    """
    angles = np.multiply.outer(positions, _frequencies(width))  # (P, H / 2)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)


def turn(offset, width):
    """Returns the matrix that moves `even_sinusoids` by some positions.

    Args:
        offset: How many positions, of either sign.
        width: H.

    Returns:
        NumPy array of shape `(H, H)`: the row of p times it is that of
        p + offset.
    """
    angles = offset * _frequencies(width)
    cosines, sines = np.diag(np.cos(angles)), np.diag(np.sin(angles))
    return np.block([[cosines, sines], [-sines, cosines]])


def _frequencies(width):
    half = width // 2
    return np.pi * (np.arange(half) + 0.5) / half
