"""Questions made unanswerable by one changed word."""

import importlib

import numpy as np
import pytest

tool = importlib.import_module("misleading")

PASSAGE = (
    "In 1960 the ferry to Bergen was first. In 1950 that to Oslo was the "
    "largest, with 1,200 seats, until Alan of Kent sold it."
)


def changes(rule, question, answer="nobody"):
    return list(rule(question, PASSAGE, answer))


def test_every_opposite_has_its_own():
    assert len(tool.OPPOSITES) == 2 * len(tool.PAIRS)
    for word, other in tool.OPPOSITES.items():
        assert tool.OPPOSITES[other] == word != other


def test_a_number_is_exchanged_for_every_other_of_the_passage():
    question = "Which ferry had 1,200 seats in 1950?"
    assert changes(tool.exchange_numbers, question) == [
        "Which ferry had 1960 seats in 1950?",
        "Which ferry had 1,200 seats in 1960?",
    ]


def test_a_name_is_exchanged_for_another_name_and_not_for_the_answer():
    question = "When was the ferry to Oslo sold?"
    assert changes(tool.exchange_names, question) == [
        "When was the ferry to Alan of Kent sold?",
        "When was the ferry to Bergen sold?",
    ]
    assert changes(tool.exchange_names, question, "by Alan of Kent") == [
        "When was the ferry to Bergen sold?"
    ]


def test_the_first_word_of_a_question_is_no_name():
    assert not changes(tool.exchange_names, "When was it sold?")


def test_a_word_is_exchanged_for_its_opposite():
    question = "Which first ferry was the largest?"
    assert changes(tool.exchange_antonyms, question) == [
        "Which last ferry was the largest?",
        "Which first ferry was the smallest?",
    ]


def test_a_question_is_denied_behind_its_verb():
    assert tool.deny("Who is there?") == "Who is not there?"
    assert tool.deny("Who left?") is None


@pytest.mark.parametrize("denied", [0, 1])
def test_a_misled_question_differs_in_one_place(monkeypatch, denied):
    monkeypatch.setattr(tool, "DENIED", denied)
    random = np.random.default_rng(0)
    question = "Which ferry to Oslo was the largest in 1950?"
    found = {
        tool.mislead(question, PASSAGE, "nobody", random) for _ in range(60)
    }
    assert len(found) == (1 if denied else 5)
    for changed in found:
        gone = set(question.split()) - set(changed.split())
        assert changed != question
        assert len(gone) == (not denied)


def test_a_question_without_a_word_to_change_has_no_change():
    random = np.random.default_rng(0)
    assert tool.mislead("Who left?", PASSAGE, "nobody", random) is None
