"""Chapter 93: what is stored is right, and what is wrong is named."""

import contextlib
import copy
import io
import platform
from pathlib import Path

import numpy as np
import pytest

import book
from bertbook.book import machine_check as check
from bertbook.runtime import keras
from bertbook.weights.names import encoder_names
from bertbook.weights.pretrained import named_tensors
from tests.helpers.numpy_bert import gelu, numpy_bert, softmax

PLANTED = "gradient of encoder/block_0/attention_norm/gamma"


@pytest.fixture(scope="module")
def expected():
    return check.read_expected()


def numpy_outputs(model, x):
    """Returns both logits, computed by NumPy in 64 bits."""
    ours = {
        name: keras.ops.convert_to_numpy(tensor).astype("float64")
        for name, tensor in named_tensors(model).items()
    }
    layers, heads = 2, 2
    weights = {}
    for row in encoder_names(layers):
        array = ours[row.bertbook]
        is_matrix = row.bertbook.endswith("kernel")
        weights[row.hugging_face] = array.T if is_matrix else array
    hidden = numpy_bert(x, weights, heads)[-1]

    def dense(vectors, name):
        return vectors @ ours[f"{name}/kernel"] + ours[f"{name}/bias"]

    pooled = np.tanh(dense(hidden[:, 0], "pooler"))
    places = x["masked_lm_positions"]
    masked = hidden[np.arange(len(places))[:, None], places]
    masked = gelu(dense(masked, "masked_lm/dense"))
    scale = {part: ours[f"masked_lm/norm/{part}"] for part in ("gamma", "beta")}
    masked -= masked.mean(axis=-1, keepdims=True)
    masked /= np.sqrt(masked.var(axis=-1, keepdims=True) + 1e-12)
    masked = masked * scale["gamma"] + scale["beta"]
    table = ours["embeddings/token/embeddings"]
    return {
        "mlm_logits": masked @ table.T + ours["masked_lm/bias"],
        "nsp_logits": dense(pooled, "next_sentence"),
    }


def test_the_stored_numbers_are_those_of_bert_in_numpy(expected):
    x, y, _ = check.make_check_batch()
    logits = numpy_outputs(check.make_check_model(), x)
    stored = expected["float32"]
    for each in check.compare_numbers(logits, stored, "float64", 1e-5):
        assert each.holds, each
    loss = 0.0
    for name, label in y.items():
        right = np.take_along_axis(softmax(logits[name]), label[..., None], -1)
        loss -= np.log(right).mean()
    assert loss == pytest.approx(stored["loss"], rel=1e-5)


def test_a_wrong_number_is_named_with_its_place(expected):
    found = copy.deepcopy(expected["float32"])
    found["mlm_logits"][3][1][7] += 0.01
    (wrong,) = (
        each
        for each in check.compare_numbers(
            found, expected["float32"], "float32", 1e-4
        )
        if not each.holds
    )
    assert wrong.name == "float32 mlm_logits"
    assert "at [3, 1, 7], stored is" in wrong.detail


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1.0002])
def test_a_number_is_wrong_beyond_its_bound(wrong):
    def holds(value):
        (found,) = check.compare_numbers({"a": value}, {"a": 1.0}, "x", 1e-4)
        return found.holds

    assert not holds(wrong)
    assert holds(1.00009)


def test_the_report_begins_with_what_is_wrong():
    good = check.Comparison("float32 loss", True, "off by 0")
    bad = check.compare_answers(["states", "kings"], ["states", "nations"])
    text = check.report({"device": "CPU"}, [good, bad], {"a step": "1 ms"})
    assert text.splitlines() == [
        "1 of 2 numbers are WRONG",
        "WRONG answers of mini: states, kings; stored is states, nations",
        "device: CPU",
        "ok float32 loss: off by 0",
        "a step: 1 ms",
    ]


def test_the_facts_name_no_person_and_no_place():
    facts = check.machine_facts()
    text = check.report(facts, [], {})
    for private in (str(Path.home()), platform.node(), "/", "\\"):
        assert private not in text, private
    assert facts["attention"].startswith(("einsum, ", "islands, "))


def run_page():
    """Returns what chapter 93 prints, and the error that ends it."""
    cells = book.code_cells(book.read_twin(book.Chapter("93_colab_check").twin))
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        try:
            for cell in cells:
                exec(cell.source, names)
        except AssertionError as error:
            return printed.getvalue(), error
    return printed.getvalue(), None


@pytest.mark.slow
def test_the_page_names_a_planted_wrong_number(expected, monkeypatch):
    planted = copy.deepcopy(expected)
    planted["float32"][PLANTED] *= 1.2
    monkeypatch.setattr(check, "read_expected", lambda: planted)
    printed, error = run_page()
    assert error is not None
    assert "2 of 20 numbers are WRONG" in printed
    for dtype in ("float32", "mixed_bfloat16"):
        assert f"WRONG {dtype} {PLANTED}: off by" in printed
    assert f"wrong: float32 {PLANTED}, mixed_bfloat16 {PLANTED}\n" in printed
