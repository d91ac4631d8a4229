"""Files of this machine or at a URL, by the file systems of Apache Beam.

What Beam reads and writes depends on its extras: "gs://" needs
`apache-beam[gcp]`, "s3://" `apache-beam[aws]`, "hdfs://" nothing more.
"""

import re
import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bertbook.files import check_subfolder, numbers_in
from bertbook.pretraining.remote_files import is_url

PART = re.compile("[0-9a-f]{32}")  # the name of what `write_file` writes


def file_systems() -> Any:
    """Returns the file systems of Beam.

    Raises:
        ImportError: Beam is missing.
    """
    try:
        from apache_beam.io.filesystems import FileSystems
    except ModuleNotFoundError as error:
        raise ImportError(
            "A pipeline needs Apache Beam, best in an environment of its own: "
            "`pip install apache-beam`."
        ) from error
    return FileSystems


def absolute(name: str | Path) -> str:
    """Returns a name that holds in any working directory."""
    return str(name) if is_url(name) else str(Path(name).absolute())


def join(folder: str, name: str) -> str:
    """Returns the path or the URL of a file in a folder."""
    return file_systems().join(folder, name)


def file_size(url: str) -> int:
    """Returns the size of a file at a URL, in bytes.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Beam, as it is installed, cannot read the URL.
    """
    (found,) = file_systems().match([url])
    if not found.metadata_list:
        raise FileNotFoundError(f"No text file at {url}.")
    return found.metadata_list[0].size_in_bytes


def open_file(path: str) -> Any:
    """Opens a file to read its bytes as they are, packed or not."""
    from apache_beam.io.filesystem import CompressionTypes

    packed = CompressionTypes.UNCOMPRESSED  # we unpack, with our messages
    return file_systems().open(path, compression_type=packed)


def write_file(path: str, content: bytes, work: str) -> None:
    """Writes a file; it is whole or not there.

    Args:
        path: The path or the URL of the file.
        content: Its bytes.
        work: The folder that holds it until it is whole.
    """
    systems = file_systems()
    part = join(work, uuid.uuid4().hex)  # two workers may write the same
    with systems.create(part) as file:
        file.write(content)
    if is_url(path) and systems.exists(path):  # not all replace a file
        systems.delete([path])
    systems.rename([part], [path])


def remove_files(folder: str, name: str) -> None:
    """Removes the files that a name of ours stands for, as `files_named`."""
    paths = _files_in(folder)
    ours = [p for p in paths if numbers_in(_name(p), name) is not None]
    if ours:
        file_systems().delete(ours)


def remove_folder(folder: str, names: Collection[str]) -> None:
    """Removes a folder of work that is not whole, if it is there.

    Args:
        folder: The path or the URL of the folder.
        names: The files that it may hold, beside those of `write_file`.

    Raises:
        ValueError: It is a link, or holds something else.
    """
    if not is_url(folder):
        check_subfolder(Path(folder))
    paths = _files_in(folder)
    for path in paths:
        if _name(path) not in names and not PART.fullmatch(_name(path)):
            raise ValueError(
                f"{folder} must hold what a killed call has left. "
                f"Received: {path}. Move it elsewhere first."
            )
    if paths:
        file_systems().delete(paths)
    if file_systems().exists(folder):
        file_systems().delete([folder])


def _files_in(folder: str) -> list[str]:
    """Returns the paths or the URLs of the files of a folder."""
    (found,) = file_systems().match([join(folder, "*")])
    return [file.path for file in found.metadata_list]


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
