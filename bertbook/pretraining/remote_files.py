"""`open_url`: files at a URL, by the library fsspec."""

from pathlib import Path
from typing import Any

PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "s3": "s3fs", "http": "aiohttp"}
PACKAGES |= {"https": "aiohttp", "az": "adlfs", "abfs": "adlfs"}


def is_url(name: Any) -> bool:
    """Returns whether a name is a URL, such as "gs://bucket/corpus"."""
    return isinstance(name, str) and "://" in name


def open_url(url: str | Path) -> Any:
    """Returns what a `with` statement opens to read the bytes at a URL.

    Args:
        url: Any that fsspec knows; chained ones, such as
            "simplecache::s3://bucket/file", too.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: fsspec is missing, or its package for the protocol.
        ValueError: fsspec does not know the protocol.
    """
    try:
        import fsspec
    except ModuleNotFoundError as error:
        raise _missing(url, "fsspec", *_package_of(url)) from error
    try:
        return fsspec.open(str(url), "rb")
    except ImportError as error:
        raise _missing(url, *_package_of(url) or [str(error)]) from error
    except ValueError as error:
        raise ValueError(
            f"`url` must have a protocol that fsspec reads. Received: {url} "
            f"({error})."
        ) from error


def _package_of(url) -> list[str]:
    """Returns the package that reads a protocol, where it is known."""
    protocol = str(url).partition("://")[0].rpartition("::")[2]
    return [PACKAGES[protocol]] if protocol in PACKAGES else []


def _missing(url, *packages: str) -> ImportError:
    """Returns the error that names what reads a URL."""
    names = " ".join(packages)
    return ImportError(
        f"{url} needs {' and '.join(packages)}: `pip install {names}`."
    )
