"""With and without next sentence prediction: chapter 31's kept runs.

    BERTBOOK_DATA=FOLDER python -m experiments.next_sentence [PART]

A small BERT is trained from random weights, its heads prepared to look at
neighbors: on pairs of texts with both objectives, and on the same pairs with
masked words alone. First weights, rows and their order agree. Then each is
fine-tuned on five tasks, and so are the first weights, without pre-training.

For STS-B a rule without a model is scored, too: the cosine of shared words.

Does what `RUNS` names and `experiments/results/next_sentence` does not hold
yet, a file for each run, and writes data/runs/next_sentence.json from what is
there. PART takes only runs whose name holds it; after `--minutes` no further
run begins. About half an hour on one core that multiplies bfloat16.
"""

import functools
import json
import os
import time
from pathlib import Path

import keras
import numpy as np

import bertbook as bb
from bertbook.batches.feeding import Feed
from bertbook.files import read_json
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.model.bert import BertForPreTraining
from bertbook.pretraining import evaluation
from bertbook.pretraining import pretrain as pretraining
from bertbook.pretraining.attention_init import look_at_neighbors
from bertbook.pretraining.corpus import (
    RECORD,
    Corpus,
    prepare,
    read_documents,
)
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.pretrain import PretrainingRecipe
from bertbook.pretraining.stream import BEGINNING, ExampleStream, Position
from bertbook.tasks.metrics import spearman
from experiments.results import draw_rows, main_metric, read_options

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "experiments" / "results" / "next_sentence"
WORK = ROOT / "local" / "next_sentence"  # shards and models, to go on from
FOR_CHAPTER = ROOT / "data" / "runs" / "next_sentence.json"
WORDS = {  # of each genre, drawn by whole documents
    "encyclopedia-1": 3_000_000,
    "government": 1_200_000,
    "medical_qa": 1_200_000,
    "textbooks_more": 1_200_000,
    "tech_writing": 1_200_000,
    "podcasts-1": 1_200_000,
    "fiction_1939_1970": 1_200_000,
}
HELD_OUT = 0.01  # of the documents
HELD_OUT_ROWS = 2_048
DTYPE = "mixed_bfloat16"
SMALL = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
    "initializer_range": 0.05,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# Short rows first: they are cheap, and the loss falls sooner there.
PARTS = (
    {"length": 64, "steps": 1_800, "rows": 64, "rate": 1.5e-3, "end": 0.4},
    {"length": 128, "steps": 600, "rows": 32, "rate": 6e-4, "end": 0.0},
)
TRAINED = "both", "words"
SEEDS = 2
# What is fine-tuned, with which seed, in the order of doing.
ORDER = (
    *((kind, seed) for seed in range(SEEDS) for kind in TRAINED),
    *(("nothing", seed) for seed in range(SEEDS)),
)
TASKS = {
    "qnli": {"rows": 24_000, "epochs": 2},
    "mrpc": {"rows": 3_668, "epochs": 3},
    "rte": {"rows": 2_490, "epochs": 3},
    "stsb": {"rows": 5_749, "epochs": 4},
    "sst2": {"rows": 8_000, "epochs": 2},
}
RATE = 5e-4
LOG_STEPS = 100
# XLA would take longer to trace such a model than it saves.
pretraining.COMPILE = False


class WordsAlone(ExampleStream):
    """The examples of a stream whose second label counts for nothing."""

    def batches(self, batch_size, start=BEGINNING):
        """Yields the batches, next sentences with weight 0."""
        for batch, position in super().batches(batch_size, start):
            weights = np.zeros(batch_size, "float32")
            yield batch | {"next_sentence_weights": weights}, position


def make_corpus(tokenizer):
    """Returns the shards of the sample, made where there are none."""
    folder = WORK / "corpus"
    if (folder / RECORD).is_file():
        return Corpus(folder, read_json(folder / RECORD))
    texts = Path(os.environ["BERTBOOK_DATA"]) / "corpus2"
    sample = WORK / "sample.txt"
    documents = [
        "\n".join(lines)
        for name, words in WORDS.items()
        for lines in draw_documents(texts / f"{name}.txt.xz", words)
    ]
    sample.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return prepare([sample], tokenizer, folder, held_out=HELD_OUT)


def draw_documents(path, words):
    """Returns documents from all over a file, about so many words."""
    documents = list(read_documents([path]))
    kept, count = [], 0
    for number in np.random.default_rng(0).permutation(len(documents)):
        if count >= words:
            break
        kept.append(documents[number])
        count += sum(len(line.split()) for line in documents[number])
    return kept


def make_stream(kind, corpus, pieces, length, seed):
    """Returns the examples that a kind of model is trained on."""
    settings = ExampleSettings(max_length=length)
    stream = WordsAlone if kind == "words" else ExampleStream
    return stream(corpus, pieces, settings, seed)


def fresh(tokenizer, seed):
    """Returns a model with random weights, the same for every kind.

    Its heads begin by looking at neighbors. Without that such a short run ends
    where the frequencies of single tokens are all that is known.
    """
    keras.utils.set_random_seed(seed)
    config = bb.BertConfig(vocab_size=len(tokenizer), **SMALL)
    model = BertForPreTraining(config, dtype=DTYPE)
    look_at_neighbors(model, offsets=(-1, 1))
    model.tokenizer = tokenizer
    return model


def pretrain(kind, seed):
    """Trains a model, saves it, and measures it on held-out documents."""
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    corpus = make_corpus(tokenizer)
    pieces = Pieces.of(tokenizer)
    model = fresh(tokenizer, seed)
    log = []
    for number, part in enumerate(PARTS):
        recipe = PretrainingRecipe(
            steps=part["steps"], batch_size=part["rows"],
            learning_rate=part["rate"], end=part["end"], dtype=DTYPE,
        )  # fmt: skip
        pretraining.compile_for_pretraining(model, recipe)
        stream = make_stream(
            kind, corpus, pieces, part["length"], 10 * seed + number
        )
        feed = Feed(stream, part["rows"], 0, Position())
        history = model.fit(
            feed.batches(), steps_per_epoch=LOG_STEPS,
            epochs=part["steps"] // LOG_STEPS, shuffle=False, verbose=2,
        ).history  # fmt: skip
        log.append(rounded(history))
    model.save_pretrained(folder_of(kind, seed))
    return {"log": log, "held_out": measure(model, corpus, pieces)}


def folder_of(kind, seed):
    """Returns the folder of a trained model."""
    return WORK / f"{kind}_{seed}"


def rounded(history):
    """Returns the curves of `fit`, the losses and accuracies of both tasks."""
    return {
        ours: [round(float(value), 4) for value in history[theirs]]
        for theirs, ours in pretraining.LOGS.items()
        if theirs in history and ours != "loss"
    }


def measure(model, corpus, pieces):
    """Returns the scores on held-out pairs."""
    examples = evaluation.held_out_examples(
        corpus, pieces, ExampleSettings(), limit=HELD_OUT_ROWS
    )
    found = evaluation.score_pretraining(model, examples)
    labels = examples["next_sentence_labels"]
    found["one_answer"] = max(labels.mean(), 1 - labels.mean())
    return {name: round(float(score), 4) for name, score in found.items()}


def tune(kind, task, seed):
    """Fine-tunes a model on a task; returns the score after each epoch.

    It is the accuracy, and for STS-B, whose labels are numbers, Spearman's
    rank correlation.
    """
    plan = TASKS[task]
    train = draw_rows(bb.load_dataset(task, "train"), plan["rows"], seed)
    dev = bb.load_dataset(task, "dev")
    if kind == "nothing":
        start = fresh(bb.Tokenizer.from_pretrained("mini"), seed)
        start.save_pretrained(folder_of(kind, seed))
    keras.utils.set_random_seed(seed)
    model = bb.BertForSequenceClassification.from_pretrained(
        folder_of(kind, seed), dtype=DTYPE, num_labels=1 + (task != "stsb")
    )
    model.supports_jit = False  # XLA takes longer than such a run
    history = bb.finetune(
        model, train, dev, epochs=plan["epochs"], learning_rate=RATE,
        batch_size=32, max_length=128, seed=seed,
        options=FinetuningOptions(verbose=False),
    )  # fmt: skip
    _, counts = np.unique(dev["label"], return_counts=True)
    return {
        "scores": [round(s, 4) for s in history[f"dev_{main_metric(task)}"]],
        "rows": len(train["label"]),
        "dev_rows": len(dev["label"]),
        "one_answer": round(float(counts.max() / counts.sum()), 4),
    }


def score_shared_words():
    """Scores STS-B without a model: by the words that two texts share.

    The cosine of chapter 31: a token counts by its inverse document frequency
    among the texts to learn from.
    """
    tokenizer = bb.Tokenizer.from_pretrained("mini")

    def tokens_of(part):
        rows = bb.load_dataset("stsb", part)
        texts = [*rows["text"], *rows["text_pair"]]
        sets = [set(tokenizer.encode(t).input_ids[1:-1]) for t in texts]
        return sets, rows["label"]

    known, _ = tokens_of("train")
    found = np.ones(len(tokenizer))
    for tokens in known:
        found[list(tokens)] += 1
    squares = np.log((len(known) + 1) / found) ** 2  # (V,)
    texts, labels = tokens_of("dev")
    sizes = np.array([squares[list(tokens)].sum() for tokens in texts])
    half = len(labels)
    shared = np.array(
        [squares[list(texts[i] & texts[half + i])].sum() for i in range(half)]
    )
    cosine = shared / np.sqrt(sizes[:half] * sizes[half:])
    score = spearman(labels, cosine)
    _, counts = np.unique(labels, return_counts=True)
    return {
        "scores": [round(score, 4)],
        "rows": len(known) // 2,
        "dev_rows": half,
        "one_answer": round(float(counts.max() / counts.sum()), 4),
    }


def list_runs():
    """Returns every run by its name, in the order of doing."""
    runs = {"stsb_overlap_0": score_shared_words}
    for kind, seed in ORDER:
        if kind != "nothing":
            name = f"pretrain_{kind}_{seed}"
            runs[name] = functools.partial(pretrain, kind, seed)
        for task in TASKS:
            name = f"{task}_{kind}_{seed}"
            runs[name] = functools.partial(tune, kind, task, seed)
    return runs


RUNS = list_runs()


def main():
    """Does what is missing, and writes the file for the chapter."""
    part, end = read_options()
    KEPT.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    for name, run in RUNS.items():
        path = KEPT / f"{name}.json"
        if part in name and not path.is_file() and time.time() < end:
            start = time.process_time()
            result = run()
            result["core_seconds"] = round(time.process_time() - start)
            text = json.dumps(result, indent=1) + "\n"
            path.write_text(text, encoding="utf-8")
            print(name, result, flush=True)
    text = json.dumps(list_for_chapter(), indent=1) + "\n"
    FOR_CHAPTER.write_text(text, encoding="utf-8")


def list_for_chapter():
    """Returns what the kept runs scored, for the chapter."""
    return summarize(
        {
            name: read_json(path)
            for name in sorted(RUNS)
            if (path := KEPT / f"{name}.json").is_file()
        }
    )


def summarize(found):
    """Returns the scores of runs, by what they measure and by kind.

    Args:
        found: The kept runs by their names.

    Returns:
        A dict: `plan`, the sizes of the experiment; `held_out`, what each kind
        scores on held-out pairs; `tasks`, the best score on dev of each
        task, with the share of the commonest label.
    """
    held_out, tasks = {}, {}
    for name, run in found.items():
        what, kind, _ = name.split("_")
        if what == "pretrain":
            for score, value in run["held_out"].items():
                place = held_out.setdefault(score, {})
                place.setdefault(kind, []).append(value)
        else:
            place = tasks.setdefault(what, {"one answer": run["one_answer"]})
            place["rows"], place["dev rows"] = run["rows"], run["dev_rows"]
            place.setdefault(kind, []).append(max(run["scores"]))
    tokens = sum(p["steps"] * p["rows"] * p["length"] for p in PARTS)
    plan = {
        "model": SMALL,
        "parts": list(PARTS),
        "tokens": tokens,
        "words": WORDS,
    }
    return {"plan": plan, "held_out": held_out, "tasks": tasks}


if __name__ == "__main__":
    main()
