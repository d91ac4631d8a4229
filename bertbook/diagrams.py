"""Boxes and arrows: how the parts of BERT fit together.

Sizes and numbers of blocks come from a config or from arguments, colors from
`figures.COLORS`.

Differences: `transformer_cut` draws the model of Vaswani et al. (2017), the
others BERT's encoder.
"""

import numpy as np

from bertbook.figures import (
    COLORS,
    INK,
    PAPER,
    WIDTH,
    Picture,
    check_config,
    checked,
    new_figure,
    styled,
    tint,
)
from bertbook.names import count_parameters

HOPS = {
    "Tokenizer.encode": "text to ids",
    "examples": "ids to tasks",
    "batch": "arrays (B, S)",
    "model": "vectors, logits",
    "loss": "one number",
}
HIGHLIGHTS = (
    "tokens",
    "positions",
    "block",
    "attention",
    "heads",
    "feed_forward",
    "add_norm",
)


class Sheet:
    """A page to draw on, measured in inches from its lower left corner.

    Args:
        height: Of the page, in inches.
    """

    def __init__(self, height):
        self.figure = new_figure(height, layout="none")
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(0, height))
        self.axes.set_axis_off()

    def box(self, x, y, width, height, text="", color="muted", **how):
        """Draws a box around its center `(x, y)`.

        Args:
            x: Center.
            y: Center.
            width: In inches.
            height: In inches.
            text: Its label, made smaller until it fits.
            color: Key of `COLORS`.
            **how: `strength` of the fill, `edge` width, `size` of the text,
                `turn` in degrees, `ink` of the text, `bold`.
        """
        from matplotlib.patches import FancyBboxPatch

        self.axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.05",
                facecolor=tint(color, how.get("strength", 0.25)),
                edgecolor=COLORS[color],
                linewidth=how.get("edge", 1.0),
                zorder=how.get("zorder", 2),
            )
        )
        room = width if not how.get("turn") else height
        self.label(x, y, text, room=room - 0.08, **how)

    def label(self, x, y, text, room=None, **how):
        """Writes centered text, made smaller until it fits into `room`."""
        size = how.get("size", 8.5)
        if room is not None and text:
            size = min(size, size * room / text_width(text, size))
        self.axes.text(
            x,
            y,
            text,
            ha=how.get("align", "center"),
            va="center",
            fontsize=size,
            rotation=how.get("turn", 0),
            color=how.get("ink", INK),
            weight="bold" if how.get("bold") else "normal",
            linespacing=1.25,
            zorder=5,
        )

    def arrow(self, start, end, color=INK, width=1.0, label="", side=0.08):
        """Draws an arrow between two points, with a label beside it."""
        self.axes.annotate(
            "",
            end,
            start,
            arrowprops={
                "arrowstyle": "-|>,head_width=0.18,head_length=0.35",
                "color": color,
                "linewidth": width,
                "shrinkA": 0,
                "shrinkB": 0,
                "joinstyle": "miter",
            },
            zorder=3,
        )
        if label:
            x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
            self.label(x + side, y, label, size=8, align="left")

    def path(self, points, color=INK, head=True):
        """Draws a line with right angles, an arrow at its end."""
        body = points[:-1] if head else points
        self.axes.plot(*zip(*body, strict=True), color=color, lw=1, zorder=1)
        if head:
            self.arrow(points[-2], points[-1], color)


def text_width(text, size):
    """Returns the width of the widest line of a text, in inches."""
    from matplotlib.textpath import TextPath

    lines = [line for line in str(text).split("\n") if line.strip()]
    widths = [TextPath((0, 0), line, size).get_extents().width for line in lines]
    return max(widths, default=0.0) / 72 or 1e-6


@styled
def five_hops(here):
    """Draws the five hops from text to loss, with "you are here".

    Args:
        here: A name of `HOPS`, or a tuple of them.

    Returns:
        A `Picture`.
    """
    here = (here,) if isinstance(here, str) else tuple(here)
    for name in here:
        if name not in HOPS:
            raise ValueError(
                f"`here` must be among {', '.join(HOPS)}. Received: {name!r}."
            )
    sheet = Sheet(1.0)
    for i, (name, what) in enumerate(HOPS.items()):
        x, chosen = 0.72 + 1.39 * i, name in here
        sheet.box(
            x,
            0.6,
            1.16,
            0.42,
            name,
            "token" if chosen else "muted",
            strength=1 if chosen else 0.25,
            ink=PAPER if chosen else INK,
            bold=chosen,
        )
        sheet.label(x, 0.22, what, size=8)
        if i:
            sheet.arrow((x - 0.81, 0.6), (x - 0.58, 0.6))
    said = " and ".join(here) or "none of them"
    return Picture(
        sheet.figure,
        f"The five hops from text to loss: {', '.join(HOPS)}. You are at: "
        f"{said}.",
    )


@styled
def encoder_map(highlight=None):
    """Draws the encoder, with "you are here".

    Args:
        highlight: One of `HIGHLIGHTS`, or None for the map alone.

    Returns:
        A `Picture`.
    """
    if highlight is not None and highlight not in HIGHLIGHTS:
        raise ValueError(
            f"`highlight` must be None or one of {', '.join(HIGHLIGHTS)}. "
            f"Received: {highlight!r}."
        )
    sheet = Sheet(2.4)
    return Picture(sheet.figure, f"Map of the encoder: {highlight}")


@styled
def shape_flow(steps, alt=None):
    """Draws a chain of steps, with the shape that leaves each.

    Args:
        steps: List of `(text, shape, color)`: the shape is a string, the
            color a key of `COLORS`.
        alt: Alternative text; made from the steps where it is None.

    Returns:
        A `Picture`.
    """
    height = 0.75 * len(steps) + 0.1
    sheet = Sheet(height)
    for i, (text, shape, color) in enumerate(steps):
        y = height - 0.3 - 0.75 * i
        sheet.box(WIDTH / 2, y, 3.0, 0.4, text, color)
        sheet.arrow((WIDTH / 2, y - 0.2), (WIDTH / 2, y - 0.55), label=shape)
    said = ", then ".join(f"{text} {shape}" for text, shape, _ in steps)
    return Picture(sheet.figure, alt or f"Steps with their shapes: {said}.")


def _stub(alt, text):
    return Picture(Sheet(1.0).figure, alt or text)


@styled
def input_sum(tokens, segments, alt=None):
    """Draws token + segment + position = input, one column a token."""
    return _stub(alt, "Token, segment and position vectors are added.")


@styled
def attention_steps(length, width, head_size, alt=None):
    """Draws the steps of one attention head, with the shape after each."""
    return _stub(alt, "Steps of attention.")


@styled
def value_mixing(tokens, weights, alt=None):
    """Draws how one row of weights mixes the value vectors."""
    checked(weights, "weights", 1, len(tokens))
    return _stub(alt, "Mixing of values.")


@styled
def multi_head(length=2, width=768, num_heads=2, alt=None):
    """Draws the heads side by side, with the shape on every arrow."""
    return _stub(alt, "Multi-head attention.")


@styled
def feed_forward(width=768, inner=3072, alt=None):
    """Draws the feed-forward network: widen, activate, narrow."""
    return _stub(alt, "Feed-forward.")


@styled
def encoder_block(config, alt=None):
    """Draws one block: attention, add & norm, feed-forward, add & norm."""
    check_config(config)
    return _stub(alt, "Encoder block.")


@styled
def stacks(configs, alt=None):
    """Draws encoders as stacks of their blocks."""
    return _stub(alt, ", ".join(f"{count_parameters(c):,}" for c in configs.values()))


@styled
def transformer_cut(alt=None):
    """Draws the 2017 Transformer with the part that BERT keeps in color."""
    return _stub(alt, "Transformer.")
