"""The command `predict`: answers come while lines come, and in their form."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import bertbook as bb
from bertbook import runtime
from bertbook.cli import finetuning, predict
from bertbook.cli.main import main
from bertbook.config import BertConfig

ROOT = Path(__file__).parents[2]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
PIECES += [f"##{letter}" for letter in LETTERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny classifier with drawn weights."""
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    model = bb.BertForSequenceClassification(config, id2label={0: "é", 1: "b"})
    model.tokenizer = bb.Tokenizer(PIECES)
    path = tmp_path_factory.mktemp("model") / "tiny"
    model.save_pretrained(path)
    return path


@pytest.fixture
def answered(monkeypatch):
    """A model that says how long a text is, with the scores of two labels."""
    asked = []

    class Model:
        architecture = "BertForSequenceClassification"

        def predict_texts(self, texts, pairs=None, **options):
            asked.append((len(texts), options))
            if "bad" in texts:
                raise ValueError("`texts` must be good. Received: 'bad'.")
            return [
                {"label": "é", "score": 0.75}
                | (
                    {"scores": {"é": 0.75, "n": 0.25}}
                    if options.get("all_scores")
                    else {}
                )
                for _ in texts
            ]

    monkeypatch.setattr(finetuning, "load_finetuned", lambda name: Model())
    return asked


class Output(io.StringIO):
    """Notes each line when it is written, and when it is sent on."""

    def __init__(self, events):
        super().__init__()
        self.events = events

    def write(self, text):
        if text.strip():
            self.events.append("line")
        return len(text)

    def flush(self):
        if self.events[-1] == "line":
            self.events[-1] = "sent"


def events_of(monkeypatch, *words):
    """Returns what a command computes, how, and prints, in that order."""
    events = []

    class Model:
        architecture = "BertForSequenceClassification"

        def predict_texts(self, texts, **options):
            events.append(f"{how()} {len(texts)}")
            return [{"label": "a"} for _ in texts]

    monkeypatch.setattr(finetuning, "load_finetuned", lambda name: Model())
    monkeypatch.setattr("sys.stdout", Output(events))
    assert main(["predict", "--model", "m", *words]) == 0
    return events


def has_eager():
    """Returns whether the backend computes without compiling."""
    return runtime.choose_backend() == "tensorflow"


def how():
    """Returns whether functions are compiled at the moment."""
    if not has_eager():
        return "compiled"
    import tensorflow as tf

    return "eager" if tf.config.functions_run_eagerly() else "compiled"


def give(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_all_scores_are_printed(answered, capsys):
    assert main(["predict", "--model", "m", "--all-scores", "a"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["scores"] == {"é": 0.75, "n": 0.25}
    assert answered[0][1]["all_scores"] is True


def test_tabs_separate_what_is_asked_for(answered, capsys, monkeypatch):
    words = ["predict", "--model", "m", "--format", "tsv", "--all-scores"]
    give(monkeypatch, "a\nb\n")
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "label\tscore\tscore é\tscore n",
        "é\t0.75\t0.75\t0.25",
        "é\t0.75\t0.75\t0.25",
    ]


def test_answers_before_a_bad_line_are_printed(answered, capsys, monkeypatch):
    give(monkeypatch, "a\n\nb\nbad\nc\n")
    assert main(["predict", "--model", "m"]) == 2
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert "Line 4: `texts` must be good" in printed.err


def test_a_line_with_other_parts_is_named(answered, capsys, monkeypatch):
    give(monkeypatch, "a\tb\n\nc\n")
    assert main(["predict", "--model", "m"]) == 2
    assert "Line 3 must hold a text, or two" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        'key,body\n7,"a, b"\n8,c\n',
        "key\tbody\n7\ta, b\n8\tc\n",
        '{"key": 7, "body": "a, b"}\n{"body": "c", "key": 8}\n',
    ],
    ids=["commas", "tabs", "json"],
)
def test_a_table_comes_in_by_standard_input(
    text, answered, capsys, monkeypatch
):
    give(monkeypatch, text)
    words = ["predict", "--model", "m", "--text-column", "body"]
    assert main([*words, "--id-column", "key"]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    assert [str(row["id"]) for row in lines] == ["7", "8"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key,text\n7,a\n", "Line 2 must hold the column 'body'"),
        ("key,body\n7\n", "Line 2 must hold 2 fields"),
        ('key,body\n7,"a\n', "Line 2 must be a whole row"),
        ('{"body": "a"}\n{"body": \n', "Line 2 must be a JSON object"),
        ("", "must hold a text. Received: no line"),
        ("\n \n", "must hold a text. Received: no line"),
    ],
)
def test_a_bad_table_is_refused(text, message, answered, capsys, monkeypatch):
    give(monkeypatch, text)
    assert main(["predict", "--model", "m", "--text-column", "body"]) == 2
    assert message in capsys.readouterr().err


def test_what_a_model_does_not_give_is_refused(monkeypatch, capsys):
    model = SimpleNamespace(architecture="BertForTokenClassification")
    monkeypatch.setattr(finetuning, "load_finetuned", lambda name: model)
    for words in (["--all-scores"], ["--format", "tsv"]):
        assert main(["predict", "--model", "m", "a", *words]) == 2
        assert "puts texts into classes" in capsys.readouterr().err


def test_an_output_that_is_not_utf_8_gets_json_of_ascii(answered, monkeypatch):
    buffer = io.BytesIO()
    output = io.TextIOWrapper(buffer, "latin-1")
    monkeypatch.setattr("sys.stdout", output)
    assert main(["predict", "--model", "m", "a"]) == 0
    assert json.loads(buffer.getvalue().decode("ascii"))["label"] == "é"


def test_progress_is_for_a_terminal_alone(answered, capsys, monkeypatch):
    give(monkeypatch, "a\n" * 300)
    assert main(["predict", "--model", "m"]) == 0
    assert capsys.readouterr().err == ""
    give(monkeypatch, "a\n" * 300)
    monkeypatch.setattr(
        predict, "_is_terminal", lambda stream: stream is sys.stderr
    )
    assert main(["predict", "--model", "m"]) == 0
    assert capsys.readouterr().err == "\r100 rows\r200 rows\r300 rows\n"


def test_the_first_row_is_answered_before_anything_is_compiled(monkeypatch):
    first = "eager 1" if has_eager() else "compiled 1"
    assert events_of(monkeypatch, "a") == [first, "sent"]
    rest = ["sent", "compiled 2", "sent", "sent"]
    for head, *words in (["b"], ["text", "--text-column", "text"]):
        lines = [head] * (3 + len(words) // 2)
        give(monkeypatch, "\n".join(lines))
        assert events_of(monkeypatch, *words) == [first, *rest]
    assert how() == "compiled"


def test_ten_thousand_rows_are_computed_in_few_calls(monkeypatch):
    give(monkeypatch, "a\n" * 10_000)
    events = events_of(monkeypatch)
    sizes = [int(event.split()[1]) for event in events if event != "sent"]
    assert sizes[:6] == [1, 32, 64, 128, 256, 512]
    assert set(sizes[6:-1]) == {1_024}
    assert sum(sizes) == events.count("sent") == 10_000


def test_functions_are_compiled_again_after_an_error():
    with pytest.raises(RuntimeError), runtime.uncompiled():
        raise RuntimeError
    assert how() == "compiled"


def test_the_first_row_gets_the_answer_that_it_gets_among_others(
    folder, capsys, monkeypatch
):
    give(monkeypatch, "one\n" * 3)
    assert main(["predict", "--model", str(folder)]) == 0
    first, *others = map(json.loads, capsys.readouterr().out.splitlines())
    for other in others:
        assert other["label"] == first["label"]
        assert other["score"] == pytest.approx(first["score"], abs=1e-5)


@pytest.mark.slow
def test_an_answer_comes_before_the_next_line_is_written(folder):
    words = ["predict", "--model", str(folder)]
    program = subprocess.Popen(
        [sys.executable, "-m", "bertbook", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    with program:
        for text in (b"one\n", b"two three\n"):
            program.stdin.write(text)
            program.stdin.flush()
            assert "label" in json.loads(program.stdout.readline())
        program.stdin.close()
        assert program.stdout.read() == b""
    assert program.returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "key,body\n7,a\n8\n9,\n10,c\n",
        '{"key": 7, "body": "a"}\n{"key"\n{"key": 9}\n{"key": 10, "body": "c"}',
        "key\tbody\n7\ta, b\n8\n9\t \n10\tc\n",
    ],
    ids=["commas", "json", "tabs"],
)
@pytest.mark.parametrize("is_file", [False, True])
def test_bad_rows_of_a_table_are_left_out_where_asked(
    text, is_file, answered, capsys, monkeypatch, tmp_path
):
    give(monkeypatch, text)
    words = ["predict", "--model", "m", "--text-column", "body"]
    words += ["--id-column", "key"]
    if is_file:
        ending = "jsonl" if text.startswith("{") else "csv"
        path = tmp_path / f"a.{ending}"
        path.write_text(text)
        words += ["--file", str(path)]
    assert main(words) == 2
    capsys.readouterr()
    give(monkeypatch, text)
    assert main([*words, "--skip-bad-rows"]) == 0
    printed = capsys.readouterr()
    rows = map(json.loads, printed.out.splitlines())
    assert [str(row["id"]) for row in rows] == ["7", "10"]
    assert "left out" in printed.err


def test_a_line_without_a_text_is_named(answered, capsys, monkeypatch):
    for words, line in (
        (
            [
                "",
            ],
            1,
        ),
        (["a", " "], 1),
    ):
        assert main(["predict", "--model", "m", *words]) == 2
        assert f"Line {line} must hold a text" in capsys.readouterr().err
    give(monkeypatch, "a\tb\nc\t\nd\te\n")
    assert main(["predict", "--model", "m", "--skip-bad-rows"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert "left out 1 lines that do not fit: 2." in printed.err


def test_the_columns_of_the_run_are_read_without_being_named(
    answered, capsys, monkeypatch, tmp_path
):
    columns = {"text": "body", "label": "team"}
    config = {"bertbook_finetuning": {"columns": columns}}
    monkeypatch.setattr(finetuning, "config_of", lambda name: config)
    path = tmp_path / "a.csv"
    path.write_text("key,body\n7,a\n8,bad\n")
    for words in ([str(path)], ["--file", str(path)]):
        assert main(["predict", "--model", "m", *words]) == 2
        printed = capsys.readouterr()
        assert len(printed.out.splitlines()) == 1
        assert "Line 3: `texts` must be good" in printed.err  # of the file
    assert main(["predict", "--model", "m", str(path), "--id-column", "key"])
    assert json.loads(capsys.readouterr().out)["id"] == "7"
    path.write_text("key,text\n7,a\n")  # no such column: lines of text
    assert main(["predict", "--model", "m", "--file", str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["predict", "--model", "m", "body"]) == 0
