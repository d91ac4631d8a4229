"""ALBERT: one block for all layers, and a narrow token table.

Differences: sharing is done to a model that was built layer by layer. The
narrow table is counted here and not built. ALBERT also learns the order of two
sentences instead of the next one, which `examples` does not make.
"""

import functools

from bertbook.config import BertConfig
from bertbook.weights.names import count_parameters


def share_blocks(model):
    """Makes every layer of a model use the weights of its first.

    The weights of the other layers are dropped. It is to be done before
    `compile`, and such a model has no folder that BERT could read.

    Source: Lan et al. (2020), section 3.1.

    Args:
        model: A `BertEncoder`, or a model that has one.

    Returns:
        The model.

    Raises:
        ValueError: The model has been shared already.
    """
    encoder = getattr(model, "encoder", model)
    first, *others = encoder.blocks
    if any(isinstance(block, functools.partial) for block in others):
        raise ValueError(
            "`model` must have its own weights in each layer. Received: one "
            "whose layers share them."
        )
    while len(encoder.blocks) > 1:
        encoder.blocks.pop()
    # Not `first` itself: the encoder knows its last block by identity.
    encoder.blocks.extend(functools.partial(first) for _ in others)
    return model


def count_shared(config, embedding_size=None):
    """Counts the parameters of an encoder whose layers share their weights.

    Source: Lan et al. (2020), section 3.1: V · E + E · D instead of V · D.

    Args:
        config: A `BertConfig`.
        embedding_size: E, the width of the three tables and of their norm; a
            dense layer makes D of it. None keeps D, without that layer.

    Raises:
        ValueError: `embedding_size` is below 1.
    """
    if embedding_size is not None and not embedding_size >= 1:
        raise ValueError(
            f"`embedding_size` must be >= 1. Received: {embedding_size}."
        )
    width, layers = config.hidden_size, config.num_hidden_layers
    count = count_parameters(config.replace(num_hidden_layers=1))
    if layers == 0 or embedding_size is None:
        return count
    rows = (
        config.vocab_size
        + config.max_position_embeddings
        + config.type_vocab_size
        + 2  # scale and shift of the norm
    )
    return (
        count + rows * (embedding_size - width) + (embedding_size + 1) * width
    )


ALBERT_BASE = BertConfig(vocab_size=30_000)  # V; E is 128
