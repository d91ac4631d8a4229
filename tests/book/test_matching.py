"""The rivals of chapter 41 count, and learn what counts can tell."""

import numpy as np
import pytest

from bertbook.book import matching
from bertbook.datasets.load import load_dataset

pytest.importorskip("sklearn")
CORPUS = ["the cat sat", "the dog ran", "the cow ate", "a bird sang a song"]
QUESTIONS = ["Where did the cat sit?", "Which bird sang?"]
CHOICES = [["the dog ran", "the cat sat"], ["a bird sang", "the cow ate"]]


@pytest.mark.parametrize(("split", "count"), [("train", 389), ("dev", 196)])
def test_the_right_sentence_holds_the_answer(split, count):
    data = load_dataset("shelf_questions", split)
    rows = zip(data["question"], data["context"], data["answers"], strict=True)
    rows = {question: rest for question, *rest in rows}
    asked, fours, labels = matching.sentence_choices(split)
    assert len(asked) == len(fours) == len(labels) == count
    assert np.bincount(labels).min() > count / 4 - 4 * np.sqrt(count * 3 / 16)
    for question, four, label in zip(asked, fours, labels, strict=True):
        paragraph, answers = rows[question]
        start = paragraph.index(four[label])
        assert start <= answers[0]["answer_start"] < start + len(four[label])
        assert answers[0]["text"] in four[label]
        assert len(set(four)) == 4
        assert all(sentence in paragraph for sentence in four)


def test_what_is_shared_tells_the_right_choice():
    shared = matching.count_shared(QUESTIONS, CHOICES, CORPUS)
    assert len(shared) == 2 * len(matching.UNITS)
    for name in (
        "cosine of words",
        "share of words",
        "share of 3 to 5 letters",
    ):
        values = shared[name]
        assert values.shape == (2, 2)
        assert (values.argmax(axis=1) == [1, 0]).all()
        assert values.min() >= 0
        assert values.max() <= 1 + 1e-9


def test_a_share_is_that_of_the_weights():
    """Of two words of the question that are equally rare, one is there."""
    shared = matching.count_shared(["cat dog"], [["cat", "cow"]], CORPUS)
    assert shared["share of words"] == pytest.approx(np.array([[0.5, 0]]))
    assert shared["cosine of words"][0, 1] == 0


def test_the_best_mixture_is_the_best_on_the_labels():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=50)
    names = [
        f"{kind} of {u}" for kind in ("cosine", "share") for u in matching.UNITS
    ]
    shared = {name: rng.random((50, 4)) for name in names}
    shared["share of pairs of words"][np.arange(50), labels] += 1
    name, scores = matching.best_mixture(shared, labels)
    assert name.startswith("share of pairs of words and, by 0%")
    assert (scores.argmax(axis=1) == labels).all()


def test_features_see_numbers_names_and_times():
    questions = ["How many came?", "Who came?"]
    choices = [
        ["Twelve of them came.", "They came."],
        ["It was Anna.", "He did."],
    ]
    found = matching.features(questions, choices, [*questions, *choices[0]])
    shared, held = 2 * len(matching.UNITS), 1 + len(matching.HELD)
    assert found.shape == (2, 2, shared + held * (1 + len(matching.ASKED)))
    number, name = found[..., shared + 1], found[..., shared + 2]
    assert number.tolist() == [[1, 0], [0, 0]]
    assert name.tolist() == [[0, 0], [1, 0]]
    with_asked = found[..., shared + held + len(matching.HELD) + 2]
    assert with_asked.tolist() == [[1, 0], [0, 0]]  # how many, and a number


def test_the_regression_finds_the_column_that_tells():
    rng = np.random.default_rng(1)
    labels = rng.integers(4, size=240)
    x = rng.normal(size=(240, 4, 5))
    x[np.arange(240), labels, 3] += 3
    scores = matching.guess_by_regression(x[:120], labels[:120], x[120:])
    assert scores.shape == (120, 4)
    assert (scores.argmax(axis=1) == labels[120:]).mean() > 0.9
    x[..., 3] = rng.normal(size=(240, 4))
    scores = matching.guess_by_regression(x[:120], labels[:120], x[120:])
    assert (scores.argmax(axis=1) == labels[120:]).mean() < 0.45
