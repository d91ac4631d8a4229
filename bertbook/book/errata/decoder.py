"""Errata on the decoder."""

import numpy as np

from bertbook.book.errata.erratum import SLIP, TRUE, computed, noted
from bertbook.book.forward_pass import softmax
from bertbook.book.references import DECODER, NOTES
from bertbook.text.wordpiece import clean, split_words

START, END = "<SS>", "<EOS>"
TARGET = ("Hola", ",", "como", "estás", "?")
SOURCE = ("Hello", ",", "how", "are", "you", "?")
# Scores of the shifted target, row looking at column, as printed.
SCORES = np.array(
    [
        [-29.59, -6.044, -13.48, 29.626, 45.840, -48.69],
        [-15.26, 46.884, -45.50, 21.835, 24.514, -17.68],
        [30.225, -2.567, 4.6751, 10.244, 4.2682, -11.86],
        [-8.656, -13.94, -29.00, 48.459, 22.416, -39.63],
        [-5.156, 48.210, 8.5994, -20.29, -33.36, -17.24],
        [-46.01, 10.281, -39.73, 28.344, 25.826, 20.824],
    ]
)
# What softmax makes of them behind the mask, as printed.
PRINTED_WEIGHTS = np.array(
    [
        [1.0, 0, 0, 0, 0, 0],
        [1.026e-27, 1.0, 0, 0, 0, 0],
        [0.99, 5.73e-15, 8.013e-12, 0, 0, 0],
        [1.56e-25, 7.95e-28, 2.29e-34, 1.12e-39, 0, 0],
        [6.65e-24, 1.0, 6.27e-18, 1.78e-30, 3.75e-36, 0],
        [4.72e-33, 1.32e-8, 2.52e-30, 0.92, 0.07, 5e-4],
    ]
)
CROSS = (0.9, 0.0, 0.1, 0.0, 0.0, 0.0)  # weights of the first row, as printed
# D and V of the 2017 Transformer: Vaswani et al. (2017), sections 3.1 and 5.1.
OUTPUT_MATRIX = (512, 37_000)

NOTED = (
    noted(
        46,
        DECODER,
        "61_translation",
        kind=SLIP,
        says="! and , in the same sentence, estas and estás, a blank before "
        "como",
        right="one spelling; in correct Spanish it is ¿cómo estás?",
    ),
    noted(
        51,
        DECODER,
        "60_decoder",
        says="W_1 and X once more, d_model beside emb_dim",
        right="W_1 is a matrix of the feed-forward network already, X was the "
        "source text, and the two widths are one",
    ),
    noted(
        52,
        DECODER,
        "61_translation",
        says="the problem that the Transformer addresses is translation",
        right="the paper also parses sentences (its section 6.3)",
    ),
)


def masked_weights():
    """Hides what comes later from the printed scores, and takes softmax."""
    visible = np.tri(len(SCORES), dtype=bool)
    return softmax(np.where(visible, SCORES, -np.inf))


def shift_right(tokens):
    """Puts the start token before the target."""
    return START, *tokens


@computed(
    41,
    DECODER,
    "60_decoder",
    kind=SLIP,
    says="como looks at como with the weight 1.12e-39",
    right="with the weight 1; as printed, the row would sum to almost nothing",
    value=1.0,
    said=1.12e-39,
)
def como_at_como():
    """Takes the masked softmax of the printed scores."""
    return float(masked_weights()[3, 3])


@computed(
    42,
    DECODER,
    "60_decoder",
    kind=TRUE,
    says="0.99, the weight of a row on <SS>, and 1.56e-25, another",
    right="the first is 1.0 to every digit that fits: the table cuts digits "
    "off, and does not round",
    value={"on <SS>": 1.0, "from como on <SS>": 1.5675e-25},
    said=(0.99, 1.56e-25),
)
def digits_of_the_decoder():
    """Takes the same two entries of the masked softmax."""
    weights = masked_weights()
    return tuple(float(weights[place]) for place in ((2, 0), (3, 0)))


@computed(
    43,
    DECODER,
    "60_decoder",
    kind=SLIP,
    says="the elements that count are those to its right",
    right="those to its left, and itself: the lower triangle, as the printed "
    "mask has it",
    value={"left or itself": 21, "right": 0},
    said=(0, 15),
)
def sides_that_count():
    """Counts the weights above 0 on both sides of the diagonal."""
    seen = masked_weights() > 0
    return int(np.tril(seen).sum()), int(np.triu(seen, k=1).sum())


@computed(
    44,
    DECODER,
    "60_decoder",
    kind=SLIP,
    says="six target tokens with a blank, and an empty string before them",
    right="five tokens: a blank is none. Before them stands the start token, "
    "which a web page took for markup",
    value={"tokens": 5, "shifted": 6, "first": "<SS>"},
    said=(6, 7, ""),
)
def tokens_of_the_target():
    """Cuts the Spanish sentence into words, and shifts them."""
    words = list(split_words(clean("Hola, como estás?")))
    shifted = shift_right(words)
    return len(words), len(shifted), shifted[0]


@computed(
    45,
    DECODER,
    "60_decoder",
    kind=SLIP,
    says="the input list starts with a comma",
    right="with <SS>, as its own matrix has it: the row that has to give Hola "
    "is that of <SS>",
    value="<SS>",
    said=",",
)
def row_that_gives_hola():
    """Pairs the shifted target with the labels."""
    rows = zip(shift_right(TARGET), (*TARGET, END), strict=True)
    return next(token for token, label in rows if label == "Hola")


@computed(
    47,
    DECODER,
    "60_decoder",
    kind=SLIP,
    says="the second term of the sum is that of ?",
    right="that of the comma; ? is the last term. Both weights are 0, so the "
    "result is the same",
    value={"terms of ?": 1, "sum of the weights": 1.0},
    said=(2, 1.0),
)
def terms_of_the_sum():
    """Names the terms by the columns of the row."""
    return SOURCE.count("?"), float(sum(CROSS))


@computed(
    48,
    DECODER,
    "60_decoder",
    kind=SLIP,
    says="the target is masked before it goes into the decoder",
    right="before it is only shifted; the mask acts on scores, inside the "
    "block. A shift alone would let early rows see later words",
    value={"shifted only, early rows change": True, "masked too": False},
    said=(False, False),
)
def effect_of_a_later_word():
    """Changes the last word, and looks at the first row."""
    words, others, changes = np.eye(6), np.eye(6), []
    others[5] += 1
    for visible in (np.ones((6, 6), bool), np.tri(6, dtype=bool)):
        weights = softmax(np.where(visible, 0.02 * SCORES, -np.inf))
        changed = weights @ others - weights @ words
        changes.append(bool(changed[0].any()))
    return tuple(changes)


@computed(
    49,
    DECODER,
    "60_decoder",
    says="only the first attention of a block needs a mask",
    right="only it needs the causal one. In a batch, the encoder and the "
    "cross attention need one against padding. And a row that may see "
    "nothing gives no numbers if hidden scores are minus infinity",
    value={"weight of two visible pads": 0.5, "a hidden row is NaN": True},
    said=(0.0, False),
)
def other_masks():
    """Looks at two words and two pads, and at nothing."""
    scores = np.zeros((1, 4))
    with np.errstate(invalid="ignore"):
        nothing = softmax(np.full((1, 4), -np.inf))
    return float(softmax(scores)[0, 2:].sum()), bool(np.isnan(nothing).all())


@computed(
    50,
    DECODER,
    "61_translation",
    says="a matrix of its own makes the scores; the largest is the next word",
    right="the paper shares the token table, and searches with a beam. And "
    "a loop that waits for the end token needs a longest length as well",
    value={"parameters that sharing saves, 37,000 pieces": 18_944_000},
    said=(0,),
)
def saved_by_sharing():
    """Counts a matrix of width 512 for the paper's shared vocabulary."""
    width, pieces = OUTPUT_MATRIX
    return (width * pieces,)


@computed(
    59,
    NOTES,
    "60_decoder",
    kind=SLIP,
    says="the decoder gives the words shifted right as a prediction",
    right="its input is shifted right. What it predicts is the next word",
    value={"labels are the input, one further": True, "the input": False},
    said=(False, True),
)
def labels_of_the_decoder():
    """Compares the labels with the shifted input."""
    labels, inputs = (*TARGET, END), shift_right(TARGET)
    return labels[:-1] == inputs[1:], labels == inputs
