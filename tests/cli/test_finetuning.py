"""The commands `finetune`, `evaluate` and `predict`."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import bertbook as bb
from bertbook.cli.finetuning import model_for, predict_rows
from bertbook.cli.main import main
from bertbook.finetuning.finetune import take_labels
from tests.helpers.models import write_hugging_face
from tests.reference import drawn

ROOT = Path(__file__).parents[2]
CONFIG = drawn.CONFIGS["relu"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A folder that `finetune` wrote."""
    folder = tmp_path_factory.mktemp("tuned") / "run"
    arguments = ["finetune", "opinions", "--out", str(folder), "--limit", "32"]
    assert main([*arguments, "--epochs", "1", "--batch-size", "16"]) == 0
    return folder


def test_finetune_writes_a_folder_that_loads(tuned, capsys):
    names = {path.name for path in tuned.iterdir()}
    assert names >= {
        "README.md", "config.json", "log.csv", "model.safetensors", "vocab.txt"
    }  # fmt: skip
    model = bb.BertForSequenceClassification.from_pretrained(tuned)
    assert model.num_labels == 2


def test_the_same_command_again_changes_nothing(tuned, capsys):
    before = (tuned / "model.safetensors").stat().st_mtime_ns
    arguments = ["finetune", "opinions", "--out", str(tuned), "--limit", "32"]
    assert main([*arguments, "--epochs", "1", "--batch-size", "16"]) == 0
    assert "nothing is changed" in capsys.readouterr().out
    assert (tuned / "model.safetensors").stat().st_mtime_ns == before
    assert main([*arguments, "--epochs", "2", "--batch-size", "16"]) == 2
    assert "`epochs` was 1, now 2" in capsys.readouterr().err


def test_evaluate_prints_the_metrics_of_evaluate(tuned, capsys):
    assert main(["evaluate", "opinions", "--model", str(tuned)]) == 0
    printed = json.loads(capsys.readouterr().out)
    model = bb.BertForSequenceClassification.from_pretrained(tuned)
    expected = bb.evaluate(model, bb.load_dataset("opinions", "dev"))
    assert printed == pytest.approx(expected)


def test_predict_reads_a_text_a_file_and_standard_input(
    tuned, tmp_path, capsys, monkeypatch
):
    texts = ["Lovely soup.", "The waiter dropped it."]
    found = []
    for text in texts:
        assert main(["predict", "--model", str(tuned), text]) == 0
    found.append(capsys.readouterr().out)
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    assert main(["predict", "--model", str(tuned), "--file", str(path)]) == 0
    found.append(capsys.readouterr().out)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(texts)))
    assert main(["predict", "--model", str(tuned)]) == 0
    found.append(capsys.readouterr().out)
    rows = [[json.loads(line) for line in out.splitlines()] for out in found]
    assert len(rows[0]) == 2
    for other in rows[1:]:
        for mine, theirs in zip(rows[0], other, strict=True):
            assert mine["label"] == theirs["label"]
            assert mine["score"] == pytest.approx(theirs["score"], abs=1e-5)


def test_the_columns_choose_the_model():
    for name, architecture, count in (
        ("opinions", "BertForSequenceClassification", 2),
        ("pairs", "BertForSequenceClassification", 3),
        ("tags", "BertForTokenClassification", 9),
        ("questions", "BertForQuestionAnswering", None),
        ("choices", "BertForMultipleChoice", None),
    ):
        model = model_for(bb.load_dataset(name, "train"), "mini")
        assert model.architecture == architecture
        assert getattr(model, "num_labels", None) == count
    data = {"text": ["a", "b"], "label": [0.5, 3.0]}
    assert model_for(data, "mini").problem_type == "regression"
    with pytest.raises(ValueError, match="must hold one of the columns"):
        model_for({"text": ["a"]}, "mini")


def test_predict_rows_asks_the_method_of_each_task():
    text, other = "Anna went to Oslo.", "Anna left."
    rows = {
        "tags": ([text], lambda model: model.predict_entities([text] * 2)),
        "questions": (
            ["Who went?", text],
            lambda model: model.predict_answers(["Who went?"] * 2, [text] * 2),
        ),
        "choices": (
            [text, other, "to", "a"],
            lambda model: model.predict_choices(
                [text] * 2, [[other, "to", "a"]] * 2
            ),
        ),
        "pairs": (
            [text, other],
            lambda model: model.predict_texts([text] * 2, [other] * 2),
        ),
    }
    for name, (parts, ask) in rows.items():
        data = bb.load_dataset(name, "train")
        model = model_for(data, "mini")
        take_labels(model, data)
        assert predict_rows(model, [parts, parts]) == ask(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "--model", "mini", "a"], "must be a fine-tuned model"),
        (["predict", "--model", "nowhere", "a"], "nowhere"),
        (["finetune", "sst", "--out", "x"], "Did you mean"),
        (["finetune", "opinions", "--out", "x", "--epochs", "0"], "`epochs`"),
        (["finetune", "opinions", "--out", "x", "--data-dir", "no"], "folder"),
    ],
)
def test_a_mistake_is_an_error_without_a_traceback(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_long_text_can_be_cut(tuned, capsys):
    words = ["predict", "--model", str(tuned), "book " * 600]
    assert main(words) == 2
    assert "`max_length` cuts" in capsys.readouterr().err
    assert main([*words, "--max-length", "16"]) == 0
    short = ["predict", "--model", str(tuned), "book " * 14]
    assert main(short) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = (json.loads(line)["score"] for line in lines)
    assert first == pytest.approx(second, abs=1e-5)


@pytest.mark.parametrize("limit", ["0", "-3", "x"])
def test_a_limit_is_a_number_of_rows(limit, capsys):
    with pytest.raises(SystemExit):
        main(["finetune", "opinions", "--out", "x", "--limit", limit])
    assert "must be an integer >= 1" in capsys.readouterr().err


def test_a_closed_pipe_ends_info_without_a_message():
    """As `| head -1`: the pipe is closed, and nothing is said of it."""
    command = [sys.executable, "-m", "bertbook", "info"]
    program = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    program.stdout.close()
    errors = program.stderr.read()
    program.stderr.close()
    assert program.wait() == 141
    assert b"Broken pipe" not in errors


def test_a_row_with_other_parts_is_named(tuned):
    model = bb.BertForSequenceClassification.from_pretrained(tuned)
    with pytest.raises(
        ValueError, match="Row 2, not .* must hold a text, or two"
    ):
        predict_rows(model, [["a"], ["b", "c"]])


def test_both_text_and_file_are_refused(capsys):
    assert main(["predict", "--model", "mini", "--file", "x", "text"]) == 2
    assert "both" in capsys.readouterr().err


def test_predict_refuses_a_model_without_a_task(tmp_path, capsys):
    source = write_hugging_face(tmp_path / "a", CONFIG, "")
    assert main(["predict", "--model", str(source), "text"]) == 2
    assert "must be a fine-tuned model" in capsys.readouterr().err
