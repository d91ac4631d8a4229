"""The style of the book's pictures: colors, type, `Picture`.

A thing has the same color wherever it is drawn, the alternative text of a
picture says what it shows, and the same numbers give the same bytes.
"""

import functools
import io
import math
import textwrap
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bertbook.config import BertConfig

WIDTH = 7.0  # inches, every picture
DPI = 110
DENSITY = 2  # pixels for each one of a page, so that it is sharp everywhere
INK = "#22262B"  # text and lines
PAPER = "#FFFFFF"
COLORS = {
    "token": "#0072B2",
    "segment": "#E69F00",
    "position": "#009E73",
    "sum": "#5F6B7A",
    "query": "#D55E00",
    "key": "#3A9BD9",
    "value": "#C0628F",
    "score": "#999933",
    "attention": "#4B3F92",
    "masked": "#3B3B3B",
    "norm": "#CDA815",
    "feed_forward": "#A6611A",
    "block": "#2F4B7C",
    "output": "#882255",
    "muted": "#B4BAC2",
}
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.titlesize": 10.5,
    "font.size": 8.5,
    "grid.color": "#E3E6EA",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # a token may be "$"
    "xtick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.color": INK,
    "ytick.major.width": 0.7,
}


@contextmanager
def book_style():
    """Sets the book's typography, whatever the reader's settings are.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    try:
        from matplotlib import style
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: `pip install matplotlib`."
        ) from error
    with style.context(["default", STYLE]):
        yield


def styled(draw):
    """Makes a function draw in the book's style."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        with book_style():
            return draw(*args, **kwargs)

    return drawn


class Picture:
    """A figure with its alternative text; a notebook shows the image.

    Args:
        figure: A matplotlib `Figure` that belongs to no window.
        alt: What the picture shows, for those who do not see it.
    """

    def __init__(self, figure, alt):
        self.figure, self.alt = figure, " ".join(alt.split())
        with book_style():
            for text in figure.findobj(_is_text):
                text.set_text(printable(text.get_text()))
            for _ in range(2 if figure.get_layout_engine() else 0):
                figure.draw_without_rendering()  # places everything, better
            figure.set_layout_engine("none")  # and keeps it there

    def png(self):
        """Returns the bytes of the image, the same for the same picture."""
        buffer = io.BytesIO()
        with book_style():
            self.figure.savefig(
                buffer,
                format="png",
                dpi=DENSITY * DPI,
                metadata={"Software": None},
            )
        return buffer.getvalue()

    def save(self, path):
        """Writes the image to a file whose name ends in `.png`.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            ValueError: The name has another ending.
        """
        if Path(path).suffix.lower() != ".png":
            raise ValueError(f"`path` must end in '.png'. Received: {path}.")
        Path(path).write_bytes(self.png())

    def __repr__(self):
        return self.alt

    @property
    def metadata(self):
        """Size on the page, where the image has more pixels, and words."""
        wide, tall = (
            round(DPI * size) for size in self.figure.get_size_inches()
        )
        return {"width": wide, "height": tall, "alt": self.alt}

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"image/png": self.png(), "text/plain": self.alt}
        return data, {"image/png": self.metadata}


def new_figure(height, title="", layout="constrained"):
    """Returns an empty figure of the book's width.

    Args:
        height: In inches.
        title: Line above everything.
        layout: "constrained", or "none" for a drawing that fills the page.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((WIDTH, height), DPI, facecolor=PAPER, layout=layout)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle("\n".join(title_lines(title)), weight="bold")
    return figure


def title_lines(title):
    """Returns the lines of a title; one may be too long for the page."""
    return textwrap.wrap(title, 76)


def tint(color, strength=0.25):
    """Mixes a color of `COLORS`, by its key, with white: 0 is white."""
    from matplotlib.colors import to_rgb

    return tuple(1 - strength * (1 - c) for c in to_rgb(COLORS[color]))


def checked(values, name, ndim, size=None):
    """Returns `values` as floats after a check of their shape.

    Args:
        values: Anything that `np.asarray` takes.
        name: The argument, for messages.
        ndim: How many axes it must have.
        size: Optional length of its last axis.

    Raises:
        ValueError: The shape is another, or a value is not finite.
    """
    array = np.asarray(values, dtype="float64")
    if array.ndim != ndim or array.size == 0:
        raise ValueError(
            f"`{name}` must have {ndim} axes and hold numbers. "
            f"Received shape: {array.shape}."
        )
    if size is not None and array.shape[-1] != size:
        raise ValueError(
            f"`{name}` must hold {size} numbers, one a token. "
            f"Received: {array.shape[-1]}."
        )
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise ValueError(f"`{name}` must be finite. Received: {bad}.")
    return array


def check_config(config, name="config"):
    """Returns `config` after a check that it is a `BertConfig`.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(config, BertConfig):
        raise ValueError(
            f"`{name}` must be a BertConfig. Received: {config!r}."
        )
    return config


def check_sizes(**sizes):
    """Raises where a size is not a positive integer.

    Raises:
        ValueError: A size is none; it is named.
    """
    for name, value in sizes.items():
        if isinstance(value, bool) or value < 1 or value != int(value):
            raise ValueError(
                f"`{name}` must be an integer >= 1. Received: {value!r}."
            )


def check_labels(labels, length, name):
    """Returns labels as a list, or None where there are none.

    Raises:
        ValueError: There are not `length` of them.
    """
    if labels is None:
        return None
    labels = list(labels)
    if len(labels) != length:
        raise ValueError(
            f"`{name}` must hold {length} labels. Received: {len(labels)}."
        )
    return labels


def check_named(values, name):
    """Returns a dict after a check that it holds something.

    Raises:
        ValueError: It is no dict, or empty.
    """
    if not isinstance(values, dict) or not values:
        raise ValueError(
            f"`{name}` must be a dict with at least one name. "
            f"Received: {values!r}."
        )
    return values


def readable(value):
    """Writes a number for a label: 1,234,567 or three digits that count."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def same_digits(values):
    """Writes numbers alike: with decimals unless all are whole."""
    is_whole = (values == values.round()).all()
    digits = 0 if is_whole or np.abs(values).max() >= 100 else 2
    return np.vectorize(lambda value: f"{value + 0.0:,.{digits}f}")(values)


def plain(value):
    """Writes a number of an axis: 10,000, not 1e4."""
    return f"{value:,.10g}"


def power(value):
    """Writes the nearest power of ten: 10⁻⁶."""
    exponent = str(round(math.log10(value)))
    return "10" + exponent.translate(
        str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    )


def share(part, whole):
    """Writes a share in percent; what is there is never 0.0%."""
    text = f"{part / whole:.1%}"
    return "< 0.1%" if text == "0.0%" and part else text


def counted(count, thing):
    """Writes a number of things: "1 row", "2 rows"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


@functools.lru_cache
def _glyphs():
    """Returns the code points that the book's font can draw."""
    from matplotlib import font_manager

    path = font_manager.findfont("DejaVu Sans")
    return frozenset(font_manager.get_font(path).get_charmap())


def printable(text):
    """Writes `U+4E2D` for each character that the book's font lacks."""
    return "".join(
        c if c == "\n" or ord(c) in _glyphs() else f"U+{ord(c):04X}"
        for c in str(text)
    )


def _is_text(artist):
    return hasattr(artist, "set_fontsize") and hasattr(artist, "set_text")


@functools.lru_cache(maxsize=4096)
def text_width(text, size):
    """Returns the inches that the widest line of a text takes."""
    from matplotlib.textpath import TextPath

    lines = [line for line in printable(text).split("\n") if line.strip()]
    ends = [TextPath((0, 0), line, size).vertices[:, 0] for line in lines]
    return max((end.max() for end in ends), default=0.0) / 72


def widest(names, size=8.0):
    """Returns the inches that the widest of some names takes."""
    return max((text_width(name, size) for name in names or ()), default=0.0)
