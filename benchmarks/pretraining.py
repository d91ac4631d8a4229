"""How fast is one step of pre-training beside KerasHub's?

    python benchmarks/pretraining.py [mini] [base]        # TensorFlow with XLA
    KERAS_BACKEND=jax python benchmarks/pretraining.py    # JAX

Masked words alone, because KerasHub has no next-sentence head: 128 tokens, 20
of them hidden, dropout 0.1, the vocabulary of 8,192, the same AdamW. Both
start from the same weights, and give the same loss without dropout.
"""

import os
import sys
from pathlib import Path

# Not this file's folder, whose `tokenize` would hide the standard module.
sys.path[0] = str(Path(__file__).parent.parent)
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy as np

import bertbook as bb
from benchmarks import turns
from bertbook.batching import to_fit
from bertbook.losses import classification_loss
from bertbook.optimization import make_optimizer

LENGTH, SLOTS, VOCABULARY = 128, 20, 8_192
ROWS = {"mini": 64, "base": 8}
PAIRS = {"mini": 15, "base": 9}


def main():
    """Times the sizes named as arguments, or all, and keeps the results."""
    bb.setup()
    import keras

    backend = keras.backend.backend()
    results = {}
    for size in sys.argv[1:] or ROWS:
        results |= compare(size)
    for name, result in results.items():
        turns.report(name, result)
        tokens = ROWS[name.split()[0]] * LENGTH / result["seconds_ours"]
        print(f"  {tokens:,.0f} tokens per second")
    packages = ["bertbook", "keras", "keras-hub", backend]
    turns.save(f"pretraining_{backend}", results, packages)


def compare(size):
    """Times one step of both models of a size."""
    check_same_loss(size)
    ours, theirs = build(size, dropout=0.1)
    x, y, weights = to_fit(draw_batch(ROWS[size]))
    renamed = rename(x)
    return turns.in_turns(
        lambda: ours.train_on_batch(x, y, weights),
        {
            f"{size} step, {ROWS[size]} x {LENGTH}": (
                lambda: theirs.train_on_batch(renamed, y, weights)
            )
        },
        PAIRS[size],
    )


def build(size, dropout):
    """Returns both models, compiled alike, with the same weights."""
    import keras
    import keras_hub

    config = bb.BertConfig.named(size, vocab_size=VOCABULARY)
    backbone = keras_hub.models.BertBackbone(
        VOCABULARY,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.hidden_size,
        config.intermediate_size,
        dropout=dropout,
        max_sequence_length=512,
    )
    places = keras.Input((None,), dtype="int32", name="mask_positions")
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=backbone.token_embedding,
        intermediate_activation=lambda x: keras.ops.gelu(x, True),
        layer_norm_epsilon=config.layer_norm_eps,
    )
    logits = head(backbone.output["sequence_output"], mask_positions=places)
    theirs = keras.Model({**backbone.input, "mask_positions": places}, logits)
    ours = bb.BertForMaskedLM.from_pretrained(backbone)
    for weight in head.weights:
        name = weight.path.rpartition("masked_lm_head")[2].partition("/")[2]
        if name in HEAD:
            part, attribute = HEAD[name]
            owner = getattr(ours.masked_lm, part) if part else ours.masked_lm
            getattr(owner, attribute).assign(weight)
    for model in (ours, theirs):
        model.compile(
            make_optimizer(1e-4), classification_loss(), jit_compile=True
        )
    return ours, theirs


HEAD = {
    "intermediate_dense/kernel": ("dense", "kernel"),
    "intermediate_dense/bias": ("dense", "bias"),
    "intermediate_layer_norm/gamma": ("norm", "gamma"),
    "intermediate_layer_norm/beta": ("norm", "beta"),
    "output_bias": (None, "bias"),
}


def draw_batch(rows):
    """Draws rows of ids, 90 to 128 of them real, 20 hidden in each."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(90, LENGTH + 1, (rows, 1))
    mask = (np.arange(LENGTH) < lengths).astype("int32")
    ids = rng.integers(5, VOCABULARY, (rows, LENGTH)).astype("int32") * mask
    places = [rng.choice(90, SLOTS, replace=False) for _ in range(rows)]
    return {
        "input_ids": ids,
        "token_type_ids": np.zeros_like(ids),
        "attention_mask": mask,
        "masked_lm_positions": np.array(places, "int32"),
        "masked_lm_ids": rng.integers(5, VOCABULARY, (rows, SLOTS)),
        "masked_lm_weights": np.ones((rows, SLOTS), "float32"),
    }


def rename(batch):
    """Returns a batch under the peer's names."""
    names = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
    return dict(zip(names, batch.values(), strict=True))


def check_same_loss(size):
    """Raises where the losses of the same weights differ by over 1e-5."""
    ours, theirs = build(size, dropout=0.0)
    x, y, weights = to_fit(draw_batch(8))
    first = float(ours.test_on_batch(x, y, weights))
    second = float(theirs.test_on_batch(rename(x), y, weights))
    print(f"{size}: loss {first:.6f}, the peer's {second:.6f}")
    if abs(first - second) > 1e-5:
        raise ValueError(f"The losses differ. Received: {first} and {second}.")


if __name__ == "__main__":
    main()
