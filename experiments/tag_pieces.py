"""Which piece of a word is taught its tag, and which is asked, for a lab.

    python -m experiments.tag_pieces

Fine-tunes `mini-taught` on the 200 sentences with names that ship, with the tag
on the first piece of a word, on the last, or on all, and reads each model at
the first, the last, or all. Writes data/runs/tag_pieces.json: the entity F1 on
the 100 sentences of dev, seed by seed, for lab 43_first_last_or_all. About a
quarter of an hour on two cores.
"""

import json
from pathlib import Path

import keras

import bertbook as bb
from bertbook.batches.ragged import compute
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.tasks.base import Settings
from bertbook.tasks.labels import names_of_tags
from bertbook.tasks.tags import STRATEGIES
from bertbook.tasks.word_tasks import Tags

KEPT = Path(__file__).parent.parent / "data" / "runs" / "tag_pieces.json"
RECIPE = {"epochs": 40, "learning_rate": 5e-4, "batch_size": 16}
SEEDS = 3


def main():
    """Trains the models, and writes the file."""
    train, dev = (bb.load_dataset("tags", part) for part in ("train", "dev"))
    names = dict(enumerate(names_of_tags(train["tags"])))
    scores = {f"{t}, {r}": [] for t in STRATEGIES for r in STRATEGIES}
    for seed in range(SEEDS):
        for taught in STRATEGIES:
            keras.utils.set_random_seed(seed)
            model = bb.BertForTokenClassification.from_pretrained(
                "mini-taught", id2label=names
            )
            how = FinetuningOptions(verbose=False, strategy=taught)
            bb.finetune(model, train, **RECIPE, seed=seed, options=how)
            for read in STRATEGIES:
                task = Tags(model, dev, Settings(strategy=read))
                f1 = task.score(compute(model, task.rows))["f1"]
                scores[f"{taught}, {read}"].append(round(f1, 4))
                print(seed, taught, read, round(f1, 4), flush=True)
    text = {"start": "mini-taught", **RECIPE, "taught, read": scores}
    KEPT.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
