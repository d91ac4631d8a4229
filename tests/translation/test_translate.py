"""Translating and scoring: what is searched, joined and measured."""

import sys

import numpy as np
import pytest

import bertbook as bb
from bertbook.decoder.generate import greedy
from bertbook.translation import translate as translation
from bertbook.translation.translate import (
    encode_columns,
    score,
    token_loss,
    translate,
)
from tests.helpers import decoders
from tests.helpers.models import to_numpy

pytestmark = pytest.mark.usefixtures("plain_graphs")
DATA = {
    "source": ["a b c", "d", "e f g h i j k"],
    "target": ["a b?", "b c d e f", "g"],
}


@pytest.fixture
def model():
    return decoders.seq2seq()


def test_the_loss_is_the_mean_over_every_token_of_every_target(model):
    sources = model.tokenizer(DATA["source"])
    wanted = model.target_tokenizer(DATA["target"])["input_ids"]
    batch = {
        "input_ids": sources["input_ids"],
        "attention_mask": sources["attention_mask"],
        "decoder_input_ids": wanted[:, :-1],
    }
    logits = to_numpy(model(batch)).astype("float64")
    losses = []
    for row, t in np.ndindex(logits.shape[:2]):
        if wanted[row, t + 1] != decoders.PAD:
            scores = logits[row, t]
            log_sum = np.log(np.exp(scores).sum())
            losses.append(log_sum - scores[wanted[row, t + 1]])
    assert len(losses) == (3 + 1) + (5 + 1) + (1 + 1)
    received = token_loss(model, encode_columns(model, DATA))
    assert received == pytest.approx(np.mean(losses), rel=1e-5)


def test_translations_are_what_the_search_writes(model):
    found = translate(model, DATA["source"], 6, search="greedy", batch_size=3)
    batch = model.tokenizer(DATA["source"], max_length=16, padding="max_length")
    ids = greedy(model, batch, 6)
    assert found == [model.read(None, row) for row in ids]
    assert " ?" not in "".join(found)


def test_a_beam_of_four_and_all_positions_are_the_default(model, monkeypatch):
    called = []

    def generate(*args, **options):
        called.append((args, options))
        return ["b"]

    monkeypatch.setattr(translation, "generate", generate)
    assert translate(model, ["a"]) == ["b"]
    translate(model, ["a"], 5, search="greedy", batch_size=2)
    assert called == [
        ((model, ["a"], 29, "beams"), {}),
        ((model, ["a"], 5, "greedy"), {"batch_size": 2}),
    ]


def test_scores_compare_translations_with_targets(model, monkeypatch):
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    asked = []

    def generate(model, texts, *rest, **options):
        asked.append((texts, rest, options))
        return DATA["target"]

    monkeypatch.setattr(translation, "generate", generate)
    found = score(model, DATA, search="greedy", batch_size=7)
    assert asked == [(DATA["source"], (29, "greedy"), {"batch_size": 7})]
    assert found["chrf"] == pytest.approx(100.0)
    assert set(found) == {"bleu", "chrf", "signatures"}


def test_a_folder_is_read(model, tmp_path):
    model.save_pretrained(tmp_path)
    options = {"search": "greedy", "batch_size": 3}
    expected = translate(model, DATA["source"], 6, **options)
    assert translate(tmp_path, DATA["source"], 6, **options) == expected


@pytest.mark.parametrize("column", ["source", "target"])
def test_a_missing_column_is_named(model, column):
    data = {name: rows for name, rows in DATA.items() if name != column}
    with pytest.raises(KeyError, match="columns `source` and `target`. Rec"):
        score(model, data)


def test_what_cannot_be_scored_is_not_translated(model, monkeypatch):
    monkeypatch.setattr(translation, "generate", None)
    data = {**DATA, "target": DATA["target"][1:]}
    with pytest.raises(ValueError, match="of one length.*Received: 3 and 2"):
        score(model, data)
    with pytest.raises(ValueError, match="dict of columns. Received: list"):
        score(model, [1])
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"pip install sacrebleu"):
        score(model, DATA)


def test_texts_that_are_no_lists_of_strings_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match="one piece. Received: '' in row 1"):
        bb.translate(model, ["a", ""])
    with pytest.raises(ValueError, match="at most 29 .* 30 in row 0"):
        bb.translate(model, ["a " * 28])
    with pytest.raises(ValueError, match="list of strings. Received: str"):
        bb.translate(model, "a")
    with pytest.raises(FileNotFoundError, match="hf://org/name"):
        bb.translate(str(tmp_path / "missing"), ["a"])


def test_a_text_of_which_the_vocabulary_has_nothing_is_refused(model):
    for text in ("😀", "学校 ¿", "学" * 30):
        message = rf"that the vocabulary has. Received: '{text}' in row 1"
        with pytest.raises(ValueError, match=message):
            bb.translate(model, ["a", text, "b"])
    with pytest.raises(ValueError, match=f"'{'ж' * 40}' in row 0"):
        bb.translate(model, ["ж" * 90])


def test_a_text_of_which_the_vocabulary_has_nothing_can_be_scored(model):
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    data = {"source": ["a", "😀"], "target": ["b", "😀"]}
    assert score(model, data, 4, search="greedy")["bleu"] < 100
