"""The commands: what they print and write, and how they fail."""

import json
import os
import subprocess
import sys

import pytest
import safetensors.numpy

import bertbook as bb
from bertbook import locations
from bertbook.cli.main import main
from tests.helpers.models import (
    largest_difference,
    to_numpy,
    write_hugging_face,
)
from tests.reference import drawn

CONFIG = drawn.CONFIGS["relu"]


def test_info_names_backend_device_and_what_ships(capsys):
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    for word in ("backend:", "device:", "dtype_auto:", "keras:", "mini"):
        assert word in printed


def test_the_module_runs():
    command = [sys.executable, "-m", "bertbook", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "convert" in result.stdout


def test_convert_writes_the_same_model(tmp_path, capsys):
    source = write_hugging_face(tmp_path / "a", CONFIG, "bert.", old_names=True)
    assert main(["convert", str(source), "--out", str(tmp_path / "b")]) == 0
    assert "tensors" in capsys.readouterr().out
    batch = drawn.draw_batch(CONFIG)
    first, second = (
        to_numpy(bb.BertEncoder.from_pretrained(folder)(batch))
        for folder in (source, tmp_path / "b")
    )
    assert largest_difference(first.values(), second.values()) == 0


def small(kind, **head):
    """Returns a model of a kind whose folder takes little room."""
    config = bb.BertConfig(
        vocab_size=8,
        hidden_size=6,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=10,
        max_position_embeddings=12,
    )
    return kind(config, **head)


@pytest.mark.parametrize(
    "kind",
    [
        bb.BertForMaskedLM,
        bb.BertForPreTraining,
        bb.BertForSequenceClassification,
        bb.BertForTokenClassification,
        bb.BertForQuestionAnswering,
        bb.BertForMultipleChoice,
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_convert_keeps_every_tensor_of_a_head(kind, is_named, tmp_path):
    source, out = tmp_path / "a", tmp_path / "b"
    small(kind).save_pretrained(source)
    before = safetensors.numpy.load_file(source / "model.safetensors")
    path = source / "config.json"
    stored = json.loads(path.read_text("utf-8"))
    if not is_named:
        del stored["architectures"]
        path.write_text(json.dumps(stored), "utf-8")
    assert main(["convert", str(source), "--out", str(out)]) == 0
    after = safetensors.numpy.load_file(out / "model.safetensors")
    assert after.keys() == before.keys()
    assert all((after[name] == before[name]).all() for name in before)
    if is_named:
        written = json.loads((out / "config.json").read_text("utf-8"))
        assert written["architectures"] == [kind.__name__]


def test_convert_leaves_a_pooler_out_that_is_not_there(tmp_path):
    small(bb.BertEncoder, pooler=False).save_pretrained(tmp_path / "a")
    source, out = str(tmp_path / "a"), str(tmp_path / "b")
    assert main(["convert", source, "--out", out]) == 0
    after = safetensors.numpy.load_file(tmp_path / "b" / "model.safetensors")
    assert not [name for name in after if "pooler" in name]


def test_convert_draws_no_head(tmp_path, capsys):
    small(bb.BertForMaskedLM).save_pretrained(tmp_path / "a")
    path = tmp_path / "a" / "config.json"
    stored = json.loads(path.read_text("utf-8"))
    stored["architectures"] = ["BertForPreTraining"]
    path.write_text(json.dumps(stored), "utf-8")
    out = tmp_path / "b"
    assert main(["convert", str(tmp_path / "a"), "--out", str(out)]) == 2
    assert "must hold every tensor of" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("name", ["mini", "mini-qnli", "mini-squad", "en-es"])
def test_convert_keeps_what_a_shipped_model_holds(name, tmp_path):
    assert main(["convert", name, "--out", str(tmp_path)]) == 0
    shipped = locations.find_folder(name) / "model.safetensors"
    before = safetensors.numpy.load_file(shipped)
    after = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert after.keys() == before.keys()


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/../a", "link", "./a"])
def test_convert_refuses_its_own_folder(
    spelling, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    model = small(bb.BertForSequenceClassification)
    model.save_pretrained(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    before = (tmp_path / "a" / "model.safetensors").read_bytes()
    out = spelling.format(tmp_path / "a")
    for source, target in ((str(tmp_path / "a"), out), (out, "a")):
        assert main(["convert", source, "--out", target]) == 2
        assert "must be another folder" in capsys.readouterr().err
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == before


def test_convert_refuses_the_folder_of_a_shipped_model(capsys):
    out = locations.find_folder("mini")
    assert main(["convert", "mini", "--out", str(out)]) == 2
    assert "must be another folder" in capsys.readouterr().err


def test_convert_refuses_a_name_that_is_not_utf8(tmp_path, capsys):
    out = os.fsdecode(bytes(tmp_path) + b"/o\xff")
    assert main(["convert", "mini", "--out", out]) == 2
    assert "must be a name in UTF-8" in capsys.readouterr().err
    assert main(["convert", out, "--out", str(tmp_path / "b")]) == 2
    assert "must be a name in UTF-8" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_wrong_source_is_an_error_without_a_traceback(tmp_path, capsys):
    assert main(["convert", "nowhere", "--out", str(tmp_path)]) == 2
    assert "hf://org/name" in capsys.readouterr().err


def test_a_missing_option_is_refused():
    with pytest.raises(SystemExit, match="2"):
        main(["convert", "mini"])
