"""Boxes and arrows: what they say, and that sizes come from configs."""

import functools
import re

import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.figures import canvas, diagrams
from bertbook.figures.style import INK
from bertbook.weights.names import count_parameters, encoder_shapes
from tests.helpers import pictures
from tests.helpers.pictures import texts

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


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


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


@pytest.mark.parametrize("name", DRAWN)
def test_a_diagram_can_be_read_and_is_always_the_same(name):
    pictures.check(drawn(name), DRAWN[name], least=40)
    assert pictures.overlaps(drawn(name)) == []
    assert pictures.smallest(drawn(name)) >= 6


def test_alt_can_be_given():
    for draw, *arguments in (
        (diagrams.shape_flow, STEPS),
        (diagrams.input_sum, TOKENS, [0] * 5),
        (diagrams.attention_steps, 2, 8, 4),
        (diagrams.value_mixing, TOKENS, np.ones(5)),
        (diagrams.multi_head,),
        (diagrams.feed_forward,),
        (diagrams.encoder_block, BASE),
        (diagrams.stacks, {"base": BASE}),
        (diagrams.transformer_cut,),
        (diagrams.whole_bert, BASE, HIDDEN, GUESSES),
    ):
        assert repr(draw(*arguments, alt="Mine.")) == "Mine."


def test_five_hops_say_where_you_are():
    picture = diagrams.five_hops(("Tokenizer.encode", "examples"))
    assert picture.alt.endswith("here: Tokenizer.encode and examples.")
    assert words(picture).count("you are here") == 1
    one = diagrams.five_hops("loss")
    assert arrow_heads(picture) == arrow_heads(one) + 1


def test_the_seven_highlights_differ():
    assert len(diagrams.HIGHLIGHTS) == 7
    maps = [drawn(f"map of {name}") for name in diagrams.HIGHLIGHTS]
    maps.append(drawn("map"))
    assert len({pictures.pixels(picture) for picture in maps}) == 8
    assert len({picture.alt for picture in maps}) == 8
    assert [words(m).count("you are here") for m in maps] == [1] * 7 + [0]


def test_shape_flow_draws_every_step():
    said = words(drawn("shape flow"))
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
    picture = drawn("value mixing")
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
    assert f"{count:,} parameters" in drawn("feed-forward").alt


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
    picture = drawn("stacks")
    numbers = [int(t) for t, _ in texts(picture) if t.isdigit()]
    assert numbers == [0, 11, 0, 23]
    boxes = len(picture.figure.axes[0].patches)
    assert boxes >= 12 + 24 + 2  # blocks and embeddings; arrows come on top
    smaller = len(diagrams.stacks({"base": BASE}).figure.axes[0].patches)
    assert boxes - smaller >= 24 + 1
    for config in (BASE, LARGE):
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
    axes = drawn("whole BERT").figure.axes[0]
    widths = [p.get_width() for p in axes.patches][-3:]
    np.testing.assert_allclose(np.divide(widths, widths[0]), [1, 1 / 6, 1 / 12])


def test_whole_bert_points_every_token_at_every_token():
    axes = drawn("whole BERT").figure.axes[0]
    ends = {(line.get_xdata()[0], line.get_xdata()[1]): line.get_linewidth()
            for line in axes.lines if line.get_zorder() == 4}  # fmt: skip
    assert len(ends) == len(HIDDEN) ** 2
    assert sum(width > 1 for width in ends.values()) == len(HIDDEN)


def test_the_decoder_is_grey():
    axes = drawn("cut").figure.axes[0]
    inks = {text.get_text(): text.get_color() for text in axes.texts}
    assert inks["linear"] == canvas.FAINT
    assert inks["multi-head attention"] == INK


REFUSED = [
    ("`here` must be among", diagrams.five_hops, "tokens"),
    ("`highlight` must be among", diagrams.encoder_map, "head"),
    ("`steps` must hold a step", diagrams.shape_flow, []),
    ("`color` must be among", diagrams.shape_flow, [("a", "b", "red")]),
    ("`segments` must hold 5 numbers", diagrams.input_sum, TOKENS, [0, 1]),
    ("`head_size` must be an integer >= 1", diagrams.attention_steps, 6, 768,
     0),
    ("`weights` must hold 5 numbers", diagrams.value_mixing, TOKENS, [1.0]),
    ("`weights` must not be below 0", diagrams.value_mixing, TOKENS,
     [-1, 0, 0, 1, 1]),
    ("`width` must be a multiple of `num_heads`", diagrams.multi_head, 2, 768,
     5),
    ("`width` must be an integer >= 1", diagrams.feed_forward, 2.5),
    ("`config` must be a BertConfig", diagrams.encoder_block, 768),
    (r"`tokens` must begin with '\[CLS\]'", diagrams.whole_bert, BASE,
     HIDDEN[1:], GUESSES),
    (r"`tokens` must begin with '\[CLS\]' and hold '\[MASK\]'",
     diagrams.whole_bert, BASE, TOKENS, GUESSES),
    ("`guesses` must hold a pair", diagrams.whole_bert, BASE, HIDDEN, []),
    ("`config` must be a BertConfig", diagrams.whole_bert, "base", HIDDEN,
     GUESSES),
    ("`configs` must hold a config", diagrams.stacks, {}),
    ("`configs: base` must be a BertConfig", diagrams.stacks, {"base": 12}),
]  # fmt: skip


def test_package_files_fill_up():
    files = {f"file_{i}": [] for i in range(9)}
    files["file_0"] = [("one", "10", True), ("two", "10", False)]
    files["file_1"] = [("three", "20", False), ("four", "21", False)]
    picture = diagrams.package_files(files, "20")
    assert picture.alt == (
        "The files of mybert. one: yours; two: the book's; three: here; "
        "four: chapter 21."
    )
    texts = [text.get_text() for text in picture.figure.axes[0].texts]
    assert {"file_8.py", "one", "four (21)"} <= set(texts)


def test_bad_input_is_named():
    for message, draw, *arguments in REFUSED:
        with pytest.raises(ValueError, match=message) as caught:
            draw(*arguments)
        assert "Received" in str(caught.value)
