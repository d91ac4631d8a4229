"""Charts: curves, bars, histograms, and the attention of one token."""

import math
from numbers import Real

import numpy as np

from bertbook.figures.heatmaps import (
    heat_map,
    heat_maps,
    name_ticks,
    position_similarity,
    position_waves,
)
from bertbook.figures.style import (
    COLORS,
    PAPER,
    STYLE,
    WIDTH,
    Picture,
    check_config,
    check_named,
    checked,
    new_figure,
    plain,
    power,
    printable,
    readable,
    share,
    styled,
    title_lines,
    widest,
)
from bertbook.weights.names import encoder_shapes

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


def _draw_legend(figure, axes):
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


def _draw_levels(axes, levels):
    """Draws level lines in gray, each with its name at the right end.

    Args:
        axes: Where to draw.
        levels: Dict of names to heights, or None.

    Returns:
        What the levels say, a text each.
    """
    said = []
    for name, height in (levels or {}).items():
        axes.axhline(height, color=COLORS["sum"], ls="--", lw=1)
        axes.annotate(
            name,
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(-3, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize="small",
        )
        said.append(f"{name} at {readable(height)}")
    return said


__all__ = [
    "COLORS", "Picture", "attention_chart", "bars", "curves", "heat_map",
    "heat_maps", "histogram", "parameter_bars", "parameters_by_part",
    "position_similarity", "position_waves",
]  # fmt: skip


@styled
def curves(
    lines,
    x_label="",
    y_label="",
    title="",
    alt=None,
    log_x=False,
    log_y=False,
    levels=None,
    bands=None,
    x_names=None,
    from_zero=False,
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
        levels: Optional dict of names to heights, to compare with; each a
            level line in gray.
        bands: Optional dict of some of the names to `(low, high)`, between
            which the runs of a line lie; each is drawn as a pale area.
        x_names: Optional names of the points 0, 1, ... on the x axis.
        from_zero: Whether the y axis begins at 0, for values above it.

    Returns:
        A `Picture`.

    Raises:
        ValueError: A band belongs to no line, or has another length.
    """
    figure = new_figure(3.4, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    axes.grid(True)
    said, bands = [], bands or {}
    if unknown := set(bands) - set(lines):
        raise ValueError(
            f"`bands` must belong to `lines`. Received: {min(unknown)!r}."
        )
    for i, (name, (x, y)) in enumerate(check_named(lines, "lines").items()):
        x = checked(x, f"lines: x of {name}", 1)
        y = checked(y, f"lines: y of {name}", 1, len(x))
        color, dashes = look(name, i)
        marker = "o" if len(x) <= 12 else None
        axes.plot(
            x, y, label=name, color=color, ls=dashes, marker=marker, ms=3.5
        )
        said.append(f"{name} from {readable(y[0])} to {readable(y[-1])}")
        if name in bands:
            low, high = (
                checked(edge, f"bands: {name}", 1, len(x))
                for edge in bands[name]
            )
            axes.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
            said[-1] += f", runs between {readable(low[-1])} and "
            said[-1] += f"{readable(high[-1])} at the end"
    said += _draw_levels(axes, levels)
    _axis(axes, "x", log_x)
    _axis(axes, "y", log_y)
    if from_zero:
        axes.set_ylim(bottom=0)
    if x_names is not None:
        axes.set_xticks(range(len(x_names)), map(printable, x_names))
    if list(lines) != [y_label]:  # else the axis says it
        _draw_legend(figure, axes)
    over = f" over {x_label}" if x_label else ""
    text = f"{title or y_label or 'Curves'}{over}: {'; '.join(said)}."
    return Picture(figure, alt or text)


def _axis(axes, name, log=False):
    """Writes an axis in plain numbers, on a logarithmic scale if asked."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator

    target = axes.xaxis if name == "x" else axes.yaxis
    if log:
        low, high = getattr(axes.dataLim, f"interval{name}")
        if not low > 0:
            raise ValueError(
                f"`lines` must be above 0 where {name} is logarithmic. "
                f"Received: {low}."
            )
        axes.set(**{f"{name}scale": "log"})
        few = MaxNLocator(5) if high / low < 10 else LogLocator(subs=(1, 2, 5))
        if (points := _few_points(axes, name)) is not None:
            target.set_major_locator(FixedLocator(points))
        elif high / low < 300:
            target.set_major_locator(few)
        target.set_minor_formatter("")
        if low < 1e-4:  # too many zeros: powers of ten, all of them
            target.set_major_formatter(lambda value, _: power(value))
            return
    elif _all_whole(axes, name):
        target.set_major_locator(MaxNLocator(integer=True))
    target.set_major_formatter(lambda value, _: plain(value))


def _few_points(axes, name):
    """Returns the values that all lines share, where each can be labeled."""
    lines = [getattr(line, f"get_{name}data")() for line in axes.get_lines()]
    first = np.sort(np.asarray(lines[0], "float64"))
    same = all(np.array_equal(np.sort(line), first) for line in lines)
    if not same or not 2 <= len(first) <= 8:
        return None
    return first if (first[1:] >= 1.4 * first[:-1]).all() else None


def _all_whole(axes, name):
    """Returns whether every line and bar of the axes ends on whole numbers."""
    values = [getattr(line, f"get_{name}data")() for line in axes.get_lines()]
    if name == "x":  # bars lie
        groups = (getattr(g, "patches", ()) for g in axes.containers)
        values += [bar.get_width() for bars in groups for bar in bars]
    return all((np.asarray(v) % 1 == 0).all() for v in values)


@styled
def bars(
    values,
    x_label="",
    title="",
    alt=None,
    numbers=True,
    own_colors=False,
    errors=None,
    levels=None,
):
    """Draws horizontal bars.

    Args:
        values: Dict of names to numbers, or of groups to such dicts.
        x_label: What a bar's length is.
        title: Line above the picture.
        alt: Alternative text; made from the values where it is None.
        numbers: Whether to write each value at the end of its bar.
        own_colors: Whether each bar has a color of its own, where there are
            no groups.
        errors: Optional half length of the whisker at the end of every bar:
            one number for all, or numbers in the form of `values`.
        levels: Optional dict of names to values, to compare with; each a
            vertical line in gray, with its name above it.

    Returns:
        A `Picture`.
    """
    values = check_named(values, "values")
    grouped = any(isinstance(v, dict) for v in values.values())
    groups = values if grouped else {n: {n: v} for n, v in values.items()}
    members = [check_named(group, "values") for group in groups.values()]
    names = list(dict.fromkeys(name for group in members for name in group))
    every = [(row, name) for row, group in enumerate(members) for name in group]
    found = checked([members[row][name] for row, name in every], "values", 1)
    sizes = dict(zip(every, found, strict=True))
    texts = dict(zip(every, bar_numbers(found), strict=True))
    lanes, every_group = len(names) if grouped else 1, list(groups)
    height = len(groups) * max(0.27, 0.2 * lanes + 0.12) + 0.25 * grouped
    figure = new_figure(height + 0.65 + 0.2 * len(title_lines(title)), title)
    axes = figure.add_subplot(xlabel=x_label)
    axes.grid(True, axis="x")
    thick = 0.76 / lanes
    for i, name in enumerate(names):
        rows = [row for row, group in enumerate(members) if name in group]
        lengths = [sizes[row, name] for row in rows]
        lane = (i % lanes - (lanes - 1) / 2) * thick
        color, _ = look(name, i if grouped or own_colors else 0)
        how = {"height": thick * 0.92, "color": color, "label": name}
        if errors is not None:
            half = [
                _half_length(errors, every_group[row], name) for row in rows
            ]
            how |= {"xerr": half, "error_kw": {"lw": 1, "capsize": 2}}
        drawn = axes.barh([row + lane for row in rows], lengths, **how)
        if numbers:
            paper = {"fc": PAPER, "ec": "none", "pad": 0.5} if levels else None
            said = [texts[row, name] for row in rows]
            axes.bar_label(drawn, said, padding=3, bbox=paper)
    axes.margins(x=0.12 if numbers else 0.03)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    for name, value in (levels or {}).items():
        axes.axvline(value, color=COLORS["sum"], ls="--", lw=1)
        axes.annotate(
            name,
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="small",
        )
    axes.set_yticks(range(len(groups)), map(printable, groups))
    axes.tick_params(axis="y", length=0)
    _axis(axes, "x")
    if grouped:
        _draw_legend(figure, axes)
    text = "; ".join(_spoken(group, g, grouped) for group, g in groups.items())
    return Picture(figure, alt or f"{title or x_label or 'Bars'}: {text}.")


def _half_length(errors, group, name):
    """Returns the half length of one whisker."""
    if isinstance(errors, Real):
        return errors
    found = errors[group]
    return found[name] if isinstance(found, dict) else found


def bar_numbers(values):
    """Writes the numbers of bars; those of like size get equal decimals."""
    texts = [readable(value) for value in values]
    sizes = np.abs(values)
    if len(sizes) and sizes.max() < min(1_000, 3 * sizes.min()):
        digits = max(len(text.partition(".")[2]) for text in texts)
        texts = [f"{value:.{digits}f}" for value in values]
    return texts


def _spoken(group, members, grouped):
    """Says the bars of a group: `SST-2: ours 93.5, theirs 92`."""
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
        for name, v in check_named(values, "values").items()
    }
    edges = np.histogram_bin_edges(np.concatenate(list(flat.values())), bins)
    figure = new_figure(3.2, title)
    axes = figure.add_subplot(xlabel=x_label, ylabel="how many")
    axes.grid(True, axis="y")
    for i, (name, numbers) in enumerate(flat.items()):
        color, dashes = look(name, i)
        counts, _ = np.histogram(numbers, edges)
        axes.stairs(counts, edges, color=color, fill=True, alpha=0.2)
        axes.stairs(counts, edges, color=color, ls=dashes, lw=1.4, label=name)
    _axis(axes, "x")
    _axis(axes, "y")
    _draw_legend(figure, axes)
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
                "`token` must be the index of a token, or a text that occurs "
                f"once in `tokens`. Received: {token!r}, which occurs "
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
        for name, row in check_named(panels, "weights").items()
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
    name_ticks(grid[-1], tokens, "x", 6.2 / len(tokens))
    grid[-1].get_xticklabels()[_index(tokens, token)].set(weight="bold")
    text = "; ".join(
        f"{name + ': ' if name else ''}most to {tokens[int(row.argmax())]!r}, "
        f"{row.max():.2f}, all together {row.sum():.2f}"
        for name, row in panels.items()
    )
    text = f"weights that {looking!r} gives to {len(tokens)} tokens; {text}."
    return Picture(figure, alt or f"{title or 'Attention'}: {text}")


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
