r"""What a larger published model answers to the sentences of chapters 40 to 43.

    BERTBOOK_DATA=FOLDER BERTBOOK_MINILM=FOLDER \
        python -m experiments.larger_model [TASK ...]

Fine-tunes all-MiniLM-L6-v2, a BERT of 6 layers and width 384, on a public set
for each task, by `bb.finetune`, and writes what it answers to the book's own
texts to data/runs/larger_model.json, with the recipe and the figures on dev of
the public set. A fine-tuned model stays in local/larger, so that a chapter with
new texts needs no new training.
"""

import json
import re
import sys
import time

import keras

import bertbook as bb
from bertbook.batches.ragged import compute
from bertbook.cli.finetuning import head_for
from bertbook.tasks.base import Settings
from bertbook.tasks.metrics import answer_f1
from bertbook.tasks.word_tasks import Tags
from experiments.floors import both_splits, with_answers, written_in
from experiments.results import (
    BRAIN,
    ROOT,
    SIX,
    Plan,
    describe_machine,
    draw_rows,
    make_model,
    teach,
)

KEPT = ROOT / "data" / "runs" / "larger_model.json"
TUNED = ROOT / "local" / "larger"
MODEL = {
    "name": "all-MiniLM-L6-v2",
    "layers": 6,
    "hidden_size": 384,
    "before": (
        "distilled from a larger BERT, then tuned by its makers on a billion "
        "pairs of texts, questions of SQuAD with their passages among them"
    ),
}


LESSONS = {
    "opinions": Plan(SIX, "sst2", 2, 1e-4, 32, 128, dtype=BRAIN),
    "tags": Plan(SIX, "conll2003", 3, 1e-4, 16, 128, dtype=BRAIN),
    "questions": Plan(SIX, "squad", 2, 1e-4, 16, 256, 25_000, dtype=BRAIN),
    "pairs": Plan(SIX, "qnli", 1, 1e-4, 32, 128, dtype=BRAIN),
}
SAID = "dataset", "epochs", "learning_rate", "batch_size", "max_length", "dtype"


def main():
    """Asks the models that are named, and writes the file."""
    for task in sys.argv[1:] or LESSONS:
        found = ask(task)
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}
        kept["model"] = MODEL
        kept[task] = found
        text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
        KEPT.write_text(text, encoding="utf-8")
        print(task, found["lesson"], flush=True)


def ask(task):
    """Returns the lesson of a task, and the answers of the model after it."""
    model, facts = tuned(task)
    return {"lesson": facts, **ANSWERS[task](model)}


def tuned(task):
    """Returns the fine-tuned model, and what its lesson was."""
    plan, folder = LESSONS[task], TUNED / task
    path = folder / "facts.json"
    if not path.is_file():
        start = time.perf_counter()
        train, dev = both_splits(plan.dataset)
        if plan.rows is not None:
            train = draw_rows(train, plan.rows, seed=0)
        keras.utils.set_random_seed(0)
        model = make_model(plan, train)
        teach(model, train, plan, folder)
        seconds = round(time.perf_counter() - start)
        facts = {name: getattr(plan, name) for name in SAID} | {
            "rows": len(next(iter(train.values()))),
            "dev_rows": len(next(iter(dev.values()))),
            "dev": rounded(bb.evaluate(model, dev, max_length=plan.max_length)),
            "seconds": seconds,
            "machine": describe_machine(),
        }
        path.write_text(json.dumps(facts) + "\n", encoding="utf-8")
    kind, _ = head_for(bb.load_dataset(plan.dataset, "dev"))
    return kind.from_pretrained(folder), json.loads(path.read_text("utf-8"))


def rounded(scores):
    """Returns metrics with four decimals."""
    return {name: round(value, 4) for name, value in scores.items()}


def judge_opinions(model):
    """Returns what it says of dev, and of chapter 40's own sentences."""
    dev = bb.load_dataset("opinions", "dev")
    own = written_in("40_one_sentence", "own")["own"]

    def said(texts):
        return [
            round(row["score"] if row["label"] == 1 else 1 - row["score"], 3)
            for row in model.predict_texts(texts)
        ]

    negation = written_in("40_one_sentence", "NEGATION")["NEGATION"]
    train = bb.load_dataset("sst2", "train")
    praise = {"with a negation": [], "without": []}
    for text, label in zip(train["text"], train["label"], strict=True):
        found = re.search(negation, text, re.IGNORECASE)
        praise["with a negation" if found else "without"].append(label)
    right = bb.evaluate(model, dev)["accuracy"]
    return {
        "accuracy": round(right, 4),
        "good": said(dev["text"]),
        "own": list(zip(own, said(own), strict=True)),
        "praise_in_sst2": {
            name: round(sum(labels) / len(labels), 3)
            for name, labels in praise.items()
        },
    }


def tag_names(model):
    """Returns the tags that it gives to dev, and their scores."""
    dev = bb.load_dataset("tags", "dev")
    reached = bb.evaluate(model, dev)
    task = Tags(model, dev, Settings())
    outputs = compute(model, task.rows)
    return {
        "scores": rounded(reached),
        "tags": [" ".join(tags) for tags in task.predictions(outputs)],
    }


def answer_questions(model):
    """Returns its answers to the samples and to the texts of chapter 42."""
    train, dev = both_splits("questions")
    data = with_answers({name: train[name] + dev[name] for name in train})
    names = written_in("42_questions", "keeper", "asked")
    asked = names["asked"]
    scores = score(model, data["question"], data["context"], data["answers"])
    about_keeper = model.predict_answers(
        list(asked), [names["keeper"]] * len(asked)
    )
    return {
        "f1": scores,
        "keeper": [
            [question, found["text"]]
            for question, found in zip(asked, about_keeper, strict=True)
        ],
        "traps": read_traps(model),
    }


def score(model, questions, contexts, answers):
    """Returns the F1 of each answer, rounded."""
    found = model.predict_answers(questions, contexts)
    return [
        round(max(answer_f1(guess["text"], one["text"]) for one in right), 4)
        for guess, right in zip(found, answers, strict=True)
    ]


def read_traps(model):
    """Returns F1 on the passages that lure, by the way they are put."""
    names = written_in("labs/42_does_it_read", "traps", "forms")
    lines = names["traps"].strip().split("\n")
    asides = []
    for i in range(0, len(lines), 4):
        passage, question, pair, lure = lines[i : i + 4]
        first, second = pair.split(" | ")
        for right, other in ((first, second), (second, first)):
            asides.append(
                {
                    "question": question,
                    "right": right,
                    "other": other,
                    "passage": passage.replace(first, right),
                    "lure": lure.format(other),
                }
            )
    return {
        name: score(
            model,
            [row["question"] for row in asides],
            [form.format(**row) for row in asides],
            [[{"text": row["right"]}] for row in asides],
        )
        for name, form in names["forms"].items()
        if name != "harmless before"  # never asked of the larger model
    }


def judge_pairs(model):
    """Returns what it says of the pairs about the clock in chapter 41."""
    names = written_in("41_two_sentences", "questions", "sentence")
    questions = names["questions"]
    found = model.predict_texts(questions, [names["sentence"]] * len(questions))
    return {
        "clock": [
            [question, row["label"], round(row["score"], 3)]
            for question, row in zip(questions, found, strict=True)
        ]
    }


ANSWERS = {
    "opinions": judge_opinions,
    "tags": tag_names,
    "questions": answer_questions,
    "pairs": judge_pairs,
}

if __name__ == "__main__":
    main()
