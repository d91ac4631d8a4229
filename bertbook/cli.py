"""The commands of `python -m bertbook`.

Differences: none; this module has no counterpart in the paper.
"""

import argparse
import sys
from collections.abc import Sequence

from bertbook import locations, runtime


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0, or 2 after an error of the user.

    Args:
        arguments: The words after `python -m bertbook`.
    """
    options = build_parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, FileNotFoundError, ImportError) as error:
        print(f"bertbook: {error}", file=sys.stderr)
        return 2
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m bertbook")
    commands = parser.add_subparsers(required=True, metavar="command")
    info = commands.add_parser("info", help="print what runs here")
    info.set_defaults(run=print_info)
    convert = commands.add_parser(
        "convert", help="write a model of any layout as Hugging Face's"
    )
    convert.add_argument("source", help=locations.FORMS)
    convert.add_argument("--out", required=True, help="the folder to write")
    convert.set_defaults(run=convert_model)
    return parser


def print_info(options) -> None:
    """Prints versions, backend, device and what ships."""
    for name, value in runtime.describe().items():
        print(f"{name}: {value}")
    print(f"shipped models: {', '.join(locations.shipped_models())}")


def convert_model(options) -> None:
    """Reads a model of any layout and writes it in Hugging Face's."""
    from bertbook.encoder import BertEncoder

    encoder = BertEncoder.from_pretrained(options.source)
    print(encoder.load_report)
    encoder.save_pretrained(options.out)
    print(f"written: {options.out}")
