"""The commands `train-translation` and `translate`."""

import itertools

from bertbook.cli.parsing import DTYPE, add_command, count, settle_dtype
from bertbook.cli.texts import (
    add_texts,
    answer,
    check_source,
    number_lines,
    read_lines,
)
from bertbook.datasets import load as datasets


def add_commands(commands) -> None:
    """Adds both commands to a parser."""
    parser = add_command(
        commands,
        "train-translation",
        "train a translator, or go on with it",
        train_translation,
    )
    add_training(parser.add_argument)
    parser = add_command(
        commands, "translate", "translate texts; a line for each", translate
    )
    parser.set_defaults(prints=True)
    add = parser.add_argument
    add("--model", required=True, help="name, or folder of a finished run")
    add("--greedy", action="store_true", help="faster, a little worse")
    add("--beam-width", type=int, default=4, help="texts that are kept")
    add(
        "--max-length",
        type=int,
        help="most tokens of a translation; without it as many as the model "
        "writes",
    )
    add("--batch-size", type=count, default=32, help="texts at a time")
    add_texts(
        parser,
        "texts, each as one sentence",
        "text file, a text a line; an empty line stays empty",
    )


def add_training(add) -> None:
    """Adds the options of a run, the data, the model, and the recipe."""
    add("dataset", help="translation, which ships, or spa_eng")
    add("--out", required=True, help="folder of the run")
    add("--data-dir", help="folder with official files; without it the cache")
    add(
        "--limit",
        type=int,
        help="pairs to train on, the first ones; without it all",
    )
    _add_model(add)
    _add_recipe(add)


def _add_model(add) -> None:
    """Adds the vocabularies and the sizes of the model."""
    add("--vocab-size", type=int, default=4_096, help="pieces of each side")
    add("--shared-vocabulary", action="store_true", help="one for both sides")
    add("--lowercase", action="store_true", help="drop capitals and accents")
    add("--layers", type=int, default=3, help="layers that read, or write")
    add("--hidden-size", type=int, default=256, help="width of a vector")
    add("--heads", type=int, default=4, help="heads of attention")
    add(
        "--intermediate-size",
        type=int,
        help="width of the feed-forward part; without it four times the width",
    )
    add("--dropout", type=float, default=0.1, help="share of the values")
    add(
        "--max-length",
        type=int,
        default=96,
        help="tokens of a text; pairs that are longer are left out",
    )


def _add_recipe(add) -> None:
    """Adds the numbers of a run."""
    add("--steps", type=int, default=2_000, help="most updates of the weights")
    add(
        "--minutes",
        type=float,
        help="minutes after which a run ends; without it --steps alone decide",
    )
    add("--batch-tokens", type=int, default=2_048, help="tokens of one side")
    add("--learning-rate", type=float, default=1e-3, help="peak of the rate")
    add("--warmup-steps", type=int, default=400, help="steps on the way up")
    add(
        "--label-smoothing",
        type=float,
        default=0.1,
        help="share of the probability that goes to all other pieces",
    )
    add(
        "--averaged",
        type=int,
        default=5,
        help="last checkpoints whose weights are averaged in the end",
    )
    add("--dtype", help=DTYPE)
    add("--seed", type=int, default=0, help="seed of everything")
    for name, steps, what in (
        ("checkpoint", 200, "checkpoints"),
        ("evaluation", 500, "evaluations on dev"),
        ("log", 50, "lines of the log"),
    ):
        text = f"steps between {what}"
        add(f"--{name}-steps", type=int, default=steps, help=text)
    add(
        "--translated",
        type=int,
        default=0,
        help="pairs of dev that are translated for BLEU at each evaluation",
    )


def train_translation(options) -> None:
    """Trains a translator on a data set, or goes on with it."""
    from bertbook.translation import train as translation_runs

    for name in ("limit", "intermediate_size"):
        _check_option(name, getattr(options, name))
    train = datasets.load_dataset(options.dataset, "train", options.data_dir)
    dev = datasets.load_dataset(options.dataset, "dev", options.data_dir)
    if options.limit is not None:
        train = {name: rows[: options.limit] for name, rows in train.items()}
    translation_runs.train_translation(
        train,
        options.out,
        translation_runs.Recipe(
            steps=options.steps,
            minutes=options.minutes,
            batch_tokens=options.batch_tokens,
            learning_rate=options.learning_rate,
            warmup_steps=options.warmup_steps,
            label_smoothing=options.label_smoothing,
            checkpoint_steps=options.checkpoint_steps,
            averaged=options.averaged,
            dtype=settle_dtype(options.dtype),
            seed=options.seed,
        ),
        dev,
        config_of(options),
        options.lowercase,
        translation_runs.Reporting(
            log_steps=options.log_steps,
            evaluation_steps=options.evaluation_steps,
            translated=options.translated,
        ),
    )
    print(f"written: {options.out}")


def _check_option(name: str, value: int | None) -> None:
    """Refuses a number below 1, where one is given."""
    if value is not None and value < 1:
        raise ValueError(
            f"`--{name.replace('_', '-')}` must be an integer >= 1. "
            f"Received: {value!r}."
        )


def config_of(options):
    """Returns the config that the options of a run describe."""
    from bertbook.translation.train import SMALL

    target_vocab_size = (
        None if options.shared_vocabulary else options.vocab_size
    )
    return SMALL.replace(
        vocab_size=options.vocab_size,
        target_vocab_size=target_vocab_size,
        hidden_size=options.hidden_size,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        intermediate_size=options.intermediate_size or 4 * options.hidden_size,
        hidden_dropout_prob=options.dropout,
        max_position_embeddings=options.max_length,
    )


def translate(options) -> None:
    """Prints translations, a line for each text; an empty line stays empty.

    Raises:
        ValueError: No line comes in.
    """
    check_source("translate", options)
    lines = options.text or read_lines(options.file or "-")
    rows, has_text = number_lines(lines), False
    waiting = []  # the rows before the first text, so that none is refused
    for row in rows:
        waiting.append(row)
        if row is not None and row[1]:
            has_text = True
            break
    if not has_text:
        raise ValueError("The input must hold a text. Received: no line.")
    from bertbook.decoder.seq2seq import Seq2SeqTransformer
    from bertbook.translation import translate as translation

    model = Seq2SeqTransformer.from_pretrained(options.model)
    search = {"search": "beams", "beam_width": options.beam_width}
    if options.greedy:
        search = {"search": "greedy"}

    def compute(texts: list[str]) -> list[str]:
        kept = [text for text in texts if text]
        if not kept:
            return texts
        translations = translation.translate(
            model,
            kept,
            options.max_length,
            batch_size=options.batch_size,
            **search,
        )
        left = iter(translations)
        return [next(left) if text else "" for text in texts]

    rows = itertools.chain(waiting, rows)
    for _, line in answer(rows, options.batch_size, compute):
        print(line, flush=True)
