"""From a file to a trained model: each form of labels that a file may have."""

import csv

import numpy as np
import pytest

import bertbook as bb
from bertbook.finetuning.finetune import take_labels
from bertbook.runtime import keras
from bertbook.tasks.base import Settings, remembered
from bertbook.tasks.labels import SEVERAL_LABELS
from tests.helpers.toys import TOY, toy_config

QUIET = bb.FinetuningOptions(verbose=False)
TEXTS = ["a b", "c", "d e f", "g h", "i"] * 2


def make(kind="BertForSequenceClassification", **options):
    keras.utils.set_random_seed(1)
    config = toy_config(num_hidden_layers=1)
    model = getattr(bb, kind)(config, **options)
    model.tokenizer = TOY
    return model


def write(path, columns):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_stars_from_1_to_5_are_five_names(tmp_path, plain_graphs):
    stars = [5, 1, 3, 2, 4] * 2
    path = write(tmp_path / "a.csv", {"review": TEXTS, "stars": stars})
    data = bb.load_dataset(path, text_column="review", label_column="stars")
    assert data["label"] == stars
    model = make(num_labels=5)
    history = bb.finetune(model, data, data, epochs=1, options=QUIET)
    assert np.isfinite(history["loss"]).all()
    assert list(model.config.id2label.values()) == ["1", "2", "3", "4", "5"]
    guesses = [int(row["label"]) for row in model.predict_texts(TEXTS)]
    share = np.mean([a == b for a, b in zip(guesses, stars, strict=True)])
    assert bb.evaluate(model, data)["accuracy"] == pytest.approx(share)


def test_a_model_with_another_number_of_labels_is_told_the_number(tmp_path):
    path = write(tmp_path / "a.csv", {"text": TEXTS, "label": [5, 1] * 5})
    with pytest.raises(ValueError, match=r"that of the data, 2: 1, 5.*with 3"):
        bb.finetune(make(num_labels=3), bb.load_dataset(path), options=QUIET)


def test_stars_are_numbers_for_a_regression(tmp_path):
    path = write(tmp_path / "a.csv", {"text": TEXTS, "label": [5, 1] * 5})
    model, data = make(num_labels=1), bb.load_dataset(path)
    take_labels(model, data)
    assert model.config.id2label is None
    assert set(bb.evaluate(model, data)) == {
        "pearson", "spearman", "mean_squared_error"
    }  # fmt: skip


def test_columns_of_zeros_and_ones_are_learned_by_name(tmp_path):
    table = {"text": TEXTS, "rude": [1, 0] * 5, "loud": [1, 1, 0, 0, 1] * 2}
    path = write(tmp_path / "a.csv", table)
    data = bb.load_dataset(path, label_column=["rude", "loud"])
    model = make(num_labels=2, problem_type=SEVERAL_LABELS)
    take_labels(model, data)
    assert list(model.config.id2label.values()) == ["loud", "rude"]
    assert set(model.predict_texts(["a"])[0]["scores"]) == {"loud", "rude"}
    assert 0 <= bb.evaluate(model, data)["f1"] <= 1


def test_what_does_not_fit_the_model_is_named_by_file_and_line(tmp_path):
    table = {"message": ["a", "b " * 40, "c", "d " * 50], "team": list("xyyx")}
    path = write(tmp_path / "a.csv", table)
    told = {"text_column": "message", "label_column": "team"}
    data = bb.load_dataset(path, **told)
    model = make(id2label={0: "x", 1: "z"})
    limit = model.config.max_position_embeddings
    with pytest.raises(ValueError, match="2 of 4 that do not") as caught:
        bb.finetune(model, data, options=QUIET)
    for line, tokens in ((3, 42), (5, 52)):
        assert (
            f"{path}, line {line}: A text must not be longer than "
            f"`max_position_embeddings`, {limit}. Received: {tokens} tokens\n"
        ) in str(caught.value)
    for known in (True, False):
        rows = data if known else {**data}
        where = f"{path}, line 3: `team`" if known else "`label[1]`"
        with pytest.raises(ValueError, match="one of x, z") as caught:
            bb.evaluate(model, rows, max_length=8)
        assert f"  {where} must be one of" in str(caught.value)
    train = {"text": ["a", "b"], "label": ["x", "z"]}
    with pytest.raises(ValueError, match="line 4: `team` must be one of"):
        bb.finetune(model, train, data, max_length=8, options=QUIET)


def test_columns_of_a_table_in_memory_keep_their_names_in_messages():
    model = make(id2label={0: "x", 1: "z"})
    data = {"Sentence": ["a", None], "labels": ["x", "y"]}
    with pytest.raises(ValueError, match=r"`Sentence\[1\]` must be a string"):
        bb.finetune(model, data, options=QUIET)
    data["Sentence"][1] = "b"
    with pytest.raises(ValueError, match=r"`labels\[1\]` must be one of x, z"):
        bb.finetune(model, data, options=QUIET)
    with pytest.raises(ValueError, match=r"`texts\[1\]` must be a string"):
        model.predict_texts(["a", None])


def test_a_model_keeps_how_it_was_fine_tuned(tmp_path, plain_graphs):
    table = {"message": [text * 5 for text in TEXTS], "team": list("xy") * 5}
    path = write(tmp_path / "a.csv", table)
    told = {"text_column": "message", "label_column": "team"}
    data = bb.load_dataset(path, **told)
    model = make()
    bb.finetune(
        model, data, epochs=1, max_length=5, out=tmp_path / "run", options=QUIET
    )
    model = type(model).from_pretrained(tmp_path / "run")
    assert model.config.extra["bertbook_finetuning"] == {
        "task": "classification",
        "max_length": 5,
        "columns": {"text": "message", "label": "team"},
    }
    long = ["a b c d e f g h i"]
    cut, explicit, whole = (
        model.predict_texts(long, max_length=length, all_scores=True)
        for length in (None, 5, 24)
    )
    assert cut == explicit != whole
    assert bb.evaluate(model, data) == bb.evaluate(model, data, max_length=5)
    history = bb.finetune(
        model, data, epochs=1, max_length=5, out=tmp_path / "run", options=QUIET
    )  # what is kept is no other setting
    assert len(history["loss"]) == 1
    bb.finetune(model, data, epochs=1, options=QUIET)
    assert "max_length" not in model.config.extra["bertbook_finetuning"]


def test_windows_and_their_stride_are_kept(tmp_path, plain_graphs):
    model = make("BertForTokenClassification", num_labels=3)
    data = {"tokens": [["a"] * 12, ["b"]], "tags": [["O"] * 12, ["B-X"]]}
    options = bb.FinetuningOptions(verbose=False, stride=2)
    bb.finetune(model, data, epochs=1, max_length=8, options=options)
    assert model.config.extra["bertbook_finetuning"] == {
        "task": "tags", "max_length": 8, "stride": 2
    }  # fmt: skip
    kinds = [Settings(), Settings(max_length=8), Settings(max_length=6)]
    lengths = []
    for settings in kinds:
        past = remembered(model, settings)
        lengths.append((past.max_length, past.stride))
    assert lengths == [(8, 2), (8, None), (6, None)]
    model.save_pretrained(tmp_path)
    other = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    assert "bertbook_finetuning" not in other.config.extra


FORMS = [
    (1, "` must be an object with any of task, max_.* Received: 1"),
    ({"task": "tags", "colour": 1}, "` must be .* Received: the key 'colour'"),
    ({"task": "tags", "max_length": 0}, ".max_length` must .* >= 1. Rec.*: 0"),
    ({"stride": "x"}, ".stride` must be an integer >= 1. Received: 'x'"),
    ({"task": None}, ".task` must be a string. Received: None"),
    ({"columns": ["a"]}, r".columns` must be an object .* Received: \['a'\]"),
    ({"columns": {"text": 5}}, ".columns` must be .* Received: {'text': 5}"),
]


@pytest.mark.parametrize(("value", "message"), FORMS, ids=range(len(FORMS)))
def test_what_is_kept_has_one_form(value, message):
    with pytest.raises(ValueError, match=f"^`bertbook_finetuning{message}.$"):
        toy_config(extra={"bertbook_finetuning": value})


def loses_nothing(model):
    """Returns what `finetune` must not change where it fails."""
    return model.num_labels, model.config, [w.shape for w in model.weights]


@pytest.mark.parametrize(
    ("labels", "count", "names"),
    [
        (["x", "y", "z"], 3, ["x", "y", "z"]),
        ([0, 1, 2], 3, None),
        ([5, 1, 3], 3, ["1", "3", "5"]),
        ([-1, 0, 1], 3, ["-1", "0", "1"]),
        ([0, 3, 3], 4, None),
        ([0, 1, 1], 2, None),
        (["x", "y", "y"], 2, ["x", "y"]),
    ],
)
def test_a_new_head_takes_the_labels_of_the_data(labels, count, names):
    model = make()
    model.predict_texts(["a"])  # what was compiled is compiled anew
    take_labels(model, {"label": labels})
    assert model.num_labels == count
    known = model.config.id2label
    assert (known and list(known.values())) == names
    scores = model.predict_texts(["a", "b"], all_scores=True)[0]["scores"]
    assert len(scores) == count
    assert model.classifier.kernel.shape[-1] == count
    assert len(model.trainable_variables) == len(make().trainable_variables)


def test_a_new_head_is_trained_saved_and_read(tmp_path, plain_graphs):
    data = {"text": TEXTS, "label": list("xyzzy") * 2}
    model = make()
    bb.finetune(model, data, data, epochs=1, out=tmp_path, options=QUIET)
    again = type(model).from_pretrained(tmp_path)
    assert again.num_labels == 3
    assert again.predict_texts(TEXTS) == model.predict_texts(TEXTS)
    told = make(id2label={0: "x", 1: "y", 2: "z"})
    bb.finetune(told, data, data, epochs=1, out=tmp_path, options=QUIET)
    data["label"] = list("vwxyz") * 2  # the head is not new any more
    with pytest.raises(ValueError, match=r"must be one of x, y, z"):
        bb.finetune(model, data, options=QUIET)


def test_a_new_head_of_tags_takes_those_of_the_data():
    model = make("BertForTokenClassification")
    take_labels(model, {"tags": [["B-X", "O"], ["B-Y"]]})
    assert list(model.config.id2label.values()) == [
        "B-X", "B-Y", "I-X", "I-Y", "O"
    ]  # fmt: skip
    assert model.predict_tags([["a", "b"]])[0] != []


def test_a_head_that_was_trained_or_told_is_never_replaced(tmp_path):
    model, data = make(), {"label": ["x", "y", "z"]}
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    for given in (loaded, make(num_labels=2)):
        with pytest.raises(ValueError, match=r"that of the data, 3: x, y, z"):
            take_labels(given, data)
    model.classifier.bias.assign([0.0, 0.1])
    with pytest.raises(ValueError, match="was trained, and is not replaced"):
        take_labels(model, data)


def test_an_error_brings_the_old_head_back(monkeypatch):
    model = make()
    before, weights = loses_nothing(model), model.get_weights()
    data = {"text": TEXTS, "label": list("xyzzy") * 2}
    dev = {"text": ["a"], "label": ["w"]}
    with pytest.raises(ValueError, match="must be one of x, y, z"):
        bb.finetune(model, data, dev, options=QUIET)
    assert loses_nothing(model) == before
    for new, old in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(new, old)
    with pytest.raises(ValueError, match="`num_labels` must be given for"):
        take_labels(model, {"label": [0, 7_000]})
