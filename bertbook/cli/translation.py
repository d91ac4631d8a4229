"""The commands `train-translation` and `translate`."""

from bertbook.cli.texts import add_texts, texts_of
from bertbook.datasets import load as datasets


def add_commands(commands) -> None:
    """Adds both commands to a parser."""
    parser = commands.add_parser(
        "train-translation", help="train a translator, or go on with it"
    )
    parser.set_defaults(run=train_translation)
    add_training(parser.add_argument)
    parser = commands.add_parser(
        "translate", help="translate texts; a line for each"
    )
    parser.set_defaults(run=translate)
    add = parser.add_argument
    add("--model", required=True, help="name, or folder of a finished run")
    add("--greedy", action="store_true", help="faster, a little worse")
    add("--beam-width", type=int, default=4, help="how many texts are kept")
    add("--max-length", type=int, help="most tokens of a translation")
    add("--batch-size", type=int, default=32, help="texts at a time")
    add_texts(
        parser,
        "texts, each as one sentence",
        "a text file, a text a line; an empty line stays empty",
    )


def add_training(add) -> None:
    """Adds the options of a run, the data, the model, and the recipe."""
    add("dataset", help="translation, which ships, or spa_eng")
    add("--out", required=True, help="the folder of the run")
    add("--data-dir", help="a folder with the official files")
    add("--limit", type=int, help="pairs to train on, the first ones")
    add("--vocab-size", type=int, default=4_096, help="pieces of each side")
    add("--shared-vocabulary", action="store_true", help="one for both sides")
    add("--lowercase", action="store_true", help="drop capitals and accents")
    add("--layers", type=int, default=3, help="that read, and that write")
    add("--hidden-size", type=int, default=256, help="width")
    add("--heads", type=int, default=4, help="heads of attention")
    add("--intermediate-size", type=int, help="four times the width if none")
    add("--dropout", type=float, default=0.1, help="share of the values")
    add("--max-length", type=int, default=96, help="tokens; longer: left out")
    add("--steps", type=int, default=2_000, help="most updates of the weights")
    add("--minutes", type=float, help="after which the run ends, if before")
    add("--batch-tokens", type=int, default=2_048, help="tokens of one side")
    add("--learning-rate", type=float, default=1e-3, help="the peak")
    add("--warmup-steps", type=int, default=400, help="steps on the way up")
    add("--label-smoothing", type=float, default=0.1)
    add("--averaged", type=int, default=5, help="checkpoints, in the end")
    add("--dtype", default="float32", help="or mixed_bfloat16, mixed_float16")
    add("--seed", type=int, default=0, help="seed of everything")
    add("--checkpoint-steps", type=int, default=200)
    add("--evaluation-steps", type=int, default=500)
    add("--log-steps", type=int, default=50)
    add("--translated", type=int, default=0, help="pairs of dev, for BLEU")


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
            dtype=options.dtype,
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
    """Prints translations, a line for each text; an empty line stays empty."""
    texts = texts_of("translate", options, keep_empty=True)
    from bertbook.translation import translate as translation

    search = {"search": "beams", "beam_width": options.beam_width}
    if options.greedy:
        search = {"search": "greedy"}
    translations = translation.translate(
        options.model,
        [text for text in texts if text],
        options.max_length,
        batch_size=options.batch_size,
        **search,
    )
    waiting = iter(translations)
    print("\n".join(next(waiting) if text else "" for text in texts))
