"""The model that ships: transformers opens it, and gives the same.

Run by `make test-peers`, in an environment with PyTorch and transformers.
"""

import numpy as np
import pytest

import bertbook as bb
from bertbook.locations import find_folder
from tests.helpers.models import largest_difference, to_numpy

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
TOLERANCE = 1e-4
TEXTS = [
    "The ferry left at noon.",
    "the [MASK] left at [MASK] .",
    "THE FERRY LEFT AT NOON!",
    "He didn't say: “wait” – or did he?",
    "Unaffable, flightless, antidisestablishmentarianism",
    "The café naïve déjà vu, Ångström, São Paulo",
    "Cafe\u0301 with a mark of its own",
    "straße, Łódź, İstanbul, øre",
    "中国漢字 and text在其中",
    "ひらがな カタカナ 한국어",
    "русский Й and ελληνικά",
    "العربية עברית",
    "हिन्दी ไทย",
    "A smile 😀, a thumb 👍🏽, a heart ❤\ufe0f",
    "https://example.org/a_b?c=d&e=f#g mail@example.org",
    "3.14159 x 10^-3 = 0.00314, 1,000,000 and 50%",
    "tabs\tand\nlines\r\nand\u00a0spaces\u2003of every kind",
    "con\u200btrol\u00ad and \u0000 null \ufffd",
    "a" * 120,
    "The bank was shut, so she sat on the bank of the river. " * 6,
]


@pytest.fixture(scope="module")
def folder():
    return find_folder("mini")


@pytest.fixture(scope="module")
def batch():
    return bb.Tokenizer.from_pretrained("mini")(TEXTS, TEXTS[::-1], 128)


def run(model, batch, **options):
    """Runs a model of transformers in float64, so that it adds no error."""
    tensors = {n: torch.from_numpy(a).long() for n, a in batch.items()}
    with torch.no_grad():
        return model.double().eval()(**tensors, **options)


def test_the_tokenizer_gives_the_same_ids(folder):
    peer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    assert len(peer) == len(tokenizer)
    for text, pair in zip(TEXTS, TEXTS[::-1], strict=True):
        ours, theirs = tokenizer.encode(text), peer(text)
        assert ours.input_ids == theirs["input_ids"], text
        ours, theirs = tokenizer.encode(text, pair), peer(text, pair)
        assert ours.input_ids == theirs["input_ids"], text
        assert ours.token_type_ids == theirs["token_type_ids"], text


def test_the_encoder_gives_the_same_hidden_states(folder, batch):
    encoder = bb.BertEncoder.from_pretrained("mini")
    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager"
    )
    ours = to_numpy(encoder(batch, output_hidden_states=True))
    theirs = run(model, batch, output_hidden_states=True)
    real = batch["attention_mask"].astype(bool)
    difference = max(
        largest_difference(
            [state[real] for state in ours["hidden_states"]],
            [state.numpy()[real] for state in theirs.hidden_states],
        ),
        np.abs(ours["pooled_output"] - theirs.pooler_output.numpy()).max(),
    )
    print(f"mini, hidden states: {difference:.2e}")
    assert difference <= TOLERANCE


def test_pretraining_gives_the_same_logits(folder, batch):
    model, report = transformers.AutoModelForPreTraining.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert type(model).__name__ == "BertForPreTraining"
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ours = to_numpy(bb.BertForPreTraining.from_pretrained("mini")(batch))
    theirs = run(model, batch)
    real = batch["attention_mask"].astype(bool)
    found = [ours["mlm_logits"][real], ours["nsp_logits"]]
    wanted = [
        theirs.prediction_logits.numpy()[real],
        theirs.seq_relationship_logits.numpy(),
    ]
    differences = [
        largest_difference([a], [b]) for a, b in zip(found, wanted, strict=True)
    ]
    print("mini, MLM and NSP: {:.2e} {:.2e}".format(*differences))
    assert max(differences) <= TOLERANCE
