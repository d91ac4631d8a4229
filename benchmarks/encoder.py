"""How fast is our encoder beside KerasHub's, with the same weights?

    python benchmarks/encoder.py [fixed] [mixed]      # TensorFlow with XLA
    KERAS_BACKEND=jax python benchmarks/encoder.py    # JAX

Base size, float32. First a fixed shape, 8 rows of 128 tokens. Then real texts
of mixed length, 256 sentences and 256 paragraphs cut at 384 tokens, in the
order of their files and in batches of 32: ours in length buckets, the peer
padded to the longest of all, and to the longest of each batch. Both give the
same vectors.
"""

import os
import sys
from pathlib import Path

# Not this file's folder, whose `tokenize` would hide the standard module.
sys.path[0] = str(Path(__file__).parent.parent)
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy as np

import bertbook as bb
from benchmarks import texts, turns
from bertbook import batching

ROWS, CUT = 32, 384
# A round takes many minutes on two cores; the ratio is far from its bound.
MIXED_ROUNDS = {"tensorflow": 3, "jax": 4}


def main():
    """Runs both comparisons, or those named as arguments, and keeps them."""
    bb.setup()
    import keras
    import keras_hub

    tokenizer = bb.Tokenizer.from_pretrained("mini")
    backbone = keras_hub.models.BertBackbone(
        len(tokenizer), 12, 12, 768, 3_072, max_sequence_length=512
    )
    encoder = bb.BertEncoder.from_pretrained(backbone)
    encoder.tokenizer = tokenizer
    for model in (encoder, backbone):
        model.compile(jit_compile=True)
    comparisons = {"fixed": compare_fixed, "mixed": compare_mixed}
    backend = keras.backend.backend()
    for name in sys.argv[1:] or comparisons:
        results = comparisons[name](encoder, backbone)
        for title, result in results.items():
            turns.report(title, result)
        packages = ["bertbook", "keras", "keras-hub", backend]
        turns.save(f"encoder_{name}_{backend}", results, packages)


def compare_fixed(encoder, backbone):
    """Times one batch of 8 rows of 128 tokens."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 8_192, (8, 128)).astype("int32")
    mask = (np.arange(128) < rng.integers(90, 129, (8, 1))).astype("int32")
    batch = {
        "input_ids": ids * mask,
        "token_type_ids": np.zeros_like(ids),
        "attention_mask": mask,
    }
    check_same(
        encoder.predict_on_batch(batch)["sequence_output"],
        backbone.predict_on_batch(rename(batch))["sequence_output"],
        mask,
    )
    return turns.in_turns(
        lambda: encoder.predict_on_batch(batch),
        {"fixed 8 x 128": lambda: backbone.predict_on_batch(rename(batch))},
        pairs=25,
    )


def compare_mixed(encoder, backbone):
    """Times 512 texts of mixed length, in buckets and padded."""
    backend = os.environ["KERAS_BACKEND"]
    lines = texts.sentences(256) + texts.paragraphs(256)
    batch = encoder.tokenizer(lines, max_length=CUT)
    peers = {
        "mixed, peer padded to the longest of all": lambda _: CUT,
        "mixed, peer padded to its batch's longest": max,
    }
    kept = {}

    def ours():
        kept["ours"] = encoder.embed_texts(
            lines, max_length=CUT, batch_size=ROWS
        )

    def run(name, choose):
        kept[name] = embed_padded(backbone, batch, choose)

    results = turns.in_turns(
        ours,
        {
            name: lambda name=name, choose=choose: run(name, choose)
            for name, choose in peers.items()
        },
        MIXED_ROUNDS[backend],
    )
    for name in peers:
        difference = np.abs(kept["ours"] - kept[name]).max()
        results[name]["largest_difference"] = float(f"{difference:.1e}")
        if difference > 1e-5:
            raise ValueError(f"The vectors differ. Received: {difference}.")
    return results


def embed_padded(backbone, batch, choose):
    """Returns the mean vector of each text, batches in the file's order."""
    vectors = []
    lengths = batch["attention_mask"].sum(axis=1)
    for start in range(0, len(lengths), ROWS):
        rows = np.arange(start, start + ROWS)
        part = batching.take_rows(batch, rows, choose(lengths[rows]), ROWS)
        outputs = backbone.predict_on_batch(rename(part))["sequence_output"]
        mask = part["attention_mask"][:, :, None]
        vectors.append((outputs * mask).sum(axis=1) / mask.sum(axis=1))
    return np.concatenate(vectors)


def rename(batch):
    """Returns a batch under the peer's names."""
    names = ("token_ids", "segment_ids", "padding_mask")
    return dict(zip(names, batch.values(), strict=True))


def check_same(ours, theirs, mask):
    """Raises where the vector of a real token differs."""
    difference = np.abs(ours - theirs)[mask == 1].max()
    if difference > 1e-4:
        raise ValueError(f"The vectors differ. Received: {difference}.")


if __name__ == "__main__":
    main()
