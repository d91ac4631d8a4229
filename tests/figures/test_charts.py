"""Pictures of numbers: what is drawn, what is said, what is refused."""

import functools
import hashlib
import subprocess
import sys

import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.figures import charts, heatmaps
from bertbook.figures import style as drawing
from bertbook.weights.names import count_parameters
from tests.helpers import pictures

WORDS = [
    *("[CLS]", "the", "dog", "chased", "a", "cat", "up", "one", "tree", "[SEP]")
]  # 10
PIECES = [
    *("[CLS]", "photo", "##synth", "##esis", "converts", "sunlight", "into"),
    *("chemical", "energy", "[SEP]", "leaves", "are", "green", "because"),
    *("chlorophyll", "[SEP]"),
]  # 16
RNG = np.random.default_rng(0)


def attention(size):
    """Returns rows of weights that sum to 1, `(size, size)`."""
    weights = RNG.random((size, size)) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


SMALL, LARGE, TABLE = attention(10), attention(16), RNG.normal(size=(12, 8))
WIDE = RNG.normal(size=(30, 400))
STEPS = np.arange(1, 51)
DRAWN = {
    "heat map": lambda: charts.heat_map(LARGE, PIECES, PIECES, "Weights",
        x_label="key", y_label="query"),
    "heat map with numbers": lambda: charts.heat_map(TABLE, numbers=True,
        diverging=True),
    "heat map with a mask": lambda: charts.heat_map(SMALL, WORDS, WORDS,
        mask=np.tri(10, dtype=bool), numbers=True),
    "heat map without labels": lambda: charts.heat_map(WIDE),
    "heat maps": lambda: charts.heat_maps([(f"head {n}",
        SMALL) for n in range(1, 7)], WORDS, "Layer 1"),
    "heat maps with numbers": lambda: charts.heat_maps([(name,
        TABLE) for name in ("a", "b")], title="Layer 1", x_label="head",
        y_label="layer", numbers=True),
    "one heat map": lambda: charts.heat_maps([("head 1", LARGE)], PIECES),
    "curves": lambda: charts.curves({"ours": (STEPS, 9 / STEPS),
        "theirs": (STEPS[:9], STEPS[:9])}, x_label="step", y_label="loss"),
    "logarithmic curves": lambda: charts.curves({"ours": (STEPS, 9 / STEPS)},
        log_x=True, log_y=True),
    "bars": lambda: charts.bars({"a": 12_345, "b": -3.5}, x_label="count"),
    "groups of bars": lambda: charts.bars({"SST-2": {"ours": 92.5,
        "theirs": 91}, "CoLA": {"ours": 51.25}}),
    "histogram": lambda: charts.histogram({"layer 1": TABLE,
        "layer 2": TABLE[:7] * 2}, x_label="value"),
    "attention chart": lambda: charts.attention_chart(WORDS, SMALL[5], "cat"),
    "two attention charts": lambda: charts.attention_chart(PIECES,
        {"head 1": LARGE[9], "head 2": LARGE[9]}, 9, "Of [SEP]"),
    "position waves": lambda: charts.position_waves(TABLE),
    "position similarity": lambda: charts.position_similarity(TABLE),
    "parameter bars": lambda: charts.parameter_bars(BertConfig()),
}  # fmt: skip


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_has_words_fits_and_is_always_the_same(name):
    pictures.check(drawn(name), DRAWN[name])


def test_bytes_are_the_same_in_another_process():
    script = (
        "import hashlib, sys\n"
        "from bertbook.figures import charts\n"
        "png = charts.bars({'a': 1, 'b': {'c': 2}['c']}, 'x', 'T').png()\n"
        "print(hashlib.sha256(png).hexdigest(),"
        " [m for m in ('keras', 'matplotlib.pyplot') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "2", "MPLBACKEND": "svg"},
    )
    ours = charts.bars({"a": 1, "b": 2}, "x", "T").png()
    assert done.stdout == f"{hashlib.sha256(ours).hexdigest()} []\n"


def test_without_matplotlib_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.style", raising=False)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        charts.bars({"a": 1})


def test_alt_can_be_given():
    picture = charts.bars({"a": 1}, alt="One bar,\n as an example.")
    assert repr(picture) == "One bar, as an example."


def test_axes_are_labelled():
    curves, heat_map = drawn("curves"), drawn("heat map")
    for picture, labels in (
        (curves, ("step", "loss")),
        (heat_map, ("key", "query")),
        (drawn("bars"), ("count", "")),
        (drawn("histogram"), ("value", "")),
    ):
        axes = picture.figure.axes[0]
        assert axes.get_xlabel() == labels[0]
        assert not labels[1] or axes.get_ylabel() == labels[1]


def test_few_points_on_a_logarithmic_axis_are_its_ticks():
    for x, labels in (
        ((4, 16, 64, 256, 512), ["4", "16", "64", "256", "512"]),
        ((4, 5, 16), None),  # too close to be labeled
        (tuple(range(1, 20)), None),
    ):
        lines = {"a": (x, x), "b": (x[::-1], x)}
        axes = charts.curves(lines, log_x=True).figure.axes[0]
        shown = [label.get_text() for label in axes.get_xticklabels()]
        assert (shown == labels) == (labels is not None)


def test_numbers_of_like_size_get_equal_decimals():
    for values, texts in (
        ([7.494, 10.04, 9.0], ["7.49", "10.04", "9.00"]),
        ([3, 4, 5], ["3", "4", "5"]),
        ([0.5, 1234.5], ["0.5", "1,234"]),
        ([-7.494, 10.04], ["-7.49", "10.04"]),
        ([0.0, 0.333], ["0", "0.333"]),
        ([], []),
    ):
        assert charts.bar_numbers(np.array(values)) == texts
    for bars in (
        {"a": 7.49, "b": 10.04, "c": 9.2},
        {"x": {"a": 7.49, "b": 10.04}, "y": {"b": 9.2}},
    ):
        (axes,) = charts.bars(bars).figure.axes
        written = {text.get_text() for text in axes.texts}
        assert written == {"7.49", "10.04", "9.20"}


def test_points_of_curves_get_names_and_a_band_of_their_runs():
    lines = {"mean": ([0, 1, 2], [1.0, 2.0, 3.0]), "one": ([0, 1, 2], [4] * 3)}
    band = {"mean": ([0.5, 1.5, 2.5], [1.5, 2.5, 4.0])}
    names = ["emb.", "0", "1"]
    picture = charts.curves(lines, bands=band, x_names=names)
    (axes,) = picture.figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == names
    (area,) = axes.collections
    edges = area.get_paths()[0].vertices[:, 1]
    assert (edges.min(), edges.max()) == (0.5, 4.0)
    assert "mean from 1 to 3, runs between 2.5 and 4 at the end" in picture.alt


@pytest.mark.parametrize("size", [12, 16, 40])
def test_labels_of_tokens_do_not_overlap(size):
    tokens = [f"##piece{i}" for i in range(size)]
    picture = charts.heat_map(attention(size), tokens, tokens)
    labels = picture.figure.axes[0].get_yticklabels()
    renderer = picture.figure.canvas.get_renderer()
    boxes = [label.get_window_extent(renderer) for label in labels]
    assert all(a.y0 >= b.y1 - 1 for a, b in zip(boxes, boxes[1:], strict=False))


def test_numbers_are_readable_and_written_alike():
    whole = np.array([[1.0, -0.0], [12_000.0, 3.0]])
    assert drawing.same_digits(whole).tolist() == [
        ["1", "0"],
        ["12,000", "3"],
    ]
    assert drawing.same_digits(np.array([0.5, 2])).tolist() == ["0.50", "2.00"]
    numbers = map(drawing.readable, (109_482_240, 0.123456, 1234.5))
    assert list(numbers) == ["109,482,240", "0.123", "1,234"]


def test_dollars_and_unknown_characters_are_texts():
    picture = charts.bars({"$5 and $x_1$": 1, "\u4e2d": 2})
    assert "\u4e2d" in picture.alt
    texts = [
        label.get_text() for label in picture.figure.axes[0].get_yticklabels()
    ]
    assert "$5 and $x_1$" in texts
    assert "U+4E2D" in texts


def test_colors_tell_things_apart():
    def gray(key):
        red, green, blue = drawing.tint(key, 1.0)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert len(set(charts.COLORS.values())) == len(charts.COLORS) == 15
    for a, b in zip(charts.SERIES, charts.SERIES[1:], strict=False):
        assert abs(gray(a) - gray(b)) > 0.05
    assert charts.look("Feed-forward", 3)[0] == charts.COLORS["feed_forward"]


def test_darker_is_more_in_gray():
    colors = heatmaps.color_map()(np.linspace(0, 1, 50))[:, :3]
    assert (np.diff(colors @ [0.299, 0.587, 0.114]) < 0).all()


def test_heat_map_says_its_range_and_its_peak():
    values = [[0.25, 0.5], [0.75, 9.0]]
    alt = charts.heat_map(values, ["a", "b"], mask=[[1, 1], [1, 0]]).alt
    assert "values from 0.25 to 0.75" in alt
    assert "row 'b', column 1" in alt
    assert "; 1 hidden cell." in alt


def test_heat_maps_share_one_scale():
    picture = charts.heat_maps([("a", SMALL), ("b", SMALL / 10)])
    scales = {axes.images[0].get_clim() for axes in picture.figure.axes[:2]}
    assert scales == {(0.0, SMALL.max())}


def test_heat_maps_write_numbers_in_place_of_a_scale():
    panels = [("a", [[0.25, 1.0]]), ("b", [[0.5, 0.75]])]
    picture = charts.heat_maps(panels, x_label="head", numbers=True)
    first, second = picture.figure.axes  # no third for a scale of colors
    assert [text.get_text() for text in first.texts] == ["0.25", "1.00"]
    assert [text.get_text() for text in second.texts] == ["0.50", "0.75"]
    assert first.get_xlabel() == second.get_xlabel() == "head"


def test_bars_have_colors_of_their_own_where_asked():
    def colors(**how):
        axes = charts.bars({"a": 1, "b": 2, "c": 3}, **how).figure.axes[0]
        return {bar.get_facecolor() for bar in axes.patches}

    assert len(colors()) == 1
    assert len(colors(own_colors=True)) == 3


def test_bars_of_attention_sum_to_the_row():
    rows = {"head 1": LARGE[3], "head 2": LARGE[4] / 2}
    picture = charts.attention_chart(PIECES, rows, 3)
    for axes, row in zip(picture.figure.axes, rows.values(), strict=True):
        heights = [bar.get_height() for bar in axes.patches]
        np.testing.assert_allclose(heights, row)
        np.testing.assert_allclose(sum(heights), row.sum())
    assert "all together 0.50" in picture.alt


def whiskers(values, errors):
    """Returns where the whiskers of some bars begin and end."""
    axes = charts.bars(values, errors=errors).figure.axes[0]
    return [
        list(segment[:, 0])
        for lines in axes.collections
        for segment in lines.get_segments()
    ]


def test_bars_have_whiskers_of_their_own_on_demand():
    assert whiskers({"a": 4, "b": 2}, None) == []
    assert whiskers({"a": 4, "b": 2}, 0.5) == [[3.5, 4.5], [1.5, 2.5]]
    for values, errors in (
        ({"a": 4, "b": 2}, {"a": 1, "b": 0.5}),
        ({"x": {"a": 4, "b": 2}}, {"x": {"a": 1, "b": 0.5}}),
        ({"x": {"a": 4}, "y": {"b": 2}}, {"x": {"a": 1}, "y": {"b": 0.5}}),
    ):
        assert whiskers(values, errors) == [[3, 5], [1.5, 2.5]]


def test_bars_have_levels_on_demand():
    axes = charts.bars({"a": 4}, levels={"chance": 2.5}).figure.axes[0]
    (level,) = axes.get_lines()
    assert list(level.get_xdata()) == [2.5, 2.5]
    assert [text.get_text() for text in axes.texts] == ["4", "chance"]


def test_curves_begin_at_zero_on_demand():
    line = {"share": ([1, 2], [0.5, 0.9])}
    bottoms = [
        charts.curves(line, from_zero=asked).figure.axes[0].get_ylim()[0]
        for asked in (True, False)
    ]
    assert bottoms[0] == 0 < bottoms[1]


def test_very_small_numbers_are_powers_of_ten():
    line = {"gap": ([1, 2, 3], [1e-6, 1e-3, 1e1])}
    axes = charts.curves(line, log_y=True).figure.axes[0]
    written = axes.yaxis.get_major_formatter()
    assert [written(value) for value in (1e-6, 1, 10)] == ["10⁻⁶", "10⁰", "10¹"]


@pytest.mark.parametrize("name", ["tiny", "base", "large"])
def test_parameter_bars_sum_to_the_count(name):
    config = BertConfig.named(name)
    picture = charts.parameter_bars(config)
    stacked = [
        bar.get_width()
        for bar in picture.figure.axes[0].patches
        if bar.get_y() == -0.5
    ]
    counts = charts.parameters_by_part(config)
    assert stacked == list(counts.values())
    assert sum(stacked) == count_parameters(config)
    assert f"{count_parameters(config):,} parameters" in picture.alt


def test_similarity_is_the_dot_product():
    image = drawn("position similarity").figure.axes[0].images[0]
    expected = [[a @ b for b in TABLE] for a in TABLE]
    np.testing.assert_allclose(image.get_array(), expected)


def test_histogram_counts_every_value():
    picture = charts.histogram({"a": TABLE}, bins=5)
    counts = picture.figure.axes[0].patches[0].get_data().values
    assert counts.sum() == TABLE.size
    assert len(counts) == 5


LINE = {"a": ([1, 2], [3, 4])}
REFUSED = [
    ("`values` must have 2 axes", charts.heat_map, [1, 2]),
    ("`values` must be finite", charts.heat_map, [[np.nan]]),
    ("`rows` must hold 10 labels", charts.heat_map, SMALL, ["a"]),
    ("`columns` must hold 10 labels", charts.heat_map, SMALL, None, WORDS[:9]),
    ("`panels` must hold a matrix", charts.heat_maps, []),
    ("`labels` must hold 10 labels", charts.heat_maps, [("a", SMALL)], ["x"]),
    ("`lines` must be a dict", charts.curves, {}),
    ("`lines: y of a` must hold 2", charts.curves, {"a": ([1, 2], [3])}),
    ("`values` must be a dict", charts.bars, [1, 2]),
    ("`values` must be a dict", charts.bars, {"a": {}}),
    ("`values` must be a dict", charts.histogram, {}),
    ("`weights` must hold 10", charts.attention_chart, WORDS, SMALL[0][:9], 0),
    ("`token` must be the index", charts.attention_chart, PIECES, LARGE[0],
     "[SEP]"),
    (r"`token` must be in \[0, 10\)", charts.attention_chart, WORDS, SMALL[0],
     10),
    ("`table` must have 2 axes", charts.position_waves, [1.0]),
    ("`table` must have 2 axes", charts.position_similarity, [1.0]),
    ("`config` must be a BertConfig", charts.parameter_bars, {"a": 768}),
]  # fmt: skip
OPTIONS_REFUSED = [
    ("`mask` must broadcast to", charts.heat_map, SMALL, {"mask": [1, 1, 1]}),
    ("`mask` must leave a value", charts.heat_map, SMALL, {"mask": [0] * 10}),
    ("`columns` must be an integer >= 1", charts.heat_maps, [("a", SMALL)],
     {"columns": 0}),
    ("`bands` must belong to `lines`. Received: 'b'", charts.curves, LINE,
     {"bands": {"b": LINE["a"]}}),
    ("`lines` must be above 0 where x", charts.curves, {"a": ([0, 2], [3, 4])},
     {"log_x": True}),
]  # fmt: skip


def test_bad_input_is_named():
    calls = [(*call, {}) for call in REFUSED] + OPTIONS_REFUSED
    for message, draw, *arguments, options in calls:
        with pytest.raises(ValueError, match=message) as caught:
            draw(*arguments, **options)
        assert "Received" in str(caught.value)


def test_ticks_of_bars_are_round():
    def steps(values):
        ticks = charts.bars(values).figure.axes[0].get_xticks()
        return set(np.diff(ticks).round(9))

    assert steps({"y": -0.34, "a": 0.25}) == {0.1}
    assert steps({"one": 1, "three": 3}) == {1.0}
