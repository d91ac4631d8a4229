"""Errata on tokens, ids, padding and masks."""

import numpy as np

from bertbook.book.errata.erratum import SLIP, computed
from bertbook.book.forward_pass import softmax
from bertbook.book.references import ENCODER, FORWARD, LAYER, NOTES
from bertbook.config import BertConfig
from bertbook.model.encoder import BertEncoder
from bertbook.runtime import ops
from bertbook.text import wordpiece
from bertbook.text.tokenizer import Tokenizer

SENTENCE = "Hello, how are you?"
IDS = (34, 90, 15, 684, 55, 193)  # Two of the texts print these six ids.
# The same six in the vocabulary that was published with BERT, uncased.
PUBLISHED_IDS = (7592, 1010, 2129, 2024, 2017, 1029)
# The two parts of the paper's second pair, as the lecture notes have them.
PAIR = "the man [MASK] to the store", "penguin [MASK] are flightless birds"
MOVED = 1e-3  # a vector that changes by more does so not by rounding


def untrained_encoder():
    """Returns a small BERT with random weights, large enough to matter."""
    sizes = {"vocab_size": 50, "num_hidden_layers": 1}
    return BertEncoder(BertConfig.named("tiny", **sizes, initializer_range=0.2))


def _last_vectors(encoder, input_ids, **batch):
    """Returns what an encoder gives for one row of ids, `(S, D)`."""
    batch = {"input_ids": input_ids, **batch}
    rows = {name: np.array([row], "int32") for name, row in batch.items()}
    return ops.convert_to_numpy(encoder(rows)["sequence_output"])[0]


def _differ(a, b):
    """Tells whether two arrays differ by more than rounding."""
    return bool(np.abs(a - b).max() > MOVED)


@computed(
    8,
    (ENCODER, NOTES),
    "13_positions",
    says="pads stand at the left and have the id 5",
    right="BERT pads at the right, with [PAD]. Its positions are learned, so "
    "pads at the left give every real token another vector, even where they "
    "are hidden; naming the positions repairs it",
    value={
        "id of [PAD]": 0,
        "left pads move the others": True,
        "with their positions named": False,
    },
    said=(5, False, False),
)
def pads_at_the_left():
    """Puts three hidden pads before six tokens."""
    encoder, pad = untrained_encoder(), BertConfig().pad_token_id
    alone = _last_vectors(encoder, range(10, 16))
    ids = [pad] * 3 + list(range(10, 16))
    mask, places = [0] * 3 + [1] * 6, [0] * 3 + list(range(6))
    moved = _last_vectors(encoder, ids, attention_mask=mask)[3:]
    named = _last_vectors(
        encoder, ids, attention_mask=mask, position_ids=places
    )[3:]
    return pad, _differ(moved, alone), _differ(named, alone)


@computed(
    9,
    (ENCODER, NOTES),
    "10_tokens",
    says="the ids 34, 90, 15, 684, 55 and 193",
    right="made up to explain. An id is a place in one vocabulary. In that of "
    "bert-base-uncased these places are unused, and the tokens are "
    f"{' '.join(map(str, PUBLISHED_IDS))}; in ours they are others again",
    value={"of the six, the same in our vocabulary": 0},
    said=(6,),
)
def ids_of_our_vocabulary():
    """Counts which of the ids name the same token in our vocabulary."""
    tokenizer = Tokenizer.from_pretrained("mini")
    words = ["hello", ",", "how", "are", "you", "?"]
    known = [tokenizer.vocabulary[i] for i in IDS]
    pairs = zip(known, words, strict=True)
    return (sum(token == word for token, word in pairs),)


@computed(
    10,
    NOTES,
    "12_vectors",
    says="the rows of pads are drawn as zeros",
    right="a pad has a row like any other token, and the mask hides it. Zeros "
    "alone would not: their score is 0, and softmax gives 0 a weight",
    value={"weight of three zero rows beside six with the score 1": 0.1553},
    said=(0.0,),
)
def weight_of_zero_rows():
    """Attends to three rows of zeros and six that match the query."""
    query = np.array([0.6, 0.8])
    keys = np.concatenate([np.zeros((3, 2)), np.tile(query, (6, 1))])
    return (float(softmax(keys @ query)[:3].sum()),)


@computed(
    11,
    ENCODER,
    "20_attention",
    says="the encoder's attention does not use a mask",
    right="no mask against the future, but one against padding: without it, "
    "pads change the vectors of the real tokens",
    value={"pads change them unmasked": True, "masked": False},
    said=(False, False),
)
def padding_needs_a_mask():
    """Appends three pads to six tokens, visible and hidden."""
    encoder = untrained_encoder()
    alone = _last_vectors(encoder, range(10, 16))
    ids = [*range(10, 16), 0, 0, 0]
    visible = _last_vectors(encoder, ids)[:6]
    hidden = _last_vectors(encoder, ids, attention_mask=[1] * 6 + [0] * 3)[:6]
    return _differ(visible, alone), _differ(hidden, alone)


@computed(
    12,
    (ENCODER, FORWARD),
    "10_tokens",
    says="tokens are whole words, six for the greeting",
    right="BERT takes word pieces, in lower case if it is uncased, between "
    "[CLS] and [SEP]. These words are common, so each is one piece; "
    "flightless is cut",
    value={"tokens of the greeting": 8, "pieces of flightless": 2},
    said=(6, 1),
)
def tokens_of_the_greeting():
    """Counts tokens with the vocabulary that ships."""
    tokenizer = Tokenizer.from_pretrained("mini")
    (pieces,) = tokenizer.encode_pieces(["flightless"])
    return len(tokenizer.encode(SENTENCE)), len(pieces)


@computed(
    39,
    LAYER,
    "23_encoder",
    says="the attention mask is a list of 0.0, eleven or four of them",
    right="in that inner layer a mask is added to the scores, and 0 hides "
    "nothing. In the public interface 1 means see, 0 means hide. The lengths "
    "are those of these sentences",
    value={
        "adding zeros changes the weights": False,
        "a mask of zeros changes a vector": True,
    },
    said=(False, False),
)
def masks_of_zeros():
    """Adds zeros to scores, and hides all but one token with zeros."""
    scores = np.array([[2.0, 1.0, 0.5, 0.0]])
    added = _differ(softmax(scores + np.zeros(4)), softmax(scores))
    encoder = untrained_encoder()
    everything = _last_vectors(encoder, range(4), attention_mask=[1, 1, 1, 1])
    first_only = _last_vectors(encoder, range(4), attention_mask=[1, 0, 0, 0])
    return added, _differ(first_only[0], everything[0])


@computed(
    73,
    NOTES,
    "10_tokens",
    says="playing becomes play and ##ing",
    right="so it is with a toy vocabulary. In bert-base-uncased, and in ours, "
    "playing is frequent enough to be one piece",
    value="playing",
    said="play ##ing",
)
def pieces_of_playing():
    """Tokenizes the word with the vocabulary that ships."""
    encoding = Tokenizer.from_pretrained("mini").encode("playing")
    return " ".join(encoding.tokens[1:-1])


@computed(
    74,
    NOTES,
    "31_next_sentence",
    kind=SLIP,
    says="flightless is one token of the second example",
    right="it is flight ##less, as the paper prints it and as "
    "bert-base-uncased and our vocabulary cut it",
    value={"tokens of the row": 15},
    said=(14,),
)
def length_of_the_second_pair():
    """Counts the pieces of the pair, and its three special tokens."""
    known = {"[MASK]", "the", "man", "to", "store", "penguin", "are", "birds"}
    known |= {"flight", "##less"}
    words = " ".join(PAIR).split()
    pieces = [wordpiece.match_longest(word, known) for word in words]
    return (len(["[CLS]", "[SEP]", "[SEP]"]) + sum(map(len, pieces)),)
