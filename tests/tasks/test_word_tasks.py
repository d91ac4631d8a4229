"""Tasks about parts of texts: windows, spans and tags there and back."""

from types import SimpleNamespace

import numpy as np
import pytest

from bertbook.batches.ragged import compute
from bertbook.datasets.columns import under_its_names, with_known_names
from bertbook.tasks.base import Settings
from bertbook.tasks.word_tasks import Questions, Tags, find_entities_in
from tests.helpers.toys import TOY, stand_in

CONTEXTS = ["b c d e f g h i j k l", "Once, x y z."]
QUESTIONS = ["w ?", "v u"]
SHORT = Settings(max_length=10, stride=3)
NAMES = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
WORDS = [["ab", "c", "def", "g"], ["h"], ["i", "j", "k", "l", "m", "n", "o"]]
TAGS = [
    ["B-PER", "I-PER", "O", "B-LOC"],
    ["O"],
    ["O", "B-LOC", "I-LOC", "O", "B-PER", "O", "O"],
]


def questions(answers=None, settings=SHORT, threshold=None):
    data = {"question": QUESTIONS, "context": CONTEXTS}
    if answers is not None:
        data["answers"] = [
            [
                {"text": text, "answer_start": CONTEXTS[row].index(text)}
                for text in texts
            ]
            for row, texts in enumerate(answers)
        ]
    model = stand_in()
    model.no_answer_threshold = threshold
    return Questions(model, data, settings)


def tags(settings=SHORT, words=WORDS, labels=TAGS):
    return Tags(
        stand_in(names=NAMES), {"tokens": words, "tags": labels}, settings
    )


def span_logits(task, height=9.0):
    """What a model gives that has learned `task` by heart; padded."""
    outputs = []
    targets = task.rows.targets
    for row, ids in enumerate(task.rows.input_ids):
        logits = np.zeros((2, len(ids) + 3))
        logits[0, targets["start_logits"][row]] = height
        logits[1, targets["end_logits"][row]] = height
        outputs.append({"start_logits": logits[0], "end_logits": logits[1]})
    return outputs


def tag_logits(task):
    """The same for tags; what does not count is nonsense."""
    rng = np.random.default_rng(0)
    outputs = []
    for labels, weights in zip(
        task.rows.targets[""], task.rows.weights, strict=True
    ):
        logits = rng.normal(size=(len(labels) + 2, len(NAMES))) * 9
        logits[: len(labels)][weights > 0] = 9 * np.eye(5)[labels[weights > 0]]
        outputs.append(logits)
    return outputs


# Definition.


def test_the_columns_of_answers_by_loops():
    task = questions([["e f"], ["y z"]])
    task.learn()
    wanted = ["e f", "e f", "y z"]
    held = []
    for ids, start, end in zip(
        task.rows.input_ids, *task.rows.targets.values(), strict=True
    ):
        pieces = [TOY.vocabulary[i] for i in ids[start : end + 1]]
        held.append(" ".join(pieces))
    assert held[:2] == wanted[:2]  # both windows hold it whole
    assert held[2] == "[CLS]"
    assert held[-1] == "y z"
    assert list(task.rows.targets) == ["start_logits", "end_logits"]


def test_the_first_answer_is_learned():
    task, other = questions([["e f", "b"], ["x"]]), questions([["e f"], ["x"]])
    for each in (task, other):
        each.learn()
    for name, column in task.rows.targets.items():
        assert np.array_equal(column, other.rows.targets[name])


def test_answers_come_back_as_characters():
    task = questions([["e f"], ["y z"]])
    task.learn()
    found = task.predictions(span_logits(task))
    for row, context, text in zip(found, CONTEXTS, ["e f", "y z"], strict=True):
        assert row["text"] == text == context[row["start"] : row["end"]]
        assert 0.9 < row["score"] <= 1.0
    assert task.score(span_logits(task)) == {"exact_match": 1.0, "f1": 1.0}


def test_no_answer_is_longer_than_max_answer_length():
    settings = Settings(max_length=10, stride=3, max_answer_length=1)
    task = questions([["e f"], ["y z"]], settings)
    task.learn()
    found = task.predictions(span_logits(task))
    assert all(" " not in row["text"] for row in found)


def test_no_answer_wins_where_there_is_a_threshold():
    task = questions([[], ["y z"]])
    assert task.version() == 2
    task.learn()
    outputs = span_logits(task)
    with_threshold = questions([[], ["y z"]], threshold=0.0)
    first, second = with_threshold.predictions(outputs)
    assert (first["text"], first["start"], first["end"]) == ("", 0, 0)
    assert second["text"] == "y z"
    assert task.predictions(outputs)[0]["text"] != ""
    assert with_threshold.score(outputs) == {
        "exact_match": 1.0, "f1": 1.0, "answered_exact_match": 1.0,
        "answered_f1": 1.0, "unanswered_exact_match": 1.0, "unanswered_f1": 1.0,
    }  # fmt: skip


def test_the_best_threshold_is_the_best():
    task = questions([[], ["y z"]])
    task.learn()
    outputs = span_logits(task)
    for row in outputs:  # "no answer" is 20 too low everywhere
        row["start_logits"][0] -= 20
    threshold = task.best_threshold(outputs)
    assert threshold < 0
    for level, f1 in ((threshold, 1.0), (0.0, 0.5), (-99.0, 0.5)):
        judged = questions([[], ["y z"]], threshold=level)
        assert judged.score(outputs)["f1"] == f1


@pytest.mark.parametrize("strategy", ["first", "last", "all"])
def test_tags_come_back_to_their_words(strategy):
    task = tags(Settings(max_length=6, stride=2, strategy=strategy))
    task.learn()
    assert len(task.rows) > len(WORDS)
    outputs = tag_logits(task)
    assert task.predictions(outputs) == TAGS
    perfect = dict.fromkeys(["precision", "recall", "f1", "word_accuracy"], 1.0)
    assert task.score(outputs) == perfect


def test_each_word_counts_once():
    task = tags(Settings(max_length=6, stride=2))
    task.learn()
    counted = sum(float(row.sum()) for row in task.rows.weights)
    assert counted == sum(map(len, WORDS))


def test_tags_that_break_the_rules_are_mended():
    task = tags(SHORT, [["a", "b"]], [["O", "O"]])
    outputs = [np.eye(5)[[4, 4, 3, 4]]]  # [CLS] O, I-PER [SEP]
    assert task.predictions(outputs) == [["O", "B-PER"]]


def test_the_strategy_of_the_training_is_that_of_the_model():
    model = stand_in(names=NAMES)
    extra = {"tag_strategy": "last"}
    model.config = model.config.replace(extra=extra)
    data = {"tokens": WORDS, "tags": TAGS}
    assert Tags(model, data, Settings()).strategy == "last"
    assert Tags(model, data, Settings(strategy="all")).strategy == "all"
    assert Tags(stand_in(names=NAMES), data, Settings()).strategy == "first"


def letter_model():
    """Tags the letter p as a person's first word, q as the next, r as place."""
    kinds = {"p": "B-PER", "q": "I-PER", "r": "I-LOC"}
    table = np.tile(np.eye(5)[4], (len(TOY), 1)) * 5.0
    for letter, tag in kinds.items():
        table[TOY.vocabulary.index(letter)] = np.eye(5)[NAMES.index(tag)] * 5.0
    return stand_in(
        names=NAMES, compute_on_batch=lambda batch: table[batch["input_ids"]]
    )


def test_entities_in_raw_texts():
    texts = ["a p q. b r", "", "p", " ... ", "é  p\tq q"]
    found = find_entities_in(letter_model(), texts)
    probability = np.exp(5) / (np.exp(5) + 4)
    for text, entities in zip(texts, found, strict=True):
        for entity in entities:
            assert text[entity["start"] : entity["end"]] == entity["text"]
            assert entity["score"] == pytest.approx(probability, rel=1e-5)
    assert [[(e["text"], e["type"]) for e in row] for row in found] == [
        [("p q", "PER"), ("r", "LOC")], [], [("p", "PER")], [],
        [("p\tq q", "PER")],
    ]  # fmt: skip


def test_a_word_longer_than_the_model_is_cut():
    text = "q-" * 300 + "p"
    ((*_, last),) = find_entities_in(letter_model(), [text])
    assert text[last["start"] : last["end"]] == last["text"]
    assert last["end"] == len(text)


def test_the_older_tags_are_read_as_the_newer():
    older = {"tokens": [["p", "q", "r"]], "tags": [["I-PER", "I-PER", "I-LOC"]]}
    newer = older | {"tags": [["B-PER", "I-PER", "B-LOC"]]}
    tasks = [Tags(letter_model(), d, Settings()) for d in (older, newer)]
    scores = [task.score(compute(task.model, task.rows, 8)) for task in tasks]
    assert scores[0] == scores[1]
    for task in tasks:
        task.learn()
    columns = [task.rows.targets[""] for task in tasks]
    for first, second in zip(*columns, strict=True):
        assert np.array_equal(first, second)


# Property.


def test_entities_do_not_depend_on_the_other_texts_or_their_windows():
    texts = ["a p q. b r", "p", "a " * 20 + "p q", "r r"]
    model = letter_model()
    together = find_entities_in(model, texts)
    alone = [find_entities_in(model, [text])[0] for text in texts]
    backwards = find_entities_in(model, texts[::-1])[::-1]
    windows = find_entities_in(model, texts, max_length=5, batch_size=2)
    for other in (alone, backwards, windows):
        for first, second in zip(together, other, strict=True):
            assert [e["text"] for e in first] == [e["text"] for e in second]
            assert [e["start"] for e in first] == [e["start"] for e in second]


@pytest.mark.parametrize("make", [lambda: questions([["b"], []]), tags])
def test_a_blank_score_has_the_names_of_a_real_one(make):
    task = make()
    task.learn()
    outputs = (span_logits if isinstance(task, Questions) else tag_logits)(task)
    assert list(task.score(outputs)) == list(task.blank_score())
    assert task.main_metric in task.blank_score()


def test_windows_are_as_long_as_the_model_allows_and_no_longer_than_384():
    def longest(limit):
        model = stand_in(names=NAMES)
        model.config = model.config.replace(max_position_embeddings=limit)
        task = Tags(model, {"tokens": [["a"] * 900]}, Settings())
        return task.rows.lengths().max()

    assert [longest(limit) for limit in (17, 384, 512)] == [17, 384, 384]


ANSWERS = [[{"text": "c d", "answer_start": 2}], []]


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_answers_as_columns_are_those_of_a_list(kind):
    """The form of huggingface/datasets, also of its NumPy format."""
    columns = [
        {
            name: kind([answer[name] for answer in answers])
            for name in ("text", "answer_start")
        }
        for answers in ANSWERS
    ]
    data = {"question": QUESTIONS, "context": CONTEXTS}
    tasks = [
        Questions(stand_in(), data | {"answers": answers}, SHORT)
        for answers in (ANSWERS, columns)
    ]
    for task in tasks:
        task.learn()
    for name, spans in tasks[0].rows.targets.items():
        assert tasks[1].rows.targets[name].tolist() == spans.tolist()
    assert tasks[1].version() == 2
    assert tasks[0].blank_score() == tasks[1].blank_score()


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_integers_are_the_tags_that_the_model_names(kind):
    numbers = [kind([NAMES.index(tag) for tag in row]) for row in TAGS]
    named, numbered = tags(), tags(labels=numbers)
    for task in (named, numbered):
        task.learn()
    for one, other in zip(
        named.rows.targets[""], numbered.rows.targets[""], strict=True
    ):
        assert one.tolist() == other.tolist()
    outputs = tag_logits(named)
    assert numbered.score(outputs) == named.score(outputs)


def test_a_model_of_the_older_tags_learns_them():
    older = {0: "B-LOC", 1: "I-LOC", 2: "I-PER", 3: "O"}
    words = [["a", "b", "c", "d", "e"]]
    learned = []
    for labels in (
        ["I-PER", "I-PER", "I-LOC", "I-LOC", "O"],
        ["B-PER", "I-PER", "B-LOC", "I-LOC", "O"],
    ):
        task = Tags(
            stand_in(names=[older[i] for i in range(4)]),
            {"tokens": words, "tags": [labels]},
            SHORT,
        )
        task.learn()
        (row,) = task.rows.targets[""]
        learned.append(row[1:6].tolist())
    assert learned == [[2, 2, 1, 1, 3]] * 2


# Error.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": ["a", ""]}, "Row 1: `context` must not be empty"),
        ({"context": ["a", " \n"]}, "Row 1: `context` must not be empty"),
        ({"question": ["a", ""]}, "Row 1: `question` must not be empty"),
        ({"question": ["a", 3]}, "Row 1: `question` must be a string.* int"),
        ({"context": ["a", None]}, "Row 1: `context` must be a string"),
        (
            {"question": ["a", "b " * 9]},
            "Row 1: `question` must leave room .* 10.* Received: 9 pieces",
        ),
        ({"question": ["a"]}, "one length.*'question': 1, 'context': 2"),
        ({"question": "ab"}, "`question` must be a list .*: str"),
        *(
            ({"answers": [[], wrong]}, "Row 1: `answers` must be a list of di")
            for wrong in (
                {"text": ["a"], "answer_start": []},
                {"text": ["a"]},
                {"text": [3], "answer_start": [0]},
                {"text": ["a"], "answer_start": ["0"]},
                {"text": ["a"], "answer_start": [0.0]},
                {"text": "a", "answer_start": 0},
                [{"text": "a", "answer_start": True}],
                {},
            )
        ),
        ({"answers": [[], "a"]}, "Row 1: `answers` must stand in the context"),
        ({"answers": [[], ["a"]]}, "Row 1: `answers` must be a list of dicts"),
        ({"answers": [[], None]}, "Row 1: `answers` must be a list of dicts"),
    ],
)
def test_bad_questions_are_refused(change, message):
    data = {"question": QUESTIONS, "context": CONTEXTS} | change
    with pytest.raises(ValueError, match=message):
        Questions(stand_in(), data, SHORT)


@pytest.mark.parametrize("name", ["answer", "answers"])
@pytest.mark.parametrize("are_rows", [True, False])
def test_an_answer_of_a_table_in_memory_may_be_a_text(name, are_rows):
    columns = {
        "question": ["When?"] * 6,
        "context": ["In 1843 ."] * 6,
        name: ["1843", " 1843 ", 1843, 1843.0, np.int64(1843), ""],
    }
    rows = [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]
    settings = Settings(max_length=16)
    task = Questions(stand_in(), rows if are_rows else columns, settings)
    task.learn()
    expected = [{"text": "1843", "answer_start": 3}]
    assert task.data["answers"] == [expected] * 5 + [[]]
    columns[name][1] = "by Eve"
    data = with_known_names(columns)
    with (
        pytest.raises(ValueError, match=f"`{name}` must stand in the .*by Eve"),
        under_its_names(data),
    ):
        Questions(stand_in(), data, settings)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"text": "b", "answer_start": 0}, "Row 1: `answer_start` must point"),
        ({"text": "b", "answer_start": -9}, "Row 1: `answer_start` must point"),
        ({"text": "b", "answer_start": 99}, "Row 1: `answer_start` must point"),
        ({"text": "b"}, "Row 1: `answer_start` must point .* None"),
        ({"text": "", "answer_start": 0}, "Row 1: `text` must hold at least"),
        ({"text": " ", "answer_start": 5}, "Row 1: `text` must hold at least"),
    ],
)
def test_bad_answers_are_refused(answer, message):
    good = [{"text": "b", "answer_start": 0}]
    data = {"question": QUESTIONS, "context": CONTEXTS}
    task = Questions(stand_in(), data | {"answers": [good, [answer]]}, SHORT)
    with pytest.raises(ValueError, match=message):
        task.learn()


def test_questions_that_share_an_id_are_refused():
    data = {"question": QUESTIONS, "context": CONTEXTS, "id": ["x", "x"]}
    task = Questions(stand_in(), data | {"answers": [[], []]}, SHORT)
    with pytest.raises(ValueError, match="must have different ids.* 'x'"):
        task.blank_score()


@pytest.mark.parametrize(
    ("words", "labels", "message"),
    [
        ([["a"], []], [["O"], []], "Row 1: `words` must be a list of at le"),
        ([["a"], "b"], [["O"], ["O"]], "Row 1: `words` must be a list .*'b'"),
        ([["a"], [""]], [["O"], ["O"]], r"Row 1: `words\[0\]` must not be em"),
        ([["a"], [3]], [["O"], ["O"]], r"Row 1: `words\[0\]` must be a string"),
        ([["a"], ["b" * 20]], [["O"], ["O"]], "Row 1: `max_length` must hold"),
    ],
)
def test_bad_words_are_refused(words, labels, message):
    with pytest.raises(ValueError, match=message):
        tags(words=words, labels=labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["O"], ["O"]], r"`tags\[1\]` must hold a tag for each of 2.* 1"),
        ([["O"], "OO"], r"`tags\[1\]` must be a list of tags"),
        ([["O"], ["O", "PER"]], r"Row 1: `tags\[1\]` must be O, B-TYPE.*'PER'"),
        ([["O"], ["O", 3]], r"Row 1: `tags\[1\]` must be O, B-TYPE or .*: 3"),
        ([["O"], [4, 5]], r"`tags\[1\]` must hold numbers in \[0, 5\).*: 5"),
        ([["O"], [4, -1]], r"`tags\[1\]` must hold numbers .*: -1"),
        ([[4], [4, True]], r"Row 1: `tags\[0\]` must be O, B-TYPE or"),
        ([[4.0], ["O", "O"]], r"Row 0: `tags\[0\]` must be O, B-TYPE or"),
        ([["O"], ["O", "S-PER"]], r"`tags\[1\]` .* IOBES and BILOU .*'S-PER'"),
        ([["O"], ["O", "U-PER"]], "write S- and U- as B-, the others as I-"),
        ([["O"], ["B-PER", "L-PER"]], "IOBES and BILOU are not read"),
        ([["O"], ["O", "NNP"]], r"`tags\[1\]` must be O, B-TYPE .*: 'NNP'"),
    ],
)
def test_bad_tags_are_refused(labels, message):
    task = tags(words=[["a"], ["b", "c"]], labels=labels)
    for call in (task.learn, task.blank_score):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_tag_that_the_model_does_not_know_is_scored_but_not_learned():
    task = tags(words=[["a"], ["b"]], labels=[["O"], ["B-ORG"]])
    with pytest.raises(ValueError, match=r"`tags\[1\]` must be .*'B-ORG'"):
        task.learn()
    assert task.blank_score()["recall"] == 0.0  # it may be scored


def test_labels_are_needed():
    for task, name in (
        (questions(), "answers"),
        (Tags(stand_in(names=NAMES), {"tokens": WORDS}, SHORT), "tags"),
    ):
        for call in (task.learn, task.blank_score):
            with pytest.raises(KeyError, match=f"must hold the column {name}"):
                call()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Settings(max_length=18),
            "at most `max_position_embeddings`, 17.*: 18",
        ),
        (
            Settings(max_length=4.5),
            "`max_length` must be an integer >= .*: 4.5",
        ),
        (Settings(max_length="x"), "`max_length` must be an integer >= .*'x'"),
        (Settings(max_length=9, stride=7), "`stride` must be .* 7"),
        (Settings(max_length=9, stride=0), "`stride` must be .* 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    for make in (questions, tags):
        with pytest.raises(ValueError, match=message):
            make(settings=settings)


def test_an_unknown_strategy_is_refused():
    task = tags(Settings(strategy="middle"))
    with pytest.raises(
        ValueError, match="`strategy` must be one of .*'middle'"
    ):
        task.learn()


def test_a_model_without_tokenizer_or_bio_tags_is_refused():
    data = {"tokens": WORDS, "tags": TAGS}
    task = Tags(stand_in(), data, SHORT)
    with pytest.raises(ValueError, match="`model` must know its tags"):
        task.learn()
    odd = stand_in(
        names=["NOUN", "VERB"],
        compute_on_batch=lambda batch: np.ones((*batch["input_ids"].shape, 2)),
    )
    with pytest.raises(ValueError, match="must be O, B-TYPE .*'NOUN'"):
        find_entities_in(odd, ["a"])
    blind = SimpleNamespace(**vars(stand_in()) | {"tokenizer": None})
    for call in (
        lambda: Tags(blind, data, SHORT),
        lambda: find_entities_in(blind, ["a"]),
        lambda: Questions(
            blind, {"question": QUESTIONS, "context": CONTEXTS}, SHORT
        ),
    ):
        with pytest.raises(ValueError, match="`model` needs a tokenizer"):
            call()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "`texts` must hold at least one text"),
        ("p q", "`texts` must be a list of strings. Received: str"),
        (["p", 3], r"`texts\[1\]` must be a string. Received: int"),
    ],
)
def test_bad_texts_are_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        find_entities_in(letter_model(), texts)


@pytest.mark.parametrize("name", [["q"], None, 1.5])
def test_an_id_that_is_none_is_named(name):
    answers = [[{"text": "b", "answer_start": 0}]]
    data = {"question": ["a"], "context": ["b c"], "answers": answers}
    task = Questions(stand_in(), data | {"id": [name]}, Settings())
    with pytest.raises(ValueError, match=r"`id\[0\]` must be a string or an"):
        task.blank_score()
