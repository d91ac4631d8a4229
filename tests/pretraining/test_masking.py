"""Masking: units, budgets and replacements against loops and Google's rule."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.pretraining.masking import (
    UNITS,
    Masking,
    Pieces,
    choose_units,
    draw_unit_starts,
    gather_slots,
    mask_rows,
    replace_chosen,
)
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers.corpora import ODD, mini_pieces, odd_pieces
from tests.helpers.texts import mini_vocabulary

B, S = 5, 37
PIECES = odd_pieces()

random_tests = settings(max_examples=100, deadline=None, derandomize=True)


def draw_rows(seed=0, lengths=(37, 5, 11, 24, 30), width=S):
    """[CLS], pieces, [SEP], pieces, [SEP], and [PAD] to the width."""
    rng = np.random.default_rng(seed)
    rows = np.full((len(lengths), width), PIECES.pad)
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = rng.choice(PIECES.ordinary, length)
        row[0], row[length // 2], row[length - 1] = (
            PIECES.cls,
            PIECES.sep,
            PIECES.sep,
        )
        if length > 20:  # as raw text may hold them
            row[5], row[9] = PIECES.mask, ODD.index("[UNK]")
    return rows.astype("uint16")


def kept(masking, rows, seed=0):
    """The masked batch and where its slots in use are, (row, column)."""
    masked = mask_rows(rows, PIECES, masking, np.random.default_rng(seed))
    used = masked["masked_lm_weights"] > 0
    places = np.nonzero(used)[0], masked["masked_lm_positions"][used]
    return masked, used, places


# Definition.


def test_pieces_by_hand():
    pieces = Pieces.of(Tokenizer(ODD, added_tokens=["46", "##3"]))
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "46", "##3"}
    assert ODD[pieces.pad] == "[PAD]"
    assert ODD[pieces.cls] == "[CLS]"
    assert ODD[pieces.sep] == "[SEP]"
    assert ODD[pieces.mask] == "[MASK]"
    assert pieces.special.tolist() == [piece in special for piece in ODD]
    assert [ODD[i] for i in pieces.ordinary] == [
        piece for piece in ODD if piece not in special
    ]
    assert pieces.continues.tolist() == [p.startswith("##") for p in ODD]


def test_pieces_that_stand_unused_are_not_put_in():
    unused = [f"[unused{number}]" for number in range(90)]
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *unused, "a", "[unused]", "b"])
    pieces = Pieces.of(tokenizer)
    assert [tokenizer.vocabulary[i] for i in pieces.ordinary] == [
        "a", "[unused]", "b"
    ]  # fmt: skip
    ids = np.full((40, 30), tokenizer.ids["a"])
    masking = Masking(rate=1.0, mask_share=0.0, random_share=1.0)
    masked = mask_rows(ids, pieces, masking, np.random.default_rng(0))
    assert set(np.unique(masked["input_ids"])) == set(pieces.ordinary)


@pytest.mark.parametrize(
    ("length", "rate", "slots"),
    # With 20 slots for 128 tokens, as in the README of Google's code.
    [(128, 0.15, 20), (512, 0.15, 77), (5, 0.15, 1), (1, 0.01, 1), (7, 1.0, 7)],
)
def test_slots_of_the_published_lengths_and_rates(length, rate, slots):
    assert Masking(rate=rate).slots(length) == slots


@pytest.mark.parametrize("rate", [0.01, 0.15, 0.2, 0.4, 0.5, 1.0])
def test_the_slots_hold_every_budget(rate):
    for length in range(1, 600):
        slots = Masking(rate=rate).slots(length)
        assert slots >= max(1, round(length * rate))


def starts_by_loops(rows, unit, lots):
    starts = np.zeros(rows.shape, bool)
    for b, s in np.ndindex(rows.shape):
        piece = ODD[rows[b, s]]
        before = ODD[rows[b, s - 1]] if s else "[CLS]"
        if unit == "token" or "[" in (piece + before):
            starts[b, s] = True
        elif not piece.startswith("##"):
            starts[b, s] = unit == "word" or lots[b, s]
    return starts


@pytest.mark.parametrize("unit", UNITS)
def test_unit_starts_by_loops(unit):
    for seed in range(5):
        rows = draw_rows(seed)
        lots = np.random.default_rng(seed).random(rows.shape) < 1 / 2.5
        starts = draw_unit_starts(
            rows,
            PIECES,
            Masking(unit=unit, words_a_span=2.5),
            np.random.default_rng(seed),
        )
        np.testing.assert_array_equal(starts, starts_by_loops(rows, unit, lots))


def choose_by_loops(starts, candidates, budgets, lots):
    """One unit after the other, in the order of their lots."""
    chosen = np.zeros(starts.shape, bool)
    for b in range(len(starts)):
        cuts = [0, *(np.flatnonzero(starts[b, 1:]) + 1), starts.shape[1]]
        units = [range(i, j) for i, j in itertools.pairwise(cuts)]
        order = np.argsort(lots[b])
        count = 0
        for unit in (units[i] for i in order if i < len(units)):
            size = sum(candidates[b, i] for i in unit)
            if size and count + size <= budgets[b]:
                chosen[b, unit] = True
                count += size
    return chosen & candidates


@random_tests
@given(
    st.integers(0, 10**6),
    st.sampled_from([0.1, 0.3, 0.7, 1.0]),
    st.lists(st.integers(0, 13), min_size=B, max_size=B),
)
def test_chosen_units_by_loops(seed, share, budgets):
    rng = np.random.default_rng(seed)
    starts = rng.random((B, S)) < share
    starts[:, 0] = True  # [CLS]
    units = np.maximum(0, np.cumsum(starts, axis=1) - 1)
    candidates = np.take_along_axis(rng.random((B, S)) < 0.8, units, axis=1)
    lots = np.random.default_rng(seed).random((B, S))
    chosen = choose_units(
        starts, candidates, np.array(budgets), np.random.default_rng(seed)
    )
    expected = choose_by_loops(starts, candidates, budgets, lots)
    np.testing.assert_array_equal(chosen, expected)


def test_slots_by_loops():
    rng = np.random.default_rng(0)
    rows, chosen = draw_rows(), rng.random((B, S)) < 0.2
    chosen[1] = False
    slots = 13
    found = gather_slots(rows, chosen, slots)
    expected = {name: np.zeros((B, slots)) for name in found}
    for b in range(B):
        slot = 0
        for s in range(S):
            if chosen[b, s]:
                expected["masked_lm_positions"][b, slot] = s
                expected["masked_lm_ids"][b, slot] = rows[b, s]
                expected["masked_lm_weights"][b, slot] = 1
                slot += 1
    dtypes = [array.dtype for array in found.values()]
    assert dtypes == ["int32", "int32", "float32"]
    assert list(found) == [
        f"masked_lm_{x}" for x in ("positions", "ids", "weights")
    ]
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], name)


@pytest.mark.parametrize("unit", UNITS)
def test_what_was_hidden_is_in_the_slots(unit):
    rows = draw_rows()
    before = rows.copy()
    masked, used, (b, s) = kept(Masking(unit=unit), rows)
    np.testing.assert_array_equal(rows, before)
    assert masked["input_ids"].dtype == rows.dtype
    whole = masked["input_ids"].copy()
    whole[b, s] = masked["masked_lm_ids"][used]
    np.testing.assert_array_equal(whole, rows)
    assert masked["masked_lm_ids"].shape == (B, 6)
    for row, mask in zip(masked["masked_lm_positions"], used, strict=True):
        assert (np.diff(row[mask]) > 0).all()  # in the order of the text
        assert not row[~mask].any()
        assert mask.tolist() == sorted(mask, reverse=True)


@pytest.mark.parametrize("rate", [0.15, 0.31])
def test_how_many_are_chosen(rate):
    """Google's rule: a share of all tokens, [CLS] and [SEP] too."""
    lengths = (37, 5, 11, 24, 30)
    for seed in range(7):
        _, used, _ = kept(Masking(rate=rate), draw_rows(seed), seed)
        expected = [max(1, round(length * rate)) for length in lengths]
        assert used.sum(axis=1).tolist() == expected


def test_at_least_one_token_is_chosen():
    rows = np.array([[PIECES.cls, ODD.index("b"), PIECES.sep, PIECES.pad]])
    masked, used, _ = kept(Masking(), np.repeat(rows, 7, axis=0))
    assert used.all()
    assert (masked["masked_lm_ids"] == ODD.index("b")).all()
    assert (masked["masked_lm_positions"] == 1).all()


def test_a_row_without_a_candidate_stays_as_it_is():
    rows = draw_rows(lengths=(3, 37), width=S)
    rows[0, 1] = ODD.index("[UNK]")
    masked, used, _ = kept(Masking(), rows)
    assert used.sum(axis=1).tolist() == [0, 6]
    np.testing.assert_array_equal(masked["input_ids"][0], rows[0])


# Peer: the rule of Google's generator, in plain lists.


def google_choice(tokens, rate, whole_words, rng):
    """Returns the chosen places of one row of tokens."""
    groups = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole_words and groups and token.startswith("##"):
            groups[-1].append(i)
        else:
            groups.append([i])
    rng.shuffle(groups)
    most = max(1, int(round(len(tokens) * rate)))
    chosen = []
    for group in groups:
        if len(chosen) >= most:
            break
        if len(chosen) + len(group) <= most:
            chosen.extend(group)
    return chosen


@pytest.mark.parametrize("unit", ["token", "word"])
def test_choices_are_spread_as_by_google(unit):
    """How many, and whether a place is chosen: the same up to chance."""
    rng = random.Random(0)
    # Words of one to five pieces; a text begins with a whole word.
    words = [["7", *["##5"] * more] for more in (0, 0, 0, 1, 2, 4)]
    tokens = ["[CLS]", *sum(rng.choices(words, k=11), []), "[SEP]"]
    tokens += [*sum(rng.choices(words, k=13), []), "[SEP]"]
    times = 20_000
    theirs = np.zeros((times, len(tokens)), bool)
    for row in theirs:
        row[google_choice(tokens, 0.15, unit == "word", rng)] = True
    rows = np.tile([ODD.index(token) for token in tokens], (times, 1))
    ours = np.zeros(rows.shape, bool)
    ours[kept(Masking(unit=unit), rows)[2]] = True
    error = (2 * theirs.mean(axis=0) * (1 - theirs.mean(axis=0)) / times) ** 0.5
    difference = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    assert (difference <= 4.5 * error).all()
    counts = [np.bincount(x.sum(axis=1), minlength=9) for x in (ours, theirs)]
    assert np.abs(counts[0] - counts[1]).max() < 4.5 * (times / 2) ** 0.5


# Property.


@pytest.fixture(scope="module", params=UNITS)
def many(request):
    """Many masked rows of a kind, and what they were made from."""
    lengths = np.random.default_rng(0).integers(11, S + 1, 3_001).tolist()
    rows = draw_rows(1, lengths)
    return request.param, rows, *kept(Masking(unit=request.param), rows)


def test_no_special_token_is_chosen(many):
    _, rows, masked, used, (b, s) = many
    assert PIECES.special[rows].sum() > 10_000
    assert not PIECES.special[rows[b, s]].any()
    assert not PIECES.special[masked["masked_lm_ids"][used]].any()


def test_shares_of_the_replacements(many):
    _, rows, masked, _, (b, s) = many
    before, after = rows[b, s], masked["input_ids"][b, s]
    became_mask = after == PIECES.mask
    unchanged = after == before
    count = len(before)
    assert count > 9_000
    assert abs(became_mask.mean() - 0.8) < 0.02
    by_chance = 0.1 / len(PIECES.ordinary)  # the random piece is the old one
    assert abs(unchanged.mean() - 0.1 - by_chance) < 0.015
    randoms = after[~became_mask & ~unchanged]
    assert not PIECES.special[randoms].any()
    times = Counter(randoms.tolist())
    assert set(times) == set(PIECES.ordinary.tolist())
    mean = len(randoms) / len(PIECES.ordinary)
    assert max(times.values()) < mean + 6 * mean**0.5


def test_a_special_token_never_comes_in(many):
    _, rows, masked, _, (b, s) = many
    after = masked["input_ids"]
    new = after[b, s][after[b, s] != PIECES.mask]
    assert not PIECES.special[new].any()
    hidden = np.zeros(rows.shape, bool)
    hidden[b, s] = True
    np.testing.assert_array_equal(after[~hidden], rows[~hidden])


def test_the_budget_is_kept_and_nearly_used(many):
    unit, rows, _, used, _ = many
    lengths = (rows != PIECES.pad).sum(axis=1)
    budgets = np.maximum(1, np.rint(lengths * 0.15))
    assert (used.sum(axis=1) <= budgets).all()
    share = used.sum() / lengths.sum()
    print(f"{unit}: {share:.4f} of all tokens")
    if unit == "token":
        assert (used.sum(axis=1) == budgets).all()
    least = {"token": 0.999, "word": 0.9, "span": 0.8}[unit]
    assert used.sum() >= least * budgets.sum()


@pytest.mark.parametrize("unit", ["word", "span"])
def test_a_chosen_word_is_chosen_whole(unit):
    rows = draw_rows(3, [S] * 501)
    _, used, places = kept(Masking(unit=unit), rows)
    chosen = np.zeros(rows.shape, bool)
    chosen[places] = True
    special = PIECES.special[rows]
    inside = PIECES.continues[rows][:, 1:] & ~special[:, :-1]
    assert inside.sum() > 5_000  # half of the pieces go on with a word
    np.testing.assert_array_equal(chosen[:, 1:][inside], chosen[:, :-1][inside])
    assert 0.1 < chosen.mean() <= 6 / S


@pytest.mark.parametrize(
    ("mask_share", "random_share"), [(1, 0), (0, 1), (0, 0), (0.35, 0.65)]
)
def test_other_shares_of_mask_and_random_pieces_are_met(
    mask_share, random_share
):
    rows = draw_rows(5, [S] * 997)
    masking = Masking(mask_share=mask_share, random_share=random_share)
    masked, _, (b, s) = kept(masking, rows)
    before, after = rows[b, s], masked["input_ids"][b, s]
    is_mask = after == PIECES.mask
    assert abs(is_mask.mean() - mask_share) < 0.03
    if mask_share in (0, 1):
        assert is_mask.mean() == mask_share
    if random_share == 0:
        assert (is_mask | (after == before)).all()
    else:
        stayed = (after == before)[~is_mask].mean()
        assert stayed < 3 / len(PIECES.ordinary)


def test_one_seed_gives_one_result():
    rows = draw_rows()
    first, again, other = (kept(Masking(), rows, seed)[0] for seed in (3, 3, 4))
    for name, array in first.items():
        np.testing.assert_array_equal(array, again[name])
    assert (first["masked_lm_positions"] != other["masked_lm_positions"]).any()


def test_the_pieces_of_the_shipped_vocabulary():
    pieces = mini_pieces()
    assert (pieces.pad, pieces.cls, pieces.sep, pieces.mask) == (0, 2, 3, 4)
    assert pieces.special.sum() == 5
    assert len(pieces.ordinary) == len(mini_vocabulary()) - 5


# Error.

BAD = {
    "rate": [-0.1, 1.1, float("nan")],
    "mask_share": [-0.1, 1.5],
    "random_share": [-0.1, 2, float("inf")],
    "unit": ["words", "", None],
    "words_a_span": [0.9, -1],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, v) for name, values in BAD.items() for v in values],
)
def test_an_option_out_of_range_is_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be .*Received: ") as e:
        Masking(**{name: value})
    assert str(value) in str(e.value)


def test_a_rate_of_zero_is_refused():
    with pytest.raises(
        ValueError, match=r"`rate` must be in \(0, 1\]. Received: 0"
    ):
        Masking(rate=0)


def test_shares_that_sum_above_one_are_refused():
    with pytest.raises(ValueError, match="more than 1. Received: 0.8 and 0.25"):
        Masking(random_share=0.25)


def test_too_few_slots_are_refused():
    chosen = np.zeros((B, S), bool)
    chosen[2, :7] = True
    with pytest.raises(ValueError, match="`slots` must .* Received: 5 for 7"):
        gather_slots(draw_rows(), chosen, 5)
    gather_slots(draw_rows(), chosen, 7)


def test_a_masking_is_frozen():
    with pytest.raises(AttributeError):
        Masking().rate = 0.3
    with pytest.raises(TypeError):
        Masking(0.3)


def test_replacing_nothing_gives_a_copy():
    rows = draw_rows()
    nothing = np.zeros(rows.shape, bool)
    rng = np.random.default_rng(0)
    replaced = replace_chosen(rows, nothing, PIECES, Masking(), rng)
    np.testing.assert_array_equal(replaced, rows)
    assert replaced is not rows
