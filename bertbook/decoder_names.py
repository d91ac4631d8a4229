"""What every tensor of a causal language model is called, here and in GPT-2.

Our names are the paths of our weights. GPT-2 stores a matrix as (in, out), as
we do, and query, key and value as one.

Differences: none.
"""

import math
from collections.abc import Iterator

from bertbook.causal_config import CausalLMConfig

# Ours, GPT-2's: a dense layer or a norm within a block.
BLOCK_PARTS = (
    ("attention_norm", "ln_1"),
    ("attention/query_key_value", "attn.c_attn"),
    ("attention/output", "attn.c_proj"),
    ("feed_forward_norm", "ln_2"),
    ("feed_forward/expand", "mlp.c_fc"),
    ("feed_forward/contract", "mlp.c_proj"),
)


def causal_names(num_layers: int) -> Iterator[tuple[str, str]]:
    """Yields our name and GPT-2's of every tensor of a model of L layers."""
    yield "token/embeddings", "wte.weight"
    yield "position/table", "wpe.weight"
    for i in range(num_layers):
        for ours, theirs in BLOCK_PARTS:
            ends = "kernel", "bias"
            if ours.endswith("norm"):
                ends = "gamma", "beta"
            yield f"block_{i}/{ours}/{ends[0]}", f"h.{i}.{theirs}.weight"
            yield f"block_{i}/{ours}/{ends[1]}", f"h.{i}.{theirs}.bias"
    yield "final_norm/gamma", "ln_f.weight"
    yield "final_norm/beta", "ln_f.bias"


def causal_shapes(config: CausalLMConfig) -> dict[str, tuple[int, ...]]:
    """Returns the shape of every tensor, under our names."""
    width, inner = config.hidden_size, config.intermediate_size
    whole = {
        "token/embeddings": (config.vocab_size, width),
        "position/table": (config.max_position_embeddings, width),
    }
    of_parts = {
        "query_key_value/kernel": (width, 3 * width),
        "query_key_value/bias": (3 * width,),
        "output/kernel": (width, width),
        "expand/kernel": (width, inner),
        "expand/bias": (inner,),
        "contract/kernel": (inner, width),
    }
    shapes = {}
    for ours, _ in causal_names(config.num_hidden_layers):
        part = "/".join(ours.split("/")[-2:])
        shapes[ours] = whole.get(ours, of_parts.get(part, (width,)))
    return shapes


def count_parameters(config: CausalLMConfig) -> int:
    """Counts the parameters of a causal model without building it."""
    return sum(math.prod(shape) for shape in causal_shapes(config).values())
