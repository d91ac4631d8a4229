"""Bad rows: all are named at once, each with its line, or left out by kind."""

import json
import warnings

import pytest

import bertbook as bb
from bertbook.checks import RowErrors
from bertbook.datasets.load import load_dataset

CONTEXT = "Ada wrote it in 1843."


def squad(*answers):
    """Questions about one context, the i-th with the i-th answer."""
    questions = [
        {
            "id": f"q{number}",
            "question": "Who?",
            "answers": [{"text": text, "answer_start": start}],
        }
        for number, (text, start) in enumerate(answers)
    ]
    passage = {"context": CONTEXT, "qas": questions}
    return json.dumps({"data": [{"title": "t", "paragraphs": [passage]}]})


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


# What a file holds, the places of its bad rows, and how many are good.
FILES = {
    "empty texts, no label, other widths": (
        "a.csv",
        "text,label\na,x\n,x\nb,\nc\nd,y,z\ne,y\n",
        ["line 3", "line 4", "line 5", "line 6"],
        2,
    ),
    "tabs": ("a.tsv", "text\tlabel\na\tx\n \tx\nb\ty\n", ["line 3"], 2),
    "a quote that is no quote": (
        "a.csv",
        'text,label\n"a"b,x\nc,y\n"d" ,x\n',
        ["line 2", "line 4"],
        1,
    ),
    "a word among numbers": (
        "a.csv",
        "text,label\na,1\nb,2\nc,none\nd,3\n",
        ["line 4"],
        3,
    ),
    "a number among scores": (
        "a.jsonl",
        lines(*({"text": "a", "label": x} for x in (0.5, 1.5, "2,5", None, 3))),
        ["line 3", "line 4"],
        3,
    ),
    "a weight": (
        "a.csv",
        "text,label,weight\na,x,1\nb,y,heavy\nc,y,-1\nd,x,2\n",
        ["line 3", "line 4"],
        2,
    ),
    "lines that are no JSON": (
        "a.jsonl",
        '{"text": "a", "label": "x"}\n{"text": \n[1]\n'
        '{"text": "b"}\n{"text": "c", "label": "y"}\n',
        ["line 2", "line 3", "line 4"],
        2,
    ),
    "rows that are no objects": (
        "a.json",
        '[{"text": "a", "label": "x"}, 7, {"text": 8, "label": "y"}]',
        ["row 1", "row 2"],
        1,
    ),
    "several labels": (
        "a.csv",
        "text,loud,rude\na,0,1\nb,2,1\nc,1,maybe\n",
        ["line 3", "line 4"],
        1,
    ),
    "choices": (
        "a.csv",
        "text,choice0,choice1,label\na,b,c,0\na,b,c,2\na,,c,1\na,b,c,1\n",
        ["line 3", "line 4"],
        2,
    ),
    "tags of CoNLL": (
        "a.conll",
        "a O\nb B-X\n\nc O\nd\n\ne X-1\nf\n\ng O\n",
        ["line 5", "line 7"],
        2,
    ),
    "tags in lists": (
        "a.jsonl",
        lines(
            {"tokens": ["a", "b"], "tags": ["O", "O"]},
            {"tokens": ["a", "b"], "tags": ["O"]},
            {"tokens": [], "tags": []},
            {"tokens": ["a"], "tags": ["X"]},
        ),
        ["line 2", "line 3", "line 4"],
        1,
    ),
    "entities by characters": (
        "a.jsonl",
        lines(
            {"text": "Ada", "entities": [[0, 3, "PER"]]},
            {"text": "Ada", "entities": [[0, 9, "PER"]]},
            {"text": "Ada", "entities": [["x"]]},
        ),
        ["line 2", "line 3"],
        1,
    ),
    "answers that are not in the context": (
        "a.json",
        squad(("Ada", 0), ("Ada", 5), ("Eve", 0)),
        ["question 'q1'", "question 'q2'"],
        1,
    ),
    "answers in a table": (
        "a.jsonl",
        lines(
            *(
                {
                    "id": key,
                    "question": "Who?",
                    "context": CONTEXT,
                    "answers": [{"text": "Ada", "answer_start": start}],
                }
                for key, start in (("a", 0), ("b", 1), ("a", 0))
            )
        ),
        ["line 2", "line 3"],
        1,
    ),
}


def options_of(name):
    columns = ["loud", "rude"] if name == "several labels" else None
    return {} if columns is None else {"label_column": columns}


def length(data):
    return len(next(iter(data.values())))


@pytest.mark.parametrize("name", FILES)
def test_all_bad_rows_are_named_with_their_lines(name, tmp_path):
    file, content, places, _ = FILES[name]
    path = tmp_path / file
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match="must") as caught:
        load_dataset(path, **options_of(name))
    message = str(caught.value)
    for place in places:
        assert f"{path}, {place}: " in message
    assert message.count(f"{path}, ") == len(places)
    assert '`bad_rows="skip"` leaves' in message


@pytest.mark.parametrize("name", FILES)
def test_bad_rows_are_left_out_and_counted(name, tmp_path):
    file, content, places, good = FILES[name]
    path = tmp_path / file
    path.write_text(content, encoding="utf-8")
    total = good + len(places)
    with pytest.warns(
        UserWarning, match=rf"{len(places)} of {total} rows w\w+ left out"
    ) as caught:
        data = load_dataset(path, bad_rows="skip", **options_of(name))
    assert length(data) == good
    message = str(caught[0].message)
    assert all(place in message for place in places)
    assert set(data.places).isdisjoint(places)


def test_kinds_are_counted_and_the_columns_have_their_own_names(tmp_path):
    path = tmp_path / "a.csv"
    rows = ["a,x", ",x", " ,y", "b,", "c,y", ",x", ",x", ",x", ",x"]
    path.write_text("\n".join(["message,team", *rows]))
    with pytest.warns(UserWarning, match="left out") as caught:
        load_dataset(
            path,
            text_column="message",
            label_column="team",
            bad_rows="skip",
        )
    assert caught[0].filename == __file__
    assert str(caught[0].message) == (
        f"{path}: 7 of 9 rows were left out. 6: `message` must hold a text "
        "(line 3, line 4, line 7, line 8, line 9, ...); 1: `team` must not be "
        "missing (line 5)."
    )


@pytest.mark.parametrize(
    ("name", "content", "mark"),
    [
        ("a.csv", "text,kind\na,b|u\nb,b\nc,\nd,u\n", "|"),
        ("a.csv", 'text,kind\na,"[""b""]"\nb,[]\nc,\n', "[]"),
        ("a.jsonl", lines(*({"text": "a", "kind": x} for x in ([], None))),
         "[]"),
    ],
)  # fmt: skip
def test_where_labels_are_several_a_gap_has_another_cure(
    name, content, mark, tmp_path
):
    path = tmp_path / name
    path.write_text(content)
    hint = f"`{mark}` in a cell says that none of several labels holds"
    with pytest.raises(ValueError, match="must not be missing") as caught:
        load_dataset(path, label_column="kind")
    assert f'; {hint}; `bad_rows="skip"` leaves it' in str(caught.value)
    with pytest.warns(UserWarning, match="1 of . rows was left out") as told:
        load_dataset(path, label_column="kind", bad_rows="skip")
    assert str(told[0].message).endswith(f"). {hint}.")
    mended = []
    load_dataset(path, label_column="kind", mended=mended)
    assert ("`kind`", hint) in mended


def test_ten_are_shown_and_the_others_counted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["text,label", *[",x"] * 13, "a,y", "b,x"]))
    with pytest.raises(ValueError, match="13 of 15 that do not") as caught:
        load_dataset(path)
    shown = str(caught.value).splitlines()
    assert len(shown) == 1 + 10 + 1 + 1
    assert (
        shown[1] == f"  {path}, line 2: `text` must hold a text. Received: ''."
    )
    assert shown[11] == "  and 3 more."


def test_half_of_the_labels_decide_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,1\nb,x\n")
    with pytest.raises(ValueError, match="all integers, all scores"):
        load_dataset(path, bad_rows="skip")


def test_an_open_quote_is_never_left_out(tmp_path):
    """It has swallowed rows that may be good."""
    path = tmp_path / "a.csv"
    path.write_text('text,label\na,x\n"b,x\nc,y\nd,y\n')
    with pytest.raises(ValueError, match=r"line 5: .*begins in line 3"):
        load_dataset(path, bad_rows="skip")


def test_a_file_without_a_good_row_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n,x\n,y\n")
    with pytest.raises(ValueError, match="2 of 2 that do not"):
        load_dataset(path, bad_rows="skip")


def test_a_good_file_has_no_warning(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,x\nb,y\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = load_dataset(path, bad_rows="skip")
    assert data == {"text": ["a", "b"], "label": ["x", "y"]}


def test_a_sentence_with_a_bad_word_is_left_out_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("sentence_id,word,tag\n1,a,O\n1,b,O\n2,c,O\n2,,O\n3,d,O\n")
    with pytest.warns(UserWarning, match=r"left out.*line 5"):
        data = load_dataset(path, bad_rows="skip")
    assert data["tokens"] == [["a", "b"], ["d"]]


def test_parts_know_their_lines(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"text {n},{'xy'[n % 2]}" for n in range(20)]
    path.write_text("\n".join(["text,label", *rows]))
    train, dev = bb.train_dev_split(load_dataset(path), dev=0.2)
    for part in (train, dev):
        told = dict(zip(part["text"], part.places, strict=True))
        for text, place in told.items():
            assert place == f"line {int(text.split()[1]) + 2}"


@pytest.mark.parametrize("action", [True, None, "SKIP", "", 1, ["skip"]])
def test_what_is_to_be_done_is_one_of_two(action, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,x\nb,y\n")
    with pytest.raises(
        ValueError, match='`bad_rows` must be "error" or "skip"'
    ):
        load_dataset(path, bad_rows=action)


def test_mending_and_leaving_out_exclude_each_other(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,x\nb,y\n")
    with pytest.raises(ValueError, match="`bad_rows` must be left out with"):
        load_dataset(path, bad_rows="skip", mended=[])
    with pytest.raises(ValueError, match="`bad_rows` is of own files alone"):
        load_dataset("opinions", bad_rows="skip")


def test_rows_of_a_table_in_memory_are_named_together():
    from bertbook.tasks.base import check_columns

    data = {"sentence": ["a"] * 4, "labels": ["x", None, "y", float("nan")]}
    with pytest.raises(RowErrors) as caught:
        check_columns(data, ["text"], ["label"])
    assert [row for row, _ in caught.value.faults] == [1, 3]
    assert "`[]`" not in str(caught.value)
    data["labels"][0] = ["x", "y"]
    with pytest.raises(RowErrors, match=r"missing; `\[\]` in a cell says that"):
        check_columns(data, ["text"], ["label"])
