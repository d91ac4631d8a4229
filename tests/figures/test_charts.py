"""Pictures of numbers: what is drawn, what is said, what is refused."""

import functools
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

from bertbook.config import BertConfig
from bertbook.figures import charts, heatmaps
from bertbook.figures import style as drawing
from bertbook.weights.names import count_parameters

WORDS = [
    "[CLS]",
    "the",
    "dog",
    "chased",
    "a",
    "cat",
    "up",
    "one",
    "tree",
    "[SEP]",
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
    "heat map": lambda: charts.heat_map(
        LARGE, PIECES, PIECES, "Weights", x_label="key", y_label="query"
    ),
    "heat map with numbers": lambda: charts.heat_map(
        TABLE, numbers=True, diverging=True
    ),
    "heat map with a mask": lambda: charts.heat_map(
        SMALL, WORDS, WORDS, mask=np.tri(10, dtype=bool), numbers=True
    ),
    "heat map without labels": lambda: charts.heat_map(WIDE),
    "heat maps": lambda: charts.heat_maps(
        [(f"head {n}", SMALL) for n in range(1, 7)], WORDS, "Layer 1"
    ),
    "heat maps with numbers": lambda: charts.heat_maps(
        [(name, TABLE) for name in ("a", "b")],
        title="Layer 1",
        x_label="head",
        y_label="layer",
        numbers=True,
    ),
    "one heat map": lambda: charts.heat_maps([("head 1", LARGE)], PIECES),
    "curves": lambda: charts.curves(
        {"ours": (STEPS, 9 / STEPS), "theirs": (STEPS[:9], STEPS[:9])},
        x_label="step",
        y_label="loss",
    ),
    "logarithmic curves": lambda: charts.curves(
        {"ours": (STEPS, 9 / STEPS)}, log_x=True, log_y=True
    ),
    "bars": lambda: charts.bars({"a": 12_345, "b": -3.5}, x_label="count"),
    "groups of bars": lambda: charts.bars(
        {"SST-2": {"ours": 92.5, "theirs": 91}, "CoLA": {"ours": 51.25}}
    ),
    "histogram": lambda: charts.histogram(
        {"layer 1": TABLE, "layer 2": TABLE[:7] * 2}, x_label="value"
    ),
    "attention chart": lambda: charts.attention_chart(WORDS, SMALL[5], "cat"),
    "two attention charts": lambda: charts.attention_chart(
        PIECES, {"head 1": LARGE[9], "head 2": LARGE[9]}, 9, "Of [SEP]"
    ),
    "position waves": lambda: charts.position_waves(TABLE),
    "position similarity": lambda: charts.position_similarity(TABLE),
    "parameter bars": lambda: charts.parameter_bars(BertConfig()),
}
cases = pytest.mark.parametrize("name", DRAWN)


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


@cases
def test_a_picture_has_an_image_and_words(name):
    picture = drawn(name)
    data, metadata = picture._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG")
    assert len(data["image/png"]) > 3_000
    assert data["text/plain"] == picture.alt == repr(picture)
    assert metadata["image/png"]["alt"] == picture.alt
    assert len(picture.alt) > 20
    assert picture.alt.endswith(".")
    assert "\n" not in picture.alt


@cases
def test_bytes_depend_on_nothing_else(name):
    first = drawn(name)
    assert first.png() == first.png()
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "black"}):
        assert DRAWN[name]().png() == first.png()


@cases
def test_nothing_is_cut_off(name):
    figure = drawn(name).figure
    with drawing.book_style():
        page, box = figure.get_size_inches(), figure.get_tightbbox()
    assert (box.min > -0.5 / drawing.DPI).all()
    assert (box.max < page + 0.5 / drawing.DPI).all()


@cases
def test_pages_have_one_width(name):
    assert drawn(name).figure.get_size_inches()[0] == drawing.WIDTH


def test_bytes_are_the_same_in_another_process():
    script = (
        "import hashlib, sys\n"
        "from bertbook.figures import charts\n"
        "png = charts.bars({'a': 1, 'b': {'c': 2}['c']}, 'x', 'T').png()\n"
        "print(hashlib.sha256(png).hexdigest(),"
        " [m for m in ('keras', 'matplotlib.pyplot') if m in sys.modules])\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "MPLBACKEND": backend},
        ).stdout
        for seed, backend in (("1", "agg"), ("2", "svg"))
    }
    assert len(runs) == 1
    assert runs.pop().endswith(" []\n")


def test_without_matplotlib_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.style", raising=False)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        charts.bars({"a": 1})


def test_alt_can_be_given():
    picture = charts.bars({"a": 1}, alt="One bar,\n as an example.")
    assert repr(picture) == "One bar, as an example."


def test_save_writes_the_image(tmp_path):
    picture = charts.bars({"a": 1})
    picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == picture.png()
    with pytest.raises(ValueError, match="`path` must end in '.png'. Received"):
        picture.save(tmp_path / "a.svg")


def test_axes_are_labelled():
    for picture in (
        charts.curves({"a": ([1, 2], [3, 4])}, "right", "up"),
        charts.heat_map(TABLE, x_label="right", y_label="up"),
    ):
        axes = picture.figure.axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("right", "up")
    for picture in (
        charts.bars({"a": 1}, x_label="right"),
        charts.histogram({"a": TABLE}, x_label="right"),
    ):
        assert picture.figure.axes[0].get_xlabel() == "right"


@pytest.mark.parametrize(
    ("x", "labels"),
    [
        ((4, 16, 64, 256, 512), ["4", "16", "64", "256", "512"]),
        ((4, 5, 16), None),  # too close to be labeled
        (tuple(range(1, 20)), None),
    ],
)
def test_few_points_on_a_logarithmic_axis_are_its_ticks(x, labels):
    lines = {"a": (x, x), "b": (x[::-1], x)}
    axes = charts.curves(lines, log_x=True).figure.axes[0]
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert (shown == labels) == (labels is not None)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([7.494, 10.04, 9.0], ["7.49", "10.04", "9.00"]),
        ([3, 4, 5], ["3", "4", "5"]),
        ([0.5, 1234.5], ["0.5", "1,234"]),
        ([-7.494, 10.04], ["-7.49", "10.04"]),
        ([0.0, 0.333], ["0", "0.333"]),
        ([], []),
    ],
)
def test_numbers_of_like_size_get_equal_decimals(values, texts):
    assert charts.bar_numbers(np.array(values)) == texts


@pytest.mark.parametrize(
    "values",
    [
        {"a": 7.49, "b": 10.04, "c": 9.2},
        {"x": {"a": 7.49, "b": 10.04}, "y": {"b": 9.2}},
    ],
)
def test_all_bars_of_a_picture_get_equal_decimals(values):
    (axes,) = charts.bars(values).figure.axes
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


def test_numbers_are_written_alike():
    whole = np.array([[1.0, -0.0], [12_000.0, 3.0]])
    assert drawing.same_digits(whole).tolist() == [
        ["1", "0"],
        ["12,000", "3"],
    ]
    assert drawing.same_digits(np.array([0.5, 2])).tolist() == ["0.50", "2.00"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(109_482_240, "109,482,240"), (0.123456, "0.123"), (1234.5, "1,234")],
)
def test_numbers_are_readable(value, text):
    assert drawing.readable(value) == text


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


def test_bars_have_whiskers_on_demand():
    plain, measured = (
        charts.bars({"a": 4, "b": 2}, errors=errors).figure.axes[0]
        for errors in (None, 0.5)
    )
    assert not plain.collections
    whiskers = [
        list(segment[:, 0])
        for lines in measured.collections
        for segment in lines.get_segments()
    ]
    assert whiskers == [[3.5, 4.5], [1.5, 2.5]]


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


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({"a": 4, "b": 2}, {"a": 1, "b": 0.5}),
        ({"x": {"a": 4, "b": 2}}, {"x": {"a": 1, "b": 0.5}}),
        ({"x": {"a": 4}, "y": {"b": 2}}, {"x": {"a": 1}, "y": {"b": 0.5}}),
    ],
)
def test_every_bar_has_a_whisker_of_its_own(values, errors):
    axes = charts.bars(values, errors=errors).figure.axes[0]
    whiskers = [
        list(segment[:, 0])
        for lines in axes.collections
        for segment in lines.get_segments()
    ]
    assert whiskers == [[3, 5], [1.5, 2.5]]


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
    drawn = charts.position_similarity(TABLE).figure.axes[0].images[0]
    expected = [[a @ b for b in TABLE] for a in TABLE]
    np.testing.assert_allclose(drawn.get_array(), expected)


def test_histogram_counts_every_value():
    picture = charts.histogram({"a": TABLE}, bins=5)
    counts = picture.figure.axes[0].patches[0].get_data().values
    assert counts.sum() == TABLE.size
    assert len(counts) == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: charts.heat_map([1, 2]), "`values` must have 2 axes"),
        (lambda: charts.heat_map([[np.nan]]), "`values` must be finite"),
        (lambda: charts.heat_map(SMALL, ["a"]), "`rows` must hold 10 labels"),
        (
            lambda: charts.heat_map(SMALL, columns=WORDS[:9]),
            "`columns` must hold 10 labels",
        ),
        (
            lambda: charts.heat_map(SMALL, mask=np.ones(3)),
            "`mask` must broadcast to",
        ),
        (
            lambda: charts.heat_map(SMALL, mask=np.zeros(10)),
            "`mask` must leave a value",
        ),
        (lambda: charts.heat_maps([]), "`panels` must hold a matrix"),
        (
            lambda: charts.heat_maps([("a", SMALL)], columns=0),
            "`columns` must be an integer >= 1",
        ),
        (
            lambda: charts.heat_maps([("a", SMALL)], labels=["x"]),
            "`labels` must hold 10 labels",
        ),
        (lambda: charts.curves({}), "`lines` must be a dict"),
        (
            lambda: charts.curves(
                {"a": ([1, 2], [3, 4])}, bands={"b": ([1, 2], [3, 4])}
            ),
            "`bands` must belong to `lines`. Received: 'b'",
        ),
        (
            lambda: charts.curves({"a": ([1, 2], [3])}),
            "`lines: y of a` must hold 2",
        ),
        (
            lambda: charts.curves({"a": ([0, 2], [3, 4])}, log_x=True),
            "`lines` must be above 0 where x",
        ),
        (lambda: charts.bars([1, 2]), "`values` must be a dict"),
        (lambda: charts.bars({"a": {}}), "`values` must be a dict"),
        (lambda: charts.histogram({}), "`values` must be a dict"),
        (
            lambda: charts.attention_chart(WORDS, SMALL[0][:9], 0),
            "`weights` must hold 10",
        ),
        (
            lambda: charts.attention_chart(PIECES, LARGE[0], "[SEP]"),
            "`token` must be the index",
        ),
        (
            lambda: charts.attention_chart(WORDS, SMALL[0], 10),
            r"`token` must be in \[0, 10\)",
        ),
        (lambda: charts.position_waves([1.0]), "`table` must have 2 axes"),
        (
            lambda: charts.position_similarity([1.0]),
            "`table` must have 2 axes",
        ),
        (
            lambda: charts.parameter_bars({"hidden_size": 768}),
            "`config` must be a BertConfig",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "Received" in str(caught.value)


def test_ticks_of_bars_are_round():
    def steps(values):
        ticks = charts.bars(values).figure.axes[0].get_xticks()
        return set(np.diff(ticks).round(9))

    assert steps({"y": -0.34, "a": 0.25}) == {0.1}
    assert steps({"one": 1, "three": 3}) == {1.0}
