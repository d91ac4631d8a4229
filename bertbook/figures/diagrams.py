"""Diagrams: boxes and arrows, with a shape on every arrow.

Sizes come from arguments, colors from `style.COLORS`. Data flows down or to
the right.
"""

import math

from bertbook.figures.canvas import FAINT, Sheet, one_of
from bertbook.figures.maps import (
    HIGHLIGHTS,
    HOPS,
    encoder_block,
    encoder_map,
    five_hops,
    stacks,
    transformer_cut,
    whole_bert,
)
from bertbook.figures.style import (
    COLORS,
    INK,
    PAPER,
    WIDTH,
    Picture,
    check_sizes,
    checked,
    styled,
    text_width,
    tint,
)

__all__ = [
    "HIGHLIGHTS", "HOPS", "attention_steps", "encoder_block", "encoder_map",
    "feed_forward", "five_hops", "input_sum", "multi_head", "package_files",
    "shape_flow", "stacks", "transformer_cut", "value_mixing", "whole_bert",
]  # fmt: skip


@styled
def shape_flow(steps, alt=None):
    """Draws a chain of steps, with the shape that leaves each.

    Args:
        steps: List of `(text, shape, color)`: the shape is a string, the
            color a key of `COLORS`.
        alt: Alternative text; made from the steps where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: There are no steps, or a color is unknown.
    """
    if not steps:
        raise ValueError("`steps` must hold a step. Received: none.")
    for _, _, color in steps:
        one_of(color, COLORS, "color")
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
    turn = 90 if longest > wide * 1.4 else 0
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
    """Draws a vector that is the sum of three: one bar in one color."""
    sheet.box(x, y, wide, 0.3, "", "sum", strength=0.1)
    sheet.box(x, y, wide * 0.75, 0.09, "", "sum", 0.9, edge=0)


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

    Raises:
        ValueError: A weight is below 0, or there are not S of them.
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
        sheet.box(4.2, y, 1.5, 0.22, f"value of '{token}'", "value", **look)
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

    Raises:
        ValueError: A size is below 1, or the heads do not split `width`.
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
    heads = range(num_heads) if num_heads < 4 else (0, 1, num_heads - 1)
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
def package_files(files, here):
    """Draws the files of a package that fills up chapter by chapter.

    Args:
        files: Names of files with lists of `(name, chapter, mine)`: a
            definition, the two digits of the chapter that writes it, and
            whether the reader has written it.
        here: The two digits of the chapter in hand.

    Returns:
        A `Picture`.
    """
    counts = [len(parts) for parts in files.values()]
    heights = [0.27 + 0.2 * max(row) for row in (counts[:5], counts[5:])]
    floors = [sum(heights[i + 1 :]) + 0.08 * (2 - i) for i in range(2)]
    top = floors[0] + heights[0]
    sheet = Sheet(top + 0.19)
    said = []
    for i, (file, parts) in enumerate(files.items()):
        x, height = 0.72 + 1.39 * (i % 5), heights[i // 5]
        middle = floors[i // 5] + height / 2
        y = middle + height / 2 - 0.105  # of the first line
        begun = any(chapter <= here for _, chapter, _ in parts)
        in_hand = any(chapter == here for _, chapter, _ in parts)
        color = "query" if in_hand else "block" if begun else "muted"
        edge = 2.0 if in_hand else 1.0
        sheet.box(x, middle, 1.31, height, "", color, 0.08, edge)
        ink = INK if begun else FAINT
        sheet.label(x, y, f"{file}.py", 1.2, ink=ink, weight="bold")
        for line, (name, chapter, mine) in enumerate(parts):
            state = (
                "yours" if mine else "here" if chapter == here
                else "the book's" if chapter < here else f"chapter {chapter}"
            )  # fmt: skip
            said.append(f"{name}: {state}")
            _definition(sheet, x, y - 0.21 - 0.2 * line, name, state)
    legend = "filled: yours   |   outlined: the book's   |   orange: to write"
    sheet.label(WIDTH / 2, top + 0.11, f"{legend} in this chapter", size=7.5)
    return Picture(sheet.figure, f"The files of mybert. {'; '.join(said)}.")


def _definition(sheet, x, y, name, state):
    """Draws one definition of a file as what it is."""
    if state == "yours":
        sheet.box(x, y, 1.2, 0.17, name, "block", 1.0, size=7, ink=PAPER)
    elif state == "here":
        sheet.box(x, y, 1.2, 0.17, name, "query", 0.35, 1.5, size=7)
    elif state == "the book's":
        sheet.box(x, y, 1.2, 0.17, name, "block", 0.0, 0.7, size=7)
    else:
        sheet.label(x, y, f"{name} ({state[-2:]})", 1.2, size=7, ink=FAINT)
