"""Own files on the command line: columns, parts, tasks and labels."""

import argparse
import csv
import itertools
import json
import re
import shlex

import pytest

import bertbook as bb
from bertbook.cli import own_data
from bertbook.cli.finetuning import head_for
from bertbook.cli.main import _build_parser, main
from bertbook.cli.own_data import (
    check_task,
    guess_task,
    read_one,
    read_parts,
    with_labels_for,
    with_labels_of,
)
from bertbook.tasks.labels import sorted_names


@pytest.fixture
def calls(monkeypatch):
    """Puts a stand-in in place of `load_dataset`; lists its calls."""
    calls = []

    def load_dataset(name, split="every", data_dir=None, **options):
        calls.append((name, split, data_dir, options))
        return {"text": [f"{name} {split}"], "label": ["a"]}

    monkeypatch.setattr(own_data, "load_dataset", load_dataset)
    return calls


def options_of(*words):
    return _build_parser().parse_args(words)


def parts_of(*words):
    words = ["finetune", *map(str, words), "--out", "x"]
    return read_parts(options_of(*words))


def test_columns_are_passed_on_under_our_names(calls):
    words = ["--text-column", "body", "--label-column", "stars"]
    words += ["--weight-column", "w", "--id-column", "key"]
    parts_of("reviews.csv", *words)
    assert calls == [
        (
            "reviews.csv",
            "every",
            None,
            {
                "text_column": "body",
                "label_column": "stars",
                "weight_column": "w",
                "id_column": "key",
            },
        )
    ]


def test_a_share_draws_dev_from_the_file_by_the_seed(calls):
    train, dev = parts_of("reviews.csv", "--dev", "0.2", "--seed", "3")
    held_out = {"dev": 0.2, "seed": 3}
    assert calls == [
        ("reviews.csv", "train", None, held_out),
        ("reviews.csv", "dev", None, held_out),
    ]
    assert train["text"] != dev["text"]


def test_a_table_is_mended_where_asked_and_each_change_told_once(
    tmp_path, capsys
):
    path = tmp_path / "a.csv"
    lines = [f"text {n},{'ab'[n % 2]}" for n in range(8)]
    path.write_text("\n".join(["text,label", *lines, "lost,", "x"]))
    train, dev = parts_of(path, "--mend", "--dev", "0.25")
    assert (len(train["text"]), len(dev["text"])) == (6, 2)
    assert capsys.readouterr().out.splitlines() == [
        "line 10: `label` must not be missing. Received: ''",
        "line 11: there must be 2 columns. Received: 1",
    ]
    with pytest.raises(ValueError, match="`--mend` is of own files alone"):
        parts_of("opinions", "--mend")


def test_decimal_commas_are_read_where_a_table_is_mended(tmp_path, capsys):
    path = tmp_path / "a.csv"
    lines = [f"text {n};{n},25" for n in range(4)]
    path.write_text("\n".join(["text;label", *lines]))
    with pytest.raises(ValueError, match="; `--mend` reads decimal commas. R"):
        parts_of(path, "--task", "regression")
    train, _ = parts_of(path, "--task", "regression", "--mend")
    assert with_labels_of(train, "regression")["label"] == [
        0.25, 1.25, 2.25, 3.25,
    ]  # fmt: skip
    assert capsys.readouterr().out == (
        "`label`: '0,25' is read as 0.25, 4 rows\n"
    )
    with pytest.raises(ValueError, match="several-labels` needs names or li"):
        check_task(train, "several-labels")
    with pytest.raises(ValueError, match="a number .*; `--mend` reads decim"):
        with_labels_of({"label": ["1,5", "n/a"]}, "regression")


def test_an_old_encoding_names_its_option(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\ncaf\xe9,a\ntea,b\n".encode("cp1252"))
    with pytest.raises(ValueError, match="as UTF-8, or use `--mend`.$"):
        parts_of(path)
    assert parts_of(path, "--mend")[0]["text"] == ["caf\xe9", "tea"]


def test_a_second_file_is_dev(calls, tmp_path):
    path = tmp_path / "0.1"  # a file, although it looks like a share
    path.write_text("")
    for name in ("dev.csv", str(path)):
        calls.clear()
        parts_of("train.csv", "--dev", name)
        assert [call[:2] for call in calls] == [
            ("train.csv", "every"), (name, "every"),
        ]  # fmt: skip


BODY = ["--text-column", "body"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x.csv"], "as in `--text-column body --label-column stars`"),
        (["x.csv", *BODY], "`--label-column` must tell .* `--label-column st"),
        (["x.csv", "--text-column", "bodi"], "`--text-column` .* 'body'"),
        (["x.csv", *BODY, "--text-pair-column", "b"], "`--text-pair-column`"),
        (["y.csv"], "`dataset` must be a file or .* mean 'x.csv'"),
        (
            ["x.csv", *BODY, "--label-column", "stars", "--dev", "y.csv"],
            "`--dev` must be a file or .* mean 'x.csv'",
        ),
        (["opinions", *BODY], "`--text-column` .* 'opinions'"),
    ],
)
def test_a_message_names_options_of_the_command(
    words, message, tmp_path, capsys
):
    write_reviews(tmp_path / "x.csv")
    assert main(["finetune", *words, "--out", "run"]) == 2
    printed = capsys.readouterr().err
    assert re.search(message, printed)
    assert "_column" not in printed
    assert "load_dataset" not in printed
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "names", [("Ticket text", "label (2)"), ("it's", 'a "b"'), ("text_", "$x")]
)
def test_an_example_of_a_command_can_be_pasted(names, tmp_path, capsys):
    path = tmp_path / "a (1).csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *zip("abcd", "xyxy", strict=True)])
    assert main(["finetune", str(path), "--out", "run"]) == 2
    (example,) = re.findall(r"as in `(.*)`\. Rec", capsys.readouterr().err)
    words = shlex.split(example)
    assert words == ["--text-column", names[0], "--label-column", names[1]]
    assert parts_of(path, *words)[0]["label"] == [*"xyxy"]


def test_a_file_alone_has_no_dev(calls):
    assert parts_of("reviews.csv")[1] is None


@pytest.mark.parametrize("name", ["opinions", "folder"])
def test_known_sets_and_folders_have_a_dev_part(name, calls, tmp_path):
    (tmp_path / "folder").mkdir()
    parts_of(name)
    assert [call[:2] for call in calls] == [(name, "train"), (name, "dev")]
    with pytest.raises(ValueError, match="`--dev` must be a file where"):
        parts_of(name, "--dev", "0.1")
    parts_of(name, "--dev", "more.csv")
    assert calls[-1][:2] == ("more.csv", "every")


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "1.5", "nan", "inf"])
def test_a_share_is_between_0_and_1(share, calls):
    with pytest.raises(ValueError, match="`--dev` must be a share above 0"):
        parts_of("reviews.csv", "--dev", share)


def test_evaluate_measures_on_all_rows_or_on_what_was_held_out(calls):
    words = ["evaluate", "reviews.csv", "--model", "m"]
    read_one(options_of(*words))
    read_one(options_of(*words, "--dev", "0.1", "--seed", "2"))
    read_one(options_of("evaluate", "opinions", "--model", "m"))
    assert [(call[1], call[3]) for call in calls] == [
        ("every", {}),
        ("dev", {"dev": 0.1, "seed": 2}),
        ("every", {}),
    ]
    with pytest.raises(ValueError, match="must be the share of a file"):
        read_one(options_of(*words, "--dev", "dev.csv"))


@pytest.mark.parametrize(
    ("columns", "task"),
    [
        ({"text": [], "label": ["bad", "good"]}, "classification"),
        ({"text": [], "label": [1, 5, 3]}, "classification"),
        ({"text": [], "label": [True, False]}, "classification"),
        ({"text": [], "label": [0.5, 3.0]}, "regression"),
        ({"text": [], "label": [["a"], []]}, "several-labels"),
        ({"tokens": [], "tags": []}, "tags"),
        ({"text": [], "choices": [], "label": [0]}, "choices"),
        ({"question": [], "context": [], "answers": []}, "questions"),
    ],
)
def test_the_columns_tell_the_task(columns, task):
    assert guess_task(columns) == task


def test_a_task_that_cannot_be_told_is_asked_for():
    with pytest.raises(ValueError, match="`--task` must say .* 500 different"):
        guess_task({"text": [], "label": list(range(500))})
    with pytest.raises(ValueError, match="`--label-column` and its like"):
        guess_task({"text": []})
    with pytest.raises(ValueError, match="--tokens-column, --tags-column can"):
        check_task({"text": [], "label": []}, "tags")


def test_labels_become_names_in_the_order_of_their_numbers():
    named = with_labels_of({"label": [10, 9, 10]}, "classification")
    assert named == {"label": ["10", "9", "10"]}
    assert sorted_names({"10", "9"}) == ["9", "10"]
    several = with_labels_of({"label": ["b; a", "a", ""]}, "several-labels")
    assert several == {"label": [["b", "a"], ["a"], []]}
    for mark, none in itertools.product("|;,", ["|", "", " ; ", ","]):
        labels = [f"a{mark}b{mark}", none, "b"]
        several = with_labels_of({"label": labels}, "several-labels")
        assert several == {"label": [["a", "b"], [], ["b"]]}
    numbers = with_labels_of({"label": [1, "2.5"]}, "regression")
    assert numbers == {"label": [1.0, 2.5]}
    with pytest.raises(ValueError, match=r"`label\[1\]` must be a number"):
        with_labels_of({"label": [1, "many"]}, "regression")


def test_a_model_has_the_names_of_the_labels_and_of_several():
    data = {"text": ["a"] * 11, "label": [str(n) for n in range(1, 12)]}
    _, head = head_for(data, "classification")
    assert head == {"id2label": {n: str(n + 1) for n in range(11)}}
    data = {"text": ["a", "b"], "label": [["x"], ["y", "z"]]}
    _, head = head_for(data, "several-labels")
    assert head == {
        "id2label": {0: "x", 1: "y", 2: "z"},
        "problem_type": "multi_label_classification",
    }


def test_labels_are_called_as_a_model_calls_them():
    model = argparse.Namespace(
        config=argparse.Namespace(id2label={0: "1", 1: "2"}),
        problem_type="single_label_classification",
    )
    assert with_labels_for({"label": [2, 1]}, model) == {"label": ["2", "1"]}
    assert with_labels_for({"label": [0, 1]}, model) == {"label": [0, 1]}
    model.problem_type = "regression"
    assert with_labels_for({"label": [2]}, model) == {"label": [2.0]}


def write_reviews(path, rows=24):
    """Writes reviews with 1 to 5 stars."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "stars"])
        for n in range(rows):
            writer.writerow([f"It was, well, {n} good.", n % 5 + 1])


def load_reviews(name, split=None, data_dir=None, **options):
    """Stands in for `load_dataset` of a file."""
    with open(name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {
        "text": [row[options["text_column"]] for row in rows],
        "label": [int(row[options["label_column"]]) for row in rows],
    }
    cut = {"train": slice(5, None), "dev": slice(5)}.get(split, slice(None))
    return {name: column[cut] for name, column in columns.items()}


@pytest.mark.slow
def test_reviews_are_learned_measured_and_predicted(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(own_data, "load_dataset", load_reviews)
    path, out = tmp_path / "reviews.csv", tmp_path / "run"
    write_reviews(path)
    columns = ["--text-column", "body", "--label-column", "stars"]
    words = ["finetune", str(path), *columns, "--dev", "0.2", "--epochs", "1"]
    assert main([*words, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "task: classification, 19 rows, 5 labels: " in printed
    assert "dev: 5 rows" in printed
    model = bb.BertForSequenceClassification.from_pretrained(out)
    assert model.config.id2label == dict(enumerate("12345"))
    assert main(["evaluate", str(path), *columns, "--model", str(out)]) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert 0 <= metrics["accuracy"] <= 1
    data = load_reviews(path, text_column="body", label_column="stars")
    data["label"] = [str(label) for label in data["label"]]
    assert metrics == pytest.approx(bb.evaluate(model, data))
    words = ["predict", str(path), "--text-column", "body"]
    monkeypatch.setattr(
        own_data,
        "load_dataset",
        lambda name, **options: {"text": data["text"]},
    )
    assert main([*words, "--model", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == 24
    assert {row["label"] for row in found} <= set("12345")
    for mine, theirs in zip(
        found, model.predict_texts(data["text"]), strict=True
    ):
        assert mine["label"] == theirs["label"]
        assert mine["score"] == pytest.approx(theirs["score"], abs=1e-5)


def test_one_label_alone_is_refused_before_a_model_is_loaded():
    with pytest.raises(ValueError, match="two labels or more.*'x' in all of 2"):
        check_task({"text": ["a", "b"], "label": ["x", "x"]}, "classification")


def write_departments(path):
    rows = ["a b,HR", "c,IT", ",IT", "d,", "e f,IT", "g,HR", "h,PR"]
    path.write_text("\n".join(["message,team", *rows]))
    return path


def test_bad_rows_are_left_out_where_asked_and_told_once(tmp_path, capsys):
    path = write_departments(tmp_path / "a.csv")
    words = [path, "--text-column", "message", "--label-column", "team"]
    with pytest.raises(ValueError, match="2 of 7 that do not") as caught:
        parts_of(*words)
    assert "`--skip-bad-rows` leaves them out" in str(caught.value)
    words += ["--skip-bad-rows", "--dev", "0.4"]
    train, dev = parts_of(*words)
    assert (len(train["text"]), len(dev["text"])) == (3, 2)
    told = capsys.readouterr().err
    assert told.count("2 of 7 rows were left out") == 1
    assert "1: `message` must hold a text (line 4)" in told
    data = read_one(
        options_of(
            "evaluate", *map(str, words[:5]), "--model", "m", "--skip-bad-rows"
        )
    )
    assert len(data["text"]) == 5


@pytest.mark.parametrize("rows", [["b|u", "b", "", "u"], ["b", "u", ""]])
def test_a_missing_label_of_several_names_the_way_to_write_it(rows, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["text,label", *(f"a,{x}" for x in rows)]))
    with pytest.raises(ValueError, match="must not be missing") as caught:
        parts_of(path, "--task", "several-labels")
    hint = "; `|` in a cell says that none of several labels holds; "
    assert f"{hint}`--skip-bad-rows` leaves it out." in str(caught.value)
    with pytest.raises(ValueError, match="must not be missing") as caught:
        parts_of(path)
    assert (hint in str(caught.value)) == ("b|u" in rows)


def test_rows_with_labels_that_a_model_does_not_know_are_left_out(capsys):
    data = {"text": ["a", "b", "c"], "label": ["x", "z", "y"]}
    assert own_data.with_known_labels(data, ["x", "y"]) == {
        "text": ["a", "c"], "label": ["x", "y"],
    }  # fmt: skip
    assert "1 of 3 rows were left out: labels" in capsys.readouterr().err
    tags = {"tokens": [["a"], ["b"]], "tags": [["I-PER"], ["B-LOC"]]}
    known = ["B-PER", "I-PER", "O"]
    assert own_data.with_known_labels(tags, known)["tokens"] == [["a"]]
    several = {"text": ["a", "b"], "label": [["x"], ["x", "q"]]}
    assert own_data.with_known_labels(several, ["x"])["text"] == ["a"]
    assert own_data.with_known_labels(data, []) == data


def test_a_listing_keeps_its_lines_on_standard_error(tmp_path, capsys):
    path = write_departments(tmp_path / "a.csv")
    words = ["--text-column", "message", "--label-column", "team"]
    assert main(["finetune", str(path), *words, "--out", str(tmp_path)]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert shown[1:] == [
        f"  {path}, line 4: `message` must hold a text. Received: ''.",
        f"  {path}, line 5: `team` must not be missing. Received: ''.",
        "`--skip-bad-rows` leaves them out.",
    ]


def test_labels_are_counted_and_odd_ones_told(capsys):
    labels = ["BILLING"] * 9 + ["billing"] * 7 + ["N/A"] * 2
    train = {"text": ["a"] * 18, "label": labels}
    own_data.say_task(train, {"text": ["a"], "label": ["x"]}, "classification")
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == (
        "task: classification, 18 rows, 3 labels: BILLING (9), billing (7), "
        "N/A (2)"
    )
    assert printed.err.splitlines() == [
        "bertbook: labels that may be one: BILLING (9 rows), billing (7 rows)",
        "bertbook: labels that may stand for none: N/A (2 rows)",
        "bertbook: labels with fewer than 5 rows, too few to learn: N/A (2)",
        "bertbook: labels of dev that train lacks: x",
    ]
    tags = {"tokens": [["a", "b"]] * 3, "tags": [["B-PER", "O"]] * 3}
    own_data.say_task(tags, None, "tags")
    assert "3 rows, 1 labels: PER (3)" in capsys.readouterr().out


def test_evaluate_reads_the_columns_of_the_run(tmp_path):
    path = write_departments(tmp_path / "a.csv")
    columns = {"text": "message", "label": "team", "text_pair": "reply"}
    config = {"bertbook_finetuning": {"columns": columns}}
    words = ["evaluate", str(path), "--model", "m", "--skip-bad-rows"]
    data = read_one(options_of(*words), config)
    assert data["label"] == ["HR", "IT", "IT", "HR", "PR"]
    named = options_of(
        *words, "--label-column", "message", "--text-column", "team"
    )
    assert read_one(named, config)["text"] == data["label"]
    with pytest.raises(ValueError, match="must have the columns of a task"):
        read_one(options_of(*words))


@pytest.fixture
def run_on(tmp_path):
    """Returns a table, the rows held out of it, and what a run remembers."""

    def make(**options):
        path = tmp_path / "a.csv"
        rows = [f"text {n},{'HR' if n % 2 else 'IT'}" for n in range(40)]
        rows.append(",HR")
        path.write_text("\n".join(["text,label", *rows]))
        dev = bb.load_dataset(path, "dev", dev=0.2, **options)
        return path, dev, {"bertbook_finetuning": {"held_out": dev.held_out}}

    return make


@pytest.mark.filterwarnings("ignore:.*1 of 41 rows was left out")
@pytest.mark.parametrize(
    "options", [{"mended": []}, {"bad_rows": "skip", "seed": 3}]
)
def test_evaluate_draws_the_rows_that_a_run_held_out(options, run_on):
    path, dev, config = run_on(**options)
    words = ["evaluate", str(path), "--model", "m", "--dev", "0.2"]
    assert read_one(options_of(*words), config) == dev
    with_memory = bb.BertConfig.named("tiny").replace(extra=config)
    assert with_memory.extra == config  # it is checked


def test_evaluate_refuses_to_draw_other_rows(run_on, capsys):
    path, _, config = run_on(mended=[], seed=3)
    words = ["evaluate", str(path), "--model", "m"]
    for more in (["--dev", "0.3"], ["--dev", "0.2", "--seed", "0"]):
        with pytest.raises(ValueError, match="a.csv, `--dev 0.2 --seed 3`"):
            read_one(options_of(*words, *more), config)
    assert len(read_one(options_of(*words, "--mend"), config)["text"]) == 40
    assert "trained on rows of a.csv; `--dev 0.2`" in capsys.readouterr().err
    other = path.rename(path.with_name("b.csv"))
    words = ["evaluate", str(other), "--model", "m", "--mend", "--dev", "0.3"]
    assert len(read_one(options_of(*words), config)["text"]) == 12


def test_a_column_of_the_user_may_be_called_as_an_argument(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,team\na,x\n,y\nb,x\n")
    words = [path, "--text-column", "name", "--label-column", "team"]
    with pytest.raises(ValueError, match="line 3: `name` must hold a text"):
        parts_of(*words)
