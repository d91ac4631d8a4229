"""BERT's forward pass written out: loops over layers and heads, in NumPy.

It follows the text "BERT-base Transformer forward pass" line by line, for one
sequence, with its shapes.

Differences: on purpose what that text leaves out is left out here too;
`left_out` lists it with its parameters. The text writes tanh(W Z[0]) where all
its other lines put the matrix on the right; here it is on the right as well.
"""

import numpy as np

from bertbook.config import BertConfig
from bertbook.model.encoder import BertEncoder
from bertbook.runtime import ops
from bertbook.weights.names import THIRDS
from bertbook.weights.pretrained import named_tensors


def literal_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every matrix that the text lists.

    Names of a layer hold its number, those of a head its number too.
    """
    width, inner, head = (
        config.hidden_size,
        config.intermediate_size,
        config.head_size,
    )
    shapes: dict[str, tuple[int, ...]] = {
        "W_T": (config.vocab_size, width),
        "W_P": (config.max_position_embeddings, width),
        "W_final": (width, width),
    }
    for layer in range(config.num_hidden_layers):
        for number in range(config.num_attention_heads):
            for letter in "QKV":
                shapes[f"W_{letter}[{layer}, {number}]"] = (width, head)
        shapes[f"W_ffnn[{layer}]"] = (width, inner)
        shapes[f"b_ffnn[{layer}]"] = (1, inner)
        shapes[f"W_out[{layer}]"] = (inner, width)
        shapes[f"b_out[{layer}]"] = (1, width)
    return shapes


def draw_weights(
    config: BertConfig, seed: int = 0, scale: float = 0.02
) -> dict[str, np.ndarray]:
    """Draws a random matrix for every name of `literal_shapes`, float64."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(scale=scale, size=shape)
        for name, shape in literal_shapes(config).items()
    }


def arrays_of(encoder: BertEncoder) -> dict[str, np.ndarray]:
    """Returns the arrays of an encoder under the names of the text, float64.

    What the text leaves out has names in its style: `W_S` holds the segments,
    `b_Q[l, h]` the bias of a head's queries, `W_O[l]` and `b_O[l]` the output
    projection, and `b_final` the bias of the pooler. A norm is one array of
    two rows, gain and bias: `norm_0` after the embeddings, `norm_bar[l]` and
    `norm[l]` after the sublayers of a layer.
    """
    tensors = {
        name: np.asarray(ops.convert_to_numpy(tensor), "float64")
        for name, tensor in named_tensors(encoder).items()
    }
    arrays = {
        "W_T": tensors["embeddings/token/embeddings"],
        "W_P": tensors["embeddings/position/table"],
        "W_S": tensors["embeddings/segment/embeddings"],
        "norm_0": _gain_and_bias(tensors, "embeddings/norm"),
        "W_final": tensors["pooler/kernel"],
        "b_final": tensors["pooler/bias"],
    }
    for layer in range(encoder.config.num_hidden_layers):
        block = f"block_{layer}"
        for letter, part in zip("QKV", THIRDS, strict=True):
            for short, end in (("W", "kernel"), ("b", "bias")):
                wide = tensors[f"{block}/attention/{part}/{end}"]
                parts = np.split(wide, encoder.config.num_attention_heads, -1)
                for number, columns in enumerate(parts):
                    arrays[f"{short}_{letter}[{layer}, {number}]"] = columns
        for short, part in (
            ("O", "attention/output"),
            ("ffnn", "feed_forward/expand"),
            ("out", "feed_forward/contract"),
        ):
            bias = tensors[f"{block}/{part}/bias"]
            arrays[f"W_{short}[{layer}]"] = tensors[f"{block}/{part}/kernel"]
            arrays[f"b_{short}[{layer}]"] = bias[np.newaxis]  # a row
        for short, part in (
            ("norm_bar", "attention_norm"),
            ("norm", "output_norm"),
        ):
            norm = _gain_and_bias(tensors, f"{block}/{part}")
            arrays[f"{short}[{layer}]"] = norm
    return arrays


def _gain_and_bias(tensors, name):
    return np.stack([tensors[f"{name}/gamma"], tensors[f"{name}/beta"]])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Turns every row of scores into weights that sum to 1."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(shifted)
    return weights / weights.sum(axis=-1, keepdims=True)


def layer_norm(rows: np.ndarray, epsilon: float = 1e-12) -> np.ndarray:
    """Gives every row mean 0 and variance 1, without gain and bias."""
    mean = rows.mean(axis=-1, keepdims=True)
    variance = rows.var(axis=-1, keepdims=True)
    return (rows - mean) / np.sqrt(variance + epsilon)


def literal_attention_head(
    hidden: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray
) -> np.ndarray:
    """Computes one head for one sequence.

    Args:
        hidden: `(S, D)`.
        W_Q: `(D, H)`; W_K and W_V alike.
        W_K: `(D, H)`.
        W_V: `(D, H)`.

    Returns:
        `(S, H)`.
    """
    Q = hidden @ W_Q  # (S, H)
    K = hidden @ W_K  # (S, H)
    V = hidden @ W_V  # (S, H)
    A = softmax(Q @ K.T / np.sqrt(K.shape[-1]))  # (S, S)
    return A @ V  # (S, H)


def literal_layer(
    hidden: np.ndarray,
    weights: dict[str, np.ndarray],
    layer: int,
    num_heads: int,
) -> np.ndarray:
    """Computes one layer for one sequence: `(S, D)` to `(S, D)`."""
    heads = [
        literal_attention_head(
            hidden,
            weights[f"W_Q[{layer}, {number}]"],
            weights[f"W_K[{layer}, {number}]"],
            weights[f"W_V[{layer}, {number}]"],
        )
        for number in range(num_heads)
    ]
    concatenated = np.concatenate(heads, axis=-1)  # N times (S, H) -> (S, D)
    hidden = layer_norm(hidden + concatenated)  # (S, D)
    widened = hidden @ weights[f"W_ffnn[{layer}]"] + weights[f"b_ffnn[{layer}]"]
    widened = np.maximum(0, widened)  # (S, F)
    out = widened @ weights[f"W_out[{layer}]"] + weights[f"b_out[{layer}]"]
    return layer_norm(hidden + out)  # (S, D)


def literal_forward_pass(
    weights: dict[str, np.ndarray], input_ids: np.ndarray, config: BertConfig
) -> tuple[list[np.ndarray], np.ndarray]:
    """Computes every layer for one sequence, and the pooled first token.

    Source: "BERT-base Transformer forward pass".

    Args:
        weights: Matrices as named by `literal_shapes`.
        input_ids: The ids of one sequence, `(S,)`.
        config: The sizes.

    Returns:
        L + 1 arrays of shape `(S, D)`, and one of shape `(D,)`.
    """
    T = weights["W_T"][input_ids]  # (S, D)
    hidden_states = [T + weights["W_P"][: len(input_ids)]]
    for layer in range(config.num_hidden_layers):
        hidden_states.append(
            literal_layer(
                hidden_states[-1], weights, layer, config.num_attention_heads
            )
        )
    return hidden_states, np.tanh(hidden_states[-1][0] @ weights["W_final"])


def left_out(config: BertConfig) -> dict[str, int]:
    """Returns what the real BERT adds to the text, with its parameters."""
    width, layers = config.hidden_size, config.num_hidden_layers
    return {
        "segment embeddings": config.type_vocab_size * width,
        "embedding LayerNorm": 2 * width,
        "biases of query, key and value": layers * 3 * width,
        "output projection W^O": layers * width * width,
        "biases of W^O": layers * width,
        "gain and bias of the layers' LayerNorms": layers * 4 * width,
        "pooler bias": width,
    }
