"""The book's letters, and the symbols of five texts."""

from typing import NamedTuple

from bertbook.book.references import DECODER, ENCODER, FORWARD, LAYER, NOTES

SAME = "the same"
TRANSFORMER, BERT = "Vaswani et al. (2017)", "Devlin et al. (2019)"


class Letter(NamedTuple):
    """A letter for a size, and the field of `BertConfig` that holds it.

    The field is empty where a size belongs to the data and not to a model.
    """

    letter: str
    meaning: str
    field: str = ""


LEGEND = (
    Letter("B", "batch"),
    Letter("S", "key positions", "max_position_embeddings"),
    Letter("T", "query positions"),
    Letter("D", "model width", "hidden_size"),
    Letter("N", "attention heads", "num_attention_heads"),
    Letter("H", "width of one head", "head_size"),
    Letter("F", "feed-forward width", "intermediate_size"),
    Letter("L", "layers", "num_hidden_layers"),
    Letter("V", "vocabulary", "vocab_size"),
    Letter("M", "masked slots"),
    Letter("K", "classes", "id2label"),
    Letter("C", "choices"),
)


class LocalLetter(NamedTuple):
    """A letter for a size that only some rooms or chapters know.

    `places` are modules and packages, without `bertbook.`, and numbers of
    chapters.
    """

    letter: str
    meaning: str
    places: tuple[str, ...]


LOCAL = (
    LocalLetter(
        "E",
        "texts packed into one row",
        ("batches", "model", "pretraining.examples"),
    ),
    LocalLetter("P", "pieces of a text", ("tasks.windows",)),
    LocalLetter("P", "positions", ("pretraining.attention_init",)),
    LocalLetter("P", "tokens of a prompt", ("decoder",)),
    LocalLetter("Q", "questions", ("tasks.metrics", "tasks.word_tasks")),
    LocalLetter(
        "R",
        "rows of a data set, or of what is computed at once",
        (
            "batches",
            "finetuning",
            "pretraining.examples",
            "tasks",
            "translation",
            "41",
        ),
    ),
    LocalLetter("R", "rows of a picture; its columns are C", ("figures",)),
    LocalLetter("W", "windows of a text", ("tasks.spans", "tasks.word_tasks")),
    LocalLetter("W", "words of a text", ("tasks.tags", "book.tagging", "43")),
    LocalLetter("W", "width of a beam", ("decoder",)),
    LocalLetter("X", "texts of a row to choose from", ("decoder.search",)),
    LocalLetter("Y", "texts of a row that were chosen", ("decoder.search",)),
)


class Symbol(NamedTuple):
    """A symbol of a text.

    Attributes:
        symbol: As the texts write it, in plain letters.
        sources: The texts: keys of `references.SOURCES`, or papers.
        meaning: In a few words.
        name: Our letter, or our name of a weight, an input or an output.
        field: The field of `BertConfig`, for sizes.
        shape: In our letters, for tensors; "S*" is the largest S.
    """

    symbol: str
    sources: tuple[str, ...]
    meaning: str
    name: str
    field: str = ""
    shape: str = ""


_LETTERS = {
    "E": ENCODER,
    "F": FORWARD,
    "Y": LAYER,
    "D": DECODER,
    "N": NOTES,
    "v": TRANSFORMER,
    "b": BERT,
}
# Symbol, texts (one letter each, see above), meaning, ours, field.
_SIZES = """
emb_dim | EDN | width of the vectors | D | hidden_size
d_emb_dim | ED | the same, inside formulas | D | hidden_size
d_model | DNv | the same | D | hidden_size
d | F | the same | D | hidden_size
hidden size | YN | the same | D | hidden_size
H | Nb | the same, in the norm's formula and in the paper | D | hidden_size
hidden_dim | E | width inside the feed-forward network | F | intermediate_size
d_F | E | the same | F | intermediate_size
d_ffnn | F | the same | F | intermediate_size
d_ff | v | the same | F | intermediate_size
vocab_size | EDF | pieces of the vocabulary | V | vocab_size
input_length | EDN | tokens of a text, padded | S |
max input length | F | its largest value | S* | max_position_embeddings
N | YN | tokens of a text | S |
target_length | D | tokens of the target, shifted | T |
N | EDv | layers | L | num_hidden_layers
L | Eb | the same | L | num_hidden_layers
n_layers | F | the same | L | num_hidden_layers
h | EDNv | heads | N | num_attention_heads
n_heads | F | the same | N | num_attention_heads
A | b | the same | N | num_attention_heads
number of attention heads | Y | the same | N | num_attention_heads
attention head size | Y | width of one head | H | head_size
d_k | EFYDv | the same, of keys | H | head_size
d_q | F | the same, of queries | H | head_size
d_v | EFDv | the same, of values | H | head_size
K | b | classes of a task | K | id2label
"""
# Symbol, texts, meaning, ours, shape. {l} is the number of a layer.
_TENSORS = """
I | F | ids of a text | input_ids | S
E[i] | EN | token table, by its row | embeddings/token/embeddings | V D
W_T | F | token table | embeddings/token/embeddings | V D
W_P | F | position table | embeddings/position/table | S* D
T | F | token vectors | token vectors | S D
Z | EN | the same | token vectors | S D
w_1 … w_5 | N | the same, of five words | token vectors | S D
P, p_i,j, PE | EN | waves of the positions | embeddings.sinusoids | S D
X, Z_0 | EFN | what goes into the first block | hidden_states[0] | S D
E_1 … E_N | N | the same, in figures | hidden_states[0] | S D
Z_l | F | what layer l gives | hidden_states[l] | S D
T_1 … T_N, o_1 … o_5 | N | what the model gives | sequence_output | S D
W^Q | EFDN | query matrix of a head | block_{l}/attention/query/kernel | D H
W^K | EFDN | key matrix of a head | block_{l}/attention/key/kernel | D H
W^V | EFDN | value matrix of a head | block_{l}/attention/value/kernel | D H
Q, K, V | EFYDN | queries, keys and values | query, key, value | S H
q, k, v | N | one row of each | query, key, value | H
v_token | EN | the value of a token | value | H
v_i, u_j | E | a query and a key | query, key | H
A_h,l; x_11 | FN | weights of a head | attentions[l] | S S
head_i; Z_h,l; z_1 | EFN | what a head gives | context | S H
V_Hello,1 | EN | one row of it | context | H
Concat; Z~_l | EFN | heads side by side | attention.merge_heads | S D
W^O, W_0 | EDN | output matrix | block_{l}/attention/output/kernel | D D
Z-_l | F | after the first add & norm | inside EncoderBlock | S D
W_1, W^ffnn | EFN | first matrix | block_{l}/feed_forward/expand/kernel | D F
b_1, b^ffnn | EFN | first bias | block_{l}/feed_forward/expand/bias | F
W_2, W^out | EFN | second matrix | block_{l}/feed_forward/contract/kernel | F D
b_2, b^out | EFN | second bias | block_{l}/feed_forward/contract/bias | D
Z^ffnn | F | the widened rows | inside FeedForward | S F
Z^out | F | what the network gives | inside FeedForward | S D
g_i | N | gain of a norm | block_{l}/output_norm/gamma | D
b_i | N | bias of a norm | block_{l}/output_norm/beta | D
mu, sigma | N | mean and deviation of a row | inside LayerNormalization | S
W^final | F | matrix of the pooler | pooler/kernel | D D
X | D | source text | input_ids | S
Y | D | target text | ids of the target | T
D | D | decoder's vectors | inside the decoder's block | T D
E | D | what the encoder gives | sequence_output | S D
X | D | what the last block gives | the decoder's output | T D
W_1 | D | output matrix, ours is the token table | the table, turned | D V
E | b | what goes into the first block | hidden_states[0] | S D
C | b | what the model gives for [CLS] | sequence_output[:, 0] | D
T_i | b | what the model gives for token i | sequence_output[:, i] | D
S, E | b | vectors that point at the first and last token | span/kernel | D
W | b | matrix of a classifier, ours turned | classifier/kernel | D K
h_t | N | a state of the encoder | sequence_output | D
s_t-1 | N | a state of the decoder | the decoder's output | D
"""
# Symbol, texts, meaning, what stands for it here.
_OTHERS = """
i | E | place of a token | the row, from 0
j | E | column of a vector | the column, from 0
pos | N | place of a token | the row, from 0
t | N | step of a text that is written | the row, from 0
i | N | pair of columns, 2i and 2i + 1 | columns // 2
i | EDN | number of a head | the second axis, N
h | F | number of a head | the second axis, N
l | F | number of a layer, from 1 | block_{l}, from 0
x | EDN | one row that goes into a part | a row of hidden
Sublayer | EN | attention, or feed-forward | attention, feed_forward
f | N | a function around the norm | none
a_i, h_i | N | a number before the norm, and after it | one of D numbers
R | N | what an earlier block gives | hidden_states[l]
Trm | N | one block, in figures | EncoderBlock
Phi | N | normal distribution function | activation("gelu")
S, A, B | Y | a sentence, and two of its words | a text, and its tokens
<pad> | EN | padding | [PAD]
<SS>, <EOS> | D | start and end of a target | tokens of the vocabulary
"""
# Text, its word, ours.
_WORDS = """
Y | encoder | block, one of L
EN | word | token, a piece of a word
N | sentence embedding | segment embedding
EN | positional encoding | waves, or learned positions in BERT
N | neurons of the feed-forward network, 768 | model width; inside are 3,072
D | target input | ids that go into the decoder, shifted
N | semi-supervised | self-supervised
"""


def sizes() -> tuple[Symbol, ...]:
    """Returns the symbols for sizes."""
    return tuple(
        Symbol(symbol, _texts(letters), meaning, name, field)
        for symbol, letters, meaning, name, field in _cells(_SIZES)
    )


def tensors() -> tuple[Symbol, ...]:
    """Returns the symbols for matrices, vectors and ids."""
    return tuple(
        Symbol(symbol, _texts(letters), meaning, name, shape=shape)
        for symbol, letters, meaning, name, shape in _cells(_TENSORS)
    )


def others() -> tuple[Symbol, ...]:
    """Returns indices, functions and marks."""
    return tuple(
        Symbol(symbol, _texts(letters), meaning, name)
        for symbol, letters, meaning, name in _cells(_OTHERS)
    )


def words() -> tuple[tuple[tuple[str, ...], str, str], ...]:
    """Returns words that the texts use otherwise: texts, their word, ours."""
    return tuple(
        (_texts(letters), published_word, word)
        for letters, published_word, word in _cells(_WORDS)
    )


def shared_letters() -> dict[str, list[Symbol]]:
    """Returns the symbols that stand for different things, in the texts."""
    by_symbol: dict[str, list[Symbol]] = {}
    for entry in (*sizes(), *tensors(), *others()):
        for symbol in entry.symbol.replace(";", ",").split(", "):
            by_symbol.setdefault(symbol, []).append(entry)
    return {
        symbol: entries
        for symbol, entries in by_symbol.items()
        if len({entry.name for entry in entries}) > 1
    }


def other_meanings() -> dict[str, list[Symbol]]:
    """Returns which of our letters mean something else in a text."""
    meanings = {
        entry.letter: [
            symbol
            for symbol in (*sizes(), *tensors(), *others())
            if entry.letter in symbol.symbol.split(", ")
            and symbol.name != entry.letter
        ]
        for entry in LEGEND
    }
    return {letter: symbols for letter, symbols in meanings.items() if symbols}


def shape_of(entry: Symbol, sizes: dict[str, int]) -> tuple[int, ...]:
    """Returns the shape of a tensor for given sizes of the letters."""
    return tuple(sizes[letter] for letter in entry.shape.split())


def _texts(letters: str) -> tuple[str, ...]:
    return tuple(_LETTERS[letter] for letter in letters)


def _cells(table: str) -> list[list[str]]:
    """Cuts a table into cells; "the same" stands for the meaning above it."""
    lines = table.strip().split("\n")
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    meaning = ""
    for row in rows:
        if row[2].startswith(SAME):
            row[2] = row[2].replace(SAME, meaning)
        else:
            meaning = row[2]
    return rows
