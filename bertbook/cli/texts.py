"""The input texts of a command: arguments, a file, or standard input."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertbook.files import DataFile


def add_texts(parser: Any, meaning: str, of_file: str) -> None:
    """Adds the options that `texts_of` reads to the parser of a command.

    Args:
        parser: A parser of `argparse`.
        meaning: What the words are, for its help.
        of_file: What the lines of a file are, for its help.
    """
    parser.add_argument("--file", help=f"{of_file}; else standard input")
    parser.add_argument("text", nargs="*", help=meaning)


def texts_of(command: str, options: Any, keep_empty: bool = False) -> list[str]:
    """Returns the texts of a command.

    Args:
        command: Its name, for messages.
        options: What its parser found.
        keep_empty: Whether a line without a text stays, as "", so that
            the output has a line for each line of the input.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Words and a file are given, the file is not UTF-8, or
            there is no text.
    """
    if options.text and options.file:
        raise ValueError(
            f"`{command}` takes a text or `--file`. Received: both, "
            f"{options.text} and {options.file}."
        )
    if options.text:
        return options.text
    lines = list(read_lines(options.file or "-"))
    if not any(lines):
        raise ValueError("The input must hold a text. Received: no line.")
    return lines if keep_empty else [line for line in lines if line]


def read_lines(path: str) -> Iterator[str]:
    """Yields each line of a file without its end, one of white space as "".

    Args:
        path: A text file, perhaps packed as .xz or .gz; "-" for standard
            input.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8, or damaged.
    """
    lines = sys.stdin if path == "-" else DataFile(Path(path)).lines()
    for line in lines or ():  # a program may have no standard input
        yield line.rstrip("\r\n") if line.strip() else ""
