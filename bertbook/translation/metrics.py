"""BLEU and chrF of translations.

Both compare a whole set, not a sentence. BLEU counts runs of one to four words
that a reference holds too, chrF runs of one to six characters.

Both come from sacrebleu with its defaults, so that figures can be compared with
those of others.
"""

import itertools
from collections.abc import Mapping, Sequence, Set
from typing import Any

from bertbook.checks import check_switch


def score_translations(
    translations: Sequence[str],
    references: Sequence[str | Sequence[str]],
    lowercase: bool = False,
) -> dict[str, Any]:
    """Compares translations with those of people, as texts.

    Source: Papineni et al. (2002), section 2.3; Popović (2015), equation 1,
    with recall counted twice; Post (2018), section 3.

    Args:
        translations: B texts, as a reader sees them: no pieces, and no space
            before punctuation.
        references: For each a text, or a list of texts that are as good.
        lowercase: Whether "a" and "A" are the same.

    Returns:
        `bleu` and `chrf`, from 0 to 100, and `signatures`, a dict that says
        for each how it was computed, which belongs to every figure.

    Raises:
        ImportError: sacrebleu is not installed.
        ValueError: There is no translation, they are not as many as the
            references, one has no reference, or something is not a text; or
            `lowercase` is not True or False.
    """
    check_switch(lowercase, "lowercase")
    rows = _checked(translations, references)
    metrics = _sacrebleu()
    counted = {
        "bleu": metrics.BLEU(lowercase=lowercase),
        "chrf": metrics.CHRF(lowercase=lowercase),
    }
    columns = list(itertools.zip_longest(*rows))  # None: it has no further one
    scores: dict[str, Any] = {
        name: float(metric.corpus_score(list(translations), columns).score)
        for name, metric in counted.items()
    }
    scores["signatures"] = {
        name: str(metric.get_signature()) for name, metric in counted.items()
    }
    return scores


def check_scoring(sources: Sequence[str], references: Sequence) -> None:
    """Refuses what could not be scored, before it is translated.

    Args:
        sources: B texts that will be translated.
        references: As in `score_translations`.

    Raises:
        ImportError: sacrebleu is not installed.
        ValueError: They are not as many, or something is not a text.
    """
    _checked(sources, references, "sources")
    _sacrebleu()


def _checked(
    translations, references, called="translations"
) -> list[list[str]]:
    """Returns the references of each translation as a list."""
    columns = {called: translations, "references": references}
    for name, texts in columns.items():
        no_list = isinstance(texts, str | bytes | Mapping | Set)
        if no_list or not hasattr(texts, "__len__"):
            raise ValueError(
                f"`{name}` must be a list. Received: {type(texts).__name__}."
            )
    if len(translations) != len(references) or not len(translations):
        raise ValueError(
            f"`{called}` and `references` must be of one length, 1 at "
            f"least. Received: {len(translations)} and {len(references)}."
        )
    rows = [[row] if isinstance(row, str) else row for row in references]
    for row, (translation, texts) in enumerate(
        zip(translations, rows, strict=True)
    ):
        _check_texts(f"{called}[{row}]", [translation])
        _check_texts(f"references[{row}]", texts)
    return [list(texts) for texts in rows]


def _check_texts(name: str, texts: Any) -> None:
    """Refuses what is no list of texts, or an empty one."""
    if not isinstance(texts, list | tuple) or not texts:
        raise ValueError(
            f"`{name}` must be a text, or a list of texts. Received: {texts!r}."
        )
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(
                f"`{name}` must be text. Received: {type(text).__name__}."
            )


def _sacrebleu() -> Any:
    """Returns the metrics of sacrebleu."""
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise ImportError(
            "BLEU and chrF need sacrebleu: `pip install sacrebleu`."
        ) from error
    return metrics
