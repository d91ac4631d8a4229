"""Published folders into the model, and the model into such a folder."""

import json
from pathlib import Path

import numpy as np
from keras import ops
from safetensors.numpy import load_file, save_file

from .bert import Bert, BertForPreTraining
from .tokenizer import BATCH, Tokenizer

# What Keras calls a layer's variables, and what checkpoints call them.
PARTS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight"}
PARTS |= {"bias": "bias", "beta": "bias"}
# The sizes of a model, and what a config.json calls them.
SIZES = {
    "V": "vocab_size",
    "D": "hidden_size",
    "L": "num_hidden_layers",
    "N": "num_attention_heads",
    "F": "intermediate_size",
    "P": "max_position_embeddings",
}
FIXED = {"model_type": "bert", "hidden_act": "gelu", "type_vocab_size": 2}


def block_layers(block):
    """Returns the layers of a block by their published names."""
    attention, feed_forward = block.attention, block.feed_forward
    return {
        "attention.self.query": attention.query,
        "attention.self.key": attention.key,
        "attention.self.value": attention.value,
        "attention.output.dense": attention.output_projection,
        "attention.output.LayerNorm": block.attention_norm,
        "intermediate.dense": feed_forward.expand,
        "output.dense": feed_forward.contract,
        "output.LayerNorm": block.output_norm,
    }


def variables(model):
    """Returns the variables of a model with a head by published names."""
    tables = model.bert.embeddings
    named = {
        "bert.embeddings.word_embeddings": tables.token,
        "bert.embeddings.token_type_embeddings": tables.segment,
        "bert.embeddings.position_embeddings": tables.position,
        "bert.embeddings.LayerNorm": tables.norm,
        "bert.pooler.dense": model.bert.pooler,
    } | model.heads()
    for i, block in enumerate(model.bert.blocks):
        for name, layer in block_layers(block).items():
            named[f"bert.encoder.layer.{i}.{name}"] = layer
    found = {
        f"{name}.{PARTS[variable.name]}": variable
        for name, layer in named.items()
        for variable in layer.variables
    }
    if isinstance(model, BertForPreTraining):
        found["cls.predictions.bias"] = model.bias
    return found


def read_tensors(folder):
    """Returns the arrays of `folder`/model.safetensors by their newest names.

    Older files call a norm's variables gamma and beta; files of an encoder
    alone leave "bert." out.
    """
    tensors = {}
    for name, array in load_file(Path(folder, "model.safetensors")).items():
        name = name.replace(".gamma", ".weight").replace(".beta", ".bias")
        if name.startswith(("embeddings.", "encoder.", "pooler.")):
            name = "bert." + name
        tensors[name] = array
    return tensors


def load(model, folder):
    """Puts the tensors of a published folder into a model with a head.

    Returns two sorted lists of names: the variables of the model that the
    folder does not have, and the tensors that the model does not have.
    """
    if not model.built:
        model({name: np.zeros((1, 2), "int32") for name in BATCH})
    tensors, own = read_tensors(folder), variables(model)
    for name in own.keys() & tensors.keys():
        is_matrix = own[name].name == "kernel"  # stored as (out, in)
        own[name].assign(tensors[name].T if is_matrix else tensors[name])
    return sorted(own.keys() - tensors), sorted(tensors.keys() - own)


def save(model, tokenizer, folder):
    """Writes a model with a head as Hugging Face does: three files.

    The folder then holds config.json, model.safetensors and vocab.txt.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, variable in variables(model).items():
        array = ops.convert_to_numpy(variable.value)
        array = array.T if variable.name == "kernel" else array
        tensors[name] = np.ascontiguousarray(array)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    sizes = {SIZES[letter]: n for letter, n in model.bert.sizes.items()}
    config = {"architectures": [model.architecture], **FIXED, **sizes}
    if hasattr(model, "classifier"):
        config["num_labels"] = model.classifier.units
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    lines = "".join(piece + "\n" for piece in tokenizer.pieces)
    (folder / "vocab.txt").write_text(lines, "utf-8")


def from_folder(folder):
    """Returns the model and the tokenizer of a published folder.

    The tensors that only one of model and folder has are printed.

    Raises:
        ValueError: The folder's model has another activation.
    """
    config = json.loads(Path(folder, "config.json").read_text("utf-8"))
    if config["hidden_act"] != "gelu":
        raise ValueError(f"Not the exact GELU: {config['hidden_act']}.")
    vocabulary = Path(folder, "vocab.txt").read_text("utf-8").rstrip("\n")
    tokenizer = Tokenizer(vocabulary.split("\n"))
    sizes = {letter: config[name] for letter, name in SIZES.items()}
    model = BertForPreTraining(Bert(**sizes))
    missing, unused = load(model, folder)
    if missing or unused:
        print("new:", missing, "not used:", unused)
    return model, tokenizer


def fill_mask(model, tokenizer, text, k=5):
    """Returns the k best pieces for the first [MASK] of a text.

    A list of (piece, probability), the best first.
    """
    batch = tokenizer([text])
    mask = list(batch["input_ids"][0]).index(tokenizer.ids["[MASK]"])
    logits = model(batch)["mlm_logits"][0, mask]  # (V,)
    scores = ops.convert_to_numpy(ops.softmax(logits))
    best = np.argsort(-scores)[:k]
    return [(tokenizer.pieces[i], float(scores[i])) for i in best]
