"""The rivals of chapter 42, on questions that show what they look at."""

import pytest

from bertbook.book.span_rivals import SharedWords, SpanRival

NAMES = [
    *("Ada", "Bo", "Cleo", "Dora", "Emil", "Fay"),
    *("Gus", "Hal", "Ida", "Jon", "Kim", "Lea"),
]
PLACES = [
    *("Oslo", "Rome", "Lima", "Bonn", "Cork", "Riga"),
    *("Bern", "Kyiv", "Nice", "Faro", "Graz", "Lund"),
]


def story(name, place, year):
    return f"In {year} it rained. {name} lived in {place}. Nobody else did."


def asked(rows):
    """Questions about stories: who, where and when, in turn."""
    kinds = (
        ("Who lived in {place}?", "name"),
        ("Where did {name} live?", "place"),
        ("When did it rain?", "year"),
    )
    data = {"question": [], "context": [], "answers": []}
    for number, (name, place) in enumerate(rows):
        values = {"name": name, "place": place, "year": str(1900 + number)}
        text = story(**values)
        for question, kind in kinds:
            answer = {"text": values[kind]}
            answer["answer_start"] = text.index(values[kind])
            data["question"].append(question.format(**values))
            data["context"].append(text)
            data["answers"].append([answer])
    return data


def test_the_rule_takes_the_sentence_that_shares_rare_words():
    texts = ["The cat sat. The dog ran.", "The cat ran. The pike swam."]
    rule = SharedWords(texts)
    assert rule.answer("Which dog?", texts[0]) == "The dog ran."
    # "cat" and "ran" are in both texts and count nothing: "pike" decides.
    assert rule.answer("Did a pike or cat ran?", texts[1]) == "The pike swam."


def test_the_rule_takes_the_first_sentence_where_nothing_is_shared():
    rule = SharedWords(["One here. Two there."])
    assert rule.answer("Why?", "One here. Two there.") == "One here."
    assert rule.answer("Unknown words?", "One here. Two there.") == "One here."


def test_the_regression_learns_what_who_where_and_when_ask_for():
    data = asked(zip(NAMES[:10], PLACES[:10], strict=True))
    groups = [i // 3 for i in range(len(data["question"]))]
    rival = SpanRival(data, groups)
    assert max(rival.tried.values()) == rival.tried[rival.strength] > 0.9
    new = asked(zip(NAMES[10:], PLACES[10:], strict=True))
    pairs = zip(new["question"], new["context"], strict=True)
    found = [rival.answer(*pair) for pair in pairs]
    assert found == [answers[0]["text"] for answers in new["answers"]]


def test_the_regression_is_the_same_for_the_same_seed():
    data = asked(zip(NAMES, PLACES, strict=True))
    groups = list(range(len(data["question"])))
    one, other = SpanRival(data, groups), SpanRival(data, groups)
    assert one.tried == other.tried
    assert (one.model.coef_ == other.model.coef_).all()


def test_groups_keep_what_belongs_together_on_one_side():
    data = asked(zip(NAMES, PLACES, strict=True))
    with pytest.raises(ValueError, match="number of splits"):
        SpanRival(data, ["the same document"] * len(data["question"]))
