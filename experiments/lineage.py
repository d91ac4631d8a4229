"""BERT and its relatives on one budget: the runs behind chapter 62.

    BERTBOOK_DATA=FOLDER taskset -c 0 python -m experiments.lineage [PART]
        [--seconds N] [--seeds N] [--out FILE]

FOLDER/corpus holds textbooks, speeches and novels. Every model learns from the
same rows for the same time on one core, N seconds of the processor, with the
better of two rates by short runs; then all read the same opinions. Writes FILE
(data/runs/lineage.json) after each run and skips those that it holds; PART
takes only runs whose name holds it.
"""

import os
from pathlib import Path

for name in ("OMP", "TF_NUM_INTRAOP", "TF_NUM_INTEROP"):
    key = f"{name}_NUM_THREADS" if name == "OMP" else f"{name}_THREADS"
    os.environ.setdefault(key, "1")

import argparse
import functools
import json
import time

import numpy as np

import bertbook as bb
from bertbook.pretraining.corpus import prepare, read_shard
from bertbook.pretraining.masking import Pieces
from bertbook.relatives import ancestors, probes
from bertbook.relatives.ancestors import FAMILY, TextClassifier, pool
from bertbook.relatives.elmo import LSTMConfig, LSTMLanguageModel
from bertbook.relatives.ulmfit import FACTOR, fit_gradually
from bertbook.runtime import keras
from bertbook.training.losses import classification_loss
from bertbook.training.optimizers import AdamW, WarmupLinearDecay

ROOT = Path(__file__).parent.parent
UNSHIPPED = ROOT / "local" / "lineage"  # the corpus as ids, the weights
parser = argparse.ArgumentParser()
parser.add_argument("part", nargs="?", default="")
parser.add_argument("--seconds", type=int, default=300)
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--out", type=Path, default="data/runs/lineage.json")
OPTIONS = parser.parse_args()
KEPT = ROOT / OPTIONS.out
VOCAB_SIZE = 2_048  # the softmax over 8,192 would take most of the time
LENGTH = 64
SHORT = 12  # seconds
RATES = {True: (3e-3, 1e-2), False: (1e-3, 3e-3)}  # with LSTM layers, without
HELD_OUT = 640  # rows
EPOCHS, TUNE_RATE, ULMFIT_RATE = 7, 1e-3, 1e-2  # on opinions
# What comes before ULMFiT's last stage, and how that one is done.
STAGES = {
    "general, domain": True,
    "general": True,
    "none": True,
    "none, all at once": False,
}
DOMAIN_SECONDS = 10
KINDS = "attention", "LSTM"
DISTANCES = 5, 10, 20, 50, 100
LETTERS, RECALL_STEPS = 8, 300


def main():
    """Does what is missing, run by run."""
    for name, run in plan():
        found = read()
        if OPTIONS.part in name and name not in found:
            start, spent = time.time(), time.process_time()
            found[name] = run()
            write(found)
            spent = time.process_time() - spent
            print(
                f"{name}: {spent:.0f} s of the processor, "
                f"{time.time() - start:.0f} s",
                {k: v for k, v in found[name].items() if k != "curve"},
                flush=True,
            )


def plan():
    """Yields the name of each run and what does it, in order."""
    for name in FAMILY:
        for rate in rates_of(name):
            short = functools.partial(pretrain, name, SHORT, rate)
            yield f"rate/{name}/{rate:g}", short
    for name in FAMILY:
        yield f"pretrain/{name}", functools.partial(pretrain_kept, name)
        yield f"probe/{name}", functools.partial(probe, name)
    for seed in range(OPTIONS.seeds):
        for kind in KINDS:
            for distance in DISTANCES:
                yield (
                    f"recall/{kind}/{distance}/{seed}",
                    functools.partial(recall, kind, distance, seed),
                )
    for seed in range(OPTIONS.seeds):
        for stages in STAGES:
            yield (
                f"ulmfit/{stages}/{seed}",
                functools.partial(tune_ulmfit, stages, seed),
            )
        for name in ("GPT", "BERT"):
            for start in ("trained", "scratch"):
                yield (
                    f"tune/{name}/{start}/{seed}",
                    functools.partial(tune, name, start == "trained", seed),
                )


def read():
    """Returns what is kept."""
    return json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}


def write(found):
    """Keeps it, whole or not at all."""
    unfinished = KEPT.with_suffix(".part")
    unfinished.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    unfinished.replace(KEPT)


@functools.cache
def tokenizer():
    """Returns the tokenizer of all runs: the first pieces of the shipped one.

    Pieces are in the order in which they were learned, so that a shorter
    training would have ended with these.
    """
    pieces = bb.Tokenizer.from_pretrained("mini").vocabulary
    return bb.Tokenizer(list(pieces[:VOCAB_SIZE]))


@functools.cache
def rows(part):
    """Returns the rows of a part of the corpus, `(B, S)`."""
    folder = Path(os.environ["BERTBOOK_DATA"]) / "corpus"
    names = ("textbooks", "speeches", "novels")
    corpus = prepare(
        [folder / f"{name}.txt.xz" for name in names],
        tokenizer(),
        UNSHIPPED / "corpus",
    )
    shards = corpus.shards(part)[:4]  # more than a run can read
    tokens = np.concatenate([read_shard(path).tokens for path in shards])
    found = ancestors.cut_rows(tokens, LENGTH, Pieces.of(tokenizer()))
    return found[:HELD_OUT] if part == "held_out" else found


def rates_of(name):
    """Returns the rates that are tried for one of the family."""
    return RATES[bool(FAMILY[name].widths)]


def pretrain(name, seconds, rate, weights=None):
    """Trains one of the family, and returns what came of it."""
    pieces, guesses = Pieces.of(tokenizer()), FAMILY[name].guesses
    keras.utils.set_random_seed(0)
    model = ancestors.make_ancestor(name, pieces, LENGTH)
    ancestors.compile_ancestor(model, guesses)
    given = ancestors.lessons(guesses, rows("train"), pieces)
    found = ancestors.train_for(model, given, seconds, rate)
    loss = ancestors.held_out_loss(model, guesses, rows("held_out"), pieces)
    if weights is not None:
        model.save_weights(weights)
    return {
        "parameters": model.count_params(),
        "rate": rate,
        "loss": round(loss, 4),
        **found,
    }


def pretrain_kept(name):
    """Trains one for the whole time, with the better rate."""
    found = read()
    tried = {
        rate: found[f"rate/{name}/{rate:g}"]["loss"] for rate in rates_of(name)
    }
    best = min(tried, key=tried.get)
    return pretrain(name, OPTIONS.seconds, best, weights_of(name))


def weights_of(name):
    """Returns where the weights of a pre-trained model are kept."""
    return UNSHIPPED / f"{name}_{OPTIONS.seconds}.weights.h5"


def build(name, trained, seed=0):
    """Returns one of the family, with the weights of its long run or none."""
    keras.utils.set_random_seed(seed)
    model = ancestors.make_ancestor(name, Pieces.of(tokenizer()), LENGTH)
    if trained:
        model.load_weights(weights_of(name))
    return model


@functools.cache
def opinions(part):
    """Returns the opinions as a batch, and their labels."""
    data = bb.load_dataset("opinions", part)
    return tokenizer()(data["text"]), np.array(data["label"], "int32")


def probe(name):
    """Reads labels off frozen vectors, layer by layer: trained and random."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = {}
    for start in ("trained", "scratch"):
        model = build(name, start == "trained")
        layers = {}
        for part in ("train", "dev"):
            batch, _ = opinions(part)
            states = ancestors.hidden_states(ancestors.reader_of(model), batch)
            mask = batch["attention_mask"]
            layers[part] = [
                np.asarray(pool(state, mask, "mean")) for state in states
            ]
        found[start] = []
        for learned, asked in zip(*layers.values(), strict=True):
            line = make_pipeline(
                StandardScaler(), LogisticRegression(C=0.1, max_iter=2_000)
            )
            line.fit(learned, opinions("train")[1])
            score = line.score(asked, opinions("dev")[1])
            found[start].append(round(float(score), 4))
    return found


def tune(name, trained, seed):
    """Fine-tunes all of a model on opinions with its own way of reading."""
    model = build(name, trained, seed)
    reader = ancestors.reader_of(model)
    classifier = TextClassifier(reader, FAMILY[name].pooling)
    batch, labels = opinions("train")
    steps = EPOCHS * -(-len(labels) // 32)
    schedule = WarmupLinearDecay(TUNE_RATE, max(1, steps // 10), steps)
    adam = AdamW(learning_rate=schedule, global_clipnorm=1.0)
    classifier.compile(adam, classification_loss(), jit_compile=False)
    classifier.fit(batch, labels, batch_size=32, epochs=EPOCHS, verbose=0)
    return {"accuracy": accuracy(classifier)}


def tune_ulmfit(stages, seed):
    """Does the last stage of ULMFiT, and what comes before it."""
    model = build("ULMFiT", "general" in stages, seed)
    if "domain" in stages:
        train_on_opinions(model)
    classifier = TextClassifier(model, FAMILY["ULMFiT"].pooling)
    batch, labels = opinions("train")
    gradual = STAGES[stages]
    fit_gradually(
        classifier,
        batch,
        labels,
        classification_loss(),
        EPOCHS,
        ULMFIT_RATE,
        gradual=gradual,
        factor=FACTOR if gradual else 1,
    )
    return {"accuracy": accuracy(classifier)}


def train_on_opinions(model):
    """Goes on guessing the next piece, in the texts of the task."""
    texts = bb.load_dataset("opinions", "train")["text"]
    pieces = Pieces.of(tokenizer())
    tokens = np.concatenate(tokenizer().encode_pieces(texts))
    found = ancestors.cut_rows(tokens, LENGTH, pieces)
    ancestors.compile_ancestor(model, ancestors.NEXT)
    given = ancestors.lessons(ancestors.NEXT, found, pieces)
    ancestors.train_for(model, given, DOMAIN_SECONDS, 1e-3)


def accuracy(classifier):
    """Returns the share of right labels on dev, after the last epoch."""
    batch, labels = opinions("dev")
    logits = classifier.predict(batch, verbose=0)
    return round(float((logits.argmax(axis=-1) == labels).mean()), 4)


def recall(kind, distance, seed):
    """Teaches one small model to name the first letter of a row."""
    keras.utils.set_random_seed(seed)
    model = make_small(kind, distance + 1)
    adam = AdamW(learning_rate=3e-3, weight_decay=0.0, global_clipnorm=1.0)
    model.compile(adam, classification_loss(), jit_compile=False)
    rng = np.random.default_rng(seed)
    weights = np.zeros((32, distance + 1), "float32")
    weights[:, -1] = 1
    for _ in range(RECALL_STEPS):
        ids, answers = probes.draw_recall(32, distance, LETTERS, rng)
        right = np.repeat(answers[:, None], distance + 1, axis=1)
        model.train_on_batch({"input_ids": ids}, right, weights)
    ids, answers = probes.draw_recall(512, distance, LETTERS, rng)
    logits = np.asarray(model({"input_ids": ids}))[:, -1]
    score = (logits.argmax(axis=-1) == answers).mean()
    return {"accuracy": round(float(score), 4)}


def make_small(kind, length):
    """Returns a causal model of one LSTM layer or two blocks of attention."""
    vocab_size = LETTERS + probes.FIRST_LETTER
    if kind == "LSTM":
        config = LSTMConfig(vocab_size=vocab_size, hidden_size=64, widths=(64,))
        return LSTMLanguageModel(config)
    return bb.CausalLM(
        bb.CausalLMConfig(
            vocab_size=vocab_size,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=128,
            max_position_embeddings=length,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=0,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


if __name__ == "__main__":
    main()
