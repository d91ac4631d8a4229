"""ERNIE (Baidu): whole phrases masked together.

Differences: a phrase is found by a list of phrases; the paper finds phrases
with a parser and entities with a tagger, and hides words, phrases and entities
in stages, one after the other.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bertbook.checks import check_rows
from bertbook.pretraining.masking import (
    Masking,
    Pieces,
    choose_units,
    draw_unit_starts,
    gather_slots,
    replace_chosen,
)

WORDS = Masking(unit="word")


def phrase_ids(tokenizer: Any, phrases: Sequence[str]) -> list[tuple[int, ...]]:
    """Returns the pieces of each phrase, the longest phrase first.

    Args:
        tokenizer: A `Tokenizer`.
        phrases: Raw texts, such as "New York" or "chest pain".

    Raises:
        ValueError: There is no phrase, or one has no piece.
    """
    check_rows(phrases, None)
    pieces = [tuple(ids) for ids in tokenizer.encode_pieces(list(phrases))]
    for phrase, ids in zip(phrases, pieces, strict=True):
        if not ids:
            raise ValueError(
                f"`phrases` must hold texts with words. Received: {phrase!r}."
            )
    return sorted(set(pieces), key=lambda ids: (-len(ids), ids))


def join_phrases(
    input_ids: np.ndarray,
    starts: np.ndarray,
    phrases: Iterable[Sequence[int]],
) -> np.ndarray:
    """Makes one unit of every phrase that a row holds.

    Source: Sun et al. (2019), section 3.2.

    Args:
        input_ids: `(B, S)`.
        starts: True where a word starts, `(B, S)`.
        phrases: The pieces of each phrase. Where two overlap, the one that
            comes first in this list is taken.

    Returns:
        `(B, S)`, True where a unit starts: a phrase, or a word outside.
    """
    joined = starts.copy()
    taken = np.zeros(starts.shape, bool)
    ends = np.pad(starts, ((0, 0), (0, 1)), constant_values=True)
    for phrase in phrases:
        size = len(phrase)
        if size > input_ids.shape[1]:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(
            input_ids, size, axis=1
        )  # (B, S - size + 1, size)
        same = (windows == np.asarray(phrase)).all(axis=2)
        for row, start in zip(*np.nonzero(same), strict=True):
            stop = start + size
            # A unit holds whole words, or none of the phrase.
            is_whole = ends[row, start] and ends[row, stop]
            if is_whole and not taken[row, start:stop].any():
                taken[row, start:stop] = True
                joined[row, start + 1 : stop] = False
    return joined


def mask_phrases(
    input_ids: np.ndarray,
    pieces: Pieces,
    phrases: Sequence[Sequence[int]],
    rng: np.random.Generator,
    masking: Masking = WORDS,
) -> dict[str, np.ndarray]:
    """Hides phrases and words as a whole; else as `masking.mask_rows`.

    A phrase with more pieces than the budget of its row is never hidden.

    Source: Sun et al. (2019), sections 3.2.2 and 3.2.3.

    Args:
        input_ids: Ids with [CLS], [SEP] and [PAD] in place, `(B, S)`.
        pieces: The facts of the vocabulary.
        phrases: What `phrase_ids` gives.
        rng: NumPy random generator.
        masking: How many tokens, and what replaces them.

    Returns:
        `input_ids`, `masked_lm_positions`, `masked_lm_ids` and
        `masked_lm_weights`, as `mask_rows` does.

    Raises:
        ValueError: The unit of `masking` is not the word.
    """
    if masking.unit != "word":
        raise ValueError(
            "`masking` must have the unit 'word': a phrase is made of words. "
            f"Received: {masking.unit!r}."
        )
    words = draw_unit_starts(input_ids, pieces, masking, rng)
    starts = join_phrases(input_ids, words, phrases)
    lengths = (input_ids != pieces.pad).sum(axis=1)
    budgets = np.maximum(1, np.rint(lengths * masking.rate).astype(int))
    chosen = choose_units(starts, ~pieces.special[input_ids], budgets, rng)
    return {
        "input_ids": replace_chosen(input_ids, chosen, pieces, masking, rng),
        **gather_slots(input_ids, chosen, masking.slots(input_ids.shape[1])),
    }
