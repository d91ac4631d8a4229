"""Whole runs on short texts: exact resumption, parts, devices, bad input."""

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
from functools import cache
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
from tests.helpers.models import to_numpy
from tests.helpers.runs import (
    checkpoints_of,
    killed_at_save,
    losses,
    modified,
    read_log,
    weights,
)

HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
ROOT = Path(__file__).parents[2]
CORPUS = []  # the files of `texts`
REPORTING = {"log_steps": 2, "evaluation_steps": 4, "checkpoint_steps": 3}
QUIET = Reporting(**REPORTING, verbose=False)
EXAMPLES = ExampleSettings(max_length=24)

pytestmark = pytest.mark.usefixtures("quick_runs")


@pytest.fixture(scope="module", autouse=True)
def texts(tmp_path_factory):
    """Writes the beginnings of four texts of the shelf."""
    folder = tmp_path_factory.mktemp("texts")
    for path in shelf()[:4]:
        lines = path.read_text(encoding="utf-8").splitlines()[:5]
        (folder / path.name).write_text("\n".join(lines), encoding="utf-8")
    CORPUS[:] = sorted(folder.iterdir())


@cache
def pieces():
    """A tokenizer of 300 pieces."""
    lines = [path.read_text(encoding="utf-8") for path in shelf()]
    return bb.Tokenizer.train(lines, vocab_size=300)


def small_config(**overrides):
    """A model that is trained in a second."""
    sizes = {
        "vocab_size": 300,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "max_position_embeddings": 32,
    }
    return bb.BertConfig(**sizes | overrides)


def recipe(steps=7, **options):
    return PretrainingRecipe(steps=steps, **{"batch_size": 8} | options)


def run(out, steps=7, config=None, **options):
    """A run of some steps, on CORPUS where no other is given."""
    usual = {
        "corpus": CORPUS,
        "recipe": recipe(steps),
        "tokenizer": pieces(),
        "examples": EXAMPLES,
        "held_out": 0.2,
        "reporting": QUIET,
    }
    model = config or small_config()
    return pretrain(out=out, model=model, **usual | options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, quick_runs, texts):
    """A run of seven steps that nothing disturbed: its folder and model."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return out, run(out)


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of that folder."""
    return Path(shutil.copytree(whole[0], tmp_path / "finished"))


# What a recipe means.


def test_the_recipe_reaches_the_optimizer():
    model = bb.BertForPreTraining(small_config())
    chosen = PretrainingRecipe(
        steps=10,
        learning_rate=0.6,
        warmup=0.3,
        end=0.5,
        weight_decay=0.3,
        beta_2=0.98,
        clip_norm=0.7,
    )
    pretraining.compile_for_pretraining(model, chosen)
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
    assert "held out" in (out / "README.md").read_text()
    record = json.loads((out / "run.json").read_text())
    assert record["start"] is None  # the source of the weights
    assert record["recipe"]["steps"] == 7


def test_a_run_draws_its_log(whole):
    pytest.importorskip("matplotlib", reason="draws a picture")
    assert (whole[0] / "log.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_call_again_changes_nothing(finished, capsys):
    before = modified(finished)
    run(finished, reporting=Reporting(**REPORTING))
    assert "nothing is changed" in capsys.readouterr().out
    assert modified(finished) == before


def test_a_run_learns(tmp_path):
    run(
        tmp_path,
        recipe=recipe(20, batch_size=16, learning_rate=3e-2),
        config=small_config(hidden_dropout_prob=0.0),
        reporting=Reporting(verbose=False, log_steps=2),
    )
    rows = losses(tmp_path)
    assert float(rows[20][2]) < float(rows[2][2]) - 0.3


# Resumption.


def test_a_run_that_stopped_twice_ends_as_one_that_did_not(whole, tmp_path):
    for _ in range(2):
        with killed_at_save(1):
            run(tmp_path)
        assert not (tmp_path / "model.safetensors").exists()
    run(tmp_path)
    assert weights(tmp_path) == weights(whole[0])
    assert losses(tmp_path) == losses(whole[0])


def test_another_setting_is_refused_and_nothing_lost(finished):
    other = bb.Tokenizer([*pieces().vocabulary[:-1], "neverseen"])
    before = weights(finished)
    for change, message in (
        ({"recipe": recipe(batch_size=4)}, "`recipe.batch_size` was 8, now 4"),
        ({"steps": 8}, "`recipe.steps` was 7, now 8"),
        ({"config": small_config(hidden_size=6)}, "`config.hidden_size` was"),
        (
            {"examples": ExampleSettings(max_length=20)},
            "`examples.max_length` was",
        ),
        ({"tokenizer": other}, "`vocabulary` is another"),
    ):
        with pytest.raises(ValueError, match=message):
            run(finished, **change)
        assert weights(finished) == before


def command(out, *more, steps=150):
    return [
        "pretrain", "--corpus", *map(str, CORPUS), "--out", str(out),
        "--size", "tiny", "--steps", str(steps), "--batch-size", "15",
        "--max-length", "32", "--seed", "3", "--checkpoint-steps", "2",
        "--log-steps", "2", "--evaluation-steps", "50", *more,
    ]  # fmt: skip


def program(*arguments, **options):
    """The command in a process of its own."""
    return [sys.executable, "-m", "bertbook", *command(*arguments, **options)]


@pytest.mark.slow  # seven processes
def test_a_run_killed_five_times_ends_with_the_same_weights(tmp_path):
    subprocess.run(program(tmp_path / "whole"), check=True, cwd=ROOT)
    out = tmp_path / "killed"
    rng = random.Random(0)
    kills = 0
    while kills < 5:
        process = subprocess.Popen(program(out), cwd=ROOT)
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
    subprocess.run(program(out), check=True, cwd=ROOT)
    assert weights(out) == weights(tmp_path / "whole")
    assert losses(out) == losses(tmp_path / "whole")


# Parts and devices.


def trained_weights(folder):
    model = bb.BertForPreTraining.from_pretrained(folder)
    return to_numpy([weight.value for weight in model.weights])


def test_parts_of_a_step_equal_the_step(tmp_path):
    config = small_config(
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    for name, parts in (("whole", 1), ("parts", 4)):
        chosen = recipe(3, batch_size=64, accumulation=parts)
        run(
            tmp_path / name,
            recipe=chosen,
            config=config,
            evaluate=lambda model: {},
        )
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
        words = program(out, "--data-parallel", steps=8)  # 15 rows
        subprocess.run(words, check=True, cwd=ROOT, env=environment)
        curves[devices] = losses(out)
    for devices in (2, 4):
        for step, row in curves[1].items():
            expected = np.array([float(v or 0) for v in row])
            received = [float(v or 0) for v in curves[devices][step]]
            np.testing.assert_allclose(received, expected, atol=1e-4)


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX has data parallelism")
def test_data_parallel_needs_jax(tmp_path):
    with pytest.raises(ValueError, match="needs the JAX backend"):
        run(tmp_path, data_parallel=True)


def check_dtype(model, folder):
    """Asserts that weights are in float32, and so is the stored model."""
    assert {weight.dtype for weight in model.weights} == {"float32"}
    again = bb.BertForPreTraining.from_pretrained(folder)
    assert again.dtype_policy.name == "float32"


def test_a_run_in_float16_keeps_float32_weights(tmp_path):
    model = run(tmp_path, recipe=recipe(3, dtype="mixed_float16"))
    assert model.compute_dtype == "float16"
    check_dtype(model, tmp_path)


@pytest.mark.any_backend
def test_dtype_auto_is_settled_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTBOOK_COMPILATION", "xla")  # no islands
    monkeypatch.setattr(
        pretraining, "choose_dtype", lambda: ("mixed_bfloat16", "fast here")
    )
    trained = run(tmp_path, recipe=recipe(3, dtype="auto"))
    assert trained.compute_dtype == "bfloat16"
    check_dtype(trained, tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["recipe"]["dtype"] == "mixed_bfloat16"
    # Another machine goes on with the numbers that the run has.
    monkeypatch.setattr(
        pretraining, "choose_dtype", lambda: ("float32", "no AMX here")
    )
    again = run(tmp_path, recipe=recipe(3, dtype="auto"))
    for first, second in zip(
        trained.get_weights(), again.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_dtype_auto_is_printed(tmp_path, capsys):
    path = tmp_path / "run.json"
    settled = pretraining.settle_dtype(recipe(1, dtype="auto"), path)
    dtype = pretraining.choose_dtype().path
    assert settled.dtype == dtype
    assert f"dtype: {dtype}, " in capsys.readouterr().out


def test_a_run_starts_from_the_weights_of_a_folder(whole, tmp_path):
    """And no other weights take their place under the same name."""
    start, out = tmp_path / "start", tmp_path / "run"
    shutil.copytree(whole[0], start)
    chosen = {"recipe": recipe(1, learning_rate=1e-9), "config": str(start)}
    run(out, **chosen)
    for first, second in zip(
        trained_weights(start), trained_weights(out), strict=True
    ):
        np.testing.assert_allclose(first, second, atol=1e-6)
    model = bb.BertForPreTraining.from_pretrained(start)
    model.set_weights([weight * 1.5 for weight in model.get_weights()])
    model.save_pretrained(start)
    with pytest.raises(ValueError, match="`start_weights` is another start"):
        run(out, **chosen)


@pytest.mark.any_backend
def test_without_next_sentence_its_head_is_not_trained(tmp_path):
    examples = ExampleSettings(max_length=24, next_sentence=False)
    run(tmp_path, steps=1, examples=examples)
    rows = losses(tmp_path)
    assert float(rows[1][4]) == 0.0  # its loss
    model = bb.BertForPreTraining.from_pretrained(tmp_path)
    assert not np.any(to_numpy(model.next_sentence.bias.value))


# The command.


@pytest.mark.any_backend
def test_the_command_trains_a_vocabulary_and_a_model(tmp_path, capsys):
    words = command(tmp_path / "out", "--vocab-size", "300", steps=2)
    assert main(words) == 0
    assert "written" in capsys.readouterr().out
    tokenizer = bb.Tokenizer.from_pretrained(tmp_path / "out")
    assert len(tokenizer) == 300
    assert main(words) == 0
    assert "nothing is changed" in capsys.readouterr().out


@pytest.mark.any_backend
def test_a_bad_corpus_is_an_error_without_a_traceback(tmp_path, capsys):
    path = tmp_path / "text.txt"
    words = ["pretrain", "--corpus", str(path), "--out", str(tmp_path / "o")]
    words += ["--steps", "1", "--max-length", "16", "--held-out", "0"]
    for content, message in (
        (b"", "must hold text"),
        (b"\n \n", "must hold text"),
        (b"One document. Nothing else. At all.", "two documents"),
        (b"Fine.\n\nNot \xff fine.", "0xff at 11"),
    ):
        path.write_bytes(content)
        assert main(words) == 2
        assert message in capsys.readouterr().err


@pytest.mark.any_backend
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
    words = command(tmp_path / "out", "--vocab-size", "300", steps=2)
    assert main(words) == 2
    assert "No space left on device" in capsys.readouterr().err


# Bad input.

BAD_RECIPES = [
    ("steps", [0, 1.5, True, 10**12]),
    ("batch_size", [-1, math.nan]),
    ("warmup", [1.5, math.nan, None]),
    ("end", [-0.1, math.nan]),
    ("learning_rate", [math.nan, math.inf, 10**400, 0, "1e-3"]),
    ("weight_decay", [math.nan, math.inf, -0.1]),
    ("beta_2", [1.0, math.nan]),
    ("clip_norm", [0, None, math.nan]),
    ("dtype", ["float13"]),
    ("seed", [-1, 2**32, 0.0]),
]


def test_a_bad_recipe_is_refused():
    words = {"learning_rate": " above 0", "dtype": " one of"}
    for name, values in BAD_RECIPES:
        for value in values:
            message = f"`{name}` must be{words.get(name, '')}"
            if value == 10**12:
                message += " an integer <= "
            with pytest.raises(ValueError, match=message):
                PretrainingRecipe(**{name: value})
    with pytest.raises(ValueError, match="multiple of `accumulation`"):
        PretrainingRecipe(accumulation=3, batch_size=8)


def test_numpy_numbers_of_a_recipe_become_plain_numbers():
    received = PretrainingRecipe(
        steps=np.int64(7), learning_rate=np.float32(0.5), seed=np.int32(3)
    )
    plain = PretrainingRecipe(steps=7, learning_rate=0.5, seed=3)
    assert json.dumps(vars(received)) == json.dumps(vars(plain))


def test_bad_reporting_is_refused():
    for name, value in (
        ("log_steps", 0),
        ("evaluation_steps", 1.5),
        ("checkpoint_steps", math.nan),
        ("tensorboard", "no"),
        ("verbose", None),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            Reporting(**{name: value})


@pytest.mark.any_backend
def test_a_refused_call_leaves_nothing_and_the_next_one_works(tmp_path):
    out, missing = tmp_path / "run", tmp_path / "missing"
    other = tmp_path / "other.txt"
    other.write_text("zebras zoom.\n\nzebras doze.\n" * 40)
    count = 300  # a vocabulary that is trained
    for options, message in (
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
        ({"corpus": [missing]}, f"No text file at {missing}"),
        ({"config": small_config(vocab_size=299)}, "`vocab_size` must hold"),
        ({"config": ["tiny"]}, "`name_or_dir` must be"),
        ({"config": 5}, "`name_or_dir` must be"),
        ({"config": str(missing)}, "`name_or_dir` names a folder"),
        (
            {"examples": ExampleSettings(max_length=33)},
            "`max_length` must be at most",
        ),
        (
            {
                "corpus": [other],
                "tokenizer": 34,
                "config": small_config(vocab_size=33),
            },
            "`vocab_size` must hold",
        ),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            run(out, **options)
        assert not out.exists(), options
    model = run(out, steps=1, tokenizer=count)
    assert (out / "model.safetensors").is_file()
    assert len(model.tokenizer) == count
    assert "zebras" not in model.tokenizer.vocabulary
    with pytest.raises(ValueError, match="`vocab_size` was 300, now 301"):
        run(out, steps=1, tokenizer=301, config=small_config(vocab_size=301))


@pytest.mark.any_backend
def test_a_call_that_fails_later_blocks_nothing_either(tmp_path):
    out, text = tmp_path / "run", tmp_path / "text.txt"
    text.write_bytes(b"Some words. And more.\n\nNot \xff fine.")
    with pytest.raises(ValueError, match="0xff at 27, in line 3"):
        run(out, corpus=[text])
    with pytest.raises(ValueError, match=r"not finite|loss is (nan|inf)"):
        run(out, recipe=recipe(3, learning_rate=1e30))
    assert not (out / "model.safetensors").exists()
    assert not list(out.glob("checkpoints/*.safetensors"))
    run(out, steps=1, held_out=0.1)  # other shards, too
    assert (out / "model.safetensors").is_file()
    record = json.loads((out / "corpus" / "corpus.json").read_text())
    assert record["held_out"] == 0.1


# The same corpus, the same start.


@pytest.mark.any_backend
def test_another_corpus_is_refused(finished, tmp_path):
    copies = [Path(shutil.copy(path, tmp_path)) for path in CORPUS]
    run(finished, corpus=copies)  # the same text elsewhere
    with pytest.raises(ValueError, match="`corpus.held_out` was 0.2, now 0.5"):
        run(finished, corpus=copies, held_out=0.5)
    with pytest.raises(ValueError, match="`corpus.files` was"):
        run(finished, corpus=copies[1:])
    with pytest.raises(FileNotFoundError, match="No text file at"):
        run(finished, corpus=[*copies, tmp_path / "none.txt"])
    text = copies[0].read_text(encoding="utf-8")
    copies[0].write_text(text.replace("e", "o", 1), encoding="utf-8")
    before = weights(finished)
    with pytest.raises(ValueError, match="`corpus.files` was"):
        run(finished, corpus=copies)
    (finished / "model.safetensors").unlink()  # it is not finished now
    with pytest.raises(ValueError, match="`corpus.files` was"):
        run(finished, corpus=copies)
    run(finished)
    assert weights(finished) == before


def test_other_shards_are_refused(finished):
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


@pytest.mark.any_backend
def test_a_record_of_an_older_version_is_taken_as_it_is(finished):
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
    run(finished)
    assert json.loads(path.read_text()) == record
    (finished / "model.safetensors").unlink()
    (finished / "checkpoints" / "checkpoint-00000007.safetensors").unlink()
    run(finished)  # goes on after step 6
    assert weights(finished) == expected
    with pytest.raises(ValueError, match="`recipe.steps` was 7, now 8"):
        run(finished, steps=8)


# What is of no use is not kept.


def test_a_last_update_that_diverges_leaves_the_checkpoint_before(tmp_path):
    reporting = Reporting(
        log_steps=7, evaluation_steps=7, checkpoint_steps=3, verbose=False
    )
    for number in (math.nan, 1e30):  # the second call goes on after step 6

        def spoil(model, number=number):
            for weight in model.trainable_variables:
                weight.assign(np.full(weight.shape, number, "float32"))
            return {}

        with pytest.raises(ValueError, match="are not finite after step 7"):
            run(tmp_path, evaluate=spoil, reporting=reporting)
        assert checkpoints_of(tmp_path) == [3, 6]
        assert not (tmp_path / "model.safetensors").exists()
    run(tmp_path)  # so does this one
    assert (tmp_path / "model.safetensors").is_file()


# What a caller chooses.


@pytest.mark.any_backend
def test_an_evaluation_of_the_caller_is_logged_and_the_folder_is_held(
    tmp_path,
):
    out, found = tmp_path / "run", []

    def evaluate(model):
        with pytest.raises(ValueError, match="another call in this process"):
            run(out)
        found.append(model)
        return {"parameters": 7.5}

    reporting = Reporting(
        **REPORTING, tensorboard=HAS_TENSORFLOW, verbose=False
    )
    run(out, evaluate=evaluate, reporting=reporting)
    assert len(found) == 2
    assert not (out / "run.lock").exists()
    rows = {int(row["step"]): row for row in read_log(out)}
    assert rows[4]["parameters"] == "7.5"
    assert rows[2]["parameters"] == ""
    assert "held_out_mlm_loss" not in rows[4]
    if HAS_TENSORFLOW:
        (events,) = (out / "tensorboard").iterdir()
        assert events.stat().st_size > 200


def test_a_config_must_fit_vocabulary_and_length():
    with pytest.raises(ValueError, match="`vocab_size` must hold the pieces"):
        choose_config(small_config(vocab_size=299), pieces(), EXAMPLES)
    padded = small_config(vocab_size=304)  # a multiple of 8
    assert choose_config(padded, pieces(), EXAMPLES) is padded
    with pytest.raises(ValueError, match="`max_length` must be at most"):
        choose_config(
            small_config(max_position_embeddings=23), pieces(), EXAMPLES
        )
    with pytest.raises(FileNotFoundError, match="`name_or_dir` must be"):
        choose_config("huge", pieces(), EXAMPLES)


@pytest.mark.slow  # ten seconds and more
@pytest.mark.skipif(not ON_TENSORFLOW, reason="islands are TensorFlow's")
def test_a_killed_run_on_islands_ends_with_the_same_bytes(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BERTBOOK_COMPILATION", "islands")
    chosen = {
        "recipe": recipe(4, dtype="mixed_bfloat16"),
        "evaluate": lambda model: {},
    }
    run(tmp_path / "whole", **chosen)
    with killed_at_save(1):
        run(tmp_path / "killed", **chosen)
    run(tmp_path / "killed", **chosen)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
