"""What an exported model gives, weighs and costs beside ours.

    BERTBOOK_MINILM=FOLDER python -m benchmarks.exits [--rows N] [--rounds N]

A published BERT of 6 layers and width 384, all-MiniLM-L6-v2, with a head that
is drawn, as SavedModel, ONNX, LiteRT and in "int8". The exported ones run in a
process without bertbook, in turns with ours, on batches of 8 sentences, each
padded to its longest. Needs tf2onnx, onnxruntime and ai-edge-litert.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import bertbook as bb
from benchmarks import served, texts, turns

ROWS = 8
FILES = {
    "savedmodel": ("savedmodel", "tf_saved_model"),
    "onnx": ("model.onnx", "onnx"),
    "litert": ("model.tflite", "litert"),
}


def main():
    """Exports, compares the outputs, times in turns, and keeps the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=turns.PAIRS)
    options = parser.parse_args()
    bb.setup()
    model = bb.BertForSequenceClassification.from_pretrained(
        os.environ["BERTBOOK_MINILM"]
    )
    sentences = texts.sentences(options.rows)
    batches = [
        dict(model.tokenizer(sentences[i : i + ROWS], max_length=128))
        for i in range(0, len(sentences), ROWS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        results = compare(model, batches, Path(folder), options.rounds)
    for name, result in results.items():
        turns.report(name, result)
        print(f"  difference {result['difference']:.2g}, {result['mb']} MB")
    packages = ["bertbook", "keras", "tensorflow", "onnxruntime"]
    turns.save("exits", results, [*packages, "ai-edge-litert"])


def compare(model, batches, folder, rounds):
    """Returns the ratio of the times, the difference and the size of each."""
    for number, batch in enumerate(batches):
        np.savez(folder / f"batch-{number:03d}.npz", **batch)
    for file, format in FILES.values():
        model.export(folder / file, format=format, verbose=False)
    expected = run(model, batches)
    integers = bb.BertForSequenceClassification.from_config(model.get_config())
    integers.set_weights(model.get_weights())
    integers.quantize("int8")
    integers.save(folder / "int8.keras")
    server = subprocess.Popen(
        [sys.executable, served.__file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        peers = {name: lambda n=name: ask(server, n) for name in FILES}
        peers["int8"] = lambda: run(integers, batches)
        results = turns.in_turns(lambda: run(model, batches), peers, rounds)
    finally:
        server.stdin.close()
        server.wait()
    rows = sum(len(batch["input_ids"]) for batch in batches)
    for name, result in results.items():
        path = folder / FILES.get(name, ("int8.keras",))[0]
        received = (
            run(integers, batches) if name == "int8" else read(folder, name)
        )
        pairs = zip(received, expected, strict=True)
        difference = max(float(np.abs(a - b).max()) for a, b in pairs)
        result["difference"] = difference
        result["mb"] = round(size_of(path) / 1e6, 1)
        for whose in ("ours", "theirs"):
            seconds = result[f"seconds_{whose}"]
            result[f"milliseconds_{whose}"] = round(1000 * seconds / rows, 3)
    return results


def run(model, batches):
    """Returns what a model of ours gives for every batch."""
    return [model.compute_on_batch(batch) for batch in batches]


def ask(server, name):
    """Lets the other process run all batches, and waits for it."""
    server.stdin.write(f"{name}\n")
    server.stdin.flush()
    if not server.stdout.readline():
        raise RuntimeError(f"The process that runs {name} has ended.")


def read(folder, name):
    """Returns what the other process computed last."""
    with np.load(folder / f"{name}.npz") as stored:
        return [stored[key] for key in stored.files]


def size_of(path):
    """Returns the bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    main()
