"""A notebook and its twin in text hold the same cells."""

import jupytext.paired_paths
import pytest
from jupytext.combine import combine_inputs_with_outputs
from jupytext.config import load_jupytext_configuration_file

import book


def test_there_are_chapters():
    assert book.chapters(), "notebooks/ holds no chapter (NN_topic.ipynb)"


def test_every_notebook_and_every_twin_has_the_other():
    notebooks = {book.name_of(p, "notebooks") for p in book.notebooks()}
    twins = {book.name_of(p, "notebooks/text") for p in book.twins()}
    assert notebooks - twins == set(), "no twin in notebooks/text/"
    assert twins - notebooks == set(), "no notebook in notebooks/"


def test_names_are_two_digits_and_a_topic():
    paths = book.notebooks() + book.twins()
    assert [p.name for p in paths if not book.is_name(p.stem)] == []


@pytest.mark.parametrize("name", ["20_attention", "labs/10_hard_texts"])
def test_jupyterlab_writes_the_same_pairs(name):
    """The formats hold below the folders that `pyproject.toml` names."""
    settings = str(book.ROOT / "pyproject.toml")
    config = load_jupytext_configuration_file(settings)
    path = str(book.Chapter(name).path)
    found = jupytext.paired_paths.paired_paths(
        path, "ipynb", config.default_formats(path)
    )
    assert [one for one, _ in found] == [path, str(book.Chapter(name).twin)]


def test_pair_holds_the_same_cells(chapter, notebook):
    assert chapter.twin.is_file(), "no twin in notebooks/text/"
    twin = book.read_twin(chapter.twin)
    difference = book.same_cells(notebook, twin)
    assert difference is None, f"notebook against twin, {difference}"


def test_jupyterlab_folds_what_the_notebook_folds(chapter, notebook):
    """It shows the cells of the twin with the rest of the notebook's."""
    twin = book.read_twin(chapter.twin)
    shown = combine_inputs_with_outputs(twin, notebook, book.TWIN_FORMAT)
    for cell, stored in zip(shown.cells, notebook.cells, strict=True):
        assert cell.metadata == stored.metadata


def test_ids_follow_from_the_cells(chapter, notebook):
    """So that a command that rewrites a notebook changes nothing else."""
    fresh = book.tidied(notebook)
    stale = [
        cell.source.split("\n")[0]
        for cell, new in zip(notebook.cells, fresh.cells, strict=True)
        if cell.id != new.id
    ]
    assert stale == []


def example():
    new = book.nbformat.v4
    return new.new_notebook(
        cells=[
            new.new_markdown_cell("# 00 Title\n\nText."),
            new.new_markdown_cell("More text with $x$."),
            new.new_code_cell("a = 1\na", metadata={"tags": ["nbval-skip"]}),
        ]
    )


def test_a_written_pair_is_read_back_equal(tmp_path):
    book.write_notebook(example(), tmp_path / "00_x.ipynb")
    book.write_twin(example(), tmp_path / "00_x.md")
    one = book.read_notebook(tmp_path / "00_x.ipynb")
    other = book.read_twin(tmp_path / "00_x.md")
    assert book.same_cells(one, other) is None


@pytest.mark.parametrize("fault", ["source", "tags", "missing", "kind"])
def test_a_difference_is_seen(fault):
    changed = example()
    if fault == "source":
        changed.cells[2].source = "a = 2\na"
    elif fault == "tags":
        changed.cells[2].metadata["tags"] = []
    elif fault == "missing":
        del changed.cells[2]
    else:
        changed.cells[1].cell_type = "raw"
    assert book.same_cells(example(), changed) is not None


def test_rewrite_keeps_a_text_that_is_ahead_of_its_notebook(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(book, "ROOT", tmp_path)
    chapter = book.Chapter("00_x")
    chapter.twin.parent.mkdir(parents=True)
    book.write_notebook(example(), chapter.path)
    ahead = example()
    ahead.cells[1].source = "Newer text."
    book.write_twin(ahead, chapter.twin)

    def change(notebook):
        notebook.cells[0].source = "# 00 Other title"

    assert book.rewrite(chapter, change)
    notebook = book.read_notebook(chapter.path)
    twin = book.read_twin(chapter.twin)
    assert notebook.cells[1].source == "More text with $x$."
    assert twin.cells[1].source == "Newer text."
    for cells in (notebook.cells, twin.cells):
        assert cells[0].source == "# 00 Other title"
    assert not book.rewrite(chapter, change)
