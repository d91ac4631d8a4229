"""What models with random weights reach: the floors of chapters 41 and 42.

    [BERTBOOK_DATA=FOLDER] python -m experiments.floors [NAME ...]

Writes data/runs/floors.json: for each experiment the scores of ten models of
`mini`'s size with random weights, and the floor that the chapter asks its own
model to clear, their mean and three standard deviations. With names, only
these are measured anew. "squad" needs the data set, the others what ships.
"pairs_from_qnli" is no floor: it is what `mini-qnli` reaches as a start.
"""

import ast
import json
import sys
from pathlib import Path

import keras
import nbformat
import numpy as np

import bertbook as bb
from bertbook.batches.ragged import compute
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.tasks.base import Settings
from bertbook.tasks.metrics import answer_f1
from bertbook.tasks.word_tasks import Questions
from experiments.results import Plan, draw_rows, make_model

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "data" / "runs" / "floors.json"
QUIET = FinetuningOptions(verbose=False)
SEEDS = 10


def main():
    """Measures what is named, and writes the file."""
    names = sys.argv[1:] or list(EXPERIMENTS)
    for name in names:
        scores = []
        for seed in range(SEEDS):
            keras.utils.set_random_seed(seed)
            scores.append(round(float(EXPERIMENTS[name](seed)), 4))
            print(name, seed, scores[-1], flush=True)
        # Read late: another process may have measured other names.
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}
        kept[name] = {"scores": scores, "floor": floor_of(scores)}
        text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
        KEPT.write_text(text, encoding="utf-8")


def floor_of(scores):
    """Returns the mean of scores and three standard deviations."""
    return round(float(np.mean(scores) + 3 * np.std(scores, ddof=1)), 4)


def start(data):
    """Returns a model for a data set, with random weights."""
    return make_model(Plan("scratch", "", seeds=1), data)


def train_pairs(seed):
    """Returns the best accuracy on dev of three epochs on sample pairs."""
    return best_accuracy("pairs", batch_size=16, seed=seed)


def train_choices(seed):
    """Returns the best accuracy on dev of three epochs on sample choices."""
    return best_accuracy("choices", batch_size=8, seed=seed)


def train_pairs_from_qnli(seed):
    """Returns the best accuracy of three epochs from `mini-qnli`."""
    model = bb.BertForSequenceClassification.from_pretrained(
        "mini-qnli", num_labels=3
    )
    settings = {"batch_size": 16, "learning_rate": 1e-4, "seed": seed}
    return best_accuracy("pairs", model, **settings)


def best_accuracy(name, model=None, **settings):
    """Returns the best accuracy on dev, as a chapter trains.

    Without a model, one with random weights.
    """
    train, dev = both_splits(name)
    recipe = {"epochs": 3, "learning_rate": 3e-4, "options": QUIET, **settings}
    history = bb.finetune(model or start(train), train, dev, **recipe)
    return max(history["dev_accuracy"])


def answer_keeper(seed):
    """Returns F1 on the questions about the keeper in chapter 42."""
    names = written_in("42_questions", "keeper", "asked")
    asked = names["asked"]
    contexts = [names["keeper"]] * len(asked)
    return mean_f1(list(asked), contexts, list(asked.values()))


def answer_traps(seed):
    """Returns F1 on the passages of lab 42_does_it_read that stand alone."""
    lines = (
        written_in("labs/42_does_it_read", "traps")["traps"].strip().split("\n")
    )
    wanted = [line.split(" | ")[0] for line in lines[2::4]]
    return mean_f1(lines[1::4], lines[::4], wanted)


def answer_samples(seed):
    """Returns F1 on the sample questions that have an answer."""
    train, dev = both_splits("questions")
    data = {name: train[name] + dev[name] for name in train}
    return score_answers(start(data), with_answers(data))


def answer_squad(seed):
    """Returns F1 on 500 questions of SQuAD's development set."""
    data = draw_rows(bb.load_dataset("squad", "dev"), 500, seed)
    return bb.evaluate(start(data), data, max_length=384)["f1"]


def both_splits(name):
    """Returns what a sample set holds to learn from, and to measure on."""
    return [bb.load_dataset(name, split) for split in ("train", "dev")]


def with_answers(data):
    """Returns the questions that have an answer."""
    keep = [number for number, found in enumerate(data["answers"]) if found]
    return {name: [column[i] for i in keep] for name, column in data.items()}


def score_answers(model, data):
    """Returns F1 where the model has to answer."""
    task = Questions(model, data, Settings())
    return task.score(compute(model, task.rows))["f1"]


def mean_f1(questions, contexts, wanted):
    """Returns the mean F1 of a model with random weights."""
    model = start({"answers": wanted})
    found = model.predict_answers(questions, contexts)
    pairs = zip(found, wanted, strict=True)
    return np.mean([answer_f1(guess["text"], right) for guess, right in pairs])


def written_in(chapter, *names, **known):
    """Returns what a chapter assigns or defines, without running the rest.

    Args:
        chapter: The chapter's name.
        names: Of texts and functions; what a reader has to finish is left out.
        known: What these need, such as a module that the chapter imports.
    """
    path = ROOT / "notebooks" / f"{chapter}.ipynb"
    found = {"book": lambda answer: answer, **known}  # a decorator
    for cell in nbformat.read(path, as_version=4).cells:
        is_code = cell.cell_type == "code"
        if is_code and "your-turn" not in cell.metadata.get("tags", []):
            for line in ast.parse(cell.source).body:
                targets = getattr(line, "targets", [getattr(line, "target", 0)])
                name = getattr(targets[0], "id", getattr(line, "name", None))
                if name in names:
                    exec(ast.unparse(line), found)
    return {name: found[name] for name in names}


EXPERIMENTS = {
    "pairs": train_pairs,
    "pairs_from_qnli": train_pairs_from_qnli,
    "choices": train_choices,
    "keeper": answer_keeper,
    "traps": answer_traps,
    "samples": answer_samples,
    "squad": answer_squad,
}

if __name__ == "__main__":
    main()
