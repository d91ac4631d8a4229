"""Phrases that are hidden as a whole."""

import numpy as np
import pytest

from bertbook.pretraining.masking import Masking, Pieces, draw_unit_starts
from bertbook.relatives.ernie import join_phrases, mask_phrases, phrase_ids
from tests.helpers.toys import TOY

TEXTS = ["a bc de f gh", "gh bc de", "bcd de bc"]
PIECES = Pieces.of(TOY)
EVERYTHING = Masking(rate=0.5, mask_share=1.0, random_share=0.0, unit="word")


def rows():
    return TOY(TEXTS)["input_ids"]


def units(phrases):
    """Returns the units of each row as lists of texts."""
    ids = rows()
    rng = np.random.default_rng(0)
    words = draw_unit_starts(ids, PIECES, EVERYTHING, rng)
    starts = join_phrases(ids, words, phrase_ids(TOY, phrases))
    found = []
    for row, begins in zip(ids, starts, strict=True):
        cuts = np.flatnonzero(begins)
        parts = np.split(row, cuts[1:])
        found.append([TOY.decode(p) for p in parts if PIECES.special[p[0]] < 1])
    return found


def test_a_phrase_is_one_unit():
    assert units(["bc de"]) == [
        ["a", "bc de", "f", "gh"],
        ["gh", "bc de"],
        ["bcd", "de", "bc"],  # no whole words: `bcd de` is another text
    ]


def test_a_phrase_ends_with_a_word():
    assert units(["a b"])[0] == ["a", "bc", "de", "f", "gh"]


def test_the_longer_phrase_wins():
    assert units(["bc de", "a bc", "bc de f"])[0] == ["a", "bc de f", "gh"]


def test_a_phrase_that_is_not_there_changes_nothing():
    assert units(["z z"]) == units(["bc de f gh a bc de f gh a bc de f gh"])
    assert units(["z z"])[1] == ["gh", "bc", "de"]


def test_no_phrase_is_ever_hidden_in_part():
    ids, phrases = rows(), phrase_ids(TOY, ["bc de"])
    hidden = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        masked = mask_phrases(ids, PIECES, phrases, rng, EVERYTHING)
        is_mask = masked["input_ids"] == PIECES.mask
        assert is_mask[0, 2:6].all() or not is_mask[0, 2:6].any()
        assert is_mask[1, 3:7].all() or not is_mask[1, 3:7].any()
        hidden += is_mask[0, 2:6].all() + is_mask[1, 3:7].all()
        assert (ids == rows()).all()
        slots = masked["masked_lm_weights"] > 0
        wanted = np.take_along_axis(ids, masked["masked_lm_positions"], 1)
        assert (wanted == masked["masked_lm_ids"])[slots].all()
    assert 10 < hidden < 70


def test_bad_phrases_are_refused():
    for phrases, message in (
        ([], "at least one text"),
        (["a", " "], "Received: ' '"),
        ("a", "list"),
    ):
        with pytest.raises(ValueError, match=message):
            phrase_ids(TOY, phrases)


def test_mask_phrases_refuses_units_of_single_tokens():
    with pytest.raises(ValueError, match=r"Received: 'token'\."):
        mask_phrases(rows(), PIECES, [], np.random.default_rng(0), Masking())
