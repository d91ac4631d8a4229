"""Does training wait for its examples?

    BERTBOOK_DATA=FOLDER python -m benchmarks.feeding       # TensorFlow
    KERAS_BACKEND=jax python -m benchmarks.feeding          # JAX

Six steps of `mini`, 64 pairs of 128 tokens: from the stream of examples
that are made on the way, shards read and masks drawn, and with one batch again
and again. Without BERTBOOK_DATA the text is the shelf.
"""

import itertools
import os
import tempfile
from pathlib import Path

import bertbook as bb
from benchmarks import turns
from bertbook.batches.feeding import Feed
from bertbook.locations import shelf
from bertbook.pretraining.corpus import prepare
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
)
from bertbook.pretraining.stream import ExampleStream, Position

ROWS, STEPS, PAIRS = 64, 6, 9


def main():
    """Times both and keeps the result."""
    bb.setup()
    import keras

    tokenizer = bb.Tokenizer.from_pretrained("mini")
    config = bb.BertConfig.named("mini", vocab_size=len(tokenizer))
    model = bb.BertForPreTraining(config)
    compile_for_pretraining(model, PretrainingRecipe(steps=10_000))
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare(find_files(), tokenizer, folder)
        stream = ExampleStream(corpus, Pieces.of(tokenizer), ExampleSettings())
        batches = Feed(stream, ROWS, 0, Position()).batches()
        one = itertools.repeat(next(batches))
        results = turns.in_turns(
            lambda: run(model, batches),
            {"one batch repeated over the stream": lambda: run(model, one)},
            PAIRS,
        )
    for name, result in results.items():
        turns.report(name, result)
    backend = keras.backend.backend()
    turns.save(f"feeding_{backend}", results, ["bertbook", "keras", backend])


def find_files():
    """Returns the files of the corpus, or the shelf."""
    folder = os.environ.get("BERTBOOK_DATA")
    if not folder:
        return shelf()
    return sorted((Path(folder) / "corpus").glob("*.txt.xz"))


def run(model, batches):
    """Does some steps, and leaves the other batches where they are."""
    some = (batch for batch in batches)  # `fit` closes what it is given
    model.fit(some, steps_per_epoch=STEPS, shuffle=False, verbose=0)


if __name__ == "__main__":
    main()
