"""The mean of the weights at several moments of a run.

Differences: the paper averages checkpoints of ten minutes each; here they are
some steps apart, so that the result does not depend on the machine.
"""

from pathlib import Path

from bertbook import training

PATTERN = "weights-*.safetensors"


def keep_weights(folder, step, model, kept):
    """Writes the weights of a step, and removes the oldest of too many.

    Args:
        folder: Made where it is missing.
        step: Number of steps done.
        model: A model.
        kept: How many steps are kept, at least 1.

    Raises:
        OSError: The disk is full, or `folder` cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    training.save_weights(folder / PATTERN.replace("*", f"{step:08d}"), model)
    for old in sorted(folder.glob(PATTERN))[:-kept]:
        old.unlink()


def average_weights(folder, model):
    """Puts the mean of all that `keep_weights` kept into a model.

    Source: Vaswani et al. (2017), section 6.1.

    Args:
        folder: As in `keep_weights`.
        model: A model of the same kind.

    Raises:
        FileNotFoundError: Nothing was kept there.
        ValueError: A file is damaged.
    """
    paths = sorted(Path(folder).glob(PATTERN))
    if not paths:
        raise FileNotFoundError(f"No weights to average in {folder}.")
    sums = [0.0] * len(model.weights)
    for path in paths:
        training.load_weights(path, model)
        pairs = zip(sums, model.get_weights(), strict=True)
        sums = [total + array.astype("float64") for total, array in pairs]
    model.set_weights([total / len(paths) for total in sums])
