"""Initial weights with which a head finds a piece again in the other text.

A model that has read little has no head that compares two texts piece by
piece, and a few thousand labeled pairs do not give it one. Here one head is
set to do so before the training. As with `neighbors`, the result is a plain
BERT: every weight is trained, these too.

Differences: the paper's model has learned such heads from far more text. To
start attention from a structure is the idea of Trockman and Kolter (2023),
"Mimetic Initialization of Self-Attention Layers".
"""

import numpy as np

ROWS, LENGTH = 64, 64  # random rows, by which directions are measured


def look_for_repeats(model, head=-1, sharpness=12.0, apart=16.0, seed=0):
    """Sets a head of the first layer to look for its piece in the other text.

    Where the piece is not there, the head looks at the other text's [SEP].
    The values that it passes on stay as they were.

    Args:
        model: A `BertEncoder`, or a model that has one, with a tokenizer.
        head: Which head of the first layer.
        sharpness: What the score of the same piece has more than that of
            another, about.
        apart: What a score gains in the other text, and loses in its own.
        seed: Seed of the rows by which directions are measured.

    Raises:
        ValueError: The model has no tokenizer, or is too narrow to tell
            pieces from positions.
    """
    encoder = getattr(model, "encoder", model)
    ids, segments = random_pairs(model, seed)
    vectors = np.asarray(encoder.embeddings(ids, segments))  # (R, S, D)
    width = encoder.config.hidden_size // encoder.config.num_attention_heads
    content, middle = content_directions(vectors, width - 2)  # (D, H - 2)
    is_second = read_off(vectors, 2.0 * segments - 1)  # (D + 1,)
    is_end = read_off(vectors, ids == model.tokenizer.sep_token_id)

    root = np.sqrt(width)  # scores are divided by it
    gain = np.sqrt(sharpness * root / content.shape[1])
    kernel = np.zeros((2, vectors.shape[-1] + 1, width))  # query, key; + bias
    kernel[:, :-1, :-2] = gain * content
    kernel[:, -1, :-2] = -gain * middle @ content
    kernel[0, :, -2] = np.sqrt(apart * root) * is_second
    kernel[1, :, -2] = -np.sqrt(apart * root) * is_second
    kernel[0, -1, -1] = 1.0  # every query asks for [SEP], half as loud
    kernel[1, :, -1] = 0.5 * sharpness * root * is_end
    assign_head(encoder.blocks[0].attention, head, *kernel)


def look_everywhere(model, layer, head=-1, seed=0):
    """Draws the queries and keys of a head anew, so that it looks evenly.

    Args:
        model: A `BertEncoder`, or a model that has one.
        layer: Which layer, from 0.
        head: Which of its heads.
        seed: Seed of the numbers, of spread 0.02.
    """
    encoder = getattr(model, "encoder", model)
    config = encoder.config
    width = config.hidden_size // config.num_attention_heads
    shape = (2, config.hidden_size + 1, width)
    kernel = np.random.default_rng(seed).normal(scale=0.02, size=shape)
    kernel[:, -1] = 0
    assign_head(encoder.blocks[layer].attention, head, *kernel)


def random_pairs(model, seed):
    """Returns ids and segments `(R, S)` of rows of random pieces."""
    tokenizer = model.tokenizer
    if tokenizer is None:
        raise ValueError("`model` must have a tokenizer. Received: none.")
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    special |= {tokenizer.pad_token_id}
    pieces = [i for i in range(len(tokenizer)) if i not in special]
    config = getattr(model, "encoder", model).config
    length = min(LENGTH, config.max_position_embeddings)
    ids = np.random.default_rng(seed).choice(pieces, (ROWS, length))
    half = length // 2
    ids[:, 0] = tokenizer.cls_token_id
    ids[:, [half - 1, length - 1]] = tokenizer.sep_token_id
    segments = np.tile(np.arange(length) >= half, (ROWS, 1))
    return ids.astype("int32"), segments.astype("int32")


def content_directions(vectors, count):
    """Finds in which directions pieces differ and places do not.

    Args:
        vectors: NumPy array of shape `(R, S, D)`, one place a column.
        count: How many directions.

    Returns:
        The directions, `(D, count)`, along each of which the pieces have
        spread 1, and the middle of all vectors, `(D,)`.

    Raises:
        ValueError: Fewer directions are left.
    """
    places = vectors.mean(axis=0)  # (S, D)
    width = vectors.shape[-1]
    middle = places.mean(axis=0)
    of_places = np.linalg.svd(places - middle, full_matrices=False)[2]
    if width - len(of_places) < count:
        raise ValueError(
            f"`hidden_size` must be at least {len(of_places) + count}, to "
            f"tell pieces from places. Received: {width}."
        )
    keep = np.eye(width) - of_places.T @ of_places  # (D, D)
    pieces = (vectors - places).reshape(-1, width) @ keep
    _, spread, rows = np.linalg.svd(pieces, full_matrices=False)
    spread = spread[:count] / np.sqrt(len(pieces))
    return rows[:count].T / spread, middle


def read_off(vectors, wanted):
    """Returns the weights and the bias that read a number off vectors.

    Args:
        vectors: NumPy array of shape `(R, S, D)`.
        wanted: The numbers, `(R, S)`.

    Returns:
        NumPy array of shape `(D + 1,)`, by least squares.
    """
    rows = vectors.reshape(-1, vectors.shape[-1])
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    return np.linalg.lstsq(rows, np.ravel(wanted).astype("float64"))[0]


def assign_head(attention, head, query, key):
    """Sets queries and keys of one head; `(D + 1, H)`, the bias at the end."""
    layer = attention.query_key_value
    kernel, bias = (np.array(w) for w in (layer.kernel, layer.bias))
    width, head_width = kernel.shape[0], query.shape[1]
    start = range(0, width, head_width)[head]
    for first, part in ((start, query), (width + start, key)):
        kernel[:, first : first + head_width] = part[:-1]
        bias[first : first + head_width] = part[-1]
    layer.kernel.assign(kernel)
    layer.bias.assign(bias)
