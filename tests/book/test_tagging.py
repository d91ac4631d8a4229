"""The rival of chapter 43 learns from letters, neighbors and the tag before."""

import itertools

import numpy as np
import pytest

from bertbook.book import tagging
from bertbook.tasks import metrics

pytest.importorskip("sklearn")

NAMES = "Ada", "Bo", "Cy", "Dora", "Eve", "Finn", "Gus", "Hal"


def score(guesses, tags):
    return metrics.entity_f1(tags, guesses)["f1"]


def sentences(names):
    """Returns sentences and tags; only its neighbor tells a name's type."""
    rows, tags = [], []
    for name in names:
        rows += [
            ["so", "said", name, "Smith", "."],
            ["in", name, "it", "rains"],
        ]
        tags += [["O", "O", "B-PER", "I-PER", "O"], ["O", "B-LOC", "O", "O"]]
    return rows, tags


def test_neighbors_tell_the_type_of_a_new_name():
    rows, tags = sentences(NAMES)
    test, wanted = sentences(["Xenia", "Yan"])
    found, chosen = tagging.tag_by_features(rows, tags, test, score)
    assert found == wanted
    assert chosen["score"] == 1.0
    assert chosen["C"] in tagging.STRENGTHS
    assert chosen["reach"] in tagging.REACHES


def test_one_choice_is_not_tried():
    rows, tags = sentences(NAMES)
    how = {"strengths": (10,), "reaches": (1,)}
    found, chosen = tagging.tag_by_features(rows, tags, rows, None, **how)
    assert found == tags
    assert (chosen["C"], chosen["reach"]) == (10, 1)


def test_without_capitals_it_reads_nothing_but_lower_case():
    words = ["Ada", "met", "McKay", "in", "1961"]
    low = [word.lower() for word in words]
    for reach in tagging.REACHES:
        found = list(tagging._features(words, False, reach))
        assert found == list(tagging._features(low, False, reach))
        assert found != list(tagging._features(words, True, reach))


def test_the_best_row_is_the_best_of_all_rows():
    rows, tags = sentences(NAMES)
    seen = [list(tagging._features(row, True, 1)) for row in rows]
    tagger = tagging._Tagger(seen, tags, 1)
    row = list(tagging._features(["in", "Ada", "Smith"], True, 1))

    def cost(path):
        before, total = "<s>", 0.0
        for features, tag in zip(row, path, strict=True):
            seen = dict.fromkeys([*features, f"after {before}"], 1)
            p = tagger.model.predict_log_proba(
                tagger.vectorizer.transform([seen])
            )
            total += p[0, tagger.tags.index(tag)]
            before = tag
        return total

    paths = list(itertools.product(tagger.tags, repeat=3))
    best = paths[int(np.argmax([cost(path) for path in paths]))]
    assert tagger.tag(row) == list(best)


def test_shapes():
    shapes = [tagging._shape(word) for word in ("McKay3", "1961", "U.S.", "a")]
    assert shapes == ["XxXxd", "d", "X.X.", "x"]
