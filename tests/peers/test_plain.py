"""What the plain BERT saves, transformers opens, with the same outputs.

Run by `make test-peers`, in an environment with PyTorch and transformers.
"""

import keras
import numpy as np
import pytest

from bertbook.locations import find_folder
from bertbook.plain import weights
from bertbook.plain.bert import BertForPreTraining
from bertbook.plain.tasks import (
    ChoiceModel,
    SpanModel,
    TagModel,
    TextClassifier,
    choice_batch,
)
from tests.helpers.models import largest_difference, to_numpy

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")
# On top of the encoder of `mini`, and the outputs in their order there.
HEADS = {
    "BertForPreTraining": (BertForPreTraining, ["mlm_logits", "nsp_logits"]),
    "BertForSequenceClassification": (lambda b: TextClassifier(b, 3), None),
    "BertForMultipleChoice": (ChoiceModel, None),
    "BertForQuestionAnswering": (SpanModel, ["start_logits", "end_logits"]),
    "BertForTokenClassification": (lambda bert: TagModel(bert, 4), None),
}
TEXTS = ["The bank was shut.", "So she sat on the [MASK] of the river."]
PAIRS = ["It was a Sunday.", "Why?"]


@pytest.mark.parametrize("name", HEADS)
def test_transformers_opens_what_it_saves(name, tmp_path):
    keras.utils.set_random_seed(1)
    mini, tokenizer = weights.from_folder(find_folder("mini"))
    make, outputs = HEADS[name]
    model = mini if name == "BertForPreTraining" else make(mini.bert)
    if name == "BertForMultipleChoice":
        batch = choice_batch(tokenizer, TEXTS, [PAIRS, PAIRS[::-1]])
    else:
        batch = tokenizer(TEXTS, PAIRS)
    ours = to_numpy(model(batch))
    weights.save(model, tokenizer, tmp_path)
    theirs = getattr(transformers, name).from_pretrained(tmp_path)
    with torch.no_grad():
        inputs = {n: torch.tensor(a).long() for n, a in batch.items()}
        found = theirs.double().eval()(**inputs).to_tuple()
    ours = [ours[output] for output in outputs] if outputs else [ours]
    difference = largest_difference(ours, [f.numpy() for f in found])
    print(f"{name}: {difference:.1e}")
    # Logits over the vocabulary are large sums in float32.
    assert difference < (1e-4 if name == "BertForPreTraining" else 1e-5)


def test_transformers_reads_its_vocabulary(tmp_path):
    mini, tokenizer = weights.from_folder(find_folder("mini"))
    weights.save(mini, tokenizer, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in (*TEXTS, "The café, naïve? 1,000 £"):
        expected = theirs(text)["input_ids"]
        np.testing.assert_array_equal(
            tokenizer([text])["input_ids"][0], expected
        )
