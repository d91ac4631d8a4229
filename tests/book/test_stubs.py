"""What a chapter shows is what it runs: a broken quote breaks the chapter."""

import os
import time

import pytest

import book
import headings
import stubs

# The chapters in which the reader builds.
NAMES = [
    chapter.name
    for chapter in book.everything()
    if chapter.part != headings.BACK_MATTER
    # A line of a cell, in JSON; prose may name the mark, too.
    and any(
        f'"{start}' in chapter.path.read_text("utf-8") for start in book.QUOTES
    )
]
QUOTE = f"{book.FIRST_LINE_OF_A_QUOTE}bertbook.room.module."
DOUBLE = f'{QUOTE}double\ndef double(x):\n    """Doubles."""\n    return 2 * x'
POINT = f"""\
{QUOTE}Point
class Point:
    def __init__(self, x):
        self.x = x

    @classmethod
    def origin(cls):
        return cls(0)"""


def cells(*sources):
    return [book.nbformat.v4.new_code_cell(source) for source in sources]


def failure(*sources):
    """Returns what happens with a stub in place of the only quote."""
    made = cells(*sources)
    (number,) = (i for i, cell in enumerate(made) if book.is_quote(cell))
    namespace = stubs.namespace_before(made, number)
    fast = stubs.first_failure(made, number, namespace)
    if isinstance(fast, int):
        assert stubs.fresh_failure(made, number) == fast
    return stubs.fresh_failure(made, number)


def test_a_quote_that_is_used_is_killed():
    assert failure(DOUBLE, "a = 1", "assert double(a) == 2") == 2


def test_an_answer_under_the_decorator_is_killed():
    """The decorator would give the whole definition in place of the stub."""
    start = "def book(thing):\n    return lambda x: 2 * x"
    answer = f"@book  {DOUBLE}"
    assert failure(start, answer, "double(1)") == 2
    assert failure(start, f"@book  {POINT}", "Point(1)") == 2
    assert failure(start, answer, "a = 1") is None


def test_decoration_survives():
    assert failure(DOUBLE, "a = 1\nassert 2 * a == 2") is None


def test_a_use_before_the_quote_does_not_count():
    before = "def double(x):\n    return 2 * x\ndouble(1)"
    assert failure(before, DOUBLE, "a = 1") is None


def test_a_name_bound_anew_hides_the_quote():
    installed = "from operator import neg as double"
    assert failure(DOUBLE, installed, "double(1)") is None


def test_a_function_defined_before_the_quote_sees_the_stub():
    before = "def twice(x):\n    return double(double(x))"
    assert failure(before, DOUBLE, "twice(1)") == 2


def test_a_method_put_into_a_class_is_killed():
    before = "class A:\n    pass"
    use = "A.double = double\nassert A().double"
    assert failure(before, DOUBLE, use, "A().double()") == 3


def test_a_class_is_killed():
    for use in (
        "Point(1)",
        "Point.origin()",
        "class Mine(Point):\n    pass\nMine(1)",
        "class Mine(Point):\n    def __init__(self):\n        pass\nMine().x",
        "class Mine(Point):\n    pass\nMine.origin()",
    ):
        assert failure(POINT, use) == 1


def test_a_class_that_is_only_named_survives():
    assert (
        failure(POINT, "assert Point.__name__ == 'Point'; str(Point)") is None
    )


def test_another_error_is_told():
    caught = "try:\n    a = double(1)\nexcept Exception:\n    pass"
    told = failure(DOUBLE, caught, "a + 1")
    assert told == "NameError in code cell 3: name 'a' is not defined"


def test_a_swallowed_error_kills_nothing():
    """Such a chapter passes, whatever its quote does."""
    caught = "try:\n    double(1)\nexcept Exception as error:\n    print(error)"
    assert failure(DOUBLE, caught) is None


def test_an_error_that_comes_from_a_stub_kills():
    for handler in (
        "raise ValueError('wrong') from error",
        "raise ValueError(str(type(error)))",
        "undefined",
    ):
        use = f"try:\n    double(1)\nexcept Exception as error:\n    {handler}"
        assert failure(DOUBLE, use) == 1


def test_a_skipped_cell_is_not_run():
    made = cells(DOUBLE, "double(1)", "double(2)")
    made[1].metadata["tags"] = ["nbval-skip"]
    assert stubs.fresh_failure(made, 0) == 2


def test_magics_and_displays_are_left_out():
    assert failure(DOUBLE, "%matplotlib inline\n!ls\ndisplay(3)") is None


def test_a_cell_keeps_its_source():
    namespace = stubs.new_namespace()
    stubs.run("import inspect\n\n\ndef f():\n    return 1", namespace)
    stubs.run("source = inspect.getsource(f)", namespace)
    assert namespace["source"] == "def f():\n    return 1"


def test_nothing_is_printed(capsys):
    stubs.run("import sys\nprint(1)\nprint(2, file=sys.stderr)", {})
    assert capsys.readouterr() == ("", "")


# Whole chapters.


@pytest.fixture
def trial(tmp_path, monkeypatch):
    """Runs a chapter of the cells given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(book, "ROOT", tmp_path)
    chapter = book.Chapter("20_a")
    chapter.path.parent.mkdir()

    def run(*sources):
        notebook = book.nbformat.v4.new_notebook(cells=cells(*sources))
        book.write_notebook(notebook, chapter.path)
        return stubs.trial("20_a")

    return run


def test_each_quote_of_a_chapter_is_tried(trial):
    other = DOUBLE.replace("double", "triple")
    found = trial(DOUBLE, other, "a = 1", "double(a)")
    assert found == [
        ("bertbook.room.module.double", 3),
        ("bertbook.room.module.triple", None),
    ]


def test_what_cells_share_is_made_anew(trial):
    """A trial runs ahead and uses up what the cells share."""
    numbers = "numbers = iter([1, 2, 3])"
    uses = "assert next(numbers) == 1", "assert double(next(numbers)) == 4"
    assert trial(numbers, DOUBLE, *uses) == [("bertbook.room.module.double", 3)]
    decoration = "assert next(numbers) == 1", "assert next(numbers) == 2"
    assert trial(numbers, DOUBLE, *decoration) == [
        ("bertbook.room.module.double", None)
    ]


def test_a_chapter_that_fails_by_itself_is_an_error(trial):
    with pytest.raises(RuntimeError, match="code cell 2 fails .*ZeroDivision"):
        trial(DOUBLE, "1 / 0")


@pytest.mark.slow
def test_a_process_of_its_own_has_the_plain_environment(monkeypatch):
    monkeypatch.setenv("BERTBOOK_FULL", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("MYBERT", "mine")
    there = stubs.isolated(eval, "dict(__import__('os').environ)")
    assert "BERTBOOK_FULL" not in there
    assert there["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "mine" not in there["MYBERT"]
    assert os.environ["MYBERT"] == "mine"
    assert os.environ["BERTBOOK_FULL"] == "1"


# The chapters as they are.


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_quote_of_the_chapter_is_used(name, record_property):
    start = time.perf_counter()
    results = stubs.isolated_trial(name)
    alive = {d: failed for d, failed in results if not isinstance(failed, int)}
    counts = {
        "quotes": len(results),
        "killed": len(results) - len(alive),
        "seconds": round(time.perf_counter() - start),
    }
    record_property("counts", ["broken quotes", name, counts])
    assert results
    assert alive == {}, "the chapter runs other code than it shows"
