"""What several tests of pre-training data share: small shards, real text."""

import itertools
from functools import cache

import numpy as np

from bertbook.locations import shelf
from bertbook.pretraining.corpus import Shard, prepare, read_shard
from bertbook.pretraining.masking import Pieces
from bertbook.text.tokenizer import Tokenizer

# Special tokens at odd places: an id that is taken for granted shows.
ODD = ["a", "[SEP]", "##a", "b", "[MASK]", "##b", "[PAD]", "c", "[UNK]", "##c"]
ODD += ["[CLS]", *(f"{prefix}{i}" for prefix in ("", "##") for i in range(47))]


@cache
def mini():
    """The tokenizer that ships."""
    return Tokenizer.from_pretrained("mini")


@cache
def mini_pieces():
    """The facts of its vocabulary."""
    return Pieces.of(mini())


@cache
def odd_pieces():
    """The facts of the small vocabulary above."""
    return Pieces.of(Tokenizer(ODD))


def make_shard(documents, ids=None):
    """A shard of documents, each a list of lengths of sentences.

    Without `ids` every token is its own place, so that none is like another.
    """
    lengths = list(itertools.chain.from_iterable(documents))
    tokens = np.arange(sum(lengths)) if ids is None else np.array(ids)
    return Shard(
        tokens=tokens.astype("int32"),
        sentences=np.cumsum([0, *lengths]),
        documents=np.cumsum([0, *map(len, documents)]),
    )


def as_lists(shard):
    """The documents of a shard, as lists of sentences, as lists of ids."""
    sentences = [
        shard.tokens[start:end].tolist()
        for start, end in itertools.pairwise(shard.sentences)
    ]
    return [
        sentences[start:end]
        for start, end in itertools.pairwise(shard.documents)
    ]


def read_all(corpus, part="train"):
    """Every document of a part, as lists; shards in their order."""
    return [
        document
        for path in corpus.shards(part)
        for document in as_lists(read_shard(path))
    ]


def shelf_corpus(folder, **options):
    """The documents that ship; two calls for one folder work once."""
    options = {"held_out": 0.0, **options}
    return prepare(shelf(), mini(), folder, **options)
