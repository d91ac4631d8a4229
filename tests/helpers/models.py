"""What several tests of models share: drawn folders and NumPy outputs."""

import json

import numpy as np
import safetensors.numpy

from bertbook.model.encoder import BertEncoder
from bertbook.runtime import keras, ops
from bertbook.weights.names import encoder_names
from tests.reference import drawn

GOOGLE_CONFIG = drawn.CONFIGS["gelu_new"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "fire"]


# What to tell Keras where a step or two are taken: no graph, but for JAX, which
# computes nothing quickly without one.
A_STEP = {"run_eagerly": keras.backend.backend() == "tensorflow"}


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


def write_google(tf, folder, with_adam, **more):
    """Writes drawn weights as a TensorFlow 1 checkpoint of Google's names."""
    folder.mkdir()
    stored = drawn.hugging_face_arrays(GOOGLE_CONFIG)
    values = {"cls/predictions/output_bias": np.zeros(103, "float32")}
    for names in encoder_names(GOOGLE_CONFIG.num_hidden_layers):
        array = stored[names.hugging_face]
        is_kernel = names.bertbook.endswith("kernel")
        name = f"bert/{names.google}"
        values[name] = array.T if is_kernel else array
        if with_adam:
            values[f"{name}/adam_m"] = values[f"{name}/adam_v"] = values[name]
    values |= more
    if with_adam:
        values["global_step"] = np.int64(1)
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session() as session:
        for name, value in values.items():
            tf.compat.v1.get_variable(
                name, initializer=value, use_resource=False
            )
        session.run(tf.compat.v1.global_variables_initializer())
        prefix = str(folder / "bert_model.ckpt")
        tf.compat.v1.train.Saver().save(session, prefix)
    config = {**GOOGLE_CONFIG.to_dict(), "hidden_act": "gelu_new"}
    (folder / "bert_config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
