"""Writing: a model goes on with prompts, or translates sources.

Differences: none; each search names its paper. All of them run compiled, with
arrays of one shape: a batch of another shape is compiled anew.
"""

import numpy as np

from bertbook import batching
from bertbook.beams import Beams, search_beams
from bertbook.generation_checks import (
    check_lengths,
    checked_batch_size,
    checked_beams,
    checked_end,
    checked_given,
    checked_max_length,
    checked_sampling,
    checked_seeds,
)
from bertbook.runtime import ops
from bertbook.sampling import candidates, draw, go_on, likeliest

# Of `temperature` and `top_p`: smaller ones are 0 in float32, or make a logit
# infinite. At this one the likeliest token alone is left.
LEAST = 1e-30


def generate(
    model, texts, max_length=64, search="greedy", batch_size=32, **options
):
    """Writes on from texts, or translates them.

    Texts of similar length are computed together; the order of the result is
    that of `texts`.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`, with its tokenizers.
        texts: A list of raw texts: prompts, or sources.
        max_length: Most new tokens a text.
        search: "greedy", "sample" or "beams".
        batch_size: Most texts computed at a time.
        **options: Further keywords of `greedy`, `sample` or `beam_search`.

    Returns:
        A list of texts: each prompt, as its pieces spell it, with what follows
        it; or each target. What no piece spells, such as an emoji, is left
        out.

    Raises:
        ValueError: The model has no tokenizer, a text is too long or empty,
            or an option is out of range.
    """
    searches = {"greedy": greedy, "sample": sample, "beams": beam_search}
    if search not in list(searches):  # a list, too, is none of them
        raise ValueError(
            f"`search` must be one of {', '.join(searches)}. "
            f"Received: {search!r}."
        )
    max_length = checked_max_length(max_length, model.config)
    batch_size = checked_batch_size(batch_size)
    batch = model.prompts(texts)
    lengths = batch["attention_mask"].sum(axis=1)
    limit = model.longest_given(max_length)
    check_lengths(lengths, limit, max_length)
    written = [""] * len(lengths)
    if search == "sample":  # a text draws alike, whatever is beside it
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
        for row, given, new in zip(rows, part["input_ids"], ids, strict=False):
            written[row] = model.read(given[: lengths[row]], new)
    return written


def greedy(model, batch, max_length, end_token_id=None, use_cache=True):
    """Takes the likeliest token each time.

    Args:
        model: A `CausalLM` or a `Seq2SeqTransformer`.
        batch: `input_ids` and perhaps `attention_mask`, `(B, S)`: prompts or
            sources, padded at the right.
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
    max_length = checked_max_length(max_length, model.config)
    end = checked_end(model, end_token_id)
    batch = checked_given(model, batch, max_length)

    def search(batch):
        steps = model.steps(use_cache)
        pad = model.config.pad_token_id
        return go_on(steps, batch, max_length, likeliest, end, pad)

    run = model.compile_once(("greedy", max_length, end, use_cache), search)
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
        model: As in `greedy`; so are `batch`, `max_length`, `end_token_id`
            and `use_cache`.
        batch: See there.
        max_length: See there.
        temperature: Above 0; as in `sampling.candidates`, and so are `top_k`
            and `top_p`.
        top_k: How many of the likeliest tokens may be drawn; None for all.
        top_p: How probable they must be together.
        seed: An integer, one more for each row; or one for each row.
        end_token_id: See there.
        use_cache: See there.

    Returns:
        The new ids, `(B, max_length)` int32 NumPy.

    Raises:
        ValueError: As in `greedy`.
    """
    max_length = checked_max_length(max_length, model.config)
    end = checked_end(model, end_token_id)
    temperature, top_k, top_p = checked_sampling(
        model, temperature, top_k, top_p
    )
    temperature, top_p = max(temperature, LEAST), max(top_p, LEAST)
    batch = checked_given(model, batch, max_length)
    seeds = checked_seeds(seed, len(batch["input_ids"]))
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

        steps = model.steps(use_cache)
        pad = model.config.pad_token_id
        return go_on(steps, batch, max_length, pick, end, pad)

    options = temperature, top_k, top_p
    key = ("sample", max_length, *options, end, use_cache)
    run = model.compile_once(key, search)
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
        model: As in `greedy`; so are `batch`, `max_length`, `end_token_id`
            and `use_cache`.
        batch: See there.
        max_length: See there.
        beam_width: W, how many texts are kept; 1 is `greedy`.
        length_penalty: As in `beams.length_score`; the larger, the longer.
        end_token_id: See there.
        use_cache: See there.

    Returns:
        `Beams` of NumPy arrays: `ids`, `(B, W, max_length)` int32, and
        `scores`, `(B, W)` float32, the best text of each row first.

    Raises:
        ValueError: As in `greedy`.
    """
    max_length = checked_max_length(max_length, model.config)
    end = checked_end(model, end_token_id)
    options = checked_beams(model, beam_width, length_penalty)
    batch = checked_given(model, batch, max_length)

    def search(batch):
        steps = model.steps(use_cache)
        pad = model.config.pad_token_id
        return search_beams(steps, batch, max_length, *options, end, pad)

    key = ("beams", max_length, *options, end, use_cache)
    found = model.compile_once(key, search)(batch)
    return Beams(*(ops.convert_to_numpy(part) for part in found))
