"""Random weights that any library can draw alike: by name, shape and seed."""

import zlib

import numpy as np

from bertbook.config import BertConfig
from bertbook.decoder.config import CausalLMConfig
from bertbook.decoder.weights import causal_names, causal_shapes
from bertbook.weights.names import (
    encoder_names,
    encoder_shapes,
    head_names,
    head_shapes,
)

# Sizes are pairwise different where the architecture allows it.
CONFIGS = {
    "tiny": BertConfig.named("tiny", vocab_size=1_031),
    "mini": BertConfig.named("mini", vocab_size=1_031),
    "base": BertConfig.named("base"),
    "relu": BertConfig(
        vocab_size=101, hidden_size=40, num_hidden_layers=3,
        num_attention_heads=5, intermediate_size=56, hidden_act="relu",
        max_position_embeddings=77, type_vocab_size=3, layer_norm_eps=1e-5,
    ),
    "gelu_new": BertConfig(
        vocab_size=103, hidden_size=36, num_hidden_layers=2,
        num_attention_heads=3, intermediate_size=50, hidden_act="gelu_tanh",
        max_position_embeddings=29,
    ),
}  # fmt: skip
GPT2 = CausalLMConfig(
    vocab_size=107, hidden_size=36, num_hidden_layers=2,
    num_attention_heads=3, intermediate_size=50, max_position_embeddings=29,
    pad_token_id=0, bos_token_id=2, eos_token_id=3,
)  # fmt: skip
NORMS = ("ln_1.weight", "ln_2.weight", "ln_f.weight")  # of GPT-2
PRETRAINING = ("tiny", "relu", "gelu_new")  # stored with heads too


def draw(name, shape, seed=0):
    """Draws a tensor from its Hugging Face name: float32, not too small."""
    rng = np.random.default_rng(zlib.crc32(name.encode()) + seed)
    values = rng.normal(scale=0.05, size=shape)
    if name.endswith(("LayerNorm.weight", *NORMS)):
        values += 1.0
    return values.astype("float32")


def hugging_face_arrays(config, prefix="", old_names=False):
    """Returns every tensor of an encoder under Hugging Face's names."""
    arrays = {}
    shapes = encoder_shapes(config)
    for names in encoder_names(config.num_hidden_layers):
        name, shape = names.hugging_face, shapes[names.bertbook]
        if names.bertbook.endswith("kernel"):
            shape = shape[::-1]
        array = draw(name, shape)
        if old_names:
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            name = name.replace("LayerNorm.bias", "LayerNorm.beta")
        arrays[prefix + name] = array
    return arrays


def head_arrays(config):
    """Returns every tensor of the pre-training heads, Hugging Face's names."""
    shapes = head_shapes(config)
    arrays = {}
    for names in head_names():
        if names.bertbook not in shapes:
            continue  # of a task
        shape = shapes[names.bertbook]
        if names.bertbook.endswith("kernel"):
            shape = shape[::-1]
        arrays[names.hugging_face] = draw(names.hugging_face, shape)
    return arrays


def draw_batch(config, seed=0):
    """Draws three pairs of texts of different lengths, padded to one."""
    rng = np.random.default_rng(seed)
    length = min(23, config.max_position_embeddings)
    lengths = np.array([length, length - 6, 5])
    columns = np.arange(length)
    mask = (columns < lengths[:, None]).astype("int32")
    ids = rng.integers(1, config.vocab_size, mask.shape).astype("int32") * mask
    segments = rng.integers(0, config.type_vocab_size, mask.shape)
    return {
        "input_ids": ids,
        "token_type_ids": segments.astype("int32") * mask,
        "attention_mask": mask,
    }


def logit_slices(mlm_logits, nsp_logits):
    """Cuts the part of a pre-training model's outputs that is stored."""
    step = 1 + mlm_logits.shape[-1] // 24
    return {
        "mlm_logits": np.asarray(mlm_logits)[:, ::3, ::step],
        "nsp_logits": np.asarray(nsp_logits),
    }


def slices(hidden_states, pooled):
    """Cuts the part of the outputs that is stored: at most 100 kB a file."""
    stack = np.stack([np.asarray(state) for state in hidden_states])
    step = 1 + stack.shape[-1] // 24
    return {
        "hidden_states": stack[:, :, ::3, ::step],
        "pooled": pooled[:, ::step],
    }


def gpt2_arrays(config):
    """Returns every tensor of a GPT-2 under Hugging Face's names."""
    shapes = causal_shapes(config)
    names = causal_names(config.num_hidden_layers)
    theirs = {f"transformer.{name}": shapes[ours] for ours, name in names}
    return {name: draw(name, shape) for name, shape in theirs.items()}


def draw_gpt2():
    """Draws three texts of different lengths for the config `GPT2`."""
    batch = draw_batch(CONFIGS["gelu_new"])
    return {name: batch[name] for name in ("input_ids", "attention_mask")}


def gpt2_slices(hidden_states, logits):
    """Cuts the part of the outputs that is stored."""
    return {
        "hidden_states": np.stack(hidden_states)[:, :, ::3, ::2],
        "logits": np.asarray(logits)[:, ::3, ::5],
    }
