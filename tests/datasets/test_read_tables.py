"""Tables with tabs and with commas: what is read, and what is refused."""

import csv
import io
import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.datasets.readers import read_choices, read_table
from bertbook.files import DataFile
from tests.helpers.set_files import rows, write

random_tests = settings(max_examples=100, deadline=None, derandomize=True)

ONE = {"text": ["sentence"], "label": ["label"]}
TWO = {
    "text": ["sentence1", "#1 String"],
    "text_pair": ["sentence2", "#2 String"],
    "label": ["label", "Quality"],
}
NAMES = ("entailment", "not_entailment")
HEADER = ("sentence", "label")
FORMS = {
    "Unix": rows(HEADER, ("It rains.", "1"), ("No.", "0")),
    "no last line end": rows(HEADER, ("It rains.", "1")) + "No.\t0",
    "Windows": "sentence\tlabel\r\nIt rains.\t1\r\nNo.\t0\r\n",
    "a byte order mark": "\ufeff"
    + rows(HEADER, ("It rains.", "1"), ("No.", "0")),
    "spaces": rows(HEADER, (" It rains. ", "1 "), ("No.", "0")),
    "empty lines": rows(HEADER, ("It rains.", "1"), ("",), ("No.", "0")) + "\n",
    "other columns": rows(("index", "label", "sentence"),
        ("7", "1", "It rains."), ("8", "0", "No.")),
}  # fmt: skip


def table(tmp_path, content, columns=ONE, labels=2, **options):
    file = DataFile(write(tmp_path / "dev.tsv", content))
    return read_table(file, columns, labels, **options)


# Definition.


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_gives_the_same_columns(form, tmp_path):
    expected = {"text": ["It rains.", "No."], "label": [1, 0]}
    assert table(tmp_path, FORMS[form]) == expected


def test_nothing_is_quoted_and_only_a_line_feed_ends_a_line(tmp_path):
    text = "He said \"no\u2028\x85 and 'left\\n"
    content = rows(HEADER, (text, "1"), ('"', "0"))
    assert table(tmp_path, content)["text"] == [text, '"']


def test_columns_are_found_by_either_name(tmp_path):
    expected = {"text": ["a"], "text_pair": ["b"], "label": [1]}
    for names in (
        ("label", "sentence1", "sentence2"),
        ("Quality", "#1 String", "#2 String"),
    ):  # fmt: skip
        content = rows(names, ("1", "a", "b"))
        assert table(tmp_path, content, TWO) == expected


def test_labels_are_integers_names_or_scores(tmp_path):
    for labels, values, expected in (
        (2, ("0", "1"), [0, 1]),
        (NAMES, NAMES, list(NAMES)),
        (None, ("0", "5.000", "2.25"), [0.0, 5.0, 2.25]),
    ):
        content = rows(HEADER, *(("a", value) for value in values))
        column = table(tmp_path, content, ONE, labels)["label"]
        assert column == expected
        assert {type(x) for x in column} == {type(expected[0])}


def test_a_table_may_lack_its_line_of_column_names(tmp_path):
    header = ("source", "label", "mark", "sentence")
    content = rows(
        ("gj04", "1", "", "They left."), ("gj04", "0", "*", "Left they.")
    )
    expected = {"text": ["They left.", "Left they."], "label": [1, 0]}
    for both in content, rows(header) + content:
        assert table(tmp_path, both, header=header) == expected


def test_damaged_lines_are_left_out_only_where_asked_and_counted(tmp_path):
    content = rows(HEADER, ("a", "1"), ("b",), ("c", "0"), ("d", "1", "1"))
    told = r"dev\.tsv: 2 damaged lines without 2 columns were left out: 3, 5\.$"
    with pytest.warns(UserWarning, match=told):
        data = table(tmp_path, content, skip_damaged=True)
    assert data == {"text": ["a", "c"], "label": [1, 0]}
    many = rows(HEADER, ("a", "1"), *[("b",)] * 30)
    with pytest.warns(UserWarning, match=r"30 damaged.*: 3, .*, 22, \.\.\.\.$"):
        table(tmp_path, many, skip_damaged=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table(tmp_path, FORMS["Unix"], skip_damaged=True)


# Error.


@pytest.mark.parametrize(
    ("line", "found"), [(("b",), 1), (("b", "1", "x"), 3), (("b 0",), 1)]
)
def test_a_line_with_another_number_of_columns_is_refused(
    line, found, tmp_path
):
    content = rows(HEADER, ("a", "1"), line, ("c", "0"))
    message = f"dev.tsv, line 3: there must be 2 columns. Received: {found}."
    with pytest.raises(ValueError, match=re.escape(message)):
        table(tmp_path, content)


def test_the_line_is_counted_from_the_first_of_the_file(tmp_path):
    header = ("source", "label", "mark", "sentence")
    content = rows(("gj04", "1", "", "a"), ("gj04", "1", "b"))
    for both, line in (content, 2), (rows(header) + content, 3):
        with pytest.raises(ValueError, match=f"line {line}: there must be 4"):
            table(tmp_path, both, header=header)
    with pytest.raises(ValueError, match="line 4: there must be 2"):
        table(tmp_path, rows(HEADER, ("",), ("a", "1"), ("b",)))


@pytest.mark.parametrize(
    ("labels", "value", "rule"),
    [
        (2, "2", "a label must be one of 0 to 1"),
        (2, "-1", "a label must be one of 0 to 1"),
        (2, "", "a label must be one of 0 to 1"),
        (2, "1.0", "a label must be one of 0 to 1"),
        (2, "positive", "a label must be one of 0 to 1"),
        (NAMES, "neutral", "a label must be one of entailment, not_entailment"),
        (NAMES, "-", "a label must be one of entailment, not_entailment"),
        (NAMES, "Entailment", "a label must be one of entailment,"),
        (None, "5.1", "a score must be from 0 to 5"),
        (None, "-0.1", "a score must be from 0 to 5"),
        *(
            (None, value, "a score must be from 0 to 5")
            for value in ("nan", "inf", "0_1", "1e0", "+1", "1.", ".5", "٣", "")
        ),
        (2, "٠", "a label must be one of 0 to 1"),
        (2, "01", "a label must be one of 0 to 1"),
        (None, "high", "a score must be from 0 to 5"),
    ],
)
def test_an_unknown_label_is_refused(labels, value, rule, tmp_path):
    good = {2: "1", None: "3.5"}.get(labels, "entailment")
    content = rows(HEADER, ("a", good), ("b", value))
    with pytest.raises(
        ValueError, match=re.escape(f"dev.tsv, line 3: {rule}")
    ) as e:
        table(tmp_path, content, ONE, labels)
    assert str(e.value).endswith(f"Received: {value!r}.")


def test_a_missing_column_is_refused(tmp_path):
    content = rows(("text", "label"), ("a", "1"))
    message = (
        r"dev\.tsv must have a column `sentence`\. Received: text, label\."
    )
    with pytest.raises(ValueError, match=message):
        table(tmp_path, content)
    content = rows(("sentence1", "label"), ("a", "1"))
    with pytest.raises(ValueError, match="`sentence2` or `#2 String`"):
        table(tmp_path, content, TWO)


@pytest.mark.parametrize("twice", HEADER)
def test_a_column_that_stands_twice_is_refused(twice, tmp_path):
    content = rows((*HEADER, f" {twice}"), ("a", "1", "1"))
    message = f"have one column `{twice}`. Received: 2 of that name."
    with pytest.raises(ValueError, match=message):
        table(tmp_path, content)
    unread = rows((*HEADER, "x", "x"), ("a", "1", "b", "c"))
    assert table(tmp_path, unread) == {"text": ["a"], "label": [1]}


@pytest.mark.parametrize("content", [rows(HEADER), rows(HEADER) + "\n\n"])
def test_a_table_without_rows_is_refused(content, tmp_path):
    with pytest.raises(ValueError, match=r"dev\.tsv must hold examples"):
        table(tmp_path, content)


def test_a_table_of_spaces_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must have a column `sentence`"):
        table(tmp_path, " \n\t\n")


# Choices.

COLUMNS = [
    "",
    "video-id",
    "fold-ind",
    "startphrase",
    "sent1",
    "sent2",
    "gold-source",
    *(f"ending{i}" for i in range(4)),
    "label",
]


def choice(
    sent1="He sat.", sent2="Then he", ends=("a", "b", "c", "d"), label="2"
):
    row = [
        "0",
        "v",
        "7",
        f"{sent1} {sent2}",
        sent1,
        sent2,
        "gold",
        *ends,
        label,
    ]
    assert len(row) == len(COLUMNS)
    return row


def swag(tmp_path, *lines):
    text = io.StringIO(newline="")
    csv.writer(text).writerows(lines)
    return DataFile(write(tmp_path / "val.csv", text.getvalue()))


def test_choices_begin_with_their_shared_start(tmp_path):
    file = swag(
        tmp_path,
        COLUMNS,
        choice('He said, "no"', "and, well,", ("x,y", 'so "z"', "p\nq", "r")),
        choice(sent2="", label="0"),
    )
    assert read_choices(file) == {
        "text": ['He said, "no"', "He sat."],
        "choices": [
            [
                "and, well, x,y",
                'and, well, so "z"',
                "and, well, p\nq",
                "and, well, r",
            ],
            ["a", "b", "c", "d"],
        ],
        "label": [2, 0],
    }


def test_an_empty_line_of_choices_is_skipped(tmp_path):
    file = swag(tmp_path, COLUMNS, choice(label="1"), [], choice(), [])
    assert read_choices(file)["label"] == [1, 2]


def test_spaces_around_the_names_of_columns_are_dropped(tmp_path):
    content = rows((" sentence1", "label ", "sentence2"), ("a", "1", "b"))
    assert table(tmp_path, content, TWO, 4)["label"] == [1]


words = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")),
    min_size=1,
)


@random_tests
@given(
    st.lists(st.tuples(words, words, st.integers(0, 3)), min_size=1, max_size=5)
)
def test_any_text_comes_back(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("tables")
    file = swag(
        folder, COLUMNS, *(choice(a, b, label=str(n)) for a, b, n in lines)
    )
    data = read_choices(file)
    assert data["text"] == [a for a, _, _ in lines]
    assert [four[3] for four in data["choices"]] == [
        f"{b} d" for _, b, _ in lines
    ]
    assert data["label"] == [n for _, _, n in lines]
    content = rows(("sentence1", "label", "sentence2"))
    content += rows(*((a, str(n), b) for a, b, n in lines))
    assert table(folder, content, TWO, 4) == {
        "text": [a for a, _, _ in lines],
        "text_pair": [b for _, b, _ in lines],
        "label": [n for _, _, n in lines],
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([COLUMNS], "must hold examples"),
        ([COLUMNS[:-1], choice()[:-1]], "must have a column `label`"),
        ([COLUMNS, choice(), choice()[:-1]],
         "line 3: there must be 12 columns"),
        ([[*COLUMNS, "sent1"], [*choice(), "He ran."]],
         "must have one column `sent1`"),
        ([COLUMNS, choice(label="4")], "line 2: a label must be one of 0 to 3"),
        ([COLUMNS, choice(sent1="a\nb"), choice(label="")], "line 5: a label"),
    ],
)  # fmt: skip
def test_bad_rows_of_choices_are_refused(lines, message, tmp_path):
    with pytest.raises(ValueError, match=message) as caught:
        read_choices(swag(tmp_path, *lines))
    assert "val.csv" in str(caught.value)


def test_a_quote_that_never_ends_is_refused(tmp_path):
    file = swag(tmp_path, COLUMNS, choice())
    with open(file.path, "a", encoding="utf-8") as opened:
        opened.write('1,v,7,"He sat.')
    with pytest.raises(ValueError, match=r"val\.csv, line 3: .*end of data"):
        read_choices(file)
