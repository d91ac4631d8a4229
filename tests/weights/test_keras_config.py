"""Files and copies by Keras keep the tokenizer and the quantization."""

import copy
import json
import pickle
import re
import zipfile

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from bertbook.weights.keras_config import tokenizer_from_config
from bertbook.weights.matrices import collecting_little, matrix_layers
from tests.helpers.every_model import (
    CLASSES,
    check_close,
    draw_batch,
    each_class,
    make,
    outputs_of,
)

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Oslo", "a", "b", "##b"]
TEXTS = ["Oslo abb ab", "a Oslo", "b"]


def by_file(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def by_clone(model, folder):
    again = keras.models.clone_model(model)
    again.set_weights(model.get_weights())
    return again


WAYS = {
    "file": by_file,
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "clone": by_clone,
}


@pytest.fixture(autouse=True, scope="module")
def quick_quantizing():
    """Spares most of the time that Keras takes for a quantized layer."""
    with collecting_little():
        yield


every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_a_copy_encodes_texts_as_its_model(way, tmp_path):
    model = make("BertForSequenceClassification")
    model.tokenizer = bb.Tokenizer(
        PIECES,
        lowercase=False,
        max_word_length=5,
        added_tokens=["Oslo"],
        truncation_side="left",
    )
    again = WAYS[way](model, tmp_path)
    for text in (
        *TEXTS,
        "Osloa abbbbb",
        "OSLO a-b",
    ):
        for length in (None, 4):
            expected = model.tokenizer.encode(text, max_length=length)
            received = again.tokenizer.encode(text, max_length=length)
            assert received == expected


@pytest.mark.parametrize("kind", CLASSES)
def test_the_file_of_every_class_keeps_its_tokenizers(kind, tmp_path):
    model = make(kind)
    model.tokenizer = bb.Tokenizer(PIECES, lowercase=False, engine="python")
    if kind == "Seq2SeqTransformer":
        model.target_tokenizer = bb.Tokenizer([*PIECES, "?"], lowercase=False)
    again = by_file(model, tmp_path)
    for name in model.tokenizer_names:
        ours, theirs = getattr(model, name), getattr(again, name)
        assert theirs.vocabulary == ours.vocabulary
        assert theirs.engine == ours.engine
        assert theirs.lowercase is ours.lowercase is False


@pytest.mark.parametrize("kind", CLASSES)
def test_every_layer_is_built_before_the_first_call(kind):
    """Keras quantizes a model only when all of them are."""
    layers = make(kind)._flatten_layers()
    unbuilt = [layer.name for layer in layers if not layer.built]
    assert unbuilt == []


@pytest.mark.parametrize("mode", ["int8", "int4"])
@each_class("CausalLM")
def test_a_quantized_model_loads_from_its_file(mode, kind, tmp_path):
    model = make(kind)
    model.quantize(mode)
    batch = draw_batch(model)
    again = by_file(model, tmp_path)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)
    settings = model.get_config()["quantization"]
    assert len(settings) == len(matrix_layers(model))
    assert again.get_config()["quantization"] == settings
    modes = [layer.quantization_mode for layer in matrix_layers(again)]
    assert modes == [mode] * len(settings)


@every_way
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_copy_keeps_a_quantized_model(mode, way, tmp_path):
    model = make("BertForSequenceClassification")
    model.quantize(mode)
    again = WAYS[way](model, tmp_path)
    batch = draw_batch(model)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)
    with pytest.raises(ValueError, match="`save_pretrained` writes floats"):
        again.save_pretrained(tmp_path / "small")


@every_way
@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "CausalLM"])
def test_a_copy_computes_what_a_model_with_adapters_does(kind, way, tmp_path):
    """They are merged; a clone has other weights, of which Keras says so."""
    model = make(kind)
    bb.add_lora(model, 2)
    for weight in model.trainable_weights:
        values = np.random.default_rng(1).normal(0, 0.5, weight.shape)
        weight.assign(values)
    batch = draw_batch(model)
    before = outputs_of(model, batch)
    if way == "clone":
        with pytest.raises(ValueError, match="weights"):
            WAYS[way](model, tmp_path)
        return
    again = WAYS[way](model, tmp_path)
    check_close(outputs_of(again, batch), before, 1e-5)
    check_close(outputs_of(model, batch), before, 0)
    assert again.lora is None


@pytest.mark.parametrize("way", ["file", "deepcopy", "pickle"])
def test_adapters_beside_integers_are_not_rounded_without_a_word(way, tmp_path):
    model = make("BertForSequenceClassification")
    old = tmp_path / "model.keras"
    model.save(old)
    before = old.read_bytes()
    model.classifier.quantize("int8")
    model.classifier.enable_lora(1)
    with pytest.raises(ValueError, match="`merge_lora` before you quantize"):
        WAYS[way](model, tmp_path)
    assert old.read_bytes() == before
    assert list(tmp_path.iterdir()) == [old]
    adapted = make("BertForSequenceClassification")
    bb.add_lora(adapted, 2)
    with pytest.raises(ValueError, match="has adapters: `merge_lora`"):
        adapted.quantize("int8")


def test_what_keras_does_not_read_again_is_not_copied(tmp_path):
    model = make("BertForTokenClassification")
    config = keras.quantizers.GPTQConfig(dataset=["a"], tokenizer=None)
    model.classifier.quantize("gptq", config=config)
    with pytest.raises(ValueError, match="float8.* Received: 'gptq' in .*cl"):
        model.save(tmp_path / "model.keras")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["BertEncoder", "CausalLM"])
def test_a_model_is_made_of_floats_and_quantized_later(kind):
    with pytest.raises(ValueError, match="`dtype` must be .*int8_from_float32"):
        make(kind, dtype="int8_from_float32")


def test_a_file_of_keras_is_written_whole_and_through_no_link(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("precious", "utf-8")
    (tmp_path / "model.keras").symlink_to(mine)
    model = make("BertEncoder")
    again = by_file(model, tmp_path)
    batch = draw_batch(model)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)
    assert mine.read_text("utf-8") == "precious"
    with pytest.raises(ValueError, match=r"filepath=.*model\."):
        model.save(tmp_path / "model")
    model.save(tmp_path / "unpacked", zipped=False)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"mine", "model.keras", "unpacked"}


@pytest.mark.usefixtures("plain_graphs")
def test_a_model_from_a_file_reads_texts(tmp_path):
    model = make("BertForSequenceClassification")
    again = by_file(model, tmp_path)
    assert again.predict_texts(TEXTS) == model.predict_texts(TEXTS)


@every_way
def test_a_copy_keeps_one_quantized_layer(way, tmp_path):
    model = make("BertForTokenClassification", dtype="mixed_bfloat16")
    model.encoder.blocks[1].attention.query_key_value.quantize("int8")
    again = WAYS[way](model, tmp_path)
    batch = draw_batch(model)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)
    layer = again.encoder.blocks[1].attention.query_key_value
    assert layer.dtype_policy.name == "int8_from_mixed_bfloat16"
    assert again.classifier.quantization_mode is None


@pytest.mark.parametrize(
    "find",
    [
        lambda model: model.encoder.blocks[0].feed_forward.contract,
        lambda model: model.encoder.blocks[1].feed_forward.contract,
        lambda model: model.encoder.embeddings.token,
        lambda model: model.classifier,
    ],
    ids=["first", "second", "table", "head"],
)
def test_a_config_names_the_layer_that_is_quantized(find):
    model = make("BertForSequenceClassification")
    layer = find(model)
    layer.quantize("int8")
    config = json.loads(json.dumps(model.get_config()))
    assert [
        layer.path.endswith(f"/{name}") for name in config["quantization"]
    ] == [True]
    again = type(model).from_config(config)
    quantized = [x for x in matrix_layers(again) if x.quantization_mode]
    assert quantized == [find(again)]


def test_a_config_of_a_layer_that_is_not_there_is_refused():
    model = make("BertForSequenceClassification")
    model.classifier.quantize("int8")
    config = model.get_config()
    config["quantization"]["pooling"] = config["quantization"]["classifier"]
    with pytest.raises(ValueError, match=r"`quantization` .*: pooling\."):
        type(model).from_config(config)


def test_a_model_inside_another_keeps_its_tokenizer(tmp_path):
    model = make("BertEncoder")
    model.pooler.quantize("int8")
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in model.input_names
    }
    pooled = model(inputs)["pooled_output"]
    around = keras.Model(inputs, keras.layers.Dense(3)(pooled))
    again = by_file(around, tmp_path)
    inner = next(x for x in again.layers if isinstance(x, bb.BertEncoder))
    assert inner.tokenizer.vocabulary == model.tokenizer.vocabulary
    batch = draw_batch(model)
    check_close(outputs_of(again, batch), outputs_of(around, batch), 0)


def test_a_file_without_a_tokenizer_loads_as_before(tmp_path):
    model = make("BertForMaskedLM")
    model.save(tmp_path / "new.keras")
    old = tmp_path / "old.keras"
    with (
        zipfile.ZipFile(tmp_path / "new.keras") as source,
        zipfile.ZipFile(old, "w") as target,
    ):
        for name in source.namelist():
            content = source.read(name)
            if name == "config.json":
                values = json.loads(content)
                del values["config"]["tokenizer"]
                content = json.dumps(values).encode()
            target.writestr(name, content)
    again = keras.saving.load_model(old)
    assert again.tokenizer is None
    batch = draw_batch(model)
    check_close(outputs_of(again, batch), outputs_of(model, batch), 0)


def test_a_model_without_a_tokenizer_has_none_in_its_config():
    model = make("BertEncoder")
    model.tokenizer = None
    assert not {"tokenizer", "quantization"} & model.get_config().keys()
    json.dumps(make("BertEncoder").get_config())


@pytest.mark.parametrize("values", ["mini", 3, {}, {"files": "vocab.txt"}])
def test_a_tokenizer_of_another_form_is_refused(values):
    with pytest.raises(ValueError, match="`tokenizer` of a Keras config"):
        tokenizer_from_config(values)


def test_what_a_file_holds_is_the_models_own(tmp_path):
    model = make("BertForQuestionAnswering")
    again = by_file(model, tmp_path)
    for ours, theirs in zip(
        model.get_weights(), again.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_file_of_more_layers_than_its_config_says_is_refused(tmp_path):
    config = {
        "vocab_size": 30, "hidden_size": 16, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 8,
    }  # fmt: skip
    kind = bb.BertForTokenClassification
    model = kind(bb.BertConfig(num_hidden_layers=2, **config), num_labels=3)
    model.save(tmp_path / "two.keras")
    again = keras.saving.load_model(tmp_path / "two.keras")
    assert again.config.num_hidden_layers == 2
    with (
        zipfile.ZipFile(tmp_path / "two.keras") as whole,
        zipfile.ZipFile(tmp_path / "one.keras", "w") as changed,
    ):
        for name in whole.namelist():
            content = whole.read(name)
            if name == "config.json":
                content = re.sub(
                    rb'"num_hidden_layers": *2', b'"num_hidden_layers": 1',
                    content,
                )  # fmt: skip
            changed.writestr(name, content)
    with pytest.raises(ValueError, match="as many layers as its config says"):
        keras.saving.load_model(tmp_path / "one.keras")
