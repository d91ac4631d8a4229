"""What decides how the training of a translator goes.

Differences: the defaults suit a small model, short sentences and a short run;
the paper trains with 25,000 tokens a side, 4,000 steps of warm-up and a peak
of 7e-4, for 100,000 steps.
"""

import math
from dataclasses import dataclass
from typing import Any

from bertbook.seq2seq_config import Seq2SeqConfig
from bertbook.text_checks import as_number, check_switch, is_integer

DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")
SEEDS = 2**32  # how many there are

# Small enough to be trained on two cores within an hour. Its matrices start
# larger than BERT's, because it is narrower.
SMALL = Seq2SeqConfig(
    vocab_size=4_096,
    target_vocab_size=4_096,
    hidden_size=256,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=1_024,
    max_position_embeddings=96,
    initializer_range=0.05,
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything about a run but the data and the model.

    Attributes:
        steps: Most updates of the weights.
        minutes: After how many minutes the run ends, whatever steps are left;
            its end then depends on the machine. None for no such end.
        batch_tokens: Tokens of one side of a batch, padding counted.
        learning_rate: The peak, at the end of the warm-up.
        warmup_steps: Steps on the way up.
        label_smoothing: As in `losses.SmoothedLoss`.
        clip_norm: Largest norm of all gradients together.
        checkpoint_steps: Steps between checkpoints.
        averaged: The weights of how many of the last checkpoints are averaged
            in the end; 1 for those of the last step.
        dtype: "float32", "mixed_bfloat16", or "mixed_float16", which scales
            the loss.
        seed: Seed of weights, dropout and order.

    Numbers of NumPy become plain ones, so that a record can hold them.

    Raises:
        ValueError: Something is out of range, or of another kind.

    Source: Vaswani et al. (2017), sections 5.3, 5.4 and 6.1.
    """

    steps: int = 2_000
    minutes: float | None = None
    batch_tokens: int = 2_048
    learning_rate: float = 1e-3
    warmup_steps: int = 400
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    checkpoint_steps: int = 200
    averaged: int = 5
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        counts = "steps", "batch_tokens", "warmup_steps", "checkpoint_steps"
        for name in (*counts, "averaged"):
            _set_count(self, name)
        for name in ("minutes", "learning_rate", "clip_norm"):
            if name != "minutes" or self.minutes is not None:
                _set_number(self, name)
        number = as_number(self.label_smoothing)
        if not 0 <= number < 1:
            raise ValueError(
                "`label_smoothing` must be in [0, 1). Received: "
                f"{self.label_smoothing!r}."
            )
        object.__setattr__(self, "label_smoothing", number)
        if self.dtype not in DTYPES:
            raise ValueError(
                f"`dtype` must be one of {', '.join(DTYPES)}. "
                f"Received: {self.dtype!r}."
            )
        if not is_integer(self.seed) or not 0 <= self.seed < SEEDS:
            raise ValueError(
                f"`seed` must be an integer in [0, {SEEDS}). "
                f"Received: {self.seed!r}."
            )
        object.__setattr__(self, "seed", int(self.seed))

    @property
    def seconds(self) -> float | None:
        """After how many seconds the run ends."""
        return None if self.minutes is None else 60 * self.minutes


@dataclass(frozen=True, kw_only=True)
class Reporting:
    """How often a run says something; nothing here changes its weights.

    Attributes:
        log_steps: Steps a row of log.csv; whatever else is due adds one.
        evaluation_steps: Steps between evaluations on dev.
        translated: How many pairs of dev, the first that are short enough,
            are translated each time for BLEU and chrF, greedily; 0 for none.
            It needs sacrebleu.
        verbose: Whether to print.

    Raises:
        ValueError: A number is out of range.
    """

    log_steps: int = 50
    evaluation_steps: int = 500
    translated: int = 0
    verbose: bool = True

    def __post_init__(self) -> None:
        _set_count(self, "log_steps")
        _set_count(self, "evaluation_steps")
        _set_count(self, "translated", least=0)
        check_switch(self.verbose, "verbose")


def check_settings(
    recipe: Any, reporting: Any, config: Any, lowercase: Any
) -> None:
    """Refuses settings of a run that are of another kind.

    Raises:
        ValueError: One is; it is named.
    """
    kinds = {
        "recipe": (recipe, Recipe),
        "reporting": (reporting, Reporting),
        "config": (config, Seq2SeqConfig),
    }
    for name, (value, kind) in kinds.items():
        if not isinstance(value, kind):
            raise ValueError(
                f"`{name}` must be a `{kind.__name__}`. Received: "
                f"{type(value).__name__}."
            )
    check_switch(lowercase, "lowercase")


def _set_count(settings: Any, name: str, least: int = 1) -> None:
    """Makes a field of frozen settings a plain integer."""
    value = getattr(settings, name)
    if not is_integer(value) or value < least:
        raise ValueError(
            f"`{name}` must be an integer >= {least}. Received: {value!r}."
        )
    object.__setattr__(settings, name, int(value))


def _set_number(settings: Any, name: str) -> None:
    """Makes a field of frozen settings a plain number above 0."""
    value = getattr(settings, name)
    number = as_number(value)
    if not 0 < number < math.inf:
        raise ValueError(f"`{name}` must be above 0. Received: {value!r}.")
    object.__setattr__(settings, name, number)
