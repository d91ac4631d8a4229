"""What does bfloat16 change in fine-tuning: the time, and the accuracy?

    BERTBOOK_DATA=FOLDER python -m benchmarks.finetuning_dtype MODEL [ROWS]

MODEL is a folder with a BERT in the layout of Hugging Face, FOLDER holds sst2.
First steps on the same 100 batches of SST-2 in turns, in float32 and in what
`dtype="auto"` chooses; then three seeds of one epoch over ROWS rows, 8,000 if
none are named, in both.
"""

import statistics
import sys

import numpy as np

import bertbook as bb
from benchmarks import turns
from benchmarks.finetuning import BATCH_SIZE, LENGTH, ROUNDS, STEPS, Turn
from bertbook.batches.ragged import draw_batches
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.finetuning.run import compile_model
from bertbook.runtime import choose_dtype
from bertbook.tasks.base import Settings
from bertbook.tasks.text_tasks import Texts

SEEDS = 3
RATE = 5e-5


def main():
    """Times the steps, trains the seeds and keeps the results."""
    bb.setup()
    import keras

    folder = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 8_000
    auto = choose_dtype().path
    results = time_steps(folder, auto)
    for name, result in results.items():
        turns.report(name, result)
    results["accuracy"] = train_seeds(folder, (auto, "float32"), count)
    backend = keras.backend.backend()
    turns.save(
        f"finetuning_dtype_{backend}", results, ["bertbook", "keras", backend]
    )


def time_steps(folder, auto):
    """Times rounds of steps on the same batches in both types of numbers."""
    turn = {}
    for dtype in (auto, "float32"):
        model = load(folder, dtype)
        task = Texts(model, bb.load_dataset("sst2", "train"), Settings())
        task.learn()
        compile_model(
            model,
            task,
            {"learning_rate": RATE},
            FinetuningOptions(),
            10 * STEPS,
        )
        epoch = draw_batches(task.rows.lengths(), BATCH_SIZE, LENGTH, (0, 0))
        full = [batch for batch in epoch if len(batch[0]) == BATCH_SIZE][:STEPS]
        batches = [task.rows.step(*batch, BATCH_SIZE) for batch in full]
        Turn(model, batches, rounds=1)()  # every shape has been seen
        turn[dtype] = Turn(model, batches)
    return turns.in_turns(
        turn[auto], {f"a step of SST-2, float32 over {auto}": turn["float32"]},
        ROUNDS,
    )  # fmt: skip


def train_seeds(folder, dtypes, count):
    """Returns the accuracies on dev of some seeds, for each type."""
    train, dev = (bb.load_dataset("sst2", split) for split in ("train", "dev"))
    found = {dtype: [] for dtype in dtypes}
    for seed in range(SEEDS):
        rows = np.random.default_rng(seed).permutation(len(train["label"]))
        part = {
            name: [column[i] for i in rows[:count]]
            for name, column in train.items()
        }
        for dtype, scores in found.items():
            model = load(folder, dtype, seed)
            bb.finetune(
                model, part, epochs=1, learning_rate=RATE, seed=seed,
                options=FinetuningOptions(verbose=False),
            )  # fmt: skip
            scores.append(bb.evaluate(model, dev)["accuracy"])
            print(f"seed {seed}, {dtype}: {scores[-1]:.4f}", flush=True)
    means = {d: statistics.mean(scores) for d, scores in found.items()}
    error = max(statistics.stdev(s) for s in found.values()) / SEEDS**0.5
    print(f"means {means}, standard error {error:.4f}")
    return {"rows": count, "scores": found, "standard_error": error}


def load(folder, dtype, seed=0):
    """Returns a classifier with a head drawn by a seed."""
    import keras

    keras.utils.set_random_seed(seed)
    return bb.BertForSequenceClassification.from_pretrained(
        folder, num_labels=2, dtype=dtype
    )


if __name__ == "__main__":
    main()
