"""Runs a command: `python -m bertbook info`."""

import sys

from bertbook.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
