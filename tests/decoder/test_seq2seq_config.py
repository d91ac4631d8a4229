"""The config of an encoder-decoder: published sizes, its file, rules."""

import pytest

from bertbook.decoder.config import Seq2SeqConfig
from tests.helpers.decoders import seq2seq_config


def test_the_defaults_are_the_base_model():
    config = Seq2SeqConfig()
    assert config == Seq2SeqConfig.named("base")
    assert (config.num_hidden_layers, config.decoder_layers) == (6, 6)
    assert (config.head_size, config.output_size) == (64, 37_000)
    big = Seq2SeqConfig.named("big", vocab_size=32_000)
    assert (big.hidden_size, big.num_attention_heads) == (1_024, 16)
    assert (big.intermediate_size, big.vocab_size) == (4_096, 32_000)


def test_the_decoder_may_have_another_vocabulary_and_depth():
    config = Seq2SeqConfig(target_vocab_size=41, num_decoder_layers=1)
    assert (config.vocab_size, config.output_size) == (37_000, 41)
    assert (config.num_hidden_layers, config.decoder_layers) == (6, 1)


def test_a_file_gives_back_the_config(tmp_path):
    config = seq2seq_config(extra={"dtype": "float16"})
    config.to_json(tmp_path / "config.json")
    again = Seq2SeqConfig.from_json(tmp_path / "config.json")
    assert again.extra.pop("model_type") == "seq2seq_transformer"
    assert again == config


def test_an_unknown_key_is_kept_and_named():
    with pytest.warns(UserWarning, match="config: keys .*: pairs"):
        config = Seq2SeqConfig.from_dict({"pairs": "en-es"})
    assert config.extra == {"pairs": "en-es"}


def test_another_model_is_refused():
    with pytest.raises(ValueError, match="`model_type` must be 'seq2seq_tr"):
        Seq2SeqConfig.from_dict({"model_type": "marian"})


def test_a_field_out_of_range_is_refused():
    for options, message in (
        ({"target_vocab_size": 0}, "`target_vocab_size` must be .*: 0"),
        ({"num_decoder_layers": 1.0}, "`num_decoder_layers` must be .*: 1.0"),
        ({"hidden_size": 9, "num_attention_heads": 3},
         "`hidden_size` must be even.* Received: 9"),
        ({"eos_token_id": 34}, r"`eos_token_id` must be .* \[0, 34\).*: 34"),
        ({"pad_token_id": 33}, r"`pad_token_id` must be .* \[0, 33\).*: 33"),
        ({"layer_norm_eps": 0}, r"`layer_norm_eps` must be in \(0, 1\)"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            seq2seq_config(**options)
