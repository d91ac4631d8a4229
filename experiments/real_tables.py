r"""Tables of the real world: when does a BERT beat counted words? Chapter 44.

    BERTBOOK_DATA=FOLDER BERTBOOK_MINILM=FOLDER \
        python -m experiments.real_tables [vite=GIT_FOLDER ...] \
        [--minutes N] [--start NAME]

Four tables: from the log of a repository with conventional commits, which type
(fix, docs, ...) the author gave a commit, by the rest of its subject line; and
the sentences of SST-2 and of CoLA. A number of rows is drawn for each seed, and
every start learns from the same: words and characters that are counted, with
settings chosen by cross-validation; a frozen MiniLM, of whose vectors logistic
regression learns; `mini-taught` and MiniLM, fine-tuned, the epoch chosen on a
fifth of the rows. Commits are measured on the newest ones, the others on dev.

Writes data/runs/real_tables.json: scores, and how many rows one start alone got
right beside the counted words; no text. After N minutes no further run begins,
and the same command goes on where it stopped; with a start, only its runs.
"""

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from itertools import product

import keras
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bertbook as bb
from bertbook.tasks import metrics
from experiments.results import (
    ROOT,
    SIX,
    Plan,
    describe_machine,
    draw_rows,
    folder_of,
    make_model,
)
from experiments.which_is_better import BOTH, counted

KEPT = ROOT / "data" / "runs" / "real_tables.json"
SEEDS, ROWS, NEWEST = 3, (200, 1_000), 1_000
FROZEN, TAUGHT, TUNED = "MiniLM, frozen", "mini-taught", "MiniLM"
STARTS = BOTH, FROZEN, TAUGHT, TUNED
RECIPES = {
    TAUGHT: {"learning_rate": 3e-4, "batch_size": 32},
    TUNED: {"learning_rate": 1e-4, "batch_size": 16},
}
READ = 8_000  # texts in all epochs together, but three epochs at least
STRENGTHS = 0.01, 0.1, 1, 10  # of logistic regression on vectors
PUBLIC = "sst2", "cola"
COMMIT = re.compile(r"([a-z]+)(?:\([^)]*\))?!?: (.+)")
PULL_REQUEST = re.compile(r"\s*\(#\d+\)$")
TYPES = "feat", "fix", "docs", "refactor", "test", "chore", "perf", "ci"
FEWEST = 200  # commits of a type


def main():
    """Does what is missing, and writes the file after each run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repositories", nargs="*")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--start", choices=STARTS)
    options = parser.parse_args()
    starts = [options.start] if options.start else STARTS
    end = time.time() + 60 * options.minutes
    named = [word.partition("=")[::2] for word in options.repositories]
    tables = {name: commits(folder) for name, folder in named}
    tables |= {name: public(name) for name in PUBLIC}
    for seed, start, rows, name in product(range(SEEDS), starts, ROWS, tables):
        key = {"table": name, "rows": rows, "start": start, "seed": seed}
        done = any(key.items() <= run.items() for run in kept()["runs"])
        if done or time.time() > end:
            continue
        train, test, facts = tables[name]
        run = key | measure(start, draw_rows(train, rows, seed), test, seed)
        print(*key.values(), run["accuracy"], flush=True)
        found = kept()  # anew: another process may have written
        found["tables"][name] = facts
        found["runs"] = sorted([*found["runs"], run], key=place)
        text = json.dumps(found, indent=1) + "\n"
        KEPT.write_text(text, encoding="utf-8")


def kept():
    """Returns what is kept so far."""
    if KEPT.is_file():
        return json.loads(KEPT.read_text("utf-8"))
    return {"tables": {}, "runs": []}


def place(run):
    """Returns where a run stands among the others."""
    return run["table"], run["rows"], STARTS.index(run["start"]), run["seed"]


def commits(folder):
    """Returns the older commits of a branch, the newest, and what they are."""
    command = ["git", "--git-dir", folder, "log", "--no-merges"]
    done = subprocess.run(
        [*command, "--format=%s"], capture_output=True, text=True, check=True
    )
    data, seen = {"text": [], "label": []}, set()
    for subject in done.stdout.splitlines():  # the newest first
        found = COMMIT.fullmatch(PULL_REQUEST.sub("", subject.strip()))
        if not found or found[1] not in TYPES or found[2].lower() in seen:
            continue
        seen.add(found[2].lower())
        data["text"].append(found[2])
        data["label"].append(found[1])
    counts = Counter(data["label"])
    kinds = sorted(kind for kind in counts if counts[kind] >= FEWEST)
    keep = [row for row, kind in enumerate(data["label"]) if kind in kinds]
    parts = keep[NEWEST:], keep[:NEWEST]
    older, newest = (
        {name: [column[row] for row in part] for name, column in data.items()}
        for part in parts
    )
    return older, newest, describe(older, newest, kinds)


def public(name):
    """Returns train and dev of a public set, and what they are."""
    train, dev = (bb.load_dataset(name, part) for part in ("train", "dev"))
    return train, dev, describe(train, dev, sorted(set(train["label"])))


def describe(train, test, labels):
    """Returns the sizes of a table, and what one answer for all rows gets."""
    often = Counter(train["label"]).most_common(1)[0][0]
    return {
        "to draw from": len(train["text"]),
        "test": len(test["text"]),
        "labels": labels,
        "one answer": round(test["label"].count(often) / len(test["label"]), 4),
    }


def measure(start, lesson, test, seed):
    """Returns the scores of a start on the test, and its seconds."""
    begin = time.perf_counter()
    if start == BOTH:
        said = counted(BOTH, lesson, test)[0]
    elif start == FROZEN:
        said = read_vectors(lesson, test)
    else:
        said = fine_tuned(start, lesson, test, seed)
    seconds = time.perf_counter() - begin
    wanted = np.array(test["label"])
    names = sorted(set(test["label"]))
    numbers = [np.searchsorted(names, column) for column in (wanted, said)]
    scores = {
        "accuracy": metrics.accuracy(*numbers),
        "matthews": metrics.matthews(*numbers),
    }
    right = np.packbits(np.array(said) == wanted).tobytes().hex()
    return {
        **{name: round(float(value), 4) for name, value in scores.items()},
        "right": right,
        "seconds": round(seconds),
        "machine": describe_machine(),
    }


def read_vectors(lesson, test):
    """Returns what logistic regression says, from the vectors of MiniLM."""
    from sklearn.model_selection import GridSearchCV

    encoder = bb.BertEncoder.from_pretrained(folder_of(SIX))
    known, new = (
        encoder.embed_texts(part["text"], "mean") for part in (lesson, test)
    )
    reader = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000))
    search = GridSearchCV(reader, {"logisticregression__C": STRENGTHS}, cv=5)
    return search.fit(known, lesson["label"]).predict(new)


def fine_tuned(start, lesson, test, seed):
    """Returns what a fine-tuned model says."""
    train, dev = bb.train_dev_split(lesson, dev=0.2, seed=seed)
    keras.utils.set_random_seed(seed)
    source = SIX if start == TUNED else start
    model = make_model(Plan(source, "", dtype="auto"), train)
    bb.finetune(
        model,
        train,
        dev,
        epochs=max(3, READ // len(train["text"])),
        **RECIPES[start],
        max_length=128,
        seed=seed,
        options=bb.FinetuningOptions(verbose=False),
    )
    rows = model.predict_texts(test["text"], max_length=128)
    return np.array([row["label"] for row in rows])


if __name__ == "__main__":
    bb.setup()
    main()
