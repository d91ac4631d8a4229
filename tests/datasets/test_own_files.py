"""Own files: what is read, by every form, and what is refused."""

import csv
import io
import json
import math
import random
import re
import sys
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bertbook as bb
from bertbook import files
from bertbook.datasets.catalog import SETS
from bertbook.datasets.file_formats import DELIMITERS
from bertbook.datasets.load import find_dataset, load_dataset
from tests.helpers.set_files import rows, squad, write, write_archive

random_tests = settings(max_examples=100, deadline=None, derandomize=True)

TEXTS = ["It rains, again.", 'She said "no".', "Two\nlines;\tthree", "NA"]
LABELS = ["good", "bad", "bad", "null"]
DATA = {"text": TEXTS, "label": LABELS}


def as_csv(columns, **options):
    """A table as Python's own writer, which quotes what must be, writes it."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, **options)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def as_rows(columns):
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def as_json_lines(columns):
    return "".join(json.dumps(row) + "\n" for row in as_rows(columns))


def load(tmp_path, content, name="a.csv", **options):
    return load_dataset(write(tmp_path / name, content), **options)


# Definition: one table in every form.

FORMS = {
    "a.csv": as_csv(DATA),
    "unix.csv": as_csv(DATA, lineterminator="\n"),
    "all quoted.csv": as_csv(DATA, quoting=csv.QUOTE_ALL),
    "semicolons.csv": as_csv(DATA, delimiter=";"),
    "bars.csv": as_csv(DATA, delimiter="|"),
    "tabs.csv": as_csv(DATA, delimiter="\t"),
    "bom.csv": "\ufeff" + as_csv(DATA),
    "excel.csv": "sep=;\r\n" + as_csv(DATA, delimiter=";"),
    "excel bom.csv": '\ufeff"sep=,"\r\n' + as_csv(DATA),
    "empty lines.csv": as_csv(DATA).replace("\r\nNA", "\r\n\r\nNA") + "\r\n",
    "no end.csv": as_csv(DATA).rstrip("\r\n"),
    "index.csv": as_csv({"": range(4), **DATA}),
    "capitals.CSV": as_csv({"Text": TEXTS, "LABEL": LABELS}),
    "others.csv": as_csv({"x": LABELS, "label": LABELS, "text": TEXTS}),
    "spaces.csv": as_csv(DATA).replace(",bad", ", bad ").replace("t,l", "t, l"),
    "a.tsv": as_csv(DATA, delimiter="\t"),
    "a.jsonl": as_json_lines(DATA),
    "a.ndjson": as_json_lines(DATA).replace("\n", "\n\n"),
    "a.json": json.dumps(as_rows(DATA)),
    "columns.json": json.dumps(DATA),
    "lines.json": as_json_lines(DATA),
    "indented.json": json.dumps(as_rows(DATA), indent=1),
    "a.csv.gz": as_csv(DATA),
    "a.csv.xz": as_csv(DATA),
    "a.jsonl.bz2": as_json_lines(DATA),
    "A.TSV.GZ": as_csv(DATA, delimiter="\t"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_table_gives_the_same_columns(name, tmp_path):
    path = write(tmp_path / name, FORMS[name])
    assert load_dataset(path) == DATA
    assert load_dataset(str(path)) == DATA
    assert list(load_dataset(path)) == ["text", "label"]


@pytest.mark.parametrize("name", ["a.csv.zip", "a.zip"])
def test_an_archive_of_one_file_is_read(name, tmp_path):
    members = {"d/": "", "d/a.csv": FORMS["a.csv"], "__MACOSX/._a.csv": "x"}
    assert load_dataset(write_archive(tmp_path / name, members)) == DATA


def test_tabs_separate_without_quotes_as_in_glue(tmp_path):
    """Where quotes stand alone in a field, they are characters."""
    texts = ['"a', 'b "c" d', '"e"', "f"]
    content = rows(("sentence", "label"), *((text, "1") for text in texts[:3]))
    content += rows((texts[3], "0"))
    assert load(tmp_path, content, "a.tsv")["text"] == texts
    alone = rows(("sentence", "label"), ('"e"', "1"), ("f", "0"))
    assert load(tmp_path, alone, "b.tsv")["text"] == ['"e"', "f"]
    quoted = rows(("sentence", "label"), ('"say ""e"" now"', "1"), ("f", "0"))
    assert load(tmp_path, quoted, "c.tsv")["text"] == ['say "e" now', "f"]


# Texts that a table may hold: no surrogates, nor carriage returns, which the
# reader of CSV takes for ends of lines in a field without quotes.
words = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\r"),
    min_size=1,
).filter(lambda text: text.strip() == text)


@random_tests
@given(
    st.lists(st.tuples(words, words, words), min_size=2, max_size=5),
    st.sampled_from(DELIMITERS),
)
def test_any_text_comes_back(tmp_path_factory, lines, delimiter):
    folder = tmp_path_factory.mktemp("own")
    texts, pairs, names = map(list, zip(*lines, strict=True))
    data = {"text": texts, "text_pair": pairs, "id": names}
    content = as_csv(data, delimiter=delimiter)
    assert load(folder, content) == data
    assert load(folder, as_csv(data, delimiter="\t"), "a.tsv") == data
    assert load(folder, as_json_lines(data), "a.jsonl") == data
    assert load(folder, json.dumps(data), "a.json") == data


def test_a_field_may_be_longer_than_the_csv_module_reads_by_itself(tmp_path):
    long = "word " * 100_000
    data = load(tmp_path, as_csv({"text": [long, "b"], "label": [0, 1]}))
    assert data["text"][0] == long.strip()
    assert csv.field_size_limit() == 131_072, "others keep their limit"


# Definition: tasks.

TAGGED = {
    "tokens": [["Ada", "left", "New", "York"], ["No"]],
    "tags": [["B-PER", "O", "B-LOC", "I-LOC"], ["O"]],
}
CONTEXT = " Ada left\u2028Tolva. "
ANSWERS = [[{"text": "Tolva", "answer_start": 10}], []]
ASKED = {
    "id": ["q1", "q2"],
    "question": [" Where from?", "Why?"],
    "context": [CONTEXT, CONTEXT],
    "answers": ANSWERS,
}
CHOICES = {
    "text": ["He sat", "She ran"],
    "choices": [["down.", "up."], ["off.", "on."]],
    "label": [0, 1],
}


def listed(columns, name):
    """Columns with the lists of one written as JSON."""
    return {**columns, name: [json.dumps(value) for value in columns[name]]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conll", "Ada B-PER\nleft O\nNew B-LOC\nYork I-LOC\n\nNo O\n"),
        ("a.txt", "Ada\tI-PER\nleft\tO\nNew\tI-LOC\nYork\tI-LOC\n\nNo\tO"),
        (
            "b.conll.gz",
            "-DOCSTART- -X- O O\n\nAda N x B-PER\nleft V x O\nNew N x I-LOC\n"
            "York N x I-LOC\n\nNo D x O\n",
        ),
        ("a.jsonl", as_json_lines(TAGGED)),
        ("a.json", json.dumps({**TAGGED, "pos": [[1, 2, 3, 4], [5]]})),
        ("a.csv", as_csv(listed(listed(TAGGED, "tokens"), "tags"))),
    ],
)
def test_tags_in_every_form_give_the_same_columns(name, content, tmp_path):
    assert load(tmp_path, content, name) == TAGGED


def test_tags_may_be_numbers(tmp_path):
    data = {"tokens": [["a", "b"]], "ner_tags": [[3, 0]]}
    expected = {"tokens": [["a", "b"]], "tags": [[3, 0]]}
    assert load(tmp_path, as_json_lines(data), "a.jsonl") == expected


PLAIN = {
    "question": ["Who?", "When?", "Which year?", "What?", "Why?", "How?"],
    "context": ["Ada [sic] wrote it in 1843, with 2.50 left."] * 6,
    "answer": ["Ada", "in 1843", 1843, "[sic]", "", '2.50'],
}  # fmt: skip
PLACES = [[("Ada", 0)], [("in 1843", 19)], [("1843", 22)], [("[sic]", 4)], [],
          [("2.50", 33)]]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", as_csv(PLAIN)),
        ("a.tsv", as_csv(PLAIN, delimiter="\t")),
        ("a.csv", as_csv(PLAIN).replace("answer", "Answer")),
        ("a.jsonl", as_json_lines(PLAIN)),
    ],
)
@pytest.mark.parametrize("mended", [None, []])
def test_an_answer_may_be_a_text_of_the_context(
    name, content, mended, tmp_path
):
    data = load(tmp_path, content, name, mended=mended)
    assert data["answers"] == [
        [{"text": text, "answer_start": start} for text, start in answers]
        for answers in PLACES
    ]
    assert not mended


def test_answers_are_read_and_not_the_answer_beside_them(tmp_path):
    table = {**ASKED, "answer": ["x", "y"]}
    for others in (table, dict(reversed(table.items()))):
        data = load(tmp_path, as_json_lines(others), "a.jsonl")
        assert data == ASKED
    data = load(tmp_path, "text,label,answer,answers\na,1,b,c\n")
    assert sorted(data) == ["label", "text"]


def test_an_answer_of_several_places_is_at_the_first_of_them(tmp_path):
    table = "question,context,answers\na,a b c b,b\nb,a b,b\nc,a a a,a\n"
    with pytest.warns(UserWarning, match="line 2") as told:
        data = load(tmp_path, table)
    assert [x["answer_start"] for (x,) in data["answers"]] == [2, 2, 0]
    assert [str(one.message) for one in told] == [
        f"{tmp_path / 'a.csv'}, line 2: the answer stands 2 times; the first "
        "is taken; so in 1 more row."
    ]


def of_columns(answers):
    return {
        name: [answer[name] for answer in answers]
        for name in ("text", "answer_start")
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", as_json_lines(ASKED)),
        ("b.jsonl",
         as_json_lines({**ASKED, "answers": list(map(of_columns, ANSWERS))})),
        ("a.csv", as_csv(listed(ASKED, "answers"))),
        ("a.json", json.dumps(squad((CONTEXT, [{"id": "q1",
         "question": ASKED["question"][0], "answers": ANSWERS[0]}, {"id": "q2",
         "question": "Why?", "answers": [], "is_impossible": True}])))),
    ],
)  # fmt: skip
def test_questions_in_every_form_give_the_same_columns(name, content, tmp_path):
    assert load(tmp_path, content, name) == ASKED


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", as_json_lines(CHOICES)),
        ("a.csv", as_csv(listed(CHOICES, "choices"))),
        ("b.csv", "text,choice1,choice0,label\nHe sat,up.,down.,0\n"
         "She ran,on.,off.,1\n"),
        ("c.csv", "Text,Choice_0,Choice_1,Label\nHe sat,down.,up.,0\n"
         "She ran,off.,on.,1\n"),
    ],
)  # fmt: skip
def test_choices_in_every_form_give_the_same_columns(name, content, tmp_path):
    assert load(tmp_path, content, name) == CHOICES


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("text", "text_pair"), {}),
        (("sentence1", "sentence2"), {}),
        (("premise", "hypothesis"), {}),
        (("Hypothesis", "Premise"), {}),
        (("question1", "question2"), {}),
        (("Question", "Sentence"), {}),
        (
            ("title", "body"),
            {"text_column": "title", "text_pair_column": "body"},
        ),
        (
            ("sentence", "question"),
            {"text_column": "sentence", "text_pair_column": "question"},
        ),
    ],
)
def test_two_texts_are_found_by_name_or_told(names, told, tmp_path):
    first, second = ("b", "a") if names[0] == "Hypothesis" else ("a", "b")
    content = as_csv(
        {names[0]: [first] * 2, "label": [0, 1], names[1]: [second] * 2}
    )
    expected = {"text": ["a"] * 2, "text_pair": ["b"] * 2, "label": [0, 1]}
    assert load(tmp_path, content, **told) == expected


@pytest.mark.parametrize("name", ["question", "Context"])
def test_half_of_a_pair_is_not_lost_without_a_word(name, tmp_path):
    content = as_csv({name: ["a", "b"], "text": ["c", "d"], "label": [0, 1]})
    message = f"`text_pair_column` must tell .* text, {name}"
    with pytest.raises(ValueError, match=message):
        load(tmp_path, content)
    assert list(load(tmp_path, content, text_pair_column=name)) == [
        "text",
        "text_pair",
        "label",
    ]
    none = {f"{name.lower()}_column": ""}
    assert list(load(tmp_path, content, **none)) == ["text", "label"]


def test_a_name_that_is_told_comes_before_one_that_is_known(tmp_path):
    content = as_csv({"text": ["a", "b"], "body": ["c", "d"], "y": [1, 0]})
    told = {"text_column": "body", "label_column": "y"}
    data = load(tmp_path, content, **told)
    assert data == {"text": ["c", "d"], "label": [1, 0]}


def test_texts_and_pairs_of_languages_need_no_label(tmp_path):
    pairs = {"source": ["a", "b"], "target": ["c", "d"]}
    assert load(tmp_path, as_csv(pairs)) == pairs
    assert load(tmp_path, "text\na\nb\n") == {"text": ["a", "b"]}
    assert load(tmp_path, "idx,text\n0,a\n") == {"text": ["a"]}
    data = load(tmp_path, "day,text\n7,a\n", label_column="")
    assert data == {"text": ["a"]}


def test_weights_and_ids_are_kept(tmp_path):
    content = "id,text,label,weight\n007,a,0,1\n08,b,1,2.5e-1\n"
    assert load(tmp_path, content) == {
        "id": ["007", "08"], "text": ["a", "b"], "label": [0, 1],
        "weight": [1.0, 0.25],
    }  # fmt: skip


# Definition: labels.

LABEL_COLUMNS = {
    "integers": (["0", "1", "1"], [0, 1, 1]),
    "stars": (["5", "1", "3"], [5, 1, 3]),
    "below zero": (["-1", "1", "-1"], [-1, 1, -1]),
    "decimals": (["0.5", "1.0", "2"], [0.5, 1.0, 2.0]),
    "exponents": (["1e-3", "2.5", "-1E+2"], [0.001, 2.5, -100.0]),
    "names": (["yes", "no", "no"], ["yes", "no", "no"]),
    "zeros in front": (["007", "12", "08"], ["007", "12", "08"]),
    "words of absence": (["NA", "null", "None"], ["NA", "null", "None"]),
    "a word like a number": (["nan", "inf", "x"], ["nan", "inf", "x"]),
    "other digits": (["٣", "１", "²"], ["٣", "１", "²"]),
    "underscores": (["0_1", "1_0", "x"], ["0_1", "1_0", "x"]),
    "hexadecimal": (["0x1", "0b1", "x"], ["0x1", "0b1", "x"]),
    "truth": (["True", "False", "True"], ["True", "False", "True"]),
    "spaces": ([" a", "a ", "b"], ["a", "a", "b"]),
    "lists": (['["a"]', "[]", '["a", "b"]'], [["a"], [], ["a", "b"]]),
    "rows": (["[0, 1, 1]", "[1, 0, 0]", "[0, 0, 0]"],
             [[0, 1, 1], [1, 0, 0], [0, 0, 0]]),
    "commas in words": (["a,b", "3,5", "c"], ["a,b", "3,5", "c"]),
    "several numbers": (["1|2", "3", "12|3"], ["1|2", "3", "12|3"]),
    "several, and none": (["1;2", ";", "3"], ["1;2", ";", "3"]),
    "several, and a comma": (["1|2", "3", "1,3"], ["1|2", "3", "1,3"]),
    "several and words": (["1|2", "3|", "x"], ["1|2", "3|", "x"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LABEL_COLUMNS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_labels_without_types_are_read_as_a_column(name, delimiter, tmp_path):
    cells, expected = LABEL_COLUMNS[name]
    content = as_csv({"text": list("abc"), "label": cells}, delimiter=delimiter)
    column = load(tmp_path, content)["label"]
    assert column == expected
    assert list(map(type, column)) == list(map(type, expected))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, 1], [0, 1, 1]),
        ([True, False, True], [1, 0, 1]),
        ([1, 2.5, 3], [1.0, 2.5, 3.0]),
        (["1", "2", "2"], ["1", "2", "2"]),  # a text has the type of a text
        (["a ", " a", "b"], ["a", "a", "b"]),
        ([["a"], [], ["b"]], [["a"], [], ["b"]]),
        ([[1.0, 0.0], [0, 1], [0, 0]], [[1.0, 0.0], [0, 1], [0, 0]]),
        ([[True, False]] * 3, [[True, False]] * 3),
    ],
)
def test_labels_with_types_keep_them(values, expected, tmp_path):
    content = as_json_lines({"text": list("abc"), "label": values})
    column = load(tmp_path, content, "a.jsonl")["label"]
    assert column == expected
    assert list(map(type, column)) == list(map(type, expected))


FLAGS = [("1", "0"), ("1.0", "0.0"), ("true", "False"), (1, 0)]


@pytest.mark.parametrize("flags", FLAGS)
def test_columns_of_zeros_and_ones_are_several_labels(flags, tmp_path):
    yes, no = flags
    table = {"text": list("abc"), "rude": [yes, no, yes], "loud": [yes, no, no]}
    told = ["loud", "rude"]
    content = as_json_lines(table) if yes == 1 else as_csv(table)
    name = "a.jsonl" if yes == 1 else "a.csv"
    data = load(tmp_path, content, name, label_column=told)
    assert data["label"] == [["loud", "rude"], [], ["rude"]]
    assert list(data) == ["text", "label"]


@pytest.mark.parametrize("wrong", ["2", "", "0.5", "yes", "-1", "nan"])
def test_columns_of_other_numbers_are_no_labels(wrong, tmp_path):
    content = f"text,rude,loud\na,1,0\nb,0,{wrong}\n"
    with pytest.raises(ValueError, match="line 3: `loud` must be 0 or 1"):
        load(tmp_path, content, label_column=["rude", "loud"])


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_rows_may_lack_a_key_that_is_not_read(name, tmp_path):
    rows = [{"text": "a", "label": 1, "by": "x"}, {"text": "b", "label": 0}]
    rows.append({"note": "?", "text": "c", "label": 0})
    content = "\n".join(map(json.dumps, rows))
    if name == "a.json":
        content = json.dumps(rows)
    data = load(tmp_path, content, name)
    assert data == {"text": ["a", "b", "c"], "label": [1, 0, 0]}


def test_an_id_of_squad_may_be_an_integer(tmp_path):
    answer = {"text": "b", "answer_start": 2}
    question = {"id": 7, "question": "a?", "answers": [answer]}
    content = json.dumps(squad(("a b", [question])))
    assert load(tmp_path, content, "a.json")["id"] == ["7"]


# Parquet.


def test_parquet_gives_the_same_columns(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for data in (DATA, TAGGED, ASKED, CHOICES):
        path = tmp_path / "a.parquet"
        parquet.write_table(arrow.table(data), path)
        assert load_dataset(path) == data


def test_parquet_without_its_reader_names_it(tmp_path, monkeypatch):
    for name in ("pyarrow", "pyarrow.parquet", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"a\.parquet needs pyarrow.*pip ins"):
        load(tmp_path, b"PAR1", "a.parquet")


# Parts.


def test_a_part_for_dev_is_drawn_by_the_seed(tmp_path):
    content = as_csv(
        {"text": [f"t{i}" for i in range(40)], "label": [0, 1] * 20}
    )
    whole = load(tmp_path, content)
    path = tmp_path / "a.csv"
    for seed in (0, 7):
        parts = [
            load_dataset(path, split, dev=0.1, seed=seed)
            for split in ("train", "dev")
        ]
        assert tuple(parts) == bb.train_dev_split(whole, 0.1, seed)
        assert [len(part["text"]) for part in parts] == [36, 4]
    assert load_dataset(path, "dev", dev=0.1) != parts[1]


def test_the_draw_is_the_same_for_ever():
    """These rows are those of every machine and every version."""
    data = {"text": list(range(20))}
    assert bb.train_dev_split(data, 0.25)[1]["text"] == [4, 7, 9, 15, 18]
    assert bb.train_dev_split(data, 0.1, seed=1)[1]["text"] == [7, 11]
    data["label"] = ["usual"] * 16 + ["rare"] * 4
    assert bb.train_dev_split(data, 0.25)[1]["text"] == [4, 7, 9, 15, 18]
    assert bb.train_dev_split(data, 0.1, seed=1)[1]["text"] == [7, 17]


@random_tests
@given(
    st.integers(2, 60),
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.integers(-3, 2**70),
)
def test_parts_share_no_row_and_lose_none(count, dev, seed):
    data = {"id": list(range(count)), "text": [f"t{i}" for i in range(count)]}
    train, held_out = bb.train_dev_split(data, dev, seed)
    assert sorted(train["id"] + held_out["id"]) == data["id"]
    assert abs(len(held_out["id"]) - count * dev) <= 1
    for part in (train, held_out):
        assert part["id"] == sorted(part["id"])
        assert len(part["id"]) >= 1
        assert part["text"] == [f"t{i}" for i in part["id"]]


@pytest.mark.parametrize(
    "labels", [("usual", "rare"), (0, 1), (False, True), (np.int64(7), 3)]
)
def test_each_label_keeps_its_share(labels):
    """95 rows of one label and 5 of another: dev has 19 and 1."""
    column = np.array([labels[0]] * 95 + [labels[1]] * 5, dtype=object)
    data = {"id": list(range(100)), "label": list(column)}
    for seed in range(20):
        train, dev = bb.train_dev_split(data, 0.2, seed)
        assert Counter(dev["label"]) == {labels[0]: 19, labels[1]: 1}
        assert Counter(train["label"]) == {labels[0]: 76, labels[1]: 4}
        assert sorted(train["id"] + dev["id"]) == data["id"]
        assert dev["id"] == sorted(dev["id"])
        assert (train, dev) == bb.train_dev_split(data, 0.2, seed)
    others = bb.train_dev_split(data, 0.2, seed + 1)
    assert others[1]["id"] != dev["id"]


def test_without_stratify_a_rare_label_may_have_no_row_for_dev():
    data = {"label": ["usual"] * 95 + ["rare"] * 5}
    plain = {"text": list(range(100))}
    rows = bb.train_dev_split(plain, 0.2)[1]["text"]
    _, dev = bb.train_dev_split(data, 0.2, stratify=False)
    assert dev["label"] == [data["label"][row] for row in rows]
    counts = [
        bb.train_dev_split(data, 0.1, seed, stratify=False)[1]["label"]
        for seed in range(10)
    ]
    assert any("rare" not in labels for labels in counts)


@random_tests
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8).filter(
        lambda sizes: 2 * sizes.count(1) <= sum(sizes)
    ),
    st.floats(0.01, 0.99),
    st.integers(0, 99),
)
def test_shares_of_labels_by_loops(sizes, dev, seed):
    column = [f"l{i}" for i, size in enumerate(sizes) for _ in range(size)]
    random.Random(seed).shuffle(column)
    train, held_out = (
        Counter(part["label"])
        for part in bb.train_dev_split({"label": column}, dev, seed)
    )
    total = 0
    for number, size in enumerate(sizes):
        count = held_out[f"l{number}"]
        assert train[f"l{number}"] == size - count >= 1
        assert (count >= 1) == (size > 1)
        if 1 < count < size - 1:
            assert abs(count - size * dev) < 1
        total += count
    several = [size for size in sizes if size > 1]
    if all(1 <= size * dev <= size - 1 for size in several):
        assert abs(total - sum(several) * dev) <= 0.5 + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "data",
    [
        {"text": [f"t{i % 30}" for i in range(90)], "label": list("ab") * 45},
        {"text": [f"t{i % 30}" for i in range(90)]},
        {"text": ["x"] * 90, "text_pair": [f"p{i // 3}" for i in range(90)]},
        {"tokens": [[f"w{i // 3}", "w"] for i in range(90)]},
        {
            "question": [f"q{i}" for i in range(90)],
            "context": [f"c{i // 7}" for i in range(90)],
        },
    ],
)
def test_rows_to_read_alike_are_in_one_part(data, seed):
    parts = bb.train_dev_split(data, 0.2, seed)
    name = [n for n in ("text_pair", "context", "tokens", "text") if n in data]
    train, dev = ({str(x) for x in part[name[0]]} for part in parts)
    assert train
    assert dev
    assert not train & dev
    assert abs(len(parts[1][name[0]]) - 18) <= 3


@pytest.mark.parametrize(
    ("sizes", "dev", "drawn"),
    [((80, 4), 0.1, {4}), ((1, 3), 0.9, {3}), ((50, 50), 0.1, {50})],
)
def test_many_rows_alike_leave_both_parts_some(sizes, dev, drawn):
    texts = [f"t{n}" for n, size in enumerate(sizes) for _ in range(size)]
    train, held_out = bb.train_dev_split({"text": texts}, dev)
    assert {len(held_out["text"])} == drawn
    assert not {*train["text"]} & {*held_out["text"]}


def test_questions_about_one_passage_are_said():
    data = {"question": list("abcde"), "context": ["x"] * 5}
    data["answers"] = [[{"text": "x", "answer_start": 0}]] * 5
    with pytest.warns(UserWarning, match="all 5 questions are about one pass"):
        train, dev = bb.train_dev_split(data, 0.4)
    assert (len(train["question"]), len(dev["question"])) == (3, 2)


def test_rows_that_are_all_alike_are_drawn_one_by_one():
    train, dev = bb.train_dev_split({"text": ["x"] * 10}, 0.3)
    assert (len(train["text"]), len(dev["text"])) == (7, 3)


def test_tables_without_a_label_a_row_are_split_as_before():
    plain = bb.train_dev_split({"text": list(range(40))}, 0.2)[1]["text"]
    tables = {
        "scores": {"label": [i / 4 for i in range(40)]},
        "integers as scores": {"label": [0, 0, *range(200)]},
        "lists": {"label": [["a"], ["a", "b"]] * 20},
        "choices": {"choices": [["a", "b"]] * 40, "label": [0] * 30 + [1] * 10},
        "a gap": {"label": [*"ab" * 19, "a", None]},
        "two kinds": {"label": [*"ab" * 19, "a", 0]},
        "each once": {"label": [f"l{i}" for i in range(40)]},
        "most once": {"label": [f"l{min(i, 21)}" for i in range(40)]},
    }
    for name, data in tables.items():
        rows = len(data["label"])
        data["text"] = list(range(rows))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, dev = bb.train_dev_split(data, 0.2)
        if rows == 40:
            assert dev["text"] == plain, name
        else:
            assert len(dev["text"]) == 40, name  # a fifth of 202


def test_a_label_that_only_dev_has_is_told():
    data = {"text": list("abcde"), "label": ["x", "x", "x", "rare", "y"]}
    told = "`label`: 'rare', 'y' occur only in the rows for dev"
    with pytest.warns(UserWarning, match=told):
        _, dev = bb.train_dev_split(data, 0.4, stratify=False)
    assert dev["label"] == ["rare", "y"]
    with pytest.warns(UserWarning, match="`tags`: 'B-X' occur only"):
        bb.train_dev_split({"tags": [["O"], ["O"], ["B-X", "O"]]}, 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.train_dev_split({"label": [0.5, 1.5, 2.5, 3.5, 4.5]}, 0.4)
        _, dev = bb.train_dev_split(data, 0.4)  # labels of one row: training
    assert dev["label"] == ["x"]


def test_stratify_is_a_switch():
    with pytest.raises(ValueError, match="`stratify` must be True or False"):
        bb.train_dev_split({"label": [0, 1]}, stratify="label")


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ("train", "train.csv"),
        ("dev", "dev.csv"),
        ("dev", "valid.tsv.gz"),
        ("dev", "Validation.jsonl"),
        ("dev", "val.json"),
        ("test", "test.csv.xz"),
    ],
)
def test_a_folder_has_a_file_for_each_split(split, name, tmp_path):
    content = {"csv": FORMS["a.csv"], "tsv": FORMS["a.tsv"],
               "jsonl": FORMS["a.jsonl"], "json": FORMS["a.json"]}  # fmt: skip
    write(tmp_path / name, content[name.split(".")[1]])
    write(tmp_path / "notes.csv", "x")
    write(tmp_path / "training.csv", "x")
    assert load_dataset(tmp_path, split) == DATA


def test_a_folder_without_dev_gives_a_part_of_train(tmp_path):
    write(
        tmp_path / "train.csv",
        as_csv({"text": list("abcde"), "label": [0, 1, 0, 1, 0]}),
    )
    write(tmp_path / "test.csv", as_csv({"text": ["f"], "label": [0]}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train = load_dataset(tmp_path, "train", dev=0.2, seed=3)
        dev = load_dataset(tmp_path, "dev", dev=0.2, seed=3)
    assert sorted(train["text"] + dev["text"]) == list("abcde")
    assert load_dataset(tmp_path, "test", dev=0.2) == {
        "text": ["f"],
        "label": [0],
    }
    with pytest.raises(FileNotFoundError, match="must hold dev or valid or"):
        load_dataset(tmp_path, "dev")
    write(tmp_path / "dev.csv", as_csv({"text": ["g"], "label": [0]}))
    assert load_dataset(tmp_path, "dev")["text"] == ["g"], "of one label"
    with pytest.raises(ValueError, match="`dev` must be left out .* dev.csv"):
        load_dataset(tmp_path, "dev", dev=0.2)
    write(tmp_path / "valid.csv", "x")
    with pytest.raises(
        ValueError, match=r"one file for 'dev'.*dev\.csv, valid"
    ):
        load_dataset(tmp_path, "dev")


def test_a_known_set_is_not_a_file(tmp_path, monkeypatch):
    """A name of the list is that set; the folder of this name is ./opinions."""
    write(tmp_path / "opinions" / "dev.csv", FORMS["a.csv"])
    monkeypatch.chdir(tmp_path)
    assert len(load_dataset("opinions")["text"]) == 200
    assert load_dataset("./opinions", "dev") == DATA
    write(tmp_path / "plain", "x")
    with pytest.raises(ValueError, match="plain must end in one of .csv"):
        load_dataset("plain")


def test_the_samples_as_own_files_give_the_same_columns(tmp_path):
    for name, known in SETS.items():
        if not known.ships:
            continue
        data = load_dataset(name, "dev")
        expected = {column: data[column] for column in data}
        content = as_json_lines(data)
        assert load(tmp_path, content, f"{name}.jsonl") == expected, name
        if name in ("opinions", "pairs"):
            path = find_dataset(name, "dev").path
            assert load_dataset(path) == expected, name
            assert load(tmp_path, as_csv(data), f"{name}.csv") == expected
        elif name in ("tags", "notes", "questions"):
            assert load_dataset(find_dataset(name, "dev").path) == expected


def test_memory_follows_the_columns_that_are_kept(tmp_path):
    import tracemalloc

    content = "text,label,junk\n" + f"a,1,{'x' * 1000}\nb,0,\n" * 5_000
    path = write(tmp_path / "a.csv.gz", content)
    tracemalloc.start()
    assert len(load_dataset(path)["text"]) == 10_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(content) / 1.5


REAL = {
    "sst2": {},
    "cola": {},
    "rte": {},
    "mrpc": {},
    "stsb": {"label_column": "score"},
    "qnli": {"text_column": "question", "text_pair_column": "sentence"},
    "squad": {},
    "squad_v2": {},
    "conll2003": {},
    "wnut17": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_sets_as_own_files_give_the_same_columns(
    name, shared_data, tmp_path
):
    file = find_dataset(name, "dev", shared_data)
    data = load_dataset(name, "dev", shared_data)
    if file.member is None:
        assert load_dataset(file.path, **REAL[name]) == data
    assert load(tmp_path, as_json_lines(data), "a.jsonl.xz") == data
    if "text" in data:
        assert load(tmp_path, as_csv(data), "a.csv.gz") == data
        tabs = as_csv(data, delimiter="\t")
        assert load(tmp_path, tabs, "a.tsv") == data


# Error: tables.

H = "text,label\n"
BAD_TABLES = {
    # The name of the file, what it holds, and the message.
    "no rows": ("a.csv", H, r"a\.csv must hold examples"),
    "empty": ("a.csv", "", r"a\.csv must hold text. Received: 0 bytes"),
    "blank": ("a.csv", "\n \n", r"columns"),
    "too few": ("a.csv", H + "a,1\nb\n", "line 3: there must be 2 col.* 1"),
    "too many": ("a.csv", H + "a,1\nb,0,0\n", "line 3: there must be 2.* 3"),
    "after two lines": ("a.csv", H + '"a\nb",1\nc\n', "line 4: there must be"),
    "after a mark": ("a.csv", "sep=,\n" + H + "a,1\nb\n", "line 4: there must"),
    "ragged, ;": ("a.csv", "text;label\na;1\nb\n", "line 3: there must be 2"),
    "an open quote": ("a.csv", H + 'a,1\n"b,0\n', "line 3: unexpected end"),
    "a loose quote": ("a.csv", H + 'a,1\n"b"c,0\n', "line 3: "),
    "a backslash": ("a.csv", H + '"a \\"b\\" c",1\n', "line 2: "),
    "a lone CR": ("a.csv", "text,label\ra,1\rb,0", "line 1: new-line"),
    "twice": ("a.csv", "text,text,label\na,b,1\n", "one column `text`.* 2 of"),
    "unread twice": ("a.csv", "text,label,x,x\na,1,b,c\n", "one column `x`"),
    "no header": ("a.csv", "I like it,1\nbad,0\n", "columns I like it, 1"),
    "one column": ("a.csv", "a\nb\n", "Received: the columns a"),
    "unknown": ("a.csv", "review,stars\na,1\n",
        'text_column="review", label_co'),
    "longest and fewest": ("a.csv", "day,n,note,team\n"
        "1,1,,x\n2,1,It rains.,y\n3,1,No.,\n4,1,Yes.,x\n",
        r'\("a.csv", text_column="note", label_column="team"\)'),
    "longest and fewest of JSON": ("a.jsonl", as_json_lines({"n": [1, 2, 3],
        "note": ["It rains.", None, "a"], "flag": [True, False, None]}),
        r'text_column="note", label_column="flag"\)'),
    "a known label": ("a.csv", "n,note,label\n1,It rains.,x\n1,No.,y\n",
        r'text_column="note", label_column="label"\)'),
    "names alone": ("a.csv", "a,b\n", r'text_column="a", label_column="b"\)'),
    "a label of few": ("a.csv", "day,text,team\n1,a,x\n2,b,y\n3,c,x\n",
        r'as in load_dataset\("a.csv", label_column="team"\), or be ""'),
    "a quote in a name": ("a.csv", 'a "b" (c),d\nIt rains.,1\nNo.,2\n',
        r'text_column="a \\"b\\" \(c\)", label_column="d"'),
    "unknown label": ("a.csv", "text,stars\na,1\n", '`label_column`.*"stars"'),
    "two texts": ("a.csv", "text,sentence,label\na,b,1\n",
        "`text_column` must te"),
    "two cases": ("a.csv", "text,Text,label\na,b,1\n",
        "`text_column` must tell"),
    "two labels": ("a.csv", "text,label,labels\na,1,1\n",
        "`label_column` must te"),
    "half a pair": ("a.csv", "sentence1,label\na,1\n", "must have the columns"),
    "two pairs": ("a.csv", "sentence1,sentence2,text,label\na,b,c,1\n",
        "`text_column` must"),
    "no context": ("a.csv", "question,answers\na,[]\n", "question, context"),
    "two delimiters": ("a.csv", "a,x;b,y\na,b;c,d\n", "must have one deli"),
    "Latin-1": ("a.csv", (H + "caf\xe9,1\n").encode("latin-1"),
        r"UTF-8.*line 2, .* again as UTF-8, or use `mended=\[\]`\.$"),
    "Latin-1 of JSON": ("a.json", '[{"text": "\xe9"}]'.encode("latin-1"),
        r"line 1, as Windows-1252 has; .* or use `mended=\[\]`\.$"),
    "Latin-1 of tags": ("a.conll", "\xe9 O\n".encode("latin-1"),
        r"line 1, as Windows-1252 has; .* or use `mended=\[\]`\.$"),
    "UTF-16": ("a.csv", (H + "a,1\n").encode("utf-16"),
        "must be UTF-8. .* as UTF-16 has; write the file again as UTF-8"),
    "texts without tags": ("a.txt", "It rains again.\n",
        "line 1: a tag must be .*; tables of texts end in .csv"),
    "UTF-16 without a mark": ("a.csv", (H + "a,1\n").encode("utf-16-le"),
        "must be text in UTF-8. Received: NUL bytes in its first line"),
    "a workbook": ("a.csv", b"PK\x03\x04\x14\0\x06\0,\0\n" + H.encode(),
        "must be text in UTF-8. Received: NUL bytes in its first line"),
    "a surrogate as label": ("a.jsonl", '{"text": "a", "label": "\\ud800"}\n',
        "line 1: `label` must not hold a lone surrogate"),
    "a surrogate among labels": ("a.jsonl",
        '{"text": "a", "label": ["b", "\\ud800"]}\n',
        "line 1: `label` must not hold a lone surrogate"),
    "endless names": ("a.csv", "a" * 9_000 + ",b\nx,y\n",
        r'text_column="a{77}\.\.\.", .* the columns a{77}\.\.\., b\.$'),
    "an empty text": ("a.csv", H + "a,1\n,0\n", "line 3: `text` must hold a"),
    "spaces": ("a.csv", H + "a,1\n  ,0\n", "line 3: `text` must hold a text"),
    "an empty line in quotes": ("a.csv", 'text\na\n""\n',
        "line 3: `text` must hold a text"),
    "only commas": ("a.csv", H + "a,1\n,\n", "line 3: `text` must hold a text"),
    "an empty label": ("a.csv", H + "a,1\nb,\n", "line 3: `label` must not be"),
    "a blank label": ("a.csv", H + "a,x\nb,  \n",
        "line 3: `label` must not be"),
    "a word among numbers": ("a.csv", H + "a,1\nb,n/a\n",
        r"'1' in line 2 and 'n/a' in line 3"),
    "a NaN among scores": ("a.csv", H + "a,1.5\nb,nan\n", "'nan' in line 3"),
    "an infinite score": ("a.csv", H + "a,1.5\nb,inf\n", "'inf' in line 3"),
    "a huge score": ("a.csv", H + "a,1.5\nb,1e999\n", "'1e999' in line 3"),
    "an underscore": ("a.csv", H + "a,1\nb,0_1\n", "'0_1' in line 3"),
    "other digits": ("a.csv", H + "a,1\nb,٣\n", "'٣' in line 3"),
    "a long integer": ("a.csv", H + f"a,1\nb,{'9' * 5000}\n", "all integers"),
    "a comma": ("a.csv", "text;label\na;3,5\nb;4\n",
        r"line 2: `label`.*decimal point, .*; `mended=\[\]` reads decimal com"),
    "a comma in a weight": ("a.csv", "text;label;weight\na;x;0,5\nb;y;1\n",
        r"line 2: `weight` must .* above; `mended=\[\]` reads decimal commas"),
    "a list among words": ("a.csv", H + 'a,"[""x""]"\nb,x\n', "all|'x'"),
    "no JSON list": ("a.csv", H + "a,\"['x'\"\nb,[]\n",
        "line 2, `label` is not"),
    "a list of none": ("a.csv", H + "a,[null]\nb,[]\n",
        "line 2: `label` must be"),
    "a weight": ("a.csv", "text,label,weight\na,1,1\nb,0,-1\n",
        "line 3: `weight` must be"),
    "no weight": ("a.csv", "text,label,weight\na,1,1\nb,0,\n",
        "line 3: `weight` must be"),
    "an odd weight": ("a.csv", "text,label,weight\na,1,1_0\nb,0,1\n",
        "line 2: `weight` must"),
    "a NaN weight": ("a.csv", "text,label,weight\na,1,nan\nb,0,1\n",
        "line 2: `weight` must"),
    "choices from 1": ("a.csv", "text,choice1,choice2,label\na,b,c,1\n",
        "choice0, choice1 and"),
    "a gap": ("a.csv", "text,choice0,choice2,label\na,b,c,1\n",
        "without a gap"),
    "a label of choices": ("a.csv", "text,choice0,choice1,label\na,b,c,2\n",
        "line 2: `label` must be the"),
    "a word for choices": ("a.csv", "text,choice0,choice1,label\na,b,c,b\n",
        "line 2: `label` must be the"),
    "an empty choice": ("a.csv", "text,choice0,choice1,label\na,b,,1\n",
        "line 2: `choices` must"),
    "tsv, too few": ("a.tsv", "text\tlabel\na\t1\nb\n",
        "line 3: there must be 2"),
    "tsv with commas": ("a.tsv", H + "a,1\n", "the columns text,label"),
    # JSON.
    "not JSON": ("a.jsonl", '{"text": "a"}\n{"text": \n',
        "line 2: the row is not valid"),
    "Python": ("a.jsonl", "{'text': 'a'}\n", "line 1 is not valid JSON"),
    "deep": ("a.jsonl", "[" * 100_000,
        "line 1 is not valid JSON: it is nested"),
    "long": ("a.jsonl", '{"text": ' + "9" * 5_000 + "}", "line 1 is not valid"),
    "no object": ("a.jsonl", '{"text": "a"}\n["b"]\n', "line 2: a row must be"),
    "a text line": ("a.jsonl", '"a"\n', "line 1: a row must be a JSON object"),
    "a key less": ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n',
        "line 2: the columns .* a row without 'label'"),
    "a key more": ("a.jsonl", '{"text": "a"}\n{"text": "b", "label": 1}\n',
        "line 2: the columns .* a row with 'label'"),
    "a key twice": ("a.jsonl", '{"text": "a", "text": "b"}\n',
        "'text' occurs tw"),
    "blank lines": ("a.jsonl", "\n\n", "must hold examples"),
    "a number as text": ("a.jsonl", '{"text": 7, "label": 1}\n',
        "line 1: `text` must be a text.*7"),
    "null as text": ("a.jsonl", '{"text": null}\n', "line 1: `text` .* None"),
    "a surrogate": ("a.jsonl", '{"text": "\\ud800"}\n',
        "line 1: `text` must not"),
    "null as label": ("a.jsonl", '{"text": "a", "label": null}\n',
        "line 1: `label` must not be"),
    "NaN as label": ("a.jsonl", '{"text": "a", "label": NaN}\n',
        "line 1: `label` must not be"),
    "infinity": ("a.jsonl", '{"text": "a", "label": Infinity}\n',
        "line 1: `label` must be a"),
    "an object as label": ("a.jsonl", '{"text": "a", "label": {}}\n',
        "line 1: `label` must be a name"),
    "text and number": ("a.jsonl",
        '{"text": "a", "label": 1}\n{"text": "b", "label": "1"}\n',
        "1 in line 1 and '1' in line 2"),
    "truth and number": ("a.jsonl",
        '{"text": "a", "label": 1}\n{"text": "b", "label": true}\n',
        "1 in line 1 and True in line 2"),
    "a mixed list": ("a.jsonl", '{"text": "a", "label": ["x", 1]}\n',
        "line 1: `label` must be"),
    "an empty JSON list": ("a.json", "[]", r"a\.json must hold examples"),
    "a JSON text": ("a.json", '"a"', "must hold a list of objects.* str"),
    "an empty object": ("a.json", "{}", "must hold a list of objects.* dict"),
    "a JSON number": ("a.json", "[1]",
        "row 0: a row must be a JSON object.* int"),
    "unequal lists": ("a.json", '{"text": ["a"], "label": []}',
        "lists of one length"),
    "deep JSON": ("a.json", "[" * 100_000, "not valid JSON: it is nested too"),
    "half a file": ("a.json", '[{"text": "a"}, ', r"a\.json is not valid JSON"),
    "odd articles": ("a.json", '{"data": [{"paragraphs": 1}]}',
        "`paragraphs` mu"),
    "is_impossible": ("a.json", json.dumps(squad(("a cat", [{"id": "1",
        "question": "q", "answers": [], "is_impossible": "no"}]))),
        "question '1': `is_impossible` must be true or false"),
    # Tags.
    "a tag less": ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["O"]}\n',
        "line 1: `tags` must"),
    "no tokens": ("a.jsonl", '{"tokens": [], "tags": []}\n',
        "line 1: `tokens` mu"),
    "tokens in a text": ("a.jsonl", '{"tokens": "a b", "tags": ["O"]}\n',
        "line 1: `tokens` must"),
    "an empty token": ("a.jsonl", '{"tokens": [""], "tags": ["O"]}\n',
        "line 1: `tokens` must"),
    "a part of speech": ("a.jsonl", '{"tokens": ["a"], "tags": ["NN"]}\n',
        "line 1: a tag .* 'NN'"),
    "a tag of null": ("a.jsonl", '{"tokens": ["a"], "tags": [null]}\n',
        "line 1: a tag .* None"),
    "a fraction as tag": ("a.jsonl", '{"tokens": ["a"], "tags": [1.0]}\n',
        "line 1: a tag .* 1.0"),
    "words in a cell": ("a.csv", "tokens,tags\na b,O O\n",
        "line 2: `tokens` is not"),
    "IOBES": ("a.conll", "a O\nb S-PER\n",
        "line 2: .* IOBES and BILOU .*'S-PER'"),
    "BILOU": ("a.conll", "a O\nb U-PER\n", "write S- and U- as B-"),
    "parts of speech": ("a.txt", "a DT\n", "line 1: a tag must be O.*'DT'"),
    "a plain text": ("a.txt", "It rains again.\n", "line 1: a tag must be"),
    "one word a line": ("a.txt", "rain\n", "line 1: there must be 2 columns"),
    "an odd type": ("a.conll", "a O\nb B-\0X\n", "line 2: a tag must be O"),
    "a space in a type": ("a.conll", "a\tB-X \n", r"line 1: a tag .*'B-X '"),
    "no token": ("a.conll", "a\tO\n\tO\n", "line 2: `tokens` must hold"),
    "old line ends": ("a.txt", "a O\rb B-X\r\nc x O\n", "line 1: a line must"),
    "another width": ("a.conll", "a x O\nb O\n",
        "line 2: there must be 3 colu"),
    "no sentence": ("a.conll", "\n\n", "must hold examples"),
    # Questions.
    "an answer elsewhere": ("a.jsonl",
        as_json_lines({**ASKED, "answers": [[{"text": "Tolva",
        "answer_start": 9}], []]}),
        "line 1: `answer_start` must point at .*: 9"),
    "an answer without a place": ("a.jsonl",
        as_json_lines({**ASKED, "answers": [[{"text": "Tolva"}], []]}),
        "line 1: `answer_start` must point at .*: None"),
    "an answer that is empty": ("a.jsonl",
        as_json_lines({**ASKED, "answers": [[{"text": "", "answer_start": 0}],
        []]}), "line 1: `answer_start` must point at the answer ''"),
    "an answer as text": ("a.jsonl",
        as_json_lines({**ASKED, "answers": ["Tolva", "x"]}),
        "line 2: `answers` must stand in the context .*: 'x'"),
    "a list of texts": ("a.jsonl",
        as_json_lines({**ASKED, "answers": [["Tolva"], []]}),
        "line 1: `answers` must be a list of dicts .* or a text of the con"),
    "no answers": ("a.jsonl", as_json_lines({**ASKED, "answers": [None, []]}),
        "line 1: `answers` must be .* an empty one for no answer. .*: None"),
    "a plain answer": ("a.csv", as_csv({**PLAIN, "answer": ["ada"] * 6}),
        "line 2: `answer` must stand in .* or be empty where .*: 'ada'"),
    "half of a list": ("a.csv", as_csv({**PLAIN, "answer": ['[{"te'] * 6}),
        "line 2: `answer` is not valid JSON"),
    "an id twice": ("a.jsonl", as_json_lines({**ASKED, "id": ["q", "q"]}),
        "line 2: the `id` of a question must be its own.* 'q', as in line 1"),
    "an id of null": ("a.jsonl", as_json_lines({**ASKED, "id": [None, "q"]}),
        "line 1: `id` must"),
    # Packed.
    "not packed": ("a.csv.zip", b"text,label\n", "a.csv.zip is damaged"),
    "no ending": ("a.gz", H, "must end in one of .csv"),
    "another ending": ("a.xlsx", b"PK", "must end in one of .csv"),
    "packed twice": ("a.csv.gz.xz", b"x", "packed once"),
    "an archive of files": ("a.tar.gz", b"x", "must end in one of"),
    "packed Parquet": ("a.parquet.gz", b"x", "must be unpacked"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD_TABLES)
def test_a_bad_table_is_refused_with_file_and_line(fault, tmp_path):
    name, content, message = BAD_TABLES[fault]
    path = tmp_path / name
    if name.endswith(".zip"):
        path.write_bytes(content)
    else:
        write(path, content)
    with pytest.raises(ValueError, match=message) as caught:
        load_dataset(path)
    assert name in str(caught.value)
    assert len(str(caught.value)) < 1_500


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "must hold one file.* none"),
        ({"a.csv": "x", "b.csv": "x"}, r"must hold one file.* a\.csv, b\.csv"),
        ({"a.zip": "x"}, "must end in one of"),
        ({"a.csv.gz": "x"}, "must end in one of"),
        ({"a.xlsx": "x"}, "must end in one of"),
    ],
)
def test_an_archive_that_is_not_one_file_is_refused(members, message, tmp_path):
    path = write_archive(tmp_path / "a.csv.zip", members)
    with pytest.raises(ValueError, match=message):
        load_dataset(path)


@pytest.mark.parametrize("at", [6, 8], ids=["a password", "a packing"])
def test_an_archive_that_cannot_be_unpacked_is_refused(at, tmp_path):
    path = write_archive(tmp_path / "a.zip", {"a.csv": FORMS["a.csv"]}, False)
    data = bytearray(path.read_bytes())
    data[at] = data[data.find(b"PK\x01\x02") + at + 2] = 1 if at == 6 else 99
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.zip is damaged"):
        load_dataset(path)


def test_a_row_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 2_000)
    monkeypatch.setattr("bertbook.datasets.file_formats.LONGEST_LINE", 2_000)
    zeros = H.encode() + bytes(5_000)
    with pytest.raises(ValueError, match="a longer one, line 2"):
        load(tmp_path, zeros, "a.csv.gz")
    quoted = H + '"' + "a\n" * 3_000
    with pytest.raises(
        ValueError, match=r"line \d+: field larger than field l"
    ):
        load(tmp_path, quoted, "b.csv.gz")


# Error: arguments.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_column": "txt"},
         "`text_column` must be .* Did you mean 'text'"),
        ({"label_column": "lable"}, "Did you mean 'label'.* Received: 'lable'"),
        ({"label_column": 1}, "`label_column` must be a column of .*: 1"),
        ({"label_column": []}, "`label_column` must be a name, or name two c"),
        ({"label_column": ["label", "label"]},
         "`label_column` must be a name, or"),
        ({"label_column": ["label", "x"]}, "`label_column` must be a column"),
        ({"label_column": ["label"]},
         "`label_column` must be a name, or name tw"),
        ({"text_column": ["text"]}, "`text_column` must be a column"),
        ({"tags_column": "label"}, "tags_column told"),
        ({"question_column": "text"}, "must have the columns of a task"),
        ({"split": "train"}, "`split` of a file must be"),
        ({"split": "dev"}, "`split` of a file must be .*'dev' and `dev` None"),
        ({"dev": 0.5}, "`split` of a file must be .*None and `dev` 0.5"),
        ({"dev": 0.5, "split": "test"}, "`split` of a file must be"),
        ({"dev": 0, "split": "dev"}, "`dev` must be above 0 and below 1"),
        ({"dev": 1.0, "split": "dev"}, "`dev` must be above 0 and below 1"),
        ({"dev": math.nan, "split": "dev"}, "`dev` must be above 0"),
        ({"dev": True, "split": "dev"}, "`dev` must be above 0"),
        ({"dev": "0.1", "split": "dev"}, "`dev` must be above 0"),
        ({"dev": 0.5, "split": "dev", "seed": 0.5},
         "`seed` must be an integer"),
        ({"dev": 0.5, "split": "dev", "seed": None}, "`seed` must be an int"),
        ({"data_dir": "x"}, "`data_dir` is of known sets alone"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_a_file_are_refused(
    options, message, tmp_path
):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, "text,label\na,x\nb,y\n", **options)


def test_arguments_of_own_files_are_refused_for_known_sets():
    for options in ({"text_column": "x"}, {"dev": 0.1}, {"label_column": ""}):
        (word,) = options
        with pytest.raises(ValueError, match=f"`{word}` is of own files alone"):
            load_dataset("opinions", "dev", **options)


@pytest.mark.parametrize("split", [None, "all", "valid", 1, ["dev"]])
def test_an_unknown_split_of_a_folder_is_refused(split, tmp_path):
    write(tmp_path / "train.csv", FORMS["a.csv"])
    message = r"`split` of a folder must be one of train, dev, test\. Received"
    with pytest.raises(ValueError, match=message):
        load_dataset(tmp_path, split)


def test_names_of_columns_are_refused_where_a_file_has_none(tmp_path):
    with pytest.raises(ValueError, match="`tags_column` must be left out"):
        load(tmp_path, "a O\n", "a.conll", tags_column="x")
    content = json.dumps(squad(("a", [])))
    with pytest.raises(ValueError, match="`question_column` must be left out"):
        load(tmp_path, content, "a.json", question_column="x")


@pytest.mark.parametrize(
    "name",
    ["missing.csv", "./missing", "~nobody_there/a.csv", "x/" * 3_000, "{}/a"],
)
def test_a_file_that_is_not_there_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = name.format(tmp_path)
    with pytest.raises(FileNotFoundError, match="`name` must be .* Received: "):
        load_dataset(name)


def test_the_nearest_file_is_named(tmp_path):
    write(tmp_path / "reviews.csv", FORMS["a.csv"])
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'reviews\.csv'"):
        load_dataset(tmp_path / "review.csv")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        load_dataset(tmp_path / "x" / "review.csv")


def test_data_that_cannot_be_split_are_refused():
    for data, message in (
        ({"text": ["a"]}, "two rows or more.* Received: 1"),
        ({"text": []}, "two rows or more.* Received: 0"),
        ({}, "columns of one length.* Received: no column"),
        ([{"text": "a"}], "two rows or more.* Received: 1"),
        ("text", "must be a dict of columns"),
        (None, "must be a dict of columns"),
        ({"text": ["a", "b"], "label": [1]}, "columns of one length"),
        ({"text": ["a", "b"], "label": 1}, "`label` must be a list with an"),
        ({"text": "ab", "label": [1, 2]}, "`text` must be a list with an"),
        ({"train": {"text": ["a"], "x": [1]}}, "`train` must be a list with"),
        ({"text": {"a", "b"}}, "`text` must be a list with"),
    ):
        with pytest.raises(ValueError, match=message):
            bb.train_dev_split(data)


def test_a_list_of_rows_is_split_as_its_columns():
    data = {"text": list("abcde"), "label": [1, 0, 1, 0, 1]}
    rows = [
        dict(zip(data, row, strict=True))
        for row in zip(*data.values(), strict=True)
    ]
    assert bb.train_dev_split(rows, 0.4) == bb.train_dev_split(data, 0.4)


def test_bad_tables_are_told_apart():
    assert len(BAD_TABLES) > 100
    assert len({re.sub(r"\W", "", fault) for fault in BAD_TABLES}) > 100


@pytest.mark.parametrize("label", ["1", "x"])
def test_one_label_is_read_to_measure_on_and_refused_to_learn(label, tmp_path):
    rows = H + f"a,{label}\nb,{label}\n"
    for name in ("train.csv", "dev.csv", "other.csv"):
        write(tmp_path / name, rows)
    expected = [int(label) if label == "1" else label] * 2
    for data in (
        load_dataset(tmp_path / "other.csv"),
        load_dataset(tmp_path, "dev"),
    ):
        assert data["label"] == expected
    with pytest.raises(ValueError, match="two labels or more.*in all of 2"):
        load_dataset(tmp_path, "train")


def test_numbers_of_tokens_are_no_tokens(tmp_path):
    """As GermEval has them; the numbers of a text are tokens."""
    path = tmp_path / "a.conll"
    path.write_text("1\tEU\tB-ORG\n2\tis\tO\n\n1\tno\tO\n")
    data = bb.load_dataset(path)
    assert data["tokens"] == [["EU", "is"], ["no"]]
    path.write_text("1\tCD\tO\n2\tCD\tO\n\n3\tCD\tO\n")
    assert bb.load_dataset(path)["tokens"] == [["1", "2"], ["3"]]
    path.write_text("1\tO\n2\tO\n")
    assert bb.load_dataset(path)["tokens"] == [["1", "2"]]
