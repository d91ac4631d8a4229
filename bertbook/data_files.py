"""Files of data sets as lines: plain, packed, or inside a ZIP archive.

Lines end at a line feed alone: texts hold other characters that Python takes
for line ends.

Differences: none; this module has no counterpart in the paper.
"""

import gzip
import hashlib
import io
import itertools
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
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


def checked_columns(file: DataFile, table: Columns) -> Columns:
    """Returns the columns of a file that has rows."""
    if not all(table.values()):
        raise ValueError(f"{file} must hold examples. Received: none.")
    return table


def kept_rows(table: Columns, keep: Iterable[bool]) -> Columns:
    """Returns the rows of a table that are to be kept."""
    chosen = list(keep)
    return {
        name: list(itertools.compress(column, chosen))
        for name, column in table.items()
    }


def refuse_width(file: DataFile, number: int, width: int, found: int) -> None:
    """Says that a line has another number of columns than it must."""
    raise ValueError(
        f"{file}, line {number}: there must be {width} columns. "
        f"Received: {found}."
    )


def hash_columns(data: Mapping[str, Any] | None) -> str | None:
    """Returns a hash of columns, None for none.

    Two runs on other data are two runs.
    """
    if data is None:
        return None
    columns = {name: list(column) for name, column in data.items()}
    text = json.dumps(columns, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Returns what JSON can hold, the same in every process."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.tolist() if hasattr(value, "tolist") else str(value)
