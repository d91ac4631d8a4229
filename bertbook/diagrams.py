"""Boxes and arrows: how the parts of BERT fit together.

Sizes and numbers of blocks come from a config or from arguments, colors from
`figures.COLORS`. Data flows down or to the right.

Differences: `transformer_cut` draws the model of Vaswani et al. (2017), the
others BERT's encoder.
"""

import math

from bertbook.figures import (
    COLORS,
    INK,
    PAPER,
    WIDTH,
    Picture,
    check_config,
    check_sizes,
    checked,
    new_figure,
    styled,
    text_width,
    tint,
)
from bertbook.names import count_parameters

FAINT = "#737A83"  # text of what is greyed
HOPS = {
    "Tokenizer.encode": "text to ids",
    "examples": "ids to tasks",
    "batch": "arrays (B, S)",
    "model": "vectors, logits",
    "loss": "one number",
}
# What `encoder_map` can point at: below which x, up to which y.
HIGHLIGHTS = {
    "tokens": (0.43, 1.25),
    "positions": (1.42, 0.5),
    "block": (4.4, 0.5),
    "attention": (3.56, 0.9),
    "heads": (3.56, 1.05),
    "feed_forward": (5.1, 0.9),
    "add_norm": (4.44, 0.9),
}
# Its boxes: x, y, width, height, text, color, highlights that show them.
MAP = (
    (4.4, 1.5, 3.36, 2.0, "", "block", "block"),
    (0.43, 1.5, 0.7, 0.5, "text to\nids", "token", "tokens"),
    (1.42, 2.25, 0.8, 0.5, "token\nvectors", "token", "tokens"),
    (1.42, 1.5, 0.8, 0.5, "segment\nvectors", "segment", ""),
    (1.42, 0.75, 0.8, 0.5, "position\nvectors", "position", "positions"),
    (2.27, 1.5, 0.46, 0.5, "sum,\nnorm", "sum", ""),
    (3.56, 1.5, 1.08, 1.2, "", "attention", "block attention"),
    (3.56, 1.8, 1.0, 0.0, "multi-head\nattention", "", "block attention"),
    (3.18, 1.22, 0.22, 0.3, "1", "attention", "block heads"),
    (3.43, 1.22, 0.22, 0.3, "2", "attention", "block heads"),
    (3.69, 1.22, 0.22, 0.3, "…", "attention", "block heads"),
    (3.94, 1.22, 0.22, 0.3, "N", "attention", "block heads"),
    (4.44, 1.5, 0.34, 1.2, "add & norm", "norm", "block add_norm"),
    (5.1, 1.5, 0.54, 1.2, "feed-\nforward", "feed_forward",
     "block feed_forward"),
    (5.75, 1.5, 0.34, 1.2, "add & norm", "norm", "block add_norm"),
    (6.62, 1.5, 0.66, 0.5, "vectors\nin context", "output", ""),
)  # fmt: skip


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


def _one_of(value, allowed, name):
    """Raises where a value is not allowed."""
    if value not in allowed:
        raise ValueError(
            f"`{name}` must be among {', '.join(allowed)}. Received: {value!r}."
        )


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
        _one_of(name, HOPS, "here")
    sheet = Sheet(1.25)
    for i, (name, what) in enumerate(HOPS.items()):
        x, look = 0.72 + 1.39 * i, {"color": "muted"}
        if name in here:
            look = {"color": "token", "strength": 1.0, "ink": PAPER}
            sheet.label(x, 1.1, "you are here", size=8, weight="bold")
            sheet.arrow((x, 1.01), (x, 0.83))
        sheet.box(x, 0.62, 1.14, 0.42, name, **look)
        sheet.label(x, 0.24, what, size=8)
        if i:
            sheet.arrow((x - 0.82, 0.62), (x - 0.57, 0.62))
    said = " and ".join(here) or "none of them"
    text = f"The five hops from text to loss: {', '.join(HOPS)}."
    return Picture(sheet.figure, f"{text} You are here: {said}.")


@styled
def encoder_map(highlight=None):
    """Draws the encoder, with "you are here".

    Args:
        highlight: One of `HIGHLIGHTS`, or None for the map alone.

    Returns:
        A `Picture`.
    """
    if highlight is not None:
        _one_of(highlight, HIGHLIGHTS, "highlight")
    sheet = Sheet(2.8, 0.0 if highlight else 0.4)
    sheet.label(4.4, 2.63, "encoder block, L in a row", weight="bold", size=8)
    for *place, text, color, shown in MAP:
        turn = 90 if text == "add & norm" else 0
        look = _map_look(color, highlight, shown.split())
        if color:
            sheet.box(*place, text, turn=turn, **look)
        else:
            sheet.label(*place[:2], text, ink=look["ink"])
    _map_arrows(sheet, FAINT if highlight else INK)
    if highlight:
        x, top = HIGHLIGHTS[highlight]
        low = 0.95 if highlight == "tokens" else 0.14
        sheet.label(x, low, "you are here", weight="bold", size=8)
        sheet.arrow((x, low + 0.09), (x, top), width=1.6)
    text = (
        "Map of the encoder: text becomes ids; token, segment and position "
        "vectors are summed and normed; L blocks of multi-head attention, "
        "add & norm, feed-forward, add & norm give vectors in context."
    )
    here = f" You are here: {highlight}.".replace("_", " ") if highlight else ""
    return Picture(sheet.figure, text + here)


def _map_look(color, highlight, shown):
    """Returns how a box of the map looks: plain, lit, or grey."""
    frame = color == "block"
    if highlight is None:
        return {"color": color, "strength": 0.06 if frame else 0.25, "ink": INK}
    if highlight in shown:
        strength = 0.12 if frame else 0.5
        look = {"color": color, "strength": strength, "ink": INK}
        return look | {"edge": 2.0}
    return {"color": "muted", "strength": 0.2, "ink": FAINT}


def _map_arrows(sheet, color):
    """Draws how data flows through the map, and around its layers."""
    for y in (0.75, 2.25, 1.5):
        sheet.arrow((0.78, 1.5), (0.9, 1.5), (0.9, y), (1.02, y), color=color)
        sheet.arrow((1.82, y), (1.92, y), (1.92, 1.5), (2.04, 1.5), color=color)
    flows = (2.5, 3.02), (4.1, 4.27), (4.61, 4.83), (5.37, 5.58), (5.92, 6.29)
    for start, end in flows:
        sheet.arrow((start, 1.5), (end, 1.5), color=color)
    for start, end in ((2.87, 4.44), (4.71, 5.75)):
        around = (start, 1.5), (start, 2.3), (end, 2.3), (end, 2.1)
        sheet.arrow(*around, color=color)


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
    if not steps:
        raise ValueError("`steps` must hold a step. Received: none.")
    for _, _, color in steps:
        _one_of(color, COLORS, "color")
    tall = 0.2 + 0.15 * max(1 + text.count("\n") for text, _, _ in steps)
    pitch, x = tall + 0.32, WIDTH / 2
    height = pitch * len(steps) + 0.12
    sheet = Sheet(height)
    width = max(1.4, *(text_width(text, 8.5) for text, _, _ in steps)) + 0.4
    boxes = [(text, color) for text, _, color in steps]
    top = height - tall / 2 - 0.06
    places = sheet.chain(x, top, min(5.0, width), boxes, pitch, tall)
    for y, (_, shape, _) in zip(places, steps, strict=True):
        sheet.note(x, y - pitch / 2, shape, size=8, room=WIDTH / 2 - 0.15)
    end = places[-1] - tall / 2
    sheet.arrow((x, end), (x, end - 0.32))
    said = ", then ".join(f"{text} {shape}".strip() for text, shape, _ in steps)
    return Picture(sheet.figure, alt or f"Steps and their shapes: {said}.")


@styled
def input_sum(tokens, segments, alt=None):
    """Draws token + segment + position = input, one column a token.

    Args:
        tokens: S texts.
        segments: S numbers, 0 in the first text and 1 in the second.
        alt: Alternative text; made from the tokens where it is None.

    Returns:
        A `Picture`.
    """
    segments = checked(segments, "segments", 1, len(tokens)).astype(int)
    pitch = min(0.85, 5.95 / len(tokens))
    wide, longest = pitch * 0.9, max(text_width(t, 8) for t in tokens) + 0.1
    turn = 90 if longest > wide * 1.15 else 0
    tall = min(1.1, longest + 0.06) if turn else 0.3
    sheet = Sheet(tall + 1.85)
    rows = {"token": 1.74 + tall / 2, "segment": 1.3, "position": 0.78}
    for name, y in (*rows.items(), ("input", 0.26)):
        sheet.label(0.1, y, name, ha="left")
    for i, (token, segment) in enumerate(zip(tokens, segments, strict=True)):
        x, strength = 0.9 + pitch * (i + 0.5), 0.2 + 0.35 * min(segment, 1)
        texts = token, f"{segment}", f"{i}"
        for (name, y), text in zip(rows.items(), texts, strict=True):
            look = {"turn": turn} if name == "token" else {}
            look |= {"strength": strength} if name == "segment" else {}
            high = tall if name == "token" else 0.3
            sheet.box(x, y, wide, high, text, name, size=8, **look)
        _summed(sheet, x, 0.26, wide)
        for y, sign in ((1.59, "+"), (1.04, "+"), (0.52, "=")):
            sheet.label(x, y, sign, size=9)
    text = (
        f"Each of {len(tokens)} tokens, {' '.join(tokens)}, gets a token "
        "vector plus a segment vector plus a position vector; segments are "
        f"{' '.join(map(str, segments))}, positions 0 to {len(tokens) - 1}."
    )
    return Picture(sheet.figure, alt or text)


def _summed(sheet, x, y, wide):
    """Draws a vector that is the sum of three, as three stripes in a box."""
    sheet.box(x, y, wide, 0.3, "", "sum", strength=0.1)
    for i, part in enumerate(("token", "segment", "position")):
        height = y + 0.08 * (1 - i)
        sheet.box(x, height, wide * 0.75, 0.045, "", part, 1.0, edge=0)


@styled
def attention_steps(length, width, head_size, alt=None):
    """Draws the steps of one attention head, with the shape after each.

    Args:
        length: S, the number of tokens.
        width: D, of a token's vector.
        head_size: H, of a query, key or value.
        alt: Alternative text; made from the sizes where it is None.

    Returns:
        A `Picture`.
    """
    check_sizes(length=length, width=width, head_size=head_size)
    wide, narrow = f"({length}, {width})", f"({length}, {head_size})"
    square, root = f"({length}, {length})", f"{math.sqrt(head_size):.4g}"
    sheet = Sheet(4.75)
    sheet.box(3.4, 4.52, 2.2, 0.34, "vectors of the tokens", "sum")
    for x, name in ((1.3, "query"), (3.1, "key"), (5.5, "value")):
        down = (3.4, 4.35), (3.4, 4.17), (x, 4.17), (x, 3.82)
        sheet.arrow(*down, note=wide)
        text = f"{name}: times $W^{name[0].upper()}$"
        sheet.box(x, 3.65, 1.45, 0.34, text, name, parse_math=True)
    steps = [
        ("scores: each query times each key", "score"),
        (f"divided by √{head_size} = {root}", "score"),
        ("softmax: each row sums to 1", "attention"),
        ("context: weights times values", "output"),
    ]
    places = sheet.chain(2.2, 2.85, 2.9, steps, pitch=0.74)
    for x in (1.3, 3.1):
        sheet.arrow((x, 3.48), (x, 3.02), note=narrow)
    for y in places[:-1]:
        sheet.note(2.2, y - 0.37, square)
    sheet.arrow((5.5, 3.48), (5.5, places[-1]), (3.65, places[-1]))
    sheet.note(5.5, 2.2, narrow)
    sheet.arrow((2.2, 0.46), (2.2, 0.1), note=narrow)
    text = (
        f"One attention head: vectors {wide} become query, key and value "
        f"{narrow}; scores {square} are divided by {root}, softmax makes "
        f"weights of them, and these mix the values to the context {narrow}."
    )
    return Picture(sheet.figure, alt or text)


@styled
def value_mixing(tokens, weights, alt=None):
    """Draws how one row of attention weights mixes the value vectors.

    Args:
        tokens: S texts.
        weights: One weight a token, shape `(S,)`, none below 0.
        alt: Alternative text; made from the weights where it is None.

    Returns:
        A `Picture`.
    """
    weights = checked(weights, "weights", 1, len(tokens))
    if weights.min() < 0:
        raise ValueError(
            f"`weights` must not be below 0. Received: {weights.min()}."
        )
    height = 0.3 * len(tokens) + 0.45
    sheet, middle = Sheet(height), (height - 0.33) / 2
    tall = max(0.5, 0.12 * len(tokens))
    parts = weights / (weights.max() or 1.0)
    for x, y, name in (
        (1.9, height - 0.16, "weight"),
        (4.2, height - 0.16, "value vector"),
        (6.3, middle + tall / 2 + 0.14, "sum"),
    ):
        sheet.label(x, y, name, weight="bold")
    for i, (token, part) in enumerate(zip(tokens, parts, strict=True)):
        y = height - 0.48 - 0.3 * i
        end = middle + (y - middle) / height * tall * 0.8
        sheet.label(1.1, y, token, ha="right", room=1.0)
        long = max(1.4 * part, 0.01)
        sheet.box(1.2 + long / 2, y, long, 0.18, "", "attention", 0.85, edge=0)
        sheet.note(1.2 + long, y, f"{weights[i]:.2f}", size=8)
        sheet.label(3.27, y, "×")
        look = {"strength": 0.1 + 0.4 * part, "size": 8}
        sheet.box(4.2, y, 1.5, 0.22, f"value of {token}", "value", **look)
        if part > 0:
            line = {"color": COLORS["attention"], "alpha": 0.75, "zorder": 1}
            sheet.axes.plot((4.95, 5.75), (y, end), lw=0.4 + 4 * part, **line)
    sheet.box(6.3, middle, 1.1, tall, "mixed\nvector", "output")
    order = sorted(range(len(tokens)), key=lambda i: -weights[i])[:8]
    said = ", ".join(f"{weights[i]:.2f} of {tokens[i]!r}" for i in order)
    text = f"A weighted sum of {len(tokens)} value vectors: {said}"
    more = " and less of the others" if len(tokens) > 8 else ""
    return Picture(sheet.figure, alt or f"{text}{more}.")


@styled
def multi_head(length=2, width=768, num_heads=2, alt=None):
    """Draws the heads side by side, with the shape on every arrow.

    Args:
        length: S, the number of tokens.
        width: D, of a token's vector.
        num_heads: N; of more than three, three are drawn.
        alt: Alternative text; made from the sizes where it is None.

    Returns:
        A `Picture`.
    """
    check_sizes(length=length, width=width, num_heads=num_heads)
    if width % num_heads:
        raise ValueError(
            "`width` must be a multiple of `num_heads`. "
            f"Received: {width} and {num_heads}."
        )
    wide, narrow = f"({length}, {width})", f"({length}, {width // num_heads})"
    sheet = Sheet(4.95)
    sheet.box(3.5, 4.74, 2.2, 0.32, "vectors of the tokens", "sum")
    places = {1: (3.5,), 2: (1.8, 5.2), 3: (1.17, 3.5, 5.83)}
    heads = range(1, num_heads + 1) if num_heads < 4 else (1, 2, num_heads)
    centers = places.get(num_heads, (1.17, 3.4, 5.83))
    for x, head in zip(centers, heads, strict=True):
        down = (3.5, 4.58), (3.5, 4.42), (x, 4.42), (x, 4.07)
        sheet.arrow(*down, note=wide)
        _head(sheet, x, head, f"({length}, {length})", narrow)
    if num_heads > 3:
        sheet.label(4.615, 2.95, "…", size=14)
    span = centers[-1] - centers[0] + 2.15
    sheet.box(3.5, 1.2, span, 0.32, "concatenate", "muted")
    sheet.arrow((3.5, 1.04), (3.5, 0.72), note=wide)
    text = f"times $W^O$, ({width}, {width})"
    sheet.box(3.5, 0.55, 2.2, 0.32, text, "output", parse_math=True)
    sheet.arrow((3.5, 0.39), (3.5, 0.07), note=wide)
    text = (
        f"Multi-head attention with N = {num_heads}: vectors {wide} go to the "
        f"heads side by side; each computes query, key and value {narrow}, "
        f"weights ({length}, {length}) and a context {narrow}; concatenated "
        f"they are {wide}, and a last matrix ({width}, {width}) gives {wide}."
    )
    return Picture(sheet.figure, alt or text)


def _head(sheet, x, head, square, narrow):
    """Draws one head of `multi_head` around `x`."""
    sheet.box(x, 2.95, 2.15, 2.24, "", "attention", strength=0.05)
    sheet.label(x, 3.93, f"head {head}", weight="bold", size=8)
    for shift, name in ((-0.7, "query"), (0.0, "key"), (0.7, "value")):
        sheet.box(x + shift, 3.63, 0.6, 0.3, name, name)
    for shift in (-0.7, 0.0):
        start, end = (x + shift, 3.48), (x + shift, 3.06)
        sheet.arrow(start, end, note=narrow, room=0.55)
    sheet.box(x - 0.35, 2.91, 1.3, 0.3, "scores, softmax", "attention")
    sheet.arrow((x - 0.35, 2.76), (x - 0.35, 2.3))
    sheet.note(x - 0.35, 2.63, square, room=0.9)
    sheet.arrow((x + 0.7, 3.48), (x + 0.7, 2.3))
    sheet.note(x + 0.57, 2.45, narrow, ha="right", room=0.9)
    sheet.box(x, 2.15, 1.95, 0.3, "weights times values", "value")
    sheet.arrow((x, 2.0), (x, 1.36))
    sheet.note(x, 1.6, narrow)


@styled
def feed_forward(width=768, inner=3072, alt=None):
    """Draws the feed-forward network: widen, activate, narrow.

    Args:
        width: D, of a token's vector.
        inner: F, between the two matrices.
        alt: Alternative text; made from the sizes where it is None.

    Returns:
        A `Picture`.
    """
    check_sizes(width=width, inner=inner)
    sheet, unit = Sheet(3.5), 6.0 / max(width, inner)
    for y, size, color, name in (
        (3.1, width, "sum", "vector of one token"),
        (2.0, inner, "feed_forward", "wider"),
        (1.5, inner, "feed_forward", "after the activation"),
        (0.4, width, "output", "its new vector"),
    ):
        sheet.box(3.5, y, size * unit, 0.3, f"{size:,}", color, strength=0.35)
        sheet.label(3.5, y + 0.24, name, size=8)
    for top, above, below, text in (
        (2.95, width, inner, f"$W_1$, ({width}, {inner}), and $b_1$"),
        (1.35, inner, width, f"$W_2$, ({inner}, {width}), and $b_2$"),
    ):
        ends = (
            (-above, top),
            (above, top),
            (below, top - 0.8),
            (-below, top - 0.8),
        )
        corners = [(3.5 + size * unit / 2, y) for size, y in ends]
        fill = tint("feed_forward", 0.12)
        sheet.axes.fill(*zip(*corners, strict=True), color=fill)
        sheet.label(3.5, top - 0.4, text, parse_math=True)
    count = 2 * width * inner + width + inner
    text = (
        f"Feed-forward network for one token: a vector of {width:,} numbers "
        f"is widened to {inner:,}, each number goes through the activation, "
        f"and the result is narrowed to {width:,}; {count:,} parameters."
    )
    return Picture(sheet.figure, alt or text)


@styled
def encoder_block(config, alt=None):
    """Draws one block: attention, add & norm, feed-forward, add & norm.

    Args:
        config: A `BertConfig`.
        alt: Alternative text; made from the config where it is None.

    Returns:
        A `Picture`.
    """
    width = check_config(config).hidden_size
    sizes = f"{width} to {config.intermediate_size} to {width}"
    heads = f"{config.num_attention_heads} heads of width {config.head_size}"
    steps = [
        (f"multi-head attention\n{heads}", "attention"),
        ("add & norm", "norm"),
        (f"feed-forward, {config.hidden_act}\n{sizes}", "feed_forward"),
        ("add & norm", "norm"),
    ]
    sheet, x, edge, shape = Sheet(4.5), 3.4, 4.7, f"(B, S, {width})"
    sheet.box(3.5, 2.27, 4.4, 3.5, "", "block", strength=0.05)
    blocks = f"one of {config.num_hidden_layers} blocks"
    sheet.label(1.42, 3.85, blocks, weight="bold", ha="left")
    sheet.arrow((x, 4.42), (x, 3.57))
    sheet.note(x, 4.25, f"vectors, {shape}", size=8.5)
    places = sheet.chain(x, 3.34, 2.6, steps, pitch=0.8, tall=0.46)
    for layer, start in ((0, 3.72), (2, places[1] - 0.29)):
        y, end = places[layer : layer + 2]
        sheet.note(x, y - 0.4, f"dropout {config.hidden_dropout_prob}")
        around = (x, start), (edge + 0.25, start), (edge + 0.25, end)
        sheet.arrow(*around, (edge, end))
        sheet.label(edge + 0.33, y - 0.2, "residual", turn=90, size=7.5)
    sheet.arrow((x, places[-1] - 0.23), (x, 0.1))
    sheet.note(x, 0.25, f"new vectors, {shape}", size=8.5)
    text = (
        f"One of {config.num_hidden_layers} encoder blocks: multi-head "
        f"attention with {heads}, add & norm, feed-forward from {sizes}, "
        f"add & norm; the shape stays {shape}."
    )
    return Picture(sheet.figure, alt or text)


@styled
def stacks(configs, alt=None):
    """Draws encoders as stacks of their blocks, as wide as their vectors.

    Args:
        configs: Dict of names to `BertConfig`.
        alt: Alternative text; made from the configs where it is None.

    Returns:
        A `Picture`.
    """
    if not configs:
        raise ValueError("`configs` must hold a config. Received: none.")
    for name, config in configs.items():
        check_config(config, f"configs: {name}")
    most = max(c.num_hidden_layers for c in configs.values())
    unit = 1 / max(c.hidden_size for c in configs.values())
    pitch, tall = WIDTH / len(configs), min(0.22, 4.4 / most)
    sheet = Sheet(tall * most + 2.02)
    for i, (name, config) in enumerate(configs.items()):
        wide = min(2.4, pitch * 0.82) * config.hidden_size * unit
        x, top = pitch * (i + 0.5), tall * most + 1.87
        _stack(sheet, x, top, wide, tall, name, config)
    said = "; ".join(
        f"{name} has {c.num_hidden_layers} blocks of width {c.hidden_size} "
        f"and {count_parameters(c):,} parameters"
        for name, c in configs.items()
    )
    return Picture(sheet.figure, alt or f"Stacks of blocks: {said}.")


def _stack(sheet, x, top, wide, tall, name, config):
    """Draws one encoder of `stacks`, its sizes above its blocks."""
    layers, width = config.num_hidden_layers, config.hidden_size
    sizes = f"{layers} blocks\n{config.num_attention_heads} heads"
    count = f"{count_parameters(config):,}\nparameters"
    sheet.label(x, top, name, weight="bold", size=10)
    sheet.label(x, top - 0.53, f"{sizes}\nwidth {width}\n{count}", size=8)
    small = wide < 0.6
    sheet.box(x, top - 1.17, wide, 0.26, "" if small else "embeddings", "token")
    start = top - 1.44
    sheet.arrow((x, start + 0.14), (x, start - tall * 0.08))
    for layer in range(layers):
        y, number = start - tall * (layer + 0.5), f"{layer + 1}"
        look = {"size": min(8, tall * 50)}
        sheet.box(x, y, wide, tall * 0.84, number, "block", **look)
    end = start - tall * (layers - 0.08)
    sheet.arrow((x, end), (x, end - 0.25))


@styled
def transformer_cut(alt=None):
    """Draws the 2017 Transformer; what BERT leaves out is grey.

    Source: Vaswani et al. (2017), figure 1.

    Args:
        alt: Alternative text; None for one that names the parts.

    Returns:
        A `Picture`.
    """
    encoder = [
        *(("word vectors", "token"), ("+ position vectors", "position")),
        *(("multi-head attention", "attention"), ("add & norm", "norm")),
        *(("feed-forward", "feed_forward"), ("add & norm", "norm")),
    ]
    decoder = [
        *("word vectors so far", "+ position vectors"),
        *("attention to earlier words", "add & norm"),
        *("attention to the encoder", "add & norm"),
        *("feed-forward", "add & norm", "linear", "softmax: next word"),
    ]
    sheet, left, right, top, pitch = Sheet(5.3), 1.75, 5.25, 4.75, 0.49
    for x, boxes, color, ink, text in (
        (left, 4, "block", INK, "BERT keeps the encoder"),
        (right, 6, "muted", FAINT, "BERT leaves out the decoder"),
    ):
        middle, tall = top - pitch * (1.5 + boxes / 2), pitch * boxes + 0.04
        sheet.box(x, middle, 2.75, tall, "", color, strength=0.07)
        beside = {"turn": 90, "ink": ink, "size": 7.5}
        sheet.label(x + 1.47, middle, "in a row: L blocks", **beside)
        sheet.label(x, 5.12, text, weight="bold", size=9.5, ink=ink)
    places = sheet.chain(left, top, 2.1, encoder, pitch, 0.3)
    grey = [(text, "muted") for text in decoder]
    sheet.chain(right, top, 2.1, grey, pitch, 0.3, strength=0.2, ink=FAINT)
    end, cross = places[-1] - 0.15, top - 4 * pitch
    sheet.arrow((left, end), (left, end - 0.45))
    across = (left, end - 0.25), (3.5, end - 0.25), (3.5, cross)
    sheet.arrow(*across, (right - 1.05, cross), color=FAINT)
    note = "In BERT, positions are learned,\nsegment vectors are added,\n"
    sheet.label(left, end - 0.75, note + "and GELU replaces ReLU.", size=8)
    text = (
        "The Transformer of 2017: an encoder, which BERT keeps, and a "
        "decoder, drawn in grey, which BERT leaves out. Encoder: "
        f"{', '.join(t for t, _ in encoder)}. Decoder: {', '.join(decoder)}."
    )
    return Picture(sheet.figure, alt or text)
