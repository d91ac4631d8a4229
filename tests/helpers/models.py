"""What several tests of models share: drawn folders and NumPy outputs."""

import json

import numpy as np
import safetensors.numpy

from bertbook.model.encoder import BertEncoder
from bertbook.runtime import ops
from tests.reference import drawn


def write_hugging_face(folder, config, prefix="", old_names=False, **more):
    """Writes drawn weights as Hugging Face does, and returns the folder."""
    arrays = drawn.hugging_face_arrays(config, prefix, old_names)
    arrays |= more
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return folder


def load_drawn(tmp_path, config):
    """Returns an encoder with drawn weights, by way of files."""
    return BertEncoder.from_pretrained(write_hugging_face(tmp_path, config))


def write_pretraining(folder, config, **more):
    """Writes drawn weights of a model with both pre-training heads."""
    arrays = drawn.head_arrays(config) | more
    return write_hugging_face(folder, config, "bert.", **arrays)


def to_numpy(outputs):
    """Turns every tensor of a model's outputs into a NumPy array."""
    if isinstance(outputs, dict):
        return {name: to_numpy(value) for name, value in outputs.items()}
    if isinstance(outputs, list | tuple):
        return [to_numpy(value) for value in outputs]
    return ops.convert_to_numpy(outputs)


def largest_difference(first, second):
    """Returns the largest absolute difference of two arrays or lists."""
    pairs = zip(first, second, strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs)
