"""What tools for annotation write, as tokens and tags."""

import json
import warnings

import numpy as np
import pytest

import bertbook as bb
from bertbook.datasets.columns import as_columns

HELLO = {"tokens": [["hello", "New", "York", "."]]}
HELLO["tags"] = [["O", "B-LOC", "I-LOC", "O"]]
TEXT = "hello New York."
RESULT = {"value": {"start": 6, "end": 14, "labels": ["LOC"]}}


def load(folder, name, content, **options):
    path = folder / name
    if not isinstance(content, str):
        content = json.dumps(content)
    path.write_text(content, encoding="utf-8")
    return bb.load_dataset(path, **options)


@pytest.mark.parametrize(
    ("name", "content"),
    {
        "doccano": ("a.jsonl", {"text": TEXT, "label": [[6, 14, "LOC"]]}),
        "doccano, newer": ("a.jsonl", {"id": 3, "text": TEXT, "entities": [
            {"id": 1, "label": "LOC", "start_offset": 6, "end_offset": 14}],
            "relations": []}),
        "a list of rows": ("a.json", [
            {"text": TEXT, "labels": [[6, 14, "LOC"]]}]),
        "spaCy": ("a.json", [[TEXT, {"entities": [[6, 14, "LOC"]]}]]),
        "spaCy, lines": ("a.jsonl", [TEXT, {"entities": [[6, 14, "LOC"]]}]),
        "spaCy, one": ("a.json", [TEXT, {"entities": [[6, 14, "LOC"]]}]),
        "Prodigy": ("a.jsonl", {"text": TEXT, "spans": [
            {"start": 6, "end": 14, "label": "LOC"}]}),
        "Label Studio": ("a.json", [{"id": 1, "data": {"text": TEXT},
            "annotations": [{"result": [RESULT]}]}]),
        "Label Studio, short": ("a.json", [
            {"id": 1, "text": TEXT, "label": [
                {"start": 6, "end": 14, "text": "New York",
                 "labels": ["LOC"]}]}]),
        "a space at the end": ("a.jsonl",
            {"text": TEXT, "label": [[5, 14, "LOC"]]}),
    }.values(),
)  # fmt: skip
def test_entities_by_characters(name, content, tmp_path):
    assert load(tmp_path, name, content) == HELLO


def test_a_text_without_entities_is_all_o(tmp_path):
    rows = [
        {"text": "none", "label": []},
        {"text": "B", "label": [[0, 1, "X"]]},
    ]
    lines = "\n".join(map(json.dumps, rows))
    data = load(tmp_path, "a.jsonl", lines)
    assert data["tags"] == [["O"], ["B-X"]]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_pairs_of_spacy_may_stand_in_lines(name, tmp_path):
    rows = [["B c", {"entities": [[0, 1, "X"]]}], ["d", {}], ["e"]]
    lines = "\n".join(map(json.dumps, rows))
    with pytest.raises(ValueError, match="line 3: a row must be a JSON obj"):
        load(tmp_path, name, lines)
    data = load(tmp_path, name, lines.rpartition("\n")[0])
    assert data["tags"] == [["B-X", "O"], ["O"]]


def test_what_prodigy_rejects_is_left_out(tmp_path):
    spans = [{"start": 0, "end": 1, "label": "X"}]
    rows = [
        {"text": f"B {answer}", "spans": spans, "answer": answer}
        for answer in ("reject", "accept", "ignore", "reject")
    ]
    lines = "\n".join(map(json.dumps, rows))
    with pytest.warns(UserWarning, match="left out, as its `answer`") as caught:
        data = load(tmp_path, "a.jsonl", lines)
    assert data["tokens"] == [["B", "accept"]]
    assert len(caught) == 1
    assert "in 2 more rows" in str(caught[0].message)
    del rows[1]["answer"]
    text = "\n".join(map(json.dumps, rows[1:2]))
    assert load(tmp_path, "a.jsonl", text)["tokens"] == [["B", "accept"]]


def test_what_nobody_submitted_to_label_studio_is_left_out(tmp_path):
    done, other = {"result": [RESULT]}, {"result": []}
    rows = [
        {"data": {"text": TEXT}, "annotations": annotations}
        for annotations in (
            [{**other, "was_cancelled": True}, done],
            [{**done, "was_cancelled": True}],
            [],
        )
    ]
    with pytest.warns(UserWarning, match="2 of 3 texts have no annotation"):
        assert load(tmp_path, "a.json", rows) == HELLO
    rows[0]["annotations"] = [done, other]
    with pytest.warns(UserWarning, match="1 of 1 texts have several annot"):
        assert load(tmp_path, "a.json", rows[:1]) == HELLO


@pytest.mark.parametrize("first", [True, False])
def test_an_entity_says_the_text_at_its_place(first, tmp_path):
    """Two emoji are four characters to a tool that counts in UTF-16."""
    value = {"start": 5, "end": 8, "text": "Ada", "labels": ["PER"]}
    text = "😀😀 Ada lives"
    row = {"data": {"text": text}, "annotations": [{"result": [
        {"value": value}]}]}  # fmt: skip
    if not first:
        row = {"text": text, "label": [value]}
    with pytest.raises(ValueError, match=r"5 to 8 in characters, 'a l'.*'Ada'"):
        load(tmp_path, "a.json", [row])
    value |= {"start": 3, "end": 6}
    assert load(tmp_path, "a.json", [row])["tokens"] == [
        ["😀", "😀", "Ada", "lives"]
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी is", ["हिन्दी", "is"]),
        ("e\u0301te\u0301.", ["e\u0301te\u0301", "."]),
        ("\u0301a", ["\u0301", "a"]),
        ("a_1-b", ["a_1", "-", "b"]),
    ],
)
def test_marks_stay_with_their_letter(text, words, tmp_path):
    row = {"text": text, "label": [[0, 1, "X"]]}
    row["label"][0][1] = len(words[0])
    assert load(tmp_path, "a.json", [row])["tokens"] == [words]


MIDDLE = [
    {"text": "B a Berliner", "label": [[0, 1, "X"], [4, 10, "LOC"]]},
    {"text": "an airport", "label": [[0, 2, "X"], [6, 10, "X"]]},
    {"text": "NewYork", "label": [[0, 3, "X"], [3, 7, "X"]]},
]


def test_an_entity_that_ends_in_a_word_cuts_it_and_is_told(tmp_path):
    lines = "\n".join(map(json.dumps, MIDDLE))
    with pytest.warns(UserWarning, match="begins or ends") as told:
        data = load(tmp_path, "a.jsonl", lines)
    assert data["tokens"] == [
        ["B", "a", "Berlin", "er"], ["an", "air", "port"], ["New", "York"],
    ]  # fmt: skip
    assert data["tags"][0] == ["B-X", "O", "B-LOC", "O"]
    first = (
        "the entity 'Berlin' begins or ends inside the word 'Berliner', which "
        "is cut there"
    )
    assert [str(one.message) for one in told] == [
        f"{tmp_path / 'a.jsonl'}, line 1: {first}; so in 2 more rows."
    ]
    mended = []
    assert load(tmp_path, "a.jsonl", lines, mended=mended) == data
    assert mended[0] == ("line 1", first)
    assert [place for place, _ in mended] == ["line 1", "line 2", "line 3"]


def test_an_entity_beside_signs_spaces_or_in_chinese_cuts_no_word(tmp_path):
    rows = [
        {"text": TEXT, "label": [[0, 5, "X"], [5, 14, "LOC"], [14, 15, "X"]]},
        {"text": "Ada-like, Ada's", "label": [[0, 3, "X"], [10, 13, "X"]]},
        {"text": "\u6211\u5728\u5317\u4eac", "label": [[2, 4, "LOC"]]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ([[0, 5, "A"], [3, 8, "B"]], "must not overlap"),
        ([[6, 99, "LOC"]], "must lie in the text, of 15 characters"),
        ([[5, 6, "LOC"]], "must hold a word. .* 5 to 6, 'LOC', where .* ' '"),
        ([[6, 14, ""]], r"must be \[start, end, type\]"),
        ([[14, 6, "LOC"]], "must end after it begins, at 0 or later"),
        ([[6, 6, "LOC"]], "must end after it begins"),
        ([[-1, 6, "LOC"]], "must end after it begins, at 0 or later"),
        ([[6, 14, "LOC"], "x"], r"must be \[start, end, type\]"),
        ([{"start": 6, "label": "LOC"}], r"must be \[start, end, type\]"),
    ],
)
def test_an_entity_that_is_none_is_named_with_its_line(marks, words, tmp_path):
    with pytest.raises(ValueError, match=f"line 1: .*{words}"):
        load(tmp_path, "a.jsonl", {"text": TEXT, "label": marks})


@pytest.mark.parametrize(
    "table",
    [
        "sentence_id,words,labels\n0,hello,O\n0,New,B-LOC\n0,York,I-LOC\n0,.,O\n",
        "Sentence #,Word,POS,Tag\nSentence: 1,hello,UH,O\n,New,NNP,B-LOC\n"
        ",York,NNP,I-LOC\n,.,.,O\n",
        "sent_id;token;ner\n1;hello;O\n1;New;B-LOC\n1;York;I-LOC\n1;.;O\n",
    ],
)
def test_a_word_a_row(table, tmp_path):
    assert load(tmp_path, "a.csv", table) == HELLO


def test_a_word_a_row_under_names_that_are_told(tmp_path):
    table = "s,w,t\n1,hello,O\n2,York,I-LOC\n"
    names = {"id_column": "s", "tokens_column": "w", "tags_column": "t"}
    data = load(tmp_path, "a.csv", table, **names)
    assert data["tokens"] == [["hello"], ["York"]]
    assert data["tags"] == [["O"], ["B-LOC"]]


def test_a_word_a_row_with_a_tag_that_is_none(tmp_path):
    table = "sentence_id,word,tag\n1,hello,O\n1,York,city\n"
    with pytest.raises(ValueError, match="line 3: a tag must be O, B-TYPE"):
        load(tmp_path, "a.csv", table)


def test_lines_of_comment(tmp_path):
    text = "# id 17 domain=en\nhello O\n\n# id 18\n# O\nYork B-LOC\n"
    data = load(tmp_path, "a.conll", text)
    assert data["tokens"] == [["hello"], ["#", "York"]]


def test_a_tab_at_the_end_of_a_line(tmp_path):
    data = load(tmp_path, "a.conll", "hello\tO\t\nYork\tB-LOC\t\n")
    assert data["tags"] == [["O", "B-LOC"]]


@pytest.mark.parametrize(
    ("tokens", "tags"),
    [
        ("['hello', 'New']", "['O', 'B-LOC']"),
        ("['hello' 'New']", "['O' 'B-LOC']"),
        ("('hello', \"New\")", "array(['O', 'B-LOC'], dtype=object)"),
    ],
)
def test_lists_as_python_writes_them(tokens, tags, tmp_path):
    if tokens.startswith("("):
        tokens = tokens.replace("(", "[").replace(")", "]")
    quoted = ['"' + one.replace('"', '""') + '"' for one in (tokens, tags)]
    data = load(tmp_path, "a.csv", f"tokens,tags\n{','.join(quoted)}\n")
    assert data == {"tokens": [["hello", "New"]], "tags": [["O", "B-LOC"]]}


@pytest.mark.parametrize(
    "answers",
    [
        "{'text': ['York'], 'answer_start': [10]}",
        "[{'text': 'York', 'answer_start': 10}]",
        "{'text': array(['York'], dtype=object), "
        "'answer_start': array([10], dtype=int32)}",
    ],
)
def test_answers_as_python_writes_them(answers, tmp_path):
    table = f'question,context,answers\nWhere?,{TEXT},"{answers}"\n'
    data = load(tmp_path, "a.csv", table)
    assert data["answers"] == [[{"text": "York", "answer_start": 10}]]


def test_code_in_a_cell_is_not_run(tmp_path):
    table = 'tokens,tags\n"__import__(\'os\')","[]"\n'
    with pytest.raises(ValueError, match="`tokens` is not valid JSON"):
        load(tmp_path, "a.csv", table)


PASSAGE = {"context": TEXT, "qas": [
    {"id": "q", "question": "Where?",
     "answers": [{"text": "York", "answer_start": 10}]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", [PASSAGE]),
        ("a.json", PASSAGE),
        ("a.json", {"data": [PASSAGE]}),
        ("a.json", [{"title": "t", "paragraphs": [PASSAGE]}]),
        ("a.jsonl", PASSAGE),
    ],
)
def test_passages_without_the_outer_parts_of_squad(name, content, tmp_path):
    data = load(tmp_path, name, content)
    assert data["answers"] == [[{"text": "York", "answer_start": 10}]]
    assert data["id"] == ["q"]


def test_a_question_without_id_or_answers(tmp_path):
    one = {"question": "Who?", "is_impossible": True}
    two = {"question": "Where?"}
    two["answers"] = {"text": "York", "answer_start": 10}
    data = load(tmp_path, "a.json", [{"context": TEXT, "qas": [one, two]}])
    assert data["id"] == ["0", "1"]
    assert data["answers"] == [[], [{"text": "York", "answer_start": 10}]]


# ------------------------------------------------------------ as the file has


POINTER = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 440\n"
)


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.conll", "a.csv.gz",
             "a.parquet", "a.zip"],
)  # fmt: skip
def test_a_pointer_of_git_lfs_is_called_one(name, tmp_path):
    with pytest.raises(ValueError, match="pointer of Git LFS"):
        load(tmp_path, name, POINTER)


def test_names_that_a_table_in_memory_may_have():
    sizes = {"vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 1, "intermediate_size": 4}
    model = bb.BertForTokenClassification(
        bb.BertConfig(max_position_embeddings=16, **sizes),
        id2label={0: "O", 1: "B-LOC", 2: "I-LOC"},
    )
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "york"]
    model.tokenizer = bb.Tokenizer([*pieces, "."])
    words = [["hello", "york"]]
    same = [
        bb.evaluate(model, {"tokens": words, name: [[0, 1]]})
        for name in ("tags", "ner_tags")
    ]
    assert same[0] == same[1]
    with pytest.raises(KeyError, match="Received: tokens, entity_tags"):
        bb.evaluate(model, {"tokens": words, "entity_tags": [[0, 1]]})
    (tags,) = model.predict_tags(np.array(words, dtype=object))
    assert len(tags) == 2
    with pytest.raises(ValueError, match="`predict_tags` takes lists of"):
        model.predict_entities(words)


class ClassLabel:
    """As in `datasets`: numbers that have names."""

    def __init__(self, *names):
        self.names = list(names)


class Listed:
    """As `datasets.List`: a list of what it holds."""

    def __init__(self, feature):
        self.feature = feature


class Dataset:
    """As in `datasets`: columns, and what they are."""

    def __init__(self, columns, **features):
        self.columns, self.features = columns, features
        self.column_names = list(columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name):
        return self.columns[name]


def test_numbers_of_a_dataset_have_its_names():
    data = Dataset(
        {"label": [1, 0, -1], "tags": [[0, 1], [1], []], "n": [3, 4, 5]},
        label=ClassLabel("bad", "good"),
        tags=Listed(ClassLabel("O", "B-LOC")),
        n=object(),
    )
    columns = as_columns(data, "data")
    assert columns["label"] == ["good", "bad", None]
    assert columns["tags"] == [["O", "B-LOC"], ["B-LOC"], []]
    assert columns["n"] == [3, 4, 5]


def test_numbers_whose_names_are_digits_stay_numbers():
    data = Dataset({"label": [1, 0]}, label=ClassLabel("0", "1"))
    assert as_columns(data, "data")["label"] == [1, 0]


def test_rows_that_do_not_fit_are_left_out_where_a_table_is_mended(tmp_path):
    rows = [
        {"text": TEXT, "label": [[6, 14, "LOC"]]},
        {"text": "", "label": []},
    ]
    mended = []
    lines = "\n".join(map(json.dumps, rows))
    assert load(tmp_path, "a.jsonl", lines, mended=mended) == HELLO
    assert [place for place, _ in mended] == ["line 2"]
    table = "sentence_id,word,tag\n1,hello,O\n1,,O\n1,York,city\n2,York,B-LOC\n"
    mended = []
    data = load(tmp_path, "a.csv", table, mended=mended)
    assert data["tokens"] == [["hello"], ["York"]]
    assert [place for place, _ in mended] == ["line 3", "line 4"]


def test_a_text_that_looks_like_an_array_stays_as_it_is(tmp_path):
    table = "tokens,tags\n\"['array([1])']\",\"['O']\"\n"
    assert load(tmp_path, "a.csv", table)["tokens"] == [["array([1])"]]
