"""Packing: where examples go, what they see there, and what comes back."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.batches.packing import SLOTS, Place, find_places, pack, unpack
from bertbook.pretraining.corpus import read_shard
from bertbook.pretraining.examples import ExampleSettings, make_examples
from tests.helpers.corpora import mini_pieces, shelf_corpus

B, S, M, T = 5, 11, 3, 17
LENGTHS = (11, 2, 7, 4, 9)

random_tests = settings(max_examples=150, deadline=None, derandomize=True)


def draw_batch(lengths=LENGTHS, width=S, slots=M, seed=0):
    """Rows of examples; every id tells its row and its column."""
    rng = np.random.default_rng(seed)
    real = np.arange(width) < np.array(lengths)[:, None]
    ids = 1_000 * (1 + np.arange(len(lengths))[:, None]) + np.arange(width)
    batch = {
        "input_ids": np.where(real, ids, 7),
        "token_type_ids": real * rng.integers(0, 2, real.shape),
        "attention_mask": real,
    }
    shape = len(lengths), slots
    batch |= {name: np.zeros(shape, "int32") for name in SLOTS[:2]}
    batch["masked_lm_weights"] = np.zeros(shape, "float32")
    for row, length in enumerate(lengths):
        count = int(rng.integers(0, min(length, slots) + 1))
        places = np.sort(rng.choice(length, count, replace=False))
        batch["masked_lm_positions"][row, :count] = places
        batch["masked_lm_ids"][row, :count] = ids[row, places]
        batch["masked_lm_weights"][row, :count] = 1
    batch["next_sentence_labels"] = rng.integers(0, 2, len(lengths))
    return batch


# Definition.


def places_by_loops(lengths, max_length):
    """First fit, the longest first; the earlier one where both are as long."""
    rows, places = [], [None] * len(lengths)
    left = [*range(len(lengths))]
    while left:
        longest = max(left, key=lambda i: (lengths[i], -i))
        left.remove(longest)
        for row in range(len(rows) + 1):
            if row == len(rows):
                rows.append([])
            if sum(rows[row]) + lengths[longest] <= max_length:
                break
        places[longest] = Place(row, sum(rows[row]), len(rows[row]))
        rows[row].append(lengths[longest])
    return places


@random_tests
@given(
    st.lists(st.integers(1, 13), min_size=1, max_size=23), st.integers(13, 41)
)
def test_places_by_loops(lengths, max_length):
    assert find_places(lengths, max_length) == places_by_loops(
        lengths, max_length
    )


def test_places_by_hand():
    assert find_places([3, 7, 2, 5, 3], 10) == [
        Place(0, 7, 1), Place(0, 0, 0), Place(1, 8, 2), Place(1, 0, 0),
        Place(1, 5, 1),
    ]  # fmt: skip


def test_a_packed_batch_by_loops():
    batch = draw_batch()
    packed, places = pack(batch, T)
    assert places == places_by_loops(LENGTHS, T)
    rows, most = 2, 3  # 11, 4 and 2; 9 and 7
    shapes = {name: array.shape for name, array in packed.items()}
    used = batch["masked_lm_weights"].sum(axis=1)
    slots = max(
        int(sum(used[i] for i in range(B) if places[i].row == row))
        for row in range(rows)
    )
    assert shapes == {
        "input_ids": (rows, T),
        "token_type_ids": (rows, T),
        "position_ids": (rows, T),
        "cls_positions": (rows, most),
        "attention_mask": (rows, T, T),
        **dict.fromkeys(SLOTS, (rows, slots)),
        "next_sentence_labels": (rows, most),
        "next_sentence_weights": (rows, most),
    }
    expected = {name: np.zeros(shape) for name, shape in shapes.items()}
    for i, (row, start, number) in enumerate(places):
        expected["cls_positions"][row, number] = start
        label = batch["next_sentence_labels"][i]
        expected["next_sentence_labels"][row, number] = label
        expected["next_sentence_weights"][row, number] = 1
        for s in range(LENGTHS[i]):
            for name in ("input_ids", "token_type_ids"):
                expected[name][row, start + s] = batch[name][i, s]
            expected["position_ids"][row, start + s] = s
            for t in range(LENGTHS[i]):
                expected["attention_mask"][row, start + s, start + t] = 1
    for row in range(rows):
        slot = 0
        for i, m in itertools.product(range(B), range(M)):
            if places[i].row == row and batch["masked_lm_weights"][i, m]:
                for name in SLOTS:
                    expected[name][row, slot] = batch[name][i, m]
                expected["masked_lm_positions"][row, slot] += places[i].start
                slot += 1
    for name, array in packed.items():
        is_weight = name.endswith("_weights")
        assert array.dtype == ("float32" if is_weight else "int32"), name
        np.testing.assert_array_equal(array, expected[name], name)


def test_unpacked_by_loops():
    places = find_places(LENGTHS, T)
    given_ = np.random.default_rng(0).random((2, T, 4))
    for array in (given_, given_[..., 0]):
        found = unpack(array, places, LENGTHS)
        assert len(found) == B
        for rows, place, length in zip(found, places, LENGTHS, strict=True):
            assert len(rows) == length
            for s in range(length):
                np.testing.assert_array_equal(
                    rows[s], array[place.row, place.start + s]
                )


def test_a_batch_without_slots_and_labels_is_packed_without():
    batch = draw_batch()
    plain = {
        name: batch[name]
        for name in ("input_ids", "token_type_ids", "attention_mask")
    }
    packed, _ = pack(plain, T)
    assert list(packed) == [
        "input_ids",
        "token_type_ids",
        "position_ids",
        "cls_positions",
        "attention_mask",
    ]
    whole, _ = pack(batch, T)
    for name, array in packed.items():
        np.testing.assert_array_equal(array, whole[name])


def test_without_a_used_slot_one_empty_slot_is_packed():
    batch = draw_batch()
    batch["masked_lm_weights"][:] = 0
    packed, _ = pack(batch, T)
    for name in SLOTS:
        assert packed[name].shape == (2, 1)
        assert not packed[name].any()


# Peer: the fewest rows there are, found by trying.


def fewest_rows(lengths, max_length):
    """Every example into every row: the best of all ways."""

    def best(i, used):
        if i == len(lengths):
            return len(used)
        found = [
            best(i + 1, used[:r] + (used[r] + lengths[i],) + used[r + 1 :])
            for r in range(len(used))
            if used[r] + lengths[i] <= max_length
        ]
        return min([*found, best(i + 1, (*used, lengths[i]))])

    return best(0, ())


@random_tests
@given(st.lists(st.integers(1, 13), min_size=1, max_size=6))
def test_nearly_as_few_rows_as_there_can_be(lengths):
    """Dosa (2007): at most 11/9 of the fewest, and 6/9."""
    rows = 1 + max(place.row for place in find_places(lengths, 13))
    fewest = fewest_rows(lengths, 13)
    assert fewest <= rows <= 11 / 9 * fewest + 6 / 9


# Property.


@random_tests
@given(
    st.lists(st.integers(1, S), min_size=1, max_size=13),
    st.integers(S, 31),
    st.integers(0, 10**6),
)
def test_packing_keeps_every_token_and_hides_examples_from_each_other(
    lengths, max_length, seed
):
    batch = draw_batch(lengths, seed=seed)
    before = {name: array.copy() for name, array in batch.items()}
    packed, places = pack(batch, max_length)
    for name, array in before.items():
        np.testing.assert_array_equal(batch[name], array)
    # Every token once, none over the end.
    real = batch["input_ids"][batch["attention_mask"]]
    found = packed["input_ids"][packed["input_ids"] > 0]
    assert sorted(found) == sorted(real)
    assert packed["input_ids"].shape[1] == max_length
    for ids, expected in zip(
        unpack(packed["input_ids"], places, lengths),
        batch["input_ids"],
        strict=True,
    ):
        np.testing.assert_array_equal(ids, expected[: len(ids)])
    # A token sees those of its own example, all of them and no other.
    owner = packed["input_ids"] // 1_000  # 0 is padding
    same = owner[:, :, None] == owner[:, None, :]
    visible = same & (owner > 0)[:, :, None]
    np.testing.assert_array_equal(packed["attention_mask"], visible)
    # Positions begin again with every example.
    is_real = packed["input_ids"] > 0
    columns = packed["input_ids"] % 1_000
    np.testing.assert_array_equal(packed["position_ids"], columns * is_real)
    assert (packed["input_ids"][~is_real] == 0).all()
    check_slots(batch, packed, places)


def check_slots(batch, packed, places):
    """Slots point at the tokens that they pointed at before."""
    used = packed["masked_lm_weights"] > 0
    rows = np.nonzero(used)[0]
    ids = packed["input_ids"][rows, packed["masked_lm_positions"][used]]
    np.testing.assert_array_equal(ids, packed["masked_lm_ids"][used])
    before = batch["masked_lm_ids"][batch["masked_lm_weights"] > 0]
    assert sorted(ids) == sorted(before)
    is_example = packed["next_sentence_weights"] > 0
    assert is_example.sum() == len(places)
    rows = np.nonzero(is_example)[0]
    first = packed["input_ids"][rows, packed["cls_positions"][is_example]]
    assert sorted(first) == [1_000 * (1 + i) for i in range(len(places))]
    for number, place in enumerate(places):
        assert (
            packed["next_sentence_labels"][place.row, place.number]
            == batch["next_sentence_labels"][number]
        )


def test_examples_of_the_shelf_are_packed_into_fewer_rows(tmp_path):
    """Single texts of the shelf, short ones among them."""
    (path,) = shelf_corpus(tmp_path).shards()
    options = ExampleSettings(max_length=48, short_share=0.5)
    made = make_examples(
        read_shard(path), mini_pieces(), options, np.random.default_rng(0)
    )
    batch = {name: array[:201] for name, array in made.items()}
    packed, places = pack(batch, 96)
    lengths = batch["attention_mask"].sum(axis=1)
    rows = len(packed["input_ids"])
    print(
        f"201 examples in {rows} rows of 96, {lengths.mean():.1f} tokens each"
    )
    assert lengths.sum() / 96 <= rows < 1.15 * lengths.sum() / 96 + 1
    assert (packed["input_ids"] == mini_pieces().cls).sum() == 201
    for name in ("input_ids", "token_type_ids"):
        for found, expected in zip(
            unpack(packed[name], places, lengths), batch[name], strict=True
        ):
            np.testing.assert_array_equal(found, expected[: len(found)])
    assert packed["attention_mask"].sum() == (lengths**2).sum()
    assert packed["masked_lm_weights"].sum() == batch["masked_lm_weights"].sum()


def test_one_example_is_one_row():
    batch = {name: array[2:3] for name, array in draw_batch().items()}
    packed, places = pack(batch, 7)
    assert places == [Place(0, 0, 0)]
    np.testing.assert_array_equal(packed["attention_mask"], np.ones((1, 7, 7)))
    np.testing.assert_array_equal(packed["position_ids"], [np.arange(7)])


# Error.


def test_an_example_longer_than_a_row_is_refused():
    with pytest.raises(ValueError, match="`max_length` must hold every") as e:
        pack(draw_batch(), 10)
    assert "Received: 10 for one of 11 tokens in row 0." in str(e.value)
    with pytest.raises(ValueError, match="Received: 4 for one of 5 .* row 2"):
        find_places([3, 4, 5], 4)
    pack(draw_batch(), 11)


def test_a_batch_without_examples_is_refused():
    with pytest.raises(
        ValueError, match="A batch must hold at least one examp"
    ):
        find_places([], 13)
    nothing = {name: array[:0] for name, array in draw_batch().items()}
    with pytest.raises(
        ValueError, match="A batch must hold at least one examp"
    ):
        pack(nothing, 13)


def test_places_and_lengths_of_another_batch_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        unpack(np.zeros((2, T)), find_places(LENGTHS, T), LENGTHS[:-1])
