"""Chooses the chapters and labs that a landing has time to run.

`python tools/book/turns.py MINUTES` prints paths, for `make test-turns`: first
the registers and the notebooks that the newest commits changed, then others by
turns. Where the
turns begin follows from the commit's hash, so that the same commit always runs
the same and some landings see all.

`python tools/book/turns.py --keep LOG` reads the seconds of each notebook from
what `make test-book PYTEST_ADDOPTS=--durations=0` printed.
"""

import argparse
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import book

SECONDS = Path(__file__).with_suffix(".json")
WORKERS = 3  # of `make test-turns`, whose minutes are spent
NEWEST = 20  # commits that are looked at
# They list what stands elsewhere: any commit may change what they print.
REGISTERS = "notebooks/90_errata.ipynb", "notebooks/91_notation.ipynb"
TIMED = re.compile(r"([\d.]+)s (?:setup|call|teardown) +(notebooks/\S+\.ipynb)")


def others():
    """Returns the notebooks that `make test` leaves out, as paths from here.

    `make test` runs the chapters up to 24, this the others and the labs.
    """
    later = [c for c in book.chapters() if c.number > "24"] + book.labs()
    return [one.path.relative_to(book.ROOT).as_posix() for one in later]


def choose(paths, changed, turn, seconds, limit):
    """Returns the paths that fit into some seconds, one at least.

    Args:
        paths: The notebooks that there are.
        changed: Those that changed last, the newest first; they come first.
        turn: A number: where the turns of the others begin.
        seconds: How long each takes; one that is not known, as the longest.
        limit: The most seconds of all together.
    """
    start = turn % len(paths)
    order = [path for path in changed if path in paths]
    order += paths[start:] + paths[:start]
    longest = max(seconds.values(), default=limit)
    chosen, left = [], limit
    for path in dict.fromkeys(order):
        needed = seconds.get(path, longest)
        if needed <= left or not chosen:
            chosen.append(path)
            left -= needed
    return chosen


def read_seconds(text):
    """Returns the seconds of each notebook in what pytest printed."""
    seconds = Counter()
    for number, path in TIMED.findall(text):
        seconds[path] += float(number)
    return {path: round(seconds[path]) for path in sorted(seconds)}


def git(*arguments):
    """Returns the lines that a command of git prints."""
    run = subprocess.run(
        ["git", *arguments],
        cwd=book.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.split("\n")


def main():
    """Prints the paths, or keeps the seconds of a log."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("minutes", type=float, nargs="?", default=10)
    parser.add_argument("--keep", metavar="LOG", type=Path)
    options = parser.parse_args()
    if options.keep:
        seconds = read_seconds(options.keep.read_text("utf-8"))
        SECONDS.write_text(json.dumps(seconds, indent=2) + "\n", "utf-8")
        return
    changed = git("log", f"-{NEWEST}", "--name-only", "--format=")
    changed = [*REGISTERS, *changed]
    turn = int(git("rev-parse", "HEAD")[0], 16)
    seconds = json.loads(SECONDS.read_text("utf-8"))
    limit = options.minutes * 60 * WORKERS
    print(*choose(others(), changed, turn, seconds, limit))


if __name__ == "__main__":
    main()
