"""What several tests of decoders share: small models with drawn weights."""

from functools import lru_cache

import numpy as np
import safetensors.numpy

from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.config import CausalLMConfig, Seq2SeqConfig
from bertbook.decoder.seq2seq import Seq2SeqTransformer
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.reference import drawn

# All sizes are different: a swapped axis cannot hide.
B, S, T = 3, 7, 5
PAD, BOS, EOS = 0, 2, 3
LETTERS = [chr(i) for i in range(ord("a"), ord("z") + 1)]
TOKENIZER = Tokenizer([*SPECIAL_TOKENS, *LETTERS, "##s", "##t"])
TARGET_TOKENIZER = Tokenizer([*SPECIAL_TOKENS, *LETTERS, "##s", "##t", "?"])


def causal_config(**options):
    """A config for `TOKENIZER`."""
    sizes = {
        "vocab_size": len(TOKENIZER),  # 33
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "max_position_embeddings": 29,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }
    return CausalLMConfig(**sizes | options)


def seq2seq_config(**options):
    """A config for `TOKENIZER` and `TARGET_TOKENIZER`."""
    sizes = {
        "vocab_size": len(TOKENIZER),
        "target_vocab_size": len(TARGET_TOKENIZER),  # 34
        "hidden_size": 24,
        "num_hidden_layers": 1,
        "num_decoder_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "max_position_embeddings": 29,
    }
    return Seq2SeqConfig(**sizes | options)


def draw_weights(model, scale=0.6):
    """Gives a model weights large enough for its outputs to vary."""
    scales = {
        "kernel": scale,
        "embeddings": 0.3,
        "table": 0.3,
        "bias": 0.05,
        "beta": 0.05,
        "gamma": 0.05,
    }
    for weight in model.trainable_weights:
        name = weight.path.partition("/")[2]
        kind = name.rpartition("/")[2]
        array = drawn.draw(name, tuple(weight.shape)) * scales[kind] / 0.05
        weight.assign(array + (1 if kind == "gamma" else 0))
    return model


@lru_cache
def causal():
    """A causal model, not to be changed."""
    model = draw_weights(CausalLM(causal_config()))
    model.tokenizer = TOKENIZER
    return model


@lru_cache
def seq2seq():
    """An encoder-decoder with two vocabularies, not to be changed."""
    model = draw_weights(Seq2SeqTransformer(seq2seq_config()))
    model.tokenizer, model.target_tokenizer = TOKENIZER, TARGET_TOKENIZER
    return model


MODELS = {"causal": causal, "seq2seq": seq2seq}


def draw_ids(rows, length, size, seed=0):
    """Draws ids of ordinary pieces."""
    rng = np.random.default_rng(seed)
    return rng.integers(len(SPECIAL_TOKENS), size, (rows, length), "int32")


def draw_given(seed=0):
    """Draws prompts or sources of three lengths, padded at the right."""
    lengths = np.array([S, S - 2, 1])[:, None]
    mask = (np.arange(S) < lengths).astype("int32")
    ids = draw_ids(B, S, len(TOKENIZER), seed) * mask
    return {"input_ids": ids, "attention_mask": mask}


def draw_pairs(seed=0):
    """Draws sources of three lengths, and targets of T tokens."""
    ids = draw_ids(B, T, len(TARGET_TOKENIZER), seed + 1)
    ids[:, 0] = BOS
    return {**draw_given(seed), "decoder_input_ids": ids}


def write_gpt2(folder, config, prefix="transformer.", **more):
    """Writes drawn weights as Hugging Face writes a GPT-2."""
    arrays = {
        name.replace("transformer.", prefix): array
        for name, array in drawn.gpt2_arrays(config).items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.safetensors"
    safetensors.numpy.save_file({**arrays, **more}, path)
    config.to_json(folder / "config.json")
    return folder
