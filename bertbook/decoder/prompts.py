"""Inputs of a decoder: prompts, sources and targets."""

from types import SimpleNamespace

import numpy as np

from bertbook.batches.batching import check_batch, check_places
from bertbook.runtime import is_concrete, ops

INPUTS = ("input_ids", "attention_mask")  # No prompt has segments.
TARGET_INPUTS = ("decoder_input_ids", "decoder_attention_mask")


def make_prompts(texts, tokenizer, config):
    """Returns texts as a batch: the start token, then the pieces of the text.

    Args:
        texts: A list of B raw texts; an empty one is the start token alone.
        tokenizer: A `Tokenizer`.
        config: A `CausalLMConfig`.

    Returns:
        `input_ids` and `attention_mask`, `(B, P)` int32, padded on the right.

    Raises:
        ValueError: There is no tokenizer, or `texts` holds something else.
    """
    check_tokenizer(tokenizer, config, config.vocab_size)
    rows = [[config.bos_token_id, *r] for r in tokenizer.encode_pieces(texts)]
    lengths = np.array([len(row) for row in rows])[:, None]
    real = np.arange(lengths.max()) < lengths  # (B, P)
    ids = np.full(real.shape, config.pad_token_id, "int32")
    ids[real] = np.concatenate(rows)
    return {"input_ids": ids, "attention_mask": real.astype("int32")}


def make_sources(texts, tokenizer):
    """Returns texts as a batch of sources, with [CLS] and [SEP] around each.

    Args:
        texts: A list of B raw texts.
        tokenizer: A `Tokenizer`.

    Returns:
        `input_ids` and `attention_mask`, `(B, S)` int32, padded on the right.

    Raises:
        ValueError: `texts` holds something else, or a text without a piece.
    """
    batch = tokenizer(texts)
    empty = np.flatnonzero(batch["attention_mask"].sum(axis=1) <= 2)
    if len(empty):
        raise ValueError(
            "A source must hold at least one piece. Received: "
            f"{texts[empty[0]]!r} in row {empty[0]}."
        )
    return {name: batch[name] for name in INPUTS}


def check_targets(arrays, config):
    """Refuses targets that the decoder cannot read.

    Args:
        arrays: A batch of NumPy arrays, its sources checked.
        config: A `Seq2SeqConfig`.

    Raises:
        ValueError: As `batching.check_batch`, there are more or fewer of them
            than sources, or the mask of the sources has three axes.
        KeyError: There is no `decoder_input_ids`.
    """
    check_rank(arrays.get("attention_mask", arrays["input_ids"]))
    target = {
        name.removeprefix("decoder_"): arrays[name]
        for name in TARGET_INPUTS
        if name in arrays
    }
    sizes = SimpleNamespace(
        vocab_size=config.output_size,
        max_position_embeddings=config.max_position_embeddings,
    )
    try:
        check_batch(target, sizes)
    except (KeyError, ValueError) as error:
        message = f"In the targets, `decoder_input_ids`: {error.args[0]}"
        raise type(error)(message) from None
    rows = len(arrays["input_ids"]), len(target["input_ids"])
    if rows[0] != rows[1]:
        raise ValueError(
            "`decoder_input_ids` must have a row for each of `input_ids`, "
            f"{rows[0]}. Received: {rows[1]}."
        )


def check_rank(mask):
    """Refuses a mask that says for each token of a source what it may see.

    Targets look at the source too, so that it must hold for all.

    Raises:
        ValueError: It does not have two axes.
    """
    if mask.ndim != 2:
        raise ValueError(
            "`attention_mask` must have shape (B, S) here. Received: "
            f"{mask.shape}."
        )


def check_positions(positions, input_ids):
    """Refuses positions of tokens that are not there, where they are known.

    Args:
        positions: `(B, M)`, or None.
        input_ids: `(B, T)`, the tokens that they count.

    Raises:
        ValueError: They have another shape, or are no integers in [0, T).
    """
    if positions is None or not is_concrete(positions):
        return
    if is_concrete(input_ids):
        ids = np.asarray(input_ids)
        check_places("positions", np.asarray(positions), ids)


def check_tokenizer(tokenizer, config, size):
    """Refuses a missing tokenizer, and one with other special tokens.

    It may have fewer pieces than the model: a table may be padded.

    Args:
        tokenizer: The one that reads what a model writes, or None.
        config: A `CausalLMConfig` or a `Seq2SeqConfig`.
        size: How many pieces the model knows on that side.

    Raises:
        ValueError: It is missing, or of another vocabulary.
    """
    if tokenizer is None:
        raise ValueError(
            "`generate` needs a tokenizer: no vocabulary was found beside the "
            "weights. Set `model.tokenizer`, and `model.target_tokenizer` "
            "where it is another."
        )
    token_ids = tokenizer.pad_token_id, tokenizer.cls_token_id
    token_ids = (*token_ids, tokenizer.sep_token_id)
    expected = config.pad_token_id, config.bos_token_id, config.eos_token_id
    if expected != token_ids:
        raise ValueError(
            "The ids of [PAD], [CLS] and [SEP] must be `pad_token_id`, "
            f"`bos_token_id` and `eos_token_id` of the config, {expected}. "
            f"Received: {token_ids}."
        )
    if len(tokenizer) > size:
        raise ValueError(
            f"A tokenizer must have at most {size} pieces, which the model "
            f"knows. Received: {len(tokenizer)}."
        )


def read_prompts(batch, room):
    """Returns the slots of prompts, and of what follows them.

    The last token of each prompt is fed once more, right after the prompts,
    so that all rows continue in the same slot. In its first slot it is hidden.

    Args:
        batch: `input_ids` and perhaps `attention_mask`, `(B, P)`: prompts,
            padded on the right.
        room: How many slots come after the prompts.

    Returns:
        The last token of each prompt, `(B,)`; which slots may be seen,
        `(B, P + room)`; and what to add to a slot after the prompts to get a
        position, `(B,)`.
    """
    ids = ops.cast(batch["input_ids"], "int32")
    mask = batch.get("attention_mask", ops.ones_like(ids))
    last = ops.sum(ops.cast(mask, "int32"), axis=1) - 1  # (B,)
    token = ops.take_along_axis(ids, last[:, None], axis=1)[:, 0]
    before = ops.arange(ids.shape[1]) < last[:, None]  # (B, P)
    behind = ops.ones((ops.shape(ids)[0], room), "bool")
    visible = ops.concatenate([before, behind], axis=1)
    return token, visible, last - ids.shape[1]
