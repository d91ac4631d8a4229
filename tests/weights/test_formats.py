"""Checkpoints: every layout in, Hugging Face's out, damaged files refused."""

import copy
import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.runtime import keras
from bertbook.weights.formats import read_checkpoint
from bertbook.weights.names import encoder_shapes
from bertbook.weights.pretrained import named_tensors
from tests.helpers.models import (
    VOCABULARY,
    largest_difference,
    load_drawn,
    to_numpy,
    write_google,
    write_hugging_face,
)
from tests.reference import drawn

CONFIG = drawn.CONFIGS["gelu_new"]
WIDTH = CONFIG.hidden_size


@pytest.fixture
def expected(tmp_path):
    """The outputs of the drawn weights, loaded the plain way."""
    encoder = load_drawn(tmp_path / "plain", CONFIG)
    return hidden_states(encoder)


def hidden_states(encoder):
    batch = drawn.draw_batch(CONFIG)
    return to_numpy(encoder(batch, output_hidden_states=True))["hidden_states"]


def test_every_weight_of_the_model_has_a_name():
    encoder = bb.BertEncoder(CONFIG)
    shapes = {n: tuple(t.shape) for n, t in named_tensors(encoder).items()}
    assert shapes == encoder_shapes(CONFIG)


@pytest.mark.parametrize("prefix", ["", "bert."])
@pytest.mark.parametrize("old_names", [False, True])
def test_old_and_new_names_with_and_without_prefix(
    prefix, old_names, tmp_path, expected
):
    folder = write_hugging_face(tmp_path / "x", CONFIG, prefix, old_names)
    encoder = bb.BertEncoder.from_pretrained(folder)
    assert largest_difference(hidden_states(encoder), expected) == 0
    assert not encoder.load_report.skipped
    assert not encoder.load_report.drawn
    assert len(encoder.load_report.loaded) == len(encoder_shapes(CONFIG))


def test_heads_and_positions_are_skipped_and_named(tmp_path):
    more = {
        "bert.embeddings.position_ids": np.arange(29)[None],
        "cls.predictions.bias": np.zeros(103, "float32"),
        "classifier.weight": np.zeros((2, WIDTH), "float32"),
    }
    folder = write_hugging_face(tmp_path, CONFIG, "bert.", **more)
    report = bb.BertEncoder.from_pretrained(folder).load_report
    assert sorted(report.skipped) == sorted(more)
    assert "classifier.weight" in str(report)


def test_a_missing_pooler_is_drawn_anew_and_named(tmp_path):
    folder = write_without(tmp_path, "pooler.")
    report = bb.BertEncoder.from_pretrained(folder).load_report
    assert report.drawn == ["pooler/kernel", "pooler/bias"]


def write_without(folder, part):
    """Writes drawn weights without those whose name holds a part."""
    write_hugging_face(folder, CONFIG)
    arrays = drawn.hugging_face_arrays(CONFIG)
    kept = {name: a for name, a in arrays.items() if part not in name}
    safetensors.numpy.save_file(kept, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_half_precision_files_load_as_float32(dtype, tmp_path, expected):
    folder = write_hugging_face(tmp_path / "half", CONFIG)
    arrays = drawn.hugging_face_arrays(CONFIG)
    halves = {name: array.astype(dtype) for name, array in arrays.items()}
    safetensors.numpy.save_file(halves, folder / "model.safetensors")
    encoder = bb.BertEncoder.from_pretrained(folder)
    assert encoder.weights[0].dtype == "float32"
    assert largest_difference(hidden_states(encoder), expected) < 0.1


def test_shards_are_read_by_their_index(tmp_path, expected):
    folder = write_hugging_face(tmp_path / "shards", CONFIG)
    last = write_shards(folder)["pooler.dense.weight"]
    encoder = bb.BertEncoder.from_pretrained(folder)
    assert largest_difference(hidden_states(encoder), expected) == 0
    (folder / last).unlink()
    with pytest.raises(FileNotFoundError, match=last):
        bb.BertEncoder.from_pretrained(folder)


def write_shards(folder, **more):
    """Cuts the weights of a folder in two; `more` goes into the index."""
    (folder / "model.safetensors").unlink()
    arrays = drawn.hugging_face_arrays(CONFIG)
    names, weight_map = sorted(arrays), {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        some = {name: arrays[name] for name in part}
        safetensors.numpy.save_file(some, folder / file)
        weight_map |= dict.fromkeys(part, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map | more}))
    return weight_map


@pytest.mark.parametrize("with_adam", [False, True])
def test_a_google_checkpoint_loads_as_hugging_face_files_do(
    with_adam, tmp_path, expected
):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    write_google(tf, tmp_path / "google", with_adam)
    encoder = bb.BertEncoder.from_pretrained(tmp_path / "google")
    assert largest_difference(hidden_states(encoder), expected) == 0
    assert encoder.load_report.layout == "Google"
    slots = [name for name in encoder.load_report.skipped if "adam" in name]
    assert bool(slots) == with_adam
    assert "cls/predictions/output_bias" in encoder.load_report.skipped
    assert len(encoder.tokenizer) == len(VOCABULARY)


def test_a_google_checkpoint_that_was_cut_short_is_refused(tmp_path):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    write_google(tf, tmp_path / "google", with_adam=False)
    path = next((tmp_path / "google").glob("*.data*"))
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"bert_model\.ckpt is damaged"):
        bb.BertEncoder.from_pretrained(tmp_path / "google")


def test_what_was_saved_into_a_google_folder_is_read_back(tmp_path):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    folder = tmp_path / "google"
    write_google(tf, folder, with_adam=False)
    encoder = bb.BertEncoder.from_pretrained(folder)
    encoder.pooler.bias.assign(encoder.pooler.bias + 1)
    encoder.save_pretrained(folder)
    again = bb.BertEncoder.from_pretrained(folder)
    assert again.load_report.layout == "Hugging Face"
    np.testing.assert_array_equal(again.pooler.bias, encoder.pooler.bias)


def test_keras_hub_backbone_and_preset_folder(tmp_path):
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    backbone = hub.models.BertBackbone(
        103, 2, 3, 36, 50, max_sequence_length=29
    )
    backbone.save_to_preset(tmp_path)
    direct = bb.BertEncoder.from_pretrained(backbone)
    saved = bb.BertEncoder.from_pretrained(tmp_path)
    named = bb.BertEncoder.from_pretrained(f"keras://{tmp_path}")
    for encoder in (saved, named):
        difference = largest_difference(
            hidden_states(encoder), hidden_states(direct)
        )
        assert difference == 0
        assert encoder.load_report.layout == "KerasHub"
        assert encoder.tokenizer is None


def test_a_preset_from_before_the_new_name_of_keras_hub(tmp_path):
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    hub.models.BertBackbone(103, 2, 3, 36, 50).save_to_preset(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace("keras_hub", "keras_nlp"))
    report = bb.BertEncoder.from_pretrained(tmp_path).load_report
    assert report.layout == "KerasHub"


def test_the_layout_comes_from_the_keys_of_the_config(tmp_path):
    folder = write_hugging_face(tmp_path, drawn.CONFIGS["relu"])
    values = json.loads((folder / "config.json").read_text())
    values["_name_or_path"] = "keras_hub/bert"
    (folder / "config.json").write_text(json.dumps(values))
    encoder = bb.BertEncoder.from_pretrained(folder)
    assert encoder.load_report.layout == "Hugging Face"
    assert encoder.config.hidden_act == "relu"


def test_keras_hub_weights_that_cannot_be_read_are_refused(tmp_path):
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    backbone = hub.models.BertBackbone(103, 2, 3, 36, 50)
    backbone.save_to_preset(tmp_path)
    path = tmp_path / "model.weights.h5"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match=r"h5 is damaged: .*truncated"):
        bb.BertEncoder.from_pretrained(tmp_path)
    backbone.enable_lora(4)
    with pytest.raises(ValueError, match="neither quantized nor .*lora_kernel"):
        bb.BertEncoder.from_pretrained(backbone)


def test_keras_hub_preset_with_a_tokenizer(tmp_path):
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    backbone = hub.models.BertBackbone(
        103, 2, 3, 36, 50, max_sequence_length=29
    )
    backbone.save_to_preset(tmp_path)
    pieces = [*VOCABULARY, *(f"piece{i}" for i in range(95))]
    hub.models.BertTokenizer(pieces, lowercase=True).save_to_preset(tmp_path)
    encoder = bb.BertEncoder.from_pretrained(f"keras://{tmp_path}")
    assert encoder.tokenizer.vocabulary == pieces
    assert encoder.tokenizer.lowercase


def test_saved_folder_loads_the_same(tmp_path, expected):
    encoder = load_drawn(tmp_path / "plain", CONFIG)
    encoder.tokenizer = bb.Tokenizer(VOCABULARY)
    encoder.save_pretrained(tmp_path / "saved")
    again = bb.BertEncoder.from_pretrained(tmp_path / "saved")
    assert largest_difference(hidden_states(again), expected) == 0
    assert again.tokenizer.vocabulary == VOCABULARY
    assert again.config.replace(extra={}) == CONFIG
    written = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert written["architectures"] == ["BertModel"]
    assert written["hidden_act"] == "gelu_new"
    assert not list((tmp_path / "saved").glob("*.part"))


def test_keras_own_files_load_the_same(tmp_path, expected):
    encoder = load_drawn(tmp_path / "plain", CONFIG)
    encoder.save_weights(tmp_path / "own.weights.h5")
    again = bb.BertEncoder(CONFIG)
    again.load_weights(tmp_path / "own.weights.h5")
    assert largest_difference(hidden_states(again), expected) == 0


@pytest.mark.parametrize("way", ["file", "copy", "functional"])
def test_keras_builds_an_encoder_again(way, tmp_path, expected):
    encoder = load_drawn(tmp_path / "plain", CONFIG)
    if way == "copy":
        again = copy.deepcopy(encoder)
    elif way == "file":
        encoder.save(tmp_path / "whole.keras")
        again = keras.saving.load_model(tmp_path / "whole.keras")
    else:
        ids = keras.Input((23,), dtype="int32", name="input_ids")
        inputs = {"input_ids": ids}
        model = keras.Model(inputs, encoder(inputs))
        model.save(tmp_path / "around.keras")
        model = keras.saving.load_model(tmp_path / "around.keras")
        again = next(x for x in model.layers if isinstance(x, bb.BertEncoder))
    assert largest_difference(hidden_states(again), expected) == 0
    assert again.config.replace(extra={}) == CONFIG


def test_a_folder_without_vocabulary_has_no_tokenizer(tmp_path):
    encoder = load_drawn(tmp_path, CONFIG)
    assert encoder.tokenizer is None
    with pytest.raises(ValueError, match="`embed_texts` needs a tokenizer"):
        encoder.embed_texts(["fire"])


# Bad input: what is wrong with a folder, and what the message must say.

BIAS = "encoder.layer.0.output.dense.bias"


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def drop_tensor(folder):
    write_without(folder, "layer.1.attention.self.key.weight")


def reshape_tensor(folder):
    name = "encoder.layer.0.intermediate.dense.weight"
    arrays = drawn.hugging_face_arrays(CONFIG)
    arrays[name] = arrays[name][:-1]
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")


def transpose_tensor(folder):
    name = "encoder.layer.0.output.dense.weight"
    arrays = drawn.hugging_face_arrays(CONFIG)
    arrays[name] = np.ascontiguousarray(arrays[name].T)
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")


def add_layer(folder):
    name = "encoder.layer.2.output.dense.bias"
    extra = {name: np.zeros(WIDTH, "float32")}
    write_hugging_face(folder, CONFIG, **extra)


def drop_weights(folder):
    (folder / "model.safetensors").unlink()


def pickle_only(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def other_library_only(name):
    """Returns a function that leaves the weights of another library alone."""

    def damage(folder):
        (folder / "model.safetensors").rename(folder / name)

    damage.__name__ = f"{name} alone"
    return damage


def drop_config(folder):
    (folder / "config.json").unlink()


def break_config(folder):
    (folder / "config.json").write_text('{"hidden_size": 36,')


def other_model(folder):
    values = {**CONFIG.to_dict(), "model_type": "roberta"}
    (folder / "config.json").write_text(json.dumps(values))


def broken_bytes(folder):
    (folder / "config.json").write_bytes(b'{"hidden_size": "\xff"}')


def with_a_tensor(name, values):
    """Returns a function that puts one tensor more, or another one, there."""

    def damage(folder):
        write_hugging_face(folder, CONFIG, **{name: values})

    damage.__name__ = f"with {name} {values.dtype} {values.max()}"
    return damage


def half_a_pooler(folder):
    write_without(folder, "pooler.dense.bias")


def index_that_promises_more(folder):
    write_shards(folder, lost="model-00001-of-00002.safetensors")


def index_of_another_folder(folder):
    write_shards(folder, lost="../model.safetensors")


def index_without_map(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text("{}")


def broken_index(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {')


def larger_vocabulary(folder):
    pieces = VOCABULARY + [f"piece{i}" for i in range(200)]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (cut_weights, ValueError, r"model\.safetensors is damaged"),
        (drop_tensor, ValueError, r"block_1/attention/key/kernel is missing"),
        (
            reshape_tensor,
            ValueError,
            r"block_0/feed_forward/expand/kernel has shape \(36, 49\), not "
            r"\(36, 50\)",
        ),
        (
            transpose_tensor,
            ValueError,
            r"contract/kernel has shape \(36, 50\), not \(50, 36\)",
        ),
        (
            add_layer,
            ValueError,
            r"config\.json must fit .*model\.safetensors: `num_hidden_layers` "
            "must be 3, not 2",
        ),
        (drop_weights, FileNotFoundError, r"holds no model\.safetensors"),
        (pickle_only, FileNotFoundError, "A pickled file can run code"),
        (
            other_library_only("pytorch_model-00001-of-00002.bin"),
            FileNotFoundError,
            r"holds no model\.safetensors.*weights_only=True",
        ),
        (
            other_library_only("tf_model.h5"),
            FileNotFoundError,
            r"holds tf_model\.h5.*from_tf=True\)\.save_pretrained",
        ),
        (
            other_library_only("flax_model.msgpack"),
            FileNotFoundError,
            r"holds flax_model\.msgpack.*from_flax=True\)\.save_pretrained",
        ),
        (drop_config, FileNotFoundError, r"no config\.json"),
        (break_config, ValueError, "is not valid JSON"),
        (other_model, ValueError, "`model_type` must be 'bert'.*'roberta'"),
        (broken_bytes, ValueError, r"config\.json is not valid JSON"),
        (
            with_a_tensor(BIAS, np.full(WIDTH, np.nan, "float32")),
            ValueError,
            "block_0/feed_forward/contract/bias holds NaN or infinity",
        ),
        (
            with_a_tensor(BIAS, np.full(WIDTH, np.inf, "float16")),
            ValueError,
            "block_0/feed_forward/contract/bias holds NaN or infinity",
        ),
        (
            with_a_tensor(BIAS, np.full(WIDTH, 3, "int8")),
            ValueError,
            "quantized file is not read. Received: I8",
        ),
        (
            with_a_tensor(BIAS, np.full(WIDTH, 3, ml_dtypes.float8_e4m3fn)),
            ValueError,
            "quantized file is not read. Received: F8_E4M3",
        ),
        (
            with_a_tensor(f"bert.{BIAS}", np.zeros(WIDTH, "float32")),
            ValueError,
            "must hold block_0/feed_forward/contract/bias once",
        ),
        (half_a_pooler, ValueError, "pooler/bias is missing"),
        (index_that_promises_more, ValueError, "Missing: lost"),
        (index_of_another_folder, ValueError, "of its own folder.*'../model"),
        (index_without_map, ValueError, "`weight_map` must be an object"),
        (broken_index, ValueError, r"index\.json is not valid JSON"),
        (larger_vocabulary, ValueError, "208 pieces, more than `vocab_size`"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_damaged_folder_is_refused(damage, error, message, tmp_path):
    folder = write_hugging_face(tmp_path, CONFIG)
    damage(folder)
    with pytest.raises(error, match=message):
        bb.BertEncoder.from_pretrained(folder)


def test_every_missing_tensor_is_named(tmp_path):
    folder = write_without(tmp_path, "layer.0.attention")
    with pytest.raises(ValueError, match="does not fit its config") as caught:
        bb.BertEncoder.from_pretrained(folder)
    for part in ("query/kernel", "value/bias", "attention_norm/gamma"):
        assert part in str(caught.value)


def test_an_unknown_name_lists_the_forms():
    with pytest.raises(FileNotFoundError, match="hf://org/name") as caught:
        bb.BertEncoder.from_pretrained("no-such-model")
    assert "no-such-model" in str(caught.value)
    assert "keras://preset" in str(caught.value)


def test_other_keras_hub_backbones_are_refused():
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    other = hub.models.RobertaBackbone(50, 1, 2, 8, 16, max_sequence_length=9)
    with pytest.raises(ValueError, match="must be a `BertBackbone`.*Roberta"):
        read_checkpoint(other)


# Bad input: batches.

SHORT = CONFIG.max_position_embeddings
IDS = np.full((2, 3), 5)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({"input_ids": np.full((1, 40), 5)}, ValueError,
         rf"{SHORT}\. Received: 40 tokens"),
        ({"input_ids": np.array([[5, 6], [7, 103]])}, ValueError,
         r"`input_ids` must be in \[0, 103\).*103 in row 1, column 1"),
        ({"input_ids": np.array([[-1]])}, ValueError, "Received: -1 in row 0"),
        ({"input_ids": IDS, "token_type_ids": IDS}, ValueError,
         r"`token_type_ids` must be in \[0, 2\).*`type_vocab_size`"),
        ({"input_ids": IDS, "attention_mask": np.ones((2, 4))}, ValueError,
         r"`attention_mask` must have the shape of .*\(2, 3\)"),
        ({"input_ids": IDS, "token_type_ids": IDS[:1] * 0}, ValueError,
         r"`token_type_ids` must have the shape"),
        ({"input_ids": np.zeros((0, 3), int)}, ValueError, "at least one"),
        ({"input_ids": np.zeros((3, 0), int)}, ValueError, "at least one"),
        ({"input_ids": np.array([1, 2])}, ValueError, r"shape \(B, S\)"),
        ({"input_ids": np.full((1, 2), 1.5)}, ValueError, "must hold integers"),
        ({"token_type_ids": IDS}, KeyError, "must hold `input_ids`"),
        (IDS, ValueError, "`batch` must be a dict"),
        (["A text."], ValueError, r"`model\.tokenizer\(texts\)`.*as_map"),
        ("A text.", ValueError, "`batch` must be a dict.*Received: str"),
        ({"input_ids": [[1, 2], [3]]}, ValueError,
         "`input_ids` must have rows of one length"),
        ({"input_ids": IDS, "attention_mask": np.ones((2, 3, 1))}, ValueError,
         r"\(B, S\) or \(B, S, S\)"),
    ],
)  # fmt: skip
def test_a_bad_batch_is_refused(batch, error, message):
    encoder = bb.BertEncoder(CONFIG)
    encoder.compile("sgd", loss={"pooled_output": "mse"})
    target = {"pooled_output": np.zeros((2, WIDTH))}
    for use in (
        encoder,
        lambda x: encoder.predict(x, verbose=0),
        lambda x: encoder.evaluate(x, target, verbose=0),
        lambda x: encoder.fit(x=x, y=target, verbose=0),
    ):
        with pytest.raises(error, match=message):
            use(batch)
    encoder({"input_ids": IDS})  # and the model still works


def test_a_batch_of_lists_gives_what_one_of_arrays_gives():
    encoder = bb.BertEncoder(CONFIG)
    lists = {"input_ids": IDS.tolist(), "attention_mask": [[1, 1, 0]] * 2}
    arrays = {name: np.array(rows) for name, rows in lists.items()}
    for use in (encoder, lambda x: encoder.predict(x, verbose=0)):
        received, expected = to_numpy([use(lists), use(arrays)])
        np.testing.assert_allclose(
            received["sequence_output"], expected["sequence_output"]
        )


@pytest.mark.parametrize("config", ["mini", None, {"vocab_size": 103}])
def test_an_encoder_needs_a_config(config):
    with pytest.raises(ValueError, match="`config` must be a `BertConfig`"):
        bb.BertEncoder(config)


def test_a_long_batch_is_refused_in_a_compiled_function_too():
    encoder = bb.BertEncoder(CONFIG)
    with pytest.raises(ValueError, match=rf"{SHORT}\. Received: 40 tokens"):
        encoder.predict({"input_ids": np.full((1, 40), 5)}, verbose=0)


def test_a_long_text_is_refused_with_its_row(tmp_path):
    encoder = load_drawn(tmp_path, CONFIG)
    encoder.tokenizer = bb.Tokenizer(VOCABULARY)
    with pytest.raises(ValueError, match=rf"{SHORT}\. Received: 42 .* row 1"):
        encoder.embed_texts(["fire", "fire " * 40])
    assert encoder.embed_texts(["fire " * 40], max_length=9).shape == (1, WIDTH)
    with pytest.raises(ValueError, match="`pooling` must be one of"):
        encoder.embed_texts(["fire"], pooling="sum")


def test_the_backend_is_tensorflow_or_jax():
    assert keras.backend.backend() in ("tensorflow", "jax")
