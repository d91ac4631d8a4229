"""BioBERT and ClinicalBERT: a general model trained on a domain.

Differences: BioBERT continues both tasks of pre-training, and for hundreds
of thousands of steps; here it is masked words alone, and as many steps as the
recipe says.
"""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertbook.checks import check_rows, checked_lines
from bertbook.locations import find_folder
from bertbook.pretraining.examples import ExampleSettings
from bertbook.pretraining.masking import Masking, Pieces, mask_rows
from bertbook.pretraining.pretrain import PretrainingRecipe, Reporting, pretrain
from bertbook.text.tokenizer import Tokenizer
from bertbook.text.wordpiece import count_words

RECIPE = PretrainingRecipe(steps=100, batch_size=16, learning_rate=3e-4)
QUIET = Reporting(verbose=False, checkpoint_steps=1_000_000)
EVALUATION = Masking()  # every model is asked the same


def pieces_per_word(tokenizer: Any, lines: Iterable[str]) -> float:
    """Returns how many pieces a word has on average; words of letters count.

    Source: Beltagy et al. (2019), section 2, compare vocabularies.

    Args:
        tokenizer: A `Tokenizer`.
        lines: Texts.

    Raises:
        ValueError: There is no word, or one has a character that the
            vocabulary lacks, so that it is no piece at all.
    """
    counts = count_words(checked_lines(lines), tokenizer.lowercase)
    words = [word for word in counts if word.isalpha()]
    if not words:
        raise ValueError("`lines` must hold words. Received: none.")
    sizes = tokenizer.encode_pieces(words)
    for word, ids in zip(words, sizes, strict=True):
        if tokenizer.unk_token_id in ids:
            raise ValueError(
                "`lines` must be in characters of the vocabulary. "
                f"Received: {word!r}."
            )
    pieces = sum(
        counts[w] * len(ids) for w, ids in zip(words, sizes, strict=True)
    )
    return pieces / sum(counts[word] for word in words)


def adapt(
    texts: Sequence[str],
    out: str | Path,
    start: str | Path = "mini",
    recipe: PretrainingRecipe = RECIPE,
    max_length: int = 64,
) -> Any:
    """Goes on with masked words on the plain texts of a domain.

    Source: Lee et al. (2020), BioBERT, section 3.2; Alsentzer et al. (2019).

    Args:
        texts: Texts of the domain, in order; no labels.
        out: Folder of the new model; see `pretrain.pretrain`.
        start: A shipped name or a folder, with its vocabulary.
        recipe: Steps, rows and rate.
        max_length: Tokens of a row.

    Returns:
        The `BertForPreTraining`.

    Raises:
        ValueError: There is no text, or a row is not a string.
    """
    texts, _ = check_rows(texts, None)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "domain.txt"
        file.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return pretrain(
            [file],
            out,
            recipe,
            model=find_folder(start),
            tokenizer=start,
            examples=ExampleSettings(
                max_length=max_length, next_sentence=False
            ),
            held_out=0.0,
            reporting=QUIET,
        )


def masked_rows(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    max_length: int = 64,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Hides tokens of texts, the same for every model with this vocabulary.

    Args:
        tokenizer: A `Tokenizer`.
        texts: Texts, a row each.
        max_length: Tokens that a row is cut to.
        seed: Seed of the masks.

    Returns:
        A batch with masks, as `masking.mask_rows` makes them.
    """
    batch = tokenizer(list(texts), max_length=max_length)
    rng = np.random.default_rng(seed)
    pieces = Pieces.of(tokenizer)
    return batch | mask_rows(batch["input_ids"], pieces, EVALUATION, rng)


def masked_loss(
    model: Any, rows: dict[str, np.ndarray], batch_size: int = 32
) -> float:
    """Returns the loss of hidden tokens, nats each.

    Models can be compared where they share a vocabulary: a loss over other
    pieces is another quantity.

    Args:
        model: A `BertForPreTraining` or `BertForMaskedLM`.
        rows: What `masked_rows` gives.
        batch_size: Rows computed at a time.
    """
    total = 0.0
    for start in range(0, len(rows["input_ids"]), batch_size):
        part = {n: a[start : start + batch_size] for n, a in rows.items()}
        labels, weights = part["masked_lm_ids"], part["masked_lm_weights"]
        inputs = {
            name: part[name].astype("int32")
            for name in (
                "input_ids",
                "token_type_ids",
                "attention_mask",
                "masked_lm_positions",
            )
        }
        outputs = model(inputs, training=False)
        if isinstance(outputs, dict):
            outputs = outputs["mlm_logits"]
        logits = np.asarray(outputs, "float64")  # (B, M, V)
        right = np.take_along_axis(logits, labels[..., None], axis=2)[..., 0]
        highest = logits.max(axis=2)
        sums = np.exp(logits - highest[..., None]).sum(axis=2)
        total += float(((highest + np.log(sums) - right) * weights).sum())
    return total / float(rows["masked_lm_weights"].sum())
