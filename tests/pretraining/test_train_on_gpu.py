"""The tools that train on a GPU: what they read and hide is the recipe's."""

import dataclasses
import importlib

import keras
import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.model.bert import BertForPreTraining
from bertbook.pretraining.corpus import read_shard
from bertbook.pretraining.masking import Masking, mask_rows
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.corpora import mini, mini_pieces, shelf_corpus

ON_JAX = keras.backend.backend() == "jax"
pretraining = importlib.import_module("train_on_gpu")
teaching = importlib.import_module("teach_on_gpu")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return shelf_corpus(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module")
def teacher():
    """A tokenizer that cuts the same words into other pieces."""
    return Tokenizer([*mini().special_tokens, *letters()])


def letters():
    plain = set(mini().vocabulary) - set(mini().special_tokens)
    found = {letter for piece in plain for letter in piece}
    return sorted(found | {f"##{letter}" for letter in found})


@pytest.fixture(scope="module")
def texts(corpus, teacher):
    draw = teaching.TextDrawer(mini(), teacher)
    return draw(corpus.shards()[0], teaching.PART, (0,))


def test_rates_rise_then_fall_in_a_line():
    part = pretraining.Part(
        tokens=8 * 128 * 256, begin=0.5, end=0.1, warmup=2, chunk=4
    )
    rates = part.rates()
    assert rates.shape == (2, 4)
    wanted = np.linspace(0.5, 0.1, 8)
    wanted[0] /= 2
    assert rates.ravel() == pytest.approx(wanted, rel=1e-6)


def test_what_fails_in_advance_is_raised_where_it_is_wanted():
    def items():
        yield 1
        raise OSError("no room")

    made = pretraining.made_ahead(items())
    assert next(made) == 1
    with pytest.raises(OSError, match="no room"):
        next(made)


def test_rows_of_pairs_are_those_of_the_recipe(corpus):
    part = dataclasses.replace(pretraining.PARTS[1], length=64)
    rows = pretraining.PairDrawer(mini_pieces())(corpus.shards()[0], part, (3,))
    pieces, ids = mini_pieces(), rows["ids"].astype(int)
    assert ids.shape == (len(rows["labels"]), 64)
    place = np.arange(len(ids))
    assert (ids[:, 0] == pieces.cls).all()
    assert (ids[place, rows["firsts"] - 1] == pieces.sep).all()
    assert (ids[place, rows["lengths"] - 1] == pieces.sep).all()
    assert ((ids != pieces.pad).sum(axis=1) == rows["lengths"]).all()
    assert set(rows["labels"]) == {0, 1}


def test_hiding_on_the_device_is_that_of_masking(corpus):
    jax = pytest.importorskip("jax")
    part = pretraining.PARTS[1]
    rows = pretraining.PairDrawer(mini_pieces())(corpus.shards()[0], part, (0,))
    rows = {n: np.tile(a, (40, *[1] * (a.ndim - 1))) for n, a in rows.items()}
    ids, pieces = rows["ids"].astype(int), mini_pieces()
    batch = pretraining.hide(rows, pieces, 0.2, jax.random.key(0))
    batch = {name: np.asarray(array) for name, array in batch.items()}
    rng = np.random.default_rng(0)
    wanted = mask_rows(ids, pieces, Masking(rate=0.2), rng)
    used = batch["masked_lm_weights"] > 0
    counts = used.sum(axis=1)
    assert (counts == wanted["masked_lm_weights"].sum(axis=1)).all()
    hidden = batch["masked_lm_ids"]
    assert not pieces.special[hidden[used]].any()
    whole = batch["input_ids"].copy()
    np.put_along_axis(whole, batch["masked_lm_positions"], hidden, axis=1)
    assert (whole == ids).all()
    seen = np.take_along_axis(
        batch["input_ids"], batch["masked_lm_positions"], axis=1
    )
    assert (seen[~used] == hidden[~used]).all()
    share = 1 / np.sqrt(used.sum())  # two standard errors, at most
    assert (seen[used] == pieces.mask).mean() == pytest.approx(0.8, abs=share)
    assert (seen[used] == hidden[used]).mean() == pytest.approx(0.1, abs=share)


def test_positions_repeat_but_for_that_of_cls():
    config = BertConfig.named("tiny", max_position_embeddings=6)
    model = BertForPreTraining(config)
    variable = model.encoder.embeddings.position.table
    table = np.arange(6.0)[:, None] * np.ones(variable.shape)
    variable.assign(table)
    pretraining.repeat_positions(model, count=3)
    found = keras.ops.convert_to_numpy(variable)
    assert found[:, 0].tolist() == [0, 1, 2, 2, 1, 2]


def test_both_models_read_the_same_words(texts, teacher):
    for name in ("ids", "sentence_ids"):
        ours = texts[name].reshape(-1, texts[name].shape[-1])
        theirs = texts[f"teacher_{name}"].reshape(ours.shape)
        assert len(ours) > 50
        for row, other in zip(ours[:200], theirs[:200], strict=True):
            assert words_of(row, mini()) == words_of(other, teacher)


def words_of(row, tokenizer):
    """The words of a row, letter by letter, special tokens left out."""
    row = row.astype(int)
    words = []
    for token in row:
        piece = tokenizer.vocabulary[token % teaching.STARTS]
        if token >= teaching.STARTS:
            words.append("")
        if piece not in tokenizer.special_tokens:
            words[-1] += piece.removeprefix("##")
    return words


def test_texts_hold_every_token_where_rows_have_room(corpus):
    draw = teaching.TextDrawer(mini(), mini())
    texts = draw(corpus.shards()[0], teaching.PART, (0,))
    assert texts["ids"].shape[1:] == (teaching.LONG,)
    shape = teaching.SENTENCES, teaching.SHORT
    assert texts["sentence_ids"].shape[1:] == shape
    ids, pieces = texts["ids"].astype(int) % teaching.STARTS, mini_pieces()
    assert (ids[:, 0] == pieces.cls).all()
    last = ids[np.arange(len(ids)), texts["lengths"] - 1]
    assert (last == pieces.sep).all()
    kept = (texts["lengths"] - 2).sum()
    assert kept == len(read_shard(corpus.shards()[0]).tokens)


def test_the_mean_of_a_word_is_that_of_its_pieces():
    jax = pytest.importorskip("jax")
    starts = np.array([[0, 1, 0, 1, 0, 0]], bool)  # [CLS] a ##b c [SEP] [PAD]
    shares, used = teaching.mean_matrix(
        jax.numpy.asarray(starts), jax.numpy.asarray([5])
    )
    assert np.asarray(used).tolist() == [[1, 1, 0, 0]]
    assert np.asarray(shares)[0, 0].tolist() == [0, 0.5, 0.5, 0, 0, 0]
    assert np.asarray(shares)[0, 1].tolist() == [0, 0, 0, 1, 0, 0]


@pytest.mark.slow
@pytest.mark.skipif(not ON_JAX, reason="the tools are for JAX")
def test_a_model_is_trained_then_taught(tmp_path, monkeypatch):
    """Some steps of every kind, with rows of the texts that ship."""
    monkeypatch.setattr(teaching, "LAYERS", (2, 4))  # the teacher has four
    folder = tmp_path / "long"
    mini().save_pretrained(folder / f"vocabulary-{pretraining.VOCABULARY}")
    shelf_corpus(folder / f"shards-{pretraining.VOCABULARY}")
    shelf_corpus(folder / f"genres-{pretraining.VOCABULARY}" / "shelf")
    first = pretraining.Part(
        tokens=1, begin=1e-3, end=1e-3, length=32, batch_size=8, chunk=4, seed=0
    )
    last = dataclasses.replace(
        first, length=256, batch_size=2, seed=1, repeat_positions=True
    )
    run = pretraining.Run(folder, tmp_path / "run")
    run.train(first)
    run.train(last)
    run.save(tmp_path / "run" / "model")
    run.close()
    assert [row["tokens"] for row in run.log] == [8 * 32 * 4, 8 * 32 * 4 * 3]
    teacher = tmp_path / "run" / "model"
    lesson = teaching.Lesson(
        folder, tmp_path / "lesson", tmp_path / "run" / "model", teacher
    )
    part = dataclasses.replace(
        teaching.PART, tokens=1, batch_size=4, chunk=4, warmup=1
    )
    lesson.train(part)
    lesson.save(tmp_path / "lesson" / "model")
    lesson.close()
    before, after = (
        pretraining.make_model(len(mini()), tmp_path / name / "model")
        for name in ("run", "lesson")
    )
    for one, other in zip(
        before.get_weights()[:4], after.get_weights()[:4], strict=True
    ):
        assert not np.array_equal(one, other)
