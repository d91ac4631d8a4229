"""Runs a command: `bertbook info`, which is `python -m bertbook info`."""

import signal
import sys

INTERRUPTED = 128 + signal.SIGINT


def run() -> int:
    """Runs the command that the shell gave; returns its exit status."""
    try:
        from bertbook.cli.main import main
    except KeyboardInterrupt:  # before a command was read
        print("bertbook: interrupted", file=sys.stderr)
        return INTERRUPTED
    status = main()
    if status == INTERRUPTED:  # a second Ctrl-C has nothing left to end
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


if __name__ == "__main__":
    sys.exit(run())
