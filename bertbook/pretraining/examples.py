"""Pre-training examples: pairs of texts, and plain runs of text.

Differences: whether an example is short is drawn for each, where Google's
code draws once a document; masks are drawn again every epoch, where
Google's were written to disk.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bertbook.batches.packing import pack_rows
from bertbook.pretraining.corpus import Shard
from bertbook.pretraining.masking import Masking, Pieces, mask_rows
from bertbook.training.settings import (
    check_kind,
    check_switches,
    set_count,
    set_share,
)

IS_NEXT, NOT_NEXT = 0, 1  # the labels, as in Google's code
MOST_IN_A_ROW = 16  # examples that share one
PACKED_TOGETHER = 1_024  # examples that rows are found for at a time


@dataclass(frozen=True, kw_only=True)
class ExampleSettings:
    """What a pre-training example looks like; the defaults are the paper's.

    Attributes:
        max_length: S, [CLS] and [SEP] counted.
        next_sentence: Whether examples are pairs; if not, each is one run of
            text from one document.
        short_share: Share of the pairs that are shorter than `max_length` on
            purpose.
        masking: Which tokens are hidden.
        dynamic: Whether every epoch draws its own pairs and masks; if not, all
            have those of the first.
        packed: Whether several short examples share a row, each blind to the
            others, so that less is padding. An example of `max_length` has a
            row of its own.

    Raises:
        ValueError: `max_length` leaves no room, or a share is outside [0, 1].
    """

    max_length: int = 128
    next_sentence: bool = True
    short_share: float = 0.1
    masking: Masking = field(default_factory=Masking)
    dynamic: bool = True
    packed: bool = False

    def __post_init__(self) -> None:
        check_switches(self, "next_sentence", "dynamic", "packed")
        set_count(self, "max_length", 5 if self.next_sentence else 3)
        set_share(self, "short_share")
        check_kind(self.masking, "masking", Masking)

    @property
    def slots(self) -> int:
        """M: how many tokens are hidden at most."""
        return self.masking.slots(self.max_length)


def make_examples(
    shard: Shard,
    pieces: Pieces,
    settings: ExampleSettings,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Makes all examples of a shard, in random order.

    Returns:
        A batch of n rows: `input_ids` with tokens hidden, `token_type_ids`,
        `attention_mask`, each `(n, S)`; `masked_lm_positions`, `masked_lm_ids`,
        `masked_lm_weights`, each `(n, M)`; and for pairs
        `next_sentence_labels`, `(n,)`, 0 (IsNext) where the second text follows
        the first.

    Raises:
        ValueError: Pairs are asked for and the shard holds one document.
    """
    if settings.next_sentence:
        spans, labels = draw_pairs(shard, settings, rng)
    else:
        spans = draw_runs(shard, settings.max_length - 2, rng)
    order = rng.permutation(len(spans))
    rows = assemble(shard.tokens, spans[order], settings.max_length, pieces)
    examples = rows | mask_rows(
        rows["input_ids"], pieces, settings.masking, rng
    )
    if settings.next_sentence:
        examples["next_sentence_labels"] = labels[order]
    return examples


def draw_pairs(
    shard: Shard, settings: ExampleSettings, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts every document into pairs of texts; half are NotNext.

    Sentences are taken until they fill the row, and cut into two texts at a
    random sentence. For half of the pairs, and always where there is one
    sentence only, the second text comes from another document, and the
    sentences it replaces are taken again.

    Source: Devlin et al. (2019), appendix A.2, and `create_pretraining_data`
    of Google's code.

    Returns:
        Where the texts are in `shard.tokens`: first start and end, second
        start and end, `(n, 4)`; and the labels, `(n,)`.

    Raises:
        ValueError: The shard holds one document.
    """
    if len(shard) < 2:
        raise ValueError(
            "A corpus must hold at least two documents, separated by an empty "
            "line, for `next_sentence`: a random second text comes from "
            f"another one. Received: {len(shard)}."
        )
    room = settings.max_length - 3  # for [CLS], [SEP] and [SEP]
    starts = shard.sentences.tolist()
    bounds = shard.documents.tolist()
    pairs, labels = [], []
    for document in range(len(shard)):
        here, end = bounds[document : document + 2]
        while here < end:
            target = room
            if rng.random() < settings.short_share:
                target = int(rng.integers(2, room + 1))
            stop = find_stop(starts, here, end, target)
            is_alone = stop == here + 1  # one sentence cannot be cut
            middle = stop if is_alone else int(rng.integers(here + 1, stop))
            if is_alone or rng.random() < 0.5:
                second_target = target - (starts[middle] - starts[here])
                second = draw_other_sentence(bounds, document, rng)
                second_stop = find_stop(starts, *second, max(1, second_target))
                spans = here, middle, second[0], second_stop
                stop, label = middle, NOT_NEXT
            else:
                spans, label = (here, middle, middle, stop), IS_NEXT
            pairs.append(truncate_pair([starts[i] for i in spans], room, rng))
            labels.append(label)
            here = stop
    return np.array(pairs), np.array(labels, "int32")


def find_stop(starts: list[int], here: int, end: int, target: int) -> int:
    """Returns the sentence before which at least `target` tokens are taken.

    At least one sentence is taken, and none from `end` on.
    """
    stop = here + 1
    while stop < end and starts[stop] - starts[here] < target:
        stop += 1
    return stop


def draw_other_sentence(
    bounds: list[int], document: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Returns a random sentence of another document, and that one's end."""
    number = int(rng.integers(len(bounds) - 2))
    number += number >= document
    start, end = bounds[number : number + 2]
    return int(rng.integers(start, end)), end


def truncate_pair(
    spans: list[int], room: int, rng: np.random.Generator
) -> list[int]:
    """Cuts the longer of two texts, token by token, from either end."""
    first_start, first_end, second_start, second_end = spans
    first, second = first_end - first_start, second_end - second_start
    excess = first + second - room
    if excess <= 0:
        return spans
    from_longer = min(excess, abs(first - second))
    from_both = excess - from_longer
    cut_first = from_both // 2 + (from_longer if first > second else 0)
    cut_second = excess - cut_first
    front, back = rng.binomial(cut_first, 0.5), rng.binomial(cut_second, 0.5)
    return [
        first_start + front,
        first_end - (cut_first - front),
        second_start + back,
        second_end - (cut_second - back),
    ]


def draw_runs(shard: Shard, room: int, rng: np.random.Generator) -> np.ndarray:
    """Cuts every document into runs of `room` tokens, the ends where they fall.

    The first run of a document is of random length, so that every epoch cuts
    elsewhere.

    Returns:
        `(n, 4)` as `draw_pairs` gives, the second text empty.
    """
    spans: list[tuple[int, int, int, int]] = []
    bounds = shard.sentences[shard.documents]
    for start, end in zip(bounds[:-1], bounds[1:], strict=True):
        first = start + int(rng.integers(1, room + 1))
        cuts = [start, *range(first, end, room), end]
        spans.extend(
            (a, b, b, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        )
    return np.array(spans)


def assemble(
    tokens: np.ndarray, spans: np.ndarray, length: int, pieces: Pieces
) -> dict[str, np.ndarray]:
    """Writes [CLS] first [SEP], and second [SEP] where there is one.

    Args:
        tokens: The ids of a shard.
        spans: Where the texts of each row are, `(n, 4)`.
        length: S.
        pieces: The ids of the special tokens.

    Returns:
        `input_ids`, `token_type_ids` and `attention_mask`, each `(n, S)`.
    """
    first_start, first_end, second_start, second_end = spans.T[:, :, None]
    place = np.arange(length)  # (S,), against (n, 1)
    first_sep = 1 + first_end - first_start
    second_sep = first_sep + 1 + second_end - second_start
    is_pair = second_end > second_start  # (n, 1)
    last_sep = np.where(is_pair, second_sep, first_sep)
    in_first = (place >= 1) & (place < first_sep)
    in_second = (place > first_sep) & (place < last_sep)
    source = np.where(
        in_second, second_start + place - first_sep - 1, first_start + place - 1
    )
    ids = np.full(source.shape, pieces.pad, tokens.dtype)
    is_text = in_first | in_second
    ids[is_text] = tokens[source[is_text]]
    ids[:, 0] = pieces.cls
    ids[(place == first_sep) | (place == last_sep)] = pieces.sep
    return {
        "input_ids": ids,
        "token_type_ids": (place > first_sep) & (place <= last_sep),
        "attention_mask": place <= last_sep,
    }


def pack_examples(
    examples: dict[str, np.ndarray],
    settings: ExampleSettings,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Packs the examples of a shard, and mixes the rows.

    Returns:
        A batch as `packing.pack_rows` returns it, with labels and weights of
        the next sentence, `(R, E)`.
    """
    parts = []
    for start in range(0, len(examples["input_ids"]), PACKED_TOGETHER):
        stop = start + PACKED_TOGETHER
        part = {name: array[start:stop] for name, array in examples.items()}
        slots = settings.slots + MOST_IN_A_ROW
        rows, _ = pack_rows(part, settings.max_length, MOST_IN_A_ROW, slots)
        parts.append(rows)
    packed = {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }
    if not settings.next_sentence:
        shape = packed["cls_positions"].shape
        packed["next_sentence_labels"] = np.zeros(shape, "int32")
        packed["next_sentence_weights"] = np.zeros(shape, "float32")
    order = rng.permutation(len(packed["input_ids"]))
    return {name: array[order] for name, array in packed.items()}


def describe(examples: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns statistics of examples.

    Returns:
        `examples`; `mean_length`; `masked_share`, of all real tokens; and for
        pairs `random_share`, of all pairs.
    """
    real = examples["attention_mask"].sum()
    facts = {
        "examples": len(examples["input_ids"]),
        "mean_length": real / len(examples["input_ids"]),
        "masked_share": examples["masked_lm_weights"].sum() / real,
    }
    if "next_sentence_labels" in examples:
        labels = examples["next_sentence_labels"]
        facts["random_share"] = (labels == NOT_NEXT).mean()
    return {name: float(value) for name, value in facts.items()}
