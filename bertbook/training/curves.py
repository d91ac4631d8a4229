"""`draw_curves`: the log of a run as a picture.

Matplotlib may be missing; then there is no picture, and no error. The canvas
is a picture alone: no window opens, and figures of the caller stay as they
are.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertbook.files import write_whole

# What the axis of a column says, by the end of its name. A column of another
# name has an axis of its own.
LABELS = {
    "accuracy": "share, 0 to 1",
    "f1": "share, 0 to 1",
    "precision": "share, 0 to 1",
    "recall": "share, 0 to 1",
    "exact_match": "share, 0 to 1",
    "matthews": "correlation, -1 to 1",
    "pearson": "correlation, -1 to 1",
    "spearman": "correlation, -1 to 1",
    "mean_squared_error": "squared error",
    "bleu": "score, 0 to 100",
    "chrf": "score, 0 to 100",
}
NOT_DRAWN = ("step", "epoch", "seconds")
WIDTH, HEIGHT, DPI = 6.4, 2.6, 100  # inches, of each panel; dots an inch


def draw_curves(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    loss_label: str = "loss, nats",
) -> bool:
    """Draws the columns of a log over the steps, a panel for each unit.

    Args:
        path: The PNG; it appears whole, or not at all.
        rows: The rows of a log, as they were added or as they were read.
        loss_label: What the axis of the losses says.

    Returns:
        Whether a picture was written.
    """
    panels = group_columns(rows, loss_label)
    if not panels:
        return False
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    size = WIDTH, HEIGHT * len(panels)
    figure = Figure(size, DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    try:
        _draw_panels(figure, panels)
        with write_whole(path) as part:
            # Without a version or a date one log gives the same bytes.
            figure.savefig(part, format="png", metadata={"Software": None})
    except Exception as error:  # a picture must not end a run of days
        warnings.warn(f"{path} could not be drawn: {error}.", stacklevel=2)
        return False
    return True


def group_columns(
    rows: Sequence[Mapping[str, Any]], loss_label: str = "loss, nats"
) -> dict[str, dict[str, tuple[list[int], list[float]]]]:
    """Returns steps and finite values of each column, by the unit of its axis.

    Args:
        rows: As in `draw_curves`.
        loss_label: As in `draw_curves`.
    """
    panels: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for row in rows:
        for name, value in row.items():
            number = _as_float(value)
            if _is_drawn(name) and math.isfinite(number):
                panel = panels.setdefault(_label_of(name, loss_label), {})
                steps, values = panel.setdefault(name, ([], []))
                steps.append(int(row["step"]))
                values.append(number)
    return panels


def _is_drawn(name: str) -> bool:
    return name not in NOT_DRAWN and not name.endswith("_per_second")


def _as_float(value: Any) -> float:
    """Returns a number of a log, NaN for an empty place or a word."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _label_of(name: str, loss_label: str) -> str:
    """Returns what the axis of a column says."""
    if name.endswith("loss"):
        return loss_label
    for end, label in LABELS.items():
        if name.endswith(end):
            return label
    return "bits a character" if name.startswith("bits") else name


def _draw_panels(figure: Any, panels: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws a panel for each unit, one above the other."""
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for axes, (label, columns) in zip(grid[:, 0], panels.items(), strict=True):
        for name, (steps, values) in columns.items():
            axes.plot(steps, values, marker=".", linewidth=1.2, label=name)
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    grid[-1, 0].set_xlabel("step (updates of the weights)")
    grid[-1, 0].xaxis.get_major_locator().set_params(integer=True)
