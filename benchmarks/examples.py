"""How fast do text files become examples, and in how much memory?

    BERTBOOK_DATA=FOLDER python -m benchmarks.examples

The text: the corpus of the real data sets and the paragraphs of SQuAD's
training articles. A pass makes shards of the files, tokenizing included, and
pairs of 128 tokens of the shards, in one process of its own whose memory is
measured; then the same with every file named ten times. Last, how many
examples a second come from shards that are there, batch by batch, with no
worker and with two. There is no peer: bounds are printed beside the figures.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import texts, turns
from bertbook.pretraining.corpus import prepare
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.stream import ExampleStream
from bertbook.text.tokenizer import Tokenizer

TIMES = 10
ROWS = 256
MOST_SHARDS = 24  # of which a pass makes examples
BOUNDS = {"seconds": 180, "megabytes": 600, "examples_a_second": 5_000}

# A process between this one and the pass: a fork counts its parent's memory.
MEASURE = """
import resource, subprocess, sys
subprocess.run([sys.executable, *sys.argv[1:]], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def main():
    """Runs all of it and keeps the results."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        paths = [*real_files(), write_articles(folder / "articles.txt")]
        once, many = folder / "once", folder / "many"
        results = {
            "one pass": measure("pass", once, *paths),
            f"one pass, files {TIMES} times": measure(
                "pass", many, *(paths * TIMES)
            ),
            "from shards": measure("speed", once, *paths),
        }
    first, second = list(results.values())[:2]
    growth = second["megabytes"] / first["megabytes"]
    results["memory of the second over the first"] = round(growth, 3)
    print(json.dumps(results, indent=2))
    print("bounds:", BOUNDS)
    turns.save("examples", results, ["bertbook", "numpy", "tokenizers"])


def real_files():
    """Returns the packed files of the corpus."""
    folder = Path(os.environ["BERTBOOK_DATA"]) / "corpus"
    return sorted(folder.glob("*.txt.xz"))


def write_articles(path):
    """Writes SQuAD's training articles: a document each, a paragraph a line."""
    articles = json.loads(texts.read("squad/train-v1.1.json.xz"))["data"]
    documents = [
        "\n".join(
            " ".join(part["context"].split()) for part in article["paragraphs"]
        )
        for article in articles
    ]
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


def measure(task, folder, *paths):
    """Runs a task in a process of its own; adds what it took of the machine."""
    command = [__file__, task, folder, *paths]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, command)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    facts, used = done.stdout.splitlines()
    seconds, memory = map(float, used.split())
    unit = 1 if sys.platform == "darwin" else 1_024
    return json.loads(facts) | {
        "cpu_seconds": round(seconds, 1),
        "megabytes": round(memory * unit / 1e6),
    }


def one_pass(folder, paths):
    """Makes shards of files and examples of shards; returns what it took."""
    start = time.perf_counter()
    tokenizer = Tokenizer.from_pretrained("mini")
    corpus = prepare(paths, tokenizer, folder)
    prepared = time.perf_counter()
    stream = ExampleStream(corpus, Pieces.of(tokenizer), ExampleSettings())
    counts = [
        len(examples["input_ids"])
        for examples in itertools.islice(stream.epoch(), MOST_SHARDS)
    ]
    done = time.perf_counter()
    return {
        "seconds": round(done - start, 1),
        "seconds_of_shards": round(prepared - start, 1),
        **{name: corpus.record[name] for name in ("documents", "tokens")},
        "shards": corpus.record["shards"]["train"],
        "shards_made_to_examples": len(counts),
        "examples": sum(counts),
    }


def speed(folder, paths):
    """Times an epoch of batches, the shards being there."""
    tokenizer = Tokenizer.from_pretrained("mini")
    corpus = prepare(paths, tokenizer, folder)
    facts = {}
    for workers in (0, 2):
        stream = ExampleStream(
            corpus, Pieces.of(tokenizer), ExampleSettings(), workers=workers
        )
        rates = []
        for _ in range(3):
            start, count = time.perf_counter(), 0
            batches = stream.batches(ROWS)
            for batch, position in batches:
                count += len(batch["input_ids"])
                if position.epoch:
                    break
            rates.append(round(count / (time.perf_counter() - start)))
            batches.close()
        facts[f"examples_a_second_with_{workers}_workers"] = sorted(rates)
    return facts


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        task = {"pass": one_pass, "speed": speed}[sys.argv[1]]
        print(
            json.dumps(task(Path(sys.argv[2]), list(map(Path, sys.argv[3:]))))
        )
