"""Our causal model gives what GPT-2 of Hugging Face gives, and the reverse.

Run by `make test-peers`, in an environment with PyTorch and transformers.
"""

import numpy as np
import pytest

from bertbook.decoder.causal_lm import CausalLM
from bertbook.decoder.generate import beam_search, greedy
from tests.helpers.decoders import write_gpt2
from tests.helpers.models import largest_difference, to_numpy
from tests.reference import drawn

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

from tests.reference.make_gpt2 import build, run  # noqa: E402

TOLERANCE = 1e-4
CONFIGS = {
    "tanh": drawn.GPT2,
    "relu": drawn.GPT2.replace(
        hidden_act="relu", num_attention_heads=4, layer_norm_eps=1e-3
    ),
    "erf": drawn.GPT2.replace(hidden_act="gelu", num_hidden_layers=3),
}


def compare(model, peer, batch):
    ours = to_numpy(model(batch, output_hidden_states=True))
    states, logits = run(peer, batch)
    difference = max(
        largest_difference(ours["hidden_states"], states),
        np.abs(ours["logits"] - logits).max(),
    )
    print(f"{difference:.2e}")
    assert difference <= TOLERANCE


@pytest.mark.parametrize("name", CONFIGS)
def test_every_hidden_state_and_the_logits_match(name, tmp_path):
    config = CONFIGS[name]
    model = CausalLM.from_pretrained(write_gpt2(tmp_path, config))
    compare(model, build(config), drawn.draw_gpt2())


def save_theirs(folder, config):
    build(config).save_pretrained(folder)
    return folder


def test_what_they_save_opens_here(tmp_path):
    model = CausalLM.from_pretrained(save_theirs(tmp_path, drawn.GPT2))
    assert not model.load_report.drawn
    compare(model, build(drawn.GPT2), drawn.draw_gpt2())


@pytest.mark.parametrize(
    "options",
    [{}, {"dtype": "float16"}, {"max_shard_bytes": 20_000}],
    ids=["whole", "half", "shards"],
)
def test_what_we_save_opens_there(options, tmp_path):
    folder = write_gpt2(tmp_path / "drawn", drawn.GPT2)
    CausalLM.from_pretrained(folder).save_pretrained(
        tmp_path / "saved", **options
    )
    peer, report = transformers.GPT2LMHeadModel.from_pretrained(
        tmp_path / "saved",
        attn_implementation="eager",
        output_loading_info=True,
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    again = CausalLM.from_pretrained(tmp_path / "saved")
    compare(again, peer.float().eval(), drawn.draw_gpt2())


def sharper(folder):
    """Writes a model whose likeliest token stands out."""
    arrays = {
        name: array * (1 if "ln_" in name else 12)
        for name, array in drawn.gpt2_arrays(drawn.GPT2).items()
    }
    folder = write_gpt2(folder, drawn.GPT2, **arrays)
    model = CausalLM.from_pretrained(folder)
    peer = transformers.GPT2LMHeadModel.from_pretrained(folder)
    return model, peer.float().eval()


def test_greedy_search_writes_the_same(tmp_path):
    model, peer = sharper(tmp_path)
    ids = drawn.draw_gpt2()["input_ids"][:, :4]
    ours = greedy(model, {"input_ids": ids}, 12)
    theirs = peer.generate(
        torch.from_numpy(ids).long(),
        attention_mask=torch.ones(ids.shape, dtype=torch.long),
        max_new_tokens=12,
        do_sample=False,
    )
    theirs = theirs.numpy()[:, 4:]
    assert len(np.unique(ours)) > 3
    np.testing.assert_array_equal(ours[:, : theirs.shape[1]], theirs)


def test_beam_search_finds_the_same_without_an_end(tmp_path):
    """Theirs compares texts that ended in another way; so none ends here."""
    model, peer = sharper(tmp_path)
    ids = drawn.draw_gpt2()["input_ids"][:, :4]
    end = 40  # which the drawn model does not write
    ours = beam_search(model, {"input_ids": ids}, 9, 5, 0.0, end)
    assert not (ours.ids == end).any()
    theirs = peer.generate(
        torch.from_numpy(ids).long(),
        attention_mask=torch.ones(ids.shape, dtype=torch.long),
        max_new_tokens=9,
        do_sample=False,
        eos_token_id=end,
        num_beams=5,
        num_return_sequences=5,
        length_penalty=0.0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    found = theirs.sequences.numpy()[:, 4:].reshape(3, 5, -1)
    np.testing.assert_array_equal(ours.ids, found)
    scores = theirs.sequences_scores.numpy().reshape(3, 5)
    np.testing.assert_allclose(ours.scores, scores, atol=1e-4)
