"""The log as a picture: each unit an axis, the same bytes each time."""

import builtins
import importlib.util

import pytest

from bertbook.training import curves
from bertbook.training.curves import draw_curves, group_columns

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
ROWS = [
    {"step": 2, "loss": 1.5, "tokens_per_second": 10},
    {"step": 4, "loss": 1.0, "dev_loss": 2.0, "dev_accuracy": 0.5, "epoch": 1},
    {"step": "6", "loss": "0.5", "dev_loss": "", "dev_bleu": "20.5"},
]
needs_matplotlib = pytest.mark.skipif(
    not HAS_MATPLOTLIB, reason="draws a picture"
)


def test_columns_are_grouped_by_their_units():
    assert group_columns(ROWS) == {
        "loss, nats": {
            "loss": ([2, 4, 6], [1.5, 1.0, 0.5]),
            "dev_loss": ([4], [2.0]),
        },
        "share, 0 to 1": {"dev_accuracy": ([4], [0.5])},
        "score, 0 to 100": {"dev_bleu": ([6], [20.5])},
    }
    named = group_columns([{"step": 1, "loss": 1, "mine": 3}], "squared error")
    assert list(named) == ["squared error", "mine"]


def test_what_is_no_number_is_left_out():
    rows = [{"step": 1, "loss": "nan", "a": None, "b": "word", "c": 10**400}]
    assert group_columns(rows) == {}
    assert group_columns([]) == {}


@needs_matplotlib
def test_one_log_gives_one_picture(tmp_path):
    assert draw_curves(tmp_path / "a.png", ROWS)
    assert draw_curves(tmp_path / "b.png", [dict(row) for row in ROWS])
    picture = (tmp_path / "a.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert picture == (tmp_path / "b.png").read_bytes()
    assert b"Software" not in picture
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.png",
        "b.png",
    ]


@needs_matplotlib
def test_figures_of_the_caller_stay_as_they_are(tmp_path):
    from matplotlib import pyplot

    backend, before = pyplot.get_backend(), pyplot.get_fignums()
    draw_curves(tmp_path / "a.png", ROWS)
    assert pyplot.get_backend() == backend
    assert pyplot.get_fignums() == before


def test_without_matplotlib_there_is_no_picture(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert not draw_curves(tmp_path / "a.png", ROWS)
    assert list(tmp_path.iterdir()) == []


@needs_matplotlib
def test_a_picture_that_fails_ends_no_run(tmp_path, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("no font")

    monkeypatch.setattr(curves, "_draw_panels", fail)
    with pytest.warns(UserWarning, match="a.png could not be drawn: no font"):
        assert not draw_curves(tmp_path / "a.png", ROWS)
    assert list(tmp_path.iterdir()) == []


def test_no_row_gives_no_picture(tmp_path):
    assert not draw_curves(tmp_path / "a.png", [{"step": 1}])
