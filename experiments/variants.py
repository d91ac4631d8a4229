r"""What the variants of BERT change, measured small: chapter 52's kept runs.

    BERTBOOK_DATA=FOLDER BERTBOOK_MINILM=FOLDER \
        python -m experiments.variants [PART] [--minutes N]

Does what `RUNS` names and `experiments/results/variants` does not hold yet, a
file for each run, and writes data/runs/variants.json from what is there. PART
takes only runs whose name holds it; after N minutes no further run begins. The
runs on search use the functions, and the class, that the chapter defines.
"""

import csv
import functools
import json
import os
import re
import time
from pathlib import Path

import keras
import numpy as np
from keras import ops
from sklearn.feature_extraction.text import TfidfVectorizer

import bertbook as bb
from bertbook.datasets.load import find_dataset
from bertbook.finetuning.finetune import FinetuningOptions
from bertbook.locations import data_folder
from bertbook.model.bert import BertForPreTraining
from bertbook.pretraining import pretrain as pretraining
from bertbook.pretraining.attention_init import look_at_neighbors
from bertbook.pretraining.corpus import prepare, read_documents
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.pretrain import PretrainingRecipe, Reporting, pretrain
from bertbook.pretraining.stream import ExampleStream
from bertbook.relatives.albert import share_blocks
from bertbook.relatives.biobert import (
    adapt,
    masked_loss,
    masked_rows,
    pieces_per_word,
)
from bertbook.relatives.transbert import Stage, run_stages
from bertbook.tasks.labels import names_of_tags
from bertbook.text.sentences import split_sentences
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import WarmupLinearDecay, make_optimizer
from experiments.floors import written_in
from experiments.larger_model import MODEL
from experiments.results import read_options

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "experiments" / "results" / "variants"
WORK = ROOT / "local" / "variants"  # models and checkpoints, to go on from
FOR_CHAPTER = ROOT / "data" / "runs" / "variants.json"
SEEDS = 2
SMALL = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "max_position_embeddings": 64,
    "initializer_range": 0.05,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
QUIET = Reporting(log_steps=50, verbose=False, checkpoint_steps=1_000_000)
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
    "conll2003": (100, 16, 128, 400, 300),
}


def domain_folder(name):
    """Returns the folder of `mini` after the texts of a domain."""
    steps, rows, length, _, _ = DOMAINS[name]
    out = WORK / f"{name}_{steps}"
    if not (out / "model.safetensors").is_file():
        recipe = PretrainingRecipe(
            steps=steps, batch_size=rows, learning_rate=3e-4
        )
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


def control():
    """Goes on with the shelf as with the notes: what more steps alone do."""
    steps, rows, length, _, _ = DOMAINS["notes"]
    paths = sorted((data_folder() / "samples" / "shelf").glob("*.txt"))
    lines = [line for doc in read_documents(paths) for line in doc][1::4]
    recipe = PretrainingRecipe(steps=steps, batch_size=rows, learning_rate=3e-4)
    model = adapt(lines, WORK / "control", "mini", recipe, length)
    texts = {"domain": sentences("notes", "dev", 300), "shelf": shelf()}
    return {
        place: masked_loss(model, masked_rows(model.tokenizer, lines, 128))
        for place, lines in texts.items()
    }


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
        options=FinetuningOptions(verbose=False),
    )  # fmt: skip
    return {"f1": history["dev_f1"], "rows": len(learn["tokens"])}


def cut(data, count):
    """Returns the first rows of a set."""
    return {name: column[:count] for name, column in data.items()}


# Shared blocks.


def shared(is_shared):
    """Trains a small model on the two languages, shared or not."""
    file, tokenizer = bilingual_text("mixed")
    recipe = PretrainingRecipe(steps=1_000, batch_size=8, learning_rate=1.5e-3)
    settings = ExampleSettings(max_length=48, next_sentence=False)
    corpus = prepare([file], tokenizer, WORK / "both", held_out=0.0)
    stream = ExampleStream(corpus, Pieces.of(tokenizer), settings, 0)
    out = WORK / f"shared_{is_shared}"
    out.mkdir(exist_ok=True)
    model = fresh(tokenizer)
    if is_shared:
        share_blocks(model)
    pretraining.compile_for_pretraining(model, recipe)
    evaluate = pretraining.evaluator(stream, corpus)
    pretraining.run_steps(model, stream, out, recipe, QUIET, evaluate)
    english = both_languages("dev")[0][:500]
    with open(out / "log.csv", newline="", encoding="utf-8") as log_file:
        log = list(csv.DictReader(log_file))
    return {
        "parameters": model.encoder.count_params(),
        "steps": [int(row["step"]) for row in log],
        "mlm_loss": [round(float(row["mlm_loss"]), 3) for row in log],
        "dev_loss": masked_loss(model, masked_rows(tokenizer, english, 48)),
    }


def fresh(tokenizer):
    """Returns a small model whose heads begin by looking at neighbors."""
    keras.utils.set_random_seed(0)
    model = BertForPreTraining(
        bb.BertConfig(vocab_size=len(tokenizer), **SMALL)
    )
    look_at_neighbors(model)
    model.tokenizer = tokenizer
    return model


# Two languages.

BOTH_STEPS = 1_500
MARKS = str.maketrans("", "", "¿?¡!.,;:")


def both_languages(split="train", count=60_000):
    """Returns English sentences and their translations."""
    data = bb.load_dataset("spa_eng", split)
    order = np.random.default_rng(1).permutation(len(data["source"]))[:count]
    return [[data[n][i] for i in order] for n in ("source", "target")]


def bilingual_text(kind):
    """Writes sentences of two languages: mixed, or each beside its twin."""
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
    file = WORK / f"{kind}.txt"
    text = "\n\n".join("\n".join(lines) for lines in documents)
    file.write_text(text + "\n", encoding="utf-8")
    return file, tokenizer


def bilingual_folder(kind):
    """Pre-trains on two languages."""
    out = WORK / f"languages_{kind}_{BOTH_STEPS}"
    if (out / "model.safetensors").is_file():
        return out
    file, tokenizer = bilingual_text(kind)
    start = WORK / "languages_start"
    fresh(tokenizer).save_pretrained(start)
    pretrain(
        [file],
        out,
        PretrainingRecipe(
            steps=BOTH_STEPS, batch_size=12, learning_rate=1.5e-3
        ),
        model=start,
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
    learn = questions("train", "english", marks, 800)
    bb.finetune(
        uncompiled(model), learn, epochs=3, learning_rate=5e-4, seed=seed,
        max_length=48, options=FinetuningOptions(verbose=False),
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
                options=FinetuningOptions(verbose=False),
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


# Several labels at once.

SUBJECTS = {
    "bees": "how_bees_choose_a_home",
    "bread": "bread_at_altitude",
    "locks": "how_locks_work",
    "moon": "moon_and_tides",
}


def toy_documents(count, seed, is_test):
    """Returns documents of one or two subjects, five sentences of each."""
    pools = {}
    for subject, name in SUBJECTS.items():
        path = data_folder() / "samples" / "shelf" / f"{name}.txt"
        lines = path.read_text("utf-8").splitlines()
        pool = [s for line in lines for s in split_sentences(line)]
        border = 3 * len(pool) // 4
        pools[subject] = pool[border:] if is_test else pool[:border]
    rng = np.random.default_rng(seed)
    data = {"text": [], "label": []}
    for _ in range(count):
        chosen = rng.choice(list(pools), rng.integers(1, 3), replace=False)
        drawn = [rng.choice(pools[name], 5, replace=False) for name in chosen]
        data["text"].append(" ".join(rng.permutation(np.concatenate(drawn))))
        data["label"].append(sorted(chosen.tolist()))
    return data


def documents(seed):
    """Tunes a model that gives a document all of its subjects."""
    keras.utils.set_random_seed(seed)
    model = bb.BertForSequenceClassification.from_pretrained(
        "mini",
        problem_type="multi_label_classification",
        id2label=dict(enumerate(sorted(SUBJECTS))),
    )
    history = bb.finetune(
        uncompiled(model), toy_documents(160, 0, False),
        toy_documents(60, 1, True), epochs=5, learning_rate=5e-4,
        batch_size=16, max_length=128, seed=seed,
        options=FinetuningOptions(verbose=False),
    )  # fmt: skip
    return {
        name: history[f"dev_{name}"]
        for name in ("f1", "precision", "recall", "exact_match")
    }


# Search.

CHAPTER = "52_variants"
STARTS = {"scratch": 5, "mini": 1, "taught": 1}  # seeds
FOLDERS = {"scratch": "mini", "mini": "mini", "taught": "mini-taught"}
LESSON_PAIRS = 8_192


@functools.cache
def of_chapter():
    """Returns what the chapter defines for search, by name."""
    known = {
        "bb": bb, "np": np, "ops": ops, "keras": keras,
        "TfidfVectorizer": TfidfVectorizer, "make_optimizer": make_optimizer,
        "WarmupLinearDecay": WarmupLinearDecay,
        "classification_loss": classification_loss,
    }  # fmt: skip
    return written_in(
        CHAPTER, "score_words", "score_vectors", "ranks", "standardized",
        "fuse", "mean_pool", "TwoTowers", "LENGTHS", "give_lesson", **known
    )  # fmt: skip


def encoder_of(kind, seed):
    """Returns an encoder, `scratch` with random weights."""
    if kind == "MiniLM":
        return bb.BertEncoder.from_pretrained(os.environ["BERTBOOK_MINILM"])
    encoder = bb.BertEncoder.from_pretrained(FOLDERS[kind])
    if kind == "scratch":
        keras.utils.set_random_seed(seed)
        drawn = bb.BertEncoder(encoder.config)
        drawn.tokenizer, encoder = encoder.tokenizer, drawn
    return encoder


def search(kind, seed=0, is_taught=False):
    """Returns the place of the right text for each question and query."""
    tools = of_chapter()
    parts = [bb.load_dataset("questions", split) for split in ("train", "dev")]
    questions = [text for part in parts for text in part["question"]]
    contexts = [text for part in parts for text in part["context"]]
    passages = list(dict.fromkeys(contexts))
    own = np.array([passages.index(text) for text in contexts])
    short = written_in("00_start_here", "queries", "sentences")
    short = short["queries"], short["sentences"]
    by_words = tools["score_words"](questions, passages)
    if kind == "words":
        result = {"passages": own.tolist()}
        scores, of_short = by_words, tools["score_words"](*short)
    else:
        encoder, result = encoder_of(kind, seed), {}
        if is_taught:
            losses = tools["give_lesson"](encoder, squad_pairs(), 3e-4)
            result["losses"] = [round(loss, 3) for loss in losses[::16]]
        scores = tools["score_vectors"](encoder, questions, passages)
        # Chapter 00 takes "cls", which MiniLM and the lesson do not train.
        pooling = "mean" if is_taught or kind == "MiniLM" else "cls"
        of_short = tools["score_vectors"](encoder, *short, pooling)
        fused = tools["ranks"](tools["fuse"](by_words, scores), own)
        result["fused"] = fused.tolist()
    found = tools["ranks"](of_short, np.arange(len(short[0])))
    result["short"] = int((found == 1).sum())
    result["ranks"] = tools["ranks"](scores, own).tolist()
    return result | ({"model": MODEL} if kind == "MiniLM" else {})


def squad_pairs():
    """Returns a question of each passage of SQuAD, and the passage."""
    data = bb.load_dataset("squad", "train")
    of_passage = {}
    for row in np.random.default_rng(0).permutation(len(data["question"])):
        of_passage.setdefault(data["context"][row], data["question"][row])
    pairs = [(asked, passage) for passage, asked in of_passage.items()]
    return pairs[:LESSON_PAIRS]


def list_runs():
    """Returns every run by its name, in the order of doing."""
    do = functools.partial
    runs = {"loss_notes": do(domain_loss, "notes")}
    runs |= taggings("notes")
    runs["vocabularies"] = vocabularies
    runs["shared_no"] = do(shared, False)
    runs["shared_yes"] = do(shared, True)
    for seed in range(2):
        for start in "mixed", "scratch":
            runs[f"transfer_{start}_{seed}"] = do(transfer, start, False, seed)
    runs["transfer_marks_0"] = do(transfer, "mixed", True, 0)
    runs["documents_0"] = do(documents, 0)
    runs["loss_control"] = control
    runs["loss_conll2003"] = do(domain_loss, "conll2003")
    runs |= taggings("conll2003")
    for seed in range(2):
        runs[f"transfer_pairs_{seed}"] = do(transfer, "pairs", False, seed)
    for seed in range(SEEDS):
        for stages in 1, 2:
            key = f"stories_{stages}_{seed}"
            runs[key] = do(story_endings, stages, seed)
    runs["search_words"] = do(search, "words")
    runs["search_MiniLM"] = do(search, "MiniLM")
    for kind, seeds in STARTS.items():
        for seed in range(seeds):
            runs[f"search_{kind}_{seed}"] = do(search, kind, seed)
        runs[f"search_lesson_{kind}"] = do(search, kind, 0, True)
    return runs


def taggings(name):
    """Returns the runs of taggers of one domain."""
    return {
        f"tags_{name}_{start}_{seed}": functools.partial(
            tagging, name, start, seed
        )
        for seed in range(5 if name == "notes" else SEEDS)
        for start in ("mini", "adapted")
    }


RUNS = list_runs()


def main():
    """Does what is missing, and writes the file for the chapter."""
    part, end = read_options()
    KEPT.mkdir(parents=True, exist_ok=True)
    WORK.mkdir(parents=True, exist_ok=True)
    find_dataset("conll2003")
    for name, run in RUNS.items():
        path = KEPT / f"{name}.json"
        if part in name and not path.is_file() and time.time() < end:
            start = time.perf_counter()
            result = run()
            result["seconds"] = round(time.perf_counter() - start)
            text = json.dumps(result, indent=1) + "\n"
            path.write_text(text, encoding="utf-8")
            print(name, result, flush=True)
        write_for_chapter()


def list_for_chapter():
    """Returns all runs that are kept, in the order of `RUNS`."""
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in RUNS
        if (path := KEPT / f"{name}.json").is_file()
    }


def write_for_chapter():
    """Writes all runs that are kept into one file."""
    text = json.dumps(list_for_chapter(), indent=1, ensure_ascii=False) + "\n"
    FOR_CHAPTER.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
