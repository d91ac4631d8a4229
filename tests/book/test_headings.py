"""A chapter opens and closes in the common form."""

import re

import badges
import book
import headings

CHAPTER = f"""\
# 20 Attention

{badges.badge("20_attention")}

**The question.** How does a word look at
another word?

**Where you are.** text → Tokenizer.encode → examples → batch → **model** → loss

**Before this chapter.** 12_vectors

**You will be able to**

- compute one by hand,
- read the package's own,
- say what it costs.

**Time:** 20 minutes to read, under 2 minutes on two CPU cores \
· **Memory:** 1.5 GB

### Predict before you run

## Summary

## Exercises
"""
LAB = "labs/20_why_many_heads"
TEXT_OF_LAB = f"""\
# Lab: Why many heads

{badges.badge(LAB)}

**The question.** Is one wide head as good as many?

**The answer.** No, at the same size it is 2 points worse on
[opinions](../40_one_sentence.ipynb).

**Where you are.** text → Tokenizer.encode → examples → batch → **model** → loss

**Before this lab.** 21_several_heads

**Time:** 20 minutes to read, under 2 minutes on two CPU cores \
· **Memory:** 1.5 GB

## Predict before you run

## Summary
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


def test_chapter_holds_no_note_of_its_author(notebook):
    """What is still to do is no reader's business."""
    text = "\n".join(cell.source for cell in notebook.cells)
    assert not re.findall(r"\b(?:TODO|FIXME|XXX)\b.*", text)


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


def test_each_fault_is_seen():
    for old, new in (
        ("# 20 Attention", "# Attention"),
        ("# 20 Attention", "# 21 Attention"),
        (badges.badge("20_attention"), badges.badge("22_block")),
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
    ):
        assert old in CHAPTER
        assert faults(CHAPTER.replace(old, new)) != []


def test_a_lab_needs_no_goals_and_no_exercises_but_an_answer():
    assert faults(TEXT_OF_LAB, LAB) == []


def test_each_fault_of_a_lab_is_seen():
    for old, new in (
        ("# Lab: Why", "# 20 Why"),
        ("# Lab: Why", "# Lab Why"),
        (badges.badge(LAB), badges.badge("20_attention")),
        ("as many?", "as many."),
        ("**The answer.** No", "No"),
        ("(../40_one_sentence.ipynb).", "(../40_one_sentence.ipynb)"),
        ("(../40_one_sentence.ipynb).", "(../40_one_sentence.ipynb). It is."),
        ("**model**", "model"),
        ("Before this lab", "Before this chapter"),
        ("20 minutes to read, ", ""),
        ("## Predict before you run", "## Predict"),
        ("## Summary", "## The end"),
    ):
        assert TEXT_OF_LAB.count(old) == 1
        assert len(faults(TEXT_OF_LAB.replace(old, new), LAB)) == 1, new


def test_back_matter_needs_no_experiment():
    text = CHAPTER.replace("20", "91").replace("attention", "notation")
    text = text.replace("### Predict before you run", "")
    text = text.replace("**model**", "model")
    assert faults(text, "91_notation") == []


def test_cost_is_in_seconds_and_gb():
    assert headings.cost(CHAPTER) == (120.0, 1.5)


# What a chapter may not have too much of.

PNG = {"image/png": "abc"}


def code(source, *data, tags=()):
    """Returns a code cell that shows something of each kind in `data`."""
    new = book.nbformat.v4
    cell = new.new_code_cell(source, metadata={"tags": list(tags)})
    cell.outputs = [new.new_output("display_data", kinds) for kinds in data]
    return cell


def faults_of_form(text, *cells):
    opening = book.nbformat.v4.new_markdown_cell(text)
    notebook = book.nbformat.v4.new_notebook(cells=[opening, *cells])
    return headings.faults_of_form(notebook, "20_attention")


def test_no_number_of_words_or_cells_is_a_fault():
    shown = [code(f"{i} + 1", {"text/plain": f"{i + 1}"}) for i in range(99)]
    text = CHAPTER + headings.CUT + " word" * 9999
    assert faults_of_form(text, *shown) == []


def test_the_opening_says_how_long_the_chapter_takes(notebook):
    opening = notebook.cells[0].source
    headings.refresh(notebook)
    assert notebook.cells[0].source == opening, "run `make links`"


def test_minutes_are_counted():
    words = f"# 20 A\n\n{'word ' * 396}[a](b.ipynb) b\n\n| c | d e f |"
    new = book.nbformat.v4
    written = code("@part\ndef f():\n    ...")
    written.metadata["tags"] = ["your-turn"]
    answer = code("@book\ndef f():\n    return 1")
    cells = [new.new_markdown_cell(words), *map(code, "1234"), written, answer]
    made = new.new_notebook(cells=cells)
    assert headings.reading_minutes(made) == 400 / 200 + 4 / 2 + 10


def test_each_fault_of_form_is_seen():
    for text, cells, fault in (
        (CHAPTER.replace("Before this", "Before the"), [], "no line `**Before"),
        (CHAPTER.replace("20 minutes to read, ", ""), [], "the line on time"),
        (CHAPTER.replace("**Time:**", "Time:"), [], "the line on time"),
        (CHAPTER + headings.CUT * 2, [], "more than one box"),
        (CHAPTER + "What the sources simplify", [], "what sources simplify"),
        (CHAPTER, [code("a = f()")], "code cell 1 shows nothing: a = f()"),
        (CHAPTER, [code("draw()", PNG)], "a picture without a caption"),
    ):
        found = faults_of_form(text, *cells)
        assert len(found) == 1
        assert fault in found[0]


def test_a_definition_may_show_nothing():
    for source in (
        "",
        "# a comment",
        "import math\nfrom a import b",
        "def f(x):\n    return g(x)",
        "async def f(x):\n    return g(x)",
        "@dataclass\nclass A:\n    x: int = f()",
        "TEXT = 'a'\nSIZES = [1, -2, (3, 'b')]\nTABLE = {'a': 1}",
        "size: int = 3\nname: str",
        "first = rows[0]",
        "np.set_printoptions(precision=3)",
        "keras.config.set_printoptions(1)",
        '"""A text."""',
    ):
        assert not headings.is_silent(code(source))


def test_work_without_an_output_is_silent():
    for source in (
        "a = f()",
        "a = 1 + b",
        "a = [f for f in b]",
        "a = {f for f in b}",
        "a = (f for f in b)",
        "size: int = f()",
        "a += 1",
        "assert a == b",
        "for a in b:\n    pass",
        "model.fit(x, verbose=0)",
        "import math\nmath.sqrt(2)",
        "with a:\n    import b",
        "%matplotlib inline\na = f()",
    ):
        assert headings.is_silent(code(source))
        assert not headings.is_silent(code(source, {"text/plain": "1"}))
        assert not headings.is_silent(code(source, tags=["nbval-skip"]))
