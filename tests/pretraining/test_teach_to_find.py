"""A head that finds a piece again in the other text."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.locations import shelf
from bertbook.pretraining.attention_init import (
    find_repeats,
    mark_finds,
    read_off,
    teach_to_find,
)
from bertbook.runtime import keras
from bertbook.text.sentences import split_sentences

to_numpy = keras.ops.convert_to_numpy


@pytest.fixture(scope="module")
def pairs():
    """Two sentences that follow each other on the shelf, as ids, segments."""
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    rows = []
    for path in shelf():
        found = split_sentences(path.read_text(encoding="utf-8"))
        rows += list(zip(found, found[1:], strict=False))
    batch = tokenizer(*map(list, zip(*rows, strict=True)), max_length=64)
    return batch["input_ids"], batch["token_type_ids"]


def shipped():
    keras.utils.set_random_seed(1)
    return bb.BertEncoder.from_pretrained("mini")


@pytest.fixture(scope="module")
def taught(pairs):
    encoder = shipped()
    ids, segments = (column[100:] for column in pairs)
    shares = teach_to_find(encoder, ids, segments, steps=400)
    return encoder, shares


def attend(encoder, ids, segments):
    batch = {
        "input_ids": ids,
        "token_type_ids": segments,
        "attention_mask": ids != 0,
    }
    outputs = encoder(batch, output_attentions=True)
    return to_numpy(outputs["attentions"][0])  # (B, N, S, S)


# Definition.


def test_repeats_by_hand():
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    ids = np.array([[cls, 900, 901, sep, 901, 902, sep, 0]])
    segments = np.array([[0, 0, 0, 0, 1, 1, 1, 0]])
    right, allowed = find_repeats(ids, segments, tokenizer)
    wanted = np.zeros((8, 8), bool)
    wanted[[0, 1, 3], 6] = True  # not there: the other [SEP]
    wanted[2, 4] = wanted[4, 2] = True
    wanted[[5, 6], 3] = True
    np.testing.assert_array_equal(right[0], wanted)
    np.testing.assert_array_equal(allowed[0], [[True] * 7 + [False]] * 8)


def test_read_off_solves_least_squares_with_a_bias():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 7, 3))
    found = read_off(vectors, vectors @ [2.0, 0.0, -1.0] + 4)
    np.testing.assert_allclose(found, [2, 0, -1, 4], atol=1e-10)


def test_the_lesson_is_learned_on_text_it_has_not_seen(pairs, taught):
    encoder, shares = taught
    assert shares[0] < 0.1
    assert np.mean(shares[-20:]) > 0.9
    ids, segments = (column[:100] for column in pairs)
    right, _ = find_repeats(ids, segments, encoder.tokenizer)
    looked = (attend(encoder, ids, segments)[:, -1] * right).sum(axis=-1)
    assert looked[right.any(axis=-1)].mean() > 0.9
    before = (attend(shipped(), ids, segments) * right[:, None]).sum(axis=-1)
    found_before = before.swapaxes(1, 2)[right.any(axis=-1)].mean(axis=0)
    assert found_before.max() < 0.3, "no head did it before"


def test_the_direction_of_marks_tells_pieces_of_both_texts(pairs, taught):
    encoder = taught[0]
    ids, segments = (column[:100] for column in pairs)
    kept = encoder.get_weights()
    direction = mark_finds(encoder)
    assert np.linalg.norm(direction) == pytest.approx(1)
    vectors = encoder.embeddings(ids, segments)
    mask = (ids != 0)[:, None, None, :]
    gathered = encoder.blocks[0].attention(vectors, attention_mask=mask)
    encoder.set_weights(kept)
    marks = to_numpy(gathered) @ direction
    right, _ = find_repeats(ids, segments, encoder.tokenizer)
    at_end = right & (ids == encoder.tokenizer.sep_token_id)[:, None, :]
    alone = at_end.any(axis=-1)
    found = right.any(axis=-1) & ~alone
    assert marks[found].mean() - marks[alone].mean() > 3
    middle = (marks[found].mean() + marks[alone].mean()) / 2
    assert (marks[found] > middle).mean() > 0.95
    assert (marks[alone] < middle).mean() > 0.95


# Property.


@pytest.mark.parametrize("head", [0, 2, -1])
def test_one_head_changes_and_its_values_do_not(head, pairs):
    old, new = shipped(), shipped()
    teach_to_find(new, *pairs, head=head, steps=2)
    number = head % 4
    for before, after in zip(old.weights, new.weights, strict=True):
        different = to_numpy(before) != to_numpy(after)
        if "block_0/attention/query_key_value" in before.path:
            columns = np.flatnonzero(different.reshape(-1, 768).any(axis=0))
            here = np.arange(64 * number, 64 * (number + 1))
            assert set(columns) <= {*here, *(here + 256)}
            assert len(columns) > 64
        else:
            assert not different.any(), before.path


def test_a_mark_changes_one_value_and_one_direction():
    old, new = shipped(), shipped()
    direction = mark_finds(new, head=1, strength=5.0)
    kernels = [
        [
            to_numpy(layer.kernel)
            for layer in (
                attention.query_key_value,
                attention.output_projection,
            )
        ]
        for attention in (encoder.blocks[0].attention for encoder in (old, new))
    ]
    (before_in, before_out), (after_in, after_out) = kernels
    (columns,) = np.nonzero((before_in != after_in).any(axis=0))
    assert list(columns) == [2 * 256 + 64]
    marks = after_out @ direction
    assert marks[64] == pytest.approx(5, rel=1e-4)
    np.testing.assert_allclose(np.delete(marks, 64), 0, atol=1e-5)
    change = np.delete(after_out - before_out, 64, axis=0)
    along = np.outer(change @ direction, direction)
    np.testing.assert_allclose(change, along, atol=1e-5)


# Error.


@pytest.mark.parametrize("change", [mark_finds, teach_to_find])
def test_a_model_without_a_tokenizer_is_refused(change, pairs):
    encoder = shipped()
    encoder.tokenizer = None
    arguments = pairs if change is teach_to_find else ()
    with pytest.raises(ValueError, match="`model` must have a tokenizer"):
        change(encoder, *arguments)
