"""The variants of BERT that the book knows, each with what it changes.

Differences: none; corpora and sizes are those of the papers, or counted where
a config gives them.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bertbook.config import BertConfig
from bertbook.relatives.albert import ALBERT_BASE, count_shared
from bertbook.weights.names import count_parameters

RECIPE, DOMAIN, LANGUAGES, KNOWLEDGE, SIGNS, TASK = (
    "recipe",
    "domain",
    "languages",
    "knowledge",
    "other signs",
    "task",
)
KINDS = (RECIPE, DOMAIN, LANGUAGES, KNOWLEDGE, SIGNS, TASK)

CASED = BertConfig(vocab_size=28_996)
ROBERTA = BertConfig(
    vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1
)
SCIBERT = BertConfig(vocab_size=31_090)
MULTILINGUAL = BertConfig(vocab_size=119_547)
VIDEO = BertConfig.named("large", vocab_size=30_522 + 20_736)


class Relative(NamedTuple):
    """A variant of BERT.

    Attributes:
        name: As its authors call it.
        kind: One of `KINDS`.
        paper: As `references` knows it.
        corpus: What it learned from.
        change: What is not as in BERT.
        code_change: Which line of our code changes.
        parameters: Of the encoder, with its pooler; None where neither the
            paper nor a config says it.
    """

    name: str
    kind: str
    paper: str
    corpus: str
    change: str
    code_change: str
    parameters: int | None


RELATIVES = (
    Relative(
        "RoBERTa", RECIPE, "Liu et al. (2019)",
        "160 GB: books, Wikipedia, news, web",
        "new masks each time, no next sentence, batches of 8,000 rows, "
        "byte-level BPE",
        "`ExampleSettings(next_sentence=False)`, `PretrainingRecipe`, the "
        "tokenizer",
        count_parameters(ROBERTA),
    ),
    Relative(
        "ALBERT", RECIPE, "Lan et al. (2020)",
        "books and Wikipedia",
        "one block for all layers, a narrow token table, order of sentences",
        "`albert.share_blocks`",
        count_shared(ALBERT_BASE, 128),
    ),
    Relative(
        "BioBERT", DOMAIN, "Lee et al. (2020)",
        "PubMed abstracts and PMC articles, 18 billion words, after BERT's",
        "goes on from BERT",
        "`biobert.adapt`",
        count_parameters(CASED),
    ),
    Relative(
        "SciBERT", DOMAIN, "Beltagy, Lo and Cohan (2019)",
        "1.14 million papers, mostly biomedical",
        "a vocabulary of its own, from random weights",
        "`Tokenizer.train`",
        count_parameters(SCIBERT),
    ),
    Relative(
        "ClinicalBERT", DOMAIN, "Alsentzer et al. (2019)",
        "2 million clinical notes of MIMIC-III; access is restricted",
        "goes on from BioBERT",
        "`biobert.adapt`",
        count_parameters(CASED),
    ),
    Relative(
        "ClinicalBERT", DOMAIN, "Huang, Altosaar and Ranganath (2019)",
        "clinical notes of MIMIC-III; access is restricted",
        "goes on from BERT, then predicts readmission",
        "`biobert.adapt`",
        None,
    ),
    Relative(
        "M-BERT", LANGUAGES, "Pires, Schlinger and Garrette (2019)",
        "Wikipedia in 104 languages",
        "one vocabulary for all of them",
        "`Tokenizer.train`, the corpus",
        count_parameters(MULTILINGUAL),
    ),
    Relative(
        "ERNIE (Baidu)", KNOWLEDGE, "Sun et al. (2019)",
        "Chinese encyclopedia, news, forum",
        "words, then phrases, then names hidden as a whole",
        "`ernie.mask_phrases`",
        None,
    ),
    Relative(
        "ERNIE (Tsinghua)", KNOWLEDGE, "Zhang et al. (2019)",
        "Wikipedia, its links aligned with Wikidata",
        "vectors of entities added to those of tokens in the upper layers",
        "none: a second input and new blocks",
        114_000_000,
    ),
    Relative(
        "VideoBERT", SIGNS, "Sun et al. (2019)",
        "312,000 cooking videos with what is said in them",
        "clusters of frames are tokens",
        "`videobert.add_tokens`",
        count_parameters(VIDEO),
    ),
    Relative(
        "G-BERT", SIGNS, "Shang, Ma, Xiao and Sun (2019)",
        "hospital visits of MIMIC-III, as codes",
        "codes of diseases and drugs are tokens, with vectors from a graph",
        "`videobert.add_tokens`; the graph network is not here",
        None,
    ),
    Relative(
        "TransBERT", TASK, "Li, Ding and Liu (2019)",
        "BERT's, then labels of another task, then endings of stories",
        "three trainings in a row",
        "`transbert.run_stages`",
        count_parameters(BertConfig.named("large")),
    ),
    Relative(
        "DocBERT", TASK, "Adhikari, Ram, Tang and Lin (2019)",
        "BERT's, then labeled documents",
        "several labels at once",
        '`problem_type="multi_label_classification"`',
        count_parameters(BertConfig()),
    ),
    Relative(
        "PatentBERT", TASK, "Lee and Hsiang (2020)",
        "BERT's, then over 2 million patents",
        "hundreds of labels",
        "`num_labels`",
        count_parameters(BertConfig()),
    ),
)  # fmt: skip


def write_table(
    columns: Iterable[str], kinds: Iterable[str] = KINDS
) -> list[str]:
    """Returns lines of a table of the variants, in Markdown.

    Args:
        columns: Which attributes of `Relative`.
        kinds: Which of `KINDS`.

    Raises:
        ValueError: A column or a kind is unknown.
    """
    columns, kinds = list(columns), list(kinds)
    for name, values, known in (
        ("columns", columns, Relative._fields),
        ("kinds", kinds, KINDS),
    ):
        if not values or not set(values) <= set(known):
            raise ValueError(
                f"`{name}` must be some of {', '.join(known)}. "
                f"Received: {', '.join(values) or 'none'}."
            )
    lines = [_row(columns), _row("---" for _ in columns)]
    for relative in RELATIVES:
        if relative.kind in kinds:
            lines.append(
                _row(_shown(getattr(relative, name)) for name in columns)
            )
    return lines


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shown(value: str | int | None) -> str:
    if isinstance(value, int):
        return f"{value / 1e6:,.0f} million"
    return value or "not said"
