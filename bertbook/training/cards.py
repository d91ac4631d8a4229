"""Model cards: the recipe and the scores of a model, in its README.md."""

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertbook.files import write_text

# What Markdown may take as markup; not an underscore inside a word.
OURS = re.compile("# A .* with bertbook\n")  # the first line of a card
SPECIAL = re.compile(r"([\\`*{}\[\]()<>#|~!&]|\b_|_\b)")


def escape(text: str) -> str:
    r"""Returns a name as Markdown shows it: no letter of it is taken as markup.

    A line end, and whatever else has no form, becomes a space.

    >>> print(escape("a_b*<b>.txt"))
    a_b\*\<b\>.txt
    """
    line = "".join(c if c.isprintable() else " " for c in text)
    return SPECIAL.sub(r"\\\1", line)


def write_card(
    folder: Path, record: Mapping[str, Any], corpus: Mapping[str, Any]
) -> None:
    """Writes README.md: the model, the corpus and the recipe.

    Args:
        folder: The folder of the model.
        record: Model, examples and recipe, as a run records them.
        corpus: What a corpus records of itself.
    """
    config = record["config"]
    files = ", ".join(escape(name) for name, _ in corpus["files"])
    lines = [
        "# A BERT pre-trained with bertbook",
        "",
        f"{config['num_hidden_layers']} layers, width "
        f"{config['hidden_size']}, {config['num_attention_heads']} heads, "
        f"{config['vocab_size']:,} pieces, up to "
        f"{config['max_position_embeddings']} tokens.",
        "",
        f"Trained on {corpus['tokens']:,} tokens of "
        f"{corpus['documents']:,} documents: {files}. "
        f"{corpus['held_out']:.0%} of the documents were held out.",
        "",
        "log.csv holds its losses. It knows the text that it was trained on "
        "and no other, with whatever is wrong in it.",
        "",
        "```json",
        json.dumps(
            {name: record[name] for name in ("recipe", "examples", "start")},
            indent=2,
        ),
        "```",
        "",
    ]
    _write(folder, lines)


def write_task_card(
    folder: Path, record: Mapping[str, Any], history: Mapping[str, list]
) -> None:
    """Writes README.md of a fine-tuned model: the task, scores and recipe.

    Args:
        folder: The folder of the model.
        record: What the run records of itself.
        history: Its evaluations, as columns.
    """
    config = record["config"]
    rows = zip(*history.values(), strict=True)
    lines = [
        "# A BERT fine-tuned with bertbook",
        "",
        f"{config['num_hidden_layers']} layers, width "
        f"{config['hidden_size']}, {config['num_attention_heads']} heads, "
        f"{config['vocab_size']:,} pieces. Evaluations:",
        "",
        f"| {' | '.join(map(escape, history))} |",
        f"|{'---|' * len(history)}",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
        "",
        "```json",
        json.dumps(
            {k: v for k, v in record.items() if k != "config"}, indent=2
        ),
        "```",
        "",
    ]
    _write(folder, lines)


def write_translation_card(
    folder: Path,
    record: Mapping[str, Any],
    facts: Mapping[str, int],
    scores: Mapping[str, float],
) -> None:
    """Writes README.md of a translator: its size, figures and recipe.

    Args:
        folder: The folder of the model.
        record: What the run records of itself.
        facts: How many `pairs` it learned from, and how many were `left_out`.
        scores: What it gives on dev.
    """
    config = record["config"]
    figures = ", ".join(f"{name} {value}" for name, value in scores.items())
    decoder = config["num_decoder_layers"] or config["num_hidden_layers"]
    lines = [
        "# A translator trained with bertbook",
        "",
        f"{config['num_hidden_layers']} layers read and {decoder} write, width "
        f"{config['hidden_size']}, {config['num_attention_heads']} heads, up "
        f"to {config['max_position_embeddings']} tokens.",
        "",
        f"Trained on {facts['pairs']:,} pairs; {facts['left_out']:,} were too "
        f"long. On dev: {figures or 'not measured'}.",
        "",
        "```json",
        json.dumps(record["recipe"], indent=2),
        "```",
        "",
    ]
    _write(folder, lines)


def _write(folder: Path, lines: list[str]) -> None:
    """Writes the lines of a card, unless a user's own README.md is there."""
    path = folder / "README.md"
    if path.exists() and not OURS.match(path.read_text("utf-8", "replace")):
        warnings.warn(
            f"{path} is not by bertbook: it stays, and no card is written.",
            stacklevel=3,
        )
        return
    write_text(path, "\n".join(lines))
