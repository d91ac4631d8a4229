"""Files from their official addresses, checked by SHA-256, into a cache.

A file counts only when its checksum is the published one. Nothing half-written
is ever left under its name.

Differences: none; this module has no counterpart in the paper.
"""

import hashlib
import os
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bertbook.data_files import DAMAGES

WAITS = (1.0, 4.0)  # seconds before the second and the third try
CHUNK = 1 << 18


@dataclass(frozen=True)
class Download:
    """A file that others publish.

    Attributes:
        url: Its official address.
        sha256: The published checksum.
        size: Its published size, in bytes.
        place: Its path below the cache.
        member: The file inside of it that the checksum is of, where it is an
            archive that has none of its own.
    """

    url: str
    sha256: str
    size: int
    place: str
    member: str | None = None

    def __str__(self) -> str:
        """Returns the name for messages of what the checksum is of."""
        return f"{self.member} in {self.url}" if self.member else self.url


class Progress:
    """Prints how much of a file is there, at each tenth, to standard error.

    `total`, `update`, `reset` and `close` are what pooch asks of a bar.
    """

    def __init__(self, title: str, size: int):
        self.title = title
        self.size = size
        self.total = size  # pooch writes it; a packed answer is shorter
        self.done = 0
        self.shown = -1

    def update(self, count: int) -> None:
        """Counts bytes that came, and prints at each further tenth."""
        self.done = min(self.done + count, self.size)
        tenth = 10 * self.done // max(self.size, 1)
        if tenth > self.shown:
            self.shown = tenth
            megabytes = f"{self.size / 1e6:,.1f} MB"
            text = f"\r{self.title}: {tenth}0 % of {megabytes}"
            print(text, end="", file=sys.stderr, flush=True)

    def reset(self) -> None:
        """Keeps the count: pooch adds the whole of a file when it is there."""

    def close(self) -> None:
        """Ends the line, where one was begun."""
        if self.shown >= 0:
            print(file=sys.stderr, flush=True)
        self.shown = -1


def cache_folder() -> Path:
    """Returns the folder of downloads: the system's cache for this package."""
    import pooch  # late: it prints a warning in Jupyter

    return Path(pooch.os_cache("bertbook")).expanduser() / "datasets"


def fetch(download: Download, folder: Path | None = None) -> Path:
    """Returns the file of a download, brought into the cache where needed.

    A file that is there is used when its checksum is right, and fetched again
    when it is not. A transfer that breaks is tried three times.

    Args:
        download: What to fetch.
        folder: The cache; by default `cache_folder()`.

    Raises:
        ConnectionError: Nothing came, or the transfer broke each time; no part
            of the file is kept.
        ValueError: Another file came than the published one; it is kept aside
            under a name that says so, and not used.
    """
    path = (folder or cache_folder()) / download.place
    if path.is_file() and _digest(path, download.member) == download.sha256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        _transfer(download, part)
        received = _digest(part, download.member)
        if received != download.sha256:
            aside = path.with_name(path.name + ".wrong-checksum")
            part.replace(aside)
            raise ValueError(
                f"The SHA-256 of {download} must be {download.sha256}. "
                f"Received: {received}; that file is kept as {aside} and is "
                "not used."
            )
        part.replace(path)  # now the name stands for the whole file
    finally:
        part.unlink(missing_ok=True)
    return path


def _digest(path: Path, member: str | None) -> str:
    """Returns the SHA-256 of a file, or of a file inside of an archive."""
    import pooch

    if member is None:
        return pooch.file_hash(str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            return hashlib.sha256(archive.read(member)).hexdigest()
    except KeyError:
        return f"no file {member}"
    except DAMAGES as error:
        return f"a damaged archive ({error})"


def _transfer(download: Download, part: Path) -> None:
    """Writes what an address gives; begins again where the transfer breaks."""
    import pooch
    import requests

    host = urlsplit(download.url).netloc
    title = f"Downloading {Path(download.place).name} from {host}"
    for wait in (*WAITS, None):
        progress = Progress(title, download.size)
        get = pooch.HTTPDownloader(progressbar=progress, chunk_size=CHUNK)
        try:
            get(download.url, str(part), None)
            return
        except requests.RequestException as error:
            if wait is None or _is_refusal(error):
                raise ConnectionError(
                    f"{download.url} must give {download.size:,} bytes. "
                    f"Received: {part.stat().st_size:,} bytes, then: {error}. "
                    "They are not kept."
                ) from error
            time.sleep(wait)
        finally:
            progress.close()


def _is_refusal(error: Exception) -> bool:
    """Returns whether a server said no, and will say so again."""
    status = getattr(getattr(error, "response", None), "status_code", 0)
    return 400 <= status < 500
