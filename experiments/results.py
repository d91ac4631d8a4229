"""What fine-tuned models reach on real sets: the runs behind docs/results.md.

    BERTBOOK_DATA=FOLDER python -m experiments.results [PART] [--minutes N]

Runs what `RUNS` names and `experiments/results/finetuning` does not hold yet,
a file for each run, and writes docs/results.md from what is there. PART takes
only runs whose name holds it; after N minutes no further run begins. The
larger model is a published BERT of 6 layers and width 384, all-MiniLM-L6-v2,
from the folder that `BERTBOOK_MINILM` names.
"""

import argparse
import dataclasses
import json
import math
import os
import platform
import re
import statistics
import time
from pathlib import Path

import numpy as np

import bertbook as bb
from bertbook.cli.finetuning import head_for
from bertbook.finetuning.finetune import FinetuningOptions

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "experiments" / "results" / "finetuning"
UNFINISHED = ROOT / "local" / "results"  # checkpoints, to go on from
PAGE = ROOT / "docs" / "results.md"
# Copied from what the cells printed.
FULL = ROOT / "experiments" / "results" / "full_cells.json"
FOR_CHAPTERS = ROOT / "data" / "runs" / "small_sets.json"
LARGER = ROOT / "data" / "runs" / "larger_model.json"  # of larger_model.py
DEV_SETS = ROOT / "experiments" / "results" / "dev_sets.json"
FIXED = ROOT / "experiments" / "results" / "page.md"  # the text of PAGE
# Sets whose training rows are not the published ones.
DERIVED = {"qnli": "24,000, derived from SQuAD"}


@dataclasses.dataclass(frozen=True)
class Plan:
    """One row of the table: a start, a data set, a recipe, and its seeds."""

    start: str  # "minilm", "mini-taught", "mini", "scratch", ...
    dataset: str
    epochs: int = 3
    learning_rate: float = 5e-5
    batch_size: int = 32
    max_length: int | None = 128
    rows: int | None = None  # drawn from the training set, by the seed
    seeds: int = 3
    strategy: str = "first"  # which pieces of a word get its tag
    dtype: str = "float32"
    layer_decay: float = 1.0  # of the learning rate, from layer to layer
    both_orders: bool = False  # each pair of texts is learned from both sides
    once: bool = False  # dev is read once, at the end
    test: bool = False  # test is read once, at the end, and dev never
    package: str = "bertbook"

    @property
    def name(self):
        """What the files of its runs are called."""
        start = self.start.replace(",", "").replace(" ", "_")
        parts = [start, self.dataset]
        if self.rows is not None:
            parts.append(str(self.rows))
        if self.strategy != "first":
            parts.append(self.strategy)
        if self.start != "bag of words":
            parts.append(f"{self.learning_rate:g}")
            parts.append(f"{self.epochs}_epochs")
        if self.layer_decay != 1:
            parts.append(f"decay_{self.layer_decay:g}")
        if self.both_orders:
            parts.append("both_orders")
        if self.once:
            parts.append("once")
        if self.test:
            parts.append("test")
        if self.package != "bertbook":
            parts.append(self.package)
        return "_".join(parts)


SIX = "minilm"
AFTER = "minilm after stsb"
TAUGHT = "minilm after qnli, rte, stsb"
BRAIN = "mixed_bfloat16"  # half as long on cores that have it
MRPC = Plan(SIX, "mrpc", 3, 1e-4, 16, seeds=5)  # against transformers, too
GENTLE = Plan(AFTER, "mrpc", 5, 1e-4, 16, seeds=1, dtype=BRAIN, layer_decay=0.8)
REAL = (
    MRPC,
    Plan(SIX, "mrpc", 5, 1e-4, 16, seeds=1, dtype=BRAIN),
    Plan(AFTER, "mrpc", 3, 5e-5, 16, seeds=1),
    GENTLE,
    dataclasses.replace(GENTLE, epochs=3, seeds=3, both_orders=True),
    dataclasses.replace(
        GENTLE, start=TAUGHT, epochs=3, seeds=3, both_orders=True
    ),
    Plan(SIX, "sst2", 3, 5e-5, seeds=1),
    Plan(SIX, "sst2", 2, 1e-4, seeds=1, dtype=BRAIN),
    Plan(SIX, "sst2", 3, 3e-5, 16, seeds=1, dtype=BRAIN),
    Plan(SIX, "sst2", 3, 1e-4, seeds=1, dtype=BRAIN, layer_decay=0.8),
    Plan(SIX, "stsb", 3, 1e-4, 16, seeds=1),
    Plan(SIX, "stsb", 4, 5e-5, 16, seeds=1),
    Plan(SIX, "stsb", 8, 5e-5, 32, seeds=1),
    Plan(SIX, "conll2003", 3, 1e-4, 16, seeds=1, dtype=BRAIN),
    Plan(SIX, "squad", 2, 1e-4, 16, 256, 20_000, seeds=1),
    Plan(SIX, "rte", 3, 1e-4, 16, seeds=1, dtype=BRAIN),
    Plan(SIX, "cola", 3, 1e-4, 16, seeds=1, dtype=BRAIN),
    Plan(SIX, "wnut17", 5, 1e-4, 16, seeds=1, dtype=BRAIN),
    Plan(SIX, "qnli", 2, 1e-4, 32, seeds=1, dtype=BRAIN),
)
SHIPPED = ("mini-taught", "mini", "scratch")
WHOLE = tuple(
    Plan(start, dataset, epochs, 3e-4, batch_size, dtype=BRAIN, seeds=seeds)
    for dataset, epochs, batch_size, seeds in (
        ("mrpc", 5, 16, 3),
        ("stsb", 5, 16, 3),
        ("rte", 5, 16, 3),
        ("cola", 3, 32, 3),
        ("wnut17", 8, 16, 3),
        ("conll2003", 5, 16, 3),
        ("sst2", 3, 32, 3),
        ("qnli", 3, 32, 3),
    )
    for start in SHIPPED
)
# Ten epochs, so that random weights get the steps that they can use.
CURVE = tuple(
    Plan(start, "opinions", 10, 3e-4, rows=rows, seeds=10)
    for rows in (400, 100)
    for start in SHIPPED
)
FEW = tuple(
    Plan(start, "sst2", 8, 3e-4, rows=500, seeds=10) for start in SHIPPED
)
TAGGED = tuple(
    Plan(start, "tags", 40, 5e-4, batch_size=16, seeds=10) for start in SHIPPED
)
CURVES = tuple(
    Plan(
        start, dataset, epochs, rate, batch_size, rows=rows, seeds=10,
        dtype=BRAIN, once=True,
    )
    for dataset, rows, epochs, rate, batch_size in (
        ("sst2", 100, 10, 3e-4, 16),
        ("sst2", 2_000, 6, 3e-4, 32),
        ("conll2003", 100, 40, 5e-4, 16),
        ("conll2003", 500, 16, 5e-4, 16),
        ("conll2003", 2_000, 8, 5e-4, 16),
    )
    for start in SHIPPED
)  # fmt: skip
ASKED = tuple(
    Plan(start, "questions", 2, 1e-4, 16, max_length=384, seeds=5)
    for start in ("mini-squad", "mini", "scratch")
)
WORDS = tuple(
    Plan("bag of words", dataset, rows=rows, seeds=10)
    for dataset, rows in (
        ("sst2", 100), ("sst2", 500), ("sst2", 2_000),
        ("opinions", 400), ("opinions", 100),
    )
)  # fmt: skip
COUNTED = tuple(
    Plan("bag of words", dataset, seeds=1)
    for dataset in ("sst2", "cola", "mrpc", "rte", "qnli")
)
# The recipes of CoNLL-2003 above, on its test set. Nothing is chosen here.
TESTED = tuple(
    dataclasses.replace(
        plan, test=True, seeds=3 if plan.start == "mini-taught" else 1
    )
    for plan in (*WHOLE, *REAL)
    if plan.dataset == "conll2003"
)
TUNED = (*TAGGED, *CURVE, *FEW, *ASKED)
RUNS = (*TUNED, *WORDS, *COUNTED, *REAL, *WHOLE, *CURVES, *TESTED)
# What each set asks, and what a row of it is.
SETS = {
    "sst2": ("SST-2 (`sst2`): is a review good or bad?", "sentences"),
    "opinions": ("`opinions`: is a sentence praise?", "sentences"),
    "cola": ("CoLA (`cola`): is a sentence good English?", "sentences"),
    "qnli": ("QNLI (`qnli`): does a sentence answer a question?", "pairs"),
    "mrpc": ("MRPC (`mrpc`): do two sentences say the same?", "pairs"),
    "rte": ("RTE (`rte`): does one text follow from another?", "pairs"),
    "stsb": ("STS-B (`stsb`): how alike are two sentences?", "pairs"),
    "squad": ("SQuAD 1.1 (`squad`): where is the answer?", "questions"),
    "squad_v2": (
        "SQuAD 2.0 (`squad_v2`): where is the answer, if there is one?",
        "questions",
    ),
    "questions": ("`questions`: the same, in the book's texts", "questions"),
    "shelf_questions": (
        "`shelf_questions`: the same, in other words than the text has",
        "questions",
    ),
    "conll2003": (
        "CoNLL-2003 (`conll2003`): what is named in the news?",
        "sentences",
    ),
    "wnut17": (
        "WNUT-17 (`wnut17`): what is named on social media?",
        "sentences",
    ),
    "tags": ("`tags`: what is named in the book's sentences?", "sentences"),
}
TEST_ROWS = {"conll2003": 3_453}
PUBLISHED_ROWS = {"squad": 10_570, "squad_v2": 11_873, "qnli": 5_463}
NAMES = ("conll2003", "wnut17", "tags")
# What chooses the best weights, if it is not accuracy.
MAIN_METRICS = {
    **dict.fromkeys(NAMES, "f1"),
    **dict.fromkeys(("squad", "squad_v2"), "f1"),
    **dict.fromkeys(("questions", "shelf_questions"), "f1"),
    "stsb": "spearman",
    "cola": "matthews",
}
CONSTANT = {
    **dict.fromkeys(
        ("squad_v2", "questions", "shelf_questions"), "never answers"
    ),
    "stsb": "the mean of train for all",
}
# Which figures of a model that ships are of which set.
SHIPPED_FIGURES = (
    ("mini-squad", "squad", "dev"),
    ("mini-squad", "squad_v2", "dev_v2"),
    ("mini-qnli", "qnli", "dev"),
)


def main():
    """Does what is missing, and writes the page."""
    part, end = read_options()
    KEPT.mkdir(parents=True, exist_ok=True)
    for plan in RUNS:
        for seed in range(plan.seeds):
            path = KEPT / f"{plan.name}_{seed}.json"
            wanted = part in plan.name and not path.is_file()
            if wanted and time.time() < end:
                print(f"{plan.name}, seed {seed}", flush=True)
                result = run(plan, seed)
                text = json.dumps(result, indent=2) + "\n"
                path.write_text(text, encoding="utf-8")
                print(result["metrics"], result["seconds"], flush=True)
    text = json.dumps(measure_dev_sets(), indent=1) + "\n"
    DEV_SETS.write_text(text, encoding="utf-8")
    PAGE.write_text(write_page(), encoding="utf-8")
    text = json.dumps(list_for_chapters(), indent=1) + "\n"
    FOR_CHAPTERS.write_text(text, encoding="utf-8")


def read_options():
    """Returns which runs the command line asks for, and when to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    return options.part, time.time() + 60 * options.minutes


def peer_of(plan):
    """Returns the plan that `experiments/transformers_mrpc.py` carries out."""
    return dataclasses.replace(plan, package="transformers")


def run(plan, seed):
    """Does one run, and returns what is kept of it."""
    train = bb.load_dataset(plan.dataset, "train")
    dev = bb.load_dataset(plan.dataset, "dev")
    if plan.rows is not None:
        train = draw_rows(train, plan.rows, seed)
    if plan.both_orders:
        train = turn_pairs(train)
    start = time.perf_counter()
    history = None
    went_on = unfinished(plan, seed).is_dir()
    if plan.start == "bag of words":
        metrics = count_words(train, dev)
    else:
        metrics, history = tune(plan, seed, train, dev)
    return {
        "plan": dataclasses.asdict(plan),
        "seed": seed,
        "metrics": metrics,
        "history": history,
        "seconds": round(time.perf_counter() - start),
        "went_on": went_on,  # from a checkpoint: more seconds went before
        "machine": describe_machine(),
    }


def unfinished(plan, seed):
    """Returns the folder of a run's checkpoints."""
    return UNFINISHED / f"{plan.name}_{seed}"


def kept(plan):
    """Returns the runs of a plan that are kept."""
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for seed in range(plan.seeds)
        if (path := KEPT / f"{plan.name}_{seed}.json").is_file()
    ]


def list_for_chapters():
    """Returns the runs on small sets: the scores on dev, seed by seed."""
    return [
        {
            "name": plan.name,
            "start": plan.start,
            "dataset": plan.dataset,
            "rows": plan.rows,
            "strategy": plan.strategy,
            "learning_rate": plan.learning_rate,
            "epochs": plan.epochs,
            "scores": [scores_by_epoch(result) for result in found],
        }
        for plan in (*TUNED, *CURVES, *WORDS)
        if len(found := kept(plan)) == plan.seeds
    ]


def scores_by_epoch(result):
    """Returns the score on dev after each epoch, or the only one."""
    metric = main_metric(result["plan"]["dataset"])
    history = result["history"] or {  # measured once, at the end
        f"dev_{metric}": [result["metrics"][metric]]
    }
    return [round(score, 4) for score in history[f"dev_{metric}"]]


def draw_rows(data, count, seed):
    """Draws rows of a data set without putting them back."""
    column = next(iter(data.values()))
    rows = np.random.default_rng(seed).permutation(len(column))[:count]
    return {name: [column[i] for i in rows] for name, column in data.items()}


def turn_pairs(data):
    """Returns a set of pairs, and after them the same with sides changed."""
    turned = {"text": "text_pair", "text_pair": "text"}
    return {
        name: [*column, *data[turned.get(name, name)]]
        for name, column in data.items()
    }


def tune(plan, seed, train, dev):
    """Fine-tunes a model, and returns its metrics and history."""
    import keras

    keras.utils.set_random_seed(seed)
    model = make_model(plan, train)
    history = bb.finetune(
        model,
        train,
        None if plan.once or plan.test else dev,
        epochs=plan.epochs,
        learning_rate=plan.learning_rate,
        batch_size=plan.batch_size,
        max_length=plan.max_length,
        seed=seed,
        out=unfinished(plan, seed) if SIX in plan.start else None,
        options=FinetuningOptions(
            verbose=plan.seeds == 1,
            strategy=plan.strategy,
            layer_decay=plan.layer_decay,
            checkpoint_steps=200,
        ),
    )
    history.pop("rows_per_second")
    if plan.test:
        test = bb.load_dataset(plan.dataset, "test")
        own = {"error": draw_anew}
        return bb.evaluate(model, test, metrics=own), None
    if plan.once:
        return bb.evaluate(model, dev, max_length=plan.max_length), None
    best = int(np.argmax(history[f"dev_{main_metric(plan.dataset)}"]))
    metrics = {
        name.removeprefix("dev_"): values[best]
        for name, values in history.items()
        if name.startswith("dev_")
    }
    return metrics, history


def draw_anew(expected, guesses, times=200):
    """Returns the standard error of F1 if the sentences were drawn anew."""
    from bertbook.tasks.metrics import entity_f1

    random = np.random.default_rng(0)
    scores = []
    for _ in range(times):
        rows = random.integers(len(expected), size=len(expected))
        drawn = [[column[i] for i in rows] for column in (expected, guesses)]
        scores.append(entity_f1(*drawn)["f1"])
    return statistics.stdev(scores)


def main_metric(dataset):
    """Returns the metric that chooses the best weights."""
    return MAIN_METRICS.get(dataset, "accuracy")


def make_model(plan, train):
    """Returns the model of a plan for the columns of a data set."""
    kind, head = head_for(train)
    if SIX in plan.start:
        folder = folder_of(plan.start)
        model = kind.from_pretrained(folder, dtype=plan.dtype, **head)
        if plan.start == TAUGHT:
            keep_head(model, kind.from_pretrained(folder))
        return model
    if plan.start != "scratch":
        return kind.from_pretrained(plan.start, dtype=plan.dtype, **head)
    shape = bb.BertEncoder.from_pretrained("mini")
    config = shape.config.replace(initializer_range=0.02)
    model = kind(config, dtype=plan.dtype, **head)
    model.tokenizer = shape.tokenizer
    return model


def folder_of(start):
    """Returns the folder of the larger model, tuned on other sets if asked."""
    if start == SIX:
        return os.environ["BERTBOOK_MINILM"]
    folder = UNFINISHED / ("similarity" if start == AFTER else "taught")
    if (folder / "model.safetensors").is_file():
        return folder
    if start == AFTER:
        plan = Plan(SIX, "stsb", 3, 1e-4, 16)
        train = unknown_to_mrpc(bb.load_dataset("stsb", "train"))
        teach(make_model(plan, train), train, plan, folder)
    else:
        teach_pairs(folder)
    return folder


def teach_pairs(folder):
    """Fine-tunes the larger model on other pairs of texts, for use on MRPC.

    First QNLI and RTE, whose labels are the same two; then STS-B, which asks
    how alike two texts are, from both sides.
    """
    plan = Plan(SIX, "qnli and rte", 1, 1e-4)
    sets = [bb.load_dataset(name, "train") for name in ("qnli", "rte")]
    train = unknown_to_mrpc(join(sets))
    model = make_model(plan, train)
    before = folder.with_name("taught_first")
    teach(model, train, plan, before)
    plan = Plan(TAUGHT, "stsb", 3, 1e-4, layer_decay=0.9)
    sets = [bb.load_dataset("stsb", split) for split in ("train", "dev")]
    train = turn_pairs(unknown_to_mrpc(join(sets)))
    kind, head = head_for(train)
    teach(kind.from_pretrained(before, **head), train, plan, folder)


def teach(model, train, plan, folder):
    """Fine-tunes a model without a dev set, and saves it."""
    rows = len(next(iter(train.values())))
    print(f"{plan.dataset}: {rows:,} rows", flush=True)
    bb.finetune(
        model,
        train,
        epochs=plan.epochs,
        learning_rate=plan.learning_rate,
        batch_size=plan.batch_size,
        max_length=plan.max_length,
        out=folder,
        options=FinetuningOptions(
            layer_decay=plan.layer_decay, checkpoint_steps=200
        ),
    )


def unknown_to_mrpc(data):
    """Leaves out the pairs that share a sentence with the dev set of MRPC.

    STS-B took pairs from the same news.
    """
    asked = bb.load_dataset("mrpc", "dev")
    known = {letters(t) for n in ("text", "text_pair") for t in asked[n]}
    pairs = zip(data["text"], data["text_pair"], strict=True)
    rows = [
        i
        for i, pair in enumerate(pairs)
        if known.isdisjoint(map(letters, pair))
    ]
    return {name: [column[i] for i in rows] for name, column in data.items()}


def join(sets):
    """Returns the rows of several sets of the same columns, one by one."""
    return {
        name: [value for data in sets for value in data[name]]
        for name in sets[0]
    }


def keep_head(model, regression):
    """Starts a head of two classes from one that says how alike texts are.

    On the scale of STS-B, 3 is "some important information differs", and 4 is
    "some unimportant details differ". So more than 3.5 means yes.
    """
    kernel, bias = regression.classifier.get_weights()  # (D, 1), (1,)
    middle = bias - 3.5
    model.classifier.set_weights(
        [np.hstack([-kernel, kernel]), np.hstack([-middle, middle])]
    )


def letters(text):
    """Returns the letters and digits of a text, by which texts are compared."""
    return "".join(filter(str.isalnum, text.lower()))


def count_words(train, dev):
    """Returns what logistic regression on words and pairs of words reaches."""
    from bertbook.tasks import metrics

    texts = [
        [" | ".join(row) for row in zip(*columns, strict=True)]
        for columns in (
            [data[name] for name in ("text", "text_pair") if name in data]
            for data in (train, dev)
        )
    ]
    guesses = bag_of_words().fit(texts[0], train["label"]).predict(texts[1])
    return {
        "accuracy": metrics.accuracy(dev["label"], list(guesses)),
        "matthews": metrics.matthews(dev["label"], list(guesses)),
    }


def bag_of_words(strength=10):
    """Returns a classifier of counted words, not trained yet."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        LogisticRegression(C=strength, max_iter=2_000),
    )


def describe_machine():
    """Returns what a run was done on, in a few words."""
    import keras

    backend = keras.backend.backend()
    device = bb.runtime.device_name()
    cores = f"{os.cpu_count()} cores, " if device == "CPU" else ""
    return f"{device}, {cores}{platform.machine()}, {backend}"


def measure_dev_sets():
    """Returns the size of each dev set, and what a constant reaches on it."""
    devs = {dataset: bb.load_dataset(dataset, "dev") for dataset in SETS}
    return {
        dataset: {
            "rows": len(next(iter(dev.values()))),
            "constant": answer_alike(dataset, dev),
        }
        for dataset, dev in devs.items()
    }


def answer_alike(dataset, dev):
    """Returns the metrics of one answer for all rows, where one is apt."""
    from bertbook.tasks import metrics

    if dataset in CONSTANT and "answers" in dev:
        silent = statistics.mean(not found for found in dev["answers"])
        return {"f1": silent, "exact_match": silent}
    if dataset == "stsb":
        mean = np.mean(bb.load_dataset(dataset, "train")["label"])
        return {"mean_squared_error": np.mean((dev["label"] - mean) ** 2)}
    if "label" not in dev:
        return {}
    labels = np.unique(dev["label"], return_inverse=True)[1]
    guesses = np.full_like(labels, np.bincount(labels).argmax())
    return {
        name: getattr(metrics, name)(labels, guesses)
        for name in ("accuracy", "f1", "matthews")
    }


def write_page():
    """Returns docs/results.md, made of what is kept."""
    sizes = json.loads(DEV_SETS.read_text(encoding="utf-8"))
    plans = [*(p for p in RUNS if not p.test), peer_of(MRPC)]
    plans.sort(key=lambda plan: (plan.rows or 0, plan.name))
    tables = []
    for dataset in SETS:
        rows = [
            *constant_rows(dataset, sizes[dataset]["constant"]),
            *(run_row(p) for p in plans if p.dataset == dataset and kept(p)),
            *larger_rows(dataset),
            *shipped_rows(dataset),
        ]
        tables.append(write_table(dataset, sizes[dataset]["rows"], rows))
        tested = [p for p in TESTED if p.dataset == dataset and kept(p)]
        if tested:
            rows = [run_row(plan) for plan in tested]
            tables.append(
                write_table(dataset, TEST_ROWS[dataset], rows, "test")
            )
    return FIXED.read_text(encoding="utf-8").format(
        missing=list_missing([*plans, *TESTED]),
        tables="\n\n".join(tables),
        cells=list_full_cells(),
    )


def list_missing(plans):
    """Returns which sets `mini` has runs on and `minilm` has not."""
    known = {
        start: {(p.dataset, p.rows) for p in plans if p.start == start}
        for start in (SIX, "mini")
    }
    missing = known["mini"] - known[SIX]
    listed = [
        f"{rows:,} rows of `{dataset}`" if rows else f"`{dataset}`"
        for dataset, rows in sorted(missing, key=lambda m: (m[0], m[1] or 0))
    ]
    text = f"`minilm` has no run on {', '.join(listed)}."
    waiting = [
        f"`{plan.start}` on {'the test set' if plan.test else 'dev'} of "
        f"`{plan.dataset}`"
        for plan in plans
        if not kept(plan)
    ]
    if waiting:
        text += f" Planned and not run yet: {'; '.join(waiting)}."
    return text


def write_table(dataset, size, rows, split="dev"):
    """Returns the section of one data set, or of its test set."""
    title, unit = SETS[dataset]
    if split == "test":
        title = title.partition(":")[0] + ": the test set"
    measure = named(main_metric(dataset))
    if dataset in PUBLISHED_ROWS:
        unit = f"of the published {PUBLISHED_ROWS[dataset]:,} {unit}"
    lines = [
        f"## {title}",
        "",
        f"{measure[0].upper()}{measure[1:]} decides. "
        f"{split.capitalize()} has {size:,} {unit}.",
        "",
        f"| start | trained on | recipe | {measure}, last epoch | best epoch "
        "| error over rows | other measures | seeds | minutes each | machine |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(write_row(dataset, size, row) for row in rows)])


def write_row(dataset, size, row):
    """Returns a row of a table, of what the functions below tell."""
    main, found = main_metric(dataset), row["found"]
    best = [metrics[main] for metrics in found if main in metrics]
    last = row.get("last") or best
    constant = "recipe" not in row
    cells = [
        row["start"],
        row.get("rows", ""),
        row.get("recipe", ""),
        show(main, last),
        show(main, best) if "last" in row else "–",
        "–"
        if constant
        else row.get("error") or error_over_rows(dataset, size, last),
        ", ".join(
            f"{named(name)} {show(name, [metrics[name] for metrics in found])}"
            for name in found[0]
            if name not in (main, "error")
        ),
        "" if constant else len(found),
        row.get("minutes", ""),
        row.get("machine", ""),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def error_over_rows(dataset, size, values):
    """Returns the standard error of a score on dev, as text."""
    mean, main = statistics.mean(values), main_metric(dataset)
    if dataset in NAMES:
        return "–"
    if main in ("spearman", "matthews"):  # by Fisher's z
        more = mean**2 / 2 if main == "spearman" else 0
        error = (1 - mean**2) * math.sqrt((1 + more) / (size - 3))
    else:
        error = math.sqrt(mean * (1 - mean) / size)
    return f"{'at most ' * (main == 'f1')}{100 * error:.1f}"


def constant_rows(dataset, metrics):
    """Returns the row of one answer for all, if there is one."""
    start = CONSTANT.get(dataset, "one answer for all")
    return [{"start": start, "found": [metrics]}] if metrics else []


def run_row(plan):
    """Returns the row of one plan."""
    found = kept(plan)
    rows = DERIVED.get(plan.dataset, "all")
    if plan.rows is not None:
        rows = f"{plan.rows:,}"
    recipe = recipe_of(**dataclasses.asdict(plan))
    if plan.layer_decay != 1:
        recipe += f", {plan.layer_decay:g} of the rate in each layer below"
    if plan.both_orders:
        recipe += ", each pair in both orders"
    start = plan.start
    if plan.package != "bertbook":
        start += f", by {plan.package}"
    minutes = statistics.mean(result["seconds"] for result in found) / 60
    over = "over " * any(result.get("went_on") for result in found)
    row = {
        "start": start,
        "rows": rows,
        "recipe": "" if plan.start == "bag of words" else recipe,
        "found": [result["metrics"] for result in found],
        "minutes": "" if plan.test else f"{over}{minutes:.1f}",
        "machine": "; ".join(sorted({result["machine"] for result in found})),
    }
    errors = [result["metrics"].get("error") for result in found]
    if None not in errors:
        row["error"] = f"{100 * statistics.mean(errors):.1f}"
    if found[0]["history"]:
        row["last"] = [scores_by_epoch(result)[-1] for result in found]
    return row


def recipe_of(epochs, learning_rate, batch_size, dtype, **_):
    """Returns a recipe in a few words."""
    recipe = f"{epochs} epoch{'s' * (epochs > 1)}, {learning_rate:g}"
    recipe += f", batch {batch_size}"
    return recipe + ", bfloat16" * (dtype == BRAIN)


def larger_rows(dataset):
    """Returns the rows of the larger model that answers in chapters 40 to 43.

    They come from `experiments/larger_model.py`, with one seed each.
    """
    facts = json.loads(LARGER.read_text(encoding="utf-8"))
    lessons = [facts[name]["lesson"] for name in facts if name != "model"]
    return [
        {
            "start": SIX,
            "rows": DERIVED.get(dataset, f"{lesson['rows']:,}"),
            "recipe": recipe_of(**lesson),
            "found": [lesson["dev"]],
            "minutes": f"{lesson['seconds'] / 60:.1f}",
            "machine": lesson["machine"],
        }
        for lesson in lessons
        if lesson["dataset"] == dataset
    ]


def shipped_rows(dataset):
    """Returns the row of the model that ships for a set, if there is one."""
    for model, of, part in SHIPPED_FIGURES:
        if of == dataset:
            folder = bb.locations.data_folder() / "models" / model
            facts = json.loads((folder / "scores.json").read_text("utf-8"))
            metrics = dict(facts[part])
            metrics.pop("thresholds", None)
            metrics.pop("rows")
            rows = sum(part["rows"] for part in facts["parts"])
            derived = ", derived from SQuAD" * (dataset in DERIVED)
            yield {
                "start": f"`{model}`",
                "rows": f"{rows:,}{derived}",
                "recipe": "its card says it",
                "found": [metrics],
            }


def list_full_cells():
    """Returns what the cells of BERTBOOK_FULL reached with MiniLM, as text."""
    lines = []
    for row in json.loads(FULL.read_text(encoding="utf-8")):
        metrics = ", ".join(
            f"{named(name)} {show(name, [value])}"
            for name, value in row["metrics"].items()
        )
        minutes = "" if row["minutes"] is None else row["minutes"]
        lines.append(
            f"| {row['chapter']} | {row['dataset']} | {metrics} | {minutes} "
            f"| {row['machine']} |"
        )
    return "\n".join(lines)


def named(metric):
    """Returns the name of a metric as a reader knows it."""
    return re.sub(
        "^(f1|matthews|pearson|spearman)|f1",
        lambda match: match[0].capitalize(),
        metric.replace("_", " "),
    )


def show(metric, values):
    """Returns the mean and the spread of one metric."""
    if not values:
        return "–"
    scale = 1 if metric == "mean_squared_error" else 100
    text = f"{scale * statistics.mean(values):.1f}"
    if len(values) > 1:
        text += f" ± {scale * statistics.stdev(values):.1f}"
    return text


if __name__ == "__main__":
    main()
