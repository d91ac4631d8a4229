"""How many rows does a core make a second from shards, at 128 and 512 tokens?

    python -m benchmarks.rows

Pairs with masks, as `bertbook pretrain` makes them, of the shelf that ships,
taken many times. Seconds are those of the processor, so that other work on the
machine counts for little.
"""

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import turns
from bertbook.locations import shelf
from bertbook.pretraining.corpus import prepare
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.stream import ExampleStream
from bertbook.text.tokenizer import Tokenizer

LENGTHS, ROWS = (128, 512), 256
TIMES, PASSES = 60, 5  # of the shelf; of the measurement


def main():
    """Measures both lengths and keeps the results."""
    tokenizer = Tokenizer.from_pretrained("mini")
    with tempfile.TemporaryDirectory() as folder:
        corpus = prepare(shelf() * TIMES, tokenizer, Path(folder) / "corpus")
        results = {
            str(length): measure(corpus, tokenizer, length)
            for length in LENGTHS
        }
    print(corpus.record["tokens"], "tokens:", results)
    turns.save("rows", results, ["bertbook", "numpy"])


def measure(corpus, tokenizer, length):
    """Returns the rows and tokens a second of a core.

    Args:
        corpus: A `Corpus`.
        tokenizer: Its tokenizer.
        length: S.
    """
    settings = ExampleSettings(max_length=length)
    stream = ExampleStream(corpus, Pieces.of(tokenizer), settings)
    rates = []
    for _ in range(PASSES):
        begun, count = time.process_time(), 0
        for batch, position in stream.batches(ROWS):
            count += len(batch["input_ids"])
            if position.epoch:
                break
        rates.append(count / (time.process_time() - begun))
    rate = round(statistics.median(rates))
    return {"rows_a_second": rate, "tokens_a_second": rate * length}


if __name__ == "__main__":
    main()
