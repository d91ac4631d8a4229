"""One command sets the address, and the same command takes it back."""

import os
import shutil
import subprocess
import sys

import pytest

import address
import book

# As long as an account's name may be.
NEW = "https://github.com/an-account-with-a-name-of-39-characters/bertbook"
FOLDERS = "tools/book", "notebooks", "docs", ".github"


def copy(root, folders=FOLDERS):
    """Copies what names the address, in these folders and above them."""
    for name in folders:
        shutil.copytree(
            book.ROOT / name,
            root / name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
        )
    for path in book.ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, root)


def set_address(root, url):
    """Runs the command on a copy; returns its exit code and its error."""
    command = [sys.executable, str(root / "tools/book/address.py"), url]
    paths = os.environ | {"PYTHONPATH": str(book.ROOT)}
    done = subprocess.run(command, env=paths, capture_output=True, text=True)
    return done.returncode, done.stderr


def contents(root):
    """Returns the bytes of every file by its name."""
    files = [p for p in root.rglob("*") if p.is_file()]
    return {
        str(p.relative_to(root)): p.read_bytes()
        for p in files
        if p.suffix != ".pyc"
    }


def owned(files):
    """Returns the names of the files that hold the address of no one."""
    return {name for name, data in files.items() if b"com/OWNER/" in data}


@pytest.mark.slow  # half a minute: every notebook is written three times
def test_the_address_is_set_everywhere_and_taken_back(tmp_path):
    copy(tmp_path)
    before = contents(tmp_path)
    assert set_address(tmp_path, NEW) == (0, "")
    once = contents(tmp_path)
    assert owned(once) <= {"tools/book/book.py"}
    changed = {name for name in before if before[name] != once[name]}
    assert {"pyproject.toml", "README.md", "CITATION.cff"} < changed
    assert {f"notebooks/{c.name}.ipynb" for c in book.everything()} < changed
    assert "do not work yet" not in once["README.md"].decode()
    assert set_address(tmp_path, NEW) == (0, "")
    assert contents(tmp_path) == once
    ruff = [sys.executable, "-m", "ruff", "check", "-q", "--no-cache", "."]
    assert subprocess.run(ruff, cwd=tmp_path).returncode == 0
    assert set_address(tmp_path, book.address()) == (0, "")
    assert contents(tmp_path) == before


WRONG = (
    "",
    "https://github.com/NAME",
    "https://github.com/NAME/bertbook/",
    "https://github.com/NAME/bertbook.git",
    "https://github.com/NAME/other",
    "http://github.com/NAME/bertbook",
    "git@github.com:NAME/bertbook",
    "https://github.com/-name/bertbook",
    "https://github.com/two words/bertbook",
    "https://github.com/a--b/bertbook",
    "https://github.com/" + "a" * 40 + "/bertbook",
    "https://example.org/NAME/bertbook",
    'https://github.com/NAME/bertbook"\n',
)


def test_what_is_no_address_is_refused():
    for url in WRONG:
        with pytest.raises(ValueError, match="`URL` must be"):
            address.check(url)


def test_a_refused_address_changes_nothing(tmp_path):
    copy(tmp_path, ["tools/book"])
    before = contents(tmp_path)
    code, error = set_address(tmp_path, "https://github.com/NAME")
    assert code == 1
    assert error.startswith("`URL` must be")
    assert "Traceback" not in error
    assert contents(tmp_path) == before


def test_the_address_stands_once():
    for text in ("", 'Repository = "a"\nRepository = "b"\n'):
        with pytest.raises(ValueError, match="one line"):
            address.with_address(text, NEW)
