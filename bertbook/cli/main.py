"""The commands of `python -m bertbook`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bertbook import locations, runtime
from bertbook.cli import finetuning, translation
from bertbook.files import check_folder, read_json
from bertbook.pretraining import examples, masking

READER_GONE = 141  # as a shell says it: 128, and 13 for SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0, or 2 after an error of the user.

    Returns `READER_GONE` where what reads the output has gone.

    Args:
        arguments: The words after `python -m bertbook`.
    """
    options = _build_parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # as by `| head`: nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except (ValueError, KeyError, OSError, ImportError) as error:
        text = error.args[0] if isinstance(error, KeyError) else error
        print(f"bertbook: {text}", file=sys.stderr)
        return 2
    return 0


def _build_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m bertbook")
    commands = parser.add_subparsers(required=True, metavar="command")
    info = commands.add_parser("info", help="print what runs here")
    info.set_defaults(run=_print_info)
    convert = commands.add_parser(
        "convert",
        help="write a model of any layout, its heads too, as Hugging Face's",
    )
    convert.add_argument("source", help=locations.FORMS)
    convert.add_argument("--out", required=True, help="the folder to write")
    convert.set_defaults(run=_convert_model)
    _add_pretrain(commands)
    finetuning.add_commands(commands)
    translation.add_commands(commands)
    return parser


def _add_pretrain(commands) -> None:
    """Adds the command that pre-trains a model."""
    parser = commands.add_parser(
        "pretrain", help="train a BERT on text files, or go on with it"
    )
    parser.set_defaults(run=_pretrain_model)
    add = parser.add_argument
    add("--corpus", required=True, nargs="+", help="text files")
    add("--out", required=True, help="the folder of the run")
    add("--size", default="tiny", help="a published size, or a config.json")
    add("--start", help="a folder with weights to start from, instead of size")
    add("--steps", type=int, required=True, help="updates of the weights")
    add("--batch-size", type=int, default=64, help="rows an update")
    add("--seed", type=int, default=0, help="seed of everything")
    add("--checkpoint-steps", type=int, default=500)
    add("--evaluation-steps", type=int, default=500)
    add("--log-steps", type=int, default=50)
    vocabulary = parser.add_mutually_exclusive_group()
    vocabulary.add_argument("--tokenizer", default="mini", help="name, folder")
    vocabulary.add_argument("--vocab-size", type=int, help="train one so large")
    add("--max-length", type=int, default=128, help="tokens a row")
    add("--learning-rate", type=float, default=1e-3, help="the peak")
    add("--warmup", type=float, default=0.1, help="share of the steps")
    add(
        "--mask-rate",
        type=float,
        default=masking.Masking.rate,
        help="share of the tokens",
    )
    add("--mask-unit", choices=masking.UNITS, default="token")
    add("--no-next-sentence", action="store_true", help="single texts")
    add("--held-out", type=float, default=0.01, help="share of the documents")
    add("--accumulation", type=int, default=1, help="parts of an update")
    add(
        "--dtype",
        default="float32",
        help="or mixed_bfloat16, mixed_float16; auto takes what is fast here",
    )
    add("--workers", type=int, default=0, help="processes that make examples")
    add("--data-parallel", action="store_true", help="use every device (JAX)")
    add("--tensorboard", action="store_true", help="write its logs too")


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
        options.corpus,
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
            masking=masking.Masking(
                rate=options.mask_rate, unit=options.mask_unit
            ),
        ),
        held_out=options.held_out,
        workers=options.workers,
        data_parallel=options.data_parallel,
        reporting=Reporting(
            log_steps=options.log_steps,
            evaluation_steps=options.evaluation_steps,
            checkpoint_steps=options.checkpoint_steps,
            tensorboard=options.tensorboard,
        ),
    )
    print(f"written: {options.out}")


def _vocabulary_of(options) -> str | int:
    """Returns a tokenizer by name, or how many pieces one is trained to."""
    if options.vocab_size is None:
        return options.tokenizer
    return options.vocab_size


def _print_info(options) -> None:
    """Prints versions, backend, device and what ships."""
    for name, value in runtime.describe().items():
        print(f"{name}: {value}")
    print(f"shipped models: {', '.join(locations.shipped_models())}")


def _convert_model(options) -> None:
    """Reads a model of any layout and writes it in Hugging Face's.

    Raises:
        ValueError: The folder to write is the one that is read, or the model
            lacks tensors, which would be drawn at random.
    """
    out = check_folder(options.out)
    _check_is_another(options.source, out)
    model = _load_whole(options.source)
    print(model.load_report)
    model.save_pretrained(out)
    print(f"written: {out}")


def _check_is_another(source, out) -> None:
    """Refuses to write into the folder that a name stands for."""
    if source.startswith("keras://"):
        folder = Path(source.removeprefix("keras://"))
    else:
        folder = locations.find_folder(source)
    if folder.exists() and folder.resolve() == out.resolve():
        raise ValueError(
            "`--out` must be another folder than that of the model. "
            f"Received: {out}."
        )


def _load_whole(source):
    """Returns a model of the class that its config or its tensors tell.

    Raises:
        ValueError: Tensors of that class are missing.
    """
    kind, keywords = _class_of(source)
    model = kind.from_pretrained(source, **keywords)
    if model.load_report.drawn:
        raise ValueError(
            f"{source} must hold every tensor of a `{kind.__name__}`. "
            f"Missing: {', '.join(model.load_report.drawn)}."
        )
    return model


def _class_of(source):
    """Returns the class of a stored model, and the keywords that it needs."""
    from bertbook.decoder.causal_lm import CausalLM
    from bertbook.decoder.config import MODEL_TYPE
    from bertbook.decoder.seq2seq import Seq2SeqTransformer
    from bertbook.model import bert
    from bertbook.model.encoder import BertEncoder
    from bertbook.weights.formats import read_checkpoint

    if not source.startswith("keras://"):
        path = locations.find_folder(source) / "config.json"
        model_type = read_json(path).get("model_type") if path.is_file() else ""
        if model_type == "gpt2":
            return CausalLM, {}
        if model_type == MODEL_TYPE:
            return Seq2SeqTransformer, {}
    checkpoint = read_checkpoint(source)
    named = checkpoint.config.extra.get("architectures") or ()
    for name in named:
        if name in (*CLASSES_BY_PARTS.values(), "BertForMultipleChoice"):
            return getattr(bert, name), {}
    parts = {name.split("/")[0] for name in checkpoint.arrays}
    for held, name in CLASSES_BY_PARTS.items():
        if set(held) <= parts and "BertModel" not in named:
            return getattr(bert, name), {}
    return BertEncoder, {"pooler": "pooler" in parts}


# The parts by whose tensors a class is known where no config names it. Three
# classes have a `classifier`; only one of them also reads the pooler and gives
# any number of labels.
CLASSES_BY_PARTS = {
    ("classifier", "pooler"): "BertForSequenceClassification",
    ("classifier",): "BertForTokenClassification",
    ("span",): "BertForQuestionAnswering",
    ("masked_lm", "next_sentence", "pooler"): "BertForPreTraining",
    ("masked_lm",): "BertForMaskedLM",
}
