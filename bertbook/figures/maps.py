"""Maps: the place of a part in BERT, and of BERT in the Transformer.

Numbers of blocks come from a config. Data flows down or to the right.

Differences: `transformer_cut` draws the model of Vaswani et al. (2017), the
others BERT's encoder.
"""

from bertbook.figures.canvas import FAINT, Sheet, one_of
from bertbook.figures.style import (
    COLORS,
    INK,
    PAPER,
    WIDTH,
    Picture,
    check_config,
    styled,
)
from bertbook.weights.names import count_parameters

HOPS = {
    "Tokenizer.encode": "text to ids",
    "examples": "ids to tasks",
    "batch": "arrays (B, S)",
    "model": "vectors, scores",
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
    (3.18, 1.22, 0.22, 0.3, "0", "attention", "block heads"),
    (3.43, 1.22, 0.22, 0.3, "1", "attention", "block heads"),
    (3.69, 1.22, 0.22, 0.3, "2", "attention", "block heads"),
    (3.94, 1.22, 0.22, 0.3, "…", "attention", "block heads"),
    (4.44, 1.5, 0.34, 1.2, "add & norm", "norm", "block add_norm"),
    (5.1, 1.5, 0.54, 1.2, "feed-\nforward", "feed_forward",
     "block feed_forward"),
    (5.75, 1.5, 0.34, 1.2, "add & norm", "norm", "block add_norm"),
    (6.62, 1.5, 0.66, 0.5, "vectors\nin context", "output", ""),
)  # fmt: skip


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
        one_of(name, HOPS, "here")
    sheet = Sheet(1.25)
    for i, (name, description) in enumerate(HOPS.items()):
        x, look = 0.72 + 1.39 * i, {"color": "muted"}
        if name in here:
            look = {"color": "token", "strength": 1.0, "ink": PAPER}
        sheet.box(x, 0.62, 1.14, 0.42, name, **look)
        sheet.label(x, 0.24, description, size=8)
        if i:
            sheet.arrow((x - 0.82, 0.62), (x - 0.57, 0.62))
    _you_are_here(
        sheet, [0.72 + 1.39 * i for i, name in enumerate(HOPS) if name in here]
    )
    said = " and ".join(here) or "none of them"
    text = f"The five hops from text to loss: {', '.join(HOPS)}."
    return Picture(sheet.figure, f"{text} You are here: {said}.")


def _you_are_here(sheet, places):
    """Writes one label above all lit boxes, with an arrow to each."""
    if not places:
        return
    middle = (places[0] + places[-1]) / 2
    sheet.label(middle, 1.15, "you are here", size=8, weight="bold")
    for x in places:
        sheet.arrow((middle, 1.07), (middle, 1.0), (x, 1.0), (x, 0.83))


@styled
def encoder_map(highlight=None):
    """Draws the encoder, with "you are here".

    Args:
        highlight: One of `HIGHLIGHTS`, or None for the map alone.

    Returns:
        A `Picture`.
    """
    if highlight is not None:
        one_of(highlight, HIGHLIGHTS, "highlight")
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

    Raises:
        ValueError: There are no configs.
    """
    if not configs:
        raise ValueError("`configs` must hold a config. Received: none.")
    for name, config in configs.items():
        check_config(config, f"configs: {name}")
    most = max(c.num_hidden_layers for c in configs.values())
    unit = 1 / max(c.hidden_size for c in configs.values())
    pitch, tall = WIDTH / len(configs), min(0.22, 2.2 / most)
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
        y = start - tall * (layer + 0.5)
        sheet.box(x, y, wide, tall * 0.84, "", "block")
        if layer in (0, layers - 1):  # the first is number 0
            sheet.label(x - wide / 2 - 0.06, y, f"{layer}", size=7, ha="right")
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


@styled
def whole_bert(config, tokens, guesses, alt=None):
    """Draws a BERT on one page, from a text with a hidden token to a guess.

    The lines of block 0 show who may look at whom: everyone at everyone.

    Args:
        config: A `BertConfig`.
        tokens: Up to 11 texts, "[CLS]" first and one of them "[MASK]".
        guesses: Pairs of a word and its probability, the best first.
        alt: Alternative text; made from the arguments where it is None.

    Returns:
        A `Picture`.

    Raises:
        ValueError: The tokens or the guesses are not of this form.
    """
    check_config(config)
    if not tokens or tokens[0] != "[CLS]" or "[MASK]" not in tokens[1:]:
        raise ValueError(
            "`tokens` must begin with '[CLS]' and hold '[MASK]'. "
            f"Received: {list(tokens)}."
        )
    if not guesses:
        raise ValueError("`guesses` must hold a pair. Received: none.")
    sheet, pitch = Sheet(5.7, 0.1), 5.15 / len(tokens)
    columns = [1.52 + pitch * (i + 0.5) for i in range(len(tokens))]
    hidden, last = list(tokens).index("[MASK]"), config.num_hidden_layers - 1
    _text_and_embeddings(sheet, columns, tokens, pitch * 0.88)
    _first_block(sheet, columns, hidden, config.num_attention_heads)
    _more_blocks(sheet, last)
    _two_answers(sheet, columns, hidden, pitch * 0.88, guesses[:3])
    said = ", ".join(f"{word} {chance:.2f}" for word, chance in guesses)
    text = (
        f"A BERT with {last + 1} blocks. On top the tokens {' '.join(tokens)}; "
        "each becomes the sum of a token, a segment and a position vector. "
        f"In a block, attention with {config.num_attention_heads} heads lets "
        "every token look at every token, and a feed-forward network works on "
        "each token alone. Of the vectors that come out, that of [CLS] stands "
        f"for the whole text, and that of [MASK] gives the guesses {said}."
    )
    return Picture(sheet.figure, alt or text)


def _text_and_embeddings(sheet, columns, tokens, wide):
    """Draws the tokens, and below each the sum of its three vectors."""
    _left(sheet, 5.46, "tokens")
    _left(sheet, 5.2, "embeddings")
    for i, part in enumerate(("token", "segment", "position")):
        sign = "+ " if i else ""
        sheet.label(
            1.4,
            5.0 - 0.1 * i,
            f"{sign}{part}",
            ha="right",
            size=7,
            ink=COLORS[part],
        )
    for x, token in zip(columns, tokens, strict=True):
        special = token.startswith("[") and token.endswith("]")
        color = "query" if token == "[MASK]" else "token"
        strength = 0.5 if special else 0.15
        sheet.box(x, 5.46, wide, 0.3, token, color, strength, size=8)
        sheet.arrow((x, 5.31), (x, 5.08))
        sheet.box(x, 4.9, wide, 0.36, "", "sum", 0.1)
        for i, part in enumerate(("token", "segment", "position")):
            y = 5.0 - 0.1 * i
            sheet.box(x, y, wide * 0.7, 0.05, "", part, 1.0, edge=0)
        sheet.arrow((x, 4.72), (x, 4.14))


def _first_block(sheet, columns, hidden, num_heads):
    """Draws the block whose inside is seen, the lines to [MASK] the boldest."""
    sheet.box(4.13, 3.59, 5.62, 1.74, "", "block", 0.06)
    _left(sheet, 4.3, "block 0")
    for card in range(min(num_heads, 4) - 1, -1, -1):  # a card for each head
        place = 4.06 + 0.04 * card, 3.72 + 0.04 * card
        sheet.box(*place, 5.26, 0.84, "", "attention", 0.08)
    heads = f"attention,\n{num_heads} head{'' if num_heads == 1 else 's'}"
    _left(sheet, 3.9, heads, below=True)
    line = {"color": COLORS["attention"], "zorder": 4}
    for x in columns:
        for i, end in enumerate(columns):
            look = {"lw": 1.3} if i == hidden else {"lw": 0.5, "alpha": 0.25}
            sheet.axes.plot((x, end), (4.06, 3.38), **line, **look)
        sheet.arrow((x, 3.3), (x, 3.1))
        sheet.box(x, 2.96, 0.3, 0.28, "", "feed_forward", 0.5)
        sheet.arrow((x, 2.82), (x, 2.5))
    _left(sheet, 3.03, "feed-forward", below=True)


def _more_blocks(sheet, last):
    """Draws the blocks from 1 on as bars, of many only three."""
    if not last:
        return
    _left(sheet, 2.3, "block 1" if last == 1 else f"blocks 1 to {last}")
    for bar in range(min(last, 3)):
        sheet.box(4.13, 2.43 - 0.15 * bar, 5.62, 0.12, "", "block", 0.2)


def _two_answers(sheet, columns, hidden, wide, guesses):
    """Draws the vectors that come out, and what two of them are good for."""
    _left(sheet, 1.72, "vectors in\ncontext")
    for i, x in enumerate(columns):
        strength = 0.6 if i in (0, hidden) else 0.12
        sheet.arrow((x, 2.06), (x, 1.85))
        sheet.box(x, 1.72, wide, 0.26, "", "output", strength)
    first, x = columns[0], columns[hidden]
    sheet.arrow((first, 1.59), (first, 1.2))
    sheet.label(first, 1.1, "[CLS]: about the whole text", size=8)
    for y, text in (
        (0.82, "which class is it?"),
        (0.5, "does text B follow text A?"),
    ):
        sheet.box(first, y, 1.6, 0.24, text, "output", 0.12, size=8)
    aside = min(max(x, 4.0), 5.7)  # room for the words on both sides
    sheet.arrow((x, 1.59), (x, 1.42), (aside, 1.42), (aside, 1.2))
    x = aside
    sheet.label(x, 1.1, "[MASK]: which word is hidden?", size=8)
    for i, (word, chance) in enumerate(guesses):
        y, long = 0.84 - 0.24 * i, max(0.9 * chance, 0.02)
        sheet.label(x - 0.08, y, word, ha="right", room=0.9, size=8)
        sheet.box(x + long / 2, y, long, 0.15, "", "output", 0.85, edge=0)
        sheet.note(x + long, y, f"{chance:.2f}", size=8)


def _left(sheet, y, text, below=False):
    """Writes what a line of the page is, or in small what it holds."""
    look = {"va": "top", "size": 7.5} if below else {"weight": "bold"}
    sheet.label(0.1, y, text, ha="left", **look)
