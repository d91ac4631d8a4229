"""How many bytes does a step of pre-training take, by size, length and rows?

    KERAS_BACKEND=jax JAX_PLATFORMS=cpu python -m benchmarks.memory

The step is the one of `bertbook pretrain`, compiled for this device and not
run: XLA says how many bytes it will take. `python -m benchmarks.memory ask SIZE
LENGTH ROWS DTYPE` asks for one case and keeps nothing; with `run` for `ask` two
steps are run, and the most memory is printed that the process has had.
"""

import argparse
import json
import resource
import sys
import time

import keras

from benchmarks import turns
from benchmarks.device_training import draw_pretraining
from bertbook.batches.feeding import to_steps
from bertbook.config import BertConfig
from bertbook.pretraining.pretrain import (
    PretrainingRecipe,
    compile_for_pretraining,
    make_model,
)

VOCABULARY = 16_384  # pieces, that of `mini`
DTYPES = ("float32", "mixed_bfloat16")
CASES = {  # size: length and rows
    "tiny": ((128, 32), (128, 64), (512, 16)),
    "mini": ((128, 32), (128, 64), (256, 16), (512, 8)),
    "small": ((128, 32), (128, 64), (512, 16)),
    "base": ((128, 8), (128, 16), (512, 4)),
}

# Bytes by the formula of docs/scaling.md. Of each parameter the weight and two
# means of AdamW; of a step what is kept for the way back: so many bytes for
# each of D numbers of a token and layer, and for each score, and so many
# logits of four bytes. Those of float32 are fitted to `tiny` and `mini` here,
# those of 16 bits to two steps of `base` on an H200, which also keeps a copy
# of the weights in 16 bits.
STATE, GRADIENT, COPY = 12, 4, 2
KEPT = {"float32": (126, 12.4), "mixed_bfloat16": (39, 4.9)}
LOGITS = 2.5
SLOTS = {128: 20, 256: 38, 512: 76}  # hidden tokens of a row


def formula(config, rows, length, dtype):
    """Returns the bytes of a step: its state, and what it takes beside it.

    Args:
        config: A `BertConfig`.
        rows: B.
        length: S, a key of `SLOTS`.
        dtype: One of `DTYPES`.
    """
    vector, score = KEPT[dtype]
    layers, width = config.num_hidden_layers, config.hidden_size
    places = rows * length * layers
    kept = places * vector * width
    kept += places * score * config.num_attention_heads * length
    kept += 4 * LOGITS * rows * SLOTS[length] * config.vocab_size
    count = parameters(config)
    if dtype != "float32":
        kept += COPY * count
    return STATE * count, max(kept, GRADIENT * count)


def parameters(config):
    """Returns how many parameters `BertForPreTraining` has."""
    width, wide = config.hidden_size, config.intermediate_size
    rows = config.vocab_size + config.max_position_embeddings + 2
    embeddings = (rows + 2) * width
    attention = 4 * (width + 1) * width + 2 * width
    feed_forward = 2 * width * wide + wide + width + 2 * width
    pooler = (width + 1) * width
    masked = (width + 1) * width + 2 * width + config.vocab_size
    sentence = 2 * (width + 1)
    layers = config.num_hidden_layers * (attention + feed_forward)
    return embeddings + layers + pooler + masked + sentence


def main():
    """Measures every case and keeps the results."""
    results = {}
    for size, cases in CASES.items():
        for length, rows in cases:
            for dtype in DTYPES:
                name = f"{size} {length} {rows} {dtype}"
                results[name] = measure(size, length, rows, dtype)
                print(name, json.dumps(results[name]), flush=True)
    turns.save("memory_jax", results, ["bertbook", "keras", "jax"])


def measure(size, length, rows, dtype):
    """Returns the bytes of a compiled step, and its parameters."""
    import jax

    begun = time.perf_counter()
    model, batch = prepare(size, length, rows, dtype)
    groups = state_of(model)
    step = jax.jit(model.train_step, donate_argnums=0)
    facts = step.lower(groups, batch).compile().memory_analysis()
    return {
        "parameters": model.count_params(),
        "state": facts.argument_size_in_bytes,
        "temporary": facts.temp_size_in_bytes,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def prepare(size, length, rows, dtype):
    """Returns a compiled model and a batch for its step."""
    config = BertConfig.named(
        size, vocab_size=VOCABULARY, max_position_embeddings=length
    )
    recipe = PretrainingRecipe(batch_size=rows, dtype=dtype)
    model = make_model(config, config, recipe)
    compile_for_pretraining(model, recipe)
    drawn = draw_pretraining(rows, length, VOCABULARY)
    return model, next(to_steps(drawn))


def state_of(model):
    """Returns the values that a step takes and gives back."""
    groups = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    return tuple([variable.value for variable in group] for group in groups)


def run(size, length, rows, dtype):
    """Trains two steps; prints megabytes before and at most."""
    model, batch = prepare(size, length, rows, dtype)
    before = peak_megabytes()
    batches = (batch for _ in range(2))
    model.fit(batches, steps_per_epoch=2, shuffle=False, verbose=0)
    print(round(before), round(peak_megabytes()))


def peak_megabytes():
    """Returns the most memory that this process has had, in 10^6 bytes."""
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    if keras.backend.backend() != "jax":
        raise SystemExit("`KERAS_BACKEND` must be jax.")
    if len(sys.argv) == 1:
        main()
    else:
        parser = argparse.ArgumentParser(description="One case alone.")
        parser.add_argument("job", choices=("ask", "run"))
        parser.add_argument("size", choices=BertConfig.PUBLISHED)
        parser.add_argument("length", type=int)
        parser.add_argument("rows", type=int)
        parser.add_argument("dtype", choices=DTYPES)
        job, *case = vars(parser.parse_args()).values()
        if job == "run":
            run(*case)
        else:
            print(json.dumps(measure(*case)))
