"""The first hour of a user with a table: the commands of docs/using.md."""

import csv
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECTION = re.compile(r"^## Your own data\n(.*?)^## ", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINES = 10_000

THINGS = ["kettle", "lamp", "chair", "phone", "bag", "radio", "clock"]
OPENINGS = ["", "I bought this {thing}. ", "A gift. ", "Second {thing} I own. "]
VERDICTS = {
    1: ["It broke at once.", "Terrible, I want my money back.", "Useless."],
    2: ["It is weak and noisy.", "Disappointing.", "Bad for the price."],
    3: ["It is neither good nor bad.", "It works, no more.", "Average."],
    4: ["Good, with small flaws.", "I am pleased with it.", "It works well."],
    5: ["Perfect, I love it.", "The best {thing} ever!", "Wonderful."],
}


def review(draw):
    """Returns a text and its stars, of which a tenth is noise."""
    stars = draw.randint(1, 5)
    text = draw.choice(OPENINGS) + draw.choice(VERDICTS[stars])
    text = text.format(thing=draw.choice(THINGS))
    if draw.random() < 0.2:
        text = text.lower()
    return text, draw.randint(1, 5) if draw.random() < 0.1 else stars


def commands():
    """Returns the commands of the section, one by one."""
    section = SECTION.search((ROOT / "docs/using.md").read_text("utf-8"))[1]
    (block,) = SHELL.findall(section)
    lines = block.replace("\\\n", " ").splitlines()
    assert len(lines) == 5
    assert all(line.startswith("bertbook ") for line in lines)
    return lines


def shell(command, folder):
    """Runs a command line; returns what it printed."""
    finished = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    assert "\r" not in finished.stdout + finished.stderr
    return finished.stdout


def environment(folder):
    """Returns an environment in which `bertbook` is a command."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with 1,000 reviews, 10,000 lines, and a run on the reviews."""
    folder, draw = tmp_path_factory.mktemp("home"), random.Random(0)
    (folder / "bin").mkdir()
    script = folder / "bin" / "bertbook"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bertbook "$@"\n')
    script.chmod(0o755)
    with (folder / "reviews.csv").open("w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["body", "stars"])
        writer.writerows(review(draw) for _ in range(1_000))
    lines = [review(draw)[0] for _ in range(LINES)]
    (folder / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    printed = shell(commands()[0], folder)
    assert re.search(r"5 labels: [1-5] \(\d+\), [1-5] \(", printed)
    return folder


def test_the_model_learns_the_stars(home):
    metrics = json.loads(shell(commands()[1], home))
    assert metrics["accuracy"] > 0.5  # by chance 0.2, without noise 1


def test_one_text_gets_the_scores_of_all_stars(home):
    (line,) = shell(commands()[2], home).splitlines()
    scores = json.loads(line)["scores"]
    assert list(scores) == list("12345")
    assert sum(scores.values()) == pytest.approx(1, abs=1e-3)


def test_a_table_is_answered_row_by_row(home):
    shell(commands()[3], home)
    rows = (home / "answers.tsv").read_text("utf-8").splitlines()
    assert rows[0] == "label\tscore"
    assert len(rows) == 1_001


def memory_of(process):
    """Returns the megabytes of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1024


def test_ten_thousand_lines_stream_in_flat_memory(home):
    command = (
        commands()[4].partition(" > ")[0].replace("bertbook", "exec bertbook")
    )
    start = time.monotonic()
    program = subprocess.Popen(
        command,
        shell=True,
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        text=True,
    )
    rows, memory = 0, []
    with program:
        for line in program.stdout:
            if not rows:
                first = time.monotonic() - start
            rows += 1
            if rows % 2_000 == 0 and Path("/proc/self/status").exists():
                memory.append(memory_of(program.pid))
            assert len(json.loads(line)["scores"]) == 5
    assert program.returncode == 0
    assert rows == LINES
    assert first < shell_seconds(commands()[2], home) + 2
    assert max(memory[1:4], default=0) <= min(memory, default=0) + 50


def shell_seconds(command, folder):
    """Returns how long a command takes: one text, so mostly its start."""
    start = time.monotonic()
    shell(command, folder)
    return time.monotonic() - start


EXPORT = """
import bertbook as bb
import numpy as np

model = bb.BertForSequenceClassification.from_pretrained("runs/reviews")
model.export("served")
batch = model.tokenizer(["Perfect, I love it."])
np.savez("batch.npz", logits=model.compute_on_batch(batch), **batch)
"""
SERVE = """
import sys
import numpy as np
import tensorflow as tf

stored = dict(np.load("batch.npz"))
logits = stored.pop("logits")
served = tf.saved_model.load("served")
found = served.serve({n: tf.constant(array) for n, array in stored.items()})
assert np.abs(found.numpy() - logits).max() < 1e-4
assert "bertbook" not in sys.modules
"""


def test_the_model_is_served_where_tensorflow_is_alone(home):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("a SavedModel is TensorFlow's")
    for script in (EXPORT, SERVE):
        (home / "script.py").write_text(script)
        shell(f'"{sys.executable}" script.py', home)
