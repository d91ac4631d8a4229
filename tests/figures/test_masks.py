"""Pictures of hidden words: what is drawn, what is said, what is refused."""

import functools

import pytest

from bertbook.figures import canvas, masks
from bertbook.figures import style as drawing
from bertbook.figures.masks import FATES, MASK
from tests.helpers import pictures

WORDS = ["w1", "w2", "w3", "w4", "w5"]
ROW = [
    *("[CLS]", "the", "keeper", "of", "the", "light", "##house", "un"),
    *("##locked", "the", "door", "and", "went", "up", "all", "112", "of"),
    *("the", "stairs", ",", "before", "wind", "could", "get", "in", ".", "$x$"),
    "[SEP]",
]  # 28
CHANGES = {2: MASK, 6: MASK, 14: "honey", 19: "the"}
REPLACED = [CHANGES.get(i, token) for i, token in enumerate(ROW)]
CHOSEN = [i in {2, 6, 12, 14, 19} for i in range(len(ROW))]  # 12 is kept
PANELS = {
    "token": CHOSEN,
    "word": [i in {5, 6, 14} for i in range(len(ROW))],
}
DRAWN = {
    "who sees whom": lambda: masks.who_sees_whom(WORDS, 3),
    "the first word": lambda: masks.who_sees_whom(WORDS, 0),
    "the last word": lambda: masks.who_sees_whom(["a", "b"], 1),
    "fates": lambda: masks.token_fates(ROW, REPLACED, CHOSEN),
    "one fate": lambda: masks.token_fates(["a"], [MASK], [True]),
    "long tokens": lambda: masks.token_fates(
        ["a" * 40] * 5, ["b" * 30] * 5, [True] * 5
    ),
    "units": lambda: masks.units_chosen(ROW, PANELS),
    "three units": lambda: masks.units_chosen(
        ROW * 2, dict.fromkeys(("token", "word", "span"), CHOSEN * 2)
    ),
}


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


def boxes(picture, fate):
    """Returns how many boxes have the look of a fate."""
    color, strength, _ = FATES[fate]
    look = (*drawing.tint(color, strength), 1.0)
    patches = picture.figure.axes[0].patches
    return sum(patch.get_facecolor() == look for patch in patches)


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_has_words_fits_and_is_always_the_same(name):
    pictures.check(drawn(name), DRAWN[name])


def test_every_fate_is_drawn_as_often_as_it_occurs():
    picture = drawn("fates")
    in_legend = 1
    assert boxes(picture, MASK) == 2 + in_legend
    assert boxes(picture, "random") == 2 + in_legend
    assert boxes(picture, "kept") == 1 + in_legend
    assert boxes(picture, "not chosen") == 28 - 5 + in_legend
    texts = [text.get_text() for text in picture.figure.axes[0].texts]
    for legend in ("[MASK]: 2", "random: 2", "kept: 1", "not chosen: 23"):
        assert legend in texts


def test_the_words_of_fates_say_each_change():
    alt = drawn("fates").alt
    assert "28 tokens, 5 of them chosen" in alt
    assert "'keeper' hidden, '##house' hidden, 'went' kept" in alt
    assert "'all' became 'honey', ',' became 'the'." in alt


def test_fate_of_names_what_became_of_a_token():
    for token, replaced, is_chosen, fate in (
        ("a", "a", False, "not chosen"),
        ("a", MASK, True, MASK),
        ("a", "b", True, "random"),
        ("a", "a", True, "kept"),
    ):
        assert masks.fate_of(token, replaced, is_chosen) == fate


def test_units_draw_what_each_panel_chose():
    picture = drawn("units")
    assert boxes(picture, MASK) == 5 + 3
    assert boxes(picture, "not chosen") == 2 * 28 - 8
    assert "word: light ##house all." in picture.alt


def test_a_hidden_word_is_not_written():
    texts = [t.get_text() for t in drawn("who sees whom").figure.axes[0].texts]
    assert texts.count("w4") == 2  # in two of the three views
    assert texts.count(MASK) == 1
    assert texts.count("sees its own answer") == 1


def test_each_view_draws_an_arrow_a_word_seen():
    arrows = [
        text
        for text in drawn("who sees whom").figure.axes[0].texts
        if getattr(text, "arrow_patch", None)
    ]
    assert len(arrows) == 3 + 5 + 5


def test_lines_stay_on_the_page():
    places, lines = canvas.flow([1.0] * 20)
    assert [line for line, _, _ in places] == sorted(p[0] for p in places)
    assert lines == places[-1][0] + 1 > 1
    for _, middle, width in places:
        assert middle - width / 2 >= 0
        assert middle + width / 2 <= drawing.WIDTH


REFUSED = [
    (r"`place` must be in \[0, 5\)", masks.who_sees_whom, WORDS, 5),
    ("`replaced` must hold 28", masks.token_fates, ROW, REPLACED[:-1], CHOSEN),
    ("`chosen` must hold 28", masks.token_fates, ROW, REPLACED, CHOSEN[:-1]),
    ("`replaced` must leave a token as it is", masks.token_fates, ["a"], ["b"],
     [False]),
    ("`panels` must hold a panel", masks.units_chosen, ROW, {}),
    ("`panels: word` must hold 28", masks.units_chosen, ROW,
     {"word": CHOSEN[:3]}),
]  # fmt: skip


def test_bad_input_is_named():
    for message, draw, *arguments in REFUSED:
        with pytest.raises(ValueError, match=message) as caught:
            draw(*arguments)
        assert "Received" in str(caught.value)
