"""Copies a taught model to a folder, with its figures and its card.

    .venv/bin/python tools/models/ship_taught.py OUT TARGET [FOLDER]

OUT is the folder of `tools/models/teach_on_gpu.py`, FOLDER what
`tools/models/mix_corpus.py` makes, `local/long` if it is not named. Weights are
stored as float16, and dropout goes back to the paper's 0.1, for fine-tuning.
"""

import csv
import dataclasses
import sys
from pathlib import Path

import numpy as np

import bertbook as bb
import cards
from ship_mini import VOCABULARY, copy_model, measure_bits, write_log
from teach_on_gpu import LAYERS, LONG, MASK_RATE, PART, SENTENCES, SHARES, SHORT

LOG = ("step", "tokens", "rate", *SHARES, "bits", "held_out_mlm_accuracy")


def main():
    """Ships the model."""
    out, target = map(Path, sys.argv[1:3])
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else "local/long")
    copy_model(out / "model", target)
    write_log(out / "log.csv", target / "log.csv", LOG)
    with open(out / "log.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ends = {n: [float(rows[i][n]) for i in (0, -1)] for n in SHARES}
    facts = {
        "part": dataclasses.asdict(PART),
        "tokens": int(rows[-1]["tokens"]),
        "seconds": float(rows[-1]["seconds"]),
        "losses": ends,
        "bits": measure(target, folder),
    }
    cards.keep(target, facts, write_card(target, facts))


def measure(model_folder, folder):
    """Returns bits a character of the held-out text of each genre."""
    model = bb.BertForPreTraining.from_pretrained(model_folder)
    folders = sorted((folder / f"genres-{VOCABULARY}").iterdir())
    return {path.name: measure_bits(model, path) for path in folders}


def write_card(folder, facts):
    """Returns the text of the card."""
    part, losses = facts["part"], facts["losses"]
    bits = [b for genre, b in facts["bits"].items() if genre != "today"]
    falls = ", ".join(
        f"{name.replace('_loss', '')} from {first:.2f} to {last:.2f}"
        for name, (first, last) in losses.items()
        if name != "mlm_loss"
    )
    shares = ", ".join(
        f"{name.replace('_loss', '')} {share:g}"
        for name, share in SHARES.items()
    )
    paragraphs = [
        f"# {folder.name}",
        "`mini` after a lesson from all-MiniLM-L6-v2, a published encoder of "
        "6 layers and width 384 (Apache 2.0), which its makers tuned on a "
        "billion pairs of texts, questions of SQuAD with their passages among "
        "them. Same shape, same pieces, in float16. The head that guesses "
        "hidden words is alive; that of the next sentence is not, because the "
        "lesson gave its input another meaning.",
        "## Lesson",
        f"{facts['tokens'] / 1e6:.0f} million tokens of the corpus of `mini`: "
        f"texts of up to {LONG} tokens, and {SENTENCES} single sentences of "
        f"up to {SHORT} beside each. Both models read the same words, each in "
        f"its own pieces; {MASK_RATE:.0%} of the student's are hidden. The "
        "vector of a word is the mean of its pieces. Three losses: hidden "
        "words; words, 1 minus the cosine with what the teacher's layers "
        f"{LAYERS[0]} and {LAYERS[1]} say, after a matrix that is thrown away; "
        "texts, the same for the pooled vector of [CLS] and the teacher's "
        "mean of a text. The teacher's mean vector is taken off first. "
        f"Weights: {shares}. {part['batch_size']} texts a step, a rate of "
        f"{part['begin']:g} linearly down to {part['end']:g}. "
        f"{facts['seconds'] / 60:.0f} minutes of one H200. "
        "`tools/models/teach_on_gpu.py` is the recipe of the lesson, `log.csv` "
        "the curve.",
        "The lesson began from `mini` as its third part left it, before its "
        "long positions were mended. So the vectors of the positions from 128 "
        "on were taken from the finished `mini` and trained alone, on hidden "
        "words: 400 steps of 16 rows of 512 tokens, on two processor cores. "
        "On such rows it still guesses worse than `mini`.",
        "## Figures",
        f"The losses fell: {falls}. On held-out text of {len(bits)} genres it "
        f"needs {np.mean(bits):.2f} bits a character for hidden words.",
        "## Limits",
        "For two sentences in one row it is no better than `mini`: STS-B, "
        "Spearman, 81.1 against 83.4; MRPC 73.1 against 76.4 percent right "
        "(dev, three seeds each). And those of `mini`, and what its teacher "
        "took for granted.",
        cards.license_paragraph(folder.name),
    ]
    return cards.join(paragraphs)


if __name__ == "__main__":
    main()
