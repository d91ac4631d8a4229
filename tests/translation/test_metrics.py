"""BLEU and chrF by their definitions, and as sacrebleu has them."""

import math
import sys
from collections import Counter

import pytest

from bertbook.translation.metrics import score_translations

# Punctuation stands apart, as the tokenizer of sacrebleu would put it.
TRANSLATIONS = [
    "La niña tiene un perro negro .",
    "El tren sale a las ocho de la noche .",
    "No sé dónde está .",
    "Mi hermana vive en una casa verde junto al río .",
    "El el el .",
]
REFERENCES = [
    ["La niña tiene un gato negro ."],
    ["El tren sale a las ocho de la mañana .", "Sale a las ocho el tren ."],
    ["No sé dónde están las llaves ."],
    [
        "Mi hermana vive cerca del río , en una casa verde .",
        "Mi hermana vive en la casa verde junto al río .",
        "Junto al río vive mi hermana .",
    ],
    ["El perro ."],
]
FIRST = [several[0] for several in REFERENCES]


def runs(items, length):
    """Counts the runs of a length in a sequence."""
    starts = range(len(items) - length + 1)
    return Counter(tuple(items[i : i + length]) for i in starts)


def bleu_by_loops(translations, references):
    """Papineni et al. (2002): clipped precision, and a penalty if short."""
    logs, ours, theirs = 0.0, 0, 0
    for translation, several in zip(translations, references, strict=True):
        size = len(translation.split())
        sizes = sorted(len(text.split()) for text in several)
        ours += size
        theirs += min(sizes, key=lambda other: abs(other - size))
    for length in range(1, 5):
        right = total = 0
        for translation, several in zip(translations, references, strict=True):
            for run, count in runs(translation.split(), length).items():
                most = max(runs(text.split(), length)[run] for text in several)
                right += min(count, most)
                total += count
        logs += math.log(right / total) / 4
    penalty = 1.0 if ours > theirs else math.exp(1 - theirs / ours)
    return 100 * penalty * math.exp(logs)


def chrf_by_loops(translations, references):
    """Popović (2015), beta 2, over all texts; spaces do not count."""
    precision = recall = 0.0
    for length in range(1, 7):
        right = ours = theirs = 0
        for translation, reference in zip(
            translations, references, strict=True
        ):
            guess = runs(translation.replace(" ", ""), length)
            wanted = runs(reference.replace(" ", ""), length)
            right += (guess & wanted).total()
            ours += guess.total()
            theirs += wanted.total()
        precision += right / ours / 6
        recall += right / theirs / 6
    return 100 * 5 * precision * recall / (4 * precision + recall)


@pytest.fixture
def peer():
    """The package that computes both."""
    return pytest.importorskip("sacrebleu")


# Definition.


def test_bleu_by_loops(peer):
    for references in REFERENCES, [[text] for text in FIRST]:
        received = score_translations(TRANSLATIONS, references)["bleu"]
        expected = bleu_by_loops(TRANSLATIONS, references)
        assert received == pytest.approx(expected)
        assert 20 < received < 80


def test_bleu_of_short_translations_by_loops(peer):
    """All that is said is right, but half is missing."""
    halves = [" ".join(text.split()[:5]) for text in FIRST]
    references = [[text] for text in FIRST]
    received = score_translations(halves, FIRST)["bleu"]
    assert received == pytest.approx(bleu_by_loops(halves, references))
    assert received < 100 * math.exp(-0.4)


def test_chrf_by_loops(peer):
    received = score_translations(TRANSLATIONS, FIRST)["chrf"]
    expected = chrf_by_loops(TRANSLATIONS, FIRST)
    assert received == pytest.approx(expected)
    assert 20 < received < 80


# Peer.


def test_as_sacrebleu(peer):
    received = score_translations(TRANSLATIONS, FIRST)
    bleu = peer.corpus_bleu(TRANSLATIONS, [FIRST])
    chrf = peer.corpus_chrf(TRANSLATIONS, [FIRST])
    assert received["bleu"] == pytest.approx(bleu.score)
    assert received["chrf"] == pytest.approx(chrf.score)
    version = peer.__version__
    assert received["signatures"] == {
        "bleu": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|"
        f"version:{version}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|"
        f"version:{version}",
    }


# Property.


def test_the_reference_itself_scores_100(peer):
    received = score_translations(FIRST, REFERENCES)
    assert received["bleu"] == pytest.approx(100)
    assert received["chrf"] == pytest.approx(100)


def test_no_word_in_common_scores_zero(peer):
    received = score_translations(["zzz zzz zzz zzz"], ["La niña lee ."])
    assert received["bleu"] < 10  # smoothed: never quite 0
    assert received["chrf"] == 0
    nothing = score_translations([""], ["La niña lee ."])
    assert (nothing["bleu"], nothing["chrf"]) == (0, 0)


def test_case_counts_unless_lowercase_is_set(peer):
    lower = [text.lower() for text in FIRST]
    assert score_translations(lower, FIRST)["bleu"] < 99
    same = score_translations(lower, FIRST, lowercase=True)
    assert same["bleu"] == pytest.approx(100)
    assert same["chrf"] == pytest.approx(100)
    assert "case:lc" in same["signatures"]["bleu"]


def test_the_order_of_the_texts_changes_nothing(peer):
    expected = score_translations(TRANSLATIONS, REFERENCES)
    assert expected == score_translations(TRANSLATIONS[::-1], REFERENCES[::-1])


# Error.


@pytest.mark.parametrize(
    ("translations", "references", "message"),
    [
        ([], [], "of one length, 1 at least. Received: 0 and 0"),
        (["a"], ["a", "b"], "of one length, 1 at least. Received: 1 and 2"),
        ("a", ["a"], "`translations` must be a list. Received: str"),
        (["a"], "a", "`references` must be a list. Received: str"),
        (["a"], None, "`references` must be a list. Received: NoneType"),
        ({"a"}, ["a"], "`translations` must be a list. Received: set"),
        ({"a": 1}, ["a"], "`translations` must be a list. Received: dict"),
        (["a"], {"a"}, "`references` must be a list. Received: set"),
        (["a", None], ["a", "b"], r"`translations\[1\]` must be text.*NoneTy"),
        (["a", "b"], ["a", 3], r"`references\[1\]` must be a text.*d: 3"),
        (["a", "b"], ["a", []], r"`references\[1\]` must be a text.*: \[\]"),
        (["a"], [["b", 3]], r"`references\[0\]` must be text. Received: int"),
    ],
)
def test_texts_that_are_no_lists_of_strings_are_refused(
    translations, references, message
):
    with pytest.raises(ValueError, match=message):
        score_translations(translations, references)


@pytest.mark.parametrize("lowercase", ["no", None, 1])
def test_lowercase_is_a_switch(lowercase):
    message = f"`lowercase` must be True or False. Received: {lowercase!r}"
    with pytest.raises(ValueError, match=message):
        score_translations(["a"], ["a"], lowercase)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"pip install sacrebleu"):
        score_translations(["a"], ["a"])
