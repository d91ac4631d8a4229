"""Pictures of scores: what is drawn, what is said, what is refused."""

import functools

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from bertbook.figures import charts
from bertbook.figures import style as drawing
from bertbook.figures.charts import seed_dots

RNG = np.random.default_rng(0)
MEANS = {
    "mini": [0.60, 0.635, 0.665, 0.70],
    "from scratch": [0.51, 0.52, 0.535, 0.56],
    "words": [0.545, 0.58, 0.62, 0.655],
}
SIZES = 50, 100, 200, 400
SCORES = {
    name: {
        size: RNG.normal(mean, 0.02, 10)
        for size, mean in zip(SIZES, means, strict=True)
    }
    for name, means in MEANS.items()
}
# Sizes in any order, some missing, and not as many runs at each.
UNEVEN = {
    "one": {400: [0.9, 0.7], 50: [0.5, 0.6, 0.7]},
    "other": {100: [0.25], 50: [0.125]},
}
DRAWN = {
    "ten seeds": lambda: seed_dots(
        SCORES,
        x_label="rows",
        y_label="accuracy",
        title="Ten seeds each",
        levels={"a constant answer": 0.5},
    ),
    "uneven": lambda: seed_dots(UNEVEN),
    "one run": lambda: seed_dots({"alone": {50: [0.5]}}),
    "many series": lambda: seed_dots(
        {f"series {i}": SCORES["mini"] for i in range(9)}
    ),
    "odd names": lambda: seed_dots(
        {"$5 of $x_1$": SCORES["words"]}, levels={"\u4e2d": 0.5}
    ),
}
cases = pytest.mark.parametrize("name", DRAWN)


@functools.cache
def drawn(name):
    """Returns one of the pictures, drawn once for all tests."""
    return DRAWN[name]()


def lines(picture, marker):
    """Returns the lines of a kind: "o" dots, "_" means, "None" joined."""
    (axes,) = picture.figure.axes
    found = [line for line in axes.lines if line.get_marker() == marker]
    return [line for line in found if not is_level(line)]


def is_level(line):
    return line.get_color() == drawing.COLORS["sum"]


def clashes(picture):
    """Returns how many groups of dots share a part of the page, side by side.

    One group is the runs of one series at one size.
    """
    spans = sorted(
        (line.get_xdata().min(), line.get_xdata().max())
        for line in lines(picture, "o")
    )
    return sum(
        before[1] >= after[0]
        for before, after in zip(spans, spans[1:], strict=False)
    )


def cut_off(figure):
    """Returns whether something stands outside of the page."""
    with drawing.book_style():
        page, box = figure.get_size_inches(), figure.get_tightbbox()
    return not (
        (box.min > -0.5 / drawing.DPI).all()
        and (box.max < page + 0.5 / drawing.DPI).all()
    )


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
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "black"}):
        assert DRAWN[name]().png() == first.png()


@cases
def test_nothing_is_cut_off(name):
    figure = drawn(name).figure
    assert figure.get_size_inches()[0] == drawing.WIDTH
    assert not cut_off(figure)


def test_what_is_cut_off_is_seen():
    figure = DRAWN["one run"]().figure
    figure.axes[0].set_title("far above", y=1.5)
    assert cut_off(figure)


@cases
def test_dots_of_two_series_stand_apart(name):
    assert clashes(drawn(name)) == 0


def test_dots_that_do_not_stand_apart_are_seen():
    picture = DRAWN["ten seeds"]()
    (axes,) = picture.figure.axes
    axes.plot(lines(picture, "o")[0].get_xdata() + 0.01, [0.5] * 10, "o")
    assert clashes(picture) == 1


def test_every_run_is_a_dot():
    heights = [line.get_ydata() for line in lines(drawn("ten seeds"), "o")]
    runs = [values for group in SCORES.values() for values in group.values()]
    np.testing.assert_array_equal(heights, runs)


def test_dots_stand_around_their_mean():
    picture = drawn("ten seeds")
    dots = [line.get_xdata() for line in lines(picture, "o")]
    means = np.concatenate([m.get_xdata() for m in lines(picture, "_")])
    np.testing.assert_allclose([d.mean() for d in dots], means, atol=1e-12)
    alone = DRAWN["one run"]()
    (dot,) = lines(alone, "o")
    assert dot.get_xdata().tolist() == [0]


@pytest.mark.parametrize("marker", ["_", "None"])
def test_ticks_and_lines_stand_at_the_means(marker):
    found = lines(drawn("ten seeds"), marker)
    for line, group in zip(found, SCORES.values(), strict=True):
        expected = [sum(values) / len(values) for values in group.values()]
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_series_have_the_looks_of_the_book():
    found = lines(drawn("ten seeds"), "None")
    for i, (line, name) in enumerate(zip(found, SCORES, strict=True)):
        color, dashes = charts.look(name, i)
        assert to_hex(line.get_color()) == color.lower()
        assert line.get_linestyle() == dashes
    assert len({line.get_linestyle() for line in found}) == 3
    (legend,) = drawn("ten seeds").figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(SCORES)


def test_sizes_run_from_small_to_large():
    picture = drawn("uneven")
    (axes,) = picture.figure.axes
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks == ["50", "100", "400"]
    one, other = lines(picture, "None")
    assert one.get_xdata().round().tolist() == [0, 2]
    assert other.get_xdata().round().tolist() == [0, 1]
    np.testing.assert_allclose(one.get_ydata(), [0.6, 0.8])


def test_axes_are_labelled():
    (axes,) = drawn("ten seeds").figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rows", "accuracy")


def test_a_level_is_named_beside_the_axes():
    (axes,) = drawn("ten seeds").figure.axes
    (name,) = axes.texts
    assert name.get_text() == "a constant answer"
    (line,) = filter(is_level, axes.lines)
    assert set(line.get_ydata()) == {0.5}
    assert name.get_window_extent().x0 > axes.get_window_extent().x1


def test_the_words_say_every_mean():
    alt = drawn("ten seeds").alt
    assert alt.startswith("Ten seeds each; accuracy over rows, means with ")
    for name, group in SCORES.items():
        said = ", ".join(
            f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g}) "
            f"at {size}"
            for size, values in group.items()
        )
        assert f"{name}, 10 runs each, {said};" in alt
    assert alt.endswith("; a constant answer at 0.5.")


def test_the_words_count_runs():
    alt = drawn("uneven").alt
    assert "one, 2 to 3 runs each, 0.6 (0.5 to 0.7) at 50, 0.8 (0.7 to" in alt
    assert alt.endswith("other, 1 run each, 0.125 (0.125 to 0.125) at 50, "
                        "0.25 (0.25 to 0.25) at 100.")  # fmt: skip


def test_the_author_may_write_the_alt_text():
    assert repr(seed_dots(UNEVEN, alt="as I\nsay.")) == "as I say."


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "`scores` must be a dict with at least one name"),
        ([0.5], "`scores` must be a dict"),
        ({"mini": {}}, "`scores: mini` must be a dict with at least one"),
        ({"mini": [0.5]}, "`scores: mini` must be a dict"),
        ({"mini": {"few": [0.5]}}, "`scores: mini` must have numbers as sizes"),
        ({"mini": {50: []}}, "`scores: mini, 50` must have 1 axes"),
        ({"mini": {50: 0.5}}, "`scores: mini, 50` must have 1 axes"),
        ({"mini": {50: [0.5, np.nan]}}, "`scores: mini, 50` must be finite"),
    ],
)
def test_bad_input_is_named(scores, message):
    with pytest.raises(ValueError, match=message) as caught:
        seed_dots(scores)
    assert "Received" in str(caught.value)
