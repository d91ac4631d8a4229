"""The input texts of a command: arguments, a file, or standard input.

Lines are read as they come: of a pipe that pauses, those that are there are
computed and answered, and of a long file never more than a chunk is in memory.
"""

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bertbook.files import OPENERS, DataFile, check_no_pointer

BLOCK = 1 << 16  # bytes read at a time
LONGEST_LINE = 1 << 24  # bytes; what is longer is no line of a text
LARGEST_CHUNK = 32  # batches

# A line with its number from 1 on; None where the next one is not there yet.
Numbered = tuple[int, Any]


def add_texts(parser: Any, meaning: str, of_file: str) -> None:
    """Adds the options that `read_texts` reads to the parser of a command.

    Args:
        parser: A parser of `argparse`.
        meaning: What the words are, for its help.
        of_file: What the lines of a file are, for its help.
    """
    parser.add_argument(
        "--file", help=f"{of_file}; without it, or as -, standard input"
    )
    parser.add_argument("text", nargs="*", help=meaning)


def check_source(command: str, options: Any) -> None:
    """Refuses words beside a file.

    Raises:
        ValueError: Both are given.
    """
    if options.text and options.file:
        raise ValueError(
            f"`{command}` takes a text or `--file`. Received: both, "
            f"{options.text} and {options.file}."
        )


def read_lines(path: str) -> Iterator[str | None]:
    """Yields each line without its end, one of white space as "".

    Where a pipe has nothing to read at the moment it yields None, and waits
    when it is asked again.

    Args:
        path: A text file, perhaps packed as .xz or .gz; "-" for standard
            input.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8, or damaged; the line is named.
    """
    if path == "-":
        yield from _read_standard_input()
    elif Path(path).suffix in OPENERS:
        for line in DataFile(Path(path)).lines():
            yield _stripped(line)
    else:
        if Path(path).is_file():  # a pipe would lose what is looked at
            check_no_pointer(Path(path))
        with open(path, "rb", buffering=0) as file:
            yield from _decode(_read_blocks(file.fileno()), path)


def _read_standard_input() -> Iterator[str | None]:
    """Yields the lines of standard input, which a program may not have."""
    if sys.stdin is None:
        return
    try:
        descriptor = sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # it is no file
        yield from map(_stripped, sys.stdin)
        return
    yield from _decode(_read_blocks(descriptor), "standard input")


def _read_blocks(descriptor: int) -> Iterator[bytes | None]:
    """Yields the lines of a file descriptor, None before each wait."""
    rest: list[bytes] = []
    size = 0
    while True:
        if _must_wait(descriptor):
            yield None
        block = os.read(descriptor, BLOCK)
        first, *more = block.split(b"\n")
        rest.append(first)
        size += len(first)
        if more:
            yield b"".join(rest)
            *lines, last = more
            yield from lines
            rest, size = [last], len(last)
        if not block or size > LONGEST_LINE:
            break
    if any(rest):
        yield b"".join(rest)


def _must_wait(descriptor: int) -> bool:
    """Returns whether a read may wait, also where nothing can tell."""
    try:
        return not select.select([descriptor], [], [], 0)[0]
    except OSError:  # Windows asks sockets alone
        return True


def _decode(lines: Iterable[bytes | None], name: str) -> Iterator[str | None]:
    """Yields lines as text.

    Raises:
        ValueError: A line is not UTF-8, or has no end.
    """
    number = 1
    for line in lines:
        if line is None:
            yield None
            continue
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"{name} must hold lines of at most {LONGEST_LINE:,} bytes. "
                f"Received: more in line {number}."
            )
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name} must be UTF-8. Received: byte "
                f"{line[error.start]:#04x} in line {number}."
            ) from error
        yield _stripped(text.removeprefix("\ufeff") if number == 1 else text)
        number += 1


def _stripped(line: str) -> str:
    """Returns a line without its end, one of white space as ""."""
    return line.rstrip("\r\n") if line.strip() else ""


def number_lines(lines: Iterable[Any]) -> Iterator[Numbered | None]:
    """Yields lines with their number; where one is not there yet, None."""
    number = 0
    for line in lines:
        if line is None:
            yield None
        else:
            number += 1
            yield number, line


def chunks(
    rows: Iterable[Numbered | None], batch_size: int
) -> Iterator[list[Numbered]]:
    """Yields rows in growing chunks, and at once what a pausing pipe gave.

    The first is a batch, so that an answer comes soon; the later ones are up
    to `LARGEST_CHUNK` batches, whose rows are computed in the order of their
    length. What a pausing pipe gave below a batch is cut into 1, 2, 4, ...
    rows: each other number of rows would be compiled anew. The last rows are
    one chunk.

    >>> rows = [(number, "a") for number in range(1, 8)]
    >>> [len(chunk) for chunk in chunks([*rows, None, (8, "b")], 2)]
    [2, 4, 1, 1]
    """
    chunk: list[Numbered] = []
    batches = 1
    for row in rows:
        if row is not None:
            chunk.append(row)
        if row is None or len(chunk) == batches * batch_size:
            yield from _powers(chunk, batch_size)
            chunk = []
        if row is not None and not chunk:
            batches = min(2 * batches, LARGEST_CHUNK)
    if chunk:
        yield chunk


def _powers(chunk: list[Numbered], batch_size: int) -> Iterator[list[Numbered]]:
    """Yields a chunk whole, or parts of 1, 2, 4, ... rows below a batch."""
    while chunk:
        size = len(chunk)
        if size < batch_size:
            size = 1 << (size.bit_length() - 1)
        yield chunk[:size]
        chunk = chunk[size:]


def answer(
    rows: Iterable[Numbered | None],
    batch_size: int,
    compute: Callable[[list[Any]], list[Any]],
) -> Iterator[tuple[Any, Any]]:
    """Yields each row with what is computed for it, chunk after chunk.

    A row that cannot be computed stops it, after all rows before.

    Args:
        rows: As `number_lines` yields them.
        batch_size: Rows computed at a time.
        compute: A function of a list of rows that returns a list as long.

    Raises:
        ValueError: A row cannot be computed; its line is named.
    """
    for chunk in chunks(rows, batch_size):
        yield from _answer_chunk(chunk, compute)


def _answer_chunk(chunk, compute) -> Iterator[tuple[Any, Any]]:
    """Yields the answers for a chunk, or for what is before a bad row."""
    texts = [row for _, row in chunk]
    try:
        answers = compute(texts)
    except ValueError as error:
        if len(chunk) == 1:
            raise ValueError(f"Line {chunk[0][0]}: {error}") from error
        half = len(chunk) // 2
        yield from _answer_chunk(chunk[:half], compute)
        yield from _answer_chunk(chunk[half:], compute)
    else:
        yield from zip(texts, answers, strict=True)
