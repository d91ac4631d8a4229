"""What does a cache gain in writing, and what does a beam cost?

    python -m benchmarks.generation [tiny] [translator]       # TensorFlow
    KERAS_BACKEND=jax python -m benchmarks.generation         # JAX

An encoder-decoder with drawn weights writes 64 tokens for each of 32 sources
of 24: greedily with the cache, greedily without it, and with a beam of 4. All
three are compiled, and no text ends early. With the cache and without the
same tokens are written.
"""

import sys

import numpy as np

import bertbook as bb
from benchmarks import turns
from bertbook.decoder.generate import beam_search, greedy

ROWS, SOURCE, LENGTH, WIDTH = 32, 24, 64, 4
NEVER = 1  # the end token, [UNK], which no text holds; this is checked
SIZES = {
    "tiny": {
        "vocab_size": 128,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    },
    "translator": {
        "vocab_size": 8_192,
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 1_024,
    },
}
PAIRS = {"tiny": 3, "translator": turns.PAIRS}


def main():
    """Times the sizes named as arguments, or the translator, and keeps it."""
    bb.setup()
    import keras

    backend = keras.backend.backend()
    for size in sys.argv[1:] or ["translator"]:
        results = compare(size)
        for name, result in results.items():
            turns.report(name, result)
        speed = ROWS * LENGTH / result["seconds_ours"]
        print(f"  {speed:,.0f} tokens per second, greedily with the cache")
        packages = ["bertbook", "keras", backend]
        turns.save(f"generation_{size}_{backend}", results, packages)


def compare(size):
    """Times the three searches of one size, greedy with the cache as ours."""
    config = bb.Seq2SeqConfig(**SIZES[size], max_position_embeddings=LENGTH)
    model = bb.Seq2SeqTransformer(config)
    rng = np.random.default_rng(0)
    ids = rng.integers(5, config.vocab_size, (ROWS, SOURCE), "int32")
    batch = {"input_ids": ids}

    def with_cache():
        return greedy(model, batch, LENGTH, NEVER)

    def without():
        return greedy(model, batch, LENGTH, NEVER, use_cache=False)

    def beams():
        return beam_search(model, batch, LENGTH, WIDTH, end_token_id=NEVER)

    check_same(with_cache(), without(), beams().ids)
    peers = {"greedy without the cache": without, f"a beam of {WIDTH}": beams}
    shape = f"{size}, {ROWS} x {LENGTH}"
    peers = {f"{name}, {shape}": peer for name, peer in peers.items()}
    return turns.in_turns(with_cache, peers, PAIRS[size])


def check_same(cached, uncached, beams):
    """Stops where the cache changes a token, or a text ends early."""
    if (cached != uncached).any():
        sys.exit("With the cache other tokens are written.")
    if (cached == NEVER).any() or (beams == NEVER).any():
        sys.exit("A text ends before its time.")


if __name__ == "__main__":
    main()
