"""What cannot be written on from, and options without sense.

Differences: none; this module has no counterpart in the papers.
"""

from collections.abc import Mapping

import numpy as np

from bertbook.batching import check_batch
from bertbook.pretrained import without_lists
from bertbook.prompts import INPUTS, check_rank
from bertbook.text_checks import as_number, is_integer


def checked_given(model, batch, max_length):
    """Returns prompts or sources as NumPy arrays that fit a model.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`.
        batch: `input_ids` and perhaps `attention_mask`, `(B, S)`.
        max_length: Most new tokens a row, as `checked_max_length` gave it.

    Returns:
        Both of them, int32.

    Raises:
        ValueError: As `batching.check_batch`; or a row has no token, is
            padded at the left, or is too long.
    """
    if not isinstance(batch, Mapping):
        raise ValueError(
            "`batch` must be a dict of arrays; `generate` takes texts. "
            f"Received: {type(batch).__name__}."
        )
    batch = without_lists({n: batch[n] for n in INPUTS if n in batch})
    batch = {name: np.asarray(array) for name, array in batch.items()}
    check_batch(batch, model.config)
    ids = batch["input_ids"]
    mask = batch.get("attention_mask", np.ones_like(ids)).astype("int32")
    _check_padding(mask)
    limit = model.longest_given(max_length)
    check_lengths(np.full(len(ids), ids.shape[1]), limit, max_length)
    return {
        "input_ids": ids.astype("int32"),
        "attention_mask": mask,
    }


def _check_padding(mask):
    """Refuses rows without a token, and padding elsewhere than at the end."""
    check_rank(mask)
    lengths = mask.sum(axis=1)
    for row, length in enumerate(lengths):
        if not length:
            raise ValueError(
                "Every row must hold at least one token that is not hidden. "
                f"Received: none in row {row}."
            )
        if not mask[row, :length].all():
            raise ValueError(
                "`attention_mask` must be 1 for a text and 0 for the padding "
                f"behind it. Received: {mask[row].tolist()} in row {row}."
            )


def check_lengths(lengths, limit, max_length):
    """Refuses prompts or sources that are too long, and names the first.

    Args:
        lengths: Their numbers of tokens, `(B,)`.
        limit: The largest that the model takes.
        max_length: Most new tokens a row.

    Raises:
        ValueError: One is longer.
    """
    too_long = np.flatnonzero(np.asarray(lengths) > limit)
    if len(too_long):
        row = too_long[0]
        raise ValueError(
            f"With `max_length={max_length}`, a row must hold at most {limit} "
            "tokens, for which there are `max_position_embeddings`. Received: "
            f"{lengths[row]} in row {row}."
        )


def checked_seeds(seed, rows):
    """Returns a seed for each row, `(B,)`: those given, or counted up."""
    if is_integer(seed) and seed >= 0:
        return np.arange(seed, seed + rows)
    seeds = np.asarray(seed)
    is_list = seeds.shape == (rows,) and np.issubdtype(seeds.dtype, np.integer)
    if not is_list or (seeds < 0).any():
        raise ValueError(
            f"`seed` must be an integer >= 0, or {rows} of them. "
            f"Received: {seed!r}."
        )
    return seeds


def checked_max_length(max_length, config):
    """Returns a number of new tokens; refuses one that has no positions."""
    limit = config.max_position_embeddings
    if not is_integer(max_length) or not 1 <= max_length <= limit:
        raise ValueError(
            "`max_length` must be an integer in [1, "
            f"{limit}], the last of which is `max_position_embeddings`. "
            f"Received: {max_length!r}."
        )
    return int(max_length)


def checked_batch_size(batch_size):
    """Returns how many texts are computed at a time; refuses none."""
    if not is_integer(batch_size) or batch_size < 1:
        raise ValueError(
            f"`batch_size` must be an integer >= 1. Received: {batch_size!r}."
        )
    return int(batch_size)


def checked_end(model, end_token_id):
    """Returns the end token, that of the config where there is none."""
    if end_token_id is None:
        return model.config.eos_token_id
    size = model.config.output_size
    if not is_integer(end_token_id) or not 0 <= end_token_id < size:
        raise ValueError(
            "`end_token_id` must be an id of the vocabulary, in "
            f"[0, {size}). Received: {end_token_id!r}."
        )
    return int(end_token_id)


def checked_sampling(model, temperature, top_k, top_p):
    """Returns the three options as plain numbers, which a graph is kept by.

    Raises:
        ValueError: Nothing could be drawn with one of them, or anything.
    """
    if not 0 < as_number(temperature) < float("inf"):
        raise ValueError(
            "`temperature` must be a number above 0; `greedy` is what it tends "
            f"to at 0. Received: {temperature!r}."
        )
    size = model.config.output_size
    if top_k is not None and not (is_integer(top_k) and 1 <= top_k <= size):
        raise ValueError(
            f"`top_k` must be None or an integer in [1, {size}]. "
            f"Received: {top_k!r}."
        )
    if not 0 < as_number(top_p) <= 1:
        raise ValueError(f"`top_p` must be in (0, 1]. Received: {top_p!r}.")
    count = None if top_k is None else int(top_k)
    return float(temperature), count, float(top_p)


def checked_beams(model, beam_width, length_penalty):
    """Returns both options as plain numbers, which a graph is kept by.

    Raises:
        ValueError: There are not enough first tokens for the beam, or the
            penalty is below 0.
    """
    size = model.config.output_size
    if not is_integer(beam_width) or not 1 <= beam_width <= size:
        raise ValueError(
            f"`beam_width` must be an integer in [1, {size}], no more than "
            f"the vocabulary. Received: {beam_width!r}."
        )
    if not 0 <= as_number(length_penalty) < float("inf"):
        raise ValueError(
            "`length_penalty` must be a number >= 0. "
            f"Received: {length_penalty!r}."
        )
    return int(beam_width), float(length_penalty)
