"""What the cards of the models that ship are made of: facts, and paragraphs.

`scores.json` beside a card holds every fact that the card states, so the card
can be written again from it, and a test does.
"""

import json
import textwrap
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "data" / "models"
VERBATIM = ("#", "-", "|")  # headings, samples and tables keep their lines

# What the models that ship were trained on: its license, and whom to credit.
CREDITS = {
    "English Wikipedia of 2019": ("CC BY-SA 3.0", "its authors"),
    "SQuAD 1.1": (
        "CC BY-SA 4.0",
        "Rajpurkar et al. (2016); the authors of Wikipedia",
    ),
    "Changelog podcasts": ("CC BY-SA 4.0", "Changelog Media"),
    "Stack Exchange": ("CC BY-SA 3.0 and 4.0", "its authors"),
    "Schema-Guided Dialogue": ("CC BY-SA 4.0", "Rastogi et al. (2020)"),
    "English Web Treebank, GUM": (
        "CC BY-SA 4.0",
        "Silveira et al. (2014), Zeldes (2017)",
    ),
    "OpenStax textbooks": ("CC BY 4.0", "OpenStax, Rice University"),
    "Taskmaster-4": ("CC BY 4.0", "Google"),
    "MedQuAD": ("CC BY 4.0", "Ben Abacha and Demner-Fushman (2019)"),
    "African Storybook, Pratham Books": ("CC BY", "their authors"),
    "QMSum with AMI and ICSI": ("MIT and CC BY 4.0", "Zhong et al. (2021)"),
    "Topical-Chat": ("CDLA-Sharing 1.0", "Gopalakrishnan et al. (2019)"),
    "usesthis.com": ("MIT", "Daniel Bogan"),
    "Rust blog and RFCs, PEPs, Sourcegraph handbook, GOV.UK manual": (
        "MIT, Apache 2.0 or public domain",
        "their authors",
    ),
    "pages and speeches of the government of the United States": (
        "public domain",
        "no author to name",
    ),
    "books of Standard Ebooks and of the ELTeC collection": (
        "texts out of copyright in the United States",
        "Standard Ebooks; ELTeC, COST Action Distant Reading",
    ),
    "vectors of all-MiniLM-L6-v2": (
        "Apache 2.0",
        "the authors of sentence-transformers",
    ),
    "Tatoeba pairs": (
        "CC BY 2.0",
        "tatoeba.org and www.manythings.org/anki",
    ),
}
# A model that begins from another one begins with its name.
SOURCES = {
    "en-es": ("Tatoeba pairs",),
    "mini": tuple(CREDITS)[:16],
    "mini-qnli": ("mini-squad", "SQuAD 1.1"),
    "mini-squad": ("mini", "SQuAD 1.1"),
    "mini-taught": ("mini", "vectors of all-MiniLM-L6-v2"),
}
SHARE_ALIKE = "CC BY-SA 4.0"
OF_CODE = "Apache 2.0"


def keep(folder: Path, facts: dict, card: str) -> None:
    """Writes `scores.json` and `README.md` into the folder of a model."""
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    (folder / "scores.json").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(card, encoding="utf-8")
    print(text)


def read_facts(folder: Path) -> dict:
    """Returns the facts beside a card."""
    return json.loads((folder / "scores.json").read_text("utf-8"))


def license_of(name: str) -> str:
    """Returns the license of the weights of a model.

    The rule: weights trained on ShareAlike text, or from such weights, are
    under its license; all others are under the license of the code.
    """
    licenses = {CREDITS[source][0] for source in sources_of(name)}
    return SHARE_ALIKE if SHARE_ALIKE in licenses else OF_CODE


def sources_of(name: str) -> list[str]:
    """Returns what a model was trained on, that of its start included."""
    found: list[str] = []
    for source in SOURCES[name]:
        found += sources_of(source) if source in SOURCES else [source]
    return list(dict.fromkeys(found))


def license_paragraph(name: str) -> str:
    """Returns the last paragraph of a card: the license, and all credits."""
    credits = "; ".join(
        f"{source} ({', '.join(CREDITS[source])})"
        for source in sources_of(name)
    )
    why = (
        "that of a part of the text it was trained on"
        if license_of(name) == SHARE_ALIKE
        else "as the code; none of the text it was trained on asks for more "
        "than its credit"
    )
    return f"License: {license_of(name)}, {why}. Trained on: {credits}."


def license_table() -> str:
    """Returns the table of `data/README.md`: a row for each model."""
    rows = [
        f"| `{name}` | "
        + ", ".join(
            f"what `{source}` was trained on" if source in SOURCES else source
            for source in SOURCES[name]
        )
        + f" | {license_of(name)} |"
        for name in SOURCES
    ]
    credits = [
        f"| {source} | {license_} | {credit} |"
        for source, (license_, credit) in CREDITS.items()
    ]
    return "\n".join(
        [
            "| model | trained on | license of the weights |",
            "|---|---|---|",
            *rows,
            "",
            "| source | its license | credit |",
            "|---|---|---|",
            *credits,
        ]
    )


def join(paragraphs: list[str]) -> str:
    """Returns a card: paragraphs of at most 79 columns, a line between them."""
    blocks = [
        text
        if text.startswith(VERBATIM)
        else textwrap.fill(text, 79, break_on_hyphens=False)
        for text in paragraphs
    ]
    return "\n\n".join(blocks) + "\n"
