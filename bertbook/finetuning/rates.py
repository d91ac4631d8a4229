"""The learning rate of a fine-tuning where none is given."""

from pathlib import Path
from typing import Any

from bertbook.checks import as_number
from bertbook.devices.processes import is_writer
from bertbook.files import read_json
from bertbook.training.run import RECORD
from bertbook.weights.lora import has_adapters

# From the widest models on: the least width, and the rate; small models need a
# larger one, and adapters a much larger one. `experiments` has tried those of
# the widths 256 and 384; for `base` the paper has 2e-5 to 5e-5. Adapters of
# wide models are untried here: theirs is ten times the rate of all weights.
RATES = ((512, 5e-5), (320, 1e-4), (0, 3e-4))
ADAPTER_RATES = ((512, 5e-4), (0, 1e-3))


def choose_rate(model: Any, out: Any = None, verbose: bool = True) -> float:
    """Returns the learning rate that suits a model, and prints it.

    Args:
        model: A task model.
        out: The folder of the run; one that began there keeps its rate.
        verbose: Whether to print.

    Returns:
        The peak of the rate.
    """
    begun = _recorded_rate(out)
    if begun is not None:
        return begun
    config, adapts = model.config, has_adapters(model)
    rates = ADAPTER_RATES if adapts else RATES
    rate = next(rate for width, rate in rates if config.hidden_size >= width)
    if verbose and is_writer():
        layers = config.num_hidden_layers
        print(
            f"learning rate {rate:g}, chosen for {'adapters of ' * adapts}"
            f"{layers} layer{'s' * (layers != 1)} of width "
            f"{config.hidden_size}"
        )
    return rate


def _recorded_rate(out: Any) -> float | None:
    """Returns the rate of a run that began in a folder, if one did."""
    if out is None or not (Path(out) / RECORD).is_file():
        return None
    try:
        record = read_json(Path(out) / RECORD)
    except (ValueError, OSError):  # the run itself says what is wrong
        return None
    rate = as_number(record.get("learning_rate"))
    return rate if rate > 0 else None
