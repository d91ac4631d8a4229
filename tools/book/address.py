"""Sets the address of the repository, everywhere.

`python tools/book/address.py URL` writes it into `pyproject.toml`, where it
stands once, and from there into the pages, the workflows and the notebooks.
"""

import re
import subprocess
import sys

import book

# A name on GitHub: at most 39 letters, digits and single hyphens; those that a
# company manages have an underscore.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9]|[-_](?=[A-Za-z0-9])){0,38}"
_ADDRESS = re.compile(rf"https://github\.com/{_NAME}/bertbook")
_LINE = re.compile(r'^Repository = ".*"$', re.MULTILINE)
WRITERS = "badges.py", "exercises.py"


def check(address):
    """Refuses what is no address of this repository.

    Args:
        address: A string, such as one that a reader typed.

    Raises:
        ValueError: It is not of the form that GitHub gives.
    """
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            "`URL` must be https://github.com/, the name of an account and "
            f"/bertbook, with nothing after it. Received: {address!r}."
        )


def with_address(text, address):
    """Returns the text of `pyproject.toml` with another address.

    Raises:
        ValueError: The text does not name the address in one line.
    """
    changed, count = _LINE.subn(f'Repository = "{address}"', text)
    if count != 1:
        raise ValueError(
            "`pyproject.toml` must hold one line `Repository = ...`. "
            f"Received: {count} of them."
        )
    return changed


def main():
    """Sets the address that the command line names."""
    address = " ".join(sys.argv[1:])
    try:
        check(address)
    except ValueError as error:
        sys.exit(str(error))
    path = book.ROOT / "pyproject.toml"
    text = path.read_text("utf-8")
    if with_address(text, address) != text:
        path.write_text(with_address(text, address), "utf-8")
    # Processes of their own, which read the file as it is now.
    for writer in WRITERS:
        tool = book.ROOT / "tools" / "book" / writer
        subprocess.run([sys.executable, str(tool)], check=True)


if __name__ == "__main__":
    main()
