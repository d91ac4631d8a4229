"""Does this machine compute what another one has computed? For chapter 93.

The weights and the batch come from a generator of NumPy, and nothing is
dropped, so that every backend and device should find the same numbers.
"""

import contextlib
import itertools
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from bertbook import locations, runtime
from bertbook.batches.feeding import to_steps
from bertbook.config import BertConfig
from bertbook.files import read_json
from bertbook.model.attention import choose_path
from bertbook.model.bert import BertForPreTraining
from bertbook.model.encoder import BertEncoder
from bertbook.model.fill_mask import fill_mask
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
)
from bertbook.runtime import keras
from bertbook.text.tokenizer import Tokenizer
from bertbook.training.losses import pretraining_losses

FILE = "machine_check.json"  # in data/runs
CONFIG = BertConfig(
    vocab_size=40,
    num_hidden_layers=2,
    hidden_size=32,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
ROWS, SLOTS, PADDING = 4, 2, 5  # B, M, and what the last row lacks
SPREAD = 0.2  # standard deviation of the weights
GRADIENTS = (  # the weights whose gradients are compared
    "encoder/embeddings/token/embeddings",
    "encoder/block_0/attention/query_key_value/kernel",
    "encoder/block_0/attention_norm/gamma",
    "encoder/block_1/feed_forward/contract/kernel",
    "check/masked_lm/dense/kernel",
    "check/next_sentence/kernel",
)
STEPS = 10
SENTENCE, ANSWERS = "The United [MASK] of America.", 3
TIMED_ROWS, TIMED_LENGTH, TIMED_TEXTS = 16, 128, 64


class Bound(NamedTuple):
    """How far a number may be off, as a share of the largest, and why."""

    share: float
    why: str


FLOAT32 = Bound(1e-4, "float32 keeps 24 bits, and sums have another order")
BFLOAT16 = Bound(0.05, "bfloat16 keeps 8 bits of every number")
ON_TPU = Bound(0.05, "a TPU multiplies matrices of float32 in bfloat16")


class Comparison(NamedTuple):
    """Whether something is as it was stored.

    Attributes:
        name: What it is, such as "float32 loss".
        holds: Whether it is within the bound.
        detail: How far it is off, or what is there in its place.
    """

    name: str
    holds: bool
    detail: str


# What is here.


def machine_facts() -> dict[str, str]:
    """Returns what runs here, without a path, an address or a name."""
    facts = runtime.describe()
    computed = facts["dtype_auto"].partition(",")[0]
    dtype = keras.DTypePolicy(computed).compute_dtype
    path, path_reason = choose_path("auto", 0.1, dtype)
    return {
        "bertbook": facts["bertbook"],
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "keras": facts["keras"],
        "backend": f"{facts['backend']} {facts['backend_version']}",
        "system": f"{platform.system()}, {platform.machine()}",
        "device": f"{facts['device']}, {device_count()} of them",
        "memory of the device": device_memory(),
        "memory of the machine": machine_memory(),
        "cores": f"{runtime.core_count()} of {os.cpu_count() or 1}",
        "dtype auto": facts["dtype_auto"],
        "attention": f"{path}, {path_reason}",
        "compilation": facts["compilation"],
    }


def device_count() -> int:
    """Returns how many devices like the first there are."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.device_count()
    import tensorflow as tf

    return len(tf.config.list_physical_devices("GPU")) or 1


def device_memory() -> str:
    """Returns the memory of the first device in GB, "unknown" if untold."""
    if runtime.device_name() == "CPU":
        return "that of the machine"
    if keras.backend.backend() == "jax":
        import jax

        told = jax.devices()[0].memory_stats() or {}
        if "bytes_limit" in told:
            return f"{told['bytes_limit'] / 1e9:.1f} GB may be used"
    command = ["nvidia-smi", "--query-gpu=memory.total"]
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        text = subprocess.run(
            [*command, "--format=csv,noheader,nounits"],
            capture_output=True,
            check=True,
            text=True,
            timeout=20,
        ).stdout
        return f"{int(text.split()[0]) * 2**20 / 1e9:.1f} GB"
    return "unknown"


def machine_memory() -> str:
    """Returns the memory of the machine in GB, "unknown" if untold."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # on Windows
        return "unknown"
    return f"{size / 1e9:.1f} GB"


# What it computes.


def make_check_model(dtype: str = "float32") -> BertForPreTraining:
    """Returns a tiny model whose weights NumPy has drawn."""
    model = BertForPreTraining(CONFIG, dtype=dtype, name="check")
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        drawn = SPREAD * rng.standard_normal(weight.shape)
        is_gain = weight.path.endswith("gamma")
        weight.assign((drawn + is_gain).astype("float32"))
    return model


def make_check_batch() -> tuple[Any, Any, Any]:
    """Returns a batch as `fit` takes it, `(x, y, sample_weight)`."""
    rng = np.random.default_rng(1)
    length, pieces = CONFIG.max_position_embeddings, CONFIG.vocab_size
    ids = rng.integers(1, pieces, (ROWS, length))
    mask = np.ones((ROWS, length), "int32")
    mask[-1, -PADDING:] = 0
    places = [1 + rng.permutation(9)[:SLOTS] for _ in range(ROWS)]
    batch = {
        "input_ids": ids * mask,
        "token_type_ids": np.tile(np.arange(length) > 7, (ROWS, 1)) * mask,
        "attention_mask": mask,
        "masked_lm_positions": np.sort(places, axis=1),
        "masked_lm_ids": rng.integers(1, pieces, (ROWS, SLOTS)),
        "next_sentence_labels": rng.integers(0, 2, ROWS),
    }
    batch = {name: array.astype("int32") for name, array in batch.items()}
    weights = {
        "masked_lm_weights": np.ones((ROWS, SLOTS), "float32"),
        "next_sentence_weights": np.ones(ROWS, "float32"),
    }
    return next(to_steps(batch | weights))


def compute_numbers(dtype: str = "float32") -> dict[str, Any]:
    """Returns the logits, the loss and the norms of gradients.

    A step of gradient descent at the rate 1 takes its gradient from each
    weight: so they come out of the compiled step of `fit`.

    Args:
        dtype: A policy of Keras, such as "mixed_bfloat16".
    """
    model = make_check_model(dtype)
    x, _, _ = make_check_batch()
    with float32_products():
        numbers: dict[str, Any] = {
            name: keras.ops.convert_to_numpy(logits).astype("float64").tolist()
            for name, logits in model.compute_on_batch(x).items()
        }
        model.compile(
            keras.optimizers.SGD(1.0),
            loss=pretraining_losses("sum"),
            jit_compile=runtime.compiles_whole(model.compute_dtype),
        )
        before = values_of(model)
        (numbers["loss"],) = fit_losses(model, 1)
    for name, value in values_of(model).items():
        norm = float(np.linalg.norm(before[name] - value))
        numbers[f"gradient of {name}"] = norm
    return numbers


def values_of(model) -> dict[str, np.ndarray]:
    """Returns the values of the weights in `GRADIENTS`, by path."""
    return {
        weight.path: keras.ops.convert_to_numpy(weight).astype("float64")
        for weight in model.trainable_weights
        if weight.path in GRADIENTS
    }


def compute_training() -> dict[str, Any]:
    """Returns the losses of ten steps of pre-training in float32."""
    model = make_check_model()
    recipe = PretrainingRecipe(steps=STEPS, batch_size=ROWS)
    with float32_products():
        compile_for_pretraining(model, recipe)
        return {"losses of ten steps": fit_losses(model, STEPS)}


def fit_losses(model, steps: int) -> list[float]:
    """Trains a compiled model and returns the loss before each step."""
    batches = itertools.repeat(make_check_batch())
    history = model.fit(
        (batch for batch in batches),
        epochs=steps,
        steps_per_epoch=1,
        shuffle=False,
        verbose=0,
    )
    return [float(loss) for loss in history.history["loss"]]


@contextlib.contextmanager
def float32_products() -> Iterator[None]:
    """Lets a GPU multiply float32 in float32, not in TF32 of 11 bits.

    A TPU stays as it is.
    """
    if keras.backend.backend() == "jax":
        import jax

        precision = None if is_tpu() else "float32"
        with jax.default_matmul_precision(precision):
            yield
        return
    import tensorflow as tf

    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


def is_tpu() -> bool:
    """Returns whether a TPU computes."""
    return runtime.device_name().startswith("TPU")


def best_answers() -> list[str]:
    """Returns the likeliest words of `mini` for the gap in a sentence."""
    guesses = fill_mask(SENTENCE, "mini", ANSWERS)
    return [guess["token"] for guess in guesses]


# Whether that is right.


def read_expected() -> dict[str, Any]:
    """Returns what `tools/book/check_numbers.py` has stored.

    Returns:
        `float32`, numbers by name; `answers`, the words of `mini`.
    """
    return read_json(locations.data_folder() / "runs" / FILE)


def bound_of(dtype: str) -> Bound:
    """Returns how far a number may be off, in what a model computes in."""
    if dtype != "float32":
        return BFLOAT16
    return ON_TPU if is_tpu() else FLOAT32


def compare_numbers(
    found: dict[str, Any], expected: dict[str, Any], dtype: str, share: float
) -> list[Comparison]:
    """Compares numbers with the stored ones of the same names.

    Args:
        found: Numbers, or nested lists of them, by name.
        expected: The stored ones, at least those.
        dtype: What they were computed in.
        share: How far each may be off, as a share of the largest of its name.
    """
    return [
        _compare(f"{dtype} {name}", value, expected[name], share)
        for name, value in found.items()
    ]


def _compare(name, found, expected, share) -> Comparison:
    """Compares an array with the stored one; says where it is off most."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    if found.shape != expected.shape:
        return Comparison(name, False, f"{found.shape}, not {expected.shape}")
    off = np.abs(found - expected) / np.abs(expected).max()
    worst = np.unravel_index(np.argmax(off), off.shape)  # NaN counts as most
    detail = f"off by {off[worst]:.1e}, {share:.0e} allowed"
    holds = bool(off[worst] <= share)
    if not holds:
        place = f" at {[int(i) for i in worst]}" if worst else ""
        detail += (
            f": {found[worst]:.6g}{place}, stored is {expected[worst]:.6g}"
        )
    return Comparison(name, holds, detail)


def compare_answers(found: list[str], expected: list[str]) -> Comparison:
    """Compares the words of `mini` with the stored ones."""
    holds = found == expected
    detail = ", ".join(found)
    if not holds:
        detail += f"; stored is {', '.join(expected)}"
    return Comparison("answers of mini", holds, detail)


# How fast.


def step_seconds(steps: int = 5) -> float:
    """Returns the seconds of a step of pre-training of the size `mini`.

    Args:
        steps: How many are timed, after two that are not.
    """
    dtype = runtime.choose_dtype().path
    pieces = len(Tokenizer.from_pretrained("mini"))
    config = BertConfig.named("mini", vocab_size=pieces)
    model = BertForPreTraining(config, dtype=dtype)
    compile_for_pretraining(model, PretrainingRecipe(dtype=dtype))
    batch = make_timed_batch(pieces)
    seconds = 0.0
    for count in (2, steps):
        begun = time.perf_counter()
        model.fit(
            (batch for _ in range(count)),
            steps_per_epoch=count,
            shuffle=False,
            verbose=0,
        )
        seconds = (time.perf_counter() - begun) / count
    return seconds


def make_timed_batch(pieces: int) -> tuple[Any, Any, Any]:
    """Returns a batch of random ids, as `fit` takes it."""
    rng = np.random.default_rng(0)
    shape, slots = (TIMED_ROWS, TIMED_LENGTH), (TIMED_ROWS, 20)
    batch = {
        "input_ids": rng.integers(5, pieces, shape),
        "token_type_ids": np.zeros(shape),
        "attention_mask": np.ones(shape),
        "masked_lm_positions": np.tile(np.arange(1, 21), (TIMED_ROWS, 1)),
        "masked_lm_ids": rng.integers(5, pieces, slots),
        "next_sentence_labels": rng.integers(0, 2, TIMED_ROWS),
    }
    batch = {name: array.astype("int32") for name, array in batch.items()}
    weights = {
        "masked_lm_weights": np.ones(slots, "float32"),
        "next_sentence_weights": np.ones(TIMED_ROWS, "float32"),
    }
    return next(to_steps(batch | weights))


def reading_seconds() -> float:
    """Returns the seconds in which `mini` turns 64 sentences into vectors."""
    encoder = BertEncoder.from_pretrained("mini", dtype="auto")
    texts = ["The bank was shut, so he went home."] * TIMED_TEXTS
    seconds = 0.0
    for _ in range(2):  # the first compiles
        begun = time.perf_counter()
        encoder.embed_texts(texts)
        seconds = time.perf_counter() - begun
    return seconds


def speeds() -> dict[str, str]:
    """Returns what was measured, with its unit, as lines of the report."""
    step, reading = step_seconds(), reading_seconds()
    tokens = TIMED_ROWS * TIMED_LENGTH / step
    return {
        f"a step of mini, {TIMED_ROWS} rows of {TIMED_LENGTH}": (
            f"{1_000 * step:.0f} ms, {tokens:,.0f} tokens a second"
        ),
        "sentences to vectors, by mini": (
            f"{TIMED_TEXTS / reading:,.0f} a second"
        ),
    }


# What to send.


def report(
    facts: dict[str, str],
    comparisons: list[Comparison],
    measured: dict[str, str],
) -> str:
    """Returns a text for an issue; what is wrong comes first.

    Args:
        facts: What `machine_facts` returned.
        comparisons: All that were made.
        measured: What `speeds` returned.
    """
    wrong = [each for each in comparisons if not each.holds]
    lines = [f"{len(wrong)} of {len(comparisons)} numbers are WRONG"]
    if not wrong:
        lines = [f"all {len(comparisons)} numbers are as stored"]
    lines += [f"WRONG {each.name}: {each.detail}" for each in wrong]
    lines += [f"{name}: {value}" for name, value in facts.items()]
    lines += [
        f"ok {each.name}: {each.detail}" for each in comparisons if each.holds
    ]
    lines += [f"{name}: {value}" for name, value in measured.items()]
    return "\n".join(lines)


def store_expected(path) -> None:
    """Writes the numbers of this machine as those to compare with."""
    numbers = compute_numbers() | compute_training()
    rounded = keras.tree.map_structure(lambda v: float(f"{v:.7g}"), numbers)
    expected = {"float32": rounded, "answers": best_answers()}
    path.write_text(json.dumps(expected) + "\n", encoding="utf-8")
