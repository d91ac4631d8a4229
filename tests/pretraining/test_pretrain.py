"""Whole runs on the shelf: exact resumption, parts, devices, bad input."""

import csv
import importlib.util
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import bertbook as bb
from bertbook.cli.main import main
from bertbook.locations import shelf
from bertbook.pretraining import pretrain as pretraining
from bertbook.pretraining.corpus import Corpus, corpus_content
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    Reporting,
    choose_config,
    pretrain,
)
from bertbook.runtime import keras
from bertbook.training import checkpoint
from tests.helpers.models import to_numpy

HAS_JAX = importlib.util.find_spec("jax") is not None
ROOT = Path(__file__).parents[2]
QUIET = Reporting(
    log_steps=2, evaluation_steps=4, checkpoint_steps=3, verbose=False
)
EXAMPLES = ExampleSettings(max_length=24)


@pytest.fixture(scope="module")
def tokenizer():
    lines = [path.read_text(encoding="utf-8") for path in shelf()]
    return bb.Tokenizer.train(lines, vocab_size=300)


def small_config(**overrides):
    """A model that is trained in a second."""
    sizes = {
        "vocab_size": 300,
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
        "max_position_embeddings": 32,
    }
    return bb.BertConfig(**sizes | overrides)


def run(out, tokenizer, steps=7, config=None, **options):
    recipe = PretrainingRecipe(
        steps=steps, batch_size=options.pop("batch_size", 8)
    )
    options = {"held_out": 0.2, "reporting": QUIET, **options}
    examples = options.pop("examples", EXAMPLES)
    return pretrain(
        options.pop("corpus", shelf()),
        out,
        options.pop("recipe", recipe),
        model=config or small_config(),
        tokenizer=tokenizer,
        examples=examples,
        **options,
    )


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def losses(folder):
    with open(folder / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        int(row["step"]): [v for k, v in row.items() if "second" not in k]
        for row in rows
    }


@pytest.fixture(autouse=True)
def plain_graphs(monkeypatch):
    """Spares the seconds that XLA needs for each of many small runs."""
    if keras.backend.backend() == "tensorflow":
        monkeypatch.setattr(pretraining, "COMPILE", False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tokenizer):
    """A run of seven steps that nothing disturbed: its folder and model."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        if keras.backend.backend() == "tensorflow":
            patch.setattr(pretraining, "COMPILE", False)
        return out, run(out, tokenizer)


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of that folder."""
    return Path(shutil.copytree(whole[0], tmp_path / "finished"))


# What a recipe means.


def test_the_recipe_reaches_the_optimizer():
    model = bb.BertForPreTraining(small_config())
    recipe = PretrainingRecipe(
        steps=10,
        learning_rate=0.6,
        warmup=0.3,
        end=0.5,
        weight_decay=0.3,
        beta_2=0.98,
        clip_norm=0.7,
    )
    pretraining.compile_for_pretraining(model, recipe)
    optimizer, rates = model.optimizer, []
    for step in range(11):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    down = [0.3 + 0.3 * left / 8 for left in range(7, -1, -1)]
    np.testing.assert_allclose(rates, [0.2, 0.4, 0.6, *down], rtol=1e-6)
    assert optimizer.weight_decay == 0.3
    assert optimizer.beta_2 == 0.98
    assert optimizer.global_clipnorm == 0.7
    assert set(model.loss) == {"mlm_logits", "nsp_logits"}
    assert {loss.reduction for loss in model.loss.values()} == {"sum"}


# A run and what it leaves.


def test_a_finished_folder_is_a_model(whole):
    out, trained = whole
    names = {path.name for path in out.iterdir()}
    assert {
        "config.json", "model.safetensors", "vocab.txt", "log.csv",
        "README.md", "run.json",
    } <= names  # fmt: skip
    model = bb.BertForPreTraining.from_pretrained(out)
    assert not model.load_report.drawn
    batch = model.tokenizer(["a fire", "the bank was shut"])
    for first, second in zip(
        to_numpy(model(batch)).values(),
        to_numpy(trained(batch)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(first, second)
    rows = losses(out)
    assert list(rows) == [2, 3, 4, 6, 7]
    assert all(float(row[1]) > 0 for row in rows.values())
    card = (out / "README.md").read_text()
    assert "held out" in card


def test_the_same_call_again_changes_nothing(finished, tokenizer, capsys):
    before = {p: p.stat().st_mtime_ns for p in finished.rglob("*.*")}
    loud = Reporting(checkpoint_steps=3, log_steps=2, evaluation_steps=4)
    run(finished, tokenizer, reporting=loud)
    assert "nothing is changed" in capsys.readouterr().out
    assert {p: p.stat().st_mtime_ns for p in finished.rglob("*.*")} == before


def test_a_run_learns(tmp_path, tokenizer):
    out = tmp_path / "run"
    run(
        out,
        tokenizer,
        recipe=PretrainingRecipe(steps=60, batch_size=32, learning_rate=1e-2),
        config=small_config(hidden_dropout_prob=0.0),
    )
    rows = losses(out)
    first, last = float(rows[2][2]), float(rows[60][2])
    assert last < first - 0.3


# Resumption.


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("last", [1, 2])
def test_a_run_that_stopped_ends_as_one_that_did_not(
    last, whole, tmp_path, tokenizer, monkeypatch
):
    save = checkpoint.save_checkpoint
    count = 0

    def save_and_stop(*arguments):
        nonlocal count
        count += 1
        save(*arguments)
        if count == last:
            raise KilledError

    monkeypatch.setattr(checkpoint, "save_checkpoint", save_and_stop)
    with pytest.raises(KilledError):
        run(tmp_path / "stopped", tokenizer)
    assert not (tmp_path / "stopped" / "model.safetensors").exists()
    run(tmp_path / "stopped", tokenizer)
    assert weights(tmp_path / "stopped") == weights(whole[0])
    assert losses(tmp_path / "stopped") == losses(whole[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4}, "`recipe.batch_size` was 8, now 4"),
        ({"steps": 8}, "`recipe.steps` was 7, now 8"),
        ({"config": small_config(hidden_size=15)}, "`config.hidden_size` was"),
        (
            {"examples": ExampleSettings(max_length=20)},
            "`examples.max_length` was",
        ),
    ],
)
def test_another_setting_is_refused_and_nothing_lost(
    change, message, finished, tokenizer
):
    before = weights(finished)
    with pytest.raises(ValueError, match=message):
        run(finished, tokenizer, **change)
    assert weights(finished) == before


def test_another_vocabulary_is_refused(finished, tokenizer):
    pieces = [*tokenizer.vocabulary[:-1], "neverseen"]
    with pytest.raises(ValueError, match="`vocabulary` was"):
        run(finished, bb.Tokenizer(pieces))


def command(out, *more):
    return [
        sys.executable, "-m", "bertbook", "pretrain",
        "--corpus", *map(str, shelf()), "--out", str(out),
        "--size", "tiny", "--steps", "150", "--batch-size", "16",
        "--max-length", "32", "--seed", "3", "--checkpoint-steps", "2",
        "--log-steps", "2", "--evaluation-steps", "50", *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_run_killed_five_times_ends_with_the_same_weights(tmp_path):
    subprocess.run(command(tmp_path / "whole"), check=True, cwd=ROOT)
    out = tmp_path / "killed"
    rng = random.Random(0)
    kills = 0
    while kills < 5:
        process = subprocess.Popen(command(out), cwd=ROOT)
        checkpoints = out / "checkpoints"
        seen = set(checkpoints.glob("*.safetensors"))
        while process.poll() is None:
            if set(checkpoints.glob("*.safetensors")) - seen:
                break  # it makes progress between two kills
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 1))
        if process.poll() is not None:
            pytest.fail("the run ended before it was killed five times")
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    subprocess.run(command(out), check=True, cwd=ROOT)
    assert weights(out) == weights(tmp_path / "whole")
    assert losses(out) == losses(tmp_path / "whole")


# Parts and devices.


def trained_weights(folder):
    model = bb.BertForPreTraining.from_pretrained(folder)
    return to_numpy([weight.value for weight in model.weights])


def test_parts_of_a_step_equal_the_step(tmp_path, tokenizer):
    config = small_config(
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    for name, parts in (("whole", 1), ("parts", 4)):
        recipe = PretrainingRecipe(
            steps=5, batch_size=64, accumulation=parts, learning_rate=1e-4
        )
        run(tmp_path / name, tokenizer, recipe=recipe, config=config)
    whole = trained_weights(tmp_path / "whole")
    parts = trained_weights(tmp_path / "parts")
    difference = max(
        np.abs(a - b).max() for a, b in zip(whole, parts, strict=True)
    )
    print(f"largest difference of a weight: {difference:.1e}")
    assert difference <= 1e-5
    first, second = losses(tmp_path / "whole"), losses(tmp_path / "parts")
    for step, row in first.items():
        np.testing.assert_allclose(
            np.array(row[1:6], float), np.array(second[step][1:6], float),
            rtol=1e-4,
        )  # fmt: skip


@pytest.mark.slow  # test_processes.py has four devices, too
@pytest.mark.skipif(not HAS_JAX, reason="needs JAX")
def test_devices_share_a_batch_without_changing_the_curve(tmp_path):
    curves = {}
    for devices in (1, 2, 4):
        out = tmp_path / str(devices)
        flags = os.environ.get("XLA_FLAGS", "")
        flags += f" --xla_force_host_platform_device_count={devices}"
        environment = os.environ | {"KERAS_BACKEND": "jax", "XLA_FLAGS": flags}
        words = command(out, "--data-parallel")
        words[words.index("--batch-size") + 1] = "15"  # does not split evenly
        words[words.index("--steps") + 1] = "8"
        subprocess.run(words, check=True, cwd=ROOT, env=environment)
        curves[devices] = losses(out)
    for devices in (2, 4):
        for step, row in curves[1].items():
            expected = np.array([float(v or 0) for v in row])
            received = [float(v or 0) for v in curves[devices][step]]
            np.testing.assert_allclose(received, expected, atol=1e-4)


@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="JAX has data parallelism"
)
def test_data_parallel_needs_jax(tmp_path, tokenizer):
    with pytest.raises(ValueError, match="needs the JAX backend"):
        run(tmp_path, tokenizer, data_parallel=True)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_a_run_in_sixteen_bits_keeps_float32_weights(
    dtype, tmp_path, tokenizer
):
    recipe = PretrainingRecipe(steps=3, batch_size=8, dtype=dtype)
    model = run(tmp_path, tokenizer, recipe=recipe)
    assert {weight.dtype for weight in model.weights} == {"float32"}
    again = bb.BertForPreTraining.from_pretrained(tmp_path)
    assert again.dtype_policy.name == "float32"


def test_a_run_starts_from_the_weights_of_a_folder(whole, tmp_path, tokenizer):
    recipe = PretrainingRecipe(steps=1, batch_size=8, learning_rate=1e-9)
    run(
        tmp_path / "second",
        tokenizer,
        recipe=recipe,
        config=str(whole[0]),
    )
    for first, second in zip(
        trained_weights(whole[0]),
        trained_weights(tmp_path / "second"),
        strict=True,
    ):
        np.testing.assert_allclose(first, second, atol=1e-6)


def test_without_next_sentence_its_head_is_not_trained(tmp_path, tokenizer):
    examples = ExampleSettings(max_length=16, next_sentence=False)
    run(tmp_path / "a", tokenizer, steps=1, examples=examples)
    rows = losses(tmp_path / "a")
    assert float(rows[1][4]) == 0.0  # its loss
    model = bb.BertForPreTraining.from_pretrained(tmp_path / "a")
    assert not np.any(to_numpy(model.next_sentence.bias.value))


# The command.


def test_the_command_trains_a_vocabulary_and_a_model(tmp_path, capsys):
    words = command(tmp_path / "out", "--vocab-size", "300")[3:]
    words[words.index("--steps") + 1] = "2"
    assert main(words) == 0
    assert "written" in capsys.readouterr().out
    tokenizer = bb.Tokenizer.from_pretrained(tmp_path / "out")
    assert len(tokenizer) == 300
    assert main(words) == 0
    assert "nothing is changed" in capsys.readouterr().out


def test_tensorboard_gets_an_event_file(tmp_path, tokenizer):
    pytest.importorskip("tensorflow", reason="needs TensorFlow")
    reporting = Reporting(log_steps=1, tensorboard=True, verbose=False)
    run(tmp_path, tokenizer, steps=2, reporting=reporting)
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert events.stat().st_size > 200


# Bad input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "`steps` must be"),
        ({"steps": 1.5}, "`steps` must be"),
        ({"batch_size": -1}, "`batch_size` must be"),
        ({"accumulation": 3, "batch_size": 8}, "multiple of `accumulation`"),
        ({"warmup": 1.5}, "`warmup` must be"),
        ({"end": -0.1}, "`end` must be"),
        ({"end": math.nan}, "`end` must be"),
        ({"steps": True}, "`steps` must be"),
        ({"steps": 10**12}, "`steps` must be an integer <= "),
        ({"batch_size": math.nan}, "`batch_size` must be"),
        ({"learning_rate": math.nan}, "`learning_rate` must be above 0"),
        ({"learning_rate": math.inf}, "`learning_rate` must be above 0"),
        ({"learning_rate": 10**400}, "`learning_rate` must be above 0"),
        ({"learning_rate": 0}, "`learning_rate` must be above 0"),
        ({"learning_rate": "1e-3"}, "`learning_rate` must be above 0"),
        ({"warmup": math.nan}, "`warmup` must be"),
        ({"warmup": None}, "`warmup` must be"),
        ({"weight_decay": math.nan}, "`weight_decay` must be"),
        ({"weight_decay": math.inf}, "`weight_decay` must be"),
        ({"weight_decay": -0.1}, "`weight_decay` must be"),
        ({"beta_2": 1.0}, "`beta_2` must be"),
        ({"beta_2": math.nan}, "`beta_2` must be"),
        ({"clip_norm": 0}, "`clip_norm` must be"),
        ({"clip_norm": None}, "`clip_norm` must be"),
        ({"clip_norm": math.nan}, "`clip_norm` must be"),
        ({"dtype": "float13"}, "`dtype` must be one of"),
        ({"seed": -1}, "`seed` must be"),
        ({"seed": 2**32}, "`seed` must be"),
        ({"seed": 0.0}, "`seed` must be"),
    ],
)
def test_a_bad_recipe_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PretrainingRecipe(**options)


def test_numpy_numbers_of_a_recipe_become_plain_numbers():
    recipe = PretrainingRecipe(
        steps=np.int64(7), learning_rate=np.float32(0.5), seed=np.int32(3)
    )
    plain = PretrainingRecipe(steps=7, learning_rate=0.5, seed=3)
    assert json.dumps(vars(recipe)) == json.dumps(vars(plain))


@pytest.mark.parametrize(
    "options",
    [
        {"log_steps": 0},
        {"evaluation_steps": 1.5},
        {"checkpoint_steps": math.nan},
        {"tensorboard": "no"},
        {"verbose": None},
    ],
)
def test_bad_reporting_is_refused(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must be"):
        Reporting(**options)


BAD_CALLS = [
    ({"held_out": math.nan}, "`held_out` must be in"),
    ({"held_out": 1.0}, "`held_out` must be in"),
    ({"held_out": -0.1}, "`held_out` must be in"),
    ({"held_out": "0.1"}, "`held_out` must be in"),
    ({"workers": -1}, "`workers` must be"),
    ({"workers": 1.5}, "`workers` must be"),
    ({"workers": math.nan}, "`workers` must be"),
    ({"data_parallel": "yes"}, "`data_parallel` must be"),
    ({"recipe": {"steps": 3}}, "`recipe` must be a `PretrainingRecipe`"),
    ({"examples": {"max_length": 3}}, "`examples` must be a"),
    ({"reporting": "loud"}, "`reporting` must be a `Reporting`"),
    ({"evaluate": 3}, "`evaluate` must be a function"),
    ({"corpus": []}, "at least one file"),
    ({"corpus": "text.txt"}, "must be a list of files"),
    ({"corpus": 3}, "must be a list of files"),
    ({"corpus": [3]}, "must hold names"),
    ({"corpus": ["/nonexistent.txt"]}, "No text file at /nonexistent.txt"),
    ({"config": small_config(vocab_size=299)}, "`vocab_size` must hold"),
    ({"config": ["tiny"]}, "`name_or_dir` must be"),
    ({"config": 5}, "`name_or_dir` must be"),
    ({"config": "/nonexistent"}, "`name_or_dir` must be"),
    (
        {"examples": ExampleSettings(max_length=33)},
        "`max_length` must be at most",
    ),
]


def test_a_refused_call_leaves_nothing_and_the_next_one_works(
    tmp_path, tokenizer
):
    out = tmp_path / "run"
    for options, message in BAD_CALLS:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            run(out, tokenizer, **options)
        assert not out.exists(), options
    run(out, tokenizer, steps=1)
    assert (out / "model.safetensors").is_file()


def test_a_call_that_fails_later_blocks_nothing_either(tmp_path, tokenizer):
    out, text = tmp_path / "run", tmp_path / "text.txt"
    text.write_bytes(b"Some words. And more.\n\nNot \xff fine.")
    with pytest.raises(ValueError, match="0xff at 27, in line 3"):
        run(out, tokenizer, corpus=[text])
    diverging = PretrainingRecipe(steps=3, batch_size=8, learning_rate=1e30)
    with pytest.raises(ValueError, match=r"not finite|loss is (nan|inf)"):
        run(out, tokenizer, recipe=diverging)
    assert not (out / "model.safetensors").exists()
    assert not list(out.glob("checkpoints/*.safetensors"))
    run(out, tokenizer, steps=1, held_out=0.1)  # other shards, too
    assert (out / "model.safetensors").is_file()
    record = json.loads((out / "corpus" / "corpus.json").read_text())
    assert record["held_out"] == 0.1


# The same corpus, the same start.


def test_another_corpus_is_refused(finished, tokenizer, tmp_path):
    copies = [tmp_path / path.name for path in shelf()]
    for path, copy in zip(shelf(), copies, strict=True):
        shutil.copy(path, copy)
    run(finished, tokenizer, corpus=copies)  # the same text elsewhere
    with pytest.raises(ValueError, match="`corpus.held_out` was 0.2, now 0.5"):
        run(finished, tokenizer, corpus=copies, held_out=0.5)
    with pytest.raises(ValueError, match="`corpus.files` was"):
        run(finished, tokenizer, corpus=copies[1:])
    with pytest.raises(FileNotFoundError, match="No text file at"):
        run(finished, tokenizer, corpus=[*copies, tmp_path / "none.txt"])
    text = copies[0].read_text(encoding="utf-8")
    copies[0].write_text(text.replace("e", "o", 1), encoding="utf-8")
    before = weights(finished)
    with pytest.raises(ValueError, match="`corpus.files` was"):
        run(finished, tokenizer, corpus=copies)
    (finished / "model.safetensors").unlink()  # it is not finished now
    with pytest.raises(ValueError, match="`corpus.files` was"):
        run(finished, tokenizer, corpus=copies)
    run(finished, tokenizer)
    assert weights(finished) == before


def test_other_shards_are_refused(finished, tokenizer):
    corpus = Corpus(
        finished / "corpus",
        json.loads((finished / "corpus" / "corpus.json").read_text()),
    )
    content = corpus_content(corpus, 0.1)
    assert content == corpus_content(corpus, 0.5)  # it has its own share
    shard = corpus.shards()[0]
    shard.write_bytes(shard.read_bytes()[::-1])
    assert content != corpus_content(corpus, 0.1)
    shard.unlink()
    with pytest.raises(FileNotFoundError, match="No shard at"):
        corpus_content(corpus, 0.1)


def test_other_start_weights_under_the_same_name_are_refused(
    whole, tmp_path, tokenizer
):
    start = tmp_path / "start"
    shutil.copytree(whole[0], start)
    out = tmp_path / "run"
    run(out, tokenizer, steps=1, config=str(start))
    model = bb.BertForPreTraining.from_pretrained(start)
    model.set_weights([weight * 1.5 for weight in model.get_weights()])
    model.save_pretrained(start)
    with pytest.raises(ValueError, match="`start_weights` was"):
        run(out, tokenizer, steps=1, config=str(start))


def test_a_record_of_an_older_version_is_taken_as_it_is(finished, tokenizer):
    expected = weights(finished)
    path = finished / "run.json"
    record = json.loads(path.read_text())
    for name in ("corpus", "start_weights", "vocab_size"):
        del record[name]
    path.write_text(json.dumps(record))
    shards = finished / "corpus" / "corpus.json"
    kept = json.loads(shards.read_text())
    del kept["sha256"]
    shards.write_text(json.dumps(kept))
    run(finished, tokenizer)
    assert json.loads(path.read_text()) == record
    (finished / "model.safetensors").unlink()
    (finished / "checkpoints" / "checkpoint-00000007.safetensors").unlink()
    run(finished, tokenizer)  # goes on after step 6
    assert weights(finished) == expected
    with pytest.raises(ValueError, match="`recipe.steps` was 7, now 8"):
        run(finished, tokenizer, steps=8)


def test_checkpoints_without_their_record_are_refused(finished, tokenizer):
    (finished / "model.safetensors").unlink()
    (finished / "run.json").unlink()
    with pytest.raises(ValueError, match="holds checkpoints, but no run.json"):
        run(finished, tokenizer)


# What is of no use is not kept.


@pytest.mark.parametrize("number", [math.nan, 1e30])
def test_a_last_update_that_diverges_leaves_the_checkpoint_before(
    number, tmp_path, tokenizer
):
    real = PretrainingRecipe(steps=7, batch_size=8)

    def spoil(model):
        if model.optimizer.iterations.numpy() == 7:
            for weight in model.trainable_variables:
                weight.assign(np.full(weight.shape, number, "float32"))
        return {}

    reporting = Reporting(
        log_steps=7, evaluation_steps=7, checkpoint_steps=3, verbose=False
    )
    out = tmp_path / "run"
    with pytest.raises(ValueError, match="are not finite after step 7"):
        run(out, tokenizer, recipe=real, evaluate=spoil, reporting=reporting)
    kept = sorted(path.name for path in (out / "checkpoints").iterdir())
    assert kept == [f"checkpoint-0000000{n}.safetensors" for n in (3, 6)]
    assert not (out / "model.safetensors").exists()
    run(out, tokenizer, recipe=real)  # the same call goes on
    assert (out / "model.safetensors").is_file()


def test_a_run_draws_its_log(whole):
    pytest.importorskip("matplotlib", reason="draws a picture")
    assert (whole[0] / "log.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_run_into_a_folder_is_refused(tmp_path, tokenizer):
    found = []

    def call_again(model):
        with pytest.raises(ValueError, match="another call in this process"):
            run(tmp_path / "run", tokenizer, steps=4)
        found.append(model)
        return {}

    run(tmp_path / "run", tokenizer, steps=4, evaluate=call_again)
    assert len(found) == 1
    assert not (tmp_path / "run" / "run.lock").exists()


def test_a_vocabulary_of_a_refused_call_is_not_kept(tmp_path, tokenizer):
    out, other = tmp_path / "run", tmp_path / "other.txt"
    other.write_text("zebras zoom.\n\nzebras doze.\n" * 40)
    with pytest.raises(ValueError, match="`vocab_size` must hold"):
        run(
            out,
            34,
            corpus=[other],
            config=small_config(vocab_size=33),
        )
    assert not out.exists()
    config = small_config(vocab_size=300)
    model = run(out, 300, steps=1, config=config)
    assert len(model.tokenizer) == 300
    assert "zebras" not in model.tokenizer.vocabulary
    with pytest.raises(ValueError, match="`vocab_size` was 300, now 301"):
        run(out, 301, steps=1, config=config)


def test_a_config_must_fit_vocabulary_and_length(tokenizer):
    with pytest.raises(ValueError, match="`vocab_size` must hold the pieces"):
        choose_config(small_config(vocab_size=299), tokenizer, EXAMPLES)
    padded = small_config(vocab_size=304)  # a multiple of 8
    assert choose_config(padded, tokenizer, EXAMPLES) is padded
    with pytest.raises(ValueError, match="`max_length` must be at most"):
        choose_config(
            small_config(max_position_embeddings=23), tokenizer, EXAMPLES
        )
    with pytest.raises(FileNotFoundError, match="`name_or_dir` must be"):
        choose_config("huge", tokenizer, EXAMPLES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold text"),
        (b"\n \n", "must hold text"),
        (b"One document. Nothing else. At all.", "two documents"),
        (b"Fine.\n\nNot \xff fine.", "0xff at 11"),
    ],
)
def test_a_bad_corpus_is_an_error_without_a_traceback(
    content, message, tmp_path, capsys
):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    words = ["pretrain", "--corpus", str(path), "--out", str(tmp_path / "o")]
    words += ["--steps", "1", "--max-length", "16", "--held-out", "0"]
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_a_full_disk_is_an_error_without_a_traceback(
    tmp_path, monkeypatch, capsys
):
    import safetensors

    real = safetensors.numpy.save_file

    def fail(tensors, path, metadata=None):
        if "checkpoint" in str(path):
            raise safetensors.SafetensorError("No space left on device")
        real(tensors, path, metadata)

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    words = command(tmp_path / "out")[3:]
    words[words.index("--steps") + 1] = "2"
    assert main(words) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_the_record_names_the_source_of_the_weights(whole):
    record = json.loads((whole[0] / "run.json").read_text())
    assert record["start"] is None
    assert record["recipe"]["steps"] == 7


# What a caller chooses.


def test_results_of_a_custom_evaluation_are_logged(tmp_path, tokenizer):
    out = tmp_path / "run"
    run(out, tokenizer, evaluate=lambda model: {"parameters": 7.5})
    with open(out / "log.csv", newline="") as file:
        rows = {int(row["step"]): row for row in csv.DictReader(file)}
    assert rows[4]["parameters"] == "7.5"
    assert rows[2]["parameters"] == ""
    assert "held_out_mlm_loss" not in rows[4]


def test_dtype_auto_is_settled_and_kept(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(
        pretraining, "choose_dtype", lambda: ("mixed_bfloat16", "fast here")
    )
    recipe = PretrainingRecipe(steps=2, batch_size=8, dtype="auto")
    trained = run(tmp_path, tokenizer, recipe=recipe)
    assert trained.compute_dtype == "bfloat16"
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["recipe"]["dtype"] == "mixed_bfloat16"
    # Another machine goes on with the numbers that the run has.
    monkeypatch.setattr(
        pretraining, "choose_dtype", lambda: ("float32", "no AMX here")
    )
    again = run(tmp_path, tokenizer, recipe=recipe)
    for first, second in zip(
        trained.get_weights(), again.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_dtype_auto_is_printed(tmp_path, capsys):
    recipe = PretrainingRecipe(steps=1, batch_size=8, dtype="auto")
    settled = pretraining.settle_dtype(recipe, tmp_path / "run.json")
    dtype = pretraining.choose_dtype().path
    assert settled.dtype == dtype
    assert f"dtype: {dtype}, " in capsys.readouterr().out


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="islands are TensorFlow's"
)
def test_a_killed_run_on_islands_ends_with_the_same_bytes(
    tmp_path, tokenizer, monkeypatch
):
    monkeypatch.setenv("BERTBOOK_COMPILATION", "islands")
    recipe = PretrainingRecipe(steps=7, batch_size=8, dtype="mixed_bfloat16")
    run(tmp_path / "whole", tokenizer, recipe=recipe)
    with pytest.raises(KilledError):
        run(
            tmp_path / "killed",
            tokenizer,
            recipe=recipe,
            evaluate=_kill_at_the_second_call(),
        )
    run(tmp_path / "killed", tokenizer, recipe=recipe)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


def _kill_at_the_second_call():
    calls = []

    def evaluate(model):
        calls.append(model)
        if len(calls) == 2:
            raise KilledError
        return {}

    return evaluate
