"""Row by row on SST-2: which rows several classifiers get right.

    BERTBOOK_DATA=FOLDER python -m experiments.which_is_better [--minutes N]

For each seed 500 rows of the training set are drawn, on which every classifier
learns: `mini-taught` and `mini` with the recipe of `experiments/results.py`,
and counted words and characters whose settings are chosen by cross-validation
on the same 500 rows. Writes data/runs/which_is_better.json: for each classifier
and seed which of the 872 rows of dev are right, as bits in hexadecimal digits.
No text of the set is kept. After N minutes no further run begins, and the same
command goes on where it stopped.
"""

import argparse
import json
import time
from itertools import product

import keras
import numpy as np

import bertbook as bb
from bertbook.finetuning.finetune import FinetuningOptions
from experiments.results import (
    BRAIN,
    ROOT,
    Plan,
    bag_of_words,
    draw_rows,
    make_model,
)

KEPT = ROOT / "data" / "runs" / "which_is_better.json"
SEEDS, ROWS, EPOCHS, RATE = 4, 500, 8, 3e-4
STARTS = "mini-taught", "mini"
STRENGTHS = (0.1, 1, 10, 100)  # of logistic regression
COUNTED = "words", "words, tuned", "words and characters, tuned"
WORDS, TUNED, BOTH = COUNTED


def main():
    """Does what is missing, and writes the file after each run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=float("inf"))
    end = time.time() + 60 * parser.parse_args().minutes
    train, dev = (bb.load_dataset("sst2", part) for part in ("train", "dev"))
    labels = np.array(dev["label"])
    kept = {"dataset": "sst2", "rows": ROWS, "epochs": EPOCHS, "rate": RATE}
    kept |= {"dev_rows": len(labels), "right": {}, "chosen": {}}
    if KEPT.is_file():
        kept = json.loads(KEPT.read_text("utf-8"))
    runs = [*product(range(SEEDS), COUNTED), *product(range(SEEDS), STARTS)]
    for seed, name in runs:
        found = kept["right"].setdefault(name, [])
        if len(found) > seed or time.time() > end:
            continue
        lesson = draw_rows(train, ROWS, seed)
        if name in STARTS:
            said = fine_tuned(name, seed, lesson, dev)
        else:
            said, chosen = counted(name, lesson, dev)
            kept["chosen"].setdefault(name, []).append(chosen)
        right = said == labels
        found.append(np.packbits(right).tobytes().hex())
        print(seed, name, f"{right.mean():.4f}", flush=True)
        text = json.dumps(kept, indent=1) + "\n"
        KEPT.write_text(text, encoding="utf-8")


def fine_tuned(start, seed, lesson, dev):
    """Returns what a fine-tuned model says to each row of dev."""
    keras.utils.set_random_seed(seed)
    model = make_model(Plan(start, "sst2", dtype=BRAIN), lesson)
    bb.finetune(
        model,
        lesson,
        epochs=EPOCHS,
        learning_rate=RATE,
        max_length=128,
        seed=seed,
        options=FinetuningOptions(verbose=False),
    )
    rows = [row["label"] for row in model.predict_texts(dev["text"])]
    return np.array(rows)


def counted(name, lesson, dev):
    """Returns what counted words say to each row of dev, and the settings."""
    from sklearn.model_selection import GridSearchCV

    model = bag_of_words()
    grid = {}
    if name == BOTH:
        model.steps[0] = (model.steps[0][0], words_and_characters())
    if name != WORDS:
        grid["logisticregression__C"] = STRENGTHS
    if name == TUNED:
        grid["tfidfvectorizer__ngram_range"] = ((1, 1), (1, 2))
    search = GridSearchCV(model, grid, cv=5)
    search.fit(lesson["text"], lesson["label"])
    return search.predict(dev["text"]), search.best_params_


def words_and_characters():
    """Returns what counts words, pairs of words, and parts of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    return make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True
        ),
    )


if __name__ == "__main__":
    bb.setup()
    main()
