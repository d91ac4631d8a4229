"""A lock on the folder of a run: one run at a time trains into it.

The operating system holds it on an open file, so that a process that was
killed leaves no lock behind. A file system without locks gives none; then the
threads of one process alone are kept apart.
"""

import contextlib
import errno
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

NAME = "run.lock"
_held: set[Path] = set()  # the folders that this process trains into
_mutex = threading.Lock()
_files: "weakref.WeakSet[_Descriptor]" = weakref.WeakSet()


@contextlib.contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keeps other runs out of a folder while the `with` statement lasts.

    Args:
        folder: Made where it is missing, and removed again where nothing was
            written into it.

    Raises:
        ValueError: Another run trains into it, or it holds a file of a user
            with the name of the lock: a link, a folder or one with content.
        OSError: It cannot be made.
    """
    made = [p for p in (folder, *folder.parents) if not p.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    with _mutex:
        if place in _held:
            raise ValueError(_refusal(folder, "another call in this process"))
        _held.add(place)
    try:
        _check_name(folder / NAME)
        with _locked_file(folder / NAME, folder):
            yield
    finally:
        with _mutex:
            _held.discard(place)
        _remove_empty(made)


def _check_name(path: Path) -> None:
    """Refuses a file that no run has made: it would be removed at the end."""
    is_theirs = path.is_symlink() or path.is_dir()
    if is_theirs or path.exists() and path.stat().st_size:
        raise ValueError(
            f"{path} must be the empty file by which a run locks its folder, "
            "or not there. Received: another. Name another folder."
        )


def _refusal(folder: Path, other: str) -> str:
    return (
        "`out` must be a folder that nothing else trains into. Received: "
        f"{folder}, and {other} trains into it."
    )


def _remove_empty(folders: list[Path]) -> None:
    """Removes folders, the innermost first, up to one that holds something."""
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


class _Descriptor:
    """An open file that a forked child closes at once."""

    def __init__(self, path: Path):
        # Through a link, a file elsewhere would be made.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        self.number = os.open(path, flags, 0o644)
        _files.add(self)

    def close(self) -> None:
        """Closes the file, which gives the lock back, once."""
        _files.discard(self)
        if self.number >= 0:
            os.close(self.number)
            self.number = -1


def _forget_in_child() -> None:
    """Closes the files that a fork has copied: the lock is the parent's.

    Otherwise a child that outlives its parent would hold the lock.
    """
    global _mutex
    _mutex = threading.Lock()
    _held.clear()
    for file in list(_files):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


@contextlib.contextmanager
def _locked_file(path: Path, folder: Path) -> Iterator[None]:
    """Holds the lock of the operating system, where there is one."""
    file = _open_locked(path, folder)
    owner = os.getpid()
    try:
        yield
    finally:
        if file is not None and os.getpid() == owner:
            with contextlib.suppress(OSError):  # Windows removes no open file
                path.unlink()
            file.close()


def _open_locked(path: Path, folder: Path) -> _Descriptor | None:
    """Returns the locked file, or None where nothing can be locked.

    Raises:
        ValueError: Another process holds the lock.
    """
    while True:
        try:
            file = _Descriptor(path)
        except OSError:  # a folder for reading alone: its writers will tell
            return None
        try:
            _lock(file.number)
        except OSError as error:
            file.close()
            if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                raise ValueError(_refusal(folder, "another process")) from None
            return None
        if _is_still_there(path, file.number):
            return file
        file.close()  # its holder has just removed it


def _is_still_there(path: Path, number: int) -> bool:
    """Returns whether a name still leads to an open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(number))
    except OSError:
        return False


def _lock(number: int) -> None:
    """Locks an open file for this process, or fails at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
