"""Pictures of pairs: what is drawn, what is said, what is refused."""

import functools

import numpy as np
import pytest

from bertbook.batches import packing
from bertbook.figures import pairs
from bertbook.pretraining.corpus import Shard
from tests.helpers import pictures

SHARD = Shard(
    tokens=np.arange(31),
    sentences=np.array([0, 5, 11, 18, 24, 31]),
    documents=np.array([0, 3, 5]),
)
SPANS = np.array([[0, 5, 5, 18], [18, 24, 1, 9]])
LABELS = np.array([0, 1], "int32")
TOKENS = [
    *("[CLS]", "the", "man", "[MASK]", "home", "[SEP]"),
    *("penguin", "##s", "fly", "[SEP]"),
]
SEGMENTS = [0] * 6 + [1] * 4
LENGTHS = [30, 12, 50, 22, 64, 9]
PLACES = packing.find_places(LENGTHS, 64)


@functools.cache
def packed():
    """A batch of six examples, and the same in fewer rows."""
    visible = np.arange(64) < np.array(LENGTHS)[:, None]
    ids = np.ones(visible.shape, "int32")
    batch = {"input_ids": ids, "token_type_ids": ids * 0}
    return packing.pack(batch | {"attention_mask": visible}, 64)[0]


def mask_of(row):
    numbers = [i for i, place in enumerate(PLACES) if place.row == row]
    starts = [PLACES[i].start for i in numbers]
    return pairs.block_mask(packed()["attention_mask"][row], starts, numbers)


DRAWN = {
    "spans": lambda: pairs.pair_spans(SHARD, SPANS, LABELS),
    "targets": lambda: pairs.pair_with_targets(
        TOKENS, SEGMENTS, {3: "went", 7: "##s"}, 1
    ),
    "packed rows": lambda: pairs.packed_rows(LENGTHS, PLACES, 64),
    "block mask": lambda: mask_of(1),
    "cross and bi": lambda: pairs.cross_and_bi(1_000),
    "cross and bi of many": lambda: pairs.cross_and_bi(10**9),
}


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_has_words_fits_and_is_always_the_same(name):
    pictures.check(drawn(name), DRAWN[name])


def test_encoders_do_not_lie_on_each_other():
    for count in (1, 1_000, 10**9):
        picture = pairs.cross_and_bi(count)
        assert pictures.overlaps(picture) == []
        assert pictures.smallest(picture) >= 6
        picture.figure.axes[0].text(1.75, 1.75, "another")
        assert pictures.overlaps(picture) == [("encoder", "another")]


@pytest.mark.parametrize("count", [1, 7, 1_000])
def test_passes_are_counted_one_by_one(count):
    cross = sum(1 for _ in np.ndindex(count, count))
    bi = sum(1 for side in "AB" for _ in range(count))
    picture = pairs.cross_and_bi(count)
    texts = [text.get_text() for text in picture.figure.axes[0].texts]
    assert f"passes: {count:,} × {count:,} = {cross:,}" in texts
    assert f"passes: {count:,} + {count:,} = {bi:,}" in texts
    assert picture.alt.endswith(f"{count:,} texts: {cross:,} and {bi:,}.")


def test_a_bi_encoder_has_one_encoder_more_and_no_head():
    picture = drawn("cross and bi")
    texts = [text.get_text() for text in picture.figure.axes[0].texts]
    counts = {
        "encoder": 3,
        "head": 1,
        "vector, kept": 2,
        "the same\nweights": 1,
    }
    assert {text: texts.count(text) for text in counts} == counts
    assert texts.count("text A") == texts.count("text B") == 2
    assert "with the same weights" in picture.alt


def test_the_author_may_write_the_words_of_encoders():
    assert pairs.cross_and_bi(2, alt="Mine.").alt == "Mine."


def test_alt_text_says_the_spans():
    alt = drawn("spans").alt
    assert "pair 1: A tokens 0 to 4, B tokens 5 to 17, IsNext" in alt
    assert "pair 2: A tokens 18 to 23, B tokens 1 to 8, NotNext" in alt


def test_alt_text_says_the_targets():
    alt = drawn("targets").alt
    assert "from [CLS] the model guesses 'NotNext'" in alt
    assert "'went' at place 3, '##s' at place 7" in alt


def test_alt_text_says_the_share_of_padding():
    alt = drawn("packed rows").alt
    rows = 1 + max(place.row for place in PLACES)
    before = 1 - sum(LENGTHS) / (len(LENGTHS) * 64)
    after = 1 - sum(LENGTHS) / (rows * 64)
    assert f"one a row, {before:.1%} padding" in alt
    assert f"packed into {rows} rows, {after:.1%}" in alt


def test_blocks_are_measured_and_keep_their_colors():
    row = next(place.row for place in PLACES if place.number == 1)
    inside = [i for i, place in enumerate(PLACES) if place.row == row]
    picture = mask_of(row)
    said = ", ".join(str(LENGTHS[i]) for i in inside)
    assert f"{len(inside)} examples of {said} tokens" in picture.alt
    image = np.asarray(picture.figure.axes[0].images[0].get_array())
    for i in inside:
        start = PLACES[i].start
        block = image[start : start + LENGTHS[i], start : start + LENGTHS[i]]
        assert (block == block[0, 0]).all()
    blocks = sum(LENGTHS[i] ** 2 for i in inside)
    assert (image < 1).any(axis=-1).sum() == blocks


def test_one_example_without_hidden_tokens():
    picture = pairs.pair_with_targets(TOKENS, SEGMENTS, {}, 0)
    assert "hidden are none" in picture.alt


REFUSED = [
    *(("`count` must be an integer >= 1", pairs.cross_and_bi, count)
      for count in (0, -3, 2.5, True)),
    *(("`labels` must hold 2 times 0 or 1", pairs.pair_spans, SHARD, SPANS, bad)
      for bad in ([0], [0, 2], [0, 1, 1])),
    ("`spans`", pairs.pair_spans, SHARD, SPANS[:, :3], LABELS),
    (r"`targets` must name .*\[10\]", pairs.pair_with_targets, TOKENS, SEGMENTS,
     {10: "x"}, 0),
    ("`segments` must hold 10", pairs.pair_with_targets, TOKENS, SEGMENTS[1:],
     {}, 0),
]  # fmt: skip


def test_bad_input_is_named():
    for message, draw, *arguments in REFUSED:
        with pytest.raises(ValueError, match=message):
            draw(*arguments)
