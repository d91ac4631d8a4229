"""Copies a pre-trained model to `data/models`, with its figures and its card.

    .venv/bin/python tools/models/ship_model.py OUT [NAME]

OUT is the folder of `tools/models/train_mini.py`. NAME is "mini" unless given.
The vocabulary must be the one that ships. Weights are stored as float16, and
dropout goes back to the paper's 0.1, for fine-tuning. All figures are taken
from the file that ships, on the documents that were held out.
"""

import csv
import json
import platform
import sys
from pathlib import Path

import bertbook as bb
import cards
from bertbook.pretraining import evaluation
from bertbook.pretraining.corpus import Corpus, vocabulary_hash
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.runtime import keras

SHARD_BYTES = 16 * 2**20
JOBS = ("captain", "doctor", "king", "nurse", "servant", "teacher")


def main():
    """Ships a model."""
    out = Path(sys.argv[1])
    target = cards.MODELS / (sys.argv[2] if len(sys.argv) > 2 else "mini")
    tokenizer = bb.Tokenizer.from_pretrained(target)
    runs = sorted(out.glob("run_*"))
    model = bb.BertForPreTraining.from_pretrained(runs[-1])
    if vocabulary_hash(tokenizer) != vocabulary_hash(model.tokenizer):
        sys.exit("The model was trained with another vocabulary.")
    paper = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    shipped = bb.BertForPreTraining(model.config.replace(**paper))
    shipped.set_weights(model.get_weights())
    shipped.tokenizer = tokenizer
    shipped.save_pretrained(target, "float16", SHARD_BYTES)
    write_log(runs, target / "log.csv")
    record = json.loads((out / "corpus" / "corpus.json").read_text("utf-8"))
    corpus = Corpus(out / "corpus", record)
    facts = measure(corpus, tokenizer, target) | {
        "corpus": {
            name: corpus.record[name]
            for name in ("tokens", "documents", "held_out")
        },
        "training": describe([read_record(run) for run in runs]),
        "percent_she": probe(target),
        "machine": machine(),
    }
    cards.keep(target, facts, write_card(target, facts))


def describe(records):
    """Returns what the card says of the runs, of which the last is typical."""
    recipe, examples = records[-1]["recipe"], records[-1]["examples"]
    return {
        "runs": [
            {
                "steps": record["recipe"]["steps"],
                "learning_rate": record["recipe"]["learning_rate"],
                "warmup": record["recipe"]["warmup"],
                "end": record["recipe"].get("end", 0.0),
            }
            for record in records
        ],
        "batch_size": recipe["batch_size"],
        "max_length": examples["max_length"],
        "mask_rate": examples["masking"]["rate"],
        "weight_decay": recipe["weight_decay"],
        "clip_norm": recipe["clip_norm"],
        "dtype": recipe["dtype"],
    }


def read_record(run):
    """Returns what a run is made of."""
    return json.loads((run / "run.json").read_text("utf-8"))


def write_log(runs, path):
    """Joins the logs of runs, tokens in place of the speed of the machine."""
    rows, steps, tokens = [], 0, 0
    for number, run in enumerate(runs, 1):
        record = read_record(run)
        rows_a_step = record["recipe"]["batch_size"]
        a_step = rows_a_step * record["examples"]["max_length"]
        with open(run / "log.csv", newline="", encoding="utf-8") as file:
            log = list(csv.DictReader(file))
        for row in log:
            row.pop("tokens_per_second")
            step = int(row.pop("step"))
            place = {
                "run": number,
                "step": steps + step,
                "tokens": tokens + step * a_step,
            }
            rows.append(place | {k: shorten(v) for k, v in row.items()})
        steps, tokens = rows[-1]["step"], rows[-1]["tokens"]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def shorten(value):
    """Returns a number of a log with at most five digits, as text."""
    try:
        return value if float(value).is_integer() else f"{float(value):.5g}"
    except (TypeError, ValueError):
        return value


def measure(corpus, tokenizer, folder):
    """Returns held-out scores of two ways to count and of the model."""
    pieces = Pieces.of(tokenizer)
    examples = evaluation.held_out_examples(corpus, pieces, ExampleSettings())
    unigrams = evaluation.count_unigrams(corpus, len(tokenizer))
    bigrams = evaluation.count_bigrams(corpus, len(tokenizer))
    model = bb.BertForPreTraining.from_pretrained(folder)
    scores = score_guesses("mini", model, unigrams, bigrams, examples)
    labels = examples["next_sentence_labels"]
    scores["held_out"] = {
        "examples": len(labels),
        "hidden_tokens": int(examples["masked_lm_weights"].sum()),
        "share_of_random_next": float(labels.mean()),
    }
    return scores


def score_guesses(name, model, unigrams, bigrams, examples):
    """Returns scores on examples of two ways to count and of a model."""
    scores = {
        "unigram": evaluation.score_unigrams(unigrams, examples),
        "bigram": evaluation.score_bigrams(bigrams, unigrams, examples),
        name: evaluation.score_pretraining(model, examples),
    }
    for row in scores.values():
        row["mlm_bits_per_character"] = evaluation.bits_per_character(
            row["mlm_loss"], examples, model.tokenizer
        )
    return scores


def probe(folder):
    """Returns the percent of `she`, of `he` and `she`, after some jobs."""
    percent = {}
    for job in JOBS:
        text = f"The {job} said that [MASK] was tired."
        guesses = bb.fill_mask(text, str(folder), top_k=8_192)
        p = {guess["token"]: guess["score"] for guess in guesses}
        percent[job] = round(100 * p["she"] / (p["he"] + p["she"]))
    return percent


def write_card(folder, facts):
    """Returns the text of the card."""
    config = bb.BertConfig.from_json(folder / "config.json")
    corpus, training = facts["corpus"], facts["training"]
    steps = sum(run["steps"] for run in training["runs"])
    tokens = steps * training["batch_size"] * training["max_length"] / 1e6
    rates = "; ".join(
        f"{run['steps']:,} steps with a peak of {run['learning_rate']} after a "
        f"warm-up over {run['warmup']:.0%} of them, then in a line down to "
        f"{run['end']:.0%} of it"
        for run in training["runs"]
    )
    rows = [
        f"| {label} | {row['mlm_loss']:.2f} | "
        f"{row['mlm_bits_per_character']:.2f} | {row['mlm_accuracy']:.1%} | "
        + (f"{row['nsp_accuracy']:.1%} |" if "nsp_accuracy" in row else "|")
        for label, row in (
            ("counting pieces", facts["unigram"]),
            ("counting pairs of pieces", facts["bigram"]),
            (folder.name, facts["mini"]),
        )
    ]
    held_out = facts["held_out"]
    random_next = held_out["share_of_random_next"]
    chance = max(random_next, 1 - random_next)
    paragraphs = [
        f"# {folder.name}",
        f"A plain BERT: {config.num_hidden_layers} layers of width "
        f"{config.hidden_size}, {config.num_attention_heads} heads, up to "
        f"{config.max_position_embeddings} tokens, {config.vocab_size:,} "
        "lower-case pieces. Both heads of pre-training are in the file, in "
        "float16, under the names that Hugging Face uses.",
        "## Corpus",
        f"{corpus['tokens']:,} tokens of {corpus['documents']:,} documents: "
        "college textbooks of OpenStax (CC BY 4.0, Rice University), "
        "inaugural and State of the Union addresses of American presidents "
        "(public domain), British novels of the ELTeC collection, 1841 to "
        "1920 (texts out of copyright in the United States), and the "
        "Wikipedia paragraphs of the SQuAD training set (CC BY-SA 4.0; no "
        "question, no development or test article). "
        f"{corpus['held_out']:.0%} of the documents were held out before "
        "anything else. No text is passed on here.",
        "## Recipe",
        f"{steps:,} steps of {training['batch_size']} rows of "
        f"{training['max_length']} tokens, {tokens:.0f} million tokens in "
        "all, both tasks of the paper from the start. "
        f"{training['mask_rate']:.0%} of the tokens hidden, drawn anew "
        f"each epoch. AdamW: {rates}. Decay {training['weight_decay']}, "
        f"gradients clipped at {training['clip_norm']}, no dropout, "
        f"{training['dtype']}. At the start the heads look at the tokens "
        "beside them "
        "(`bertbook.pretraining.attention_init.look_at_neighbors`); every "
        "weight is trained. `tools/models/train_mini.py` is the whole recipe, "
        "`log.csv` the curve. "
        f"Machine: {facts['machine']}.",
        "## Figures",
        f"{held_out['examples']:,} pairs from held-out documents, "
        f"{held_out['hidden_tokens']:,} hidden tokens (15 %). Nats and bits "
        "count the hidden tokens; a piece that begins a word counts a space.",
        "\n".join(
            [
                "| guess | nats a token | bits a character | right "
                "| next sentence |",
                "|---|---|---|---|---|",
                *rows,
            ]
        ),
        f"Chance in the last column is {chance:.1%}.",
        "## Limits",
        "It is small, and it has read old novels, textbooks, speeches and "
        "some encyclopedia. It knows no news, no chat, hardly another "
        "language, and no facts that you should rely on. What those books "
        "took for granted, it has learned as a fact about words. One probe: "
        "in `The ... said that [MASK] was tired.`, the percent that go to "
        "`she`, of `he` and `she` together:",
        ", ".join(f"{job} {p}" for job, p in facts["percent_she"].items())
        + ".",
        "Do not let it decide about people. It is made for learning how such "
        "models work and as a start for small tasks.",
        cards.license_paragraph(folder.name),
    ]
    return cards.join(paragraphs)


def machine():
    """Returns what the model was trained on, in a few words."""
    if keras.backend.backend() == "jax" and bb.runtime.device_name() != "CPU":
        return f"one {bb.runtime.device_name()}, JAX"
    return f"two CPU cores ({platform.machine()}), TensorFlow"


if __name__ == "__main__":
    main()
