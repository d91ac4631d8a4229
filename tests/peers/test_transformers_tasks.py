"""The task models: what we save, transformers opens, and the reverse.

Run by `make test-peers`, in an environment with PyTorch and transformers.
"""

import numpy as np
import pytest

import bertbook as bb
from tests.helpers.models import largest_difference, to_numpy
from tests.reference import drawn

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
CONFIG = drawn.CONFIGS["gelu_new"]
NAMES = {0: "bad", 1: "fair", 2: "good", 3: "best"}
SEVERAL = "multi_label_classification"
# A model, keywords of its head, and what the head then means.
CASES = {
    "one label": (
        "BertForSequenceClassification",
        {"id2label": NAMES},
        "single_label_classification",
    ),
    "two labels without names": (
        "BertForSequenceClassification",
        {"num_labels": 2},
        "single_label_classification",
    ),
    "a number": (
        "BertForSequenceClassification",
        {"num_labels": 1},
        "regression",
    ),
    "several labels": (
        "BertForSequenceClassification",
        {"id2label": NAMES, "problem_type": SEVERAL},
        SEVERAL,
    ),
    "a choice": ("BertForMultipleChoice", {}, None),
    "an answer": ("BertForQuestionAnswering", {}, None),
    "tags": ("BertForTokenClassification", {"id2label": NAMES}, None),
}
pytestmark = pytest.mark.parametrize("case", CASES)


def draw_batch(kind):
    """Draws padded pairs; for a choice `(B, C, S)`, B = 2 and C = 3."""
    first, second = (drawn.draw_batch(CONFIG, seed) for seed in (0, 1))
    if kind != "BertForMultipleChoice":
        return first
    return {name: np.stack([first[name], second[name]]) for name in first}


def their_logits(model, batch):
    """Runs a model of transformers and returns all its logits in a list."""
    tensors = {n: torch.from_numpy(a).long() for n, a in batch.items()}
    with torch.no_grad():
        outputs = model.eval()(**tensors)
    return [array.numpy() for array in outputs.to_tuple()]


def compare(ours, theirs, kind, case):
    """Compares the logits of two models, of real tokens alone."""
    batch = draw_batch(kind)
    found = to_numpy(ours(batch))
    found = list(found.values()) if isinstance(found, dict) else [found]
    wanted = their_logits(theirs, batch)
    assert [a.shape for a in found] == [a.shape for a in wanted]
    if kind in ("BertForQuestionAnswering", "BertForTokenClassification"):
        real = batch["attention_mask"].astype(bool)
        found, wanted = [a[real] for a in found], [a[real] for a in wanted]
    assert min(a.std() for a in wanted) > 0.01  # else all would agree
    difference = largest_difference(found, wanted)
    print(f"{kind}, {case}: {difference:.2e}")
    assert difference <= 1e-5


def test_what_we_save_opens_there(case, tmp_path):
    kind, head, problem = CASES[case]
    ours = getattr(bb, kind)(CONFIG, **head)
    rng = np.random.default_rng(0)
    for weight in ours.trainable_variables:
        is_scale = weight.path.endswith("gamma")
        weight.assign(is_scale + rng.normal(scale=0.05, size=weight.shape))
    ours.save_pretrained(tmp_path)
    theirs, report = getattr(transformers, kind).from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    if problem is not None:
        assert theirs.config.problem_type == problem
    if "id2label" in head:
        assert theirs.config.id2label == NAMES
        assert theirs.config.label2id == {v: k for k, v in NAMES.items()}
    if hasattr(ours, "num_labels"):
        assert theirs.num_labels == ours.num_labels
    compare(ours, theirs, kind, case)


def test_what_they_save_opens_here(case, tmp_path):
    kind, head, problem = CASES[case]
    settings = {k: v for k, v in CONFIG.to_dict().items() if k != "model_type"}
    theirs = getattr(transformers, kind)(
        transformers.BertConfig(**settings, **head, attn_implementation="eager")
    )
    generator = torch.Generator().manual_seed(0)
    for name, parameter in theirs.named_parameters():
        is_scale = name.endswith("LayerNorm.weight")
        torch.nn.init.normal_(parameter, float(is_scale), 0.05, generator)
    theirs.save_pretrained(tmp_path)
    ours = getattr(bb, kind).from_pretrained(tmp_path)
    assert not ours.load_report.drawn
    assert not ours.load_report.skipped
    if problem is not None:
        assert ours.problem_type == problem
    if "id2label" in head:
        assert ours.config.id2label == NAMES
    if hasattr(ours, "num_labels"):
        assert ours.num_labels == theirs.num_labels
    compare(ours, theirs, kind, case)
