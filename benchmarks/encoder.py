"""How fast is our encoder beside KerasHub's, with the same weights?

    python -m benchmarks.encoder [fixed] [mixed]      # TensorFlow with XLA
    KERAS_BACKEND=jax python -m benchmarks.encoder    # JAX

Base size. First a fixed shape, 8 rows of 128 tokens: ours in float32 and in
what `dtype="auto"` chooses, the peer in float32 with XLA and in bfloat16
without. Then, in float32, real texts of mixed length, 256 sentences and 256
paragraphs cut at 384 tokens, in the order of their files and in batches of 32:
ours in length buckets, the peer padded to the longest of all, and to the
longest of each batch. Both give the same vectors.
"""

import os
import sys

import numpy as np

import bertbook as bb
from benchmarks import texts, turns
from bertbook.batches import batching
from bertbook.runtime import choose_dtype, compiles_whole

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
    import keras
    import keras_hub

    rng = np.random.default_rng(0)
    ids = rng.integers(5, 8_192, (8, 128)).astype("int32")
    mask = (np.arange(128) < rng.integers(90, 129, (8, 1))).astype("int32")
    batch = {
        "input_ids": ids * mask,
        "token_type_ids": np.zeros_like(ids),
        "attention_mask": mask,
    }
    dtype = choose_dtype().path
    ours = bb.BertEncoder.from_pretrained(backbone, dtype=dtype)
    ours.compile(jit_compile=compiles_whole(ours.compute_dtype))
    peers = {"KerasHub, float32, XLA": backbone}
    if keras.backend.backend() == "tensorflow":
        peers["KerasHub, bfloat16"] = half = (
            keras_hub.models.BertBackbone.from_config(
                {**backbone.get_config(), "dtype": "mixed_bfloat16"}
            )
        )
        half.set_weights(backbone.get_weights())
        half.compile(jit_compile=False)
    exact = encoder.predict_on_batch(batch)["sequence_output"]
    theirs = backbone.predict_on_batch(rename(batch))["sequence_output"]
    check_same(exact, theirs, mask)
    found = ours.predict_on_batch(batch)["sequence_output"]
    cosine = least_cosine(found, exact, mask)
    print(f"{dtype}: least cosine with float32 {cosine:.5f}")
    functions = {
        f"fixed 8 x 128, {name}": lambda peer=peer: peer.predict_on_batch(
            rename(batch)
        )
        for name, peer in peers.items()
    }
    functions["fixed 8 x 128, ours in float32"] = lambda: (
        encoder.predict_on_batch(batch)
    )
    results = turns.in_turns(
        lambda: ours.predict_on_batch(batch),
        functions,
        pairs=25,
    )
    for result in results.values():
        result["least_cosine_with_float32"] = round(cosine, 5)
    return results


def least_cosine(vectors, exact, mask):
    """Returns the least cosine of the vectors of a real token."""
    a, b = (x.astype("float32")[mask == 1] for x in (vectors, exact))
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return float(((a * b).sum(axis=-1) / norms).min())


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
