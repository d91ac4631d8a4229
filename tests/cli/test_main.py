"""The commands: what they print and write, and how they fail."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import bertbook as bb
from bertbook import locations, runtime
from bertbook.__main__ import run
from bertbook.cli import info
from bertbook.cli import main as commands
from bertbook.cli.main import main
from tests.helpers.disks import largest_file
from tests.helpers.models import (
    largest_difference,
    to_numpy,
    write_hugging_face,
)
from tests.reference import drawn

CONFIG = drawn.CONFIGS["relu"]
ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


# `bertbook info` without a backend, which takes seconds to import.
INFO = """
import sys
from bertbook import runtime
from bertbook.__main__ import run

runtime.describe = dict
sys.argv = ["bertbook", "info"]
sys.exit(run())
"""


def bertbook(*words, closed=(), **options):
    """Runs a command in a process of its own; output as bytes."""
    return program("-m", "bertbook", *words, closed=closed, **options)


def program(*words, closed=(), **options):
    """Runs Python in a process of its own; output as bytes."""
    command = [sys.executable, *words]
    if closed:  # standard streams, by number
        marks = " ".join(f"{number}>&-" for number in closed)
        command = ["sh", "-c", f'exec "$@" {marks}', "sh", *command]
    return subprocess.run(
        command,
        **({"capture_output": True} | options),
        env=ENVIRONMENT,
        timeout=120,
    )


def fail_with(monkeypatch, error):
    """Lets the command `info` raise an error."""

    def raise_error(options):
        raise error

    monkeypatch.setattr(info, "print_info", raise_error)


def test_commands_are_imported_where_signals_are_missing():
    """Windows has none of those that end a reader of a pipe."""
    lines = (
        "import signal, sys; del signal.SIGPIPE; sys.modules['fcntl'] = None\n"
        "from bertbook.cli import main; print(main.READER_GONE)"
    )
    done = program("-c", lines)
    assert done.stdout == b"141\n", done.stderr


def test_info_names_backend_device_and_what_ships(capsys):
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    for name, value in runtime.describe().items():
        assert f"{name}: {value}\n" in printed
    assert "mini" in printed


def test_info_gives_size_and_license_of_each_model_that_ships(capsys):
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if line.startswith("  mini:"))
    model = bb.BertForPreTraining.from_pretrained("mini")
    assert f"{model.count_params():,} parameters" in line
    assert "CC BY-SA 4.0" in line


def test_info_prints_json_for_a_program(capsys):
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["backend"] in ("tensorflow", "jax")
    names = [model["name"] for model in facts["models"]]
    assert "mini" in names
    for model in facts["models"]:
        assert 1e6 < model["parameters"] < 1e8
        assert 1 < model["megabytes"] < 100
        is_free = model["name"] == "en-es"  # of no ShareAlike text
        wanted = "Apache 2.0" if is_free else "CC BY-SA 4.0"
        assert model["license"] == wanted


def test_the_module_runs():
    result = bertbook("--help")
    assert result.returncode == 0
    assert b"convert" in result.stdout


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"bertbook {bb.__version__}\n"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ValueError("a\nb"), 2, "a b"),
        (KeyError("`text` is missing"), 2, "`text` is missing"),
        (PermissionError(13, "Permission denied", "x"), 2, "Permission denied"),
        (OSError(28, "No space left on device"), 2, "results could not be"),
        (OSError(98, "Address already in use"), 2, "Address already in use"),
        (MemoryError(), 1, "not enough memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: OOM"), 1, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_line_and_a_status(
    error, status, text, monkeypatch, capsys
):
    fail_with(monkeypatch, error)
    assert main(["info"]) == status
    printed = capsys.readouterr().err
    assert printed.startswith("bertbook: ")
    assert text in printed
    assert printed.count("\n") == 1


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch):
    fail_with(monkeypatch, RuntimeError("a fault"))
    with pytest.raises(RuntimeError, match="a fault"):
        main(["info"])


def test_an_interrupt_before_the_command_is_one_line(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_build_parser", interrupt)
    monkeypatch.setattr(sys, "argv", ["bertbook", "info"])
    monkeypatch.setattr(signal, "signal", lambda *words: None)
    assert run() == 130
    assert capsys.readouterr().err == "bertbook: interrupted\n"


def test_ctrl_c_says_which_folder_the_command_goes_on_in(monkeypatch, capsys):
    def interrupt(*words, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bertbook.cli.own_data.read_parts", interrupt)
    assert main(["finetune", "opinions", "--out", "run"]) == 130
    assert capsys.readouterr().err == (
        "bertbook: interrupted; the same command goes on in run\n"
    )


@pytest.fixture
def ctrl_c():
    """Lets Ctrl-C reach programs, also where a shell runs this behind it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["finetune", "opinions", "--epochs", "90", "--checkpoint-steps", "2"],
        [
            "pretrain",
            "--steps",
            "9000",
            "--checkpoint-steps",
            "2",
            "--corpus",
        ],
    ],
    ids=["finetune", "pretrain"],
)
def test_ctrl_c_is_one_line_that_says_how_to_go_on(words, tmp_path, ctrl_c):
    out = tmp_path / "run"
    if words[-1] == "--corpus":
        corpus = tmp_path / "corpus.txt"
        text = "\n\n".join(
            f"A cat number {n} sat. It was warm." for n in range(99)
        )
        corpus.write_text(text)
        words = [*words, str(corpus), "--held-out", "0", "--max-length", "32"]
    command = [sys.executable, "-m", "bertbook", *words, "--out", str(out)]
    program = subprocess.Popen(
        [*command, "--batch-size", "4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    end = time.monotonic() + 100
    while not list(out.glob("checkpoints/*")) and time.monotonic() < end:
        assert program.poll() is None, program.communicate()
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    printed, errors = program.communicate(timeout=60)
    assert program.returncode == 130
    lines = errors.decode().splitlines()
    assert lines == [
        f"bertbook: interrupted; the same command goes on in {out}"
    ]
    assert b"\r" not in printed
    assert b"\x1b" not in printed


# The commands that write a folder, without `--out`.
WRITERS = {
    "convert": ["mini"],
    "export": ["mini"],
    "prepare": ["corpus.txt"],
    "pretrain": ["--corpus", "corpus.txt", "--steps", "1"],
    "finetune": ["opinions"],
    "train-translation": ["translation"],
}


def test_each_command_that_writes_a_folder_is_here():
    parsers = commands._build_parser()._subparsers._group_actions[0].choices
    found = {
        name
        for name, parser in parsers.items()
        if any("--out" in action.option_strings for action in parser._actions)
    }
    assert found == set(WRITERS)


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (b"o\xff", "must be a name in UTF-8"),
        (b"\xff/o", "must be a name in UTF-8"),
        (b"file", "must be a folder, not a file"),
        (b"", "must be the path of a folder"),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_at_once(
    command, name, message, tmp_path, capsys
):
    for file in ("corpus.txt", "file"):
        (tmp_path / file).write_text("A cat sat.\n\nIt was warm.\n")
    before = sorted(tmp_path.rglob("*"))
    words = [command, *WRITERS[command], "--out", os.fsdecode(name)]
    assert main(words) == 2
    printed = capsys.readouterr()
    assert f"bertbook: `--out` {message}. Received: " in printed.err
    assert printed.out == ""  # no work has begun
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_that_is_no_utf_8_is_printed_by_a_program(tmp_path):
    result = bertbook("convert", "mini", "--out", bytes(tmp_path) + b"/o\xff")
    assert result.returncode == 2
    assert b"`--out` must be a name in UTF-8" in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_bad_file_name_that_is_no_utf_8_is_named():
    result = bertbook("predict", "--model", b"no\xff", "a")
    assert result.returncode == 2
    assert result.stderr.count(b"\n") == 1


def test_closed_streams_are_no_traceback():
    words = ["convert", "nowhere", "--out", "x"]
    for number in (0, 1, 2):
        result = bertbook(*words, closed=[number])
        assert result.returncode == 2
        assert b"Traceback" not in result.stderr
    assert bertbook(*words, closed=[0, 1, 2]).returncode == 2


def test_info_into_a_closed_or_full_output_is_refused():
    result = program("-c", INFO, closed=[1])
    assert result.returncode == 2
    assert b"closed standard output" in result.stderr
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "wb") as full:
        result = program(
            "-c",
            INFO,
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert result.returncode == 2
    assert b"No space left" in result.stderr
    assert result.stderr.count(b"\n") == 1


def test_a_closed_pipe_ends_info_without_a_message():
    """As `| head -1`: the pipe is closed, and nothing is said of it."""
    reader, writer = os.pipe()
    os.close(reader)
    result = program(
        "-c", INFO, capture_output=False, stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert result.returncode == 141
    assert result.stderr == b""


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


on_tensorflow = pytest.mark.skipif(
    runtime.choose_backend() != "tensorflow", reason="TensorFlow exports"
)


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
def test_convert_keeps_every_tensor_of_a_head(kind, tmp_path):
    source = tmp_path / "a"
    small(kind).save_pretrained(source)
    before = safetensors.numpy.load_file(source / "model.safetensors")
    path = source / "config.json"
    for out in (tmp_path / "named", tmp_path / "guessed"):
        assert main(["convert", str(source), "--out", str(out)]) == 0
        after = safetensors.numpy.load_file(out / "model.safetensors")
        assert after.keys() == before.keys()
        assert all((after[name] == before[name]).all() for name in before)
        if out.name == "named":
            written = json.loads((out / "config.json").read_text("utf-8"))
            assert written["architectures"] == [kind.__name__]
            stored = json.loads(path.read_text("utf-8"))
            del stored["architectures"]
            path.write_text(json.dumps(stored), "utf-8")


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
def test_convert_refuses_its_own_folder(spelling, tmp_path, capsys):
    model = small(bb.BertForSequenceClassification)
    model.save_pretrained(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    before = (tmp_path / "a" / "model.safetensors").read_bytes()
    out = spelling.format(tmp_path / "a")
    for source, target in ((str(tmp_path / "a"), out), (out, "a")):
        assert main(["convert", source, "--out", target]) == 2
        assert "must be another folder" in capsys.readouterr().err
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == before


@on_tensorflow
def test_export_writes_a_graph_that_gives_the_same(tmp_path, capsys):
    import tensorflow as tf

    model = small(bb.BertForSequenceClassification)
    model.save_pretrained(tmp_path / "a")
    out = tmp_path / "served"
    assert main(["export", str(tmp_path / "a"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"written: {out}\n"
    batch = {name: np.array([[1, 0, 1]], "int32") for name in model.input_names}
    served = tf.saved_model.load(out)
    np.testing.assert_allclose(
        served.serve(batch), model(batch), rtol=0, atol=1e-5
    )


@on_tensorflow
@pytest.mark.parametrize("command", ["convert", "export"])
def test_a_path_that_cannot_be_written_is_one_sentence(
    command, tmp_path, capsys
):
    small(bb.BertForSequenceClassification).save_pretrained(tmp_path / "a")
    loop, new = tmp_path / "loop", tmp_path / "new"
    loop.symlink_to(loop)
    words = [command, str(tmp_path / "a"), "--out"]
    assert main([*words, str(loop)]) == 2
    assert capsys.readouterr().err == (
        "bertbook: `--out` must be a folder, or not there. Received: "
        f"{loop}, a link that leads nowhere.\n"
    )
    with largest_file(1_000):
        assert main([*words, str(new)]) == 2
    assert capsys.readouterr().err == (
        f"bertbook: {new} could not be written, and is as it was: File too "
        "large.\n"
    )
    assert not new.exists()


@on_tensorflow
def test_export_says_what_it_cannot_write(tmp_path, capsys, monkeypatch):
    model = small(bb.BertForSequenceClassification)
    folder = str(tmp_path / "a")
    model.save_pretrained(folder)
    words = ["export", folder, "--format", "litert", "--out"]
    assert main([*words, "x.lite"]) == 2
    assert "`--out` must end in .tflite" in capsys.readouterr().err
    assert main(["export", folder, "--out", folder]) == 2
    assert "must be another folder" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    words = ["export", folder, "--format", "onnx", "--out"]
    assert main([*words, str(tmp_path / "x.onnx")]) == 2
    assert "`pip install tf2onnx`" in capsys.readouterr().err


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
