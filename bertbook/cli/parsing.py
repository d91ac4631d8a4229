"""What the parsers of all commands share: help with defaults, kinds of values.

The text of every option says what it is and in which unit. A default is added
to it here; where there is none, the text says what happens without the option.
"""

import argparse
from typing import Any

DTYPE = (
    "number type to compute in: float32, mixed_bfloat16, mixed_float16, or "
    "auto, which takes what is fast here"
)


class Help(argparse.HelpFormatter):
    """Adds the default to the text of each option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        nothing = (None, False, argparse.SUPPRESS)
        has_none = any(action.default is value for value in nothing)  # 0 is one
        if not action.option_strings or has_none:
            return text
        return f"{text} (default: %(default)s)"


def add_command(commands: Any, name: str, text: str, run: Any) -> Any:
    """Adds a command to the parser of all, and returns its own parser.

    Args:
        commands: What `add_subparsers` returned.
        name: The command.
        text: What it does, a phrase that begins with a verb.
        run: The function that gets its options.
    """
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        formatter_class=Help,
    )
    parser.set_defaults(run=run, command=name)
    return parser


def count(word: str) -> int:
    """Reads a whole number from 1 on from a command line."""
    if not (word.isascii() and word.isdecimal()) or int(word) < 1:
        raise argparse.ArgumentTypeError(
            f"must be an integer >= 1. Received: {word}"
        )
    return int(word)
