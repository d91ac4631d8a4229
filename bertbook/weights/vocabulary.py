"""The tokenizer beside the weights of a model, and whether it is theirs."""

import hashlib

from bertbook.text.tokenizer import Tokenizer
from bertbook.weights.tensors import weights_name


def find_tokenizer(checkpoint):
    """Returns the tokenizer beside the weights, None where there is none.

    Raises:
        ValueError: It is not the one that the weights were saved with.
    """
    if checkpoint.tokenizer is not None:
        tokenizer = Tokenizer(**checkpoint.tokenizer)
    elif checkpoint.folder is not None and _tokenizer_file(checkpoint.folder):
        tokenizer = Tokenizer.from_pretrained(checkpoint.folder)
        check_digest(tokenizer, checkpoint.folder, checkpoint)
    else:
        return None
    check_vocabulary(tokenizer, checkpoint.config.vocab_size)
    return tokenizer


def _tokenizer_file(folder):
    """Returns the file that holds the vocabulary of a folder, or None."""
    paths = (folder / name for name in ("tokenizer.json", "vocab.txt"))
    return next((path for path in paths if path.is_file()), None)


VOCABULARY = "vocabulary"  # the entry of the header; see `digest_entry`


def digest_entry(tokenizer, part=None):
    """Returns what the header of weights says of their vocabulary.

    It is a hash of the pieces, not of a file: other libraries write the same
    vocabulary in other ways.

    Args:
        tokenizer: The `Tokenizer` that the weights belong to.
        part: The name of a further tokenizer of the model.
    """
    pieces = "\n".join(tokenizer.vocabulary)  # no piece holds a line break
    digest = hashlib.sha256(pieces.encode()).hexdigest()
    return {f"{part}_{VOCABULARY}" if part else VOCABULARY: digest}


def check_digest(tokenizer, folder, checkpoint, part=None):
    """Refuses weights that were saved with another vocabulary.

    Files that say nothing of a vocabulary, as those of other libraries, are
    taken.

    Args:
        tokenizer: The `Tokenizer` of a folder.
        folder: The folder.
        checkpoint: What was read of the weights.
        part: As in `digest_entry`.

    Raises:
        ValueError: They do not belong together; both files are named.
    """
    for name, digest in digest_entry(tokenizer, part).items():
        if checkpoint.metadata.get(name, digest) != digest:
            weights = weights_name(checkpoint.folder)
            raise ValueError(
                f"{_tokenizer_file(folder)} must hold the vocabulary that "
                f"{weights} was saved with. Received: another one, of "
                f"{len(tokenizer)} pieces. Where it is meant, move it away, "
                "load the model, and set `model.tokenizer`."
            )


def check_vocabulary(tokenizer, vocab_size, name="vocab_size"):
    """Refuses a tokenizer with more pieces than a model knows.

    Raises:
        ValueError: It has more.
    """
    if len(tokenizer) > vocab_size:
        raise ValueError(
            f"The vocabulary has {len(tokenizer)} pieces, more than "
            f"`{name}`. Received: {vocab_size}."
        )
