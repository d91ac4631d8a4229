"""What a model's Keras config holds beside its sizes: tokenizer, quantization.

Keras makes `.keras` files, copies, clones and pickles of a model from its
config, so that what is in the config is in all of them.
"""

import json
import tempfile
from pathlib import Path

from bertbook.checks import check_text
from bertbook.runtime import keras
from bertbook.text.tokenizer import Tokenizer
from bertbook.weights.matrices import (
    AS_FLOATS,
    SCALED,
    collecting_little,
    layer_names,
    matrix_layers,
)

# The files that say all about a tokenizer, and are read without the others.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def tokenizer_to_config(tokenizer):
    """Returns a tokenizer as JSON values, None for none.

    Args:
        tokenizer: A `Tokenizer`, or None.
    """
    if tokenizer is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        files = {
            name: (Path(folder) / name).read_text(encoding="utf-8")
            for name in TOKENIZER_FILES
        }
    return {"engine": tokenizer.engine, "files": files}


def tokenizer_from_config(values):
    """Returns the tokenizer that `tokenizer_to_config` described.

    Args:
        values: What it returned; None for no tokenizer.

    Raises:
        ValueError: They do not describe a tokenizer.
    """
    if values is None:
        return None
    if not isinstance(values, dict) or not isinstance(
        values.get("files"), dict
    ):
        raise ValueError(
            "`tokenizer` of a Keras config must be a dict of `engine` and "
            f"`files`. Received: {type(values).__name__}."
        )
    with tempfile.TemporaryDirectory() as folder:
        for name in TOKENIZER_FILES:
            text = values["files"].get(name)
            if text is not None:
                check_text(text, name)
                (Path(folder) / name).write_text(text, encoding="utf-8")
        return Tokenizer.from_pretrained(folder, engine=values.get("engine"))


def quantization_to_config(model):
    """Returns how the layers of a model are quantized, as JSON values.

    Args:
        model: A Keras model.

    Returns:
        A dict by the name of a layer: its mode and, where there is one, Keras'
        config of it. A file gives back what this returns.

    Raises:
        ValueError: A layer is quantized in a way that Keras does not read
            again, or has adapters too, which Keras would round.
    """
    if not any(layer.quantization_mode for layer in matrix_layers(model)):
        return {}
    for layer in matrix_layers(model):
        if layer.quantization_mode not in (*AS_FLOATS, *SCALED):
            raise ValueError(
                'A copy or a file keeps "int8", "int4" and "float8". Received: '
                f"{layer.quantization_mode!r} in {layer.path}."
            )
        if layer.quantization_mode and layer.lora_enabled:
            raise ValueError(
                "`model` must have no adapters beside quantized matrices, into "
                "which a copy would round them: `merge_lora` before you "
                f"quantize. Received: both in {layer.path}."
            )
    settings = {
        name: {
            "mode": layer.quantization_mode,
            "config": keras.saving.serialize_keras_object(
                layer.quantization_config
            ),
        }
        for name, layer in layer_names(model).items()
        if layer.quantization_mode is not None
    }
    return json.loads(json.dumps(settings))  # tuples become lists


def quantize_by_config(model, settings):
    """Quantizes the layers of a new model as `quantization_to_config` says.

    Their values come later, from the file of the weights.

    Raises:
        ValueError: A layer is named that the model does not have.
    """
    if not settings:
        return
    layers = layer_names(model)
    unknown = [name for name in settings if name not in layers]
    if unknown:
        raise ValueError(
            "`quantization` of a Keras config must name layers of the model. "
            f"Received: {', '.join(unknown)}."
        )
    with collecting_little():
        for name, values in settings.items():
            config = keras.saving.deserialize_keras_object(values["config"])
            layers[name].quantize(values["mode"], config=config)
