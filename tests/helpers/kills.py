"""Processes that end, and disks that fill, after some operations on files."""

import os

OPERATIONS = ("replace", "unlink", "mkdir", "rmdir", "fsync")


class Killed(BaseException):
    """Ends a save as a kill does: nothing that cleans up may work after it."""


def stop_after(monkeypatch, count, error=Killed, names=OPERATIONS):
    """Lets some operations of `os` through; all later ones raise `error`.

    Args:
        monkeypatch: What undoes it.
        count: How many go through.
        error: What is raised, an exception or its class.
        names: The functions of `os` that count.

    Returns:
        A list whose one element says how many operations are left.
    """
    left = [count]

    def limited(function):
        def run(*args, **keywords):
            if left[0] <= 0:
                raise error
            left[0] -= 1
            return function(*args, **keywords)

        return run

    for name in names:
        monkeypatch.setattr(os, name, limited(getattr(os, name)))
    return left
