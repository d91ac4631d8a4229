"""Guesses for [MASK]: scores, order, what is filled in, bad input."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import ops
from bertbook.text.added_tokens import AddedToken
from bertbook.text.vocabulary import SPECIAL_TOKENS

PIECES = [*SPECIAL_TOKENS, "the", "sky", "is", "blue", "##ish", "fall", "##s"]


@pytest.fixture
def model():
    config = bb.BertConfig.named(
        "tiny", vocab_size=len(PIECES), max_position_embeddings=12
    )
    model = bb.BertForMaskedLM(config)
    model.tokenizer = bb.Tokenizer(PIECES)
    return model


def test_the_scores_are_the_softmax_at_the_mask(model):
    text = "The sky is [MASK]"
    guesses = bb.fill_mask(text, model, top_k=len(PIECES))
    ids = np.array([model.tokenizer.encode(text).input_ids])
    logits = ops.convert_to_numpy(model({"input_ids": ids}))[0, 4]
    expected = np.exp(logits) / np.exp(logits).sum()
    for guess in guesses:
        place = PIECES.index(guess["token"])
        assert guess["score"] == pytest.approx(expected[place], abs=1e-6)
    scores = [guess["score"] for guess in guesses]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.any_backend
def test_the_text_is_filled_in_as_it_stands(model):
    guesses = bb.fill_mask("The  SKY is [MASK] !", model, len(PIECES))
    texts = {guess["token"]: guess["text"] for guess in guesses}
    assert texts["blue"] == "The  SKY is blue !"
    assert texts["##s"] == "The  SKY iss !"


def test_several_masks_give_several_lists(model):
    first, second = bb.fill_mask("The [MASK] is [MASK].", model, top_k=3)
    assert len(first) == len(second) == 3
    assert first[0]["text"].endswith("is [MASK].")
    assert second[0]["text"].startswith("The [MASK] is")


def test_a_model_with_two_heads_will_do(model):
    both = bb.BertForPreTraining(model.config)
    both.tokenizer = model.tokenizer
    assert len(bb.fill_mask("[MASK]", both)) == 5


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("No hole here.", {}, r"must hold \[MASK\]"),
        ("", {}, r"must hold \[MASK\]"),
        ("[MASK]", {"top_k": 0}, "`top_k` must be"),
        ("[MASK]", {"top_k": 1.5}, "`top_k` must be"),
        ("[MASK]", {"top_k": 13}, "`top_k` must be"),
        ("[MASK] " * 20, {}, "max_position_embeddings"),
        (["[MASK]"], {}, "`text`"),
    ],
)
def test_bad_input_is_refused(text, options, message, model):
    with pytest.raises(ValueError, match=message):
        bb.fill_mask(text, model, **options)


def test_a_model_without_tokenizer_is_refused(model):
    model.tokenizer = None
    with pytest.raises(ValueError, match="needs a tokenizer"):
        bb.fill_mask("[MASK]", model)


# A padded table, a path, other models.


@pytest.mark.any_backend
def test_rows_without_a_piece_are_no_guess():
    config = bb.BertConfig.named(
        "tiny", vocab_size=len(PIECES) + 5, max_position_embeddings=12
    )
    padded = bb.BertForMaskedLM(config)
    padded.tokenizer = bb.Tokenizer(PIECES)
    bias = next(w for w in padded.weights if w.path.endswith("lm/bias"))
    bias.assign(np.where(np.arange(len(PIECES) + 5) < len(PIECES), 0.0, 9.0))
    guesses = bb.fill_mask("The [MASK]", padded, top_k=len(PIECES))
    assert {guess["token"] for guess in guesses} == set(PIECES)
    assert sum(g["score"] for g in guesses) == pytest.approx(1.0, abs=1e-5)


def test_a_path_is_a_folder_and_top_k_may_be_of_numpy(model, tmp_path):
    model.save_pretrained(tmp_path)
    guesses = bb.fill_mask("The [MASK]", tmp_path, top_k=np.int64(2))
    assert guesses == bb.fill_mask("The [MASK]", str(tmp_path), top_k=2)
    assert len(guesses) == 2


def test_a_mask_that_takes_the_space_before_it_is_found(model):
    mask = AddedToken("[MASK]", lstrip=True)
    model.tokenizer = bb.Tokenizer(PIECES, added_tokens=[mask])
    (guess,) = bb.fill_mask("The [MASK]", model, top_k=1)
    assert guess["token"] in PIECES


@pytest.mark.parametrize("other", [5, None, b"mini", "classifier", object()])
def test_another_model_is_refused_in_one_sentence(other, model):
    if other == "classifier":
        other = bb.BertForSequenceClassification(model.config)
    with pytest.raises(ValueError, match="`model` must be a name, a folder"):
        bb.fill_mask("[MASK]", other)
