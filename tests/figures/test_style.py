"""A picture has two pixels for each one of a page, and says how large it is."""

import base64
import re
import struct

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter

from bertbook.figures import style

HEIGHTS = (1.0, 2.345, 4.0)
ALT = 'Says "what" <it>\nshows.'


def picture(height=1.0):
    figure = style.new_figure(height, "A title")
    figure.add_subplot().plot([0, 1], [1, 0])
    return style.Picture(figure, ALT)


def pixels(png):
    """Returns width and height as the image itself says them."""
    return np.array(struct.unpack(">II", png[16:24]))


@pytest.mark.parametrize("height", HEIGHTS)
def test_an_image_has_two_pixels_for_one(height):
    drawn = picture(height)
    size = np.array([drawn.metadata["width"], drawn.metadata["height"]])
    assert size[0] == style.WIDTH * style.DPI
    assert abs(size[1] - height * style.DPI) <= 0.5
    assert style.DENSITY == 2
    image = drawn.png()
    assert (abs(pixels(image) - 2 * size) <= 1).all()
    assert drawn.png() == image


def test_the_bundle_says_size_and_words():
    drawn = picture()
    data, metadata = drawn._repr_mimebundle_()
    assert data == {"image/png": drawn.png(), "text/plain": drawn.alt}
    assert metadata == {"image/png": drawn.metadata}
    assert drawn.metadata == {"width": 770, "height": 110, "alt": drawn.alt}
    assert repr(drawn) == drawn.alt == 'Says "what" <it> shows.'


@pytest.mark.parametrize("template", ["classic", "lab"])
def test_size_and_words_survive_an_export(template):
    data, metadata = picture()._repr_mimebundle_()
    data["image/png"] = base64.b64encode(data["image/png"]).decode()
    new = nbformat.v4
    output = new.new_output("display_data", data, metadata=metadata)
    cells = [new.new_code_cell("draw()", outputs=[output])]
    notebook = new.new_notebook(cells=cells)
    exporter = HTMLExporter(template_name=template)
    page, _ = exporter.from_notebook_node(notebook)
    (image,) = re.findall(r"<img[^>]*base64[^>]*>", page)
    assert 'width="770"' in image
    assert 'height="110"' in image
    if template == "classic":  # the other leaves out every picture's words
        assert re.search(r"""alt=["']Says\b""", image)


def test_a_saved_file_is_the_image(tmp_path):
    picture().save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == picture().png()
    with pytest.raises(ValueError, match="must end in '.png'"):
        picture().save(tmp_path / "a.jpg")
