"""Which notebooks a landing runs: the changed ones first, all in time."""

import json

import book
import turns

PATHS = [f"notebooks/{n}_x.ipynb" for n in range(30, 40)]
SECONDS = dict.fromkeys(PATHS, 100)


def test_the_changed_ones_come_first_and_the_limit_holds():
    changed = ["README.md", PATHS[7], PATHS[2], PATHS[7], ""]
    chosen = turns.choose(PATHS, changed, 4, SECONDS, 450)
    assert chosen == [PATHS[7], PATHS[2], PATHS[4], PATHS[5]]


def test_the_turns_go_round_and_see_all():
    assert turns.choose(PATHS, [], 9, SECONDS, 200) == [PATHS[9], PATHS[0]]
    seen = {p for t in range(10) for p in turns.choose(PATHS, [], t, {}, 0)}
    assert seen == set(PATHS)
    again = turns.choose(PATHS, [], 16**39 + 3, SECONDS, 300)
    assert again == turns.choose(PATHS, [], 16**39 + 3, SECONDS, 300)


def test_a_long_or_unknown_one_gives_way_to_those_that_fit():
    seconds = {**SECONDS, PATHS[1]: 900}
    assert turns.choose(PATHS, [], 0, seconds, 250) == [PATHS[0], PATHS[2]]
    del seconds[PATHS[0]]  # as long as the longest, but it comes first
    assert turns.choose(PATHS, [], 0, seconds, 250) == [PATHS[0]]


def test_seconds_are_read_from_a_log():
    log = (
        "2.50s call     notebooks/30_x.ipynb::Cell 1\n"
        "1.75s setup    notebooks/30_x.ipynb::Cell 0\n"
        "0.90s call     tests/text/test_bio.py::test_x\n"
        "61.00s call     notebooks/labs/30_y.ipynb::Cell 3\n"
    )
    expected = {"notebooks/30_x.ipynb": 4, "notebooks/labs/30_y.ipynb": 61}
    assert turns.read_seconds(log) == expected


def test_every_chapter_has_its_seconds_and_none_is_left_over():
    """A lab without any counts as the longest until it is timed."""
    kept = json.loads(turns.SECONDS.read_text("utf-8"))
    labs = {path for path in turns.others() if "/labs/" in path}
    assert set(turns.others()) - labs <= set(kept) <= set(turns.others())
    assert min(kept.values()) > 0


def test_the_chapters_of_make_test_are_not_among_them():
    names = [p.removeprefix("notebooks/") for p in turns.others()]
    assert "30_masked_words.ipynb" in names
    assert not [name for name in names if name[:2] <= "24"]
    assert len(book.labs()) == sum(name.startswith("labs/") for name in names)
