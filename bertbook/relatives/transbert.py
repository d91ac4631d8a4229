"""TransBERT: stages of training, each from the weights of the one before.

Differences: the paper's second stage is one of three tasks, with many more
rows than ship here.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

KINDS = ("unsupervised", "transfer", "target")


class Stage(NamedTuple):
    """One training.

    Attributes:
        kind: "unsupervised" learns from plain text, "transfer" from the labels
            of another task, "target" from those of the task that counts.
        train: Takes the folder to start from and the folder to write to.
    """

    kind: str
    train: Callable[[str | Path, Path], object]


def run_stages(
    start: str | Path, stages: Sequence[Stage], folder: str | Path
) -> list[Path]:
    """Runs stages in order, each from the folder of the one before.

    Source: Li et al. (2019), TransBERT, section 3.

    Args:
        start: A shipped name or a folder, for the first stage.
        stages: Stages; plain text comes first, the target last.
        folder: Where the folders of the stages go.

    Returns:
        The folder of each stage.

    Raises:
        ValueError: A kind is unknown, the order is wrong, or there is not
            exactly one target.
    """
    order = [stage_rank(stage.kind) for stage in stages]
    if order != sorted(order) or order.count(KINDS.index("target")) != 1:
        raise ValueError(
            f"`stages` must come in the order {', '.join(KINDS)}, with one "
            f"target. Received: {', '.join(s.kind for s in stages) or 'none'}."
        )
    folders: list[Path] = []
    for number, stage in enumerate(stages, 1):
        out = Path(folder) / f"{number}_{stage.kind}"
        stage.train(folders[-1] if folders else start, out)
        folders.append(out)
    return folders


def stage_rank(kind: str) -> int:
    """Returns the place of a kind of stage in the order.

    Raises:
        ValueError: There is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(
            f"`kind` must be one of {', '.join(KINDS)}. Received: {kind!r}."
        )
    return KINDS.index(kind)
