"""GPT's input forms: a task written as one text.

Differences: the paper leaves the spelling of its three marks open; here they
are words in angle brackets.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bertbook.checks import check_text


class Marks(NamedTuple):
    """The tokens that the task adds; their vectors begin at random."""

    start: str = "<start>"
    delimiter: str = "<delimiter>"
    extract: str = "<extract>"  # its vector is what the classifier reads


MARKS = Marks()


def write_classification(text: str, marks: Marks = MARKS) -> str:
    """Writes one text.

    Source: Radford et al. (2018), section 3.3 and figure 1.

    Raises:
        ValueError: A text is empty or no text, or holds a mark.

    >>> write_classification("It rains.")
    '<start> It rains. <extract>'
    """
    return _write([_checked("text", text, marks)], marks)


def write_entailment(
    premise: str, hypothesis: str, marks: Marks = MARKS
) -> str:
    """Writes two texts in their order.

    Raises:
        ValueError: As `write_classification`.

    >>> write_entailment("It rains.", "It is wet.")
    '<start> It rains. <delimiter> It is wet. <extract>'
    """
    first = _checked("premise", premise, marks)
    return _write([first, _checked("hypothesis", hypothesis, marks)], marks)


def write_similarity(
    text: str, other_text: str, marks: Marks = MARKS
) -> tuple[str, str]:
    """Writes two texts in both orders, as neither comes first.

    The vectors of both are added before the last matrix.

    Raises:
        ValueError: As `write_classification`.

    >>> write_similarity("It rains.", "It is wet.")[1]
    '<start> It is wet. <delimiter> It rains. <extract>'
    """
    first = _checked("text", text, marks)
    second = _checked("other_text", other_text, marks)
    return _write([first, second], marks), _write([second, first], marks)


def write_multiple_choice(
    context: str, answers: Sequence[str], question: str = "",
    marks: Marks = MARKS,
) -> list[str]:  # fmt: skip
    """Writes the context, and the question if there is one, with each answer.

    Each gets one number; softmax over them chooses.

    Raises:
        ValueError: As `write_classification`, or there are fewer than two
            answers.

    >>> write_multiple_choice("It rained.", ["dry", "wet"], "The road is")
    ['<start> It rained. The road is <delimiter> dry <extract>',
     '<start> It rained. The road is <delimiter> wet <extract>']
    """
    if isinstance(answers, str) or len(answers) < 2:
        raise ValueError(
            f"`answers` must be a list of two or more. Received: {answers!r}."
        )
    before = _checked("context", context, marks)
    if question:
        before = f"{before} {_checked('question', question, marks)}"
    return [
        _write([before, _checked("answers", answer, marks)], marks)
        for answer in answers
    ]


def _write(parts: Sequence[str], marks: Marks) -> str:
    """Joins parts with marks before, between and after them."""
    between = f" {marks.delimiter} ".join(parts)
    return f"{marks.start} {between} {marks.extract}"


def _checked(name: str, text: str, marks: Marks) -> str:
    """Returns a text without blanks at its ends, after a check."""
    check_text(text, name)
    forbidden = [mark for mark in marks if mark in text]
    if not text.strip() or forbidden:
        raise ValueError(
            f"`{name}` must hold words and none of {', '.join(marks)}. "
            f"Received: {text!r}."
        )
    return text.strip()
