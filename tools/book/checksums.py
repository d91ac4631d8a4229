"""Writes `data/SHA256SUMS`: one line per file that ships."""

import hashlib
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data"
LIST = DATA / "SHA256SUMS"


def measured():
    """Returns the SHA-256 of each file under `data/`, by its path there.

    The list itself and hidden files are left out.
    """
    return {
        path.relative_to(DATA).as_posix(): _digest(path)
        for path in sorted(DATA.rglob("*"))
        if path.is_file() and path != LIST and not _is_hidden(path)
    }


def listed():
    """Returns what `data/SHA256SUMS` says."""
    lines = LIST.read_text("utf-8").splitlines()
    pairs = (line.split("  ", 1) for line in lines)
    return {name: digest for digest, name in pairs}


def _is_hidden(path):
    parts = path.relative_to(DATA).parts
    return any(part.startswith(".") for part in parts)


def _digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    """Rewrites the list."""
    lines = [f"{digest}  {name}\n" for name, digest in measured().items()]
    LIST.write_text("".join(lines), "utf-8")
    print(f"{len(lines)} files in {LIST.relative_to(DATA.parent)}")


if __name__ == "__main__":
    main()
