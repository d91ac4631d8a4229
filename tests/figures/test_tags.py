"""Pictures of tags: what is drawn, what is said, what is refused."""

import functools
import itertools

import numpy as np
import pytest

from bertbook.figures import style as drawing
from bertbook.figures.tags import CRACK, KIND_COLORS, OTHER, tag_alignment
from bertbook.tasks.tags import (
    STRATEGIES,
    speaking_tokens,
    window_words,
    words_to_pieces,
)
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS
from tests.helpers import pictures
from tests.helpers.pictures import texts

WORDS = [
    *("Renata", "Kowalczyk", "has", "played", "the", "tuba", "in", "Gdansk")
]
TAGS = ["B-PER", "I-PER", "O", "O", "O", "O", "O", "B-LOC"]
PIECES = [
    ["ren", "##ata"],
    ["k", "##ow", "##al", "##c", "##z", "##y", "##k"],
    *(["has"], ["played"], ["the"], ["tub", "##a"], ["in"]),
    ["g", "##d", "##ans", "##k"],
]  # 19
COLORS = [*KIND_COLORS.values(), OTHER]
KINDS = ["B-PER", "B-ORG", "B-LOC", "B-MISC", "O", "B-creative-work"]
DRAWN = {
    "eight words": lambda: tag_alignment(WORDS, PIECES, TAGS),
    "one word": lambda: tag_alignment(["a"], [["a"]], ["O"]),
    "a long word": lambda: tag_alignment(["w" * 90], [["##w"] * 30], ["O"]),
    "every type": lambda: tag_alignment(
        list("abcdef"), [["x", "##y"]] * 6, KINDS
    ),
    "two sentences": lambda: tag_alignment(WORDS * 2, PIECES * 2, TAGS * 2),
    "odd words": lambda: tag_alignment(
        ["$x_1$", "\u4e2d"], [["$", "x"], ["[UNK]"]], ["O", "B-LOC"]
    ),
}


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


def boxes(picture, strength, colors=COLORS):
    """Returns left, right and middle height of the boxes of some colors."""
    looks = {(*drawing.tint(color, strength), 1.0) for color in colors}
    return [
        (patch.get_x(), patch.get_x() + patch.get_width(),
         patch.get_y() + patch.get_height() / 2)
        for patch in picture.figure.axes[0].patches
        if patch.get_facecolor() in looks
    ]  # fmt: skip


def rows_of(picture, strategy):
    """Returns, line by line, whether each piece carries a tag in a row."""
    (axes,) = picture.figure.axes
    heights = [t._y for t in axes.texts if t.get_text() == strategy]
    carriers = boxes(picture, 0.45)
    pieces = boxes(picture, 0.1)
    found = []
    for line, height in enumerate(heights):
        lefts = {round(x, 6) for x, _, y in carriers if abs(y - height) < 0.01}
        found += [
            round(x, 6) in lefts
            for x, _, y in pieces
            if line_of(axes, y) == line
        ]
    return found


def line_of(axes, height):
    """Returns the number of the line in which a piece stands."""
    heights = [t._y for t in axes.texts if t.get_text() == "piece"]
    return int(np.abs(np.array(heights) - height).argmin())


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_can_be_read_and_is_always_the_same(name):
    pictures.check(drawn(name), DRAWN[name], least=40)
    assert pictures.overlaps(drawn(name)) == []
    if name != "a long word":
        assert pictures.smallest(drawn(name)) > 7.9
    pieces = boxes(drawn(name), 0.1)
    for (_, end, y), (start, _, next_y) in zip(
        pieces, pieces[1:], strict=False
    ):
        assert next_y < y or start - end > CRACK * 0.7


def test_what_is_cut_off_and_what_lies_on_another_text_is_seen():
    picture = DRAWN["one word"]()
    (axes,) = picture.figure.axes
    x, y = next(t.get_position() for t in axes.texts if t.get_text() == "tag")
    axes.text(x, y, "on it")
    assert pictures.overlaps(picture) == [("tag", "on it")]
    axes.text(6.9, 1, "a long text")
    assert pictures.cut_off(picture.figure)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pieces_carry_what_the_definition_says(strategy):
    expected = []
    for parts in PIECES:
        for number in range(len(parts)):
            first, last = number == 0, number == len(parts) - 1
            expected.append(
                {"first": first, "last": last, "all": True}[strategy]
            )
    assert rows_of(drawn("eight words"), strategy) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pieces_carry_what_the_model_is_taught(strategy):
    pieces = dict.fromkeys(itertools.chain(*PIECES))
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *pieces])
    ids = words_to_pieces(tokenizer, WORDS)
    pieces = [[tokenizer.vocabulary[i] for i in word] for word in ids]
    assert pieces == PIECES
    (window,) = window_words(tokenizer, WORDS)
    speaking = speaking_tokens(window, strategy)[1:-1]  # [CLS] and [SEP]
    picture = tag_alignment(WORDS, pieces, TAGS)
    assert rows_of(picture, strategy) == speaking.tolist()


def test_a_carrier_holds_the_tag_of_its_word():
    found = [text for text, _ in texts(drawn("eight words"))]
    sizes = list(map(len, PIECES))
    for tag in set(TAGS):
        words = [n for t, n in zip(TAGS, sizes, strict=True) if t == tag]
        # Below each word, then by first, by last, by all.
        assert found.count(tag) == 3 * len(words) + sum(words)
    assert found.count("·") == 2 * (sum(sizes) - len(sizes))


def test_a_type_has_its_color():
    assert len(set(COLORS)) == len(COLORS) == len(KINDS)
    picture = drawn("every type")
    for color in COLORS:
        assert len(boxes(picture, 0.1, [color])) == 2
        assert len(boxes(picture, 0.45, [color])) == 1 + 1 + 2


def test_a_long_sentence_goes_on_below():
    (axes,) = drawn("two sentences").figure.axes
    found = [text.get_text() for text in axes.texts]
    lines = found.count("piece")
    assert lines == 4
    assert all(found.count(name) == lines for name in STRATEGIES)


def test_the_words_say_pieces_and_tags():
    alt = drawn("eight words").alt
    assert alt.startswith("8 words in 19 pieces: Renata, B-PER, in ren ##ata; ")
    assert "; has, O, in has; " in alt
    assert "; Gdansk, B-LOC, in g ##d ##ans ##k. " in alt
    assert alt.endswith("carry the tag: first, last, all.")
    assert drawn("one word").alt.startswith("1 word in 1 piece: a, O, in a.")


def test_the_author_may_write_the_alt_text():
    picture = tag_alignment(WORDS, PIECES, TAGS, alt="as I\nsay.")
    assert repr(picture) == "as I say."


REFUSED = [
    ("`words` must be a list of at least one word", [], [], []),
    ("`words` must be a list", "ab", [["a"], ["b"]], ["O", "O"]),
    ("`pieces` must hold 8 labels", WORDS, PIECES[1:], TAGS),
    ("`tags` must hold 8 labels", WORDS, PIECES, TAGS[1:]),
    (r"`pieces\[0\]` must be a list of at least one", ["a"], [[]], ["O"]),
    (r"`pieces\[0\]` must be a list of at least one", ["a"], ["a"], ["O"]),
    (r"`tags\[0\]` must be O, B-TYPE or I-TYPE", ["a"], [["a"]], ["PER"]),
]


def test_bad_input_is_named():
    for message, *arguments in REFUSED:
        with pytest.raises(ValueError, match=message) as caught:
            tag_alignment(*arguments)
        assert "Received" in str(caught.value)
