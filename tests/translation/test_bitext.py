"""Pairs as ids: shifted targets, batches of so many tokens, exact places."""

import itertools

import numpy as np
import pytest

from bertbook.translation.bitext import (
    Bitext,
    count_steps,
    draw_batches,
    encode_pairs,
    steps,
)
from tests.helpers.decoders import (
    BOS,
    EOS,
    PAD,
    TARGET_TOKENIZER,
    TOKENIZER,
    seq2seq_config,
)

CONFIG = seq2seq_config()
SOURCES = ["a b c", "d", "e f g h"]
TARGETS = ["a?", "b c d e f", "g"]


def pairs():
    return encode_pairs(SOURCES, TARGETS, TOKENIZER, TARGET_TOKENIZER, CONFIG)


def draw_lengths(rows=211, longest=29):
    return np.random.default_rng(0).integers(3, longest + 1, rows)


# Definition.


def test_a_step_by_loops():
    bitext, rows, length, size = pairs(), [2, 0], 8, 3
    x, y, weights = bitext.step(rows, length, size)
    real = sum(len(bitext.targets[row]) - 1 for row in rows)
    for b, row in enumerate([2, 0, 2]):
        source, target = bitext.sources[row], bitext.targets[row]
        for place in range(length):
            has_source = place < len(source)
            has_target = place < len(target) - 1
            given = target[place] if has_target else PAD
            wanted = target[place + 1] if has_target else PAD
            token = source[place] if has_source else PAD
            weight = 1 / real if has_target and b < len(rows) else 0
            assert x["input_ids"][b, place] == token
            assert x["attention_mask"][b, place] == has_source
            assert x["decoder_input_ids"][b, place] == given
            assert y[b, place] == wanted
            assert weights[b, place] == pytest.approx(weight)
    assert {array.dtype.name for array in (*x.values(), y)} == {"int32"}


def test_a_target_is_shifted_by_one():
    bitext = pairs()
    x, y, weights = bitext.step([1], 7, 1)
    pieces = TARGET_TOKENIZER.encode_pieces([TARGETS[1]])[0]
    assert len(pieces) == 5
    assert x["decoder_input_ids"][0].tolist() == [BOS, *pieces, PAD]
    assert y[0].tolist() == [*pieces, EOS, PAD]
    assert (weights > 0).sum() == len(pieces) + 1
    assert bitext.lengths().tolist() == [5, 6, 6]


# Properties.


@pytest.mark.parametrize(("rows", "tokens"), [(211, 96), (3, 96), (211, 5)])
def test_every_pair_is_in_one_batch_that_holds_it(rows, tokens):
    lengths, limit = draw_lengths(rows), 29
    batches = draw_batches(lengths, tokens, limit, (0, 1))
    seen = np.concatenate([numbers for numbers, _, _ in batches])
    assert sorted(seen) == list(range(rows))
    for numbers, length, size in batches:
        assert lengths[numbers].max() <= length <= limit
        assert len(numbers) <= size == max(1, tokens // length)
    short = [batch for batch in batches if len(batch[0]) < batch[2]]
    assert len(short) <= 1


def test_pairs_of_similar_length_stand_together():
    lengths = draw_lengths(2_000)
    batches = draw_batches(lengths, 200, 29, (0, 0))
    padded = sum(length * len(numbers) for numbers, length, _ in batches)
    assert lengths.sum() > 0.85 * padded
    alike = [lengths[numbers].min() for numbers, _, _ in batches]
    assert len(set(alike)) > 3
    starts = [numbers[0] for numbers, _, _ in batches]
    assert starts != sorted(starts)


def test_an_epoch_has_as_many_batches_whatever_the_seed():
    lengths = draw_lengths()
    drawn = [draw_batches(lengths, 64, 29, (seed, 0)) for seed in range(4)]
    assert len({len(batches) for batches in drawn}) == 1
    first, second = (
        [numbers.tolist() for numbers, _, _ in batches] for batches in drawn[:2]
    )
    assert first != second
    again = draw_batches(lengths, 64, 29, (0, 0))
    assert [numbers.tolist() for numbers, _, _ in again] == first


def test_an_epoch_has_another_order_than_the_one_before():
    rows = [[BOS, 5 + n, EOS] for n in range(30)]
    bitext = Bitext(rows, rows)
    count = count_steps(bitext, 24, 29)
    endless = steps(bitext, 24, 29, seed=0)
    orders = []
    for _ in range(3):
        epoch = [y[w > 0] for _, y, w in itertools.islice(endless, count)]
        labels = [i for part in epoch for i in part.tolist() if i != EOS]
        assert sorted(labels) == list(range(5, 35))
        orders.append(tuple(labels))
    assert len(set(orders)) == 3


@pytest.mark.parametrize("done", [1, 9, 30])
def test_a_run_goes_on_where_it_stood(done):
    rng = np.random.default_rng(0)
    rows = [[BOS, *rng.integers(5, 30, n), EOS] for n in draw_lengths(40, 20)]
    bitext = Bitext(rows, rows[::-1])
    assert count_steps(bitext, 60, 29) < 30
    whole = itertools.islice(steps(bitext, 60, 29, 3), done, done + 4)
    later = itertools.islice(steps(bitext, 60, 29, 3, done), 4)
    for first, second in zip(whole, later, strict=True):
        for name, array in first[0].items():
            np.testing.assert_array_equal(array, second[0][name])
        np.testing.assert_array_equal(first[1], second[1])
        np.testing.assert_array_equal(first[2], second[2])


def test_pairs_that_are_too_long_are_left_out_and_counted():
    config = seq2seq_config(max_position_embeddings=5)
    bitext = encode_pairs(SOURCES, TARGETS, TOKENIZER, TARGET_TOKENIZER, config)
    assert (len(bitext), bitext.left_out) == (1, 2)
    assert bitext.sources == pairs().sources[:1]


# Errors.


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (["a", "b"], ["c"], "`target` must be as long .*Received: 1 and 2"),
        ([], [], "`source` must hold at least one text. Received: none"),
        (["a", " "], ["b", "c"], "A source must .* Received: ' ' in row 1"),
        (["a"], [""], "A target must hold .* Received: '' in row 0"),
        (["a"], [None], r"`target\[0\]` must be a string. Received: NoneType"),
        ("a", ["b"], "`source` must be a list of strings. Received: str"),
        (["a " * 40], ["b"], "at most .*, 29. Received: 1 pairs, all longer"),
    ],
)
def test_pairs_that_cannot_be_learned_from(sources, targets, message):
    with pytest.raises(ValueError, match=message):
        encode_pairs(sources, targets, TOKENIZER, TARGET_TOKENIZER, CONFIG)
