"""Exercises are well formed, and their checks tell right from not done."""

import collections
import re
import time

import pytest

import book
import exercises
import navigation

NAMES = exercises.names()
NONE = pytest.mark.skip(reason="tools/book/exercises/ holds no source yet")
each = pytest.mark.parametrize("name", NAMES or [pytest.param("", marks=NONE)])
SOURCE = """\
# Exercises to 20 Attention

As in 20_attention and Devlin et al. (2019).

```{code-cell} ipython3
x = [1.0, 2.0]
```

## 1. The mean (easy)

Write it.

```{code-cell} ipython3
:tags: [stub]

def mean(values):
    ...
```

+++ {"tags": ["solution"]}

Sum and number.

```{code-cell} ipython3
:tags: [solution]

def mean(values):
    return sum(values) / len(values)
```

```{code-cell} ipython3
:tags: [check]

assert mean(x) == 1.5, f"expected 1.5, received {mean(x)}"
```

## 2. The largest (project)

```{code-cell} ipython3
:tags: [stub]

largest = None
```

```{code-cell} ipython3
:tags: [solution]

largest = max(x)
```

```{code-cell} ipython3
:tags: [check]

if largest != 2.0:
    raise ValueError("largest must be 2")
```
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Writes a source into a book of its own and returns its name."""
    monkeypatch.setattr(exercises, "SOURCES", tmp_path)
    notebooks = tmp_path / "notebooks"

    def path_of(name, kind):
        return notebooks / exercises.FOLDERS[kind] / f"{name}.ipynb"

    monkeypatch.setattr(exercises, "path_of", path_of)
    monkeypatch.chdir(tmp_path)

    def written(text=SOURCE):
        (tmp_path / "20_attention.md").write_text(text, "utf-8")
        return "20_attention"

    return written


def run(name):
    """Runs both notebooks in this process, where the paths are patched."""
    exercises.write(name)
    for kind in exercises.FOLDERS:
        path = exercises.path_of(name, kind)
        notebook = book.read_notebook(path)
        notebook.cells = [
            cell for cell in notebook.cells if "bb.setup()" not in cell.source
        ]
        path.write_text(book.nbformat.writes(notebook), "utf-8")
    return exercises.faults_when_run(name)


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(exercises.stubs, "isolated", lambda f, *a: f(*a))


# The exercises as they are.


@each
def test_source_is_well_formed(name):
    assert exercises.faults(name) == []


@each
def test_notebooks_are_current(name):
    for kind in exercises.FOLDERS:
        path = exercises.path_of(name, kind)
        assert path.is_file(), "run `make exercises`"
        text = book.nbformat.writes(exercises.made(name, kind)) + "\n"
        assert path.read_text("utf-8") == text, "run `make exercises`"


def test_every_notebook_has_a_source_and_every_source_a_chapter():
    chapters = {chapter.name for chapter in book.everything()}
    assert set(NAMES) <= chapters
    for kind in exercises.FOLDERS.values():
        folder = f"notebooks/{kind}"
        place = book.ROOT / folder
        paths = [*place.glob("*.ipynb"), *place.glob("labs/*.ipynb")]
        assert {book.name_of(path, folder) for path in paths} == set(NAMES)


@each
def test_the_chapter_lists_its_exercises(name):
    notebook = book.read_notebook(book.Chapter(name).path)
    before = book.twin_text(notebook)
    exercises.refresh(notebook, name)
    navigation.refresh(notebook, name)
    assert book.twin_text(notebook) == before, "run `make links`"
    text = "\n".join(cell.source for cell in notebook.cells)
    for kind in exercises.FOLDERS.values():
        assert f"]({book.link(f'{kind}/{name}', name)})" in text


@each
def test_a_chapter_has_exercises(name):
    assert exercises.exercises_of(exercises.read(name))


def test_a_part_has_one_project():
    parts = collections.Counter(
        str(book.Chapter(name).part)
        for name in NAMES
        for exercise in exercises.exercises_of(exercises.read(name))
        if exercise.grade == "project"
    )
    assert parts == dict.fromkeys("123456", 1)


def test_exercises_of_the_chapter_are_notebooks(chapter, notebook):
    """A list that somebody wrote into the chapter has no check."""
    if chapter.name in NAMES:
        return
    text = "\n".join(cell.source for cell in notebook.cells)
    _, _, section = text.partition("\n## Exercises")
    assert not re.search(r"^\d+\. ", section, re.MULTILINE)


@pytest.mark.slow
@each
def test_checks_tell_right_from_not_done(name, record_property):
    start = time.perf_counter()
    found, checks = exercises.faults_when_run(name)
    counts = {
        "checks": checks,
        "seconds": round(time.perf_counter() - start),
    }
    record_property("counts", ["exercises", name, counts])
    assert found == []
    assert checks == len(exercises.exercises_of(exercises.read(name)))


# The tool.


def test_a_whole_source_has_no_fault(place):
    assert exercises.faults(place()) == []
    found = exercises.exercises_of(exercises.read("20_attention"))
    assert found == [
        exercises.Exercise(1, "The mean", "easy"),
        exercises.Exercise(2, "The largest", "project"),
    ]


def without(tag, nth=0):
    """Returns the source in which one cell has lost its tag."""
    line = f":tags: [{tag}]\n\n"
    parts = SOURCE.split(line)
    head, tail = line.join(parts[: nth + 1]), line.join(parts[nth + 1 :])
    return f"{head}{tail}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SOURCE.replace("to 20", "for 20"), "the first line must be"),
        (SOURCE.replace("to 20", "to 21"), "the first line must be"),
        (SOURCE.replace("## 2.", "## 3."), "numbered from 1"),
        (SOURCE.replace("(easy)", "(hard)"), "the grade must be one of"),
        (SOURCE.replace("(easy)", ""), "must read `## 1. Title"),
        (SOURCE.replace("## 2.", "## 2"), "must read `## 1. Title"),
        (without("stub"), "1: stub, solution, check"),
        (without("solution", 1), "2: stub, solution, check"),
        (without("check"), "1: stub, solution, check"),
        (without("check", 1), "2: stub, solution, check"),
        (
            SOURCE.replace("x = [", ":tags: [check]\n\nx = ["),
            "before the first",
        ),
    ],
)
def test_each_fault_of_a_source_is_seen(place, text, words):
    assert text != SOURCE
    assert any(words in fault for fault in exercises.faults(place(text)))


def sources_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def test_stub_and_solution_are_parted(place):
    stub = sources_of(exercises.made(place(), "stub"))
    solution = sources_of(exercises.made("20_attention", "solution"))
    for text in (stub, solution):
        assert "bb.setup()" in text
        assert "x = [1.0, 2.0]" in text
        assert text.count("assert mean(x) == 1.5") == 1
        assert text.count("## 2. The largest (project)") == 1
    assert "..." in stub
    assert "largest = None" in stub
    assert "sum(values)" not in stub
    assert "Sum and number." not in stub
    assert "..." not in solution
    assert "largest = None" not in solution
    assert "sum(values)" in solution
    assert "Sum and number." in solution


def test_notebooks_link_chapter_papers_and_each_other(place):
    stub = sources_of(exercises.made(place(), "stub"))
    solution = sources_of(exercises.made("20_attention", "solution"))
    assert "[Solutions](../solutions/20_attention.ipynb)" in stub
    assert "[Exercises](../exercises/20_attention.ipynb)" in solution
    for text in (stub, solution):
        assert "[Chapter 20](../20_attention.ipynb) | " in text
        assert "As in [chapter 20](../20_attention.ipynb) and [Devlin" in text


def test_notebooks_hold_no_outputs_and_write_no_twin(place):
    notebook = exercises.made(place(), "stub")
    book.nbformat.validate(notebook)
    cells = book.code_cells(notebook)
    assert len(cells) == 6
    assert all(c.outputs == [] and c.execution_count is None for c in cells)
    assert notebook.metadata["jupytext"] == {"formats": "ipynb"}


def test_two_writings_give_the_same_bytes(place):
    texts = []
    for _ in range(2):
        exercises.write(place())
        path = exercises.path_of("20_attention", "stub")
        texts.append(path.read_bytes())
    assert texts[0] == texts[1]


def test_the_chapter_gets_the_list(place):
    new = book.nbformat.v4
    cells = [
        new.new_markdown_cell(t) for t in ("# 20 A", "## Exercises\n\nold")
    ]
    notebook = new.new_notebook(cells=cells)
    exercises.refresh(notebook, "30_other")
    assert notebook.cells[1].source == "## Exercises\n\nold"
    exercises.refresh(notebook, place())
    lines = notebook.cells[1].source.split("\n")
    assert lines[0] == "## Exercises"
    assert lines[-2:] == ["1. The mean (easy)", "2. The largest (project)"]


def test_right_checks_have_no_fault(place, in_process):
    assert run(place()) == ([], 2)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("    ...", "    return 1.5",
         "1: the check passes before it is solved"),
        ("sum(values) /", "max(values) /",
         "solution 1: AssertionError: expected 1.5, received 1.0"),
        (', f"expected 1.5, received {mean(x)}"', "",
         "1: the check says no message: AssertionError: "),
        ("assert mean(x) ==", "assert mean(x) + 0 ==",
         "1: the check says no message: TypeError: "),
        ("largest = None", "largest = undefined",
         "exercises: code cell 4: NameError: "),
        ("largest = max(x)", "largest = max(y)",
         "solutions: code cell 4: NameError: "),
        ("largest = max(x)", "largest = min(x)",
         "solution 2: ValueError: largest must be 2"),
    ],
)  # fmt: skip
def test_each_fault_of_a_run_is_seen(place, in_process, old, new, fault):
    assert SOURCE.count(old) == 1
    found, _ = run(place(SOURCE.replace(old, new)))
    assert len(found) == 1
    assert found[0].startswith(fault)
