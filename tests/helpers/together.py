"""What the processes of `test_processes.py` run: a small model, one command.

python together.py OUT pretrain|finetune STEPS [INDEX COUNT PORT]

MODEL_PARALLEL holds numbers of devices; each gets a run, its number in place
of {} in OUT.
"""

import os
import sys
from pathlib import Path

import numpy as np

import bertbook as bb
from bertbook.config import BertConfig
from bertbook.pretraining.examples import ExampleSettings

WORDS = ["the", "a", "red", "old", "cat", "dog", "bird", "sees", "eats", "fish"]
LENGTH = 24
DEVICES = int(os.environ.get("JAX_NUM_CPU_DEVICES", 1))
MODEL_PARALLEL = [int(n) for n in os.environ.get("MODEL_PARALLEL", "1").split()]
PACKED = "PACKED" in os.environ


def sentences(count):
    """Returns sentences of chance, always the same ones."""
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS, 6)) + "." for _ in range(count)]


def config(tokenizer):
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def run_pretraining(out, steps, model_parallel):
    """Pre-trains a model of two layers; 18 rows do not split into four."""
    from bertbook.pretraining.pretrain import Reporting

    bb.pretrain(
        [out.parent / "corpus.txt"],
        out,
        bb.PretrainingRecipe(steps=steps, batch_size=18, learning_rate=5e-3),
        model=config(bb.Tokenizer.from_pretrained("mini")),
        examples=ExampleSettings(max_length=LENGTH),
        held_out=0.2,
        data_parallel=DEVICES > 1,
        model_parallel=model_parallel,
        reporting=Reporting(
            log_steps=1,
            evaluation_steps=25,
            checkpoint_steps=5,
            verbose=False,
        ),
    )


def run_finetuning(out, steps, model_parallel):
    """Teaches it whether a sentence names a cat; 7 rows a step."""
    if DEVICES > 1:
        from bertbook.devices.sharing import make_distribution

        bb.runtime.keras.distribution.set_distribution(
            make_distribution(model_parallel)
        )
    texts = sentences(7 * 10 + 20)
    labels = [int("cat" in text) for text in texts]
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    model = bb.BertForSequenceClassification(config(tokenizer), num_labels=2)
    model.tokenizer = tokenizer
    bb.finetune(
        model,
        {"text": texts[:70], "label": labels[:70]},
        {"text": texts[70:], "label": labels[70:]},
        epochs=steps // 10,
        batch_size=7,
        learning_rate=5e-3,
        out=out,
        options=bb.FinetuningOptions(
            evaluation_steps=1,
            checkpoint_steps=5,
            packed=PACKED,
            verbose=False,
        ),
    )


def main(out, task, steps, index="0", count="1", port="0"):
    if int(count) > 1:
        bb.join_processes(f"127.0.0.1:{port}", int(count), int(index))
    run = {"pretrain": run_pretraining, "finetune": run_finetuning}[task]
    for model_parallel in MODEL_PARALLEL:
        bb.runtime.keras.utils.set_random_seed(0)
        run(Path(str(out).format(model_parallel)), int(steps), model_parallel)


if __name__ == "__main__":
    main(*sys.argv[1:])
