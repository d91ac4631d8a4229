"""`ExampleStream`: endless examples, the same with any number of workers.

The examples of a shard depend on the seed, the epoch and the shard alone, and
shards are taken in an order that depends on the seed and the epoch. So a
worker more or less changes nothing, and a `Position` is all that is needed to
go on. The last shards of a corpus, `once` of them by its record, are read in
the first epoch alone.
"""

import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bertbook.pretraining.corpus import Corpus, read_shard
from bertbook.pretraining.examples import (
    ExampleSettings,
    make_examples,
    pack_examples,
)
from bertbook.pretraining.masking import Pieces
from bertbook.training.settings import checked_count


class Position(NamedTuple):
    """The position of a stream: its next row."""

    epoch: int = 0
    shard: int = 0  # place in the order of this epoch
    row: int = 0


BEGINNING = Position()


class Task(NamedTuple):
    """What a worker needs to make the examples of one shard."""

    path: Path | str
    pieces: Pieces
    settings: ExampleSettings
    seed: tuple[int, ...]


class ExampleStream:
    """Examples of a corpus, epoch after epoch.

    Args:
        corpus: What `corpus.prepare` gave.
        pieces: The facts of the vocabulary; `Pieces.of(tokenizer)`.
        settings: What an example looks like.
        seed: Seed of pairs, masks and order.
        workers: Processes that make examples in advance; 0 makes them in this
            process, when they are needed.
        part: "train" or "held_out".

    Raises:
        ValueError: The part is empty, or `workers` is negative.
    """

    def __init__(
        self,
        corpus: Corpus,
        pieces: Pieces,
        settings: ExampleSettings,
        seed: int = 0,
        workers: int = 0,
        part: str = "train",
    ):
        self.paths = corpus.shards(part)
        once = corpus.record.get("once", 0) if part == "train" else 0
        self.repeated = len(self.paths) - once
        if not self.paths:
            raise ValueError(
                f"`part` must hold documents. Received: {part!r}, which is "
                f"empty in {corpus.folder}."
            )
        workers = checked_count(workers, "workers", least=0)
        self.pieces = pieces
        self.settings = settings
        self.seed = seed
        self.workers = workers

    def epoch(self, number: int = 0) -> Iterator[dict[str, np.ndarray]]:
        """Yields the examples of one epoch, a shard at a time."""
        shards = self._shards(Position(number))
        for _, examples in itertools.islice(shards, len(self.paths)):
            yield examples

    def batches(
        self, batch_size: int, start: Position = BEGINNING
    ) -> Iterator[tuple[dict[str, np.ndarray], Position]]:
        """Yields batches of `batch_size` rows, endlessly.

        Args:
            batch_size: B. A batch may hold rows of two epochs.
            start: Where to go on.

        Yields:
            The batch, integers as int32, and where the next one begins.

        Raises:
            ValueError: `batch_size` is below 1, or `start` is no position of
                this stream.
        """
        batch_size = checked_count(batch_size, "batch_size")
        if not 0 <= start.shard < len(self.paths):
            raise ValueError(
                f"`start` must be in one of {len(self.paths)} shards. "
                f"Received: {start}."
            )
        waiting: list[dict[str, np.ndarray]] = []  # parts of the next batch
        count = 0
        for position, examples in self._shards(start):
            rows = len(examples["input_ids"])
            row = start.row if position[:2] == start[:2] else 0
            if not 0 <= row <= rows:
                raise ValueError(
                    f"`start` must be in a shard of {rows} examples. "
                    f"Received: {start}."
                )
            while count + rows - row >= batch_size:
                stop = row + batch_size - count
                waiting.append(_cut(examples, row, stop))
                yield _join(waiting), position._replace(row=stop)
                waiting, count, row = [], 0, stop
            waiting.append(_cut(examples, row, rows))
            count += rows - row

    def _shards(self, start: Position):
        """Yields positions and examples of shards, endlessly."""
        tasks = self._tasks(start)
        if not self.workers:
            for position, task in tasks:
                yield position, run_task(task)
        # A fork would copy the threads and locks of a backend.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            self.workers, context, initializer=tie_to_parent
        ) as pool:
            ahead: deque[tuple[Position, Future]] = deque()
            try:
                for position, task in tasks:
                    ahead.append((position, pool.submit(run_task, task)))
                    if len(ahead) > self.workers:
                        position, future = ahead.popleft()
                        yield position, future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _tasks(self, start: Position) -> Iterator[tuple[Position, Task]]:
        """Yields the tasks of the workers from a position on, endlessly."""
        epoch, first = start.epoch, start.shard
        while True:
            count = len(self.paths) if epoch == 0 else self.repeated
            order = np.random.default_rng([self.seed, epoch]).permutation(count)
            drawn = epoch if self.settings.dynamic else 0
            for place in range(first, len(order)):
                number = int(order[place])
                task = Task(
                    self.paths[number],
                    self.pieces,
                    self.settings,
                    (self.seed, drawn, number),
                )
                yield Position(epoch, place), task
            epoch, first = epoch + 1, 0


def tie_to_parent() -> None:
    """Lets a worker end with its parent, and not on its own by Ctrl-C.

    A parent that is killed can tell its workers nothing. The operating system
    closes the pipe between them, on which a thread of the worker waits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent) -> None:
    """Ends this process, whatever it does, once its parent has ended."""
    parent.join()
    os._exit(1)


def run_task(task: Task) -> dict[str, np.ndarray]:
    """Makes the examples of one shard; this is what a worker runs."""
    rng = np.random.default_rng(task.seed)
    shard = read_shard(task.path)
    examples = make_examples(shard, task.pieces, task.settings, rng)
    if task.settings.packed:
        return pack_examples(examples, task.settings, rng)
    return examples


def _cut(examples, start: int, stop: int) -> dict[str, np.ndarray]:
    """Returns some rows of examples, integers as int32."""
    return {
        name: array[start:stop].astype(
            array.dtype if array.dtype.kind == "f" else "int32"
        )
        for name, array in examples.items()
    }


def _join(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Returns the rows of several parts as one batch."""
    if len(parts) == 1:
        return parts[0]
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }
