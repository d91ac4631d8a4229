"""Errata on attention."""

import numpy as np

from bertbook.book.errata.erratum import SLIP, TRUE, computed
from bertbook.book.forward_pass import literal_shapes, softmax
from bertbook.book.references import ENCODER, LAYER, NOTES
from bertbook.config import BertConfig
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.vocabulary import SPECIAL_TOKENS

TOKENS = ("Hello", ",", "how", "are", "you", "?")
# Scores of these six tokens, and their softmax, as printed.
SCORES = np.array(
    [
        [78.49, 43.29, 1.2, 41.74, 91.43, 74.47],
        [95.84, 28.78, 57.13, 68.20, -60.94, 26.85],
        [-95.69, -52.16, 17.00, 45.71, 48.49, 64.35],
        [-69.92, 85.16, 94.94, 91.04, -92.83, 77.49],
        [65.85, 55.85, 62.54, -97.46, 76.38, 13.20],
        [-30.05, -4.52, 76.02, 42.35, 15.29, 63.61],
    ]
)
PRINTED = np.array(
    [
        [72.40e-06, 1.23e-21, 6.51e-40, 2.62e-22, 9.99e-01, 4.30e-08],
        [1.00e00, 7.51e-30, 1.54e-17, 9.91e-13, 8.15e-69, 1.09e-30],
        [3.12e-70, 2.51e-51, 2.72e-21, 8.03e-09, 1.29e-07, 9.99e-01],
        [2.47e-72, 5.54e-05, 9.80e-01, 1.98e-02, 2.77e-82, 2.58e-08],
        [2.67e-05, 1.21e-09, 9.75e-07, 3.17e-76, 9.99e-01, 3.64e-28],
        [8.59e-47, 1.05e-35, 9.99e-01, 2.38e-15, 4.21e-27, 4.07e-06],
    ]
)
ROW = (0, 0, 0, 0, 1, 0)  # weights of Hello, in an example
STATES = ((2, 3), (4, 5))  # another text, of decoder and encoder


def draw(*shape, seed=0):
    """Returns numbers with mean 0 and variance 1."""
    return np.random.default_rng(seed).normal(size=shape)


@computed(
    1,
    ENCODER,
    "20_attention",
    kind=SLIP,
    says="Hello looks at Hello with the weight 72.40e-06",
    right="without the 7, a slip that makes it thirty times too large",
    value=2.400e-06,
    said=72.40e-06,
)
def hello_at_hello():
    """Takes the softmax of the printed scores."""
    return float(softmax(SCORES)[0, 0])


@computed(
    2,
    ENCODER,
    "20_attention",
    kind=SLIP,
    says="a column of seven ones shows the sums of the rows",
    right="six rows have six sums",
    value={"row sums": 6},
    said=(7,),
)
def sums_of_rows():
    """Counts the rows of the softmax whose sum is 1."""
    return (int(np.isclose(softmax(SCORES).sum(axis=1), 1).sum()),)


@computed(
    3,
    ENCODER,
    "20_attention",
    kind=TRUE,
    says="0.9999976 appears as 9.99e-01, among numbers that look rounded",
    right="the digits are cut off after the third. Two entries differ: the "
    "slip above, and the one 1.00, which is rounded",
    value={"entries that are cut off": 34, "that are rounded": 18},
)
def digits_cut_off():
    """Cuts and rounds the recomputed weights, and counts what agrees."""
    weights = softmax(SCORES)
    third_digit = np.floor(np.log10(weights)) - 2
    unit = 10.0**third_digit
    agree = [
        np.isclose(shorten(weights / unit) * unit, PRINTED, rtol=1e-6, atol=0)
        for shorten in (np.floor, np.round)
    ]
    return tuple(int(same.sum()) for same in agree)


@computed(
    4,
    ENCODER,
    "labs/20_root_of_width",
    says="scores up to 97, after the division by the square root of the width",
    right="queries and keys of variance 1 give scores with a spread of about "
    "1. The table shows what the division avoids: softmax as a switch",
    value={
        "largest size of a printed score": 97.46,
        "weights that are exactly 0 in float32": 7,
        "spread of drawn scores": 1.0,
    },
)
def spread_of_scores():
    """Looks at the printed scores, and draws some of width 64."""
    single = softmax(SCORES.astype("float32"))
    drawn = draw(500, 64) @ draw(500, 64, seed=1).T / np.sqrt(64)
    size = float(np.abs(SCORES).max())
    return size, int((single == 0).sum()), round(float(drawn.std()), 1)


@computed(
    5,
    (ENCODER, NOTES),
    "20_attention",
    kind=SLIP,
    says="the row [0,0,0,0,1,0] gives the 4th token, you",
    right="the 1 stands in the fifth place, at index 4",
    value={"place of you": 5},
    said=(4,),
)
def place_of_you():
    """Finds the 1, and checks that it stands above the token."""
    place = ROW.index(1) + 1
    return (place if TOKENS[place - 1] == "you" else 0,)


@computed(
    6,
    ENCODER,
    "20_attention",
    kind=SLIP,
    says="v and u are the two projections, then u and v",
    right="v_i is the query side and u_j the key side. The other way around, "
    "the table of scores is transposed",
    value={"u_i times v_j gives the scores": False, "transposed": True},
    said=(True, False),
)
def swapped_letters():
    """Multiplies drawn queries and keys in both orders."""
    v, u = draw(6, 4), draw(6, 4, seed=1)
    scores, swapped = v @ u.T, u @ v.T
    return bool(np.allclose(swapped, scores)), bool(
        np.allclose(swapped, scores.T)
    )


@computed(
    7,
    ENCODER,
    "20_attention",
    kind=SLIP,
    says="tokens are projected through K_i and Q_i, which define the relation",
    right="the learned matrices are W^K, W^Q and W^V. Q_i, K_i and V_i are "
    "their results, and have a row for each token",
    value={"shape of W^Q": "768 x 64", "of Q for six tokens": "6 x 64"},
)
def shapes_of_a_projection():
    """Reads one shape, and computes the other."""
    width, head = literal_shapes(BertConfig())["W_Q[0, 0]"]
    queries = np.zeros((len(TOKENS), width)) @ np.zeros((width, head))
    return f"{width} x {head}", " x ".join(map(str, queries.shape))


@computed(
    33,
    LAYER,
    "labs/21_attention_is_not_explanation",
    says="attention is the degree to which B helps to explain A",
    right="weights are shares of a mix, and what is mixed counts as well: a "
    "token with the largest weight can add nothing. Whether weights explain "
    "is disputed (Jain and Wallace, 2019; Wiegreffe and Pinter, 2019). And "
    "the charts do not say which layer and head they show",
    value={"its weight": 0.6, "its part of the result": 0.0},
    said=(0.6, 0.6),
)
def weight_without_effect():
    """Gives the token with the largest weight a value of zeros."""
    weights = softmax(np.log([0.6, 0.3, 0.1]))
    parts = weights[:, None] * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    sizes = np.abs(parts).sum(axis=1)
    most = weights.argmax()
    return float(weights[most]), float(sizes[most] / sizes.sum())


@computed(
    34,
    LAYER,
    "20_attention",
    kind=SLIP,
    says="hello world has two words, and so a 2 x 2 matrix",
    right="the printed matrix is 4 x 4: [CLS] and [SEP] take part, and the "
    "two words are its middle rows",
    value={"tokens": 4},
    said=(2,),
)
def tokens_of_hello_world():
    """Tokenizes the two words with a vocabulary that has both."""
    tokenizer = Tokenizer([*SPECIAL_TOKENS, "hello", "world"])
    return (len(tokenizer.encode("hello world")),)


@computed(
    36,
    LAYER,
    "labs/20_root_of_width",
    kind=TRUE,
    says="scaling is there to avoid very large scores",
    right="yes, and this is why: the variance of a dot product grows with the "
    "width, softmax becomes a switch, and its gradient vanishes",
    value={
        "mean largest of 16 weights, width 512, unscaled": 0.95,
        "scaled": 0.25,
    },
)
def saturated_softmax():
    """Takes the softmax of drawn scores of width 512, plain and scaled."""
    scores = draw(400, 512) @ draw(16, 512, seed=1).T
    weights = softmax(scores), softmax(scores / np.sqrt(512))
    return tuple(round(float(w.max(axis=1).mean()), 2) for w in weights)


@computed(
    66,
    NOTES,
    "20_attention",
    kind=SLIP,
    says="the query is the encoder's state, the key the decoder's",
    right="the decoder looks, so its state is the query, and each state of "
    "the encoder is a key. A dot product is the same both ways, so 23 is right",
    value={"query times key": 23, "key times query": 23},
)
def both_orders():
    """Multiplies the two vectors of the example in both orders."""
    decoder, encoder = np.array(STATES)
    return int(decoder @ encoder), int(encoder @ decoder)


@computed(
    68,
    NOTES,
    "21_several_heads",
    kind=SLIP,
    says="multi-head attention means attending to several words",
    right="one head attends to every word. Several heads are several "
    "weightings of the same words",
    value={"words of six that one head attends to": 6},
    said=(1,),
)
def words_of_one_head():
    """Counts the weights above 0 in each row of one drawn head."""
    weights = softmax(draw(6, 64) @ draw(6, 64, seed=1).T / np.sqrt(64))
    return (int((weights > 0).sum(axis=1).min()),)
