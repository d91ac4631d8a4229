"""The input forms of GPT, character by character."""

import pytest

from bertbook.relatives.gpt_inputs import (
    Marks,
    write_classification,
    write_entailment,
    write_multiple_choice,
    write_similarity,
)


def test_write_classification_puts_a_text_between_start_and_extract():
    expected = "<start> It rains. <extract>"
    assert write_classification("It rains.") == expected
    assert write_classification("  It rains. ") == expected


def test_entailment_keeps_the_order():
    found = write_entailment("It rains.", "It is wet.")
    assert found == "<start> It rains. <delimiter> It is wet. <extract>"
    other = write_entailment("It is wet.", "It rains.")
    assert other == "<start> It is wet. <delimiter> It rains. <extract>"


def test_similarity_writes_both_orders():
    assert write_similarity("It rains.", "It is wet.") == (
        "<start> It rains. <delimiter> It is wet. <extract>",
        "<start> It is wet. <delimiter> It rains. <extract>",
    )


def test_multiple_choice_writes_the_context_with_each_answer():
    assert write_multiple_choice("It rained.", ["dry", "wet", "old"]) == [
        "<start> It rained. <delimiter> dry <extract>",
        "<start> It rained. <delimiter> wet <extract>",
        "<start> It rained. <delimiter> old <extract>",
    ]
    assert write_multiple_choice("It rained.", ["a", "b"], "How is it?") == [
        "<start> It rained. How is it? <delimiter> a <extract>",
        "<start> It rained. How is it? <delimiter> b <extract>",
    ]


def test_other_marks_may_be_given():
    marks = Marks("[CLS]", "$", "[SEP]")
    assert write_entailment("a", "b", marks) == "[CLS] a $ b [SEP]"


def test_bad_input_is_refused():
    for call, message in (
        (lambda: write_classification(""), "`text` must hold words"),
        (lambda: write_classification(" "), "`text` must hold words"),
        (lambda: write_classification(7), "`text` must be a string"),
        (lambda: write_entailment("a <extract>", "b"), "`premise` must hold"),
        (lambda: write_entailment("a", None), "`hypothesis` must be a str"),
        (lambda: write_similarity("a", ""), "`other_text` must hold words"),
        (lambda: write_multiple_choice("a", ["b"]), "two or more"),
        (lambda: write_multiple_choice("a", "bc"), "must be a list of two"),
        (lambda: write_multiple_choice("a", ["b", ""]), "`answers` must ho"),
        (lambda: write_multiple_choice("", ["b", "c"]), "`context` must ho"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
