"""What the parsers of all commands share: help with defaults, kinds of values.

The text of every option says what it is and in which unit. A default is added
to it here; where there is none, the text says what happens without the option.
"""

import argparse
from typing import Any

from bertbook import runtime
from bertbook.devices.processes import is_writer

DTYPE = (
    "number type to compute in: float32, mixed_bfloat16, mixed_float16, or "
    "auto, which takes what is fast here; without it float32, on a TPU "
    "mixed_bfloat16"
)
AUTO = "auto"
ADVANCED = "advanced"  # the title of a group of options


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


def add_advanced(parser: Any, text: str = "") -> Any:
    """Adds the group of options that most users leave alone; returns it.

    Args:
        parser: The parser of a command.
        text: What its help says above the options.
    """
    return parser.add_argument_group(ADVANCED, text or None)


def add_processes(parser: Any) -> Any:
    """Adds the options of a command that several processes may run together.

    Returns:
        Their group, for further options.
    """
    group = add_advanced(
        parser,
        "Several processes: run the same command in each of them, on one "
        "machine or on several that see the same --out (JAX). The environment "
        "variables KERAS_DISTRIBUTION_NUM_PROCESSES, _PROCESS_ID and "
        "_JOB_ADDRESSES do the same as the options.",
    )
    group.add_argument(
        "--processes",
        type=processes,
        metavar="N",
        help="how many train together; auto takes what a cluster tells, such "
        "as Slurm; without it this process trains alone",
    )
    group.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        help="address of process 0; without it that of the cluster",
    )
    group.add_argument(
        "--process-id",
        type=int,
        metavar="I",
        help="number of this process, from 0; without it that of the cluster",
    )
    return group


def processes(word: str) -> int | str:
    """Reads how many processes there are; auto stays a word."""
    return word if word == AUTO else count(word)


def count(word: str) -> int:
    """Reads a whole number from 1 on from a command line."""
    if not (word.isascii() and word.isdecimal()) or int(word) < 1:
        raise argparse.ArgumentTypeError(
            f"must be an integer >= 1. Received: {word}"
        )
    return int(word)


def settle_dtype(word: str | None) -> str:
    """Returns the number type of a command, and prints a default of its own.

    Args:
        word: What `--dtype` says; None for nothing.
    """
    if word is not None:
        return word
    dtype, why = runtime.default_dtype()
    if dtype != "float32" and is_writer():
        print(f"dtype: {dtype}, {why}")
    return dtype
