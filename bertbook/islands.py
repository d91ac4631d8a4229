"""Islands: functions between the products of a model that XLA compiles alone.

Some processors, those with AMX above all, multiply bfloat16 matrices several
times as fast as float32 ones, but only through TensorFlow's oneDNN kernels.
Those compute everything else with one pass over memory for every operation. So
the products are left to oneDNN, and what stands between two of them is compiled
into one pass, an island. `runtime.choose_compilation` says where this is done;
its numbers are those of the plain functions, rounded to bfloat16 less often.
"""

import contextlib
import functools
from contextvars import ContextVar

from bertbook.runtime import choose_compilation, keras, ops

_EXPORTING = ContextVar("exporting", default=False)


@contextlib.contextmanager
def exporting():
    """Leaves out what other runtimes do not know while a graph is written.

    No island is compiled in the body, and `is_exporting` is True there.
    """
    token = _EXPORTING.set(True)
    try:
        yield
    finally:
        _EXPORTING.reset(token)


def is_exporting():
    """Returns whether the graph that is traced is for another runtime."""
    return _EXPORTING.get()


def on_island(tensor):
    """Returns whether what is computed from a tensor belongs on an island.

    Args:
        tensor: A tensor of any backend, or a symbolic one.
    """
    return (
        not is_exporting()
        and keras.backend.standardize_dtype(tensor.dtype) == "bfloat16"
        and choose_compilation("bfloat16").path == "islands"
        and not isinstance(tensor, keras.KerasTensor)
    )


def _compiled_island(function=None, *, gradient=None):
    """Compiles a function, and its gradient, apart from what is around them.

    Args:
        function: Takes tensors by position and constants by keyword, and
            returns one tensor. It is called on TensorFlow alone.
        gradient: A function of the result, of the gradient that reaches it,
            of the tensors and of the constants; returns the gradient of each
            tensor. Without it `function` is computed again on the way back,
            and what its gradient needs is not kept in memory.
    """
    if function is None:
        return functools.partial(_compiled_island, gradient=gradient)

    @functools.wraps(function)
    def run(*tensors, **constants):
        if is_exporting():
            return function(*tensors, **constants)
        import tensorflow as tf

        forward, backward = _compile(function, gradient, **constants)

        @tf.custom_gradient
        def island(*tensors):
            result = forward(*tensors)
            residuals = () if gradient is None else (result,)
            return result, lambda upstream: backward(
                *residuals, upstream, *tensors
            )

        return island(*map(tf.convert_to_tensor, tensors))

    return run


@functools.cache
def _compile(function, gradient, **constants):
    """Returns a function and its gradient, compiled."""
    import tensorflow as tf

    function = functools.partial(function, **constants)

    def compute_again(upstream, *tensors):
        floats = [t for t in tensors if t.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            result = function(*tensors)
        gradients = iter(tape.gradient(result, floats, upstream))
        return [
            next(gradients) if t.dtype.is_floating else None for t in tensors
        ]

    if gradient is None:
        gradient = compute_again
    else:
        gradient = functools.partial(gradient, **constants)
    return tuple(
        tf.function(part, jit_compile=True, autograph=False)
        for part in (function, gradient)
    )


@_compiled_island
def add_bias_and_activate(product, bias, *, activation):
    """Adds a bias to every row and applies an activation, in float32.

    Args:
        product: Float tensor of shape `(..., F)`.
        bias: Float tensor of shape `(F,)`.
        activation: A function of a tensor, such as GELU.

    Returns:
        Float tensor like `product`.
    """
    values = ops.cast(product, "float32") + ops.cast(bias, "float32")
    return ops.cast(activation(values), product.dtype)


@_compiled_island
def normalize(values, gamma, beta, *, epsilon):
    """Brings every row to mean 0 and variance 1, then scales and shifts it.

    Source: Ba et al. (2016), equation 4.

    Args:
        values: Float tensor of shape `(..., D)`.
        gamma: Float tensor of shape `(D,)`.
        beta: Float tensor of shape `(D,)`.
        epsilon: What is added to the variance.

    Returns:
        Float tensor like `values`.
    """
    rows = ops.cast(values, "float32")
    centered = rows - _row_mean(rows)
    scale = ops.rsqrt(_row_mean(ops.square(centered)) + epsilon)
    normal = centered * scale * ops.cast(gamma, "float32")
    return ops.cast(normal + ops.cast(beta, "float32"), values.dtype)


def _row_mean(rows):
    """Returns the mean of every row, `(..., 1)`, as a product with ones.

    XLA takes three times as long for a sum along the rows on a CPU.

    Args:
        rows: Float tensor of shape `(..., D)`.
    """
    width = rows.shape[-1] or ops.shape(rows)[-1]
    ones = ops.ones((width, 1), rows.dtype)
    return ops.matmul(rows, ones) / ops.cast(width, rows.dtype)


def _softmax_gradient(weights, upstream, scores, mask, *, scale, hidden):
    """Returns the gradients of `masked_softmax`; the mask has none."""
    weights = ops.cast(weights, "float32")
    upstream = ops.cast(upstream, "float32")
    mean = ops.sum(weights * upstream, axis=-1, keepdims=True)
    change = scale * weights * (upstream - mean)
    return ops.cast(change, scores.dtype), None


@_compiled_island(gradient=_softmax_gradient)
def masked_softmax(scores, mask, *, scale, hidden):
    """Turns the scores of attention into weights that sum to 1, in float32.

    Source: Vaswani et al. (2017), equation 1.

    Args:
        scores: Float tensor of shape `(B, N, T, S)`.
        mask: Boolean tensor that broadcasts to it, True for a visible key.
        scale: What every score is multiplied by.
        hidden: What replaces the score of a hidden key.

    Returns:
        Float tensor like `scores`.
    """
    visible = ops.cast(scores, "float32") * scale
    visible = ops.where(mask, visible, hidden)
    raised = ops.exp(visible - ops.max(visible, axis=-1, keepdims=True))
    weights = raised / ops.sum(raised, axis=-1, keepdims=True)
    return ops.cast(weights, scores.dtype)


@_compiled_island
def cross_entropy(logits, labels):
    """Returns the nats of each label, in float32.

    Args:
        logits: Float tensor of shape `(..., K)`.
        labels: Integer tensor of shape `(...)`.

    Returns:
        Float32 tensor of shape `(...)`.
    """
    return ops.sparse_categorical_crossentropy(
        labels, ops.cast(logits, "float32"), from_logits=True
    )
