"""VideoBERT and G-BERT: tokens for video frames and for codes of diseases.

A vocabulary is a list, so that anything that can be numbered can be a token.

Differences: VideoBERT clusters with hierarchical k-means, 12 ways at each of 4
levels; here it is plain k-means. G-BERT makes the vectors of its codes with a
graph network over the tree of diseases; here they are drawn and learned.
"""

from collections.abc import Sequence

import numpy as np

from bertbook.checks import is_integer
from bertbook.runtime import keras
from bertbook.text.tokenizer import Tokenizer
from bertbook.weights.matrices import check_plain
from bertbook.weights.pretrained import Pretrained

ROUNDS = 50  # the most rounds of k-means
# The weights with a row for every piece: the table, and the bias of its head.
ROW_A_PIECE = ("token/embeddings", "masked_lm/bias")
HEAD_OPTIONS = ("attention", "num_labels", "pooler")


def add_tokens(tokenizer, tokens):
    """Returns a tokenizer that knows more tokens, each kept whole in a text.

    Args:
        tokenizer: A `Tokenizer`.
        tokens: New tokens, such as "[>]" or "[frame 7]". They get the ids
            after the last.

    Raises:
        ValueError: There is none, one is already known or occurs twice.
    """
    tokens = [tokens] if isinstance(tokens, str) else list(tokens)
    known = [token for token in tokens if token in tokenizer.ids]
    if not tokens or known or len(set(tokens)) < len(tokens):
        raise ValueError(
            "`tokens` must be new, each once. Received: "
            f"{', '.join(known or tokens) or 'none'}."
        )
    return Tokenizer(
        [*tokenizer.vocabulary, *tokens],
        lowercase=tokenizer.lowercase,
        strip_accents=tokenizer.strip_accents,
        split_cjk=tokenizer.split_cjk,
        max_word_length=tokenizer.max_word_length,
        added_tokens=[*tokenizer.added_tokens, *tokens],
        truncation_side=tokenizer.truncation_side,
        engine=tokenizer.engine,
    )


def grow_vocabulary(model, tokenizer, seed=0):
    """Returns a model with a row for every new token, all else as it was.

    Where the model's table is padded, new tokens take the spare rows first.

    Args:
        model: A model with a token table, such as `BertForMaskedLM`.
        tokenizer: What `add_tokens` gave for the model's tokenizer.
        seed: Seed of the new rows, drawn around 0 as all rows once were.

    Raises:
        ValueError: The tokenizer does not go on from the model's vocabulary,
            or `model` is something else, is quantized or has adapters.
    """
    if not isinstance(model, Pretrained):
        raise ValueError(
            "`model` must be a model of this package. Received: "
            f"{type(model).__name__}."
        )
    check_plain(model)
    config = model.config
    known = _count_known(model, tokenizer)
    size = max(config.vocab_size, len(tokenizer))
    options = model.get_config()
    grown = type(model)(
        config.replace(vocab_size=size),
        dtype=model.dtype_policy,
        **{name: options[name] for name in HEAD_OPTIONS if name in options},
    )
    # An encoder-decoder may have a second vocabulary, which stays.
    has_two = getattr(config, "target_vocab_size", None) is not None
    rng = np.random.default_rng(seed)
    for old, new in zip(model.weights, grown.weights, strict=True):
        values = keras.ops.convert_to_numpy(old)
        is_target = "target_embeddings" in old.path and has_two
        if old.path.endswith(ROW_A_PIECE) and not is_target:
            shape = len(tokenizer) - known, *values.shape[1:]
            rows = np.zeros(shape, values.dtype)
            if values.ndim == 2:
                rows += rng.normal(0, config.initializer_range, shape)
            spare = values[len(tokenizer) :]
            values = np.concatenate([values[:known], rows, spare])
        new.assign(values)
    grown.tokenizer = tokenizer
    if hasattr(model, "target_tokenizer"):
        grown.target_tokenizer = (
            model.target_tokenizer if has_two else tokenizer
        )
    return grown


def _count_known(model, tokenizer):
    """Returns how many pieces a model knows; refuses a tokenizer of others."""
    pieces = getattr(tokenizer, "vocabulary", [])
    known = model.config.vocab_size
    goes_on = True
    if model.tokenizer is not None:
        known = len(model.tokenizer)
        goes_on = model.tokenizer.vocabulary == pieces[:known]
    if len(pieces) <= known or not goes_on:
        raise ValueError(
            f"`tokenizer` must hold the model's vocabulary, {known} pieces, "
            f"and more behind it. Received: {len(pieces)} pieces."
        )
    return known


def cluster_frames(
    vectors: np.ndarray, clusters: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gives every vector the number of its cluster, by k-means.

    The first center is drawn, each further one is the vector that is farthest
    from those there are.

    Source: Sun et al. (2019), VideoBERT, section 4.2.

    Args:
        vectors: One a frame or clip, `(n, D)`.
        clusters: How many.
        seed: Seed of the first center.

    Returns:
        The cluster of each vector, `(n,)`, and the centers, `(clusters, D)`.

    Raises:
        ValueError: `vectors` are not `(n, D)`, or fewer than `clusters`.
    """
    vectors = np.asarray(vectors, float)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError(
            "`vectors` must be finite numbers of shape (n, D). Received: "
            f"shape {vectors.shape}."
        )
    if not is_integer(clusters) or not 1 <= clusters <= len(vectors):
        raise ValueError(
            "`clusters` must be an integer from 1 to the number of vectors, "
            f"{len(vectors)}. Received: {clusters!r}."
        )
    rng = np.random.default_rng(seed)
    centers = vectors[[rng.integers(len(vectors))]]
    while len(centers) < clusters:
        far = _distances(vectors, centers).min(axis=1).argmax()
        centers = np.concatenate([centers, vectors[[far]]])
    for _ in range(ROUNDS):
        numbers = _distances(vectors, centers).argmin(axis=1)
        means = [
            vectors[numbers == k].mean(axis=0)
            if (numbers == k).any()
            else centers[k]
            for k in range(clusters)
        ]
        if np.allclose(means, centers):
            break
        centers = np.array(means)
    return _distances(vectors, centers).argmin(axis=1), centers


def _distances(vectors: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Returns squared distances, `(n, k)`."""
    return ((vectors[:, None] - centers[None]) ** 2).sum(axis=2)


def frame_tokens(numbers: Sequence[int]) -> list[str]:
    """Returns the names of the clusters as tokens."""
    return [f"[frame {number}]" for number in numbers]


def code_tokens(codes: Sequence[str]) -> list[str]:
    """Returns codes of diseases or drugs as tokens, such as "[E11.9]"."""
    return [f"[{code}]" for code in codes]
