"""The paths of attention on a device, forward and backward, in turns."""

import functools
import time

import numpy as np

from benchmarks import turns
from benchmarks.device import text_of
from benchmarks.device_training import draw_batch, wait_for
from bertbook.model.attention import (
    fused_attention,
    scaled_dot_product_attention,
)

TOKENS = 32_768  # of a call


def measure_attention(bench, size, lengths):
    """Times the paths of attention, forward and backward, in turns."""
    found, failed = {}, {}
    for length in lengths:
        results, errors = compare_attention(bench, size, length)
        found |= results
        failed |= errors
    if not found:
        raise RuntimeError(f"No other path ran. {failed}")
    return {
        "median_time_over_einsum": found,
        "did_not_run": failed,
        "recipe": (
            f"heads of {size}, {bench.dtype}, no dropout, queries, keys and "
            "values (B, N, S, H) with padding; the gradients of all three; "
            "above 1: einsum is faster"
        ),
    }


def compare_attention(bench, size, length):
    """Returns the ratios of one length, and the errors of what did not run."""
    config = bench.config(size)
    rows = 2 if bench.is_dry else max(1, TOKENS // length)
    tensors, mask, lengths = draw_heads(config, rows, length, bench.dtype)
    steps, errors, gradients = {}, {}, {}
    for name, path in ATTENTION.items():
        step = functools.partial(gradient_of(path), tensors, mask, lengths)
        try:
            gradients[name] = step()
            wait_for(gradients[name])
            steps[name] = step
        except Exception as error:
            errors[f"{name} {length}"] = text_of(error)[:300]
    calls = calls_of(steps["einsum"], bench.seconds / 60)
    functions = {name: repeated(step, calls) for name, step in steps.items()}
    results = turns.in_turns(functions.pop("einsum"), functions)
    for name, result in results.items():
        result["largest_difference"] = largest_difference(
            gradients["einsum"], gradients[name]
        )
        result["rows"], result["calls"] = rows, calls
    return {f"{n} {length}": r for n, r in results.items()}, errors


def draw_heads(config, rows, length, dtype):
    """Draws queries, keys and values, a mask and the lengths."""
    import jax
    import jax.numpy as jnp

    number = dtype.removeprefix("mixed_")
    heads, width = config.num_attention_heads, config.head_size
    keys = jax.random.split(jax.random.key(0), 3)
    tensors = [
        jax.random.normal(key, (rows, heads, length, width), number)
        for key in keys
    ]
    lengths = draw_batch(rows, length, 10)["attention_mask"].sum(axis=1)
    mask = np.arange(length) < lengths[:, None]
    mask = mask[:, None, None, :]  # (B, 1, 1, S)
    return tensors, jnp.asarray(mask), jnp.asarray(lengths, "int32")


def by_xla(query, key, value, mask, lengths):
    """Returns the context, by what JAX takes where it is not asked."""
    return call_jax(query, key, value, mask=mask, implementation="xla")


def cudnn_with_lengths(query, key, value, mask, lengths):
    """Returns the context by cuDNN, for rows whose padding is at the end."""
    return call_jax(
        query,
        key,
        value,
        query_seq_lengths=lengths,
        key_value_seq_lengths=lengths,
        implementation="cudnn",
    )


def call_jax(query, key, value, **options):
    """Calls the attention of JAX, which wants `(B, S, N, H)`."""
    import jax

    query, key, value = (x.swapaxes(1, 2) for x in (query, key, value))
    context = jax.nn.dot_product_attention(query, key, value, **options)
    return context.swapaxes(1, 2)


# Functions of queries, keys, values, the mask and the lengths.
ATTENTION = {
    "einsum": lambda *x: scaled_dot_product_attention(*x[:4])[0],
    "fused": lambda *x: fused_attention(*x[:4]),
    "xla": by_xla,
    "cudnn, lengths": cudnn_with_lengths,
}


def gradient_of(path):
    """Returns a compiled function: the gradients of a path's context.

    What padding gathers does not count.
    """
    import jax

    def loss(tensors, mask, lengths):
        context = path(*tensors, mask, lengths).astype("float32")
        real = mask.swapaxes(2, 3)  # (B, 1, S, 1)
        return (jax.numpy.where(real, context, 0.0) ** 2).sum()

    return jax.jit(jax.grad(loss))


def calls_of(step, seconds):
    """Returns how many calls take about so many seconds."""
    start = time.perf_counter()
    wait_for(step())
    taken = time.perf_counter() - start
    return max(1, min(100, int(seconds / taken)))


def repeated(step, calls):
    """Returns a function that calls another, and waits for all at the end."""

    def turn():
        wait_for([step() for _ in range(calls)][-1])

    return turn


def largest_difference(first, second):
    """Returns the largest difference of gradients, as a share of the size."""
    import jax.numpy as jnp

    def most(arrays):
        return max(float(jnp.abs(x.astype("float32")).max()) for x in arrays)

    pairs = zip(first, second, strict=True)
    differences = [a.astype("float32") - b.astype("float32") for a, b in pairs]
    return float(f"{most(differences) / most(first):.2e}")
