"""The config: published sizes, files of others, and every rule."""

import copy
import dataclasses
import json
from pathlib import Path

import pytest

import bertbook
from bertbook.config import (
    EXPECTED_EXTRA,
    GELU_TANH_NAMES,
    HIDDEN_ACTS,
    SAME_COMPUTATION,
    BertConfig,
)

# L, D, N, F: Devlin et al. (2019), section 3; Turc et al. (2019), table 1.
PUBLISHED = {
    "tiny": (2, 128, 2, 512),
    "mini": (4, 256, 4, 1024),
    "small": (4, 512, 8, 2048),
    "medium": (8, 512, 8, 2048),
    "base": (12, 768, 12, 3072),
    "large": (24, 1024, 16, 4096),
}

# What Google's code wrote beside BERT-Base, uncased.
GOOGLE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}

# What a new release of another library adds.
HUGGING_FACE = {
    **GOOGLE,
    "add_cross_attention": False,
    "architectures": ["BertForSequenceClassification"],
    "bos_token_id": None,
    "classifier_dropout": None,
    "dtype": "float32",
    "eos_token_id": None,
    "id2label": {"0": "negative", "1": "positive", "2": "neither"},
    "is_decoder": False,
    "label2id": {"negative": 0, "neither": 2, "positive": 1},
    "layer_norm_eps": 1e-12,
    "model_type": "bert",
    "pad_token_id": None,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
    "transformers_version": "5.0.0",
    "use_cache": True,
}

SMALL = {
    "vocab_size": 101,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 17,
    "hidden_act": "relu",
    "hidden_dropout_prob": 0.2,
    "attention_probs_dropout_prob": 0.3,
    "max_position_embeddings": 23,
    "type_vocab_size": 5,
    "initializer_range": 0.04,
    "layer_norm_eps": 1e-7,
    "pad_token_id": 7,
    "id2label": {0: "no", 1: "yes"},
}


def write(folder, values):
    path = folder / "config.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


# Definition.


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name):
    config = BertConfig.named(name)
    layers, width, heads, feed_forward = PUBLISHED[name]
    assert config.num_hidden_layers == layers
    assert config.hidden_size == width
    assert config.num_attention_heads == heads
    assert config.intermediate_size == feed_forward
    assert config.head_size == 64
    assert config.head_size * heads == width


def test_the_default_is_bert_base():
    assert BertConfig() == BertConfig.named("base")
    for name, value in GOOGLE.items():
        assert getattr(BertConfig(), name) == value


def test_named_takes_other_fields():
    config = BertConfig.named("tiny", vocab_size=8192, hidden_size=126)
    assert (config.vocab_size, config.hidden_size) == (8192, 126)
    assert config.num_hidden_layers == 2


def test_every_field_is_kept():
    config = BertConfig(**SMALL)
    assert {**dataclasses.asdict(config), "extra": {}} == {**SMALL, "extra": {}}


def test_a_config_cannot_be_changed():
    config = BertConfig(**SMALL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.hidden_size = 24
    assert config.replace(hidden_size=24).hidden_size == 24
    assert config.hidden_size == 12


def test_equal_configs_have_equal_hashes():
    config = BertConfig(**SMALL, extra={"architectures": ["BertModel"]})
    assert hash(config) == hash(copy.deepcopy(config))


def test_every_field_is_read_somewhere():
    package = Path(bertbook.__file__).parent
    paths = list(package.rglob("*.py"))
    assert len(paths) > 100
    code = "".join(
        path.read_text("utf-8")
        for path in paths
        if path != package / "config.py"
    )
    names = {field.name for field in dataclasses.fields(BertConfig)}
    unread = {name for name in names if f"config.{name}" not in code}
    assert unread <= {"id2label"}  # what names the outputs of a task


# Peer: files that others write.


def test_reads_googles_file(tmp_path):
    assert BertConfig.from_json(write(tmp_path, GOOGLE)) == BertConfig()


def test_reads_a_file_of_hugging_face_without_a_warning(tmp_path):
    config = BertConfig.from_json(write(tmp_path, HUGGING_FACE))
    assert config.id2label == {0: "negative", 1: "positive", 2: "neither"}
    assert config.pad_token_id == 0  # null there
    assert config.extra["architectures"] == ["BertForSequenceClassification"]
    assert set(config.extra) == set(HUGGING_FACE) - {
        field.name for field in dataclasses.fields(BertConfig)
    }


@pytest.mark.parametrize("name", GELU_TANH_NAMES)
def test_every_name_of_the_tanh_form_is_read(name, tmp_path):
    path = write(tmp_path, {**GOOGLE, "hidden_act": name})
    config = BertConfig.from_json(path)
    assert config.hidden_act == "gelu_tanh"
    assert config.to_dict()["hidden_act"] == "gelu_new"


# Property: what is written is read back.


@pytest.mark.parametrize("hidden_act", HIDDEN_ACTS)
def test_written_is_read_back(hidden_act, tmp_path):
    config = BertConfig(**{**SMALL, "hidden_act": hidden_act})
    config.to_json(tmp_path / "config.json")
    again = BertConfig.from_json(tmp_path / "config.json")
    assert again.replace(extra={}) == config
    again.to_json(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (
        tmp_path / "config.json"
    ).read_bytes()


def test_unknown_keys_are_kept_named_once_and_written_back(tmp_path):
    strange = {"zebra": [1, 2], "aardvark": None, "größe": "ß"}
    path = write(tmp_path, {**HUGGING_FACE, **strange})
    with pytest.warns(UserWarning, match="aardvark, größe, zebra") as caught:
        config = BertConfig.from_json(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at who asked
    assert str(path) in str(caught[0].message)
    config.to_json(path)
    written = json.loads(path.read_text("utf-8"))
    assert {name: written[name] for name in strange} == strange
    assert written["label2id"] == HUGGING_FACE["label2id"]
    assert written["transformers_version"] == "5.0.0"


# Values of further keys that are read, and so are checked.
RIGHT_EXTRA = {
    "architectures": ["BertModel"],
    "bertbook_finetuning": {"task": "tags", "columns": {"text": "body"}},
    "classifier_dropout": 0.25,
    "label2id": {"no": 0, "yes": 1},
    "label_thresholds": [0.25, 0.5],
    "model_type": "bert",
    "no_answer_threshold": -1.5,
    "num_labels": 3,
    "problem_type": "regression",
    "tag_strategy": "last",
    "text_vectors": {"pooling": "cls", "normalize": True, "max_length": 9},
}


def test_expected_keys_bring_no_warning():
    for name in sorted(EXPECTED_EXTRA - set(SAME_COMPUTATION)):
        value = RIGHT_EXTRA.get(name, 5)
        assert BertConfig.from_dict({name: value}).extra == {name: value}


@pytest.mark.parametrize("key", SAME_COMPUTATION)
def test_a_key_may_ask_for_what_is_done_anyway(key):
    for value in SAME_COMPUTATION[key]:
        assert BertConfig.from_dict({key: value}).extra == {key: value}


def test_an_equal_embedding_size_is_no_other_computation():
    with pytest.warns(UserWarning, match="embedding_size"):
        config = BertConfig.from_dict({"embedding_size": 768})
    assert config.hidden_size == 768


# Error: one row a rule.

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
BAD_SIZES = (0, -3, 2.0, "12", True, None, [4], float("nan"))
BAD_RATES = (-0.1, 1.0, 7, "0.1", True, None, float("nan"), float("inf"))
BAD_WIDTHS = (0, 0.0, -1e-12, 1.0, "1e-12", True, None, float("nan"))
BAD_FIELDS = [
    *((name, bad, "an integer >= 1") for name in SIZES for bad in BAD_SIZES),
    *((name, bad, "in [0, 1)") for name in ("hidden_dropout_prob",
        "attention_probs_dropout_prob") for bad in BAD_RATES),
    *((name, bad, "in (0, 1)") for name in ("initializer_range",
        "layer_norm_eps") for bad in BAD_WIDTHS),
    *(("hidden_act", bad, "one of gelu, gelu_tanh, relu") for bad in ("swish",
        "GELU", "gelu_new", "", None, 3, ["gelu"])),
    *(("pad_token_id", bad,
        "an id of the vocabulary, in [0, 30522)") for bad in (-1, 30522, 1.0,
        "0", True, None)),
    *(("id2label", bad,
        "the classes 0, 1, 2, ... without a gap") for bad in ({1: "a", 2: "b"},
        {0: "a", 2: "b"}, {"0": "a"}, {0: "a", "1": "b"}, {0: "a", None: "b"},
        ["a", "b"], [0, 1], "ab", 3)),
    ("extra", None, "a dict"),
    ("extra", 5, "a dict"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "bad", "rule"),
    BAD_FIELDS,
    ids=[f"{name}={bad!r}" for name, bad, _ in BAD_FIELDS],
)
def test_a_bad_field_is_refused(name, bad, rule):
    with pytest.raises(ValueError, match="Received") as caught:
        BertConfig(**{name: bad})
    message = str(caught.value)
    assert message.startswith(f"`{name}` must ")
    assert rule in message
    assert message.endswith(f"Received: {bad!r}.")


def test_a_width_that_does_not_split_into_heads():
    with pytest.raises(ValueError, match="`hidden_size` must be a multiple of"):
        BertConfig(hidden_size=13, num_attention_heads=5)


def test_an_unknown_keyword_is_an_error():
    with pytest.raises(TypeError, match="hiden_size"):
        BertConfig(hiden_size=12)
    with pytest.raises(TypeError, match="hiden_size"):
        BertConfig.named("tiny", hiden_size=12)


def test_an_unknown_size():
    for name in ("Tiny", "bert-base-uncased", "", None):
        with pytest.raises(ValueError, match="tiny, mini, small") as caught:
            BertConfig.named(name)
        assert f"Received: {name!r}." in str(caught.value)


OTHER_COMPUTATION = [
    ("position_embedding_type", "relative_key", "'absolute'"),
    ("is_decoder", True, "False"),
    ("add_cross_attention", True, "False"),
    ("chunk_size_feed_forward", 64, "0"),
    ("pruned_heads", {"0": [1]}, "{}"),
    ("model_type", "roberta", "'bert'"),
    ("model_type", None, "'bert'"),
    ("embedding_size", 128, "equal `hidden_size`"),
]


@pytest.mark.parametrize(("key", "value", "rule"), OTHER_COMPUTATION)
def test_a_key_that_changes_the_computation(key, value, rule, tmp_path):
    path = write(tmp_path, {**GOOGLE, key: value})
    with pytest.raises(ValueError, match=f"`{key}` must") as caught:
        BertConfig.from_json(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert rule in message
    assert repr(value) in message


def test_each_key_that_changes_the_computation_is_tried():
    assert set(SAME_COMPUTATION) < {key for key, _, _ in OTHER_COMPUTATION}


@pytest.mark.parametrize("name", [*SIZES, "hidden_act", "layer_norm_eps"])
def test_null_in_a_file_is_no_default(name, tmp_path):
    path = write(tmp_path, {**GOOGLE, name: None})
    with pytest.raises(ValueError, match=f"`{name}` must") as caught:
        BertConfig.from_json(path)
    assert "Received: None." in str(caught.value)


@pytest.mark.parametrize(
    "labels", [{"x": "a"}, {"-1": "a"}, {"1": "a"}, ["a", "b"], "ab", 4]
)
def test_labels_of_a_file_are_numbered(labels, tmp_path):
    path = write(tmp_path, {**GOOGLE, "id2label": labels})
    with pytest.raises(ValueError, match="`id2label` must name the classes"):
        BertConfig.from_json(path)


DAMAGED = {
    "cut in the middle": (b'{\n "vocab_size": 305', "line 2 column"),
    "empty": (b"", "line 1 column 1"),
    "not UTF-8": (b'{"hidden_act": "\xff"}', "can't decode byte 0xff"),
    "a list": (b"[1, 2]", "a JSON object. Received: list"),
    "a number": (b"5", "a JSON object. Received: int"),
    "null": (b"null", "a JSON object. Received: NoneType"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file(case, tmp_path):
    content, rule = DAMAGED[case]
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="JSON") as caught:
        BertConfig.from_json(path)
    assert str(path) in str(caught.value)
    assert rule in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="No config file at"):
        BertConfig.from_json(tmp_path / "config.json")
    with pytest.raises(FileNotFoundError, match="No config file at"):
        BertConfig.from_json(tmp_path)


# Keys of published files beside the sizes, and what they must come to.
PUBLISHED_KEYS = {
    "a tagger of transformers 2": ({"_num_labels": 9, "output_past": True,
        "finetuning_task": "ner", "num_labels": 2, "pruned_heads": {},
        "id2label": {"0": "B-LOC", "1": "O"}, "label2id": {"B-LOC": 0, "O": 1}},
        {0: "B-LOC", 1: "O"}),
    "names in one direction alone": ({"id2label": {"0": "neg", "1": "pos"},
        "label2id": {"LABEL_0": 0, "LABEL_1": 1}}, {0: "neg", 1: "pos"}),
    "numbers as names": ({"id2label": {"0": 0, "1": 1}, "label2id": {"0": 0,
        "1": 1}}, {0: "0", 1: "1"}),
    "a name that occurs twice": ({"id2label": {"0": "x", "1": "x"},
        "label2id": {"x": 1}}, {0: "x", 1: "x"}),
    "numbers as digits": ({"id2label": {"0": "neg", "1": "pos"},
        "label2id": {"neg": "0", "pos": "1"}}, {0: "neg", 1: "pos"}),
    "GELU by another name": ({"hidden_act": "gelu_python"}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", PUBLISHED_KEYS)
@pytest.mark.filterwarnings("error")
def test_keys_of_published_files_are_read(case):
    keys, names = PUBLISHED_KEYS[case]
    config = BertConfig.from_dict({**GOOGLE, **keys})
    assert config.id2label == names
    assert config.hidden_act == "gelu"
    written = config.to_dict()
    assert BertConfig.from_dict(written).id2label == names


@pytest.mark.parametrize(
    "kind", [BertConfig, bertbook.CausalLMConfig, bertbook.Seq2SeqConfig]
)
@pytest.mark.parametrize("value", [None, 5, 1.5, [], ["a"], b"x", {"a"}])
def test_a_config_of_another_type_is_refused(kind, value):
    for name, make in (
        ("name", kind.named),
        ("path", kind.from_json),
        ("values", kind.from_dict),
        ("hidden_act", lambda value: kind(hidden_act=value)),
    ):
        with pytest.raises(ValueError, match=f"^`{name}` must be"):
            make(value)


def test_names_that_only_label2id_holds(tmp_path):
    path = write(tmp_path, {**GOOGLE, "label2id": {"neg": 0, "pos": 1}})
    assert BertConfig.from_json(path).id2label == {0: "neg", 1: "pos"}
    path = write(tmp_path, {**GOOGLE, "label2id": {"LABEL_0": 0, "LABEL_1": 1}})
    assert BertConfig.from_json(path).id2label is None
