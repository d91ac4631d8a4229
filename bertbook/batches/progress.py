"""`Progress`: how far a loop over rows is, as one line of text; its parts."""

import sys
import time

WIDTH = 20  # characters of a full bar
PAUSE = 0.1  # seconds between two states of the line


class Progress:
    """Prints a line that grows in a terminal, and once at the end in a file.

    Args:
        total: Number of rows.
        unit: What a row is called.
        verbose: Whether to print at all.
    """

    def __init__(self, total, unit="rows", verbose=True):
        self.total = total
        self.unit = unit
        self.verbose = verbose and total > 0
        self.done = 0
        self.start = time.perf_counter()
        self.shown = -PAUSE

    def add(self, count):
        """Counts rows that are done, and prints where it is time."""
        self.done += count
        if not self.verbose:
            return
        seconds = time.perf_counter() - self.start
        is_last = self.done >= self.total
        is_due = sys.stdout.isatty() and seconds - self.shown >= PAUSE
        if is_last or is_due:
            self.shown = seconds
            end = "\n" if is_last else "\r"
            print(self._line(seconds), end=end, flush=True)

    def _line(self, seconds):
        """Returns a bar, the rows done, the speed and the time that is left."""
        speed = self.done / max(seconds, 1e-9)
        left = (self.total - self.done) / max(speed, 1e-9)
        return (
            f"{progress_bar(self.done, self.total)}  "
            f"{speed:,.0f} {self.unit}/s  {time_left(left)}"
        )


def progress_bar(done, total):
    """Returns a bar that fills, and how many of all are done.

    >>> progress_bar(3, 6)
    '[==========          ] 3/6'
    """
    filled = round(WIDTH * done / total)
    return f"[{'=' * filled:{WIDTH}}] {done}/{total}"


def time_left(seconds):
    """Returns a time in words.

    >>> time_left(3725)
    '1:02:05 left'
    """
    left = round(seconds)
    return f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"
