"""Runs exported models in a process that holds nothing of bertbook.

    python benchmarks/served.py FOLDER

FOLDER holds `savedmodel/`, `model.onnx` and `model.tflite`, and batches as
`batch-N.npz`. Each line that comes in names one of them; then all batches are
run, the outputs written as `NAME.npz`, and the seconds printed.
"""

import sys
import time
from pathlib import Path

import numpy as np


def saved_model(folder):
    """Returns a function of a batch that runs the SavedModel."""
    import tensorflow as tf

    served = tf.saved_model.load(folder / "savedmodel")
    return lambda batch: served.serve(
        {name: tf.constant(array) for name, array in batch.items()}
    ).numpy()


def onnx(folder):
    """Returns a function of a batch that runs the ONNX file."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    return lambda batch: session.run(None, batch)[0]


def litert(folder):
    """Returns a function of a batch that runs the LiteRT file."""
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(model_path=str(folder / "model.tflite"))
    run = model.get_signature_runner()
    return lambda batch: next(iter(run(**batch).values()))


RUNTIMES = {"savedmodel": saved_model, "onnx": onnx, "litert": litert}


def main():
    """Answers line by line until the input ends."""
    folder = Path(sys.argv[1])
    paths = sorted(folder.glob("batch-*.npz"))
    batches = [dict(np.load(path)) for path in paths]
    functions = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in functions:
            functions[name] = RUNTIMES[name](folder)
        start = time.perf_counter()
        outputs = [functions[name](batch) for batch in batches]
        seconds = time.perf_counter() - start
        np.savez(folder / f"{name}.npz", *outputs)
        assert not [m for m in sys.modules if m.startswith("bertbook")]
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
