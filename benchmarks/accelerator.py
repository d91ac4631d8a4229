"""How fast is the package on this GPU or TPU?

    KERAS_BACKEND=jax python -m benchmarks.accelerator [--minutes 10]
        [--sizes base,large] [--lengths 128,512] [--out FILE] [--skip-peer]

Measures, the most important first, and begins nothing that the minutes would
not hold: pre-training of each size and length as `bb.pretrain` runs it,
fine-tuning by `bb.finetune`, inference, the paths of attention, float32 beside
16 bits, KerasHub where it is installed. Weights, ids and texts are random, so
nothing is downloaded. The file is written after every part.

On a processor `--sizes tiny` is a dry run, with one layer and few words; its
figures say nothing.
"""

import argparse
import dataclasses
import functools
import gc
import itertools
import math
import os
import platform
import statistics
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

BEGAN = time.perf_counter()
# JAX takes three quarters of a GPU if it is not told before it looks.
FRACTIONS = "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"
if not any(name in os.environ for name in FRACTIONS):  # both are an error
    os.environ[FRACTIONS[1]] = "0.9"

import numpy as np

import bertbook as bb
from benchmarks import chips, turns
from bertbook.batches.feeding import to_steps
from bertbook.files import write_json
from bertbook.model.attention import (
    fused_attention,
    scaled_dot_product_attention,
)
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
    make_model,
)
from bertbook.runtime import describe, keras
from bertbook.text.vocabulary import SPECIAL_TOKENS
from bertbook.training.run import fit_steps

SLOTS = {128: 20, 512: 76}  # hidden tokens of a row, 15%
TRIES = 3  # batch sizes of a part
GAIN = 1.05  # what a doubled batch must bring
LEAST_STEPS, MOST_STEPS = 5, 500
WARM_UP = 3  # steps, the first of which compiles
RESERVE = 5  # seconds that are left for the end
SST2_ROWS = 67_349
# Tokens of the texts of SST-2, [CLS] and [SEP] counted: every twentieth.
SST2_LENGTHS = (4, 4, 5, 5, 6, 7, 7, 8, 9, 10, 11, 12, 14, 16, 17, 20, 23, 26,
                31, 40)  # fmt: skip
BATCH_SIZE, EPOCHS = 32, 4  # of fine-tuning; the first epoch compiles
INFERENCE_ROWS, INFERENCE_LENGTH = 256, 128
ATTENTION_TOKENS = 32_768
PACKAGES = ("keras", "jax", "jaxlib", "numpy", "keras-hub", "tensorflow")
SMALL = ("tiny", "mini", "small")  # what a processor may be asked for
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "failed to allocate")


@dataclasses.dataclass(frozen=True)
class Part:
    """One thing to measure.

    Attributes:
        name: What the file and the table call it.
        guess: Seconds that it takes on a large GPU, most of them compiling.
        measure: A function of the `Bench` that returns a dict.
    """

    name: str
    guess: float
    measure: object


class Clock:
    """Says whether there is time for one more part.

    Args:
        minutes: The most, from the start of the process.
        began: When it started, as `time.perf_counter` has it.
    """

    def __init__(self, minutes, began):
        self.end = began + 60 * minutes - RESERVE
        self.guessed = self.taken = 0.0

    def left(self):
        """Returns the seconds that are left."""
        return self.end - time.perf_counter()

    def expected(self, guess):
        """Returns a guess, mended by how long the parts so far have taken."""
        if not self.guessed:
            return guess
        return guess * min(3.0, self.taken / self.guessed)

    def learn(self, guess, taken):
        """Takes note of how long a part has taken that was guessed."""
        self.guessed += guess
        self.taken += taken


class Bench:
    """The measurements of one run, and the file that they are kept in.

    Args:
        options: What the command line says, as `read_options` returns it.
        began: As in `Clock`.
    """

    def __init__(self, options, began=BEGAN):
        self.options = options
        self.device = device_facts()
        self.is_dry = self.device["platform"] == "cpu"
        self.dtype = self.device["dtype_16_bits"]
        self.seconds = 0.02 if self.is_dry else 3.0  # of every measurement
        self.most_rows = 2 if self.is_dry else 512
        self.tries = 1 if self.is_dry else TRIES
        self.clock = Clock(options.minutes, began)
        self.waiting = []
        self.record = {
            "device": self.device,
            "python": platform.python_version(),
            "backend": "jax",
            "versions": {name: version_of(name) for name in PACKAGES},
            "bertbook": describe()["bertbook"],
            "minutes": options.minutes,
            "is_dry_run": self.is_dry,
            "parts": {},
        }

    @property
    def parts(self):
        """Returns what is measured so far, by the name of the part."""
        return self.record["parts"]

    def config(self, size, length=512):
        """Returns the config of a published size; of a dry run, a part."""
        dry = {"num_hidden_layers": 1, "vocab_size": 1_000}
        return bb.BertConfig.named(
            size,
            max_position_embeddings=max(512, length),
            **(dry if self.is_dry else {}),
        )

    def take_all(self, parts):
        """Takes every part that there is time for."""
        self.waiting = list(parts)
        while self.waiting:
            self.take(self.waiting.pop(0))

    def take(self, part):
        """Takes one part and keeps its figures, or why there are none."""
        expected = self.clock.expected(part.guess)
        if expected > self.clock.left():
            found = {"status": f"no time: it may take {expected:.0f} s"}
        else:
            begun = time.perf_counter()
            found = attempt(part.measure, self)
            gc.collect()
            found["seconds"] = round(time.perf_counter() - begun, 1)
            if found["status"] == "measured":
                self.clock.learn(part.guess, found["seconds"])
        self.parts[part.name] = found
        print(line_of(part.name, found), flush=True)
        self.write()

    def has_time(self, seconds):
        """Returns whether one more try leaves time for what is waiting."""
        waiting = sum(self.clock.expected(p.guess) for p in self.waiting)
        return self.clock.left() - waiting > seconds

    def write(self):
        """Writes the file, if there is one."""
        if self.options.out is not None:
            write_json(self.options.out, self.record)

    def speed(self, rows, seconds, flops):
        """Returns the figures of so many rows in so many seconds.

        Args:
            rows: The rows.
            seconds: What they took.
            flops: FLOPs of one row.
        """
        tflops = rows * flops / seconds / 1e12
        peak = self.device["peak_tflops"]
        return {
            "rows_per_second": round(rows / seconds, 1),
            "tflops": float(f"{tflops:.4g}"),
            "share_of_peak": None if peak is None else round(tflops / peak, 4),
        }


def attempt(measure, bench):
    """Returns what a function measures, or what stopped it, as text."""
    try:
        with MemoryWatch() as watch:
            found = measure(bench)
    except Exception as error:
        return {"status": "failed", "error": text_of(error)}
    return {"status": "measured", **found, "memory": watch.result}


def text_of(error):
    """Returns the kind and the first lines of an error."""
    return f"{type(error).__name__}: {str(error).strip()[:1_500]}"


class MemoryWatch:
    """Looks at the memory of the device while the body of a `with` runs.

    JAX keeps the peak of the whole process. Where the body does not raise it,
    what is in use is read twenty times a second.
    """

    def __enter__(self):
        self.result = None
        self.most = 0
        self.ended = threading.Event()
        self.before = memory_stats()
        self.thread = threading.Thread(target=self._look, daemon=True)
        if self.before:
            self.thread.start()
        return self

    def _look(self):
        while not self.ended.wait(0.05):
            self.most = max(self.most, memory_stats()["bytes_in_use"])

    def __exit__(self, *_):
        self.ended.set()
        if not self.before:
            return
        self.thread.join()
        peak = memory_stats()["peak_bytes_in_use"]
        is_new = peak > self.before["peak_bytes_in_use"]
        self.result = {
            "bytes_before": self.before["bytes_in_use"],
            "peak_bytes": peak if is_new else self.most,
            "peak_by": "JAX" if is_new else "looking every 50 ms",
        }


def memory_stats():
    """Returns what JAX says of the memory of its first device, or {}."""
    import jax

    return jax.devices()[0].memory_stats() or {}


def device_facts():
    """Returns the name of the device, its memory and its peak."""
    import jax

    device = jax.devices()[0]
    is_old = device.platform == "gpu" and float(device.compute_capability) < 8
    peak = chips.peak_of(device.device_kind)
    return {
        "kind": device.device_kind,
        "platform": device.platform,
        "memory_bytes": memory_stats().get("bytes_limit"),
        "memory_fraction": [os.environ.get(name) for name in FRACTIONS],
        "matmul_precision": str(jax.config.jax_default_matmul_precision),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "dtype_16_bits": "mixed_float16" if is_old else "mixed_bfloat16",
        "peak_tflops": peak,
    }


def version_of(package):
    """Returns the version of a package, "not installed" without one."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


# Pre-training


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


TOLD = "rows", "rows_per_second", "compile_seconds", "error"


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


# Fine-tuning and inference


def classifier(bench, size, length=512):
    """Returns a classifier with random weights, and a tokenizer of words."""
    model = bb.BertForSequenceClassification(
        bench.config(size, length), num_labels=2, dtype=bench.dtype
    )
    model.tokenizer = bb.Tokenizer([*SPECIAL_TOKENS, *words()])
    return model


def words():
    """Returns 676 words, each a piece."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(pair) for pair in itertools.product(letters, repeat=2)]


def draw_texts(lengths, count):
    """Draws texts whose numbers of tokens are those given, in turn."""
    rng = np.random.default_rng(0)
    pieces = np.array(words())
    sizes = itertools.islice(itertools.cycle(lengths), count)
    return {
        "text": [" ".join(rng.choice(pieces, size - 2)) for size in sizes],
        "label": rng.integers(0, 2, count).tolist(),
    }


def measure_finetuning(bench, size, length, lengths):
    """Times epochs of `bb.finetune`, the first one left out.

    Args:
        bench: The `Bench`.
        size: A published size.
        length: Tokens that texts are cut to.
        lengths: The tokens of the texts, in turn.
    """
    if bench.is_dry:  # one shape is compiled
        lengths = [length for length in lengths if length <= 16] or lengths
    count = 64 if bench.is_dry else 3_200
    history = bb.finetune(
        classifier(bench, size),
        draw_texts(lengths, count),
        epochs=EPOCHS,
        learning_rate=2e-5,
        batch_size=BATCH_SIZE,
        max_length=length,
        options=bb.FinetuningOptions(verbose=False),
    )
    first, *speeds = history["rows_per_second"]
    speed = statistics.median(speeds)
    return {
        "rows_per_second": speed,
        "rows_per_second_by_epoch": [first, *speeds],
        "step_seconds": BATCH_SIZE / speed,
        "sst2_epoch_seconds_by_arithmetic": round(SST2_ROWS / speed, 2),
        "loss": history["loss"][-1],
        "recipe": (
            f"{size}, `bb.finetune`, {count} rows of "
            f"{np.mean(lengths):.1f} tokens, batches of {BATCH_SIZE} cut at "
            f"{length}, {bench.dtype}; the median of epochs 2 to {EPOCHS}; "
            f"an epoch of SST-2 is {SST2_ROWS:,} rows at that speed"
        ),
    }


def measure_inference(bench, size):
    """Times a classifier: many rows, and one row by itself."""
    length = INFERENCE_LENGTH
    rows = 2 if bench.is_dry else INFERENCE_ROWS
    model = classifier(bench, size)
    config = model.config
    many = draw_batch(rows, length, config.vocab_size)
    times = time_calls(lambda: model.compute_on_batch(many), bench.seconds)
    flops = chips.forward_flops(config, length)
    found = bench.speed(rows, statistics.median(times), flops)
    one = draw_batch(1, length, config.vocab_size)
    singles = time_calls(lambda: model.compute_on_batch(one), bench.seconds)
    groups = model.trainable_variables, model.non_trainable_variables
    alone = time_function(
        model.predict_function, groups, [(many,)], min(len(times), MOST_STEPS)
    )
    return {
        **found,
        "step_alone": bench.speed(rows, alone, flops),
        "rows": rows,
        "step_seconds": statistics.median(times),
        "one_row_milliseconds": {
            "median": round(1e3 * statistics.median(singles), 3),
            "least": round(1e3 * min(singles), 3),
            "ninth_decile": round(1e3 * float(np.quantile(singles, 0.9)), 3),
        },
        "recipe": (
            f"{size}, a classifier of two labels, {length} tokens, "
            f"{bench.dtype}, `compute_on_batch`: from NumPy and to NumPy, "
            "each call waits for the last; step_alone: the same compiled "
            "function, the batch on the device, nothing read between calls"
        ),
    }


def time_calls(function, seconds):
    """Returns the seconds of each call, some of them after a warm-up."""
    for _ in range(WARM_UP):
        function()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < LEAST_STEPS:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times


# Attention


def measure_attention(bench, size, lengths):
    """Times the paths of attention, forward and backward, in turns."""
    found, failed = {}, {}
    for length in lengths:
        results, errors = compare_attention(bench, size, length)
        found |= results
        failed |= errors
    if not found:
        raise RuntimeError(f"No other path ran. {failed}")
    return {
        "median_time_over_einsum": found,
        "did_not_run": failed,
        "recipe": (
            f"heads of {size}, {bench.dtype}, no dropout, queries, keys and "
            "values (B, N, S, H) with padding; the gradients of all three; "
            "above 1: einsum is faster"
        ),
    }


def compare_attention(bench, size, length):
    """Returns the ratios of one length, and the errors of what did not run."""
    config = bench.config(size)
    rows = 2 if bench.is_dry else max(1, ATTENTION_TOKENS // length)
    tensors, mask, lengths = draw_heads(config, rows, length, bench.dtype)
    steps, errors, gradients = {}, {}, {}
    for name, path in ATTENTION.items():
        step = functools.partial(gradient_of(path), tensors, mask, lengths)
        try:
            gradients[name] = step()
            wait_for(gradients[name])
            steps[name] = step
        except Exception as error:
            errors[f"{name} {length}"] = text_of(error)[:300]
    calls = calls_of(steps["einsum"], bench.seconds / 60)
    functions = {name: repeated(step, calls) for name, step in steps.items()}
    results = turns.in_turns(functions.pop("einsum"), functions)
    for name, result in results.items():
        result["largest_difference"] = largest_difference(
            gradients["einsum"], gradients[name]
        )
        result["rows"], result["calls"] = rows, calls
    return {f"{n} {length}": r for n, r in results.items()}, errors


def draw_heads(config, rows, length, dtype):
    """Draws queries, keys and values, a mask and the lengths."""
    import jax
    import jax.numpy as jnp

    number = dtype.removeprefix("mixed_")
    heads, width = config.num_attention_heads, config.head_size
    keys = jax.random.split(jax.random.key(0), 3)
    tensors = [
        jax.random.normal(key, (rows, heads, length, width), number)
        for key in keys
    ]
    lengths = draw_batch(rows, length, 10)["attention_mask"].sum(axis=1)
    mask = np.arange(length) < lengths[:, None]
    mask = mask[:, None, None, :]  # (B, 1, 1, S)
    return tensors, jnp.asarray(mask), jnp.asarray(lengths, "int32")


def cudnn(query, key, value, **options):
    """Returns the context, by the kernels of cuDNN, as `fused_attention`."""
    import jax

    query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
    context = jax.nn.dot_product_attention(
        query, key, value, implementation="cudnn", **options
    )
    return context.swapaxes(1, 2)


def cudnn_with_mask(query, key, value, mask, lengths):
    """Returns the context, for the mask in its full shape."""
    shape = (len(mask), 1, query.shape[2], key.shape[2])
    mask = keras.ops.broadcast_to(mask, shape)
    return cudnn(query, key, value, mask=mask)


def cudnn_with_lengths(query, key, value, mask, lengths):
    """Returns the context, for rows whose padding is at the end."""
    return cudnn(
        query,
        key,
        value,
        query_seq_lengths=lengths,
        key_value_seq_lengths=lengths,
    )


# Functions of queries, keys, values, the mask and the lengths.
ATTENTION = {
    "einsum": lambda *x: scaled_dot_product_attention(*x[:4])[0],
    "fused": lambda *x: fused_attention(*x[:4]),
    "cudnn, mask": cudnn_with_mask,
    "cudnn, lengths": cudnn_with_lengths,
}


def gradient_of(path):
    """Returns a compiled function: the gradients of a path's context.

    What padding gathers does not count.
    """
    import jax

    def loss(tensors, mask, lengths):
        context = path(*tensors, mask, lengths).astype("float32")
        real = mask.swapaxes(2, 3)  # (B, 1, S, 1)
        return (jax.numpy.where(real, context, 0.0) ** 2).sum()

    return jax.jit(jax.grad(loss))


def calls_of(step, seconds):
    """Returns how many calls take about so many seconds."""
    start = time.perf_counter()
    wait_for(step())
    taken = time.perf_counter() - start
    return max(1, min(100, int(seconds / taken)))


def repeated(step, calls):
    """Returns a function that calls another, and waits for all at the end."""

    def turn():
        wait_for([step() for _ in range(calls)][-1])

    return turn


def largest_difference(first, second):
    """Returns the largest difference of gradients, as a share of the norm."""
    pairs = [
        (np.asarray(a, "float32"), np.asarray(b, "float32"))
        for a, b in zip(first, second, strict=True)
    ]
    size = max(np.abs(a).max() for a, _ in pairs)
    difference = max(np.abs(a - b).max() for a, b in pairs)
    return float(f"{difference / size:.2e}")


# The peer


def measure_peer(bench, size):
    """Times KerasHub's masked words beside ours, in turns."""
    from benchmarks import pretraining

    rows = 2 if bench.is_dry else 64
    batch = pretraining.draw_batch(rows)
    backbone, head = pretraining.draw_weights(size)
    ours = pretraining.build_ours(backbone, head, bench.dtype)
    peer = pretraining.build_hub(size, backbone, head, bench.dtype, True)
    result = turns.in_turns(
        pretraining.repeated(pretraining.step_of(ours, batch)),
        {"peer": pretraining.repeated(
            pretraining.step_of(peer, batch, pretraining.rename)
        )},
    )["peer"]  # fmt: skip
    tokens = rows * pretraining.LENGTH * pretraining.STEPS
    return {
        "ratio": result,
        "rows_per_second": round(
            rows * pretraining.STEPS / result["seconds_ours"], 1
        ),
        "tokens_per_second_ours": round(tokens / result["seconds_ours"]),
        "tokens_per_second_peer": round(tokens / result["seconds_theirs"]),
        "recipe": (
            f"{size}, masked words alone, {rows} rows of "
            f"{pretraining.LENGTH} tokens, {pretraining.SLOTS} hidden, a "
            f"vocabulary of {pretraining.VOCABULARY:,}, {bench.dtype}, no "
            f"dropout, {pretraining.STEPS} calls of `train_on_batch` a turn"
        ),
    }


# The command


def plan(options, is_hub_installed):
    """Returns the parts, the most important first."""
    sizes, lengths = options.sizes, options.lengths
    first = sizes[0]
    pairs = [(s, n) for s in sizes for n in lengths]
    pairs.sort(key=lambda p: sizes.index(p[0]) + lengths.index(p[1]))
    pretraining = [pretraining_part(*pair) for pair in pairs]
    # Of two sizes and lengths, the larger of both comes later.
    early = sum(
        sizes.index(size) + lengths.index(length) < 2 for size, length in pairs
    )
    parts = [
        *pretraining[:early],
        Part("fine-tuning, 128 tokens", 35, functools.partial(
            measure_finetuning, size=first, length=128, lengths=(128,))),
        Part("inference", 20, functools.partial(measure_inference, size=first)),
        Part("attention", 15, functools.partial(
            measure_attention, size=first, lengths=lengths)),
        Part(f"float32 {first} {lengths[0]}", 45, functools.partial(
            measure_float32, size=first, length=lengths[0])),
        *pretraining[early:],
        Part("fine-tuning, lengths of SST-2", 80, functools.partial(
            measure_finetuning, size=first, length=128, lengths=SST2_LENGTHS)),
    ]  # fmt: skip
    if is_hub_installed and not options.skip_peer:
        peer = functools.partial(measure_peer, size=first)
        parts.append(Part("KerasHub", 80, peer))
    return parts


def pretraining_part(size, length):
    """Returns the part that pre-trains one size at one length."""
    measure = functools.partial(measure_pretraining, size=size, length=length)
    guess = 80 if size == "large" else 45
    return Part(pretraining_name(size, length), guess, measure)


def read_options(arguments=None):
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accelerator",
        description="How fast is the package on this GPU or TPU?",
    )
    parser.add_argument("--out", type=Path, help="the JSON file")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sizes", type=names_in, default=["base", "large"])
    parser.add_argument("--lengths", type=numbers_in, default=[128, 512])
    parser.add_argument("--skip-peer", action="store_true")
    return parser.parse_args(arguments)


def names_in(text):
    """Returns the names of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers_in(text):
    """Returns the numbers of a list with commas."""
    return [int(name) for name in names_in(text)]


def refusal(options):
    """Returns why nothing can be measured here, or None."""
    if keras.backend.backend() != "jax":
        return "This needs the JAX backend: set KERAS_BACKEND=jax."
    unknown = [s for s in options.sizes if s not in bb.BertConfig.PUBLISHED]
    if unknown or not options.sizes or not options.lengths:
        return "`--sizes` and `--lengths` must name some. Received: " + (
            f"{options.sizes} and {options.lengths}."
        )
    is_cpu = device_facts()["platform"] == "cpu"
    if is_cpu and not set(options.sizes) <= set(SMALL):
        return (
            "JAX found no GPU or TPU, and a processor would take hours. For "
            "a dry run add `--sizes tiny`."
        )
    return None


def line_of(name, found):
    """Returns a line of the table."""
    if found["status"] != "measured":
        why = found.get("error", found["status"]).splitlines()[0]
        return f"{name:<30} {why:.90}"
    facts = []
    if "rows_per_second" in found:
        facts.append(f"{found['rows_per_second']:>10,.1f} rows/s")
    if found.get("share_of_peak") is not None:
        facts.append(f"{found['share_of_peak']:.1%} of the peak")
    if "step_alone" in found:
        alone = found["step_alone"]["rows_per_second"]
        facts.append(f"{found['rows']} rows, step alone {alone:,.1f} rows/s")
    facts += [f"{found[key]} {words}" for key, words in MORE if key in found]
    if "one_row_milliseconds" in found:
        one = found["one_row_milliseconds"]["median"]
        facts.append(f"one row {one} ms")
    for path, result in found.get("median_time_over_einsum", {}).items():
        facts.append(f"{path}: {result['median']}")
    if "ratio" in found:
        facts.append(f"the peer takes {found['ratio']['median']} times as long")
    return f"{name:<30} " + ", ".join(facts)


MORE = (
    ("times_as_fast_in_16_bits", "times as fast in 16 bits"),
    ("sst2_epoch_seconds_by_arithmetic", "s an epoch of SST-2 by arithmetic"),
)


def main(arguments=None, began=BEGAN):
    """Measures what there is time for, keeps it and prints a table."""
    options = read_options(arguments)
    if why := refusal(options):
        sys.exit(why)
    if options.out is None and "tiny" not in options.sizes:
        options.out = turns.RESULTS / "accelerator.json"
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
    bench = Bench(options, began)
    print(f"{bench.device['kind']}, {bench.dtype}", flush=True)
    is_hub_installed = version_of("keras-hub") != "not installed"
    bench.take_all(plan(options, is_hub_installed))
    if not is_hub_installed:
        bench.parts["KerasHub"] = {"status": "not installed"}
    bench.write()
    print(f"\n{bench.device['kind']}, {bench.dtype}")
    for name, found in bench.parts.items():
        print(line_of(name, found))
    if options.out is not None:
        print(f"kept in {options.out}")


if __name__ == "__main__":
    main()
