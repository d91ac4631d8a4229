"""Adapters beside all weights, and integers beside floats, on SST-2.

    BERTBOOK_DATA=FOLDER BERTBOOK_MINILM=FOLDER python -m experiments.lora \
        [--rows N] [--epochs N] [--rank N] [--rate R] [--seed N] \
        [--dev-rows N] [--ways all lora] [--layers NAME ...] [--out FILE]

A published BERT of 6 layers and width 384 is fine-tuned on the first N rows of
a shuffled training set, once with all weights and once with `add_lora`. Kept
are accuracy on dev, the parameters that were trained, the megabytes of what
has to be kept, and the minutes; and the accuracy of the first in "int8".
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import bertbook as bb

KEPT = Path(__file__).parent / "results" / "lora.json"
RATES = {"all": 5e-5, "lora": 1e-3}  # adapters need much larger steps
# All matrices of a block: at this width few rows of one are not enough.
LAYERS = ("query_key_value", "output", "expand", "contract")


def main():
    """Does both runs, and keeps and prints what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--dev-rows", type=int, default=None)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--rate", type=float, default=RATES["lora"])
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--ways", nargs="+", choices=RATES, default=list(RATES))
    parser.add_argument("--layers", nargs="+", default=list(LAYERS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bb.setup(options.seed)
    train = draw(bb.load_dataset("sst2", "train"), options.rows, options.seed)
    dev = bb.load_dataset("sst2", "dev")
    dev = {name: rows[: options.dev_rows] for name, rows in dev.items()}
    results = {"options": {**vars(options)}}
    del results["options"]["out"]
    for way in options.ways:
        results[way] = tune(way, train, dev, options)
        print(way, results[way])
    options.out.parent.mkdir(exist_ok=True)
    text = json.dumps(results, indent=2) + "\n"
    options.out.write_text(text, encoding="utf-8")


def draw(data, count, seed):
    """Returns some rows of a data set, all for None, in a drawn order."""
    order = np.random.default_rng(seed).permutation(len(data["text"]))[:count]
    return {name: [rows[i] for i in order] for name, rows in data.items()}


def tune(way, train, dev, options):
    """Fine-tunes one model, and returns what it reaches and costs."""
    model = bb.BertForSequenceClassification.from_pretrained(
        os.environ["BERTBOOK_MINILM"], num_labels=2
    )
    if way == "lora":
        bb.add_lora(model, options.rank, layers=options.layers)
    trained = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    start = time.perf_counter()
    bb.finetune(
        model,
        train,
        dev,
        epochs=options.epochs,
        learning_rate=options.rate if way == "lora" else RATES[way],
        max_length=128,
        seed=options.seed,
    )
    minutes = (time.perf_counter() - start) / 60
    results = {
        "accuracy": bb.evaluate(model, dev, max_length=128)["accuracy"],
        "parameters_trained": trained,
        "parameters": model.count_params(),
        "megabytes": megabytes(model, way),
        "minutes": round(minutes, 2),
    }
    if way == "all":
        model.quantize("int8")
        scores = bb.evaluate(model, dev, max_length=128)
        results["accuracy_int8"] = scores["accuracy"]
    return results


def megabytes(model, way):
    """Returns the size of the file of an adapter, or of all weights."""
    with tempfile.TemporaryDirectory() as folder:
        save = model.save_adapter if way == "lora" else model.save_pretrained
        save(Path(folder))
        files = Path(folder).glob("*.safetensors")
        return round(sum(f.stat().st_size for f in files) / 1e6, 2)


if __name__ == "__main__":
    main()
