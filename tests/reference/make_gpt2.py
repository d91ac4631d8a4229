"""Stores what Hugging Face's GPT-2 gives on drawn weights.

Run it where torch and transformers are installed:

    python -m tests.reference.make_gpt2

Versions are stored in the file.
"""

import torch
import transformers

from tests.reference import drawn
from tests.reference.make_hugging_face import store


def build(config):
    """Builds a GPT2LMHeadModel with the drawn weights."""
    settings = {k: v for k, v in config.to_dict().items() if k != "model_type"}
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**settings, attn_implementation="eager")
    )
    arrays = drawn.gpt2_arrays(config)
    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"Names differ: {missing}, {unexpected}.")
    model.tie_weights()
    return model.eval()


def run(model, batch):
    """Returns the hidden states and the logits, in float32."""
    tensors = {
        name: torch.from_numpy(batch[name]).long()
        for name in ("input_ids", "attention_mask")
    }
    with torch.no_grad():
        outputs = model(**tensors, output_hidden_states=True)
    states = [state.numpy() for state in outputs.hidden_states]
    return states, outputs.logits.numpy()


if __name__ == "__main__":
    config = drawn.GPT2
    store("gpt2", drawn.gpt2_slices(*run(build(config), drawn.draw_gpt2())))
