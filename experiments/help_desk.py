"""Chapter 44's kept runs: a help desk, and what a run costs.

    BERTBOOK_MINILM=FOLDER python -m experiments.help_desk [PART] [--minutes N]

Each start is fine-tuned on data/samples/help_desk by the code of chapter 44,
and asked about the 100 messages of its test; then it looks for wrong labels.
Frozen, it only gives vectors, and logistic regression learns from them.
Further parts count the tokens of public sets, in the folder that BERTBOOK_DATA
names, and measure the time and the memory of a step.

Does what `PARTS` names and `experiments/results/help_desk` does not hold yet, a
file for each part, and writes data/runs/help_desk.json from what is there. PART
takes only parts whose name holds it; after N minutes no further part begins.
"""

import functools
import hashlib
import json
import multiprocessing
import resource
import time

import keras
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bertbook as bb
from bertbook.batches.ragged import draw_batches
from bertbook.cli.finetuning import head_for
from bertbook.finetuning.finetune import (
    FinetuningOptions,
    take_labels,
    task_of,
)
from bertbook.tasks.base import Settings
from experiments.results import (
    BRAIN,
    ROOT,
    SIX,
    Plan,
    bag_of_words,
    describe_machine,
    folder_of,
    make_model,
    read_options,
)

SAMPLE = ROOT / "data" / "samples" / "help_desk"
KEPT = ROOT / "experiments" / "results" / "help_desk"
FOR_CHAPTER = ROOT / "data" / "runs" / "help_desk.json"
NAMES = {
    "text_column": "message",
    "label_column": "department",
    "id_column": "ticket",
}
# Tickets whose department is wrong on purpose: slips of a hurried hand.
WRONG = (
    1022, 1035, 1085, 1088, 1128, 1200,
    1202, 1214, 1301, 1332, 1391, 1399,
)  # fmt: skip
SMALL = {"epochs": 10, "learning_rate": 3e-4, "batch_size": 32}
RECIPES = {
    "scratch": SMALL,
    "mini": SMALL,
    "mini-taught": SMALL,
    SIX: {"epochs": 10, "learning_rate": 1e-4, "batch_size": 16},
}
COUNTED = "bag of words"
FROZEN = {"frozen mini-taught": "mini-taught", "frozen minilm": SIX}
LABELS = {  # what the chapter calls a start
    SIX: "MiniLM",
    "frozen mini-taught": "mini-taught, frozen",
    "frozen minilm": "MiniLM, frozen",
}
JUDGES = COUNTED, "mini-taught", SIX  # of the labels
STRENGTHS = 1, 10, 100  # of a bag of words; dev chooses
ON_VECTORS = 0.1, 1, 10, 100  # the same of a reader of vectors
SEEDS = 5
QUIET = FinetuningOptions(verbose=False)
# The sets of the table of costs: rows of a batch, and the most tokens.
SETS = {
    "sst2": (32, 128),
    "mrpc": (32, 128),
    "squad": (32, 384),
    "conll2003": (32, 128),
    "cola": (32, 128),
    "rte": (32, 128),
    "stsb": (32, 128),
    "qnli": (32, 128),
    "wnut17": (32, 128),
}
SIZES = "mini", SIX, "base"
TOKENS = 128  # of a row, where a step is measured
MEASURED_ROWS = 8, 32


def main():
    """Does what is missing, and writes the file."""
    part, end = read_options()
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, work in PARTS.items():
        path = KEPT / f"{name.replace(' ', '_')}.json"
        if part in name and not path.is_file() and time.time() < end:
            print(name, flush=True)
            text = json.dumps(work(), indent=1) + "\n"
            path.write_text(text, encoding="utf-8")
    text = json.dumps(summarize(), indent=1) + "\n"
    FOR_CHAPTER.write_text(text, encoding="utf-8")


def read(part):
    """Returns the rows of `messages` or `test`, mended as in the chapter."""
    return bb.load_dataset(SAMPLE / f"{part}.csv", mended=[], **NAMES)


def fingerprint(data):
    """Returns a hash of texts and labels, which the chapter compares."""
    rows = json.dumps([data["text"], data["label"]])
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


def learn(start, train, dev, seed):
    """Returns a function from texts to the shares of the labels, (n, K)."""
    labels = sorted(set(train["label"]))
    if start == COUNTED:
        counters = [
            bag_of_words(strength).fit(train["text"], train["label"])
            for strength in STRENGTHS
        ]
        best = counters[1]
        if dev is not None:
            scores = [c.score(dev["text"], dev["label"]) for c in counters]
            best = counters[int(np.argmax(scores))]
        assert best.classes_.tolist() == labels
        return best.predict_proba
    if start in FROZEN:
        return read_vectors(start, train, dev)
    keras.utils.set_random_seed(seed)
    dtype = BRAIN if start == SIX else "float32"
    model = make_model(Plan(start, "help_desk", dtype=dtype), train)
    recipe = RECIPES[start]
    bb.finetune(model, train, dev, **recipe, seed=seed, options=QUIET)

    def shares(texts):
        rows = model.predict_texts(texts, all_scores=True)
        return np.array([[r["scores"][name] for name in labels] for r in rows])

    return shares


def read_vectors(start, train, dev):
    """Returns as `learn`: logistic regression on vectors of a frozen model."""
    source = FROZEN[start]
    folder = folder_of(SIX) if source == SIX else source
    encoder = bb.BertEncoder.from_pretrained(folder)
    vectors = encoder.embed_texts(train["text"], "mean")
    readers = [
        make_pipeline(
            StandardScaler(), LogisticRegression(C=strength, max_iter=2_000)
        ).fit(vectors, train["label"])
        for strength in ON_VECTORS
    ]
    others = encoder.embed_texts(dev["text"], "mean")
    scores = [reader.score(others, dev["label"]) for reader in readers]
    best = readers[int(np.argmax(scores))]
    return lambda texts: best.predict_proba(encoder.embed_texts(texts, "mean"))


def sort_messages(start, seed):
    """Trains on the messages, and answers the test."""
    data, test = read("messages"), read("test")
    train, dev = bb.train_dev_split(data, dev=0.2, seed=seed)
    begin = time.perf_counter()
    shares = learn(start, train, dev, seed)(test["text"])
    labels = sorted(set(train["label"]))
    wanted = np.array([labels.index(name) for name in test["label"]])
    said = shares.argmax(axis=1)
    return {
        "accuracy": float((said == wanted).mean()),
        "said": said.tolist(),
        "score": shares.max(axis=1).round(3).tolist(),
        "data": fingerprint(data),
        "test": fingerprint(test),
        "seconds": round(time.perf_counter() - begin),
        "machine": describe_machine(),
    }


def look_for_slips(start, seed):
    """Ranks the rows by what a model that never saw them gives their label."""
    data = read("messages")
    halves = bb.train_dev_split(data, dev=0.5, seed=seed)
    labels = sorted(set(data["label"]))
    found = []
    for one, other in (halves, halves[::-1]):
        shares = learn(start, one, None, seed)(other["text"])
        rows = zip(other["id"], other["label"], shares, strict=True)
        found += [(p[labels.index(name)], int(i)) for i, name, p in rows]
    order = [ticket for _, ticket in sorted(found)]
    return {"first": order[:60], "data": fingerprint(data)}


def count_tokens(name):
    """Returns the rows of a public set, and the tokens of an epoch.

    With the vocabulary of BERT-base, which the larger model has, and padded as
    in training.
    """
    rows, limit = SETS[name]
    train = bb.load_dataset(name, "train")
    kind, head = head_for(train)
    model = kind.from_pretrained(folder_of(SIX), **head)
    take_labels(model, train)
    task = task_of(model)(model, train, Settings(max_length=limit))
    task.learn()
    lengths = task.rows.lengths()
    batches = draw_batches(lengths, rows, limit, (0, 0))
    return {
        "rows": len(next(iter(train.values()))),
        "windows": len(lengths),
        "batch": rows,
        "steps": len(batches),
        "longest": int(max(lengths)),
        "tokens": int(sum(lengths)),
        "padded": int(sum(len(part) * width for part, width in batches)),
    }


def config_of(size):
    """Returns the config of a size that is measured."""
    if size == SIX:
        return bb.BertEncoder.from_pretrained(folder_of(SIX)).config
    if size == "mini":
        return bb.BertEncoder.from_pretrained("mini").config
    return bb.BertConfig.named(size)


def measure_step(size, rows):
    """Returns processor seconds of a step, of a matrix product, and GB."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:  # a process of its own: its peak is its own
        return pool.apply(measure_here, (size, rows))


def measure_here(size, rows):
    """Measures two steps after the one that compiles."""
    model = bb.BertForSequenceClassification(config_of(size), num_labels=2)
    ids = np.random.default_rng(0).integers(1, 9_000, (rows, TOKENS))
    x = {"input_ids": ids.astype("int32")}
    x["attention_mask"] = np.ones_like(x["input_ids"])
    x["token_type_ids"] = np.zeros_like(x["input_ids"])
    y = np.arange(rows) % 2
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-5), loss)
    model(x)
    before = gigabytes_now()
    model.train_on_batch(x, y)
    begin = time.process_time()
    for _ in range(2):
        model.train_on_batch(x, y)
    seconds = (time.process_time() - begin) / 2
    return {
        "size": size,
        "rows": rows,
        "tokens": TOKENS,
        "parameters": model.count_params(),
        "seconds": round(seconds, 3),
        "gigabytes": round(gigabytes_at_most() - before, 3),
        "weights": round(model.count_params() * 4 / 1e9, 3),
        "product": round(flops_of_a_product() / 1e9, 1),
        "machine": describe_machine(),
    }


def gigabytes_now():
    """Returns the memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e9


def gigabytes_at_most():
    """Returns the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def flops_of_a_product(size=1_536, times=4):
    """Returns FLOPs for each processor second, in products of matrices."""
    matrix = keras.random.normal((size, size), seed=0)
    keras.ops.convert_to_numpy(matrix @ matrix)
    begin = time.process_time()
    for _ in range(times):
        keras.ops.convert_to_numpy(matrix @ matrix)
    return times * 2 * size**3 / (time.process_time() - begin)


def summarize():
    """Returns what the chapter draws, from the parts that are there."""
    found = {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in sorted(KEPT.glob("*.json"))
    }
    runs, hunts = {}, {}
    for start in (COUNTED, *RECIPES, *FROZEN):
        stem = start.replace(" ", "_")
        some = [found.get(f"test_{stem}_{seed}") for seed in range(SEEDS)]
        runs[start] = [run for run in some if run]
        if start not in JUDGES:
            continue
        some = [found.get(f"slips_{stem}_{seed}") for seed in range(SEEDS)]
        hunts[start] = [run["first"] for run in some if run]
    known = [run for some in runs.values() for run in some]
    return {
        "messages": sorted({run["data"] for run in known}),
        "test": sorted({run["test"] for run in known}),
        "wrong": WRONG,
        "recipes": RECIPES,
        "accuracy": {
            LABELS.get(k, k): [r["accuracy"] for r in v]
            for k, v in runs.items()
        },
        "said": {LABELS.get(k, k): v[0]["said"] for k, v in runs.items() if v},
        "slips": {LABELS.get(k, k): v for k, v in hunts.items()},
        "sets": {n: found[f"set_{n}"] for n in SETS if f"set_{n}" in found},
        "steps": [found[name] for name in found if name.startswith("step_")],
    }


PARTS = {
    f"test {start} {seed}": functools.partial(sort_messages, start, seed)
    for seed in range(SEEDS)
    for start in (COUNTED, *RECIPES, *FROZEN)
}
PARTS |= {
    f"slips {start} {seed}": functools.partial(look_for_slips, start, seed)
    for seed in range(SEEDS)
    for start in JUDGES
}
PARTS |= {f"set {name}": functools.partial(count_tokens, name) for name in SETS}
PARTS |= {
    f"step {size} {rows}": functools.partial(measure_step, size, rows)
    for size in SIZES
    for rows in MEASURED_ROWS
}

if __name__ == "__main__":
    main()
