"""The texts that a command is given: words, a file, or standard input.

Differences: none; this module has no counterpart in the papers.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertbook.data_files import DataFile


def add_texts(parser: Any, meaning: str) -> None:
    """Adds the options that `texts_of` reads to the parser of a command.

    Args:
        parser: A parser of `argparse`.
        meaning: What the words are, for its help.
    """
    parser.add_argument(
        "--file",
        help="a text file, a text a line, empty ones left out; else standard "
        "input",
    )
    parser.add_argument("text", nargs="*", help=meaning)


def texts_of(command: str, options: Any) -> list[str]:
    """Returns the texts of a command.

    Args:
        command: Its name, for messages.
        options: What its parser found.

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
    texts = options.text or list(read_lines(options.file or "-"))
    if not texts:
        raise ValueError("The input must hold a text. Received: no line.")
    return texts


def read_lines(path: str) -> Iterator[str]:
    """Yields each line of a file that is not empty, without its end.

    Args:
        path: A text file, perhaps packed as .xz or .gz; "-" for standard
            input.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8, or damaged.
    """
    lines = sys.stdin if path == "-" else DataFile(Path(path)).lines()
    for line in lines or ():  # a program may have no standard input
        if line.strip():
            yield line.rstrip("\r\n")
