"""Pre-trains a BERT on the mixed corpus: trials of minutes, runs of days.

    .venv/bin/python tools/models/train_long.py SIZE PLAN [FOLDER]

SIZE is a published size, "mini" or "small". PLAN is one of `PLANS`. FOLDER,
`local/long` if it is not named, holds what `tools/models/mix_corpus.py` makes
there; the run goes to FOLDER/SIZE-PLAN, one folder for each of its parts. The
same command goes on where it stopped, with the same bytes, also after
`kill -9`.

`nice -n 19` keeps it out of the way of other work, but on Linux only within its
own session: `echo 19 > /proc/PID/autogroup` does it for all. `kill -STOP` and
`kill -CONT` pause it.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

import bertbook as bb
from bertbook.files import read_json
from bertbook.pretraining import evaluation
from bertbook.pretraining.corpus import Corpus
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Masking, Pieces
from bertbook.pretraining.pretrain import PretrainingRecipe, Reporting, pretrain
from bertbook.runtime import keras

POSITIONS = 512
HELD_OUT_ROWS = 256  # of each genre
EVALUATION_TOKENS = 20_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a plan, which begins where the part before it ended.

    Attributes:
        tokens: How many are read, padding counted.
        rate: The highest learning rate.
        end: Share of it that is left at the end.
        warmup: Share of the part on the way up.
        batch_size: Rows a step.
        length: Tokens a row.
        mask_rate: Share of the tokens that are hidden.
        seed: Another one for every part, so that each draws its own order.
    """

    tokens: int
    rate: float = 1e-3
    end: float = 0.0
    warmup: float = 0.02
    batch_size: int = 64
    length: int = 128
    mask_rate: float = 0.2
    seed: int = 0

    @property
    def steps(self) -> int:
        """Updates of the weights."""
        return self.tokens // (self.batch_size * self.length)

    def every(self, tokens: int) -> int:
        """Returns how many steps read so many tokens, at most all."""
        return min(self.steps, tokens // (self.batch_size * self.length))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Parts, the pieces of the vocabulary, and the spread of the start."""

    parts: tuple[Part, ...]
    vocab_size: int = 16_384
    initializer_range: float = 0.02


# Rows of 32 tokens first: at 128 a model that starts from random weights stays
# with the frequencies of single pieces for over 10 million tokens.
SHORT = Part(tokens=5_000_000, warmup=0.1, end=1.0, batch_size=256, length=32)
TRIAL = Part(tokens=5_000_000, seed=1)
# The rate stays where it is until the last parts, so that parts can be added in
# front of them; a tenth of the tokens is read at 512, as in the paper.
LONG = (
    dataclasses.replace(SHORT, tokens=8_000_000),
    Part(tokens=92_000_000, end=1.0, warmup=0.01, seed=1),
    Part(tokens=200_000_000, end=1.0, warmup=0.01, batch_size=128, seed=2),
    Part(tokens=240_000_000, end=0.1, warmup=0.01, batch_size=128, seed=3),
    Part(
        tokens=60_000_000,
        rate=1e-4,
        warmup=0.01,
        batch_size=32,
        length=512,
        seed=4,
    ),
)
PLANS = {
    "long": Plan(parts=LONG),
    "trial": Plan(parts=(SHORT, TRIAL)),
    "trial-8192": Plan(parts=(SHORT, TRIAL), vocab_size=8_192),
    "trial-never-short": Plan(
        parts=(Part(tokens=10_000_000, warmup=0.1),), initializer_range=0.05
    ),
    "trial-rate-2e-3": Plan(
        parts=(SHORT, dataclasses.replace(TRIAL, rate=2e-3))
    ),
    "trial-rate-5e-4": Plan(
        parts=(SHORT, dataclasses.replace(TRIAL, rate=5e-4))
    ),
    "trial-mask-15": Plan(
        parts=(SHORT, dataclasses.replace(TRIAL, mask_rate=0.15))
    ),
    "trial-rows-128": Plan(
        parts=(SHORT, dataclasses.replace(TRIAL, batch_size=128))
    ),
}


def main():
    """Runs a plan, or goes on with it."""
    bb.setup()
    size, name = sys.argv[1:3]
    plan = PLANS[name]
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else "local/long")
    run(size, plan, folder, folder / f"{size}-{name}")


def run(size: str, plan: Plan, folder: Path, out: Path) -> None:
    """Trains the parts of a plan, one after the other."""
    tokenizer = bb.Tokenizer.from_pretrained(
        folder / f"vocabulary-{plan.vocab_size}"
    )
    shards = folder / f"shards-{plan.vocab_size}"
    record = read_json(shards / "corpus.json")
    start = draw_start(size, plan, tokenizer, out / "start")
    for number, part in enumerate(plan.parts, 1):
        corpus = Corpus(shards, record if number == 1 else without_once(record))
        settings = ExampleSettings(
            max_length=part.length, masking=Masking(rate=part.mask_rate)
        )
        pretrain(
            corpus,
            out / f"part_{number}",
            PretrainingRecipe(
                steps=part.steps,
                batch_size=part.batch_size,
                learning_rate=part.rate,
                warmup=part.warmup,
                end=part.end,
                dtype="auto",
                seed=part.seed,
            ),
            model=start,
            tokenizer=tokenizer,
            examples=settings,
            workers=1,
            reporting=Reporting(
                log_steps=part.every(1_000_000),
                evaluation_steps=part.every(EVALUATION_TOKENS),
                checkpoint_steps=part.every(4_000_000),
            ),
            evaluate=by_genre(folder / f"genres-{plan.vocab_size}", tokenizer),
        )
        start = str(out / f"part_{number}")


def without_once(record: dict) -> dict:
    """Returns the record of a corpus without the shards that are read once."""
    shards = record["shards"]
    every = shards["train"] - record["once"]
    return {**record, "shards": {**shards, "train": every}, "once": 0}


def draw_start(
    size: str, plan: Plan, tokenizer: bb.Tokenizer, folder: Path
) -> str:
    """Writes the random weights that a run begins with; returns the folder.

    Dropout is 0: a model this small does not learn a corpus this large by
    heart in a few epochs.
    """
    if not (folder / "model.safetensors").is_file():
        config = bb.BertConfig.named(
            size,
            vocab_size=len(tokenizer),
            max_position_embeddings=POSITIONS,
            initializer_range=plan.initializer_range,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        keras.utils.set_random_seed(0)
        bb.BertForPreTraining(config).save_pretrained(folder)
    return str(folder)


def by_genre(folder: Path, tokenizer: bb.Tokenizer):
    """Returns a function that scores a model on each genre's held-out text.

    Length 128 and 15% hidden, as in the paper, whatever is trained with: bits
    a character of each genre, and for all of them together their mean, the
    share of hidden tokens that are guessed, and next sentences.
    """
    settings = ExampleSettings()
    pieces = Pieces.of(tokenizer)
    examples = {}
    for path in sorted(folder.iterdir()):
        corpus = Corpus(path, read_json(path / "corpus.json"))
        examples[path.name] = evaluation.held_out_examples(
            corpus, pieces, settings, limit=HELD_OUT_ROWS, part="train"
        )

    def evaluate(model):
        found = {
            genre: evaluation.score_pretraining(model, batch)
            for genre, batch in examples.items()
        }
        row = {
            f"bits_{genre}": evaluation.bits_per_character(
                found[genre]["mlm_loss"], batch, tokenizer
            )
            for genre, batch in examples.items()
        }
        row["bits"] = float(np.mean(list(row.values())))
        for name in ("mlm_accuracy", "nsp_accuracy"):
            mean = np.mean([score[name] for score in found.values()])
            row[f"held_out_{name}"] = float(mean)
        return row

    return evaluate


if __name__ == "__main__":
    main()
