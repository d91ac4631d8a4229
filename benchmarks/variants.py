"""What the variants of BERT change, measured small: chapter 52's kept runs.

    BERTBOOK_DATA=FOLDER python benchmarks/variants.py [PART] [--minutes N]

Does what `RUNS` names and `benchmarks/results/variants` does not hold yet, a
file for each run, and writes data/runs/variants.json from what is there. PART
takes only runs whose name holds it; after N minutes no further run begins.
"""

import os
import sys
from pathlib import Path

# Not this file's folder, whose `tokenize` would hide the standard module.
sys.path[0] = str(Path(__file__).parent.parent)
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import argparse
import csv
import functools
import json
import re
import time

import keras
import numpy as np

import bertbook as bb
from bertbook import pretraining
from bertbook.corpus import prepare, read_documents
from bertbook.datasets import find_dataset
from bertbook.domains import adapt, masked_loss, masked_rows, pieces_per_word
from bertbook.examples import ExampleSettings
from bertbook.finetuning import Options
from bertbook.labels import names_of_tags
from bertbook.locations import data_folder
from bertbook.masking import Pieces
from bertbook.models import BertForPreTraining
from bertbook.pretraining import Recipe, Reporting, pretrain
from bertbook.sharing import shared_pretraining_model
from bertbook.stages import Stage, run_stages
from bertbook.streams import ExampleStream

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "benchmarks" / "results" / "variants"
WORK = ROOT / "local" / "variants"  # models and checkpoints, to go on from
FOR_CHAPTER = ROOT / "data" / "runs" / "variants.json"
SEEDS = 3
SMALL = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "max_position_embeddings": 128,
}
QUIET = Reporting(log_steps=20, verbose=False, checkpoint_steps=1_000_000)
pretraining.COMPILE = False  # tracing would take longer than the steps


def uncompiled(model):
    """Keeps XLA away from a model: it takes longer than such short runs."""
    model.supports_jit = False
    return model


def corpus_file(name):
    """Returns the file of a corpus."""
    return Path(os.environ["BERTBOOK_DATA"]) / "corpus" / f"{name}.txt.xz"


def shelf():
    """Returns sentences of the shelf: what is not of the domain."""
    paths = sorted((data_folder() / "samples" / "shelf").glob("*.txt"))
    return [line for doc in read_documents(paths) for line in doc][::4]


# Vocabularies.


def vocabularies():
    """Trains one on novels and speeches and one on textbooks, equal amounts."""
    parts = {"general": ["speeches", "novels"], "science": ["textbooks"]}
    learn, held = {}, {}
    for name, files in parts.items():
        lines = []
        for file in files:
            documents = list(read_documents([corpus_file(file)]))
            held.setdefault(name, [])
            for number, document in enumerate(documents):
                (held[name] if number % 25 == 0 else lines).extend(document)
        learn[name] = take(lines, 8_000_000)
        held[name] = take(held[name], 400_000)
    held = {name: spelled(lines) for name, lines in held.items()}
    toks = {
        name: bb.Tokenizer.train(lines, 8_192) for name, lines in learn.items()
    }
    words = ["photosynthesis", "enzyme", "momentum", "equilibrium", "carriage"]
    return {
        "pieces_per_word": {
            name: {
                text: pieces_per_word(tok, lines)
                for text, lines in held.items()
            }
            for name, tok in toks.items()
        },
        "examples": {
            word: {
                name: tok.encode(word).tokens[1:-1]
                for name, tok in toks.items()
            }
            for word in words
        },
        "shared": len(
            set(toks["general"].vocabulary) & set(toks["science"].vocabulary)
        ),
        "characters": 8_000_000,
    }


def spelled(lines):
    """Returns the words in plain letters, which each vocabulary can spell."""
    return [" ".join(re.findall(r"[a-z]+", line.lower())) for line in lines]


def take(lines, characters):
    """Returns lines from all over a corpus, about so many characters."""
    order = np.random.default_rng(0).permutation(len(lines))
    kept, count = [], 0
    for number in order:
        kept.append(lines[number])
        count += len(lines[number])
        if count >= characters:
            break
    return kept


# Domains.


def sentences(name, split, count=None):
    """Returns the texts of a set with tags."""
    data = bb.load_dataset(name, split)["tokens"]
    return [" ".join(words) for words in data[:count]]


DOMAINS = {
    "notes": (120, 16, 48, 140, None),  # steps, rows, tokens, labeled, dev
    "conll2003": (160, 16, 128, 400, 600),
}


def domain_folder(name):
    """Returns the folder of `mini` after the texts of a domain."""
    steps, rows, length, _, _ = DOMAINS[name]
    out = WORK / f"{name}_{steps}"
    if not (out / "model.safetensors").is_file():
        recipe = Recipe(steps=steps, batch_size=rows, learning_rate=3e-4)
        adapt(sentences(name, "train"), out, "mini", recipe, length)
    return out


def domain_loss(name):
    """Measures `mini` before and after, on the domain and beside it."""
    texts = {"domain": sentences(name, "dev", 300), "shelf": shelf()}
    starts = {"mini": "mini", "adapted": domain_folder(name)}
    found = {}
    for start, folder in starts.items():
        model = BertForPreTraining.from_pretrained(folder)
        found[start] = {
            place: masked_loss(model, masked_rows(model.tokenizer, lines, 128))
            for place, lines in texts.items()
        }
    return {"steps": DOMAINS[name][0], "loss": found}


def tagging(name, start, seed):
    """Tunes a tagger on a few sentences of the domain."""
    _, _, _, labeled, held = DOMAINS[name]
    learn = cut(bb.load_dataset(name, "train"), labeled)
    dev = cut(bb.load_dataset(name, "dev"), held)
    keras.utils.set_random_seed(seed)
    folder = "mini" if start == "mini" else domain_folder(name)
    model = bb.BertForTokenClassification.from_pretrained(
        folder, id2label=dict(enumerate(names_of_tags(learn["tags"])))
    )
    history = bb.finetune(
        uncompiled(model), learn, dev, epochs=16 if name == "notes" else 5,
        learning_rate=5e-4, batch_size=16, max_length=128, seed=seed,
        options=Options(verbose=False),
    )  # fmt: skip
    return {"f1": history["dev_f1"], "rows": len(learn["tokens"])}


def cut(data, count):
    """Returns the first rows of a set."""
    return {name: column[:count] for name, column in data.items()}


# Shared blocks.


def shared(is_shared):
    """Trains a small model from random weights, shared or not."""
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    config = bb.BertConfig(vocab_size=len(tokenizer), **SMALL)
    recipe = Recipe(steps=300, batch_size=16, learning_rate=1.5e-3)
    settings = ExampleSettings(max_length=64)
    corpus = prepare([textbooks()], tokenizer, WORK / "textbooks", held_out=0.0)
    stream = ExampleStream(corpus, Pieces.of(tokenizer), settings, 0)
    out = WORK / f"shared_{is_shared}"
    out.mkdir(exist_ok=True)
    keras.utils.set_random_seed(0)
    model = (
        shared_pretraining_model(config)
        if is_shared
        else BertForPreTraining(config)
    )
    pretraining.compile_for_pretraining(model, recipe)
    pretraining.run_steps(model, stream, corpus, out, recipe, QUIET)
    held = masked_rows(tokenizer, shelf(), 64)
    with open(out / "log.csv", newline="", encoding="utf-8") as file:
        log = list(csv.DictReader(file))
    return {
        "parameters": model.encoder.count_params(),
        "steps": [int(row["step"]) for row in log],
        "mlm_loss": [round(float(row["mlm_loss"]), 3) for row in log],
        "shelf_loss": masked_loss(model, held),
    }


def textbooks():
    """Returns a file with a part of the textbooks."""
    path = WORK / "textbooks.txt"
    if not path.is_file():
        documents = list(read_documents([corpus_file("textbooks")]))[::4]
        text = "\n\n".join("\n".join(lines) for lines in documents)
        path.write_text(text + "\n", encoding="utf-8")
    return path


# Two languages.

BOTH_STEPS = 500
MARKS = str.maketrans("", "", "¿?¡!.,;:")


def both_languages(split="train", count=60_000):
    """Returns English sentences and their translations."""
    data = bb.load_dataset("spa_eng", split)
    order = np.random.default_rng(1).permutation(len(data["source"]))[:count]
    return [[data[n][i] for i in order] for n in ("source", "target")]


def bilingual_folder(kind):
    """Pre-trains on two languages: mixed, or each sentence beside its twin."""
    out = WORK / f"languages_{kind}_{BOTH_STEPS}"
    if (out / "model.safetensors").is_file():
        return out
    english, spanish = both_languages()
    tokenizer = bb.Tokenizer.train([*english, *spanish], 4_000)
    if kind == "pairs":
        twins = zip(english, spanish, strict=True)
        lines = [line for pair in twins for line in pair]
        documents = [lines[i : i + 60] for i in range(0, len(lines), 60)]
    else:  # the second half, so that no sentence has its twin here
        half = len(english) // 2
        documents = [
            column[i : i + 60]
            for column in (english[:half], spanish[half:])
            for i in range(0, half, 60)
        ]
    WORK.mkdir(parents=True, exist_ok=True)
    file = WORK / f"{kind}.txt"
    text = "\n\n".join("\n".join(lines) for lines in documents)
    file.write_text(text + "\n", encoding="utf-8")
    pretrain(
        [file],
        out,
        Recipe(steps=BOTH_STEPS, batch_size=48, learning_rate=2e-3),
        model=bb.BertConfig(vocab_size=len(tokenizer), **SMALL),
        tokenizer=tokenizer,
        examples=ExampleSettings(max_length=48, next_sentence=False),
        held_out=0.0,
        reporting=QUIET,
    )
    return out


def questions(split, language, marks, count):
    """Returns as many questions as other sentences, with a mark or without."""
    columns = both_languages(split, 60_000)
    found = {0: [], 1: []}
    for english, spanish in zip(*columns, strict=True):
        text = english if language == "english" else spanish
        kind = int(english.endswith("?"))
        if kind == int(spanish.endswith("?")) and len(found[kind]) < count:
            found[kind].append(text if marks else text.translate(MARKS))
    rows = [(t, k) for pair in zip(*found.values(), strict=False)
            for t, k in zip(pair, (0, 1), strict=True)]  # fmt: skip
    return {"text": [t for t, _ in rows], "label": [k for _, k in rows]}


def transfer(start, marks, seed):
    """Learns what a question is from English, and is asked in Spanish."""
    folder = bilingual_folder("mixed" if start == "scratch" else start)
    keras.utils.set_random_seed(seed)
    kind = bb.BertForSequenceClassification
    model = kind.from_pretrained(folder, num_labels=2)
    if start == "scratch":
        fresh = kind(model.config.replace(initializer_range=0.02), num_labels=2)
        fresh.tokenizer, model = model.tokenizer, fresh
    learn = questions("train", "english", marks, 1_000)
    bb.finetune(
        uncompiled(model), learn, epochs=3, learning_rate=5e-4, seed=seed,
        max_length=48, options=Options(verbose=False),
    )  # fmt: skip
    return {
        language: bb.evaluate(model, questions("dev", language, marks, 300))[
            "accuracy"
        ]
        for language in ("english", "spanish")
    }


# Three stages.


def story_endings(stages, seed):
    """Learns endings of stories, with or without pairs of sentences before."""

    def tune(kind, name, epochs, **head):
        def train(start, out):
            keras.utils.set_random_seed(seed)
            model = kind.from_pretrained(start, **head)
            history = bb.finetune(
                uncompiled(model),
                bb.load_dataset(name, "train"), bb.load_dataset(name),
                epochs=epochs, learning_rate=3e-4, batch_size=8, seed=seed,
                options=Options(verbose=False),
            )  # fmt: skip
            model.save_pretrained(out)
            scores[name] = history["dev_accuracy"]

        return train

    scores = {}
    plan = [
        Stage("transfer", tune(
            bb.BertForSequenceClassification, "pairs", 3, num_labels=3
        )),
        Stage("target", tune(bb.BertForMultipleChoice, "choices", 6)),
    ]  # fmt: skip
    run_stages("mini", plan[-stages:], WORK / f"stories_{stages}_{seed}")
    return {"accuracy": scores["choices"]}


RUNS = {
    "loss_notes": functools.partial(domain_loss, "notes"),
    **{
        f"tags_notes_{start}_{seed}": functools.partial(
            tagging, "notes", start, seed
        )
        for seed in range(SEEDS)
        for start in ("mini", "adapted")
    },
    "loss_conll2003": functools.partial(domain_loss, "conll2003"),
    **{
        f"tags_conll2003_{start}_{seed}": functools.partial(
            tagging, "conll2003", start, seed
        )
        for seed in range(SEEDS)
        for start in ("mini", "adapted")
    },
    "shared_no": functools.partial(shared, False),
    "shared_yes": functools.partial(shared, True),
    "vocabularies": vocabularies,
    **{
        f"transfer_{start}_{'marks' if marks else 'bare'}_{seed}":
        functools.partial(transfer, start, marks, seed)
        for start in ("mixed", "scratch", "pairs")
        for marks in (False, True)
        for seed in range(2)
        if not marks or start == "mixed"
    },
    **{
        f"stories_{stages}_{seed}": functools.partial(
            story_endings, stages, seed
        )
        for seed in range(SEEDS)
        for stages in (1, 2)
    },
}  # fmt: skip


def main():
    """Does what is missing, and writes the file for the chapter."""
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    end = time.time() + 60 * options.minutes
    KEPT.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    find_dataset("conll2003")
    for name, run in RUNS.items():
        path = KEPT / f"{name}.json"
        if options.part in name and not path.is_file() and time.time() < end:
            start = time.perf_counter()
            result = run()
            result["seconds"] = round(time.perf_counter() - start)
            text = json.dumps(result, indent=1) + "\n"
            path.write_text(text, encoding="utf-8")
            print(name, result, flush=True)
        write_for_chapter()


def write_for_chapter():
    """Writes all that is there into one file, in the order of `RUNS`."""
    found = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in RUNS
        if (path := KEPT / f"{name}.json").is_file()
    }
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    FOR_CHAPTER.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
