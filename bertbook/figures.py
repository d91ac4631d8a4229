"""Numbers to pictures, in one drawing language for the whole book.

A thing has the same color wherever it is drawn, the alternative text of a
picture says what it shows, and the same numbers give the same bytes.

Differences: none; nothing here computes.
"""

import functools
import io
import math
import textwrap
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bertbook.config import BertConfig
from bertbook.names import encoder_shapes

WIDTH = 7.0  # inches, every picture
DPI = 110
INK = "#22262B"  # text and lines
PAPER = "#FFFFFF"
COLORS = {
    "token": "#0072B2",
    "segment": "#E69F00",
    "position": "#009E73",
    "sum": "#5F6B7A",
    "query": "#D55E00",
    "key": "#3A9BD9",
    "value": "#C0628F",
    "score": "#999933",
    "attention": "#4B3F92",
    "masked": "#3B3B3B",
    "norm": "#CDA815",
    "feed_forward": "#A6611A",
    "block": "#2F4B7C",
    "output": "#882255",
    "muted": "#B4BAC2",
}
# For things without a color of their own; neighbours differ in gray too.
SERIES = ("token", "segment", "value", "attention", "query", "position")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.titlesize": 10.5,
    "font.size": 8.5,
    "grid.color": "#E3E6EA",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # a token may be "$"
    "xtick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.color": INK,
    "ytick.major.width": 0.7,
}


@contextmanager
def book_style():
    """Sets the book's typography, whatever the reader's settings are."""
    try:
        from matplotlib import style
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: `pip install bertbook[book]`."
        ) from error
    with style.context(["default", STYLE]):
        yield


def styled(draw):
    """Makes a function draw in the book's style."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        with book_style():
            return draw(*args, **kwargs)

    return drawn


class Picture:
    """A figure with its alternative text; a notebook shows the image.

    Args:
        figure: A matplotlib `Figure` that belongs to no window.
        alt: What the picture shows, for those who do not see it.
    """

    def __init__(self, figure, alt):
        self.figure, self.alt = figure, " ".join(alt.split())
        with book_style():
            for text in figure.findobj(_is_text):
                text.set_text(printable(text.get_text()))
            for _ in range(2 if figure.get_layout_engine() else 0):
                figure.draw_without_rendering()  # places everything, better
            figure.set_layout_engine("none")  # and keeps it there

    def png(self):
        """Returns the bytes of the image, the same for the same picture."""
        buffer = io.BytesIO()
        with book_style():
            self.figure.savefig(
                buffer, format="png", dpi=DPI, metadata={"Software": None}
            )
        return buffer.getvalue()

    def save(self, path):
        """Writes the image to a file whose name ends in `.png`."""
        if Path(path).suffix.lower() != ".png":
            raise ValueError(f"`path` must end in '.png'. Received: {path}.")
        Path(path).write_bytes(self.png())

    def __repr__(self):
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"image/png": self.png(), "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}  # nbconvert reads it


def new_figure(height, title="", layout="constrained"):
    """Returns an empty figure of the book's width.

    Args:
        height: In inches.
        title: Line above everything.
        layout: "constrained", or "none" for a drawing that fills the page.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((WIDTH, height), DPI, facecolor=PAPER, layout=layout)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle("\n".join(_lines(title)), weight="bold")
    return figure


def _lines(title):
    """Returns the lines of a title; one may be too long for the page."""
    return textwrap.wrap(title, 76)


def tint(color, strength=0.25):
    """Mixes a color of `COLORS`, by its key, with white: 0 is white."""
    from matplotlib.colors import to_rgb

    return tuple(1 - strength * (1 - c) for c in to_rgb(COLORS[color]))


def checked(values, name, ndim, size=None):
    """Returns `values` as floats after a check of their shape.

    Args:
        values: Anything that `np.asarray` takes.
        name: The argument, for messages.
        ndim: How many axes it must have.
        size: Optional length of its last axis.

    Raises:
        ValueError: The shape is another, or a value is not finite.
    """
    array = np.asarray(values, dtype="float64")
    if array.ndim != ndim or array.size == 0:
        raise ValueError(
            f"`{name}` must have {ndim} axes and hold numbers. "
            f"Received shape: {array.shape}."
        )
    if size is not None and array.shape[-1] != size:
        raise ValueError(
            f"`{name}` must hold {size} numbers, one a token. "
            f"Received: {array.shape[-1]}."
        )
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise ValueError(f"`{name}` must be finite. Received: {bad}.")
    return array


def check_config(config, name="config"):
    """Returns `config` after a check that it is a `BertConfig`."""
    if not isinstance(config, BertConfig):
        raise ValueError(
            f"`{name}` must be a BertConfig. Received: {config!r}."
        )
    return config


def check_sizes(**sizes):
    """Raises where a size is not a positive integer."""
    for name, value in sizes.items():
        if isinstance(value, bool) or value < 1 or value != int(value):
            raise ValueError(
                f"`{name}` must be an integer >= 1. Received: {value!r}."
            )


def check_labels(labels, length, name):
    """Returns labels as a list, or None where there are none.

    Raises:
        ValueError: There are not `length` of them.
    """
    if labels is None:
        return None
    labels = list(labels)
    if len(labels) != length:
        raise ValueError(
            f"`{name}` must hold {length} labels. Received: {len(labels)}."
        )
    return labels


def readable(value):
    """Writes a number for a label: 1,234,567 or three digits that count."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def same_digits(values):
    """Writes all numbers of an array alike: 3 if all are whole, else 3.00."""
    whole = (values == values.round()).all()
    digits = 0 if whole or np.abs(values).max() >= 100 else 2
    return np.vectorize(lambda value: f"{value + 0.0:,.{digits}f}")(values)


def plain(value):
    """Writes a number of an axis: 10,000, not 1e4."""
    return f"{value:,.10g}"


def share(part, whole):
    """Writes a share in percent; what is there is never 0.0%."""
    text = f"{part / whole:.1%}"
    return "< 0.1%" if text == "0.0%" and part else text


def _counted(count, thing):
    """Writes a number of things: "1 row", "2 rows"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


@functools.lru_cache
def _glyphs():
    """Returns the code points that the book's font can draw."""
    from matplotlib import font_manager

    path = font_manager.findfont("DejaVu Sans")
    return frozenset(font_manager.get_font(path).get_charmap())


def printable(text):
    """Writes `U+4E2D` for each character that the book's font lacks."""
    return "".join(
        c if c == "\n" or ord(c) in _glyphs() else f"U+{ord(c):04X}"
        for c in str(text)
    )


def _is_text(artist):
    return hasattr(artist, "set_fontsize") and hasattr(artist, "set_text")


@functools.lru_cache(maxsize=4096)
def text_width(text, size):
    """Returns the inches that the widest line of a text takes."""
    from matplotlib.textpath import TextPath

    lines = [line for line in printable(text).split("\n") if line.strip()]
    ends = [TextPath((0, 0), line, size).vertices[:, 0] for line in lines]
    return max((end.max() for end in ends), default=0.0) / 72


def color_map(diverging=False):
    """Returns the colors of a matrix: darker is more, also in gray.

    Diverging colors end darker below zero than above it.
    """
    from matplotlib.colors import LinearSegmentedColormap

    if diverging:
        stops = ["#06304F", "#3A8BC0", PAPER, "#F2A868", "#C65100"]
    else:
        stops = [PAPER, "#B9B3DA", COLORS["attention"], "#1E1748"]
    return LinearSegmentedColormap.from_list("book", stops)


def _limits(arrays, diverging=False):
    """Returns the lowest and the highest value that the colors span."""
    low = min(float(a.min()) for a in arrays)
    high = max(float(a.max()) for a in arrays)
    if diverging:
        low, high = -max(-low, high), max(-low, high)
    elif low >= 0:
        low = 0.0
    return (low, high) if high > low else (low - diverging, low + 1)


def _ticks(axes, names, axis, room):
    """Writes names along an axis, turned or thinned until they fit.

    Args:
        axes: Where to write.
        names: One name a row or column; None counts them.
        axis: "x" or "y".
        room: Inches for one name.
    """
    target = axes.xaxis if axis == "x" else axes.yaxis
    if names is None:
        target.get_major_locator().set_params(integer=True, min_n_ticks=1)
        return
    size = min(8.0, max(5.5, room * 72 * 0.85))
    step = math.ceil(size * 1.1 / 72 / room)
    shown = [printable(name) for name in names[::step]]
    target.set_ticks(range(0, len(names), step), shown, fontsize=size)
    target.set_tick_params(length=0)
    if axis == "x" and _width(shown, size) > room * step - 0.06:
        steep = room * step < size * 1.7 / 72
        for label in axes.get_xticklabels():
            label.set(rotation=90 if steep else 45, rotation_mode="anchor")
            label.set(ha="right", va="center" if steep else "top")


def _width(names, size=8.0):
    """Returns the inches that the widest of some names takes."""
    return max((text_width(name, size) for name in names or ()), default=0.0)


def _matrix(axes, values, limits, diverging=False, visible=None):
    """Draws one matrix, its hidden cells hatched, and returns the image."""
    from matplotlib.patches import Rectangle

    image = axes.imshow(
        values,
        cmap=color_map(diverging),
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
    )
    axes.spines[:].set_visible(True)
    for row, column in [] if visible is None else np.argwhere(~visible):
        cell = Rectangle((column - 0.5, row - 0.5), 1, 1, linewidth=0)
        cell.set(facecolor=tint("masked", 0.15), hatch="////")
        cell.set_edgecolor(tint("masked", 0.6))
        axes.add_patch(cell)
    return image


def _scale(axes, image, width, height, label=""):
    """Draws the scale of colors beside axes of that many inches."""
    from matplotlib.ticker import MaxNLocator

    beside = axes.inset_axes((1 + 0.15 / width, 0, 0.12 / width, 1))
    ticks = MaxNLocator(min(6, max(1, int(height / 0.3))))
    axes.figure.colorbar(image, cax=beside, label=label, ticks=ticks)


def _visible(mask, shape):
    """Returns the mask at full shape, all True where there is none."""
    mask = np.asarray(True if mask is None else mask, dtype=bool)
    try:
        mask = np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(
            f"`mask` must broadcast to {shape}. Received shape: {mask.shape}."
        ) from None
    if not mask.any():
        raise ValueError("`mask` must leave a value visible. Received: none.")
    return mask


def _cells(shape, row_names):
    """Returns the inches of a cell, (width, height); square where it can be."""
    width = min(0.5, (5.9 - _width(row_names)) / shape[1])
    height = min(0.5, (4.0 if shape[0] > 40 else 6.0) / shape[0])
    if min(width, height) >= 0.12 or shape[0] == shape[1]:
        return (min(width, height),) * 2
    return width, max(min(0.25, 3.0 / shape[0]), 0.6 / shape[0])


@styled
def heat_map(
    values,
    rows=None,
    columns=None,
    title="",
    alt=None,
    x_label="",
    y_label="",
    numbers=False,
    diverging=False,
    mask=None,
):
    """Draws a matrix as colors.

    Args:
        values: Array of shape `(R, C)`.
        rows: Optional R labels.
        columns: Optional C labels.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        x_label: What the columns are.
        y_label: What the rows are.
        numbers: Whether to write each value into its cell.
        diverging: Whether zero is white, with a color on each side.
        mask: Optional boolean array that broadcasts to `(R, C)`, True where
            a value is visible, as in attention; other cells are hatched.

    Returns:
        A `Picture`.
    """
    values = checked(values, "values", 2)
    rows = check_labels(rows, values.shape[0], "rows")
    columns = check_labels(columns, values.shape[1], "columns")
    visible = _visible(mask, values.shape)
    width, height = _cells(values.shape, rows)
    tall = height * len(values)
    below = _width(columns) * 0.75 if _width(columns) > width else 0.1
    around = below + (0.5 if x_label else 0.3) + 0.2 * len(_lines(title))
    figure = new_figure(max(tall, text_width(y_label, 9)) + around, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    limits = _limits([values[visible]], diverging)
    image = _matrix(axes, values, limits, diverging, visible)
    axes.set_aspect(height / width)
    _ticks(axes, rows, "y", height)
    _ticks(axes, columns, "x", width)
    if numbers:
        _cell_numbers(axes, image, values, visible, width)
    else:
        _scale(axes, image, width * values.shape[1], tall)
    text = _matrix_alt(values, visible, rows, columns)
    return Picture(figure, alt or f"{title or 'Matrix'}: {text}")


def _cell_numbers(axes, image, values, visible, room):
    """Writes every visible value, dark on light and light on dark."""
    red, green, blue, _ = np.moveaxis(image.to_rgba(values) ** 2.2, -1, 0)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    texts = same_digits(values)
    size = min(8, 8 * 0.86 * room / _width(texts[visible].tolist()))
    how = {"ha": "center", "va": "center", "fontsize": size}
    for row, column in np.argwhere(visible):
        how["color"] = INK if light[row, column] > 0.2 else PAPER
        axes.text(column, row, texts[row, column], **how)


def _matrix_alt(values, visible, rows, columns):
    """Describes a matrix: its size, its range, its largest value."""
    texts = same_digits(values)
    low = np.argmin(np.where(visible, values, np.inf))
    high = np.argmax(np.where(visible, values, -np.inf))
    row, column = np.unravel_index(high, values.shape)
    row = row + 1 if rows is None else repr(rows[row])
    column = column + 1 if columns is None else repr(columns[column])
    unseen = _counted((~visible).sum(), "hidden cell")
    hidden = "" if visible.all() else f"; {unseen}"
    return (
        f"heat map of {_counted(values.shape[0], 'row')} and "
        f"{_counted(values.shape[1], 'column')}, "
        f"values from {texts.flat[low]} to {texts.flat[high]}, the largest "
        f"in row {row}, column {column}{hidden}."
    )


@styled
def heat_maps(panels, labels=None, title="", alt=None, columns=4):
    """Draws several matrices side by side on one scale of colors.

    Args:
        panels: List of `(title, values)`, each an array of shape `(T, S)`.
        labels: Optional labels of rows and columns, the same in each panel.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        columns: How many panels stand in one row.

    Returns:
        A `Picture`.
    """
    panels = _panels(panels, labels)
    check_sizes(columns=columns)
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    names = _width(labels, 7)
    side = min(4.5, (WIDTH - 0.8 - names) / columns - 0.1)
    height = rows * (side + 0.3) + names + (0.45 if title else 0.2)
    figure = new_figure(height, title, layout="compressed")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    limits = _limits([values for _, values in panels])
    for i, (axes, (name, values)) in enumerate(zip(grid, panels, strict=False)):
        image = _matrix(axes, values, limits)
        axes.set(title=printable(name), xticks=[], yticks=[])
        room = side / max(values.shape)
        if labels is not None and i % columns == 0:
            _ticks(axes, labels, "y", room)
        if labels is not None and i + columns >= len(panels):
            _ticks(axes, labels, "x", room)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(grid), shrink=0.8, pad=0.02, aspect=25)
    text = ", ".join(f"{name} up to {v.max():.2f}" for name, v in panels)
    text = (
        f"{title or 'Matrices'}: {_counted(len(panels), 'heat map')}; {text}."
    )
    return Picture(figure, alt or text)


def _panels(panels, labels):
    """Returns the panels of `heat_maps` as a checked list."""
    panels = [(name, checked(v, f"panels: {name}", 2)) for name, v in panels]
    if not panels:
        raise ValueError("`panels` must hold a matrix. Received: none.")
    for _, values in panels:
        for length in values.shape:
            check_labels(labels, length, "labels")
    return panels


def _legend(figure, axes):
    """Writes the names of the series below the axes, in rows that fit."""
    handles, names = axes.get_legend_handles_labels()
    if names:
        room = _width(names, STYLE["legend.fontsize"]) + 0.6
        figure.legend(
            handles,
            [printable(name) for name in names],
            loc="outside lower center",
            ncols=max(1, min(len(names), int((WIDTH - 0.3) / room))),
        )


def _look(name, index):
    """Returns the color and the dashes of a series.

    A name of `COLORS` has its own color; others take turns.
    """
    key = str(name).lower().replace(" ", "_").replace("-", "_")
    key = key if key in COLORS else SERIES[index % len(SERIES)]
    turn = index + index // len(SERIES)
    return COLORS[key], DASHES[turn % len(DASHES)]


def _named(values, name):
    """Returns a dict that holds something."""
    if not isinstance(values, dict) or not values:
        raise ValueError(
            f"`{name}` must be a dict with at least one name. "
            f"Received: {values!r}."
        )
    return values


@styled
def curves(
    lines,
    x_label="",
    y_label="",
    title="",
    alt=None,
    log_x=False,
    log_y=False,
):
    """Draws one line a name.

    Args:
        lines: Dict of names to `(x, y)`, two arrays of the same length.
        x_label: What runs to the right.
        y_label: What runs upwards.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        log_x: Whether x is drawn on a logarithmic scale.
        log_y: Whether y is.

    Returns:
        A `Picture`.
    """
    figure = new_figure(3.4, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    axes.grid(True)
    said = []
    for i, (name, (x, y)) in enumerate(_named(lines, "lines").items()):
        x = checked(x, f"lines: x of {name}", 1)
        y = checked(y, f"lines: y of {name}", 1, len(x))
        color, dashes = _look(name, i)
        marker = "o" if len(x) <= 12 else None
        axes.plot(
            x, y, label=name, color=color, ls=dashes, marker=marker, ms=3.5
        )
        said.append(f"{name} from {readable(y[0])} to {readable(y[-1])}")
    _axis(axes, "x", log_x)
    _axis(axes, "y", log_y)
    if list(lines) != [y_label]:  # else the axis says it
        _legend(figure, axes)
    over = f" over {x_label}" if x_label else ""
    text = f"{title or y_label or 'Curves'}{over}: {'; '.join(said)}."
    return Picture(figure, alt or text)


def _axis(axes, name, log=False):
    """Writes an axis in plain numbers, on a logarithmic scale if asked."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    target = axes.xaxis if name == "x" else axes.yaxis
    if log:
        low, high = getattr(axes.dataLim, f"interval{name}")
        if low <= 0:
            raise ValueError(
                f"`lines` must be above 0 where {name} is logarithmic. "
                f"Received: {low}."
            )
        axes.set(**{f"{name}scale": "log"})
        few = MaxNLocator(5) if high / low < 10 else LogLocator(subs=(1, 2, 5))
        if high / low < 300:
            target.set_major_locator(few)
        target.set_minor_formatter("")
    target.set_major_formatter(lambda value, _: plain(value))


@styled
def bars(values, x_label="", title="", alt=None, numbers=True):
    """Draws horizontal bars.

    Args:
        values: Dict of names to numbers, or of groups to such dicts.
        x_label: What a bar's length is.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        numbers: Whether to write each value at the end of its bar.

    Returns:
        A `Picture`.
    """
    values = _named(values, "values")
    grouped = any(isinstance(v, dict) for v in values.values())
    groups = values if grouped else {n: {n: v} for n, v in values.items()}
    members = [_named(group, "values") for group in groups.values()]
    names = list(dict.fromkeys(name for group in members for name in group))
    lanes = len(names) if grouped else 1
    height = len(groups) * max(0.27, 0.2 * lanes + 0.12) + 0.25 * grouped
    figure = new_figure(height + 0.65 + 0.2 * len(_lines(title)), title)
    axes = figure.add_subplot(xlabel=x_label)
    axes.grid(True, axis="x")
    thick = 0.76 / lanes
    for i, name in enumerate(names):
        rows = [row for row, group in enumerate(members) if name in group]
        lengths = checked([members[row][name] for row in rows], "values", 1)
        lane = (i % lanes - (lanes - 1) / 2) * thick
        color, _ = _look(name, i if grouped else 0)
        how = {"height": thick * 0.92, "color": color, "label": name}
        drawn = axes.barh([row + lane for row in rows], lengths, **how)
        if numbers:
            axes.bar_label(drawn, map(readable, lengths), padding=3)
    axes.margins(x=0.12 if numbers else 0.03)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_yticks(range(len(groups)), map(printable, groups))
    axes.tick_params(axis="y", length=0)
    _axis(axes, "x")
    if grouped:
        _legend(figure, axes)
    text = "; ".join(_spoken(group, g, grouped) for group, g in groups.items())
    return Picture(figure, alt or f"{title or x_label or 'Bars'}: {text}.")


def _spoken(group, members, grouped):
    """Says the bars of a group: "SST-2: ours 93.5, theirs 92"."""
    said = ", ".join(f"{n} {readable(v)}" for n, v in members.items())
    return f"{group}: {said}" if grouped else said


@styled
def histogram(values, x_label="", title="", alt=None, bins=30):
    """Draws how often values occur.

    Args:
        values: Dict of names to arrays of any shape.
        x_label: What the values are.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        bins: How many bins all names share.

    Returns:
        A `Picture`.
    """
    flat = {
        name: checked(np.ravel(np.asarray(v)), f"values: {name}", 1)
        for name, v in _named(values, "values").items()
    }
    edges = np.histogram_bin_edges(np.concatenate(list(flat.values())), bins)
    figure = new_figure(3.2, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel="how many")
    axes.grid(True, axis="y")
    for i, (name, numbers) in enumerate(flat.items()):
        color, dashes = _look(name, i)
        counts, _ = np.histogram(numbers, edges)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.2)
        axes.stairs(counts, edges, color=color, ls=dashes, lw=1.4, label=name)
    _axis(axes, "x")
    _axis(axes, "y")
    _legend(figure, axes)
    text = "; ".join(
        f"{name}: {len(v):,} values, mean {_mean(v)}, from "
        f"{readable(v.min())} to {readable(v.max())}"
        for name, v in flat.items()
    )
    return Picture(figure, alt or f"{title or x_label or 'Histogram'}: {text}.")


def _mean(values):
    """Writes a mean with the digits that its spread lets count."""
    spread = values.std() or 1.0
    digits = max(0, 1 - math.floor(math.log10(spread)))
    return f"{round(values.mean(), digits) + 0.0:,.{digits}f}"


def _index(tokens, token):
    """Returns where `token`, a text or an index, stands among `tokens`."""
    if isinstance(token, str):
        places = [i for i, text in enumerate(tokens) if text == token]
        if len(places) != 1:
            raise ValueError(
                "`token` must be the index of a token, or a text that stands "
                f"once in `tokens`. Received: {token!r}, which stands there "
                f"{len(places)} times."
            )
        return places[0]
    if not 0 <= token < len(tokens):
        raise ValueError(
            f"`token` must be in [0, {len(tokens)}). Received: {token}."
        )
    return int(token)


@styled
def attention_chart(tokens, weights, token, title="", alt=None):
    """Draws how much one token looks at each token.

    Args:
        tokens: S texts.
        weights: Row of that token, shape `(S,)`, or a dict of panel titles
            to rows, for example one a head.
        token: The token that looks: its text, or its index.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.

    Returns:
        A `Picture`.
    """
    tokens = list(tokens)
    looking = tokens[_index(tokens, token)]
    panels = weights if isinstance(weights, dict) else {"": weights}
    panels = {
        name: checked(row, "weights", 1, len(tokens))
        for name, row in _named(panels, "weights").items()
    }
    figure = new_figure(1.6 * len(panels) + 0.5 + 0.3 * bool(title), title)
    grid = figure.subplots(len(panels), 1, squeeze=False, sharey=True)[:, 0]
    for axes, (name, row) in zip(grid, panels.items(), strict=True):
        drawn = axes.bar(
            range(len(tokens)), row, color=COLORS["attention"], width=0.7
        )
        if len(tokens) <= 20:
            axes.bar_label(drawn, fmt="{:.2f}", padding=1, fontsize=7)
        axes.set(title=printable(name), xticks=[], ylabel="weight")
        axes.margins(x=0.01, y=0.15)
        axes.grid(True, axis="y")
    _ticks(grid[-1], tokens, "x", 6.2 / len(tokens))
    grid[-1].get_xticklabels()[_index(tokens, token)].set(weight="bold")
    text = "; ".join(
        f"{name + ': ' if name else ''}most to {tokens[int(row.argmax())]!r}, "
        f"{row.max():.2f}, all together {row.sum():.2f}"
        for name, row in panels.items()
    )
    text = f"weights that {looking!r} gives to {len(tokens)} tokens; {text}."
    return Picture(figure, alt or f"{title or 'Attention'}: {text}")


@styled
def position_waves(table, alt=None):
    """Draws a table of position vectors, whole and as a few columns.

    Args:
        table: Array of shape `(S, D)`.
        alt: Alternative text; made from the values where it is None.

    Returns:
        A `Picture`.
    """
    table = checked(table, "table", 2)
    length, width = table.shape
    some = sorted({c - c % 2 for c in (0, width // 8, width // 4, width // 2)})
    figure = new_figure(3.8)
    cells = figure.add_gridspec(len(some), 2, width_ratios=(1.15, 1))
    left = figure.add_subplot(cells[:, 0], xlabel="column", ylabel="position")
    image = _matrix(left, table, _limits([table], True), True)
    left.set(aspect="auto", title="the table")
    figure.colorbar(image, ax=left, aspect=30)
    _ticks(left, None, "x", 1)
    _ticks(left, None, "y", 1)
    for row, column in enumerate(some):
        axes = figure.add_subplot(cells[row, 1])
        axes.plot(table[:, column], color=COLORS["position"])
        axes.set(title=f"column {column}", ylim=_limits([table * 1.1], True))
        axes.grid(True)
        axes.tick_params(axis="x", labelbottom=row == len(some) - 1)
    axes.set(xlabel="position")
    _ticks(axes, None, "x", 1)
    text = (
        f"Table of {length} position vectors of width {width}, from "
        f"{table.min():.2f} to {table.max():.2f}, and its columns "
        f"{', '.join(map(str, some))} as curves over the position."
    )
    return Picture(figure, alt or text)


@styled
def position_similarity(table, alt=None):
    """Draws the dot product of each position's vector with each other.

    Args:
        table: Array of shape `(S, D)`.
        alt: Alternative text; made from the values where it is None.

    Returns:
        A `Picture`.
    """
    table = checked(table, "table", 2)
    products = table @ table.T  # (S, S)
    text = (
        f"Dot products of {len(table)} position vectors, from "
        f"{products.min():.2f} to {products.max():.2f}; a vector with itself "
        f"gives {np.diag(products).mean():.2f} on average."
    )
    return heat_map(
        products,
        title="Dot product of two position vectors",
        alt=alt or text,
        x_label="position",
        y_label="position",
        diverging=bool(products.min() < 0),
    )


# What the name of a tensor contains, the part it belongs to, and its color.
PARTS = (
    ("embeddings/token", "token embeddings", "token"),
    ("embeddings/position", "position embeddings", "position"),
    ("embeddings/segment", "segment embeddings", "segment"),
    ("/attention/", "attention", "attention"),
    ("/feed_forward/", "feed-forward", "feed_forward"),
    ("norm/", "normalization", "norm"),
    ("pooler/", "pooler", "output"),
)


def parameters_by_part(config):
    """Counts the parameters of each part of an encoder, pooler included."""
    counts = {part: 0 for _, part, _ in PARTS}
    for name, shape in encoder_shapes(config).items():
        part = next(part for mark, part, _ in PARTS if mark in name)
        counts[part] += math.prod(shape)
    return counts


@styled
def parameter_bars(config, alt=None):
    """Draws which part of an encoder holds how many of its parameters.

    Args:
        config: A `BertConfig`.
        alt: Alternative text; made from the counts where it is None.

    Returns:
        A `Picture`.
    """
    counts = parameters_by_part(check_config(config))
    total = sum(counts.values())
    figure = new_figure(2.7, f"{total:,} parameters")
    axes = figure.add_subplot(xlim=(0, total), ylim=(4.7, -0.6))
    axes.set_axis_off()
    left = 0
    for row, (_, part, color) in enumerate(PARTS):
        count, y = counts[part], 1.1 + row * 0.55
        axes.barh(0, count, 1, left, color=COLORS[color], edgecolor=PAPER)
        axes.barh(y, 0.02 * total, 0.3, 0.17 * total, color=COLORS[color])
        for place, text, side in (
            (0.21, part, "left"),
            (0.66, f"{count:,}", "right"),
            (0.82, share(count, total), "right"),
        ):
            axes.text(place * total, y, text, va="center", ha=side)
        if count > 0.1 * total:
            middle = left + count / 2
            text = f"{part}\n{share(count, total)}"
            axes.text(middle, 0, text, color=PAPER, va="center", ha="center")
        left += count
    said = ", ".join(
        f"{p} {n:,} ({share(n, total)})" for p, n in counts.items()
    )
    text = f"{total:,} parameters in {config.num_hidden_layers} blocks and "
    return Picture(figure, alt or f"{text}around them: {said}.")
