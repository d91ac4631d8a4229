"""Text files as lines, JSON files, and atomic writes of a file or of a set.

Lines end at a line feed alone: texts hold other characters that Python takes
for line ends.
"""

import atexit
import bz2
import contextlib
import ctypes
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import secrets
import shutil
import sys
import tempfile
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl

    HAS_LOCKS = True
except ImportError:  # Windows, where a folder cannot be opened either
    HAS_LOCKS = False

Columns = dict[str, list[Any]]
OPENERS: dict[str, Any] = {
    ".xz": lzma.open,
    ".gz": gzip.open,
    ".bz2": bz2.open,
}
DAMAGES = (
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,  # of `zipfile`: a password, or a packing it cannot read
)
LONGEST_LINE = 1 << 26  # bytes, 64 MiB: more than any row of a data set
LARGEST_WHOLE = 1 << 29  # bytes of a file that is read at once, 512 MiB


@dataclass(frozen=True)
class DataFile:
    """A text file, packed or not, or a member of a ZIP archive.

    Attributes:
        path: The file; one that ends in .xz, .gz or .bz2 is unpacked on the
            way.
        member: The path of the text inside of it, where it is an archive.
        encoding: How its characters are written.
        remedy: What else than UTF-8 may help, for a message.
    """

    path: Path
    member: str | None = None
    encoding: str = "utf-8"
    remedy: str = ""

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
        except DAMAGES as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error

    def lines(self) -> Iterator[str]:
        """Yields the lines with their ends; a byte order mark is left out.

        The file is unpacked as it is read, so that memory follows what the
        caller keeps.

        Raises:
            ValueError: The file is damaged, empty or not UTF-8, or a line is
                longer than 64 MiB.
        """
        with self._readable() as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise ValueError(
                        f"{self} must hold lines of at most {LONGEST_LINE:,} "
                        f"bytes. Received: a longer one, line {number}."
                    )
                yield self._decode(line, number)
        if not number:
            raise ValueError(f"{self} must hold text. Received: 0 bytes.")

    def text(self) -> str:
        """Returns the whole text; a byte order mark is left out.

        Raises:
            ValueError: The file is damaged, empty, not UTF-8 or larger than
                512 MiB unpacked.
        """
        with self._readable() as file:
            content = file.read(LARGEST_WHOLE + 1)
        if len(content) > LARGEST_WHOLE:
            raise ValueError(
                f"{self} must be at most {LARGEST_WHOLE:,} bytes, unpacked, to "
                "be read at once. Received: more."
            )
        if not content:
            raise ValueError(f"{self} must hold text. Received: 0 bytes.")
        return self._decode(content, 1)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[Any]:
        """Yields the open bytes; says of what is damaged that it is.

        Raises:
            ValueError: The file is damaged.
        """
        check_no_pointer(self.path)
        try:
            with self._open() as file:
                yield file
        except DAMAGES as error:
            raise ValueError(f"{self.path} is damaged: {error}.") from error
        except OSError as error:
            if error.errno is not None:  # the disk, not the packing
                raise
            raise ValueError(f"{self.path} is damaged: {error}.") from error

    def _open(self) -> Any:
        """Opens the bytes of the text."""
        if self.member is None:
            return OPENERS.get(self.path.suffix.lower(), open)(self.path, "rb")
        with zipfile.ZipFile(self.path) as archive:
            return io.BufferedReader(archive.open(self.member))

    def _decode(self, line: bytes, number: int) -> str:
        """Returns a line as text, or more lines, of which it is the first."""
        try:
            text = line.decode(self.encoding)
        except UnicodeDecodeError as error:
            is_first = number == 1
            number += line.count(b"\n", 0, error.start)
            wide = is_first and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
            form = "as UTF-16 has" if wide else "as Windows-1252 has"
            if self.encoding != "utf-8":
                form = "which Windows-1252 does not have"
            remedy = "" if wide else self.remedy
            raise ValueError(
                f"{self} must be UTF-8. Received: byte "
                f"{line[error.start]:#04x} in line {number}, {form}; "
                f"write the file again as UTF-8{remedy}."
            ) from error
        return text.removeprefix("\ufeff") if number == 1 else text


POINTER = b"version https://git-lfs.github.com/spec/"


def check_no_pointer(path: Path) -> None:
    """Refuses a file that Git LFS has left in place of a large one.

    Raises:
        ValueError: It is a pointer.
    """
    with open(path, "rb") as file:
        start = file.read(len(POINTER))
    if start == POINTER:
        raise ValueError(
            f"{path} must be the file itself. Received: a pointer of Git LFS "
            "to it; `git lfs pull` in its repository fetches the file."
        )


def parse_json(text: str, name: str) -> Any:
    """Returns the value of a JSON text.

    Args:
        text: The JSON text.
        name: The file, or the file and the line, for messages.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, holds an integer
            of too many digits, or names a key of an object twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_with_single_keys)
    except RecursionError:
        raise ValueError(
            f"{name} is not valid JSON: it is nested too deeply."
        ) from None
    except ValueError as error:
        raise ValueError(f"{name} is not valid JSON: {error}.") from error


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object; refuses one with a key that stands twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in an object")
    return values


MOST_JSON_BYTES = 2**28  # in memory an object takes about ten times as much


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object, with the line in the message where it is damaged.

    Raises:
        FileNotFoundError: `path` is not a file.
        ValueError: The file is no JSON object in UTF-8, names a key twice, or
            is larger, nested deeper or holds a longer number than is read.
    """
    if not path.is_file():
        raise FileNotFoundError(f"No config file at {path}.")
    size = path.stat().st_size
    if size > MOST_JSON_BYTES:
        raise ValueError(
            f"{path} must hold at most {MOST_JSON_BYTES} bytes of JSON. "
            f"Received: {size}."
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from error
    values = parse_json(text, str(path))
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: "
            f"{type(values).__name__}."
        )
    return values


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Writes a JSON object; the file is whole or not there."""
    with write_whole(path) as part:
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def hash_file(path: Path) -> str:
    """Returns the SHA-256 of a file, read once, a part at a time.

    Neither size nor time of a change stand for the content: an edit may keep
    the one, and a copy the other.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Yields the path to write a file to; it gets its name when it is whole.

    After an error nothing is left, and an older file is as it was. Of several
    writers at once the last one wins. A link of that name is replaced; what is
    behind it stays as it is.

    Args:
        path: The name that the file gets.

    Raises:
        OSError: The disk is full, or `path` cannot be written; also where the
            library that writes has an error of its own for it.
    """
    part = path.with_name(f".bertbook-{secrets.token_hex(8)}{path.suffix}")
    with naming_errors(path, part):
        part.touch(exist_ok=False)  # a file of our own, no link to another's
        try:
            mode = part.stat().st_mode  # a library may write for the user alone
            yield part
            part.chmod(mode)
            with open(part, "rb+") as file:
                os.fsync(file.fileno())  # on the disk before it gets its name
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


DISK_ERRORS = tuple(
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO")
    if hasattr(errno, name)
)


def is_of_disk(error: BaseException) -> bool:
    """Returns whether the disk is at fault, not what is written.

    TensorFlow, h5py and safetensors raise classes of their own, with the words
    of the operating system in the text.
    """
    return isinstance(error, OSError) or _number_of(error) is not None


def _number_of(error: BaseException) -> int | None:
    """Returns the number that the operating system has for an error."""
    known = getattr(error, "errno", None)
    if isinstance(error, OSError) and isinstance(known, int):
        return known
    text = str(error)
    found = (n for n in DISK_ERRORS if os.strerror(n) in text)
    return next(found, None)


@contextlib.contextmanager
def naming_errors(path: Path, part: Path) -> Iterator[None]:
    """Makes errors of the disk in the body name what a user asked for."""
    try:
        yield
    except Exception as error:
        if not is_of_disk(error):
            raise
        raise unwritten(path, error, part) from error


def unwritten(
    path: Path, error: BaseException, part: Path, state: str = ""
) -> OSError:
    """Returns an error of the same kind that names the path of the user.

    Args:
        path: What could not be written.
        error: Why, as `is_of_disk` knows it.
        part: The file or folder of ours that was written instead; its name
            tells a user nothing.
        state: What is at `path` now, for the message.
    """
    ours = (str(part), str(path))
    named = _kind_of(error)(
        f"{path} could not be written{state}: {reason_of(error, ours)}."
    )
    named.errno = _number_of(error)
    return named


def reason_of(error: BaseException, ours: tuple[str, ...] = ()) -> str:
    """Returns what the operating system says of an error of the disk.

    Args:
        error: The error.
        ours: How names of files begin that are not for the user's eyes.
    """
    number = _number_of(error)
    if number is None:
        return str(error).rstrip(".")
    file = getattr(error, "filename", None)
    if isinstance(file, str) and not file.startswith(ours or file):
        return f"{os.strerror(number)}: {file}"
    return os.strerror(number)


def _kind_of(error: BaseException) -> type[OSError]:
    """Returns the class of Python's own that an error of the disk has."""
    if isinstance(error, OSError) and type(error).__module__ == "builtins":
        return type(error)
    return type(OSError(_number_of(error) or 0, ""))


def write_text(path: Path, text: str) -> None:
    """Writes a text in UTF-8, with the line ends that it has, as a whole."""
    with write_whole(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


PART = re.compile(r"\.bertbook-[0-9a-f]{16}(\..*)?")


def remove_parts(folder: Path) -> None:
    """Removes what writers in a folder left that were killed.

    Args:
        folder: One that nothing else writes to now; it may be missing.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if PART.fullmatch(path.name) and not path.is_dir():
            path.unlink()


def files_named(folder: Path, name: str) -> list[Path]:
    """Returns the files of a folder that have a name of ours, by their numbers.

    A name that is only similar is a user's: "model_backup.safetensors".

    Args:
        folder: It may be missing.
        name: A name, or how numbers become one, such as
            "model-{:05d}-of-{:05d}.safetensors".
    """
    if "{" not in name:
        path = folder / name
        is_there = path.is_file() or path.is_symlink()
        has_links = any(p.is_symlink() for p in _subfolders(folder, name))
        return [path] if is_there and not has_links else []
    paths = folder.iterdir() if folder.is_dir() else ()
    numbers = {path: numbers_in(path.name, name) for path in paths}
    found = [path for path in numbers if numbers[path] and path.is_file()]
    return sorted(found, key=lambda path: numbers[path] or ())


def numbers_in(file: str, name: str) -> tuple[int, ...] | None:
    """Returns the numbers that make a name of ours that of a file, or None."""
    numbers = tuple(map(int, re.findall("[0-9]+", file)))
    if len(numbers) < name.count("{") or file != name.format(*numbers):
        return None
    return numbers


def _subfolders(folder: Path, name: str) -> list[Path]:
    """Returns the sub-folders that the name of a file goes through."""
    return [folder / parent for parent in Path(name).parents][:-1]


def check_folder(folder: Any, name: str = "folder") -> Path:
    """Returns the path of a folder that is there, or that can be made.

    Args:
        folder: The path.
        name: What the user gave it as, for messages.

    Raises:
        ValueError: It is no path, the path of a file, a link that leads
            nowhere, or its name is not UTF-8, in which case other libraries
            could not open it.
    """
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise ValueError(
            f"`{name}` must be the path of a folder. Received: {folder!r}."
        )
    path = Path(os.fsdecode(os.fspath(folder)))
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"`{name}` must be a name in UTF-8. Received: "
            f"{str(path).encode('utf-8', 'backslashreplace')!r}."
        ) from error
    if "\0" in str(path) or path.exists() and not path.is_dir():
        raise ValueError(
            f"`{name}` must be a folder, not a file. Received: {str(path)!r}."
        )
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            raise ValueError(
                f"`{name}` must be a folder, or not there. Received: {place}, "
                "a link that leads nowhere."
            )
    return path


def check_subfolder(path: Path) -> None:
    """Refuses a link where a folder of ours goes: it may lead anywhere.

    Raises:
        ValueError: It is a link, or a file.
    """
    if path.is_symlink() or path.exists() and not path.is_dir():
        found = "a link" if path.is_symlink() else "a file"
        raise ValueError(
            f"{path} must be a folder of its own, so that nothing is written "
            f"elsewhere. Received: {found}."
        )


SAVING = ".saving"  # the sub-folder of a set that is being written
SAVED = ".saved"  # its name once every file of the set is on the disk
FILES = "files"
RECORD = "record.json"


@contextlib.contextmanager
def write_together(
    folder: Path,
    replaced: Iterable[str] = (),
    last: str = "",
    for_others: bool = False,
) -> Iterator[Path]:
    """Yields a folder to write a set of files to; all take effect, or none.

    The files are written beside the old ones. Once all are on the disk, one
    rename makes the new set count; then they are moved to their names. A
    process that ends in between leaves the moves to the next one that writes
    there; who reads sees the new set all the same, by `folder_to_read`. After
    an error the old set is as it was, and nothing else is left.

    Args:
        folder: Where the files go; made where it is missing.
        replaced: Names that belong to an older set, as in `files_named`; such
            a file is removed where the new set does not have it.
        last: The name that is moved last.
        for_others: Whether programs that do not know `folder_to_read` must
            never see a mixture. On Linux one rename then puts a new folder in
            the place of the old one, which is removed: at every moment there
            is one set or the other. Where the folder cannot be renamed, as it
            holds other files, is the working directory or a mount, or its
            file system does not exchange names, `last` is removed before
            anything is moved: a process that ends in between leaves no file of
            that name, until the next one that writes there.

    Raises:
        ValueError: A link or a folder is in the way, or what a save uses for
            itself was not written by one.
        OSError: The disk is full, or `folder` cannot be written; also where
            the library that writes has an error of its own for it.
    """
    try:
        with made_folder(folder), locked(folder):
            yield from _write_set(folder, replaced, last, for_others)
    except Exception as error:
        if not is_of_disk(error):
            raise
        state = ", and is as it was"
        if (folder / SAVED).exists():
            state = (
                ", but a whole set is on the disk, which the next save moves"
            )
        raise unwritten(folder, error, folder, state) from error


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Makes a folder; an error in the body removes what was made for it."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):  # it holds something by now
                path.rmdir()
        raise


def _write_set(
    folder: Path, replaced: Iterable[str], last: str, for_others: bool
) -> Iterator[Path]:
    """Does what `write_together` says, in a folder that is there."""
    _finish(folder)
    if for_others:
        shutil.rmtree(_aside(folder), ignore_errors=True)
    saving = folder / SAVING
    if os.path.lexists(saving):  # of a process that ended before it was whole
        _check_ours(saving)
        shutil.rmtree(saving)
    saving.mkdir()
    is_exchanged = False
    try:
        (saving / FILES).mkdir()
        yield saving / FILES
        _write_record(folder, replaced, last, for_others)
        _sync_folders(saving)
        is_exchanged = for_others and _exchange(folder, saving / FILES)
        if not is_exchanged:
            os.replace(saving, folder / SAVED)  # from here the new set counts
    finally:
        if not is_exchanged:  # else what has this name is the next writer's
            shutil.rmtree(saving, ignore_errors=True)
    if not is_exchanged:
        _sync(folder)
        _finish(folder)


def _aside(folder: Path) -> Path:
    """Returns the name beside a folder that an exchange uses."""
    name = hashlib.sha256(os.fsencode(folder.resolve().name)).hexdigest()
    return folder.resolve().with_name(f".bertbook-{name[:16]}")


def _exchange(folder: Path, new: Path) -> bool:
    """Puts a new folder in the place of an old one, by one rename.

    Returns:
        Whether it could; else everything is as it was.
    """
    place, aside = folder.resolve(), _aside(folder)
    held = [p for p in folder.rglob("*") if folder / SAVING not in p.parents]
    names = {path.relative_to(folder) for path in held} - {Path(SAVING)}
    if any(path.is_symlink() for path in held):
        return False
    if not names <= {path.relative_to(new) for path in new.rglob("*")}:
        return False  # what is a user's own stays where it is
    try:
        if Path.cwd().is_relative_to(place):
            return False  # a shell would stand in a folder that is gone
        new.chmod(folder.stat().st_mode)
        os.replace(new, aside)  # a folder has no exchange with its parent
    except OSError:  # the folder beside is not for us to write
        return False
    if not _swap_names(aside, place):
        os.replace(aside, new)
        return False
    _sync(place.parent)
    shutil.rmtree(aside, ignore_errors=True)
    return True


def _swap_names(one: Path, other: Path) -> bool:
    """Swaps the names of two folders at once, where the system can."""
    if sys.platform != "linux":
        return False
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    paths = os.fsencode(one), os.fsencode(other)
    return swap is not None and not swap(
        here, paths[0], here, paths[1], exchange
    )


def _write_record(
    folder: Path, replaced: Iterable[str], last: str, for_others: bool
) -> None:
    """Brings the files of a set to the disk, and writes down their names."""
    new = folder / SAVING / FILES
    names = sorted(_names_in(new), key=lambda name: (name == last, name))
    old = {
        path.relative_to(folder).as_posix()
        for name in replaced
        for path in files_named(folder, name)
    }
    removed = old - set(names) | ({last} if for_others else set())
    record = {"files": names, "removed": sorted(removed)}
    _check_names(folder, names, folder)
    write_json(folder / SAVING / RECORD, record)
    mode = (folder / SAVING / RECORD).stat().st_mode
    for name in names:
        (new / name).chmod(mode)  # a library may write for the user alone
        _sync(new / name)


def _names_in(folder: Path) -> list[str]:
    """Returns the files of a folder and of its sub-folders, sorted."""
    paths = (path for path in folder.rglob("*") if not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _check_names(folder: Path, names: Iterable[Any], source: Path) -> None:
    """Refuses names whose files would go elsewhere, or find no room.

    Args:
        folder: The folder that the files go to, or are removed from.
        names: Their paths in it.
        source: What says so, for messages.

    Raises:
        ValueError: A name leads out of the folder, or a link, a file or a
            folder is in its way.
    """
    for name in names:
        path = Path(name if isinstance(name, str) else "..")
        hidden = {"..", SAVED, SAVING} & {*path.parts}
        if hidden or path.anchor or not path.name or "\0" in name:
            raise ValueError(
                f"{source} must name files of its own folder. "
                f"Received: {name!r}."
            )
        for path in _subfolders(folder, name):
            check_subfolder(path)
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            raise ValueError(
                f"{path} must be a file, or not there. Received: a folder."
            )


def folder_to_read(folder: Path) -> Path:
    """Returns where to read a set of files; nothing is written there.

    Args:
        folder: A folder that `write_together` may have written to.

    Returns:
        The folder; or, where a process ended before it had moved a whole set,
        a temporary one whose links show what the moves would leave.

    Raises:
        ValueError: The record of the set is damaged, or there are links.
    """
    if not os.path.lexists(folder / SAVED / RECORD):
        return folder
    with locked(folder, for_reading=True):
        if not (folder / SAVED).is_dir():  # somebody has just moved it
            return folder
        return _view(folder, *_read_record(folder))


def finish_saving(folder: Path) -> None:
    """Moves the files of a whole set to their names, where that was left.

    Args:
        folder: A folder that `write_together` may have written to, and that
            is to be written again.

    Raises:
        ValueError: The record of the set is damaged, or there are links.
        OSError: The folder cannot be written.
    """
    if os.path.lexists(folder / SAVED):
        with locked(folder):
            _finish(folder)


def _finish(folder: Path) -> None:
    """Renames the files of a whole set into place; does what is left of it."""
    saved = folder / SAVED
    if not os.path.lexists(saved):
        return
    files, removed = _read_record(folder)
    for name in removed:  # once a new file is moved it stays
        if name not in files or (saved / FILES / name).is_file():
            (folder / name).unlink(missing_ok=True)
    for name in files:
        source = saved / FILES / name
        if source.is_file():  # else it was moved before
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, folder / name)
    for parent in {(folder / name).parent for name in (*files, ".")}:
        _sync(parent)
    (saved / RECORD).unlink(missing_ok=True)  # now there is nothing left to do
    for path in sorted((saved, *saved.rglob("*")), reverse=True):
        path.rmdir()


def _read_record(folder: Path) -> tuple[list[str], list[str]]:
    """Returns the names of a whole set, and those that it removes.

    Raises:
        ValueError: The record is damaged, or names a file outside the folder;
            or there is a link, or more than the record names.
    """
    saved = folder / SAVED
    record: dict[str, Any] = {"files": [], "removed": []}  # all were moved
    _check_ours(saved)
    if (saved / RECORD).is_file():
        record = read_json(saved / RECORD)
    files, removed = record.get("files"), record.get("removed")
    if not isinstance(files, list) or not isinstance(removed, list):
        raise ValueError(
            f"{saved / RECORD} must hold lists. Received: {record!r:.80}."
        )
    _check_names(folder, (*files, *removed), saved / RECORD)
    for name in set(_names_in(saved / FILES)) - set(files):
        raise _not_ours(saved, saved / FILES / name)
    return files, removed


def _check_ours(folder: Path) -> None:
    """Refuses a folder of a save that no save has written, or with links."""
    for path in (folder, *folder.rglob("*")):
        name = "/".join(path.relative_to(folder).parts[:1])
        is_ours = name in ("", FILES, RECORD) or PART.fullmatch(name)
        if path.is_symlink() or not is_ours or not folder.is_dir():
            raise _not_ours(folder, path)


def _not_ours(folder: Path, found: Path) -> ValueError:
    return ValueError(
        f"{folder} must hold what a save has left, and no links. Received: "
        f"{found}. Move it elsewhere first."
    )


def _view(folder: Path, files: list[str], removed: list[str]) -> Path:
    """Returns a temporary folder of links: what the moves would leave."""
    view = Path(tempfile.mkdtemp(prefix="bertbook-"))
    atexit.register(shutil.rmtree, view, ignore_errors=True)
    for name in {*_names_in(folder)} - {*removed} | {*files}:
        path = folder / SAVED / FILES / name
        if Path(name).parts[0] not in (SAVED, SAVING):
            (view / name).parent.mkdir(parents=True, exist_ok=True)
            path = path if path.is_file() else folder / name  # moved before
            (view / name).symlink_to(path.absolute())
    return view


@contextlib.contextmanager
def locked(folder: Path, for_reading: bool = False) -> Iterator[None]:
    """Keeps a set of files as it is while the `with` statement lasts.

    A process that writes a new set waits; one that writes now is waited for.
    So what is read from `folder_to_read` is one set, and no mixture of two.

    Args:
        folder: A folder that is there.
        for_reading: Whether others may read at the same time.
    """
    if not HAS_LOCKS:
        yield
        return
    handle = _lock(folder, fcntl.LOCK_SH if for_reading else fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)  # gives the lock back


def _lock(folder: Path, kind: int) -> int:
    """Returns the open and locked folder that has the name now."""
    while True:
        handle = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, kind)
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(folder), os.fstat(handle)):
                return handle
        os.close(handle)  # another process has exchanged it meanwhile


def _sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk."""
    if not path.is_dir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
        return
    if HAS_LOCKS:
        handle = os.open(path, os.O_RDONLY)
        with contextlib.suppress(OSError):  # not every file system does this
            os.fsync(handle)
        os.close(handle)


def _sync_folders(folder: Path) -> None:
    """Brings the names in a folder and its sub-folders to the disk."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            _sync(path)
