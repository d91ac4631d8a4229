"""Ragged rows of ids, and the batches that are drawn from them.

Rows of similar length go into one batch, so that little is padded.

Differences: Google's code pads every row to one length. As there, every
epoch has a new random order of rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bertbook.batches.batching import bucket_length, bucketed
from bertbook.batches.progress import Progress
from bertbook.checks import check_count
from bertbook.devices.sharing import WHOLE, Share
from bertbook.runtime import compiles_shapes, keras

GROUPS = 50  # batches that are sorted by length together
LEAST_GROUPS = 4  # with fewer a small set would be sorted as a whole


@dataclass
class Rows:
    """Rows of different length, in the order of the data.

    Attributes:
        input_ids: A list of ids for each text, R of them; with choices R * C,
            those of a row one after the other.
        token_type_ids: The same for the segments.
        choices: C texts a row; None where a row is one text.
        targets: The labels by name of output, a value or an array for each row;
            the name is "" where there is one output.
        weights: For tokens that count in the loss, an array of 0 and 1 for
            each row; None where each row counts once.
        pad_token_id: What `input_ids` are padded with.
        row_weights: How much each row counts in the loss, `(R,)`, 1 on
            average; None where all count alike.
        are_positions: Whether the targets are positions of tokens.
    """

    input_ids: list[Any]
    token_type_ids: list[Any]
    choices: int | None = None
    targets: dict[str, Sequence] = field(default_factory=dict)
    weights: Sequence | None = None
    pad_token_id: int = 0
    row_weights: np.ndarray | None = None
    are_positions: bool = False

    def __len__(self) -> int:
        return len(self.input_ids) // (self.choices or 1)

    def lengths(self) -> np.ndarray:
        """Returns the length of the longest text of each row, `(R,)`."""
        lengths = np.array([len(ids) for ids in self.input_ids])
        return lengths.reshape(len(self), -1).max(axis=1)

    def take(self, numbers: Sequence[int]) -> "Rows":
        """Returns some of the rows, in the order of their numbers given."""
        texts = self._texts(numbers, len(numbers))
        targets: dict[str, Any] = {
            name: np.array([column[i] for i in numbers])
            if hasattr(column, "dtype")
            else [column[i] for i in numbers]
            for name, column in self.targets.items()
        }
        weights, row_weights = self.weights, self.row_weights
        return replace(
            self,
            input_ids=[self.input_ids[i] for i in texts],
            token_type_ids=[self.token_type_ids[i] for i in texts],
            targets=targets,
            weights=weights and [weights[i] for i in numbers],
            row_weights=None
            if row_weights is None
            else row_weights[list(numbers)],
        )

    def inputs(
        self, numbers: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        """Cuts a batch of a fixed shape out, without labels.

        Args:
            numbers: The rows to take, at most `batch_size`.
            length: S, at least that of the longest row.
            batch_size: B. Missing rows are copies of the first.

        Returns:
            `input_ids`, `token_type_ids` and `attention_mask`, `(B, S)` or
            `(B, C, S)` int32.
        """
        texts = self._texts(numbers, batch_size)
        choices = () if self.choices is None else (self.choices,)
        shape = (batch_size, *choices, length)
        columns = {
            "input_ids": (
                [self.input_ids[i] for i in texts],
                self.pad_token_id,
            ),
            "token_type_ids": ([self.token_type_ids[i] for i in texts], 0),
            "attention_mask": (
                [[1] * len(self.input_ids[i]) for i in texts],
                0,
            ),
        }
        return {
            name: stack_rows(rows, fill, length=length).reshape(shape)
            for name, (rows, fill) in columns.items()
        }

    def step(
        self, numbers: Sequence[int], length: int, batch_size: int
    ) -> tuple[dict, Any, Any]:
        """Cuts a batch out as `fit` takes it, `(x, y, sample_weight)`.

        The weights sum to 1 for one output, and to one half each for two, so
        that a loss that is a weighted sum is the mean over what counts. With
        `row_weights` they do so on average over all batches.
        """
        real = len(numbers)
        numbers = [*numbers, *[numbers[0]] * (batch_size - real)]
        y, weights = {}, {}
        for name, column in self.targets.items():
            rows = [column[i] for i in numbers]
            if self.weights is None:
                weight = (np.arange(batch_size) < real) / real
                y[name] = np.array(rows)  # (B,), or (B, K)
            else:
                weight = stack_rows(
                    [self.weights[i] for i in numbers], length=length
                )
                weight[real:] = 0
                weight = weight / max(weight.sum(), 1)
                y[name] = stack_rows(rows, length=length)
            if self.row_weights is not None:
                factors = self.row_weights[numbers]  # (B,)
                weight = (weight.T * factors).T  # (B,), or (B, S)
            weights[name] = (weight / len(self.targets)).astype("float32")
        x = self.inputs(numbers, length, batch_size)
        if list(y) == [""]:
            return x, y[""], weights[""]
        return x, y, weights

    def _texts(self, numbers: Sequence[int], batch_size: int) -> list[int]:
        """Returns the numbers of the texts of some rows, filled up."""
        filled = [*numbers, *[numbers[0]] * (batch_size - len(numbers))]
        count = self.choices or 1
        return [i * count + j for i in filled for j in range(count)]


def draw_batches(
    lengths: np.ndarray, batch_size: int, limit: int, seed: Sequence[int]
) -> list[tuple[np.ndarray, int]]:
    """Deals the rows of one epoch into batches of similar length.

    The rows are shuffled; those of some batches are sorted by length and cut;
    then the batches are shuffled.

    Args:
        lengths: Number of tokens of each row.
        batch_size: Rows a batch; one batch may hold fewer.
        limit: The longest length that the model takes.
        seed: Seed of the order; the same seed gives the same batches.

    Returns:
        The numbers of the rows of each batch, and its length.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    per_group = max(1, min(GROUPS, len(order) // (LEAST_GROUPS * batch_size)))
    batches = []
    for start in range(0, len(order), per_group * batch_size):
        part = order[start : start + per_group * batch_size]
        part = part[np.argsort(lengths[part], kind="stable")]
        for first in range(0, len(part), batch_size):
            rows = part[first : first + batch_size]
            batches.append((rows, bucket_length(int(lengths[rows[-1]]), limit)))
    return [batches[i] for i in random.permutation(len(batches))]


def steps(
    rows: Rows,
    batch_size: int,
    limit: int,
    seed: int,
    done: int = 0,
    share: Share = WHOLE,
) -> Iterator[tuple[dict, Any, Any]]:
    """Yields batches for `fit` endlessly, starting at a step.

    Args:
        rows: The training data.
        batch_size: Rows a step.
        limit: The longest length that the model takes.
        seed: Seed of the order.
        done: Steps done before.
        share: How the rows of a batch are split over devices. Rows of weight
            0 fill up what does not split evenly; the rows of this process are
            yielded.
    """
    lengths = rows.lengths()
    filled = share.round_up(batch_size)
    epoch, skipped = divmod(done, -(-len(rows) // batch_size))
    while True:
        batches = draw_batches(lengths, batch_size, limit, (seed, epoch))
        for numbers, length in batches[skipped:]:
            yield share.own(rows.step(numbers.tolist(), length, filled))
        epoch, skipped = epoch + 1, 0


def compute(
    model: Any,
    rows: Rows,
    batch_size: int = 32,
    verbose: bool = False,
    unit: str = "rows",
) -> list[Any]:
    """Runs a model over rows, those of similar length together.

    Args:
        model: The model.
        rows: The rows.
        batch_size: Rows computed at a time.
        verbose: Whether to print how far it is.
        unit: What the rows are called there.

    Returns:
        The output for each row, in their order: an array, or a dict of them.
        The outputs of padding are kept.

    Raises:
        ValueError: `batch_size` is no integer or below 1, or an output is NaN
            or infinite.
    """
    check_count(batch_size, "batch_size")
    row_outputs: list[Any] = [None] * len(rows)
    progress = Progress(len(rows), unit, verbose)
    for numbers, batch in batches_for(model, rows, batch_size):
        outputs = model.compute_on_batch(batch)
        check_finite(outputs, model, len(numbers))
        for place, number in enumerate(numbers):
            row_outputs[number] = keras.tree.map_structure(
                lambda array, place=place: np.asarray(array[place], "float32"),
                outputs,
            )
        progress.add(len(numbers))
    return row_outputs


def batches_for(
    model: Any, rows: Rows, batch_size: int
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Yields batches to compute, of rows of similar length.

    A model that is compiled for each shape gets few shapes; another gets no
    token and no row more than there are.

    Args:
        model: The model.
        rows: The rows.
        batch_size: Rows at a time; a batch may be filled up with copies.

    Yields:
        The numbers of the rows of one batch, and its inputs.
    """
    is_compiled = compiles_shapes(model)
    lengths = rows.lengths().tolist()
    limit = model.config.max_position_embeddings
    full = min(batch_size, len(rows))
    for numbers, length in bucketed(lengths, full, limit):
        size = full
        if not is_compiled:
            size, length = len(numbers), lengths[numbers[-1]]
        yield numbers, rows.inputs(numbers.tolist(), length, size)


def check_finite(outputs: Any, model: Any, rows: int | None = None) -> None:
    """Refuses outputs of a model that are no numbers, or infinite.

    Broken weights give them, and a type of numbers that is too small. No
    score, label or vector may come from them.

    Args:
        outputs: An array, or a dict or list of arrays.
        model: The model.
        rows: How many rows of each array count; all for None.

    Raises:
        ValueError: One is NaN or infinite.
    """
    for array in keras.tree.flatten(outputs):
        values = np.asarray(array)[:rows].astype("float32")
        is_wrong = ~np.isfinite(values)
        if is_wrong.any():
            dtype = getattr(model, "compute_dtype", "float32")
            raise ValueError(
                "The outputs of `model` must be finite numbers. Received: "
                f"{values[is_wrong][0]}, computed in {dtype}; load the weights "
                "again, or train with a lower learning rate"
                + (", or compute in float32." if dtype == "float16" else ".")
            )


def stack_rows(
    rows: Sequence[Sequence],
    fill: int = 0,
    dtype="int32",
    length: int | None = None,
):
    """Pads rows on the right to a length, the longest if none, `(B, S)`.

    Raises:
        ValueError: There is no row, or one is longer than `length`.
    """
    if not len(rows):
        raise ValueError("`rows` must hold at least one row. Received: none.")
    longest = max(map(len, rows))
    if length is not None and longest > length:
        raise ValueError(
            f"`length` must hold every row. Received: {length}, and a row of "
            f"{longest}."
        )
    stacked = np.full(
        (len(rows), longest if length is None else length), fill, dtype
    )
    for padded, row in zip(stacked, rows, strict=True):
        padded[: len(row)] = row
    return stacked
