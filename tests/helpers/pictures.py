"""What holds for every picture of the book, and how its texts are found."""

from unittest import mock

import matplotlib

from bertbook.figures import style

OTHER_SETTINGS = {
    "axes.facecolor": "black",
    "font.size": 20,
    "text.usetex": True,
}


def check(picture, draw, least=20):
    """Asserts that a picture has words, fits its page and is always the same.

    Args:
        picture: A drawn `Picture`.
        draw: What drew it; it is called once more, by another reader.
        least: The characters that its words have, and more.
    """
    assert repr(picture) == picture.alt
    assert len(picture.alt) > least
    assert picture.alt.endswith(".")
    assert "\n" not in picture.alt
    assert picture.figure.get_size_inches()[0] == style.WIDTH
    assert not cut_off(picture.figure)
    with matplotlib.rc_context(OTHER_SETTINGS):
        again = pixels(draw())
    assert again == pixels(picture)
    assert again.startswith(b"\x89PNG")


def pixels(picture):
    """Returns the image as `png` writes it, with a sixteenth of the pixels."""
    with mock.patch.object(style, "DENSITY", 0.5):
        return picture.png()


def cut_off(figure):
    """Returns whether something stands outside of the page."""
    with style.book_style():
        page, box = figure.get_size_inches(), figure.get_tightbbox()
    pixel = 1 / style.DPI
    return (box.min <= -pixel / 2).any() or (box.max >= page + pixel / 2).any()


def texts(picture):
    """Returns every text of a drawing, with its box in pixels."""
    (axes,) = picture.figure.axes
    return [
        (text.get_text(), text.get_window_extent().padded(-1.5))
        for text in axes.texts
        if text.get_text()
    ]


def overlaps(picture):
    """Returns each two texts of a drawing of which one lies on the other."""
    found = texts(picture)
    return [
        (one, other)
        for i, (one, box) in enumerate(found)
        for other, its_box in found[i + 1 :]
        if box.overlaps(its_box)
    ]


def smallest(picture):
    """Returns the size of the smallest type of a drawing."""
    (axes,) = picture.figure.axes
    return min(text.get_fontsize() for text in axes.texts)
