"""The commands `finetune`, `evaluate` and `predict`."""

import io
import json

import pytest

import bertbook as bb
from bertbook.cli.finetuning import model_for, predict_rows
from bertbook.cli.main import main
from bertbook.finetuning.finetune import take_labels
from tests.helpers.models import write_hugging_face
from tests.helpers.toys import toy_config
from tests.reference import drawn

pytestmark = pytest.mark.usefixtures("quick_runs")
CONFIG = drawn.CONFIGS["relu"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A folder with a small encoder that has the vocabulary of mini."""
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    encoder = bb.BertEncoder(
        toy_config(vocab_size=len(tokenizer), max_position_embeddings=128)
    )
    encoder.tokenizer = tokenizer
    folder = tmp_path_factory.mktemp("small")
    encoder.save_pretrained(folder)
    return str(folder)


def words_of(small, out, epochs=1):
    """The command that wrote `tuned`."""
    words = ["finetune", "opinions", "--model", small, "--out", str(out)]
    words += ["--epochs", str(epochs), "--limit", "32", "--batch-size", "16"]
    return words


@pytest.fixture(scope="module")
def tuned(small, tmp_path_factory, quick_runs):
    """A folder that `finetune` wrote."""
    folder = tmp_path_factory.mktemp("tuned") / "run"
    assert main(words_of(small, folder)) == 0
    return folder


def test_finetune_writes_a_folder_that_loads(tuned, capsys):
    names = {path.name for path in tuned.iterdir()}
    assert names >= {
        "README.md", "config.json", "log.csv", "model.safetensors", "vocab.txt"
    }  # fmt: skip
    model = bb.BertForSequenceClassification.from_pretrained(tuned)
    assert model.num_labels == 2


def test_the_same_command_again_changes_nothing(tuned, small, capsys):
    before = (tuned / "model.safetensors").stat().st_mtime_ns
    assert main(words_of(small, tuned)) == 0
    assert "nothing is changed" in capsys.readouterr().out
    assert (tuned / "model.safetensors").stat().st_mtime_ns == before
    assert main(words_of(small, tuned, epochs=2)) == 2
    assert "`epochs` was 1, now 2" in capsys.readouterr().err


def test_adapters_are_trained_and_the_same_command_resumes(
    small, tmp_path, capsys
):
    out = tmp_path / "run"
    words = [*words_of(small, out), "--lora", "2"]
    assert main(words) == 0
    assert "parameters are trained" in capsys.readouterr().out
    model = bb.BertForSequenceClassification.from_pretrained(out)
    start = bb.BertForSequenceClassification.from_pretrained(small)
    bb.add_lora(start, 2)
    start.load_adapter(out)
    bb.merge_lora(start)
    text = ["Lovely soup."]
    (one,) = start.predict_texts(text)
    (other,) = model.predict_texts(text)
    assert one["score"] == pytest.approx(other["score"], abs=1e-5)
    assert main(words) == 0
    assert "nothing is changed" in capsys.readouterr().out
    assert main([*words_of(small, out), "--lora", "3"]) == 2
    assert "`lora.rank` was 2, now 3" in capsys.readouterr().err


def test_evaluate_prints_the_metrics_of_evaluate(tuned, capsys):
    assert main(["evaluate", "opinions", "--model", str(tuned)]) == 0
    printed = json.loads(capsys.readouterr().out)
    model = bb.BertForSequenceClassification.from_pretrained(tuned)
    expected = bb.evaluate(model, bb.load_dataset("opinions", "dev"))
    assert printed == pytest.approx(expected)


def test_evaluate_writes_a_report_beside_the_metrics(tuned, tmp_path, capsys):
    folder = tmp_path / "report"
    words = ["evaluate", "opinions", "--model", str(tuned)]
    assert main([*words, "--report", str(folder)]) == 0
    out, err = capsys.readouterr()
    stored = json.loads((folder / "report.json").read_text("utf-8"))
    assert json.loads(out) == stored["metrics"]
    assert f"{folder}/report.html" in err
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["report.html", "report.json", "report.txt"]
    words = ["evaluate", "translation", "--model", "en-es", "--report", "x"]
    assert main(words) == 2
    assert "`--report` needs a model with a task" in capsys.readouterr().err
    assert main([*words[:-1], str(folder / "report.txt")]) == 2
    assert "`--report` must be a folder" in capsys.readouterr().err


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


def test_the_columns_choose_the_model_and_its_method(small):
    text, other = "Anna went to Oslo.", "Anna left."
    for name, task, count, parts, method in (
        ("opinions", "SequenceClassification", 2, [text], "texts"),
        ("pairs", "SequenceClassification", 3, [text, other], "texts"),
        ("tags", "TokenClassification", 9, [text], "entities"),
        ("questions", "QuestionAnswering", None, ["Who?", text], "answers"),
        ("choices", "MultipleChoice", None, [text, other, "a"], "choices"),
    ):
        data = bb.load_dataset(name, "train")
        model = model_for(data, small)
        assert model.architecture == f"BertFor{task}"
        assert getattr(model, "num_labels", None) == count
        take_labels(model, data)
        columns = [[part] * 2 for part in parts]
        if name == "choices":
            columns = [[text] * 2, [parts[1:]] * 2]
        expected = getattr(model, f"predict_{method}")(*columns)
        assert predict_rows(model, [parts, parts]) == expected
    data = {"text": ["a", "b"], "label": [0.5, 3.0]}
    assert model_for(data, small).problem_type == "regression"
    with pytest.raises(ValueError, match="must hold one of the columns"):
        model_for({"text": ["a"]}, small)


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
def test_a_mistake_is_an_error_without_a_traceback(arguments, message, capsys):
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


def test_a_row_with_other_parts_is_named(tuned):
    model = bb.BertForSequenceClassification.from_pretrained(tuned)
    with pytest.raises(
        ValueError, match="Row 2, not .* must hold a text, or two"
    ):
        predict_rows(model, [["a"], ["b", "c"]])


def test_both_text_and_file_are_refused(capsys):
    assert main(["predict", "--model", "mini", "--file", "x", "text"]) == 2
    assert "both" in capsys.readouterr().err


def test_predict_mends_no_table(tuned, tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_bytes("text\ncaf\xe9\n".encode("cp1252"))
    words = ["predict", "--model", str(tuned), "--file", str(path)]
    assert main([*words, "--text-column", "text"]) == 2
    assert capsys.readouterr().err.endswith("write the file again as UTF-8.\n")


def test_predict_refuses_a_model_without_a_task(tmp_path, capsys):
    source = write_hugging_face(tmp_path / "a", CONFIG, "")
    assert main(["predict", "--model", str(source), "text"]) == 2
    assert "must be a fine-tuned model" in capsys.readouterr().err
