"""Scripts of others that the site is built and tested with, from npm.

`python tools/book/site_vendor.py NAME ...` fetches them into `build/site`,
checks each against its stored checksum, and unpacks what is used: for the pages
into `vendor`, which becomes a part of the site, for its tests into `testing`.
Nothing of it is committed, and a page asks no server for it.
"""

import argparse
import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass

import book

BUILD = book.ROOT / "build" / "site"
ARCHIVES = BUILD / "archives"


@dataclass(frozen=True)
class Package:
    """One package of the npm registry.

    Attributes:
        version: The exact version.
        integrity: "sha512-" and the digest in base64, as npm gives it.
        folder: Where it is unpacked, "vendor" or "testing".
        kept: How the names of the files that are kept start.
    """

    version: str
    integrity: str
    folder: str
    kept: tuple[str, ...]


PACKAGES = {
    "mathjax": Package(
        "3.2.2",
        "sha512-Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/"
        "FEsPsjKPZGJvtRZM1vO+geW0OhGw==",
        "vendor",
        (
            "LICENSE",
            "es5/a11y/",
            "es5/input/tex/",
            "es5/output/chtml/",
            "es5/sre/mathmaps/en",
            "es5/sre/mathmaps/base",
            "es5/tex-chtml.js",
        ),
    ),
    "axe-core": Package(
        "4.11.0",
        "sha512-ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/"
        "6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ==",
        "testing",
        ("LICENSE", "axe.min.js"),
    ),
}


def archive(name):
    """Returns the path of a package's archive, fetched where it is missing.

    Args:
        name: A key of `PACKAGES`.

    Raises:
        RuntimeError: npm is missing or cannot fetch the package.
        ValueError: The archive is not the one that the checksum names.
    """
    package = PACKAGES[name]
    path = ARCHIVES / f"{name}-{package.version}.tgz"
    if not path.is_file():
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        _fetch(f"{name}@{package.version}")
    check(path, package.integrity)
    return path


def _fetch(name):
    command = ["npm", "pack", "--silent", name]
    try:
        subprocess.run(command, cwd=ARCHIVES, check=True, capture_output=True)
    except FileNotFoundError:
        raise RuntimeError(
            f"`npm` must be installed: it fetches {name} for the site."
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode().strip()
        raise RuntimeError(f"npm cannot fetch {name}: {said}") from None


def check(path, integrity):
    """Raises a ValueError where a file has another checksum."""
    digest = hashlib.sha512(path.read_bytes()).digest()
    found = "sha512-" + base64.b64encode(digest).decode()
    if found != integrity:
        raise ValueError(
            f"`{path.name}` must have the checksum {integrity}. Received: "
            f"{found}."
        )


def unpack(name):
    """Writes the kept files of a package to a folder of its name."""
    package = PACKAGES[name]
    kept = tuple(f"package/{start}" for start in package.kept)
    folder = BUILD / package.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive(name)) as files:
        for member in files.getmembers():
            if member.isfile() and member.name.startswith(kept):
                member.name = member.name.removeprefix("package/")
                files.extract(member, folder, filter="data")


def main():
    """Fetches the packages that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="+", choices=PACKAGES)
    for name in parser.parse_args().names:
        unpack(name)


if __name__ == "__main__":
    sys.exit(main())
