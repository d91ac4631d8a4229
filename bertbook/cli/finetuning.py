"""The commands `finetune` and `evaluate`, on known sets and on your own files.

`own_data` reads what is in the columns; here a model is chosen for it.
"""

import json
import sys
from typing import Any

from bertbook.cli import own_data
from bertbook.cli.parsing import (
    DTYPE,
    add_command,
    add_processes,
    count,
    settle_dtype,
)
from bertbook.datasets.columns import with_rows_of
from bertbook.devices.processes import is_writer
from bertbook.files import check_folder, read_json
from bertbook.locations import find_model
from bertbook.tasks.labels import names_of, names_of_tags

# The column that tells a task, and the model that is made for it.
MODELS = {
    "tags": "BertForTokenClassification",
    "choices": "BertForMultipleChoice",
    "answers": "BertForQuestionAnswering",
    "label": "BertForSequenceClassification",
}
TRANSLATOR = "Seq2SeqTransformer"
DATASET = (
    "a file of yours (.csv, .tsv, .jsonl, .json, .parquet, a .txt of tags; "
    "packed as .gz or .xz too), a folder with train. and dev. files, or a name "
    "such as sst2, opinions or squad"
)


def add_commands(commands) -> None:
    """Adds both commands to a parser."""
    parser = add_command(
        commands,
        "finetune",
        "train a model on a data set, or resume a run",
        finetune,
    )
    _add_run(parser.add_argument)
    own_data.add_columns(parser)
    _add_recipe(parser.add_argument)
    add_processes(parser)
    parser = add_command(
        commands,
        "evaluate",
        "measure a fine-tuned model, or a translator; prints JSON",
        evaluate,
    )
    parser.set_defaults(prints=True)
    add = parser.add_argument
    add("dataset", help=DATASET)
    add("--model", required=True, help="folder of a finished run")
    add("--split", help="part of the set; without it dev, or a file's rows")
    add("--data-dir", help="folder with official files; without it the cache")
    add(
        "--max-length",
        type=count,
        help="tokens that texts are cut to; without it those of the run, if "
        "it had any",
    )
    add("--batch-size", type=count, default=32, help="rows at a time")
    add(
        "--report",
        metavar="DIR",
        help="folder to write report.html, .txt and .json to: scores of each "
        "label, worst errors, calibration; without it metrics alone",
    )
    own_data.add_held_out(parser)
    own_data.add_mend(add)
    own_data.add_skip(add)
    own_data.add_columns(parser)


def _add_run(add) -> None:
    """Adds what is trained, on what, and where it goes."""
    add("dataset", help=DATASET)
    add("--model", default="mini", help="name or folder to start from")
    add(
        "--out",
        required=True,
        help="folder to write; the same command resumes there",
    )
    add(
        "--dev",
        help="share of the file's rows to choose the best weights by, such as "
        "0.1, or a file of them; without it the dev part of a known set or "
        "folder, and none of a file: then the last weights stay",
    )
    add("--data-dir", help="folder with official files; without it the cache")
    add("--task", choices=own_data.TASKS, help=own_data.TASK_HELP)
    add("--limit", type=count, help="rows to train on; without it all")
    own_data.add_mend(add)
    own_data.add_skip(add)


def _add_recipe(add) -> None:
    """Adds the numbers of a run."""
    add("--epochs", type=int, default=3, help="passes over the rows")
    add(
        "--learning-rate",
        type=float,
        help="highest learning rate; without it the size of the model "
        "decides, 3e-4 for mini, 5e-5 for base, and it is printed",
    )
    add("--batch-size", type=int, default=32, help="rows per update")
    add(
        "--accumulation-steps",
        type=int,
        default=1,
        help="parts that an update is computed in, to save memory",
    )
    add(
        "--max-length",
        type=int,
        help="tokens that texts are cut to, or of a window; without it no text "
        "is cut, and windows hold at most 384",
    )
    add(
        "--stride",
        type=int,
        help="tokens from one window to the next; without it half a window",
    )
    add(
        "--packed",
        action="store_true",
        help="let several short texts share a row",
    )
    add("--seed", type=int, default=0, help="seed of everything")
    add(
        "--class-weight",
        choices=["balanced"],
        help="weigh rows so that each class counts the same; without it each "
        "row counts the same",
    )
    add(
        "--metric",
        help="metric on dev that chooses the best weights, or loss; without it "
        "the task's: accuracy, f1 or spearman",
    )
    add(
        "--warmup",
        type=float,
        default=0.1,
        help="share of the steps during which the rate grows",
    )
    add(
        "--lora",
        type=count,
        metavar="RANK",
        help="train small matrices of this rank beside the frozen weights, "
        "with about ten times the learning rate, and write them as an adapter "
        "too; without it all weights are trained",
    )
    add(
        "--frozen-layers",
        type=int,
        help="lowest layers that are not trained, -1 for all; without it none",
    )
    add(
        "--layer-decay",
        type=float,
        default=1.0,
        help="factor of the rate from each layer to the one below",
    )
    add(
        "--patience",
        type=int,
        help="evaluations without improvement before a run stops; without it "
        "a run never stops early",
    )
    add(
        "--checkpoint-steps",
        type=int,
        help="steps between checkpoints; without it time alone counts",
    )
    add(
        "--checkpoint-minutes",
        type=float,
        default=10.0,
        help="minutes after which a checkpoint is written",
    )
    add("--dtype", help=DTYPE)


def finetune(options) -> None:
    """Trains a model on a data set, or goes on with a run that stopped."""
    train, dev = own_data.read_parts(options)
    if options.limit is not None:
        kept = range(min(options.limit, len(next(iter(train.values())))))
        rows = {name: rows[: options.limit] for name, rows in train.items()}
        train = with_rows_of(rows, train, kept)
    task = options.task or own_data.guess_task(train)
    own_data.check_task(train, task)
    train = own_data.with_labels_of(train, task)
    dev = None if dev is None else own_data.with_labels_of(dev, task)
    own_data.say_task(train, dev, task)
    from bertbook.finetuning import finetune as finetuning
    from bertbook.runtime import keras
    from bertbook.weights.lora import add_lora

    keras.utils.set_random_seed(options.seed)
    dtype = settle_dtype(options.dtype)
    model = model_for(train, options.model, task, dtype=dtype)
    if options.lora is not None:
        parameters = add_lora(model, options.lora)
        if is_writer():
            print(parameters)
    if options.skip_bad_rows and dev is not None:
        known = (model.config.id2label or {}).values()
        if task == "tags" and not known:
            known = names_of_tags(train["tags"])
        dev = own_data.with_known_labels(dev, known)
    more = {}
    if options.class_weight is not None:
        more["class_weight"] = options.class_weight
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
            accumulation_steps=options.accumulation_steps,
            frozen_layers=options.frozen_layers,
            layer_decay=options.layer_decay,
            patience=options.patience,
            checkpoint_steps=options.checkpoint_steps,
            checkpoint_minutes=options.checkpoint_minutes,
            stride=options.stride,
            packed=options.packed,
            metric=options.metric,
        ),
        **more,
    )
    if is_writer():
        print(f"written: {options.out}")


def model_for(data, name_or_dir, task=None, **options):
    """Returns a model for the columns of a data set, weights taken from a name.

    Args:
        data: A dict of columns.
        name_or_dir: As `from_pretrained` takes it.
        task: One of `own_data.TASKS`; None for what the columns say.
        **options: Keywords of the model.

    Raises:
        ValueError: No column tells the task.
    """
    kind, head = head_for(data, task)
    return kind.from_pretrained(name_or_dir, **head, **options)


def head_for(data, task=None):
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
    kind, column = class_of(MODELS[column_name]), data[column_name]
    if column_name == "tags":
        return kind, {"num_labels": len(names_of_tags(column))}
    if column_name != "label":
        return kind, {}
    return kind, _labels_for(column, task or own_data.guess_task(data))


def _labels_for(column, task) -> dict[str, Any]:
    """Returns the keywords of a model for a column of labels."""
    if task == "regression":
        return {"num_labels": 1}
    names = names_of(column)
    if names is None:
        highest = max(
            (n for v in column for n in own_data.labels_in(v)), default=-1
        )
        head: dict[str, Any] = {"num_labels": highest + 1}
    else:
        head = {"id2label": dict(enumerate(names))}
    if task == "several-labels":
        head["problem_type"] = "multi_label_classification"
    return head


def class_of(name):
    """Returns a class of models by name; only now a backend is needed."""
    from bertbook.model import bert

    return getattr(bert, name)


def evaluate(options) -> None:
    """Prints the metrics of a model on a data set, as JSON.

    Raises:
        ValueError: A report is wanted of a translator.
    """
    if options.report is not None:
        check_folder(options.report, "--report")
    config = config_of(options.model)
    data = own_data.read_one(options, config)
    from bertbook.finetuning import finetune as finetuning

    settings = options.max_length, options.batch_size
    folder = options.report
    if TRANSLATOR in architectures_of(options.model):
        if folder is not None:
            raise ValueError(
                "`--report` needs a model with a task. Received: a translator."
            )
        metrics = _evaluate_translator(options.model, data, *settings)
    else:
        model = load_finetuned(options.model)
        skip = options.skip_bad_rows
        data = own_data.with_labels_for(data, model, skip)
        with_report = folder is not None
        metrics = finetuning.evaluate(
            model, data, *settings, report=with_report
        )
        if with_report:
            metrics.save(folder)
            print(f"written: {folder}/report.html", file=sys.stderr)
    print(json.dumps(metrics))


def _evaluate_translator(name_or_dir, data, max_length, batch_size):
    """Returns BLEU and chrF of a translator on a set."""
    from bertbook.translation import translate

    return translate.score(name_or_dir, data, max_length, batch_size=batch_size)


def load_finetuned(name_or_dir):
    """Returns the model of a folder, of the class that its config names.

    Raises:
        ValueError: The folder holds no fine-tuned model.
    """
    named = architectures_of(name_or_dir)
    for name in MODELS.values():
        if name in named:
            return class_of(name).from_pretrained(name_or_dir)
    raise ValueError(
        f"`--model` must be a fine-tuned model, {', '.join(MODELS.values())}. "
        f"Received: {name_or_dir}, {', '.join(named)}."
    )


def architectures_of(name_or_dir) -> list[str]:
    """Returns what the config of a folder says that it holds."""
    return config_of(name_or_dir).get("architectures") or ["none"]


def config_of(name_or_dir) -> dict[str, Any]:
    """Returns what the config of a folder holds."""
    return read_json(find_model(name_or_dir) / "config.json")


def predict_rows(
    model,
    rows: list[list[str]],
    max_length: int | None = None,
    batch_size: int | None = None,
    **options,
) -> list:
    """Returns what a model predicts for each row.

    Args:
        model: A fine-tuned model.
        rows: The parts of each row, as many in all of them.
        max_length: Tokens that texts are cut to; None cuts none.
        batch_size: Rows computed at a time; None for what the method takes.
        **options: More keywords of the method of the model.

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
    options |= {"max_length": max_length}
    if batch_size is not None:
        options["batch_size"] = batch_size
    if model.architecture == "BertForQuestionAnswering":
        return model.predict_answers(*columns, **options)
    if model.architecture == "BertForTokenClassification":
        return model.predict_entities(*columns, **options)
    if model.architecture == "BertForMultipleChoice":
        choices = [row[1:] for row in rows]
        return model.predict_choices(columns[0], choices, **options)
    return model.predict_texts(*columns, **options)


# The fewest and the most parts of a row, and what they are.
PARTS = {
    "BertForSequenceClassification": (1, 2, "a text, or two"),
    "BertForTokenClassification": (1, 1, "a text"),
    "BertForQuestionAnswering": (2, 2, "a question and a context"),
    "BertForMultipleChoice": (3, 99, "a text and its choices"),
}
