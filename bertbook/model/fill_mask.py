"""`fill_mask`: the likeliest tokens at [MASK] in a raw text."""

from functools import lru_cache
from os import PathLike

import numpy as np

from bertbook.checks import is_integer
from bertbook.model.bert import BertForMaskedLM, BertForPreTraining
from bertbook.runtime import keras

MASK = "[MASK]"


def fill_mask(text, model="mini", top_k=5):
    """Guesses the pieces at every [MASK] of a text.

    Args:
        text: A raw text with [MASK] in it, once or more.
        model: A name or folder as `from_pretrained` takes, or a
            `BertForMaskedLM` or `BertForPreTraining` with a tokenizer.
        top_k: Number of guesses.

    Returns:
        The guesses, the likeliest first: dicts of `token`, `score`, its
        probability, and `text`, the text with it filled in. For several
        [MASK] a list of such lists, each filled in with the others left.

    Raises:
        ValueError: The text has no [MASK] or is too long, `top_k` is out of
            range, `model` is something else, or it has no tokenizer.

    >>> import bertbook as bb
    >>> guesses = bb.fill_mask("The United [MASK] of America.", "mini")
    >>> guesses[0]["token"], guesses[0]["text"]
    ('states', 'The United states of America.')
    """
    if isinstance(model, str | PathLike):
        model = _load_model(str(model))
    if not isinstance(model, BertForMaskedLM | BertForPreTraining):
        raise ValueError(
            "`model` must be a name, a folder, a `BertForMaskedLM` or a "
            f"`BertForPreTraining`. Received: {type(model).__name__}."
        )
    tokenizer = model.tokenizer
    if tokenizer is None:
        raise ValueError(
            "`model` needs a tokenizer: no vocabulary was found beside the "
            "weights. Set `model.tokenizer`."
        )
    if not is_integer(top_k) or not 1 <= top_k <= len(tokenizer):
        raise ValueError(
            f"`top_k` must be an integer in [1, {len(tokenizer)}]. "
            f"Received: {top_k!r}."
        )
    encoding = tokenizer.encode(text)
    columns = np.flatnonzero(
        np.array(encoding.input_ids) == tokenizer.mask_token_id
    )
    if not len(columns):
        raise ValueError(f"`text` must hold {MASK}. Received: {text!r}.")
    batch = {
        "input_ids": np.array([encoding.input_ids], "int32"),
        "masked_lm_positions": columns[None].astype("int32"),
    }
    logits = model(batch, training=False)
    if isinstance(logits, dict):
        logits = logits["mlm_logits"]
    # A table may be padded: its last rows have no piece, and no probability.
    logits = logits[0, :, : len(tokenizer)]  # (M, V)
    scores = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    guesses = [
        _best(row, text, encoding.offsets[column], tokenizer, int(top_k))
        for row, column in zip(scores, columns, strict=True)
    ]
    return guesses[0] if len(guesses) == 1 else guesses


@lru_cache(maxsize=2)
def _load_model(name):
    """Returns a `BertForMaskedLM` by name or folder; the last two are kept."""
    return BertForMaskedLM.from_pretrained(name)


def _best(scores, text, span, tokenizer, top_k):
    """Returns the likeliest pieces for one place, `(V,)` scores given."""
    order = np.argsort(-scores, kind="stable")[:top_k]
    return [
        {
            "token": tokenizer.vocabulary[i],
            "score": float(scores[i]),
            "text": _fill_in(text, span, tokenizer.vocabulary[i]),
        }
        for i in order
    ]


def _fill_in(text, span, piece):
    """Puts a piece in place of a part of a text; ## joins it to the left."""
    start, end = span
    before = text[:start]
    if piece.startswith("##"):
        before, piece = before.rstrip(), piece[2:]
    return before + piece + text[end:]
