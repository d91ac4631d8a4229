"""Curves of a parity test: how far apart two programs are that should agree."""

import math

import numpy as np

from bertbook.figures.style import (
    COLORS,
    INK,
    Picture,
    check_named,
    check_sizes,
    checked,
    counted,
    new_figure,
    power,
    printable,
    styled,
    title_lines,
)

LEAST = 1e-8  # Smaller gaps are drawn here, because a logarithm has no 0.


def layer_names(count):
    """Returns names for the L + 1 hidden states: "emb.", "0", "1" and so on."""
    return ["emb.", *map(str, range(count - 1))]


@styled
def gap_panels(gaps, floor, title="", alt=None, columns=3):
    """Draws a panel for each program, with all the others in gray behind it.

    Args:
        gaps: Dict of names to the largest difference from the trusted program
            after the embeddings and after each layer, `(L + 1,)`.
        floor: The same for a program that is right, `(L + 1,)`: what rounding
            alone makes.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        columns: How many panels go in one row.

    Returns:
        A `Picture`.

    Raises:
        ValueError: `gaps` is empty, a difference is below 0, or the lengths
            differ.
    """
    floor = _differences(floor, "floor")
    gaps = check_named(gaps, "gaps")
    lines = {n: _differences(g, f"gaps: {n}", floor) for n, g in gaps.items()}
    check_sizes(columns=columns)
    columns = min(columns, len(lines))
    rows = math.ceil(len(lines) / columns)
    height = 1.45 * rows + 0.45 + 0.2 * len(title_lines(title))
    figure = new_figure(height, title)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    grid = grid.ravel()
    highest = max(line.max() for line in (*lines.values(), floor))
    for axes, name in zip(grid, lines, strict=False):
        _panel(axes, lines, floor, name)
        axes.set(yscale="log", ylim=(LEAST / 3, 10 * highest))
        _powers(axes)
        axes.label_outer()
    for axes in grid[len(lines) :]:
        axes.set_axis_off()
    figure.supxlabel("after the embeddings and each layer", fontsize="medium")
    dashed = grid[0].get_lines()[len(lines) - 1]
    figure.legend([dashed], ["no fault"], loc="outside lower right")
    figure.supylabel("largest difference", fontsize="medium")
    said = "; ".join(f"{n} {_said(line, floor)}" for n, line in lines.items())
    text = (
        f"{title or 'Largest differences'}: {counted(len(lines), 'panel')} "
        f"over {counted(len(floor) - 1, 'layer')}, each beside the level of "
        f"rounding; {said}."
    )
    return Picture(figure, alt or text)


def _differences(values, name, floor=None):
    """Returns differences, `(L + 1,)`, none so small that it has no place."""
    size = None if floor is None else len(floor)
    values = np.asarray(values, "float64")
    if size is not None and values.shape != (size,):
        raise ValueError(
            f"`{name}` must hold {size} differences, as many as `floor`. "
            f"Received shape: {values.shape}."
        )
    values = checked(values, name, 1)
    if values.min() < 0:
        raise ValueError(
            f"`{name}` must hold differences >= 0. Received: {values.min()}."
        )
    return np.maximum(values, LEAST)


def _panel(axes, lines, floor, name):
    """Draws one program in color, the others and the level of rounding."""
    layers = np.arange(len(floor))
    for program, line in lines.items():
        if program != name:
            axes.plot(layers, line, color=COLORS["muted"], lw=0.8, alpha=0.8)
    axes.plot(layers, floor, color=COLORS["sum"], ls="--", lw=1.2)
    axes.plot(layers, lines[name], color=COLORS["query"], marker="o", ms=3.5)
    axes.set_title(printable(name), color=INK)
    axes.set_xticks(layers, layer_names(len(floor)))
    axes.grid(True, axis="y")


def _powers(axes):
    """Names every second power of ten."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = axes.get_ylim()
    powers = range(math.ceil(math.log10(low)), math.ceil(math.log10(high)))
    axes.yaxis.set_major_locator(
        FixedLocator([10.0**p for p in powers if p % 2 == 0])
    )
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: power(value))


def _said(line, floor):
    """Says the ends of a curve; rounding differs between machines."""
    ends = [
        "rounding" if end <= 10 * floor.max() else f"{float(f'{end:.1g}'):g}"
        for end in (line[0], line[-1])
    ]
    return f"from {ends[0]} to {ends[1]}"
