"""Trains `data/models/mini`.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/models/train_mini.py OUT [PLAN]

FOLDER/corpus holds textbooks, speeches and novels, FOLDER/squad the paragraphs
of the SQuAD training articles. PLAN is one of those below; "cpu" takes two to
three hours on two cores, "gpu" 20 minutes on a fast GPU with JAX. The same
command goes on where it stopped; `tools/models/ship_model.py` copies the result
to its place.
"""

import dataclasses
import json
import lzma
import os
import sys
from pathlib import Path

import bertbook as bb
from bertbook.pretraining import pretrain as pretraining
from bertbook.pretraining.attention_init import look_at_neighbors
from bertbook.pretraining.corpus import prepare
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Masking
from bertbook.pretraining.pretrain import PretrainingRecipe, Reporting, pretrain
from bertbook.runtime import keras


@dataclasses.dataclass(frozen=True)
class Plan:
    """Runs, one after the other, each from where the one before ended."""

    recipes: tuple[PretrainingRecipe, ...]
    workers: int = 0


BY_TWO_CORES = PretrainingRecipe(batch_size=32, dtype="mixed_bfloat16")
BY_A_GPU = PretrainingRecipe(batch_size=512, dtype="mixed_bfloat16")
PLANS = {
    "trial": Plan(
        (
            dataclasses.replace(
                BY_TWO_CORES, steps=250, learning_rate=1e-3, warmup=0.2
            ),
        )
    ),
    # The first rate was too high: the loss hung at 5.0 and fell at once when
    # the second run began.
    "cpu": Plan(
        (
            dataclasses.replace(
                BY_TWO_CORES,
                steps=2_000,
                learning_rate=1.5e-3,
                end=0.7,
            ),
            dataclasses.replace(
                BY_TWO_CORES,
                steps=4_800,
                learning_rate=7e-4,
                warmup=0.01,
                seed=1,
            ),
            dataclasses.replace(
                BY_TWO_CORES,
                steps=5_400,
                learning_rate=7e-4,
                warmup=0.01,
                seed=2,
            ),
        )
    ),
    "gpu": Plan(
        (
            dataclasses.replace(
                BY_A_GPU, steps=15_000, learning_rate=1e-3, warmup=0.02
            ),
        ),
        workers=4,
    ),
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
    start = make_start(tokenizer, out / "start")
    for number, recipe in enumerate(plan.recipes, 1):
        run = out / f"run_{number}"
        pretrain(
            corpus,
            run,
            recipe,
            model=start,
            tokenizer=tokenizer,
            examples=EXAMPLES,
            workers=plan.workers,
            reporting=Reporting(
                log_steps=100, evaluation_steps=1_000, checkpoint_steps=500
            ),
        )
        start = str(run)


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


if __name__ == "__main__":
    main()
