"""A chapter opens and closes in the common form."""

import re

import pytest

import badges
import book
import headings

CHAPTER = f"""\
# 20 Attention

{badges.badge("20_attention")}

**The question.** How does a word look at
another word?

**Where you are.** text → Tokenizer.encode → examples → batch → **model** → loss

**You will be able to**

- compute one by hand,
- read the package's own,
- say what it costs.

**Time:** under 2 minutes on two CPU cores · **Memory:** 1.5 GB

### Predict before you run

## Summary

## Exercises
"""


def faults(text, name="20_attention"):
    cell = book.nbformat.v4.new_markdown_cell(text)
    notebook = book.nbformat.v4.new_notebook(cells=[cell])
    return headings.faults(notebook, name)


def test_chapter_has_its_opening_and_sections(chapter, notebook):
    assert headings.faults(notebook, chapter.name) == []


def test_chapter_proves_something(chapter, notebook):
    """An `assert` cell holds each claim of the prose."""
    if chapter.part == headings.BACK_MATTER:
        return
    code = "\n".join(cell.source for cell in book.code_cells(notebook))
    assert re.search(r"^\s*assert\b|assert_allclose", code, re.MULTILINE)


def test_display_math_stands_alone(notebook):
    """Without blank lines around it, the HTML book shows bare dollar signs."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            blocks = re.split(r"\n\s*\n", cell.source)
            for block in blocks:
                inside = block.strip()
                assert "$$" not in inside or (
                    inside.startswith("$$") and inside.endswith("$$")
                ), inside


def test_a_whole_chapter_has_no_fault():
    assert faults(CHAPTER) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# 20 Attention", "# Attention"),
        ("# 20 Attention", "# 21 Attention"),
        (badges.badge("20_attention"), badges.badge("21_encoder_block")),
        ("another word?", "another word."),
        ("**model**", "model"),
        ("examples → batch", "batch → examples"),
        ("- say what it costs.\n", ""),
        ("- say what it costs.\n", "- say what it costs.\n- more\n"),
        ("under 2 minutes", "under 5 minutes"),
        ("1.5 GB", "1.7 GB"),
        ("**Memory:** 1.5 GB", ""),
        ("### Predict before you run", "### Predict"),
        ("## Summary", "## The end"),
        ("## Exercises", ""),
    ],
)
def test_each_fault_is_seen(old, new):
    assert old in CHAPTER
    assert faults(CHAPTER.replace(old, new)) != []


def test_back_matter_needs_no_experiment():
    text = CHAPTER.replace("20", "91").replace("attention", "notation")
    text = text.replace("### Predict before you run", "")
    text = text.replace("**model**", "model")
    assert faults(text, "91_notation") == []


def test_cost_is_in_seconds_and_gb():
    assert headings.cost(CHAPTER) == (120.0, 1.5)
