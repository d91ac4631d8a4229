"""Errata on the block: feed-forward, dropout, norm, and code that shows it."""

import itertools
import math

import numpy as np

from bertbook.book.errata.erratum import SLIP, TRUE, computed, noted
from bertbook.book.forward_pass import (
    draw_weights,
    layer_norm,
    literal_forward_pass,
)
from bertbook.book.references import ENCODER, FORWARD, LAYER, NOTES
from bertbook.config import BertConfig
from bertbook.model.embeddings import BertEmbeddings
from bertbook.model.encoder import EncoderBlock
from bertbook.model.layers import activation
from bertbook.runtime import ops
from bertbook.weights.names import BLOCK_PARTS, encoder_shapes

# The four sentences in which one text compares `fire`.
SENTENCES = (
    "he is going to fire one of his employees",
    "there was a huge fire raging through the forest",
    "i learned how to fire a gun last year",
    "i knew the forest fire was not far off",
)
FIRE = 5  # its place in each, [CLS] counted

NOTED = (
    noted(
        37,
        LAYER,
        "22_block",
        kind=SLIP,
        says="the listing calls tf",
        right="it never imports it: import tensorflow as tf is missing",
    ),
    noted(
        38,
        LAYER,
        "22_block",
        kind=TRUE,
        says="TFBertModel and TFBertTokenizer of transformers",
        right="both are gone from version 5; the last line that has them is "
        "4.57",
    ),
    noted(
        40,
        LAYER,
        "22_block",
        kind=TRUE,
        says="world_embedding is the input, and then the output",
        right="the code is right, but a second name would show that the two "
        "are different vectors",
    ),
)


def _apply(function, values):
    """Returns what a Keras function gives for NumPy values."""
    values = np.asarray(values, "float32")
    return ops.convert_to_numpy(function(ops.convert_to_tensor(values)))


@computed(
    17,
    (ENCODER, FORWARD, NOTES),
    "22_block",
    says="the feed-forward network has max(0, x), which is ReLU",
    right="that is the Transformer of 2017. BERT has GELU, as the lecture "
    "notes say elsewhere: it lets a little of negative numbers through",
    value={"activation": "gelu", "of -1": -0.1587},
    said=("relu", 0.0),
)
def bend_of_bert():
    """Applies the activation of BERT-base to -1."""
    name = BertConfig().hidden_act
    return name, float(_apply(activation(name), [-1.0])[0])


@computed(
    18,
    NOTES,
    "22_block",
    kind=TRUE,
    says="GELU is given with erf alone",
    right="some libraries, KerasHub's BERT among them, compute the tanh form. "
    "The difference is small, and larger than rounding: choose on purpose",
    value={"largest difference": 0.00047},
    said=(0.0,),
)
def two_forms_of_gelu():
    """Compares both forms between -6 and 6."""
    line = np.linspace(-6, 6, 2001)
    exact = 0.5 * line * (1 + np.vectorize(math.erf)(line / math.sqrt(2)))
    return (round(float(np.abs(tanh_form(line) - exact).max()), 5),)


def tanh_form(line):
    """Returns the tanh form of GELU, as the package has it."""
    return _apply(activation("gelu_tanh"), line)


@computed(
    19,
    (ENCODER, NOTES),
    "22_block",
    says="dropout comes after the sublayers",
    right="BERT also drops parts of the sum of the embeddings and of the "
    "attention weights; the Transformer of 2017 the sum as well",
    value={"on the sum": 0.1, "on the weights": 0.1, "after a sublayer": 0.1},
    said=(0.0, 0.0, 0.1),
)
def rates_of_dropout():
    """Reads the rates off the layers of BERT-base."""
    config = BertConfig()
    block = EncoderBlock(config)
    layers = BertEmbeddings(config), block.attention, block
    return tuple(float(layer.dropout.rate) for layer in layers)


@computed(
    20,
    ENCODER,
    "22_block",
    says="a row is normalized with its mean and standard deviation",
    right="then comes a gain and a bias for each of the D numbers, and an "
    "epsilon keeps the divisor above 0",
    value={"parameters of a LayerNorm of BERT-base": 1_536, "epsilon": 1e-12},
    said=(0, 0.0),
)
def parts_of_a_norm():
    """Counts the parameters of one norm."""
    config = BertConfig()
    shapes = encoder_shapes(config)
    ends = ("gamma", "beta")
    norm = [shapes[f"block_0/output_norm/{end}"] for end in ends]
    return sum(map(math.prod, norm)), config.layer_norm_eps


@computed(
    32,
    LAYER,
    "labs/24_what_training_put_in",
    says="fire in the sentences 2 and 4 is closer than in 1 and 2, by meaning",
    right="the sentences 2 and 4 share three words, and untrained layers put "
    "them in the same order. A claim about meaning needs that control, and "
    "the other four pairs",
    value={"untrained layers of 20 with the same order": 19},
    said=(10,),
)
def untrained_order():
    """Compares `fire` after one layer of random weights, with 20 seeds."""
    rows = [["[CLS]", *s.split(), "[SEP]"] for s in SENTENCES]
    words = sorted(set(itertools.chain(*rows)))
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=512,
    )
    count = 0
    for seed in range(20):
        weights, fire = draw_weights(config, seed), []
        for row in rows:
            ids = np.array([words.index(word) for word in row])
            layers, _ = literal_forward_pass(weights, ids, config)
            fire.append(layers[1][FIRE] / np.linalg.norm(layers[1][FIRE]))
        count += bool(fire[1] @ fire[3] > fire[0] @ fire[1])
    return (count,)


@computed(
    35,
    LAYER,
    "22_block",
    says="an encoder is attention and a network of two dense layers",
    right="the objects that its code calls hold more: W^O, dropout, the "
    "residual sums and two LayerNorms. It calls encoder what is one block",
    value={
        "two dense layers give the output": False,
        "with the sum and the norm": True,
    },
    said=(True, False),
)
def dense_layers_alone():
    """Runs a block, and its second half by hand."""
    config = BertConfig.named("tiny", initializer_range=0.2)
    block = EncoderBlock(config)
    hidden = np.random.default_rng(0).normal(size=(1, 4, config.hidden_size))
    hidden = ops.convert_to_tensor(hidden.astype("float32"))
    output = ops.convert_to_numpy(block(hidden))
    first_half = block.attention_norm(hidden + block.attention(hidden))
    dense = block.feed_forward(first_half)  # two dense layers
    second_half = block.output_norm(first_half + dense)
    return tuple(
        bool(np.allclose(ops.convert_to_numpy(half), output, atol=1e-4))
        for half in (dense, second_half)
    )


@computed(
    67,
    NOTES,
    "22_block",
    kind=SLIP,
    says="an encoder has four parts, self-attention and multi-head attention "
    "among them",
    right="multi-head attention is its self-attention. There are two parts, "
    "attention and feed-forward, each with its add & norm",
    value={"add & norms of a block": 2},
    said=(4,),
)
def parts_of_a_block():
    """Counts the norms in the table of names."""
    return (sum(part[0].endswith("norm") for part in BLOCK_PARTS),)


@computed(
    69,
    NOTES,
    "22_block",
    kind=SLIP,
    says="layer norm has an outer f, and adds two more parameters",
    right="a Transformer has no f, sigma belongs to a row, epsilon is "
    "missing, and the two parameters are two vectors of D numbers",
    value={
        "parameters of a LayerNorm of BERT-base": 1_536,
        "rows get mean 0": True,
        "columns get mean 0": False,
    },
    said=(2, True, False),
)
def norm_of_rows():
    """Counts one norm, and normalizes a drawn matrix."""
    rows = np.random.default_rng(0).normal(2, 3, size=(5, 8))
    means = (layer_norm(rows).mean(axis=axis) for axis in (1, 0))
    count, _ = parts_of_a_norm()
    return count, *(bool(np.allclose(mean, 0)) for mean in means)
