"""The vocabularies of a translator, and where a run keeps them.

Differences: none; the paper takes byte pairs, shared by both sides.
"""

from bertbook.seq2seq import TARGET
from bertbook.tokenizer import Tokenizer
from bertbook.translation import columns_of

KEPT = "tokenizer_config.json"  # of a tokenizer, written last


def train_vocabularies(train, config, lowercase, out):
    """Returns the tokenizers of sources and targets, read or trained.

    Args:
        train: The pairs.
        config: A `Seq2SeqConfig`; without `target_vocab_size` one vocabulary
            is trained on both sides.
        lowercase: As in `train_translation`.
        out: Where `keep_vocabularies` put them, if it did.
    """
    sources, targets = columns_of(train)
    if config.target_vocab_size is None:
        lines = [*sources, *targets]
        one = _kept_tokenizer(lines, config.vocab_size, lowercase, out)
        return one, one
    return (
        _kept_tokenizer(sources, config.vocab_size, lowercase, out),
        _kept_tokenizer(
            targets, config.target_vocab_size, lowercase, out / TARGET
        ),
    )


def _kept_tokenizer(lines, vocab_size, lowercase, folder):
    if (folder / KEPT).is_file():
        return Tokenizer.from_pretrained(folder)
    return Tokenizer.train(lines, vocab_size, lowercase)


def keep_vocabularies(model, out):
    """Writes the tokenizers of a model that are not there yet."""
    folders = {out: model.tokenizer}
    if model.target_tokenizer is not model.tokenizer:
        folders[out / TARGET] = model.target_tokenizer
    for folder, tokenizer in folders.items():
        if not (folder / KEPT).is_file():
            tokenizer.save_pretrained(folder)
