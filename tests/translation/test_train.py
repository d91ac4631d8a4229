"""Runs of training: they learn, resume exactly, end in time, and are kept."""

import itertools
import json
import shutil
import sys

import numpy as np
import pytest

import bertbook as bb
from bertbook.decoder.seq2seq import Seq2SeqTransformer
from bertbook.training import checkpoint
from bertbook.translation import train
from bertbook.translation.train import Recipe, Reporting, train_translation
from bertbook.translation.translate import translate
from tests.helpers.decoders import seq2seq_config
from tests.helpers.runs import (
    KilledError,
    checkpoints_of,
    killed_at_save,
    losses,
    modified,
    read_log,
    weights,
)

WORDS = {"one": "uno", "two": "dos", "six": "seis", "ten": "diez"}
QUIET = Reporting(log_steps=2, evaluation_steps=4, verbose=False)


def toy_language():
    """Returns all texts of one to three of the words, in both languages.

    In the second one the words stand in reverse order.
    """
    rows = [
        row
        for length in (1, 2, 3)
        for row in itertools.product(WORDS, repeat=length)
    ]
    return {
        "source": [f"{' '.join(row)}." for row in rows],
        "target": [
            "¡" + " ".join(WORDS[word] for word in row[::-1]) + "!"
            for row in rows
        ],
    }


pytestmark = pytest.mark.usefixtures("quick_runs")
DATA = toy_language()
HELD_OUT = {name: rows[7::9] for name, rows in DATA.items()}
TRAIN = {
    name: [row for place, row in enumerate(rows) if place % 9 != 7]
    for name, rows in DATA.items()
}


def small_config(**options):
    sizes = {
        "vocab_size": 28,
        "target_vocab_size": 31,
        "hidden_size": 12,
        "num_decoder_layers": 1,
        "intermediate_size": 20,
        "max_position_embeddings": 16,
    }
    return seq2seq_config(**sizes | options)


def run(out, steps=5, config=None, dev=HELD_OUT, reporting=QUIET, **recipe):
    recipe = {"batch_tokens": 96, "checkpoint_steps": 2} | recipe
    recipe = Recipe(steps=steps, averaged=2, warmup_steps=3, **recipe)
    config = config or small_config()
    return train_translation(
        TRAIN, out, recipe, dev, config, reporting=reporting
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory, quick_runs):
    """A run of five steps, from beginning to end."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder)
    return folder


# What a recipe means.


def test_the_recipe_reaches_the_optimizer():
    model = Seq2SeqTransformer(small_config())
    recipe = Recipe(
        learning_rate=0.6, warmup_steps=4, clip_norm=0.7, label_smoothing=0.2
    )
    train.compile_for_translation(model, recipe)
    optimizer, rates = model.optimizer, []
    for step in (0, 1, 3, 15):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    np.testing.assert_allclose(rates, [0.15, 0.3, 0.6, 0.3], rtol=1e-6)
    assert (optimizer.beta_1, optimizer.beta_2) == (0.9, 0.98)
    assert optimizer.epsilon == 1e-9
    assert optimizer.weight_decay == 0.0
    assert optimizer.global_clipnorm == 0.7
    assert (model.loss.smoothing, model.loss.reduction) == (0.2, "sum")
    assert not train.COMPILE  # XLA would compile every length


# What a run leaves.


def test_a_finished_folder_is_a_translator(whole):
    names = {path.name for path in whole.iterdir()}
    assert names >= {
        "README.md", "config.json", "log.csv", "model.safetensors", "run.json",
        "target", "vocab.txt",
    }  # fmt: skip
    model = Seq2SeqTransformer.from_pretrained(whole)
    assert not model.load_report.drawn
    assert len(model.tokenizer) == 28
    assert len(model.target_tokenizer) == 31
    assert "¡" in model.target_tokenizer.vocabulary
    rows = read_log(whole)
    assert [int(row["step"]) for row in rows] == [2, 4, 5]
    assert [bool(row["dev_loss"]) for row in rows] == [False, True, True]
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)
    card = (whole / "README.md").read_text(encoding="utf-8")
    assert "Trained on 75 pairs; 0 were too long. On dev: loss" in card


def test_the_weights_are_the_mean_of_the_last_checkpoints(whole):
    kept = sorted((whole / "checkpoints").glob("weights-*"))
    steps = [path.name for path in kept]
    assert steps == [f"weights-{n:08d}.safetensors" for n in (4, 5)]
    model = Seq2SeqTransformer.from_pretrained(whole)
    received = model.get_weights()
    both = []
    for path in kept:
        checkpoint.load_weights(path, model)
        both.append(model.get_weights())
    for array, *parts in zip(received, *both, strict=True):
        np.testing.assert_allclose(array, np.mean(parts, axis=0), atol=1e-6)


def test_the_same_call_again_changes_nothing(whole, capsys):
    before = modified(whole)
    run(whole, reporting=Reporting())
    assert "nothing is changed" in capsys.readouterr().out
    assert modified(whole) == before


def test_a_folder_refuses_other_settings(whole):
    for change, message in (
        ({"steps": 8}, "`recipe.steps` was 5, now 8"),
        ({"seed": 3}, "`recipe.seed` was 0, now 3"),
        ({"config": small_config(hidden_size=18)}, "`config.hidden_size` was"),
        ({"dev": None}, "`dev` was '.*', now None"),
    ):
        with pytest.raises(ValueError, match=message):
            run(whole, **change)


# Resumption, and time.


def test_a_run_that_stopped_ends_as_one_that_did_not(whole, tmp_path):
    with killed_at_save(2, is_written=False):  # the weights are
        run(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    run(tmp_path)
    assert weights(tmp_path) == weights(whole)
    assert losses(tmp_path) == losses(whole)


def test_a_run_ends_in_time_and_stays_ended(tmp_path, monkeypatch):
    saved = bb.Seq2SeqTransformer.save_pretrained

    def save_and_stop(*arguments):
        raise KilledError

    monkeypatch.setattr(bb.Seq2SeqTransformer, "save_pretrained", save_and_stop)
    with pytest.raises(KilledError):
        run(tmp_path, 1_000, dev=None, minutes=1e-9)
    assert [row["step"] for row in read_log(tmp_path)] == ["1"]
    monkeypatch.setattr(bb.Seq2SeqTransformer, "save_pretrained", saved)
    run(tmp_path, 1_000, dev=None, minutes=1e-9)  # no further step
    assert [row["step"] for row in read_log(tmp_path)] == ["1"]
    assert (tmp_path / "model.safetensors").is_file()


# Learning.


@pytest.mark.slow  # ten seconds and more
def test_a_toy_language_is_learned(tmp_path, graphs):
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    model = train_translation(
        TRAIN,
        tmp_path,
        Recipe(
            steps=200,
            batch_tokens=320,
            learning_rate=5e-3,
            warmup_steps=20,
            checkpoint_steps=20,
            averaged=3,
        ),
        HELD_OUT,
        small_config(
            vocab_size=45,
            target_vocab_size=None,
            hidden_size=32,
            num_attention_heads=4,
            intermediate_size=48,
            hidden_dropout_prob=0.0,
            initializer_range=0.1,
        ),
        reporting=Reporting(
            log_steps=200, evaluation_steps=200, translated=9, verbose=False
        ),
    )
    assert model.target_tokenizer is model.tokenizer
    rows = read_log(tmp_path)
    found = translate(model, HELD_OUT["source"], search="greedy")
    right = sum(map(str.__eq__, found, HELD_OUT["target"]))
    print(f"{right} of {len(found)}, BLEU {rows[-1]['dev_bleu']}")
    assert right >= 7
    assert len(found) == 9
    assert float(rows[-1]["dev_bleu"]) > 70
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "bleu" in card
    state = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert state["config"]["target_vocab_size"] is None


def longer(**texts):
    """Returns the pairs with a text more in some of the columns."""
    return {name: rows + texts.get(name, []) for name, rows in TRAIN.items()}


def test_a_call_that_fails_leaves_nothing(tmp_path):
    for options, error, message in (
        ({"train": None}, ValueError, "dict of columns. Received: NoneType"),
        ({"train": [1]}, ValueError, "dict of columns. Received: list"),
        ({"train": {"source": ["a"]}}, KeyError, "columns `source` and"),
        (
            {"train": longer(source=[" "], target=["uno"])},
            ValueError,
            "Received: ' ' in row 75",
        ),
        (
            {"train": longer(source=["one"])},
            ValueError,
            "`target` must be as long as `source`. Received: 75 and 76",
        ),
        ({"dev": {"target": ["a"]}}, KeyError, "columns `source` and"),
        (
            {"dev": {"source": ["one"], "target": [""]}},
            ValueError,
            "A target must hold",
        ),
        ({"lowercase": "no"}, ValueError, "`lowercase` must be True or False"),
        ({"config": {}}, ValueError, "`config` must be a `Seq2SeqConfig`"),
        ({"recipe": {"steps": 2}}, ValueError, "`recipe` must be a `Recipe`"),
        ({"reporting": {}}, ValueError, "`reporting` must be a `Reporting`"),
        (
            {"config": small_config(vocab_size=6)},
            ValueError,
            "`vocab_size` must hold",
        ),
    ):
        arguments = {"train": TRAIN, "config": small_config()} | options
        with pytest.raises(error, match=message):
            train_translation(out=tmp_path / "run", **arguments)
        assert not (tmp_path / "run").exists()


def test_a_missing_score_is_told_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match="sacrebleu"):
        run(tmp_path / "run", reporting=Reporting(translated=2))
    assert not (tmp_path / "run").exists()


def test_the_first_pairs_that_are_short_enough_are_translated(
    tmp_path, monkeypatch
):
    translated = []

    def score(model, data, search):
        with pytest.raises(ValueError, match="another call in this process"):
            run(tmp_path)
        translated.append(data)
        return {"bleu": 1.0, "chrf": 2.0}

    monkeypatch.setattr(train, "score", score)
    monkeypatch.setattr(train, "check_scoring", lambda *rows: None)
    long = {"source": ["one " * 20], "target": ["uno"]}
    dev = {name: long[name] + rows for name, rows in HELD_OUT.items()}
    reporting = Reporting(evaluation_steps=4, translated=2, verbose=False)
    run(tmp_path, steps=1, dev=dev, reporting=reporting)
    first = {name: rows[:2] for name, rows in HELD_OUT.items()}
    assert translated[-1] == first
    assert not (tmp_path / "run.lock").exists()


# What is of no use is not kept.


def test_a_last_update_that_diverges_leaves_the_checkpoint_before(
    whole, tmp_path, monkeypatch
):
    real = train._Run._note
    for number in (np.nan, 1e30):  # the second call goes on after step 4

        def spoil(self, row, number=number):
            real(self, row)
            if row["step"] == 5:
                for weight in self.model.trainable_variables:
                    weight.assign(np.full(weight.shape, number, "float32"))

        with monkeypatch.context() as patch:
            patch.setattr(train._Run, "_note", spoil)
            with pytest.raises(ValueError, match="are not finite after step 5"):
                run(tmp_path)
        kept = sorted((tmp_path / "checkpoints").glob("weights-*"))
        assert [path.stem[-1] for path in kept] == ["2", "4"]
        assert checkpoints_of(tmp_path) == [2, 4]
        assert not (tmp_path / "model.safetensors").exists()
    run(tmp_path)
    assert weights(tmp_path) == weights(whole)


def test_a_call_that_diverges_at_once_blocks_nothing(tmp_path):
    with pytest.raises(ValueError, match=r"not finite|loss is (nan|inf)"):
        run(tmp_path, learning_rate=1e30)
    run(tmp_path, steps=1)
    assert (tmp_path / "model.safetensors").is_file()


def stopped(whole, folder):
    """Copies a run that stopped after step 4."""
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    (folder / "model.safetensors").unlink()
    for name in ("checkpoint", "weights"):
        (folder / "checkpoints" / f"{name}-00000005.safetensors").unlink()
    return folder / "checkpoints" / "weights-00000004.safetensors"


def test_weights_of_steps_that_are_done_again_are_not_averaged(whole, tmp_path):
    four = stopped(whole, tmp_path)
    shutil.copy(four, four.with_name("weights-00000009.safetensors"))
    run(tmp_path)
    assert weights(tmp_path) == weights(whole)


def test_missing_weights_are_told_at_once(whole, tmp_path):
    stopped(whole, tmp_path).unlink()
    with pytest.raises(FileNotFoundError, match="lacks weights.*00000004"):
        run(tmp_path)


def test_a_run_draws_its_log(whole):
    pytest.importorskip("matplotlib", reason="draws a picture")
    assert (whole / "log.png").read_bytes().startswith(b"\x89PNG")
