"""The config of a causal model: published sizes, GPT-2's keys, rules."""

import json

import pytest

import bertbook as bb
from bertbook.decoder.config import GPT2_KEYS, GPT2_SIZES, CausalLMConfig
from bertbook.decoder.weights import causal_names, count_parameters
from tests.helpers.decoders import causal_config

# A config.json as it is published with GPT-2 small, shortened.
PUBLISHED = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "embd_pdrop": 0.1,
    "eos_token_id": 50256,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "resid_pdrop": 0.1,
    "vocab_size": 50257,
}


def test_published_parameter_counts():
    for name, count in (
        ("small", 124_439_808),
        ("medium", 354_823_168),
        ("large", 774_030_080),
        ("xl", 1_557_611_200),
    ):
        assert count_parameters(CausalLMConfig.named(name)) == count


def test_causal_names_and_counts_are_those_of_a_model():
    model = bb.CausalLM(causal_config())
    paths = [w.path.partition("/")[2] for w in model.trainable_weights]
    ours = [name for name, _ in causal_names(model.config.num_hidden_layers)]
    assert sorted(paths) == sorted(ours)
    assert model.count_params() == count_parameters(model.config)


def test_the_defaults_are_gpt2_small():
    assert CausalLMConfig() == CausalLMConfig.named("small")
    config = CausalLMConfig.from_dict(PUBLISHED)
    assert config.replace(extra={}) == CausalLMConfig()
    assert config.extra == {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
    }
    assert config.head_size == 64
    assert config.output_size == config.vocab_size
    assert {width % heads for _, width, heads, _ in GPT2_SIZES.values()} == {0}


def test_overrides_go_with_a_size():
    config = CausalLMConfig.named("medium", hidden_dropout_prob=0.0)
    assert (config.hidden_size, config.hidden_dropout_prob) == (1_024, 0.0)


def test_a_file_gives_back_the_config(tmp_path):
    config = causal_config(hidden_act="relu", extra={"dtype": "float16"})
    config.to_json(tmp_path / "config.json")
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["n_inner"] == config.intermediate_size
    assert set(GPT2_KEYS.values()) <= set(stored)
    assert not set(GPT2_KEYS) & set(stored)
    again = CausalLMConfig.from_json(tmp_path / "config.json")
    assert again.replace(extra={"dtype": "float16"}) == config
    assert again.extra == {"dtype": "float16", "model_type": "gpt2"}


def test_an_unknown_key_is_kept_and_named():
    with pytest.warns(UserWarning, match="config: keys .*: depth, note"):
        config = CausalLMConfig.from_dict({"note": "mine", "depth": 3})
    assert config.extra == {"note": "mine", "depth": 3}


def test_null_in_a_file_means_the_default_of_gpt2():
    values = {**PUBLISHED, "n_inner": None, "pad_token_id": None, "n_embd": 24}
    config = CausalLMConfig.from_dict(values)
    assert config.intermediate_size == 96
    assert config.pad_token_id == 50_256


def test_another_computation_is_refused():
    for changes, message in (
        ({"model_type": "bert"}, "`model_type` must be 'gpt2'. Rec.*'bert'"),
        ({"scale_attn_weights": False}, "`scale_attn_weights` must be True"),
        ({"add_cross_attention": True}, "`add_cross_attention` must be False"),
        ({"tie_word_embeddings": False}, "`tie_word_embeddings` must be True"),
        ({"embd_pdrop": 0.2}, "must be equal. Received: 0.1 and 0.2"),
        (
            {"scale_attn_by_inverse_layer_idx": True},
            "`scale_attn_by_inverse_layer_idx` must be False",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            CausalLMConfig.from_dict({**PUBLISHED, **changes})


def test_a_field_out_of_range_is_refused():
    for options, message in (
        ({"vocab_size": 0}, "`vocab_size` must be an integer >= 1. Rec.*: 0"),
        ({"hidden_size": 25}, "multiple of `num_attention_heads`. Rec.*25 and"),
        ({"hidden_act": "swish"}, "`hidden_act` must be one of .*'swish'"),
        ({"hidden_dropout_prob": 1.0}, r"in \[0, 1\). Received: 1.0"),
        ({"eos_token_id": 33}, r"`eos_token_id` must be .* \[0, 33\).*: 33"),
        ({"bos_token_id": -1}, "`bos_token_id` must be an id .* -1"),
        ({"pad_token_id": None}, "`pad_token_id` must be an id .* None"),
        ({"extra": []}, "`extra` must be a dict"),
    ):
        with pytest.raises(ValueError, match=message):
            causal_config(**options)


def test_an_unknown_size_lists_the_names():
    with pytest.raises(ValueError, match="small, medium, large, xl.*'tiny'"):
        CausalLMConfig.named("tiny")
