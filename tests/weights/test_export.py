"""Exported graphs give what the model gives, without this package."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bertbook as bb
from bertbook.islands import exporting, on_island
from bertbook.model.layers import activation
from bertbook.runtime import Choice, keras, ops
from bertbook.weights import export
from tests.helpers.disks import largest_file
from tests.helpers.every_model import (
    CLASSES,
    check_close,
    draw_batch,
    make,
    named,
    outputs_of,
)
from tests.helpers.kills import Killed, stop_after
from tests.helpers.models import to_numpy
from tests.helpers.set_files import texts_in

on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="SavedModels are TensorFlow's",
)
NAMES = (
    "fingerprint.pb",
    "saved_model.pb",
    "variables/variables.data-00000-of-00001",
    "variables/variables.index",
)
# Loads SavedModels and runs batches; prints the largest difference of each.
SERVER = """
import json, sys
import numpy as np
import tensorflow as tf

differences = {}
for name in sys.argv[2:]:
    folder = f"{sys.argv[1]}/{name}"
    served = tf.saved_model.load(folder)
    for number in range(2):
        stored = np.load(f"{folder}-{number}.npz")
        batch = {k[3:]: stored[k] for k in stored if k.startswith("in/")}
        outputs = served.serve({k: tf.constant(v) for k, v in batch.items()})
        if not isinstance(outputs, dict):
            outputs = {"logits": outputs}
        right = {k[4:]: stored[k] for k in stored if k.startswith("out/")}
        assert outputs.keys() == right.keys(), (outputs.keys(), right.keys())
        differences[f"{name} {number}"] = max(
            float(np.abs(outputs[k] - right[k]).max()) for k in right
        )
assert not [name for name in sys.modules if name.startswith("bertbook")]
print(json.dumps(differences))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model that was never called, and its SavedModel."""
    folder = tmp_path_factory.mktemp("exported")
    model = make("BertForPreTraining")
    model.export(folder, verbose=False)
    return model, folder


@on_tensorflow
def test_a_served_model_takes_every_number_of_rows_and_length(exported):
    import tensorflow as tf

    model, folder = exported
    served = tf.saved_model.load(folder)
    for rows, length in ((2, 6), (3, 9)):
        batch = draw_batch(model, rows, length)
        tensors = {name: tf.constant(a) for name, a in batch.items()}
        received = named(to_numpy(served.serve(tensors)))
        check_close(received, outputs_of(model, batch), 1e-5)
    names = served.signatures["serving_default"].structured_input_signature[1]
    assert sorted(names) == sorted(model.input_names)


@on_tensorflow
def test_a_layer_of_keras_serves_an_exported_model(exported):
    model, folder = exported
    layer = keras.layers.TFSMLayer(folder, call_endpoint="serve")
    batch = draw_batch(model, 3, 5)
    check_close(named(to_numpy(layer(batch))), outputs_of(model, batch), 1e-5)


@on_tensorflow
@pytest.mark.slow
def test_every_class_is_served_where_this_package_is_not(tmp_path):
    for kind in CLASSES:
        model = make(kind)
        if kind == "BertForMultipleChoice":  # one that was used before
            model.predict(draw_batch(model), verbose=0)
        model.export(tmp_path / kind, verbose=False)
        for number, (rows, length) in enumerate(((2, 6), (4, 9))):
            batch = draw_batch(model, rows, length)
            arrays = {f"in/{name}": array for name, array in batch.items()}
            arrays |= {
                f"out/{name}": array
                for name, array in outputs_of(model, batch).items()
            }
            np.savez(tmp_path / f"{kind}-{number}.npz", **arrays)
    finished = subprocess.run(
        [sys.executable, "-c", SERVER, str(tmp_path), *CLASSES],
        capture_output=True,
        text=True,
        check=True,
    )
    differences = json.loads(finished.stdout)
    assert len(differences) == 2 * len(CLASSES)
    assert max(differences.values()) < 1e-4, differences


@on_tensorflow
def test_a_model_on_islands_is_exported_without_them(tmp_path, monkeypatch):
    import tensorflow as tf

    monkeypatch.setenv("BERTBOOK_COMPILATION", "islands")
    model = make("BertForSequenceClassification", dtype="mixed_bfloat16")
    assert model.encoder.attention == "islands"
    batch = draw_batch(model)
    expected = outputs_of(model, batch)
    model.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)
    tensors = {name: tf.constant(a) for name, a in batch.items()}
    check_close(named(to_numpy(served.serve(tensors))), expected, 0.05)
    definition = served.serve.concrete_functions[0].graph.as_graph_def()
    assert b"XlaMustCompile" not in definition.SerializeToString()


def test_no_island_is_taken_while_exporting(monkeypatch):
    choice = Choice("islands", "this is a test")
    monkeypatch.setattr(
        "bertbook.islands.choose_compilation", lambda dtype: choice
    )
    values = ops.ones((2, 3), "bfloat16")
    assert on_island(values)
    with exporting():
        assert not on_island(values)
    assert on_island(values)


def test_gelu_is_the_same_while_exporting():
    x = np.linspace(-9, 9, 999, dtype="float32")
    expected = ops.convert_to_numpy(activation("gelu")(x))
    with exporting():
        received = ops.convert_to_numpy(activation("gelu")(x))
    np.testing.assert_allclose(received, expected, atol=1e-6)


@on_tensorflow
@pytest.mark.parametrize(
    ("path", "format", "message"),
    [
        ("served", "saved_model", "`format` must be one of tf_saved_model"),
        ("served", "torch", "`format` must be one of tf_saved_model"),
        ("model.lite", "litert", r"`filepath` must end in .*\.tflite"),
        ("", "onnx", "`filepath` must be a file"),
        ("x.tflite", "litert", "`filepath` must be a file"),
        ("x.txt", "tf_saved_model", "`filepath` must be a folder"),
    ],
)
def test_what_cannot_be_exported_is_said(path, format, message, tmp_path):
    model = make("BertForQuestionAnswering")
    if path == "x.tflite":
        (tmp_path / path).mkdir()
    elif path == "x.txt":
        (tmp_path / path).write_text("mine", "utf-8")
    before = texts_in(tmp_path)
    with pytest.raises(ValueError, match=f"{message}.* Received"):
        model.export(tmp_path / path, format=format)
    assert texts_in(tmp_path) == before


@on_tensorflow
@pytest.mark.parametrize(
    ("path", "format"),
    [("", "tf_saved_model"), ("a.onnx", "onnx"), ("a.tflite", "litert")],
)
def test_an_export_that_fails_leaves_what_was_there(
    path, format, tmp_path, monkeypatch
):
    def write_half(model, place, **options):
        half = Path(place)
        if format == "tf_saved_model":
            (half / "variables").mkdir()
            half = half / "saved_model.pb"
        half.write_text("half", "utf-8")
        raise MemoryError

    monkeypatch.setattr(export, "WRITERS", {})
    monkeypatch.setattr(keras.Model, "export", write_half)
    for name in ("saved_model.pb", "a.onnx", "a.tflite", "mine.txt"):
        (tmp_path / name).write_text(f"old {name}", "utf-8")
    before = texts_in(tmp_path)
    with pytest.raises(MemoryError):
        make("BertEncoder").export(tmp_path / path, format=format)
    assert texts_in(tmp_path) == before


@on_tensorflow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_graph_is_the_old_or_the_new_one_wherever_the_process_ends(
    tmp_path, monkeypatch
):
    """Half of one and half of the other cannot be loaded by TensorFlow."""
    text = "old"

    def write_it(model, place, **options):
        (Path(place) / "variables").mkdir()
        for name in NAMES:
            (Path(place) / name).write_text(text, "utf-8")

    monkeypatch.setattr(keras.Model, "export", write_it)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    model, seen = make("BertEncoder"), []
    for count in range(100):
        folder, text = tmp_path / f"{count}", "old"
        model.export(folder)
        text = "new"
        with monkeypatch.context() as patch:
            left = stop_after(patch, count)
            with contextlib.suppress(Killed):
                model.export(folder)
        found = {name: (folder / name).read_text("utf-8") for name in NAMES}
        assert len(set(found.values())) == 1, count
        seen.append(found["saved_model.pb"])
        if left[0] > 0:
            break
    assert set(seen) == {"old", "new"}


@on_tensorflow
@pytest.mark.parametrize("name", ["served", "model.tflite"])
def test_an_export_without_room_names_its_path(name, tmp_path):
    path = tmp_path / name
    format = "litert" if path.suffix else "tf_saved_model"
    message = f"^{path} could not be written.*: File too large\\.$"
    with largest_file(1_000), pytest.raises(OSError, match=message):
        make("BertEncoder").export(path, format=format, verbose=False)
    assert not list(tmp_path.iterdir())


@on_tensorflow
def test_an_export_keeps_files_of_a_user_and_follows_no_link(tmp_path, capsys):
    folder, mine = tmp_path / "served", tmp_path / "mine"
    for place in (folder, mine):
        place.mkdir()
        (place / "notes.txt").write_text("mine", "utf-8")
    (folder / "variables").symlink_to(mine)
    model = make("BertForSequenceClassification")
    with pytest.raises(ValueError, match="variables must be a folder of its"):
        model.export(folder)
    assert texts_in(mine) == {"notes.txt": "mine"}
    (folder / "variables").unlink()
    (folder / "fingerprint.pb").symlink_to(mine / "notes.txt")
    capsys.readouterr()
    model.export(folder)
    assert f"Saved artifact at '{folder}'" in capsys.readouterr().out
    assert texts_in(mine) == {"notes.txt": "mine"}
    assert (folder / "notes.txt").read_text("utf-8") == "mine"
    layer = keras.layers.TFSMLayer(folder, call_endpoint="serve")
    batch = draw_batch(model)
    check_close(named(to_numpy(layer(batch))), outputs_of(model, batch), 1e-5)


@on_tensorflow
@pytest.mark.parametrize("format", ["onnx", "litert"])
def test_a_format_of_floats_refuses_a_quantized_layer(
    format, tmp_path, monkeypatch
):
    monkeypatch.setattr(export, "WRITERS", {})
    model = make("BertForSequenceClassification")
    model.classifier.quantize("int8")
    path = tmp_path / "model.tflite"
    with pytest.raises(
        ValueError, match="before you quantize.* Received: 'int8' in .*classif"
    ):
        model.export(path, format=format)
    assert not path.exists()


@on_tensorflow
def test_what_adapters_add_is_in_the_copy_that_is_exported():
    model = make("BertForSequenceClassification", dtype="mixed_bfloat16")
    bb.add_lora(model, 2)
    for weight in model.trainable_weights:
        weight.assign(np.random.default_rng(1).normal(0, 0.5, weight.shape))
    copy = export._in_float32(model)
    assert copy.compute_dtype == "float32"
    batch = draw_batch(model)
    check_close(outputs_of(copy, batch), outputs_of(model, batch), 0.1)


@on_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("change", ["lora", "int8", "int4"])
def test_a_changed_model_is_served(change, tmp_path):
    import tensorflow as tf

    model = make("BertForSequenceClassification")
    if change == "lora":
        bb.add_lora(model, 2)
        for weight in model.trainable_weights:
            weight.assign(np.random.default_rng(1).normal(size=weight.shape))
    else:
        model.quantize(change)
    model.export(tmp_path, verbose=False)
    served = tf.saved_model.load(tmp_path)
    batch = draw_batch(model)
    tensors = {name: tf.constant(a) for name, a in batch.items()}
    received = named(to_numpy(served.serve(tensors)))
    check_close(received, outputs_of(model, batch), 1e-4)


@on_tensorflow
def test_a_missing_converter_is_named(tmp_path, monkeypatch):
    find = export.importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *more: None if name == "tf2onnx" else find(name, *more),
    )
    with pytest.raises(ImportError, match="pip install tf2onnx"):
        make("BertForMaskedLM").export(tmp_path / "a.onnx", format="onnx")


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="TensorFlow can"
)
def test_another_backend_cannot_export(tmp_path):
    with pytest.raises(ValueError, match="needs the TensorFlow backend.* jax"):
        make("BertForMaskedLM").export(tmp_path / "served")
