"""Steps of pre-training on a device, with the batch that is fastest."""

import gc
import itertools
import math
import time

import numpy as np

from benchmarks import chips
from benchmarks.device import TRIES, text_of
from bertbook.batches.feeding import to_steps
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
    make_model,
)
from bertbook.runtime import keras
from bertbook.training.run import fit_steps

SLOTS = {128: 20, 512: 76}  # hidden tokens of a row, 15%
GAIN = 1.05  # what a doubled batch must bring
LEAST_STEPS, MOST_STEPS = 5, 500
WARM_UP = 3  # steps, the first of which compiles
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "failed to allocate")
TOLD = "rows", "rows_per_second", "compile_seconds", "error"  # of a try


def measure_pretraining(bench, size, length, dtype=None, rows=None):
    """Times steps of pre-training, with the batch size that is fastest.

    Args:
        bench: The `Bench`.
        size: A published size.
        length: S.
        dtype: None means 16 bits.
        rows: The batch size, halved if it does not fit; None looks for the
            fastest.
    """
    dtype = dtype or bench.dtype
    config = bench.config(size, length)
    slots = slots_of(length)
    memory = bench.device["memory_bytes"]
    first = chips.first_rows(config, length, memory, bench.most_rows)
    flops = chips.training_flops(config, length, slots)

    def measure(count):
        timed = time_steps(config, length, count, dtype, bench.seconds)
        alone = bench.speed(count, timed.pop("alone_seconds"), flops)
        speed = bench.speed(count, timed["step_seconds"], flops)
        return speed | timed | {"step_alone": alone}

    best, tried = search_rows(
        measure,
        rows or first,
        TRIES if rows else bench.tries,
        lambda seconds: rows is None and bench.has_time(seconds),
    )
    return {
        **best,
        "tokens_per_second": round(best["rows_per_second"] * length),
        "tried": tried,
        "recipe": (
            f"{size}, {best['rows']} rows of {length} tokens, {slots} hidden, "
            f"{dtype}, AdamW, dropout {config.hidden_dropout_prob}, both "
            "heads, `fit` as in `bb.pretrain`; step_alone: the same compiled "
            "step, batches on the device, nothing read between steps"
        ),
        "flops_per_row": flops,
    }


def slots_of(length):
    """Returns how many tokens of a row are hidden."""
    return SLOTS.get(length, max(1, round(0.15 * length)))


def search_rows(measure, start, tries, has_time):
    """Doubles the rows until memory ends, or nothing is gained.

    If the first batch is too large, it is halved until one fits.

    Args:
        measure: A function of the rows that returns a dict with
            `rows_per_second`.
        start: The rows of the first try.
        tries: The most tries.
        has_time: A function of the seconds of one more try.

    Returns:
        The best dict, with `rows`, and a list of what was tried.

    Raises:
        MemoryError: Nothing that was tried fits.
    """
    best, tried, rows = None, [], start
    for _ in range(tries):
        begun = time.perf_counter()
        found = try_rows(measure, rows, best)
        seconds = time.perf_counter() - begun
        tried.append({k: found[k] for k in TOLD if k in found})
        is_fit = "error" not in found
        if not is_fit and (best or rows == 1):
            break
        gain = is_fit and best and faster(found, best)
        if is_fit and (best is None or gain > 1):
            best = found
        if (gain and gain < GAIN) or not (best is None or has_time(seconds)):
            break
        rows = 2 * rows if best else rows // 2
    if best is None:
        raise MemoryError(f"No batch fits. Tried: {tried}.")
    return best, tried


def faster(found, best):
    """Returns how many times the rows a second have become."""
    return found["rows_per_second"] / best["rows_per_second"]


def try_rows(measure, rows, best):
    """Returns what is measured with so many rows, or the error.

    Raises:
        Exception: It is not for want of memory, and nothing was measured yet.
    """
    gc.collect()
    try:
        return {"rows": rows, **measure(rows)}
    except Exception as error:
        if best is None and not is_out_of_memory(error):
            raise
        return {"rows": rows, "error": text_of(error)[:300]}


def is_out_of_memory(error):
    """Returns whether an error says that memory ended."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(
        words.lower() in text for words in OUT_OF_MEMORY
    )


def time_steps(config, length, rows, dtype, seconds):
    """Times the steps of a new model, in `fit` and by themselves."""
    recipe = PretrainingRecipe(
        steps=10_000, batch_size=rows, learning_rate=1e-4, dtype=dtype
    )
    model = make_model(config, config, recipe)
    compile_for_pretraining(model, recipe)
    batches = [
        next(to_steps(draw_pretraining(rows, length, config.vocab_size, seed)))
        for seed in range(4)
    ]
    watch = Stopwatch(seconds)
    fit_steps(model, endless(batches), WARM_UP + MOST_STEPS, watch)
    return {
        "step_seconds": watch.step_seconds,
        "steps": watch.count,
        "compile_seconds": round(watch.compile_seconds, 1),
        "loss": round(watch.loss, 4),
        "alone_seconds": time_alone(model, batches, watch.count),
    }


def endless(batches):
    """Yields batches again and again; `fit` takes a generator only."""
    yield from itertools.cycle(batches)


class Stopwatch(keras.callbacks.Callback):
    """Times steps of `fit`, some of them after a warm-up, then ends it.

    As the package's `Monitor` it is called after every step.

    Args:
        seconds: About how long to measure.
    """

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.count = 0

    def on_train_begin(self, logs=None):
        """Starts the clock of the first step."""
        self.last = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        """Waits for the device where the clock is read."""
        done = batch + 1
        if done < WARM_UP:
            self.lap()
            if done == 1:
                self.compile_seconds = self.taken
        elif done == WARM_UP:
            self.lap()
            wanted = int(self.seconds / self.taken)
            self.count = max(LEAST_STEPS, min(wanted, MOST_STEPS))
        elif done == WARM_UP + self.count:
            self.lap()
            self.step_seconds = self.taken / self.count
            self.loss = float(logs["loss"])
            if not math.isfinite(self.loss):
                raise ValueError(f"The loss is {self.loss}.")
            self.model.stop_training = True

    def lap(self):
        """Takes the time since the last lap, when all weights are there."""
        wait_for([v.value for v in self.model.trainable_variables])
        now = time.perf_counter()
        self.taken, self.last = now - self.last, now


def time_alone(model, batches, count):
    """Returns the seconds of a compiled step, without what `fit` adds.

    The state stays on the device. The weights of the model are given away.
    """
    groups = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    return time_function(model.train_function, groups, batches, count)


def time_function(function, groups, batches, count):
    """Returns the seconds of a call of what Keras has compiled.

    Args:
        function: A function of a state and an iterator, as Keras makes it.
        groups: The lists of variables that are the state.
        batches: Batches as the function takes them, NumPy arrays.
        count: How many calls are measured.
    """
    import jax

    steps = endless([jax.device_put(batch) for batch in batches])
    state = tuple([v.value for v in group] for group in groups)
    for number in range(WARM_UP + count):
        if number == WARM_UP:
            wait_for(state)
            start = time.perf_counter()
        outputs, state = function(state, steps)
    wait_for((outputs, state))
    return (time.perf_counter() - start) / count


def wait_for(values):
    """Waits until the device has computed something."""
    import jax

    jax.block_until_ready(values)


def draw_pretraining(rows, length, vocabulary, seed=0):
    """Draws rows of ids, most of them full, with labels of both tasks."""
    batch = draw_batch(rows, length, vocabulary, seed)
    rng = np.random.default_rng(seed)
    slots = slots_of(length)
    shortest = int(batch["attention_mask"].sum(axis=1).min())
    lots = rng.random((rows, shortest - 1))
    places = 1 + np.sort(np.argsort(lots, axis=1)[:, :slots], axis=1)
    labels = rng.integers(5, vocabulary, (rows, slots))
    return batch | {
        "masked_lm_positions": places.astype("int32"),
        "masked_lm_ids": labels.astype("int32"),
        "masked_lm_weights": np.ones((rows, slots), "float32"),
        "next_sentence_labels": rng.integers(0, 2, rows).astype("int32"),
        "next_sentence_weights": np.ones(rows, "float32"),
    }


def draw_batch(rows, length, vocabulary, seed=0):
    """Draws rows of ids, at least seven tenths of each of them real."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(-(-7 * length // 10), length + 1, (rows, 1))
    mask = (np.arange(length) < lengths).astype("int32")
    ids = rng.integers(5, vocabulary, (rows, length)).astype("int32")
    return {
        "input_ids": ids * mask,
        "token_type_ids": np.zeros_like(ids),
        "attention_mask": mask,
    }


def measure_float32(bench, size, length):
    """Times pre-training in float32, beside that in 16 bits."""
    half = bench.parts.get(pretraining_name(size, length), {})
    if "rows" not in half:
        raise ValueError("The same in 16 bits was not measured.")
    found = measure_pretraining(bench, size, length, "float32", half["rows"])
    ratio = half["rows_per_second"] / found["rows_per_second"]
    return found | {"times_as_fast_in_16_bits": round(ratio, 3)}


def pretraining_name(size, length):
    """Returns what the part of a size and a length is called."""
    return f"pretraining {size} {length}"
