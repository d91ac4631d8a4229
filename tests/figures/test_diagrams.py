"""Boxes and arrows: what they say, and that sizes come from configs."""

import functools
import re

import matplotlib
import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.figures import canvas, diagrams
from bertbook.figures.style import INK, book_style
from bertbook.weights.names import count_parameters, encoder_shapes

TOKENS = ["[CLS]", "hello", ",", "world", "[SEP]"]
LONG = [f"##piece{i}" for i in range(16)]
BASE, LARGE = BertConfig.named("base"), BertConfig.named("large")
STEPS = [
    ("input ids", "(2, 16)", "token"),
    ("embeddings", "(2, 16, 128)", "sum"),
    ("pooler:\nfirst token", "(2, 128)", "output"),
]
HIDDEN = ["[CLS]", "the", "united", "[MASK]", "of", "america", "[SEP]"]
GUESSES = [("states", 0.75), ("kingdom", 0.125), ("nations", 0.0625)]
DRAWN = {
    "one hop": lambda: diagrams.five_hops("batch"),
    "two hops": lambda: diagrams.five_hops(("examples", "loss")),
    "map": lambda: diagrams.encoder_map(),
    **{
        f"map of {name}": lambda name=name: diagrams.encoder_map(name)
        for name in diagrams.HIGHLIGHTS
    },
    "shape flow": lambda: diagrams.shape_flow(STEPS),
    "input sum": lambda: diagrams.input_sum(TOKENS, [0, 0, 0, 1, 1]),
    "long input sum": lambda: diagrams.input_sum(LONG, [0] * 9 + [1] * 7),
    "attention steps": lambda: diagrams.attention_steps(6, 768, 64),
    "value mixing": lambda: diagrams.value_mixing(
        TOKENS, [0.5, 0.25, 0, 0.2, 0.05]
    ),
    "long value mixing": lambda: diagrams.value_mixing(LONG, [1 / 16] * 16),
    "two heads": lambda: diagrams.multi_head(),
    "many heads": lambda: diagrams.multi_head(512, 1024, 16),
    "feed-forward": lambda: diagrams.feed_forward(),
    "block": lambda: diagrams.encoder_block(BASE),
    "stacks": lambda: diagrams.stacks({"base": BASE, "large": LARGE}),
    "cut": lambda: diagrams.transformer_cut(),
    "whole BERT": lambda: diagrams.whole_bert(BASE, HIDDEN, GUESSES),
    "early mask": lambda: diagrams.whole_bert(
        LARGE, ["[CLS]", "[MASK]", "##ing", "!", "[SEP]"], GUESSES
    ),
    "one block": lambda: diagrams.whole_bert(
        BertConfig(num_hidden_layers=1, num_attention_heads=1),
        ["[CLS]", *"abcdefg", "[MASK]", "[SEP]"],
        [("internationally", 1.0)],
    ),
}
cases = pytest.mark.parametrize("name", DRAWN)


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


def texts(picture):
    """Returns every text of a diagram, with its box in inches."""
    (axes,) = picture.figure.axes
    return [
        (text.get_text(), text.get_window_extent().padded(-1.5))
        for text in axes.texts
        if text.get_text()
    ]


def arrow_heads(picture):
    """Returns how many arrows a diagram draws."""
    (axes,) = picture.figure.axes
    return sum(
        text.arrow_patch is not None
        for text in axes.texts
        if hasattr(text, "arrow_patch")
    )


def words(picture):
    return " ".join(text for text, _ in texts(picture))


@cases
def test_a_diagram_has_an_image_and_words(name):
    picture = drawn(name)
    data, _ = picture._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert len(data["image/png"]) > 5_000
    assert len(picture.alt) > 40
    assert picture.alt.endswith(".")


@cases
def test_bytes_depend_on_nothing_else(name):
    first = drawn(name)
    assert first.png() == first.png()
    with matplotlib.rc_context({"font.size": 20, "text.usetex": True}):
        assert DRAWN[name]().png() == first.png()


@cases
def test_nothing_is_cut_off(name):
    figure = drawn(name).figure
    with book_style():
        page, box = figure.get_size_inches(), figure.get_tightbbox()
    assert (box.min > -0.01).all()
    assert (box.max < page + 0.01).all()


@cases
def test_no_text_lies_on_another(name):
    found = texts(drawn(name))
    for i, (one, box) in enumerate(found):
        for other, its_box in found[i + 1 :]:
            assert not box.overlaps(its_box), (one, other)


@cases
def test_every_text_can_be_read(name):
    (axes,) = drawn(name).figure.axes
    assert min(text.get_fontsize() for text in axes.texts) >= 6


def test_alt_can_be_given():
    for picture in (
        diagrams.shape_flow(STEPS, alt="Mine."),
        diagrams.input_sum(TOKENS, [0] * 5, alt="Mine."),
        diagrams.attention_steps(2, 8, 4, alt="Mine."),
        diagrams.value_mixing(TOKENS, np.ones(5), alt="Mine."),
        diagrams.multi_head(alt="Mine."),
        diagrams.feed_forward(alt="Mine."),
        diagrams.encoder_block(BASE, alt="Mine."),
        diagrams.stacks({"base": BASE}, alt="Mine."),
        diagrams.transformer_cut(alt="Mine."),
        diagrams.whole_bert(BASE, HIDDEN, GUESSES, alt="Mine."),
    ):
        assert repr(picture) == "Mine."


def test_five_hops_say_where_you_are():
    picture = diagrams.five_hops(("Tokenizer.encode", "examples"))
    assert picture.alt.endswith("here: Tokenizer.encode and examples.")
    assert words(picture).count("you are here") == 1
    one = diagrams.five_hops("loss")
    assert arrow_heads(picture) == arrow_heads(one) + 1


def test_the_seven_highlights_differ():
    assert len(diagrams.HIGHLIGHTS) == 7
    maps = [diagrams.encoder_map(name) for name in diagrams.HIGHLIGHTS]
    maps.append(diagrams.encoder_map())
    assert len({picture.png() for picture in maps}) == 8
    assert len({picture.alt for picture in maps}) == 8
    assert [words(m).count("you are here") for m in maps] == [1] * 7 + [0]


def test_shape_flow_draws_every_step():
    said = words(diagrams.shape_flow(STEPS))
    for text, shape, _ in STEPS:
        assert text in said
        assert shape in said


def test_input_sum_counts_positions():
    said = [text for text, _ in texts(diagrams.input_sum(LONG, [1] * 16))]
    assert said.count("1") == 17  # 16 segments, 1 position
    assert "15" in said
    assert all(token in said for token in LONG)


def test_attention_steps_name_the_root():
    said = words(diagrams.attention_steps(3, 512, 64))
    assert "√64 = 8" in said
    for shape, times in (("(3, 512)", 3), ("(3, 64)", 4), ("(3, 3)", 3)):
        assert said.count(shape) == times


def test_value_mixing_draws_the_weights():
    weights = np.array([0.5, 0.25, 0.0, 0.2, 0.05])
    picture = diagrams.value_mixing(TOKENS, weights)
    said = [text for text, _ in texts(picture)]
    assert [t for t in said if re.fullmatch(r"0\.\d\d", t)] == [
        f"{weight:.2f}" for weight in weights
    ]
    lines = picture.figure.axes[0].lines
    assert len(lines) == 4  # none from a weight of 0
    assert "0.50 of '[CLS]'" in picture.alt


@pytest.mark.parametrize(
    ("length", "width", "num_heads"), [(2, 768, 2), (3, 512, 8), (5, 12, 1)]
)
def test_multi_head_states_every_shape(length, width, num_heads):
    picture = diagrams.multi_head(length, width, num_heads)
    drawn, said = min(num_heads, 3), words(picture)
    assert said.count(f"({length}, {width // num_heads})") >= 4 * drawn
    assert said.count(f"({length}, {length})") == drawn
    assert f"({width}, {width})" in said
    assert "head 0" in said  # heads count from 0
    assert f"head {num_heads - 1}" in said
    assert f"head {num_heads}" not in said
    assert f"N = {num_heads}" in picture.alt


def test_feed_forward_counts_its_parameters():
    shapes = encoder_shapes(BASE)
    count = sum(
        int(np.prod(shape))
        for name, shape in shapes.items()
        if name.startswith("block_0/feed_forward")
    )
    assert f"{count:,} parameters" in diagrams.feed_forward().alt


def test_feed_forward_is_drawn_to_scale():
    axes = diagrams.feed_forward(100, 250).figure.axes[0]
    widths = [p.get_width() for p in axes.patches if hasattr(p, "get_width")]
    np.testing.assert_allclose(np.divide(widths, widths[0]), [1, 2.5, 2.5, 1])


def test_encoder_block_reads_its_config():
    config = BertConfig(
        num_hidden_layers=7,
        hidden_size=110,
        num_attention_heads=5,
        intermediate_size=330,
        hidden_act="relu",
        hidden_dropout_prob=0.3,
    )
    said = words(diagrams.encoder_block(config))
    for text in ("7 blocks", "5 heads of width 22", "110 to 330", "relu"):
        assert text in said
    assert said.count("dropout 0.3") == 2


def test_stacks_draw_every_block():
    configs = {"base": BASE, "large": LARGE}
    picture = diagrams.stacks(configs)
    numbers = [int(t) for t, _ in texts(picture) if t.isdigit()]
    assert numbers == [0, 11, 0, 23]
    boxes = len(picture.figure.axes[0].patches)
    assert boxes >= 12 + 24 + 2  # blocks and embeddings; arrows come on top
    smaller = len(diagrams.stacks({"base": BASE}).figure.axes[0].patches)
    assert boxes - smaller >= 24 + 1
    for config in configs.values():
        assert f"{count_parameters(config):,}" in words(picture)
        assert f"{count_parameters(config):,}" in picture.alt


def test_whole_bert_reads_its_config_and_its_words():
    picture = diagrams.whole_bert(LARGE, HIDDEN, GUESSES)
    said = [text for text, _ in texts(picture)]
    assert [text for text in said if text in HIDDEN] == HIDDEN
    assert "blocks 1 to 23" in said
    assert "attention,\n16 heads" in said
    for word, chance in GUESSES:
        assert word in said
        assert f"{chance:.2f}" in said
        assert f"{word} {chance:.2f}" in picture.alt
    assert "24 blocks" in picture.alt


def test_whole_bert_draws_guesses_to_scale():
    axes = diagrams.whole_bert(BASE, HIDDEN, GUESSES).figure.axes[0]
    widths = [p.get_width() for p in axes.patches][-3:]
    np.testing.assert_allclose(np.divide(widths, widths[0]), [1, 1 / 6, 1 / 12])


def test_whole_bert_points_every_token_at_every_token():
    axes = diagrams.whole_bert(BASE, HIDDEN, GUESSES).figure.axes[0]
    ends = {(line.get_xdata()[0], line.get_xdata()[1]): line.get_linewidth()
            for line in axes.lines if line.get_zorder() == 4}  # fmt: skip
    assert len(ends) == len(HIDDEN) ** 2
    assert sum(width > 1 for width in ends.values()) == len(HIDDEN)


def test_the_decoder_is_grey():
    axes = diagrams.transformer_cut().figure.axes[0]
    inks = {text.get_text(): text.get_color() for text in axes.texts}
    assert inks["linear"] == canvas.FAINT
    assert inks["multi-head attention"] == INK


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagrams.five_hops("tokens"), "`here` must be among"),
        (lambda: diagrams.encoder_map("head"), "`highlight` must be among"),
        (lambda: diagrams.shape_flow([]), "`steps` must hold a step"),
        (
            lambda: diagrams.shape_flow([("a", "b", "red")]),
            "`color` must be among",
        ),
        (
            lambda: diagrams.input_sum(TOKENS, [0, 1]),
            "`segments` must hold 5 numbers",
        ),
        (
            lambda: diagrams.attention_steps(6, 768, 0),
            "`head_size` must be an integer >= 1",
        ),
        (
            lambda: diagrams.value_mixing(TOKENS, [1.0]),
            "`weights` must hold 5 numbers",
        ),
        (
            lambda: diagrams.value_mixing(TOKENS, [-1, 0, 0, 1, 1]),
            "`weights` must not be below 0",
        ),
        (
            lambda: diagrams.multi_head(2, 768, 5),
            "`width` must be a multiple of `num_heads`",
        ),
        (
            lambda: diagrams.feed_forward(2.5),
            "`width` must be an integer >= 1",
        ),
        (lambda: diagrams.encoder_block(768), "`config` must be a BertConfig"),
        (
            lambda: diagrams.whole_bert(BASE, HIDDEN[1:], GUESSES),
            r"`tokens` must begin with '\[CLS\]'",
        ),
        (
            lambda: diagrams.whole_bert(BASE, TOKENS, GUESSES),
            r"`tokens` must begin with '\[CLS\]' and hold '\[MASK\]'",
        ),
        (
            lambda: diagrams.whole_bert(BASE, HIDDEN, []),
            "`guesses` must hold a pair",
        ),
        (
            lambda: diagrams.whole_bert("base", HIDDEN, GUESSES),
            "`config` must be a BertConfig",
        ),
        (lambda: diagrams.stacks({}), "`configs` must hold a config"),
        (
            lambda: diagrams.stacks({"base": 12}),
            "`configs: base` must be a BertConfig",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "Received" in str(caught.value)
