"""BERT in NumPy, to compare with: it shares no code with the package.

It reads the tensors of a file under Hugging Face's names, leaves the matrices
as (out, in), and computes in float64.

Differences: none in the values. Hidden tokens get the score -1e4, as in the
released code.
"""

import math

import numpy as np

_error_function = np.vectorize(math.erf)


def gelu(x: np.ndarray) -> np.ndarray:
    """Computes BERT's activation by its definition."""
    return x * 0.5 * (1 + _error_function(x / math.sqrt(2)))


def dense(x: np.ndarray, weights: dict, name: str) -> np.ndarray:
    """Multiplies with a matrix that is stored as (out, in)."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(x: np.ndarray, weights: dict, name: str) -> np.ndarray:
    """Gives every vector mean 0 and variance 1, then gain and bias."""
    centered = x - x.mean(axis=-1, keepdims=True)
    x = centered / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Turns every row of scores into weights that sum to 1."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attend(x, weights, name, visible, num_heads):
    """Computes attention and its output projection: (B, S, D) to (B, S, D)."""
    queries, keys, values = (
        np.split(dense(x, weights, f"{name}.self.{part}"), num_heads, axis=-1)
        for part in ("query", "key", "value")
    )  # N times (B, S, H)
    mixed = []
    for Q, K, V in zip(queries, keys, values, strict=True):
        scores = Q @ np.swapaxes(K, 1, 2) / math.sqrt(Q.shape[-1])
        attention = softmax(np.where(visible, scores, -1e4))  # (B, S, S)
        mixed.append(attention @ V)
    return dense(
        np.concatenate(mixed, axis=-1), weights, f"{name}.output.dense"
    )


def block(x, weights, name, visible, num_heads):
    """Computes one layer: attention, feed-forward, a norm after each."""
    gathered = attend(x, weights, f"{name}.attention", visible, num_heads)
    x = norm(x + gathered, weights, f"{name}.attention.output.LayerNorm")
    wide = gelu(dense(x, weights, f"{name}.intermediate.dense"))
    worked = dense(wide, weights, f"{name}.output.dense")
    return norm(x + worked, weights, f"{name}.output.LayerNorm")


def numpy_bert(batch, weights, num_heads):
    """Computes all hidden states of a batch.

    Args:
        batch: `input_ids`, `token_type_ids` and `attention_mask`, `(B, S)`.
        weights: Hugging Face's names of tensors to arrays.
        num_heads: N.

    Returns:
        NumPy array of shape `(L + 1, B, S, D)`.
    """
    x = weights["embeddings.word_embeddings.weight"][batch["input_ids"]]
    segments = weights["embeddings.token_type_embeddings.weight"]
    positions = weights["embeddings.position_embeddings.weight"]
    x = x + segments[batch["token_type_ids"]] + positions[: x.shape[1]]
    states = [norm(x, weights, "embeddings.LayerNorm")]
    visible = batch["attention_mask"][:, None, :] != 0  # (B, 1, S)
    # The number of layers: one such bias in each.
    for i in range(sum("intermediate.dense.bias" in n for n in weights)):
        name = f"encoder.layer.{i}"
        states.append(block(states[-1], weights, name, visible, num_heads))
    return np.stack(states)
