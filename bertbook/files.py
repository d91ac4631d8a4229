"""Text files as lines, JSON files, and atomic writes.

Lines end at a line feed alone: texts hold other characters that Python takes
for line ends.
"""

import contextlib
import gzip
import hashlib
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
OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}
DAMAGES = (
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
)


@dataclass(frozen=True)
class DataFile:
    """A text file, packed or not, or a member of a ZIP archive.

    Attributes:
        path: The file; one that ends in .xz or .gz is unpacked on the way.
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
        except zipfile.BadZipFile as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error

    def lines(self) -> Iterator[str]:
        """Yields the lines with their ends; a byte order mark is left out.

        Raises:
            ValueError: The file is damaged, empty or not UTF-8.
        """
        try:
            # At once, so that a reader that stops leaves no file open.
            with self._open() as file:
                content = file.read()
        except DAMAGES as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error
        if not content:
            raise ValueError(f"{self} must hold text. Received: 0 bytes.")
        for number, line in enumerate(io.BytesIO(content), 1):
            yield self._decode(line, number)

    def _open(self) -> Any:
        """Opens the bytes of the text."""
        if self.member is None:
            return OPENERS.get(self.path.suffix, open)(self.path, "rb")
        with zipfile.ZipFile(self.path) as archive:
            return io.BufferedReader(archive.open(self.member))

    def _decode(self, line: bytes, number: int) -> str:
        """Returns a line as text."""
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self} must be UTF-8. Received: byte "
                f"{line[error.start]:#04x} in line {number}."
            ) from error
        return text.removeprefix("\ufeff") if number == 1 else text


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


def hash_file(path: Path) -> str:
    """Returns the SHA-256 of a file, read once, a part at a time.

    Neither size nor time of a change stand for the content: an edit may keep
    the one, and a copy the other.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
