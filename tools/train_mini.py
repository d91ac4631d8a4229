"""Trains `data/models/mini`: short texts first, then longer and longer ones.

    BERTBOOK_DATA=FOLDER .venv/bin/python tools/train_mini.py OUT [PLAN]

FOLDER/corpus holds textbooks, speeches and novels, FOLDER/squad the paragraphs
of the SQuAD training articles. PLAN is one of those below; "cpu" takes about
75 minutes on two cores, "gpu" 20 minutes on a fast GPU with JAX. Every stage
is a run of `pretrain` in a folder of OUT: the same command goes on where it
stopped. `tools/ship_model.py` copies the last one to its place.
"""

import csv
import dataclasses
import json
import lzma
import os
import sys
from pathlib import Path

import numpy as np

import bertbook as bb
from bertbook.corpus import prepare
from bertbook.examples import ExampleSettings
from bertbook.masking import Masking
from bertbook.pretraining import Recipe, Reporting, pretrain


@dataclasses.dataclass(frozen=True)
class Stage:
    """One length of text, with its own rates."""

    length: int
    rows: int
    steps: int
    rate: float
    warmup: float = 0.05
    next_sentence: bool = True
    masks: float = 0.15


@dataclasses.dataclass(frozen=True)
class Plan:
    """Stages, and what they run with."""

    stages: tuple[Stage, ...]
    dtype: str = "float32"
    workers: int = 0


def cpu_plan(millions):
    """Returns a plan of 8,192 tokens a step, so many million tokens in all."""
    steps = millions * 1e6 / 8_192
    short, middle, long, full = (
        round(steps * share) for share in (0.30, 0.15, 0.20, 0.35)
    )
    return Plan(
        (
            Stage(16, 512, short, 2e-3, next_sentence=False, masks=0.2),
            Stage(32, 256, middle, 1.5e-3, next_sentence=False, masks=0.2),
            Stage(64, 128, long, 1.5e-3),
            Stage(128, 64, full, 1e-3),
        )
    )


def gpu_plan(millions):
    """Returns a plan of 65,536 tokens a step for most of the tokens."""
    steps = millions * 1e6 / 65_536
    return Plan(
        (
            Stage(16, 1_024, 2_000, 2e-3, next_sentence=False, masks=0.2),
            Stage(32, 1_024, 1_500, 2e-3, next_sentence=False, masks=0.2),
            Stage(64, 1_024, round(steps * 0.1), 2e-3),
            Stage(128, 512, round(steps * 0.9), 2e-3),
        ),
        dtype="mixed_bfloat16",
        workers=4,
    )


PLANS = {"trial": cpu_plan(5), "cpu": cpu_plan(50), "gpu": gpu_plan(1_000)}


def main():
    """Runs the stages of a plan, one after the other."""
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
    model = bb.BertConfig.named(
        "mini",
        vocab_size=len(tokenizer),
        max_position_embeddings=128,
        initializer_range=0.05,
    )
    length = 0
    for number, stage in enumerate(plan.stages, 1):
        if length:
            model = grow_positions(model, length, stage.length, out)
        target = out / f"stage_{number}_{stage.length}"
        run_stage(stage, plan, corpus, model, tokenizer, target)
        model, length = str(target), stage.length
    join_logs(out, plan.stages)


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


def run_stage(stage, plan, corpus, model, tokenizer, target):
    """Runs one stage to its end."""
    print(target.name, stage, flush=True)
    pretrain(
        corpus,
        target,
        Recipe(
            steps=stage.steps,
            batch_size=stage.rows,
            learning_rate=stage.rate,
            warmup=stage.warmup,
            dtype=plan.dtype,
        ),
        model=model,
        tokenizer=tokenizer,
        examples=ExampleSettings(
            max_length=stage.length,
            next_sentence=stage.next_sentence,
            masking=Masking(rate=stage.masks),
        ),
        workers=plan.workers,
        reporting=Reporting(
            log_steps=50, evaluation_steps=250, checkpoint_steps=250
        ),
    )


def grow_positions(folder, known, wanted, out):
    """Starts the positions that no text has reached yet as those before.

    Position p gets the vector of p - `known`, so that what neighbors say of
    each other holds there from the first step.

    Args:
        folder: A model whose first `known` positions are trained.
        known: Number of trained positions.
        wanted: Number of positions that the next stage needs.
        out: Where the folder of the grown model goes.

    Returns:
        The name of that folder.
    """
    target = out / f"grown_{wanted}"
    if not (target / "model.safetensors").is_file():
        model = bb.BertForPreTraining.from_pretrained(folder)
        variable = model.encoder.embeddings.position.table
        table = np.array(variable)
        for start in range(known, wanted, known):
            table[start : start + known] = table[:known]
        variable.assign(table)
        model.save_pretrained(target)
    return str(target)


def join_logs(out, stages):
    """Writes one log of all stages, steps and tokens counted through."""
    rows, steps, tokens = [], 0, 0
    for number, stage in enumerate(stages, 1):
        path = out / f"stage_{number}_{stage.length}" / "log.csv"
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                step = int(row.pop("step"))
                row.pop("tokens_per_second")
                seen = tokens + step * stage.rows * stage.length
                rows.append(
                    {
                        "step": steps + step,
                        "tokens": seen,
                        "length": stage.length,
                        **row,
                    }
                )
        steps, tokens = rows[-1]["step"], rows[-1]["tokens"]
    with open(out / "log.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[-1]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
