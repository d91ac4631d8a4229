"""Sizes and other values of a config.json against the weights, and odd ones."""

import json
import re
import tracemalloc
import warnings

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.decoder.config import CausalLMConfig, Seq2SeqConfig
from tests.helpers.models import GOOGLE_CONFIG, write_google

BILLION = 10**9
SMALL = {
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 10,
}
IDS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}


def bert(cls, **head):
    return cls(
        bb.BertConfig(vocab_size=8, max_position_embeddings=12, **SMALL), **head
    )


def causal():
    return bb.CausalLM(
        CausalLMConfig(vocab_size=8, max_position_embeddings=12, **SMALL, **IDS)
    )


def translator():
    return bb.Seq2SeqTransformer(
        Seq2SeqConfig(
            vocab_size=8,
            target_vocab_size=9,
            num_decoder_layers=1,
            **SMALL,
            **IDS,
        )
    )


MODELS = {
    "BertEncoder": lambda: bert(bb.BertEncoder),
    "BertForMaskedLM": lambda: bert(bb.BertForMaskedLM),
    "BertForPreTraining": lambda: bert(bb.BertForPreTraining),
    "BertForSequenceClassification": lambda: bert(
        bb.BertForSequenceClassification, id2label={0: "neg", 1: "pos"}
    ),
    "BertForTokenClassification": lambda: bert(
        bb.BertForTokenClassification, id2label={0: "B-X", 1: "I-X", 2: "O"}
    ),
    "BertForQuestionAnswering": lambda: bert(bb.BertForQuestionAnswering),
    "BertForMultipleChoice": lambda: bert(bb.BertForMultipleChoice),
    "CausalLM": causal,
    "Seq2SeqTransformer": translator,
}
BERT_SIZES = {
    "vocab_size": 8,
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "intermediate_size": 10,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
}
GPT2_SIZES = {
    "vocab_size": 8,
    "n_embd": 6,
    "n_layer": 2,
    "n_inner": 10,
    "n_positions": 12,
}
SEQ2SEQ_SIZES = {
    "vocab_size": 8,
    "target_vocab_size": 9,
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "num_decoder_layers": 1,
    "intermediate_size": 10,
}
SIZES = {"CausalLM": GPT2_SIZES, "Seq2SeqTransformer": SEQ2SEQ_SIZES}
CASES = [(name, key) for name in MODELS for key in SIZES.get(name, BERT_SIZES)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each class, by its name."""
    made = {}
    for name, make in MODELS.items():
        made[name] = tmp_path_factory.mktemp(name)
        make().save_pretrained(made[name])
    return made


@pytest.fixture
def changed(folders):
    """A function that changes the config of a folder, until the test ends."""
    kept = {}

    def change(name, **values):
        path = folders[name] / "config.json"
        kept.setdefault(path, path.read_text("utf-8"))
        stored = {**json.loads(kept[path]), **values}
        path.write_text(json.dumps(stored), "utf-8")
        return folders[name]

    yield change
    for path, text in kept.items():
        path.write_text(text, "utf-8")


def load(name, folder):
    return getattr(bb, name).from_pretrained(folder)


def message_of(name, folder):
    """Returns the error of a load, which must take no memory to speak of."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="must") as caught:
            load(name, folder)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    return str(caught.value)


def refusal_of(kind, folder):
    """Returns the error of reading the config of a folder alone."""
    with pytest.raises(ValueError, match=str(folder)) as caught:
        kind.from_json(folder / "config.json")
    return str(caught.value)


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_size_is_compared_before_memory_is_spent(name, key, changed):
    right = SIZES.get(name, BERT_SIZES)[key]
    for wrong in (BILLION, right + 2)[: 2 if name == "BertEncoder" else 1]:
        folder = changed(name, **{key: wrong, **fitting(name, key)})
        message = message_of(name, folder)
        assert str(folder / "config.json") in message
        assert str(folder / "model.safetensors") in message
        assert f"`{key}` must be {right}, not {wrong}" in message


def fitting(name, key):
    """Returns what else a config says so that one size alone is wrong."""
    heads = "n_head" if name == "CausalLM" else "num_attention_heads"
    return {heads: 2} if key in ("hidden_size", "n_embd") else {}


def test_every_wrong_size_is_named_in_one_error(changed):
    wrong = {
        "vocab_size": BILLION,
        "intermediate_size": 11,
        "num_hidden_layers": 9,
    }
    message = message_of("BertEncoder", changed("BertEncoder", **wrong))
    for key, value in wrong.items():
        assert f"`{key}` must be {BERT_SIZES[key]}, not {value}" in message


@pytest.mark.parametrize("key", BERT_SIZES)
def test_a_size_is_compared_with_shards_too(key, tmp_path):
    bert(bb.BertEncoder).save_pretrained(tmp_path, max_shard_bytes=300)
    path = tmp_path / "config.json"
    wrong = {**json.loads(path.read_text("utf-8")), key: BILLION}
    path.write_text(json.dumps(wrong), "utf-8")
    message = message_of("BertEncoder", tmp_path)
    assert f"`{key}` must be {BERT_SIZES[key]}, not {BILLION}" in message
    assert "model.safetensors.index.json" in message


def test_a_token_table_that_only_the_head_holds_has_sizes_too(tmp_path):
    bert(bb.BertForMaskedLM).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    table = arrays.pop("bert.embeddings.word_embeddings.weight")
    arrays["cls.predictions.decoder.weight"] = table
    safetensors.numpy.save_file(arrays, path)
    assert not load("BertForMaskedLM", tmp_path).load_report.drawn


@pytest.mark.parametrize("key", BERT_SIZES)
def test_a_size_is_compared_with_a_checkpoint_of_google(key, tmp_path):
    tf = pytest.importorskip("tensorflow", reason="reads Google's layout")
    write_google(tf, tmp_path / "google", with_adam=False)
    path = tmp_path / "google" / "bert_config.json"
    values = {**json.loads(path.read_text("utf-8")), key: BILLION + 4}
    path.write_text(json.dumps(values), "utf-8")
    if key == "hidden_size":
        values["num_attention_heads"] = 1
        path.write_text(json.dumps(values), "utf-8")
    message = message_of("BertEncoder", tmp_path / "google")
    right = getattr(GOOGLE_CONFIG, key)
    assert f"`{key}` must be {right}, not {BILLION + 4}" in message
    assert str(path) in message


PRESET_SIZES = {
    "vocabulary_size": 8,
    "hidden_dim": 6,
    "num_layers": 2,
    "intermediate_dim": 10,
    "max_sequence_length": 12,
    "num_segments": 2,
}


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    hub = pytest.importorskip("keras_hub", reason="needs KerasHub, TensorFlow")
    folder = tmp_path_factory.mktemp("preset")
    sizes = {**PRESET_SIZES, "num_heads": 2}
    hub.models.BertBackbone(**sizes).save_to_preset(folder)
    return folder


def change_preset(folder, **values):
    path = folder / "config.json"
    stored = json.loads(path.read_text("utf-8"))
    stored["config"] |= values
    path.write_text(json.dumps(stored), "utf-8")


@pytest.mark.parametrize("key", PRESET_SIZES)
def test_a_size_is_compared_with_a_preset(key, preset):
    change_preset(preset, **{key: BILLION})
    message = message_of("BertEncoder", preset)
    change_preset(preset, **{key: PRESET_SIZES[key]})
    assert f"`{key}` must be {PRESET_SIZES[key]}, not {BILLION}" in message
    assert str(preset / "config.json") in message
    assert str(preset / "model.weights.h5") in message


ODD = [
    None, True, False, 1.5, -1, 0, 10**400, float("nan"), float("inf"), 1e-400,
    "x", "", "8", [], [1], ["a"], [None], {}, {"a": 1}, {"0": None},
    {"0": ["x"]},
]  # fmt: skip


@pytest.mark.parametrize("key", [*PRESET_SIZES, "num_heads", "dropout"])
def test_a_preset_with_an_odd_value_names_file_and_key(key, preset):
    kept = (preset / "config.json").read_text("utf-8")
    for value in ODD:
        if key == "dropout" and value == 0 and value is not False:
            continue
        change_preset(preset, **{key: value})
        try:
            message = message_of("BertEncoder", preset)
        finally:
            (preset / "config.json").write_text(kept, "utf-8")
        assert str(preset / "config.json") in message, value
        assert f"`{key}`" in message or "num_heads" in message, value


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"a": 1, "a": 2}'])
def test_a_preset_with_a_damaged_file_names_it(text, preset):
    for name in ("config.json", "tokenizer.json"):
        path = preset / name
        kept = path.read_text("utf-8") if path.is_file() else None
        path.write_text(text, "utf-8")
        try:
            with pytest.raises(ValueError, match=re.escape(str(path))):
                bb.BertEncoder.from_pretrained(f"keras://{preset}")
        finally:
            path.write_text(kept, "utf-8") if kept else path.unlink()


# Odd values of every key.

# Values among the odd ones that mean something for a key.
RIGHT = {
    "classifier_dropout": [None, 0, 1e-400],
    "label_thresholds": [None, [], [1]],
    "no_answer_threshold": [None, 1.5, -1, 0, 1e-400],
    "hidden_dropout_prob": [0, 1e-400],
    "attention_probs_dropout_prob": [0, 1e-400],
    "pad_token_id": [None, 0],
    "problem_type": [None],
    "num_labels": [None],
    "tag_strategy": [None],
    "label2id": [None, {}],
    "id2label": [None, {}],
    "architectures": [None, []],
    "position_embedding_type": [None],
    "is_decoder": [None, False, 0, 1e-400],
    "add_cross_attention": [None, False, 0, 1e-400],
    "chunk_size_feed_forward": [None, False, 0, 1e-400],
    "pruned_heads": [None, {}],
    "embedding_size": [None],
}
KEYS = [
    *BERT_SIZES, "num_attention_heads", "hidden_act", "hidden_dropout_prob",
    "attention_probs_dropout_prob", "initializer_range", "layer_norm_eps",
    "pad_token_id", "id2label", "label2id", "num_labels", "problem_type",
    "architectures", "classifier_dropout", "label_thresholds",
    "no_answer_threshold",
    "tag_strategy", "model_type", "position_embedding_type", "is_decoder",
    "add_cross_attention", "chunk_size_feed_forward", "pruned_heads",
    "embedding_size",
]  # fmt: skip


def is_right(key, value):
    return any(
        value is right or (type(value) is type(right) and value == right)
        for right in RIGHT.get(key, [])
    )


@pytest.mark.parametrize("key", KEYS)
def test_an_odd_value_of_a_key_is_named_with_its_file(key, changed):
    name = "BertForSequenceClassification"
    for value in ODD:
        if key == "architectures" and value == ["a"]:
            continue  # another model's name: its head is left out
        folder = changed(name, **{key: value})
        if is_right(key, value):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of an unknown key
                bb.BertConfig.from_json(folder / "config.json")
            continue
        message = refusal_of(bb.BertConfig, folder)
        assert f"`{key}`" in message or f"{key}[" in message, (value, message)


@pytest.mark.parametrize("name", ["CausalLM", "Seq2SeqTransformer"])
def test_an_odd_value_of_a_decoder_is_named_with_its_file(
    name, changed, folders
):
    stored = json.loads((folders[name] / "config.json").read_text("utf-8"))
    free = {"transformers_version", "dtype", "architectures"}
    kind = getattr(bb, name).config_class
    for key in sorted(stored.keys() - free):
        for value in ODD:
            is_rate = (
                "drop" in key and value in (0, 1e-400) and value is not False
            )
            is_null = (
                value is None and name == "CausalLM" and key != "model_type"
            )
            if is_rate or is_null:
                continue
            folder = changed(name, **{key: value})
            if value is None and key in (
                "target_vocab_size",
                "num_decoder_layers",
            ):
                continue
            if type(value) is int and value == 0 and key.endswith("_token_id"):
                continue
            if key == "embd_pdrop" or value == stored[key]:
                continue
            refusal_of(kind, folder)


def test_a_number_of_labels_that_the_head_does_not_have(changed):
    for name, key, value in (
        (
            "BertForSequenceClassification",
            "id2label",
            {"0": "a", "1": "b", "2": "c"},
        ),
        ("BertForTokenClassification", "num_labels", 5),
    ):
        other = {"label2id": None} if key == "id2label" else {"id2label": None}
        folder = changed(name, **{key: value}, **other)
        message = message_of(name, folder)
        assert str(folder / "config.json") in message
        assert f"`{key}` must tell of" in message


def test_names_that_contradict_their_numbers(changed):
    name = "BertForSequenceClassification"
    folder = changed(name, label2id={"pos": 0, "neg": 1})
    message = message_of(name, folder)
    assert "`label2id` must be the opposite of `id2label`" in message


def test_a_bias_without_an_axis_is_named(tmp_path):
    model = bert(bb.BertForSequenceClassification)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    arrays = safetensors.numpy.load_file(path)
    arrays["classifier.bias"] = np.ones((), "float32")
    safetensors.numpy.save_file(arrays, path)
    with pytest.raises(ValueError, match=r"classifier|num_labels"):
        load("BertForSequenceClassification", tmp_path)


@pytest.mark.parametrize("count", [12])
def test_labels_come_in_the_order_of_their_numbers(count, tmp_path):
    names = {i: f"L{i}" for i in range(count)}
    model = bert(
        bb.BertForSequenceClassification,
        id2label=dict(reversed(names.items())),
    )
    assert list(model.config.id2label.items()) == list(names.items())
    model.save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert list(stored["id2label"]) == [str(i) for i in names]
    again = load("BertForSequenceClassification", tmp_path)
    assert list(again.config.id2label.items()) == list(names.items())
