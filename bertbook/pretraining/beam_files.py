"""Files of this machine or at a URL, by the file systems of Apache Beam.

What Beam reads and writes depends on its extras: "gs://" needs
`apache-beam[gcp]`, "s3://" `apache-beam[aws]`, "hdfs://" nothing more.
"""

import uuid
from pathlib import Path
from typing import Any

from bertbook.pretraining.remote_files import is_url


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


def remove_files(folder: str, pattern: str) -> None:
    """Removes the files of a folder whose names match a pattern."""
    (found,) = file_systems().match([join(folder, pattern)])
    if found.metadata_list:
        file_systems().delete([file.path for file in found.metadata_list])


def remove_folder(folder: str) -> None:
    """Removes a folder that holds files alone, if it is there."""
    remove_files(folder, "*")
    if file_systems().exists(folder):
        file_systems().delete([folder])
