"""Quantized layers and adapters: what is saved is what is computed."""

import gc

import numpy as np
import pytest

import bertbook as bb
from bertbook.relatives.elmo import LSTMConfig, LSTMLanguageModel
from bertbook.relatives.videobert import add_tokens, grow_vocabulary
from bertbook.runtime import keras, ops
from bertbook.weights.matrices import (
    collecting_little,
    float_matrix,
    matrix_layers,
)
from bertbook.weights.pretrained import named_tensors
from tests.helpers.every_model import (
    check_close,
    draw_batch,
    each_class,
    make,
    outputs_of,
)
from tests.helpers.models import to_numpy

MODES = ("int8", "int4", "float8")
# How far integers may be from what they stand for: 4 bits are few.
NEAR = {"int8": 0.05, "int4": 1.0, "float8": 1e-6}


@pytest.fixture(autouse=True, scope="module")
def quick_quantizing():
    """Spares most of the time that Keras takes for a quantized layer."""
    with collecting_little():
        yield


def saved(model, folder):
    model.save_pretrained(folder)
    return type(model).from_pretrained(folder)


def unit_rows(layer):
    """Returns what a layer makes of each unit vector, without its bias."""
    rows = layer(np.eye(layer.input_spec.axes[-1], dtype="float32"))
    return to_numpy(rows) - to_numpy(layer.bias)


@pytest.mark.parametrize("mode", [None, "int8", "int4"])
@pytest.mark.parametrize("with_adapters", [False, True])
def test_the_matrix_of_a_layer_is_what_it_multiplies_with(mode, with_adapters):
    layer = keras.layers.Dense(7)
    layer.build((None, 130))  # more than a block of "int4"
    if mode:
        layer.quantize(mode)
    if with_adapters:
        layer.enable_lora(2, lora_alpha=3)
        layer.lora_kernel_b.assign(np.ones((2, 7)))
    received = to_numpy(float_matrix(layer))
    np.testing.assert_allclose(received, unit_rows(layer), atol=1e-5)


@pytest.mark.parametrize("block", [-1, 8])
def test_both_forms_of_int4_are_read(block):
    config = keras.quantizers.Int4QuantizationConfig(block_size=block)
    layer = keras.layers.Dense(5)
    layer.build((None, 20))
    layer.quantize("int4", config=config)
    received = to_numpy(float_matrix(layer))
    np.testing.assert_allclose(received, unit_rows(layer), atol=1e-5)
    table = keras.layers.Embedding(9, 20)
    table.build()
    table.quantize("int4", config=config)
    received = to_numpy(float_matrix(table))
    np.testing.assert_allclose(
        received, to_numpy(table(np.arange(9))), atol=1e-5
    )


@pytest.mark.parametrize("mode", [None, "int8", "int4"])
@pytest.mark.parametrize("with_adapters", [False, True])
def test_the_table_of_a_layer_holds_the_rows_that_it_gives(mode, with_adapters):
    layer = keras.layers.Embedding(9, 6)
    layer.build()
    if mode:
        layer.quantize(mode)
    if with_adapters:
        layer.enable_lora(2)
        layer.lora_embeddings_b.assign(np.ones((2, 6)))
    received = to_numpy(float_matrix(layer))
    np.testing.assert_allclose(
        received, to_numpy(layer(np.arange(9))), atol=1e-6
    )


@each_class("BertForPreTraining", "Seq2SeqTransformer")
def test_a_quantized_model_computes_nearly_the_same(kind):
    model = make(kind)
    batch = draw_batch(model)
    expected = outputs_of(model, batch)
    model.quantize("int8")  # heads read the table of tokens, too
    modes = {layer.quantization_mode for layer in matrix_layers(model)}
    assert modes == {"int8"}
    for name, array in outputs_of(model, batch).items():
        largest = np.abs(expected[name]).max()
        difference = np.abs(array - expected[name]).max()
        assert 0 < difference < 0.2 * largest, name


def test_a_model_is_quantized_once_and_in_a_way_that_it_can(recwarn):
    model = make("BertForSequenceClassification")
    gptq = keras.quantizers.GPTQConfig(dataset=["a"], tokenizer=None)
    for received, options in (
        ("'int2'", {"mode": "int2"}),
        ("'gptq'", {"mode": "gptq"}),
        ("'gptq'", {"config": gptq}),
        ("None", {}),
    ):
        message = f'must be "int8", "int4" or "float8". Received: {received}.$'
        with pytest.raises(ValueError, match=message):
            model.quantize(**options)
    assert not [v for v in model.variables if v.dtype == "int8"]
    config = keras.quantizers.Int8QuantizationConfig()
    model.quantize(config=config, filters="pooler")
    model.quantize("int8", filters="classifier")
    for mode in ("int8", "int4"):
        with pytest.raises(ValueError, match="load the model again.*'int8' in"):
            model.quantize(mode)
    make("BertForTokenClassification").quantize("float8")
    warned = [str(warning.message) for warning in recwarn.list]
    assert not [text for text in warned if "quantization" in text]


@pytest.mark.parametrize("mode", MODES)
def test_a_quantized_model_stands_for_nearly_the_same_floats(mode):
    model = make("BertForPreTraining")
    before = {n: to_numpy(t) for n, t in named_tensors(model).items()}
    model.quantize(mode)
    after = {n: to_numpy(t) for n, t in named_tensors(model).items()}
    assert after.keys() == before.keys()
    for name, array in before.items():
        np.testing.assert_allclose(after[name], array, atol=NEAR[mode] / 2)


QUANTIZED = {
    "model": lambda model, mode: model.quantize(mode),
    "encoder": lambda model, mode: model.encoder.quantize(mode),
    "head": lambda model, mode: model.classifier.quantize(mode),
    "layer": lambda model, mode: model.encoder.blocks[
        1
    ].feed_forward.expand.quantize(mode),
}
TABLE = "table"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", QUANTIZED)
def test_what_is_quantized_is_not_saved_as_floats(part, mode, tmp_path):
    """The message names the way that keeps it; the old files stay."""
    model = make("BertForSequenceClassification")
    model.save_pretrained(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    QUANTIZED[part](model, mode)
    for options in ({}, {"dtype": "float16"}, {"max_shard_bytes": 900}):
        with pytest.raises(
            ValueError, match=rf'`model.save\("small.keras"\)`.*{mode}'
        ):
            model.save_pretrained(tmp_path, **options)
    with pytest.raises(ValueError, match="`save_adapter` writes floats"):
        model.save_adapter(tmp_path)
    if part in ("model", "encoder"):
        with pytest.raises(ValueError, match="`save_pretrained` writes floats"):
            model.encoder.save_pretrained(tmp_path)
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


@each_class("CausalLM", "Seq2SeqTransformer", "BertForMaskedLM")
def test_a_quantized_table_is_not_saved_as_floats(kind, tmp_path):
    model = make(kind)
    tables = keras.layers.Embedding
    table = next(x for x in matrix_layers(model) if isinstance(x, tables))
    table.quantize("int8")
    with pytest.raises(ValueError, match="writes floats.*'int8' in"):
        model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "find",
    [
        lambda encoder: encoder.blocks[0].attention.query_key_value,
        lambda encoder: encoder.blocks[1].feed_forward.contract,
        lambda encoder: encoder.embeddings.token,
        lambda encoder: encoder.pooler,
    ],
    ids=["query_key_value", "contract", "token", "pooler"],
)
def test_adapters_of_any_layer_are_saved_with_its_matrix(find, tmp_path):
    model = make("BertForPreTraining")
    batch = draw_batch(model)
    before = outputs_of(model, batch)
    layer = find(model.encoder)
    layer.enable_lora(2, lora_alpha=5)
    for weight in layer.trainable_weights:
        if weight.path.rpartition("/")[2] in (
            "lora_kernel_b",
            "lora_embeddings_b",
        ):
            weight.assign(np.random.default_rng(3).normal(size=weight.shape))
    expected = outputs_of(model, batch)
    assert np.abs(
        expected["mlm_logits"] - before["mlm_logits"]
    ).max() > 1e-3 or (
        np.abs(expected["nsp_logits"] - before["nsp_logits"]).max() > 1e-3
    )
    again = saved(model, tmp_path)
    check_close(outputs_of(again, batch), expected, 1e-5)
    assert again.load_report.skipped == {}


def test_a_matrix_that_is_not_read_is_refused(tmp_path):
    model = make("BertForTokenClassification")
    config = keras.quantizers.GPTQConfig(dataset=["a"], tokenizer=None)
    model.classifier.quantize("gptq", config=config)
    with pytest.raises(ValueError, match=r"Received: 'gptq' in .*classifier"):
        model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("plain_graphs")
def test_what_was_compiled_before_is_not_used_after_quantizing():
    model = make("BertForSequenceClassification")
    batch = draw_batch(model)
    before = model.compute_on_batch(batch)
    twice = model._compile_once(
        "twice", lambda ids: 2 * model({"input_ids": ids})
    )
    first = ops.convert_to_numpy(twice(batch["input_ids"]))
    model.encoder.blocks[0].feed_forward.expand.quantize("int4")
    after = model.compute_on_batch(batch)
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(
        after, outputs_of(model, batch)["logits"], atol=1e-5
    )
    twice = model._compile_once(
        "twice", lambda ids: 2 * model({"input_ids": ids})
    )
    second = ops.convert_to_numpy(twice(batch["input_ids"]))
    assert np.abs(second - first).max() > 1e-4


def test_quantizing_warns_of_nothing_without_a_matrix(recwarn):
    make("BertForSequenceClassification").quantize("int8")
    said = [str(w.message) for w in recwarn if "quantize" in str(w.message)]
    assert said == []


def test_a_model_of_integers_finds_the_same_words():
    model = bb.BertForMaskedLM.from_pretrained("mini")
    batch = model.tokenizer(["the [MASK] was shut ."])
    expected = outputs_of(model, batch)["logits"].argmax(axis=-1)
    model.quantize("int8")
    received = outputs_of(model, batch)["logits"].argmax(axis=-1)
    assert (received == expected).mean() > 0.7


def test_quantizing_collects_garbage_in_no_time(monkeypatch):
    left_out = []
    monkeypatch.setattr(
        "gc.collect", lambda *args: left_out.append(gc.get_freeze_count())
    )
    gc.unfreeze()  # what the fixture of this file froze
    make("BertForMaskedLM").quantize("int8")
    assert len(left_out) > 2
    assert min(left_out) > 1000
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("change", ["quantize", "lora"])
def test_a_vocabulary_does_not_grow_beside_integers_or_adapters(change):
    model = make("BertForMaskedLM")
    if change == "lora":
        bb.add_lora(model, 2)
    else:
        model.encoder.embeddings.token.quantize("int8")
    with pytest.raises(ValueError, match=r"`model` (must|has).*Received: "):
        grow_vocabulary(model, add_tokens(model.tokenizer, ["[code]"]))


def test_a_language_model_of_lstms_scores_with_the_floats_of_its_table():
    config = LSTMConfig(vocab_size=9, hidden_size=6, widths=(6,))
    model = LSTMLanguageModel(config)
    ids = np.arange(8)[None]
    expected = to_numpy(model({"input_ids": ids}))
    model.token.quantize("int8")
    received = to_numpy(model({"input_ids": ids}))
    assert 0 < np.abs(received - expected).max() < np.abs(expected).max() / 5
