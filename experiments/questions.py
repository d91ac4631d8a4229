"""Questions: `mini` on SQuAD in minutes, and what `mini-squad` can still learn.

    BERTBOOK_DATA=FOLDER python -m experiments.questions [NAME ...]

Writes data/runs/questions.json, for chapter 42 and lab 42_no_answer.
"from mini": the F1 of `mini` on 500 dev questions of SQuAD before and after one
epoch over 14,000 others, with the code and the settings of the chapter's cell,
and how long that took. "limits": the F1 of `mini-squad`, always answering, on
2,000 dev questions of SQuAD, by the longest answer that it may give. "halfway":
the F1 of `mini-squad` on the dev questions about the shelf, untouched, after
the chapter's training with several seeds, and with the mean of both weights.
The first two need SQuAD, and no text of it is kept.
"""

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np

import bertbook as bb
from bertbook import locations
from bertbook.batches.ragged import compute
from bertbook.plain import tasks, weights
from bertbook.plain.bert import Bert
from bertbook.tasks import spans
from bertbook.tasks.base import Settings
from bertbook.tasks.metrics import answer_f1
from bertbook.tasks.word_tasks import Questions
from experiments.floors import written_in

KEPT = Path(__file__).parent.parent / "data" / "runs" / "questions.json"
SEEDS = 4
LIMITS = 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 50


def main():
    """Measures what is named, and writes the file."""
    for name in sys.argv[1:] or EXPERIMENTS:
        found = EXPERIMENTS[name]()
        print(name, found, flush=True)
        # Read late: another process may have measured other names.
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}
        text = json.dumps(kept | {name: found}, indent=1, sort_keys=True)
        KEPT.write_text(text + "\n", encoding="utf-8")


def from_chapter(*names):
    """Returns functions of chapter 42, on the package's `plain`."""
    _, tok = weights.from_folder(locations.find_folder("mini"))
    known = {
        "np": np,
        "bb": bb,
        "tok": tok,
        "windows": tasks.windows,
        "label_span": tasks.label_span,
        "best_span": tasks.best_span,
        "answer_f1": answer_f1,
    }
    code = written_in("42_questions", *names, **known)
    return [code[name] for name in names]


def start(folder):
    """Returns a model of spans with the weights of a folder."""
    path = locations.find_folder(folder) / "config.json"
    config = json.loads(path.read_text("utf-8"))
    model = tasks.SpanModel(Bert(config["vocab_size"]))
    weights.load(model, locations.find_folder(folder))
    return model


def train_mini():
    """Trains `mini` as the chapter does."""
    some, cut, read, f1_of = from_chapter("some", "cut", "read", "f1_of")
    many, held = some("train", 14_000), some("dev", 500)
    keras.utils.set_random_seed(0)
    model = start("mini")
    asked = cut(held)
    rows, labels, *_ = cut(many, whole=True)
    before = f1_of(read(model, held, asked), held).mean()
    clock, work = time.perf_counter(), time.process_time()
    tasks.finetune(model, rows, labels, epochs=1, peak=5e-4, verbose=0)
    clock, work = time.perf_counter() - clock, time.process_time() - work
    return {
        "questions": len(many["question"]),
        "rows": len(rows["input_ids"]),
        "dev": len(held["question"]),
        "before": round(float(before), 4),
        "after": round(float(f1_of(read(model, held, asked), held).mean()), 4),
        "seconds": round(clock),
        "processor_seconds": round(work),
    }


def train_further():
    """Trains `mini-squad` on the shelf, as the chapter does, with each seed."""
    names = "answered", "cut", "read", "f1_of"
    answered, cut, read, f1_of = from_chapter(*names)
    train, dev = answered("train"), answered("dev")
    rows, asked = cut(train, whole=True), cut(dev)
    model, found = start("mini-squad"), {"fine-tuned": [], "halfway": []}

    def score():
        return round(float(f1_of(read(model, dev, asked), dev).mean()), 3)

    old = model.get_weights()
    found["untouched"] = score()
    for seed in range(SEEDS):
        keras.utils.set_random_seed(seed)
        model.set_weights(old)
        tasks.finetune(model, *rows[:2], epochs=3, peak=3e-4, verbose=0)
        found["fine-tuned"].append(score())
        new = model.get_weights()
        pairs = zip(old, new, strict=True)
        model.set_weights([(one + other) / 2 for one, other in pairs])
        found["halfway"].append(score())
        print(seed, found, flush=True)
    return found


def try_limits():
    """Measures `mini-squad` with several limits on the length of an answer."""
    model = bb.BertForQuestionAnswering.from_pretrained("mini-squad")
    data = bb.load_dataset("squad", "dev")
    drawn = np.random.default_rng(0).permutation(len(data["question"]))[:2_000]
    data = {name: [column[i] for i in drawn] for name, column in data.items()}
    task = Questions(model, data, Settings())
    outputs, scores = list(compute(model, task.rows)), []
    first = 0
    for windowed, answers in zip(task.contexts, data["answers"], strict=True):
        parts = outputs[first : first + len(windowed.windows)]
        first += len(parts)
        logits = [
            [part[name] for part in parts]
            for name in ("start_logits", "end_logits")
        ]
        said = [
            spans.rank_answers(windowed, *logits, 1, limit)[0].text
            for limit in LIMITS
        ]
        scores.append(
            [max(answer_f1(text, a["text"]) for a in answers) for text in said]
        )
    scores = np.array(scores)
    gap = scores - scores[:, [LIMITS.index(30)]]
    return {
        "questions": len(scores),
        "limits": LIMITS,
        "f1": scores.mean(axis=0).round(4).tolist(),
        "ahead_of_30": gap.mean(axis=0).round(4).tolist(),
        "error": (gap.std(axis=0, ddof=1) / len(gap) ** 0.5).round(4).tolist(),
    }


EXPERIMENTS = {
    "from mini": train_mini,
    "limits": try_limits,
    "halfway": train_further,
}


if __name__ == "__main__":
    bb.setup()
    main()
