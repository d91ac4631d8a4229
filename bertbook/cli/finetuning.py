"""The commands `finetune`, `evaluate` and `predict`."""

import argparse
import json

from bertbook.cli.texts import add_texts, texts_of
from bertbook.datasets import load as datasets
from bertbook.files import read_json
from bertbook.locations import find_folder
from bertbook.tasks.labels import names_of, names_of_tags

# The column that tells a task, and the model that is made for it.
MODELS = {
    "tags": "BertForTokenClassification",
    "choices": "BertForMultipleChoice",
    "answers": "BertForQuestionAnswering",
    "label": "BertForSequenceClassification",
}
TRANSLATOR = "Seq2SeqTransformer"


def _count(word: str) -> int:
    """Reads a number of rows from a command line."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(
            f"must be an integer >= 1. Received: {word}"
        )
    return int(word)


def add_commands(commands) -> None:
    """Adds the three commands to a parser."""
    parser = commands.add_parser(
        "finetune", help="train a model on a data set, or go on with it"
    )
    parser.set_defaults(run=finetune)
    add = parser.add_argument
    add("dataset", help="a name, such as sst2, opinions or squad")
    add("--model", default="mini", help="a name or folder to start from")
    add("--out", required=True, help="the folder of the run")
    add("--data-dir", help="a folder with the official files")
    add("--epochs", type=int, default=3)
    add("--learning-rate", type=float, default=5e-5, help="the peak")
    add("--batch-size", type=int, default=32, help="rows an update")
    add("--max-length", type=int, help="tokens that texts are cut to")
    add("--stride", type=int, help="tokens from one window to the next")
    add("--seed", type=int, default=0, help="seed of everything")
    add("--limit", type=_count, help="rows to train on, the first ones")
    add("--warmup", type=float, default=0.1, help="share of the steps")
    add("--frozen-layers", type=int, help="layers not trained; -1: all")
    add("--layer-decay", type=float, default=1.0, help="rate of lower layers")
    add("--patience", type=int, help="evaluations before an early stop")
    add("--checkpoint-steps", type=int, default=500)
    add(
        "--dtype",
        default="float32",
        help="or mixed_bfloat16, mixed_float16; auto takes what is fast here",
    )
    parser = commands.add_parser(
        "evaluate", help="measure a fine-tuned model, or a translator"
    )
    parser.set_defaults(run=evaluate)
    add = parser.add_argument
    add("dataset", help="a name, such as sst2, opinions or squad")
    add("--model", required=True, help="a folder of a finished run")
    add("--split", default="dev")
    add("--data-dir", help="a folder with the official files")
    add("--max-length", type=int, help="tokens that texts are cut to")
    add("--batch-size", type=int, default=32, help="rows at a time")
    parser = commands.add_parser(
        "predict",
        help="let a fine-tuned model read texts; a line of JSON for each",
    )
    parser.set_defaults(run=predict)
    add = parser.add_argument
    add("--model", required=True, help="a folder that `finetune` wrote")
    add("--max-length", type=int, help="tokens that texts are cut to")
    add_texts(
        parser,
        "one text; or the parts of one row: text and second text, question "
        "and context, text and choices. In a file tabs part them",
        "a text file, a row a line, empty ones left out",
    )


def finetune(options) -> None:
    """Trains a model on a data set, or goes on with a run that stopped."""
    from bertbook.finetuning import finetune as finetuning
    from bertbook.runtime import keras

    train = datasets.load_dataset(options.dataset, "train", options.data_dir)
    dev = datasets.load_dataset(options.dataset, "dev", options.data_dir)
    if options.limit is not None:
        train = {name: rows[: options.limit] for name, rows in train.items()}
    keras.utils.set_random_seed(options.seed)
    model = model_for(train, options.model, dtype=options.dtype)
    finetuning.finetune(
        model,
        train,
        dev,
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        batch_size=options.batch_size,
        max_length=options.max_length,
        seed=options.seed,
        out=options.out,
        options=finetuning.FinetuningOptions(
            warmup=options.warmup,
            frozen_layers=options.frozen_layers,
            layer_decay=options.layer_decay,
            patience=options.patience,
            checkpoint_steps=options.checkpoint_steps,
            stride=options.stride,
        ),
    )
    print(f"written: {options.out}")


def model_for(data, name_or_dir, **options):
    """Returns a model for the columns of a data set, weights taken from a name.

    Args:
        data: A dict of columns.
        name_or_dir: As `from_pretrained` takes it.
        **options: Keywords of the model.

    Raises:
        ValueError: No column tells the task.
    """
    kind, head = head_for(data)
    return kind.from_pretrained(name_or_dir, **head, **options)


def head_for(data):
    """Returns the class of models for some columns, and its keywords.

    Raises:
        ValueError: No column tells the task.
    """
    column_name = next((name for name in MODELS if name in data), None)
    if column_name is None:
        raise ValueError(
            f"`data` must hold one of the columns {', '.join(MODELS)}. "
            f"Received: {', '.join(data)}."
        )
    kind, column = _class_of(MODELS[column_name]), data[column_name]
    if column_name == "tags":
        return kind, {"num_labels": len(names_of_tags(column))}
    if column_name != "label":
        return kind, {}
    if any(isinstance(value, float) for value in column):
        return kind, {"num_labels": 1}
    names = names_of(column) or range(max(column) + 1)
    return kind, {"num_labels": len(names)}


def _class_of(name):
    """Returns a class of models by name; only now a backend is needed."""
    from bertbook.model import bert

    return getattr(bert, name)


def evaluate(options) -> None:
    """Prints the metrics of a model on a data set, as JSON."""
    from bertbook.finetuning import finetune as finetuning

    data = datasets.load_dataset(
        options.dataset, options.split, options.data_dir
    )
    settings = options.max_length, options.batch_size
    if TRANSLATOR in _architectures_of(options.model):
        metrics = _evaluate_translator(options.model, data, *settings)
    else:
        model = _load_finetuned(options.model)
        metrics = finetuning.evaluate(model, data, *settings)
    print(json.dumps(metrics))


def _evaluate_translator(name_or_dir, data, max_length, batch_size):
    """Returns BLEU and chrF of a translator on a set."""
    from bertbook.translation import translate

    return translate.score(name_or_dir, data, max_length, batch_size=batch_size)


def predict(options) -> None:
    """Prints what a model reads out of texts, a line of JSON for each row."""
    texts = texts_of("predict", options)
    rows = [texts] if options.text else [text.split("\t") for text in texts]
    model = _load_finetuned(options.model)
    for prediction in predict_rows(model, rows, options.max_length):
        print(json.dumps(prediction, ensure_ascii=False))


def _load_finetuned(name_or_dir):
    """Returns the model of a folder, of the class that its config names.

    Raises:
        ValueError: The folder holds no fine-tuned model.
    """
    named = _architectures_of(name_or_dir)
    for name in MODELS.values():
        if name in named:
            return _class_of(name).from_pretrained(name_or_dir)
    raise ValueError(
        f"`--model` must be a fine-tuned model, {', '.join(MODELS.values())}. "
        f"Received: {name_or_dir}, {', '.join(named)}."
    )


def _architectures_of(name_or_dir) -> list[str]:
    """Returns what the config of a folder says that it holds."""
    config = read_json(find_folder(name_or_dir) / "config.json")
    return config.get("architectures") or ["none"]


def predict_rows(
    model, rows: list[list[str]], max_length: int | None = None
) -> list:
    """Returns what a model predicts for each row.

    Raises:
        ValueError: A row has not the parts that the model reads.
    """
    fewest, most, description = PARTS[model.architecture]
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if not fewest <= len(row) <= most or len(row) != width:
            raise ValueError(
                f"Row {number}, not counting empty lines, must hold "
                f"{description}, separated by tabs, as many as the other rows. "
                f"Received: {len(row)} parts."
            )
    columns = [list(column) for column in zip(*rows, strict=True)]
    if model.architecture == "BertForQuestionAnswering":
        return model.predict_answers(*columns, max_length=max_length)
    if model.architecture == "BertForTokenClassification":
        return model.predict_entities(*columns, max_length=max_length)
    if model.architecture == "BertForMultipleChoice":
        choices = [row[1:] for row in rows]
        return model.predict_choices(columns[0], choices, max_length=max_length)
    return model.predict_texts(*columns, max_length=max_length)


# The fewest and the most parts of a row, and what they are.
PARTS = {
    "BertForSequenceClassification": (1, 2, "a text, or two"),
    "BertForTokenClassification": (1, 1, "a text"),
    "BertForQuestionAnswering": (2, 2, "a question and a context"),
    "BertForMultipleChoice": (3, 99, "a text and its choices"),
}
