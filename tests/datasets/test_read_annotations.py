"""Questions and tags: what is read, and what is refused."""

import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.datasets.readers import read_questions, read_tags
from bertbook.files import DataFile
from tests.helpers.set_files import squad, write

random_tests = settings(max_examples=200, deadline=None, derandomize=True)

CONTEXT = "\n The ferry, 12 m long, left Tolva\u2028at noon. "
START = CONTEXT.index("Tolva")


def question(
    name="q1", answers=(("Tolva", START),), text=" Where from?", **more
):
    given = [{"text": t, "answer_start": start} for t, start in answers]
    return {"id": name, "question": text, "answers": given, **more}


def questions(tmp_path, values, unanswerable=False):
    content = values if isinstance(values, str) else json.dumps(values)
    file = DataFile(write(tmp_path / "dev.json", content))
    return read_questions(file, unanswerable)


# Definition: questions.


def test_questions_are_read_as_columns(tmp_path):
    twice = (("Tolva", START), ("12 m", 13))
    values = squad(
        ("No.", [question("q0", [("No.", 0)])]),
        (CONTEXT, [question("q1", twice, amb=2), question("q2")]),
    )
    assert questions(tmp_path, values) == {
        "id": ["q0", "q1", "q2"],
        "question": [" Where from?"] * 3,
        "context": ["No.", CONTEXT, CONTEXT],
        "answers": [
            [{"text": "No.", "answer_start": 0}],
            [
                {"text": "Tolva", "answer_start": START},
                {"text": "12 m", "answer_start": 13},
            ],
            [{"text": "Tolva", "answer_start": START}],
        ],
    }


def test_questions_without_an_answer_have_an_empty_list(tmp_path):
    plausible = [{"text": "Tolva", "answer_start": START}]
    none = question("q2", [], is_impossible=True, plausible_answers=plausible)
    values = squad((CONTEXT, [question(is_impossible=False), none]))
    data = questions(tmp_path, values, unanswerable=True)
    assert data["answers"] == [plausible, []]
    values = squad((CONTEXT, [question(), question("q2", [])]))
    assert questions(tmp_path, values, True) == data
    assert questions(tmp_path, squad((CONTEXT, [question()])), True)["id"] == [
        "q1"
    ]


@random_tests
@given(st.text(min_size=1), st.data())
def test_any_span_of_any_context_is_read(tmp_path_factory, context, data):
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, len(context)))
    answer = (context[start:end], start)
    values = squad((context, [question(answers=[answer])]))
    table = questions(tmp_path_factory.mktemp("q"), values)
    assert table["context"] == [context]
    (found,) = table["answers"][0]
    assert (found["text"], found["answer_start"]) == answer


# Error: questions.


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (("Tolva", START - 1), " Tolv"),
        (("Tolva", START + 1), "olva\u2028"),
        (("tolva", START), "Tolva"),
        (
            ("Tolva", START - len(CONTEXT)),
            "",
        ),  # Python would count from the end
        (("Tolva", 999), ""),
        (("", START), ""),
        (("noon. ?", CONTEXT.index("noon")), "noon. "),
    ],
)
def test_an_answer_that_is_not_in_its_place_is_refused(answer, found, tmp_path):
    values = squad((CONTEXT, [question(), question("q7", [answer])]))
    message = (
        "dev.json, question 'q7': `answer_start` must point at the answer "
        f"{answer[0]!r} in the context. Received: {answer[1]}, where there is "
        f"{found!r}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        questions(tmp_path, values)


@pytest.mark.parametrize(
    ("one", "unanswerable", "received"),
    [
        (question("q7", []), False, "0 answers, `is_impossible` not there"),
        (question("q7", [], is_impossible=True), False,
         "0 answers, `is_impossible` True"),
        (question("q7", is_impossible=True), True,
         "1 answers, `is_impossible` True"),
        (question("q7", [], is_impossible=False), True,
         "0 answers, `is_impossible` False"),
    ],
)  # fmt: skip
def test_answers_that_contradict_is_impossible_are_refused(
    one, unanswerable, received, tmp_path
):
    rule = "answers or `is_impossible`" if unanswerable else "answers"
    message = f"question 'q7': there must be {rule}. Received: {received}."
    with pytest.raises(ValueError, match=re.escape(message)):
        questions(tmp_path, squad((CONTEXT, [one])), unanswerable)


def test_an_id_that_stands_twice_is_refused(tmp_path):
    values = squad((CONTEXT, [question(), question("q2"), question()]))
    with pytest.raises(ValueError, match="Received: 'q1' twice"):
        questions(tmp_path, values)


def removed(values, *path):
    """Returns the values without the part at a path."""
    values = copy.deepcopy(values)
    part = values
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    return values


WHOLE = squad((CONTEXT, [question()]))
PASSAGE = ("data", 0, "paragraphs", 0)
ANSWER = (*PASSAGE, "qas", 0, "answers", 0)


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (("data",), "the file"),
        (("data", 0, "paragraphs"), "article 'T'"),
        ((*PASSAGE, "context"), "article 'T'"),
        ((*PASSAGE, "qas"), "article 'T'"),
        ((*PASSAGE, "qas", 0, "question"), "question 'q1'"),
        ((*PASSAGE, "qas", 0, "answers"), "question 'q1'"),
        ((*ANSWER, "text"), "question 'q1'"),
        ((*ANSWER, "answer_start"), "question 'q1'"),
    ],
)
def test_a_missing_part_is_refused(path, where, tmp_path):
    message = f"dev.json, {where}: `{path[-1]}` must be "
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        questions(tmp_path, removed(WHOLE, *path))
    assert str(caught.value).endswith("Received: NoneType.")


def test_parts_of_another_type_are_refused(tmp_path):
    wrong = squad((CONTEXT, [question(answers=[("T", "27")])]))
    with pytest.raises(ValueError, match="must be an integer. Received: str"):
        questions(tmp_path, wrong)
    wrong = squad((CONTEXT, [question(answers=[("\n", False)])]))
    with pytest.raises(ValueError, match="must be an integer. Received: bool"):
        questions(tmp_path, wrong)
    for values in ([], {"data": {}}, {"data": [[]]}, {"data": ["x"]}):
        with pytest.raises(ValueError, match="must be a list"):
            questions(tmp_path, values)


@pytest.mark.parametrize("said", ["no", "false", 0, 1, None, [], 0.0])
@pytest.mark.parametrize("answers", [[], [("Tolva", START)]])
def test_is_impossible_that_is_not_true_or_false_is_refused(
    said, answers, tmp_path
):
    values = squad((CONTEXT, [question("q7", answers, is_impossible=said)]))
    message = (
        "question 'q7': `is_impossible` must be true or false. "
        f"Received: {said!r}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        questions(tmp_path, values, unanswerable=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"data":' + "[" * 100_000,
        '{"data": ' + "9" * 5_000 + "}",
        json.dumps(squad((CONTEXT, [question()]))).replace(
            '"question"', '"id": "q2", "question"'
        ),
    ],
    ids=["deep", "long", "twice"],
)
def test_json_that_no_value_can_hold_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match=r"dev\.json is not valid JSON: "):
        questions(tmp_path, text)


def test_files_without_json_or_questions_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"dev\.json is not valid JSON.*line 2"
    ):
        questions(tmp_path, '{"data":\n ]}')
    with pytest.raises(ValueError, match=r"dev\.json must hold examples"):
        questions(tmp_path, squad((CONTEXT, [])))


# Definition: tags.

KINDS = ("LOC", "ORG")
BIO = "The\tO\nNew\tB-LOC\nYork\tI-LOC\nTimes\tB-ORG\n\nNo\tO\n"
EXPECTED = {
    "tokens": [["The", "New", "York", "Times"], ["No"]],
    "tags": [["O", "B-LOC", "I-LOC", "B-ORG"], ["O"]],
}
DOCUMENT = "-DOCSTART-\tO\n\n"
FORMS = {
    "as it should be": BIO,
    "no last line end": BIO.rstrip("\n"),
    "an empty line at the end": BIO + "\n",
    "many empty lines": "\n\n" + BIO.replace("\n\n", "\n\n\n\n") + "\n\n",
    "lines of a tab": BIO.replace("\n\n", "\n\t\n"),
    "Windows": BIO.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + BIO,
    "spaces": BIO.replace("\t", " "),
    "many spaces": BIO.replace("\t", "   ").replace("\n", "  \n"),
    "documents": DOCUMENT + BIO.replace("\n\n", "\n\n" + DOCUMENT),
    "a document without an empty line": DOCUMENT.replace("\n\n", "\n") + BIO,
    "the mark of a document alone": "-DOCSTART-\n\n" + BIO,
    "the older tags": BIO.replace("B-", "I-"),
}


def tags(tmp_path, content, width=2):
    return read_tags(DataFile(write(tmp_path / "a.txt", content)), KINDS, width)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_tagged_file_gives_the_same_columns(form, tmp_path):
    assert tags(tmp_path, FORMS[form]) == EXPECTED


def test_tokens_and_tags_are_the_first_and_the_last_of_four_columns(tmp_path):
    lines = ("-DOCSTART- -X- O O", "", "EU NNP I-NP I-ORG", "sat VBD I-VP O")
    expected = {"tokens": [["EU", "sat"]], "tags": [["B-ORG", "O"]]}
    assert tags(tmp_path, "\n".join(lines), width=4) == expected


def test_a_space_inside_of_a_token_is_kept(tmp_path):
    assert tags(tmp_path, "12 000\tO\n")["tokens"] == [["12 000"]]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I I O", "B I O"),
        ("O I I", "O B I"),
        ("I B I", "B B I"),  # two that touch
        ("i I", "b B"),  # of two types
        ("B i I", "B b B"),
        ("b i", "b i"),
        ("I / I", "B / B"),  # a sentence ends
    ],
)
def test_an_entity_begins_with_b(older, newer, tmp_path):
    """In capitals: places; in small letters: organizations."""
    names = {"O": "O", "B": "B-LOC", "I": "I-LOC", "b": "B-ORG", "i": "I-ORG"}
    text = "\n".join(
        "" if mark == "/" else f"x\t{names[mark]}" for mark in older.split()
    )
    expected = [[names[m] for m in part.split()] for part in newer.split("/")]
    assert tags(tmp_path, text)["tags"] == expected


kinds = st.sampled_from(("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG"))


@random_tests
@given(st.lists(st.lists(kinds, min_size=1), min_size=1))
def test_what_is_read_is_bio_and_stays_so(tmp_path_factory, sentences):
    text = "\n\n".join(
        "\n".join(f"x\t{tag}" for tag in sentence) for sentence in sentences
    )
    folder = tmp_path_factory.mktemp("tags")
    read = tags(folder, text)["tags"]
    assert [len(s) for s in read] == [len(s) for s in sentences]
    for sentence, original in zip(read, sentences, strict=True):
        before = "O"
        for tag, old in zip(sentence, original, strict=True):
            assert tag[1:] == old[1:]
            assert tag[0] != "I" or before[1:] == tag[1:]
            assert tag == old or (tag[0], old[0]) == ("B", "I")
            before = tag
    text = "\n\n".join(
        "\n".join(f"x\t{tag}" for tag in sentence) for sentence in read
    )
    assert tags(folder, text)["tags"] == read


# Error: tags.


@pytest.mark.parametrize(
    "tag",
    [
        "PER",
        "B",
        "B-",
        "I-PER",
        "b-LOC",
        "E-LOC",
        "B_LOC",
        "B-LOC ",
        "o",
        "0",
        "",
    ],
)
def test_a_tag_that_is_not_bio_is_refused(tag, tmp_path):
    message = (
        "a.txt, line 4: a tag must be O, or B- or I- and one of LOC, ORG. "
        f"Received: {tag!r}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        tags(tmp_path, f"The\tO\nend\tO\n\nof\t{tag}\n")


@pytest.mark.parametrize(
    ("line", "width", "found"),
    [("of", 2, 1), ("of\tX\tO", 2, 3), ("of X O", 2, 3), ("of\tO", 4, 2)],
)
def test_a_line_with_another_number_of_columns_is_refused(
    line, width, found, tmp_path
):
    good = "\t".join(["The", *"XXX"[: width - 2], "O"])
    message = (
        f"a.txt, line 3: there must be {width} columns. Received: {found}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        tags(tmp_path, f"{good}\n\n{line}\n", width)


@pytest.mark.parametrize("content", ["\n\n", DOCUMENT])
def test_a_file_without_sentences_is_refused(content, tmp_path):
    with pytest.raises(ValueError, match=r"a\.txt must hold examples"):
        tags(tmp_path, content)
