"""The workbench keeps what passed, and says what is wrong and where."""

import linecache
import os
import re
import subprocess
import sys
from itertools import count

import pytest

import book
from bertbook.book import mybert, workbench
from bertbook.book.parts import PARTS

NUMBERS = count(1)
WRITTEN = re.compile(r"^@part\n(?:def|class) (\w+)", re.MULTILINE)
STUB = 'def split_words(characters):\n    """Cuts."""\n    ...\n'
OWN_SPLIT = """
def flush(word, words):
    if word:
        words.append(word)
    return []


def split_words(characters):
    words, word = [], []
    for pair in characters:
        if pair[0].isspace() or is_punctuation(pair[0]):
            word = flush(word, words)
            if not pair[0].isspace():
                words.append([pair])
        else:
            word.append(pair)
    flush(word, words)
    return words
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder for `mybert`, empty, and no module of an earlier test."""
    monkeypatch.setenv("MYBERT", str(tmp_path / "mybert"))
    for name in [n for n in sys.modules if n.split(".")[0] == "mybert"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "mybert"


def cell(source, **names):
    """Runs a cell as a notebook does, and returns what it defined."""
    name = f"<cell {next(NUMBERS)}>"
    lines = source.splitlines(keepends=True)
    linecache.cache[name] = len(source), None, lines, name
    namespace = {"part": workbench.part, "book": workbench.book, **names}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def written(source, name="split_words", **names):
    """Puts `@part` over a definition and runs the cell."""
    marked = source.replace(f"def {name}(", f"@part\ndef {name}(")
    return cell(marked, **names)[name]


def owner(name="split_words"):
    return mybert.sections(PARTS[name].file)[name][0]


def test_each_part_is_written_in_its_chapter():
    found = {
        name: chapter.number
        for chapter in book.chapters()
        for name in WRITTEN.findall(chapter.twin.read_text("utf-8"))
    }
    assert found == {name: part.chapter for name, part in PARTS.items()}


@pytest.mark.parametrize("name", PARTS)
def test_the_books_answer_passes(name):
    answer = mybert.books(PARTS[name].file)[name]
    results = workbench._tried(name, workbench.BOOKS, answer).values()
    assert not any(isinstance(one, BaseException) for one in results)
    assert workbench.fault(name, answer) == ""


@pytest.mark.parametrize("name", PARTS)
def test_every_mistake_gets_its_own_sentence(name):
    mistakes = PARTS[name].mistakes
    sources = [workbench.edited(name, i) for i in range(len(mistakes))]
    said = [
        workbench._fault_in(name, source, workbench._tried_mistake(name, i))
        for i, source in enumerate(sources)
    ]
    said[-1] = workbench.fault(name, sources[-1])  # tried as the reader's
    assert said == [words for _, _, words in mistakes]
    assert len(set(said)) == len(said)


def test_the_picture_shows_whose_the_parts_are(capsys):
    written(OWN_SPLIT)
    picture = workbench.start("11")
    assert "split_words: yours; match_longest: the book's" in picture.alt
    assert "count_pairs: here" in picture.alt
    assert "Bert: chapter 23" in picture.alt


def test_nothing_written(capsys):
    used = written(STUB)
    said = capsys.readouterr().out
    assert (
        said
        == "split_words: not written yet.\nUsed from here on: the book's.\n"
    )
    assert used(mybert_pairs("a b")) == [[("a", 0)], [("b", 2)]]
    answer = mybert.books("tokenizer")["split_words"]
    assert cell("@book\n" + answer)["split_words"] is used
    assert capsys.readouterr().out == "Used from here on: the book's.\n"


def mybert_pairs(text):
    return [(character, index) for index, character in enumerate(text)]


def test_a_right_answer_is_kept_and_used(capsys, place):
    used = written(OWN_SPLIT)
    assert capsys.readouterr().out == (
        "split_words: right, kept in mybert/tokenizer.py.\n"
        "Used from here on: yours.\n"
    )
    text = (place / "tokenizer.py").read_text("utf-8")
    assert "# ---- split_words: yours\ndef flush" in text
    assert "# ---- match_longest: the book's\n" in text
    assert "flush" in used.__code__.co_names
    answer = mybert.books("tokenizer")["split_words"]
    assert cell("@book\n" + answer)["split_words"] is used
    assert capsys.readouterr().out == "Used from here on: yours.\n"
    # The definitions around it call it.
    assert sys.modules["mybert.tokenizer"].tokenize("A b!", {"a", "b"})[0] == (
        "a", 0, 1, 0,
    )  # fmt: skip


def test_a_stub_or_a_wrong_try_replaces_nothing(capsys):
    first = written(OWN_SPLIT)
    for later in (STUB, OWN_SPLIT.replace("words.append([pair])", "pass")):
        assert written(later) is first
        said = capsys.readouterr().out
    assert said == (
        "split_words: not yet: punctuation is lost; each mark is a word of "
        "its own.\nUsed from here on: yours, as it was before.\n"
    )
    other = written(OWN_SPLIT.replace("flush", "rinse"))
    assert "rinse" in other.__code__.co_names


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("words = []", "it returns nothing: is there a `return`?"),
        ("return 3 / len([])",
         "ZeroDivisionError, in your line `return 3 / len([])`: division by "
         "zero"),
        ("return paragraphs",
         "`paragraphs` is not known there: import or define it in this cell, "
         "or take it as an argument"),
        ("characters.clear()\n    return []",
         "it changes what it is given; work on a copy"),
        ("return tuple([pair] for pair in characters)",
         "it must return a list; it returns a tuple"),
        ("while True:\n        yield [('a', 0)]",
         "it yields its items one by one; return a list of them"),
        ("return 7", "it must return a list; it returns an int"),
        ("return [[(1 + 5j, 0)]]", "expected [["),
    ],
)  # fmt: skip
def test_general_faults(body, words):
    source = f"def split_words(characters):\n    {body}"
    assert words in workbench.fault("split_words", source)


def test_of_equal_spans_any_may_win():
    answer = mybert.books("tasks")["best_span"]
    later = answer.replace("max(spans,", "max(reversed([*spans]),")
    assert later != answer
    assert workbench.fault("best_span", later) == ""


@pytest.mark.parametrize(
    "loop",
    [
        "while True:\n        pass",
        "for _ in range(3):\n        try:\n            while True:\n"
        "                pass\n        except Exception:\n            pass",
    ],
)
def test_a_loop_that_does_not_end(loop, monkeypatch):
    monkeypatch.setattr(workbench, "SECONDS", 1)
    source = "def split_words(characters):\n    " + loop
    words = workbench.fault("split_words", source)
    assert words.startswith("TimeoutError, in your line")
    assert words.endswith("not done after 1 s: does the loop end?")


def test_a_call_that_waits_has_more_time_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(workbench, "SECONDS", 1)
    monkeypatch.setattr(workbench, "PATIENCE", 2)
    source = "def split_words(characters):\n    import time\n    time.sleep({})"
    words = workbench.fault("split_words", source.format(1.5))
    assert "does the loop end?" not in words
    words = workbench.fault("split_words", source.format(60))
    assert words.endswith("not done after 1 s: does the loop end?")


def test_a_helper_needs_a_name_of_its_own():
    source = OWN_SPLIT.replace("flush", "tokenize")
    assert workbench.fault("split_words", source) == (
        "`tokenize` is another thing in the file: call yours otherwise"
    )


def test_what_the_cell_needs_comes_along():
    source = (
        "import re as regular\nfrom bertbook.book.workbench import part\n"
        "LIMIT = 100\nprint('not this')\n\n\n"
        "@part\ndef match_longest(word, vocabulary):\n"
        "    assert regular and LIMIT\n"
        + mybert.books("tokenizer")["match_longest"].split('"""\n')[1]
    )
    cell(source)
    kept = mybert.sections("tokenizer")["match_longest"][1]
    assert kept.startswith("import re as regular\n\n\nLIMIT = 100\n\n\ndef")
    assert "print" not in kept


def test_a_later_chapter_comes_first(capsys):
    workbench.start()
    assert (
        capsys.readouterr().out
        == f"mybert: 0 of {len(PARTS)} parts are yours\n"
    )
    answer = mybert.books("embeddings")["Embeddings"]
    from keras import layers, ops

    cell(
        "@part\n" + answer.replace("vectors = vectors +", "vectors +="),
        layers=layers, ops=ops, normal=None,
    )  # fmt: skip
    written(OWN_SPLIT)
    capsys.readouterr()
    workbench.start()
    assert capsys.readouterr().out == (
        f"mybert: 2 of {len(PARTS)} parts are yours (split_words, Embeddings)\n"
    )


def test_an_edit_by_hand_is_checked_and_stays(capsys, place):
    written(OWN_SPLIT)
    path = place / "tokenizer.py"
    text = path.read_text("utf-8")
    edited = text.replace("words.append([pair])", "pass").replace(
        "lower in part.lower()]", "lower in part]"
    )
    path.write_text("import itertools\n" + edited, "utf-8")
    capsys.readouterr()
    workbench.start()
    said = capsys.readouterr().out
    assert (
        "split_words in mybert/tokenizer.py: it does not pass any more: pun"
        in said
    )
    after = path.read_text("utf-8")
    assert "import itertools" in after
    assert "# ---- clean: yours\n" in after
    assert "            if True" not in after
    assert sys.modules["mybert.tokenizer"].clean("A") == [("A", 0)]


def test_a_section_that_does_not_run_is_named(capsys, place):
    written(OWN_SPLIT)
    path = place / "tokenizer.py"
    broken = path.read_text("utf-8").replace(
        "def flush(word", "def flush(word:"
    )
    path.write_text(broken, "utf-8")
    capsys.readouterr()
    workbench.start()
    said = capsys.readouterr().out
    assert "line 1, `def flush(word:, words):`: invalid syntax" in said
    assert path.read_text("utf-8").count("def flush(word:") == 1
    assert sys.modules["mybert.tokenizer"].split_words([("a", 0)])


def test_what_the_book_wrote_follows_the_book(monkeypatch):
    workbench.start()
    newer = dict(mybert.books("tokenizer"))
    newer["pad_to"] = "def pad_to():\n    pass"
    newer["clean"] = newer["clean"].replace("Lower-cases", "Cleans")
    monkeypatch.setattr(
        mybert, "books", lambda file, old=mybert.books:
        newer if file == "tokenizer" else old(file),
    )  # fmt: skip
    found = mybert.sections("tokenizer")
    assert {who for who, _ in found.values()} == {"the book's"}
    assert "Cleans" in found["clean"][1]


def test_the_part_at_fault_is_found(capsys, place):
    for name in ("match_longest", "count_pairs"):
        answer = mybert.books(PARTS[name].file)[name]
        cell(f"@part\n{answer}", Counter=None)
    written(OWN_SPLIT)
    path = place / "tokenizer.py"
    text = path.read_text("utf-8")
    path.write_text(text.replace("words.append([pair])", "pass"), "utf-8")

    def agrees(package):
        return len(package.tokenizer.tokenize("a, b", {"a", "b", ","})) == 3

    capsys.readouterr()
    assert workbench.trace(agrees) == ["split_words"]
    assert capsys.readouterr().out == (
        "At fault: split_words, in mybert/tokenizer.py.\n"
    )
    assert workbench.trace(lambda package: True) == []
    assert workbench.trace(lambda package: False) == []


def test_two_parts_at_fault_are_found(place):
    for name, old, new in (
        ("match_longest", "return pieces", "return pieces[:1]"),
        ("split_words", "return [word for", "return [word[:2] for"),
    ):
        cell(f"@part\n{mybert.books('tokenizer')[name]}")
        path = place / "tokenizer.py"
        text = path.read_text("utf-8")
        path.write_text(text.replace(old, new, 1), "utf-8")

    def agrees(package):
        found = package.tokenizer.tokenize("abb", {"a", "##b", "b"})
        return [piece for piece, *_ in found] == ["a", "##b", "##b"]

    assert set(workbench.trace(agrees)) == {"match_longest", "split_words"}


def test_an_edit_of_what_was_given_is_found(place):
    workbench.start()
    path = place / "tokenizer.py"
    text = path.read_text("utf-8")
    path.write_text(text.replace("in part.lower()]", "in part]"), "utf-8")

    def agrees(package):
        return package.tokenizer.clean("A") == [("a", 0)]

    assert workbench.trace(agrees) == ["clean"]


def test_mybert_runs_without_the_book(place):
    written(OWN_SPLIT)
    workbench.start()
    program = (
        "import sys\nsys.modules['bertbook'] = None\n"
        "from mybert.tokenizer import Tokenizer\n"
        "from mybert import tasks, weights\n"
        "t = Tokenizer('[PAD] [UNK] [CLS] [SEP] [MASK] a b ,'.split())\n"
        "print(t(['a, b'])['input_ids'].tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=place.parent, check=True,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.stdout == "[[2, 5, 7, 6, 3]]\n"


def test_where_mybert_lies(monkeypatch, tmp_path):
    monkeypatch.delenv("MYBERT")
    notebooks = tmp_path / "notebooks"
    (notebooks / "labs").mkdir(parents=True)
    for folder in (notebooks, notebooks / "labs"):
        monkeypatch.chdir(folder)
        assert mybert.folder() == notebooks / "mybert"
    monkeypatch.chdir(tmp_path)
    assert mybert.folder() == tmp_path / "mybert"
    (tmp_path / "mybert").mkdir()
    (tmp_path / "mybert" / "__init__.py").touch()
    monkeypatch.chdir(notebooks / "labs")
    assert mybert.folder() == tmp_path / "mybert"
    monkeypatch.setattr(mybert, "IN_DRIVE", tmp_path / "MyDrive" / "mybert")
    (tmp_path / "MyDrive").mkdir()
    assert mybert.folder() == tmp_path / "MyDrive" / "mybert"


def test_a_name_that_is_no_part():
    with pytest.raises(ValueError, match="`twice` must be a part of mybert"):
        cell("@part\ndef twice(x):\n    return 2 * x")


def test_practice_is_used_where_it_passed(capsys):
    answer = "@book\ndef twice(x):\n    return x * 2\n"
    own = cell("def twice(x):\n    return x + x\n")["twice"]
    workbench.check(own, ((2,), 4))
    assert cell(answer)["twice"] is own
    assert capsys.readouterr().out == (
        "twice: right, 1 of 1 checks\nUsed from here on: yours.\n"
    )
    wrong = cell("def twice(x):\n    return x * x\n")["twice"]
    workbench.check(wrong, ((3,), 6))
    assert cell(answer)["twice"](3) == 6
    assert capsys.readouterr().out == (
        "twice(3): expected 6, received 9\nUsed from here on: the book's.\n"
    )


def test_practice_without_a_return(capsys):
    for body, words in (
        ("...", "not written yet"),
        ("y = x\n    ...", "not written yet"),
        ("y = x + 1", "it returns nothing: is there a `return`?"),
    ):
        source = f'def twice(x):\n    """Doubles."""\n    {body}\n'
        workbench.check(cell(source)["twice"], ((1,), 2))
        assert capsys.readouterr().out == f"twice: {words}\n"


def test_practice_that_raises(capsys):
    workbench.check(cell("def twice(x):\n    return x.y\n")["twice"], ((1,), 2))
    assert capsys.readouterr().out.startswith("twice: AttributeError")


def test_the_readers_own_line_is_named():
    source = OWN_SPLIT.replace("word.append(pair)", "word.append(*pair)")
    for _ in range(2):  # the second time the mistakes are known already
        assert "in your line `word.append(*pair)`" in workbench.fault(
            "split_words", source
        )


def test_two_helpers_of_one_name_are_told():
    written(OWN_SPLIT)
    answer = mybert.books("tokenizer")["match_longest"]
    for helper in ("def flush():\n    pass", "flush = 3", "re = 3"):
        name = "re" if helper.startswith("re") else "flush"
        assert workbench.fault("match_longest", f"{helper}\n\n\n{answer}") == (
            f"`{name}` is another thing in the file: call yours otherwise"
        )


@pytest.mark.parametrize(
    "around",
    [
        "TABLE = []\nTABLE.append(1)\n{}\ndef use():\n    return TABLE[0]",
        "def use():\n    return inner()\n{}\ndef inner():\n    return 1",
        "try:\n    use = print\nexcept NameError:\n    use = None\n{}",
        "import functools\n@functools.cache\ndef use():\n    return 1\n{}",
        "from __future__ import annotations\nfrom bertbook import plain\n"
        "use = len\n{}\nwords = split_words([])\nprint(words)",
    ],
)  # fmt: skip
def test_helpers_of_every_kind_come_along(around, capsys):
    own = OWN_SPLIT.replace("    flush(word, words)\n    return", "    use\n"
                            "    flush(word, words)\n    return")  # fmt: skip
    marked = own.replace("def split_words(", "@part\ndef split_words(")
    cell(around.format(marked))
    assert ": right, kept" in capsys.readouterr().out
    assert "print(words)" not in mybert.sections("tokenizer")["split_words"][1]
    workbench.start()
    assert "not run" not in capsys.readouterr().out


def test_a_last_line_of_dots_is_no_stub(capsys):
    written(OWN_SPLIT.replace("return words\n", "return words\n    ...\n"))
    assert "right" in capsys.readouterr().out


def test_damage_is_told_and_mended(capsys, place, monkeypatch):
    written(OWN_SPLIT)
    path = place / "tokenizer.py"
    good = path.read_text("utf-8")
    added = "\n# ---- my_own: yours\ndef my_own():\n    pass\n"
    lost = "it does not define `clean`"
    for bad, words in (
        (good + added, "(split_words)"),
        ("\ufeff" + good, "(split_words)"),
        ("import re(\n" + good, "(split_words)"),
        (good.replace("def clean(", "def clear("), lost),
        (good.replace("words.append([pair])", "exit()"), "SystemExit"),
    ):  # fmt: skip
        path.write_text(bad, "utf-8")
        (place / ".written.json").write_text("[1")
        capsys.readouterr()
        workbench.start()
        said = capsys.readouterr().out
        assert words in said, bad
        assert "does not run" not in said
        assert sys.modules["mybert.tokenizer"].clean("A") == [("a", 0)]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"mybert/tokenizer.py must be UTF-8"):
        workbench.start()
    monkeypatch.setenv("MYBERT", str(path))
    with pytest.raises(ValueError, match="`MYBERT` must be a folder"):
        workbench.start()


def test_a_cell_without_a_source_says_so(capsys):
    namespace = {"part": workbench.part}
    exec("@part\ndef split_words(characters):\n    return 3", namespace)
    said = capsys.readouterr().out
    assert "its cell cannot be read" in said
    assert said.endswith("Used from here on: the book's.\n")


def test_what_keras_says_is_not_its_last_line():
    source = mybert.books("embeddings")["Embeddings"].replace(
        "self.token(ids)", "self.token(ids)[:, 0]"
    )
    words = workbench.fault("Embeddings", source)
    assert "in your line" in words
    assert "Exception encountered" not in words
    assert "segments=" not in words


def test_a_head_of_the_readers_does_not_touch_the_book(place):
    workbench.start()
    path = place / "tokenizer.py"
    path.write_text("SPECIAL = []\n" + path.read_text("utf-8"), "utf-8")
    answer = mybert.books("tokenizer")["split_words"]
    assert workbench.fault("split_words", answer) == ""
    assert "SPECIAL = []" not in mybert.texts({}, mine=False)["tokenizer"]
    assert "SPECIAL = []" in mybert.texts({}, mine=True)["tokenizer"]


def test_a_layer_that_is_left_half_made_does_not_spoil_the_next():
    right = mybert.books("tasks")["TextClassifier"]
    wrong = right.replace("=normal()", "=normal")
    assert "needs its parentheses" in workbench.fault("TextClassifier", wrong)
    assert workbench.fault("TextClassifier", right) == ""


def test_names_are_tuples_and_labels_are_lists():
    source = "def bio_spans(tags):\n    return [['PER', 0, 1] for _ in tags]"
    words = workbench.fault("bio_spans", source)
    assert "each name must be a tuple: type, first, end" in words
    source = (
        "import numpy as np\n\ndef label_words(words, tags, tokenizer):\n"
        "    return np.array([1]), np.array([1])"
    )
    words = workbench.fault("label_words", source)
    assert "it must return two lists, of ids and of labels" in words
