"""`Sheet`: a canvas for boxes and arrows, in the book's style."""

from bertbook.figures.style import (
    COLORS,
    INK,
    WIDTH,
    new_figure,
    text_width,
    tint,
    widest,
)

FAINT = "#737A83"  # text of what is greyed
GAP = 0.06  # inches between two boxes of a line


class Sheet:
    """A page to draw on, measured in inches from its lower left corner.

    Args:
        height: Of its upper edge.
        low: Of its lower edge.
    """

    def __init__(self, height, low=0.0):
        self.figure = new_figure(height - low, layout="none")
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(low, height))
        self.axes.set_axis_off()

    def box(
        self, x, y, width, height, text, color, strength=0.25, edge=1.0, **how
    ):
        """Draws a box around its center.

        Args:
            x: Center.
            y: Center.
            width: Of the box.
            height: Of the box.
            text: Its label, made smaller until it fits.
            color: Key of `COLORS`.
            strength: How full the color is, from 0 to 1.
            edge: Width of the edge, in points.
            **how: What `label` takes.
        """
        from matplotlib.patches import FancyBboxPatch

        corner = (x - width / 2, y - height / 2)
        patch = FancyBboxPatch(corner, width, height, zorder=2)
        round_off = min(0.05, width / 4, height / 4)
        patch.set_boxstyle("round", pad=0, rounding_size=round_off)
        patch.set_facecolor(tint(color, strength))
        patch.set(edgecolor=COLORS[color], linewidth=edge)
        self.axes.add_patch(patch)
        room = height if how.get("turn") else width
        self.label(x, y, text, room=max(room - 0.08, 0.02), **how)

    def label(self, x, y, text, room=None, size=8.5, ink=INK, **how):
        """Writes text, made smaller until it fits.

        Args:
            x: Center, or the side that `ha` names.
            y: Center.
            text: One line or more.
            room: Optional inches that it must fit into.
            size: In points.
            ink: Color of the text.
            **how: Properties of a matplotlib `Text`; `turn` in degrees, and
                `parse_math` where dollars enclose a formula.
        """
        wide = text_width(text, size) * (1.1 if "weight" in how else 1)
        if room is not None and wide > room and "parse_math" not in how:
            size *= room / wide
        turn = how.pop("turn", 0)
        how = {"ha": "center", "va": "center", "linespacing": 1.2, **how}
        how |= {"color": ink, "fontsize": size, "rotation": turn}
        self.axes.text(x, y, text, zorder=5, **how)

    def note(self, x, y, text, **how):
        """Writes a small text to the right of a point."""
        self.label(x + 0.07, y, text, **{"ha": "left", "size": 7.5, **how})

    def arrow(self, *points, color=INK, width=1.0, note="", room=None):
        """Draws an arrow through points, with a note beside its last part."""
        *bends, start, end = points
        self.axes.plot(
            *zip(*bends, start, strict=True), color=color, lw=width, zorder=3
        )
        how = {"arrowstyle": "-|>,head_width=0.16,head_length=0.32"}
        how |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 10}
        how |= {"color": color, "linewidth": width}
        self.axes.annotate("", end, start, arrowprops=how, zorder=3)
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        self.note(x, y, note, room=room)

    def chain(self, x, top, width, steps, pitch, tall=0.34, **how):
        """Draws boxes below each other with arrows between them.

        Args:
            x: Their center.
            top: Center of the first.
            width: Of each box.
            steps: List of `(text, color)`.
            pitch: From center to center.
            tall: Height of each box.
            **how: What `box` takes.

        Returns:
            The height of each center.
        """
        places = [top - pitch * i for i in range(len(steps))]
        for y, (text, color) in zip(places, steps, strict=True):
            self.box(x, y, width, tall, text, color, **how)
        for y in places[1:]:
            start, end = (x, y + pitch - tall / 2), (x, y + tall / 2)
            self.arrow(start, end, color=how.get("ink", INK))
        return places


def box_width(texts, size):
    """Returns the inches of a box that holds the widest of some texts."""
    return max(0.2, widest(texts, size) + 0.12)


def flow(widths, left=0.1, right=WIDTH - 0.1):
    """Places boxes side by side, on as many lines as they need.

    Args:
        widths: Inches of each box; one wider than a line is made smaller.
        left: Where a line begins.
        right: Where it must end.

    Returns:
        `(line, middle, width)` for each box, and the number of lines.
    """
    places, line, x = [], 0, left
    for width in widths:
        width = min(width, right - left)
        if x + width > right and x > left:
            line, x = line + 1, left
        places.append((line, x + width / 2, width))
        x += width + GAP
    return places, line + 1


def one_of(value, allowed, name):
    """Raises where a value is not allowed.

    Raises:
        ValueError: It is not.
    """
    if value not in allowed:
        raise ValueError(
            f"`{name}` must be among {', '.join(allowed)}. Received: {value!r}."
        )
