"""Heat maps: matrices as pictures, and tables of positions."""

import math

import numpy as np

from bertbook.figures.style import (
    COLORS,
    INK,
    PAPER,
    WIDTH,
    Picture,
    check_labels,
    check_sizes,
    checked,
    counted,
    new_figure,
    printable,
    same_digits,
    styled,
    text_width,
    tint,
    title_lines,
    widest,
)


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


def name_ticks(axes, names, axis, room):
    """Writes names along an axis, rotated or thinned until they fit.

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
    if axis == "x" and widest(shown, size) > room * step - 0.06:
        steep = room * step < size * 1.7 / 72
        for label in axes.get_xticklabels():
            label.set(rotation=90 if steep else 45, rotation_mode="anchor")
            label.set(ha="right", va="center" if steep else "top")


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
    width = min(0.5, (5.9 - widest(row_names)) / shape[1])
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
    below = widest(columns) * 0.75 if widest(columns) > width else 0.1
    around = below + (0.5 if x_label else 0.3) + 0.2 * len(title_lines(title))
    figure = new_figure(max(tall, text_width(y_label, 9)) + around, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    limits = _limits([values[visible]], diverging)
    image = _matrix(axes, values, limits, diverging, visible)
    axes.set_aspect(height / width)
    name_ticks(axes, rows, "y", height)
    name_ticks(axes, columns, "x", width)
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
    size = min(8, 8 * 0.86 * room / widest(texts[visible].tolist()))
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
    unseen = counted((~visible).sum(), "hidden cell")
    hidden = "" if visible.all() else f"; {unseen}"
    return (
        f"heat map of {counted(values.shape[0], 'row')} and "
        f"{counted(values.shape[1], 'column')}, "
        f"values from {texts.flat[low]} to {texts.flat[high]}, the largest "
        f"in row {row}, column {column}{hidden}."
    )


@styled
def heat_maps(
    panels,
    labels=None,
    title="",
    alt=None,
    columns=4,
    x_label="",
    y_label="",
    numbers=False,
):
    """Draws several matrices side by side on one scale of colors.

    Args:
        panels: List of `(title, values)`, each an array of shape `(T, S)`.
        labels: Optional labels of rows and columns, the same in each panel.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        columns: How many panels go in one row.
        x_label: What the columns of a panel are.
        y_label: What its rows are.
        numbers: Whether to write each value into its cell, in place of the
            scale of colors.

    Returns:
        A `Picture`.
    """
    panels = _panels(panels, labels)
    check_sizes(columns=columns)
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    names = widest(labels, 7)
    side = min(4.5, (WIDTH - 0.8 - names) / columns - 0.1)
    height = rows * (side + 0.3) + names + (0.45 if title else 0.2)
    figure = new_figure(
        height + 0.2 * bool(x_label), title, layout="compressed"
    )
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    limits = _limits([values for _, values in panels])
    for i, (axes, (name, values)) in enumerate(zip(grid, panels, strict=False)):
        image = _matrix(axes, values, limits)
        axes.set(title=printable(name), xticks=[], yticks=[])
        room = side / max(values.shape)
        if labels is not None and i % columns == 0:
            name_ticks(axes, labels, "y", room)
        if labels is not None and i + columns >= len(panels):
            name_ticks(axes, labels, "x", room)
        if i % columns == 0:
            axes.set(ylabel=y_label)
        if i + columns >= len(panels):
            axes.set(xlabel=x_label)
        if numbers:
            everywhere = np.ones(values.shape, dtype=bool)
            _cell_numbers(axes, image, values, everywhere, room)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    if not numbers:
        figure.colorbar(image, ax=list(grid), shrink=0.8, pad=0.02, aspect=25)
    text = ", ".join(f"{name} up to {v.max():.2f}" for name, v in panels)
    text = f"{title or 'Matrices'}: {counted(len(panels), 'heat map')}; {text}."
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
    name_ticks(left, None, "x", 1)
    name_ticks(left, None, "y", 1)
    for row, column in enumerate(some):
        axes = figure.add_subplot(cells[row, 1])
        axes.plot(table[:, column], color=COLORS["position"])
        axes.set(title=f"column {column}", ylim=_limits([table * 1.1], True))
        axes.grid(True)
        axes.tick_params(axis="x", labelbottom=row == len(some) - 1)
    axes.set(xlabel="position")
    name_ticks(axes, None, "x", 1)
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
