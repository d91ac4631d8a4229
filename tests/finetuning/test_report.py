"""Reports: right numbers, every error named, and a page that is safe."""

import json
import re

import numpy as np
import pytest

import bertbook as bb
from bertbook.finetuning.error_analysis import MOST_ERRORS, find
from bertbook.finetuning.report import Findings, Report, Table
from bertbook.tasks.base import Settings
from bertbook.tasks.labels import REGRESSION, SEVERAL_LABELS
from bertbook.tasks.metrics import best_f1_threshold, class_scores
from bertbook.tasks.text_tasks import Choices, Texts
from bertbook.tasks.word_tasks import Questions, Tags
from tests.helpers.disks import largest_file
from tests.helpers.set_files import texts_in
from tests.helpers.toys import make, stand_in


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# Logits of the probabilities 0.9, 0.2, 0.6 and 0.3 of "y".
P = np.array([0.9, 0.2, 0.6, 0.3])
LOGITS = [np.array([0.0, z]) for z in np.log(P / (1 - P))]
DATA = {"text": ["a", "b", "<b>c", "d"], "label": ["y", "y", "x", "x"]}


def rows_of(findings, name):
    return findings.tables[name].rows


@pytest.fixture(scope="module")
def binary():
    task = Texts(stand_in(names=("x", "y")), DATA, Settings())
    return find(task, LOGITS)


def test_the_labels_and_the_confusion_matrix_of_one_label(binary):
    assert rows_of(binary, "confusion") == [["x", 1, 1], ["y", 1, 1]]
    assert rows_of(binary, "labels") == [
        ["x", 0.5, 0.5, 0.5, 2],
        ["y", 0.5, 0.5, 0.5, 2],
    ]
    assert binary.facts["rows"] == 4
    assert binary.facts["errors"] == 2


def test_the_surest_errors_come_first(binary):
    errors = rows_of(binary, "errors")
    assert [row[:4] for row in errors] == [
        [1, "b", "y", "x"],
        [2, "<b>c", "x", "y"],
    ]
    assert [row[4] for row in errors] == pytest.approx([0.8, 0.6])


def test_calibration_by_hand(binary):
    """Confidences 0.9, 0.8, 0.6 and 0.7: right, wrong, wrong, right."""
    rows = rows_of(binary, "calibration")
    bins = {round(row[3], 6): row[2:5:2] for row in rows}
    assert bins == {0.6: [1, 0.0], 0.7: [1, 1.0], 0.8: [1, 0.0], 0.9: [1, 1.0]}
    error = (0.6 + 0.3 + 0.8 + 0.1) / 4
    assert binary.facts["expected_calibration_error"] == pytest.approx(error)


def test_every_confidence_falls_into_one_bin(rng):
    labels = rng.integers(0, 2, 50)
    data = {"text": ["a"] * 50, "label": labels.tolist()}
    task = Texts(stand_in(2), data, Settings())
    logits = rng.normal(size=(50, 2)) * 100  # confidences of 1, too
    rows = rows_of(find(task, list(logits)), "calibration")
    assert sum(row[2] for row in rows) == 50
    assert all(row[0] <= row[3] <= row[1] for row in rows)


def test_the_best_threshold_of_two_labels(binary):
    rows = rows_of(binary, "threshold")
    assert rows[0] == [0.5, 0.5, 0.5, 0.5, 0.5]
    # Above 0.1 all are "y": precision one half, recall 1.
    scores = {0.75: 2 / 3, 0.45: 0.5, 0.25: 0.4, 0.1: 2 / 3}
    assert max(scores.values()) == pytest.approx(rows[1][4])
    assert rows[1][0] == pytest.approx(0.75)  # nearer to one half than 0.1
    assert binary.facts["best_threshold"] == rows[1][0]


def f1_above(threshold, labels, scores):
    table = np.zeros((2, 2), int)
    for label, score in zip(labels, scores, strict=True):
        table[label, int(score > threshold)] += 1
    return class_scores(table)[1]["f1"]


def test_no_threshold_is_better_than_the_best(rng):
    for count in (1, 2, 7, 40):
        labels = rng.integers(0, 2, count)
        scores = rng.integers(1, 12, count) / 13  # some are equal
        threshold, best = best_f1_threshold(labels, scores)
        assert f1_above(threshold, labels, scores) == pytest.approx(best)
        every = [f1_above(t, labels, scores) for t in np.linspace(0, 1, 200)]
        assert max(every) == pytest.approx(best)
    assert best_f1_threshold(np.zeros(3, int), np.ones(3) / 2) == (0.5, 0.0)


def test_more_labels_name_their_confusions():
    names = ("x", "y", "z")
    data = {"text": ["a"] * 4, "label": ["x", "x", "x", "z"]}
    task = Texts(stand_in(names=names), data, Settings())
    logits = list(np.eye(3)[[1, 1, 2, 2]])
    found = find(task, logits)
    assert rows_of(found, "confusions") == [["x", "y", 2], ["x", "z", 1]]
    assert "threshold" not in found.tables
    assert [row[4] for row in rows_of(found, "labels")] == [3, 0, 1]
    names = tuple(f"n{i}" for i in range(201))
    data = {"text": ["a"], "label": ["n7"]}
    task = Texts(stand_in(names=names), data, Settings())
    found = find(task, [np.eye(201)[9]])
    assert "confusion" not in found.tables  # of 40,401 numbers
    assert rows_of(found, "confusions") == [["n7", "n9", 1]]


def test_several_labels_have_a_threshold_each():
    data = {"text": ["a", "b", "c"], "label": [["x"], ["x", "y"], []]}
    model = stand_in(names=("x", "y"), problem=SEVERAL_LABELS)
    p = np.array([[0.4, 0.1], [0.3, 0.9], [0.2, 0.6]])
    task = Texts(model, data, Settings())
    found = find(task, list(np.log(p / (1 - p))))
    assert found.thresholds == pytest.approx([0.25, 0.75])
    labels = rows_of(found, "labels")
    assert labels[0][:5] == ["x", 0.0, 0.0, 0.0, 2]
    assert labels[0][6] == 1.0
    assert labels[1][:5] == ["y", 0.5, 1.0, pytest.approx(2 / 3), 1]
    errors = rows_of(found, "errors")
    assert [row[0] for row in errors] == [1, 0, 2]
    assert errors[0][2:5] == [["x", "y"], ["y"], "x"]
    assert errors[0][5] == pytest.approx(0.3)


def test_residuals_of_a_number():
    data = {"text": ["a", "b", "c", "d"], "label": [0, 1, 2, 4]}
    task = Texts(stand_in(1, problem=REGRESSION), data, Settings())
    guesses = [0.5, 1.0, 1.0, 7.0]
    found = find(task, [np.array([value]) for value in guesses])
    errors = rows_of(found, "errors")
    assert errors[0] == [3, "d", 4.0, 7.0, 3.0]
    assert [row[0] for row in errors] == [3, 2, 0, 1]
    assert found.facts["mean_residual"] == 0.625
    rows = rows_of(found, "residuals")
    assert sum(row[2] for row in rows) == 4
    assert [row[4] for row in rows] == [0.5, 0.0, 1.0, 3.0]
    data = {"text": ["a", "b"], "label": [2, 2]}  # one value alone
    task = Texts(stand_in(1, problem=REGRESSION), data, Settings())
    rows = rows_of(find(task, [np.array([1.0]), np.array([2.0])]), "residuals")
    assert rows == [[2.0, 2.0, 2, -0.5, 0.5]]


def test_errors_of_choices():
    data = {"text": ["a", "b"], "choices": [["c", "d"]] * 2, "label": [0, 1]}
    task = Choices(stand_in(), data, Settings())
    found = find(task, [np.array([0.0, np.log(3)]), np.array([0.0, 1.0])])
    (error,) = rows_of(found, "errors")
    assert error == [0, "a", "c", "d", pytest.approx(0.75)]


def test_questions_with_and_without_an_answer():
    answer = [{"text": "b", "answer_start": 0}]
    data = {
        "question": ["a", "e", "g"],
        "context": ["b c", "b c", "b c"],
        "answers": [answer, answer, []],
    }
    task = Questions(stand_in(), data, Settings())
    outputs = []
    for place in (3, 4, 4):  # "b", then "c"
        logits = np.zeros(6)
        logits[place] = 9
        outputs.append({"start_logits": logits, "end_logits": logits})
    found = find(task, outputs)
    assert rows_of(found, "questions") == [
        ["all", 3, pytest.approx(1 / 3), pytest.approx(1 / 3)],
        ["with an answer", 2, 0.5, 0.5],
        ["without an answer", 1, 0.0, 0.0],
    ]
    errors = rows_of(found, "errors")
    assert [row[1:4] for row in errors] == [
        ["e", ["b"], "c"],
        ["g", "none", "c"],
    ]


def test_tags_by_type_and_the_worst_sentences():
    data = {
        "tokens": [["a", "b"], ["c", "d"], ["e"]],
        "tags": [["B-X", "O"], ["B-X", "I-X"], ["O"]],
    }
    task = Tags(stand_in(names=("B-X", "I-X", "O")), data, Settings())
    outputs = [np.eye(3)[[2, 0, 2, 2]], np.eye(3)[[2, 2, 2, 2]]]
    found = find(task, [*outputs, np.eye(3)[[2, 2, 2]]])
    assert rows_of(found, "types") == [["X", 1.0, 0.5, pytest.approx(2 / 3), 2]]
    assert sorted(rows_of(found, "confusions")) == [
        ["B-X", "O", 1],
        ["I-X", "O", 1],
    ]
    assert rows_of(found, "errors") == [
        [1, 2, "c d", "c: B-X as O; d: I-X as O"]
    ]


def test_a_table_of_errors_ends():
    count = MOST_ERRORS + 5
    data = {"text": ["a"] * count, "label": [0] * count}
    found = find(
        Texts(stand_in(2), data, Settings()), [np.array([0.0, 1])] * count
    )
    assert len(rows_of(found, "errors")) == MOST_ERRORS
    assert found.facts["errors"] == count


# The report itself.


def test_evaluate_returns_the_same_metrics_with_a_report(tmp_path):
    model = make("BertForSequenceClassification", id2label={0: "x", 1: "y"})
    plain = bb.evaluate(model, DATA)
    report = bb.evaluate(model, DATA, report=True)
    assert report == plain
    assert json.loads(json.dumps(report)) == plain
    printed = str(report)
    for word in (*plain, "Confusion matrix", "support", "expected_calibration"):
        assert word in printed
    report.save(tmp_path / "new")
    stored = json.loads((tmp_path / "new" / "report.json").read_text("utf-8"))
    assert stored["metrics"] == plain
    assert stored["tables"]["labels"]["rows"] == report.tables["labels"].rows
    assert (tmp_path / "new" / "report.txt").read_text() == printed + "\n"
    with pytest.raises(ValueError, match=r"`report` must .*Received: 1"):
        bb.evaluate(model, DATA, report=1)


def test_errors_name_their_line_in_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,y\nb,y\nc,x\nd,x\n")
    model = make("BertForSequenceClassification", id2label={0: "x", 1: "y"})
    data = bb.load_dataset(path, "dev", dev=0.5)
    table = bb.evaluate(model, data, report=True).tables["errors"]
    assert table.columns[:3] == ["row", "place", "text"]
    assert table.rows
    for row, place, text, *_ in table.rows:
        assert data["text"][row] == text
        assert place == f"line {'abcd'.index(text) + 2}"
    data |= {name: [*values, *values] for name, values in data.items()}
    report = bb.evaluate(model, data, report=True)  # no longer the file's
    assert report.tables["errors"].columns[:2] == ["row", "text"]


def test_thresholds_of_a_report_can_be_kept_in_the_model(tmp_path):
    model = make(
        "BertForSequenceClassification",
        id2label={0: "x", 1: "y"},
        problem_type=SEVERAL_LABELS,
    )
    data = {"text": ["a", "b", "c d"], "label": [["x"], ["x", "y"], ["y"]]}
    report = bb.evaluate(model, data, report=True)
    model.label_thresholds = report.thresholds
    model.save_pretrained(tmp_path)
    again = bb.BertForSequenceClassification.from_pretrained(tmp_path)
    assert again.label_thresholds == report.thresholds
    for row in again.predict_texts(data["text"]):
        expected = [
            name
            for name, threshold in zip("xy", report.thresholds, strict=True)
            if row["scores"][name] > threshold
        ]
        assert row["labels"] == expected
    best = bb.evaluate(again, data, report=True)
    columns = best.tables["labels"].columns
    f1, at_best = columns.index("f1"), columns.index("f1_at_threshold")
    for row in best.tables["labels"].rows:
        assert row[f1] == pytest.approx(row[at_best])
    assert best["f1"] >= report["f1"]
    with pytest.raises(ValueError, match="`label_thresholds` must be None, or"):
        model.label_thresholds = [0.5]
    model.label_thresholds = None
    assert bb.evaluate(model, data) == report


HOSTILE = '</td><script>alert("x & y")</script>\x1b[2J\0\x85\tz\ud800'


def hostile():
    labels = Table("Labels", ["label", HOSTILE], [[HOSTILE, 0.5]], HOSTILE)
    errors = Table("Worst", ["row", "text"], [[0, HOSTILE * 9], [1, "b"]])
    return Report(
        {"accuracy": 0.5},
        Findings({"rows": 2}, {"labels": labels, "errors": errors}),
    )


def test_no_text_of_the_data_is_markup_or_a_command(tmp_path):
    hostile().save(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(&quot;x &amp; y&quot;)" in page
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f]", page)
    assert "&lt;/script&gt; [2J  \tz?" in page
    plain = (tmp_path / "report.txt").read_text("utf-8")
    assert "\x1b" not in plain
    assert "..." in plain


def test_the_files_of_a_report_are_of_one_evaluation(tmp_path, monkeypatch):
    def metric(value):
        return Report({"accuracy": value}, Findings({}, {}))

    metric(0.25).save(tmp_path / "old")
    before = texts_in(tmp_path / "old")
    assert sorted(before) == ["report.html", "report.json", "report.txt"]
    for folder in (tmp_path / "old", tmp_path / "x" / "new"):
        message = f"^{folder} could not be written, and is as it was: File "
        with largest_file(100), pytest.raises(OSError, match=message):
            metric(0.75).save(folder)
    assert texts_in(tmp_path) == {f"old/{n}": t for n, t in before.items()}
    metric(0.75).save(tmp_path / "old")
    for text in texts_in(tmp_path / "old").values():
        assert "0.75" in text


def test_numbers_stand_on_the_right_and_texts_on_the_left():
    table = Table("T", ["row", "list", "x"], [[0, ["a"], 0.5], [10, ["bc"], 1]])
    text = str(Report({}, Findings({}, {"t": table})))
    assert text.splitlines()[-3:] == [
        "row  list      x",
        "  0  a     0.500",
        " 10  bc        1",
    ]


def test_a_page_stands_for_itself(binary):
    pytest.importorskip("matplotlib")
    report = Report({"accuracy": 0.5}, binary)
    page = report.to_html()
    assert page.count("data:image/png;base64,") == 2
    assert set(re.findall(r'(?:src|href)="(\w+):', page)) == {"data"}
    assert re.findall(r'alt="(\w+)', page) == ["Confusion", "Calibration"]
    assert "&lt;b&gt;c" in page


def test_a_plot_shows_a_table(binary):
    pytest.importorskip("matplotlib")
    report = Report({"accuracy": 0.5}, binary)
    assert "Confusion matrix" in report.plot().alt
    assert report.plot("calibration").png().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="`name` must be a table with a pic"):
        report.plot("errors")
    with pytest.raises(ValueError, match="there is none"):
        hostile().plot()


def test_every_task_has_a_picture_that_can_be_drawn():
    pytest.importorskip("matplotlib")
    for task, outputs in tasks():
        report = Report({"accuracy": 0.5}, find(task, outputs))
        assert report.to_html().count("<img") >= 1
        assert report.plot().alt
        json.dumps(report.to_dict())


def tasks():
    """Yields a task of each kind, and outputs of two rows."""
    two = {"text": ["a", "b"]}
    data = two | {"label": [["x"], []]}
    model = stand_in(names=("x", "y"), problem=SEVERAL_LABELS)
    yield Texts(model, data, Settings()), [np.array([1.0, -1]), np.ones(2)]
    data = two | {"label": [0.5, 2]}
    model = stand_in(1, problem=REGRESSION)
    yield Texts(model, data, Settings()), [np.array([1.0]), np.array([3.0])]
    names = tuple(f"n{i}" for i in range(30))
    data = two | {"label": ["n1", "n2"]}
    yield Texts(stand_in(names=names), data, Settings()), list(np.eye(30)[:2])
    data = two | {"choices": [["b", "c"]] * 2, "label": [0, 1]}
    yield Choices(stand_in(), data, Settings()), [np.ones(2), np.eye(2)[0]]
    data = {"tokens": [["a", "b"]], "tags": [["B-X", "O"]]}
    model = stand_in(names=("B-X", "I-X", "O"))
    yield Tags(model, data, Settings()), [np.eye(3)[[0, 2, 0, 0]]]
    answers = [{"text": "b", "answer_start": 0}]
    data = {"question": ["a"], "context": ["b c"], "answers": [answers]}
    logits = np.array([0.0, 0, 0, 9, 0, 0])
    outputs = [{"start_logits": logits, "end_logits": logits}]
    yield Questions(stand_in(), data, Settings()), outputs
