"""Commands on JAX: a platform that is not here, and without TensorFlow."""

import os
import subprocess
import sys

import pytest

from bertbook.runtime import choose_backend

pytestmark = pytest.mark.skipif(choose_backend() != "jax", reason="runs on JAX")
INFO = ["-m", "bertbook", "info"]
SETUP = ["-c", "import bertbook as bb; bb.setup()"]


def run(words, **environment):
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "KERAS_BACKEND": "jax", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("platform", ["tpu", "cuda", "abacus"])
def test_a_platform_that_is_not_here_is_one_line(platform):
    finished = run(INFO, JAX_PLATFORMS=platform)
    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.count("\n") == 1
    assert finished.stderr.startswith(
        "bertbook: `JAX_PLATFORMS` must name a platform that JAX finds here, "
        f"or be left out. Received: '{platform}'"
    )


def test_setup_names_the_platform_that_is_not_here_and_no_line_of_jax():
    finished = run(SETUP, JAX_PLATFORMS="tpu")
    assert finished.returncode == 1
    last = finished.stderr.splitlines()[-1]
    assert last.startswith("ValueError: `JAX_PLATFORMS` must name a platform")
    assert "site-packages/jax" not in finished.stderr
    assert "During handling" not in finished.stderr


WITHOUT_TENSORFLOW = """
import sys
from pathlib import Path

sys.modules["tensorflow"] = None  # whoever imports it gets an error
from bertbook.cli.main import main
from bertbook.locations import shelf

out = Path(sys.argv[1])
rows = "good day,1\\nbad luck,0\\n" * 8
(out / "rows.csv").write_text("text,label\\n" + rows)
(out / "config.json").write_text(
    '{"vocab_size": 4000, "hidden_size": 16, "num_hidden_layers": 1, '
    '"num_attention_heads": 2, "intermediate_size": 16, '
    '"max_position_embeddings": 32}'
)
commands = [
    ["pretrain", "--corpus", *map(str, shelf()), "--out", str(out / "bert"),
     "--size", str(out / "config.json"), "--steps", "2", "--batch-size", "4",
     "--max-length", "16", "--vocab-size", "300"],
    ["finetune", str(out / "rows.csv"), "--model", str(out / "bert"),
     "--out", str(out / "opinions"), "--epochs", "1", "--batch-size", "8"],
    ["predict", "a good day", "--model", str(out / "opinions")],
]
for words in commands:
    status = main(words)
    assert status == 0, words
assert sys.modules["tensorflow"] is None
"""


def test_a_model_is_trained_and_used_without_tensorflow(tmp_path):
    finished = run(["-c", WITHOUT_TENSORFLOW, str(tmp_path)])
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    assert finished.stdout.count("written: ") == 2
