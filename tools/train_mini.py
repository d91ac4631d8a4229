"""Trains `data/models/mini`.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/train_mini.py OUT [PLAN]

FOLDER/corpus holds textbooks, speeches and novels, FOLDER/squad the paragraphs
of the SQuAD training articles. PLAN is one of those below; "cpu" takes about
75 minutes on two cores, "gpu" 20 minutes on a fast GPU with JAX. The same
command goes on where it stopped; `tools/ship_model.py` copies the result to
its place.
"""

import dataclasses
import json
import lzma
import os
import sys
from pathlib import Path

import bertbook as bb
from bertbook import pretraining
from bertbook.corpus import prepare
from bertbook.examples import ExampleSettings
from bertbook.masking import Masking
from bertbook.neighbors import look_at_neighbors
from bertbook.pretraining import Recipe, Reporting, pretrain
from bertbook.runtime import keras


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long a run is, and what it runs with."""

    millions: int  # tokens
    rows: int
    rate: float
    workers: int = 0


PLANS = {
    "trial": Plan(1, 32, 1.5e-3),
    "cpu": Plan(26, 32, 1.5e-3),
    "gpu": Plan(1_000, 512, 2e-3, workers=4),
}
LENGTH = 128
EXAMPLES = ExampleSettings(max_length=LENGTH, masking=Masking(rate=0.2))


def main():
    """Runs a plan."""
    bb.setup()
    out = Path(sys.argv[1])
    plan = PLANS[sys.argv[2] if len(sys.argv) > 2 else "cpu"]
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder:
        sys.exit("`BERTBOOK_DATA` must name the folder of real data sets.")
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    files = [*collect_files(Path(folder)), write_articles(Path(folder), out)]
    corpus = prepare(files, tokenizer, out / "corpus")
    # TensorFlow's own kernels are faster with 16 bits than XLA's, on CPUs.
    pretraining.COMPILE = keras.backend.backend() == "jax"
    steps = round(plan.millions * 1e6 / (plan.rows * LENGTH))
    pretrain(
        corpus,
        out / "run",
        Recipe(
            steps=steps,
            batch_size=plan.rows,
            learning_rate=plan.rate,
            warmup=min(0.1, 200 / steps),
            dtype="mixed_bfloat16",
        ),
        model=make_start(tokenizer, out / "start"),
        tokenizer=tokenizer,
        examples=EXAMPLES,
        workers=plan.workers,
        reporting=Reporting(
            log_steps=100, evaluation_steps=1_000, checkpoint_steps=500
        ),
    )


def make_start(tokenizer, folder):
    """Writes the model that the run begins with, and returns its folder.

    Dropout is 0: a model this small does not learn a corpus this large by
    heart in a few epochs.
    """
    if not (folder / "model.safetensors").is_file():
        config = bb.BertConfig.named(
            "mini",
            vocab_size=len(tokenizer),
            max_position_embeddings=LENGTH,
            initializer_range=0.05,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        keras.utils.set_random_seed(0)
        model = bb.BertForPreTraining(config)
        look_at_neighbors(model)
        model.save_pretrained(folder)
    return str(folder)


def collect_files(folder):
    """Returns the files of the corpus."""
    return [
        folder / "corpus" / f"{part}.txt.xz"
        for part in ("textbooks", "speeches", "novels")
    ]


def write_articles(folder, out):
    """Writes the paragraphs of the SQuAD training articles as documents."""
    path = out / "articles.txt"
    if not path.is_file():
        packed = folder / "squad" / "train-v1.1.json.xz"
        with lzma.open(packed, "rt", encoding="utf-8") as file:
            articles = json.load(file)["data"]
        text = "\n\n".join(
            "\n".join(
                " ".join(paragraph["context"].split())
                for paragraph in article["paragraphs"]
            )
            for article in articles
        )
        path.write_text(text + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
