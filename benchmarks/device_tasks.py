"""Fine-tuning and inference on a device, with random weights and texts."""

import itertools
import statistics
import time

import numpy as np

import bertbook as bb
from benchmarks import chips
from benchmarks.device_training import (
    LEAST_STEPS,
    MOST_STEPS,
    WARM_UP,
    draw_batch,
    time_function,
)
from bertbook.text.vocabulary import SPECIAL_TOKENS

SST2_ROWS = 67_349
# Tokens of the texts of SST-2, [CLS] and [SEP] counted: every twentieth.
SST2_LENGTHS = (4, 4, 5, 5, 6, 7, 7, 8, 9, 10, 11, 12, 14, 16, 17, 20, 23, 26,
                31, 40)  # fmt: skip
BATCH_SIZE, EPOCHS = 32, 4  # of fine-tuning; the first epoch compiles
INFERENCE_ROWS, INFERENCE_LENGTH = 256, 128


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


def measure_finetuning(bench, size, length, lengths, count):
    """Times epochs of `bb.finetune`, the first one left out.

    Args:
        bench: The `Bench`.
        size: A published size.
        length: Tokens that texts are cut to.
        lengths: The tokens of the texts, in turn.
        count: How many texts.
    """
    if bench.is_dry:  # one shape is compiled
        lengths = [length for length in lengths if length <= 16] or lengths
        count = 64
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
