"""Tables for reading: both forms hold every cell."""

import re

import pytest

from bertbook.book.listing import LINE, Listing

COLUMNS = "no.", "what is said", "right"
ROWS = [("1", "a < b & c", "so it is"), ("2", "x " * 60, "")]


@pytest.fixture
def listing():
    return Listing(COLUMNS, ROWS)


def test_a_record_for_each_row(listing):
    lines = repr(listing).split("\n")
    assert lines[:3] == [
        "1",
        "  what is said a < b & c",
        "  right        so it is",
    ]
    assert lines[3] == "2"
    assert max(map(len, lines)) <= LINE
    assert "".join(lines[4:]).split()[3:] == ["x"] * 60  # no empty column
    assert len(listing) == 2


def test_html_holds_each_cell_escaped(listing):
    cells = re.findall(r"<t[hd] [^>]*>(.*?)</t[hd]>", listing.html())
    assert cells[:6] == [*COLUMNS, "1", "a &lt; b &amp; c", "so it is"]
    assert len(cells) == 9


def test_a_notebook_gets_html_and_text(listing):
    data = listing._repr_mimebundle_()
    assert data == {"text/html": listing.html(), "text/plain": repr(listing)}


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"`rows` must have 3 cells .*: 2, "):
        Listing(COLUMNS, [("1", "2")])
