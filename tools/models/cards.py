"""What the cards of the models that ship are made of: facts, and paragraphs.

`scores.json` beside a card holds every fact that the card states, so the card
can be written again from it, and a test does.
"""

import json
import textwrap
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "data" / "models"
VERBATIM = ("#", "-", "|")  # headings, samples and tables keep their lines


def keep(folder: Path, facts: dict, card: str) -> None:
    """Writes `scores.json` and `README.md` into the folder of a model."""
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    (folder / "scores.json").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(card, encoding="utf-8")
    print(text)


def read_facts(folder: Path) -> dict:
    """Returns the facts beside a card."""
    return json.loads((folder / "scores.json").read_text("utf-8"))


def join(paragraphs: list[str]) -> str:
    """Returns a card: paragraphs of at most 79 columns, a line between them."""
    blocks = [
        text
        if text.startswith(VERBATIM)
        else textwrap.fill(text, 79, break_on_hyphens=False)
        for text in paragraphs
    ]
    return "\n\n".join(blocks) + "\n"
