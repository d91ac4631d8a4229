"""What a viewer shows: checked, compared and packed.

Differences: none; this module has no counterpart in the paper.
"""

import base64

import numpy as np

MOST_TOKENS = 128  # on one side
MOST_WEIGHTS = 12 * 12 * 64 * 64  # as many keep a notebook below 1 MB
MOST_LISTED = 4096  # more weights than this travel as bytes
FINE_STEPS, COARSE_STEPS = 1000, 255  # in which 1.0 is divided
SUM_TOLERANCE = 0.01  # rows in bfloat16 are off by less


def similarity_matrix(vectors_a, vectors_b):
    """Returns the cosine of every vector with every other.

    Args:
        vectors_a: Array of shape `(S_a, D)`.
        vectors_b: Array of shape `(S_b, D)`.

    Returns:
        Float64 array of shape `(S_a, S_b)`, from -1 to 1.

    Raises:
        ValueError: The shapes do not fit, or a vector has no direction: it is
            zero or not finite.

    Examples:
        >>> similarity_matrix([[1, 0], [3, 3]], [[0, 2], [-5, 0]]).round(3)
        array([[ 0.   , -1.   ],
               [ 0.707, -0.707]])
    """
    units_a = unit_vectors(vectors_a, "vectors_a")
    units_b = unit_vectors(vectors_b, "vectors_b")
    if units_a.shape[1] != units_b.shape[1]:
        raise ValueError(
            "`vectors_a` and `vectors_b` must be equally wide. Received: "
            f"{units_a.shape[1]} and {units_b.shape[1]}."
        )
    return np.clip(units_a @ units_b.T, -1.0, 1.0)  # rounding goes beyond 1


def unit_vectors(vectors, name):
    """Returns the vectors, `(S, D)`, with length 1; `name` is for messages.

    Raises:
        ValueError: The shape is another, or a vector has no direction.
    """
    vectors = to_numpy(vectors, "float64")
    if vectors.ndim != 2 or vectors.size == 0:
        raise ValueError(
            f"`{name}` must have shape (S, D). Received: {vectors.shape}."
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)  # (S, 1)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise ValueError(
            f"`{name}` must hold vectors with a direction, finite and not "
            f"zero. Received: one of length {lengths[bad[0], 0]} in row "
            f"{bad[0]}."
        )
    return vectors / lengths


def pack_weights(weights):
    """Returns the weights as the script reads them.

    Up to `MOST_LISTED` are listed in `FINE_STEPS`; more are bytes in base64,
    in `COARSE_STEPS`. `scale` says which, and `digits` how many decimals are
    shown.
    """
    if weights.size <= MOST_LISTED:
        values = in_steps(weights, FINE_STEPS)
        return {"scale": FINE_STEPS, "digits": 3, "values": values}
    steps = np.rint(weights * COARSE_STEPS).astype("uint8")
    values = base64.b64encode(steps.tobytes()).decode()
    return {"scale": COARSE_STEPS, "digits": 2, "values": values}


def in_steps(values, scale):
    """Returns the values as a flat list of integers, each times `scale`."""
    return np.rint(values * scale).astype("int64").ravel().tolist()


def counted(count, name):
    """Writes "1 head" or "2 heads"."""
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def check_text(text, name):
    """Returns `text`, which must be a string of whole characters."""
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be a string. Received: {text!r}.")
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            raise ValueError(
                f"`{name}` must not hold a lone surrogate. Received: "
                f"{character!r} at index {index}."
            )
    return text


def check_tokens(tokens, name):
    """Returns `tokens` as a list of strings, at least one, not too many."""
    if isinstance(tokens, str):
        raise ValueError(
            f"`{name}` must be a list of strings. Received: {tokens!r}."
        )
    tokens = [check_text(t, f"{name}[{i}]") for i, t in enumerate(tokens)]
    if not 1 <= len(tokens) <= MOST_TOKENS:
        raise ValueError(
            f"`{name}` must hold 1 to {MOST_TOKENS} tokens. "
            f"Received: {len(tokens)}."
        )
    return tokens


def check_attentions(attentions, length):
    """Returns the weights, `(L, N, S, S)`, as float32 NumPy.

    Args:
        attentions: Anything that becomes such an array.
        length: Number of tokens, S.

    Raises:
        ValueError: The shape is another, a weight is no share, a row does not
            sum to 1, or there are too many weights.
    """
    weights = to_numpy(attentions)
    fits = weights.ndim == 4 and weights.shape[2:] == (length, length)
    if not fits or weights.size == 0:
        raise ValueError(
            "`attentions` must have shape (L, N, S, S) for one text, with S, "
            f"the number of `tokens`, {length}. Received: {weights.shape}."
        )
    if weights.size > MOST_WEIGHTS:
        raise ValueError(
            f"`attentions` must hold at most {MOST_WEIGHTS:,} weights, so "
            "that a page stays small: choose some `layers`, or a shorter "
            f"text. Received: {weights.size:,}."
        )
    check_rows(weights)
    return weights


def check_rows(weights):
    """Refuses weights that are not shares, and names the first bad row."""
    sums = weights.sum(axis=-1)
    good = abs(sums - 1) <= SUM_TOLERANCE  # False where a sum is nan
    good &= (weights >= 0).all(axis=-1)
    if not good.all():
        layer, head, row = np.argwhere(~good)[0]
        raise ValueError(
            "`attentions` must hold rows of weights >= 0 that sum to 1. "
            f"Received: sum {sums[layer, head, row]:.4f}, least weight "
            f"{weights[layer, head, row].min():.4f} in layer {layer}, "
            f"head {head}, row {row}."
        )


def chosen_layers(layers, count):
    """Returns the numbers of the `layers` chosen among `count`; None is all."""
    if layers is None:
        return list(range(count))
    if not isinstance(layers, list | tuple | range) or not len(layers):
        raise ValueError(
            "`layers` must be a list of at least one number, or None. "
            f"Received: {layers!r}."
        )
    return [layer_index(layer, count, "layers") for layer in layers]


def layer_index(layer, count, name):
    """Returns the number of a layer from 0; -1 is the last of `count`."""
    whole = isinstance(layer, int | np.integer) and not isinstance(layer, bool)
    if not whole or not -count <= layer < count:
        raise ValueError(
            f"`{name}` must be in [{-count}, {count - 1}], without fractions. "
            f"Received: {layer!r}."
        )
    return int(layer) % count


def text_reader(model):
    """Returns the tokenizer and the encoder of an encoder or a model.

    Raises:
        ValueError: It has no tokenizer.
    """
    encoder = getattr(model, "encoder", model)
    tokenizer = getattr(model, "tokenizer", None)
    tokenizer = tokenizer or getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        raise ValueError(
            "`encoder` must have a tokenizer to read a text: set "
            "`encoder.tokenizer`. Received: an encoder without one."
        )
    return tokenizer, encoder


def to_numpy(values, dtype="float32"):
    """Returns an array of numbers or a tensor of any backend as NumPy."""
    return np.asarray(values).astype(dtype)
