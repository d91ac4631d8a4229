"""Whole runs on the shelf: exact resumption, parts, devices, bad input."""

import csv
import importlib.util
import json
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
        shelf(),
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
    ],
)
def test_a_bad_recipe_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PretrainingRecipe(**options)


def test_a_bad_pace_is_refused():
    with pytest.raises(ValueError, match="`log_steps` must be >= 1"):
        Reporting(log_steps=0)


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
