"""The lock of a folder: one run at a time, and none that outlives its own."""

import errno
import os
import signal
import subprocess
import sys
import threading

import pytest

from bertbook.training import lock
from bertbook.training.lock import NAME, only_run

HOLD = """
import sys, time
from pathlib import Path
from bertbook.training.lock import only_run
with only_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that trains into a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def refused(folder):
    """Returns why a folder is refused, nothing where it is free."""
    try:
        with only_run(folder):
            return ""
    except ValueError as error:
        return str(error)


def test_a_second_process_is_refused_until_the_first_is_killed(
    holder, tmp_path
):
    told = refused(tmp_path)
    assert f"Received: {tmp_path}, and another process trains into it" in told
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / NAME).exists()  # but nobody holds it
    assert refused(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_second_call_of_a_process_is_refused(tmp_path):
    found = []
    with only_run(tmp_path):
        thread = threading.Thread(
            target=lambda: found.append(refused(tmp_path))
        )
        thread.start()
        thread.join()
        found.append(refused(tmp_path / "." / ".." / tmp_path.name))
        assert refused(tmp_path / "inner") == ""
    assert all("another call in this process" in text for text in found)
    assert refused(tmp_path) == ""


def test_a_folder_is_free_again_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), only_run(tmp_path / "a" / "b"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []  # nothing was written into it
    with only_run(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "kept").touch()
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["kept"]


@pytest.mark.parametrize("kind", ["text", "link", "dangling", "folder"])
def test_a_lock_that_is_a_users_own_is_neither_opened_nor_removed(
    kind, tmp_path
):
    mine, path = tmp_path / "mine", tmp_path / "out" / NAME
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("mine", "utf-8")
    else:
        path.symlink_to(mine)
    if kind == "link":
        mine.write_text("", "utf-8")
    told = refused(tmp_path / "out")
    assert f"{path} must be the empty file by which a run locks" in told
    assert os.path.lexists(path)
    assert mine.exists() == (kind == "link")
    assert refused(tmp_path / "other") == "", "the folder is not held"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    read, write = os.pipe()
    with only_run(tmp_path):
        child = os.fork()
        if not child:
            os.read(read, 1)  # lives longer than the lock
            os._exit(0)
    assert refused(tmp_path) == ""
    os.write(write, b"x")
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_of_the_file_system_a_run_goes_on(
    number, tmp_path, monkeypatch
):
    def fail(file):
        raise OSError(number, "no locks here")

    monkeypatch.setattr(lock, "_lock", fail)
    with only_run(tmp_path):
        assert "another call in this process" in refused(tmp_path)
    assert refused(tmp_path) == ""


def test_a_folder_for_reading_alone_is_left_to_its_writers(
    tmp_path, monkeypatch
):
    def fail(*arguments):
        raise PermissionError(errno.EROFS, "read-only")

    monkeypatch.setattr(lock.os, "open", fail)
    assert refused(tmp_path) == ""


def test_a_lock_file_that_was_removed_meanwhile_is_made_again(
    tmp_path, monkeypatch
):
    real, calls = lock._lock, []

    def lock_late(number):
        real(number)
        if not calls:
            (tmp_path / NAME).unlink()  # as the holder before does
        calls.append(number)

    monkeypatch.setattr(lock, "_lock", lock_late)
    with only_run(tmp_path):
        assert (tmp_path / NAME).exists()
    assert len(calls) == 2
