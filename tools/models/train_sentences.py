"""Trains `data/models/mini-sentences`: `mini`, taught where sentences stand.

    BERTBOOK_DATA=FOLDER python tools/models/train_sentences.py TEACHER OUT

TEACHER is the folder of all-MiniLM-L6-v2, a published encoder of sentences.
FOLDER/spa_eng and FOLDER/corpus hold the sentences; no label is read. The
vectors of the teacher take half an hour on two cores and are kept in OUT, the
training takes as long again, and the result is copied to its place.
"""

import json
import lzma
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

import bertbook as bb
import cards
from bertbook.batches.ragged import draw_batches
from bertbook.runtime import keras
from bertbook.tasks import metrics
from bertbook.text.sentences import split_sentences
from bertbook.training.optimizers import WarmupLinearDecay, make_optimizer

TARGET = cards.MODELS / "mini-sentences"
PARTS = {"novels": 14_000, "textbooks": 14_000, "speeches": 6_000}
WORDS = range(5, 29)  # in a sentence that is taken from the corpus
LENGTH = 64
RECIPE = {
    "epochs": 3,
    "batch_size": 64,
    "learning_rate": 5e-4,
    "warmup": 0.05,
}


def main():
    """Reads the sentences, asks the teacher, trains, and copies the model."""
    bb.setup()
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder:
        sys.exit("`BERTBOOK_DATA` must name the folder of real data sets.")
    teacher, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "recipe.json").is_file():
        sentences = kept_sentences(Path(folder), out / "texts.txt")
        vectors = kept_vectors(teacher, sentences, out / "teacher.npy")
        train(sentences, center(vectors), out)
    ship(out, teacher)


def kept_sentences(folder, path):
    """Returns the sentences, read once."""
    if not path.is_file():
        path.write_text("\n".join(read_sentences(folder)), encoding="utf-8")
    return path.read_text(encoding="utf-8").split("\n")


def read_sentences(folder):
    """Returns English sentences of the pairs, and some of the corpus."""
    rows = read_lines(folder / "spa_eng" / "train.tsv.xz")[1:]
    sentences = sorted({row.split("\t")[0] for row in rows if row})
    random = np.random.default_rng(0)
    for part, count in PARTS.items():
        lines = read_lines(folder / "corpus" / f"{part}.txt.xz")
        lines = [line for line in lines if len(line) > 40]
        found = [
            sentence
            for number in random.permutation(len(lines))[:16_000]
            for sentence in split_sentences(lines[number])
            if len(sentence.split()) in WORDS
        ]
        sentences += [found[i] for i in random.permutation(len(found))[:count]]
    return [" ".join(sentence.split()) for sentence in sentences]


def read_lines(path):
    """Returns the lines of a packed file."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")


def kept_vectors(teacher, sentences, path):
    """Returns the vectors of the teacher, computed once."""
    if not path.is_file():
        model = bb.BertEncoder.from_pretrained(teacher)
        vectors = model.embed_texts(sentences, "mean", LENGTH, batch_size=128)
        np.save(path, to_length_one(vectors).astype("float16"))
    return np.load(path).astype("float32")


def to_length_one(vectors):
    """Returns the directions of vectors `(B, D)`."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def center(vectors):
    """Returns directions seen from the mean, which all sentences share."""
    return to_length_one(vectors - vectors.mean(axis=0))


def train(sentences, wanted, out):
    """Teaches the vector of [CLS] to point where the teacher's does."""
    keras.utils.set_random_seed(0)
    size, epochs = RECIPE["batch_size"], RECIPE["epochs"]
    model = bb.BertForSequenceClassification.from_pretrained(
        "mini", num_labels=wanted.shape[1]
    )
    pieces = model.tokenizer.encode_pieces(sentences)
    lengths = np.minimum([len(row) + 2 for row in pieces], LENGTH)
    steps = epochs * (len(sentences) // size)
    schedule = WarmupLinearDecay(
        RECIPE["learning_rate"], int(RECIPE["warmup"] * steps), steps
    )
    model.compile(make_optimizer(schedule), one_minus_cosine)
    log, losses, start = out / "log.csv", [], time.time()
    log.write_text("step,loss\n", encoding="utf-8")
    for epoch in range(epochs):
        for rows, length in draw_batches(lengths, size, LENGTH, (0, epoch)):
            if len(rows) < size:
                continue
            texts = [sentences[row] for row in rows]
            batch = model.tokenizer(texts, None, length, "max_length")
            losses.append(float(model.train_on_batch(batch, wanted[rows])))
            if len(losses) % 100 == 0:
                mean = sum(losses[-100:]) / 100
                with open(log, "a", encoding="utf-8") as file:
                    file.write(f"{len(losses)},{mean:.4f}\n")
                passed = (time.time() - start) / 60
                print(
                    len(losses),
                    steps,
                    f"{mean:.4f}",
                    f"{passed:.1f} min",
                    flush=True,
                )
        model.encoder.tokenizer = model.tokenizer
        model.encoder.save_pretrained(out / "model")
    facts = RECIPE | {"sentences": len(sentences), "steps": len(losses)}
    (out / "recipe.json").write_text(json.dumps(facts), encoding="utf-8")


def one_minus_cosine(wanted, vectors):
    """Returns how far directions differ: 0 the same, 1 at a right angle."""
    length = keras.ops.sqrt(keras.ops.sum(vectors * vectors, -1) + 1e-9)
    return 1 - keras.ops.sum(wanted * vectors, -1) / length


def ship(out, teacher):
    """Copies the model to its place, with its figures and its card."""
    model = bb.BertEncoder.from_pretrained(out / "model")
    model.save_pretrained(TARGET, "float16")
    shutil.copy(out / "log.csv", TARGET / "log.csv")
    facts = {
        "stsb_spearman": {
            "mini": compare(bb.BertEncoder.from_pretrained("mini")),
            "mini-sentences": compare(bb.BertEncoder.from_pretrained(TARGET)),
            "teacher": compare(bb.BertEncoder.from_pretrained(teacher)),
        },
        "training": json.loads((out / "recipe.json").read_text("utf-8")),
    }
    cards.keep(TARGET, facts, write_card(facts))


def compare(encoder):
    """Returns how cosines of mean vectors follow people, untrained to do so.

    Spearman's correlation on the development set of STS-B.
    """
    pairs = bb.load_dataset("stsb", "dev")
    one, two = (
        center(to_length_one(encoder.embed_texts(pairs[name], "mean", LENGTH)))
        for name in ("text", "text_pair")
    )
    return round(metrics.spearman(pairs["label"], (one * two).sum(axis=1)), 4)


def write_card(facts):
    """Returns the text of the card."""
    training, spearman = facts["training"], facts["stsb_spearman"]
    paragraphs = [
        "# mini-sentences",
        "`mini`, trained further so that its vector of a sentence points "
        "where a larger model's does. It is a start for tasks that ask for a "
        "class of one sentence, where `mini` itself is hardly better than "
        "random weights.",
        "## Teacher",
        "all-MiniLM-L6-v2 (Apache 2.0), a published encoder of sentences, 6 "
        "layers of width 384, trained by others on about a billion pairs of "
        "texts. Its vector of a sentence is the mean over its tokens, less "
        "the mean over all sentences, at length 1. What it has read reaches "
        "this model through those vectors only.",
        "## Sentences",
        f"{training['sentences']:,} English sentences, without labels: those "
        "of the English and Spanish pairs of Tatoeba (CC BY 2.0), and 34,000 "
        "of the corpus of `mini` (college textbooks of OpenStax, CC BY 4.0; "
        "speeches of American presidents; old British novels). No text is "
        "passed on here.",
        "## Recipe",
        f"{training['epochs']} epochs, {training['steps']:,} steps of "
        f"{training['batch_size']} sentences, AdamW with a peak of "
        f"{training['learning_rate']:g} after a warm-up over "
        f"{training['warmup']:.0%} of the steps, then in a line down to 0. A "
        "matrix takes the pooled vector of [CLS] to the 384 numbers of the "
        "teacher, and is thrown away at the end; the loss is 1 less the "
        "cosine. `tools/models/train_sentences.py` is the whole recipe, "
        "`log.csv` the loss. The head of masked words is gone.",
        "## Figures",
        "How well cosines of mean vectors follow the judgment of people, "
        "without training for it (STS-B, development set, Spearman, percent; "
        "the mean vector of all sentences taken away): "
        + ", ".join(f"{name} {100 * v:.1f}" for name, v in spearman.items())
        + ". Its figures on small sets stand in `docs/results.md`.",
        "## Limits",
        "It reads up to 64 tokens well, in English. The limits of `mini` and "
        "of the teacher are its limits, too.",
        cards.license_paragraph("mini-sentences"),
    ]
    return cards.join(paragraphs)


if __name__ == "__main__":
    main()
