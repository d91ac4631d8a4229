"""Tokens that are no words, and a model that has rows for them."""

import numpy as np
import pytest

from bertbook.model.bert import (
    BertForMaskedLM,
    BertForSequenceClassification,
)
from bertbook.pretraining.masking import Masking, Pieces, mask_rows
from bertbook.relatives.videobert import (
    add_tokens,
    cluster_frames,
    code_tokens,
    frame_tokens,
    grow_vocabulary,
)
from bertbook.runtime import keras
from bertbook.text.added_tokens import AddedToken
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.models import to_numpy
from tests.helpers.toys import PIECES, TOY, toy_config

FRAMES = frame_tokens(range(3))
VIDEO = add_tokens(TOY, ["[>]", *FRAMES])


def test_a_text_and_a_video_in_one_sequence():
    encoded = VIDEO.encode("cut it [>] [frame 2] [frame 0] [frame 2]")
    words = ["[CLS]", "c", "##u", "##t", "i", "##t", "[>]"]
    assert encoded.tokens == [*words, *(FRAMES[i] for i in (2, 0, 2)), "[SEP]"]
    assert encoded.input_ids[-4:-1] == [
        len(TOY) + 3,
        len(TOY) + 1,
        len(TOY) + 3,
    ]
    assert VIDEO.vocabulary[: len(TOY)] == TOY.vocabulary
    pair = VIDEO.encode("cut it", "[frame 1]")
    assert pair.token_type_ids == [0] * 7 + [1] * 2


def test_added_codes_are_tokens():
    visits = add_tokens(TOY, code_tokens(["E11.9", "I10"]))
    tokens = visits.encode("[E11.9] [I10]").tokens
    assert tokens == ["[CLS]", "[E11.9]", "[I10]", "[SEP]"]


def test_more_tokens_change_nothing_of_how_a_text_is_cut():
    more = add_tokens(Tokenizer(PIECES, truncation_side="left"), ["[>]"])
    cut = more.encode("cut it [>]", max_length=4).tokens
    assert cut == ["[CLS]", "##t", "[>]", "[SEP]"]


def test_adding_known_tokens_is_refused():
    for tokens, message in (
        ([], "none"),
        (["[CLS]"], r"Received: \[CLS\]"),
        (["[x]", "[x]"], r"each once"),
    ):
        with pytest.raises(ValueError, match=message):
            add_tokens(TOY, tokens)


def small_model():
    keras.utils.set_random_seed(0)
    model = BertForMaskedLM(toy_config())
    model.tokenizer = TOY
    return model


def test_a_grown_model_says_the_same_about_words():
    model = small_model()
    grown = grow_vocabulary(model, VIDEO)
    batch = VIDEO(["cut it"])
    before, after = (to_numpy(m(batch)) for m in (model, grown))
    assert after.shape[2] == before.shape[2] + 4
    np.testing.assert_allclose(after[..., : len(TOY)], before, atol=1e-6)
    rows = to_numpy(grown.encoder.embeddings.token.embeddings)[len(TOY) :]
    assert 0.01 < rows.std() < 0.04
    more = to_numpy(grown(VIDEO(["cut [>] [frame 1]"])))
    assert np.isfinite(more).all()


def test_a_model_grows_by_its_own_vocabulary_only():
    other = add_tokens(TOY, ["[y]"])
    grown = grow_vocabulary(small_model(), VIDEO)
    with pytest.raises(ValueError, match="more behind it"):
        grow_vocabulary(grown, other)
    with pytest.raises(ValueError, match="Received: 59 pieces"):
        grow_vocabulary(small_model(), TOY)


def test_added_tokens_are_never_hidden():
    ids = VIDEO(["[frame 0] [frame 1] [frame 2]"])["input_ids"]
    masking = Masking(rate=0.9, mask_share=1.0, random_share=0.0)
    pieces = Pieces.of(VIDEO)
    masked = mask_rows(ids, pieces, masking, np.random.default_rng(0))
    assert (masked["input_ids"] == pieces.mask).sum() == 0


def test_clusters_are_found():
    rng = np.random.default_rng(0)
    places = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 9], [-9, 9, 0]])
    truth = rng.integers(4, size=60)
    vectors = places[truth] + rng.normal(0, 0.3, (60, 3))
    numbers, centers = cluster_frames(vectors, 4)
    assert len(set(zip(truth, numbers, strict=True))) == 4
    means = [vectors[numbers == k].mean(axis=0) for k in range(4)]
    np.testing.assert_allclose(centers, means)


def test_bad_frames_are_refused():
    for shape, clusters, message in (
        ((5,), 2, "shape \\(5,\\)"),
        ((5, 2), 6, "Received: 6"),
        ((5, 2), 0, "0"),
    ):
        with pytest.raises(ValueError, match=message):
            cluster_frames(np.zeros(shape), clusters)


def padded_model(spare):
    keras.utils.set_random_seed(0)
    model = BertForMaskedLM(toy_config(vocab_size=len(TOY) + spare))
    model.tokenizer = TOY
    return model


@pytest.mark.parametrize(("spare", "size"), [(2, 4), (4, 4), (7, 7)])
def test_new_tokens_take_spare_rows_first(spare, size):
    model = padded_model(spare)
    bias = next(w for w in model.weights if w.path.endswith("lm/bias"))
    bias.assign(np.full(bias.shape, 5.0))
    grown = grow_vocabulary(model, VIDEO)
    assert grown.config.vocab_size == len(TOY) + size
    old, new = (
        to_numpy(m.encoder.embeddings.token.embeddings) for m in (model, grown)
    )
    np.testing.assert_array_equal(new[: len(TOY)], old[: len(TOY)])
    np.testing.assert_array_equal(new[len(TOY) + 4 :], old[len(TOY) + 4 :])
    assert 0.01 < new[len(TOY) : len(TOY) + 4].std() < 0.04
    bias = next(w for w in grown.weights if w.path.endswith("lm/bias"))
    assert to_numpy(bias)[len(TOY) : len(TOY) + 4].tolist() == [0.0] * 4
    assert grown.tokenizer is VIDEO


def test_a_classifier_keeps_its_labels_as_it_grows():
    model = BertForSequenceClassification(toy_config(), num_labels=3)
    model.tokenizer = TOY
    grown = grow_vocabulary(model, VIDEO)
    batch = TOY(["cut it"])
    np.testing.assert_allclose(
        to_numpy(grown(batch)), to_numpy(model(batch)), atol=1e-6
    )


def test_what_is_no_model_or_tokenizer_is_refused():
    for other in (None, 5, "mini"):
        with pytest.raises(ValueError, match="`model` must be a model"):
            grow_vocabulary(other, VIDEO)
        with pytest.raises(ValueError, match="`tokenizer` must hold"):
            grow_vocabulary(small_model(), other)


def test_switches_of_added_tokens_stay_as_more_are_added():
    word = AddedToken("abc", special=False, normalized=True)
    first = Tokenizer([*PIECES, "abc"], added_tokens=[word])
    more = add_tokens(first, ["[z]"])
    assert word in more.added_tokens
    assert more.encode("ABC[z]").tokens[1:-1] == ["abc", "[z]"]
