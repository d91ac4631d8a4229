"""Bitexts: sources and targets as ids, in batches of so many tokens.

Differences: both sides of a batch are padded to one length, so that a compiled
model is compiled once a length. A pair that is too long is left out, and
counted; the paper does not say what it does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertbook.batches.ragged import stack_rows
from bertbook.checks import check_column
from bertbook.decoder.prompts import check_tokenizer

# Finer than those of `batching`: most sentences are short.
LENGTHS = (8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclass(frozen=True)
class Bitext:
    """Pairs of a source and a target as ids, in the order of the data.

    Attributes:
        sources: For each pair its ids, [CLS] and [SEP] around the pieces.
        targets: The same for the target.
        pad_token_id: What both are padded with.
        left_out: How many pairs were too long.
        rows: The numbers of the others in the data.
    """

    sources: Sequence[list[int]]
    targets: Sequence[list[int]]
    pad_token_id: int = 0
    left_out: int = 0
    rows: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.sources)

    def lengths(self) -> np.ndarray:
        """Returns the length that each pair needs, `(R,)`.

        A target needs one place less than it has tokens: the first is given,
        the last is to be found.
        """
        pairs = zip(self.sources, self.targets, strict=True)
        return np.array([max(len(s), len(t) - 1) for s, t in pairs])

    def step(
        self, rows: Sequence[int], length: int, batch_size: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Cuts out a batch for teacher forcing, `(x, y, sample_weight)`.

        The model is given a target without its end, and must predict the target
        without its start: token t + 1 at place t.

        Source: Vaswani et al. (2017), section 3.1, "shifted right".

        Args:
            rows: The numbers of the pairs, at most `batch_size`.
            length: S and T, at least what each of them needs.
            batch_size: B. Missing rows are copies of the first that count for
                nothing.

        Returns:
            `input_ids`, `attention_mask` and `decoder_input_ids`, labels, and
            weights: 0 for padding, the others equal and 1 in sum, so that a
            loss that is a weighted sum is the mean over the tokens.
        """
        filled = [*rows, *[rows[0]] * (batch_size - len(rows))]
        sources = [self.sources[i] for i in filled]
        targets = [self.targets[i] for i in filled]
        pad = self.pad_token_id
        x = {
            "input_ids": stack_rows(sources, pad, length=length),
            "attention_mask": _ones(sources, length),
            "decoder_input_ids": stack_rows(
                [target[:-1] for target in targets], pad, length=length
            ),
        }
        labels = [target[1:] for target in targets]
        weights = _ones(labels, length).astype("float32")
        weights[len(rows) :] = 0
        y = stack_rows(labels, pad, length=length)
        return x, y, weights / weights.sum()


def _ones(rows: Sequence[Sequence[int]], length: int) -> np.ndarray:
    """Returns 1 for every token and 0 for padding, `(B, length)` int32."""
    return stack_rows([[1] * len(row) for row in rows], length=length)


def encode_pairs(
    sources: Sequence[str],
    targets: Sequence[str],
    tokenizer: Any,
    target_tokenizer: Any,
    config: Any,
) -> Bitext:
    """Turns pairs of texts into ids.

    Args:
        sources: R texts.
        targets: Their translations.
        tokenizer: That of the sources.
        target_tokenizer: That of the targets; perhaps the same.
        config: A `Seq2SeqConfig`; a pair of which a side is longer than
            `max_position_embeddings` is left out.

    Raises:
        ValueError: The columns are empty or differ in length, hold something
            other than texts, a text has no piece, or no pair is short enough.
    """
    source_ids = _encode("source", sources, tokenizer, config)
    target_ids = _encode("target", targets, target_tokenizer, config)
    if len(source_ids) != len(target_ids):
        raise ValueError(
            "`target` must be as long as `source`. Received: "
            f"{len(target_ids)} and {len(source_ids)}."
        )
    pairs = Bitext(source_ids, target_ids, config.pad_token_id)
    limit = config.max_position_embeddings
    rows = np.flatnonzero(pairs.lengths() <= limit)
    if not len(rows):
        raise ValueError(
            "A pair must have at most `max_position_embeddings` tokens a side, "
            f"{limit}. Received: {len(pairs)} pairs, all longer."
        )
    return Bitext(
        [source_ids[i] for i in rows],
        [target_ids[i] for i in rows],
        config.pad_token_id,
        len(pairs) - len(rows),
        rows.tolist(),
    )


def _encode(
    name: str, texts: Sequence[str], tokenizer: Any, config: Any
) -> list[list[int]]:
    """Returns the ids of each text, from its start token to its end token."""
    size = config.vocab_size if name == "source" else config.output_size
    check_tokenizer(tokenizer, config, size)
    texts = check_column(texts, name)
    if not texts:
        raise ValueError(
            f"`{name}` must hold at least one text. Received: none."
        )
    rows = tokenizer.encode_pieces(texts)
    for number, row in enumerate(rows):
        if not row:
            raise ValueError(
                f"A {name} must hold at least one piece. Received: "
                f"{texts[number]!r} in row {number}."
            )
    return [[config.bos_token_id, *row, config.eos_token_id] for row in rows]


def draw_batches(
    lengths: np.ndarray, tokens: int, limit: int, seed: Sequence[int]
) -> list[tuple[np.ndarray, int, int]]:
    """Deals the pairs of one epoch into batches of about so many tokens.

    The pairs are shuffled, and cut into batches of those that are padded to
    one length. What does not fill a batch goes to the next length, so that
    one batch alone may hold fewer.

    Source: Vaswani et al. (2017), section 5.1, which has 25,000 tokens a side.

    Args:
        lengths: What each pair needs, `(R,)`.
        tokens: Tokens of one side of a batch, padding counted.
        limit: The longest length that the model takes.
        seed: Seed of the order; the same seed gives the same batches.

    Returns:
        The numbers of the pairs of each batch, its length and its size. The
        number of batches does not depend on the seed.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    all_lengths = [length for length in LENGTHS if length < limit] + [limit]
    places = np.searchsorted(all_lengths, lengths[order])
    batches = []
    rest = order[:0]
    for place, length in enumerate(all_lengths):
        size = max(1, tokens // length)
        rows = np.concatenate([rest, order[places == place]])
        stop = len(rows) - len(rows) % size
        batches += [
            (rows[first : first + size], length, size)
            for first in range(0, stop, size)
        ]
        rest = rows[stop:]
        if not (places > place).any():
            break
    if len(rest):
        batches.append((rest, length, size))
    return [batches[i] for i in random.permutation(len(batches))]


def count_steps(bitext: Bitext, tokens: int, limit: int) -> int:
    """Returns how many batches an epoch has; see `draw_batches`."""
    return len(draw_batches(bitext.lengths(), tokens, limit, [0]))


def steps(
    bitext: Bitext, tokens: int, limit: int, seed: int, done: int = 0
) -> Iterator[tuple[dict, np.ndarray, np.ndarray]]:
    """Yields batches for `fit` endlessly, starting at a step.

    Args:
        bitext: The training data.
        tokens: Most tokens of one side of a batch, padding counted.
        limit: The longest length that the model takes.
        seed: Seed of the order.
        done: Steps done before.
    """
    lengths = bitext.lengths()
    epoch, skipped = divmod(done, count_steps(bitext, tokens, limit))
    while True:
        batches = draw_batches(lengths, tokens, limit, (seed, epoch))
        for rows, length, size in batches[skipped:]:
            yield bitext.step(rows.tolist(), length, size)
        epoch, skipped = epoch + 1, 0
