"""Errata on history: GPT, GPT-2, and the names of KerasHub."""

import re
from importlib import metadata

from bertbook.book.errata.erratum import SLIP, TRUE, computed, noted
from bertbook.book.references import NOTES, OF_THE_SOURCES

NOTED = (
    noted(
        53,
        NOTES,
        "40_one_sentence",
        kind=SLIP,
        says="state of the art in translation and summarization, too",
        right="the paper reports GLUE, SQuAD 1.1 and SQuAD 2.0, SWAG and named "
        "entities. An encoder alone does not write texts",
    ),
    noted(
        61,
        NOTES,
        "62_lineage",
        kind=SLIP,
        says="ImageNet among the trained models of computer vision",
        right="it is the set of pictures on which such models are trained",
    ),
    noted(
        81,
        NOTES,
        "52_variants",
        kind=SLIP,
        says="the variants are models of a domain",
        right="some are. RoBERTa is a recipe for training, M-BERT has many "
        "languages, VideoBERT reads pictures as well, and TransBERT is an "
        "order of training steps",
    ),
    noted(
        82,
        NOTES,
        "52_variants",
        kind=SLIP,
        says="ERNIE masks entities and phrases with a knowledge graph",
        right="two models of 2019 have the name. Zhang et al. (2019) put in "
        "entities of a knowledge graph; Sun et al. (2019) hide whole names "
        "and phrases. Its successor (Sun et al., 2020) is a third",
    ),
)
# What Devlin et al. (2019) report: set, measure, base, large, table. GLUE on
# its test server; the others on dev, but for named entities.
REPORTED = (
    ("MNLI, matched", "accuracy", "84.6", "86.7", "1"),
    ("MNLI, mismatched", "accuracy", "83.4", "85.9", "1"),
    ("QQP", "F1", "71.2", "72.1", "1"),
    ("QNLI", "accuracy", "90.5", "92.7", "1"),
    ("SST-2", "accuracy", "93.5", "94.9", "1"),
    ("CoLA", "Matthews, times 100", "52.1", "60.5", "1"),
    ("STS-B", "Spearman, times 100", "85.8", "86.5", "1"),
    ("MRPC", "F1", "88.9", "89.3", "1"),
    ("RTE", "accuracy", "66.4", "70.1", "1"),
    ("SQuAD 1.1", "exact match / F1", "80.8 / 88.5", "84.1 / 90.9", "2"),
    ("SQuAD 2.0", "exact match / F1", "", "78.7 / 81.9", "3"),
    ("SWAG", "accuracy", "81.6", "86.6", "4"),
    ("CoNLL-2003, test", "F1 of entities", "92.4", "92.8", "7"),
)
# L and D of the four sizes of GPT-2 (Radford et al., 2019, table 2).
GPT_2 = ((12, 768), (24, 1_024), (36, 1_280), (48, 1_600))


@computed(
    57,
    NOTES,
    "62_lineage",
    kind=SLIP,
    says="GPT-2 (Generative Pre-Training) came before BERT",
    right="GPT came before BERT, and is what the name stands for; BERT is "
    "compared with it. GPT-2 came after both",
    value="GPT, BERT, GPT-2",
    said="GPT-2, BERT",
)
def order_of_three():
    """Sorts three papers by the month in which they appeared."""
    titles = {
        "Improving Language Understanding by Generative": "GPT",
        "BERT:": "BERT",
        "Language Models are Unsupervised": "GPT-2",
    }
    months = {
        name: work.first
        for work in OF_THE_SOURCES
        for start, name in titles.items()
        if work.title.startswith(start)
    }
    return ", ".join(sorted(months, key=months.get))


@computed(
    58,
    NOTES,
    "62_lineage",
    kind=SLIP,
    says="GPT-2 has 12 layers, and is otherwise the Transformer's decoder",
    right="12 is GPT, and the smallest of four sizes of GPT-2; the others "
    "have 24, 36 and 48. And GPT-2 has its norms before each part, GELU, and "
    "learned positions",
    value={
        "parameters with 12 layers": 124_439_808,
        "24": 354_823_168,
        "36": 774_030_080,
        "48": 1_557_611_200,
    },
    said=(124_439_808,),
)
def sizes_of_gpt_2():
    """Counts four models: a table, positions, blocks, and a last norm."""
    return tuple(
        (50_257 + 1_024) * width + layers * gpt_block(width) + 2 * width
        for layers, width in GPT_2
    )


def gpt_block(width):
    """Counts one block: attention, feed-forward of four widths, two norms."""
    attention = 4 * (width * width + width)
    feed_forward = 8 * width * width + 4 * width + width
    return attention + feed_forward + 2 * 2 * width


@computed(
    83,
    (),
    "24_real_weights",
    kind=TRUE,
    says="keras-nlp and its BertClassifier",
    right="the package is called KerasHub now, and keras-nlp installs it. The "
    "class is BertTextClassifier",
    value="keras-hub",
    said="keras-nlp",
)
def what_keras_nlp_installs():
    """Reads what keras-nlp requires; None where it is not installed."""
    try:
        needs = metadata.requires("keras-nlp") or []
    except metadata.PackageNotFoundError:
        return None
    names = [re.match(r"[\w-]+", need)[0] for need in needs]
    return "keras-hub" if "keras-hub" in names else ", ".join(names)
