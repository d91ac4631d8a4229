"""Errata on sizes: what a list of matrices omits, and how large BERT is."""

import math

import numpy as np

from bertbook.book.errata.erratum import SLIP, TRUE, computed
from bertbook.book.forward_pass import literal_attention_head, literal_shapes
from bertbook.book.references import FORWARD, LAYER, NOTES
from bertbook.config import SIZES, BertConfig
from bertbook.model.encoder import BertEncoder
from bertbook.weights.names import count_parameters, encoder_shapes


def _count(*ends):
    """Counts the parameters of BERT-base whose names end so."""
    return sum(
        math.prod(shape)
        for name, shape in encoder_shapes(BertConfig()).items()
        if name.endswith(ends)
    )


@computed(
    21,
    FORWARD,
    "labs/24_half_a_page",
    says="after the heads are put together comes the norm",
    right="between them stands a matrix, W^O, with a bias, in each layer",
    value={"weights of W^O": 7_077_888, "biases": 9_216},
    said=(0, 0),
)
def output_projections():
    """Counts W^O in twelve layers."""
    return _count("attention/output/kernel"), _count("attention/output/bias")


@computed(
    22,
    FORWARD,
    "labs/24_half_a_page",
    says="query, key and value have no bias",
    right="each has one, of width D, in each layer",
    value={"biases": 27_648},
    said=(0,),
)
def biases_of_attention():
    """Counts them in twelve layers."""
    parts = ("query", "key", "value")
    return (_count(*(f"attention/{part}/bias" for part in parts)),)


@computed(
    23,
    FORWARD,
    "labs/24_half_a_page",
    says="the input is the sum of token and position",
    right="a segment row is added as well; then come LayerNorm and dropout",
    value={"segment rows": 1_536, "LayerNorm of the sum": 1_536},
    said=(0, 0),
)
def rest_of_the_embeddings():
    """Counts what the sum leaves out."""
    norm = ("embeddings/norm/gamma", "embeddings/norm/beta")
    return _count("segment/embeddings"), _count(*norm)


@computed(
    24,
    FORWARD,
    "labs/24_half_a_page",
    says="LayerNorm has no parameters in the list",
    right="each has a gain and a bias, two norms in each of twelve layers",
    value={"parameters": 36_864},
    said=(0,),
)
def norms_of_the_layers():
    """Counts the gains and biases of the layers."""
    norms = ("attention_norm", "output_norm")
    ends = [f"{norm}/{end}" for norm in norms for end in ("gamma", "beta")]
    return (_count(*ends),)


@computed(
    25,
    FORWARD,
    "labs/24_half_a_page",
    says="a tanh, and then the final softmax",
    right="the pooler has a bias, and before the softmax comes a classifier: "
    "D times K weights, and K biases",
    value={"bias of the pooler": 768, "classifier for two classes": 1_538},
    said=(0, 0),
)
def rest_of_the_head():
    """Counts the bias, and a classifier for K = 2."""
    return _count("pooler/bias"), (BertConfig().hidden_size + 1) * 2


@computed(
    26,
    FORWARD,
    "labs/24_half_a_page",
    says="the input is always 512 long, without mask, dropout or GELU",
    right="any length up to 512 goes, padding is hidden by a mask, and BERT "
    "has dropout and GELU",
    value={"length of a short text": 7, "activation": "gelu"},
    said=(512, "relu"),
)
def short_text():
    """Encodes seven tokens."""
    encoder = BertEncoder(BertConfig.named("tiny", vocab_size=20))
    vectors = encoder({"input_ids": np.ones((1, 7), "int32")})
    length = vectors["sequence_output"].shape[1]
    return length, encoder.config.hidden_act


@computed(
    27,
    FORWARD,
    "labs/24_half_a_page",
    says="the matrices that it lists",
    right="with a vocabulary of 30,522 pieces they come to less than "
    "BERT-base has. The difference is what the entries 21 to 25 count, "
    "without the classifier",
    value={
        "as listed": 102_326_784,
        "BERT-base": 109_482_240,
        "missing": 7_155_456,
    },
)
def what_is_missing():
    """Counts both, and adds up the parts that are missing."""
    config = BertConfig()
    listed = sum(map(math.prod, literal_shapes(config).values()))
    missing = sum(output_projections() + biases_of_attention())
    missing += sum(rest_of_the_embeddings() + norms_of_the_layers())
    missing += rest_of_the_head()[0]
    return listed, count_parameters(config), missing


@computed(
    28,
    FORWARD,
    "labs/24_half_a_page",
    kind=SLIP,
    says="W^V is of the shape d x d_q",
    right="d x d_v, as its own later line has it. Both are 64, so nothing "
    "breaks; with other widths the head's width is that of the values",
    value={"width of a head with d_q = 3 and d_v = 5": 5},
    said=(3,),
)
def width_of_a_head():
    """Computes a head whose values are wider than its queries."""
    hidden, q, v = np.ones((2, 4)), np.ones((4, 3)), np.ones((4, 5))
    return (literal_attention_head(hidden, q, q, v).shape[1],)


def draw_matrix():
    """Returns a square matrix."""
    return np.random.default_rng(0).normal(size=(3, 3))


@computed(
    29,
    FORWARD,
    "labs/24_half_a_page",
    kind=SLIP,
    says="tanh(W Z[0]), the matrix on the left",
    right="everywhere else rows stand on the left: Z[0] W. The other way "
    "around it is the transposed matrix",
    value={"both give the same": False, "with the transposed one": True},
    said=(True, False),
)
def side_of_the_matrix():
    """Multiplies a row and a drawn matrix in both orders."""
    matrix = draw_matrix()
    row = np.arange(3.0)
    products = row @ matrix, row @ matrix.T
    return tuple(
        bool(np.allclose(matrix @ row, product)) for product in products
    )


@computed(
    30,
    LAYER,
    "labs/23_sizes",
    says="the original BERT has 12 encoders with 12 heads each",
    right="that is BERT-base. BERT-large, of the same paper, has more",
    value={"layers of large": 24, "heads of large": 16},
    said=(12, 12),
)
def size_of_large():
    """Reads the published size."""
    large = BertConfig.named("large")
    return large.num_hidden_layers, large.num_attention_heads


@computed(
    55,
    NOTES,
    "labs/23_sizes",
    kind=SLIP,
    says="768 and 1,024 neurons in the feed-forward network",
    right="those are the widths D. Inside are 3,072 and 4,096; with 768 and "
    "1,024 the models would be much smaller than they are",
    value={
        "inside base": 3_072,
        "inside large": 4_096,
        "base with 768 inside": 66_987_264,
        "large with 1,024 inside": 184_073_216,
    },
    said=(768, 1_024, 109_482_240, 335_141_888),
)
def inside_the_feed_forward_network():
    """Reads both sizes, and counts the models with the other ones."""
    configs = [BertConfig.named(name) for name in ("base", "large")]
    narrow = [c.replace(intermediate_size=c.hidden_size) for c in configs]
    return *(c.intermediate_size for c in configs), *map(
        count_parameters, narrow
    )


@computed(
    56,
    NOTES,
    "labs/23_sizes",
    kind=TRUE,
    says="there are two types of BERT",
    right="the paper has two. Smaller sizes followed (Turc et al., 2019), and "
    "multilingual models",
    value={"published sizes that this package names": 6},
    said=(2,),
)
def named_sizes():
    """Counts them."""
    return (len(SIZES),)


@computed(
    76,
    NOTES,
    "labs/23_sizes",
    kind=SLIP,
    says="the width is 768 because 12 heads have 64 each",
    right="768 and 12 are chosen, and 64 follows. With 8 heads the width "
    "would be the same",
    value={"width of a head with 12": 64, "with 8": 96},
    said=(64, 64),
)
def widths_of_a_head():
    """Divides one width by two numbers of heads."""
    heads = (BertConfig(num_attention_heads=n) for n in (12, 8))
    return tuple(config.head_size for config in heads)
