"""Errata on vectors, positions and segments."""

import numpy as np

from bertbook.book.errata.erratum import SLIP, TRUE, computed
from bertbook.book.references import ENCODER, LAYER, NOTES
from bertbook.config import BertConfig
from bertbook.model.embeddings import (
    BertEmbeddings,
    LearnedPositions,
    sinusoids,
)
from bertbook.runtime import ops
from bertbook.weights.formats import read_checkpoint
from bertbook.weights.names import count_parameters, encoder_shapes

# The numbers of the six rows that two of the texts print, pads left out.
PRINTED_ROWS = np.array(
    [
        [123.4, 0.32, 94, 32],
        [83, 34, 77, 19],
        [0.2, 50, 33, 30],
        [289, 432.98, 150, 92],
        [80, 46, 23, 32],
        [41, 21, 74, 33],
    ]
)


@computed(
    13,
    (ENCODER, NOTES),
    "13_positions",
    kind=SLIP,
    says="the positions modify a word's vector a little",
    right="a row of waves has the norm of the square root of D/2, many times "
    "that of a fresh token row. So the 2017 paper multiplies token rows by "
    "the square root of D first; BERT adds learned rows, drawn as small as "
    "those of tokens",
    value={
        "norm of a row of waves, width 512": 16.0,
        "width 768": 19.6,
        "of a fresh token row, width 768": 0.49,
    },
)
def norms_of_rows():
    """Measures rows of waves, and drawn rows of the token table."""
    waves = [np.linalg.norm(sinusoids(9, d), axis=1) for d in (512, 768)]
    config = BertConfig(vocab_size=500)
    table = BertEmbeddings(config).token
    table.build((None, None))
    rows = ops.convert_to_numpy(table.embeddings)
    norms = *(w.mean() for w in waves), np.linalg.norm(rows, axis=1).mean()
    return tuple(round(float(norm), 2) for norm in norms)


@computed(
    14,
    ENCODER,
    "13_positions",
    says="the input can be made longer without limit",
    right="the function is defined everywhere; a model is not thereby good at "
    "longer texts. BERT, whose positions are learned, takes no more than 512",
    value={"rows of waves on demand": 10_000, "most tokens of BERT": 512},
    said=(10_000, 10_000),
)
def longest_texts():
    """Asks for many waves, and for more learned positions than there are."""
    limit = BertConfig().max_position_embeddings
    learned = LearnedPositions(limit)
    longest = 0
    for length in (limit, limit + 1, 10_000):
        try:
            learned(np.zeros((1, length, 2), "float32"))
        except ValueError:
            break
        longest = length
    return len(sinusoids(10_000, 8)), longest


@computed(
    15,
    ENCODER,
    "13_positions",
    says="waves have fewer parameters, so the model trains quicker",
    right="the paper reports nearly the same results and hopes that waves "
    "reach longer texts. A learned table is a small part of BERT-base",
    value={"parameters of the table": 393_216, "share of BERT-base": 0.003592},
)
def cost_of_learned_positions():
    """Counts the position table of BERT-base."""
    config = BertConfig()
    table = int(np.prod(encoder_shapes(config)["embeddings/position/table"]))
    return table, table / count_parameters(config)


@computed(
    16,
    ENCODER,
    "13_positions",
    says="positions are linear combinations of each other",
    right="for each distance there is one fixed matrix, a rotation of every "
    "pair of columns, that moves all positions by that distance",
    value={"one matrix moves all 600 positions by 7": True},
)
def one_matrix_for_a_distance():
    """Turns every pair of columns by its angle, and compares."""
    width, distance = 8, 7
    angles = distance / 10_000.0 ** (np.arange(0, width, 2) / width)
    matrix = np.zeros((width, width))
    for pair, angle in enumerate(angles):
        turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = turn
    waves = sinusoids(600 + distance, width)
    return (bool(np.allclose(waves[:600] @ matrix, waves[distance:])),)


@computed(
    31,
    LAYER,
    "labs/24_what_training_put_in",
    kind=TRUE,
    says="the embedding layer gives fire the same vector in each sentence",
    right="because it stands at the same place of the same segment in each. "
    "Elsewhere it has another one",
    value={"same at the same place": True, "same at another place": False},
    said=(True, True),
)
def same_word_twice():
    """Looks one id up in three rows, in the last at another place."""
    layer = BertEmbeddings(BertConfig.named("tiny", vocab_size=30))
    ids = np.array([[1, 9, 8, 7], [2, 9, 5, 4], [9, 3, 5, 4]], "int32")
    rows = ops.convert_to_numpy(layer(ids, np.zeros_like(ids)))
    first, second, elsewhere = rows[0, 1], rows[1, 1], rows[2, 0]
    return (
        bool(np.allclose(first, second, atol=1e-6)),
        bool(np.allclose(first, elsewhere, atol=1e-6)),
    )


@computed(
    54,
    NOTES,
    "13_positions",
    kind=SLIP,
    says="BERT uses the positional encoding and exactly the architecture of "
    "the Transformer's encoder",
    right="its positions are learned, it adds segments and a LayerNorm on the "
    "sum, and it has GELU. (Romero Calvo and Ingham say that the positions "
    "are learned.)",
    value={"parameters of its embeddings beside the tokens": 396_288},
    said=(0,),
)
def what_bert_adds_to_the_tokens():
    """Counts what is trained in the embeddings but for the token table."""
    shapes = encoder_shapes(BertConfig())
    return (
        sum(
            int(np.prod(shape))
            for name, shape in shapes.items()
            if name.startswith("embeddings/") and "token" not in name
        ),
    )


@computed(
    62,
    NOTES,
    "labs/32_adamw",
    kind=SLIP,
    says="the weights of a network range from -1 to 1",
    right="nothing holds them there. The vectors in the same figure are far "
    "outside, and so is a weight of our trained BERT",
    value={"largest in the figure": 432.98, "one of ours is above 1": True},
    said=(1.0, False),
)
def largest_numbers():
    """Finds the largest printed number, and looks at the trained weights."""
    trained = read_checkpoint("mini").arrays.values()
    largest = max(float(np.abs(array).max()) for array in trained)
    return float(PRINTED_ROWS.max()), largest > 1


@computed(
    63,
    NOTES,
    "13_positions",
    kind=SLIP,
    says="pos is the token, i the index in the vector",
    right="pos is the place, and i counts pairs of columns, 2i and 2i + 1. "
    "(Romero Calvo and Ingham have i for the place and j for the column.)",
    value={"i as a pair gives the table": True, "i as a column": False},
    said=(False, True),
)
def what_i_counts():
    """Writes the formula out, with both readings of i."""
    width, place = 6, 5
    table = sinusoids(place + 1, width)[place]
    columns = np.arange(width)
    rows = []
    for i in (columns // 2, columns):
        angles = place / 10_000.0 ** (2 * i / width)
        waves = np.where(columns % 2, np.cos(angles), np.sin(angles))
        rows.append(bool(np.allclose(waves, table)))
    return tuple(rows)


@computed(
    64,
    NOTES,
    "13_positions",
    kind=SLIP,
    says="the figure of the position matrix has no exponents",
    right="the exponents are 0, 0, 2, 2 and so on, over D. Without them the "
    "matrix has two columns, again and again",
    value={"different columns, width 8": 8},
    said=(2,),
)
def different_columns():
    """Counts the columns of the table for six tokens of width 8."""
    return (np.unique(sinusoids(6, 8), axis=1).shape[1],)


@computed(
    65,
    NOTES,
    "13_positions",
    kind=SLIP,
    says="a sentence embedding stands for a whole sentence and its meaning",
    right="here it is a segment embedding: one of two learned vectors, added "
    "to every token of a text (as the notes say in their part on pairs)",
    value={"vectors": 2, "width": 768},
)
def segment_table():
    """Returns the shape of BERT-base's segment table."""
    return encoder_shapes(BertConfig())["embeddings/segment/embeddings"]
