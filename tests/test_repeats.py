"""A head that finds a piece again in the other text."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.repeats import (
    content_directions,
    look_everywhere,
    look_for_repeats,
    read_off,
)
from bertbook.runtime import keras

to_numpy = keras.ops.convert_to_numpy


def shipped(change=None, **settings):
    keras.utils.set_random_seed(1)
    encoder = bb.BertEncoder.from_pretrained("mini")
    if change is not None:
        change(encoder, **settings)
    return encoder


def attend(encoder, ids, segments, layer=0):
    batch = {"input_ids": ids, "token_type_ids": segments}
    outputs = encoder(batch, output_attentions=True)
    return to_numpy(outputs["attentions"][layer])  # (B, N, S, S)


def pair_with_repeats(tokenizer, seed=0):
    """Two texts of 15 and 20 pieces; every third of the first is in both."""
    rng = np.random.default_rng(seed)
    a, b = np.split(rng.choice(np.arange(600, 8_000), 35, False), [15])
    again = np.arange(0, 15, 3)
    places = rng.choice(20, len(again), False)
    b[places] = a[again]
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    ids = np.array([[cls, *a, sep, *b, sep]], "int32")
    segments = np.array([[0] * 17 + [1] * 21], "int32")
    return ids, segments, 1 + again, 17 + places


# Definition.


def test_the_numbers_of_a_plane_are_read_off():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 7, 3))
    found = read_off(vectors, vectors @ [2.0, 0.0, -1.0] + 4)
    np.testing.assert_allclose(found, [2, 0, -1, 4], atol=1e-10)


def test_directions_tell_pieces_and_not_places():
    rng = np.random.default_rng(0)
    pieces = rng.normal(size=(90, 11, 13)) * np.arange(1, 14)
    places = 50 * rng.normal(size=(11, 13))
    found, middle = content_directions(pieces + places, 2)
    np.testing.assert_allclose(middle, places.mean(0), atol=2)
    measured = (pieces + places).reshape(-1, 13) @ found
    np.testing.assert_allclose(measured.std(axis=0), 1, atol=0.1)
    of_places = (pieces + places).mean(0) @ found  # hardly differ
    assert of_places.std(axis=0).max() < 1e-9


def test_repeats_are_found_in_both_directions():
    encoder = shipped(look_for_repeats)
    found = []
    for seed in range(10):
        pair = pair_with_repeats(encoder.tokenizer, seed)
        ids, segments, first, second = pair
        weights = attend(encoder, ids, segments)[0, -1]
        for rows, columns in ((first, second), (second, first)):
            found += list(weights[rows].argmax(-1) == columns)
    assert np.mean(found) > 0.85  # rare pieces have short vectors
    before = attend(shipped(), ids, segments)[0]
    assert before[:, first, second].max() < 0.2, "no head did it before"


def test_what_is_not_there_is_looked_for_at_the_separator():
    encoder = shipped(look_for_repeats)
    ids, segments, first, second = pair_with_repeats(encoder.tokenizer)
    weights = attend(encoder, ids, segments)[0, -1]
    alone = np.setdiff1d(np.arange(1, 16), first)
    ends = weights[alone, -1]
    assert ends.mean() > 0.3
    assert ends.mean() > 5 * weights[first, -1].mean()


def test_a_head_that_looks_evenly():
    encoder = shipped(look_everywhere, layer=1, head=2)
    ids, segments, *_ = pair_with_repeats(encoder.tokenizer)
    weights = attend(encoder, ids, segments, layer=1)[0]
    np.testing.assert_allclose(weights[2], 1 / ids.shape[1], atol=0.02)
    assert weights[3].max() > 0.2, "another head"


# Property.


@pytest.mark.parametrize("head", [0, 2, -1])
def test_one_head_changes_and_its_values_do_not(head):
    old, new = shipped(), shipped(look_for_repeats, head=head)
    number = head % 4
    width = 64
    for before, after in zip(old.weights, new.weights, strict=True):
        different = to_numpy(before) != to_numpy(after)
        if "block_0/attention/query_key_value" in before.path:
            columns = np.flatnonzero(different.reshape(-1, 768).any(axis=0))
            here = np.arange(number * width, (number + 1) * width)
            assert set(columns) <= {*here, *(here + 256)}
            assert len(columns) > width
        else:
            assert not different.any(), before.path


# Error.


def test_what_cannot_be_set():
    encoder = shipped()
    encoder.tokenizer = None
    with pytest.raises(ValueError, match="`model` must have a tokenizer"):
        look_for_repeats(encoder)
    config = bb.BertConfig.named("tiny", vocab_size=8_192, hidden_size=64)
    narrow = bb.BertEncoder(config)
    narrow.tokenizer = bb.Tokenizer.from_pretrained("mini")
    with pytest.raises(ValueError, match="`hidden_size` must be at least"):
        look_for_repeats(narrow)
