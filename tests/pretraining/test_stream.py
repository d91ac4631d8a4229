"""Streams: the same examples with any number of workers, from any place."""

import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bertbook.pretraining import stream as streams
from bertbook.pretraining.corpus import Corpus, prepare, read_shard
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Masking
from bertbook.pretraining.stream import BEGINNING, ExampleStream, Position
from bertbook.text.tokenizer import Tokenizer
from tests.helpers.corpora import (
    ODD,
    odd_pieces,
    shelf_corpus,
)

PAIRS = ExampleSettings(max_length=29, masking=Masking(unit="word"))
SINGLE = ExampleSettings(max_length=23, next_sentence=False)
STATIC = ExampleSettings(max_length=29, dynamic=False)
KINDS = {"pairs": PAIRS, "single texts": SINGLE, "static": STATIC}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three shards of some documents, and two held-out ones."""
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(0)
    documents = [
        " ".join(map(str, rng.integers(0, 47, 13 * int(rng.integers(2, 9)))))
        for _ in range(17)
    ]
    text = "\n\n".join("\n".join(cut(d)) for d in documents)
    (folder / "a.txt").write_text(text)
    made = prepare(
        [folder / "a.txt"],
        Tokenizer(ODD),
        folder / "out",
        held_out=0.13,
        seed=2,
        shard_tokens=290,
    )
    assert len(made.shards()) == 3
    assert len(made.shards("held_out")) == 1
    return made


def cut(text, words=7):
    """Lines of some words."""
    parts = text.split()
    return [" ".join(parts[i : i + words]) for i in range(0, len(parts), words)]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    made = shelf_corpus(tmp_path_factory.mktemp("shelf"), shard_tokens=20_000)
    assert len(made.shards()) == 3
    return made


def stream_of(corpus, settings=PAIRS, **options):
    return ExampleStream(corpus, odd_pieces(), settings, **options)


def take(iterator, count):
    """The first items; an iterator that has workers is closed."""
    found = list(itertools.islice(iterator, count))
    iterator.close()
    return found


def join(parts):
    """One batch of several."""
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }


def assert_same(first, second):
    assert list(first) == list(second)
    for name, array in first.items():
        assert array.dtype == second[name].dtype, name
        np.testing.assert_array_equal(array, second[name], name)


def assert_same_batches(first, second):
    for (batch, position), (other, place) in zip(first, second, strict=True):
        assert position == place
        assert_same(batch, other)


def rows_of(examples):
    """Every row as one string of bytes."""
    table = np.hstack(
        [
            np.asarray(array, "float64").reshape(len(array), -1)
            for array in examples.values()
        ]
    )
    return [row.tobytes() for row in table]


# Definition.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [1, 7, 16, 97])
def test_batches_are_the_rows_of_the_epochs(kind, batch_size, small):
    """All rows in a line, cut every `batch_size`; no row is left out."""
    stream = stream_of(small, KINDS[kind])
    epochs = 8
    parts = [list(stream.epoch(number)) for number in range(epochs)]
    line = join([part for epoch in parts for part in epoch])
    ends = [
        (epoch, shard, len(part["input_ids"]))
        for epoch, shards in enumerate(parts)
        for shard, part in enumerate(shards)
    ]
    count = len(line["input_ids"]) // batch_size
    assert count > 3
    batches = stream.batches(batch_size)
    for number, (batch, position) in enumerate(take(batches, count), start=1):
        start, stop = (number - 1) * batch_size, number * batch_size
        expected = {name: array[start:stop] for name, array in line.items()}
        assert list(batch) == list(expected)
        for name, array in batch.items():
            is_float = name == "masked_lm_weights"
            assert array.dtype == ("float32" if is_float else "int32")
            np.testing.assert_array_equal(array, expected[name], name)
        assert position == place_of(stop, ends)


def place_of(row, ends):
    """The position behind a number of rows; ends of shards are not crossed."""
    for epoch, shard, rows in ends:
        if row <= rows:
            return Position(epoch, shard, row)
        row -= rows
    raise AssertionError("there are not so many rows")


def unmasked(examples):
    """The ids of examples before some were hidden."""
    used = examples["masked_lm_weights"] > 0
    whole = examples["input_ids"].copy()
    whole[np.nonzero(used)[0], examples["masked_lm_positions"][used]] = (
        examples["masked_lm_ids"][used]
    )
    return whole


def test_an_epoch_takes_each_shard_once(small):
    """Single texts: every token of every document, in another order."""
    stream, special = stream_of(small, SINGLE), odd_pieces().special
    wanted = np.concatenate([read_shard(p).tokens for p in small.shards()])
    orders = set()
    for number in range(12):
        parts = [unmasked(examples) for examples in stream.epoch(number)]
        texts = [part[~special[part]] for part in parts]
        text = np.concatenate(texts)
        assert sorted(text) == sorted(wanted[~special[wanted]])
        orders.add(tuple(np.sort(text).tobytes() for text in texts))
    assert len(orders) > 1


def test_an_epoch_makes_no_example_too_many(small, monkeypatch):
    made, real = [], streams.run_task
    monkeypatch.setattr(
        streams, "run_task", lambda task: made.append(task) or real(task)
    )
    assert len(list(stream_of(small).epoch(5))) == len(made) == 3
    assert sorted(task.path for task in made) == small.shards()


# Property.


@pytest.mark.parametrize("kind", KINDS)
def test_workers_change_nothing(kind, small):
    whole = take(stream_of(small, KINDS[kind]).batches(11), 40)
    assert whole[-1][1].epoch >= 2
    for workers in (1, 2):
        stream = stream_of(small, KINDS[kind], workers=workers)
        assert_same_batches(whole, take(stream.batches(11), 40))
    epoch = join(list(stream_of(small, KINDS[kind]).epoch(1)))
    assert_same(epoch, join(list(stream.epoch(1))))


def children():
    return {process.pid for process in multiprocessing.active_children()}


def test_workers_leave_when_the_stream_is_closed(small):
    before = children()
    batches = stream_of(small, workers=2).batches(11)
    next(batches)
    started = children() - before
    assert len(started) == 2
    batches.close()
    latest = time.monotonic() + 60
    while started & children() and time.monotonic() < latest:
        time.sleep(0.05)
    assert not started & children()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [7, 31])
def test_a_stream_goes_on_from_any_batch(kind, batch_size, small):
    stream = stream_of(small, KINDS[kind])
    whole = take(stream.batches(batch_size), 300 // batch_size)
    assert whole[-1][1] > (2, 0, 0)
    for number, (_, position) in enumerate(whole[:-3], start=1):
        rest = take(stream.batches(batch_size, position), 3)
        assert_same_batches(rest, whole[number : number + 3])
    rest = take(stream.batches(batch_size, whole[1][1]), len(whole) - 2)
    assert_same_batches(rest, whole[2:])


def test_a_stream_goes_on_with_another_batch_size(small):
    """A position is a place among the rows, whatever the batches are."""
    stream = stream_of(small)
    line = join([batch for batch, _ in take(stream.batches(1), 200)])
    places = [BEGINNING, *(p for _, p in take(stream.batches(1), 200))]
    for start in (0, 1, 43, 77, 100):
        ((batch, position),) = take(stream.batches(89, places[start]), 1)
        expected = {n: a[start : start + 89] for n, a in line.items()}
        assert_same(batch, expected)
        assert position == places[start + 89]


def test_a_worker_goes_on_from_any_place(small):
    whole = take(stream_of(small).batches(13), 15)
    rest = stream_of(small, workers=1).batches(13, whole[8][1])
    assert_same_batches(take(rest, 6), whole[9:])


def test_dynamic_epochs_differ_and_static_ones_do_not(small):
    for settings in (STATIC, PAIRS):
        stream = stream_of(small, settings)
        rows = [rows_of(join(list(stream.epoch(i)))) for i in range(3)]
        for first, second in itertools.combinations(map(set, rows), 2):
            if settings is STATIC:
                assert first == second
            else:
                assert len(first & second) < 0.1 * len(first)
        # Shards come in another order, or did so in one of these epochs.
        assert not rows[0] == rows[1] == rows[2]


def test_one_seed_gives_one_stream(small):
    first, again, other = (
        take(stream_of(small, seed=seed).batches(19), 3) for seed in (3, 3, 4)
    )
    assert_same_batches(first, again)
    for (batch, _), (another, _) in zip(first, other, strict=True):
        assert not set(rows_of(batch)) & set(rows_of(another))


def test_a_moved_corpus_gives_the_same_batches(small, tmp_path):
    for path in small.shards():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    moved = Corpus(tmp_path, small.record)
    assert_same_batches(
        take(stream_of(moved).batches(19), 9),
        take(stream_of(small).batches(19), 9),
    )


def test_held_out_rows_are_no_training_rows(small):
    train, held_out = (
        join(list(stream_of(small, SINGLE, part=part).epoch()))
        for part in ("train", "held_out")
    )
    assert 0 < len(held_out["input_ids"]) < len(train["input_ids"])
    assert not set(rows_of(train)) & set(rows_of(held_out))


# Error.


@pytest.mark.parametrize("workers", [0, 1])
def test_a_damaged_shard_is_named(workers, small, tmp_path):
    for path in small.shards():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:-9])
    stream = stream_of(Corpus(tmp_path, small.record), workers=workers)
    with pytest.raises(ValueError, match=r"train-0000\d.safetensors is damag"):
        next(stream.batches(7))


def test_an_empty_or_unknown_part_is_refused(shelf):
    with pytest.raises(ValueError, match="`part` must hold documents") as e:
        stream_of(shelf, part="held_out")
    assert "Received: 'held_out', which is empty in " in str(e.value)
    assert str(shelf.folder) in str(e.value)
    with pytest.raises(KeyError, match="dev"):
        stream_of(shelf, part="dev")


def test_workers_below_zero_are_refused(small):
    with pytest.raises(
        ValueError, match="`workers` must be an integer >= 0. Received: -1"
    ):
        stream_of(small, workers=-1)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_a_batch_size_below_one_is_refused(batch_size, small):
    with pytest.raises(
        ValueError, match="`batch_size` must be an integer >= 1. Rec"
    ) as e:
        next(stream_of(small).batches(batch_size))
    assert f"Received: {batch_size}." in str(e.value)


def test_a_start_outside_of_the_shards_is_refused(small):
    stream = stream_of(small)
    rows = len(next(stream.epoch(1))["input_ids"])
    for start in (Position(0, 3, 0), Position(2, -1, 0)):
        with pytest.raises(ValueError, match="`start` must be in one of 3 sh"):
            next(stream.batches(7, start))
    for start in (Position(1, 0, rows + 1), Position(1, 0, -1)):
        with pytest.raises(ValueError, match=f"in a shard of {rows} exam") as e:
            next(stream.batches(7, start))
        assert f"Received: {start}." in str(e.value)
    next(stream.batches(7, Position(1, 0, rows)))


# Shards that are read once.


def test_the_last_shards_are_read_in_the_first_epoch_alone(small):
    once = Corpus(small.folder, {**small.record, "once": 2})
    stream = ExampleStream(once, odd_pieces(), PAIRS, seed=3)
    shards = [
        (position.epoch, task.path.name)
        for position, task in itertools.islice(
            stream._tasks(BEGINNING), 3 + 1 + 1
        )
    ]
    names = [path.name for path in small.shards()]
    assert sorted(name for epoch, name in shards if epoch == 0) == names
    assert [s for s in shards if s[0] > 0] == [(1, names[0]), (2, names[0])]


def test_a_stream_goes_on_behind_shards_that_were_read_once(small):
    once = Corpus(small.folder, {**small.record, "once": 2})
    stream = ExampleStream(once, odd_pieces(), PAIRS, seed=3)
    whole = list(itertools.islice(stream.batches(4), 30))
    epochs = [position.epoch for _, position in whole]
    start = epochs.index(1) + 1
    again = stream.batches(4, whole[start - 1][1])
    for (first, _), (second, _) in zip(whole[start:], again, strict=False):
        np.testing.assert_array_equal(first["input_ids"], second["input_ids"])


def test_held_out_shards_are_never_read_once(small):
    once = Corpus(small.folder, {**small.record, "once": 1})
    stream = ExampleStream(once, odd_pieces(), PAIRS, part="held_out")
    assert stream.repeated == len(small.shards("held_out"))


ENDLESS = """
import sys
from pathlib import Path
from bertbook.pretraining.corpus import Corpus
from bertbook.pretraining.masking import Pieces
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.stream import ExampleStream
from bertbook.files import read_json
from tests.helpers.corpora import mini_pieces

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    corpus = Corpus(folder, read_json(folder / "corpus.json"))
    stream = ExampleStream(corpus, mini_pieces(), ExampleSettings(), workers=2)
    batches = stream.batches(2)
    next(batches)
    import multiprocessing
    print(*[p.pid for p in multiprocessing.active_children()], flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_end_with_a_parent_that_was_killed(shelf, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    with subprocess.Popen(
        [sys.executable, str(script), str(shelf.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        try:
            workers = [int(word) for word in parent.stdout.readline().split()]
            assert len(workers) == 2
            # One may be started and not ready; of Ctrl-C both know nothing.
            wait_for(lambda: all(map(ignores_interrupts, workers)))
            os.kill(workers[0], signal.SIGINT)
            time.sleep(0.2)
            assert all(map(is_running, workers))
        finally:
            parent.kill()
    wait_for(lambda: not any(map(is_running, workers)))


def wait_for(condition):
    """Waits until something holds, half a minute at most."""
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()


def ignores_interrupts(number):
    """Returns whether a process ignores SIGINT."""
    text = Path(f"/proc/{number}/status").read_text()
    ignored = int(re.search(r"SigIgn:\s*(\w+)", text)[1], 16)
    return bool(ignored >> (signal.SIGINT - 1) & 1)


def is_running(number):
    """Returns whether a process is there, and no zombie."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2]
    except FileNotFoundError:
        return False
    return state.split()[0] != "Z"
