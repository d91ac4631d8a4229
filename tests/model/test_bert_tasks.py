"""Models of tasks: logits by definition, loading, saving, raw texts."""

import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest

import bertbook as bb
from bertbook.runtime import keras
from bertbook.tasks.labels import ONE_LABEL, REGRESSION, SEVERAL_LABELS
from bertbook.training.losses import number_loss, several_loss
from bertbook.weights.names import TASK_HEADS
from bertbook.weights.pretrained import named_tensors
from tests.helpers.models import to_numpy, write_hugging_face
from tests.helpers.toys import TOY, toy_config
from tests.reference import drawn

CONFIG = toy_config(initializer_range=0.3, num_hidden_layers=1)
B, C, S, K = 3, 5, 13, 4
NAMES = dict(enumerate(["B-X", "I-X", "O", "B-Y"]))
# Each model and what its head is asked for.
MODELS = {
    "BertForSequenceClassification": {"id2label": NAMES},
    "BertForTokenClassification": {"id2label": NAMES},
    "BertForQuestionAnswering": {},
    "BertForMultipleChoice": {},
}
every_model = pytest.mark.parametrize("kind", MODELS)
plain = pytest.mark.usefixtures("plain_graphs")
LABELS = ("BertForSequenceClassification", "BertForTokenClassification")


def make(kind, **options):
    """A model whose biases are not 0, so that each of them shows."""
    keras.utils.set_random_seed(1)
    model = getattr(bb, kind)(CONFIG, **MODELS[kind] | options)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if weight.path.endswith("bias"):
            weight.assign(rng.normal(size=weight.shape))
    model.tokenizer = TOY
    return model


made = functools.cache(make)  # for tests that leave it as it is


def draw_batch(kind, seed=0):
    """Rows of different length; those of choices have one axis more."""
    rng = np.random.default_rng(seed)
    shape = (B, C, S) if kind == "BertForMultipleChoice" else (B, S)
    lengths = rng.integers(3, S, shape[:-1])
    lengths.flat[0] = S
    mask = np.arange(S) < lengths[..., None]
    ids = rng.integers(5, CONFIG.vocab_size, shape)
    segments = rng.integers(0, 2, shape)
    return {
        "input_ids": (ids * mask).astype("int32"),
        "token_type_ids": (segments * mask).astype("int32"),
        "attention_mask": mask.astype("int32"),
    }


def logits_of(model, batch):
    """The outputs as one array; those of questions side by side."""
    outputs = to_numpy(model(batch))
    if isinstance(outputs, dict):
        return np.stack([outputs["start_logits"], outputs["end_logits"]], -1)
    return outputs


def same_logits(first, second, kind):
    batch = draw_batch(kind)
    np.testing.assert_array_equal(
        logits_of(first, batch), logits_of(second, batch)
    )


def head_of(model):
    layer = getattr(model, "classifier", None) or model.span
    return to_numpy([layer.kernel, layer.bias])


# Definition.


@every_model
def test_the_head_is_one_product_with_what_the_encoder_gives(kind):
    model, batch = made(kind), draw_batch(kind)
    kernel, bias = head_of(model)
    received = logits_of(model, batch)
    flat = {name: array.reshape(-1, S) for name, array in batch.items()}
    outputs = to_numpy(model.encoder(flat))
    pooled = outputs.get("pooled_output")
    if kind == "BertForSequenceClassification":
        expected = [vector @ kernel + bias for vector in pooled]
    elif kind == "BertForMultipleChoice":
        scores = [(vector @ kernel + bias)[0] for vector in pooled]
        expected = [scores[row * C : row * C + C] for row in range(B)]
    else:
        expected = [
            [vector @ kernel + bias for vector in row]
            for row in outputs["sequence_output"]
        ]
    shapes = [(B, K), (B, S, K), (B, S, 2), (B, C)]
    assert received.shape == shapes[list(MODELS).index(kind)]
    np.testing.assert_allclose(received, expected, atol=1e-5)


def test_the_loss_of_several_labels_by_loops():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 5)).astype("float32")
    labels = rng.integers(0, 2, (3, 5)).astype("float32")
    weights = np.array([0.5, 0.5, 0], "float32")
    expected = 0.0
    for row, column in np.ndindex(3, 5):
        p = 1 / (1 + np.exp(-logits[row, column]))
        right = p if labels[row, column] else 1 - p
        expected -= weights[row] * np.log(right) / 5
    received = float(several_loss("sum")(labels, logits, weights))
    assert received == pytest.approx(expected, rel=1e-5)
    mean = float(several_loss()(labels, logits, 7 * weights))
    assert mean == pytest.approx(expected, rel=1e-5)


def test_the_loss_of_numbers_by_loops():
    wanted = np.array([[1.0], [2.0], [9.0]], "float32")
    found = np.array([[1.5], [0.0], [3.0]], "float32")
    weights = np.array([0.5, 0.5, 0], "float32")
    expected = (0.5**2 + 2.0**2) / 2
    for loss, scale in ((number_loss("sum"), 1), (number_loss(), 7)):
        received = float(loss(wanted, found, scale * weights))
        assert received == pytest.approx(expected)


def test_a_classifier_chooses_its_problem_type():
    for options, problem in (
        ({"num_labels": 1}, REGRESSION),
        ({"num_labels": 3}, ONE_LABEL),
        ({}, ONE_LABEL),
        ({"num_labels": 1, "problem_type": ONE_LABEL}, ONE_LABEL),
        ({"num_labels": 3, "problem_type": SEVERAL_LABELS}, SEVERAL_LABELS),
    ):
        model = bb.BertForSequenceClassification(CONFIG, **options)
        assert model.problem_type == problem
        assert model.num_labels == options.get("num_labels", 2)


@pytest.mark.any_backend
@pytest.mark.parametrize(
    ("kind", "options", "counts"),
    [
        ("BertForSequenceClassification", {}, (1_536, 2)),
        ("BertForSequenceClassification", {"num_labels": 3}, (2_304, 3)),
        ("BertForSequenceClassification", {"num_labels": 1}, (768, 1)),
        ("BertForTokenClassification", {"num_labels": 9}, (6_912, 9)),
        ("BertForQuestionAnswering", {}, (1_536, 2)),
        ("BertForMultipleChoice", {}, (768, 1)),
    ],
)
def test_published_counts_of_the_heads(kind, options, counts):
    """At the width of BERT-base; its biases are not in the paper."""
    other = {"vocab_size": 7, "num_hidden_layers": 1, "intermediate_size": 5}
    config = bb.BertConfig.named("base").replace(**other)
    kernel, bias = head_of(getattr(bb, kind)(config, **options))
    assert (kernel.size, bias.size) == counts


def test_the_dropout_rate_of_the_head_is_that_of_the_config():
    for extra, rate in (({}, 0.1), ({"classifier_dropout": 0.3}, 0.3)):
        model = bb.BertForMultipleChoice(CONFIG.replace(extra=extra))
        assert model.dropout.rate == rate


@pytest.mark.parametrize("kind", [*LABELS, "BertForMultipleChoice"])
def test_the_head_drops_in_training_alone(kind):
    """The logits are values of what the head reads, which chance sets to 0."""
    config = CONFIG.replace(
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        extra={"classifier_dropout": 0.5},
    )
    model, batch = getattr(bb, kind)(config), draw_batch(kind)
    batch = {name: np.repeat(a, 30, axis=0) for name, a in batch.items()}
    kernel = model.classifier.kernel
    kernel.assign(np.eye(*kernel.shape))
    calm, left = to_numpy([model(batch), model(batch, training=True)])
    kept = left != 0
    np.testing.assert_allclose(left[kept], 2 * calm[kept], rtol=1e-5)
    assert abs(kept.mean() - 0.5) < 5 * 0.5 / np.sqrt(kept.size)


# Property.


@pytest.mark.any_backend
@every_model
def test_padding_changes_nothing(kind):
    model, batch = made(kind), draw_batch(kind)
    expected = logits_of(model, batch)
    padded = {
        name: np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 3)])
        for name, array in batch.items()
    }
    padded["input_ids"][..., S:] = 7  # hidden, so it does not matter
    received = logits_of(model, padded)
    if expected.ndim == 3:
        received = received[:, :S]
        shown = batch["attention_mask"].astype(bool)
        expected, received = expected[shown], received[shown]
    np.testing.assert_allclose(received, expected, atol=1e-5)


@pytest.mark.any_backend
@every_model
def test_permuting_the_batch_permutes_the_output(kind):
    model, batch, order = made(kind), draw_batch(kind), [2, 0, 1]
    expected = logits_of(model, batch)[order]
    moved = {name: array[order] for name, array in batch.items()}
    np.testing.assert_allclose(logits_of(model, moved), expected, atol=1e-5)


@pytest.mark.any_backend
def test_permuting_the_choices_permutes_their_scores():
    kind = "BertForMultipleChoice"
    model, batch, order = made(kind), draw_batch(kind), [4, 2, 0, 1, 3]
    expected = logits_of(model, batch)[:, order]
    moved = {name: array[:, order] for name, array in batch.items()}
    np.testing.assert_allclose(logits_of(model, moved), expected, atol=1e-5)


@every_model
def test_compute_on_batch_takes_any_length_with_one_function(kind):
    model, batch = make(kind), draw_batch(kind)
    for length in (S, 7):
        cut = {name: array[..., :length] for name, array in batch.items()}
        expected = to_numpy(model(cut))
        received = model.compute_on_batch(cut)
        for name, array in keras.tree.flatten_with_path(received):
            other = expected[name[0]] if name else expected
            assert isinstance(array, np.ndarray)
            np.testing.assert_allclose(array, other, atol=1e-5)
    if keras.backend.backend() == "tensorflow":
        assert len(model._graphs.compiled) == 1  # for both lengths
    with pytest.raises(ValueError, match="`input_ids` must be in"):
        model.compute_on_batch(batch | {"input_ids": batch["input_ids"] + 99})


# Saving.


@every_model
def test_a_saved_folder_opens_as_the_same_model_and_as_an_encoder(
    kind, tmp_path
):
    model = made(kind)
    model.save_pretrained(tmp_path)
    again = getattr(bb, kind).from_pretrained(tmp_path)
    same_logits(model, again, kind)
    assert again.load_report.drawn == []
    assert again.load_report.skipped == {}
    assert again.config.id2label == model.config.id2label
    assert again.tokenizer.vocabulary == TOY.vocabulary
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["architectures"] == [kind]
    assert stored.get("num_labels") == (K if kind in LABELS else None)
    encoder = bb.BertEncoder.from_pretrained(tmp_path)
    batch = draw_batch("BertEncoder")
    np.testing.assert_array_equal(
        to_numpy(encoder(batch))["sequence_output"],
        to_numpy(model.encoder(batch))["sequence_output"],
    )
    head = {n for n in encoder.load_report.skipped if "bert." not in n}
    assert len(head) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"num_labels": 1, "id2label": None},
        {"problem_type": SEVERAL_LABELS},
        {"num_labels": 1, "id2label": None, "problem_type": ONE_LABEL},
    ],
)
def test_the_problem_type_of_a_classifier_is_saved(options, tmp_path):
    kind = "BertForSequenceClassification"
    model = make(kind, **options)
    model.save_pretrained(tmp_path)
    again = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    assert again.problem_type == model.problem_type
    assert again.num_labels == model.num_labels
    same_logits(model, again, kind)


@pytest.mark.parametrize("kind", LABELS)
def test_a_number_of_labels_without_names_is_saved(kind, tmp_path):
    model = make(kind, num_labels=3, id2label=None)
    model.save_pretrained(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["num_labels"] == 3
    assert "id2label" not in stored
    again = getattr(bb, kind).from_pretrained(tmp_path)
    assert (again.num_labels, again.config.id2label) == (3, None)
    same_logits(model, again, kind)


def test_a_threshold_is_saved(tmp_path):
    model = make("BertForQuestionAnswering")
    assert model.no_answer_threshold is None
    extra = {**model.config.extra, "no_answer_threshold": -1.5}
    model.config = model.config.replace(extra=extra)
    model.save_pretrained(tmp_path / "ours")
    again = bb.BertForQuestionAnswering.from_pretrained(tmp_path / "ours")
    assert again.no_answer_threshold == -1.5
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.no_answer_threshold == -1.5


@plain
@every_model
def test_keras_own_files_load_the_same(kind, tmp_path):
    model = made(kind)
    model.compute_on_batch(draw_batch(kind))  # what it compiled is not saved
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    same_logits(model, again, kind)
    assert again.config.to_dict() == model.config.to_dict()
    assert getattr(again, "problem_type", None) == getattr(
        model, "problem_type", None
    )


def test_the_weights_are_the_last_file_that_gets_its_name(
    tmp_path, monkeypatch
):
    seen = []
    replace = os.replace

    def replace_and_look(source, target):
        if Path(target).parent == tmp_path:
            seen.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_and_look)
    made("BertForMultipleChoice").save_pretrained(tmp_path)
    assert seen[0] == ".saved"
    assert seen[-1] == "model.safetensors"
    assert {"config.json", "vocab.txt", "tokenizer.json"} <= set(seen[1:-1])


# Loading.


@pytest.fixture(scope="module")
def stored():
    """The tensors of the model that ships."""
    return named_tensors(bb.BertEncoder.from_pretrained("mini"))


@pytest.mark.any_backend
@every_model
def test_tasks_share_all_but_the_head(kind, stored):
    """The model that ships, bit for bit; two of the tasks pool nothing."""
    model = getattr(bb, kind).from_pretrained("mini")
    tensors = named_tensors(model)
    assert tensors.keys() - stored.keys() == set(model.load_report.drawn)
    assert len(model.load_report.drawn) == 2
    assert {name.split("/")[0] for name in stored.keys() - tensors.keys()} == (
        set() if model.encoder.pooler else {"pooler"}
    )
    for name in stored.keys() & tensors.keys():
        first, second = to_numpy([stored[name], tensors[name]])
        np.testing.assert_array_equal(first, second)


OTHERS = {
    "BertForTokenClassification": (LABELS[0], "BertForQuestionAnswering"),
    "BertForSequenceClassification": (LABELS[1], "BertForMultipleChoice"),
    "BertForMultipleChoice": (LABELS[0],),
    "BertForQuestionAnswering": (LABELS[1],),
}


@pytest.mark.parametrize("saved", OTHERS)
def test_the_head_of_another_task_is_skipped_and_named(saved, tmp_path):
    made(saved).save_pretrained(tmp_path)
    is_span = saved == "BertForQuestionAnswering"
    theirs = "qa_outputs" if is_span else "classifier"
    for wanted in OTHERS[saved]:
        model = getattr(bb, wanted).from_pretrained(tmp_path)
        report = model.load_report
        for part in ("weight", "bias"):
            why = report.skipped[f"{theirs}.{part}"]
            assert why == f"belongs to {saved}"
        is_span = wanted == "BertForQuestionAnswering"
        head = "span" if is_span else "classifier"
        assert {f"{head}/kernel", f"{head}/bias"} <= set(report.drawn)
        assert model.config.id2label is None
        assert getattr(model, "num_labels", 2) == 2
        assert "label2id" not in model.config.extra


def test_a_head_of_another_size_is_drawn_anew_and_named(tmp_path):
    model = made("BertForSequenceClassification")
    model.save_pretrained(tmp_path)
    again = bb.BertForSequenceClassification.from_pretrained(
        tmp_path, num_labels=3
    )
    report = again.load_report
    assert report.drawn == ["classifier/kernel", "classifier/bias"]
    assert set(report.skipped) == {"classifier.weight", "classifier.bias"}
    assert set(report.skipped.values()) == {"has 4 labels, not 3"}
    assert (again.num_labels, again.config.id2label) == (3, None)
    named = bb.BertForSequenceClassification.from_pretrained(
        tmp_path, id2label={0: "no", 1: "yes"}
    )
    assert named.load_report.drawn == report.drawn
    assert named.config.id2label == {0: "no", 1: "yes"}


def test_other_names_for_as_many_labels_keep_the_head(tmp_path):
    model = made("BertForSequenceClassification")
    model.save_pretrained(tmp_path)
    names = dict(enumerate("abcd"))
    again = bb.BertForSequenceClassification.from_pretrained(
        tmp_path, id2label=names
    )
    assert again.load_report.drawn == []
    assert again.config.id2label == names


def write_head(folder, architecture=None, labels=3, width=CONFIG.hidden_size):
    """A folder of another library: an encoder and a classifier."""
    arrays = {
        "classifier.weight": drawn.draw("classifier.weight", (labels, width)),
        "classifier.bias": drawn.draw("classifier.bias", (labels,)),
    }
    extra = {} if architecture is None else {"architectures": [architecture]}
    config = CONFIG.replace(extra=extra)
    return write_hugging_face(folder, config, "bert.", **arrays)


@pytest.mark.parametrize("architecture", [None, *LABELS])
def test_the_number_of_labels_is_that_of_the_stored_head(
    architecture, tmp_path
):
    folder = write_head(tmp_path, architecture)
    for kind in [architecture] if architecture else LABELS:
        model = getattr(bb, kind).from_pretrained(folder)
        assert model.num_labels == 3
        assert not [n for n in model.load_report.drawn if "classifier" in n]


def test_a_head_for_a_choice_has_one_output(tmp_path):
    model = bb.BertForMultipleChoice.from_pretrained(write_head(tmp_path))
    why = model.load_report.skipped["classifier.weight"]
    assert why == "has 3 labels, not 1"


def test_a_misshapen_head_is_refused(tmp_path):
    folder = write_head(tmp_path, width=CONFIG.hidden_size + 1)
    with pytest.raises(ValueError, match="classifier/kernel has shape"):
        bb.BertForSequenceClassification.from_pretrained(folder)


def test_half_a_head_is_refused(tmp_path):
    bias = drawn.draw("classifier.bias", (3,))
    folder = write_hugging_face(
        tmp_path, CONFIG, "bert.", **{"classifier.bias": bias}
    )
    with pytest.raises(ValueError, match="classifier/kernel is missing"):
        bb.BertForSequenceClassification.from_pretrained(folder)


@every_model
def test_a_new_head_is_drawn_and_named(kind, tmp_path):
    folder = write_hugging_face(tmp_path, CONFIG)
    model = getattr(bb, kind).from_pretrained(folder, **MODELS[kind])
    head = "span" if kind == "BertForQuestionAnswering" else "classifier"
    expected = [names.bertbook for names in TASK_HEADS[head]]
    assert model.load_report.drawn == expected
    kernel, bias = (named_tensors(model)[name] for name in expected)
    assert not to_numpy(bias).any()
    assert 0.1 < to_numpy(kernel).std() < 0.5  # initializer_range is 0.3


# Raw texts.

TEXTS = ["a b c", "d", "e f g h i j k l", "m n"]


@plain
def test_texts_are_labeled_in_their_order():
    model = made("BertForSequenceClassification")
    together = model.predict_texts(TEXTS)
    assert len(together) == len(TEXTS)
    for row, text in zip(together, TEXTS, strict=True):
        assert set(row) == {"label", "score"}
        assert row["label"] in NAMES.values()
        (alone,) = model.predict_texts([text])
        logits = logits_of(model, TOY([text]))[0]
        expected = np.exp(logits) / np.exp(logits).sum()
        assert alone["label"] == row["label"] == NAMES[expected.argmax()]
        for found in (alone, row):
            assert found["score"] == pytest.approx(expected.max(), abs=1e-5)
    backwards = model.predict_texts(TEXTS[::-1], batch_size=2)[::-1]
    assert [r["label"] for r in backwards] == [r["label"] for r in together]


@pytest.mark.any_backend
@plain
def test_predict_texts_of_pairs_regressions_and_several_labels():
    kind = "BertForSequenceClassification"
    model = make(kind, id2label=None, num_labels=1)
    found = model.predict_texts(TEXTS, pairs=TEXTS[::-1])
    expected = logits_of(model, TOY(TEXTS, TEXTS[::-1]))[:, 0]
    received = [row.pop("score") for row in found]
    np.testing.assert_allclose(received, expected, atol=1e-5)
    assert found == [{}] * 4
    model = make(kind, problem_type=SEVERAL_LABELS)
    for row in model.predict_texts(np.array(TEXTS)):
        assert set(row["scores"]) == set(NAMES.values())
        above = [name for name, score in row["scores"].items() if score > 0.5]
        assert row["labels"] == above
    model = make(kind, id2label=None, num_labels=3)
    assert {row["label"] for row in model.predict_texts(TEXTS)} <= {0, 1, 2}


@pytest.mark.any_backend
@plain
def test_answers_are_spans_of_the_context():
    model = made("BertForQuestionAnswering")
    contexts = ["a  b c.", "x y z " * 9, "déjà vu ?"]
    questions = ["q ?", "r", "s t ?"]
    found = model.predict_answers(questions, contexts)
    assert len(found) == 3
    for row, context in zip(found, contexts, strict=True):
        assert set(row) == {"text", "start", "end", "score"}
        assert context[row["start"] : row["end"]] == row["text"] != ""
        assert 0 < row["score"] <= 1
    for number in range(3):
        pair = questions[number : number + 1], contexts[number : number + 1]
        (alone,) = model.predict_answers(*pair, batch_size=1)
        assert alone["text"] == found[number]["text"]
    short = model.predict_answers(questions, contexts, max_answer_length=1)
    assert all(len(row["text"].split()) == 1 for row in short)


@pytest.mark.any_backend
@plain
def test_entities_are_spans_of_the_text():
    model = made("BertForTokenClassification")
    texts = ["a b, c d.", "", " .. ", "é  f " * 9]
    found = model.predict_entities(texts, batch_size=2)
    assert len(found) == 4
    assert found[1] == []
    for row, text in zip(found, texts, strict=True):
        for entity in row:
            assert set(entity) == {"text", "type", "start", "end", "score"}
            assert text[entity["start"] : entity["end"]] == entity["text"]
            assert entity["type"] in ("X", "Y")
            assert 0 < entity["score"] <= 1
    assert any(found)


@pytest.mark.any_backend
@plain
def test_predict_choices_takes_the_largest_logit():
    model = made("BertForMultipleChoice")
    choices = [["a", "b c", "d"], ["e", "f", "g h i"], ["j", "k", "l"]]
    found = model.predict_choices(TEXTS[:3], choices)
    for row, text, options in zip(found, TEXTS, choices, strict=False):
        assert row["text"] == options[row["choice"]]
        batch = TOY([text] * 3, options)
        batch = {name: array[None] for name, array in batch.items()}
        logits = logits_of(model, batch)[0]
        assert row["choice"] == logits.argmax()
        expected = np.exp(logits).max() / np.exp(logits).sum()
        assert row["score"] == pytest.approx(expected, abs=1e-5)


# Error.


def test_bad_texts_are_refused():
    for call, message in (
        (lambda m: m.predict_texts([], ["a"]),
         "`pairs` must hold as many texts as `texts`, 0. Received: 1"),
        (lambda m: m.predict_texts("a b"), "`texts` must be a list .*: str"),
        (lambda m: m.predict_texts(["a", 3]), r"`texts\[1\]` must be a string"),
        (lambda m: m.predict_texts(["a", "b"], ["c"]),
         "`texts`, 2. Received: 1"),
        (lambda m: m.predict_texts(["a", "b"], []), "`texts`, 2. Received: 0"),
        (lambda m: m.predict_texts(["a", "b " * 20]),
         "`max_position_embeddings`, 17. Received: 22 tokens in row 1"),
        (lambda m: m.predict_texts(["a"], batch_size=0),
         "`batch_size` must be an integer >= 1. Received: 0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call(made("BertForSequenceClassification"))


def test_a_model_without_tokenizer_reads_nothing():
    calls = {
        "BertForSequenceClassification": lambda m: m.predict_texts(["a"]),
        "BertForTokenClassification": lambda m: m.predict_entities(["a"]),
        "BertForQuestionAnswering": lambda m: m.predict_answers(["a"], ["b"]),
        "BertForMultipleChoice": lambda m: m.predict_choices(
            ["a"], [["b", "c"]]
        ),
    }
    for kind, call in calls.items():
        model = make(kind)
        model.tokenizer = None
        with pytest.raises(ValueError, match="`model` needs a tokenizer"):
            call(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_ids": np.ones((B, S), "int32")}, r"must have shape \(B, C, S"),
        ({"input_ids": np.ones((B, C, 18), "int32")}, "Received: 18 tokens"),
        (
            {"token_type_ids": np.ones((B, C, 7), "int32")},
            "`token_type_ids` must have the shape",
        ),
        (
            {"token_type_ids": np.full((B, C, S), 2)},
            r"`token_type_ids` must be in \[0, 2\)",
        ),
        ({"attention_mask": np.full((B, C, S), 2)}, "`attention_mask` must"),
    ],
)
def test_bad_batches_of_choices_are_refused(change, message):
    kind = "BertForMultipleChoice"
    if change.get("input_ids") is not None:
        batch = change
    else:
        batch = draw_batch(kind) | change
    with pytest.raises(ValueError, match=message):
        made(kind)(batch)


def test_bad_problem_types_and_numbers_of_labels_are_refused():
    with pytest.raises(ValueError, match="`problem_type` must be one of"):
        bb.BertForSequenceClassification(CONFIG, problem_type="odd")
    with pytest.raises(ValueError, match="`num_labels` must be 1 for a regr"):
        bb.BertForSequenceClassification(CONFIG, 3, problem_type=REGRESSION)
    with pytest.raises(ValueError, match="`num_labels` must be an integer"):
        bb.BertForTokenClassification(CONFIG, 0)
