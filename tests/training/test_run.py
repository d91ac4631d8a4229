"""`RunFolder`: one run a folder, the one that its record tells of."""

import json
import re

import numpy as np
import pytest

from bertbook.training.run import (
    OVERWRITTEN,
    SUBFOLDERS,
    RunFolder,
    hash_columns,
    last_step,
)
from tests.helpers.set_files import texts_in

RECORD = {"steps": 3, "shape": (1, 2), "recipe": {"seed": 0, "rate": 0.5}}


def begun(path, step=1):
    """Returns a folder in which a run kept a checkpoint."""
    folder = RunFolder(path, verbose=False)
    folder.begin(RECORD)
    folder.checkpoints.mkdir()
    (folder.checkpoints / f"checkpoint-{step:08d}.safetensors").touch()
    return folder


def test_a_record_is_written_once_and_then_compared(tmp_path):
    folder = begun(tmp_path / "run")
    folder.begin(RECORD)
    with pytest.raises(ValueError, match=r"`steps` was 3, now 4"):
        folder.begin(RECORD | {"steps": 4})
    with pytest.raises(ValueError, match=r"`recipe.seed` was 0, now 1"):
        folder.check(RECORD | {"recipe": {"seed": 1, "rate": 0.5}})
    with pytest.raises(ValueError, match=r"`recipe.rate` was 0.5, now None"):
        folder.check(RECORD | {"recipe": {"seed": 0}})
    assert json.loads(folder.record.read_text())["steps"] == 3


def test_what_a_record_knows_by_a_hash_is_named_and_not_its_digits(tmp_path):
    old, new = "0a" * 32, "1b" * 32
    folder = RunFolder(tmp_path, verbose=False)
    hashed = {"start": old, "dev": {"x": old}, "corpus": {"shards": old}}
    folder.begin(RECORD | hashed | {"else": old, "train": old})
    folder.checkpoints.mkdir()
    (folder.checkpoints / "checkpoint-00000001.safetensors").touch()
    changed = {"start": new, "dev": {"x": new}, "corpus": {"shards": new}}
    with pytest.raises(ValueError, match="with other settings") as caught:
        folder.begin(RECORD | changed | {"else": new, "train": None})
    assert "; ".join(
        [
            "settings: `corpus.shards` is another corpus than before",
            "`dev.x` is other dev data than before",
            "`else` is other content than before",
            "`start` is another starting model than before",
            f"`train` was {old!r}, now None. Name another folder",
        ]
    ) in str(caught.value)


def test_a_run_that_kept_nothing_gives_way_to_another(tmp_path):
    folder = RunFolder(tmp_path / "run", verbose=False)
    folder.begin(RECORD)
    folder.begin(RECORD | {"steps": 4})
    assert json.loads(folder.record.read_text())["steps"] == 4


def test_what_older_records_lack_is_not_compared(tmp_path):
    folder = begun(tmp_path)
    new = RECORD | {"corpus": {"files": ["a"]}}
    folder.begin(new, added=["corpus"])
    with pytest.raises(ValueError, match=r"`corpus.files` was None, now"):
        folder.begin(new)
    folder.record.write_text(json.dumps(new))
    with pytest.raises(ValueError, match=r"`corpus.files` was .*'a'.*'b'"):
        folder.begin(RECORD | {"corpus": {"files": ["b"]}}, added=["corpus"])


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "is not valid JSON"), ("", "is not valid"), ("[]", "a JSON object")],
)
def test_a_damaged_record_is_named(text, message, tmp_path):
    folder = begun(tmp_path)
    folder.record.write_text(text)
    with pytest.raises(ValueError, match=f"run.json.* {message}"):
        folder.check(RECORD)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("model.safetensors", "a model"),
        ("model-00001-of-00002.safetensors", "a model"),
        ("checkpoints/checkpoint-00000007.safetensors", "checkpoints"),
    ],
)
def test_what_has_no_record_is_not_gone_on_with(name, kept, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"theirs")
    folder = RunFolder(tmp_path)
    with pytest.raises(ValueError, match=f"holds {kept}, but no run.json of"):
        folder.begin(RECORD)
    assert not folder.record.exists()


@pytest.mark.parametrize("path", [None, "", 3, b"out", "a\0b", "\ud800", []])
def test_what_names_no_folder_is_refused(path):
    with pytest.raises(ValueError, match="`out` must"):
        RunFolder(path)


def test_the_last_step_is_that_of_the_newest_checkpoint(tmp_path):
    assert last_step(tmp_path / "none") is None
    folder = begun(tmp_path, step=8)
    (folder.checkpoints / "checkpoint-00000010.safetensors").touch()
    (folder.checkpoints / "checkpoint-new.safetensors").touch()
    for name in (
        "00000099.safetensors.part",
        "00000099.old.safetensors",
        "99.safetensors",
    ):
        (folder.checkpoints / f"checkpoint-{name}").touch()
    assert last_step(tmp_path) == 10


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_new_run_writes_over_no_file_of_a_user(name, tmp_path):
    (tmp_path / name).write_text("mine", "utf-8")
    folder = RunFolder(tmp_path, verbose=False)
    with pytest.raises(ValueError, match=f"`out` must.*{re.escape(name)}"):
        folder.begin(RECORD)
    assert texts_in(tmp_path) == {name: "mine"}
    folder.record.write_text(json.dumps(RECORD))  # then it is of that run
    folder.begin(RECORD)


@pytest.mark.parametrize("name", SUBFOLDERS)
def test_a_run_writes_through_no_link(name, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / f".bertbook-{'a1' * 8}.json").write_text("mine", "utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(mine)
    before = texts_in(mine)
    folder = RunFolder(tmp_path / "out", verbose=False)
    with (
        pytest.raises(ValueError, match=f"{name} must be a folder.* a link"),
        folder.hold(),
    ):
        pass
    assert texts_in(mine) == before
    assert [p.name for p in (tmp_path / "out").iterdir()] == [name]


def test_what_a_killed_run_has_left_is_removed_by_the_next(tmp_path):
    folder = begun(tmp_path)
    kept = texts_in(tmp_path)
    (tmp_path / "movie.part").touch()
    for path in (tmp_path, folder.checkpoints):
        (path / f".bertbook-{'a1' * 8}.safetensors").touch()
    with folder.hold():
        assert texts_in(tmp_path) == {**kept, "movie.part": "", "run.lock": ""}


def test_a_log_is_drawn_at_the_end_and_once_a_minute(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="draws a picture")
    folder = RunFolder(tmp_path)
    row = {"step": 1, "loss": 0.5}
    folder.open_log(0).add(row)
    picture = tmp_path / "log.png"
    folder.draw_log(row)
    assert not picture.exists()
    folder.drawn -= 61
    folder.draw_log(row)
    assert picture.is_file()
    picture.unlink()
    folder.draw_log(row)
    assert not picture.exists()
    folder.draw_log()
    assert picture.is_file()


def test_the_data_are_hashed_alike_whatever_holds_them():
    rows = {"text": ["a", "b"], "label": [[1], {"x", "y", "z"}]}
    same_rows = {"label": [[1], {"z", "y", "x"}], "text": np.array(["a", "b"])}
    assert hash_columns(rows) == hash_columns(same_rows)
    assert hash_columns(rows) != hash_columns(rows | {"text": "ba"})
    numbers = {"label": np.array([1, 2])}
    assert hash_columns(numbers) == hash_columns({"label": [1, 2]})
    assert hash_columns(None) is None
