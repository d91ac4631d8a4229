"""Errata on pre-training and on fine-tuning."""

import math

import numpy as np

from bertbook.book.errata.erratum import SLIP, TRUE, computed, noted
from bertbook.book.references import NOTES
from bertbook.config import BertConfig
from bertbook.model.bert import (
    BertForMultipleChoice,
    BertForSequenceClassification,
)
from bertbook.pretraining.masking import Masking, Pieces, mask_rows
from bertbook.tasks.spans import best_spans
from bertbook.text.tokenizer import Tokenizer
from bertbook.weights.names import encoder_shapes, head_shapes

NOTED = (
    noted(
        72,
        NOTES,
        "30_masked_words",
        kind=SLIP,
        says="semi-supervised training",
        right="pre-training has no labels at all: self-supervised. "
        "Semi-supervised means few labels and much text without",
    ),
    noted(
        80,
        NOTES,
        "labs/31_with_and_without",
        kind=TRUE,
        says="next-sentence prediction makes BERT better at pairs",
        right="so the paper found. Liu et al. (2019) did not, and later "
        "models leave it out; the lab compares both",
    ),
)


def _tiny_config():
    """Returns a small config for models whose shapes matter alone."""
    return BertConfig.named("tiny", vocab_size=20, num_hidden_layers=1)


@computed(
    60,
    NOTES,
    "40_one_sentence",
    kind=SLIP,
    says="a Transformer cannot classify, and BERT replaces LSTMs fully",
    right="its encoder alone classifies, which is what BERT does. LSTMs are "
    "still in use where a text streams in or a device is small",
    value={"logits of an encoder with a classifier, B x K": "2 x 3"},
)
def logits_of_a_classifier():
    """Classifies two texts with an encoder alone."""
    model = BertForSequenceClassification(_tiny_config(), num_labels=3)
    logits = model({"input_ids": np.ones((2, 5), "int32")})
    return (" x ".join(map(str, logits.shape)),)


@computed(
    70,
    NOTES,
    "30_masked_words",
    says="15% of the words are replaced with [MASK]",
    right="15% of the tokens are chosen. Of these 80% become [MASK], 10% a "
    "random piece, and 10% stay; the loss covers all that were chosen",
    value={"chosen": 0.15, "[MASK]": 0.8, "random": 0.1, "unchanged": 0.1},
    said=(0.15, 1.0, 0.0, 0.0),
)
def shares_of_masking():
    """Masks drawn rows, and counts."""
    pieces = Pieces.of(Tokenizer.from_pretrained("mini"))
    rng = np.random.default_rng(0)
    before = rng.choice(pieces.ordinary, size=(300, 400))
    masked = mask_rows(before, pieces, Masking(), rng)
    rows, slots = np.nonzero(masked["masked_lm_weights"])
    places = rows, masked["masked_lm_positions"][rows, slots]
    after = masked["input_ids"][places]
    is_mask, stays = after == pieces.mask, after == before[places]
    shares = is_mask.mean(), (~is_mask & ~stays).mean(), stays.mean()
    chosen = len(rows) / before.size
    return tuple(round(float(share), 2) for share in (chosen, *shares))


@computed(
    71,
    NOTES,
    "30_masked_words",
    says="the head is a classification layer and the embedding matrix",
    right="a dense layer with GELU, a LayerNorm, the token table, which is "
    "shared, and a bias for every piece",
    value={
        "dense layer": 590_592,
        "LayerNorm": 1_536,
        "bias": 30_522,
        "in all": 622_650,
    },
    said=(590_592, 0, 0, 590_592),
)
def parts_of_the_head():
    """Counts the head of BERT-base by its parts."""
    shapes = head_shapes(BertConfig())
    parts = [
        sum(
            math.prod(shape)
            for name, shape in shapes.items()
            if name.startswith(f"masked_lm/{part}")
        )
        for part in ("dense", "norm", "bias")
    ]
    return *parts, sum(parts)


@computed(
    75,
    NOTES,
    "labs/32_how_mini_was_made",
    says="two sentences, 512 tokens a row, 256 rows a batch",
    right="a row holds two runs of text, whole sentences or not, and nine "
    "steps in ten had rows of 128. (The paper rounds the tokens of a batch to "
    "128,000.)",
    value={"tokens of a batch": 131_072, "mean length of a row": 166.4},
    said=(131_072, 512.0),
)
def tokens_of_a_batch():
    """Multiplies, and averages the lengths over the steps."""
    rows, longest = 256, BertConfig().max_position_embeddings
    return rows * longest, 0.9 * 128 + 0.1 * longest


@computed(
    77,
    NOTES,
    "40_one_sentence",
    says="the [CLS] token gives a probability",
    right="between its vector and a probability stand the pooler with its "
    "tanh, a classifier, and softmax",
    value={"pooler of BERT-base": 590_592, "classifier of two": 1_538},
    said=(0, 0),
)
def between_cls_and_probability():
    """Counts the pooler, and a head of two classes."""
    config = BertConfig()
    shapes = encoder_shapes(config) | head_shapes(config)
    return tuple(
        sum(math.prod(shapes[f"{layer}/{part}"]) for part in ("kernel", "bias"))
        for layer in ("pooler", "next_sentence")
    )


@computed(
    78,
    NOTES,
    "42_questions",
    says="the best start and the best end; the input is token and segment",
    right="the best pair of both with the start not behind the end, and for "
    "SQuAD 2.0 a score for no answer. Positions are part of the input as well",
    value={"start": 3, "end": 4},
    said=(3, 1),
)
def best_legal_span():
    """Takes the best span where the best end is before the best start."""
    start, end = [0.0, 1.0, 0.0, 5.0, 0.0], [0.0, 6.0, 0.0, 2.0, 4.0]
    ((_, first, last),) = best_spans(np.array(start), np.array(end), n_best=1)
    return first, last


@computed(
    79,
    NOTES,
    "41_two_sentences",
    says="SWAG is a task of sentence pairs, like the others",
    right="it is a choice of four: four rows, one score each from one vector "
    "of width D, and softmax over the four",
    value={"logits of two texts": "2 x 4", "kernel, width 128": "128 x 1"},
    said=("2 x 2", "128 x 2"),
)
def scores_of_choices():
    """Scores four choices for each of two texts."""
    model = BertForMultipleChoice(_tiny_config())
    logits = model({"input_ids": np.ones((2, 4, 5), "int32")})
    shapes = logits.shape, model.classifier.kernel.shape
    return tuple(" x ".join(map(str, shape)) for shape in shapes)
