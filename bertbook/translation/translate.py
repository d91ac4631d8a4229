"""`translate` and `score`: raw texts to translations, and their BLEU.

Differences: a text in capitals is translated as if it were not. The search and
its two numbers are those of Vaswani et al. (2017), section 6.1.
"""

import numpy as np

from bertbook.checks import check_column
from bertbook.decoder.generate import generate
from bertbook.decoder.seq2seq import Seq2SeqTransformer
from bertbook.translation.bitext import draw_batches, encode_pairs
from bertbook.translation.capitals import lower_capitals
from bertbook.translation.metrics import check_scoring, score_translations

TOKENS = 4_096  # computed at a time
LONGEST_SHOWN = 40  # characters of a text in a message


def translate(model, texts, max_length=None, search="beams", **options):
    """Translates texts, each as one sentence.

    A text in capitals only is read as `lower_capitals` spells it, and its
    translation is put in capitals.

    Args:
        model: A `Seq2SeqTransformer` with its tokenizers, or the name or
            folder of one.
        texts: A list of raw texts.
        max_length: Most tokens of a translation; None for as many as there
            are positions. What has not ended then stays as it is.
        search: "beams", "greedy" or "sample".
        **options: Further keywords of `generate`, for example `batch_size`,
            `beam_width` or `length_penalty`.

    Returns:
        A list of translations.

    Raises:
        FileNotFoundError: There is no such model.
        ValueError: A text is too long or empty, or holds nothing that the
            vocabulary has, such as an emoji alone; or an option is out of
            range.

    >>> import bertbook as bb
    >>> bb.translate("en-es", ["Where is the library?"])
    ['¿Dónde está la biblioteca?']
    """
    model = _loaded(model)
    texts = check_column(texts, "texts")
    _check_known(texts, model.tokenizer)
    return _translate(model, texts, max_length, search, **options)


def score(model, data, max_length=None, search="beams", **options):
    """Translates the sources of a set, and compares with its targets.

    Args:
        model: A `Seq2SeqTransformer` with its tokenizers, or the name or
            folder of one.
        data: A dict of the columns `source` and `target`.
        max_length: Most tokens of a translation; None for as many as there
            are positions.
        search: "beams", "greedy" or "sample".
        **options: Further keywords of `generate`, for example `batch_size`,
            `beam_width` or `length_penalty`.

    Returns:
        What `score_translations` gives: `bleu`, `chrf` and `signatures`.

    Raises:
        KeyError: A column is missing.
        ImportError: sacrebleu is not installed.
        ValueError: The columns differ in length, a text is too long or empty,
            or an option is out of range.
    """
    model = _loaded(model)
    sources, targets = columns_of(data)
    check_scoring(sources, targets)
    translations = _translate(model, sources, max_length, search, **options)
    return score_translations(translations, targets)


def _translate(model, texts, max_length, search, **options):
    """Returns translations, of texts in capitals in capitals."""
    if max_length is None:
        max_length = model.config.max_position_embeddings
    in_capitals = [False] * len(texts)
    if model.tokenizer is not None:  # what `generate` refuses
        texts, in_capitals = lower_capitals(texts, model.tokenizer)
    written = generate(model, texts, max_length, search, **options)
    return [
        text.upper() if is_upper else text
        for text, is_upper in zip(written, in_capitals, strict=True)
    ]


def _check_known(texts, tokenizer):
    """Refuses a text of which a vocabulary has nothing.

    A model would write something fluent for it. A text without a piece is left
    to `generate`.

    Raises:
        ValueError: There is one.
    """
    if tokenizer is None or not texts:  # what `generate` refuses
        return
    for number, row in enumerate(tokenizer.encode_pieces(texts)):
        if row and set(row) == {tokenizer.unk_token_id}:
            raise ValueError(
                "A source must hold something that the vocabulary has. "
                f"Received: {texts[number][:LONGEST_SHOWN]!r} in row {number}."
            )


def columns_of(data):
    """Returns the sources and the targets of a set.

    Raises:
        KeyError: A column is missing.
        ValueError: `data` has no columns.
    """
    if not hasattr(data, "keys"):
        raise ValueError(
            "A set of translations must be a dict of columns. Received: "
            f"{type(data).__name__}."
        )
    for name in ("source", "target"):
        if name not in data:
            raise KeyError(
                "A set of translations must have the columns `source` and "
                f"`target`. Received: {', '.join(map(str, data))}."
            )
    return data["source"], data["target"]


def take_pairs(data, rows):
    """Returns some pairs of a set, by their numbers, as columns."""
    pairs = list(zip(*columns_of(data), strict=True))
    sources, targets = zip(*(pairs[row] for row in rows), strict=True)
    return {"source": list(sources), "target": list(targets)}


def encode_columns(model, data):
    """Returns the pairs of a set as a `Bitext` for a model."""
    tokenizers = model.tokenizer, model.target_tokenizer
    return encode_pairs(*columns_of(data), *tokenizers, model.config)


def token_loss(model, bitext):
    """Returns the cross-entropy of targets, in nats a token.

    Each token is predicted from the source and the right tokens before it. No
    label is smoothed.

    Args:
        model: A `Seq2SeqTransformer`.
        bitext: A `Bitext`.
    """
    limit = model.config.max_position_embeddings
    nats = tokens = 0
    batches = draw_batches(bitext.lengths(), TOKENS, limit, [0])
    for rows, length, size in batches:
        x, labels, weights = bitext.step(rows.tolist(), length, size)
        logits = np.asarray(model.compute_on_batch(x), "float32")  # (B, T, V)
        logits -= logits.max(axis=-1, keepdims=True)
        picked = np.take_along_axis(logits, labels[..., None], axis=-1)
        losses = np.log(np.exp(logits).sum(axis=-1)) - picked[..., 0]
        nats += losses[weights > 0].sum()
        tokens += (weights > 0).sum()
    return float(nats / tokens)


def _loaded(model):
    """Returns a model, read where only its name or folder is given."""
    if isinstance(model, Seq2SeqTransformer):
        return model
    return Seq2SeqTransformer.from_pretrained(model)
