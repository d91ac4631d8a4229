"""Pictures of masked words: attention masks, and the fate of each token."""

import numpy as np

from bertbook.figures.canvas import FAINT, Sheet, box_width, flow
from bertbook.figures.style import (
    COLORS,
    INK,
    PAPER,
    WIDTH,
    Picture,
    check_labels,
    counted,
    styled,
    text_width,
)

MASK = "[MASK]"
SIZE = 8.0  # points, the type of a token
# What may become of a token: the color of its box, how full, and its ink.
FATES = {
    "not chosen": ("muted", 0.18, INK),
    MASK: ("masked", 1.0, PAPER),
    "random": ("query", 0.35, INK),
    "kept": ("position", 0.35, INK),
}
VIEWS = ("left to right", "both ways", "both ways, one masked")


@styled
def who_sees_whom(words, place, alt=None):
    """Draws three ways to guess one word: what each guess may look at.

    Args:
        words: S words.
        place: Index of the word that is guessed.
        alt: Alternative text; made from the words where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: `place` is no index of `words`.
    """
    words = list(words)
    if not 0 <= place < len(words):
        raise ValueError(
            f"`place` must be in [0, {len(words)}). Received: {place}."
        )
    pitch = 1.16
    sheet = Sheet(pitch * len(VIEWS))
    for row, view in enumerate(VIEWS):
        top = pitch * (len(VIEWS) - row) - 0.28
        seen = [i for i in range(len(words)) if _sees(view, i, place)]
        _draw_view(sheet, words, place, seen, top, view)
    text = (
        f"Three ways to guess {words[place]!r} in {' '.join(words)!r}. Left to "
        f"right, the guess looks at {counted(place, 'word')} before it; both "
        f"ways, at all {len(words)} words and so at {words[place]!r} itself; "
        f"with that one masked, at all others and at {MASK}."
    )
    return Picture(sheet.figure, alt or text)


def _sees(view, i, place):
    """Returns whether a guess at `place` may look at word i."""
    return i < place if view == VIEWS[0] else True


def _draw_view(sheet, words, place, seen, top, view):
    """Draws a row of words, and arrows from those seen to the guess."""
    step = (WIDTH - 1.6) / len(words)
    middles = [1.55 + step * (i + 0.5) for i in range(len(words))]
    low, half = top - 0.66, 0.14
    hidden = view == VIEWS[2]
    sheet.label(0.1, top, view.replace(", ", ",\n"), ha="left", weight="bold")
    for i, (x, word) in enumerate(zip(middles, words, strict=True)):
        covered = hidden and i == place
        fate = MASK if covered else "not chosen"
        color, strength, ink = FATES[fate]
        ink = ink if i in seen else FAINT
        how = {"strength": strength, "ink": ink, "size": SIZE}
        text = MASK if covered else word
        sheet.box(x, top, step * 0.86, 2 * half, text, color, **how)
    x = middles[place]
    sheet.box(x, low, step * 0.86, 2 * half, "guess", "output", size=SIZE)
    furthest = max(place, len(words) - 1 - place, 1)
    for i in seen:
        copies = i == place and not hidden
        end = x + step * 0.4 * (i - place) / furthest, low + half
        look = {"color": COLORS["query"], "width": 2.2} if copies else {}
        sheet.arrow((middles[i], top - half), end, **look)
    if place in seen and not hidden:
        side = -1 if place else 1  # where no arrow passes
        how = {"ha": "right" if place else "left", "ink": COLORS["query"]}
        sheet.label(x + side * step * 0.5, low, "sees its own answer", **how)


@styled
def token_fates(tokens, replaced, chosen, alt=None):
    """Draws a row as the model gets it, each token colored by its fate.

    Above a token that was chosen stands what it was.

    Args:
        tokens: S texts, as they were.
        replaced: S texts, as the model gets them.
        chosen: S booleans.
        alt: Alternative text; made from the tokens where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: The three differ in length, or a token that was not chosen
            has changed.
    """
    tokens, fates = _fates(tokens, replaced, chosen)
    replaced = list(replaced)
    pairs = zip(tokens, replaced, strict=True)
    places, lines = flow([box_width(pair, SIZE) for pair in pairs])
    sheet = Sheet(0.5 * lines + 0.48)
    for i, (line, x, width) in enumerate(places):
        y = 0.5 * (lines - line) + 0.16
        _draw_token(sheet, x, y, width, replaced[i], fates[i])
        if fates[i] != "not chosen":
            sheet.label(x, y + 0.22, tokens[i], size=7, style="italic")
    _draw_legend(sheet, fates)
    said = ", ".join(
        f"{old!r} {_said(fate, new)}"
        for old, new, fate in zip(tokens, replaced, fates, strict=True)
        if fate != "not chosen"
    )
    number = len(tokens) - fates.count("not chosen")
    text = f"A row of {len(tokens)} tokens, {number} of them chosen: {said}."
    return Picture(sheet.figure, alt or text)


def fate_of(token, replaced, is_chosen):
    """Returns what became of a token: a key of `FATES`."""
    if not is_chosen:
        return "not chosen"
    if replaced == MASK:
        return MASK
    return "kept" if replaced == token else "random"


def _fates(tokens, replaced, chosen):
    """Returns tokens as a list and the fate of each, checked."""
    tokens = list(tokens)
    replaced = check_labels(replaced, len(tokens), "replaced")
    chosen = check_labels(chosen, len(tokens), "chosen")
    for old, new, is_chosen in zip(tokens, replaced, chosen, strict=True):
        if old != new and not is_chosen:
            raise ValueError(
                "`replaced` must leave a token as it is that was not chosen. "
                f"Received: {new!r} for {old!r}."
            )
    columns = zip(tokens, replaced, chosen, strict=True)
    return tokens, [fate_of(*column) for column in columns]


def _said(fate, new):
    """Says what became of a token."""
    return {MASK: "hidden", "kept": "kept"}.get(fate, f"became {new!r}")


def _draw_token(sheet, x, y, width, text, fate):
    """Draws one token in the look of its fate."""
    color, strength, ink = FATES[fate]
    how = {"strength": strength, "ink": ink, "size": SIZE}
    sheet.box(x, y, width, 0.24, text, color, va="center_baseline", **how)


def _draw_legend(sheet, fates):
    """Writes what each color means and how often it occurs."""
    x = 0.1
    for fate in FATES:
        text = f"{fate}: {fates.count(fate)}"
        _draw_token(sheet, x + 0.13, 0.16, 0.26, "", fate)
        sheet.note(x + 0.26, 0.16, text, size=8)
        x += 0.6 + text_width(text, 8)


@styled
def units_chosen(tokens, panels, alt=None):
    """Draws which tokens of one row are hidden, a panel for each way.

    Args:
        tokens: S texts.
        panels: Dict of titles to S booleans, True where a token is chosen.
        alt: Alternative text; made from the tokens where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: There is no panel, or one has not S values.
    """
    tokens = list(tokens)
    if not panels:
        raise ValueError("`panels` must hold a panel. Received: none.")
    places, lines = flow([box_width((t,), SIZE) for t in tokens], left=0.85)
    tall = 0.31 * lines + 0.16
    sheet = Sheet(tall * len(panels) + 0.06)
    said = []
    for number, (title, chosen) in enumerate(panels.items()):
        chosen = check_labels(chosen, len(tokens), f"panels: {title}")
        top = tall * (len(panels) - number) - 0.14
        sheet.label(0.1, top, title, ha="left", weight="bold")
        for i, (line, x, width) in enumerate(places):
            fate = MASK if chosen[i] else "not chosen"
            _draw_token(sheet, x, top - 0.31 * line, width, tokens[i], fate)
        hidden = [tokens[i] for i in np.flatnonzero(chosen)]
        said.append(f"{title}: {' '.join(hidden)}")
    text = f"Tokens chosen in a row of {len(tokens)}. {'; '.join(said)}."
    return Picture(sheet.figure, alt or text)
