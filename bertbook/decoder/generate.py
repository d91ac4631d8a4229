"""`generate`: a model continues prompts, or translates sources.

Each search names its paper. All of them run compiled, with arrays of one shape:
a batch of another shape is compiled anew.
"""

from collections.abc import Mapping

import numpy as np

from bertbook.batches import batching
from bertbook.batches.batching import check_batch, without_lists
from bertbook.checks import as_number, is_integer
from bertbook.decoder.prompts import INPUTS, check_rank
from bertbook.decoder.search import (
    Beams,
    candidates,
    draw,
    go_on,
    likeliest,
    search_beams,
)
from bertbook.runtime import ops

# Of `temperature` and `top_p`: smaller ones are 0 in float32, or make a logit
# infinite. At this one the likeliest token alone is left.
LEAST = 1e-30


def generate(
    model, texts, max_length=64, search="greedy", batch_size=32, **options
):
    """Continues texts, or translates them.

    Texts of similar length are computed together; the order of the result is
    that of `texts`.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`, with its tokenizers.
        texts: A list of raw texts: prompts, or sources.
        max_length: Most new tokens a text.
        search: "greedy", "sample" or "beams".
        batch_size: Most texts computed at a time.
        **options: `end_token_id` and `use_cache` as in `greedy`; for "sample"
            also `temperature`, `top_k`, `top_p` and `seed`, for "beams"
            `beam_width` and `length_penalty`, as in `sample` and
            `beam_search`.

    Returns:
        A list of texts: each prompt, as its pieces spell it, with what follows
        it; or each target. What no piece spells, such as an emoji, is left
        out.

    Raises:
        ValueError: `model` is no decoder or has no tokenizer, a text is too
            long or empty, or an option is out of range.

    >>> import bertbook as bb
    >>> model = bb.Seq2SeqTransformer.from_pretrained("en-es")
    >>> bb.generate(model, ["Where is the library?"])
    ['¿Dónde está la biblioteca?']
    """
    _check_model(model)
    searches = {"greedy": greedy, "sample": sample, "beams": beam_search}
    if search not in list(searches):  # a dict cannot look up a list
        raise ValueError(
            f"`search` must be one of {', '.join(searches)}. "
            f"Received: {search!r}."
        )
    max_length = _checked_max_length(max_length, model.config)
    batch_size = _checked_batch_size(batch_size)
    batch = model.prompts(texts)
    lengths = batch["attention_mask"].sum(axis=1)
    limit = model.longest_input(max_length)
    _check_lengths(lengths, limit, max_length)
    written = [""] * len(lengths)
    if search == "sample":  # a text has its seed, whatever its batch
        seeds = checked_seeds(options.pop("seed", 0), len(lengths))
    for rows, length in batching.bucketed(lengths, batch_size, limit):
        size = min(batch_size, len(lengths))
        part = batching.take_rows(
            batch, rows, length, size, model.config.pad_token_id
        )
        if search == "sample":
            options["seed"] = np.resize(seeds[rows], size)
        ids = searches[search](model, part, max_length, **options)
        ids = ids.ids[:, 0] if search == "beams" else ids
        for row, input_ids, new_ids in zip(
            rows, part["input_ids"], ids, strict=False
        ):
            written[row] = model.read(input_ids[: lengths[row]], new_ids)
    return written


def greedy(model, batch, max_length, end_token_id=None, use_cache=True):
    """Takes the likeliest token each time.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`.
        batch: `input_ids` and perhaps `attention_mask`, `(B, S)`: prompts or
            sources, padded on the right.
        max_length: Most new tokens a row.
        end_token_id: The token after which a row has ended; without it, that
            of the config.
        use_cache: Whether to keep keys and values of earlier tokens, or read
            all tokens again for each new one: slow, the same result.

    Returns:
        The new ids, `(B, max_length)` int32 NumPy; after the end token,
        padding.

    Raises:
        ValueError: The batch is empty or too long, or an option is out of
            range.
    """
    _check_model(model)
    max_length = _checked_max_length(max_length, model.config)
    end = _checked_end(model, end_token_id)
    batch = checked_inputs(model, batch, max_length)
    size = count_pieces(model)

    def search(batch):
        steps = KnownPieces(model.steps(use_cache), size)
        pad = model.config.pad_token_id
        return go_on(steps, batch, max_length, likeliest, end, pad)

    key = ("greedy", max_length, end, use_cache, size)
    run = model._compile_once(key, search)
    return ops.convert_to_numpy(run(batch))


def sample(
    model,
    batch,
    max_length,
    temperature=1.0,
    top_k=None,
    top_p=1.0,
    seed=0,
    end_token_id=None,
    use_cache=True,
):
    """Draws each token by its probability.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`.
        batch: `input_ids` and perhaps `attention_mask`, `(B, S)`: prompts or
            sources, padded on the right.
        max_length: Most new tokens a row.
        temperature: What logits are divided by, above 0: below 1 likely
            tokens become likelier.
        top_k: How many of the likeliest tokens may be drawn; None for all.
        top_p: Only the likeliest tokens that reach this probability together
            may be drawn, in (0, 1]; 1 for all.
        seed: An integer, one more for each row; or one for each row.
        end_token_id: The token after which a row has ended; None for that of
            the config.
        use_cache: Whether to keep keys and values of earlier tokens, or read
            all tokens again for each new one: slow, the same result.

    Returns:
        The new ids, `(B, max_length)` int32 NumPy.

    Raises:
        ValueError: As in `greedy`.
    """
    _check_model(model)
    max_length = _checked_max_length(max_length, model.config)
    end = _checked_end(model, end_token_id)
    temperature, top_k, top_p = _checked_sampling(
        model, temperature, top_k, top_p
    )
    temperature, top_p = max(temperature, LEAST), max(top_p, LEAST)
    batch = checked_inputs(model, batch, max_length)
    seeds = checked_seeds(seed, len(batch["input_ids"]))
    size = count_pieces(model)
    numbers = [
        np.random.default_rng(seed).random(max_length, "float32")
        for seed in seeds
    ]

    def search(batch, numbers):
        def pick(logits, number):
            drawn = ops.take(numbers, number, axis=1)  # (B,)
            logits = ops.cast(logits, "float32")
            # The best becomes 0, which any temperature leaves as it is.
            logits = logits - ops.max(logits, axis=-1, keepdims=True)
            chosen = candidates(logits, temperature, top_k, top_p)
            return draw(*chosen, drawn)

        steps = KnownPieces(model.steps(use_cache), size)
        pad = model.config.pad_token_id
        return go_on(steps, batch, max_length, pick, end, pad)

    options = temperature, top_k, top_p
    key = ("sample", max_length, *options, end, use_cache, size)
    run = model._compile_once(key, search)
    return ops.convert_to_numpy(run(batch, np.stack(numbers)))


def beam_search(
    model,
    batch,
    max_length,
    beam_width=4,
    length_penalty=0.6,
    end_token_id=None,
    use_cache=True,
):
    """Keeps the likeliest texts of every length, and returns the best.

    Source: Wu et al. (2016), section 7; Vaswani et al. (2017), section 6.1,
    for the two numbers.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`.
        batch: `input_ids` and perhaps `attention_mask`, `(B, S)`: prompts or
            sources, padded on the right.
        max_length: Most new tokens a row.
        beam_width: W, how many texts are kept; 1 is `greedy`.
        length_penalty: The exponent of Wu et al., equation 14, at least 0; the
            larger it is, the longer the texts.
        end_token_id: The token after which a row has ended; None for that of
            the config.
        use_cache: Whether to keep keys and values of earlier tokens, or read
            all tokens again for each new one: slow, the same result.

    Returns:
        `Beams` of NumPy arrays: `ids`, `(B, W, max_length)` int32, and
        `scores`, `(B, W)` float32, the best text of each row first.

    Raises:
        ValueError: As in `greedy`.
    """
    _check_model(model)
    max_length = _checked_max_length(max_length, model.config)
    end = _checked_end(model, end_token_id)
    options = _checked_beams(model, beam_width, length_penalty)
    batch = checked_inputs(model, batch, max_length)
    size = count_pieces(model)

    def search(batch):
        steps = KnownPieces(model.steps(use_cache), size)
        pad = model.config.pad_token_id
        return search_beams(steps, batch, max_length, *options, end, pad)

    key = ("beams", max_length, *options, end, use_cache, size)
    beams = model._compile_once(key, search)(batch)
    return Beams(*(ops.convert_to_numpy(part) for part in beams))


class KnownPieces:
    """Steps of a model that write no id without a piece.

    A table may be padded: its last rows belong to no piece.

    Args:
        steps: What `steps` of a model returned.
        size: How many ids have a piece.
    """

    def __init__(self, steps, size):
        self.start = steps.start
        self.whole_step = steps.step
        self.size = size

    def step(self, *inputs):
        """As the `step` of the steps; logits of the known pieces alone."""
        logits, history = self.whole_step(*inputs)
        return logits[:, : self.size], history


def count_pieces(model):
    """Returns how many ids a model may write: those that have a piece.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`; one without a tokenizer
            may write every id.
    """
    tokenizer = getattr(model, "target_tokenizer", model.tokenizer)
    size = model.config.output_size
    return size if tokenizer is None else min(size, len(tokenizer))


def _check_model(model):
    """Refuses what writes no texts."""
    if not hasattr(model, "steps") or not hasattr(model, "longest_input"):
        raise ValueError(
            "`model` must be a `CausalLM` or a `Seq2SeqTransformer`. "
            f"Received: {type(model).__name__}."
        )


def checked_inputs(model, batch, max_length):
    """Returns prompts or sources as NumPy arrays that fit a model.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`.
        batch: `input_ids` and perhaps `attention_mask`, `(B, S)`.
        max_length: Most new tokens a row, as `_checked_max_length` gave it.

    Returns:
        Both of them, int32.

    Raises:
        ValueError: As `batching.check_batch`; or a row has no token, is
            padded on the left, or is too long.
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
    limit = model.longest_input(max_length)
    _check_lengths(np.full(len(ids), ids.shape[1]), limit, max_length)
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


def _check_lengths(lengths, limit, max_length):
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
    """Returns a seed for each row, `(B,)`: those given, or counted up.

    Raises:
        ValueError: A seed is no integer >= 0, or there are not `rows`.
    """
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


def _checked_max_length(max_length, config):
    """Returns a number of new tokens; refuses one that has no positions."""
    limit = config.max_position_embeddings
    if not is_integer(max_length) or not 1 <= max_length <= limit:
        raise ValueError(
            "`max_length` must be an integer in [1, "
            f"{limit}], the last of which is `max_position_embeddings`. "
            f"Received: {max_length!r}."
        )
    return int(max_length)


def _checked_batch_size(batch_size):
    """Returns how many texts are computed at a time, at least 1."""
    if not is_integer(batch_size) or batch_size < 1:
        raise ValueError(
            f"`batch_size` must be an integer >= 1. Received: {batch_size!r}."
        )
    return int(batch_size)


def _checked_end(model, end_token_id):
    """Returns the end token, by default that of the config."""
    if end_token_id is None:
        return model.config.eos_token_id
    size = count_pieces(model)
    if not is_integer(end_token_id) or not 0 <= end_token_id < size:
        raise ValueError(
            "`end_token_id` must be an id of the vocabulary, in "
            f"[0, {size}). Received: {end_token_id!r}."
        )
    return int(end_token_id)


def _checked_sampling(model, temperature, top_k, top_p):
    """Returns the three options as plain numbers, the key of a graph.

    Raises:
        ValueError: An option is out of range.
    """
    if not 0 < as_number(temperature) < float("inf"):
        raise ValueError(
            "`temperature` must be a number above 0; `greedy` is what it tends "
            f"to at 0. Received: {temperature!r}."
        )
    size = count_pieces(model)
    if top_k is not None and not (is_integer(top_k) and 1 <= top_k <= size):
        raise ValueError(
            f"`top_k` must be None or an integer in [1, {size}]. "
            f"Received: {top_k!r}."
        )
    if not 0 < as_number(top_p) <= 1:
        raise ValueError(f"`top_p` must be in (0, 1]. Received: {top_p!r}.")
    count = None if top_k is None else int(top_k)
    return float(temperature), count, float(top_p)


def _checked_beams(model, beam_width, length_penalty):
    """Returns both options as plain numbers, the key of a graph.

    Raises:
        ValueError: There are not enough first tokens for the beam, or the
            penalty is below 0.
    """
    size = count_pieces(model)
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
