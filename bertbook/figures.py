"""Numbers to pictures, in one drawing language for the whole book.

A thing has the same color wherever it is drawn, the alternative text of a
picture says what it shows, and the same numbers give the same bytes.

Differences: none; nothing here computes.
"""

import functools
import io
import math
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
# Neighbours in this order differ in hue and in gray.
SERIES = ("token", "query", "position", "attention", "segment", "value")
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
            figure.draw_without_rendering()  # places everything
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
        figure.suptitle(title, weight="bold")
    return figure


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


def readable(value):
    """Writes a number for a label: 1,234,567 or three digits that count."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def color_map(diverging=False):
    """Returns the colors of a matrix: darker is more, also in gray."""
    from matplotlib.colors import LinearSegmentedColormap

    if diverging:
        stops = ["#08406B", COLORS["token"], PAPER, COLORS["query"], "#7A3300"]
    else:
        stops = [PAPER, "#B9B3DA", COLORS["attention"], "#1E1748"]
    return LinearSegmentedColormap.from_list("book", stops)


def _limits(arrays, diverging):
    """Returns the lowest and the highest value that the colors span."""
    low = min(float(a.min()) for a in arrays)
    high = max(float(a.max()) for a in arrays)
    if diverging:
        low, high = -max(-low, high), max(-low, high)
    elif low >= 0:
        low = 0.0
    return (low, high) if high > low else (low - 1, low + 1)


def _ticks(axes, names, axis, room, name="labels"):
    """Writes `names` along an axis, turned or thinned until they fit.

    Args:
        axes: Where to write.
        names: One label a row or column; None leaves the axis bare.
        axis: "x" or "y".
        room: Inches for one label.
        name: The argument, for messages.
    """
    target = axes.xaxis if axis == "x" else axes.yaxis
    target.set_tick_params(length=0)
    if names is None:
        return
    size = min(8.0, max(5.5, room * 72 * 0.85))
    step = max(1, math.ceil(size * 1.1 / 72 / room))
    shown = [str(n) for n in names][::step]
    target.set_ticks(range(0, len(names), step), shown, fontsize=size)
    widest = max(map(len, shown)) * size * 0.62 / 72
    if axis == "x" and widest > room * step:
        steep = room * step < size * 1.7 / 72
        axes.tick_params(axis="x", rotation=90 if steep else 45)
        for label in axes.get_xticklabels():
            label.set(ha="center" if steep else "right", rotation_mode="anchor")
            if steep:
                label.set(ha="right", va="center")


def _check_names(names, length, name):
    if names is not None and len(names) != length:
        raise ValueError(
            f"`{name}` must hold {length} labels. Received: {len(names)}."
        )


def _matrix(axes, values, limits, diverging, visible=None):
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
        axes.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor=tint("masked", 0.15),
                edgecolor=tint("masked", 0.6),
                hatch="////",
                linewidth=0,
            )
        )
    return image


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
    _check_names(rows, values.shape[0], "rows")
    _check_names(columns, values.shape[1], "columns")
    visible = np.broadcast_to(True if mask is None else mask, values.shape)
    visible = np.asarray(visible, dtype=bool)
    room = min(0.5, 5.2 / values.shape[1], 6.0 / values.shape[0])
    labelled = rows is not None or columns is not None or numbers
    height = room * values.shape[0] + 1.0 if labelled else 3.6
    figure = new_figure(max(height, 1.8), title)
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    limits = _limits([values[visible]] if visible.any() else [values], diverging)
    image = _matrix(axes, values, limits, diverging, visible)
    axes.set_aspect("equal" if labelled else "auto")
    if labelled:
        _ticks(axes, rows, "y", room)
        _ticks(axes, columns, "x", room)
    if numbers:
        _cell_numbers(axes, values, limits, visible, room)
    figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02)
    return Picture(figure, alt or _matrix_alt(values, rows, columns, title))


def _cell_numbers(axes, values, limits, visible, room):
    """Writes every visible value, dark on light and light on dark."""
    image = axes.images[0]
    for row, column in np.argwhere(visible):
        red, green, blue, _ = image.to_rgba(values)[row, column]
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
        axes.text(
            column,
            row,
            f"{values[row, column]:.2f}",
            ha="center",
            va="center",
            color=PAPER if dark else INK,
            fontsize=min(8, room * 72 * 0.36),
        )


def _matrix_alt(values, rows, columns, title):
    """Describes a matrix: its size, its range, its largest value."""
    row, column = np.unravel_index(np.argmax(values), values.shape)
    row = repr(rows[row]) if rows is not None else row
    column = repr(columns[column]) if columns is not None else column
    return (
        f"{title or 'Matrix'}: heat map of {values.shape[0]} rows and "
        f"{values.shape[1]} columns, from {values.min():.2f} to "
        f"{values.max():.2f}; the largest value is in row {row}, "
        f"column {column}."
    )


@styled
def heat_maps(panels, labels=None, title="", alt=None, columns=4):
    """Draws several matrices side by side on one scale of colors.

    Args:
        panels: List of `(title, values)`, each an array of shape `(S, T)`.
        labels: Optional labels of rows and columns, the same in each panel.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        columns: How many panels stand in one row.

    Returns:
        A `Picture`.
    """
    if not panels:
        raise ValueError("`panels` must hold a matrix. Received: none.")
    panels = [(name, checked(v, f"panels: {name}", 2)) for name, v in panels]
    for name, values in panels:
        for length in values.shape:
            _check_names(labels, length, "labels")
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    side = (WIDTH - 1.3) / columns
    figure = new_figure(rows * (side + 0.25) + 0.9, title)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    limits = _limits([values for _, values in panels], False)
    for i, axes in enumerate(grid):
        if i >= len(panels):
            axes.set_axis_off()
            continue
        name, values = panels[i]
        axes.set_title(name)
        image = _matrix(axes, values, limits, False)
        room = side * 0.85 / max(values.shape)
        below = i + columns < len(panels)
        axes.set(xticks=[], yticks=[])
        _ticks(axes, None if i % columns else labels, "y", room)
        _ticks(axes, None if below else labels, "x", room)
    figure.colorbar(image, ax=list(grid), shrink=0.6, pad=0.02)
    peaks = ", ".join(f"{name} up to {v.max():.2f}" for name, v in panels)
    return Picture(
        figure, alt or f"{title or 'Matrices'}: {len(panels)} heat maps: {peaks}."
    )


def _legend(figure, axes):
    """Writes the names of the series below the axes, in rows that fit."""
    handles, names = axes.get_legend_handles_labels()
    if names:
        widest = max(len(name) for name in names) * 0.075 + 0.6
        columns = max(1, min(len(names), int((WIDTH - 0.4) / widest)))
        figure.legend(
            handles, names, loc="outside lower center", ncols=columns
        )


def _series(index):
    """Returns the color and the dashes of a series."""
    key = SERIES[index % len(SERIES)]
    return COLORS[key], DASHES[(index + index // len(SERIES)) % len(DASHES)]


def _named(values, name):
    """Checks that a dict holds something."""
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
    ends = []
    for i, (name, (x, y)) in enumerate(_named(lines, "lines").items()):
        x = checked(x, f"lines: x of {name}", 1)
        y = checked(y, f"lines: y of {name}", 1, len(x))
        color, dashes = _series(i)
        marker = "o" if len(x) <= 12 else None
        axes.plot(
            x, y, label=name, color=color, ls=dashes, marker=marker, ms=3.5
        )
        ends.append(f"{name} from {readable(y[0])} to {readable(y[-1])}")
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    for axis, log in ((axes.xaxis, log_x), (axes.yaxis, log_y)):
        if log:
            axis.set_major_formatter(lambda value, _: readable(value))
    _legend(figure, axes)
    over = f" over {x_label}" if x_label else ""
    text = f"{title or y_label or 'Curves'}{over}: {'; '.join(ends)}."
    return Picture(figure, alt or text)


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
    grouped = isinstance(next(iter(values.values())), dict)
    groups = values if grouped else {name: {"": v} for name, v in values.items()}
    names = list(dict.fromkeys(n for group in groups.values() for n in group))
    thick = 0.8 / len(names)
    figure = new_figure(
        1.1 + len(groups) * max(0.3, 0.22 * len(names) + 0.1), title
    )
    axes = figure.add_subplot(xlabel=x_label)
    axes.grid(True, axis="x")
    axes.margins(x=0.12 if numbers else 0.03)
    for i, name in enumerate(names):
        rows = [r for r, group in enumerate(groups.values()) if name in group]
        lengths = [
            float(group[name]) for group in groups.values() if name in group
        ]
        drawn = axes.barh(
            [row + (i - (len(names) - 1) / 2) * thick for row in rows],
            lengths,
            height=thick * 0.92,
            color=_series(i)[0],
            label=name,
        )
        if numbers:
            axes.bar_label(drawn, [readable(v) for v in lengths], padding=3)
    axes.set_yticks(range(len(groups)), groups)
    axes.invert_yaxis()
    if grouped:
        _legend(figure, axes)
    said = "; ".join(
        f"{group}: " + ", ".join(
            f"{n} {readable(v)}".strip() for n, v in members.items()
        )
        for group, members in groups.items()
    )
    return Picture(figure, alt or f"{title or x_label or 'Bars'}: {said}.")


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
        color, dashes = _series(i)
        counts, _ = np.histogram(numbers, edges)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.2)
        axes.stairs(
            counts, edges, color=color, ls=dashes, lw=1.4, label=name
        )
    _legend(figure, axes)
    said = "; ".join(
        f"{name}: {len(v):,} values, mean {readable(v.mean())}, from "
        f"{readable(v.min())} to {readable(v.max())}"
        for name, v in flat.items()
    )
    return Picture(figure, alt or f"{title or x_label or 'Histogram'}: {said}.")


def _index(tokens, token):
    """Returns where `token`, a text or an index, stands among `tokens`."""
    if isinstance(token, str):
        if list(tokens).count(token) != 1:
            raise ValueError(
                "`token` must be the index of a token, or a text that stands "
                f"once in `tokens`. Received: {token!r}, which stands there "
                f"{list(tokens).count(token)} times."
            )
        return list(tokens).index(token)
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
    here = _index(tokens, token)
    panels = weights if isinstance(weights, dict) else {"": weights}
    panels = {
        name: checked(row, "weights", 1, len(tokens))
        for name, row in _named(panels, "weights").items()
    }
    figure = new_figure(1.9 * len(panels) + 0.9, title)
    grid = figure.subplots(len(panels), 1, squeeze=False, sharey=True)[:, 0]
    for axes, (name, row) in zip(grid, panels.items(), strict=True):
        axes.bar(range(len(tokens)), row, color=COLORS["attention"], width=0.7)
        axes.set(title=name, ylabel=f"weight of {tokens[here]!r}")
        axes.grid(True, axis="y")
        _ticks(axes, tokens, "x", 6.0 / len(tokens))
        axes.get_xticklabels()[here].set(weight="bold")
    said = "; ".join(
        f"{name + ': ' if name else ''}most on {tokens[int(row.argmax())]!r}, "
        f"{row.max():.2f}, sum {row.sum():.2f}"
        for name, row in panels.items()
    )
    return Picture(
        figure,
        alt or f"{title or 'Attention'}: how {tokens[here]!r} looks at "
        f"{len(tokens)} tokens; {said}.",
    )


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
    figure = new_figure(3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    image = _matrix(left, table, _limits([table], True), True)
    left.set(aspect="auto", xlabel="column", ylabel="position")
    left.set_title("the table")
    figure.colorbar(image, ax=left)
    some = sorted({c - c % 2 for c in (0, width // 8, width // 4, width // 2)})
    for i, column in enumerate(some):
        color, dashes = _series(i)
        right.plot(table[:, column], color=color, ls=dashes, label=f"column {column}")
    right.set(xlabel="position", title="some of its columns")
    right.grid(True)
    _legend(figure, right)
    text = (
        f"Table of {length} position vectors of width {width}, from "
        f"{table.min():.2f} to {table.max():.2f}, and columns "
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
    products = table @ table.T
    figure = new_figure(4.2)
    axes = figure.add_subplot(xlabel="position", ylabel="position")
    diverging = bool(products.min() < 0)
    limits = _limits([products], diverging)
    image = _matrix(axes, products, limits, diverging)
    figure.colorbar(image, ax=axes, label="dot product")
    text = (
        f"Dot products of {len(table)} position vectors, from "
        f"{products.min():.2f} to {products.max():.2f}; on the diagonal "
        f"{np.diag(products).mean():.2f} on average."
    )
    return Picture(figure, alt or text)


# What the name of a tensor contains, in which part it is drawn, in which color.
PARTS = (
    ("embeddings/token", "token embeddings", "token"),
    ("embeddings/position", "position embeddings", "position"),
    ("embeddings/segment", "segment embeddings", "segment"),
    ("norm/", "normalizations", "norm"),
    ("/attention/", "attention", "attention"),
    ("/feed_forward/", "feed-forward", "feed_forward"),
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
    check_config(config)
    counts = parameters_by_part(config)
    total = sum(counts.values())
    figure = new_figure(3.0, f"{total:,} parameters")
    axes = figure.add_subplot()
    axes.set_axis_off()
    left, said = 0, []
    for row, (_, part, color) in enumerate(PARTS):
        count = counts[part]
        axes.barh(
            0, count, left=left, height=1, color=COLORS[color], edgecolor=PAPER
        )
        left += count
        said.append(f"{part} {count:,} ({count / total:.1%})")
        y = 1.1 + row * 0.55
        axes.plot(0.16 * total, y, marker="s", color=COLORS[color], ms=8)
        axes.text(0.2 * total, y, part, va="center")
        axes.text(0.66 * total, y, f"{count:,}", va="center", ha="right")
        axes.text(
            0.8 * total, y, f"{count / total:.1%}", va="center", ha="right"
        )
    axes.set(xlim=(0, total), ylim=(4.8, -0.6))
    layers = config.num_hidden_layers
    text = f"Parameters of an encoder of {layers} blocks: {', '.join(said)}."
    return Picture(figure, alt or f"{text} In all {total:,}.")


def check_config(config):
    """Raises where `config` is no `BertConfig`."""
    if not isinstance(config, BertConfig):
        raise ValueError(
            f"`config` must be a BertConfig. Received: {config!r}."
        )
