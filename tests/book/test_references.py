"""Every work that the book cites has an entry, and the five texts' are all."""

import json
import re

import pytest

import book
from bertbook.book import notation
from bertbook.book.references import (
    DECODER,
    ENCODER,
    LAYER,
    NOTES,
    OF_THE_SOURCES,
    SOURCES,
    cite,
    further,
)

EVERY = (*OF_THE_SOURCES, *further())
# First author and year of what the text refers to.
REFERRED_TO = {
    ENCODER: "Vaswani 2017, Devlin 2019, Rush 2018, Howard 2018, Radford 2018",
    DECODER: "Vaswani 2017, Devlin 2019, Rush 2018, Howard 2018, Radford 2018",
    LAYER: "Vaswani 2017",
    NOTES: "Devlin 2019, Radford 2019, Howard 2018, Peters 2018, "
    "Vaswani 2017, Schuster 1997, Wu 2016",
}
NAME = r"[A-ZÀ-Þ][\w’'-]*"
CITATION = re.compile(
    rf"({NAME})(?:(?:, {NAME})* and (?:De )?{NAME}|\s+et\s+al\.),?"
    r"\s+\(?((?:19|20)\d\d)"
    rf"|({NAME}) \(((?:19|20)\d\d)\)"
)


def first(work):
    return re.split(r",| and | et al", work.authors)[0]


def citations(text):
    """Yields name and year; a name alone counts before `(year)` only."""
    for match in CITATION.finditer(" ".join(text.split())):
        yield match[1] or match[3], int(match[2] or match[4])


def texts():
    modules = sorted((book.ROOT / "bertbook").rglob("*.py"))
    assert len(modules) > 100
    return [*modules, *book.twins()]


def test_what_is_cited_has_an_entry():
    for path in texts():
        known = {(name, work.year) for work in EVERY for name in names(work)}
        cited = set(citations(path.read_text("utf-8")))
        assert cited - known == set(), "add it to bertbook/book/references.py"


def names(work):
    return re.findall(NAME, work.authors)


def test_no_work_stands_twice():
    titles = [work.title for work in EVERY]
    assert len(titles) == len(set(titles))
    assert all(titles)
    assert all(1950 <= work.year <= 2026 for work in EVERY)


@pytest.mark.parametrize("text", REFERRED_TO)
def test_references_of_each_text(text):
    found = {
        f"{first(work)} {work.year}"
        for work in OF_THE_SOURCES
        if text in work.cited_by
    }
    assert found == set(REFERRED_TO[text].split(", "))


def test_each_belongs_to_a_text_and_to_a_chapter():
    for work in OF_THE_SOURCES:
        assert set(work.cited_by) <= set(SOURCES)
        assert work.cited_by
        assert work.chapters
        assert all(map(book.is_name, work.chapters))
    assert len(SOURCES) == 5
    assert len(OF_THE_SOURCES) == 9


def test_the_month_is_that_of_the_number():
    months = 0
    for work in OF_THE_SOURCES:
        number = re.fullmatch(r"arXiv:(\d\d)(\d\d)\.\d+", work.where)
        if number:
            assert work.first == f"20{number[1]}-{number[2]}"
            months += 1
    assert months == 5


def test_fine_tuning_is_older_than_bert():
    months = [
        min(work.first for work in OF_THE_SOURCES if first(work) == name)
        for name in ("Howard", "Peters", "Radford", "Devlin")
    ]  # ULMFiT, ELMo, GPT, BERT
    assert months == sorted(set(months))


def test_a_text_is_cited_by_author_and_title():
    expected = "Romero Calvo and Ingham, Dissecting BERT Part 1: The Encoder"
    assert cite(ENCODER) == expected
    assert cite(LAYER) == "BERT Encoder Layer"


def test_citations_are_found():
    for text, found in (
        ("as Wu et al. (2016) say", [("Wu", 2016)]),
        ("(Ba, Kiros and Hinton, 2016)", [("Ba", 2016)]),
        ("Kingma and\nBa (2015)", [("Kingma", 2015)]),
        ("Taylor (1953) and In 2018", [("Taylor", 1953)]),
        ("the code of October 2018", []),
    ):
        assert list(citations(text)) == found


def test_the_chapter_that_lists_them_was_built_again():
    notebook = book.read_notebook(book.Chapter("91_notation").path)
    shown = book.nbformat.writes(notebook)
    for work in further():
        assert json.dumps(work.title, ensure_ascii=False)[1:-1] in shown, (
            "build 91_notation again"
        )
    for letter in notation.LOCAL:
        for place in letter.places:
            assert place in shown, "build 91_notation again"
