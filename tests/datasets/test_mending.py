"""Ordinary exports of a table are read, and each change is told."""

import pytest

from bertbook.datasets.load import load_dataset
from bertbook.datasets.mending import one_spelling

ROWS = [
    ("Ticket", "Message", "Department"),
    ("1", "The café is dark; the lamp is broken.", "Facilities"),
    ("2", "My password, again.", "IT"),
    ("3", "Who pays my ticket?", "Travel"),
    ("4", "my  PASSWORD, again.", "it"),
    ("5", "", "HR"),
    ("6", "No department", ""),
    ("7", "My screen is black.", "it "),
    ("8", "My mouse is gone.", "IT"),
]
TOLD = {"text_column": "message", "label_column": "department"}
EXPECTED = {
    "text": [
        "The café is dark; the lamp is broken.",
        "My password, again.",
        "Who pays my ticket?",
        "My screen is black.",
        "My mouse is gone.",
    ],
    "label": ["Facilities", "IT", "Travel", "IT", "IT"],
}
REASONS = {
    "`Department`": "'it' is read as 'IT', 2 rows",
    "line 5": "the text of line 3 again",
    "line 6": "`Message` must hold a text. Received: ''",
    "line 7": "`Department` must not be missing. Received: ''",
}


def written(delimiter, quotes=True, end="\n"):
    """The table as a program exports it."""
    lines = []
    for row in ROWS:
        needs = [delimiter in cell or '"' in cell for cell in row]
        cells = [
            f'"{cell}"' if quotes and need else cell
            for cell, need in zip(row, needs, strict=True)
        ]
        lines.append(delimiter.join(cells))
    return end.join(lines) + end


EXPORTS = {
    "UTF-8 with commas": ("a.csv", written(",").encode()),
    "Excel, CSV UTF-8": ("a.csv", written(";", end="\r\n").encode("utf-8-sig")),
    "Excel in the West": ("a.csv", written(";", end="\r\n").encode("cp1252")),
    "with a line sep=;": ("a.csv", ("sep=;\n" + written(";")).encode()),
    "tabs": ("a.tsv", written("\t", quotes=False).encode()),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_gives_the_same_rows_and_tells_why(name, tmp_path):
    file, content = EXPORTS[name]
    (tmp_path / file).write_bytes(content)
    mended = []
    assert load_dataset(tmp_path / file, mended=mended, **TOLD) == EXPECTED
    shift = name.startswith("with a line")
    expected = {
        place
        if place == "`Department`"
        else f"line {int(place[5:]) + shift}": why
        for place, why in REASONS.items()
    }
    if shift:
        expected["line 6"] = "the text of line 4 again"
    told = dict(mended)
    if name == "Excel in the West":
        assert "Windows-1252 it has '1;\"The café" in told.pop("line 2")
    assert told == expected


def test_without_it_nothing_is_mended(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(written(","), encoding="utf-8")
    with pytest.raises(ValueError, match="line 6: `Message` must hold a text"):
        load_dataset(path, **TOLD)


def test_short_and_long_rows_are_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label\na;x\nb\nc;y\nd;x;;\ne;y\n", encoding="utf-8")
    mended = []
    data = load_dataset(path, mended=mended)
    assert data == {"text": ["a", "c", "e"], "label": ["x", "y", "y"]}
    assert mended == [
        ("line 3", "there must be 2 columns. Received: 1"),
        ("line 5", "there must be 2 columns. Received: 4"),
    ]


def test_an_equal_text_with_another_label_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na b,x\nA  B,y\nc,y\n", encoding="utf-8")
    mended = []
    assert load_dataset(path, mended=mended)["label"] == ["x", "y"]
    assert mended == [
        ("line 3", "the text of line 2 again, with 'y' and not 'x'")
    ]


def test_numbers_are_labels_as_they_are(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "label": 1}\n{"text": "b", "label": null}\n')
    mended = []
    assert load_dataset(path, mended=mended) == {"text": ["a"], "label": [1]}
    assert mended == [("line 2", "`label` must not be missing. Received: None")]


@pytest.mark.parametrize(
    ("labels", "expected", "told"),
    [
        (["5,00", "-0,25", "3"], [5.0, -0.25, 3.0], 2),
        (["5,00", "n/a", "3"], [5.0, 3.0], 1),
        ([" 0,5 ", "1,5", ""], [0.5, 1.5], 2),
        (["1,5", "a,b", "c"], ["1,5", "a,b", "c"], 0),
        (["5", "4", "3"], [5, 4, 3], 0),
    ],
)
def test_a_decimal_comma_is_read_and_told_once(
    labels, expected, told, tmp_path
):
    path = tmp_path / "a.csv"
    rows = [f"t {n};{label}" for n, label in enumerate(labels)]
    path.write_text("\n".join(["text;score", *rows]), encoding="utf-8")
    mended = []
    data = load_dataset(path, label_column="score", mended=mended)
    assert data["label"] == expected
    first = labels[0].strip()
    rows = f"{told} row{'s' * (told > 1)}"
    why = f"{first!r} is read as {first.replace(',', '.')}, {rows}"
    lines = [why for place, why in mended if place == "`score`"]
    assert lines == ([why] if told else [])


def test_a_decimal_comma_beside_a_decimal_point_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label\na;1,500\nb;2.5\nc;3,5\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must be all integers, all scores"):
        load_dataset(path, mended=[])


def test_a_weight_may_have_a_decimal_comma(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text;label;weight\na;x;0,5\nb;y;2\n", encoding="utf-8")
    assert load_dataset(path, mended=[])["weight"] == [0.5, 2.0]


def test_an_answer_that_is_not_in_the_context_is_left_out(tmp_path):
    path = tmp_path / "a.csv"
    lines = [
        "Question;Context;Answer",
        "Who wrote it?;Ada wrote it in 1843.;Ada",
        "Who read it?;Ada wrote it in 1843.;",
        "When?;Ada wrote it in 1843.;in 1900",
        "What fell?;A cup fell, and a cup broke.;cup",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    mended = []
    data = load_dataset(path, mended=mended)
    assert data["answers"] == [
        [{"text": "Ada", "answer_start": 0}],
        [],
        [{"text": "cup", "answer_start": 2}],
    ]
    assert mended == [
        (
            "line 4",
            "`Answer` must stand in the context as it is written, or be empty "
            "where it holds no answer. Received: 'in 1900'",
        ),
        ("line 5", "the answer stands 2 times; the first is taken"),
    ]


def test_words_and_tags_may_have_spaces_between_them(tmp_path):
    path = tmp_path / "a.csv"
    lines = [
        "tokens;tags",
        "Ada lives here .;B-PER O O O",
        "Two words;O",
        "Oslo ;B-LOC",
        "Rome;LOC",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    mended = []
    data = load_dataset(path, mended=mended)
    assert data == {
        "tokens": [["Ada", "lives", "here", "."], ["Oslo"]],
        "tags": [["B-PER", "O", "O", "O"], ["B-LOC"]],
    }
    assert [place for place, _ in mended] == ["line 3", "line 5"]


def test_neither_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\na\x81,1\n")
    with pytest.raises(
        ValueError, match="0x81 in line 2, which Windows-1252 does"
    ):
        load_dataset(path, mended=[])
    path.write_bytes("text,label\na,1\n".encode("utf-16"))
    for mended in (None, []):
        with pytest.raises(ValueError, match=r"as UTF-16 has; .* UTF-8\.$"):
            load_dataset(path, mended=mended)


def test_a_list_is_needed_and_a_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\na,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="`mended` must be a list.*bool"):
        load_dataset(path, mended=True)
    with pytest.raises(ValueError, match="`mended` is of own files alone"):
        load_dataset("opinions", mended=[])


def test_the_most_frequent_spelling_stays():
    names = ["IT", "IT", "it", "HR", "hr ", "hr "]
    assert one_spelling(names) == {
        "IT": "IT",
        "it": "IT",
        "HR": "hr ",
        "hr ": "hr ",
    }
