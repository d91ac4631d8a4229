"""The commands: what they print and write, and how they fail."""

import subprocess
import sys

import pytest

import bertbook as bb
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


def test_a_wrong_source_is_an_error_without_a_traceback(tmp_path, capsys):
    assert main(["convert", "nowhere", "--out", str(tmp_path)]) == 2
    assert "hf://org/name" in capsys.readouterr().err


def test_a_missing_option_is_refused():
    with pytest.raises(SystemExit, match="2"):
        main(["convert", "mini"])
