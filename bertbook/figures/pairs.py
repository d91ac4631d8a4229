"""Pictures of pairs of texts: how they are drawn, and packed into rows."""

import numpy as np

from bertbook.figures.canvas import Sheet
from bertbook.figures.style import (
    COLORS,
    PAPER,
    Picture,
    check_sizes,
    checked,
    counted,
    new_figure,
    share,
    styled,
    text_width,
    tint,
)

# The colors of the examples of a row; neighbors differ in gray too.
TURNS = ("token", "segment", "attention", "position", "query", "value")
ANSWERS = ("IsNext", "NotNext")  # labels 0 and 1, as in `examples`
# The two texts of `cross_and_bi`: left or right, name, color.
SIDES = ((-1, "text A", "token"), (1, "text B", "segment"))


def _turn(number):
    return TURNS[number % len(TURNS)]


@styled
def pair_spans(shard, spans, labels, alt=None):
    """Draws where the two texts of some pairs stand among the documents.

    Args:
        shard: A `corpus.Shard` of a few sentences.
        spans: First start and end, second start and end, `(n, 4)`.
        labels: `(n,)`, 0 where the second text goes on.
        alt: Alternative text; made from the spans where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: `labels` are not as many as `spans`, or hold something other
            than 0 and 1.
    """
    spans = checked(spans, "spans", 2, 4).astype(int)
    labels = _answers(labels, len(spans))
    sheet = Sheet(0.3 * len(spans) + 0.75)
    left, scale = 0.75, 5.3 / len(shard.tokens)

    def bar(y, start, stop, text, color, **look):
        middle, wide = left + scale * (start + stop) / 2, scale * (stop - start)
        sheet.box(middle, y, wide - 0.02, 0.22, text, color, size=8, **look)

    top = 0.3 * len(spans) + 0.33
    first_sentences = shard.documents.tolist()
    for document, first in enumerate(first_sentences[:-1]):
        last = first_sentences[document + 1]
        ends = shard.sentences[[first, last]].tolist()
        name = f"document {document + 1}"
        sheet.label(left + scale * sum(ends) / 2, top + 0.25, name, size=8)
        for i in range(first, last):
            start, stop = shard.sentences[i : i + 2].tolist()
            strength = 0.25 + 0.35 * (document % 2)
            bar(top, start, stop, f"{i + 1}", "muted", strength=strength)
    sheet.label(0.1, top, "sentence", ha="left", size=8)
    for row, (span, label) in enumerate(zip(spans, labels, strict=True)):
        y = top - 0.35 - 0.3 * row
        sheet.label(0.1, y, f"pair {row + 1}", ha="left", size=8)
        bar(y, *span[:2], "A", "token", strength=0.35)
        bar(y, *span[2:], "B", "segment", strength=0.45)
        sheet.label(6.15, y, ANSWERS[label], ha="left", size=8)
    return Picture(sheet.figure, alt or _said_of_spans(spans, labels))


def _answers(labels, count):
    """Returns labels as a list of 0 and 1."""
    labels = np.asarray(labels).tolist()
    if len(labels) != count or not set(labels) <= {0, 1}:
        raise ValueError(
            f"`labels` must hold {count} times 0 or 1. Received: {labels}."
        )
    return labels


def _said_of_spans(spans, labels):
    said = "; ".join(
        f"pair {i + 1}: A tokens {a} to {b - 1}, B tokens {c} to {d - 1}, "
        f"{ANSWERS[label]}"
        for i, ((a, b, c, d), label) in enumerate(
            zip(spans.tolist(), labels, strict=True)
        )
    )
    return f"Where the texts of {counted(len(labels), 'pair')} stand; {said}."


@styled
def pair_with_targets(tokens, segments, targets, label, alt=None):
    """Draws one example: what the model sees, and what it has to guess.

    Args:
        tokens: S texts, as the model sees them.
        segments: S numbers, 0 in the first text and 1 in the second.
        targets: Dict of hidden places to what stood there.
        label: 0 where the second text goes on, 1 where it does not.
        alt: Alternative text; made from the tokens where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: A target names no token, or `label` is not 0 or 1.
    """
    (label,) = _answers([label], 1)
    segments = checked(segments, "segments", 1, len(tokens)).astype(int)
    if not set(targets) <= set(range(len(tokens))):
        raise ValueError(
            f"`targets` must name places in [0, {len(tokens)}). "
            f"Received: {sorted(targets)}."
        )
    pitch = min(0.8, 5.95 / len(tokens))
    tall = min(1.1, max(text_width(text, 8) for text in tokens) + 0.16)
    sheet = Sheet(tall + 1.35)
    rows = {"token": 1.28 + tall / 2, "segment": 1.1, "to guess": 0.35}
    for name, y in rows.items():
        sheet.label(0.1, y, name, ha="left")
    guesses = {0: ANSWERS[label]} | targets
    for i, (token, segment) in enumerate(zip(tokens, segments, strict=True)):
        x, color = 0.9 + pitch * (i + 0.5), ("token", "segment")[segment]
        look = {"strength": 0.15} if i in targets else {}
        sheet.box(
            x, rows["token"], pitch * 0.9, tall, token,
            "masked" if i in targets else color, size=8, turn=90, **look,
        )  # fmt: skip
        sheet.box(x, 1.1, pitch * 0.9, 0.24, f"{segment}", color, size=8)
        if i in guesses:
            sheet.arrow((x, 0.97), (x, 0.52))
            x = max(x, 0.82 + text_width(guesses[i], 8) / 2)
            sheet.label(x, 0.38, guesses[i], size=8, weight="bold")
    hidden = ", ".join(f"{t!r} at place {i}" for i, t in targets.items())
    text = (
        f"An example of {len(tokens)} tokens, {' '.join(tokens)}; from [CLS] "
        f"the model guesses {ANSWERS[label]!r}; hidden are {hidden or 'none'}."
    )
    return Picture(sheet.figure, alt or text)


@styled
def packed_rows(lengths, places, max_length, alt=None):
    """Draws examples one a row with their padding, and packed into few rows.

    Args:
        lengths: Tokens of each example.
        places: A `packing.Place` for each.
        max_length: Length of a row.
        alt: Alternative text; made from the lengths where it is None.

    Returns:
        A `Picture`.
    """
    lengths = checked(lengths, "lengths", 1, len(places)).astype(int).tolist()
    rows = 1 + max(place.row for place in places)
    high = 0.17 * (len(lengths) + rows) + 1.3
    figure = new_figure(high)
    ratios = [len(lengths) + 1, rows + 1]
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=ratios)
    alone = [(number, 0) for number in range(len(lengths))]
    packed = [(place.row, place.start) for place in places]
    shares = []
    for axes, spots, count, name in (
        (upper, alone, len(lengths), "one example per row"),
        (lower, packed, rows, "packed"),
    ):
        axes.barh(
            range(count), max_length, height=0.8, facecolor=PAPER,
            edgecolor=COLORS["muted"], hatch="////", linewidth=0,
        )  # fmt: skip
        for number, (row, start) in enumerate(spots):
            _example_bar(axes, number, row, start, lengths[number])
        padding = count * max_length - sum(lengths)
        shares.append(share(padding, count * max_length))
        axes.set_title(f"{name}: {shares[-1]} padding", loc="left")
        axes.set(yticks=[], xlim=(0, max_length), ylim=(count - 0.4, -0.6))
    lower.set_xlabel("place in the row")
    text = (
        f"{counted(len(lengths), 'example')} of {min(lengths)} to "
        f"{max(lengths)} tokens in rows of {max_length}: one a row, "
        f"{shares[0]} padding; packed into {counted(rows, 'row')}, {shares[1]}."
    )
    return Picture(figure, alt or text)


def _example_bar(axes, number, row, start, length):
    """Draws one example of `packed_rows`, its number inside."""
    color = _turn(number)
    axes.barh(
        row, length, left=start, height=0.8, color=tint(color, 0.55),
        edgecolor=COLORS[color], linewidth=0.8,
    )  # fmt: skip
    middle = start + length / 2
    axes.text(middle, row, f"{number + 1}", ha="center", va="center", size=7)


@styled
def block_mask(mask, starts, numbers=None, alt=None):
    """Draws which token of a packed row may look at which.

    Args:
        mask: `(T, T)`, 1 where the token of the row may look at that of the
            column.
        starts: Where each example of the row begins.
        numbers: Optional numbers of the examples, from 0, for their colors
            and names.
        alt: Alternative text; made from the mask where it is None.

    Returns:
        A `Picture`.
    """
    mask = checked(mask, "mask", 2) > 0
    starts = np.asarray(starts).tolist()
    numbers = list(range(len(starts)) if numbers is None else numbers)
    lengths = [int(mask[start].sum()) for start in starts]
    colors = np.ones((*mask.shape, 3))
    for number, start in zip(numbers, starts, strict=True):
        colors[mask[start][:, None] & mask] = tint(_turn(number), 0.7)
    figure = new_figure(3.4)
    axes = figure.add_subplot(
        xlabel="is looked at (key)", ylabel="looks (query)"
    )
    axes.imshow(colors, interpolation="nearest")
    for number, start, length in zip(numbers, starts, lengths, strict=True):
        middle = start + (length - 1) / 2
        axes.text(middle, middle, f"{number + 1}", ha="center", va="center")
    axes.spines[:].set_visible(True)
    axes.set(xticks=sorted(starts), yticks=sorted(starts))
    said = ", ".join(map(str, lengths))
    text = (
        f"Attention mask of a row of {len(mask)} tokens that holds "
        f"{counted(len(starts), 'example')} of {said} tokens: one square block "
        f"each on the diagonal, {share(mask.sum(), mask.size)} of all cells."
    )
    return Picture(figure, alt or text)


@styled
def cross_and_bi(count, alt=None):
    """Draws an encoder that reads two texts as a pair, and one that does not.

    Args:
        count: Texts on each side, of which every pair is scored.
        alt: Alternative text; made from the count where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: `count` is not a positive integer.
    """
    check_sizes(count=count)
    pairs, texts = count * count, 2 * count
    sheet = Sheet(3.1)
    _draw_cross(sheet, 1.75)
    _draw_bi(sheet, 5.25)
    for x, name, sum_of in (
        (1.75, "cross-encoder", f"{count:,} × {count:,} = {pairs:,}"),
        (5.25, "bi-encoder", f"{count:,} + {count:,} = {texts:,}"),
    ):
        sheet.label(x, 2.93, name, weight="bold")
        sheet.label(x, 0.15, f"passes: {sum_of}", room=3.3)
    text = (
        "A cross-encoder reads both texts in one row, and a head scores them. "
        "A bi-encoder reads each text alone, with the same weights, keeps its "
        "vector, and compares two vectors by their cosine. Passes for all "
        f"pairs of {count:,} and {count:,} texts: {pairs:,} and {texts:,}."
    )
    return Picture(sheet.figure, alt or text)


def _draw_cross(sheet, x):
    """Draws one encoder for both texts, its middle at `x`."""
    for side, name, color in SIDES:
        at = x + 0.5 * side
        sheet.box(at, 2.5, 0.98, 0.32, name, color)
        sheet.arrow((at, 2.34), (at, 2.0))
    sheet.box(x, 1.75, 2.0, 0.5, "encoder", "block")
    sheet.arrow((x, 1.5), (x, 1.26), note="[CLS]")
    sheet.box(x, 1.1, 1.1, 0.32, "head", "output")
    sheet.arrow((x, 0.94), (x, 0.62))
    sheet.label(x, 0.5, "score")


def _draw_bi(sheet, x):
    """Draws an encoder for each text, their middle at `x`."""
    for side, name, color in SIDES:
        at = x + 0.85 * side
        sheet.box(at, 2.5, 1.0, 0.32, name, color)
        sheet.arrow((at, 2.34), (at, 2.0))
        sheet.box(at, 1.75, 1.0, 0.5, "encoder", "block")
        sheet.arrow((at, 1.5), (at, 1.26))
        sheet.box(at, 1.1, 1.0, 0.32, "vector, kept", color)
        sheet.arrow((at, 0.94), (at, 0.5), (x + 0.32 * side, 0.5))
    sheet.label(x, 1.75, "the same\nweights", size=7.5)
    sheet.label(x, 0.5, "cosine")
