"""The commands of `bertbook`, which is `python -m bertbook` too."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bertbook import runtime
from bertbook.checks import RowErrors
from bertbook.cli import (
    convert,
    corpus,
    finetuning,
    info,
    predict,
    translation,
)
from bertbook.cli.parsing import (
    AUTO,
    DTYPE,
    Help,
    add_command,
    add_processes,
)
from bertbook.devices import joining, processes
from bertbook.files import DISK_ERRORS, check_folder
from bertbook.pretraining import examples, masking

FAILED = 1  # what a user cannot mend by another command, such as full memory
REFUSED = 2  # an error of the user, as argparse has it
INTERRUPTED = 128 + signal.SIGINT  # as a shell says it
READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)  # Windows has none
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "ResourceExhausted")
RESUMED = ("finetune", "pretrain", "train-translation")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit status.

    It is 0, or `REFUSED` after an error of the user, `FAILED` where memory is
    full, `INTERRUPTED` after Ctrl-C, `READER_GONE` where what reads the output
    has gone. An error is one line on standard error, and one more for each row
    of a file that does not fit.

    Args:
        arguments: The words after `bertbook`.

    Raises:
        OSError: Standard output is closed.
    """
    is_open = _prepare_streams()
    options = None
    try:
        options = _build_parser().parse_args(arguments)
        if not is_open and getattr(options, "prints", False):
            raise OSError(
                f"`{options.command}` prints its results. Received: a closed "
                "standard output."
            )
        if hasattr(options, "out"):  # before hours of work for it
            check_folder(options.out, "--out")
        _join_others(options)
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # as by `| head`: nobody reads any more
        _discard_output()
        return READER_GONE
    except KeyboardInterrupt:
        return _end_interrupted(options)
    except (ValueError, KeyError, OSError, ImportError) as error:
        text = error.args[0] if isinstance(error, KeyError) else error
        if (
            isinstance(error, OSError)
            and error.errno in DISK_ERRORS
            and error.strerror  # else the words are ours
            and not error.filename
        ):
            text = f"the results could not be written: {error.strerror}"
        return _end_with(text, REFUSED)
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        return _end_with(
            "not enough memory; a smaller `--batch-size` or `--max-length` "
            "needs less.",
            FAILED,
        )
    return 0


def _join_others(options) -> None:
    """Joins the other processes of a command that several run together."""
    if not hasattr(options, "processes"):
        return
    given = options.processes, options.coordinator, options.process_id
    if any(value is not None for value in given) or joining.COUNT in (
        os.environ
    ):
        number = None if options.processes == AUTO else options.processes
        joining.join_processes(options.coordinator, number, options.process_id)


def _prepare_streams() -> bool:
    """Makes the standard streams fit to print any file name.

    A stream that is closed is replaced by one that goes nowhere: its number
    would be given to the next file that is opened, and printed to.

    Returns:
        Whether standard output was open.
    """
    is_open = sys.stdout is not None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if number:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            is_utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            errors = "surrogateescape" if is_utf8 else "backslashreplace"
            stream.reconfigure(errors=errors)
    return is_open


def _end_interrupted(options) -> int:
    """Says after Ctrl-C how to go on; returns the exit status."""
    text = "interrupted"
    if options is not None and options.command in RESUMED:
        text += f"; the same command goes on in {options.out}"
    return _end_with(text, INTERRUPTED)


def _end_with(text, status: int) -> int:
    """Prints what is wrong on standard error; returns the exit status."""
    try:
        sys.stdout.flush()
    except OSError:  # a full disk: what is left cannot be written at the end
        _discard_output()
    line = " ".join(str(text).split())
    if isinstance(text, RowErrors):  # a line for each row
        rows = str(text).replace("`max_length` cuts", "`--max-length` cuts")
        print(f"bertbook: {rows}", file=sys.stderr)
    else:
        print(f"bertbook: {line}", file=sys.stderr)
    return processes.end_failed(status, line)


def _discard_output() -> None:
    """Sends what is still to be written to standard output nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_out_of_memory(error: Exception) -> bool:
    """Returns whether Python's memory is full, or that of a backend."""
    if isinstance(error, MemoryError):
        return True
    text = f"{type(error).__name__} {error}"
    return any(word in text for word in OUT_OF_MEMORY)


def _build_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="bertbook",
        description="Train, measure and use BERT. `bertbook COMMAND --help` "
        "explains a command.",
        formatter_class=Help,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"bertbook {runtime.version()}",
        help="print the version and exit",
    )
    commands = parser.add_subparsers(
        required=True, metavar="command", dest="command"
    )
    info.add_commands(commands)
    convert.add_commands(commands)
    corpus.add_commands(commands)
    _add_pretrain(commands)
    finetuning.add_commands(commands)
    predict.add_commands(commands)
    translation.add_commands(commands)
    return parser


def _add_pretrain(commands) -> None:
    """Adds the command that pre-trains a model."""
    parser = add_command(
        commands,
        "pretrain",
        "train a BERT on text files, or go on with it",
        _pretrain_model,
    )
    _add_model(parser)
    _add_recipe(parser.add_argument)
    _add_examples(parser.add_argument)
    add_processes(parser).add_argument(
        "--model-parallel",
        type=int,
        default=1,
        help="devices that share one copy of the model (JAX)",
    )


def _add_model(parser) -> None:
    """Adds what is trained, on which text, and where it goes."""
    add = parser.add_argument
    add(
        "--corpus",
        required=True,
        nargs="+",
        help="text files, an empty line between documents; or the folder, or "
        "URL, of a corpus that `bertbook prepare` wrote",
    )
    add("--out", required=True, help="folder of the run")
    add("--size", default="tiny", help="a published size, or a config.json")
    add(
        "--start",
        help="folder with weights to start from, instead of a size; without "
        "it weights are drawn",
    )
    vocabulary = parser.add_mutually_exclusive_group()
    vocabulary.add_argument(
        "--tokenizer", default="mini", help="name, or folder, of a vocabulary"
    )
    vocabulary.add_argument(
        "--vocab-size",
        type=int,
        help="pieces of a vocabulary that is trained on the corpus; without "
        "it that of --tokenizer is taken",
    )


def _add_recipe(add) -> None:
    """Adds the numbers of a run, and how it is computed."""
    add("--steps", type=int, required=True, help="updates of the weights")
    add("--batch-size", type=int, default=64, help="rows an update")
    add("--accumulation", type=int, default=1, help="parts of an update")
    add("--learning-rate", type=float, default=1e-3, help="peak of the rate")
    add("--warmup", type=float, default=0.1, help="share of the steps")
    add("--seed", type=int, default=0, help="seed of everything")
    for name, steps, what in (
        ("checkpoint", 500, "checkpoints"),
        ("evaluation", 500, "evaluations on held-out documents"),
        ("log", 50, "lines of the log"),
    ):
        text = f"steps between {what}"
        add(f"--{name}-steps", type=int, default=steps, help=text)
    add("--dtype", help=DTYPE)
    add("--workers", type=int, default=0, help="processes that make examples")
    add("--data-parallel", action="store_true", help="use every device (JAX)")
    add(
        "--steps-per-execution",
        type=int,
        default=1,
        help="steps that the device takes per call; more are faster for a "
        "small model",
    )
    add("--tensorboard", action="store_true", help="write its logs too")


def _add_examples(add) -> None:
    """Adds what the examples are."""
    add("--max-length", type=int, default=128, help="tokens a row")
    add(
        "--mask-rate",
        type=float,
        default=masking.Masking.rate,
        help="share of the tokens that are hidden",
    )
    add(
        "--mask-unit",
        choices=masking.UNITS,
        default="token",
        help="what is hidden as a whole",
    )
    add("--no-next-sentence", action="store_true", help="single texts")
    add(
        "--packed",
        action="store_true",
        help="let several short examples share a row",
    )
    add(
        "--held-out",
        type=float,
        default=0.01,
        help="share of the documents of text files",
    )


def _pretrain_model(options) -> None:
    """Pre-trains a model, or goes on with a run that stopped."""
    from bertbook.config import BertConfig
    from bertbook.pretraining.pretrain import (
        PretrainingRecipe,
        Reporting,
        pretrain,
    )

    size = options.start or options.size
    if size.endswith(".json"):
        size = BertConfig.from_json(size)
    pretrain(
        corpus.find_corpus(options.corpus),
        options.out,
        PretrainingRecipe(
            steps=options.steps,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            warmup=options.warmup,
            accumulation=options.accumulation,
            dtype=options.dtype,
            seed=options.seed,
        ),
        model=size,
        tokenizer=_vocabulary_of(options),
        examples=examples.ExampleSettings(
            max_length=options.max_length,
            next_sentence=not options.no_next_sentence,
            packed=options.packed,
            masking=masking.Masking(
                rate=options.mask_rate, unit=options.mask_unit
            ),
        ),
        held_out=options.held_out,
        workers=options.workers,
        data_parallel=options.data_parallel,
        model_parallel=options.model_parallel,
        steps_per_execution=options.steps_per_execution,
        reporting=Reporting(
            log_steps=options.log_steps,
            evaluation_steps=options.evaluation_steps,
            checkpoint_steps=options.checkpoint_steps,
            tensorboard=options.tensorboard,
        ),
    )
    if processes.is_writer():
        print(f"written: {options.out}")


def _vocabulary_of(options) -> str | int:
    """Returns a tokenizer by name, or how many pieces one is trained to."""
    if options.vocab_size is None:
        return options.tokenizer
    return options.vocab_size
