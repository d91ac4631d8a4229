"""Trains `data/models/en-es`, which translates English into Spanish.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/train_translation.py OUT

FOLDER/spa_eng holds the pairs. The training takes 38 minutes, whatever the
machine; the log says how far it came. The same command goes on where it
stopped, and at its end copies the translator to its place, with its log, its
figures on the test set, and its card.
"""

import csv
import sys
from pathlib import Path

import bertbook as bb
import cards
from bertbook.translation.train import (
    SMALL,
    Recipe,
    Reporting,
    train_translation,
)
from bertbook.translation.translate import columns_of, score, translate

TARGET = cards.MODELS / "en-es"
RECIPE = Recipe(
    steps=100_000,
    minutes=38,
    batch_tokens=1_536,
    learning_rate=1e-3,
    warmup_steps=600,
    checkpoint_steps=100,
    averaged=8,
    dtype="mixed_bfloat16",
)
REPORTING = Reporting(log_steps=50, evaluation_steps=500, translated=300)
GREETING = "Hello! How are you?"
SAMPLES = (
    GREETING,
    "I would like a cup of coffee, please.",
    "She has lived in this house for ten years.",
    "Why didn't you tell me the truth?",
    "The committee adopted the proposal without amendment.",
)


def main():
    """Trains the translator and copies it to its place."""
    bb.setup()
    out = Path(sys.argv[1])
    train, dev, test = (
        bb.load_dataset("spa_eng", split) for split in ("train", "dev", "test")
    )
    model = train_translation(train, out, RECIPE, dev, SMALL, False, REPORTING)
    model.save_pretrained(TARGET, "float16")
    log = write_log(out / "log.csv", TARGET / "log.csv")
    facts = measure(dev, test) | {
        "train_pairs": len(columns_of(train)[0]),
        "steps": int(log[-1]["step"]),
        "epochs": float(log[-1]["epoch"]),
        "minutes": round(float(log[-1]["seconds"]) / 60, 1),
    }
    cards.keep(TARGET, facts, write_card(facts))


def write_log(source, target):
    """Copies a log without the speed of the machine, and returns its rows."""
    with open(source, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != "tokens_per_second"]
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, names, extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
    return rows


def measure(dev, test):
    """Returns scores of the file that ships, and translations of samples."""
    model = bb.Seq2SeqTransformer.from_pretrained(TARGET)
    scores = {
        "test_pairs": len(columns_of(test)[0]),
        "test": rounded(score(model, test)),
        "test_greedy": rounded(score(model, test, search="greedy")),
        "dev": rounded(score(model, dev)),
    }
    written = translate(model, SAMPLES)
    return scores | {"samples": dict(zip(SAMPLES, written, strict=True))}


def rounded(scores):
    """Returns BLEU and chrF with two digits, and how they were computed."""
    return {
        name: round(value, 2) if isinstance(value, float) else value
        for name, value in scores.items()
    }


def write_card(facts):
    """Returns the text of the card."""
    config = bb.Seq2SeqConfig.from_json(TARGET / "config.json")
    test, greedy = facts["test"], facts["test_greedy"]
    samples = [
        f"- {text}\n  {written}" for text, written in facts["samples"].items()
    ]
    paragraphs = [
        "# en-es",
        "A small Transformer that translates a sentence from English into "
        f"Spanish: {config.num_hidden_layers} layers that read and "
        f"{config.decoder_layers} that write, width {config.hidden_size}, "
        f"{config.num_attention_heads} heads, {config.vocab_size:,} pieces "
        f"of English and {config.output_size:,} of Spanish, capitals and "
        f"accents kept, up to {config.max_position_embeddings} tokens, in "
        "float16. `bertbook.translate` and `python -m bertbook translate` "
        "run it.",
        "## Data",
        f"{facts['train_pairs']:,} pairs of the English and Spanish sentences "
        "of Tatoeba (CC BY 2.0, www.manythings.org/anki and tatoeba.org), "
        "most of them short, everyday sentences. Both vocabularies were "
        "trained on them. No text is passed on here.",
        "## Recipe",
        f"{facts['minutes']:.0f} minutes, {facts['steps']:,} steps of "
        f"{RECIPE.batch_tokens:,} tokens a side, {facts['epochs']:.1f} "
        f"epochs. Adam with a peak of {RECIPE.learning_rate:g} after "
        f"{RECIPE.warmup_steps:,} steps, then down by the root of the step; "
        f"dropout {config.hidden_dropout_prob:g}, labels smoothed by "
        f"{RECIPE.label_smoothing:g}; the mean of the weights of the last "
        f"{RECIPE.averaged} checkpoints, {RECIPE.checkpoint_steps} steps "
        f"apart; computed in {RECIPE.dtype}. "
        "`tools/models/train_translation.py` is the whole recipe, `log.csv` "
        "the loss, with BLEU and chrF of 300 pairs of the development set, "
        "translated greedily.",
        "## Figures",
        f"On the test set, {facts['test_pairs']:,} pairs, from the file that "
        f"ships: BLEU {test['bleu']:.1f}, chrF {test['chrf']:.1f} with a beam "
        f"of 4; BLEU {greedy['bleu']:.1f}, chrF {greedy['chrf']:.1f} greedily "
        f"({test['signatures']['bleu']}).",
        "## Samples",
        *samples,
        "## Limits",
        "It knows the words and the short sentences of a phrase book. A long "
        "sentence, a name, a number or a word of a trade may come out wrong, "
        "fluently; it does not say so. None of its sentences is in capitals: "
        "`translate` gives it such a text in small letters, and puts the "
        "translation in capitals. A text of which it knows nothing, such as "
        "an emoji alone, is refused. Many of its sentences speak of one Tom. "
        "What people took for granted who wrote the sentences, such as "
        "who is a nurse and who a doctor, it took over.",
        cards.license_paragraph("en-es"),
    ]
    return cards.join(paragraphs)


if __name__ == "__main__":
    main()
