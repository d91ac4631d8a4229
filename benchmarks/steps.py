"""How much faster is pre-training with several steps per call of the device?

    KERAS_BACKEND=jax python -m benchmarks.steps [SIZE:ROWS:LENGTH ...]

Times `fit` as `bb.pretrain` calls it, with 10 and 100 steps per call and with
one, in turns. Batches are random and made before. `narrow` has two layers of
width 32 and a small vocabulary: what one step costs beside its arithmetic.
"""

import itertools
import sys

from benchmarks import turns
from benchmarks.device_training import draw_pretraining
from bertbook.batches.feeding import to_steps
from bertbook.config import BertConfig
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
    make_model,
)

CASES = ("narrow:16:32", "tiny:4:32")
COUNTS = (10, 100)
STEPS = {"narrow": 2_000}  # of a measurement; of any other size 100
NARROW = {
    "vocab_size": 1_000,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
}


def main():
    """Measures every case and keeps the results."""
    cases = sys.argv[1:] or CASES
    results = {case: measure(*case.split(":")) for case in cases}
    turns.save("steps", results, ["bertbook", "keras", "jax"])


def measure(size, rows, length):
    """Returns the ratios of one step per call to several.

    Args:
        size: A published size, or "narrow".
        rows: The rows of a batch, as text.
        length: The tokens of a row, as text.
    """
    config = BertConfig(**NARROW) if size == "narrow" else None
    config = config or BertConfig.named(size)
    batches = [
        next(to_steps(draw_pretraining(
            int(rows), int(length), config.vocab_size, seed)))
        for seed in range(4)
    ]  # fmt: skip
    steps = STEPS.get(size, 100)
    one = fitting(config, batches, 1, steps)
    results = {}
    for count in COUNTS:
        several = fitting(config, batches, count, steps)
        ratio = turns.in_turns(several, {"one": one})["one"]
        turns.report(f"{size}, {rows} x {length}, {count} steps", ratio)
        results[str(count)] = ratio | {
            "steps_per_second": round(steps / ratio["seconds_ours"], 1)
        }
    return results


def fitting(config, batches, count, steps):
    """Returns a function that trains for some steps, `count` per call."""
    recipe = PretrainingRecipe(steps=10_000, learning_rate=1e-4)
    model = make_model(config, config, recipe)
    compile_for_pretraining(model, recipe, count)

    def fit():
        endless = (batch for batch in itertools.cycle(batches))
        model.fit(endless, steps_per_epoch=steps, shuffle=False, verbose=0)

    return fit


if __name__ == "__main__":
    main()
