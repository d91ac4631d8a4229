"""Data out of the ordinary: one row, one class, doubles, updates that break."""

import math

import pytest

import bertbook as bb
from bertbook.finetuning.finetune import take_labels
from tests.helpers.runs import same
from tests.helpers.toys import make

pytestmark = pytest.mark.usefixtures("quick_runs")
QUIET = bb.FinetuningOptions(verbose=False)
CLASSIFIER = "BertForSequenceClassification"


def test_one_row_a_large_batch_and_a_dev_of_one_class():
    model = make(CLASSIFIER)
    train = {"text": ["a"], "label": [1], "origin": [object()]}
    dev = {"text": ["", "a", "a"], "label": [0, 0, 0]}
    history = bb.finetune(
        model, train, dev, epochs=2, batch_size=10**9, options=QUIET
    )
    assert history["step"] == [1, 2]
    values = [history[name] for name in history if name.startswith("dev_")]
    assert all(math.isfinite(value) for column in values for value in column)


@pytest.mark.parametrize(
    "has_dev", [True, pytest.param(False, marks=pytest.mark.any_backend)]
)
def test_an_update_that_breaks_the_weights_is_never_saved(has_dev, tmp_path):
    """Its loss was computed before it, and is finite."""
    model = make(CLASSIFIER)
    before = model.get_weights()
    data = {"text": ["a", "b", "c", "d"], "label": [0, 1, 0, 1]}
    arguments = {
        "dev": data if has_dev else None,
        "epochs": 1,
        "batch_size": 4,
        "out": tmp_path,
        "options": QUIET,
    }
    with pytest.raises(
        ValueError,
        match="The outputs are not finite after step 1.*lower the learning",
    ):
        bb.finetune(model, data, learning_rate=1e30, **arguments)
    assert not list(tmp_path.rglob("*.safetensors"))
    assert same(model.get_weights(), before)
    bb.finetune(model, data, learning_rate=1e-3, **arguments)
    assert (tmp_path / "model.safetensors").is_file()


def test_a_quantized_model_is_not_trained():
    model = make(CLASSIFIER)
    model.encoder.blocks[0].feed_forward.expand.quantize("int8")
    data = {"text": ["a", "b"], "label": [0, 1]}
    with pytest.raises(ValueError, match="must hold floats.*int8.*expand"):
        bb.finetune(model, data, options=QUIET)


def test_the_data_may_hold_fewer_labels_than_the_model_and_not_others():
    model = make(CLASSIFIER, id2label={0: "x", 1: "y", 2: "z"})
    found = bb.evaluate(model, {"text": ["a", "b"], "label": ["z", "x"]})
    assert 0 <= found["accuracy"] <= 1
    with pytest.raises(
        ValueError, match=r"`label\[1\]` must be one of x, y, z"
    ):
        bb.evaluate(model, {"text": ["a", "b"], "label": ["z", "w"]})
    model = make(CLASSIFIER, num_labels=3)
    with pytest.raises(ValueError, match="must be that of the data, 2: x, z"):
        take_labels(model, {"label": ["z", "x"]})


@pytest.mark.parametrize("gap", [None, math.nan])
def test_a_gap_is_named_with_its_row(gap):
    model = make(CLASSIFIER)
    with pytest.raises(ValueError, match=r"`label\[1\]` must not be missing"):
        bb.finetune(model, {"text": ["a", "b"], "label": ["x", gap]})
    with pytest.raises(ValueError, match=r"`text\[1\]` must be a string"):
        bb.finetune(model, {"text": ["a", gap], "label": ["x", "y"]})


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (
            CLASSIFIER,
            {"text": ["a"] * 40, "label": ["x"] * 39 + ["y"]},
            "39 of 40 rows have the label x",
        ),
        (
            "BertForTokenClassification",
            {"tokens": [["a"]] * 40, "tags": [["O"]] * 39 + [["B-X"]]},
            "no entity",
        ),
        (
            "BertForMultipleChoice",
            {
                "text": ["a"] * 40,
                "choices": [["b", "c"]] * 40,
                "label": [1] * 40,
            },
            "the right choice at place 1",
        ),
    ],
)
def test_labels_that_are_nearly_constant_are_told_once(kind, data, message):
    options = {"num_labels": 3} if "Token" in kind else {}
    model = make(kind, **options)
    with pytest.warns(UserWarning, match=message) as caught:
        bb.finetune(model, data, epochs=1, batch_size=40, options=QUIET)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_empty_texts_are_read_alike_and_told_where_they_are_learned():
    model = make(CLASSIFIER)
    data = {"text": ["a", "", "b", " "], "label": [0, 1, 0, 1]}
    told = "`text`: 2 of 4 rows hold an empty text, such as row 1"
    with pytest.warns(UserWarning, match=told) as caught:
        bb.finetune(model, data, epochs=1, options=QUIET)
    assert len(caught) == 1
    assert 0 <= bb.evaluate(model, data)["accuracy"] <= 1
    rows = model.predict_texts(data["text"], all_scores=True)
    assert rows[1]["scores"] == pytest.approx(rows[3]["scores"], abs=1e-5)
    encoder = model.encoder
    encoder.tokenizer = model.tokenizer
    vectors = encoder.embed_texts(data["text"])
    assert vectors[1] == pytest.approx(vectors[3], abs=1e-5)
