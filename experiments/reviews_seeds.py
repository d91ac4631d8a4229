"""What chapter 40's classifier reaches on the reviews, seed by seed.

    python -m experiments.reviews_seeds

Trains the chapter's `TextClassifier` from three starts with four seeds, and
writes data/runs/reviews_seeds.json: percent right on dev. Five minutes.
"""

import json
from pathlib import Path

import keras
import numpy as np

import bertbook as bb
from bertbook import locations
from bertbook.plain import weights
from bertbook.plain.bert import Bert
from bertbook.plain.tasks import TextClassifier, finetune

KEPT = Path(__file__).parent.parent / "data" / "runs" / "reviews_seeds.json"
STARTS = "mini-taught", "mini", "random weights"
SEEDS = 4


def main():
    """Trains the classifiers, and writes the file."""
    train, dev = (bb.load_dataset("reviews", part) for part in ("train", "dev"))
    _, tokenizer = weights.from_folder(locations.find_folder("mini"))
    rows, asked = tokenizer(train["text"]), tokenizer(dev["text"])
    labels, wanted = np.array(train["label"]), np.array(dev["label"])
    kept = {start: [] for start in STARTS}
    for seed in range(SEEDS):
        for start in STARTS:
            keras.utils.set_random_seed(seed)
            model = TextClassifier(Bert(len(tokenizer.pieces)), 2)
            if start != "random weights":
                weights.load(model, locations.find_folder(start))
            finetune(model, rows, labels, None, 6, 3e-4, verbose=0)
            said = model.predict(asked, verbose=0).argmax(axis=-1)
            kept[start].append(round(100 * float(np.mean(said == wanted)), 1))
            print(seed, start, kept[start][-1], flush=True)
            text = json.dumps(kept, indent=1) + "\n"
            KEPT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
