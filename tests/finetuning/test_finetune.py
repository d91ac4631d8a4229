"""Fine-tuning: it learns, keeps the best, goes on where it was killed."""

import json
import math
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.finetuning import finetune as finetuning
from bertbook.finetuning import run as task_runs
from bertbook.finetuning.finetune import FinetuningOptions, evaluate, finetune
from bertbook.runtime import keras
from bertbook.tasks.base import Settings
from bertbook.training import checkpoint
from bertbook.training import monitor as training_monitor
from bertbook.training.optimizers import AdamW
from tests.helpers.runs import (
    checkpoints_of,
    killed_at_save,
    losses,
    modified,
    read_log,
    same,
)
from tests.helpers.tasks import (
    CLASSIFIER,
    TASKS,
    grades,
    learn,
    opinions,
    pairs,
    questions,
    tags,
)
from tests.helpers.toys import TOY, make, toy_config

pytestmark = pytest.mark.usefixtures("quick_runs")
ROOT = Path(__file__).parents[2]
QUIET = FinetuningOptions(verbose=False)


# It learns.


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_learned(name, request):
    is_long = name in ("several labels", "a number")
    if is_long:
        request.getfixturevalue("graphs")
    assert learn(name, is_long)[1] > 0.99


def test_float16_scales_the_loss_and_learns(graphs):
    model, score = learn("one label", is_long=True, dtype="mixed_float16")
    assert score > 0.99
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}


# A run and what it leaves.


def run(out=None, seed=0, dropout=0.1, model=None, **options):
    """A short run with dropout and a dev set."""
    model = model or make(CLASSIFIER, dropout=dropout)
    settings = {"verbose": False, "checkpoint_steps": 2} | options
    history = finetune(
        model,
        opinions(),
        opinions(),
        epochs=3,
        learning_rate=1e-2,
        batch_size=10,
        seed=seed,
        out=out,
        options=FinetuningOptions(**settings),
    )
    return model, history


def weights(model):
    return [np.array(w) for w in model.get_weights()]


def part_of(weight):
    """The part of a model that a weight belongs to, such as block_1."""
    name = weight.path.partition("/")[2]
    return name.removeprefix("encoder/").split("/")[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, quick_runs):
    """The folder of a run that nobody stopped, its model and its history."""
    out = tmp_path_factory.mktemp("whole") / "run"
    return out, *run(out)


def test_a_finished_folder_is_a_model(whole):
    out, model, history = whole
    names = {path.name for path in out.iterdir()}
    assert names >= {
        "config.json", "model.safetensors", "vocab.txt", "log.csv",
        "history.json", "README.md", "run.json",
    }  # fmt: skip
    again = bb.BertForSequenceClassification.from_pretrained(out)
    assert again.load_report.drawn == []
    assert again.config.id2label == {0: "bad", 1: "good"}
    assert same(weights(again), weights(model))
    assert json.loads((out / "history.json").read_text()) == history
    card = (out / "README.md").read_text()
    assert "dev_accuracy" in card
    assert '"epochs": 3' in card


def test_the_optimizer_is_saved_where_it_is_asked_for(whole, tmp_path):
    """With its two moments a file is three times as large."""
    _, model, _ = whole
    sizes = {}
    for is_asked in (None, False, True):
        path = tmp_path / f"{is_asked}.keras"
        model.save(path, include_optimizer=is_asked)
        with zipfile.ZipFile(path) as file:
            sizes[is_asked] = len(file.read("model.weights.h5"))
        assert keras.saving.load_model(path).compiled == bool(is_asked)
    assert sizes[None] == sizes[False]
    assert sizes[True] > 1.5 * sizes[None]  # HDF5 needs some itself
    assert model.compiled
    assert model.optimizer is not None
    other = bb.BertForSequenceClassification.from_config(model.get_config())
    other.save(tmp_path / "plain.keras", include_optimizer=False)
    other.compile("adamw", loss="sparse_categorical_crossentropy")
    other.optimizer.build(other.trainable_variables)
    other.save(tmp_path / "mine.keras")  # whoever compiles, keeps
    assert keras.saving.load_model(tmp_path / "mine.keras").compiled


def test_a_trained_model_can_be_saved_as_keras_does(whole, tmp_path):
    """And a file that names a module of before loads.

    Classes are found by their registered names, wherever they lie.
    """
    _, model, _ = whole
    new, old = tmp_path / "new.keras", tmp_path / "old.keras"
    model.save(new)
    with zipfile.ZipFile(new) as source, zipfile.ZipFile(old, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            moved = content.replace(b"bertbook.model.bert", b"bertbook.models")
            assert (moved != content) == (name == "config.json")
            target.writestr(name, moved)
    for path in (new, old):
        again = keras.saving.load_model(path)
        assert same(weights(again), weights(model))
        assert not again.compiled
    assert again.config.id2label == model.config.id2label
    again.tokenizer = TOY
    assert again.predict_texts(["y a"]) == model.predict_texts(["y a"])


def test_the_history(whole):
    out, model, history = whole
    assert list(history)[:4] == ["step", "epoch", "loss", "rows_per_second"]
    assert history["step"] == [3, 6, 9]  # 24 rows in batches of 10
    assert history["epoch"] == [1.0, 2.0, 3.0]
    assert set(history) >= {"dev_accuracy", "dev_f1", "dev_matthews"}
    assert [int(row["step"]) for row in read_log(out)] == [2, 3, 4, 6, 8, 9]
    found = evaluate(model, opinions())
    assert found["accuracy"] == max(history["dev_accuracy"])


def test_the_same_seed_gives_the_same_weights(whole):
    _, model, history = whole
    again, second = run(seed=0)
    assert same(weights(again), weights(model))
    assert second["dev_accuracy"] == history["dev_accuracy"]
    other, _ = run(seed=1)
    assert not same(weights(other), weights(model))


def test_the_same_call_again_changes_nothing(whole, capsys):
    out, model, history = whole
    before = modified(out)
    fresh, second = run(out, verbose=True)
    assert "nothing is changed" in capsys.readouterr().out
    assert second == history
    assert same(weights(fresh), weights(model))
    run(out, model=fresh)  # with the model that was loaded, too
    assert modified(out) == before


def test_a_folder_refuses_another_setting_and_other_data(whole):
    before = (whole[0] / "model.safetensors").read_bytes()
    for change, message in (
        ({"seed": 1}, "`seed` was 0, now 1"),
        ({"warmup": 0.5}, "`options.warmup` was 0.1, now 0.5"),
        ({"packed": True}, "packed"),
        ({"dropout": 0.2}, "`config.hidden_dropout_prob` was 0.1, now 0.2"),
    ):
        with pytest.raises(ValueError, match=message):
            run(whole[0], **change)
    data = opinions()
    data["text"][3] += " a"
    with pytest.raises(
        ValueError, match="holds a run with .*`train` is other training data"
    ):
        finetune(make(CLASSIFIER), data, out=whole[0], options=QUIET)
    assert (whole[0] / "model.safetensors").read_bytes() == before


# The best weights.


def script(monkeypatch, scores):
    """Lets dev find certain scores, and returns the weights at each."""
    seen = []

    def score(judge):
        seen.append(weights(judge.model))
        return {"dev_accuracy": scores[len(seen) - 1]}

    monkeypatch.setattr(task_runs.Judge, "score", score)
    return seen


@pytest.mark.parametrize("has_out", [False, True])
def test_the_best_weights_on_dev_are_left(has_out, monkeypatch, tmp_path):
    seen = script(monkeypatch, [0.5, 0.75, 0.25, 0.75, 0.5])
    model, history = run(
        tmp_path / "run" if has_out else None, evaluation_steps=2
    )
    assert history["step"] == [2, 4, 6, 8, 9]
    assert history["dev_accuracy"] == [0.5, 0.75, 0.25, 0.75, 0.5]
    assert same(weights(model), seen[1])  # of equals the first
    assert not same(weights(model), seen[3])


@pytest.mark.any_backend
def test_a_run_without_progress_stops(monkeypatch):
    seen = script(monkeypatch, [0.5, 0.75, 0.25, 0.75, 0.9])
    model, history = run(evaluation_steps=2, patience=2)
    assert history["step"] == [2, 4, 6, 8]
    assert same(weights(model), seen[1])


def test_the_best_epoch_of_a_regression_has_the_smallest_error():
    judge = task_runs.Judge(None, None, 8)
    judge.first = "dev"
    for name in ("mean_squared_error", "loss"):
        judge.metric = name
        rows = [{f"dev_{name}": value} for value in (0.5, 0.5, 0.25)]
        assert not judge.is_better(rows[1], rows[0])
        assert judge.is_better(rows[2], rows[0])
    judge.metric = "f1"
    rows = [{"dev_f1": value} for value in (0.5, 0.5, 0.25)]
    assert not judge.is_better(rows[1], rows[0])
    assert judge.is_better(rows[0], rows[2])


@pytest.mark.any_backend
def test_the_threshold_of_the_best_weights_is_left(monkeypatch):
    data = questions()
    data["answers"][0] = []
    model = make("BertForQuestionAnswering")
    assert model.no_answer_threshold is None
    thresholds = iter([-1.0, 2.0, 3.0])
    scores = iter([0.5, 0.75, 0.5])
    monkeypatch.setattr(
        task_runs.Questions,
        "best_threshold",
        lambda self, outputs: next(thresholds),
    )
    monkeypatch.setattr(
        task_runs.Questions, "score", lambda self, outputs: {"f1": next(scores)}
    )
    finetune(
        model, data, data, epochs=3, batch_size=24, max_length=24, options=QUIET
    )
    assert model.no_answer_threshold == 2.0


# What is trained, and how fast.


def test_frozen_layers_stay_and_are_free_again():
    """Without dev the last weights of the others are left."""
    model = make(CLASSIFIER, layers=2)
    model.encoder.blocks[0].output_norm.trainable = False
    flags = [(w.path, w.trainable) for w in model.weights]
    before = weights(model)
    options = FinetuningOptions(verbose=False, frozen_layers=1)
    history = finetune(
        model, opinions(), epochs=1, learning_rate=1e-2, batch_size=12,
        options=options,
    )  # fmt: skip
    assert set(history) == {"step", "epoch", "loss", "rows_per_second"}
    assert history["step"] == [2]
    moved = {
        part_of(w)
        for w, old, new in zip(
            model.weights, before, weights(model), strict=True
        )
        if not np.array_equal(old, new)
    }
    assert moved == {"block_1", "pooler", "classifier"}
    assert [(w.path, w.trainable) for w in model.weights] == flags


@pytest.mark.parametrize(
    ("count", "trained"),
    [
        (None, {"embeddings", "block_0", "block_1", "pooler", "classifier"}),
        (0, {"block_0", "block_1", "pooler", "classifier"}),
        (2, {"pooler", "classifier"}),
        (-1, {"classifier"}),
    ],
)
def test_freeze_leaves_these_parts_trainable(count, trained):
    model = make(CLASSIFIER, layers=2)
    frozen = task_runs.freeze(model, count)
    assert {part_of(v) for v in model.trainable_variables} == trained
    for layer, was_trained in frozen:
        layer.trainable = was_trained
    assert len(model.trainable_variables) == len(model.weights)


def test_the_options_reach_the_optimizer():
    model = make(CLASSIFIER)
    task = finetuning.task_of(model)(model, opinions(), Settings())
    record = {"learning_rate": 0.6}
    options = FinetuningOptions(warmup=0.3, weight_decay=0.3, clip_norm=0.7)
    task_runs.compile_model(model, task, record, options, total=10)
    rates = []
    for step in range(11):
        model.optimizer.iterations.assign(step)
        rates.append(float(model.optimizer.learning_rate))
    up, down = (0.2, 0.4, 0.6), (0.6 * left / 8 for left in range(7, 0, -1))
    np.testing.assert_allclose(rates, [*up, *down, 0.0], rtol=1e-6, atol=1e-9)
    assert model.optimizer.weight_decay == 0.3
    assert model.optimizer.global_clipnorm == 0.7


def test_lower_layers_have_lower_rates():
    model = make(CLASSIFIER, layers=2)
    assert task_runs.optimizer_of(model, 1.0) is AdamW
    kind = task_runs.optimizer_of(model, 0.5)
    (rates,) = kind.args
    found = {}
    for rate, variable in zip(rates, model.trainable_variables, strict=True):
        found.setdefault(part_of(variable), set()).add(rate)
    assert found == {
        "classifier": {1.0}, "pooler": {1.0}, "block_1": {1.0},
        "block_0": {0.5}, "embeddings": {0.25},
    }  # fmt: skip


def test_a_run_with_layer_decay_moves_lower_layers_less():
    """The first step of AdamW is the rate, whatever the gradient."""
    model = make(CLASSIFIER, layers=2)
    before = weights(model)
    options = FinetuningOptions(
        verbose=False, layer_decay=0.1, weight_decay=0.0
    )
    finetune(
        model, opinions(), epochs=1, learning_rate=1e-2, batch_size=24,
        options=options,
    )  # fmt: skip
    depth = {"embeddings": 2, "block_0": 1}
    for weight, old, new in zip(
        model.weights, before, weights(model), strict=True
    ):
        expected = 1e-2 * 0.1 ** depth.get(part_of(weight), 0)
        moved = np.abs(new - old).max()
        assert moved == pytest.approx(expected, rel=0.5), weight.path


# Resumption.


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_run_that_stopped_twice_ends_as_one_that_did_not(
    is_packed, whole, tmp_path
):
    expected, out = whole[0], tmp_path / "stopped"
    if is_packed:
        expected = tmp_path / "whole"
        run(expected, packed=True)
    for number in (1, 2):  # after the steps 2 and 6
        with killed_at_save(number):
            run(out, packed=is_packed)
        assert not (out / "model.safetensors").exists()
    model = make(CLASSIFIER, seed=2, dropout=0.1)
    _, history = run(out, model=model, packed=is_packed)
    check_same_run(out, expected)
    if not is_packed:
        before = {k: v for k, v in whole[2].items() if "second" not in k}
        assert {k: history[k] for k in before} == before


BY_TIME = {"checkpoint_steps": None, "checkpoint_minutes": 1e-9}


def test_minutes_make_a_checkpoint_whatever_the_steps(whole, tmp_path):
    out = tmp_path / "stopped"
    for number, step in ((3, 3), (1, 4)):  # with the first step of each call
        with killed_at_save(number):
            run(out, **BY_TIME)
        assert checkpoints_of(out)[-1] == step
    run(out, **BY_TIME)
    name = "model.safetensors"
    assert (out / name).read_bytes() == (whole[0] / name).read_bytes()
    run(tmp_path / "long", checkpoint_steps=None)
    assert checkpoints_of(tmp_path / "long") == checkpoints_of(out)[-1:]


def test_a_run_goes_on_with_checkpoints_at_another_pace(whole, tmp_path):
    with killed_at_save(1):
        run(tmp_path)
    path = tmp_path / "run.json"
    record = json.loads(path.read_text())
    assert not {"checkpoint_steps", "checkpoint_minutes"} & set(
        record["options"]
    )
    record["options"]["checkpoint_steps"] = 500  # as version 0.1.0 wrote
    path.write_text(json.dumps(record))
    run(tmp_path, **BY_TIME)
    name = "model.safetensors"
    assert (tmp_path / name).read_bytes() == (whole[0] / name).read_bytes()


def last_arrays(out):
    """The newest checkpoint: weights, moments, states of random numbers."""
    path = max((out / "checkpoints").glob("*.safetensors"))
    arrays = safetensors.numpy.load_file(path)
    return {checkpoint._key(name): arrays[name] for name in sorted(arrays)}


def check_same_run(out, whole):
    """Compares bytes, what the last step left, and the log but its speed."""
    name = "model.safetensors"
    assert (out / name).read_bytes() == (whole / name).read_bytes()
    first, second = last_arrays(out), last_arrays(whole)
    assert first.keys() == second.keys()
    assert same(first.values(), second.values())
    assert losses(out) == losses(whole)


PROGRAM = """
import itertools, os, signal, sys
from pathlib import Path
from bertbook.training import checkpoint
from tests.finetuning import test_finetune

save, counter = checkpoint.save_checkpoint, itertools.count(1)

def save_and_die(*arguments):
    save(*arguments)
    if next(counter) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.save_checkpoint = save_and_die
test_finetune.run(Path(sys.argv[1]))
"""


@pytest.mark.slow  # three processes; a stop within this one is tested above
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_run_that_was_killed_ends_as_one_that_was_not(tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "killed"
    for folder, number, status in (
        (whole, 0, 0),
        (out, 3, -signal.SIGKILL),
        (out, 0, 0),
    ):
        words = [sys.executable, "-c", PROGRAM, str(folder), str(number)]
        assert subprocess.run(words, cwd=ROOT).returncode == status
        if status:
            assert checkpoints_of(out) == [4, 6]
            assert not (out / "model.safetensors").exists()
    check_same_run(out, whole)


@pytest.mark.any_backend
def test_the_best_weights_of_a_stopped_run_are_not_lost(
    whole, tmp_path, monkeypatch
):
    """The best are those of step 3, before the checkpoint of step 4."""
    script(monkeypatch, [0.9, 0.5, 0.25])
    with killed_at_save(2):
        run(tmp_path)
    best = checkpoint.load_weights
    taken = []
    monkeypatch.setattr(
        checkpoint, "load_weights", lambda *a: (taken.append(a), best(*a))
    )
    script(monkeypatch, [0.5, 0.25])
    model, history = run(tmp_path)
    assert history["dev_accuracy"] == [0.9, 0.5, 0.25]
    assert len(taken) == 1
    stored = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    assert same(weights(stored), weights(model))


# Labels.


def test_names_come_from_the_data_where_the_model_has_none():
    model = make(CLASSIFIER)
    finetuning.take_labels(model, opinions())
    assert model.config.id2label == {0: "bad", 1: "good"}
    finetuning.take_labels(model, {"label": ["other"]})  # it has some now
    assert model.config.id2label == {0: "bad", 1: "good"}
    for options, data in (({}, pairs()), ({"num_labels": 1}, grades())):
        model = make(CLASSIFIER, **options)
        finetuning.take_labels(model, data)
        assert model.config.id2label is None
    tagger = make("BertForTokenClassification", num_labels=5)
    finetuning.take_labels(tagger, tags())
    assert list(tagger.config.id2label.values()) == [
        "B-LOC", "B-PER", "I-LOC", "I-PER", "O"
    ]  # fmt: skip


# Error.


def test_bad_arguments_are_refused_before_anything_is_done(tmp_path):
    model, out = make(CLASSIFIER), tmp_path / "run"
    before = weights(model)
    for options, message in (
        ({"epochs": 0}, "`epochs` must be an integer >= 1. Received: 0"),
        ({"epochs": 1.5}, "`epochs` must be an integer >= 1. Received: 1.5"),
        ({"batch_size": 0}, "`batch_size` must be an integer >= 1.*: 0"),
        ({"learning_rate": 0}, "`learning_rate` must be above 0.*: 0"),
        ({"learning_rate": -1e-5}, "`learning_rate` must be above 0.*-1e-05"),
        ({"learning_rate": math.nan}, "`learning_rate` must be above 0.*nan"),
        ({"learning_rate": "1"}, "`learning_rate` must be above 0.*'1'"),
        ({"seed": -1}, "`seed` must be an integer >= 0. Received: -1"),
        ({"max_length": 2}, "`max_length` must be an integer >= 3"),
        (
            {"options": FinetuningOptions(frozen_layers=2)},
            r"`frozen_layers` must be in \[-1, 1\]. Received: 2",
        ),
        ({"options": FinetuningOptions(patience=2)}, "`patience` needs `dev`"),
        ({"options": FinetuningOptions(metric="f1")}, "`metric` needs `dev`"),
        (
            {"dev": opinions(), "options": FinetuningOptions(metric="bleu")},
            r"`metric` must be one of accuracy, .*, loss. Received: 'bleu'",
        ),
        ({"dev": {"text": ["a"], "label": [7]}}, r"`label\[0\]` must be an in"),
        ({"dev": {"text": [], "label": []}}, "one length, 1 at least"),
    ):
        with pytest.raises(ValueError, match=message):
            finetune(model, opinions(), out=out, **options)
        assert same(weights(model), before)
        assert not out.exists()
        assert all(w.trainable for w in model.weights)


def test_options_out_of_range_are_refused():
    for options, message in (
        ({"warmup": 1.5}, r"`warmup` must be in \[0, 1\]. Received: 1.5"),
        ({"layer_decay": 0.0}, r"`layer_decay` must be in \(0, 1\].*: 0.0"),
        ({"patience": 0}, "`patience` must be an integer >= 1. Received: 0"),
        ({"evaluation_steps": 0}, "`evaluation_steps` must be an integer"),
        ({"checkpoint_steps": 0}, "`checkpoint_steps` must be .*: 0"),
        ({"checkpoint_minutes": 0}, "`checkpoint_minutes` must be .*: 0"),
        (
            {"checkpoint_minutes": math.nan},
            "`checkpoint_minutes` must be .*: nan",
        ),
        (
            {"weight_decay": -0.1},
            "`weight_decay` must be a finite .* >= 0.*-0.1",
        ),
        (
            {"clip_norm": -1.0},
            "`clip_norm` must be a finite .* above 0.*: -1.0",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            FinetuningOptions(**options)


@pytest.mark.any_backend
def test_data_that_do_not_fit_the_model():
    for data, options, message in (
        (
            {"text": ["a", "b"], "label": [0, 2]},
            {"num_labels": 2},
            r"`label\[1\]` .*\[0, 2\)",
        ),
        ({"text": ["a"], "label": [1.0]}, {}, r"`label\[0\]` must be an int"),
        (
            {"text": ["a"] * 3, "label": ["x", "y", "z"]},
            {"num_labels": 2},
            "`num_labels` must be that of the data, 3: x, y, z. Received: a "
            "model with 2; load it with `num_labels=3`",
        ),
        (
            {"text": ["a", "b"], "label": ["x", "z"]},
            {"id2label": {0: "x", 1: "y"}},
            r"`label\[1\]` must be one of x, y: .* Received: 'z'",
        ),
        (
            {"text": ["a", "b"], "label": [0.5, math.nan]},
            {"num_labels": 1},
            r"`label\[1\]` must not be missing. Received: nan",
        ),
        (
            {"text": ["a", "b " * 30], "label": [0, 1]},
            {},
            "24. Received: 32 tokens in row 1",
        ),
        ({"text": ["a", 3], "label": [0, 1]}, {}, r"`text\[1\]` must be a"),
        ([("a", 1)], {}, "` must be a dict of columns.*: list of tuple"),
    ):
        model = make(CLASSIFIER, **options)
        with pytest.raises(ValueError, match=message):
            finetune(model, data, options=QUIET)
        if "num_labels=3" not in message:
            with pytest.raises(ValueError, match=message):
                evaluate(model, data)


def test_tags_that_do_not_fit_the_model():
    model = make("BertForTokenClassification", num_labels=3)
    with pytest.raises(ValueError, match="that of the data, 5: B-LOC, B-PER"):
        finetune(model, tags())
    with pytest.raises(ValueError, match=r"Row 0: `tags\[1\]` must be O"):
        finetune(model, {"tokens": [["a", "b"]], "tags": [["O", "PER"]]})
    with pytest.raises(KeyError, match="must hold the column tags"):
        finetune(model, {"tokens": [["a", "b"]]})


def test_a_missing_column_is_named():
    model = make(CLASSIFIER)
    for call in (finetune, evaluate):
        with pytest.raises(KeyError, match="must hold the columns text"):
            call(model, {"label": [0]})
        with pytest.raises(KeyError, match="must hold the column label"):
            call(model, {"text": ["a"]})
    with pytest.raises(KeyError, match="must hold the column label"):
        finetune(model, opinions(), {"text": ["a"]})  # dev


def test_models_that_have_no_task_or_no_tokenizer():
    encoder = bb.BertEncoder(toy_config())
    with pytest.raises(ValueError, match="`model` must be one of BertForSeq"):
        finetune(encoder, opinions())
    with pytest.raises(ValueError, match="`model` must .* Received: BertModel"):
        evaluate(encoder, opinions())
    with pytest.raises(ValueError, match="`model` must .* Received: str"):
        evaluate("mini", opinions())
    model = make(CLASSIFIER)
    model.tokenizer = None
    for call in (finetune, evaluate):
        with pytest.raises(ValueError, match="`model` needs a tokenizer"):
            call(model, opinions())


def test_a_loss_that_is_not_finite_stops_the_run_and_frees_the_layers():
    model = make(CLASSIFIER)
    model.classifier.bias.assign([math.nan, 0.0])
    options = FinetuningOptions(verbose=False, frozen_layers=0)
    with pytest.raises(ValueError, match="The loss is nan at step 1"):
        finetune(model, opinions(), epochs=1, batch_size=24, options=options)
    assert all(w.trainable for w in model.weights)


# A model is as it was where a run fails.


def test_an_interrupted_run_begins_again_with_the_same_weights(
    whole, tmp_path, monkeypatch
):
    """As the same cell of a notebook does, before the first checkpoint.

    No second run trains into the folder meanwhile.
    """
    model = make(CLASSIFIER, dropout=0.1)
    before = weights(model)
    with monkeypatch.context() as patch:
        score = task_runs.Judge.score

        def interrupt(judge):
            with pytest.raises(ValueError, match="another call in this proc"):
                run(tmp_path)
            score(judge)
            raise KeyboardInterrupt

        patch.setattr(task_runs.Judge, "score", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, model=model, checkpoint_steps=100)
    assert same(weights(model), before)
    assert model.config.id2label is None
    assert not (tmp_path / "run.lock").exists()
    run(tmp_path, model=model)  # other options: nothing was kept of the first
    check_same_run(tmp_path, whole[0])


class LeavesAfter:
    """Spoils the weights after some steps, as a last update may."""

    def __init__(self, step, number):
        self.step, self.number = step, number

    def __call__(self, monitor, batch, logs=None):
        if monitor.done + 1 == self.step:
            for weight in monitor.model.trainable_variables:
                weight.assign(np.full(weight.shape, self.number, "float32"))
        return REAL_END(monitor, batch, logs)


REAL_END = training_monitor.Monitor.on_train_batch_end


@pytest.mark.parametrize(  # every two of the values meet
    ("has_dev", "has_out", "number"),
    [
        (True, True, math.nan),
        pytest.param(False, False, math.nan, marks=pytest.mark.any_backend),
        pytest.param(False, True, 1e30, marks=pytest.mark.any_backend),
        pytest.param(True, False, 1e30, marks=pytest.mark.any_backend),
    ],
)
def test_a_last_update_that_diverges_is_told_and_not_kept(
    has_dev, has_out, number, tmp_path, monkeypatch
):
    """The loss before it is finite; what it leaves gives no answer."""
    model = make(CLASSIFIER)
    before = weights(model)
    spoil = LeavesAfter(6, number)
    monkeypatch.setattr(
        training_monitor.Monitor,
        "on_train_batch_end",
        lambda monitor, batch, logs=None: spoil(monitor, batch, logs),
    )
    options = FinetuningOptions(
        verbose=False, evaluation_steps=3, checkpoint_steps=2
    )
    out = tmp_path if has_out else None
    dev = opinions() if has_dev else None
    with pytest.raises(ValueError, match="are not finite after step 6"):
        finetune(
            model, opinions(), dev, epochs=2, batch_size=8, out=out,
            options=options,
        )  # fmt: skip
    assert same(weights(model), before)
    if has_out:
        assert checkpoints_of(out) == [2, 4]
        assert not (out / "model.safetensors").exists()


@pytest.mark.any_backend
def test_best_weights_that_are_gone_are_told_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(
        task_runs.Run, "_keep_best", lambda run: 1 / 0
    )  # the end is not reached
    with pytest.raises(ZeroDivisionError):
        run(tmp_path)
    (tmp_path / "best.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="best.safetensors.* missing"):
        run(tmp_path)


@pytest.mark.any_backend
def test_best_weights_that_have_changed_are_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(task_runs.Run, "_keep_best", lambda run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path)
    path = tmp_path / "best.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    message = rf"^{path} must hold the weights .*another content\. Put it back"
    with pytest.raises(ValueError, match=message):
        run(tmp_path)
    path.write_bytes(whole[:100])
    with pytest.raises(ValueError, match=r"damaged: .*\. Put it back from"):
        run(tmp_path)
    path.write_bytes(whole)
    _, history = run(tmp_path)
    assert history == run(tmp_path)[1]


@pytest.mark.any_backend
def test_a_run_without_a_hash_of_its_best_weights_goes_on(
    tmp_path, monkeypatch
):
    """As older versions have left it."""
    with monkeypatch.context() as patch:
        patch.setattr(task_runs.Run, "_keep_best", lambda run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path)
    (tmp_path / "checkpoints" / "hashes.json").unlink()
    run(tmp_path)
    assert (tmp_path / "model.safetensors").is_file()


def test_a_run_draws_its_log(whole):
    pytest.importorskip("matplotlib", reason="draws a picture")
    assert (whole[0] / "log.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.any_backend
def test_a_refused_call_leaves_no_label_names_in_the_model():
    model, data = make(CLASSIFIER), opinions()
    wrong = data | {"label": [f"{name} " for name in data["label"]]}
    with pytest.raises(ValueError, match="must be one of bad , good "):
        finetune(model, wrong, data, epochs=1, options=QUIET)
    finetune(model, data, data, epochs=1, options=QUIET)


@pytest.mark.any_backend
def test_numbers_of_numpy_are_kept_as_plain_numbers(tmp_path):
    finetune(
        make(CLASSIFIER),
        opinions(),
        epochs=np.int64(1),
        batch_size=np.int32(12),
        learning_rate=np.float32(1e-3),
        max_length=np.int64(20),
        seed=np.int64(1),
        out=tmp_path,
        options=FinetuningOptions(
            verbose=False,
            frozen_layers=np.int64(0),
            warmup=np.float32(0.1),
            checkpoint_steps=np.int64(2),
        ),
    )
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["seed"] == 1
    assert (record["epochs"], record["batch_size"]) == (1, 12)
    assert record["learning_rate"] == np.float32(1e-3)
    assert record["options"]["frozen_layers"] == 0


# Where a run starts is a part of it.


@pytest.mark.any_backend
def test_a_folder_refuses_a_model_with_other_start_weights(tmp_path):
    out = tmp_path / "run"
    for seed in (1, 2):
        make(CLASSIFIER, seed=seed).save_pretrained(tmp_path / str(seed))

    def load(seed, **options):
        kind = bb.BertForSequenceClassification
        return kind.from_pretrained(tmp_path / str(seed), **options)

    model = load(1)
    history = finetune(model, opinions(), epochs=1, out=out, options=QUIET)
    trained = weights(model)
    for again in (model, load(1)):
        found = finetune(again, opinions(), epochs=1, out=out, options=QUIET)
        assert found == history
        assert same(weights(again), trained)
    other = load(2)
    with pytest.raises(ValueError, match="run with other settings: `start` "):
        finetune(other, opinions(), epochs=1, out=out, options=QUIET)
    assert not same(weights(other), trained)


def test_a_newly_drawn_head_does_not_change_the_hash_of_the_start(tmp_path):
    encoder = make(CLASSIFIER).encoder
    encoder.tokenizer = TOY
    encoder.save_pretrained(tmp_path / "encoder")
    hashes = []
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        model = bb.BertForSequenceClassification.from_pretrained(
            tmp_path / "encoder"
        )
        assert "classifier/kernel" in model.load_report.drawn
        hashes.append(task_runs.hash_of_start(model, tmp_path / "run.json"))
    assert hashes[0] == hashes[1] is not None
    assert task_runs.hash_of_start(make(CLASSIFIER), tmp_path / "x") is None
