"""Chapter 51's kept runs: what each trick gains, and what training pays for it.

    python -m experiments.faster training [--seeds N]
    python -m experiments.faster timings [--rounds N]

"training" fine-tunes `mini-taught` on `opinions` in several ways, once for
each seed, and keeps the accuracy on dev after the last epoch, and the
processor seconds of a run. "timings" runs the cells of the chapter in more
rounds, and keeps what they measure. Both write data/runs/faster.json.
"""

import argparse
import json
import time

import keras
import nbformat
import numpy as np

import bertbook as bb
from experiments.floors import ROOT
from experiments.results import describe_machine

KEPT = ROOT / "data" / "runs" / "faster.json"
CHAPTER = "51_faster"
START, EPOCHS = "mini-taught", 5
MATRICES = ("query_key_value", "output", "expand", "contract")
WAYS = {  # rows of a batch, learning rate, type of number, LoRA or not
    "8 rows": (8, 3e-4, "float32", False),
    "32 rows": (32, 3e-4, "float32", False),
    "128 rows": (128, 3e-4, "float32", False),
    "128 rows, twice the rate": (128, 6e-4, "float32", False),
    "32 rows, bfloat16": (32, 3e-4, "mixed_bfloat16", False),
    "32 rows, LoRA": (32, 3e-3, "float32", True),
}
QUANTIZED = "32 rows"
QUIET = bb.FinetuningOptions(verbose=False)


def main():
    """Does one part, and writes it into the file beside the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("training", "timings"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    bb.setup()
    if options.part == "training":
        for seed in range(options.seeds):
            for way in WAYS:
                keep_run(way, seed)
    else:
        keep({"timings": measure(options.rounds)})


def read():
    """Returns what is kept so far."""
    return json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}


def keep(part):
    """Writes a part, with the machine."""
    kept = read() | part | {"machine": describe_machine()}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def keep_run(way, seed):
    """Trains in one way with one seed, where that is not kept yet."""
    runs = read().get("training", {})
    done = runs.setdefault(way, {"accuracy": [], "seconds": []})
    if len(done["accuracy"]) > seed:
        return
    train = bb.load_dataset("opinions", "train")
    dev = bb.load_dataset("opinions", "dev")
    rows, rate, dtype, is_lora = WAYS[way]
    keras.utils.set_random_seed(seed)
    model = bb.BertForSequenceClassification.from_pretrained(
        START, num_labels=2, dtype=dtype
    )
    if is_lora:
        bb.add_lora(model, rank=8, layers=MATRICES)
    begin = time.process_time()
    bb.finetune(
        model, train, epochs=EPOCHS, learning_rate=rate, batch_size=rows,
        seed=seed, options=QUIET,
    )  # fmt: skip
    done["seconds"].append(round(time.process_time() - begin, 1))
    done["accuracy"].append(round(bb.evaluate(model, dev)["accuracy"], 4))
    if way == QUANTIZED:
        name = f"{way}, then int8"
        small = runs.setdefault(name, {"accuracy": [], "changed": []})
        small["seconds"] = done["seconds"]
        before = labels(model, dev["text"])
        model.quantize("int8")
        after = labels(model, dev["text"])
        right = np.mean(after == np.array(dev["label"]))
        small["accuracy"].append(round(float(right), 4))
        small["changed"].append(int((before != after).sum()))
    keep({"training": runs})
    print(way, seed, done["accuracy"][-1], done["seconds"][-1], flush=True)


def labels(model, texts):
    """Returns the label of each text, 0 or 1."""
    return np.array([int(row["label"]) for row in model.predict_texts(texts)])


def measure(rounds):
    """Runs the chapter's cells, and returns the ratios in its `gains`.

    The chapter shows what was kept before, so there must be such a file.
    """
    names = {"__name__": CHAPTER}
    path = ROOT / "notebooks" / f"{CHAPTER}.ipynb"
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, CHAPTER, "exec"), names)
        names["ROUNDS"] = rounds  # the chapter has its own, small number
    return names["gains"]


if __name__ == "__main__":
    main()
