"""Series of one picture: their looks, their legend, levels to compare with.

Differences: none; nothing here computes.
"""

from bertbook.drawing import (
    COLORS,
    STYLE,
    WIDTH,
    printable,
    readable,
    widest,
)

# For things without a color of their own; neighbours differ in gray too.
SERIES = ("token", "segment", "value", "attention", "query", "position")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))


def look(name, index):
    """Returns the color and the dashes of a series.

    A name of `COLORS` has its own color; others take turns.
    """
    key = str(name).lower().replace(" ", "_").replace("-", "_")
    key = key if key in COLORS else SERIES[index % len(SERIES)]
    turn = index + index // len(SERIES)
    return COLORS[key], DASHES[turn % len(DASHES)]


def draw_legend(figure, axes):
    """Writes the names of the series below the axes, in rows that fit."""
    handles, names = axes.get_legend_handles_labels()
    if names:
        room = widest(names, STYLE["legend.fontsize"]) + 0.6
        figure.legend(
            handles,
            [printable(name) for name in names],
            loc="outside lower center",
            ncols=max(1, min(len(names), int((WIDTH - 0.3) / room))),
        )


def draw_levels(axes, levels, beside=False):
    """Draws level lines in gray, each with its name at the right end.

    Args:
        axes: Where to draw.
        levels: Dict of names to heights; None is none.
        beside: Whether a name stands to the right of the axes, where nothing
            is drawn, and not on its line.

    Returns:
        What the levels say, a text each.
    """
    place = {"xytext": (-3, 2), "ha": "right", "va": "bottom"}
    if beside:
        place = {"xytext": (4, 0), "ha": "left", "va": "center"}
    said = []
    for name, height in (levels or {}).items():
        axes.axhline(height, color=COLORS["sum"], ls="--", lw=1)
        axes.annotate(
            name,
            (1, height),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize="small",
            **place,
        )
        said.append(f"{name} at {readable(height)}")
    return said
