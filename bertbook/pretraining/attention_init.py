"""Attention heads that are prepared before training.

`look_at_neighbors` sets initial weights with which heads look at the tokens
beside them. `teach_to_find` is a short lesson with which a head finds a piece
again in the other text: a model that has read little has no head that compares
two texts piece by piece, and a few thousand labeled pairs do not give it one.
The lesson trains the queries and keys of one head of the first layer on pairs
of texts without labels: the right place to look at is known. `mark_finds` makes
that head mark what it found. The result is a plain BERT, and every weight can
be trained on.

Differences: the paper draws all initial weights at random, and its model has to
find out by itself that neighbors matter, which takes a small model millions of
tokens. To start attention from a structure is the idea of Trockman and Kolter
(2023), "Mimetic Initialization of Self-Attention Layers"; here the structure is
the rotation that moves sinusoids by some positions, from Vaswani et al. (2017),
section 3.5. The paper's model has learned heads that compare from far more
text. A mark at words that the question and the passage share is a feature of
the reader of Chen et al. (2017).
"""

import numpy as np

from bertbook.runtime import keras, ops


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


ROWS, LENGTH = 64, 64  # random rows, by which numbers are read off


class Finder(keras.Model):
    """The queries and keys of one head, and where it looks.

    Args:
        width: H, the width of the head.
        seed: Seed of the matrices.
    """

    def __init__(self, width, seed, **kwargs):
        super().__init__(**kwargs)
        self.query, self.key = (
            keras.layers.Dense(
                width,
                kernel_initializer=keras.initializers.GlorotUniform(seed),
            )
            for seed in (seed, seed + 1)
        )

    def build(self, shape):
        """Creates both matrices for vectors of width D."""
        self.query.build(shape)
        self.key.build(shape)

    def call(self, vectors):
        """Returns the scores `(B, S, S)` of vectors `(B, S, D)`."""
        keys = ops.swapaxes(self.key(vectors), 1, 2)
        return ops.matmul(self.query(vectors), keys) / self.query.units**0.5


def teach_to_find(
    model, ids, segments, head=-1, steps=400, learning_rate=1e-2, seed=0
):
    """Trains a head of the first layer to find its piece in the other text.

    Where the piece is not there, the head learns to look at the other text's
    [SEP]. Its queries and keys begin at random, and nothing else changes.

    Args:
        model: A `BertEncoder`, or a model that has one, with a tokenizer.
        ids: Pieces of pairs of texts, integer array of shape `(R, S)`.
        segments: 0 for the first text and 1 for the second, `(R, S)`.
        head: Which head.
        steps: Updates by Adam, of 32 rows each.
        learning_rate: That of the first update; it falls linearly to 0.
        seed: Seed of the matrices, and of the order of the rows.

    Returns:
        The attention that falls on right places, by step, a list of numbers
        in [0, 1].

    Raises:
        ValueError: The model has no tokenizer.
    """
    encoder = getattr(model, "encoder", model)
    tokenizer = _tokenizer_of(model)
    config = encoder.config
    places = _places_of(head, config)
    finder = Finder(len(places), seed)
    finder.build((None, None, config.hidden_size))
    rate = keras.optimizers.schedules.PolynomialDecay(learning_rate, steps)
    finder.compile(keras.optimizers.Adam(rate), _missed_attention)
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(steps):
        rows = random.integers(0, len(ids), 32)
        vectors = encoder.embeddings(ids[rows], segments[rows])
        right, allowed = find_repeats(ids[rows], segments[rows], tokenizer)
        answers = np.stack([right, allowed], axis=-1).astype("float32")
        loss = finder.train_on_batch(vectors, answers)
        shares.append(float(np.exp(-np.ravel(loss)[0])))
    trained = [np.array(weight) for weight in finder.get_weights()]
    _assign(encoder.blocks[0].attention, places, trained)
    return shares


def find_repeats(ids, segments, tokenizer):
    """Finds where the pieces of each text occur in the other one.

    Args:
        ids: Integer array of shape `(B, S)`; segments alike.
        segments: 0 for the first text, 1 for the second.
        tokenizer: Says which pieces are special.

    Returns:
        Two boolean arrays `(B, S, S)`: where the same piece occurs in the other
        text, or that text's [SEP] where it does not; and where there is no
        padding. Rows of padding are all False.
    """
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    real = ids != tokenizer.pad_token_id
    word = real & ~np.isin(ids, special)
    in_other = segments[:, :, None] != segments[:, None, :]
    in_other &= real[:, :, None] & real[:, None, :]
    same = in_other & (ids[:, :, None] == ids[:, None, :])
    same &= word[:, :, None] & word[:, None, :]
    ends = in_other & (ids == tokenizer.sep_token_id)[:, None, :]
    right = np.where(same.any(axis=-1, keepdims=True), same, ends)
    return right, np.broadcast_to(real[:, None, :], right.shape)


def mark_finds(model, head=-1, strength=6.0, seed=0):
    """Lets a head add a mark to each token whose piece it found.

    One number of the head's values becomes 0 at [SEP] and 1 elsewhere. The
    output matrix turns it into a vector in a random direction, and nothing
    else that the layer gathers goes there.

    Args:
        model: A `BertEncoder`, or a model that has one, with a tokenizer.
        head: Which head of the first layer.
        strength: Length of the mark; vectors have length `sqrt(D)`, about.
        seed: Seed of the direction.

    Returns:
        The direction, of length 1, NumPy array of shape `(D,)`.

    Raises:
        ValueError: The model has no tokenizer.
    """
    encoder = getattr(model, "encoder", model)
    ids, segments = _random_pairs(encoder.config, _tokenizer_of(model), seed)
    vectors = np.asarray(encoder.embeddings(ids, segments))  # (R, S, D)
    weights = read_off(vectors, ids != model.tokenizer.sep_token_id)
    attention = encoder.blocks[0].attention
    width = encoder.config.hidden_size
    first = _places_of(head, encoder.config)[0]
    kernel, bias = map(np.array, attention.query_key_value.get_weights())
    kernel[:, 2 * width + first] = weights[:-1]
    bias[2 * width + first] = weights[-1]
    attention.query_key_value.set_weights([kernel, bias])
    direction = np.random.default_rng(seed).normal(size=width)
    direction -= direction.mean()  # the normalization would take it away
    direction /= np.linalg.norm(direction)
    kernel, bias = map(np.array, attention.output_projection.get_weights())
    kernel -= np.outer(kernel @ direction, direction)
    kernel[first] = strength * direction
    attention.output_projection.set_weights([kernel, bias])
    return direction


def _random_pairs(config, tokenizer, seed):
    """Returns ids and segments `(R, S)` of rows of random pieces."""
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    special.append(tokenizer.pad_token_id)
    pieces = np.setdiff1d(np.arange(len(tokenizer)), special)
    length = min(LENGTH, config.max_position_embeddings)
    ids = np.random.default_rng(seed).choice(pieces, (ROWS, length))
    half = length // 2
    ids[:, 0] = tokenizer.cls_token_id
    ids[:, [half - 1, length - 1]] = tokenizer.sep_token_id
    segments = np.tile(np.arange(length) >= half, (ROWS, 1))
    return ids.astype("int32"), segments.astype("int32")


def read_off(vectors, numbers):
    """Returns the weights and the bias that read a number off vectors.

    Args:
        vectors: NumPy array of shape `(R, S, D)`.
        numbers: The numbers, `(R, S)`.

    Returns:
        NumPy array of shape `(D + 1,)`, by least squares.
    """
    rows = vectors.reshape(-1, vectors.shape[-1])
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    return np.linalg.lstsq(rows, np.ravel(numbers).astype("float64"))[0]


def _missed_attention(answers, scores):
    """Returns the mean negative logarithm of attention on right places."""
    right, allowed = answers[..., 0] > 0, answers[..., 1] > 0
    scores = ops.where(allowed, scores, -1e9)
    on_right = ops.logsumexp(ops.where(right, scores, -1e9), axis=-1)
    surprise = ops.logsumexp(scores, axis=-1) - on_right  # (B, S)
    counted = ops.cast(ops.any(right, axis=-1), surprise.dtype)
    return ops.sum(surprise * counted) / ops.sum(counted)


def _tokenizer_of(model):
    if model.tokenizer is None:
        raise ValueError("`model` must have a tokenizer. Received: none.")
    return model.tokenizer


def _places_of(head, config):
    """Returns the numbers of a vector that belong to a head."""
    numbers = np.arange(config.hidden_size)
    return numbers.reshape(config.num_attention_heads, -1)[head]


def _assign(attention, places, weights):
    """Sets queries and keys of a head: kernel and bias of each."""
    kernel, bias = map(np.array, attention.query_key_value.get_weights())
    width = len(kernel)
    for start, part, offset in ((0, *weights[:2]), (width, *weights[2:])):
        kernel[:, start + places] = part
        bias[start + places] = offset
    attention.query_key_value.set_weights([kernel, bias])
