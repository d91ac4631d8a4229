"""Scaled dot-product attention and multi-head self-attention.

Differences: Google's code adds -10,000 to a hidden score, we put it in its
place. The weights agree wherever a row has at least one visible key. One
matrix multiplication makes query, key and value; the published checkpoints
hold three matrices, which `formats` joins.
"""

import functools
import math
import warnings
from typing import NamedTuple

from bertbook.islands import masked_softmax
from bertbook.model.layers import Dense, Dropout
from bertbook.runtime import (
    choose_compilation,
    device_name,
    first_jax_device,
    keras,
    ops,
)

MASKED_SCORE = -10_000.0  # finite in float16; softmax still returns exactly 0
PATHS = ("einsum", "fused", "islands")
TEST_SHAPE = 2, 3, 128  # rows, heads and tokens of the test of a fused kernel
HALVES = "bfloat16", "float16"
NO_TPU_KERNEL = "JAX has no fused attention for an encoder on a TPU"
WHY_EINSUM = (
    "a fused kernel was measured to be faster for long rows on a GPU alone"
)
TOLERANCE = 0.05  # of the largest number, in 16 bits


def scaled_dot_product_attention(
    query, key, value, attention_mask=None, dropout=None
):
    """Mixes `value` vectors by how well each `query` matches each `key`.

    Source: Vaswani et al. (2017), equation 1, for all heads at once.

    Args:
        query: Float tensor of shape `(B, N, T, H)`.
        key: Float tensor of shape `(B, N, S, H)`.
        value: Float tensor of shape `(B, N, S, H)`.
        attention_mask: Optional boolean tensor that broadcasts to
            `(B, N, T, S)`. True where a query may look at a key.
        dropout: Optional function that drops some of the weights.

    Returns:
        The context, `(B, N, T, H)`, and the weights, `(B, N, T, S)`.
    """
    head_size = query.shape[-1]
    scores = ops.einsum("bnth,bnsh->bnts", query, key)  # (B, N, T, S)
    scores = ops.cast(scores, "float32") / math.sqrt(head_size)
    if attention_mask is not None:
        scores = ops.where(attention_mask, scores, MASKED_SCORE)
    weights = ops.softmax(scores, axis=-1)  # each row sums to 1
    weights = ops.cast(weights, value.dtype)
    if dropout is not None:
        weights = dropout(weights)
    context = ops.einsum("bnts,bnsh->bnth", weights, value)  # (B, N, T, H)
    return context, weights


def split_heads(vectors, num_heads, parts=1):
    """Cuts every vector into heads and puts the heads before the tokens.

    Args:
        vectors: Float tensor of shape `(B, S, parts * D)`.
        num_heads: N, a divisor of D.
        parts: How many vectors of width D stand side by side.

    Returns:
        A list of `parts` float tensors of shape `(B, N, S, H)`, H = D / N.
    """
    length = ops.shape(vectors)[1]
    head_size = vectors.shape[-1] // (parts * num_heads)
    split = ops.reshape(vectors, (-1, length, parts, num_heads, head_size))
    split = ops.transpose(split, (2, 0, 3, 1, 4))  # (parts, B, N, S, H)
    return list(ops.unstack(split, axis=0))  # cheaper backwards than slices


def merge_heads(context):
    """Puts the heads of every token side by side again.

    Args:
        context: Float tensor of shape `(B, N, S, H)`.

    Returns:
        Float tensor of shape `(B, S, D)`, D = N * H.
    """
    _, num_heads, _, head_size = context.shape
    length = ops.shape(context)[2]
    context = ops.transpose(context, (0, 2, 1, 3))  # (B, S, N, H)
    return ops.reshape(context, (-1, length, num_heads * head_size))


class SelfAttention(keras.layers.Layer):
    """Lets every token look at every visible token, N times side by side.

    Source: Vaswani et al. (2017), section 3.2.2; biases as in Google's BERT.

    Args:
        hidden_size: D.
        num_heads: N.
        dropout: Rate at which weights are dropped in training.
        initializer_range: Standard deviation of the initial matrices.
        implementation: One of `PATHS`; see `choose_path`.
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        dropout=0.0,
        initializer_range=0.02,
        implementation="einsum",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.implementation = implementation
        self.query_key_value = Dense(
            3 * hidden_size,
            initializer_range,
            dtype=self.dtype_policy,
            name="query_key_value",
        )
        self.output_projection = Dense(
            hidden_size,
            initializer_range,
            dtype=self.dtype_policy,
            name="output",
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, hidden_shape):
        """Creates both matrices for vectors of width D."""
        self.query_key_value.build(hidden_shape)
        self.output_projection.build(hidden_shape)

    def call(
        self,
        hidden,
        attention_mask=None,
        return_weights=False,
        training=None,
    ):
        """Returns what every token gathers.

        Args:
            hidden: Float tensor of shape `(B, S, D)`.
            attention_mask: Optional boolean tensor that broadcasts to
                `(B, N, S, S)`.
            return_weights: Whether to return the weights too; for "fused",
                which keeps none, the einsum path then runs.
            training: Whether to drop weights.

        Returns:
            The output, `(B, S, D)`; with `return_weights` also the weights
            that were used, `(B, N, S, S)`.
        """
        query, key, value = split_heads(
            self.query_key_value(hidden), self.num_heads, parts=3
        )  # each (B, N, S, H)
        weights = None
        if self.implementation == "fused" and not return_weights:
            context = fused_attention(query, key, value, attention_mask)
        elif self.implementation == "islands":
            context, weights = island_attention(
                query,
                key,
                value,
                attention_mask,
                lambda weights: self.dropout(weights, training=training),
            )
        else:
            context, weights = scaled_dot_product_attention(
                query,
                key,
                value,
                attention_mask,
                lambda weights: self.dropout(weights, training=training),
            )
        output = self.output_projection(merge_heads(context))
        return (output, weights) if return_weights else output


def fused_attention(query, key, value, attention_mask=None):
    """Computes the context in one call of JAX, without keeping the weights.

    On a GPU with a 16-bit policy that is the kernel of cuDNN, which wants the
    mask in its full shape. `choose_path` tests it there before it is used.

    Args:
        query: Float tensor of shape `(B, N, T, H)`; key and value alike.
        key: Float tensor of shape `(B, N, S, H)`.
        value: Float tensor of shape `(B, N, S, H)`.
        attention_mask: Optional boolean tensor that broadcasts to
            `(B, N, T, S)`.

    Returns:
        The context, `(B, N, T, H)`.
    """
    import jax

    query, key, value = (ops.swapaxes(x, 1, 2) for x in (query, key, value))
    if attention_mask is not None:
        rows = (*attention_mask.shape[:2], query.shape[1], key.shape[1])
        attention_mask = ops.broadcast_to(attention_mask, rows)
    context = jax.nn.dot_product_attention(
        query,
        key,
        value,
        mask=attention_mask,
        implementation=fused_kernel(query.dtype),
    )
    return ops.swapaxes(context, 1, 2)


def fused_kernel(dtype):
    """Returns which kernel of JAX computes fused attention: "cudnn" or "xla".

    That of cuDNN takes 16-bit numbers on a GPU. JAX does not take it unasked.
    """
    is_gpu = first_jax_device().platform == "gpu"
    return "cudnn" if is_gpu and str(dtype) in HALVES else "xla"


def island_attention(query, key, value, attention_mask=None, dropout=None):
    """Computes what `scaled_dot_product_attention` does, softmax on an island.

    Args:
        query: Float tensor of shape `(B, N, T, H)`.
        key: Float tensor of shape `(B, N, S, H)`.
        value: Float tensor of shape `(B, N, S, H)`.
        attention_mask: Optional boolean tensor that broadcasts to
            `(B, N, T, S)`.
        dropout: Optional function that drops some of the weights.

    Returns:
        The context, `(B, N, T, H)`, and the weights, `(B, N, T, S)`.
    """
    if attention_mask is None:
        attention_mask = ops.ones((1, 1, 1, 1), "bool")
    scores = ops.einsum("bnth,bnsh->bnts", query, key)  # (B, N, T, S)
    scale = 1 / math.sqrt(query.shape[-1])
    weights = masked_softmax(
        scores, attention_mask, scale=scale, hidden=MASKED_SCORE
    )
    if dropout is not None:
        weights = dropout(weights)
    context = ops.einsum("bnts,bnsh->bnth", weights, value)  # (B, N, T, H)
    return context, weights


@functools.cache
def find_fused_fault(head_size, dtype):
    """Compares the fused path with the plain one on a batch with padding.

    Args:
        head_size: H.
        dtype: The type of numbers that a model computes in.

    Returns:
        What is wrong with the context or a gradient of the fused path here,
        or the error that it raised, as text. None where they agree.
    """
    import jax

    batch, heads, length = TEST_SHAPE
    draw = functools.partial(
        keras.random.normal, (batch, heads, length, head_size), dtype=dtype
    )
    query, key, value, probe = (draw(seed=seed) for seed in range(4))
    seen = ops.array([[length], [length // 3]])  # tokens of each row
    mask = (ops.arange(length) < seen)[:, None, None, :]  # (B, 1, 1, S)

    def run(attend):
        def total(query, key, value):
            context = attend(query, key, value, mask)
            return ops.sum(ops.cast(context * probe, "float32")), context

        step = jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True)
        (_, context), gradients = jax.jit(step)(query, key, value)
        return [ops.cast(x, "float32") for x in (context, *gradients)]

    expected = run(lambda *inputs: scaled_dot_product_attention(*inputs)[0])
    try:
        received = run(lambda *inputs: fused_attention(*inputs))
    except Exception as error:  # of the kernel, the compiler or the device
        text = str(error).strip() or "no text"
        return f"{type(error).__name__}: {text.splitlines()[0]}"
    differences = [
        float(ops.max(ops.abs(one - other)) / ops.max(ops.abs(other)))
        for one, other in zip(received, expected, strict=True)
    ]
    names = "context", "gradient of query", "gradient of key", "of value"
    for name, difference in zip(names, differences, strict=True):
        if not difference <= TOLERANCE:  # NaN, too
            return f"{name} differs by {difference:.3g} of its largest number"
    return None


def _choose_fused(head_size, dtype):
    """Returns the fused path, or the plain one where it cannot be trusted.

    Raises:
        ValueError: The device is a TPU.
    """
    platform = first_jax_device().platform
    if platform == "tpu":
        raise ValueError(
            f'`attention="fused"` cannot run here: {NO_TPU_KERNEL}; "auto" and '
            '"einsum" can.'
        )
    if platform != "gpu":
        return "fused", "asked for"
    fault = find_fused_fault(head_size, dtype)
    if fault is None:
        return "fused", "asked for; it agrees with the plain path here"
    warnings.warn(
        f'`attention="fused"` fails its test on {device_name()}, so the plain '
        f"path, einsum, runs instead. {fault}",
        stacklevel=4,
    )
    return "einsum", f"the fused path fails its test here: {fault}"


def choose_path(attention, dropout_rate, dtype="float32", head_size=64):
    """Returns which implementation runs, and why.

    On a GPU the fused path is first compared with the plain one; where they
    differ, a warning says so and the plain one runs.

    Args:
        attention: "auto", "einsum", "fused" or "islands".
        dropout_rate: The rate at which attention weights are dropped.
        dtype: The type of numbers that the model computes in.
        head_size: H.

    Returns:
        The path, one of `PATHS`, and the reason, a sentence.

    Raises:
        ValueError: `attention` is another word, or cannot run here.
    """
    if not isinstance(attention, str) or attention not in ("auto", *PATHS):
        raise ValueError(
            '`attention` must be "auto", "einsum", "fused" or "islands". '
            f"Received: {attention!r}."
        )
    compilation = choose_compilation(dtype)
    if attention == "islands" and compilation.path != "islands":
        raise ValueError(
            f'`attention="islands"` cannot run here: {compilation.why}.'
        )
    if attention == "auto":
        if compilation.path == "islands":
            return "islands", compilation.why
        if device_name().startswith("TPU"):
            return "einsum", NO_TPU_KERNEL
        return "einsum", WHY_EINSUM
    if attention == "fused":
        if keras.backend.backend() != "jax":
            raise ValueError(
                '`attention="fused"` needs the JAX backend: TensorFlow has no '
                f"fused attention. Received: {keras.backend.backend()}."
            )
        if dropout_rate:
            raise ValueError(
                '`attention="fused"` cannot drop weights: set '
                "`attention_probs_dropout_prob` to 0. Received: "
                f"{dropout_rate}."
            )
        return _choose_fused(head_size, dtype)
    return attention, "asked for"


def visible_keys(attention_mask):
    """Returns the mask that the blocks take: True where a key is visible.

    Args:
        attention_mask: Integer tensor of shape `(B, S)` or `(B, S, S)`, or
            None, which hides nothing.

    Returns:
        Boolean tensor of shape `(B, 1, 1, S)` or `(B, 1, S, S)`, or None.
    """
    if attention_mask is None:
        return None
    visible = ops.not_equal(attention_mask, 0)
    if len(attention_mask.shape) == 2:
        return ops.expand_dims(visible, (1, 2))
    return ops.expand_dims(visible, 1)


class AttentionPath(NamedTuple):
    """Which attention implementation runs, where, and why that one."""

    path: str
    backend: str
    device: str
    why: str


def attention_path(model):
    """Returns which attention implementation a model runs.

    Weights that are asked for with `output_attentions` come from the call
    that uses them; for "fused", which keeps none, the einsum path then runs.

    Args:
        model: A `BertEncoder`, or a model with one as `.encoder`.

    Raises:
        ValueError: It is neither.

    >>> import bertbook as bb
    >>> config = bb.BertConfig.named("tiny")
    >>> bb.attention_path(bb.BertEncoder(config, attention="einsum")).path
    'einsum'
    """
    encoder = getattr(model, "encoder", model)
    if isinstance(model, type) or not hasattr(encoder, "attention_reason"):
        raise ValueError(
            "`model` must be a `BertEncoder`, or a model with one as "
            f"`.encoder`. Received: {model!r}."
        )
    return AttentionPath(
        encoder.attention,
        keras.backend.backend(),
        device_name(),
        encoder.attention_reason,
    )
