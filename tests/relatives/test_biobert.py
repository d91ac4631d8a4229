"""Vocabularies and models of a domain."""

import numpy as np
import pytest

from bertbook.model.bert import BertForMaskedLM, BertForPreTraining
from bertbook.pretraining import pretrain
from bertbook.pretraining.pretrain import PretrainingRecipe
from bertbook.relatives.biobert import (
    adapt,
    masked_loss,
    masked_rows,
    pieces_per_word,
)
from bertbook.runtime import keras
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.models import to_numpy
from tests.helpers.toys import TOY, toy_config

DAYS = ["the cat sat on the mat", "the dog sat on the cat", "a mat and a hat"]
LETTERS = "abcdefghijklmnopqrstuvwxyza"
CELLS = ["the enzyme cut the membrane", "an enzyme in a membrane cut it"]


def test_a_domain_vocabulary_takes_fewer_pieces():
    days, cells = (
        Tokenizer.train([*lines * 9, LETTERS], 75) for lines in (DAYS, CELLS)
    )
    assert pieces_per_word(cells, CELLS) < pieces_per_word(days, CELLS)
    assert pieces_per_word(days, DAYS) < pieces_per_word(cells, DAYS)


def test_pieces_are_counted_by_how_often_a_word_occurs():
    assert pieces_per_word(TOY, ["abc a a. 12"]) == pytest.approx(5 / 3)


def test_texts_that_cannot_be_counted_are_refused():
    for lines, message in (
        (["12 ."], "hold words"),
        (["a æ"], "Received: 'æ'"),
    ):
        with pytest.raises(ValueError, match=message):
            pieces_per_word(TOY, lines)


def small(kind=BertForMaskedLM):
    keras.utils.set_random_seed(0)
    return kind(toy_config(max_position_embeddings=64))


def test_the_loss_is_the_mean_over_hidden_tokens():
    rows = masked_rows(TOY, ["ab cd e f g", "h i", "jkl mno pq rs"], 12)
    model = small()
    inputs = {n: rows[n] for n in ("input_ids", "attention_mask")}
    logits = to_numpy(model(inputs)).astype(float)  # (B, S, V)
    nats = []
    for row, slot in zip(*np.nonzero(rows["masked_lm_weights"]), strict=True):
        scores = logits[row, rows["masked_lm_positions"][row, slot]]
        right = scores[rows["masked_lm_ids"][row, slot]]
        nats.append(np.log(np.exp(scores).sum()) - right)
    for size in (1, 2, 32):
        loss = masked_loss(model, rows, size)
        assert loss == pytest.approx(np.mean(nats), abs=1e-4)
    assert masked_loss(small(BertForPreTraining), rows) > 0


def test_masked_rows_depend_on_the_seed_alone():
    first, again, other = (
        masked_rows(TOY, ["ab cd e f g h i"] * 3, 12, seed)
        for seed in (0, 0, 1)
    )
    assert (first["input_ids"] == again["input_ids"]).all()
    assert (first["input_ids"] != other["input_ids"]).any()


@pytest.mark.slow  # ten seconds and more
def test_a_model_gets_better_at_its_domain(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrain, "COMPILE", False)
    start = small(BertForPreTraining)
    start.tokenizer = TOY
    start.save_pretrained(tmp_path / "start")
    texts = ["ab ab ab ab ab", "ab ab ab ab"] * 4
    recipe = PretrainingRecipe(steps=12, batch_size=4, learning_rate=1e-2)
    out = tmp_path / "domain"
    model = adapt(texts, out, tmp_path / "start", recipe, 16)
    rows = masked_rows(TOY, texts, 16)
    before, after = masked_loss(start, rows), masked_loss(model, rows)
    assert after < 0.7 * before
    again = BertForPreTraining.from_pretrained(out)
    assert masked_loss(again, rows) == pytest.approx(after, abs=1e-4)


@pytest.mark.parametrize("texts", [[], "notes", [1]])
def test_a_domain_needs_texts(texts, tmp_path):
    with pytest.raises(ValueError, match="texts"):
        adapt(texts, tmp_path)
