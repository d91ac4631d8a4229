"""Pictures of agreement: what is drawn, what is said, what is refused."""

import numpy as np
import pytest

from bertbook.figures import parity
from tests.helpers import pictures

FLOOR = np.array([2e-7, 9e-7, 1.1e-6, 1.2e-6])
GAPS = {
    "another epsilon": np.array([1e-2, 8e-3, 4e-3, 3e-3]),
    "swapped": np.array([0.0, 2.0, 4.0, 9.0]),
    "turned": np.array([2e-7, 9e-7, 1.3, 0.7]),
    "moved": np.array([2.4, 1.9, 1.1, 1.0]),
}


def drawn(**options):
    return parity.gap_panels(GAPS, FLOOR, "Four faults", **options)


@pytest.fixture(scope="module")
def picture():
    return drawn()


@pytest.fixture(scope="module")
def shown(picture):
    """The panels in which something is drawn."""
    return [axes for axes in picture.figure.axes if axes.axison]


def test_a_picture_has_words_fits_and_is_always_the_same(picture):
    pictures.check(picture, drawn)


def test_every_program_has_a_panel_of_its_own(shown):
    assert [axes.get_title() for axes in shown] == list(GAPS)
    for axes, line in zip(shown, GAPS.values(), strict=True):
        colored = axes.get_lines()[-1].get_ydata()
        np.testing.assert_array_equal(colored, np.maximum(line, parity.LEAST))
        assert len(axes.get_lines()) == len(GAPS) + 1  # the others, the level


def test_panels_share_one_scale_and_layers_count_from_0(shown):
    assert len({axes.get_ylim() for axes in shown}) == 1
    low, high = shown[0].get_ylim()
    assert low < parity.LEAST
    assert high > 9.0
    names = [tick.get_text() for tick in shown[-1].get_xticklabels()]
    assert names == ["emb.", "0", "1", "2"] == parity.layer_names(4)


def test_alt_text_says_where_a_curve_starts_and_ends(picture):
    assert "Four faults: 4 panels over 3 layers" in picture.alt
    assert "another epsilon from 0.01 to 0.003;" in picture.alt
    assert "swapped from rounding to 9;" in picture.alt
    assert "turned from rounding to 0.7;" in picture.alt


def test_the_author_may_write_the_alt_text():
    assert drawn(alt="as the author says").alt == "as the author says"


def test_any_number_of_columns_fits():
    for columns in (1, 2, 3, 9):
        assert not pictures.cut_off(drawn(columns=columns).figure)


def test_one_program_is_enough():
    picture = parity.gap_panels({"alone": FLOOR}, FLOOR)
    assert "1 panel over 3 layers" in picture.alt


def test_a_mistake_is_named():
    for gaps, floor, message in (
        ({}, FLOOR, "`gaps` must be a dict with at least one name"),
        ([FLOOR], FLOOR, "`gaps` must be a dict"),
        ({"a": FLOOR[:2]}, FLOOR, "`gaps: a` must hold 4 differences"),
        ({"a": -FLOOR}, FLOOR, "`gaps: a` must hold differences >= 0"),
        ({"a": FLOOR * np.nan}, FLOOR, "`gaps: a` must be finite"),
        ({"a": FLOOR}, FLOOR[None], "`floor` must have 1 axes"),
    ):
        with pytest.raises(ValueError, match=message):
            parity.gap_panels(gaps, floor)
    with pytest.raises(ValueError, match="`columns` must be an integer >= 1"):
        drawn(columns=0)
