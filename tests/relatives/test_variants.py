"""The table of variants: what it counts, and whom it names."""

import numpy as np
import pytest

import bertbook as bb
from bertbook.book.references import further
from bertbook.relatives.variants import KINDS, RELATIVES, write_table

COUNTS = {
    "RoBERTa": 124_645_632,
    "ALBERT": 11_683_584,
    "BioBERT": 108_310_272,
    "M-BERT": 177_853_440,
}


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts(name):
    (one,) = [one for one in RELATIVES if one.name == name]
    assert one.parameters == COUNTS[name]


def test_every_variant_is_there():
    names = [one.name.split()[0] for one in RELATIVES]
    assert set(names) == {
        "RoBERTa", "ALBERT", "BioBERT", "SciBERT", "ClinicalBERT", "M-BERT",
        "ERNIE", "VideoBERT", "G-BERT", "TransBERT", "DocBERT", "PatentBERT",
    }  # fmt: skip
    assert {one.kind for one in RELATIVES} == set(KINDS)
    for name in ("ERNIE", "ClinicalBERT"):  # two models of one name each
        papers = {one.paper for one in RELATIVES if one.name.startswith(name)}
        assert len(papers) == 2
        assert names.count(name) == 2


def test_four_relatives_are_made_for_a_domain():
    kinds = [one.kind for one in RELATIVES]
    assert kinds.count("domain") == 4


def test_every_paper_is_among_the_references():
    known = {(work.authors.split(",")[0].split()[0], work.year)
             for work in further()}  # fmt: skip
    for one in RELATIVES:
        name, year = one.paper.split()[0].strip(","), int(one.paper[-5:-1])
        assert (name, year) in known, one.name


def test_a_head_of_hundreds_of_labels():
    """PatentBERT is BERT and a number: each label has its own sigmoid."""
    model = bb.BertForSequenceClassification(
        bb.BertConfig.named("tiny", vocab_size=30),
        num_labels=630,
        problem_type="multi_label_classification",
    )
    scores = model({"input_ids": np.array([[2, 7, 3]])})
    assert tuple(scores.shape) == (1, 630)
    more = model.count_params() - model.encoder.count_params()
    assert more == 630 * model.config.hidden_size + 630


def test_write_table_gives_markdown():
    lines = write_table(["name", "parameters"], ["languages", "other signs"])
    assert lines == [
        "| name | parameters |",
        "| --- | --- |",
        "| M-BERT | 178 million |",
        "| VideoBERT | 356 million |",
        "| G-BERT | not said |",
    ]
    assert len(write_table(["name"])) == len(RELATIVES) + 2


def test_unknown_columns_and_kinds_are_refused():
    for columns, kinds, message in (
        (["size"], KINDS, "Received: size"),
        ([], KINDS, "Received: none"),
        (["name"], ["models"], "Received: models"),
    ):
        with pytest.raises(ValueError, match=message):
            write_table(columns, kinds)
