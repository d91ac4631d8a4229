"""Which attention path is faster on this device: einsum or fused?

    KERAS_BACKEND=jax python -m benchmarks.attention_paths

JAX alone has a fused path. Base size without dropout; 8 rows of 128 and of
512 tokens. `attention.choose_path` takes what wins here.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import numpy as np

import bertbook as bb
from benchmarks import turns


def main():
    """Times both paths at both lengths and keeps the result."""
    bb.setup()
    config = bb.BertConfig.named(
        "base", vocab_size=8_192, attention_probs_dropout_prob=0.0
    )
    einsum = bb.BertEncoder(config, attention="einsum")
    fused = bb.BertEncoder(config, attention="fused")
    for to, weight in zip(fused.weights, einsum.weights, strict=True):
        to.assign(weight.numpy().copy())  # JAX gives its arrays away
    results = {}
    for length in (128, 512):
        batch = draw_batch(length)
        check_same(einsum, fused, batch)
        name = f"fused against einsum, 8 x {length}"
        results |= turns.in_turns(
            lambda batch=batch: fused.predict_on_batch(batch),
            {name: lambda batch=batch: einsum.predict_on_batch(batch)},
        )
    for name, result in results.items():
        turns.report(name, result)
    turns.save("attention_paths", results, ["bertbook", "keras", "jax"])


def draw_batch(length):
    """Draws 8 rows, the last of them half padded."""
    ids = np.random.default_rng(0).integers(5, 8_192, (8, length))
    mask = np.ones_like(ids)
    mask[-1, length // 2 :] = 0
    return {
        "input_ids": ids.astype("int32"),
        "token_type_ids": np.zeros_like(ids, "int32"),
        "attention_mask": mask.astype("int32"),
    }


def check_same(einsum, fused, batch):
    """Raises where the vector of a real token differs."""
    states = [
        model.predict_on_batch(batch)["sequence_output"]
        for model in (einsum, fused)
    ]
    real = batch["attention_mask"] == 1
    difference = np.abs(states[0] - states[1])[real].max()
    if difference > 1e-4:
        raise ValueError(f"The vectors differ. Received: {difference}.")


if __name__ == "__main__":
    main()
