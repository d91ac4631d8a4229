"""Masking: which tokens are hidden, and what replaces them.

Differences: a random piece is never a special token, nor one that stands unused
in a vocabulary; Google's code draws from the whole vocabulary.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bertbook.text.wordpiece import CONTINUATION
from bertbook.training.settings import check_choice, set_number, set_share

UNITS = ("token", "word", "span")
UNUSED = re.compile(r"\[unused\d+\]")  # rows that vocabularies keep free


@dataclass(frozen=True, kw_only=True)
class Masking:
    """How tokens are chosen and replaced; the defaults are the paper's.

    `mask_share=1, random_share=0` puts [MASK] everywhere, as some accounts of
    BERT say.

    Source: Devlin et al. (2019), section 3.1; whole words: the README of
    Google's code, 2019; spans: Joshi et al. (2020), without their limit of 10.

    Raises:
        ValueError: A share is outside [0, 1], or `unit` is unknown.
    """

    rate: float = 0.15  # share of all tokens, [CLS] and [SEP] counted
    mask_share: float = 0.8  # share of the chosen tokens
    random_share: float = 0.1  # share of the chosen tokens
    unit: str = "token"  # "word" hides whole words, "span" some in a row
    words_a_span: float = 3.8  # mean length of a span

    def __post_init__(self) -> None:
        set_share(self, "rate", zero=False)
        set_share(self, "mask_share")
        set_share(self, "random_share")
        if self.mask_share + self.random_share > 1.0:
            raise ValueError(
                "`mask_share` and `random_share` must not sum to more than 1. "
                f"Received: {self.mask_share} and {self.random_share}."
            )
        check_choice(self.unit, "unit", UNITS)
        set_number(self, "words_a_span")
        if self.words_a_span < 1:
            raise ValueError(
                f"`words_a_span` must be >= 1. Received: {self.words_a_span}."
            )

    def slots(self, length: int) -> int:
        """Returns M: how many tokens of a row so long are chosen at most."""
        return max(1, int(np.ceil(length * self.rate)))


class Pieces(NamedTuple):
    """Facts of a vocabulary that masking needs.

    Attributes:
        pad: Id of [PAD]; `cls`, `sep` and `mask` alike.
        ordinary: Ids of the pieces that may be hidden or put in, `(n,)`.
        special: For each id whether it is a special token, `(V,)`.
        continues: For each id whether it continues a word, `(V,)`.
    """

    pad: int
    cls: int
    sep: int
    mask: int
    ordinary: np.ndarray
    special: np.ndarray
    continues: np.ndarray

    @classmethod
    def of(cls, tokenizer: Any) -> "Pieces":
        """Collects the facts of a `Tokenizer`."""
        special = np.zeros(len(tokenizer), bool)
        special[[tokenizer.ids[t] for t in tokenizer.special_tokens]] = True
        continues = [p.startswith(CONTINUATION) for p in tokenizer.vocabulary]
        unused = [bool(UNUSED.fullmatch(p)) for p in tokenizer.vocabulary]
        ordinary = np.flatnonzero(~special)
        return cls(
            tokenizer.pad_token_id,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
            tokenizer.mask_token_id,
            ordinary[~np.array(unused)[ordinary]],
            special,
            np.array(continues),
        )


def mask_rows(
    input_ids: np.ndarray,
    pieces: Pieces,
    masking: Masking,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Hides tokens of every row, and says which and what they were.

    Args:
        input_ids: Ids with [CLS], [SEP] and [PAD] in place, `(B, S)`.
        pieces: The facts of the vocabulary.
        masking: How many tokens, which, and what replaces them.
        rng: NumPy random generator.

    Returns:
        `input_ids` with some replaced, `(B, S)`; `masked_lm_positions`,
        `masked_lm_ids` (the hidden ids) and `masked_lm_weights` (1 for a
        slot in use), each `(B, M)`, slots in the order of the text.
    """
    starts = draw_unit_starts(input_ids, pieces, masking, rng)
    lengths = (input_ids != pieces.pad).sum(axis=1)
    budgets = np.maximum(1, np.rint(lengths * masking.rate).astype(int))
    chosen = choose_units(starts, ~pieces.special[input_ids], budgets, rng)
    return {
        "input_ids": replace_chosen(input_ids, chosen, pieces, masking, rng),
        **gather_slots(input_ids, chosen, masking.slots(input_ids.shape[1])),
    }


def draw_unit_starts(
    input_ids: np.ndarray,
    pieces: Pieces,
    masking: Masking,
    rng: np.random.Generator,
) -> np.ndarray:
    """Cuts rows into what is hidden together: pieces, words, or spans.

    Returns:
        `(B, S)`, True where a unit starts. A special token is a unit.
    """
    if masking.unit == "token":
        return np.ones(input_ids.shape, bool)
    starts = ~pieces.continues[input_ids]
    if masking.unit == "span":
        starts &= rng.random(input_ids.shape) < 1.0 / masking.words_a_span
    special = pieces.special[input_ids]
    starts |= special
    starts[:, 1:] |= special[:, :-1]  # a new text starts a new unit
    return starts


def choose_units(
    starts: np.ndarray,
    candidates: np.ndarray,
    budgets: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Chooses units in random order until no further one fits.

    Args:
        starts: True where a unit starts, `(B, S)`.
        candidates: True where a token may be chosen, `(B, S)`; the same
            throughout a unit.
        budgets: Most tokens to choose of each row, `(B,)`.
        rng: NumPy random generator.

    Returns:
        `(B, S)`, True where a token is chosen.
    """
    rows, length = starts.shape
    units = np.maximum(0, np.cumsum(starts, axis=1) - 1)  # (B, S)
    flat = (np.arange(rows)[:, None] * length + units)[candidates]
    sizes = np.bincount(flat, minlength=rows * length).reshape(rows, length)
    order = np.argsort(rng.random(starts.shape), axis=1)
    sizes = np.take_along_axis(sizes, order, axis=1)  # in random order
    chosen = np.zeros(starts.shape, bool)
    while True:
        left = budgets - (sizes * chosen).sum(axis=1)
        fits = ~chosen & (sizes > 0) & (sizes <= left[:, None])
        if not fits.any():
            break
        used = np.cumsum(sizes * fits, axis=1)
        chosen |= fits & (used <= left[:, None])  # at least one more unit
    by_unit = np.empty_like(chosen)
    np.put_along_axis(by_unit, order, chosen, axis=1)
    return np.take_along_axis(by_unit, units, axis=1) & candidates


def replace_chosen(
    input_ids: np.ndarray,
    chosen: np.ndarray,
    pieces: Pieces,
    masking: Masking,
    rng: np.random.Generator,
) -> np.ndarray:
    """Puts [MASK] or a random piece where a token is chosen, or leaves it.

    Returns:
        `(B, S)`, as `input_ids`, which stays as it is.
    """
    values = input_ids[chosen]
    lot = rng.random(len(values))
    randoms = rng.choice(pieces.ordinary, len(values))
    replaced = np.where(
        lot < masking.mask_share,
        pieces.mask,
        np.where(
            lot < masking.mask_share + masking.random_share, randoms, values
        ),
    )
    result = input_ids.copy()
    result[chosen] = replaced
    return result


def gather_slots(
    input_ids: np.ndarray, chosen: np.ndarray, slots: int
) -> dict[str, np.ndarray]:
    """Lists the chosen tokens of each row, unused slots filled with 0.

    Raises:
        ValueError: A row has more chosen tokens than `slots`.
    """
    most = int(chosen.sum(axis=1).max(initial=0))
    if most > slots:
        raise ValueError(
            f"`slots` must hold every chosen token of a row. Received: {slots} "
            f"for {most}."
        )
    rows, columns = np.nonzero(chosen)
    places = (np.cumsum(chosen, axis=1) - 1)[rows, columns]
    shape = len(input_ids), slots
    targets = {
        "masked_lm_positions": np.zeros(shape, "int32"),
        "masked_lm_ids": np.zeros(shape, "int32"),
        "masked_lm_weights": np.zeros(shape, "float32"),
    }
    targets["masked_lm_positions"][rows, places] = columns
    targets["masked_lm_ids"][rows, places] = input_ids[rows, columns]
    targets["masked_lm_weights"][rows, places] = 1.0
    return targets
