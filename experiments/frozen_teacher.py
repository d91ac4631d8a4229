"""What the teacher of `mini-taught` holds in its frozen vectors.

    BERTBOOK_MINILM=FOLDER python -m experiments.frozen_teacher

Asks all-MiniLM-L6-v2 what chapter 53 asks its students: logistic regression on
the mean vector of a text learns from 100 opinions, 20 times, and is asked about
those of dev. Writes data/runs/frozen_teacher.json: how often each row of dev
was right, and the mean vector's share of the squared length, layer by layer,
over every twelfth sentence of the shelf.
"""

import json
import os

import numpy as np
from keras import ops
from sklearn.linear_model import LogisticRegression

import bertbook as bb
from bertbook.locations import shelf
from bertbook.text.sentences import split_sentences
from experiments.floors import written_in
from experiments.larger_model import MODEL
from experiments.results import ROOT

KEPT = ROOT / "data" / "runs" / "frozen_teacher.json"
CHAPTER = "53_learning_from_a_larger_model"
EVERY = 12  # sentences of the shelf


def main():
    """Asks the teacher, and writes the file."""
    encoder = bb.BertEncoder.from_pretrained(os.environ["BERTBOOK_MINILM"])
    train, dev = (
        bb.load_dataset("opinions", part) for part in ("train", "dev")
    )
    # The chapter's own probe, with the names that it finds there.
    known = {"np": np, "LogisticRegression": LogisticRegression}
    known |= {"train": train, "dev": dev}
    probe = written_in(CHAPTER, "probe", **known)["probe"]
    kept = {
        "model": MODEL,
        "texts": list(dev["text"]),
        "right": probe(encoder).round(2).tolist(),
        "mean_share": mean_shares(encoder).round(3).tolist(),
    }
    text = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    KEPT.write_text(text, encoding="utf-8")
    print(np.mean(kept["right"]), kept["mean_share"])


def mean_shares(encoder):
    """Returns the share of the mean vector after each layer, `(L + 1,)`."""
    texts = []
    for path in shelf():
        for line in path.read_text("utf-8").splitlines():
            texts += split_sentences(line)
    vectors = []  # of the tokens of each text, (layers, tokens, D)
    for text in texts[::EVERY]:
        outputs = encoder(encoder.tokenizer([text]), output_hidden_states=True)
        layers = map(ops.convert_to_numpy, outputs["hidden_states"])
        vectors.append(np.concatenate(list(layers)))
    every = np.concatenate(vectors, axis=1)
    squares = (every**2).sum(axis=-1).mean(axis=1)
    shares = (every.mean(axis=1) ** 2).sum(axis=-1) / squares
    return shares.astype("float64")


if __name__ == "__main__":
    main()
