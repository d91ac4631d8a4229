"""The rows that mini-qnli and mini-squad are trained on, from toy articles."""

import importlib

import pytest

tool = importlib.import_module("train_tasks")

FERRY = "The ferry to Oslo leaves at noon. The harbor of Oslo is old. It rains."
BEARS = "Bears eat honey and fish. The ferry is red. Bears sleep all winter."
SNOW = "Snow fell at noon. No ferry ran. Nobody went to Oslo."
ROWS = [
    (FERRY, "When does the ferry leave?", "at noon"),
    (
        FERRY,
        "Which harbor is old?",
        "Oslo is old. It rains",
    ),  # of two sentences
    (BEARS, "What do bears eat in winter?", "honey and fish"),
    (SNOW, "Who went to Oslo?", "Nobody"),
]


@pytest.fixture
def squad():
    """A set such as SQuAD."""
    return {
        "question": [question for _, question, _ in ROWS],
        "context": [context for context, _, _ in ROWS],
        "answers": [
            [{"text": text, "answer_start": context.index(text)}]
            for context, _, text in ROWS
        ],
    }


def rows_of(data):
    return list(zip(*data.values(), strict=True))


def as_rows(data):
    return [
        dict(zip(data, values, strict=True))
        for values in zip(*data.values(), strict=True)
    ]


def test_a_question_goes_with_its_sentence_and_with_the_likest_other(squad):
    pairs = rows_of(tool.pair_sentences(squad))
    first, second, third = (row["question"] for row in as_rows(squad)[:3])
    assert pairs[:2] == [
        (first, "The ferry to Oslo leaves at noon.", "entailment"),
        (first, "The harbor of Oslo is old.", "not_entailment"),
    ]
    # An answer in two sentences has none of its own.
    assert pairs[2] == (
        second,
        "The ferry to Oslo leaves at noon.",
        "not_entailment",
    )
    assert pairs[3:5] == [
        (third, "Bears eat honey and fish.", "entailment"),
        (third, "Bears sleep all winter.", "not_entailment"),
    ]
    assert len(pairs) == 2 + 1 + 2 + 2


def test_a_passage_of_one_sentence_has_no_other():
    alone = {
        "question": ["Who went?"],
        "context": ["Nobody went."],
        "answers": [[{"text": "Nobody", "answer_start": 0}]],
    }
    pairs = rows_of(tool.pair_sentences(alone))
    assert pairs == [("Who went?", "Nobody went.", "entailment")]


def test_an_unanswerable_question_goes_to_the_likest_passage(squad):
    found = tool.add_unanswerable(squad, len(ROWS))
    for name, column in squad.items():
        assert found[name][: len(ROWS)] == column
    added = [row[len(ROWS) :] for row in found.values()]
    assert list(zip(*added, strict=True)) == [
        # Not to SNOW, where it stands that it leaves at noon.
        (ROWS[0][1], BEARS, []),
        (ROWS[1][1], BEARS, []),  # nothing in common: the first
        (ROWS[2][1], FERRY, []),
        (ROWS[3][1], FERRY, []),
    ]


def test_a_question_goes_to_a_neighbor_alone_and_not_every_one(
    squad, monkeypatch
):
    monkeypatch.setattr(tool, "NEIGHBORS", 1)
    found = tool.add_unanswerable(squad, 3)
    added = list(
        zip(*(row[len(ROWS) :] for row in found.values()), strict=True)
    )
    assert len(added) == 3
    near = {FERRY: [BEARS], BEARS: [FERRY, SNOW], SNOW: [BEARS]}
    own = {question: context for context, question, _ in ROWS}
    for question, context, answers in added:
        assert context in near[own[question]]
        assert answers == []


def test_a_misleading_question_stands_beside_its_own(squad, monkeypatch):
    monkeypatch.setattr(tool, "SHORTENED", 0)
    monkeypatch.setattr(tool, "MISLEADING", 2)
    rows = as_rows(tool.make_misleading(squad))
    own = {row["question"]: row for row in as_rows(squad)}
    assert len(rows) == 4
    for changed, kept in zip(rows[::2], rows[1::2], strict=True):
        assert kept == own[kept["question"]]
        assert changed["context"] == kept["context"]
        assert changed["question"] not in own
        assert changed["answers"] == []


def test_a_fourth_as_many_are_put_to_another_passage(squad, monkeypatch):
    monkeypatch.setattr(tool, "mislead", lambda question, *_: f"Not {question}")
    rows = as_rows(tool.make_misleading(squad))
    assert len(rows) == 2 * len(ROWS) + 1
    own = {row["question"]: row["context"] for row in as_rows(squad)}
    last = rows[-1]
    assert last["answers"] == []
    assert last["context"] != own[last["question"]]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("mini-squad",),
        ("mini-ner", "out"),
        ("mini-qnli", "out"),  # the model that ships is not its start
        ("mini-squad", "out", "start"),
    ],
)
def test_a_wrong_command_says_how_it_is_called(words, monkeypatch):
    monkeypatch.setattr("sys.argv", ["train_tasks.py", *words])
    with pytest.raises(SystemExit, match="NAME OUT"):
        tool.main()


def test_a_shorter_passage_is_whole_sentences_with_the_answer(
    squad, monkeypatch
):
    monkeypatch.setattr(tool, "SHORTENED", 1)
    monkeypatch.setattr(tool, "SHORTEST", 20)
    monkeypatch.setattr(tool, "LONGEST", 50)
    data = {name: column * 20 for name, column in squad.items()}
    data["answers"] = [*data["answers"][:40], *([] for _ in range(40))]
    found = tool.shorten(data)
    assert found["question"] == data["question"]
    assert any(len(row) > 30 for row in found["context"])
    rows = zip(*data.values(), *found.values(), strict=True)
    for _, before, (*old,), _, context, (*new,) in rows:
        assert context in before
        sentences = tool.sentences_of(before)[0]
        assert set(tool.sentences_of(context)[0]) <= set(sentences)
        assert len(context) < len(before)
        assert [a["text"] for a in new] == [a["text"] for a in old]
        for answer in new:
            text, start = answer["text"], answer["answer_start"]
            assert context[start : start + len(text)] == text


def test_a_set_is_halved_between_passages(squad):
    data = squad | {"id": [3, 4, 1, 2]}
    early, late = tool.halve(data)
    assert set(early["context"]) == {FERRY}
    assert set(late["context"]) == {BEARS, SNOW}
    assert [*as_rows(early), *as_rows(late)] == as_rows(data)
    mixed = {name: column[::2] + column[1::2] for name, column in data.items()}
    halves = tool.halve(mixed)
    assert [half["id"] for half in halves] == [[3, 4], [1, 2]]
