"""Text files as lines, JSON files, and atomic writes.

Lines end at a line feed alone: texts hold other characters that Python takes
for line ends.
"""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Columns = dict[str, list[Any]]
OPENERS: dict[str, Any] = {
    ".xz": lzma.open,
    ".gz": gzip.open,
    ".bz2": bz2.open,
}
DAMAGES = (
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # of `zipfile`: a password, or a packing it cannot read
)
LONGEST_LINE = 1 << 26  # bytes, 64 MiB: more than any row of a data set
LARGEST_WHOLE = 1 << 29  # bytes of a file that is read at once, 512 MiB


@dataclass(frozen=True)
class DataFile:
    """A text file, packed or not, or a member of a ZIP archive.

    Attributes:
        path: The file; one that ends in .xz, .gz or .bz2 is unpacked on the
            way.
        member: The path of the text inside of it, where it is an archive.
    """

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        """Returns the name for messages."""
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    def is_there(self) -> bool:
        """Returns whether the file exists, and holds the member.

        Raises:
            ValueError: The archive is damaged.
        """
        if not self.path.is_file():
            return False
        if self.member is None:
            return True
        try:
            with zipfile.ZipFile(self.path) as archive:
                return self.member in archive.namelist()
        except DAMAGES as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error

    def lines(self) -> Iterator[str]:
        """Yields the lines with their ends; a byte order mark is left out.

        The file is unpacked as it is read, so that memory follows what the
        caller keeps.

        Raises:
            ValueError: The file is damaged, empty or not UTF-8, or a line is
                longer than 64 MiB.
        """
        with self._readable() as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ValueError(
                        f"{self} must hold lines of at most {LONGEST_LINE:,} "
                        f"bytes. Received: a longer one, line {number}."
                    )
                yield self._decode(line, number)
        if not number:
            raise ValueError(f"{self} must hold text. Received: 0 bytes.")

    def text(self) -> str:
        """Returns the whole text; a byte order mark is left out.

        Raises:
            ValueError: The file is damaged, empty, not UTF-8 or larger than
                512 MiB unpacked.
        """
        with self._readable() as file:
            content = file.read(LARGEST_WHOLE + 1)
        if len(content) > LARGEST_WHOLE:
            raise ValueError(
                f"{self} must be at most {LARGEST_WHOLE:,} bytes, unpacked, to "
                "be read at once. Received: more."
            )
        if not content:
            raise ValueError(f"{self} must hold text. Received: 0 bytes.")
        return self._decode(content, 1)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[Any]:
        """Yields the open bytes; says of what is damaged that it is.

        Raises:
            ValueError: The file is damaged.
        """
        try:
            with self._open() as file:
                yield file
        except DAMAGES as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error
        except OSError as error:
            if error.errno is not None:  # the disk, not the packing
                raise
            raise ValueError(f"{self.path} is damaged: {error}.") from error

    def _open(self) -> Any:
        """Opens the bytes of the text."""
        if self.member is None:
            return OPENERS.get(self.path.suffix.lower(), open)(self.path, "rb")
        with zipfile.ZipFile(self.path) as archive:
            return io.BufferedReader(archive.open(self.member))

    def _decode(self, line: bytes, number: int) -> str:
        """Returns a line as text, or more lines, of which it is the first."""
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            number += line.count(b"\n", 0, error.start)
            raise ValueError(
                f"{self} must be UTF-8. Received: byte "
                f"{line[error.start]:#04x} in line {number}."
            ) from error
        return text.removeprefix("\ufeff") if number == 1 else text


def parse_json(text: str, name: str) -> Any:
    """Returns the value of a JSON text.

    Args:
        text: The JSON text.
        name: The file, or the file and the line, for messages.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, holds an integer
            of too many digits, or names a key of an object twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_with_single_keys)
    except RecursionError:
        raise ValueError(
            f"{name} is not valid JSON: it is nested too deeply."
        ) from None
    except ValueError as error:
        raise ValueError(f"{name} is not valid JSON: {error}.") from error


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object; refuses one with a key that stands twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in an object")
    return values


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object, with the line in the message where it is damaged."""
    if not path.is_file():
        raise FileNotFoundError(f"No config file at {path}.")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: "
            f"{type(values).__name__}."
        )
    return values


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON object; the file is whole or not there."""
    with write_whole(path) as part:
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Yields the path to write a file to; it gets its name when it is whole.

    After an error nothing is left, and an older file is as it was.

    Args:
        path: The name that the file gets.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        with open(part, "rb+") as file:
            os.fsync(file.fileno())  # on the disk before it gets its name
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
