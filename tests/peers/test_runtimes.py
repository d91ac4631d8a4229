"""ONNX Runtime and LiteRT run what is exported, and give the same.

Run by `make test-peers`, in an environment with both runtimes.
"""

import numpy as np
import pytest

from bertbook.runtime import keras
from tests.helpers.every_model import (
    CLASSES,
    check_close,
    draw_batch,
    make,
    outputs_of,
)

pytestmark = [
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="only TensorFlow writes these formats",
    ),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of tf2onnx
]
SHAPES = ((2, 6), (3, 9))


def named_like(expected, outputs):
    """Returns outputs by name; a runtime names a single one as it likes."""
    if len(expected) == 1:
        return dict(zip(expected, outputs.values(), strict=True))
    return outputs


def run_onnx(path, batch):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path))
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, batch), strict=True))


def run_litert(path, batch):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    model = interpreter.Interpreter(model_path=str(path))
    return model.get_signature_runner()(**batch)


RUNTIMES = {"onnx": (run_onnx, "onnx"), "litert": (run_litert, "tflite")}


def check(model, format, folder, tolerance=1e-4):
    pytest.importorskip("tf2onnx" if format == "onnx" else "ai_edge_litert")
    run, suffix = RUNTIMES[format]
    path = folder / f"model.{suffix}"
    model.export(path, format=format, verbose=False)
    for rows, length in SHAPES:
        batch = draw_batch(model, rows, length)
        expected = outputs_of(model, batch)
        received = named_like(expected, run(path, batch))
        check_close(received, expected, tolerance)


@pytest.mark.parametrize("format", RUNTIMES)
@pytest.mark.parametrize("kind", CLASSES)
def test_a_runtime_gives_what_the_model_gives(kind, format, tmp_path):
    check(make(kind), format, tmp_path)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("BertForSequenceClassification", ["batch", "sequence"]),
        ("BertForTokenClassification", ["batch", "sequence"]),
        ("BertForMultipleChoice", ["batch", "choices", "sequence"]),
    ],
)
def test_dimensions_of_onnx_have_the_same_names_for_each_input(
    kind, names, tmp_path
):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    make(kind).export(path, format="onnx", verbose=False)
    graph = onnx.load(str(path)).graph
    for value in graph.input:
        dimensions = value.type.tensor_type.shape.dim
        assert [dimension.dim_param for dimension in dimensions] == names
    assert len(graph.input) == 3
    for value in graph.output:
        first = value.type.tensor_type.shape.dim[0]
        assert first.dim_param == "batch"


@pytest.mark.parametrize("format", RUNTIMES)
def test_sixteen_bits_are_exported_in_float32(format, tmp_path):
    model = make("BertForQuestionAnswering", dtype="mixed_bfloat16")
    check(model, format, tmp_path, 0.1)
    assert model.compute_dtype == "bfloat16"


@pytest.mark.parametrize("act", ["gelu_tanh", "relu"])
@pytest.mark.parametrize("format", RUNTIMES)
def test_every_activation_is_known(act, format, tmp_path):
    plain = make("BertEncoder")
    model = type(plain)(plain.config.replace(hidden_act=act))
    model.set_weights(plain.get_weights())
    check(model, format, tmp_path)
    assert np.isfinite(model.get_weights()[0]).all()
