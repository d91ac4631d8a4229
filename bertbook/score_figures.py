"""Pictures of scores: what several runs of one experiment reached.

Differences: none; means are all that is computed here.
"""

from numbers import Real

import numpy as np

from bertbook.drawing import (
    Picture,
    check_named,
    checked,
    counted,
    new_figure,
    plain,
    readable,
    styled,
)
from bertbook.series import draw_legend, draw_levels, look

ROOM = 0.8  # for the dots of all series, where sizes are 1 apart
LANE = 0.16  # of it for one series, or less where there are many


@styled
def seed_dots(scores, x_label="", y_label="", title="", alt=None, levels=None):
    """Draws every run as a dot, and a line through the means of each series.

    Args:
        scores: Dict of names to dicts of a size, for example the rows to learn
            from, to the scores of its runs, one a seed. Sizes stand at equal
            distances, dots from left to right in the order of the runs.
        x_label: What the sizes are.
        y_label: What a score is.
        title: Line above the picture.
        alt: Alternative text; made from the scores where it is None.
        levels: Optional dict of names to heights, to compare with; each a
            level line in gray.

    Returns:
        A `Picture`.

    Raises:
        ValueError: There is no series, a series has no size, a size is no
            number, or a size has no run or one that is not finite.
    """
    groups = {
        name: _runs(group, name)
        for name, group in check_named(scores, "scores").items()
    }
    sizes = sorted({size for runs in groups.values() for size in runs})
    figure = new_figure(3.6, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    axes.grid(True, axis="y")
    lane = min(LANE, ROOM / len(groups))
    for i, (name, runs) in enumerate(groups.items()):
        middle = (i - (len(groups) - 1) / 2) * lane
        places = [sizes.index(size) + middle for size in runs]
        _draw_series(axes, places, runs.values(), lane, name, i)
    said = [f"{name}, {_said(runs)}" for name, runs in groups.items()]
    said += draw_levels(axes, levels, beside=True)
    axes.set_xticks(range(len(sizes)), map(readable, sizes))
    axes.set_xlim(-0.5, len(sizes) - 0.5)
    axes.yaxis.set_major_formatter(lambda value, _: plain(value))
    draw_legend(figure, axes)
    over = f"{y_label or 'scores'} over {x_label or 'sizes'}"
    text = f"{title or 'Runs'}; {over}, means with the lowest and highest run: "
    return Picture(figure, alt or f"{text}{'; '.join(said)}.")


def _runs(group, name):
    """Returns the scores of a series at each size, checked, small to large."""
    for size in check_named(group, f"scores: {name}"):
        if not isinstance(size, Real):
            raise ValueError(
                f"`scores: {name}` must have numbers as sizes. "
                f"Received: {size!r}."
            )
    return {
        size: checked(group[size], f"scores: {name}, {size}", 1)
        for size in sorted(group)
    }


def _draw_series(axes, places, runs, lane, name, index):
    """Draws the runs of one series and the line through their means."""
    color, dashes = look(name, index)
    for place, values in zip(places, runs, strict=True):
        order = np.arange(len(values)) - (len(values) - 1) / 2
        spread = 0.6 * lane * order / max(1, len(values) - 1)
        dots = {"ms": 3.5, "alpha": 0.5, "markeredgewidth": 0}
        axes.plot(place + spread, values, "o", color=color, **dots)
    means = [values.mean() for values in runs]
    axes.plot(places, means, "_", color=color, ms=12, markeredgewidth=2)
    axes.plot(places, means, color=color, ls=dashes, label=name)


def _said(runs):
    """Says a series: how many runs, and what they reach at each size."""
    counts = [len(values) for values in runs.values()]
    number = counted(max(counts), "run")
    if min(counts) < max(counts):
        number = f"{min(counts)} to {number}"
    reached = ", ".join(
        f"{readable(values.mean())} ({readable(values.min())} to "
        f"{readable(values.max())}) at {readable(size)}"
        for size, values in runs.items()
    )
    return f"{number} each, {reached}"
