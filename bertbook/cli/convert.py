"""The commands convert and export: a model for other libraries to read."""

from pathlib import Path

from bertbook import locations
from bertbook.cli.parsing import add_command
from bertbook.files import check_folder, read_json

FORMATS = {"savedmodel": "tf_saved_model", "onnx": "onnx", "litert": "litert"}
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


def add_commands(commands) -> None:
    """Adds the command to the parser."""
    convert = add_command(
        commands,
        "convert",
        "write a model of any layout, its heads too, as Hugging Face's",
        _convert_model,
    )
    convert.add_argument("source", help=locations.FORMS)
    convert.add_argument("--out", required=True, help="folder to write")
    export = add_command(
        commands,
        "export",
        "write a model as a graph that runs without bertbook (TensorFlow)",
        _export_model,
    )
    export.add_argument("source", metavar="model", help=locations.FORMS)
    export.add_argument(
        "--format",
        choices=FORMATS,
        default="savedmodel",
        help="savedmodel for TensorFlow Serving, onnx (needs tf2onnx) or "
        "litert for phones",
    )
    export.add_argument(
        "--out",
        dest="path",
        metavar="PATH",
        required=True,
        help="folder to write; for onnx a file, for litert one named .tflite",
    )


def _convert_model(options) -> None:
    """Reads a model of any layout and writes it in Hugging Face's.

    Raises:
        ValueError: The folder to write is the one that is read, or the model
            lacks tensors, which would be drawn at random.
    """
    out = Path(options.out)
    _check_is_another(options.source, out)
    model = _load_whole(options.source)
    print(model.load_report)
    model.save_pretrained(out)
    print(f"written: {out}")


def _export_model(options) -> None:
    """Writes the graph of a model.

    Raises:
        ValueError: The folder to write is the one that is read, or the file
            has not the name that the format asks for.
    """
    if options.format == "savedmodel":
        check_folder(options.path, "--out")
    path = Path(options.path)
    if options.format == "litert" and path.suffix != ".tflite":
        raise ValueError(
            "`--out` must end in .tflite for `--format litert`. Received: "
            f"{path}."
        )
    _check_is_another(options.source, path)
    model = _load_whole(options.source)
    model.export(path, FORMATS[options.format], verbose=False)
    print(f"written: {path}")


def _check_is_another(source, out) -> None:
    """Refuses to write into the folder that a name stands for."""
    if source.startswith("keras://"):
        folder = Path(source.removeprefix("keras://"))
    else:
        folder = locations.named_folder(source)
    if folder.exists() and out.exists() and folder.samefile(out):
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
        path = locations.find_model(source) / "config.json"
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
